"""Random histories of the real server: people hand in, cancel, hold and let go, jobs end as they like, GPUs are taken by others,
the link breaks, the server is killed; what must never happen is looked for all along, and at the end everything adds up."""

import random
import threading

import pytest

from job_node import (BY_ITSELF, BY_REBOOT, BY_SHIM, CANCEL, ENDED, HOLD, IS_FOREIGN, IS_FREE, RELEASE, RUNNING, Books, JobNode, job_record)
from server import Server
from simulator import wait_for

STEPS, GPUS = 160, 4


class History:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.books = Books()
        self.server = Server()
        self.link = self.server.dir / "run/server/link.sock"
        self.node = JobNode(self.link, self.books, gpus=GPUS)
        self.jobs = {}  # those that were acknowledged: number -> what was asked for
        self.cancelled, self.held = set(), set()
        self.kills = 0

    def close(self):
        self.node.close()
        self.server.__exit__()

    # ---- what happens ----

    def spec(self):
        r = self.r
        spec = {"gpus": r.choice([1, 1, 1, 2, 2, 3, 4]), "retries": r.choice([0, 0, 0, 1, 2]), "priority": r.choice([0, 0, -5, 5])}
        if r.random() < 0.2:
            spec["array"] = r.choice(["1-3", "1-6%2", "5,7"])
        if r.random() < 0.2 and self.jobs:
            spec["after"] = (f"{r.choice(sorted(self.jobs))}:any",)
        if r.random() < 0.2:
            spec["scope"] = tuple(str(i) for i in sorted(r.sample(range(GPUS), max(spec["gpus"], 2))))
        return spec

    def submit(self):
        specs = [self.spec() for _ in range(self.r.choice([1, 1, 1, 4]))]
        answer = self.node.submit(*[job_record(("hold",), **s) for s in specs])
        if answer["result"] == 0:
            self.jobs.update({answer["first"] + i: s for i, s in enumerate(specs)})
        else:
            assert "after: " in answer["text"] or "scope: " in answer["text"], answer

    def running(self):
        with self.books.lock:
            return sorted(k for k, run in self.books.runs.items() if run["state"] == RUNNING)

    def finish(self):
        runs = self.running()
        if runs:
            k, how = self.r.choice(runs), self.r.random()
            if how < 0.1:
                self.node.finish(k, None, self.r.choice([BY_SHIM, BY_REBOOT]), has_exit=False)
            elif how < 0.2:
                self.node.finish(k, None, BY_ITSELF, signal=9)
            else:
                self.node.finish(k, self.r.choice([0, 0, 0, 1, 42]))

    def cancel(self):
        if self.jobs:
            job = self.r.choice(sorted(self.jobs))
            if self.node.control(CANCEL, job)["result"] == 0:
                self.cancelled.add(job)

    def hold(self):
        if self.jobs:
            job = self.r.choice(sorted(self.jobs))
            if self.node.control(HOLD, job)["result"] == 0:
                self.held.add(job)

    def release(self):
        if self.held:
            job = self.r.choice(sorted(self.held))
            self.node.control(RELEASE, job)
            self.held.discard(job)

    def other(self):
        self.node.free(self.r.randrange(GPUS), *self.r.choice([(IS_FREE, ""), (IS_FREE, ""), (IS_FOREIGN, "mallory")]))

    def cut(self):
        verdict = self.node.verdict
        self.node.close()
        self.node = JobNode(self.link, self.books, gpus=GPUS)
        self.node.verdict = verdict
        self.node.free()

    def kill(self):
        """At any point of what is under way: requests that nobody waits for, then the end."""
        self.kills += 1
        for _ in range(self.r.randrange(4)):
            self.node.submit_soon([job_record(("hold",), **{**self.spec(), "after": ()})])
        for k in self.running()[:self.r.randrange(3)]:
            self.node.finish(k, 0)
        threading.Event().wait(self.r.random() * 0.003)
        self.server.stop(kill=True)
        self.node.close()
        self.server.start()
        verdict = self.node.verdict
        self.node = JobNode(self.link, self.books, gpus=GPUS)
        self.node.verdict = verdict
        self.node.free()

    # ---- what must never be ----

    def check(self):
        with self.books.lock:
            runs = {k: dict(run) for k, run in self.books.runs.items()}
            starts = list(self.books.starts)
        assert len(starts) == len(set(starts)), "a run was started twice"
        held = [g for run in runs.values() if run["state"] == RUNNING for g in run["gpus"]]
        assert len(held) == len(set(held)), "a GPU was given twice"
        elements = [k[:2] for k, run in runs.items() if run["state"] == RUNNING]
        assert len(elements) == len(set(elements)), "an element runs twice"
        for k in starts:
            if k[0] in self.jobs:
                assert k[2] <= self.jobs[k[0]]["retries"] + 1, f"{k}: more attempts than were asked for"
                assert len(runs[k].get("gpus", [])) in (0, self.jobs[k[0]]["gpus"])

    def let_all_end(self):
        for i in range(GPUS):
            self.node.free(i, IS_FREE)
        for job in sorted(self.held):
            self.node.control(RELEASE, job)

        def over():
            for k in self.running():
                self.node.finish(k, 0)
            return not self.server.unix("GET", "/api/v1/jobs?state=open&limit=1").json["jobs"]
        try:
            wait_for(over, "every job is over", 30)
        except AssertionError:
            left = self.server.unix("GET", "/api/v1/jobs?state=open").json["jobs"]
            raise AssertionError([(j["id"], j["state"], j["why"], j["elements"] if "elements" in j else "", j["attempt"], j["gpu_indices"]) for j in left])

    def add_up(self):
        """What the server says of each run is what happened."""
        for job in sorted(self.jobs):
            told = self.server.unix("GET", f"/api/v1/jobs/{job}").json
            assert told["state"] in ("done", "failed", "cancelled", "exit unknown"), told
            by_key = {}
            for run in told["runs"]:
                if run["gpu_uuids"]:
                    by_key.setdefault(run["element"] or 0, []).append(run)
            with self.books.lock:
                mine = {k: dict(r) for k, r in self.books.runs.items() if k[0] == job and r.get("start")}
            assert sum(len(v) for v in by_key.values()) >= len(mine), f"{job}: a run is missing"
            codes = [(r["attempt"], r["exit_code"], r["signal"]) for rs in by_key.values() for r in rs if r["started"]]
            true = [(k[2], r["code"] if r["has_exit"] and not r["signal"] else None, r["signal"] or None) for k, r in mine.items()]
            assert sorted(codes, key=str) == sorted(true, key=str), f"job {job}: {codes} is told, {true} happened"
            if job not in self.cancelled and told["state"] == "cancelled":
                raise AssertionError(f"job {job} was cancelled by nobody")


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_done_twice(seed):
    h = History(seed)
    acts = [(h.submit, 30), (h.finish, 34), (h.cancel, 6), (h.hold, 4), (h.release, 6), (h.other, 8), (h.cut, 6), (h.kill, 5)]
    try:
        for _ in range(STEPS):
            h.r.choices([a for a, _ in acts], [w for _, w in acts])[0]()
            h.check()
        h.let_all_end()
        h.check()
        h.add_up()
        assert h.jobs and h.kills
    finally:
        h.close()
