"""A reservation that is changed: what it says first, what stays, who may, what is in the way, and that the queue plans anew at once."""

import json
import os
import subprocess
import threading
import time

import pytest

from instance import GPUMGR, clean_env
from job_node import JobNode, job_record
from server import Server
from simulator import wait_for
from test_reserve import command, gpus, node, reserve, running, server, waiting  # noqa: F401

DAY = 86400
pytestmark = pytest.mark.timeout(300)


def soon(days=1):
    return int(time.time()) // 60 * 60 + days * DAY


def edit(server, number, dry=False, **change):
    headers = {k: change.pop(k) for k in list(change) if k == "Idempotency_Key"}
    return server.unix("PUT", f"/api/v1/reservations/{number}{'?dry_run=1' if dry else ''}", change, **headers)


def get(server, number):
    return server.unix("GET", f"/api/v1/reservations/{number}").json


def changes(got):
    assert got.status == 200, got.body
    return {c["key"]: (c["from"], c["to"]) for c in got.json["changes"]}


# ---- what changes ----

def test_the_change_is_shown_and_made(server, node):
    start = soon()
    made = reserve(server, **{"from": start}, gpu_ids=["0"], user="ada", note="course")
    n = made["id"]
    want = {"from": (start, start + 3600), "for_s": (3600, 7200), "note": ("course", None), "gpu_indices": ([0], [0, 1])}
    body = {"from": start + 3600, "for_s": 7200, "note": "", "gpus": 2}
    got = edit(server, n, dry=True, **body)
    assert changes(got) == want and got.json["reservation"]["next"] == {"from": start + 3600, "to": start + 3 * 3600}
    assert get(server, n) == made  # only said
    assert changes(edit(server, n, **body)) == want
    for _ in range(2):
        seen = get(server, n)
        assert (seen["begins"], seen["for_s"], seen["note"], seen["gpu_indices"], seen["user"]) == (start + 3600, 7200, None, [0, 1], "ada")
        assert (seen["made"], seen["made_by"]) == (made["made"], made["made_by"])
        server.stop(kill=True)
        server.start()
        node_again = JobNode(server.dir / "run/server/link.sock", gpus=2)
        wait_for(lambda: get(server, n)["gpu_indices"] == [0, 1], "its GPUs are known again")
        node_again.close()
    assert changes(edit(server, n, **{"from": start + 3600})) == {}  # it is so already


def test_again_and_again(server, node):
    start = soon()
    n = reserve(server, **{"from": start}, gpus=1)["id"]
    assert changes(edit(server, n, every="0 9 * * 1-5", zone="Europe/Berlin")) == {"every": (None, "0 9 * * 1-5"), "zone": (None, "Europe/Berlin")}
    assert changes(edit(server, n, until=start + 30 * DAY)) == {"until": (None, start + 30 * DAY)}
    assert changes(edit(server, n, zone="UTC")) == {"zone": ("Europe/Berlin", "UTC")}
    assert changes(edit(server, n, until=0)) == {"until": (start + 30 * DAY, None)}
    edit(server, n, until=start + 30 * DAY)
    assert changes(edit(server, n, every="")) == {"every": ("0 9 * * 1-5", None), "zone": ("UTC", None), "until": (start + 30 * DAY, None)}
    assert get(server, n)["next"] == {"from": start, "to": start + 3600}


def test_which_gpus(server, node):
    """Those that it has come first; what was not said of them stays."""
    start = soon()
    n = reserve(server, **{"from": start}, gpu_ids=["1"], user="ada")["id"]
    assert changes(edit(server, n, gpus=2)) == {"gpu_indices": ([1], [0, 1])}
    assert changes(edit(server, n, gpu_ids=["1"])) == {"gpu_indices": ([0, 1], [1])}
    assert changes(edit(server, n, gpus=1, user="bob")) == {"user": ("ada", "bob")}
    assert get(server, n)["gpu_indices"] == [1]
    assert changes(edit(server, n, group="lab")) == {"user": ("bob", None), "group": (None, "lab")}


def test_one_that_has_begun(server, node):
    """Longer, shorter, later; not earlier, and not over."""
    start = int(time.time()) - 30
    n = reserve(server, **{"from": start}, for_s=3600)["id"]
    assert changes(edit(server, n, for_s=7200)) == {"for_s": (3600, 7200)}
    assert changes(edit(server, n, for_s=1800)) == {"for_s": (7200, 1800)}
    got = edit(server, n, **{"from": start - 3600})
    assert got.status == 400 and got.json["error"]["message"] == "from: lies in the past"
    assert changes(edit(server, n, **{"from": start + 7200})) == {"from": (start, start + 7200)}
    assert get(server, n)["state"] == "ahead"


# ---- what is in the way ----

