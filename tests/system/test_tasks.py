"""GPU tasks: every process on a GPU is found when the driver shows it and its end is exact; deadlines are kept or missed to the
moment; whoever is killed, nothing is lost, doubled or invented. The truth is the simulator's registration and waitpid."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from instance import GPUMGR, Instance, stop
from link import EVENT, NODE, TASK, USE, StubServer
from simulator import BUILD, Simulator, wait_for
from stopwatch import Stopwatch
from task_table import BY_LIST, BY_OPEN, END_UNKNOWN, ENDED, FOUND_LATE, NO_DEADLINE, RUNNING, boot_ns

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:4") as s:
        yield s


def watching(sim, *flags, **more):
    return Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", "", "--engines.podman", "", *flags, **more)


def node_of(i):
    return wait_for(lambda: i.of_program("node"), "a node runs")[0]


def ticks_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def gpu_uuids(i):
    return [g["uuid"] for g in sorted(i.status()["gpus"], key=lambda g: g["index"])]


# ---- beginnings and ends ----

@pytest.mark.alone
def test_a_task_is_found_when_it_shows_and_its_end_is_exact(sim):
    with watching(sim) as i:
        i.tracking(4)
        late, off = [], []
        for _ in range(8):
            began = boot_ns()
            process = sim.task("--gpu", "1", "--work", "0.3")
            task = i.table.one(process.pid)
            assert task["ticks"] == ticks_of(process.pid) and task["uid"] == os.getuid() and task["comm"] == "gpusim-task"
            assert task["state"] == RUNNING and task["verdict"] == NO_DEADLINE and task["gpus"] == [gpu_uuids(i)[1]]
            assert task["source"] == BY_OPEN and began < task["opened_ns"] <= task["start_ns"]
            process.wait()
            gone = boot_ns()
            ended = i.table.one(process.pid, state=ENDED)
            late.append((task["start_ns"] - task["opened_ns"]) / 1e6)
            off.append(abs(ended["end_ns"] - gone) / 1e6)
            assert ended["start_ns"] == task["start_ns"] and not ended["flags"] and len(i.table.of(process.pid)) == 1
            assert abs(ended["end_real_ns"] - time.time_ns()) < 2e9
        assert sorted(late)[4] < 15, late
        assert sorted(off)[4] < 5, off


def test_several_gpus_are_one_task_and_children_are_their_own(sim):
    with watching(sim) as i:
        i.tracking(4)
        both = sim.task("--gpu", "0,3", "--forever")
        uuids = gpu_uuids(i)
        wait_for(lambda: sorted(i.table.one(both.pid)["gpus"]) == sorted([uuids[0], uuids[3]]), "both GPUs")
        script = ("import subprocess, sys\np = [subprocess.Popen([sys.argv[1], '--gpu', '2', '--forever'], stdout=subprocess.DEVNULL) for _ in range(3)]\n"
                  "print(*[x.pid for x in p], flush=True)\nsys.stdin.read()\n[x.kill() for x in p]")
        parent = subprocess.Popen([sys.executable, "-c", script, BUILD / "sim/gpusim-task"], env=sim.env, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        children = list(map(int, parent.stdout.readline().split()))
        for pid in children:
            assert i.table.one(pid, state=RUNNING)["gpus"] == [uuids[2]]
        assert not i.table.of(parent.pid), "who uses no GPU is no task"
        parent.communicate()
        for pid in children:
            i.table.one(pid, state=ENDED)
        assert i.table.one(both.pid)["state"] == RUNNING and len(i.table.of(both.pid)) == 1


@pytest.mark.alone
def test_a_number_that_is_used_again_is_another_task(sim):
    """The kernel gives the number we ask for: both tasks are there, told apart by their start."""
    last = Path("/proc/sys/kernel/ns_last_pid")
    if os.geteuid() != 0 or not os.access(last, os.W_OK):
        pytest.skip("needs root and /proc/sys/kernel/ns_last_pid")
    with watching(sim) as i:
        i.tracking(4)
        first = sim.task("--forever")
        one = i.table.one(first.pid)
        first.kill()
        first.wait()
        i.table.one(first.pid, state=ENDED)
        for _ in range(200):
            last.write_text(str(first.pid - 1))
            again = sim.task("--forever")
            if again.pid == first.pid:
                break
            again.kill()
            again.wait()
        else:
            raise AssertionError("the number was always taken by somebody else")
        two = i.table.one(again.pid, state=RUNNING)
        assert two["ticks"] != one["ticks"] and two["start_ns"] > one["start_ns"]
        assert [t["state"] for t in i.table.of(first.pid)] == [ENDED, RUNNING]


def test_mig_instances_are_told_apart(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "a100", "--mig") as sim, watching(sim) as i:
        i.table.wait_gpus(2)
        tasks = [sim.task("--gpu", "0", "--mig", str(n), "--forever") for n in (0, 1)]
        on = [i.table.one(t.pid)["gpus"] for t in tasks]
        assert on[0] != on[1] and all(len(g) == 1 and g[0].startswith("MIG-") for g in on), on
        shown = json.loads(subprocess.run([GPUMGR, "ps", "--json", "--dir", i.dir], capture_output=True, check=True, env=i.env).stdout)["tasks"]
        places = {t["pid"]: (t["gpu_instance"], t["compute_instance"]) for t in shown}
        assert len(set(places.values())) == 2 and all(gi is not None and ci is not None for gi, ci in places.values()), places
        tasks[0].kill()
        tasks[0].wait()
        i.table.one(tasks[0].pid, state=ENDED)
        assert i.table.one(tasks[1].pid)["state"] == RUNNING, "one instance's end is not the other's"


def test_clients_of_mps_and_their_server_are_tasks(sim):
    """The server holds the context, clients are in a list of their own: each is a task, and its use is its own."""
    with watching(sim) as i, StubServer(i.dir / "run") as server:
        i.tracking(4)
        daemon = sim.task("--gpu", "0", "--kind", "idle", "--forever", "--memory", "256M", "--name", "mps-server")
        one = i.table.one(daemon.pid)
        clients = [sim.task("--gpu", "0", "--mps", "--demand", share, "--forever", "--memory", size) for share, size in (("40%", "2G"), ("10%", "1G"))]
        seen = [i.table.one(c.pid) for c in clients]
        assert all(t["gpus"] == one["gpus"] and t["source"] == BY_OPEN and t["ticks"] == ticks_of(t["pid"]) for t in seen)
        kinds = wait_for(lambda: {p["pid"]: p["kinds"] for p in i.gpu(0)["processes"]} if len(i.gpu(0)["processes"]) == 3 else None, "all three are listed")
        assert kinds[daemon.pid] == ["compute"] and all(kinds[c.pid] == ["mps"] for c in clients), kinds

        def used(pid):
            rows = [u for w in server.of(USE) for u in w["of"] if u["pid"] == pid]
            return rows[-1] if rows else {"gpu_seconds": 0, "memory_bytes": 0}
        wait_for(lambda: used(clients[0].pid)["gpu_seconds"] > 1, "it has worked")
        large, small, idle = (used(p.pid) for p in (*clients, daemon))
        assert (large["memory_bytes"], small["memory_bytes"]) == (2 << 30, 1 << 30)
        assert large["gpu_seconds"] > 2 * small["gpu_seconds"] > 0 and idle["gpu_seconds"] < small["gpu_seconds"]
        clients[1].kill()
        clients[1].wait()
        i.table.one(clients[1].pid, state=ENDED)
        assert i.table.one(clients[0].pid)["state"] == i.table.one(daemon.pid)["state"] == RUNNING


def test_a_fork_is_another_task(sim):
    """Parent and child of one program, on two GPUs: the child's end is not the parent's, and its GPU is not the parent's."""
    script = ("import os, sys\npid = os.fork()\n"
              "os.execv(sys.argv[1], [sys.argv[1], '--quiet', '--forever', '--gpu', '1' if pid else '2', '--name', 'parent' if pid else 'child'])")
    with watching(sim) as i:
        i.tracking(4)
        parent = subprocess.Popen([sys.executable, "-c", script, BUILD / "sim/gpusim-task"], env=sim.env)
        sim.tasks.append(parent)
        child = wait_for(lambda: [t for t in i.table.tasks() if t["comm"] == "child"], "the child")[0]
        mine = i.table.one(parent.pid, comm="parent")
        uuids = gpu_uuids(i)
        assert (mine["gpus"], child["gpus"]) == ([uuids[1]], [uuids[2]]) and child["pid"] != mine["pid"]
        os.kill(child["pid"], signal.SIGKILL)
        i.table.one(child["pid"], state=ENDED)
        assert i.table.one(parent.pid)["state"] == RUNNING


