"""The supervisor: stops, restarts, fences, reloads, refuses, and tells systemd; and the control socket of its sampler."""

import contextlib
import json
import os
import pty
import re
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from instance import GPUMGR, Instance, clean_env, followed, is_alive, kill
from simulator import BUILD, LIBRARY, ROOT, Simulator, wait_for
from stopwatch import Stopwatch
from unkillable import Unkillable

HZ = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:4") as s:
        yield s


@pytest.fixture
def here():
    """A directory on tmpfs, and nothing in it."""
    with tempfile.TemporaryDirectory(prefix="gm-", dir="/dev/shm") as path:
        os.chmod(path, 0o755)  # a server that was root comes in as somebody else
        yield Path(path)


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / HZ


def family(i):
    return [i.process.pid, *i.children()]


def all_gone(pids):
    return wait_for(lambda: not any(map(is_alive, pids)), "nobody is left behind")


def refused(*flags, role="node", env=None, program=GPUMGR, **more):
    """Runs a start that must fail; returns its sentence."""
    run = subprocess.run([str(program), role, *map(str, flags)], capture_output=True, text=True, timeout=20,
                         env=clean_env(**(env or {})), **more)
    assert run.returncode == 2, run
    said = [line for line in run.stderr.splitlines() if line]
    assert len(said) == 1, said
    return said[0]


# ---- the end ----

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("hangs", [False, True])
def test_it_stops_with_all_its_children(sim, number, hangs):
    with Instance(sim, "--wait-ms", "100", "--sampler.workers", "2") as i:
        i.ready(4)
        if hangs:
            sim.say("fault 1 hang")
            i.wait_state(1, "not answering")
        pids = family(i)
        assert len(pids) == 4  # two samplers and the node
        watch = Stopwatch()
        i.process.send_signal(number)
        assert i.process.wait(30) == 0
        assert watch.seconds < 3
        all_gone(pids)
        assert [line["event"] for line in i.log()][-1] == "stopped"


def test_a_killed_supervisor_takes_its_children_with_it():
    with Instance(None, "--sim", "2", role="up") as i:
        i.ready(2)
        pids = family(i)
        assert len(pids) == 5  # simulator, sampler, node, server
        watch = Stopwatch()
        kill(i.process.pid)
        all_gone(pids)
        assert watch.seconds < 2


def test_a_killed_simulator_comes_back():
    with Instance(None, "--sim", "2", "--wait-ms", "100", role="up") as i:
        i.ready(2)
        gpusim = next(p for p in i.children() if Path(f"/proc/{p}/exe").readlink().name == "gpusim")
        kill(gpusim)
        wait_for(lambda: gpusim not in i.children() and len(i.children()) == 4, "a new simulator")
        i.ready(2)


def test_up_sim_plays():
    with Instance(None, "--sim", "4", "--wait-ms", "100", role="up") as i:
        assert [g["index"] for g in i.ready(4)["gpus"]] == [0, 1, 2, 3]
        wait_for(lambda: any(g["metrics"].get("gpu_utilization_ratio", 0) > 0.5 for g in i.status()["gpus"]), "somebody works", 30)


@pytest.mark.parametrize("is_there", [False, True])
def test_it_goes_on_when_nobody_reads_its_log(sim, here, is_there):
    """A reader that is gone, and one that is there but does not read."""
    read, write = os.pipe()
    process = subprocess.Popen([str(GPUMGR), "node", "--dir", str(here), "--gpu-library", str(LIBRARY)], stderr=write,
                               env=clean_env(GPUSIM_DIR=sim.dir))
    wait_for(lambda: (here / "run/ring.0").exists(), "the ring")
    if is_there:
        fill(write)
    else:
        os.close(read)
    os.close(write)
    sampler = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
    process.send_signal(signal.SIGHUP)  # both have something to say to that
    control = here / "run/sampler.0.sock"
    assert ask(control, message(RELOAD)) == (0, 0, "")
    assert ask(control, message(PING)) == (0, sampler, "")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    if is_there:
        os.close(read)


