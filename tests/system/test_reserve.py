"""Reservations: what the queue plans around them, who may make and take back one, what is refused, and what stands unused."""

import grp
import json
import os
import pwd
import subprocess
import time

import pytest

from instance import GPUMGR, clean_env
from job_node import RUNNING, JobNode, job_record
from server import Server
from simulator import wait_for

NS = 10**9


@pytest.fixture
def server():
    with Server() as s:
        yield s


@pytest.fixture
def node(server):
    with JobNode(server.dir / "run/server/link.sock", gpus=2) as n:
        wait_for(lambda: len(gpus(server)) == 2, "its GPUs are known")
        yield n


def gpus(server):
    return [g for g in server.unix("GET", "/api/v1/queue").json["gpus"] if g.get("state") != "gone"]


def running(node):
    with node.books.lock:
        return sorted(k[0] for k, r in node.books.runs.items() if r["state"] == RUNNING)


def waiting(server):
    return {j["id"]: j for j in server.unix("GET", "/api/v1/queue").json["waiting"]}


def reserve(server, ok=True, **body):
    body = {"from": int(time.time()) + 3600, "for_s": 3600, **body}
    got = server.unix("POST", "/api/v1/reservations", body)
    assert not ok or got.status == 201, got.body
    return got.json if ok else got


def command(server, *args):
    return subprocess.run([str(GPUMGR), "reserve", *map(str, args), "--dir", str(server.dir)], capture_output=True, text=True,
                          env=clean_env(), timeout=120)


def test_a_job_that_would_run_into_it_waits_and_a_short_one_does_not(server, node):
    """The only GPU that is free is reserved in an hour, for bob."""
    held = node.submit(job_record(("hold",), scope=("1",)))["first"]
    wait_for(lambda: running(node) == [held], "GPU 1 is taken")
    made = reserve(server, gpu_ids=["0"], user="bob", note="course")
    assert (made["user"], made["gpu_indices"], made["state"], made["note"]) == ("bob", [0], "ahead", "course")
    long = node.submit(job_record(("hold",)))["first"]
    why = wait_for(lambda: waiting(server).get(long, {}).get("why"), "it is said why it waits")
    assert f"1 reserved for bob (reservation {made['id']}, in" in why, why
    assert waiting(server)[long]["sooner"].startswith("now with a time limit of")
    short = node.submit(job_record(("hold",), limit_ns=1800 * NS))["first"]
    wait_for(lambda: running(node) == [held, short], "the short one goes past")
    assert server.unix("DELETE", f"/api/v1/reservations/{made['id']}").status == 204
    node.finish((short, 0, 1), 0)
    wait_for(lambda: running(node) == [held, long], "and without the reservation the long one starts")


def test_its_user_has_it_and_nobody_else(server, node):
    reserve(server, **{"from": int(time.time())}, for_s=7200, gpus=2, user="alice")
    with JobNode(server.dir / "run/server/link.sock", gpus=1, name="other", owner=("bob", 1001)) as other:
        mine = node.submit(job_record(("hold",), gpus=2))["first"]
        wait_for(lambda: running(node) == [mine], "alice's job runs")
        wait_for(lambda: len(gpus(server)) == 3, "the other machine is known")
        far = other.submit(job_record(("hold",)))["first"]
        wait_for(lambda: running(other) == [far], "and on another machine nothing is kept")


def test_a_group_of_the_machine(server, node):
    """alice is of no group of this machine; root is of its own."""
    name = grp.getgrgid(pwd.getpwuid(0).pw_gid).gr_name
    made = reserve(server, **{"from": int(time.time())}, group=name, gpus=2)
    assert made["group"] == name and made["user"] is None and made["state"] == "now"
    job = node.submit(job_record(("hold",)))["first"]
    why = wait_for(lambda: waiting(server).get(job, {}).get("why"), "it waits")
    assert f"2 reserved for group {name} (reservation {made['id']}, for another" in why, why
    with JobNode(server.dir / "run/server/link.sock", books=node.books, gpus=2, owner=("root", 0)) as again:
        theirs = again.submit(job_record(("hold",)))["first"]
        wait_for(lambda: theirs in running(again), "a member's job runs")
        assert job not in running(again)


