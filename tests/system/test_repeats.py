"""Repeating jobs: what people ask of them, who may, and what becomes of times that nobody could keep. On a clock that is set."""

import json
import os
import subprocess
import time
import zoneinfo

import pytest

from instance import GPUMGR, Instance
from job_node import JobNode, repeat_record
from job_server import somebody
from server import Server
from set_clock import Clock, at
from simulator import Simulator, wait_for

pytestmark = pytest.mark.timeout(300)

START = at("2026-11-15T12:00:30Z")
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


class Desk:
    """A server on a clock, a node by hand that is told when its jobs end."""

    def __init__(self, path):
        path.chmod(0o755)
        self.clock = Clock(path / "clock", START)
        self.server = Server(clock=self.clock)
        self.connect()

    def connect(self, books=None):
        self.node = JobNode(self.server.dir / "run/server/link.sock", books)

    def again(self, then=None):
        """Killed, and started at another time."""
        self.node.close()
        self.server.process.kill()
        self.server.process.wait(10)
        if then:
            self.clock.set(then)
        self.server.start()
        self.connect(self.node.books)

    def make(self, cron="* * * * *", uid=None, **more):
        got = self.node.submit(repeat_record(cron, **{"command": ("hold",), "late": "10m", "overlap": "skip", **more}), uid=uid)
        assert got["result"] == 0, got
        return got["first"]

    def get(self, number):
        return self.server.unix("GET", f"/api/v1/repeats/{number}").json

    def slots(self, number):
        """The oldest first: (minutes after the start, outcome, job)."""
        return [((s["at"] - START) / 60, s["outcome"], s["job"]) for s in reversed(self.get(number)["slots"])]

    def until(self, number, *outcomes):
        wait_for(lambda: [o for _, o, _ in self.slots(number)] == list(outcomes), f"{outcomes}, not {self.slots(number)}", 30)

    def minute(self, n):
        self.clock.set(START + 60 * n)

    def finish(self, job, code=0):
        wait_for(lambda: (job, 0, 1) in self.node.books.runs, f"job {job} runs", 30)
        self.node.finish((job, 0, 1), code)

    def post(self, number, verb, method="POST"):
        return self.server.unix(method, f"/api/v1/repeats/{number}{verb}")

    def events(self, kind):
        return [e["text"] for e in self.server.unix("GET", "/api/v1/events?limit=100").json["events"] if e["kind"] == kind]


@pytest.fixture
def desk(tmp_path):
    d = Desk(tmp_path)
    yield d
    d.node.close()
    d.server.__exit__()


# ---- overlap ----

def test_skip(desk):
    n = desk.make()
    desk.minute(1)
    desk.until(n, "running")
    desk.minute(2)
    desk.until(n, "running", "skipped")
    desk.finish(desk.slots(n)[0][2], 3)
    desk.until(n, "failed", "skipped")
    desk.minute(3)
    desk.until(n, "failed", "skipped", "running")


def test_queue(desk):
    """Each waits for the one before, and says so; a restart changes nothing about that."""
    n = desk.make(overlap="queue")
    for i in (1, 2, 3):
        desk.minute(i)
        desk.until(n, *(["running", "held", "held"][:i]))
    jobs = [j for _, _, j in desk.slots(n)]
    assert f"job {jobs[0]} to end" in desk.server.unix("GET", f"/api/v1/jobs/{jobs[1]}").json["why"]
    desk.again()
    desk.until(n, "running", "held", "held")
    desk.finish(jobs[0], 1)
    desk.until(n, "failed", "running", "held")
    desk.finish(jobs[1])
    desk.finish(jobs[2])
    desk.until(n, "failed", "done", "done")
    assert desk.node.books.starts == [(j, 0, 1) for j in jobs]


def test_cancel(desk):
    n = desk.make(overlap="cancel")
    desk.minute(1)
    desk.until(n, "running")
    desk.minute(2)
    desk.until(n, "cancelled", "running")
    first = desk.server.unix("GET", f"/api/v1/jobs/{desk.slots(n)[0][2]}").json
    assert first["state_text"] == "the next time of its repeat came"


# ---- late ----

