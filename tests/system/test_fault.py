"""A GPU with a fault is not given away, says why, and comes back when it is cured: the real program on simulated GPUs."""

import os

import pytest

from job_box import gpumgr, queue, state, submit, verdicts
from simulator import wait_for
from test_outside import LONG, machine

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="as the other tests of whole machines")


def gpu(box, index=0):
    return queue(box)["gpus"][index]


def is_kept_back(box, words):
    return wait_for(lambda: (g := gpu(box))["verdict"] == "unhealthy" and words in g["verdict_text"] and g, f"it is kept back: {words}", LONG)


def is_back(box):
    wait_for(lambda: verdicts(box) == ["free"], "it is given away again", LONG)


def test_kept_back_and_cured(place):
    """By the driver that is loaded anew, or by an operator; another fault after that counts again. A server that was started anew knows
    what the operator said."""
    with machine(place, gpus=1) as box:
        box.sim.say("fault 0 xid 48")
        is_kept_back(box, "has a fault, XID 48 (double bit memory error): drain the GPU and reset it")
        job = submit(box, "--gpu", "0", "--", "true")
        waiting = wait_for(lambda: queue(box)["waiting"], "it waits", LONG)[0]
        assert "GPU 0 has a fault, XID 48" in waiting["why"], waiting
        assert "XID 48" in " ".join(gpumgr(box, "queue").stdout.split())

        box.sim.say("fault 0 driver-reload 3")
        is_back(box)
        state(box, job, "done")

        box.sim.say("fault 0 xid 95")
        is_kept_back(box, "XID 95")
        assert gpumgr(box, "queue", "uncordon", "0").returncode == 0
        is_back(box)
        server = box.of_program("server")[0]
        os.kill(server, 9)
        wait_for(lambda: [p for p in box.of_program("server") if p != server], "another server", LONG)
        wait_for(lambda: gpumgr(box, "queue", "--json").returncode == 0, "it answers", LONG)
        is_back(box)
        node = box.of_program("node")[0]
        os.kill(node, 9)
        wait_for(lambda: [p for p in box.of_program("node") if p != node], "another node", LONG)
        is_back(box)
        state(box, submit(box, "--", "true"), "done")

        box.sim.say("fault 0 xid 95")
        is_kept_back(box, "XID 95")


def test_a_programs_fault_keeps_nothing_back(place):
    with machine(place, gpus=1) as box:
        box.sim.say("fault 0 xid 31")
        wait_for(lambda: gpumgr(box, "status", "--json").stdout.count('"xid'), "it is counted", LONG)
        state(box, submit(box, "--", "true"), "done")
        assert gpu(box)["verdict"] == "free"
