"""Tasks in real containers with deadlines: hits, misses through contention on one card, what is said before and at the moment, and
what happens when labels are garbage, containers are removed and Docker stands still."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from instance import GPUMGR, Instance, clean_env
from link import CONTAINER, EVENT, NODE, TASK, StubServer
from simulator import Simulator, wait_for
from stopwatch import Stopwatch
from task_containers import IMAGE, TaskEngine
from task_table import ENDED, HIT, MISS, NO_DEADLINE, OVERDUE, PENDING, RUNNING

pytestmark = [pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dockerd"), reason="an engine needs root and Docker")]
MISSED_BIT = 1
PAUSED = 3  # enum engine_state of src/node/engine.h


@pytest.fixture(scope="module")
def docker():
    where = Path(tempfile.mkdtemp(prefix="gt.", dir="/tmp"))
    engine = TaskEngine(where)
    yield engine
    engine.stop()
    shutil.rmtree(where, ignore_errors=True)


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:2") as s:
        yield s


class Watched:
    """A node that watches these cards and this engine, and a server that takes notes."""

    def __init__(self, sim, docker, *flags, env=None):
        self.sim, self.docker = sim, docker
        self.node = Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", docker.socket, "--engines.podman", "", *flags, env=env)
        self.server = StubServer(self.node.dir / "run")
        self.table = self.node.table

    def __enter__(self):
        self.node.tracking(2)
        return self

    def __exit__(self, *_):
        self.server.close()
        self.node.__exit__()

    def run(self, deadline, *task, name=None, words=(), way="bind"):
        """`gpumgr docker run --deadline`, as a person would; the container's id."""
        given = ["--deadline", deadline] if deadline else []
        out = subprocess.run([GPUMGR, "docker", "run", *given, "-d", *(["--name", name] if name else []), *words,
                              *map(str, self.docker.places(self.sim, way)), IMAGE, "/bin/gpusim-task", "--quiet", *task],
                             env=clean_env(DOCKER_HOST=f"unix://{self.docker.socket}"), capture_output=True, text=True, timeout=60)
        assert out.returncode == 0, out.stderr
        return out.stdout.strip()

    def task(self, container, timeout=30, **want):
        def look():
            rows = [t for t in self.table.tasks() if t["container_id"] == container]
            return next((t for t in rows[::-1] if all(t[k] == v for k, v in want.items())), None)
        return wait_for(look, f"a task in {container[:12]} with {want}", timeout)

    def events(self, kind, pid=None):
        return [e for e in self.server.of(EVENT) if e["kind"] == kind and pid in (None, e["pid"])]

    def told(self, container):
        rows = [c for c in self.server.of(CONTAINER) if c["id"] == container]
        return rows[-1] if rows else None


@pytest.fixture
def watched(sim, docker):
    with Watched(sim, docker) as w:
        yield w


@pytest.mark.alone
def test_alone_it_hits_and_beside_another_it_misses(watched):
    w = watched
    alone = w.run("4s", "--work", "1", name="alone")
    hit = w.task(alone, state=ENDED)
    assert hit["verdict"] == HIT and hit["deadline_ns"] == 4_000_000_000 and hit["container"] == "alone" and hit["image"] == IMAGE
    assert abs(hit["float_ns"] - (hit["start_ns"] + hit["deadline_ns"] - hit["end_ns"])) < 1000 and 2.5e9 < hit["float_ns"] < 3.2e9
    assert hit["ns_pid"] == 1 and hit["kind"] == 8

    both = [w.run("2s", "--work", "1.6", name=f"rival{n}") for n in (0, 1)]
    for c in both:
        over = w.task(c, state=OVERDUE)
        assert over["verdict"] == MISS and not over["end_ns"], "a miss there and then, while it runs"
    for c in both:
        missed = w.task(c, state=ENDED)
        assert missed["verdict"] == MISS and missed["float_ns"] < 0
        said = wait_for(lambda: w.events("task_overdue", missed["pid"]), "it was said")
        assert len(said) == 1 and abs(said[0]["boot_ns"] - missed["start_ns"] - 2e9) < 50e6, "at its deadline, not at its end"
        assert said[0]["severity"] == 1 and c not in said[0]["text"] and "rival" in said[0]["text"]
    assert not w.events("task_overdue", hit["pid"])

    facts = wait_for(lambda: w.told(both[0]) if (w.told(both[0]) or {}).get("slack", {}).get("tasks") else None, "its figures")
    assert (facts["slack"]["hits"], facts["slack"]["misses"], facts["name"]) == (0, 1, "rival0")
    assert facts["slack"]["float_ns"] == facts["slack"]["least_ns"] < 0
    good = wait_for(lambda: w.told(alone), "the other's")
    assert (good["slack"]["hits"], good["slack"]["misses"], good["deadline_ns"]) == (1, 0, 4_000_000_000)
    state = wait_for(lambda: [n for n in w.server.of(NODE) if (n["slack"]["hits"], n["slack"]["misses"]) == (1, 2)], "the node counts both")[-1]
    assert state["reasons_bits"] & MISSED_BIT and "missed a deadline" in state["reasons"], "it is unfit for more"
    rows = {t["pid"]: t for t in w.server.of(TASK) if t["state"] == ENDED}
    assert rows[hit["pid"]]["verdict"] == HIT and rows[hit["pid"]]["container"] == "alone"