def test_a_lost_gpu_is_replaced(server, node):
    """bob's GPU is taken out of service: the other is kept for him instead, until it is put back."""
    made = reserve(server, **{"from": int(time.time())}, for_s=7200, gpu_ids=["0"], user="bob")
    uuid, = made["gpu_uuids"]
    first = node.submit(job_record(("hold",)))["first"]
    wait_for(lambda: running(node) == [first], "the other GPU is everybody's")
    assert server.unix("PUT", f"/api/v1/gpus/{uuid}/cordon", {"reason": "fan"}).status == 204
    told = wait_for(lambda: [e["text"] for e in server.unix("GET", "/api/v1/events").json["events"] if e["kind"] == "reservation_replaced"], "it is told")
    assert told == [f"reservation {made['id']} of bob has GPU 1 instead of GPU 0"]
    second = node.submit(job_record(("hold",)))["first"]
    assert server.unix("DELETE", f"/api/v1/jobs/{first}").status < 300
    wait_for(lambda: first not in running(node), "its GPU is free")
    why = wait_for(lambda: "reserved for bob" in (waiting(server).get(second) or {}).get("why", "") and waiting(server)[second]["why"], "the other waits")
    assert f"reservation {made['id']}" in why
    with JobNode(server.dir / "run/server/link.sock", books=node.books, gpus=2, owner=("bob", 1001)) as again:
        his = again.submit(job_record(("hold",)))["first"]
        wait_for(lambda: his in running(again) and second not in running(again), "bob has the other one")
        assert server.unix("DELETE", f"/api/v1/gpus/{uuid}/cordon").status == 204
        assert server.unix("DELETE", f"/api/v1/jobs/{his}").status < 300
        wait_for(lambda: second in running(again), "and gives it back when his own is there again")


@pytest.mark.long
def test_what_stands_unused_is_everybodys_until_its_user_comes():
    with Server(reserve__unused_min=1) as server, JobNode(server.dir / "run/server/link.sock", gpus=1) as node:
        wait_for(lambda: len(gpus(server)) == 1, "its GPU is known")
        # It began 50 s ago, as far as the rule about the past allows; the server has been up for less.
        made = reserve(server, **{"from": int(time.time()) - 50}, for_s=7200, user="bob")
        job = node.submit(job_record(("hold",)))["first"]
        wait_for(lambda: job in waiting(server), "alice waits")
        wait_for(lambda: running(node) == [job], "and has it when it stood unused for a minute", 180)
        assert server.unix("GET", f"/api/v1/reservations/{made['id']}").json["state"] == "unused"
        events = server.unix("GET", "/api/v1/events").json["events"]
        assert any(e["kind"] == "reservation_unused" and f"reservation {made['id']} of bob" in e["text"] for e in events), events
        node.user, node.uid = "bob", 1001
        late = node.submit(job_record(("hold",)))["first"]
        wait_for(lambda: server.unix("GET", f"/api/v1/reservations/{made['id']}").json["state"] == "now", "bob has come")
        node.user, node.uid = "alice", 1000
        other = node.submit(job_record(("hold",), priority=50))["first"]
        wait_for(lambda: {late, other} <= waiting(server).keys(), "both wait for alice's job")
        node.finish((job, 0, 1), 0)
        wait_for(lambda: running(node) == [late], "it is bob's again")


def test_it_comes_again_and_survives_a_kill(server, node):
    made = reserve(server, every="0 9 * * 1-5", zone="Europe/Berlin", for_s=4 * 3600, gpus=2)
    now = int(time.time())
    got = server.unix("GET", f"/api/v1/reservations?from={now}&to={now + 14 * 86400}").json
    starts = [w["from"] for w in got["windows"] if w["id"] == made["id"]]
    assert 9 <= len(starts) <= 11
    assert all(time.gmtime(s).tm_wday < 5 and time.gmtime(s).tm_hour in (7, 8) for s in starts)
    server.stop(kill=True)
    server.start()
    again = server.unix("GET", "/api/v1/reservations").json["reservations"]
    keys = ("id", "every", "zone", "for_s", "next", "made_by", "begins")
    assert [{k: r[k] for k in keys} for r in again] == [{k: made[k] for k in keys}]
    server.unix("DELETE", f"/api/v1/reservations/{made['id']}")
    server.stop(kill=True)
    server.start()
    assert server.unix("GET", "/api/v1/reservations").json["reservations"] == []


WRONG = [
    ({"from": 1000}, 422, "from: lies in the past"),
    ({"for_s": 10}, 422, "for: a minute is the least"),
    ({"gpus": 3}, 422, "gpus: 3 are asked for, and lab has 2"),
    ({"gpu_ids": ["7"]}, 422, "gpu_ids: lab has no such GPU"),
    ({"gpu_ids": ["0"], "gpus": 1}, 422, "gpus: does not go with gpu_ids"),
    ({"node": "moon"}, 422, "node: there is no machine moon with GPUs"),
    ({"every": "61 * * * *"}, 422, "every: "),
    ({"every": "0 0 30 2 *"}, 422, "every: "),
    ({"every": "* * * * *"}, 422, "for: it comes again before it is over"),
    ({"every": "0 9 * * *", "zone": "Mars/Base"}, 422, "zone: this machine has no time zone Mars/Base"),
    ({"every": "0 9 * * *", "zone": "../../etc/passwd"}, 422, "zone: "),
    ({"user": "ada", "group": "lab"}, 422, "group: does not go with user"),
    ({"user": "a b"}, 422, 'user: "a b" is no name'),
    ({"until": 5000}, 422, "until: is for one that comes again"),
]


