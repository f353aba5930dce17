"""GPU tasks in real containers, on simulated cards: deadlines that are kept and deadlines that contention makes impossible, with
the host's device files bound into the container and with nodes of its own."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from docker_engine import DOCKER, DockerEngine
from instance import GPUMGR, Instance, clean_env
from podman_engine import LIMITS, PodmanEngine
from server import UnixConnection
from simulator import BUILD, Simulator, wait_for
from task_table import BY_CONTAINER, BY_OPEN, ENDED, HIT, MISS, NO_DEADLINE, OVERDUE, RUNNING

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="an engine needs root"), pytest.mark.timeout(300)]


def libraries(program):
    """What the loader would open."""
    for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
        for word in line.split():
            if word.startswith("/"):
                yield Path(word)


@pytest.fixture(scope="module")
def tree():
    """A root directory with a shell and the program that uses simulated GPUs."""
    root = Path(tempfile.mkdtemp(prefix="gt.", dir="/tmp"))
    (root / "bin").mkdir(parents=True)
    (root / "sim" / "dev").mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "/bin/busybox", root / "bin" / "sh")
    os.link(root / "bin" / "sh", root / "bin" / "sleep")
    shutil.copy(BUILD / "sim" / "gpusim-task", root / "bin")
    for library in libraries(BUILD / "sim" / "gpusim-task"):
        (root / library.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library.relative_to("/"))
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def docker(tree):
    where = Path(tempfile.mkdtemp(prefix="gd.", dir="/tmp"))
    engine = DockerEngine(where / "engine")
    engine.import_tree(tree, "task:1")
    yield engine
    engine.stop()
    shutil.rmtree(where, ignore_errors=True)


@pytest.fixture(scope="module")
def podman(tree):
    if not shutil.which("podman"):
        pytest.skip("no podman here")
    where = Path(tempfile.mkdtemp(prefix="gd.", dir="/tmp"))
    engine = PodmanEngine(where)
    engine.import_tree(tree, "task:1")
    yield engine
    engine.stop()
    shutil.rmtree(where, ignore_errors=True)


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:2") as s:
        yield s


@pytest.fixture
def watched(docker, sim):
    with Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", docker.socket, "--engines.podman", "") as i:
        i.tracking(2)
        yield i


def words_for(sim, how, gpu=0):
    """How a container comes to the card: the host's files bound into it, or nodes of its own."""
    if how == "bind":
        return ["-v", f"{sim.dir}:/sim"]
    names = (f"nvidia{gpu}", "nvidiactl", "nvidia-uvm")
    return ["-v", f"{sim.dir}/sock:/sim/sock", "-v", f"{sim.dir}/gpus:/sim/gpus",
            *[w for n in names for w in ("--device", f"{sim.dir}/dev/{n}:/sim/dev/{n}")]]


def start(docker, sim, how, name, *flags, gpu=0, task=()):
    """By our program, in the background; its container's id."""
    got = subprocess.run([GPUMGR, "docker", "run", "-d", *flags, "--network", "none", "--name", name, *words_for(sim, how, gpu), "task:1",
                          "gpusim-task", "--dir", "/sim", "--gpu", str(gpu), *map(str, task)],
                         env=clean_env(DOCKER_HOST=f"unix://{docker.socket}", PATH=f"{Path(DOCKER).parent}:{os.environ['PATH']}"),
                         capture_output=True, text=True, timeout=60)
    assert got.returncode == 0, got.stderr
    return got.stdout.strip()


def task_of(watched, identity, **want):
    def found():
        return [t for t in watched.table.tasks() if t["container_id"] == identity and all(t[k] == v for k, v in want.items())]
    return wait_for(found, f"a task of {identity[:12]} with {want}: {watched.table.tasks()}")[0]


def shown(watched, *words):
    got = subprocess.run([GPUMGR, "ps", "--all", *words, "--dir", watched.dir], env=clean_env(), capture_output=True, text=True, timeout=30)
    assert got.returncode == 0, got.stderr
    return got.stdout


