"""A repeating job that is changed: what it says first, whose right it is, and that no time is run twice or lost over it. On a clock that
is set."""

import json
import os
import time

import pytest

from job_node import repeat_record
from job_server import somebody
from set_clock import at
from simulator import wait_for
from test_repeats import START, box, desk, gpumgr  # noqa: F401

pytestmark = pytest.mark.timeout(300)


def own(desk, *args, **more):
    """One of this very user, who may change it over the Unix socket."""
    return desk.make(*args, uid=os.geteuid(), **more)


def edit(desk, number, change, dry=False, **headers):
    def answer():
        got = desk.server.unix("PUT", f"/api/v1/repeats/{number}{'?dry_run=1' if dry else ''}", change, **headers)
        return got if got.status != 429 else None  # 429: a time is just being decided
    return wait_for(answer, "no time is being decided")


def sentence(got):
    return got.json["error"]["message"]


# ---- its times ----

def test_the_change_is_shown_and_made(desk):
    n = own(desk, "0 3 * * *", overlap="skip")
    before = desk.get(n)
    got = edit(desk, n, {"repeat": {"cron": "0 4 * * *", "late": "20m"}}, dry=True).json
    want = [{"key": "repeat.cron", "from": "0 3 * * *", "to": "0 4 * * *"}, {"key": "repeat.late", "from": "10m", "to": "20m"}]
    assert got["changes"] == want and not got["seals"] and got["dry_run"]
    assert [t["local"][11:16] for t in got["times"]["next"]] == ["04:00"] * 5 and got["times"]["zone"] == "Europe/Berlin"
    assert desk.get(n) == before  # only said
    got = edit(desk, n, {"repeat": {"cron": "0 4 * * *", "late": "20m"}}).json
    assert got["changes"] == want and "job" not in got
    for _ in range(2):
        seen = desk.get(n)
        assert (seen["cron"], seen["late_s"], seen["overlap"], seen["zone"]) == ("0 4 * * *", 1200, "skip", "Europe/Berlin")
        assert seen["repeat"] == {"cron": "0 4 * * *", "zone": "Europe/Berlin", "late": "20m", "overlap": "skip"}
        assert [t["local"][11:16] for t in seen["next"]] == ["04:00"] * 5 and seen["name"] == before["name"]
        desk.again()
    got = edit(desk, n, {"repeat": {"interval": "R/2026-11-16T00:00:00Z/P1D", "zone": "UTC"}}).json
    assert {c["key"]: c["to"] for c in got["changes"]} == {"repeat.cron": None, "repeat.interval": "R/2026-11-16T00:00:00Z/P1D", "repeat.zone": "UTC"}
    assert desk.get(n)["cron"] is None and desk.get(n)["interval"] == "R/2026-11-16T00:00:00Z/P1D"
    assert edit(desk, n, {"repeat": {"zone": "UTC"}}).json["changes"] == []  # it is so already
    wait_for(lambda: len(desk.events("repeat_changed")) >= 1, "it is told", 30)


def test_decided_times_stay(desk):
    """What ran stays run, what was missed stays missed; the new rule has no time before it was made."""
    n = own(desk, "* * * * *", command=("exit", "0"), late="1h")
    desk.minute(1)
    desk.until(n, "done")
    was = desk.slots(n)
    desk.again(START + 60 * 60)  # an hour is missing, and is decided by the old rule first
    assert edit(desk, n, {"repeat": {"cron": "*/30 * * * *", "late": "3h"}}).status == 200
    slots = desk.slots(n)
    assert slots[0] == was[0] and {o for _, o, _ in slots[1:-1]} == {"skipped"} and slots[-1][1] in ("done", "running", "waiting", "starting", "granted"), slots
    assert len(slots) == 60 and len({m for m, _, _ in slots}) == 60
    desk.until(n, *["done"] + ["skipped"] * 58 + ["done"])
    desk.again()
    other = own(desk, "* * * * *", command=("exit", "0"))
    desk.minute(62)
    desk.until(other, "skipped", "done")  # all are looked at in one go: a time of the past would have come
    assert len(desk.slots(n)) == 60
    assert desk.post(other, "", "DELETE").status in (200, 202, 204)
    desk.minute(90)  # 13:30:30
    wait_for(lambda: desk.slots(n)[-1][:2] == (89.5, "done"), "the next time of the new rule", 30)
    assert len(desk.node.books.starts) == len(set(desk.node.books.starts)) == 4