def test_a_miss_is_foretold_by_its_like(watched):
    w = watched
    for n in range(3):
        w.task(w.run("900ms", "--work", "1.4", "--name", "slowpoke"), state=ENDED)
    assert not w.events("task_will_miss"), "nothing to go by yet"
    last = w.run("900ms", "--work", "1.4", "--name", "slowpoke")
    task = w.task(last, state=ENDED)
    said = wait_for(lambda: w.events("task_will_miss", task["pid"]), "the warning")
    assert len(said) == 1 and said[0]["boot_ns"] < task["start_ns"] + task["deadline_ns"], "before the deadline"
    assert abs(task["expected_ns"] - 1.4e9) < 0.4e9 or task["expected_ns"] == 0
    assert len(w.events("task_overdue")) == 4


def test_each_period_is_judged(watched):
    """A task every second, then none: said once, counted on; a container that is paused or ends misses nothing."""
    go = watched.docker.out / "on-with-it"
    script = (f"for n in 1 2 3; do /bin/gpusim-task --quiet --work 0.2; usleep 750000; done; until test -e {go}; do usleep 50000; done; "
              "/bin/gpusim-task --quiet --work 0.2; sleep 100")
    watch = Stopwatch()
    one = watched.docker.run_script(watched.sim, script, words=["--name", "beat", "--label", "gpumgr.deadline=900ms", "--label", "gpumgr.period=1s"])
    said = wait_for(lambda: watched.events("period_missed"), "a period without a task")
    assert len(said) == 1 and "beat" in said[0]["text"] and "period of 1 s" in said[0]["text"], said
    last = max(t["start_ns"] for t in watched.table.tasks() if t["container_id"] == one)
    late = (said[0]["boot_ns"] - last) / 1e9
    assert 1.09 < late and late - watch.starved < 1.5, f"at the moment, {late} s after the last one began"
    before = wait_for(lambda: watched.told(one), "it is told")["period_hit"]
    assert before <= 2
    wait_for(lambda: watched.told(one)["periods"] >= before + 3, "each period counts")
    assert len(watched.events("period_missed")) == 1, "it is said once"
    go.touch()
    wait_for(lambda: watched.told(one)["period_hit"] == before + 1, "one that is kept")
    wait_for(lambda: len(watched.events("period_missed")) == 2, "and missed anew")
    watched.docker("pause", one)
    wait_for(lambda: watched.told(one)["state"] == PAUSED, "the node knows that it is paused")
    time.sleep(1.5)  # what was under way is over
    counted = watched.told(one)["periods"]
    time.sleep(2.5)
    assert watched.told(one)["periods"] == counted, "nothing is expected of one that is paused"
    watched.docker("rm", "-f", one)


def test_another_engine_after_a_reload(sim, docker, tmp_path):
    """The engine is named while a task runs: it gets its name, and nobody is restarted."""
    path = tmp_path / "gpumgr.json"
    path.write_text(json.dumps({"engines": {"docker": "", "podman": ""}}))
    with Instance(sim, "--config", path, "--gpu-devices", sim.dir / "dev") as i:
        i.tracking(2)
        node = i.of_program("node")
        one = docker.run_task(sim, "--quiet", "--forever", words=["--name", "found", "--label", "gpumgr.deadline=1h"])
        def mine():
            return next((t for t in i.table.tasks() if t["container_id"] == one), None)
        assert wait_for(mine, "a task")["container"] == ""
        path.write_text(json.dumps({"engines": {"docker": str(docker.socket), "podman": ""}}))
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: mine()["container"] == "found" and mine()["deadline_ns"] == 3600 * 10**9, "its name and deadline")
        path.write_text(json.dumps({"engines": {"docker": "", "podman": ""}}))
        before = len(i.said("reload"))
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: len(i.said("reload")) > before, "the other settings are in force")
        docker("rename", one, "lost")
        docker("rm", "-f", one)
        wait_for(lambda: mine()["state"] == ENDED, "its end")
        assert mine()["container"] == "found" and i.of_program("node") == node


