"""A day of a machine on a clock that is set, and `gpumgr simulate` of what its server remembers of it: the replay under the policy that
was set begins jobs when the queue did. Shares, users' limits, arrays, followers, deadlines, retries and reservations are in it."""

import heapq
import itertools
import json
import random
import subprocess

import pytest

from instance import GPUMGR, clean_env
from job_node import ENDED, GIB, RUNNING, JobNode, job_record
from server import Server
from set_clock import Clock, at
from simulator import wait_for

NS = 10**9
MINUTE, HOUR = 60, 3600
USERS = {"ada": 1001, "bob": 1002, "cyd": 1003}
DAWN = at("2026-03-02T00:00:00Z")
PASSING = ("it starts now", "it failed, and is tried again in a moment")
APART_S = 60  # the replay's error: of a queue that is asked to do all at once, on a machine that is busy with other tests


class Day:
    """One machine with four GPUs of 80 GiB, and what people do there."""

    def __init__(self, path, **settings):
        self.clock = Clock(path / "clock", DAWN)
        self.server = Server(clock=self.clock, **settings)
        self.node = JobNode(self.server.dir / "run/server/link.sock", memory=80 * GIB, now_ns=lambda: int(self.clock.now() * NS))
        self.events, self.order, self.minutes, self.known, self.failing, self.waiting = [], itertools.count(), {}, set(), {}, 0

    def close(self):
        self.node.close()
        self.server.__exit__()

    def then(self, when, what):
        heapq.heappush(self.events, (when, next(self.order), what))

    def submit(self, user, minutes, fails=0, **spec):
        """minutes: of one run. fails: so many attempts go wrong first."""
        got = self.node.submit(job_record(("train",), **spec), uid=USERS[user], user=user)
        assert got["result"] == 0, got
        self.minutes[got["first"]], self.failing[got["first"]] = minutes, fails
        return got["first"]

    def look(self):
        """What was granted since the last look ends in its own time."""
        with self.node.books.lock:
            fresh = [(k, r) for k, r in self.node.books.runs.items() if k not in self.known and r["state"] == RUNNING]
        for k, run in fresh:
            self.known.add(k)
            code = 1 if k[2] <= self.failing[k[0]] else 0
            self.then(run["start"] / NS + self.minutes[k[0]] * MINUTE, lambda k=k, code=code: self.node.finish(k, code))

    def is_settled(self):
        """Whoever can start runs, as the node's books have it, and what has ended is stored."""
        queue = self.server.unix("GET", "/api/v1/queue").json
        self.waiting = len(queue["waiting"])
        with self.node.books.lock:
            open_ends = [k for k, r in self.node.books.runs.items() if r["state"] == ENDED and not r["stored"]]
        return (not open_ends and all(j["why"] and j["why"] not in PASSING and not j.get("elements", {}).get("held") for j in queue["waiting"])
                and all(j["state"] == "running" for j in queue["running"]))

    def live(self):
        """From event to event; while somebody waits, from minute to minute: time alone may let him start."""
        while self.events:
            when, what = self.events[0][0], None
            if self.waiting and when > self.clock.now() + MINUTE:
                when = self.clock.now() + MINUTE
            else:
                what = heapq.heappop(self.events)[2]
            if when > self.clock.now():
                self.clock.set(when)
            if what:
                what()
            wait_for(self.is_settled, "all is decided", 60)
            self.look()


def simulate(day, *args):
    out = subprocess.run([str(GPUMGR), "simulate", "--dir", str(day.server.dir), *map(str, args)], capture_output=True, text=True,
                         env=clean_env(), timeout=120)
    assert out.returncode == 0, out.stderr
    return out.stdout


KINDS = [dict(), dict(), dict(gpus=2), dict(gpus=3), dict(share=20 * GIB), dict(share=40 * GIB), dict(memory=60 * GIB), dict(scope=("2",))]