@pytest.mark.parametrize("how", ["bind", "device"])
def test_a_deadline_is_kept(docker, sim, watched, how):
    identity = start(docker, sim, how, "kept", "--deadline", "20s", task=["--work", 1])
    try:
        t = task_of(watched, identity, state=ENDED)
        took = (t["end_ns"] - t["start_ns"]) / 1e9
        assert (t["container"], t["image"], t["verdict"], t["deadline_ns"]) == ("kept", "task:1", HIT, 20 * 10**9)
        assert 0.8 < took < 10 and abs(t["float_ns"] / 1e9 - (20 - took)) < 1e-6
        assert len(t["gpus"]) == 1 and t["source"] in ((BY_OPEN,) if how == "bind" else (BY_CONTAINER, BY_OPEN))
        seen = json.loads(shown(watched, "--json"))
        assert [c["name"] for c in seen["containers"]] == ["kept"]
        one = [x for x in seen["tasks"] if x["pid"] == t["pid"]][0]
        assert (one["container"], one["hit"], one["deadline_s"]) == ("kept", True, 20)
        assert abs(one["float_s"] - t["float_ns"] / 1e9) < 1e-3 and abs(one["end"] - one["start"] - took) < 0.01
        assert "kept" in shown(watched)
    finally:
        docker("rm", "-f", identity)


@pytest.mark.parametrize("how", ["bind", "device"])
def test_contention_makes_it_miss(docker, sim, watched, how):
    """Alone it would take a second of its one and a half. It does not get the card alone."""
    rival = start(docker, sim, how, "rival", task=["--forever"])
    task_of(watched, rival, state=RUNNING, verdict=NO_DEADLINE)
    identity = start(docker, sim, how, "late", "--deadline", "1500ms", task=["--work", 1.2])
    try:
        task_of(watched, identity, state=OVERDUE, verdict=MISS)
        t = task_of(watched, identity, state=ENDED)
        assert (t["container"], t["verdict"]) == ("late", MISS) and t["float_ns"] < 0
        assert task_of(watched, rival)["state"] == RUNNING
    finally:
        docker("rm", "-f", identity, rival)
    task_of(watched, rival, state=ENDED)


def test_a_task_long_after_its_containers_start(docker, sim, watched):
    """A service with device nodes of its own that comes to the card when it is asked to: nothing but the file inside tells."""
    got = docker("run", "-d", "--network", "none", "--label", "gpumgr.deadline=20s", "--name", "service", *words_for(sim, "device"), "task:1",
                 "sh", "-c", "until [ -e /go ]; do sleep 0.1; done; gpusim-task --dir /sim --work 0.5; sleep 100")
    identity = got.stdout.strip()
    try:
        pid = int(docker("inspect", "--format", "{{.State.Pid}}", identity).stdout)
        time.sleep(4)  # what its start announced is over
        Path(f"/proc/{pid}/root/go").touch()
        t = task_of(watched, identity, state=ENDED)
        assert (t["container"], t["verdict"], t["source"]) == ("service", HIT, BY_OPEN)
        assert 0 <= t["start_ns"] - t["opened_ns"] < 1e9, "its own file, and when"
    finally:
        docker("rm", "-f", identity)


def test_removed_while_its_task_runs(docker, sim, watched):
    identity = start(docker, sim, "bind", "removed", "--deadline", "100s", task=["--forever"])
    task_of(watched, identity, state=RUNNING, container="removed")
    docker("rm", "-f", identity)
    t = task_of(watched, identity, state=ENDED)
    assert t["container"] == "removed" and t["deadline_ns"] == 100 * 10**9


def test_a_label_of_nonsense_is_said_once_and_the_task_is_tracked(docker, sim, watched):
    got = docker("run", "-d", "--network", "none", "--label", "gpumgr.deadline=soonish", *words_for(sim, "bind"), "task:1",
                 "gpusim-task", "--dir", "/sim", "--work", "0.5")
    identity = got.stdout.strip()
    try:
        t = task_of(watched, identity, state=ENDED)
        assert t["verdict"] == NO_DEADLINE and t["deadline_ns"] == 0
    finally:
        docker("rm", "-f", identity)


def test_tasks_go_on_while_docker_is_stopped(docker, sim, watched):
    """What Docker said before counts; a task that begins meanwhile is found and named as far as anybody knows."""
    identity = start(docker, sim, "bind", "steady", "--deadline", "60s", task=["--forever"])
    pid = task_of(watched, identity, state=RUNNING, container="steady")["pid"]
    docker.process.send_signal(signal.SIGSTOP)
    try:
        begun = sim.task("--gpu", 1, "--work", 0.5)
        t = wait_for(lambda: [t for t in watched.table.tasks() if t["pid"] == begun.pid], "a task of the host")[0]
        assert t["container_id"] == ""
        os.kill(pid, signal.SIGKILL)
        t = task_of(watched, identity, state=ENDED)
        assert t["container"] == "steady" and t["verdict"] == HIT
    finally:
        docker.process.send_signal(signal.SIGCONT)
        docker("rm", "-f", identity)


