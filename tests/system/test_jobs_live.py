"""What a job uses, told while it runs: it grows, it never goes back, whoever is killed, and the end agrees with it."""

import os
import re

import pytest

from instance import BUILD, clean_env, kill
from job_box import api, box, gpumgr, idle, job, queue, state, submit
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


def curves(box, number, query=""):
    status, got = api(box, f"jobs/{number}/curves{query}")
    assert status == 200, got
    columns = ("time", "cpu_cores", "memory_bytes", "disk_read_bytes_per_second", "disk_written_bytes_per_second")
    assert len({len(got[c]) for c in columns}) == 1 and got["time"] == sorted(got["time"]), got
    return got


def spent(got, column):
    """What a rate adds up to: each counts for the time before it, since the run began."""
    before = [got["started"], *got["time"]]
    return sum((rate or 0) * (at - last) for at, last, rate in zip(got["time"], before, got[column]))


def test_a_job_has_its_own_curves_whoever_is_killed_and_after_its_end(box, tmp_path):
    script = f"dd if=/dev/zero of={tmp_path}/y bs=1M count=24 conv=fsync 2>/dev/null; while [ ! -e {tmp_path}/stop ]; do :; done; sleep 1"
    number = submit(box, "--gpus", "1", "--", "sh", "-c", script)
    state(box, number, "running")
    def cpu(at_least):
        return wait_for(lambda: (c := curves(box, number))["time"] and spent(c, "cpu_cores") >= at_least and c, f"{at_least} s of CPU in its curve", 120)
    before = cpu(0.5)
    assert before["ended"] is None and before["step_s"] == 2
    for program in ("node", "server"):
        kill(box.of_program(program)[0])
        wait_for(lambda: gpumgr(box, "jobs", number).returncode == 0, "the server is back", 60)
        before = cpu(spent(before, "cpu_cores") + 1)
    (tmp_path / "stop").touch()
    end = state(box, number, "done")
    after = curves(box, number)
    assert after["ended"] == end["ended"] and after["attempt"] == end["attempt"] and abs(after["started"] - end["started"]) < 0.01
    assert abs(after["time"][-1] - end["ended"]) < 0.01, "it goes to the very end"
    assert abs(spent(after, "cpu_cores") - end["cpu_seconds"]) < 0.1, "no CPU time is lost or there twice"
    assert spent(after, "disk_written_bytes_per_second") >= 20 << 20
    assert max(m for m in after["memory_bytes"] if m is not None) > 0
    assert api(box, f"jobs/{number}/curves?attempt=9")[1]["time"] == []
    status, said = api(box, "jobs/999999/curves")
    assert status == 404 and "there is no job 999999" in said["error"]["message"]


def test_elements_have_curves_of_their_own(box):
    number = submit(box, "--array", "3-4", "--", "sh", "-c", "while :; do :; done")
    for element in (3, 4):
        wait_for(lambda: curves(box, number, f"?element={element}")["time"], f"a curve of element {element}", 60)
    status, said = api(box, f"jobs/{number}/curves")
    assert status == 400 and said["error"]["message"] == f"element: job {number} has 2, say of which"
    status, said = api(box, f"jobs/{number}/curves?element=5")
    assert status == 404 and said["error"]["message"] == f"job {number} has no element 5"


def test_who_held_a_gpu_and_when(box):
    uuid = queue(box)["gpus"][0]["uuid"]
    ended = submit(box, "--gpu", "0", "--name", "early", "--", "sleep", "0.2")
    over = state(box, ended, "done")
    goes_on = submit(box, "--gpu", "0", "--name", "late", "--", "sleep", "1000")
    began = state(box, goes_on, "running")
    status, got = api(box, f"gpus/{uuid}/jobs")
    assert status == 200 and got["is_whole"]
    rows = {j["id"]: j for j in got["jobs"]}
    assert [j["id"] for j in got["jobs"]][:2] == [goes_on, ended], "what goes on, then the newest"
    assert rows[ended]["name"] == "early" and rows[ended]["state"] == "done" and rows[ended]["ended"] == over["ended"]
    assert rows[ended]["user"] == "root" and rows[goes_on]["ended"] is None and rows[goes_on]["started"] == began["started"]
    before = api(box, f"gpus/{uuid}/jobs?from={over['started'] - 3600}&to={over['ended']}")[1]["jobs"]
    assert goes_on not in [j["id"] for j in before] and ended in [j["id"] for j in before]
    other = queue(box)["gpus"][1]["uuid"]
    assert not {ended, goes_on} & {j["id"] for j in api(box, f"gpus/{other}/jobs")[1]["jobs"]}
    assert api(box, f"gpus/{uuid}/jobs?limit=1&to={over['ended'] + 0.01}")[1]["jobs"][0]["id"] == ended
    status, said = api(box, f"gpus/{uuid}/jobs?from=-10&to=-20")
    assert status == 400 and said["error"]["message"] == "from: must be before to"
