"""A machine that falls silent: somebody is told, it is listed as gone, also by a server that was started since; it comes back,
comes under another name, or is forgotten by an administrator."""

import sqlite3
import time

import pytest

from hand_node import HandNode
from server import Server
from simulator import wait_for
from test_tell import Hook


@pytest.fixture
def hook():
    h = Hook()
    yield h
    h.server.shutdown()


@pytest.fixture
def server(hook):
    with Server(server__gone_s=2, tell__webhook=hook.url + "/hook", tell__again_s=1) as s:
        yield s


def node(server, name="lab", **more):
    return HandNode(server.dir / "run/server/link.sock", name, **more)


def seen(server, name="lab"):
    return next((n for n in server.unix("GET", "/api/v1/nodes").json["nodes"] if n["name"] == name), None)


def stored(server):
    db = sqlite3.connect(f"file:{server.dir}/server/state.db?mode=ro", uri=True)
    rows = dict(db.execute("SELECT name, gpus FROM nodes").fetchall())
    db.close()
    return rows


def state(server, name="lab"):
    n = seen(server, name)
    return n and n["state"]


def kinds(server):
    return [e["kind"] for e in server.unix("GET", "/api/v1/events").json["events"]]


def told(hook):
    return [(m["status"], m["alerts"][0]["labels"]["host"]) for m in hook.about("node")]


def test_silence_is_told_once_and_so_is_its_end(server, hook):
    with node(server):
        wait_for(lambda: state(server) == "ok", "it is there")
    left = time.time()
    wait_for(lambda: state(server) == "gone", "it is gone")
    assert abs(seen(server)["last_seen"] - left) < 3
    wait_for(lambda: told(hook) == [("firing", "lab")], "somebody is told")
    with node(server):
        wait_for(lambda: state(server) == "ok", "it is back")
        wait_for(lambda: told(hook) == [("firing", "lab"), ("resolved", "lab")], "and that it is over")
    wait_for(lambda: kinds(server) == ["node_back", "node_gone"], "both are events")
    events = server.unix("GET", "/api/v1/events?node=lab").json["events"]
    assert [e["severity"] for e in events] == ["info", "critical"] and all(e["node"] == "lab" for e in events)


@pytest.mark.parametrize("kill", [False, True])
def test_a_server_that_was_started_anew_misses_it(server, hook, kill):
    with node(server):
        wait_for(lambda: stored(server) == {"lab": ""}, "it is there, for a later server, too")
    server.stop(kill)
    server.start()
    assert state(server) == "stale", "it is expected"
    wait_for(lambda: told(hook) == [("firing", "lab")], "it is missed")
    server.stop(kill)
    server.start()
    assert state(server) == "gone"
    with node(server):
        wait_for(lambda: told(hook) == [("firing", "lab"), ("resolved", "lab")], "it is back")
    assert kinds(server).count("node_gone") <= 1 if kill else 1, "said once, though the server was started twice"


def test_an_administrator_forgets_it_for_good(server, hook):
    with node(server), node(server, "other"):
        wait_for(lambda: state(server) == "ok" and state(server, "other") == "ok", "both are there")
        refused = server.unix("DELETE", "/api/v1/nodes/lab")
        assert (refused.status, refused.code) == (409, "conflict") and "not gone" in refused.json["error"]["message"]
    wait_for(lambda: told(hook).count(("firing", "lab")) == 1, "it is gone")
    assert server.unix("DELETE", "/api/v1/nodes/nobody").status == 404
    assert server.unix_as(65533, "DELETE", "/api/v1/nodes/lab")[0] == 403
    assert server.unix("DELETE", "/api/v1/nodes/lab").status == 204
    server.stop(kill=True)
    server.start()
    assert state(server) is None and state(server, "other") == "gone"
    wait_for(lambda: ("resolved", "lab") in told(hook), "nobody waits for it any longer")
    wait_for(lambda: server.unix("GET", "/api/v1/audit").json["audit"][0]["path"] == "/api/v1/nodes/lab", "it is in the audit log")
    with node(server):
        wait_for(lambda: state(server) == "ok", "it may come back")


def test_a_machine_that_hangs_is_forgotten_with_its_connection(server):
    hung = node(server)
    wait_for(lambda: state(server) == "ok", "it is there")
    hung.is_over = True  # connected, and says nothing
    wait_for(lambda: state(server) == "gone", "it is gone")
    assert server.unix("DELETE", "/api/v1/nodes/lab").status == 204
    assert state(server) is None
    hung.s.settimeout(10)
    while hung.s.recv(4096):
        pass
    hung.close()


def test_a_machine_under_another_name_is_the_same_by_its_cards(server, hook):
    with node(server, "c0ffee", gpus=("GPU-a", "GPU-b")), node(server, "lab", gpus=("GPU-c",)):
        wait_for(lambda: stored(server) == {"c0ffee": "GPU-a GPU-b", "lab": "GPU-c"}, "they are there")
    with node(server, "decade", gpus=("GPU-b",)):
        wait_for(lambda: state(server, "c0ffee") == "gone", "one of its cards alone does not make it another's")
    with node(server, "decade", gpus=("GPU-b", "GPU-a", "GPU-d")):
        wait_for(lambda: state(server, "c0ffee") is None, "it is the other one now")
        assert state(server, "lab") == "gone" and state(server, "decade") == "ok"
        wait_for(lambda: ("resolved", "c0ffee") in told(hook), "whoever was told hears it")
        server.stop()
        server.start()
        assert state(server, "c0ffee") is None