def test_late_and_too_late(desk):
    """A server that was away makes good what is within the bound, and notes the rest as missed, once, with one event."""
    n = desk.make("*/5 * * * *", late="7m", command=("exit", "0"))
    desk.again(START + 31 * 60)  # 12:31:30; 12:25 and 12:30 are within seven minutes
    desk.until(n, "missed", "missed", "missed", "missed", "skipped", "done")
    wait_for(lambda: desk.events("repeat_missed"), "an event", 30)
    assert len(desk.events("repeat_missed")) == 1 and "4 times were missed, the last 2026-11-15T13:20:00+01:00" in desk.events("repeat_missed")[0]
    desk.again()
    desk.minute(36)
    desk.until(n, "missed", "missed", "missed", "missed", "skipped", "done", "done")
    assert len(desk.events("repeat_missed")) <= 1


def test_all_of_them_are_made_good_where_jobs_may_wait(desk):
    n = desk.make("*/5 * * * *", late="12m", overlap="queue", command=("exit", "0"))
    desk.again(START + 21 * 60)
    desk.until(n, "missed", "done", "done", "done")


def test_a_long_sleep(desk):
    """Months away: what is kept of it is bounded, and the count is right."""
    n = desk.make("0 * * * *", late="10m", command=("exit", "0"))
    desk.again(START + 60 * 24 * 3600 + 1800)
    wait_for(lambda: len(desk.slots(n)) == 101, "a hundred times and one for all before", 30)
    oldest = desk.get(n)["slots"][-1]
    assert oldest["outcome"] == "missed" and oldest["count"] == 60 * 24 - 100
    assert {o for _, o, _ in desk.slots(n)} == {"missed"}


# ---- clocks ----

def test_a_clock_that_is_set_back(desk):
    n = desk.make(command=("exit", "0"))
    desk.minute(1)
    desk.until(n, "done")
    desk.clock.set(START - 3600)
    time.sleep(1.5)  # looks are twice a second: were it to come again, it would now
    desk.again()
    desk.minute(1)
    time.sleep(1.5)
    desk.until(n, "done")
    desk.minute(2)
    desk.until(n, "done", "done")


def test_a_clock_that_was_wrong_by_months(desk):
    """A machine that begins in another year: what that clock made does not stop the right one, and what ran does not run again."""
    n = desk.make("0 12 * * *", command=("exit", "0"), late="1h")
    desk.clock.set(at("2027-03-01T11:00:30Z"))  # noon in Berlin
    wait_for(lambda: desk.slots(n) and desk.slots(n)[-1][1] == "done", "it runs in March", 30)
    desk.clock.set(START)
    wait_for(lambda: desk.get(n)["next"][0]["local"] == "2026-11-16T12:00:00+01:00", "its next time is tomorrow again", 30)
    assert [o for _, o, _ in desk.slots(n)] == ["done"]
    desk.clock.set(at("2026-11-16T11:00:10Z"))
    desk.until(n, "done", "done")
    desk.clock.set(at("2027-03-01T11:00:40Z"))
    wait_for(lambda: desk.get(n)["next"][0]["local"] == "2027-03-02T12:00:00+01:00", "March came, and is over", 30)
    assert len(desk.node.books.starts) == 2


def test_times_that_came_while_the_clock_was_wrong(desk):
    """They are decided when it is right again, and what ran before is not made good."""
    n = desk.make("* * * * *", command=("exit", "0"), late="10m")
    desk.minute(1)
    desk.until(n, "done")
    desk.clock.set(START + 100 * 86400)
    wait_for(lambda: desk.get(n)["next"][0]["at"] > desk.clock.now(), "it believes the clock", 30)
    desk.minute(3)
    wait_for(lambda: [(m, o) for m, o, _ in desk.slots(n) if m < 10] == [(0.5, "done"), (1.5, "skipped"), (2.5, "done")], "two more of today", 30)


# ---- by hand ----

