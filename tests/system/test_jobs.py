"""Jobs on a machine, with a server by hand: whose they are, that they run once whoever dies, how they end, and which GPUs are
free."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import link
import shim as s
from instance import Instance
from job_node import (ABSENT, BY_CANCEL, BY_IDLE, BY_ITSELF, BY_MEMORY, BY_SHIM, BY_START, BY_TIME_LIMIT, CANCEL, ENDED, ENDING, IS_FOREIGN, IS_FREE, RUNNING)
from job_server import Caller, JobServer, spec
from shim import is_alive
from simulator import BUILD, Simulator, wait_for

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
NOBODY = 65534
EPERM, EACCES = 1, 13


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:4") as machine:
        yield machine


class Place:
    """A node with its sampler on simulated GPUs, and a server by hand."""

    def __init__(self, sim, *flags, stores=True, **more):
        self.i = Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", "", "--engines.podman", "", *flags, **more)
        self.run = self.i.dir / "run"
        self.server = None
        try:
            status = self.i.ready(4)
            self.server = JobServer(self.run, stores)
            self.uuids = [g["uuid"] for g in sorted(status["gpus"], key=lambda g: g["index"])]
            wait_for(lambda: len(self.server.frees()) == 4, "verdicts of four GPUs")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Jobs outlive us by design: those that a test left are ended while their directories say who they are."""
        if self.server and not self.server.is_over:
            self.server.close()
        shims = [r["shim_pid"] for d in self.i.dir.glob("jobs/*/state") for r in s.records(d) if r["kind"] == s.INTENT]
        for pid in shims:
            if is_alive(pid) and b"gpumgr-shim" in Path(f"/proc/{pid}/cmdline").read_bytes():
                s.stop(pid, grace=0)
        self.i.__exit__()

    def submit(self, *command, uid=None, caller=None, cwd="/", env=None, umask=0o022, **more):
        c = caller or Caller(self.run, uid)
        answer = c.submit(spec(*command, **more), cwd=cwd, env=env, umask=umask)
        assert answer["result"] == 0, answer
        if not caller:
            c.close()
        return answer["first"]

    def start(self, *command, gpus=(0,), **more):
        job = self.submit(*command, **more)
        return self.server.grant(job, [self.uuids[g] for g in gpus])

    def dir(self, key):
        name = "%d.%d.%d" % key
        return next(p for p in (self.i.dir / "jobs" / name, self.i.dir / "jobs/kept" / name) if p.exists())

    def shim_of(self, key):
        return next(r["shim_pid"] for r in s.records(self.dir(key) / "state") if r["kind"] == s.STARTED)

    def node(self):
        return wait_for(lambda: self.i.of_program("node"), "a node runs")[0]

    def kill_node(self):
        before = self.node()
        os.kill(before, signal.SIGKILL)
        wait_for(lambda: [n for n in self.i.of_program("node") if n != before], "another node")


@pytest.fixture
def place_(sim):
    with Place(sim) as p:
        yield p


# ---- whose it is ----

def test_a_job_is_its_submitters(place_, tmp_path):
    p = place_
    key = p.start("sh", "-c", "pwd; umask; id -u; env | sort; exit 3", gpus=(2, 0), cwd="/tmp", umask=0o027,
                  env={"PATH": "/usr/bin:/bin", "MINE": "a b", "OVER": "1", "CUDA_VISIBLE_DEVICES": "9", "GPUMGR_JOB_ID": "5"})
    end = p.server.ended(key)
    assert (end["has_exit"], end["code"], end["reason"]) == (1, 3, BY_ITSELF)
    log = (p.dir(key) / "log").read_text().splitlines()
    assert log[:3] == ["/tmp", "0027", str(os.getuid())]
    env = dict(line.split("=", 1) for line in log[3:])
    assert env["MINE"] == "a b" and env["CUDA_VISIBLE_DEVICES"] == f"{p.uuids[2]},{p.uuids[0]}" == env["NVIDIA_VISIBLE_DEVICES"]
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID" and env["GPUMGR_JOB_ID"] == str(key[0])
    assert not [k for k in env if k.startswith("LC_") or k == "HOME"]
    assert end["log_bytes"] == (p.dir(key) / "log").stat().st_size and end["cpu_seconds"] > 0


