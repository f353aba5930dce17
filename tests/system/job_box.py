"""A machine with two simulated GPUs whose queue everybody uses, and the commands that people type there. `box` and `idle` are
fixtures: a test file that imports them has a machine of its own."""

import json
import subprocess
from contextlib import closing

import pytest

from instance import GPUMGR, Instance, clean_env
from server import UnixConnection
from simulator import Simulator, wait_for

ADA, BOB = 61001, 61002  # users of nobody: numbers are enough for a kernel
NO_ENGINES = ("--engines.docker", "", "--engines.podman", "")


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    """A machine with two GPUs, whose queue everybody uses."""
    path = tmp_path_factory.mktemp("box")
    with Simulator(path / "sim", "--model", "h200:2") as sim:
        with Instance(sim, "--gpu-devices", sim.dir / "dev", *NO_ENGINES, role="up") as i:
            i.sim = sim
            i.ready(2)
            wait_for(lambda: verdicts(i) == ["free", "free"], "both GPUs are free", 30)
            yield i


@pytest.fixture(autouse=True)
def idle(box):
    """Every test begins and ends with an empty queue."""
    yield
    for job in (now := queue(box))["waiting"] + now["running"]:
        gpumgr(box, "cancel", job["id"])
    wait_for(lambda: not queue(box)["running"] and not queue(box)["waiting"], "the queue is empty", 30)
    wait_for(lambda: verdicts(box) == ["free", "free"], "both GPUs are free again", 30)


def spawn(box, *words, user=None, **kw):
    kw.setdefault("stdout", subprocess.PIPE)
    kw.setdefault("stderr", subprocess.PIPE)
    kw.setdefault("env", clean_env(HOME="/tmp", GPUSIM_DIR=box.sim.dir))
    return subprocess.Popen([str(GPUMGR), words[0], "--dir", str(box.dir), *map(str, words[1:])], text=True, user=user,
                            group=user, extra_groups=None if user is None else [], **kw)


def gpumgr(box, *words, user=None, timeout=60, **kw):
    p = spawn(box, *words, user=user, stdin=subprocess.DEVNULL, **kw)
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        raise AssertionError(f"{words}: {p.communicate()}") from None
    return subprocess.CompletedProcess(words, p.returncode, out, err)


def ask(box, *words):
    got = gpumgr(box, *words)
    assert got.returncode == 0, got.stderr
    return json.loads(got.stdout)


def queue(box):
    return ask(box, "queue", "--json")


def verdicts(box):
    got = gpumgr(box, "queue", "--json")
    return [g["verdict"] for g in json.loads(got.stdout)["gpus"]] if got.returncode == 0 else []


def job(box, number):
    return ask(box, "jobs", number, "--json")


def submit(box, *words, user=None):
    got = gpumgr(box, "submit", *words, user=user)
    assert got.returncode == 0 and got.stderr == "", got.stderr
    return int(got.stdout)


def state(box, number, *states):
    try:
        return wait_for(lambda: (j := job(box, number))["state"] in states and j, f"job {number} is {states}", 30)
    except AssertionError:
        raise AssertionError(f"not {states}: {job(box, number)}") from None


def api(box, path, method="GET", body=None, **headers):
    """Status and document of a call, as root over the Unix socket."""
    with closing(UnixConnection(box.dir / "run/server/api.sock")) as connection:
        connection.request(method, f"/api/v1/{path}", body if body is None else json.dumps(body),
                           {"Content-Type": "application/json", **headers} if body is not None else headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
