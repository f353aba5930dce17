"""A job that is cancelled while what watches over it is just being started."""

import os
import shutil
import signal
import struct
from pathlib import Path

import pytest

import shim
from instance import GPUMGR, Instance, is_alive
from job_box import NO_ENGINES, gpumgr, job, spawn, state, submit, verdicts
from simulator import BUILD, Simulator, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the box has a system's instance")

STOP_SIGNAL = 36  # run/stop.h
# Becomes the real one when it is told to: until then it does not listen. (A shell would change what is blocked.)
SLOW_SHIM = """#!/usr/bin/python3 -I
import os, sys, time
open(f"{where}/came.{{os.getpid()}}", "w").close()
while not os.path.exists("{where}/go"):
    time.sleep(0.05)
os.execv("{shim}", sys.argv)
"""


@pytest.fixture
def slow(tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("gpumgr", "gpumgr-core", "gpumgr-node", "gpumgr-server"):
        shutil.copy(BUILD / name, programs)
    (programs / "gpumgr-shim").write_text(SLOW_SHIM.format(where=tmp_path, shim=BUILD / "gpumgr-shim"))
    (programs / "gpumgr-shim").chmod(0o755)
    with Simulator(tmp_path / "sim", "--model", "h200:1") as sim:
        with Instance(sim, "--gpu-devices", sim.dir / "dev", *NO_ENGINES, role="up", program=programs / GPUMGR.name) as i:
            i.sim = sim
            i.ready(1)
            wait_for(lambda: verdicts(i) == ["free"], "the GPU is free", 60)
            yield i
            (tmp_path / "go").touch()


def has_pending(pid):
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return int(next(line for line in lines if line.startswith("ShdPnd:")).split()[1], 16) >> (STOP_SIGNAL - 1) & 1


def test_a_cancel_waits_for_a_shim_that_does_not_listen_yet(slow, tmp_path):
    number = submit(slow, "--", "touch", tmp_path / "ran")
    pid = wait_for(lambda: [p.name.split(".")[1] for p in tmp_path.glob("came.*")], "its shim was started", 60)[0]
    assert gpumgr(slow, "cancel", number).returncode == 0
    wait_for(lambda: has_pending(pid) or not is_alive(pid), "its shim was told", 60)
    assert is_alive(pid)
    (tmp_path / "go").touch()
    assert state(slow, number, "cancelled", "done", "failed")["state"] == "cancelled"
    assert job(slow, number)["reason"] == "was cancelled"
    assert not (tmp_path / "ran").exists() and len(list(tmp_path.glob("came.*"))) == 1


def test_a_cancel_is_not_forgotten_with_a_shim_that_was_killed(slow, tmp_path):
    """It had not begun: another shim must not begin it."""
    number = submit(slow, "--", "touch", tmp_path / "ran")
    pid = wait_for(lambda: [p.name.split(".")[1] for p in tmp_path.glob("came.*")], "its shim was started", 60)[0]
    assert gpumgr(slow, "cancel", number).returncode == 0
    wait_for(lambda: has_pending(pid), "its shim was told", 60)
    os.kill(int(pid), 9)
    assert state(slow, number, "cancelled", "done", "failed")["state"] == "cancelled"
    assert not (tmp_path / "ran").exists() and len(list(tmp_path.glob("came.*"))) == 1


def test_nor_is_one_that_was_recorded(slow, tmp_path):
    """Shim and node were killed after the first had noted that it is to end: what is on the disk counts."""
    number = submit(slow, "--", "touch", tmp_path / "ran")
    pid = wait_for(lambda: [p.name.split(".")[1] for p in tmp_path.glob("came.*")], "its shim was started", 60)[0]
    path = slow.dir / f"jobs/{number}.0.1/state"
    note = shim.RECORD.pack(0x6a6f6231, shim.STOPPING, shim.BY_CANCEL, *[0] * (len(shim.FIELDS) - 7), b"", b"", b"", 0)[:-8]
    with path.open("r+b") as f:
        f.write(note + struct.pack("<Q", shim.checksum(note)))
    for node in slow.of_program("node"):
        os.kill(node, 9)
    os.kill(int(pid), 9)
    assert state(slow, number, "cancelled", "done", "failed")["state"] == "cancelled"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_meanwhile_is_not_lost(slow, tmp_path, sent):
    """Whoever follows it hears that it runs, but there is nobody yet who could be told."""
    number = submit(slow, "--", "touch", tmp_path / "ran")
    wait_for(lambda: list(tmp_path.glob("came.*")), "its shim was started", 60)
    p = spawn(slow, "attach", number)
    assert f"job {number} " in p.stderr.readline()
    p.send_signal(sent)
    assert f"job {number} is cancelled" in p.stderr.readline()
    (tmp_path / "go").touch()
    p.communicate(timeout=60)
    assert p.returncode == 128 + sent and job(slow, number)["state"] == "cancelled" and not (tmp_path / "ran").exists()