def test_somebody_elses(server, node):
    """Whose and when, as at making; one's own old time is in nobody's way."""
    start = soon()
    first = reserve(server, **{"from": start}, gpu_ids=["0"], user="ada")
    second = reserve(server, **{"from": start}, gpu_ids=["1"], user="bob")
    before = get(server, second["id"])
    for change, few in (({"gpu_ids": ["0"]}, ""), ({"gpus": 2}, "1 of 2 GPUs are not reserved then: ")):
        got = edit(server, second["id"], **change)
        assert got.status == 409
        assert got.json["error"]["message"].startswith(f"{few}GPU 0 of lab is reserved for ada by reservation {first['id']}, from "), got.body
    assert get(server, second["id"]) == before
    assert changes(edit(server, second["id"], **{"from": start + 1800}))  # overlaps only what it was itself
    assert changes(edit(server, second["id"], **{"from": start + 3600}, gpus=2))["gpu_indices"] == ([1], [0, 1])
    got = edit(server, first["id"], for_s=7200)
    assert got.status == 409 and f"reserved for bob by reservation {second['id']}" in got.json["error"]["message"]
    got = reserve(server, ok=False, **{"from": start + 3600}, gpu_ids=["0"])
    assert got.status == 409  # what it became is in the way of new ones
    assert reserve(server, **{"from": start + 7200}, gpu_ids=["0"])


def test_two_at_once(server, node):
    """Eight that want the same free hour: one has it, whatever the order."""
    start = soon()
    many = [reserve(server, **{"from": start + 7200 * i}, gpu_ids=["0"])["id"] for i in range(8)]
    answers = []
    threads = [threading.Thread(target=lambda n=n: answers.append(edit(server, n, **{"from": start + 100 * 3600}).status)) for n in many]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(answers) == [200] + [409] * 7
    assert sorted(get(server, n)["begins"] for n in many)[-1] == start + 100 * 3600


def test_the_queue_plans_anew(server, node):
    """What a change frees is given to who waits; what it takes is kept."""
    held = node.submit(job_record(("hold",), scope=("1",)))["first"]
    wait_for(lambda: running(node) == [held], "GPU 1 is taken")
    made = reserve(server, **{"from": int(time.time())}, for_s=7200, gpu_ids=["0"], user="bob")
    job = node.submit(job_record(("hold",)))["first"]
    wait_for(lambda: "reserved for bob" in waiting(server).get(job, {}).get("why", ""), "it waits for bob's")
    assert changes(edit(server, made["id"], gpu_ids=["1"]))
    wait_for(lambda: running(node) == [held, job], "GPU 0 is everybody's now")
    node.finish((held, 0, 1), 0)
    other = node.submit(job_record(("hold",)))["first"]
    wait_for(lambda: "reserved for bob" in waiting(server).get(other, {}).get("why", ""), "and GPU 1 is bob's")
    assert changes(edit(server, made["id"], user="alice")) == {"user": ("bob", "alice")}
    wait_for(lambda: running(node) == [job, other], "now it is for her")


# ---- asked again ----

def test_an_answer_that_got_lost(server, node):
    start = soon()
    n = reserve(server, **{"from": start}, gpus=1)["id"]
    assert changes(edit(server, n, for_s=7200, Idempotency_Key="one"))
    assert changes(edit(server, n, for_s=9000, Idempotency_Key="two"))
    for _ in range(2):
        got = edit(server, n, for_s=7200, Idempotency_Key="one")
        assert changes(got) == {} and got.json["reservation"]["for_s"] == 9000
        server.stop(kill=True)
        server.start()
    assert server.unix("DELETE", f"/api/v1/reservations/{n}").status == 204
    assert edit(server, n, for_s=7200, Idempotency_Key="one").status == 404


# ---- what is refused ----

WRONG = [
    ({"from": 1000}, "from: lies in the past"),
    ({"for_s": 10}, "for: a minute is the least"),
    ({"for_s": 40 * DAY}, "for: 31 days are the most"),
    ({"gpus": 3}, "gpus: 3 are asked for, and lab has 2"),
    ({"gpus": 1.5}, "gpus: must be a whole number"),
    ({"gpu_ids": ["7"]}, "gpu_ids: lab has no such GPU"),
    ({"gpu_ids": []}, "gpu_ids"),
    ({"gpu_ids": ["0"], "gpus": 1}, "gpus: does not go with gpu_ids"),
    ({"node": "moon"}, "node: there is no machine moon with GPUs"),
    ({"every": "61 * * * *"}, "every: "),
    ({"every": "* * * * *"}, "for: it comes again before it is over"),
    ({"zone": "UTC"}, "zone: is for one that comes again"),
    ({"every": "0 9 * * *", "zone": "Mars/Base"}, "zone: this machine has no time zone Mars/Base"),
    ({"user": "ada", "group": "lab"}, "group: does not go with user"),
    ({"user": "a b"}, 'user: "a b" is no name'),
    ({"user": ""}, "user: 1 to 63 bytes"),
    ({"until": 5000}, "until: is for one that comes again"),
    ({"note": "x" * 201}, "note: longer than 200 bytes"),
    ({"begins": 5}, ""),
]


