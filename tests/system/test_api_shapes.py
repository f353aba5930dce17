"""What the API's own description says of every answer is what comes: each GET of the route table is asked, as an administrator and
as somebody who is none, and the keys of its answer are held against the reply that is described there, both ways."""

import json
import os
import re
import urllib.parse

import pytest

from api_shapes import Shapes, differences
from job_box import ADA, api, box, gpumgr, idle, job, submit  # noqa: F401
from server import Server
from simulator import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="users of several kinds need root")

@pytest.fixture
def world(box):
    """Something of everything that a list can have."""
    done = submit(box, "--gpus", 1, "--label", "a=b", "--", "true")
    runs = submit(box, "--gpus", 2, "--time-limit", "1h", "--", "sleep", "600")
    submit(box, "--gpus", 1, "--array", "1-3", "--after", f"{runs}:any", "--", "true", user=ADA)
    wait_for(lambda: job(box, done)["ended"] and job(box, runs)["started"], "one has ended, one runs")
    task = box.sim.task("--gpu", 0, "--forever")
    wait_for(lambda: box.sim.say("fault 0 xid 31") is not None and (g := box.gpu(0)).get("xids") and g.get("processes"), "a process and an XID are seen")
    made = {
        "jobs": runs,
        "repeats": int(gpumgr(box, "submit", "--cron", "0 3 * * *", "--name", "nightly", "--", "true").stdout),
        "services": json.loads(gpumgr(box, "service", "add", "web", "--json", "--", "sleep", "600").stdout)["id"],
        "reservations": json.loads(gpumgr(box, "reserve", "--gpus", 1, "--from", "tomorrow 09:00", "--for", "1h", "--json").stdout)["id"],
        "groups": "lab",
        "users": "ada",
        "gpus": box.status()["gpus"][0]["uuid"],
        "nodes": api(box, "nodes")[1]["nodes"][0]["name"],
    }
    assert api(box, "groups/lab", "PUT", {"members": [f"node:{made['nodes']}"]})[0] == 201
    assert api(box, "users/ada", "PUT", {"role": "member"})[0] == 201
    assert gpumgr(box, "token", "new", "program").returncode == 0
    yield made
    task.kill()
    for words in (("repeat", "remove", made["repeats"]), ("service", "remove", "web"), ("reserve", "cancel", made["reservations"])):
        assert gpumgr(box, *words).returncode == 0


# What a route wants to be told, and those whose answer is no JSON, or that are asked elsewhere: test_containers_api.
QUERY = {"history": "of=gpu:GPU&metric=gpu_temperature_celsius", "repeat-times": "cron=0 3 * * *"}
OWN = re.compile("/spec$")  # what is its owner's and root's alone
NOT_HERE = re.compile("^(?!/api/v1/)|/containers/{id}|/images$|/log$")


def target_of(path, world):
    kind = path.split("/")[3]
    query = urllib.parse.quote(QUERY.get(kind, "").replace("GPU", world["gpus"]), safe="=&:")
    return re.sub("{[^}]*}", lambda _: str(world[kind]), path).removeprefix("/api/v1/") + (f"?{query}" if query else "")


def test_every_answer_is_what_is_described(box, world):
    described = api(box, "openapi.json")[1]
    shapes = Shapes(described)
    found, seen = [], 0
    for path in (p for p in shapes.replies if not NOT_HERE.search(p)):
        target = target_of(path, world)
        is_for_all = "administrators" not in described["paths"][path]["get"]["description"]
        for who, (status, answer) in (("root", api(box, target)), ("ada", Server.unix_as(box, ADA, "GET", f"/api/v1/{target}"))):
            if who == "ada" and (not is_for_all or OWN.search(path)):
                assert (status, answer["error"]["code"]) == (403, "forbidden"), f"{who} {target}: {status} {answer}"
                continue
            assert status == 200, f"{who} {target}: {status} {answer}"
            if wanted := shapes.of(path):
                seen += 1
                found += [f"{who}: {path} {d}" for d in differences(wanted[-1], answer)]
    assert not found, "\n".join(found)
    assert seen > 50
