"""What a job uses, told while it runs: it grows, it never goes back, whoever is killed, and the end agrees with it."""

import os
import re

import pytest

from instance import BUILD, clean_env, kill
from job_box import box, gpumgr, idle, job, state, submit
from simulator import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the box has a system's instance")

GROW = ("gpu_seconds", "energy_joules", "cpu_seconds", "memory_peak_bytes", "disk_written_bytes", "log_bytes")
TASK = f"{BUILD}/sim/gpusim-task"


def figures(box, number, before, fact, what):
    """Waits for a fact about the job, and sees that nothing goes back on the way there."""
    def look():
        got = job(box, number)
        for key in GROW:
            if got["state"] == "running" and before.get(key) is not None:
                assert got[key] is None or got[key] >= before[key], f"{key} went back from {before[key]} to {got[key]}"
            if got[key] is not None:
                before[key] = got[key]
        return fact(got) and got
    return wait_for(look, what, 60)


def test_figures_are_told_while_it_runs_and_never_go_back(box, tmp_path):
    script = (f"{TASK} --quiet --memory 4G --forever & echo here; "
              f"dd if=/dev/zero of={tmp_path}/x bs=1M count=8 conv=fsync 2>/dev/null; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; wait")
    number, seen = submit(box, "--", "sh", "-c", script), {}
    state(box, number, "running")
    first = figures(box, number, seen, lambda j: j["gpu_seconds"] and j["gpu_seconds"] > 1 and j["cpu_seconds"], "its first figures")
    assert first["memory_now_bytes"] >= 4 << 30 and first["memory_peak_bytes"] >= first["memory_now_bytes"]
    assert 0 < first["gpu_utilization_ratio"] <= 1 and first["energy_joules"] > 0
    assert first["host_now_bytes"] > 0 and first["disk_read_bytes"] is not None and first["ended"] is None
    for program in ("node", "server"):
        kill(box.of_program(program)[0])
        at = seen["gpu_seconds"]
        figures(box, number, seen, lambda j: j["state"] == "running" and j["gpu_seconds"] and j["gpu_seconds"] > at + 2,
                f"figures that grow after the {program} was killed") if program == "node" else wait_for(
            lambda: gpumgr(box, "jobs", number).returncode == 0, "the server to be back", 60)
    figures(box, number, seen, lambda j: j["gpu_seconds"] and j["gpu_seconds"] > at + 4, "figures from the new server")
    text = gpumgr(box, "jobs", number, env=clean_env(COLUMNS="80")).stdout
    assert re.search(r"^GPU busy +\d+%: .* of GPU time in ", text, re.M) and re.search(r"^GPU memory +4\.\d+ ?GiB now, ", text, re.M), text
    assert re.search(r"^CPU busy +\d+% of one core: ", text, re.M) and re.search(r"^disk +.* read, .* written$", text, re.M), text
    last = job(box, number)
    gpumgr(box, "cancel", number)
    end = state(box, number, "cancelled")
    for key in ("gpu_seconds", "energy_joules", "cpu_seconds", "memory_peak_bytes", "log_bytes"):
        assert end[key] >= last[key], key
    took = end["ended"] - end["started"]
    assert end["gpu_seconds"] <= took * 1.02 + 1, "nothing was counted twice"
    assert end["memory_now_bytes"] is None and end["disk_read_bytes"] is None


@pytest.mark.long
def test_a_job_that_leaves_its_gpu_alone_is_told_so_while_it_runs(box):
    number = submit(box, "--", "sleep", 1000)
    got = wait_for(lambda: (j := job(box, number))["insight"] and j, "an insight", 120)
    assert got["state"] == "running" and got["insight"] == "GPU 0 % busy: it is held and not used"