def test_a_time_that_is_due_at_that_very_moment(desk):
    """By the old rule or by the new one, which both have it: once."""
    n = own(desk, "* * * * *", command=("exit", "0"), overlap="queue")
    for i in range(1, 13):
        desk.clock.set(START + 60 * i - 30)  # the second of the slot
        edit(desk, n, {"repeat": {"late": f"{10 + i}m"}})
    wait_for(lambda: [m for m, _, _ in desk.slots(n)] == [i - 0.5 for i in range(1, 13)], "each of them once", 30)
    wait_for(lambda: {o for _, o, _ in desk.slots(n)} == {"done"}, "all ran", 30)
    assert len(desk.node.books.starts) == 12


def test_one_that_is_paused(desk):
    """It stays so; what went by is noted as paused by the rule that counted then."""
    n = own(desk, "* * * * *", command=("exit", "0"))
    assert desk.post(n, "/pause").status == 200
    desk.minute(3)
    assert edit(desk, n, {"repeat": {"cron": "*/5 * * * *"}}).status == 200
    assert desk.get(n)["state"] == "paused"
    desk.until(n, "paused", "paused", "paused")
    desk.minute(11)
    assert desk.post(n, "/resume").status == 200
    desk.until(n, "paused", "paused", "paused", "paused", "paused")  # 12:05, 12:10
    assert [m for m, _, _ in desk.slots(n)][3:] == [4.5, 9.5]


def test_jobs_that_are_open_stay(desk):
    """They go on as they were, and the overlap counts them."""
    n = own(desk, "* * * * *", overlap="queue")
    desk.minute(1)
    desk.until(n, "running")
    assert edit(desk, n, {"repeat": {"overlap": "skip"}}).status == 200
    assert len(desk.get(n)["open_jobs"]) == 1
    desk.minute(2)
    desk.until(n, "running", "skipped")
    assert edit(desk, n, {"repeat": {"overlap": "cancel"}}).status == 200
    desk.minute(3)
    desk.until(n, "cancelled", "skipped", "running")


def test_a_clock_that_was_wrong_after_a_change(desk):
    """Back on the right day the new rule begins where it was made, not at the last time of the old one."""
    n = own(desk, "0 12 * * *", command=("exit", "0"), late="1h", zone="UTC")
    desk.clock.set(at("2026-11-16T12:00:30Z"))
    desk.until(n, "done")
    desk.clock.set(at("2026-11-16T12:30:30Z"))
    assert edit(desk, n, {"repeat": {"cron": "*/10 * * * *"}}).status == 200
    desk.clock.set(at("2027-03-01T11:05:30Z"))
    wait_for(lambda: desk.get(n)["next"][0]["at"] > desk.clock.now(), "it believes the clock", 30)
    desk.clock.set(at("2026-11-16T12:35:30Z"))
    wait_for(lambda: desk.get(n)["next"][0]["local"] == "2026-11-16T12:40:00+00:00", "its next time is today again", 30)
    time.sleep(1.5)
    assert [m for m, _, _ in desk.slots(n) if m < 10 * 24 * 60] == [(at("2026-11-16T12:00:00Z") - START) / 60]


def test_one_in_trouble_is_mended(desk):
    """Its zone is gone from the machine: another one helps."""
    n = own(desk, "@daily")
    desk.node.close()
    desk.server.process.kill()
    desk.server.process.wait(10)
    desk.server.database("UPDATE repeats SET zone='Europe/Atlantis'")
    desk.server.start()
    desk.connect(desk.node.books)
    assert desk.get(n)["state"] == "in trouble"
    assert edit(desk, n, {"repeat": {"zone": "UTC"}}).status == 200
    assert desk.get(n)["state"] == "on" and desk.get(n)["next"][0]["local"].endswith("+00:00")


# ---- what it runs ----

def test_what_it_runs(desk):
    """It is handed in again, with a record that says whom it changes; the jobs after that are the new ones."""
    n = own(desk, "* * * * *", command=("exit", "3"))
    desk.minute(1)
    desk.until(n, "failed")
    got = desk.node.submit(repeat_record("* * * * *", command=("exit", "0"), name="daily", late="10m", overlap="skip", edits=n), uid=os.geteuid())
    assert got["result"] == 0 and got["first"] == n, got
    seen = desk.get(n)
    assert seen["command"] == ["exit", "0"] and seen["name"] == "daily" and "edits" not in seen["repeat"] and len(seen["slots"]) == 1
    desk.again()
    desk.minute(2)
    desk.until(n, "failed", "done")
    assert edit(desk, n, {"repeat": {"cron": "*/2 * * * *"}}).json["changes"][0]["from"] == "* * * * *"
    desk.again()
    assert desk.get(n)["cron"] == "*/2 * * * *" and desk.get(n)["command"] == ["exit", "0"]
    assert len(desk.server.unix("GET", "/api/v1/repeats").json["repeats"]) == 1