def test_a_label_of_garbage_is_said_once_and_the_task_is_tracked(watched):
    w = watched
    script = "for n in 1 2 3; do /bin/gpusim-task --quiet --work 0.3; done"
    c = w.docker.run_script(w.sim, script, words=["--label", "gpumgr.deadline=soon", "--name", "garbage"])
    wait_for(lambda: len([t for t in w.table.tasks() if t["container_id"] == c and t["state"] == ENDED]) == 3, "three tasks")
    assert all(t["verdict"] == NO_DEADLINE for t in w.table.tasks() if t["container_id"] == c)
    wait_for(lambda: w.events("bad_deadline_label"), "it is said")
    time.sleep(1.5)
    said = w.events("bad_deadline_label")
    assert len(said) == 1 and "gpumgr.deadline" in said[0]["text"] and "garbage" in said[0]["text"]


def test_a_container_removed_while_its_task_runs(watched):
    w = watched
    c = w.run("30s", "--forever", name="removed", way="device")
    w.task(c, state=RUNNING, verdict=PENDING)
    w.docker("rm", "-f", c)
    ended = w.task(c, state=ENDED)
    assert ended["verdict"] == HIT and ended["container"] == "removed"
    wait_for(lambda: (w.told(c) or {}).get("running") == 0, "nothing runs in it")


def test_docker_stands_still_and_nothing_else_does(watched):
    """Tasks of a container that started before are seen as ever; one whose deadline was not known yet is judged from its start."""
    w = watched
    go = w.docker.out / "go"
    go.unlink(missing_ok=True)
    c = w.docker.run_script(w.sim, f"until test -e {go}; do usleep 20000; done; /bin/gpusim-task --quiet --work 3", words=["--label", "gpumgr.deadline=1s", "--name", "frozen"])
    w.docker.process.send_signal(signal.SIGSTOP)
    try:
        first = wait_for(lambda: w.node.of_program("node"), "a node")
        os.kill(first[0], signal.SIGKILL)  # a new one knows nothing of the container
        wait_for(lambda: w.table.writer() not in first, "another node has the table")
        go.touch()
        task = w.task(c, state=RUNNING)
        assert task["verdict"] == NO_DEADLINE and task["container"] == "", "nobody could say"
        time.sleep(1.2)
    finally:
        w.docker.process.send_signal(signal.SIGCONT)
    late = w.task(c, deadline_ns=1_000_000_000)
    assert late["start_ns"] == task["start_ns"] and late["container"] == "frozen" and late["state"] in (OVERDUE, ENDED)
    ended = w.task(c, state=ENDED)
    assert ended["verdict"] == MISS and ended["float_ns"] < -1e9


STEPPED = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static const volatile int64_t *step;
__attribute__((constructor)) static void begin(void) {
    int fd = open(getenv("STEP_FILE"), O_RDONLY);
    if (fd >= 0) step = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
}
int clock_gettime(clockid_t id, struct timespec *ts) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(id, ts);
    if (id == CLOCK_REALTIME && step) ts->tv_sec += *step;
    return r;
}
"""


def test_a_step_of_the_clock_moves_no_deadline(sim, docker, tmp_path):
    """The wall clock goes an hour forward while a task runs, and two back: deadlines go by the boot clock."""
    (tmp_path / "step.c").write_text(STEPPED)
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", tmp_path / "step.so", tmp_path / "step.c", "-ldl"], check=True)
    step = tmp_path / "step"
    step.write_bytes((0).to_bytes(8, "little"))
    with Watched(sim, docker, env={"LD_PRELOAD": tmp_path / "step.so", "STEP_FILE": step}) as w:
        for hours in (1, -2):
            watch = Stopwatch()
            c = w.run("20s", "--work", "1.5")
            w.task(c, state=RUNNING, verdict=PENDING)
            with step.open("r+b") as f:
                f.write((hours * 3600).to_bytes(8, "little", signed=True))
            ended = w.task(c, state=ENDED)
            took = (ended["end_ns"] - ended["start_ns"]) / 1e9
            assert ended["verdict"] == HIT and 1.4 < took and took - watch.starved < 2.5
            assert abs(ended["float_ns"] / 1e9 - (20 - took)) < 0.01 and not w.events("task_overdue")
            moved = (ended["end_real_ns"] - ended["start_real_ns"]) / 3.6e12
            assert abs(moved - (1 if hours > 0 else -3)) < 0.1, "what people read is the clock as it is"