def fill(pipe):
    os.set_blocking(pipe, False)
    for size in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(pipe, b"x" * size)
    os.set_blocking(pipe, True)


# ---- the dead and the hung ----

@pytest.mark.alone
def test_a_killed_sampler_is_replaced_within_a_second(sim):
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(4)
        reader = i.follow(4)
        pid = i.sampler()
        began = time.monotonic()
        kill(pid)
        wait_for(lambda: i.samplers() and i.samplers() != [pid], "a new one")
        assert time.monotonic() - began < 1
        lines = followed(reader)
        assert {x["file"] for x in lines} == {1}, "the ring is continued"
        numbers = [x["number"] for x in lines if x["gpu"] == 0]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        times = [x["boot"] for x in lines if x["gpu"] == 0]
        assert max(b - a for a, b in zip(times, times[1:])) < 1


def test_a_sampler_without_a_heartbeat_is_replaced(sim):
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(4)
        pid = i.sampler()
        kill(pid, signal.SIGSTOP)
        wait_for(lambda: i.samplers() and pid not in i.samplers(), "it is replaced")
        assert "no heartbeat" in i.said("child_hung")[0]["text"]
        i.ready(4)


def test_a_pause_of_all_is_nobodys_fault(sim):
    """Ctrl-Z and fg, or a suspended machine: a sampler that slept with its supervisor is not hung."""
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(4)
        pids = family(i)
        for pid in pids:
            kill(pid, signal.SIGSTOP)
        end = time.monotonic() + 11
        wait_for(lambda: time.monotonic() > end, "longer than a heart may stand still")
        for pid in pids:
            kill(pid, signal.SIGCONT)
        i.ready(4)
        assert family(i) == pids and not i.said("child_hung")


def test_an_unkillable_sampler_is_fenced_not_doubled(sim):
    """Its GPUs are left alone, the other worker's are watched, and all is well when it is gone."""
    with Instance(sim, "--wait-ms", "100", "--sampler.workers", "2") as i:
        i.ready(4)
        first = i.sampler()
        with Unkillable(first):
            kill(first)
            wait_for(lambda: i.said("child_fenced"), "it is fenced")
            wait_for(lambda: sorted(g["state"] for g in i.status()["gpus"]) == ["fenced", "fenced", "ok", "ok"], "two of four")
            assert first in i.children() and len(i.children()) == 4
        i.ready(4)
        wait_for(lambda: i.said("fence_open"), "its end is told")
        assert first not in i.children()


def test_an_unkillable_sampler_does_not_stop_the_stop(sim):
    """The supervisor waits for it, without spinning, and goes; the next one in this place still knows of it."""
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(4)
        with Unkillable(i.sampler()):
            used = [cpu_seconds(i.process.pid)]

            def has_ended():
                ended = i.process.poll() is not None
                if not ended:
                    used.append(cpu_seconds(i.process.pid))
                return ended
            watch = Stopwatch()
            i.process.send_signal(signal.SIGTERM)
            wait_for(has_ended, "it stops")
            assert i.process.returncode == 0 and watch.seconds < 10
            assert used[-1] - used[0] < 0.5
            assert "stays behind" in i.said("left_behind")[0]["text"]
            with Instance(sim, "--wait-ms", "100", path=i.dir) as after:
                wait_for(lambda: [g["state"] for g in after.status()["gpus"]] == ["fenced"] * 4, "all are fenced")


def test_a_start_after_a_killed_supervisor(sim):
    """Its sampler is still dying: that is no stuck one."""
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(4)
        kill(i.process.pid)
        i.process.wait()
        with Instance(sim, "--wait-ms", "100", path=i.dir) as after:
            after.ready(4)
            assert not after.said("gpu_fenced")