def a_day_of_work(day, r, jobs):
    """Every sort of job; some follow one that was handed in before."""
    handed_in = []

    def come(user, minutes, fails, spec):
        if handed_in and r.random() < 0.1:
            spec["after"] = (str(r.choice(handed_in)),)
        handed_in.append(day.submit(user, minutes, fails, **spec))

    for _ in range(jobs):
        user, minutes, when = r.choice(list(USERS)), r.choice([7, 12, 25, 40, 70]), DAWN + r.randint(0, 20 * HOUR)
        spec = dict(r.choice(KINDS), name=f"{user}-{minutes}", priority=r.choice([0, 0, 0, 5]))
        if r.random() < 0.6:
            spec["limit_ns"] = minutes * 2 * MINUTE * NS
        if r.random() < 0.15:
            spec["array"] = "1-5%2"
        if r.random() < 0.2:
            spec["finish_by_ns"] = (when + r.choice([3, 6]) * HOUR) * NS
        fails = r.random() < 0.05
        if fails:
            spec["retries"] = 1
        day.then(when, lambda *a, user=user, minutes=minutes, fails=fails, spec=spec: come(user, minutes, fails, spec))


def reserve(day, user, gpus, hour, hours):
    got = day.server.unix("POST", "/api/v1/reservations", {"from": DAWN + hour * HOUR, "for_s": hours * HOUR, "user": user, "gpus": gpus})
    assert got.status == 201, got.body


DAYS = {
    "fair": (dict(jobs__policy="fair"), 70),
    "limits": (dict(jobs__policy="fair", jobs__user_gpus=3, jobs__user_gpu_hours=24), 60),
    "reserved": (dict(jobs__policy="backfill", reserve__unused_min=30), 60),
}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", DAYS)
def test_a_replay_of_a_day_begins_jobs_when_the_queue_did(tmp_path, name):
    settings, jobs = DAYS[name]
    day = Day(tmp_path, **settings)
    try:
        keys = {k.replace("__", "."): v for k, v in settings.items()}
        (day.server.dir / "gpumgr.json").write_text(json.dumps(keys))  # what a machine is set to counts without a word
        if name == "reserved":
            reserve(day, "bob", 2, 6, 5)
            reserve(day, "eve", 2, 9, 5)  # who never comes
            reserve(day, "ada", 1, 15, 3)
        a_day_of_work(day, random.Random(name), jobs)
        day.live()
        runs = len(day.node.books.starts)
        got = json.loads(simulate(day, "--json"))
        assert got["left_out"] == got["left_out_by"]["waiting"] and bool(day.waiting) == bool(got["left_out"]), got["left_out_by"]
        assert got["jobs"] == runs and got["shares"] > 10 and got["policy_set"] == settings["jobs__policy"]
        assert got["as_it_was"]["wait_s"]["mean"] > 600, "nobody had to wait: this shows nothing"
        assert got["apart_s"]["median"] <= 5 and got["apart_s"]["p90"] <= APART_S, got["apart_s"]
        replay, = [p for p in got["policies"] if p["policy"] == got["policy_set"]]
        assert replay["wait_s"]["mean"] == pytest.approx(got["as_it_was"]["wait_s"]["mean"], rel=0.05)
        assert got["reservations"] == (3 if name == "reserved" else 0) and got["reservations_not_played"] == 0
        text = simulate(day)
        assert all(len(line) <= 80 for line in text.splitlines()), text
        assert "as it was" in text and f"{got['policy_set']} is set here" in text
        if name == "limits":
            assert "a user has 3 GPUs at once at most (jobs.user_gpus)" in text and "24 GPU hours in seven days" in text
            free = json.loads(simulate(day, "--json", "--jobs.user_gpus", 0, "--jobs.user_gpu_hours", 0))
            assert free["apart_s"]["p90"] > APART_S, "the limits made no difference: this shows nothing"
        if name == "reserved":
            assert "3 reservations" in text
        elsewhere = json.loads(simulate(day, "--json", "--nodes", 2, "--gpus-per-node", 8))
        assert elsewhere["jobs"] == runs and elsewhere["elsewhere"] > 0
        assert elsewhere["reservations_not_played"] == got["reservations"]
        if name != "limits":  # of whom hours are counted, more GPUs make none
            assert elsewhere["policies"][0]["wait_s"]["mean"] < replay["wait_s"]["mean"]
    finally:
        day.close()