def test_what_the_spec_sets_is_above_the_callers(place_):
    p = place_
    c = Caller(p.run)
    job = c.submit(spec("sh", "-c", "echo $OVER $MINE; pwd", env=("OVER=yes",), cwd="/tmp"), env={"PATH": "/bin", "OVER": "no", "MINE": "x"})["first"]
    key = p.server.grant(job, p.uuids[:1])
    p.server.ended(key)
    assert (p.dir(key) / "log").read_text() == "yes x\n/tmp\n"


@needs_root
def test_users_run_as_themselves_and_others_may_look_but_not_touch(place_):
    p = place_
    key = p.start("sh", "-c", "id -u; id -G; echo up; sleep 1000", uid=NOBODY)
    p.server.wait_state(key, RUNNING)
    log = p.dir(key) / "log"
    wait_for(lambda: log.exists() and "up" in log.read_text(), "it is up")
    assert log.read_text().split()[:2] == [str(NOBODY), str(NOBODY)]
    assert log.stat().st_uid == NOBODY and log.stat().st_mode & 0o777 == 0o600 and p.dir(key).stat().st_mode & 0o777 == 0o711
    other = Caller(p.run, 1234)
    assert other.signal(key[0], 15)["result"] == -EACCES
    other.follow(key[0])
    assert other.followed()[1]["result"] == -EACCES
    other.follow(key[0], has_log=False)
    assert other.next()[1]["state"] == RUNNING
    mine = Caller(p.run, NOBODY)
    assert mine.signal(key[0], 9)["result"] == 0
    assert p.server.ended(key)["signal"] == 9
    wanted = mine.control(CANCEL, key[0])
    assert wanted["result"] == 0 and p.server.of(link.CONTROL)[-1]["uid"] == NOBODY  # the kernel's word, not the frame's 4711


@pytest.mark.parametrize("what", ["record", "uid", "user", "seal", "other"])
def test_a_seal_that_does_not_fit_runs_nothing(place_, what):
    p = place_
    job, other = p.submit("touch", str(p.i.dir / "ran")), p.submit("true")
    j = p.server.jobs[job]
    change = {"record": {"record": spec("touch", str(p.i.dir / "RAN"))}, "uid": {"uid": j["uid"] + 1}, "user": {"user": "root2"},
              "seal": {"seal": j["seal"][:-1] + bytes([j["seal"][-1] ^ 1])}, "other": {"seal": p.server.jobs[other]["seal"]}}[what]
    end = p.server.ended(p.server.grant(job, p.uuids[:1], **change))
    assert (end["reason"], end["text"], end["has_exit"]) == (BY_START, "the job's seal does not fit", 0)
    assert not (p.i.dir / "ran").exists() and not (p.i.dir / "RAN").exists()


def test_the_environment_is_in_no_file(place_):
    p = place_
    key = p.start("sleep", "1000", env={"PATH": "/bin", "SECRET": "xyzzy-4711"})
    p.server.wait_state(key, RUNNING)
    for f in (p.i.dir / "jobs").rglob("*"):
        assert not f.is_file() or b"xyzzy" not in f.read_bytes(), f
    assert b"xyzzy" not in p.server.jobs[key[0]]["seal"]
    assert b"xyzzy" not in Path(f"/proc/{p.shim_of(key)}/cmdline").read_bytes() + Path(f"/proc/{p.shim_of(key)}/environ").read_bytes()
    p.server.stop(key)
    p.server.ended(key)


@pytest.mark.parametrize("way", ["caller", "record"])
def test_what_starts_a_container_takes_nothing_from_its_users_environment(place_, tmp_path, way):
    """It is ours and has our rights: a library that a user names there would have them too. The linker tells what it was told."""
    p = place_
    told = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(tmp_path / "told")}
    words = {"env": {"PATH": "/usr/bin:/bin", **told}} if way == "caller" else {"record": tuple(f"{k}={v}" for k, v in told.items())}

    def start(**more):
        c = Caller(p.run)
        job = c.submit(spec("true", env=words.get("record", ()), **more), env=words.get("env", {"PATH": "/usr/bin:/bin"}))["first"]
        c.close()
        return p.server.ended(p.server.grant(job, p.uuids[:1]))

    assert start(image="some/image")["code"] == 125 and list(tmp_path.glob("told*")) == []
    assert start()["code"] == 0 and list(tmp_path.glob("told*")) != []  # a job of his own is his