def test_an_account(desk):
    """By the API what it runs is sealed by the node for the account; a null takes a key away."""
    _, act = desk.server.browser()
    tcp = desk.server.tcp
    made = tcp("POST", "/api/v1/jobs", {"command": ["exit", "0"], "time_limit": "2h", "env": {"A": "1", "B": "2"}, "repeat": {"cron": "@daily"}}, **act)
    assert made.status == 201, made.body
    n, seals = made.json["id"], desk.node.seals
    change = {"gpus": 2, "time_limit": None, "env": {"A": None, "C": "3"}, "labels": {"team": "x"}}
    got = tcp("PUT", f"/api/v1/repeats/{n}?dry_run=1", change, **act)
    assert got.status == 200 and got.json["seals"] and desk.node.seals == seals, got.body
    changes = {c["key"]: (c["from"], c["to"]) for c in got.json["changes"]}
    assert changes == {"gpus": (1, 2), "time_limit": ("2h", None), "env.A": ("1", None), "env.C": (None, "3"), "labels.team": (None, "x")}
    assert got.json["job"]["env"] == {"B": "2", "C": "3"}
    assert tcp("PUT", f"/api/v1/repeats/{n}", change, **act).status == 200 and desk.node.seals == seals + 1
    desk.again()
    _, act = desk.server.browser()
    seen = desk.get(n)
    assert (seen["gpus"], seen["time_limit_s"], seen["labels"], seen["cron"]) == (2, None, {"team": "x"}, "@daily")
    assert tcp("PUT", f"/api/v1/repeats/{n}", {"repeat": {"cron": "@hourly"}}, **act).status == 200 and desk.node.seals == 0  # times alone: none
    got = tcp("PUT", f"/api/v1/repeats/{n}", {"gpus": 9}, **act)
    assert got.status == 400 and sentence(got).startswith("gpus: 9 are wanted"), got.body


# ---- rights ----

@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_whose_right_it_is(desk):
    n = desk.make(uid=1000)
    before = desk.get(n)
    for uid in (1001, 0):  # not even an administrator's
        with somebody(uid):
            for dry in (True, False):
                got = edit(desk, n, {"repeat": {"cron": "@daily"}}, dry)
                assert got.status == 403 and sentence(got) == f"repeat {n} is alice's: nobody else changes what it does", got.body
    got = desk.node.submit(repeat_record("@daily", edits=n), uid=1001, user="bob")
    assert got["result"] < 0 and "is alice's, and this is bob's" in got["text"], got
    assert desk.get(n) == before
    with somebody(1000):
        assert edit(desk, n, {"repeat": {"cron": "@daily"}}).status == 200
        got = edit(desk, n, {"gpus": 2})
        assert got.status == 403 and "change what it runs with `gpumgr repeat edit`" in sentence(got)


def test_accounts_that_are_one_unix_user(desk):
    """The node seals for all of them with the same uid: that is no right to another's."""
    assert desk.server.unix("PUT", "/api/v1/users/mallory", {"role": "member"}).status in (200, 201)
    _, act = desk.server.browser()
    _, hers = desk.server.browser("mallory")
    n = desk.server.tcp("POST", "/api/v1/jobs", {"command": ["exit", "0"], "repeat": {"cron": "@daily"}}, **act).json["id"]
    before = desk.get(n)
    got = desk.server.tcp("POST", "/api/v1/jobs", {"command": ["exit", "1"], "repeat": {"cron": "@daily", "edits": n}}, **hers)
    assert got.status == 403 and "nobody else changes what it does" in sentence(got), got.body
    for change in ({"gpus": 2}, {"repeat": {"cron": "@hourly"}}):
        got = desk.server.tcp("PUT", f"/api/v1/repeats/{n}", change, **hers)
        assert got.status == 403 and "nobody else changes what it does" in sentence(got), got.body
    assert desk.get(n) == before
    got = desk.server.tcp("POST", "/api/v1/jobs", {"command": ["exit", "1"], "repeat": {"cron": "@daily", "edits": n}}, **act)
    assert got.status == 201 and got.json["id"] == n and desk.get(n)["command"] == ["exit", "1"]


