"""A job is handed in once, however often its answer gets lost; several that come together are taken whole or not at all."""

import json
import os
import threading

import pytest

from instance import clean_env, kill
from job_box import api, box, gpumgr, idle, queue, spawn, submit
from simulator import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the box has a system's instance")


def numbers(box):
    return [j["id"] for j in api(box, "jobs?limit=1000")[1]["jobs"]]


def test_a_command_that_lost_the_answer_asks_again(box):
    """Kills of node and server while 25 are handed in one by one: each comes exactly once."""
    over = threading.Event()

    def killer():
        while not over.wait(0.4):
            for program in ("server", "node"):
                for pid in box.of_program(program):
                    kill(pid)
                over.wait(0.6)
    before = set(numbers(box))
    t = threading.Thread(target=killer)
    t.start()
    got = []
    try:
        for k in range(25):
            p = spawn(box, "submit", "--name", f"once-{k}", "--gpus", 2, "--", "true")
            out, err = p.communicate(timeout=150)
            if p.returncode == 0:
                got.append((k, int(out)))
            else:
                assert "no gpumgr runs here" in err or "nothing was taken" in err, err  # the node was not there when it began
    finally:
        over.set()
        t.join()
    wait_for(lambda: gpumgr(box, "jobs").returncode == 0, "the server is back", 60)
    assert len(got) >= 5
    jobs = [j for j in api(box, "jobs?limit=1000")[1]["jobs"] if j["id"] not in before]
    names = [j["name"] for j in jobs]
    assert len(set(names)) == len(names), "one came twice"
    assert {f"once-{k}" for k, _ in got} <= set(names)
    assert all(next(j for j in jobs if j["id"] == n)["name"] == f"once-{k}" for k, n in got)


def test_many_are_taken_whole(box, tmp_path):
    """A thousand jobs, each with an environment of 40 KiB: ten times what a frame holds."""
    path = tmp_path / "many.json"
    path.write_text(json.dumps([{"command": ["true"], "gpus": 2, "name": f"m{k}"} for k in range(1000)]))
    hold = submit(box, "--gpus", 2, "--", "sleep", 1000)
    got = gpumgr(box, "submit", "--json", "--file", path, env=clean_env(HOME="/tmp", GPUSIM_DIR=box.sim.dir, LARGE="x" * 40000))
    assert got.returncode == 0, got.stderr
    said = json.loads(got.stdout)
    assert said["count"] == 1000
    assert queue(box)["waiting_count"] == 1000
    names = {j["id"]: j["name"] for j in api(box, f"jobs?limit=1000&before={said['id'] + 1000}")[1]["jobs"]}
    assert [names[said["id"] + k] for k in range(1000)] == [f"m{k}" for k in range(1000)], "in order, without a gap"
    for k in range(1000):
        assert api(box, f"jobs/{said['id'] + k}", "DELETE")[0] in (200, 202)
    gpumgr(box, "cancel", hold)


@pytest.mark.parametrize("bad, words", [
    (lambda jobs: jobs + [{"command": ["true"], "gpus": 9}], "job 1501 of 1501"),
    (lambda jobs: jobs * 3, "4096 can be handed in at once"),
])
def test_or_not_at_all(box, tmp_path, bad, words):
    path = tmp_path / "many.json"
    path.write_text(json.dumps(bad([{"command": ["true"], "gpus": 2}] * 1500)))
    before = numbers(box)
    got = gpumgr(box, "submit", "--file", path, env=clean_env(HOME="/tmp", LARGE="x" * 20000))
    assert got.returncode != 0 and words in got.stderr, got.stderr
    assert numbers(box) == before, "nothing was taken"
