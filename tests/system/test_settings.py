"""Settings that no other test turns: each is set to what is not its default, and what it promises is seen."""

import os

import pytest

from instance import Instance
from job_box import ADA, BOB, NO_ENGINES, api, gpumgr, job, state, submit, verdicts
from simulator import Simulator, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="jobs of several users need root")


@pytest.fixture
def machine(tmp_path):
    """machine(flags): two GPUs, with these settings."""
    opened = []

    def start(*flags):
        opened.append(Simulator(tmp_path / "sim", "--model", "h200:2").__enter__())
        up = Instance(opened[0], "--gpu-devices", opened[0].dir / "dev", *NO_ENGINES, *flags, role="up").__enter__()
        opened.append(up)
        up.sim = opened[0]
        up.ready(2)
        wait_for(lambda: verdicts(up) == ["free", "free"], "both GPUs are free")
        return up
    yield start
    for one in reversed(opened):
        one.__exit__(None, None, None)


def test_gpu_hours_of_a_week(machine):
    up = machine("--jobs.user-gpu-hours", 0.0005)  # 1.8 s
    first = submit(up, "--", "sleep", 3, user=ADA)
    state(up, first, "done")
    second, other = submit(up, "--", "true", user=ADA), submit(up, "--", "true", user=BOB)
    state(up, other, "done")
    assert "has used the 0.0005 GPU hours of this week" in wait_for(lambda: job(up, second)["why"], "why it waits")


@pytest.mark.parametrize("hours, kept", [(48, True), (1, False)])
def test_how_long_before_a_reservation_keeps_jobs_off(machine, hours, kept):
    up = machine("--reserve.ahead-h", hours)
    made = gpumgr(up, "reserve", "--gpus", 2, "--from", "tomorrow 23:59", "--for", "1h", "--user", "games")
    assert made.returncode == 0, made.stderr
    number = submit(up, "--", "sleep", 600, user=ADA)
    if kept:
        assert "reserved" in wait_for(lambda: job(up, number)["why"], "why it waits")
    else:
        state(up, number, "running")


def test_how_much_of_a_log_is_kept(machine):
    up = machine("--jobs.log-max-mb", 1)
    number = submit(up, "--", "sh", "-c", "yes 0123456789abcdef | head -c 3000000")
    state(up, number, "done")
    said = gpumgr(up, "logs", number).stdout
    assert 900_000 < len(said) < 1_200_000 and "of the log are not kept" in said


@pytest.mark.parametrize("flags, why", [(("--tasks.full-percent", 1), "memory"), (("--tasks.busy-percent", 1), "busy")])
def test_when_a_machine_has_nothing_to_give(machine, flags, why):
    up = machine(*flags)
    place = lambda: api(up, "nodes")[1]["nodes"][0]["placement"]
    wait_for(lambda: place()["is_provisionable"], "it has everything to give")
    for gpu in (0, 1):
        up.sim.task("--gpu", gpu, "--memory", "30G", "--demand", "50%", "--forever")
    wait_for(lambda: not place()["is_provisionable"], "it has nothing to give")
    assert why in place()["why_not"], place()
