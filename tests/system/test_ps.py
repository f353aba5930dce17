"""GPU tasks and containers in every view: ps, the API, the stream, /metrics and the history say the same of the same task."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import time

import pytest

from hand_node import HandNode
from instance import GPUMGR, Instance, clean_env
from server import Server, UnixConnection
from simulator import Simulator, wait_for
from task_containers import IMAGE, TaskEngine

ID = "ab" * 32
KEYS = {"pid", "gpu", "user", "container", "opened", "start", "end", "deadline_s", "float_s", "hit"}


@pytest.fixture
def server():
    with Server() as s:
        yield s


def link_of(server):
    return server.dir / "run/server/link.sock"


def ps(where, *flags):
    out = subprocess.run([GPUMGR, "ps", "--dir", where.dir, *flags], env=clean_env(), capture_output=True, text=True, timeout=30)
    assert out.returncode == 0, out.stderr
    return out.stdout


def shown(where, *flags):
    return json.loads(ps(where, "--json", *flags))


def get(server, path):
    answer = server.unix("GET", path)
    assert answer.status == 200, answer.body
    return answer.json


def by_pid(tasks):
    assert len({t["id"] for t in tasks}) == len(tasks), "a task is there twice"
    return {t["pid"]: t for t in tasks}


def four(node):
    """One that runs in time, one overdue, one that kept its deadline, one that missed it."""
    truth = {
        1: node.task(1, ["GPU-a"], ago=2, deadline=60, container=ID, name="train"),
        2: node.task(2, ["GPU-a", "GPU-b"], ago=5, deadline=2, container=ID, name="train"),
        3: node.task(3, ["GPU-b"], ago=9, took=4, deadline=6, container=ID, name="train"),
        4: node.task(4, ["GPU-b"], ago=9, took=7.5, deadline=6, container=ID, name="train"),
        5: node.task(5, ["GPU-b"], ago=3),
    }
    node.container(ID, "train", deadline=6, running=2, hits=1, misses=2, float_s=0.5, least_s=-1.5, labels="gpumgr.deadline=6s\n")
    return truth


def told(server, count=5):
    return wait_for(lambda: len(get(server, "/api/v1/tasks")["tasks"]) == count, f"{count} tasks")


# ---- one truth, every view ----

def test_every_view_says_the_same(server):
    with HandNode(link_of(server)) as node:
        truth = four(node)
        told(server)
        api = by_pid(get(server, "/api/v1/tasks")["tasks"])
        mine = shown(server, "--all")
        assert set(mine) == {"containers", "tasks"} and all(KEYS <= set(t) for t in mine["tasks"])
        for pid, t in by_pid(mine["tasks"]).items():
            for key in t.keys() - ({"float_s"} if t["end"] is None else set()):
                assert t[key] == api[pid][key], (pid, key)
            assert abs(t["start"] - truth[pid]["start"]) < 0.01 and t["user"] == "alice"
            assert t["end"] == (None if truth[pid]["end"] is None else pytest.approx(truth[pid]["end"], abs=0.01))
        assert {p: (t["state"], t["hit"]) for p, t in api.items()} == {
            1: ("running", None), 2: ("overdue", False), 3: ("ended", True), 4: ("ended", False), 5: ("running", None)}
        assert api[3]["float_s"] == pytest.approx(2, abs=1e-4) and api[4]["float_s"] == pytest.approx(-1.5, abs=1e-4)
        assert 50 < api[1]["float_s"] < 58.1 and api[2]["float_s"] < -2.9 and api[5]["deadline_s"] is None
        assert api[2]["gpus"] == ["GPU-a", "GPU-b"] and api[2]["gpu"] == "GPU-a" and api[5]["container"] is None
        box = mine["containers"][0]
        assert (box["name"], box["hits"], box["misses"], box["deadline_s"], box["running"]) == ("train", 1, 2, 6, 2)
        assert box == {**get(server, "/api/v1/containers")["containers"][0], "left_s": box["left_s"]}
        whole = get(server, "/api/v1/containers/train")
        assert whole["id"] == ID and {t["pid"] for t in whole["tasks"]} == {1, 2, 3, 4} and whole["labels"] == {"gpumgr.deadline": "6s"}
        assert get(server, f"/api/v1/containers/{ID[:12]}")["id"] == ID
        metrics = server.unix("GET", "/metrics").body.decode()
        who = f'{{host="hand",container="train",container_id="{ID[:12]}",tenant="team-a"'
        assert f"gpumgr_deadline_hits_total{who}}} 1\n" in metrics and f"gpumgr_deadline_misses_total{who}}} 2\n" in metrics
        assert f'gpumgr_task_seconds_bucket{who},le="5"}} 1\n' in metrics and f'gpumgr_task_seconds_bucket{who},le="10"}} 2\n' in metrics
        table = ps(server, "--all")
        assert re.search(r"^train .* 6s +2\+3 .* 33% 1/3 ", table, re.M), table
        assert re.search(r"^ *4 .*-1\.5s MISS", table, re.M) and re.search(r"^ *3 .* 2\.0s hit", table, re.M), table
        assert re.search(r"^ *2 .* OVERDUE", table, re.M), table


def test_without_all_only_what_runs(server):
    with HandNode(link_of(server)) as node:
        four(node)
        told(server)
        assert set(by_pid(shown(server)["tasks"])) == {1, 2, 5}


@pytest.mark.parametrize("query, want", [
    ("state=running", {1, 2, 5}), ("state=overdue", {2}), ("state=ended", {3, 4}), ("state=hit", {3}), ("state=missed", {2, 4}),
    ("gpu=GPU-a", {1, 2}), ("container=train", {1, 2, 3, 4}), (f"container={ID}", {1, 2, 3, 4}), ("user=alice&limit=2", {5, 1}),
    ("user=bob", set()), ("node=hand&from=-4", {1, 5}), ("to=-4", {2, 3, 4}),
])
def test_tasks_are_chosen(server, query, want):
    with HandNode(link_of(server)) as node:
        four(node)
        told(server)
        got = get(server, f"/api/v1/tasks?{query}")["tasks"]
        assert {t["pid"] for t in got} == want, query
        order = [int(t["start"] * 1000) for t in got]
        assert order == sorted(order, reverse=True)


@pytest.mark.parametrize("query, word", [("state=late", "late"), ("limit=0", "limit"), ("before=x", "before"), ("gpu=" + "x" * 200, "gpu"), ("what=1", "what")])
def test_nonsense_is_refused(server, query, word):
    answer = server.unix("GET", f"/api/v1/tasks?{query}")
    assert answer.status == 400 and word in answer.json["error"]["message"]
    assert server.unix("GET", "/api/v1/containers/nobody").status == 404


def test_pages_have_every_task_once(server):
    with HandNode(link_of(server)) as node:
        for pid in range(1, 251):
            node.task(pid, ["GPU-a"], ago=500 - pid, took=0.5)
        wait_for(lambda: get(server, "/api/v1/tasks?limit=1")["tasks"][0]["pid"] == 250, "the last one")
        seen, next_ = [], None
        while True:
            page = get(server, "/api/v1/tasks?limit=100" + (f"&before={next_}" if next_ else ""))
            seen += [t["pid"] for t in page["tasks"]]
            next_ = page["next"]
            if not next_:
                break
        assert seen == list(range(250, 0, -1))


# ---- nothing is lost or doubled ----

def test_a_killed_server_knows_its_tasks_again(server):
    with HandNode(link_of(server)) as node:
        four(node)
        told(server)
        with sqlite3.connect(f"file:{server.dir}/server/history.db?mode=ro", uri=True) as db:
            wait_for(lambda: db.execute("SELECT count(*) FROM task").fetchone()[0] == 5, "stored")
    server.stop(kill=True)
    server.start()
    before = by_pid(get(server, "/api/v1/tasks")["tasks"])
    assert {p: t["state"] for p, t in before.items()} == {1: "running", 2: "overdue", 3: "ended", 4: "ended", 5: "running"}
    with HandNode(link_of(server)) as node:
        node.mark = 10**6  # the node tells again what the server may have: nothing of it is new
        four(node)
        wait_for(lambda: len(get(server, "/api/v1/tasks?state=running")["tasks"]) == 3, "those that run")
        assert len(get(server, "/api/v1/tasks")["tasks"]) == 5
        count = re.search(r'gpumgr_task_seconds_count\{host="hand",container="train".*\} (\d+)', server.unix("GET", "/metrics").body.decode())
        assert count and count[1] == "0", "counted twice"


def test_a_reboot_ends_what_ran(server):
    with HandNode(link_of(server)) as node:
        four(node)
        told(server)
    with HandNode(link_of(server), boot_id="99999999-2222-3333-4444-555555555555") as node:
        node.task(8, ["GPU-a"], ago=0)
        wait_for(lambda: {t["pid"] for t in get(server, "/api/v1/tasks?state=running")["tasks"]} == {8}, "only the new one runs")
        lost = by_pid(get(server, "/api/v1/tasks")["tasks"])[1]
        assert lost["state"] == "ended" and lost["end"] is None and not lost["end_is_exact"] and lost["hit"] is None


# ---- without a server ----

def test_the_table_says_what_the_server_says(tmp_path):
    """The same instance, asked with its server and without."""
    with Simulator(tmp_path / "sim", "--model", "h200:2") as sim:
        flags = ("--gpu-devices", sim.dir / "dev", "--engines.docker", "", "--engines.podman", "")
        with Instance(sim, *flags, role="up") as i:
            i.tracking(2)
            first, second = sim.task("--gpu", "0", "--work", "0.2"), sim.task("--gpu", "1", "--forever")
            first.wait()
            pids = {first.pid, second.pid}

            def both():
                known = {t["pid"]: t for t in shown(i, "--all")["tasks"]}
                return known if pids <= set(known) and known[first.pid]["state"] == "ended" and known[first.pid]["user"] and known[second.pid]["user"] else None
            api = wait_for(both, "both tasks in the server")
            for pid in i.of_program("server"):
                os.kill(pid, signal.SIGSTOP)
                (i.dir / "run/server/api.sock").rename(i.dir / "run/server/away.sock")
                try:
                    table = {t["pid"]: t for t in shown(i, "--all")["tasks"]}
                finally:
                    (i.dir / "run/server/away.sock").rename(i.dir / "run/server/api.sock")
                    os.kill(pid, signal.SIGCONT)
            for pid in pids:
                for key in ("id", "gpus", "uid", "kind", "opened", "start", "end", "source", "deadline_s", "state", "hit"):
                    assert table[pid][key] == api[pid][key], (pid, key)
            assert all(table[pid]["user"] == api[pid]["user"] for pid in pids), "of a short task, too"
            text = ps(i)
            assert re.search(rf"^ *{second.pid} +1 ", text, re.M) and str(first.pid) not in text, text
            second.kill()
            wait_for(lambda: second.pid not in {t["pid"] for t in shown(i)["tasks"]}, "it ended")


def test_watch_goes_on_and_ends_with_a_signal(server):
    with HandNode(link_of(server)) as node:
        p = subprocess.Popen([GPUMGR, "ps", "--watch", "0.2", "--json", "--dir", server.dir], env=clean_env(), stdout=subprocess.PIPE, text=True)
        assert json.loads(p.stdout.readline())["tasks"] == []
        node.task(1, ["GPU-a"], ago=1)
        deadline = time.monotonic() + 10
        while not json.loads(p.stdout.readline())["tasks"] and time.monotonic() < deadline:
            pass
        assert json.loads(p.stdout.readline())["tasks"][0]["pid"] == 1
        p.send_signal(signal.SIGINT)
        assert p.wait(30) == 0


def test_where_nothing_ever_ran(tmp_path):
    out = subprocess.run([GPUMGR, "ps", "--dir", tmp_path], env=clean_env(), capture_output=True, text=True)
    assert out.returncode == 1 and out.stderr.count("\n") == 1 and "gpumgr up" in out.stderr


# ---- real containers ----

@pytest.fixture
def docker(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("an engine needs root")
    engine = TaskEngine(tmp_path / "engine")
    yield engine
    engine.stop()


def test_real_containers_are_the_same_in_every_view(tmp_path, docker):
    """One deadline that is kept, one that is missed, and one container that still runs."""
    with Simulator(tmp_path / "sim", "--model", "h200:2") as sim:
        flags = ("--gpu-devices", sim.dir / "dev", "--engines.docker", docker.socket, "--engines.podman", "")
        with Instance(sim, *flags, role="up") as i:
            i.tracking(2)
            docker.run_task(sim, "--gpu", "0", "--work", "0.5", words=("--name", "kept", "--label", "gpumgr.deadline=30s"))
            docker.run_task(sim, "--gpu", "0", "--work", "1.5", words=("--name", "late", "--label", "gpumgr.deadline=500ms"))
            docker.run_task(sim, "--gpu", "1", "--forever", words=("--name", "stays"))

            def all_told():
                known = {t["container"]: t for t in shown(i, "--all")["tasks"]}
                ok = {"kept", "late", "stays"} <= set(known) and known["kept"]["end"] and known["late"]["end"]
                boxes = {c["name"]: c for c in shown(i, "--all")["containers"]}
                return (known, boxes) if ok and boxes["late"]["misses"] and boxes["kept"]["hits"] else None
            known, boxes = wait_for(all_told, "all three, two of them ended", 30)
            assert known["kept"]["hit"] is True and known["kept"]["deadline_s"] == 30 and known["kept"]["image"] == IMAGE
            assert known["late"]["hit"] is False and known["late"]["float_s"] < 0 and known["late"]["deadline_s"] == 0.5
            assert known["stays"]["state"] == "running" and known["stays"]["hit"] is None
            for t in (known["kept"], known["late"]):
                assert t["float_s"] == pytest.approx(t["deadline_s"] - (t["end"] - t["start"]), abs=0.02)
            assert [(boxes[n]["hits"], boxes[n]["misses"]) for n in ("kept", "late", "stays")] == [(1, 0), (0, 1), (0, 0)]
            api = {t["container"]: t for t in Server.request(UnixConnection(i.dir / "run/server/api.sock"), "GET", "/api/v1/tasks", None, {}).json["tasks"]}
            assert all(api[n][k] == known[n][k] for n in ("kept", "late") for k in known[n])
            metrics = Server.request(UnixConnection(i.dir / "run/server/api.sock"), "GET", "/metrics", None, {}).body.decode()
            assert re.search(r'gpumgr_deadline_misses_total\{[^}]*container="late"[^}]*\} 1\n', metrics)
            assert re.search(r'gpumgr_deadline_hits_total\{[^}]*container="kept"[^}]*\} 1\n', metrics)
            top = subprocess.run([GPUMGR, "top", "--once", "--dir", i.dir], env=clean_env(COLUMNS="160"), capture_output=True, text=True)
            status = Server.request(UnixConnection(i.dir / "run/server/api.sock"), "GET", "/api/v1/gpus", None, {}).json["gpus"]
            assert "stays" in [p.get("container") for g in status for p in g["processes"]]
            assert re.search(r"CONTAINER", top.stdout) and re.search(r" stays +gpusim-task", top.stdout), top.stdout
