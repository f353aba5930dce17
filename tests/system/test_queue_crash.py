"""The server is killed at every numbered step of its way (base/crash_point.h), one after the other, while people hand in jobs of all
kinds, services, repeats and reservations: the story goes on with another one, and at the end all of it adds up."""

import errno
import math
import os
import random
import time

import pytest

from job_node import CANCEL, ENDED, RUNNING, job_record, repeat_record, service_record
from mortal import Place, sites
from set_clock import Clock, at
from simulator import wait_for
from test_notices import Receiver

pytestmark = pytest.mark.timeout(900)

START = at("2026-05-05T12:00:30Z")
PARTS = 2  # that may run beside each other
ROUNDS_MOST = 60
AT_A_TIME = 6
PASSES = (1, 2)  # of each place; a system call comes up more often
CALLS = {"write": (1, 5), "writev": (1, 2, 3, 5, 8), "pwrite": (1, 2, 3, 5, 8, 13, 21), "fdatasync": (1, 2, 3), "ftruncate": (1,), "open": (1, 2),
         "sendmsg": (1, 2, 3, 5, 8), "unlink": (1,), "epoll_ctl": (1, 4), "rename": (1,), "fsync": (1,)}


class Story(Place):
    """A town: what people want of it in one round is wanted again in the next, while its server dies where it is told to."""

    def __init__(self, path, seed, targets):
        path.chmod(0o777)
        self.clock = Clock(path / "clock", START)
        self.r = random.Random(seed)
        self.targets, self.late, self.killed, self.now = list(targets), [], [], []
        self.jobs, self.keys = {}, 0  # number -> what is to become of it
        self.minutes, self.windows, self.told, self.pipelines = 0, [], [], []
        self.again, self.hooks, self.sites = [], Receiver(), sites()
        super().__init__(path, self.clock)
        self.next()

    # ---- where it dies ----

    def next(self):
        """Some of them at a time: whichever is reached first."""
        while self.targets and len(self.now) < AT_A_TIME:
            self.now.append(self.targets.pop(0))
        if self.now:
            self.kill_at("=" + ",".join("{}/{}".format(*t) for t in self.now))

    def on_death(self):
        site = int(self.orders.with_name("crash.died").read_text())
        at = min(t for t in self.now if t[0] == site)
        self.now.remove(at)
        self.killed.append(at)
        self.next()

    def give_up(self, was):
        """Whatever was not reached in a whole round: once more, and then no more. What must be reached is given more rounds: in one the
        clock may have gone on before a starved server came to it."""
        late = [t for t in self.now if t in was]
        most = {t: 4 if t[1] == 1 and not self.sites[t[0]][1] else 1 for t in late}
        self.targets += [t for t in late if self.again.count(t) < most[t]]
        self.late += [t for t in late if self.again.count(t) >= most[t]]
        self.again += late
        self.now = [t for t in self.now if t not in late]
        self.orders.unlink(missing_ok=True)
        self.next()

    # ---- what people do ----

    def key(self):
        self.keys += 1
        return f"key-{self.keys}"

    def hand_in(self, record, want, uid=None):
        """By a key: however often it is asked, it is one."""
        key = self.key()
        while True:
            answer, again = self.do(lambda: self.node.submit_soon([record], uid=uid, key=key))
            if answer["result"] != -errno.EAGAIN:  # one of the times of a repeat that is changed is just being decided
                break
            time.sleep(0.1)
        assert answer["result"] == 0, answer
        if want:
            assert answer["first"] not in self.jobs, "a number was given twice"
            self.jobs[answer["first"]] = want
        return answer["first"]

    def pipeline(self):
        """Three that wait for each other, in one file: never some of them, and each behind the one before."""
        key = self.key()
        records = [job_record(("exit", "0"), after=("+2:any",)), job_record(("exit", "0")), job_record(("exit", "0"), after=("-1",))]
        answer, _ = self.do(lambda: self.node.submit_soon(records, key=key))
        assert answer["result"] == 0 and answer["count"] == 3, answer
        first = answer["first"]
        assert not {first, first + 1, first + 2} & set(self.jobs), "a number was given twice"
        self.jobs.update({first + i: "done" for i in range(3)})
        self.pipelines.append((first + 1, first + 2, first))

    def begin(self):
        self.reserve()
        before = self.clock.now()
        self.repeat = self.hand_in(repeat_record("* * * * *", zone="UTC", late="20m"), None)
        self.made = (before, self.clock.now())
        self.lax = self.hand_in(repeat_record("* * * * *", zone="UTC", late="10s"), None)  # whose times are mostly missed
        self.service = self.hand_in(service_record("web"), None)
        self.until(self.is_serving, "the service runs")

    def web(self):
        return next(s for s in self.get("services")["services"] if s["id"] == self.service)

    def is_serving(self):
        s = self.web()
        return s["job"] and self.books.state((s["job"], 0, 1)) == RUNNING and s["state"] in ("healthy", "running") and s

    def reserve(self):
        """Kept for a while, an hour later after all; the one before is taken back."""
        key, begins = self.key(), START + 86400 + 10800 * self.keys
        answer = self.ask("POST", "reservations", {"from": begins, "for_s": 3600, "gpus": 2, "user": "alice"}, Idempotency_Key=key)
        assert answer.status == 201, answer.body
        number, key = answer.json["id"], self.key()
        self.until(lambda: self.ask("PUT", f"reservations/{number}", {"from": begins + 3600}, Idempotency_Key=key).status == 200, "it is changed")
        assert (self.get(f"reservations/{number}")["begins"], self.get(f"reservations/{number}")["for_s"]) == (begins + 3600, 3600)
        self.windows.append((number, begins))
        if len(self.windows) > 1:
            old, _ = self.windows.pop(0)
            while self.ask("DELETE", f"reservations/{old}").status != 404:
                pass

    def pause_one(self):
        """Another repeating job comes, is changed both ways, and goes."""
        me = os.geteuid()
        number = self.hand_in(repeat_record("@yearly", zone="UTC"), None, me)
        assert self.hand_in(repeat_record("@weekly", zone="UTC", name="weekly", edits=number), None, me) == number
        key = self.key()
        self.until(lambda: self.ask("PUT", f"repeats/{number}", {"repeat": {"cron": "@monthly"}}, Idempotency_Key=key).status == 200, "it is changed")
        seen = self.get(f"repeats/{number}")
        assert (seen["cron"], seen["name"], seen["slots"]) == ("@monthly", "weekly", []), seen
        for verb in ("pause", "resume"):
            assert self.ask("POST", f"repeats/{number}/{verb}").status in (200, 202, 204, 409)  # 409: done by one who died before he said so
        while self.ask("DELETE", f"repeats/{number}").status != 404:
            pass

    def round(self):
        notify = (self.hooks.where, "terminal")
        self.told.append(self.hand_in(job_record(("exit", "0"), notify=notify), "done"))
        self.told.append(self.hand_in(job_record(("exit", "3"), retries=1, notify=notify), "failed"))
        large = self.hand_in(job_record(("exit", "0"), gpus=3), "done")  # passed by nobody who would make it wait
        self.hand_in(job_record(("exit", "0"), array="1-4%2"), "done")
        self.hand_in(job_record(("exit", "0"), after=(str(large),)), "done")
        self.pipeline()
        held = self.hand_in(job_record(("hold",), notify=notify), "cancelled")
        self.told.append(held)
        self.pause_one()
        self.minutes += 1
        assert self.hand_in(repeat_record("* * * * *", zone="UTC", late=f"{20 + self.minutes}m", edits=self.repeat), None) == self.repeat
        self.clock.set(self.clock.now() // 60 * 60 + 90)  # half a minute after a slot, however long the round took: the lax one misses it
        self.reserve()
        before = self.web()["job"]
        while self.ask("POST", f"services/{self.service}/restart").status not in (200, 202):
            self.until(self.is_serving, "the service can be started again")
        shop = self.hand_in(service_record(f"shop-{self.keys}"), None)
        self.until(lambda: self.books.state((held, 0, 1)) == RUNNING, "the last one runs")
        answer, again = self.do(lambda: self.control_soon(CANCEL, held))
        assert answer["result"] == 0 or again, answer
        self.until(lambda: (s := self.is_serving()) and s["job"] != before, "another run of the service is up")
        self.hand_in(service_record("web", update="replace"), None)
        while self.ask("DELETE", f"services/{shop}").status not in (404,):
            pass

    def is_quiet(self):
        """Nothing of it is open but the service; all is stored and said."""
        open_ = [j for j in self.get("queue")["waiting"] + self.get("queue")["running"] if (j["parent"] or {}).get("kind") != "service"]
        with self.books.lock:
            unstored = [k for k, run in self.books.runs.items() if run["state"] == ENDED and not run["stored"]]
        is_decided = all(r["next"][0]["at"] > self.clock.now() and not r["open_jobs"] for r in self.get("repeats")["repeats"])
        return not open_ and not unstored and is_decided and self.is_serving()

    def close(self):
        self.hooks.__exit__()
        super().close()


# ---- what must be true ----

def check_gpus(books):
    """At no time had two runs the same GPU."""
    spans = {}
    for k, run in books.runs.items():
        if run.get("start"):
            for gpu in run["gpus"]:
                spans.setdefault(gpu, []).append((run["start"], run.get("end", math.inf), k))
    for gpu, held in spans.items():
        held.sort()
        for one, other in zip(held, held[1:]):
            assert one[1] <= other[0], f"{gpu} was given twice: {one} {other}"


def check_jobs(story):
    jobs = {}
    while True:
        part = story.get(f"jobs?limit=1000&before={min(jobs, default=1 << 40)}")["jobs"]
        if not part:
            break
        jobs.update({j["id"]: j for j in part})
    own = {n: j for n, j in jobs.items() if not j["parent"]}
    assert set(own) == set(story.jobs), "one is lost, or there twice"
    for number, want in story.jobs.items():
        assert own[number]["state"] == want, own[number]
        starts = sorted(k[1:] for k in story.books.starts if k[0] == number)
        elements = 4 if own[number]["array"] else 1
        assert starts == ([(0, 1), (0, 2)] if want == "failed" else [(e, 1) for e in range(elements)]), (number, starts)
        if want == "failed":
            runs = story.get(f"jobs/{number}")["runs"]
            assert [(r["attempt"], r["exit_code"]) for r in runs] == [(1, 3), (2, 3)], runs
    return jobs


def check_pipelines(story):
    for numbers in story.pipelines:
        runs = [story.books.runs[(n, 0, 1)] for n in numbers]
        assert all(before["end"] <= after["start"] for before, after in zip(runs, runs[1:])), (numbers, runs)


def check_slots(story, jobs):
    assert story.get(f"repeats/{story.repeat}")["late_s"] == 60 * (20 + story.minutes), "a change got lost"
    slots = story.get(f"repeats/{story.repeat}")["slots"]
    times = [s["at"] for s in reversed(slots)]
    assert story.made[0] < times[0] <= story.made[1] + 60 and times == list(range(times[0], times[0] + 60 * len(times), 60)) and times[-1] <= story.clock.now() < times[-1] + 120, times
    assert [s["outcome"] for s in slots] == ["done"] * len(slots)
    made = [n for n, j in jobs.items() if j["parent"] == {"kind": "repeat", "id": story.repeat}]
    assert sorted(made) == sorted(s["job"] for s in slots)
    assert all(story.books.starts.count((n, 0, 1)) == 1 for n in made)
    slots = story.get(f"repeats/{story.lax}")["slots"]
    assert len({s["at"] for s in slots}) == len(slots) and {s["outcome"] for s in slots} <= {"done", "missed"}, slots


def check_service(story):
    """One run at a time, in the order in which they were made."""
    s = story.web()
    alive = [k for k, run in story.books.runs.items() if run["state"] != ENDED]
    assert alive == [(s["job"], 0, 1)], alive
    assert [x["name"] for x in story.get("services")["services"]] == ["web"]


def job_of(told):
    return int(told["id"].split("-")[1])


def are_told(story):
    """Of start and end, both ways."""
    hooks, nodes = [job_of(t) for t in story.hooks.told], [job for job, _, _ in story.books.notices]
    return all(hooks.count(n) >= 2 and nodes.count(n) >= 2 for n in story.told)


def check_messages(story):
    """Each at least once, and whatever came twice was the same message."""
    by_hook, by_node = {}, {}
    for told in story.hooks.told:
        by_hook.setdefault((job_of(told), told["alerts"][0]["labels"]["alertname"]), set()).add(told["id"])
    for job, kind, number in story.books.notices:
        by_node.setdefault((job, kind), set()).add(number)
    for number in story.told:
        want = story.jobs[number]
        mine = {title: ids for (job, title), ids in by_hook.items() if job == number}
        theirs = {kind: ids for (job, kind), ids in by_node.items() if job == number}
        times = 2 if want == "failed" else 1
        for ids in (*mine.values(), *theirs.values()):
            assert len(ids) in (1, times), (number, want, mine, theirs)
        assert len(mine) >= 2 and "job_started" in theirs and len(theirs) >= 2, (number, want, mine, theirs)


def targets_of(part):
    all_ = sites()
    each = [(number, n) for number, (_, call) in all_.items() for n in (CALLS.get(call, ()) if call else PASSES)]
    random.Random(7).shuffle(each)
    return all_, each[part::PARTS]


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_every_step(part, tmp_path):
    all_, targets = targets_of(part)
    story = Story(tmp_path, part, targets)
    try:
        story.begin()
        rounds = 0
        while story.now and rounds < ROUNDS_MOST:
            was = list(story.now)
            story.round()
            story.until(story.is_quiet, "the round is over", 90)
            rounds += 1
            story.give_up(was)
        story.orders.unlink(missing_ok=True)
        story.until(story.is_quiet, "all is over", 90)
        check_gpus(story.books)
        jobs = check_jobs(story)
        check_pipelines(story)
        check_slots(story, jobs)
        check_service(story)
        assert not (halves := list(story.server.dir.rglob("*.new.*"))), halves
        wait_for(lambda: are_told(story), "all are told", 90)
        check_messages(story)
        missed = [(*all_[n], passes) for n, passes in story.late]
        print(f"{story.deaths} deaths in {rounds} rounds; not reached: {sorted(missed)}; left: {len(story.targets)}")
        assert not [m for m in missed if not m[1] and m[2] == 1], missed
    except AssertionError as e:
        raise AssertionError(f"killed at {[(*all_[n], p) for n, p in story.killed[-3:]]}: {e}\n{story.server.log_path.read_text()[-3000:]}") from e
    finally:
        story.close()