def test_pause_resume_run_remove(desk):
    n = desk.make(command=("exit", "0"))
    assert desk.post(n, "/resume").status == 409
    assert desk.post(n, "/pause").json["state"] == "paused"
    assert desk.post(n, "/pause").json["error"]["message"] == f"repeat {n} is paused already"
    desk.minute(3)
    desk.again()
    assert desk.get(n)["state"] == "paused" and desk.slots(n) == []
    got = desk.post(n, "/run")
    assert got.status == 201 and got.json["job"] > 0
    wait_for(lambda: [o for _, o, _ in desk.slots(n)] == ["done"], "it ran by hand", 30)
    assert desk.get(n)["slots"][0]["by_hand"] and desk.get(n)["state"] == "paused"
    assert desk.post(n, "/resume").json["state"] == "on"
    desk.until(n, "done", "paused", "paused", "paused")
    desk.minute(4)
    desk.until(n, "done", "paused", "paused", "paused", "done")
    assert desk.post(n, "", "DELETE").status == 204
    assert desk.post(n, "/run").status == 404 and desk.server.unix("GET", f"/api/v1/repeats/{n}").status == 404
    assert desk.server.unix("GET", "/api/v1/repeats").json == {"repeats": []}
    desk.again()
    assert desk.server.unix("GET", "/api/v1/repeats").json == {"repeats": []}
    assert desk.make() == n + 1  # a number is never used again


def test_run_now_and_overlap(desk):
    n = desk.make()
    job = desk.post(n, "/run").json["job"]
    wait_for(lambda: (job, 0, 1) in desk.node.books.runs, "it runs", 30)
    got = desk.post(n, "/run")
    assert got.status == 409 and f"its job {job} is not over, and its overlap is skip" in got.json["error"]["message"]
    desk.minute(1)
    desk.until(n, "running", "skipped")