def test_who_was_there_before_is_marked_so(sim):
    process = sim.task("--forever")
    wait_for(lambda: sim.gpu()["processes"], "it is registered")
    with watching(sim) as i:
        task = i.table.one(process.pid)
        assert task["flags"] & FOUND_LATE and task["state"] == RUNNING and task["source"] == BY_LIST


@pytest.mark.alone
def test_many_short_tasks(sim):
    """None is missed, none is counted twice, and the node is as small after it as before. TASKS_COUNT=10000 for ten thousand."""
    count = int(os.environ.get("TASKS_COUNT", "1000"))
    with watching(sim) as i, StubServer(i.dir / "run") as server:
        i.tracking(4)
        node = node_of(i)
        script = ("import subprocess, sys, time\nleft, live, pids = int(sys.argv[2]), [], []\n"
                  "while left or live:\n"
                  "    while left and len(live) < 16:\n"
                  "        p = subprocess.Popen([sys.argv[1], '--quiet', '--work', '0.15', '--demand', '20%', '--gpu', str(left % 4)]); pids.append(p.pid)\n"
                  "        live.append(p); left -= 1\n"
                  "    over = [p for p in live if p.poll() is not None]\n    assert not any(p.returncode for p in over), 'a task failed'\n"
                  "    live = [p for p in live if p not in over]\n    time.sleep(0.005)\n"
                  "print(*pids)\n")
        run = subprocess.run([sys.executable, "-c", script, BUILD / "sim/gpusim-task", str(count)], env=sim.env,
                             capture_output=True, text=True, check=True)
        pids = list(map(int, run.stdout.split()))
        assert len(pids) == count

        def ended():
            return {(t["pid"], t["ticks"]): t for t in server.of(TASK) if t["state"] == ENDED}
        with contextlib.suppress(AssertionError):  # who is missing is said below
            wait_for(lambda: len(ended()) >= count, "all have ended")
        seen = sorted(pid for pid, _ in ended())
        missed = [p for p in pids if p not in seen]
        assert seen == sorted(pids), f"missed: {missed}, of these in the table: {[t for t in i.table.tasks() if t['pid'] in missed]}"
        assert not server.twice
        assert all(t["end_ns"] >= t["start_ns"] for t in ended().values())
        wait_for(lambda: len(os.listdir(f"/proc/{node}/fd")) < 60, "no descriptor is left behind")
        rss_kb = int(Path(f"/proc/{node}/statm").read_text().split()[1]) * 4
        assert rss_kb < 40000, rss_kb