def test_a_sampler_that_dies_at_once_is_restarted_with_growing_pauses(sim, here):
    """The ring's place is taken by a directory: no sampler can do anything."""
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(4)
        ring = i.dir / "run/ring.0"
        ring.unlink()
        ring.mkdir()
        (ring / "x").touch()
        kill(i.sampler())
        wait_for(lambda: len(i.said("child_ended")) >= 5, "it dies five times")
        pauses = [float(line["text"].rsplit(" ", 2)[1]) for line in i.said("child_ended")]
        assert pauses[1:5] == sorted(pauses[1:5]) and pauses[4] >= 4 * pauses[1]
        assert "ring.0" in i.said("stop")[-1]["text"]
        assert cpu_seconds(i.process.pid) < 0.3
        (ring / "x").unlink()
        ring.rmdir()
        i.ready(4)


def test_a_parent_that_ignores_signals_hands_nothing_down(sim, here):
    """With SIGCHLD ignored nobody could be waited for: the dead would stay unknown."""
    script = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    process = subprocess.Popen(["/usr/bin/python3", "-c", script, str(GPUMGR), "node", "--dir", str(here), "--gpu-library",
                                str(LIBRARY)], env=clean_env(GPUSIM_DIR=sim.dir), stderr=subprocess.DEVNULL)
    try:
        children = lambda: Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        first = wait_for(children, "a sampler")
        wait_for(lambda: (here / "run/ring.0").exists(), "the ring")
        kill(int(first[0]))
        wait_for(lambda: children() and children() != first, "another one")
    finally:
        process.terminate()
        assert process.wait(30) == 0


# ---- the directory ----

def test_a_second_start_is_refused(sim):
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(4)
        pids = family(i)
        sentence = refused("--dir", i.dir, "--gpu-library", LIBRARY, env={"GPUSIM_DIR": sim.dir})
        assert str(i.process.pid) in sentence and "already runs" in sentence
        assert family(i) == pids
        i.ready(4)


def test_ten_starts_at_once_are_one(sim, here):
    command = [str(GPUMGR), "node", "--dir", str(here), "--gpu-library", str(LIBRARY)]
    runs = [subprocess.Popen(command, env=clean_env(GPUSIM_DIR=sim.dir), stderr=subprocess.DEVNULL) for _ in range(10)]
    try:
        wait_for(lambda: sum(r.poll() is None for r in runs) == 1, "one stays")
        assert sorted(r.returncode for r in runs if r.returncode is not None) == [2] * 9
    finally:
        for r in runs:
            if r.poll() is None:
                r.terminate()
                assert r.wait(30) == 0


def test_the_ring_is_for_everybody_whatever_the_umask(sim):
    before = os.umask(0o077)
    try:
        with Instance(sim) as i:
            os.chmod(i.dir, 0o755)
            i.ready(4)
            mode = lambda name: stat.S_IMODE(os.stat(i.dir / name).st_mode)
            assert mode("run") == 0o755 and mode("run/ring.0") == 0o644 and mode("run/settings") == 0o644
            assert mode("run/sampler.0.sock") == 0o600 and mode("run/fence") == 0o600
    finally:
        os.umask(before)


def test_a_made_directory_is_for_everybody(sim, here):
    process = subprocess.Popen([str(GPUMGR), "node", "--dir", str(here / "a"), "--gpu-library", str(LIBRARY)], umask=0o077,
                               env=clean_env(GPUSIM_DIR=sim.dir), stderr=subprocess.DEVNULL)
    wait_for(lambda: (here / "a/run/ring.0").exists(), "the ring")
    assert stat.S_IMODE(os.stat(here / "a").st_mode) == 0o755
    process.terminate()
    assert process.wait(30) == 0


@contextlib.contextmanager
def mounted(path, options):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(path)], capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_full_disk_is_one_sentence(sim, here):
    with mounted(here, "size=16k"):
        with contextlib.suppress(OSError):
            (here / "filler").write_bytes(b"x" * 65536)
        assert "No space left" in refused("--dir", here, "--gpu-library", LIBRARY, env={"GPUSIM_DIR": sim.dir})


def test_a_read_only_disk_is_one_sentence(sim, here):
    with mounted(here, "ro"):
        sentence = refused("--dir", here / "x", "--gpu-library", LIBRARY, env={"GPUSIM_DIR": sim.dir})
        assert "Read-only" in sentence and str(here) in sentence