def test_bad_jobs_are_refused_by_name(place_):
    c = Caller(place_.run)
    answer = c.submit(spec("true", gpus=0))
    assert answer["result"] < 0 and answer["text"].startswith("gpus"), answer
    answer = c.submit(b"\x01nonsense")
    assert answer["result"] < 0 and answer["text"]
    c.s.sendall(b"\xff" * 64)
    kind, answer = c.next()
    assert answer["result"] < 0
    with pytest.raises(EOFError):
        c.next()


@needs_root
def test_accounts_are_mapped_by_the_nodes_own_file(place_):
    p, rec = place_, spec("id", "-un")
    assert p.server.seal("alice", rec)["text"].startswith("no Unix user is set for account alice: add a line \"alice USER\"")
    users = p.i.dir / "users"
    users.write_text("# accounts\nalice nobody\nboss root\nghost nosuchuser\n")
    users.chmod(0o644)
    ok = p.server.seal("alice", rec)
    assert (ok["result"], ok["uid"], ok["user"]) == (0, NOBODY, "nobody")
    assert "never run as root" in p.server.seal("boss", rec, is_admin=True)["text"]
    assert "no user nosuchuser" in p.server.seal("ghost", rec)["text"]
    users.chmod(0o666)
    assert "must be root's" in p.server.seal("alice", rec)["text"]
    p.server.jobs.update({n: {k: ok[k] for k in ("uid", "user", "record", "seal")} for n in (900, 901, 902, 903)})
    end = p.server.ended(p.server.grant(901, p.uuids[:1]))
    assert end["reason"] == BY_START and "must be root's" in end["text"]
    for number, line in ((902, "alice games\n"), (903, "bob nobody\n")):  # what was sealed before does not outlive its right
        users.write_text(line)
        users.chmod(0o644)
        end = p.server.ended(p.server.grant(number, p.uuids[:1]))
        assert end["reason"] == BY_START and end["text"].startswith("account alice no longer stands for the Unix user nobody ("), end
    users.write_text("alice nobody\n")
    end = p.server.ended(p.server.grant(900, p.uuids[:1]))
    log = (p.dir((900, 0, 1)) / "log").read_text()
    assert log == "nobody\n" or end["text"].startswith("the working directory"), (log, end)


@needs_root
def test_without_root_only_the_owner(place):
    home = Path(tempfile.mkdtemp(prefix="gm-", dir="/dev/shm"))
    os.chown(home, NOBODY, NOBODY)
    with Simulator(place / "sim", "--model", "h200:4") as sim, Place(sim, "--guard.mode", "observe", "--guard.lock-dir", home, user=NOBODY, path=home) as p:
        mine = Caller(p.run, NOBODY)
        refused = Caller(p.run, 1234).submit(spec("true"))
        assert refused["result"] == -EPERM and "not root: it runs jobs of nobody only" in refused["text"]
        key = p.server.grant(p.submit("id", "-u", caller=mine), p.uuids[:1])
        assert p.server.ended(key)["code"] == 0 and (p.dir(key) / "log").read_text() == f"{NOBODY}\n"
        assert p.server.seal("anybody", spec("id"), is_admin=True)["user"] == "nobody"
        assert p.server.seal("anybody", spec("id"))["result"] == -EPERM


# ---- once, whoever dies ----

def test_granted_twice_runs_once(place_):
    p = place_
    key = p.start("sh", "-c", f"echo ran >> {p.i.dir}/ran; sleep 0.3")
    for _ in range(5):
        p.server.grant(key[0], p.uuids[:1])
    p.server.ended(key)
    p.server.grant(key[0], p.uuids[:1])
    wait_for(lambda: len([r for r in p.server.runs_of(key) if r["state"] == ENDED]) >= 2, "the end once more")
    assert (p.i.dir / "ran").read_text() == "ran\n"


def test_a_stop_before_the_grant_wins(place_):
    p = place_
    job = p.submit("touch", str(p.i.dir / "ran"))
    p.server.stop((job, 0, 1))
    end = p.server.ended((job, 0, 1))
    assert (end["reason"], end["has_exit"]) == (BY_CANCEL, 0)
    p.server.grant(job, p.uuids[:1])
    wait_for(lambda: len(p.server.runs_of((job, 0, 1))) >= 2, "an answer to the grant")
    p.server.ask_runs((job, 0, 1), (4711, 0, 1))
    assert p.server.wait_state((4711, 0, 1), ABSENT)
    assert not (p.i.dir / "ran").exists()


