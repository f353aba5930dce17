"""A job on a GPU that it was not given: named, told of, not credited, and ended where the operator wants that."""

import os

import pytest

from desk import Desk
from job_box import ADA, BOB, gpumgr, job, queue, state, submit, verdicts
from simulator import BUILD, wait_for
from test_outside import LONG, events, machine

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="jobs of several users need root")


def stray(box, given, used):
    """A job of Ada's that uses another GPU than its own."""
    task = BUILD / "sim/gpusim-task"
    return submit(box, "--name", "lost", "--gpu", given, "--", task, "--gpu", used, "--memory", "4G", "--forever", "--dir", box.sim.dir, user=ADA)


def test_named_told_of_and_not_credited(place):
    with machine(place) as box, Desk(ADA) as ada, Desk(BOB) as bob:
        number = stray(box, 0, 1)
        g = wait_for(lambda: (g := queue(box)["gpus"][1])["verdict"] == "stray" and g, "it is seen", LONG)
        assert f"is used by job {number}" in g["verdict_text"] and "which was not given it" in g["verdict_text"] and g["pid"]
        later = submit(box, "--gpu", "1", "--", "true", user=BOB)
        waiting = wait_for(lambda: [w for w in queue(box)["waiting"] if w["id"] == later], "the other waits", LONG)[0]
        assert f"GPU 1 is used by job {number}" in waiting["why"]
        wait_for(lambda: f"your job {number} (lost) uses GPU 1, which it was not given" in ada.text(), "its owner is told", LONG)
        told = wait_for(lambda: events(box, "job_stray"), "an event", LONG)
        assert [e["text"] for e in told] == [f"job {number} (lost) uses GPU 1, which it was not given"]
        assert state(box, number, "running") and bob.text() == "" and ada.text().count("\a") == 1

        gpumgr(box, "cancel", number)
        ended = state(box, number, "cancelled")
        assert not ended["gpu_seconds"] and not ended["energy_joules"], "it did nothing with its own GPU"
        state(box, later, "done")


def test_ended_by_policy(place):
    with machine(place, "--jobs.stray", "end", "--jobs.stray-end-s", "5", "--jobs.grace-s", "1") as box:
        good = submit(box, "--gpu", "0", "--share", "8GiB", "--", "sleep", "1000", user=BOB)
        number = stray(box, 1, 0)
        got = state(box, number, "failed")
        assert got["reason"] == "used a GPU that it was not given", got
        assert state(box, good, "running"), "whoever has it keeps it"
        wait_for(lambda: [e for e in events(box, "job_stray") if "was ended" in e["text"]], "an event", LONG)
        gpumgr(box, "cancel", good)
        state(box, good, "cancelled")
        wait_for(lambda: verdicts(box) == ["free", "free"], "both are free", LONG)