def test_a_node_without_a_server_rests(sim):
    with watching(sim) as i:
        i.tracking(4)
        node = node_of(i)
        sim.task("--work", "0.1").wait()

        def taken():
            return sum(int((t / "schedstat").read_text().split()[0]) for t in Path(f"/proc/{node}/task").iterdir())

        def rests():  # what it still had to do is over at some time
            before = taken()
            time.sleep(3)
            return (taken() - before) / 3e9 < 0.02  # of a core
        wait_for(rests, "it takes less than a fiftieth of a core")


@pytest.mark.alone
@pytest.mark.parametrize("pause", [0, 0.3, 0.6, 0.9])
def test_no_task_is_missed_when_the_driver_comes_later(tmp_path, pause):
    """The node was there first, and found no ring, or one without cards."""
    where = tmp_path / "sim"
    where.mkdir()
    with watching(SimpleNamespace(dir=where)) as i:
        wait_for(lambda: i.table.path.exists(), "a node that has nothing to look at")
        time.sleep(pause)  # whatever it looks for from time to time
        with Simulator(where, "--model", "h200:2") as sim:
            i.tracking(2)
            for n in range(8):
                task = sim.task("--gpu", n % 2, "--work", "0.15")
                task.wait()
                i.table.one(task.pid, state=ENDED)