def test_a_killed_node_loses_nothing(place_):
    """One that goes on, one that ends while nobody is there, and one that has ended and is not stored yet."""
    p = place_
    p.server.stores = False
    goes_on = p.start("sh", "-c", "echo one; sleep 1.5; echo two; exit 7", gpus=(0,))
    ends = p.start("sh", "-c", "sleep 0.2; exit 9", gpus=(1,))
    is_over = p.start("sh", "-c", "exit 5", gpus=(2,))
    p.server.ended(is_over)
    p.server.wait_state(goes_on, RUNNING), p.server.wait_state(ends, RUNNING)
    before = len(p.server.frames)
    p.kill_node()
    assert p.server.ended(goes_on)["code"] == 7 and p.server.ended(ends)["code"] == 9
    wait_for(lambda: [w for _, k, w in p.server.frames[before:] if k == link.RUN and w["key"] == is_over and w["code"] == 5], "the old end again")
    assert (p.dir(goes_on) / "log").read_text() == "one\ntwo\n"
    for key in (goes_on, ends, is_over):
        p.server.store_end(key)
    wait_for(lambda: not [d for d in (p.i.dir / "jobs").iterdir() if d.name[0].isdigit()], "all are kept")


def test_a_server_that_comes_back_hears_of_every_run(sim):
    """Also of those that it does not ask for: it may have given one up."""
    with Place(sim) as p:
        key = p.start("sleep", "1000")
        p.server.wait_state(key, RUNNING)
        p.server.crash()
        before = len(p.server.runs_of(key))
        p.server.start()
        wait_for(lambda: len(p.server.runs_of(key)) > before, "it is told again", 60)
        p.server.stop(key)
        p.server.ended(key)


def test_a_killed_server_and_supervisor_lose_nothing(sim):
    with Place(sim) as p:
        key = p.start("sh", "-c", "sleep 2; exit 6")
        p.server.wait_state(key, RUNNING)
        shim = p.shim_of(key)
        p.server.crash()
        os.kill(p.i.process.pid, signal.SIGKILL)
        p.i.process.wait()
        wait_for(lambda: not p.i.of_program("node"), "the node ends with its supervisor")
        assert is_alive(shim)
        again = Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", "", "--engines.podman", "", path=p.i.dir)
        p.i.process, p.i.log_path = again.process, again.log_path
        server = JobServer(p.run)
        p.server = server
        server.ask_runs if server.connection else None
        end = server.ended(key, 40)
        assert (end["code"], end["has_exit"]) == (6, 1)


def test_a_killed_shim_ends_nothing_of_another_instance(place_):
    """Every instance has a first run of its first job: numbers alone do not say whose process it is."""
    p = place_
    key = p.start("sleep", "1000")
    p.server.wait_state(key, RUNNING)
    name = "%d.%d.%d" % key
    others = [subprocess.Popen(["sleep", "60"], env={"PATH": "/usr/bin:/bin", "GPUMGR_RUN": mark}) for mark in (name, f"{name}-{'0' * 32}")]
    try:
        os.kill(p.shim_of(key), signal.SIGKILL)
        assert p.server.ended(key)["reason"] == BY_SHIM
        assert [o.poll() for o in others] == [None, None]
    finally:
        for o in others:
            o.kill()
            o.wait()


def test_a_shim_killed_with_the_node_is_found_out_later(place_):
    p = place_
    key = p.start("sh", "-c", "sleep 1000")
    pid = p.server.wait_state(key, RUNNING)["pid"]
    node = p.node()
    os.kill(node, signal.SIGSTOP)
    os.kill(p.shim_of(key), signal.SIGKILL)
    os.kill(node, signal.SIGKILL)
    end = p.server.ended(key)
    assert (end["has_exit"], end["reason"]) == (0, BY_SHIM) and not is_alive(pid)