def test_a_removed_run_directory_is_made_anew(sim):
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(4)
        subprocess.run(["rm", "-r", str(i.dir / "run"), str(i.dir / "lock")], check=True)
        wait_for(lambda: i.said("run_dir"), "it is noticed")
        i.ready(4)
        assert str(i.process.pid) in refused("--dir", i.dir, "--gpu-library", LIBRARY, env={"GPUSIM_DIR": sim.dir})


def test_children_get_no_foreign_descriptors(sim):
    read, write = os.pipe()
    os.set_inheritable(write, True)
    with tempfile.TemporaryDirectory(prefix="gm-", dir="/dev/shm") as path:
        process = subprocess.Popen([str(GPUMGR), "node", "--dir", path, "--gpu-library", str(LIBRARY)], close_fds=False,
                                   env=clean_env(GPUSIM_DIR=sim.dir), stderr=subprocess.DEVNULL)
        os.close(write)
        os.set_blocking(read, False)
        wait_for(lambda: (Path(path) / "run/ring.0").exists(), "the ring")
        assert os.read(read, 1) == b"", "the pipe has no writer: they closed it"
        os.close(read)
        process.terminate()
        assert process.wait(30) == 0


def test_a_program_that_is_not_there_is_named(here):
    """gpumgr-core and the simulator lie beside gpumgr; an installation may be broken."""
    for name in ("gpumgr", "gpumgr-core", "gpumgr-node", "gpumgr-server", "gpumgr-shim"):
        subprocess.run(["cp", str(BUILD / name), str(here)], check=True)
    i = subprocess.Popen([str(here / "gpumgr"), "up", "--dir", str(here / "d"), "--sim", "2"], env=clean_env(),
                         stderr=subprocess.PIPE, text=True)
    try:
        line = wait_for(lambda: next((x for x in map(json.loads, i.stderr) if x["event"] == "exec"), None), "the sentence")
        assert "sim/gpusim: No such file" in line["text"]
    finally:
        i.terminate()
        i.communicate()
        assert i.returncode == 0
    (here / "gpumgr-server").unlink()
    assert "gpumgr-server" in refused("--dir", here / "e", program=here / "gpumgr", role="up")
    (here / "gpumgr-core").unlink()
    run = subprocess.run([str(here / "gpumgr"), "node", "--dir", str(here / "e")], env=clean_env(), capture_output=True, text=True)
    assert run.returncode != 0 and "gpumgr-core" in run.stderr and len(run.stderr.splitlines()) == 1


# ---- reloading ----

def configured(sim, **settings):
    """An instance whose settings lie in its file."""
    path = sim.dir / "gpumgr.json"
    path.write_text(json.dumps(settings))
    return path


def test_reload_changes_the_rate_in_the_running_process(sim):
    path = configured(sim, wait_ms=1000)
    with Instance(sim, "--config", path) as i:
        i.ready(4)
        pids = family(i)
        configured(sim, wait_ms=50)
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: i.said("reload"), "the sampler took them")
        lines = followed(i.follow(2))
        assert sum(x["gpu"] == 0 and "gpu_temperature_celsius" in x["metrics"] for x in lines) > 30
        assert family(i) == pids


def test_reload_of_the_gpus_takes_a_new_process(sim):
    path = configured(sim, gpus="all", wait_ms=100)
    with Instance(sim, "--config", path) as i:
        i.ready(4)
        pid = i.sampler()
        configured(sim, gpus="1,2", wait_ms=100)
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: [g["index"] for g in i.status()["gpus"]] == [1, 2], "two GPUs")
        assert i.sampler() != pid and not i.said("child_ended")