@pytest.mark.parametrize("change, sentence", WRONG, ids=[str(w[0])[:40] for w in WRONG])
def test_what_cannot_be_is_refused(server, node, change, sentence):
    n = reserve(server, user="ada")["id"]
    before = get(server, n)
    for dry in (True, False):
        got = edit(server, n, dry, **change)
        assert got.status == 400 and got.json["error"]["message"].startswith(sentence), got.body
    assert get(server, n) == before
    assert edit(server, n + 1, for_s=7200).status == 404


# ---- who may ----

@pytest.mark.skipif(os.geteuid() != 0, reason="somebody else asks")
@pytest.mark.parametrize("hours", [0, 5])
def test_who_may(hours):
    with Server(reserve__user_gpu_hours=hours) as server, JobNode(server.dir / "run/server/link.sock", gpus=2):
        wait_for(lambda: len(gpus(server)) == 2, "its GPUs are known")
        theirs = reserve(server, user="ada", gpu_ids=["1"])["id"]
        his = reserve(server, user="nobody", gpu_ids=["0"], for_s=4 * 3600)["id"]

        def nobody(*args):
            return subprocess.run([str(GPUMGR), "reserve", *map(str, args), "--dir", str(server.dir)], capture_output=True, text=True,
                                  env=clean_env(), user=65534, group=65534, extra_groups=[], timeout=120)

        out = nobody("edit", theirs, "--for", "30m")
        assert out.returncode != 0 and f"reservation {theirs} is ada's: only they and administrators change it" in out.stderr, out
        out = nobody("edit", his, "--for", "3h")  # less than somebody gave him
        assert out.returncode == 0 and "  for: 4h -> 3h\n" in out.stdout, out
        out = nobody("edit", his, "--for", "6h")
        assert out.returncode != 0, out
        assert ("only administrators reserve here" if not hours else "it has 6 GPU hours in the next seven days, and of the 5") in out.stderr, out
        out = nobody("edit", his, "--user", "ada")
        assert out.returncode != 0 and ("only administrators" if not hours else "only an administrator reserves for others") in out.stderr, out
        out = nobody("edit", his, "--for", "5h")
        assert (out.returncode == 0) == (hours == 5), out
        assert get(server, his)["for_s"] == (5 if hours else 3) * 3600 and get(server, his)["user"] == "nobody"


# ---- the command ----

def test_command(server, node):
    assert command(server, "--gpus", 1, "--from", "tomorrow 09:00", "--for", "4h", "--user", "ada").returncode == 0
    out = command(server, "edit", 1, "--for", "6h", "--gpus", 2, "--dry-run")
    lines = out.stdout.splitlines()
    assert out.returncode == 0 and "  for: 4h -> 6h" in lines and "  gpu: 0 -> 0,1" in lines and lines[-1] == "reservation 1 is not changed yet", out
    assert get(server, 1)["for_s"] == 4 * 3600
    out = command(server, "edit", 1, "--for", "6h", "--note", "more")
    assert out.returncode == 0 and "  note: (none) -> more\n" in out.stdout and out.stdout.endswith("reservation 1 is changed\n"), out
    assert command(server, "edit", 1, "--every", "weekdays").returncode == 0
    seen = get(server, 1)
    assert seen["every"] == "0 9 * * 1-5" and seen["for_s"] == 6 * 3600 and seen["note"] == "more"
    assert ", and again\n" in command(server, "edit", 1, "--zone", "Asia/Kolkata").stdout and get(server, 1)["zone"] == "Asia/Kolkata"
    assert command(server, "edit", 1, "--every", "once").returncode == 0 and get(server, 1)["every"] is None
    assert command(server, "edit", 1, "--for", "6h").stdout.endswith("reservation 1 is so already: nothing changes\n")
    assert json.loads(command(server, "edit", 1, "--for", "7h", "--json").stdout)["reservation"]["for_s"] == 7 * 3600
    before = get(server, 1)
    for args, sentence in ((("edit",), "edit: which reservation?"), (("edit", "x", "--for", "4h"), '"x" is no number'), (("edit", 1), "edit: what is to change?"),
                           (("edit", 1, 2, "--for", "4h"), "edit: which reservation?"), (("edit", 9, "--for", "4h"), "there is no reservation 9"),
                           (("edit", 1, "--from", "2020-01-01 00:00"), "from: lies in the past"), (("edit", 1, "--gpu", "0", "--gpus", "1"), "--gpus: does not go with --gpu"),
                           (("edit", 1, "--for", "forever"), "--for"), (("edit", 1, "--zone", "UTC"), "zone: is for one that comes again"),
                           (("--for", "4h", "--dry-run"), "--dry-run: is for edit")):
        out = command(server, *args)
        assert out.returncode == 2 and sentence in out.stderr and out.stderr.count("\n") == 1 and not out.stdout, (args, out)
    assert get(server, 1) == before