def test_a_container_is_removed_only_where_no_shim_has_the_run(sim, tmp_path):
    """A node that found nobody with the run may have looked a moment before the shim of the node before it was there."""
    settings = tmp_path / "settings"
    engine = socket.socket(socket.AF_UNIX)
    engine.bind(str(tmp_path / "engine"))
    engine.listen()
    engine.settimeout(30)
    with Place(sim, stores=False) as p, engine:
        settings.write_text((p.run / "settings").read_text().replace("engines.docker=\n", f"engines.docker={tmp_path / 'engine'}\n"))
        key = p.start("sleep", "600")
        p.server.wait_state(key, RUNNING)

        def remove():
            return subprocess.Popen([BUILD / "gpumgr-node", "container-end", p.dir(key), settings])

        assert 'engine\n' in settings.read_text() and remove().wait(30) != 0 and is_alive(p.shim_of(key))
        engine.setblocking(False)
        with pytest.raises(BlockingIOError):
            engine.accept()
        os.kill(p.shim_of(key), signal.SIGKILL)
        assert p.server.ended(key)["reason"] == BY_SHIM
        gone = remove()
        engine.settimeout(30)
        one, _ = engine.accept()
        assert one.recv(4096).startswith(b"DELETE /containers/gpumgr-")
        one.close()
        gone.wait(30)


# ---- ends ----

def test_stop_is_term_then_kill_of_the_whole_tree(place_):
    p = place_
    polite = p.start("sh", "-c", "trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.02; done", gpus=(0,))
    stubborn = p.start("sh", "-c", "trap '' TERM; (trap '' TERM; setsid sleep 1000) & echo up; while :; do sleep 0.02; done", gpus=(1,))
    for key in (polite, stubborn):
        wait_for(lambda: p.server.runs_of(key) and (p.dir(key) / "log").exists() and "up" in (p.dir(key) / "log").read_text(), "it is up")
        p.server.stop(key, BY_CANCEL, 0.5)
    end = p.server.ended(polite)
    assert (end["code"], end["reason"]) == (4, BY_CANCEL) and (p.dir(polite) / "log").read_text().endswith("bye\n")
    end = p.server.ended(stubborn)
    assert (end["signal"], end["reason"]) == (9, BY_CANCEL)
    assert [r["state"] for r in p.server.runs_of(stubborn)][-2:] == [ENDING, ENDED]


def test_a_time_limit_holds_without_a_server(sim):
    with Place(sim) as p:
        key = p.start("sleep", "1000", limit_ns=int(1e9))
        pid = p.server.wait_state(key, RUNNING)["pid"]
        p.server.crash()
        wait_for(lambda: not is_alive(pid), "it is ended")
        p.server.start()
        end = p.server.ended(key)
        assert (end["reason"], end["signal"]) == (BY_TIME_LIMIT, 15)


def test_logs_are_followed_live_and_whole(place_):
    p = place_
    key = p.start("sh", "-c", "for i in $(seq 5000); do echo line $i; done; sleep 0.3; echo last; exit 2")
    c = Caller(p.run)
    c.follow(key[0])
    log, states = c.followed()
    assert log.decode() == "".join(f"line {i}\n" for i in range(1, 5001)) + "last\n"
    assert states[-1]["code"] == 2
    late = Caller(p.run)
    late.follow(key[0], offset=7)
    assert late.followed()[0] == log[7:]
    got = p.server.log(key, 0, 6)
    assert (got["bytes"], got["total"], got["is_over"]) == (b"line 1", len(log), 0)
    got = p.server.log(key, len(log) - 5)
    assert (got["bytes"], got["is_over"]) == (b"last\n", 1)
    assert p.server.log((4711, 0, 1))["result"] < 0


def test_a_follower_waits_for_the_grant(place_):
    p = place_
    job = p.submit("echo", "hello")
    c = Caller(p.run)
    c.follow(job)
    p.server.grant(job, p.uuids[:1])
    log, states = c.followed()
    assert log == b"hello\n" and states[-1]["state"] == ENDED


# ---- what is free ----

def verdict(p, gpu):
    return p.server.frees()[p.uuids[gpu]]


def test_free_is_measured(place_, sim):
    p = place_
    assert {f["verdict"] for f in p.server.frees().values()} == {IS_FREE}
    task = sim.task("--gpu", 1)
    got = wait_for(lambda: verdict(p, 1)["verdict"] == IS_FOREIGN and verdict(p, 1)["uid"] == os.getuid() and verdict(p, 1), "a foreign one is seen")
    assert got["pid"] == task.pid
    assert verdict(p, 0)["verdict"] == IS_FREE
    task.terminate()
    task.wait()
    wait_for(lambda: verdict(p, 1)["verdict"] == IS_FREE, "it is free again")