# ---- whoever dies ----

def test_a_killed_node_takes_its_tasks_up_again(sim):
    with watching(sim) as i, StubServer(i.dir / "run") as server:
        i.tracking(4)
        stays, goes = sim.task("--gpu", "0", "--forever"), sim.task("--gpu", "1", "--forever")
        before = {p.pid: i.table.one(p.pid) for p in (stays, goes)}
        node = node_of(i)
        stop(node)
        goes.kill()
        goes.wait()
        gone = boot_ns()
        os.kill(node, signal.SIGKILL)
        ended = i.table.one(goes.pid, state=ENDED, timeout=20)
        assert ended["flags"] & END_UNKNOWN and ended["end_ns"] > gone, "when it was found, and said to be so"
        assert ended["start_ns"] == before[goes.pid]["start_ns"] and ended["verdict"] == NO_DEADLINE
        again = i.table.one(stays.pid, state=RUNNING)
        assert again["start_ns"] == before[stays.pid]["start_ns"] and not again["flags"]
        assert len(i.table.of(stays.pid)) == 1, "it is the same task"
        watch = Stopwatch()
        stays.kill()
        stays.wait()
        at = boot_ns()
        end = i.table.one(stays.pid, state=ENDED)
        assert abs(end["end_ns"] - at) / 1e9 - watch.starved < 0.1 and not end["flags"]
        wait_for(lambda: {t["pid"] for t in server.of(TASK) if t["state"] == ENDED} >= {stays.pid, goes.pid}, "the server knows")
        assert not server.twice


def test_a_server_that_comes_late_gets_all_of_it_once(sim):
    with watching(sim) as i:
        i.tracking(4)
        pids = []
        for n in range(20):
            t = sim.task("--gpu", str(n % 4), "--work", "0.2")
            pids.append(t.pid)
            i.table.one(t.pid)
        for pid in pids:
            i.table.one(pid, state=ENDED)
        with StubServer(i.dir / "run", flush=3600) as server:
            wait_for(lambda: len({t["pid"] for t in server.of(TASK) if t["state"] == ENDED}) == 20, "all twenty")
            server.crash()
            server.start()
            before = len(server.of(TASK))
            wait_for(lambda: len({t["pid"] for t in server.of(TASK)[before:] if t["state"] == ENDED}) == 20, "again, for it forgot")
            server.store()
            first = [node_of(i)]
            os.kill(first[0], signal.SIGKILL)
            wait_for(lambda: i.of_program("node") not in ([], first), "another node")
            later = sim.task("--forever")  # the new node may not look yet
            i.table.one(later.pid)
            later.kill()
            wait_for(lambda: any(t["pid"] == later.pid and t["state"] == ENDED for t in server.of(TASK)), "what came later")
            assert not server.twice, "what was stored does not come again"


def test_it_uses_what_it_is_said_to_use(sim):
    """Two tasks on one card: the seconds of the card and its energy are theirs, by their shares."""
    with watching(sim) as i, StubServer(i.dir / "run") as server:
        i.tracking(4)
        busy, idle = sim.task("--gpu", "0", "--demand", "60%", "--forever", "--memory", "8G"), sim.task("--gpu", "0", "--kind", "idle", "--forever", "--memory", "4G")
        def use(pid):
            rows = [u for w in server.of(USE) for u in w["of"] if u["pid"] == pid]
            return rows[-1] if rows else None
        wait_for(lambda: use(busy.pid) and use(busy.pid)["gpu_seconds"] > 2.5, "it has worked")
        a, b = use(busy.pid), use(idle.pid)
        assert a["memory_bytes"] == 8 << 30 and b["memory_bytes"] == 4 << 30
        assert b["gpu_seconds"] < 0.2 * a["gpu_seconds"] and 0 < b["energy_joules"] < a["energy_joules"]
        assert server.of(NODE)[-1]["tasks"] == 2 and server.of(NODE)[-1]["gpus"] == 4
        named = wait_for(lambda: [t for t in server.of(TASK) if t["pid"] == busy.pid and t["command"]], "its command")[-1]
        assert "--demand 60%" in named["command"] and named["user"]


