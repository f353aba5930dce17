"""The machine is restarted while jobs run: every process of it is gone, and what is on the disk is of another boot. Each job is tried
again or failed by its policy; who waited goes on waiting; nobody guesses an exit code."""

import os
import struct
from contextlib import suppress

import pytest

import shim
from instance import Instance, is_alive
from job_box import NO_ENGINES, ask, gpumgr, job, state, submit, verdicts
from simulator import Simulator, wait_for

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="the box has a system's instance"), pytest.mark.timeout(300)]

OTHER_BOOT = b"99999999-2222-3333-4444-555555555555"


def begin(sim, path=None):
    box = Instance(sim, "--gpu-devices", sim.dir / "dev", *NO_ENGINES, role="up", path=path)
    box.sim = sim
    box.ready(2)
    wait_for(lambda: verdicts(box) == ["free", "free"] or (path and verdicts(box)), "both GPUs are free, or the server is back", 60)
    return box


def kill(pids):
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
    wait_for(lambda: not any(map(is_alive, pids)), "they are gone", 60)


def of_another_boot(path):
    """What is recorded there was recorded before the machine was started anew."""
    data, size = bytearray(path.read_bytes()), shim.RECORD.size
    for at in range(0, len(data) - size + 1, size):
        if any(data[at:at + size]):
            values = list(shim.RECORD.unpack(data[at:at + size]))
            values[shim.FIELDS.index("boot_id")] = OTHER_BOOT
            body = shim.RECORD.pack(*values)[:-8]
            data[at:at + size] = body + struct.pack("<Q", shim.checksum(body))
    path.write_bytes(data)


def power_off(box):
    """All at once, as far as signals can be; then the disk is what is left."""
    states = list((box.dir / "jobs").glob("*.*.*/state"))
    records = [r for s in states for r in shim.records(s)]
    children = box.children()
    kill([box.process.pid, *children, *(p for r in records for p in (r["shim_pid"], r["pid"]) if p)])
    box.process.wait(30)
    for s in states:
        of_another_boot(s)
    return len(states)


def test_tried_again_or_failed_by_policy(tmp_path):
    ran = tmp_path / "ran"
    with Simulator(tmp_path / "sim", "--model", "h200:2") as sim:
        box = begin(sim)
        again = submit(box, "--retries", 1, "--", "sh", "-c", f"echo $GPUMGR_ATTEMPT >> {ran}; test $GPUMGR_ATTEMPT = 2 || exec sleep 1000")
        once = submit(box, "--", "sleep", 1000)
        for number in (again, once):
            state(box, number, "running")
        after = submit(box, "--gpus", 2, "--", "true")
        follower = submit(box, "--after", once, "--", "true")
        wait_for(lambda: ran.exists() and ran.read_text() == "1\n", "the first attempt was made", 60)
        assert power_off(box) == 2
        with begin(sim, box.dir) as box:
            assert state(box, once, "failed", "exit unknown", "done")["state"] == "failed"
            assert job(box, once)["reason"] == "was ended by a restart of the machine" and job(box, once)["exit_code"] is None
            assert wait_for(lambda: (j := job(box, again))["state"] == "done" and j, "its second attempt is done", 60)
            runs = job(box, again)["runs"]
            assert [(r["attempt"], r["exit_code"], r["reason"]) for r in runs] == [(1, None, "was ended by a restart of the machine"), (2, 0, None)]
            assert ran.read_text() == "1\n2\n", "each attempt once"
            state(box, after, "done")
            assert state(box, follower, "cancelled")["state_text"] == f"job {once}, which it was to follow, ended as: failed"
            assert gpumgr(box, "wait", again).returncode == 0 and not ask(box, "queue", "--json")["running"]