def test_a_runs_own_processes_do_not_take_its_gpu_away(place_, sim):
    """They are the job's in the table of tasks, too, and what they did is told with the end."""
    p = place_
    task = [str(BUILD / "sim/gpusim-task"), "--gpu", "2", "--memory", "8G", "--forever", "--dir", str(sim.dir)]
    key = p.start("sh", "-c", " ".join(task) + " & sleep 1000", gpus=(2,), name="trainer")
    table = p.i.table
    mine = wait_for(lambda: [t for t in table.tasks() if t["container_id"] == "%d.%d.%d" % key], "its task")[0]
    assert (mine["kind"], mine["container"], mine["comm"]) == (9, "trainer", "gpusim-task")
    wait_for(lambda: [t for t in table.tasks() if t["pid"] == mine["pid"] and t["gpu_seconds"] > 1.5], "work to be told of", 30)
    assert {f["verdict"] for frees in p.server.of(link.FREE) for f in frees.values()} == {IS_FREE}
    p.server.stop(key)
    end = p.server.ended(key)
    assert end["memory_peak_bytes"] >= 8 << 30 and end["memory_total_bytes"] > 100 << 30, end
    assert end["gpu_seconds"] > 1 and end["energy_joules"] > 100 and 0.1 < end["gpu_ratio"] <= 1
    wait_for(lambda: verdict(p, 2)["verdict"] == IS_FREE, "it is free")


def test_more_memory_than_its_share_and_idleness_have_consequences(sim):
    task = [str(BUILD / "sim/gpusim-task"), "--memory", "8G", "--forever", "--dir", str(sim.dir), "--gpu"]
    with Place(sim, "--jobs.idle-warn-s", "1", "--jobs.idle-end-s", "2") as p:
        greedy = p.start(*task, "0", gpus=(0,), share=4 << 30, over=(1, 0), name="greedy")
        warned = p.start(*task, "1", gpus=(1,), share=4 << 30, name="warned")
        lazy = p.start("sleep", "1000", gpus=(2,), over=(0, 1), name="lazy")
        dozy = p.start("sleep", "1000", gpus=(3,), name="dozy")
        assert p.server.ended(greedy)["reason"] == BY_MEMORY and p.server.ended(lazy)["reason"] == BY_IDLE
        said = lambda kind, name: [e for e in p.server.of(link.EVENT) if e["kind"] == kind and f"({name})" in e["text"]]
        wait_for(lambda: said("job_memory", "warned") and said("job_idle", "dozy"), "a word about both")
        assert "uses 8.0 GiB of the GPU's memory and asked for 4.0" in said("job_memory", "warned")[0]["text"]
        assert [p.server.runs_of(k)[-1]["state"] for k in (warned, dozy)] == [RUNNING, RUNNING]
        assert len(said("job_idle", "dozy")) == 1
        for key in (warned, dozy):
            p.server.stop(key)
            p.server.ended(key)


def test_a_terminal_is_offered_and_logged(place_):
    p = place_
    key = p.start("sh", "-c", "tty; read word; echo got $word; exit 6", is_pty=True)
    p.server.wait_state(key, RUNNING)
    c = socket.socket(socket.AF_UNIX)
    path = p.dir(key) / "pty"
    wait_for(path.exists, "its socket")
    c.connect(str(path))
    c.sendall(b"\x00\x00\x06\x00hello\n")
    assert p.server.ended(key)["code"] == 6
    log = (p.dir(key) / "log").read_text()
    assert "/dev/pts/" in log and "got hello" in log


@pytest.mark.alone
def test_a_grant_becomes_a_process_at_once(place_):
    """From GRANT received to the process running, and from the end of a run on a GPU to the next one's process."""
    p = place_
    took = []
    for n in range(20):
        job = p.submit("sh", "-c", "date +%s%N; exec sleep 0.02")
        before = time.time_ns()
        key = p.server.grant(job, p.uuids[:1])
        p.server.ended(key)
        took.append((int((p.dir(key) / "log").read_text()) - before) / 1e6)
    took.sort()
    print(f"from GRANT to the process's own first word: median {took[10]:.1f} ms, worst {took[-1]:.1f} ms")
    assert took[10] < 50