# ---- asked again ----

def test_an_answer_that_got_lost(desk):
    """The same key again changes nothing, though somebody else changed it since, and after a restart, too."""
    n = own(desk, "@daily")
    assert edit(desk, n, {"repeat": {"cron": "0 1 * * *"}}, Idempotency_Key="one").status == 200
    assert edit(desk, n, {"repeat": {"cron": "0 2 * * *"}}, Idempotency_Key="two").status == 200
    record = repeat_record("0 3 * * *", edits=n)
    first = desk.node.submit(record, uid=os.geteuid(), key="three")
    assert first["result"] == 0 and desk.get(n)["cron"] == "0 3 * * *"
    assert edit(desk, n, {"repeat": {"cron": "0 4 * * *"}}, Idempotency_Key="four").status == 200
    for _ in range(2):
        assert edit(desk, n, {"repeat": {"cron": "0 1 * * *"}}, Idempotency_Key="one").status == 200
        assert desk.node.submit(record, uid=os.geteuid(), key="three")["result"] == 0
        assert desk.get(n)["cron"] == "0 4 * * *"
        desk.again()


# ---- what is refused ----

@pytest.mark.parametrize("change, status, words", [
    ({"repeat": {"cron": "0 0 30 2 *"}}, 400, "repeat.cron: \"0 0 30 2 *\" never comes"),
    ({"repeat": {"cron": "61 * * * *"}}, 400, "is not from 0 to 59"),
    ({"repeat": {"zone": "Europe/Berlim"}}, 400, "repeat.zone: there is no zone Europe/Berlim on the server"),
    ({"repeat": {"interval": "R3/2020-11-15T03:00Z/P1D"}}, 400, "repeat.interval: all of its times are over"),
    ({"repeat": {"cron": "@daily", "interval": "R/2026-11-15T03:00Z/P1D"}}, 400, "only one makes sense"),
    ({"repeat": {"cron": None}}, 400, "repeat.cron: there is neither cron nor interval"),
    ({"repeat": {"overlap": "wait"}}, 400, "repeat.overlap: \"wait\" is neither skip, queue nor cancel"),
    ({"repeat": {"crom": "@daily"}}, 400, "repeat.crom: there is no such key"),
    ({"repeat": None}, 400, "repeat: a repeating job has times; remove it instead"),
    ({"gpus": 99}, 400, "gpus: "),
    ({"gpuz": 2}, 400, "gpuz: a job has no such key"),
    ({"after": [3]}, 400, "after: does not go with repeat"),
    ({"jobs": []}, 400, "a change is one object"),
    ([1], 400, "a change is one object"),
    ("{", 400, ""),
])
def test_bad_input(desk, change, status, words):
    n = own(desk, "@daily")
    before = desk.get(n)
    for dry in (True, False):
        got = edit(desk, n, change, dry)
        assert got.status == status and words in sentence(got), got.body
    desk.again()
    assert desk.get(n) == before
    assert edit(desk, n + 1, {"gpus": 1}).status == 404
    assert desk.node.submit(repeat_record("@daily", edits=n + 1))["text"] == f"there is no repeat {n + 1}"


# ---- the command ----

def shown(box, name):
    return json.loads(gpumgr(box, "repeat", "show", name, "--json").stdout)