def test_an_interval_comes_to_its_end(desk):
    record = repeat_record("X", command=("exit", "0"), late="10m").replace(b"cron=X", b"interval=R2/2026-11-15T12:02:00Z/PT2M")
    at_words = record.rindex(b"interval=") - 8
    items = record[record.rindex(b"interval="):]
    record = record[:at_words] + (4).to_bytes(4, "little") + len(items).to_bytes(4, "little") + items
    got = desk.node.submit(record)
    assert got["result"] == 0, got
    n = got["first"]
    assert [x["local"][11:16] for x in desk.get(n)["next"]] == ["13:02", "13:04"]
    for i in (2, 4):
        desk.minute(i)
        desk.until(n, *["done"] * (i // 2))
    assert desk.get(n)["state"] == "over" and desk.get(n)["next"] == []


# ---- rights ----

@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_whose_it_is(desk):
    n = desk.make(uid=1000)
    with somebody(1001):
        seen = desk.get(n)
        assert seen["user"] == "alice" and seen["name"] == "nightly"  # everybody sees it
        for verb, method in (("/pause", "POST"), ("/resume", "POST"), ("/run", "POST"), ("", "DELETE")):
            got = desk.post(n, verb, method)
            assert got.status == 403 and got.json["error"]["message"] == f"repeat {n} is alice's", got.body
    with somebody(1000):
        assert desk.post(n, "/pause").status == 200
        assert desk.post(n, "", "DELETE").status == 204


def test_one_user_has_so_many(desk):
    for _ in range(100):
        desk.make("@yearly")
    got = desk.node.submit(repeat_record("@yearly"))
    assert got["result"] < 0 and "one user may have 100" in got["text"]
    assert desk.node.submit(repeat_record("@yearly"), uid=1001, user="bob")["result"] == 0


def test_it_goes_in_alone(desk):
    got = desk.node.submit(repeat_record("@daily"), repeat_record("@daily"))
    assert got["result"] < 0 and "is handed in alone" in got["text"]


def test_an_answer_that_got_lost(desk):
    """The same key again is the same repeat, after a restart, too."""
    first = desk.node.submit(repeat_record("@daily"), key="one")
    desk.again()
    assert desk.node.submit(repeat_record("@daily"), key="one")["first"] == first["first"]
    assert desk.node.submit(repeat_record("@daily"), key="two")["first"] == first["first"] + 1
    assert len(desk.server.unix("GET", "/api/v1/repeats").json["repeats"]) == 2


# ---- what is refused ----

@pytest.mark.parametrize("cron, zone, sentence", [
    ("@daily", "Europe/Berlim", "repeat.zone: there is no zone Europe/Berlim on the server"),
    ("@daily", "Europe", "repeat.zone: "),
    ("0 0 30 2 *", "UTC", "never comes"),
])
def test_bad_zones(desk, cron, zone, sentence):
    got = desk.node.submit(repeat_record(cron, zone=zone))
    assert got["result"] < 0 and sentence in got["text"], got
    assert desk.server.unix("GET", "/api/v1/repeats").json == {"repeats": []}


# ---- the commands ----

@pytest.fixture(scope="module")
def box(tmp_path_factory):
    path = tmp_path_factory.mktemp("repeats")
    with Simulator(path / "sim", "--model", "h200:1") as sim:
        with Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", "", "--engines.podman", "", role="up", env={"TZ": "Europe/Berlin"}) as i:
            i.ready(1)
            wait_for(lambda: gpumgr(i, "submit", "--dry-run", "--", "true").returncode == 0, "jobs are taken", 60)
            yield i


def gpumgr(box, *words, user=None):
    return subprocess.run([str(GPUMGR), words[0], "--dir", str(box.dir), *map(str, words[1:])], capture_output=True, text=True, env=box.env, timeout=60,
                          user=user, group=user, extra_groups=None if user is None else [])


def test_commands(box):
    assert "Nothing repeats" in gpumgr(box, "repeat").stdout
    got = gpumgr(box, "submit", "--cron", "0 3 * * mon-fri", "--name", "nightly", "--", "true")
    assert got.returncode == 0 and got.stdout.strip() == "1", got.stderr
    assert got.stderr.startswith("repeat 1 comes next 20") and got.stderr.rstrip().endswith("(Europe/Berlin)")  # the server's own
    shown = json.loads(gpumgr(box, "repeat", "show", "nightly", "--json").stdout)
    assert shown["cron"] == "0 3 * * mon-fri" and len(shown["next"]) == 5 and shown["overlap"] == "skip" and shown["late_s"] == 600
    assert all(s["local"][11:16] == "03:00" for s in shown["next"])
    text = gpumgr(box, "repeat", "show", "1").stdout
    assert "\nnext\n" in text and text.count(" 03:00 +") == 5 and "10m; while the one before is not over: skip" in text
    assert "nightly" in gpumgr(box, "repeat", "list").stdout
    assert gpumgr(box, "repeat", "pause", "nightly").stdout == "repeat nightly is paused\n"
    got = gpumgr(box, "repeat", "run", "nightly")
    assert got.stdout.startswith("repeat nightly: job "), got.stderr
    job = got.stdout.split()[-1]
    wait_for(lambda: json.loads(gpumgr(box, "repeat", "show", "1", "--json").stdout)["slots"][0]["outcome"] == "done", "it ran", 60)
    assert f"job {job}  by hand" in gpumgr(box, "repeat", "show", "1").stdout
    assert ", of repeat 1\n" in gpumgr(box, "jobs", job).stdout
    assert gpumgr(box, "repeat", "resume", "1").stdout == "repeat 1 goes on\n"
    assert gpumgr(box, "repeat", "remove", "nightly").stdout == "repeat nightly is gone\n"
    assert gpumgr(box, "repeat", "show", "1").stderr.strip().endswith("there is no repeat 1")


def test_next_and_dry_run(box):
    got = gpumgr(box, "repeat", "next", "--interval", "R3/2090-01-31T12:00:00Z/P1M", "--zone", "UTC")
    assert got.stdout.splitlines()[1:] == ["  2090-01-31 12:00 +00:00", "  2090-02-28 12:00 +00:00", "  2090-03-31 12:00 +00:00"], got
    got = gpumgr(box, "submit", "--dry-run", "--cron", "30 2 * * *", "--zone", "Asia/Kolkata", "--", "true")
    assert got.stdout.splitlines()[0] == "30 2 * * * (Asia/Kolkata):" and got.stdout.count("02:30 +05:30") == 5, got
    assert json.loads(gpumgr(box, "repeat", "--json").stdout) == {"repeats": []}


def test_a_file(box, tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"command": ["true"], "name": "filed", "repeat": {"cron": "@hourly", "zone": "UTC", "late": "5m", "overlap": "queue"}}))
    got = json.loads(gpumgr(box, "submit", "--json", "--file", path).stdout)
    assert got["kind"] == "repeat"
    shown = json.loads(gpumgr(box, "repeat", "show", "filed", "--json").stdout)
    assert (shown["cron"], shown["zone"], shown["late_s"], shown["overlap"]) == ("@hourly", "UTC", 300, "queue")
    assert gpumgr(box, "repeat", "remove", "filed").returncode == 0