def test_the_last_moments_of_a_task_count(sim):
    """Two and a half seconds alone on a card at full demand are two and a half seconds of it, not two."""
    with watching(sim) as i:
        i.tracking(4)
        process = sim.task("--gpu", "3", "--work", "2.5")
        process.wait()
        ended = i.table.one(process.pid, state=ENDED)
        took = (ended["end_ns"] - ended["start_ns"]) / 1e9
        assert took - 1.2 < ended["gpu_seconds"] <= took + 0.1 and ended["energy_joules"] > 200, ended


def keep_connection(process):
    """A copy of a task's connection to the simulator: with it the driver shows the process on, whatever becomes of it."""
    fds = Path(f"/proc/{process.pid}/fd")
    number = wait_for(lambda: [int(f.name) for f in fds.iterdir() if str(f.readlink()).startswith("socket:")], "a connection")[0]
    pidfd = os.pidfd_open(process.pid)
    copy = ctypes.CDLL(None, use_errno=True).syscall(438, pidfd, number, 0)  # pidfd_getfd
    os.close(pidfd)
    assert copy >= 0, os.strerror(ctypes.get_errno())
    return copy


def test_memory_of_the_dead_is_said(sim):
    with watching(sim) as i, StubServer(i.dir / "run") as server:
        i.tracking(4)
        process = sim.task("--gpu", "1", "--forever", "--memory", "6G")
        i.table.one(process.pid)
        kept = keep_connection(process)
        watch = Stopwatch()
        process.kill()
        process.wait()
        gone = boot_ns()
        ended = i.table.one(process.pid, state=ENDED)
        assert abs(ended["end_ns"] - gone) / 1e9 - watch.starved < 0.1, "it has ended, whatever the list shows"
        said = wait_for(lambda: [e for e in server.of(EVENT) if e["kind"] == "dead_memory"], "dead memory")
        assert said[0]["pid"] == process.pid and said[0]["uuid"] == gpu_uuids(i)[1] and said[0]["severity"] == 2
        assert "6.0 GiB" in said[0]["text"] and "gone" in said[0]["text"] and said[0]["boot_ns"] - gone > 4.5e9
        time.sleep(2.5)
        assert len([e for e in server.of(EVENT) if e["kind"] == "dead_memory"]) == 1, "said once"
        assert len(i.table.of(process.pid)) == 1, "and it is not taken for a new task"
        os.close(kept)


def test_memory_of_the_idle_is_said(sim):
    with watching(sim, "--tasks.idle-s", "2") as i, StubServer(i.dir / "run") as server:
        i.tracking(4)
        idle = sim.task("--gpu", "2", "--kind", "idle", "--forever", "--memory", "4G")
        said = wait_for(lambda: [e for e in server.of(EVENT) if e["kind"] == "idle_holder"], "an idle holder")
        assert said[0]["pid"] == idle.pid and said[0]["uuid"] == gpu_uuids(i)[2] and "4.0 GiB" in said[0]["text"]
        time.sleep(2)
        assert len([e for e in server.of(EVENT) if e["kind"] == "idle_holder"]) == 1, "said once"


# ---- the header and the example ----

def test_the_installed_header_is_enough_to_read_the_table(sim, tmp_path):
    program = tmp_path / "tasks"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "-o", program, ROOT / "examples/tasks.c"], check=True)
    with watching(sim) as i:
        i.tracking(4)
        process = sim.task("--name", "reader", "--forever")
        i.table.one(process.pid)
        out = subprocess.run([program, i.dir / "run/tasks"], capture_output=True, text=True, check=True).stdout
        line = next(line for line in out.splitlines() if f"pid {process.pid} " in line)
        assert line.startswith("reader ") and "deadline 0.000 s" in line and line.endswith(" -")
        assert (i.dir / "run/tasks").stat().st_mode & 0o777 == 0o644, "anyone may read it, nobody else may write"