@pytest.mark.parametrize("text, says", [
    ('{"wait_ms": 5}', ["gpumgr.json", "wait_ms", "10 to 60000"]),
    ('{"wait_ms": }', ["gpumgr.json"]),
    ('{"waits": 5}', ["gpumgr.json", "waits", "wait_ms"]),
    ('{"sampler": {"answer_ms": 5000, "lost_ms": 4000}}', ["gpumgr.json", "sampler.lost_ms", "5000"]),
    ('{"sampler": {"workers": 3}}', ["sampler.workers", "restart"]),
])
def test_a_bad_file_keeps_the_old_settings(sim, text, says):
    path = configured(sim, wait_ms=100)
    with Instance(sim, "--config", path) as i:
        i.ready(4)
        pids = family(i)
        path.write_text(text)
        i.process.send_signal(signal.SIGHUP)
        line = wait_for(lambda: i.said("reload"), "it is told")[0]
        assert line["level"] == "error" and "old settings stay in force" in line["text"]
        for word in says:
            assert word in line["text"]
        lines = followed(i.follow(1))
        assert sum(x["gpu"] == 0 and "gpu_temperature_celsius" in x["metrics"] for x in lines) > 5
        assert family(i) == pids and len(i.said("reload")) == 1


def test_many_reloads_at_once_do_no_harm(sim):
    path = configured(sim, wait_ms=100)
    with Instance(sim, "--config", path) as i:
        for _ in range(30):  # from its first moment on
            if i.process.poll() is None and (i.dir / "pid").exists():
                i.process.send_signal(signal.SIGHUP)
            wait_for(lambda: (i.dir / "pid").exists(), "it has started")
        i.ready(4)
        assert not i.said("child_ended")


@pytest.fixture
def slow_file(sim):
    """A configuration whose reader waits: a pipe that somebody has open and writes nothing to."""
    path = configured(sim, wait_ms=100)
    with Instance(sim, "--config", path) as i:
        i.ready(4)
        path.unlink()
        os.mkfifo(path)
        held = os.open(path, os.O_RDWR)
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: len(i.children()) == 3, "somebody reads it, beside sampler and node")
        yield i, path, held
        os.close(held)


def test_a_slow_reload_holds_up_nothing(slow_file):
    i, path, held = slow_file
    first, watch = i.sampler(), Stopwatch()
    kill(first)
    wait_for(lambda: any(p != first for p in i.samplers()), "the dead one is followed at once", 1)
    i.process.send_signal(signal.SIGHUP)  # and one more is asked for meanwhile
    line = wait_for(lambda: i.said("reload"), "the slow one is given up")[0]
    assert "took too long" in line["text"] and "old settings stay in force" in line["text"]
    assert 4 < watch.elapsed and watch.seconds < 7
    wait_for(lambda: len(i.children()) == 3, "the other is begun")
    os.write(held, b'{"wait_ms": 50}')
    os.unlink(path)
    path.write_text('{"wait_ms": 50}')
    i.process.send_signal(signal.SIGHUP)
    wait_for(lambda: [x for x in i.said("reload") if "50 ms" in x["text"]], "and what is good is taken in the end")


def test_a_stop_does_not_wait_for_a_slow_reload(slow_file):
    i, _, _ = slow_file
    watch = Stopwatch()
    i.process.terminate()
    assert i.process.wait(30) == 0 and watch.seconds < 3


# ---- what it tells ----