@pytest.mark.parametrize("words, code, sentence", [
    (("submit", "--cron", "0 0 30 2 *", "--", "true"), 2, "--cron: \"0 0 30 2 *\" never comes: no year has such a day"),
    (("submit", "--cron", "* * * * * *", "--", "true"), 2, "nothing repeats by the second"),
    (("submit", "--cron", "@daily", "--interval", "R/2026-11-15T03:00Z/P1D", "--", "true"), 2, "--cron and --interval: only one of them makes sense"),
    (("submit", "--cron", "@daily", "--cron", "@daily", "--", "true"), 2, "--cron: given twice"),
    (("submit", "--interval", "R/2020-11-15T03:00Z/PT1S", "--", "true"), 2, "--interval: \"R/2020-11-15T03:00Z/PT1S\": nothing repeats more often than once a minute"),
    (("submit", "--interval", "R3/2020-11-15T03:00Z/P1D", "--", "true"), 2, "--interval: all of its times are over"),
    (("submit", "--zone", "Europe/Berlin", "--", "true"), 2, "--cron: there is neither cron nor interval"),
    (("submit", "--cron", "@daily", "--zone", "Europe/Berlim", "--", "true"), 2, "--zone: there is no zone Europe/Berlim on the server"),
    (("submit", "--cron", "@daily", "--late", "5", "--", "true"), 2, "--late: \"5\""),
    (("submit", "--cron", "@daily", "--overlap", "wait", "--", "true"), 2, "--overlap: \"wait\" is neither skip, queue nor cancel"),
    (("submit", "--cron", "@daily", "--gpus", "9", "--", "true"), 2, "--gpus: 9 are wanted"),
    (("run", "--cron", "@daily", "--", "true"), 2, "`gpumgr submit` takes one that repeats"),
    (("repeat", "pauze", "1"), 2, "what is \"pauze\"? did you mean pause?"),
    (("repeat", "pause"), 2, "pause: which one?"),
    (("repeat", "show", "nightli"), None, "no repeating job is called nightli"),
    (("repeat", "pause", "77"), None, "there is no repeat 77"),
    (("repeat", "list", "--cron", "@daily"), 2, "takes no --cron"),
    (("repeat", "next"), 2, "next: give --cron"),
    (("repeat", "next", "--cron", "61 * * * *"), 2, "minute \"61\" is not from 0 to 59"),
])
def test_bad_input(box, words, code, sentence):
    got = gpumgr(box, *words)
    assert code is None or got.returncode == code, got
    assert got.returncode != 0 and sentence in got.stderr and len(got.stderr.strip().splitlines()) == 1, got
    assert json.loads(gpumgr(box, "repeat", "--json").stdout) == {"repeats": []}


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_two_users(box):
    assert gpumgr(box, "submit", "--cron", "@daily", "--name", "mine", "--", "true", user=61001).returncode == 0
    assert gpumgr(box, "submit", "--cron", "@daily", "--name", "mine", "--", "true", user=61002).returncode == 0
    got = gpumgr(box, "repeat", "pause", "mine", user=61002)
    assert got.returncode == 0, got.stderr
    states = {r["uid"]: r["state"] for r in json.loads(gpumgr(box, "repeat", "--json").stdout)["repeats"]}
    assert states == {61001: "on", 61002: "paused"}  # a name is one's own first
    numbers = {r["uid"]: r["id"] for r in json.loads(gpumgr(box, "repeat", "--json").stdout)["repeats"]}
    got = gpumgr(box, "repeat", "remove", numbers[61001], user=61002)
    assert got.returncode != 0 and "61001's" in got.stderr, got
    got = gpumgr(box, "repeat", "remove", "mine")  # root, who has none of his own: two are called that
    assert got.returncode != 0 and "2 repeating jobs are called that" in got.stderr
    assert gpumgr(box, "repeat", "remove", *numbers.values()).returncode == 0
