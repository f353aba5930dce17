"""A job's way with a kill at every numbered step of node, shim and the process to be (base/crash_point.h), on the whole program with
simulated GPUs: no job is lost, none runs twice, exit codes are exact, and none is invented."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from instance import Instance
from simulator import BUILD, Simulator, wait_for

STEPS_MOST = 80


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The programs, with a node and a shim that can be killed at each step."""
    at = tmp_path_factory.mktemp("bin")
    for name in ("gpumgr", "gpumgr-core", "gpumgr-server"):
        shutil.copy(BUILD / name, at)
    shutil.copy(BUILD / "tests/node_crash", at / "gpumgr-node")
    shutil.copy(BUILD / "tests/shim_crash", at / "gpumgr-shim")
    return at


class Lab:
    def __init__(self, sim, program):
        self.gpumgr = program / "gpumgr"
        self.order = Path(sim.dir) / "crash"
        self.i = Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", "", "--engines.podman", "", role="up",
                          env={"GPUMGR_CRASH": f"@{self.order}"}, program=self.gpumgr)
        self.ran = self.i.dir / "ran"

    def call(self, command, *words):
        return subprocess.run([self.gpumgr, command, "--dir", self.i.dir, *words], env=self.i.env, capture_output=True, text=True, timeout=60, cwd="/")

    def jobs(self):
        done = self.call("jobs", "--json")
        return {j["id"]: j for j in json.loads(done.stdout)["jobs"]} if done.returncode == 0 else {}

    def named(self, name):
        return [j for j in self.jobs().values() if j["name"] == name]

    def submit(self, name, script):
        """Until it is in the books; what was not acknowledged is looked for before it is tried again."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            done = self.call("submit", "--name", name, "--", "sh", "-c", script)
            if done.returncode == 0:
                return
            if wait_for(lambda: self.jobs() is not None, "an answer") and self.named(name):
                return
            time.sleep(0.05)
        raise AssertionError("it cannot be submitted")

    def times(self, job):
        return self.ran.read_text().split().count(str(job)) if self.ran.exists() else 0

    def over(self, name):
        def look():
            all_ = self.named(name)
            return all_ and all(j["state"] in ("done", "failed", "cancelled", "timeout", "unknown", "exit unknown") for j in all_) and all_
        return wait_for(look, f"{name} is over", 150)  # a node that dies before it is ready is started again ever later

    def check(self, name, may_be_unknown):
        for job in self.over(name):
            times, state = self.times(job["id"]), job["state"]
            if job["exit_code"] is not None:
                assert job["exit_code"] == 5 and times == 1, job
            else:
                assert may_be_unknown and times <= 1, job
            assert state == ("failed" if job["exit_code"] is not None else state), job
        return len(self.over(name))


@pytest.fixture
def lab(tmp_path, program):
    with Simulator(tmp_path / "sim", "--model", "h200:2") as sim:
        lab = Lab(sim, program)
        with lab.i:
            lab.i.ready(2)
            wait_for(lambda: lab.call("jobs").returncode == 0, "the server answers")
            yield lab


def steps(lab, process, trial):
    """Trials until one in which the step was not reached."""
    for number in range(1, STEPS_MOST):
        lab.order.write_text(f"{process}:{number}:{os.getpid()}")
        trial(number)
        if lab.order.exists():
            lab.order.unlink()
            return number - 1
    raise AssertionError("more steps than expected")


@pytest.mark.parametrize("process", ["node", "shim", "become"])
def test_a_kill_at_every_step_of_a_jobs_life(lab, process):
    def trial(number):
        name = f"{process}-{number}"
        lab.submit(name, f"echo $GPUMGR_JOB_ID >> {lab.ran}; exit 5")
        assert lab.check(name, process != "node") == 1
    died = steps(lab, process, trial)
    print(f"{process}: killed at {died} steps")
    assert died >= {"node": 10, "shim": 10, "become": 3}[process], died


def test_a_kill_at_every_step_of_an_adoption(lab):
    """The node is killed while a job runs and another one has just been granted, and again while it takes them up."""
    def trial(number):
        lab.order.unlink()
        go = lab.i.dir / f"go-{number}"
        for n in ("a", "b"):
            lab.submit(f"adopt-{number}-{n}", f"until test -e {go}; do sleep 0.05; done; echo $GPUMGR_JOB_ID >> {lab.ran}; exit 5")
        wait_for(lambda: [j for j in lab.jobs().values() if j["state"] == "running"], "one runs")
        lab.order.write_text(f"node:{number}:{os.getpid()}")
        for node in lab.i.of_program("node"):
            os.kill(node, signal.SIGKILL)
        go.touch()
        for n in ("a", "b"):
            lab.check(f"adopt-{number}-{n}", False)
    died = steps(lab, "node", trial)
    print(f"killed at {died} steps")
    assert died >= 4, died