def test_podman_too(podman, sim):
    """It tells of a start up to a quarter of a second late: the task is found before, and its deadline counts from its start."""
    with Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", "", "--engines.podman", podman.socket) as i:
        i.tracking(2)
        for name, deadline, verdict in (("soon", "20s", HIT), ("late", "300ms", MISS)):
            identity = podman("run", "-d", "--name", name, "--label", f"gpumgr.deadline={deadline}", "--network", "none", *LIMITS,
                              *words_for(sim, "device"), "task:1", "gpusim-task", "--dir", "/sim", "--work", "1.5").stdout.strip()
            t = task_of(i, identity, state=ENDED)
            took = (t["end_ns"] - t["start_ns"]) / 1e9
            assert (t["container"], t["verdict"], t["source"]) == (name, verdict, BY_CONTAINER) and took > 1.2, (t, took)


# ---- every view ----


def ask(instance, path):
    connection = UnixConnection(instance.dir / "run/server/api.sock")
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read().decode()
    assert answer.status == 200, body
    return body


def test_every_view_agrees(docker, sim):
    """One that keeps its deadline and one that cannot: the table, the API, /metrics, events and `gpumgr ps` say the same of both."""
    with Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", docker.socket, "--engines.podman", "", role="up") as i:
        i.tracking(2)
        wait_for(lambda: (i.dir / "run/server/api.sock").exists(), "a server")
        rival = start(docker, sim, "device", "rival", "--tenant", "others", task=["--forever"])
        task_of(i, rival, state=RUNNING)
        good = start(docker, sim, "bind", "good", "--deadline", "30s", "--label", "team=vision", gpu=1, task=["--work", 1])
        late = start(docker, sim, "device", "late", "--deadline", "1500ms", task=["--work", 1.5])
        try:
            truth = {name: task_of(i, identity, state=ENDED) for name, identity in (("good", good), ("late", late))}
            assert truth["good"]["verdict"] == HIT and truth["late"]["verdict"] == MISS

            def told():
                found = json.loads(ask(i, "/api/v1/tasks"))["tasks"]
                return found if len([t for t in found if t["state"] == "ended"]) == 2 else None
            by_api = wait_for(told, "the server has both ends")
            by_ps = json.loads(shown(i, "--json"))
            for view in (by_api, by_ps["tasks"]):
                seen = {t["container"]: t for t in view}
                assert set(seen) == {"rival", "good", "late"}
                assert seen["rival"]["state"] == "running" and seen["rival"]["hit"] is None and seen["rival"]["deadline_s"] is None
                for name, hit in (("good", True), ("late", False)):
                    t, want = seen[name], truth[name]
                    assert (t["pid"], t["hit"], t["container_id"], t["image"]) == (want["pid"], hit, want["container_id"], "task:1")
                    assert abs(t["float_s"] - want["float_ns"] / 1e9) < 1e-3 and abs(t["deadline_s"] - want["deadline_ns"] / 1e9) < 1e-9
                    assert abs(t["start"] - want["start_real_ns"] / 1e9) < 1e-3 and abs(t["end"] - want["end_real_ns"] / 1e9) < 1e-3

            for view in (json.loads(ask(i, "/api/v1/containers?all=1"))["containers"], by_ps["containers"]):
                seen = {c["name"]: c for c in view}
                assert (seen["good"]["hits"], seen["good"]["misses"]) == (1, 0) and (seen["late"]["hits"], seen["late"]["misses"]) == (0, 1)
                assert seen["good"]["deadline_s"] == 30 and seen["late"]["deadline_s"] == 1.5 and seen["rival"]["running"] == 1
                assert seen["rival"]["tenant"] == "others"
                assert seen["good"]["labels"] == {"gpumgr.deadline": "30s", "team": "vision"}

            metrics = ask(i, "/metrics")
            for name, kind in (("good", "hits"), ("late", "misses")):
                assert [line for line in metrics.splitlines() if line.startswith(f"gpumgr_deadline_{kind}_total{{")
                        and f'container="{name}"' in line and line.endswith(" 1")], metrics[-3000:]

            def said():
                found = json.loads(ask(i, "/api/v1/events"))["events"]
                return [e for e in found if e["kind"].startswith("task_")]
            events = wait_for(said, "an event of the miss")
            assert all("late" in e["text"] for e in events), events
            table = shown(i)
            assert "good" in table and "late" in table and "MISS" in table
        finally:
            docker("rm", "-f", good, late, rival)