class Notify:
    """What systemd would be told."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(15)
        self.path = path

    def next(self, word):
        while True:
            text = self.socket.recv(4096).decode()
            if word in text:
                return text


@pytest.mark.alone
def test_systemd_is_told(sim, tmp_path):
    notify = Notify(tmp_path / "notify")
    with Instance(sim, "--wait-ms", "100", env={"NOTIFY_SOCKET": notify.path, "WATCHDOG_USEC": "400000"}) as i:
        notify.next("READY=1")
        at = []
        for _ in range(6):
            notify.next("WATCHDOG=1")
            at.append(time.monotonic())
        assert all(b - a < 0.39 for a, b in zip(at, at[1:])), "in time, each time"
        assert at[-1] - at[0] > 5 * 0.15, "and not in a storm"
        before = time.clock_gettime(time.CLOCK_MONOTONIC)
        i.process.send_signal(signal.SIGHUP)
        text = notify.next("RELOADING=1")
        usec = int(text.split("MONOTONIC_USEC=")[1].split()[0])
        assert before * 1e6 <= usec <= time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
        notify.next("READY=1")
        i.process.terminate()
        notify.next("STOPPING=1")
        assert i.process.wait(30) == 0


def test_abstract_notify_sockets_work(sim, tmp_path):
    name = f"gpumgr-test-{os.getpid()}"
    notify = Notify(f"\0{name}")
    with Instance(sim, env={"NOTIFY_SOCKET": f"@{name}"}):
        notify.next("READY=1")


def test_log_lines_are_json_off_a_terminal(sim):
    with Instance(sim) as i:
        wait_for(lambda: i.said("ready"), "it is ready")
        for line in i.log_path.read_text().splitlines():
            row = json.loads(line)
            assert row["level"] in ("info", "warn", "error") and row["process"] and row["event"] and row["text"]


def on_terminal(sim, here):
    main, side = pty.openpty()
    process = subprocess.Popen([str(GPUMGR), "node", "--dir", str(here), "--gpu-library", str(LIBRARY)], stdin=side, stdout=side,
                               stderr=side, start_new_session=True, env=clean_env(GPUSIM_DIR=sim.dir))
    os.close(side)
    os.set_blocking(main, False)
    text = bytearray()

    def has(word):
        with contextlib.suppress(BlockingIOError):
            text.extend(os.read(main, 65536))
        return word in text.decode()
    wait_for(lambda: has("watching"), "it says so")
    return process, main, text.decode()


def test_log_lines_are_for_people_on_a_terminal(sim, here):
    process, main, text = on_terminal(sim, here)
    process.terminate()
    assert process.wait(30) == 0
    os.close(main)
    assert "{" not in text and "gpu 0: NVIDIA H200" in text and "supervisor" in text


def test_a_closed_terminal_ends_it(sim, here):
    process, main, _ = on_terminal(sim, here)
    os.close(main)
    process.send_signal(signal.SIGHUP)
    assert process.wait(30) == 0


def test_the_log_level_is_obeyed_and_reloaded(sim):
    path = configured(sim, log={"level": "error"})
    with Instance(sim, "--config", path) as i:
        i.ready(4)
        assert i.log() == []
        configured(sim, log={"level": "debug"})
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: i.said("reload"), "it speaks")
        kill(i.sampler())
        wait_for(lambda: i.said("started"), "even of starts")


# ---- the control socket ----

MAGIC, PING, LOOK, RELOAD = 0x67706374, 0, 1, 2
ARGUMENTS = int(re.search(r"argument\[(\d+)\]", (ROOT / "src/model/control.h").read_text())[1])
REPLY = struct.Struct("=Iiq104s")


def ask(path, message, timeout=30):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(str(path))
        s.settimeout(timeout)
        s.send(message)
        magic, result, value, text = REPLY.unpack(s.recv(4096))
        assert magic == MAGIC and s.recv(4096) == b"", "one answer"
        return result, value, text.split(b"\0")[0].decode()


def message(verb, magic=MAGIC):
    return struct.pack("=II", magic, verb) + bytes(8 * ARGUMENTS)


def test_control_messages(sim):
    path = configured(sim, wait_ms=60000)
    with Instance(sim, "--config", path) as i:
        i.ready(4)
        control = i.dir / "run/sampler.0.sock"
        assert ask(control, message(PING)) == (0, i.sampler(), "")
        heads = lambda: {g["index"]: g["metrics"]["gpumgr_sampler_cpu_seconds_total"] for g in i.status()["gpus"]}
        before = heads()
        assert ask(control, message(LOOK)) == (0, 4, "")
        wait_for(lambda: all(heads()[k] != before[k] for k in before), "all were read, long before their time")
        assert ask(control, message(RELOAD)) == (0, 0, "")
        assert i.said("reload")


@pytest.mark.parametrize("bytes_", [b"", b"x", message(99), message(2**32 - 1), message(PING, 1), message(LOOK) + b"x", message(LOOK)[:-1],
                                    b"\0" * 4096], ids=range(8))
def test_bad_control_messages_get_one_answer(sim, bytes_):
    with Instance(sim) as i:
        i.ready(4)
        result, value, text = ask(i.dir / "run/sampler.0.sock", bytes_)
        assert result == -22 and value == 0 and text == "no such message"
        assert not i.said("reload") and is_alive(i.sampler())


@pytest.mark.alone
def test_silent_clients_delay_nobody(sim):
    with Instance(sim, "--wait-ms", "50") as i:
        i.ready(4)
        pid = i.sampler()
        control = i.dir / "run/sampler.0.sock"
        reader = i.follow(4)
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                s = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                s.connect(str(control))
            assert ask(control, message(PING)) == (0, pid, "")
            lines = followed(reader)
        beats = [x["boot"] for x in lines if x["gpu"] == 0]
        assert max(b - a for a, b in zip(beats, beats[1:])) < 0.3
        assert i.sampler() == pid and not i.said("child_hung")


def test_a_thousand_connections_do_no_harm(sim):
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(4)
        pid = i.sampler()
        control = i.dir / "run/sampler.0.sock"
        wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) > 5, "it has descriptors")
        before = len(os.listdir(f"/proc/{pid}/fd"))
        for _ in range(1000):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.connect(str(control))
        assert ask(control, message(PING)) == (0, pid, "")
        assert len(os.listdir(f"/proc/{pid}/fd")) <= before
        i.ready(4)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another uid")
def test_another_user_is_refused(sim):
    """By the file's mode and, where that was opened, by who he is."""
    with Instance(sim) as i:
        os.chmod(i.dir, 0o755)
        i.ready(4)
        control = i.dir / "run/sampler.0.sock"
        program = ("import socket, struct, sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                   "s.connect(sys.argv[1])\ns.send(bytes.fromhex(sys.argv[2]))\n"
                   "print(struct.unpack_from('=Ii', s.recv(4096))[1])")
        command = ["/usr/bin/python3", "-c", program, str(control), message(RELOAD).hex()]
        as_nobody = lambda: subprocess.run(command, user=65534, capture_output=True, text=True, timeout=10)
        assert "PermissionError" in as_nobody().stderr
        control.chmod(0o666)
        assert as_nobody().stdout == "-1\n"
        assert not i.said("reload")