def test_command(box, tmp_path):
    assert gpumgr(box, "submit", "--cron", "0 3 * * *", "--zone", "UTC", "--name", "nightly", "--time-limit", "1h", "--env", "A=1", "--", "true").returncode == 0
    n = shown(box, "nightly")["id"]
    got = gpumgr(box, "repeat", "edit", "nightly", "--cron", "0 4 * * *", "--dry-run")
    assert got.returncode == 0 and got.stdout.startswith("  cron: 0 3 * * * -> 0 4 * * *\n0 4 * * * (UTC):\n"), got
    assert got.stdout.count(" 04:00 +00:00") == 5 and "is changed" not in got.stdout and shown(box, n)["cron"] == "0 3 * * *"
    got = gpumgr(box, "repeat", "edit", "nightly", "--cron", "0 4 * * *", "--overlap", "queue")
    assert got.returncode == 0 and got.stdout.endswith("repeat nightly is changed\n") and "environment" not in got.stdout, got
    assert (shown(box, n)["cron"], shown(box, n)["overlap"]) == ("0 4 * * *", "queue")
    got = gpumgr(box, "repeat", "edit", n, "--unset", "time-limit", "--unset", "env.A", "--name", "other", "--label", "a=b", "--", "sh", "-c", "test -z \"$A\"")
    assert got.returncode == 0, got
    assert "  time_limit: 1h -> (none)\n" in got.stdout and "  env.A: 1 -> (none)\n" in got.stdout and "  command: true -> sh -c" in got.stdout, got.stdout
    assert "with the environment that you have here, in " in got.stdout
    seen = shown(box, "other")
    assert (seen["id"], seen["time_limit_s"], seen["labels"], seen["cron"]) == (n, None, {"a": "b"}, "0 4 * * *")
    job = gpumgr(box, "repeat", "run", n).stdout.split()[-1]
    wait_for(lambda: shown(box, n)["slots"][0]["outcome"] == "done", f"job {job} ran as it says now", 60)
    got = gpumgr(box, "repeat", "edit", n, "--cron", "0 4 * * *")
    assert got.returncode == 0 and got.stdout.endswith(f"repeat {n}: nothing changes\n"), got
    got = json.loads(gpumgr(box, "repeat", "edit", n, "--late", "1h", "--json").stdout)
    assert got["changes"] == [{"key": "repeat.late", "from": "10m", "to": "1h"}] and shown(box, n)["late_s"] == 3600
    path = tmp_path / "change.json"
    path.write_text('{"gpus": 1, "repeat": {"zone": "Asia/Kolkata"}}')
    assert gpumgr(box, "repeat", "edit", n, "--file", path).returncode == 0 and shown(box, n)["zone"] == "Asia/Kolkata"
    assert gpumgr(box, "repeat", "remove", n).returncode == 0


@pytest.mark.parametrize("words, sentence", [
    ((), "edit: which one?"),
    (("--cron", "@daily"), "edit: which one?"),
    (("kept",), "what is to change?"),
    (("kepd", "--cron", "@daily"), "no repeating job is called kepd; did you mean kept?"),
    (("77", "--cron", "@daily"), "there is no repeat 77"),
    (("kept", "--cron", "0 0 30 2 *"), "--cron: \"0 0 30 2 *\" never comes"),
    (("kept", "--zone", "Europe/Berlim"), "--zone: there is no zone Europe/Berlim on the server"),
    (("kept", "--cron", "@daily", "--interval", "R/2026-11-15T03:00Z/P1D"), "--cron and --interval: only one of them makes sense"),
    (("kept", "--overlap", "wait"), "--overlap: \"wait\" is neither"),
    (("kept", "--gpus", "9"), "--gpus: 9 are wanted"),
    (("kept", "--after", "3"), "--after: does not go with repeat"),
    (("kept", "--unset", "time-limits"), "--unset: \"time-limits\" cannot be taken away; did you mean time-limit?"),
    (("kept", "--unset", "gpus"), "--unset: \"gpus\" cannot be taken away"),
    (("kept", "--unset", "image.A"), "--unset: \"image.A\" cannot be taken away"),
])
def test_bad_words(box, words, sentence):
    if not json.loads(gpumgr(box, "repeat", "--json").stdout)["repeats"]:
        assert gpumgr(box, "submit", "--cron", "0 3 * * *", "--name", "kept", "--", "true").returncode == 0
    before = gpumgr(box, "repeat", "--json").stdout
    got = gpumgr(box, "repeat", "edit", *words)
    assert got.returncode != 0 and sentence in got.stderr and len(got.stderr.strip().splitlines()) == 1 and not got.stdout, got
    assert gpumgr(box, "repeat", "--json").stdout == before


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user(box):
    assert gpumgr(box, "submit", "--cron", "@daily", "--name", "hers", "--", "true", user=61001).returncode == 0
    for user in (61002, None):
        for words in (("--cron", "@hourly"), ("--gpus", "1", "--", "false")):
            got = gpumgr(box, "repeat", "edit", "hers", *words, user=user)
            assert got.returncode != 0 and "61001's: nobody else changes what it does" in got.stderr, got
    assert gpumgr(box, "repeat", "edit", "hers", "--cron", "@hourly", "--", "false", user=61001).returncode == 0
    assert (shown(box, "hers")["cron"], shown(box, "hers")["command"], shown(box, "hers")["uid"]) == ("@hourly", ["false"], 61001)
    assert gpumgr(box, "repeat", "remove", "hers").returncode == 0
