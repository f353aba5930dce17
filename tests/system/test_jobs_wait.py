"""Waiting for jobs: the server answers when something has changed, and whoever waits hears of every end, whoever is killed meanwhile."""

import os
import random
import threading
import time

import pytest

from instance import kill
from job_box import api, box, gpumgr, idle, job, spawn, state, submit
from simulator import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the box has a system's instance")


class Asking(threading.Thread):
    """A question that the server may keep back."""

    def __init__(self, box, path):
        super().__init__()
        self.box, self.path, self.answer = box, path, None
        self.start()

    def run(self):
        try:
            self.answer = api(self.box, self.path)
        except OSError as e:
            self.answer = e

    def result(self, seconds=30):
        self.join(seconds)
        assert self.answer is not None, "no answer came"
        return self.answer


def test_the_answer_comes_when_the_stage_has_changed(box):
    number = submit(box, "--gpus", 2, "--", "sleep", 1000)
    got = state(box, number, "running")
    begin = time.monotonic()
    status, same = api(box, f"jobs/{number}?wait=1&stage={got['stage']}")
    assert status == 200 and same["stage"] == got["stage"] and time.monotonic() - begin >= 0.9, "nothing happened: it was kept back"
    waiting = submit(box, "--", "sleep", 1000)
    before = state(box, waiting, "waiting")["stage"]
    ask = Asking(box, f"jobs/{waiting}?wait=60&stage={before}")
    assert gpumgr(box, "hold", waiting).returncode == 0
    status, held = ask.result(50)
    assert status == 200 and held["state"] == "held" and held["stage"] != before
    status, again = api(box, f"jobs/{waiting}?wait=60&stage={before}")
    assert again["stage"] == held["stage"], "who has missed something is told at once"
    ask = Asking(box, f"jobs/{number}?wait=60&stage={got['stage']}")
    gpumgr(box, "cancel", number)
    status, after = ask.result(50)
    assert after["state"] in ("ending", "cancelled")
    over = state(box, number, "cancelled")
    begin = time.monotonic()
    assert api(box, f"jobs/{number}?wait=60&stage={over['stage']}")[1]["state"] == "cancelled" and time.monotonic() - begin < 30


@pytest.mark.parametrize("query, status, words", [
    ("wait=5", 400, "stage"), ("wait=61&stage=x", 400, "wait"), ("wait=x&stage=x", 400, "wait"), ("wait=5&stage=x", 200, ""),
])
def test_what_makes_no_sense_is_said(box, query, status, words):
    number = submit(box, "--", "sleep", 1000)
    got = api(box, f"jobs/{number}?{query}")
    assert got[0] == status and words in str(got[1])
    assert api(box, "jobs/999999?wait=5&stage=x")[0] == 404


def test_a_server_that_ends_answers_whoever_waits(box):
    number = submit(box, "--", "sleep", 1000)
    got = state(box, number, "running")
    asks = [Asking(box, f"jobs/{number}?wait=60&stage={got['stage']}") for _ in range(5)]
    pid = box.of_program("server")[0]
    os.kill(pid, 15)
    for a in asks:
        assert isinstance(a.result(40), OSError) or a.answer[1]["stage"] == got["stage"]
    wait_for(lambda: box.of_program("server") not in ([], [pid]), "another server", 60)
    wait_for(lambda: gpumgr(box, "jobs", number).returncode == 0, "it answers", 60)


def test_fifteen_jobs_are_waited_for_through_kills(box):
    rng = random.Random(6)
    numbers = [submit(box, "--gpus", rng.choice((1, 1, 2)), "--", "sh", "-c", f"sleep 0.{k % 4}; exit {3 if k == 11 else 0}") for k in range(15)]
    p = spawn(box, "wait", *numbers)
    for program in ("server", "node", "server"):
        kill(wait_for(lambda: box.of_program(program), program, 60)[0])
        wait_for(lambda: gpumgr(box, "jobs", numbers[0]).returncode == 0, "the server is back", 60)
    out, err = p.communicate(timeout=120)
    assert p.returncode == 3, err
    for n in numbers:
        assert f"job {n}: " in err and job(box, n)["state"] == ("failed" if n == numbers[11] else "done")


def test_patience_has_an_end(box):
    number = submit(box, "--", "sleep", 1000)
    begin = time.monotonic()
    assert gpumgr(box, "wait", number, "--timeout", "2s").returncode == 124
    assert time.monotonic() - begin >= 1.9