# ---- the kernel log ----

def test_a_kernel_log_that_is_rotated_or_emptied(sim, tmp_path):
    log = tmp_path / "kern.log"
    log.write_text("")
    with Instance(sim, "--wait-ms", "100", "--sampler.kmsg", log) as i:
        address = i.ready(4)["gpus"][1]["pci"].rsplit(".", 1)[0]

        def write(mode, words, expected):
            with log.open(mode) as f:
                f.write(f"kernel: NVRM: Xid (PCI:{address}): 31, {words}\n")
            wait_for(lambda: sum(x["count"] for x in i.gpu(1).get("xids", [])) == expected, f"{expected} XIDs")
        write("a", "pid=1, name=x, many words", 1)
        log.rename(tmp_path / "kern.log.1")
        write("w", "pid=1, name=x, many words", 2)
        write("w", "few words", 3)


@pytest.mark.alone
def test_an_endless_empty_kernel_log_costs_nothing(sim):
    with Instance(sim, "--sampler.kmsg", "/dev/null") as i:
        i.ready(4)
        pid = i.sampler()
        before, end = cpu_seconds(pid), time.monotonic() + 1
        wait_for(lambda: time.monotonic() > end, "a second")
        assert cpu_seconds(pid) - before < 0.1


# ---- few GPUs, many workers ----

def test_more_workers_than_gpus(sim):
    with Instance(sim, "--wait-ms", "100", "--sampler.workers", "6") as i:
        i.ready(4)
        assert len(i.samplers()) == 6
        wait_for(lambda: len(i.said("no_gpus")) == 2, "two have nothing to do, and say so")
        assert all(line["level"] == "info" and "of the 4 GPUs" in line["text"] for line in i.said("no_gpus"))
