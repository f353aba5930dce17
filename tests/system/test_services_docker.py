"""Services in containers, on a real Docker Engine: checked inside their own network, restarted, updated beside the old one on the same
port, taken back, and going on while everything that looks after them is killed."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from instance import Instance
from job_box import ADA, BOB, ask, gpumgr, job, queue, state, submit, verdicts
from simulator import Simulator, wait_for
from task_containers import IMAGE, TaskEngine
from test_services import add, becomes, kill_program, service, services

pytestmark = [pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dockerd"), reason="an engine needs root and Docker")]

# busybox has a web server of its own: what it answers is what lies in its directory.
SERVE = "/bin/busybox mkdir -p /dev/shm/www && {more} exec /bin/busybox httpd -f -p 8000 -h /dev/shm/www"
WELL = SERVE.format(more="echo ok > /dev/shm/www/healthz &&")
CHECKS = ("--health-interval", "1s", "--health-timeout", "1s", "--pause", "100ms", "--health-failures", "5", "--health-grace", "60s")


@pytest.fixture(scope="module")
def docker():
    where = Path(tempfile.mkdtemp(prefix="gs.", dir="/tmp"))
    engine = TaskEngine(where)
    yield engine
    engine.stop()
    shutil.rmtree(where, ignore_errors=True)


@pytest.fixture(scope="module")
def box(docker, tmp_path_factory):
    path = tmp_path_factory.mktemp("box")
    with Simulator(path / "sim", "--model", "h200:2") as sim:
        with Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", docker.socket, "--engines.podman", "", role="up") as i:
            i.sim, i.docker = sim, docker
            i.ready(2)
            wait_for(lambda: verdicts(i) == ["free", "free"], "both GPUs are free", 60)
            yield i


@pytest.fixture(autouse=True)
def nothing_left(box):
    yield
    for s in services(box):
        gpumgr(box, "service", "remove", s["id"])
    wait_for(lambda: not services(box), "no service is left", 90)
    for j in queue(box)["running"] + queue(box)["waiting"]:
        gpumgr(box, "cancel", j["id"])
    wait_for(lambda: not queue(box)["running"], "nothing runs", 90)
    assert containers(box) == []


def containers(box):
    return box.docker("ps", "-a", "--format", "{{.Names}}").stdout.split()


def start(box, script=WELL, *words, name="web", check="http:8000/healthz"):
    add(box, name, *CHECKS, "--health", check, "--image", IMAGE, *words, "--", "sh", "-c", script, user=ADA)
    return becomes(box, name, "healthy", seconds=120)


def test_it_is_checked_in_its_own_network(box):
    s = start(box)
    assert s["image"] == IMAGE and len(containers(box)) == 1
    # A second one listens at the same port: containers have their own.
    start(box, name="other", check="tcp:8000")
    assert len(containers(box)) == 2
    assert gpumgr(box, "service", "suspend", "web", user=ADA).returncode == 0
    becomes(box, "web", "suspended")
    wait_for(lambda: len(containers(box)) == 1, "its container is gone", 90)


def test_one_that_fails_its_checks_is_started_again(box):
    s = start(box)
    name = containers(box)[0]
    assert box.docker("exec", name, "/bin/busybox", "rm", "/dev/shm/www/healthz").returncode == 0
    wait_for(lambda: service(box, "web")["restarts"] >= 1, "it was found unhealthy", 90)
    assert "GET /healthz answers 404" in service(box, "web")["text"]
    again = becomes(box, "web", "healthy", seconds=120)
    assert again["job"] != s["job"] and len(containers(box)) == 1 and containers(box) != [name]


def test_a_command_is_run_inside(box):
    start(box, WELL, check="command:test -e /dev/shm/www/healthz")
    name = containers(box)[0]
    assert box.docker("exec", name, "/bin/busybox", "rm", "/dev/shm/www/healthz").returncode == 0
    wait_for(lambda: service(box, "web")["restarts"] >= 1, "its check failed", 90)
    assert "its check ended with exit code 1" in service(box, "web")["text"]
    becomes(box, "web", "healthy", seconds=120)


def test_a_storm_of_restarts_leaves_no_containers(box):
    add(box, "storm", "--image", IMAGE, "--pause", "100ms", "--pause-most", "200ms", "--give-up", 3, "--", "sh", "-c", "exit 5", user=ADA)
    s = becomes(box, "storm", "given up", seconds=120)
    assert s["restarts"] == 3 and "exit code 5" in s["text"]
    wait_for(lambda: containers(box) == [], "no container is left", 90)


def test_update_beside_the_old_one_and_back(box):
    old = start(box, WELL, "--gpus", 1)
    assert gpumgr(box, "service", "update", "web", "--env", "REVISION=2", user=ADA).returncode == 0
    s = wait_for(lambda: (x := service(box, "web"))["text"] == "updated to revision 2" and x, "the new one serves", 120)
    assert s["job"] != old["job"]
    wait_for(lambda: job(box, old["job"])["state"] == "cancelled", "the old one has ended", 90)
    # The new one serves something else: it is never well, and the old one never stops.
    assert gpumgr(box, "service", "update", "web", "--health-grace", "1s", "--health-failures", 2, "--", "sh", "-c", SERVE.format(more=""), user=ADA).returncode == 0
    back = wait_for(lambda: "revision 3 was taken back, revision 2 stays" in ((x := service(box, "web"))["text"] or "") and x, "it was taken back", 120)
    assert back["job"] == s["job"] and "answers 404" in back["text"] and back["restarts"] == 0
    wait_for(lambda: len(containers(box)) == 1, "only the old one's container is left", 90)
    becomes(box, "web", "healthy")


def test_it_yields_and_comes_back(box):
    s = start(box, WELL, "--gpus", 2, "--yield")
    urgent = submit(box, "--priority", 9, "--", "sleep", 2, user=BOB)
    state(box, urgent, "running", "done")
    state(box, urgent, "done")
    wait_for(lambda: (j := job(box, s["job"]))["attempt"] == 2 and j["state"] == "running", "it is back", 90)
    back = becomes(box, "web", "healthy", seconds=120)
    assert back["job"] == s["job"] and back["restarts"] == 0 and len(containers(box)) == 1


@pytest.mark.parametrize("who", ["server", "node"])
def test_kills_do_not_touch_it(box, who):
    s = start(box)
    name = containers(box)
    kill_program(box, who)
    wait_for(lambda: gpumgr(box, "service", "show", "web").returncode == 0, "the server answers", 60)
    wait_for(lambda: any(c["ok"] for c in service(box, "web")["checks"][-1:]), "it is checked again", 60)
    after = becomes(box, "web", "healthy")
    assert (after["job"], after["restarts"]) == (s["job"], 0) and containers(box) == name


def test_an_image_that_is_not_there_is_refused(box):
    got = gpumgr(box, "service", "add", "gone", "--image", "nowhere/nothing:1", "--", "sh", user=ADA)
    assert got.returncode == 2 and got.stderr == "gpumgr service: --image: nowhere/nothing:1 is not on this machine; `docker pull` brings it\n"
    assert not services(box)
    start(box)
    got = gpumgr(box, "service", "update", "web", "--image", "nowhere/nothing:1", user=ADA)
    assert got.returncode == 2 and "is not on this machine" in got.stderr and service(box, "web")["revision"] == 1