@pytest.mark.parametrize("body, status, sentence", WRONG, ids=[str(w[0]) for w in WRONG])
def test_what_cannot_be_is_refused(server, node, body, status, sentence):
    got = reserve(server, ok=False, **body)
    assert got.status in (status, 400) and got.json["error"]["message"].startswith(sentence), got.body
    assert server.unix("GET", "/api/v1/reservations").json["reservations"] == []


def test_two_that_overlap(server, node):
    start = int(time.time()) + 86400
    first = reserve(server, **{"from": start}, gpu_ids=["0"], user="ada")
    got = reserve(server, ok=False, **{"from": start + 1800}, gpu_ids=["0", "1"], user="bob")
    assert got.status == 409
    assert got.json["error"]["message"].startswith(f"GPU 0 of lab is reserved for ada by reservation {first['id']}, from ")
    got = reserve(server, ok=False, **{"from": start - 1800}, gpus=2, user="bob")
    assert got.json["error"]["message"].startswith("1 of 2 GPUs are not reserved then: GPU 0 of lab"), got.body
    assert reserve(server, **{"from": start}, user="bob")["gpu_indices"] == [1]  # one that is not
    assert reserve(server, **{"from": start + 3600}, gpus=2, user="bob")["gpu_indices"] == [0, 1]  # right behind


def test_by_command(server, node):
    out = command(server, "--gpus", 2, "--from", "tomorrow 09:00", "--for", "4h", "--every", "weekly", "--user", "ada", "--note", "a course")
    assert out.returncode == 0 and out.stdout.startswith("reservation 1: GPU 0,1 of lab for ada, "), out
    out = command(server)
    head, row = out.stdout.splitlines()
    assert head.split()[:2] == ["ID", "FOR"] and row.split()[:4] == ["1", "ada", "lab", "0,1"] and all(len(line) <= 80 for line in (head, row))
    assert len(json.loads(command(server, "list", "--json").stdout)["reservations"]) == 1
    for args, code, sentence in ((("--for", "4h", "--from", "2020-01-01 00:00"), 2, "from: lies in the past"), (("--from", "18:30"), 2, "--for: is missing"),
                                 (("--for", "forever"), 2, "--for"), (("--for", "4h", "--gpu", "0", "--gpus", "1"), 2, "--gpus: does not go with --gpu"),
                                 (("cancel",), 2, "which reservation?"), (("cancel", "x"), 2, '"x" is no number'), (("cancel", "9"), 2, "there is no reservation 9"),
                                 (("lst",), 2, '"lst" is none of add, list, edit and cancel')):
        out = command(server, *args)
        assert out.returncode == code and sentence in out.stderr and out.stderr.count("\n") == 1, (args, out)
    assert command(server, "cancel", 1).stdout == "reservation 1 is taken back\n"
    assert command(server, "list").stdout == "nothing is reserved\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="somebody else asks")
@pytest.mark.parametrize("hours", [0, 5])
def test_who_may(hours):
    with Server(reserve__user_gpu_hours=hours) as server, JobNode(server.dir / "run/server/link.sock", gpus=2):
        wait_for(lambda: len(gpus(server)) == 2, "its GPUs are known")
        theirs = reserve(server, user="ada", gpu_ids=["1"])

        def nobody(*args):
            return subprocess.run([str(GPUMGR), "reserve", *map(str, args), "--dir", str(server.dir)], capture_output=True, text=True,
                                  env=clean_env(), user=65534, group=65534, extra_groups=[], timeout=120)

        out = nobody("--gpu", 0, "--for", "4h")
        if not hours:
            assert out.returncode != 0 and "only administrators reserve here" in out.stderr, out
            return
        assert out.returncode == 0, out
        out = nobody("--gpu", 0, "--for", "2h", "--from", "tomorrow 23:00")
        assert out.returncode != 0 and "it has 2 GPU hours in the next seven days, and of the 5 that a user may reserve 1 are left" in out.stderr, out
        out = nobody("--for", "1h", "--from", "tomorrow 23:00", "--user", "ada")
        assert out.returncode != 0 and "only an administrator reserves for others" in out.stderr
        out = nobody("cancel", theirs["id"])
        assert out.returncode != 0 and f"reservation {theirs['id']} is ada's" in out.stderr
        assert nobody("cancel", theirs["id"] + 1).returncode == 0
