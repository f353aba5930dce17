"""A job's way with a kill at every numbered step of node, shim and the process to be (base/crash_point.h; each system call that leaves
something behind is one), on the whole program with simulated GPUs: no job is lost, none runs twice, exit codes are exact, and none
is invented; who is to be told is told."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from instance import Instance
from mortal import programs
from simulator import Simulator, wait_for

pytestmark = pytest.mark.timeout(900)

STEPS_MOST = 400
OVER = ("done", "failed", "cancelled", "timeout", "unknown", "exit unknown")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The programs, with a node and a shim that can be killed at each step."""
    return programs(tmp_path_factory.mktemp("bin"), "node", "shim")


class Lab:
    def __init__(self, sim, program):
        self.gpumgr = program / "gpumgr"
        self.order = Path(sim.dir) / "crash"
        self.order.unlink(missing_ok=True)
        self.i = Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", "", "--engines.podman", "", "--jobs.notify-command", "true",
                          role="up", env={"GPUMGR_CRASH": f"@{self.order}"}, program=self.gpumgr)
        self.ran, self.heard = self.i.dir / "ran", self.i.dir / "heard"

    def kill_at(self, process, number):
        self.order.write_text(f"{process}:{number}:{os.getpid()}")

    def call(self, command, *words):
        return subprocess.run([self.gpumgr, command, "--dir", self.i.dir, *words], env=self.i.env, capture_output=True, text=True, timeout=90, cwd="/")

    def jobs(self):
        done = self.call("jobs", "--json")
        return {j["id"]: j for j in json.loads(done.stdout)["jobs"]} if done.returncode == 0 else {}

    def named(self, name):
        return [j for j in self.jobs().values() if j["name"] == name]

    def submit(self, name, script, *words):
        """Until it is in the books; what was not acknowledged is looked for before it is tried again."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            done = self.call("submit", "--name", name, *words, "--", "sh", "-c", script)
            if done.returncode == 0:
                return
            if wait_for(lambda: self.jobs() is not None, "an answer") and self.named(name):
                return
            time.sleep(0.05)
        raise AssertionError("it cannot be submitted")

    def times(self, path, word):
        return path.read_text().split().count(str(word)) if path.exists() else 0

    def over(self, name):
        def look():
            all_ = self.named(name)
            return all_ and all(j["state"] in OVER for j in all_) and all_
        return wait_for(look, f"{name} is over", 90)

    def running(self, name):
        return wait_for(lambda: [j for j in self.named(name) if j["state"] == "running"], f"{name} runs", 90)

    def check(self, name, may_be_unknown):
        jobs = self.over(name)
        for job in jobs:
            times, state = self.times(self.ran, job["id"]), job["state"]
            if job["exit_code"] is not None:
                assert job["exit_code"] == 5 and times == 1 and state == "failed", job
            else:
                assert may_be_unknown and times <= 1, (times, state, job["reason"], job["text"])
        return len(jobs)


@contextmanager
def a_lab(path, program):
    with Simulator(path / "sim", "--model", "h200:2") as sim:
        lab = Lab(sim, program)
        with lab.i:
            lab.i.ready(2)
            wait_for(lambda: lab.call("jobs").returncode == 0, "the server answers")
            yield lab


@pytest.fixture
def lab(tmp_path, program):
    with a_lab(tmp_path, program) as lab:
        yield lab


def steps(lab, process, trial):
    """Trials until one in which the step was not reached."""
    for number in range(1, STEPS_MOST):
        trial(number)
        if lab.order.exists():
            lab.order.unlink()
            print(f"{process}: killed at {number - 1} steps")
            return number - 1
    raise AssertionError("more steps than expected")


@pytest.mark.parametrize("process, least", [("node", 60), ("shim", 20), ("become", 6)])
def test_a_kill_at_every_step_of_a_jobs_life(lab, process, least):
    """Its owner hears of its end, too: once at least, and no more often than somebody was killed."""
    def trial(number):
        name = f"{process}-{number}"
        lab.kill_at(process, number)
        lab.submit(name, f"echo $GPUMGR_JOB_ID >> {lab.ran}; exit 5", "--notify", f"command:echo $GPUMGR_JOB_ID >> {lab.heard}")
        assert lab.check(name, process != "node") == 1
        job = lab.named(name)[0]["id"]
        wait_for(lambda: lab.times(lab.heard, job), "its owner was told", 150)
    assert steps(lab, process, trial) >= least


@pytest.mark.parametrize("process, least", [("node", 8), ("shim", 4)])
def test_a_kill_at_every_step_of_a_cancel(lab, process, least):
    """It has begun: it hears TERM, and how it ends then is known, unless the one who watches it was killed."""
    def trial(number):
        name = f"{process}-{number}"
        lab.submit(name, f"trap 'echo $GPUMGR_JOB_ID >> {lab.ran}; exit 5' TERM; echo up; while :; do sleep 0.02; done")
        job = lab.running(name)[0]["id"]
        wait_for(lambda: "up" in lab.call("logs", str(job)).stdout, "it listens", 60)
        lab.kill_at(process, number)
        wait_for(lambda: lab.call("cancel", str(job)).returncode == 0 or lab.named(name)[0]["state"] in (*OVER, "ending"), "it is cancelled", 60)
        (end,) = lab.over(name)
        times = lab.times(lab.ran, job)
        if process == "node":
            assert (end["state"], end["exit_code"], times) == ("cancelled", 5, 1), end
        else:
            assert (end["state"], end["exit_code"]) in (("cancelled", 5), ("unknown", None), ("exit unknown", None)) and times <= 1, end
    assert steps(lab, process, trial) >= least


def adopt(lab, number):
    """The node is killed while a job runs and another one has just been granted, and again while it takes them up."""
    go = lab.i.dir / "go"
    for n in ("a", "b"):
        lab.submit(f"adopt-{n}", f"until test -e {go}; do sleep 0.05; done; echo $GPUMGR_JOB_ID >> {lab.ran}; exit 5")
    wait_for(lambda: [j for j in lab.jobs().values() if j["state"] == "running"], "one runs")
    lab.kill_at("node", number)
    for node in lab.i.of_program("node"):
        os.kill(node, signal.SIGKILL)
    go.touch()
    for n in ("a", "b"):
        assert lab.check(f"adopt-{n}", False) == 1


def test_a_kill_at_every_step_of_an_adoption(tmp_path, program):
    """Each on a machine of its own: one whose node dies often is started again ever later."""
    for number in range(1, STEPS_MOST):
        with a_lab(tmp_path / str(number), program) as lab:
            adopt(lab, number)
            if lab.order.exists():
                break
    print(f"killed at {number - 1} steps")
    assert number > 15


def test_a_kill_while_a_shim_is_on_its_way(tmp_path, program):
    """The node is killed when it has started a shim that has not yet said that it is there: the next one leaves it alone, whenever it comes."""
    at, r = tmp_path / "bin", random.Random(1)
    shutil.copytree(program, at)
    (at / "gpumgr-shim").rename(at / "a-shim")
    (at / "gpumgr-shim").write_text(f'#!/bin/sh\nread seconds < {tmp_path}/late\nsleep $seconds\nexec {at}/a-shim "$@"\n')
    (at / "gpumgr-shim").chmod(0o755)
    (tmp_path / "late").write_text("0\n")
    with a_lab(tmp_path, at) as lab:
        for n in range(50):
            (tmp_path / "late").write_text(f"{r.uniform(0.02, 0.12):.3f}\n")
            node = wait_for(lambda: lab.i.of_program("node"), "a node runs")[0]
            lab.submit(f"late-{n}", f"sleep 0.1; echo $GPUMGR_JOB_ID >> {lab.ran}; exit 5")
            os.kill(node, signal.SIGKILL)
            assert lab.check(f"late-{n}", False) == 1
