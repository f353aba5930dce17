"""The queue in the server, with a node by hand: what it grants, what it stores, what it tells, whoever dies."""

import http.server
import importlib.machinery
import importlib.util
import json
import re
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest

from instance import GPUMGR, clean_env
from job_node import (ABSENT, BY_CANCEL, BY_REBOOT, CANCEL, ENDED, GIB, HOLD, IS_FOREIGN, IS_FREE, PRIORITY, RELEASE, RUNNING, SUBMITTED, Books,
                      JobNode, job_record, service_record)
from server import Server
from simulator import wait_for


@pytest.fixture
def server():
    with Server() as s:
        yield s


@pytest.fixture
def node(server):
    with JobNode(server.dir / "run/server/link.sock") as n:
        yield n


def test_the_node_of_the_bench_is_welcome(server):
    """It is a node of ours without threads; what ours learns, it must not miss."""
    loader = importlib.machinery.SourceFileLoader("bench_queue", str(Path(__file__).parents[2] / "bench/queue"))
    bench = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(bench)
    node = bench.Plain(server.dir / "run/server/link.sock")
    for f in node.frames(2, 3, job_record(("hold",))):
        node.s.sendall(f)
    assert [node.taken() for _ in range(2)] == [(1, 3), (4, 3)]
    node.close()


def running(node):
    with node.books.lock:
        return sorted(k[0] for k, r in node.books.runs.items() if r["state"] == RUNNING)


def test_a_job_is_granted_runs_and_ends(server, node):
    answer = node.submit(job_record(("exit", "0"), name="short"))
    assert answer["result"] == 0 and answer["count"] == 1
    job = answer["first"]
    wait_for(lambda: (job, 0, 1) in node.stored, "the end is acknowledged")
    assert node.books.starts == [(job, 0, 1)]


def test_gpus_are_given_to_one_at_a_time_and_in_order(server, node):
    first = node.submit(*[job_record(("hold",), gpus=2) for _ in range(5)])["first"]
    wait_for(lambda: len(running(node)) == 2, "two jobs run on four GPUs")
    assert running(node) == [first, first + 1]
    held = [u for k, u in node.books.grants]
    assert len({g for u in held for g in u}) == 4
    node.finish((first, 0, 1), 0)
    wait_for(lambda: running(node) == [first + 1, first + 2], "the third follows the first")


def test_a_gpu_that_somebody_else_uses_is_not_given_away(server, node):
    for i in range(3):
        node.free(i, IS_FOREIGN, "mallory")
    job = node.submit(job_record(("hold",), gpus=2))["first"]
    other = node.submit(job_record(("hold",), gpus=1, scope=("3",)))["first"]
    wait_for(lambda: running(node) == [other], "the one that fits runs")
    node.free(1, IS_FREE)
    node.free(2, IS_FREE)
    wait_for(lambda: running(node) == [job, other], "both run")
    assert [u for k, u in node.books.grants if k[0] == job] == [[node.uuids[1], node.uuids[2]]]


IMPOSSIBLE = [
    ({"gpus": 5}, "gpus: 5 are wanted, and lab has 4"),
    ({"scope": ("7",)}, "gpu_ids: there is no GPU 7 on lab (0 to 3)"),
    ({"gpus": 2, "scope": ("1",)}, "scope: names 1 GPU, but gpus asks for 2"),
    ({"memory": 200 * GIB}, "memory: 200.0 GiB on 1 GPU is wanted, and 0 of lab can have that; the largest has 80.0 GiB"),
    ({"after": ("99",)}, "after: there is no job 99"),
    ({"finish_by_ns": 1}, "finish_by: "),
]


@pytest.mark.parametrize("spec, sentence", IMPOSSIBLE, ids=[str(s) for s, _ in IMPOSSIBLE])
def test_what_can_never_run_is_refused_with_the_sentence_that_says_so(node, spec, sentence):
    answer = node.submit(job_record(("x",), **spec))
    assert answer["result"] < 0 and sentence in answer["text"], answer


def test_the_list_by_name_and_label(server, node):
    """Names and labels lie in records: whatever page they are on, all are found once, and what runs besides stays as it is."""
    for _ in range(2):
        node.submit(*[job_record(("hold",), gpus=4, name=f"n{i}", labels=("all=1", *((f"hundred={i}",) if i % 100 == 0 else ()))) for i in range(1500)])

    def pages(query, limit):
        jobs, before = [], None
        while True:
            got = server.unix("GET", f"/api/v1/jobs?limit={limit}&{query}" + (f"&before={before}" if before else "")).json
            jobs += got["jobs"]
            assert len(got["jobs"]) <= limit
            if not got["next"]:
                return [j["name"] for j in jobs], [j["id"] for j in jobs]
            before = got["next"]
    for limit in (1, 7, 30, 1000):
        names, ids = pages("label=hundred", limit)
        assert names == 2 * [f"n{i}" for i in range(1400, -1, -100)] and ids == sorted(set(ids), reverse=True), limit
    assert pages("name=n149%3F", 4)[0] == 2 * [f"n{i}" for i in range(1499, 1489, -1)]
    assert pages("name=n1*&label=hundred%3D100,all", 1)[0] == ["n100", "n100"]
    assert pages("label=all%3D1", 1000)[0] == 2 * [f"n{i}" for i in range(1499, -1, -1)]
    assert pages("label=none", 5)[0] == pages("name=n", 5)[0] == pages("label=hundred%3D100&user=nobody", 5)[0] == []
    queue = server.unix("GET", "/api/v1/queue?label=hundred&limit=3").json
    assert queue["waiting_count"] == 30 - (queue["running"][0]["name"] == "n0") and len(queue["waiting"]) == 3 and len(queue["running"]) == 1
    for query, words in (("label=", "label: "), ("label=%3Dx", "label: "), ("name=", "name: it is empty")):
        for what in ("jobs", "queue"):
            got = server.unix("GET", f"/api/v1/{what}?{query}")
            assert got.status == 400 and got.json["error"]["message"].startswith(words), got.body


def test_of_a_batch_all_or_none_is_taken(server, node):
    answer = node.submit(job_record(("x",)), job_record(("x",), gpus=9), job_record(("x",)))
    assert answer["result"] < 0 and answer["text"].startswith("job 2 of 3: gpus"), answer
    assert node.submit(job_record(("exit", "0")))["first"] == 1


def test_retries(server, node):
    job = node.submit(job_record(("exit", "3"), retries=1))["first"]
    wait_for(lambda: (job, 0, 2) in node.stored, "the second attempt is stored")
    assert node.books.starts == [(job, 0, 1), (job, 0, 2)]


def test_dependencies(server, node):
    a = node.submit(job_record(("hold",)))["first"]
    b = node.submit(job_record(("exit", "0"), after=(str(a),)))["first"]
    c = node.submit(job_record(("exit", "0"), after=(f"{b}:any",)))["first"]
    wait_for(lambda: running(node) == [a], "the first runs")
    assert node.books.state((b, 0, 1)) == ABSENT
    node.finish((a, 0, 1), 0)
    wait_for(lambda: (c, 0, 1) in node.stored, "they run after each other")
    assert node.books.starts == [(a, 0, 1), (b, 0, 1), (c, 0, 1)]


def test_jobs_of_one_submission_wait_for_each_other(server, node):
    """By their places, before and behind; and a server that is started anew knows them by their numbers."""
    node.submit(job_record(("exit", "0")))
    first = node.submit(job_record(("exit", "0"), name="eval", after=("+2", "+1:any")), job_record(("hold",), name="prepare"),
                        job_record(("hold",), name="train", after=("-1", "-1:any", "1")))["first"]
    evaluate, prepare, train = first, first + 1, first + 2
    wait_for(lambda: running(node) == [prepare], "the first runs")
    jobs = {j["id"]: j for j in server.unix("GET", "/api/v1/jobs").json["jobs"]}
    assert jobs[evaluate]["after"] == [train, f"{prepare}:any"] and jobs[train]["after"] == [prepare, f"{prepare}:any", 1] and jobs[prepare]["after"] == []
    assert jobs[evaluate]["state"] == jobs[train]["state"] == "held"
    books = node.books
    node.close()
    server.stop()
    server.start()
    with JobNode(server.dir / "run/server/link.sock", books) as again:
        assert server.unix("GET", f"/api/v1/jobs/{train}").json["why"] == f"it waits for job {prepare} to end well"
        again.finish((prepare, 0, 1), 0)
        wait_for(lambda: running(again) == [train], "the next runs")
        assert books.state((evaluate, 0, 1)) == ABSENT
        again.finish((train, 0, 1), 0)
        wait_for(lambda: (evaluate, 0, 1) in again.stored, "and the last")


APART = [
    ([{}, {"after": ("-2",)}], 'job 2 of 2: after: "-2" is no place among the jobs that are handed in together'),
    ([{"after": ("+1",)}], 'after: "+1" is no place among'),
    ([{"after": ("+0",)}], 'after: "+0" is not the number of a job'),
    ([{}, {"after": ("+1",)}, {"after": ("-1",)}], 'job 2 of 3: after: "x" waits for this job in its turn'),
    ([{"after": ("+1:any",)}, {"after": ("77",)}], "job 2 of 2: after: there is no job 77"),
]


@pytest.mark.parametrize("specs, sentence", APART, ids=[str(s) for s, _ in APART])
def test_whatever_a_record_says_of_its_neighbours_is_looked_at(server, node, specs, sentence):
    answer = node.submit(*[job_record(("x",), **spec) for spec in specs])
    assert answer["result"] < 0 and sentence in answer["text"], answer
    assert server.unix("GET", "/api/v1/jobs").json["jobs"] == []


def test_a_row_of_thousands_ends_with_its_first(server, node):
    """Each waits for the one before; half of them stand the wrong way round."""
    n = 4000
    first = node.submit(job_record(("hold",)), *[job_record(("x",), after=("-1",)) for _ in range(n)])["first"]
    other = node.submit(*[job_record(("x",), after=("+1",)) for _ in range(200)], job_record(("hold",)))["first"]
    wait_for(lambda: running(node) == [first, other + 200], "both that wait for nobody run")
    assert node.control(CANCEL, first)["result"] == 0 and node.control(CANCEL, other + 200)["result"] == 0
    last = wait_for(lambda: (j := server.unix("GET", f"/api/v1/jobs/{first + n}").json)["state"] == "cancelled" and j, "the last of the row is over", 60)
    assert last["state_text"] == f"job {first + n - 1}, which it was to follow, ended as: cancelled"
    wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{other}").json["state"] == "cancelled", "and that of the other row", 60)
    assert server.unix("GET", "/api/v1/queue").json["waiting_count"] == 0


def test_an_array_runs_so_many_at_once(server, node):
    job = node.submit(job_record(("hold",), array="1-10%3"))["first"]
    wait_for(lambda: len(running(node)) == 3, "three elements run")
    for element in range(10):
        wait_for(lambda: node.books.state((job, element, 1)) == RUNNING, f"element {element} runs")
        assert len(running(node)) <= 3
        node.finish((job, element, 1), 0)
    wait_for(lambda: len(node.stored) == 10, "all are stored")
    assert len(node.books.starts) == 10


def test_cancel_waiting_and_running(server, node):
    a = node.submit(job_record(("hold",), gpus=4))["first"]
    b = node.submit(job_record(("hold",), gpus=4))["first"]
    wait_for(lambda: running(node) == [a], "the first runs")
    assert node.control(CANCEL, b, uid=1001)["result"] < 0
    assert node.control(CANCEL, b)["result"] == 0
    assert node.control(CANCEL, b)["text"] == f"job {b} is over: cancelled"
    assert node.control(CANCEL, a)["result"] == 0
    wait_for(lambda: (a, 0, 1) in node.stored, "its end is stored")
    assert node.books.runs[(a, 0, 1)]["reason"] == BY_CANCEL
    assert node.books.state((b, 0, 1)) == ABSENT


def test_hold_and_release(server, node):
    a = node.submit(job_record(("hold",), gpus=4))["first"]
    b = node.submit(job_record(("hold",), gpus=4))["first"]
    c = node.submit(job_record(("hold",), gpus=4))["first"]
    assert node.control(HOLD, b)["result"] == 0
    wait_for(lambda: running(node) == [a], "the first runs")
    node.finish((a, 0, 1), 0)
    wait_for(lambda: running(node) == [c], "the one that is held is passed")
    assert node.control(RELEASE, b)["result"] == 0
    node.finish((c, 0, 1), 0)
    wait_for(lambda: running(node) == [b], "it runs")
    assert node.control(PRIORITY, b, value=5)["result"] < 0


def test_jobs_survive_the_server(server):
    link = server.dir / "run/server/link.sock"
    books = Books()
    with JobNode(link, books) as node:
        a = node.submit(job_record(("hold",), gpus=4))["first"]
        b = node.submit(job_record(("exit", "0"), gpus=4))["first"]
        wait_for(lambda: running(node) == [a], "the first runs")
        server.stop(kill=True)
    server.start()
    with JobNode(link, books) as node:
        assert running(node) == [a]
        node.finish((a, 0, 1), 7)
        wait_for(lambda: (b, 0, 1) in node.stored, "the second runs after it")
        assert books.starts == [(a, 0, 1), (b, 0, 1)]


def test_an_end_that_nobody_heard_of_is_told_again(server):
    link = server.dir / "run/server/link.sock"
    books = Books()
    with JobNode(link, books) as node:
        a = node.submit(job_record(("hold",), gpus=4))["first"]
        wait_for(lambda: running(node) == [a], "the first runs")
    with books.lock:
        books.runs[(a, 0, 1)].update(state=ENDED, code=5, has_exit=True, end=1, reason=0)
    with JobNode(link, books) as node:
        wait_for(lambda: (a, 0, 1) in node.stored, "it is stored")
    with JobNode(link, books) as node:  # STORED was lost
        books.runs[(a, 0, 1)]["stored"] = False
        node.tell((a, 0, 1))
        wait_for(lambda: (a, 0, 1) in node.stored, "it is acknowledged once more")
    assert books.starts == [(a, 0, 1)]


def test_a_grant_that_was_lost_on_the_way_is_sent_again(server):
    link = server.dir / "run/server/link.sock"
    books = Books()
    with JobNode(link, books) as node:
        a = node.submit(job_record(("hold",), gpus=4))["first"]
        wait_for(lambda: running(node) == [a], "the first runs")
    with books.lock:  # as if the frame had never come
        books.runs.clear()
        books.starts.clear()
    # it was told as running before: a node that forgot it cannot say how it ended
    with JobNode(link, books) as node:
        wait_for(lambda: not running(node), "it is not started again")


def test_a_machine_that_was_started_anew(server, node):
    a = node.submit(job_record(("hold",), retries=1))["first"]
    b = node.submit(job_record(("hold",)))["first"]
    wait_for(lambda: running(node) == [a, b], "both run")
    node.finish((a, 0, 1), None, BY_REBOOT, has_exit=False)
    node.finish((b, 0, 1), None, BY_REBOOT, has_exit=False)
    wait_for(lambda: node.books.state((a, 0, 2)) == RUNNING, "the one with a retry runs again")
    assert node.books.state((b, 0, 2)) == ABSENT


# ---- the API ----

def test_jobs_are_shown_and_controlled_by_the_api(server, node):
    a = node.submit(job_record(("hold", "--lr", "1"), name="train", gpus=4, labels=("team=x",)))["first"]
    b = node.submit(job_record(("hold",), gpus=2), uid=1001, user="bob")["first"]
    wait_for(lambda: running(node) == [a], "the first runs")
    jobs = server.unix("GET", "/api/v1/jobs").json["jobs"]
    assert [j["id"] for j in jobs] == [b, a]
    first = jobs[1]
    assert (first["name"], first["state"], first["user"], first["uid"], first["gpus"]) == ("train", "running", "alice", 1000, 4)
    assert first["command"] == ["hold", "--lr", "1"] and first["labels"] == {"team": "x"} and first["gpu_indices"] == [0, 1, 2, 3]
    assert jobs[0]["state"] == "waiting" and jobs[0]["started"] is None
    assert server.unix("GET", "/api/v1/jobs?state=running").json["jobs"][0]["id"] == a
    assert [j["id"] for j in server.unix("GET", f"/api/v1/jobs?user=bob&limit=1").json["jobs"]] == [b]
    assert server.unix("GET", "/api/v1/jobs?state=sleeping").status == 400
    queue = server.unix("GET", "/api/v1/queue").json
    assert [j["id"] for j in queue["waiting"]] == [b] and [j["id"] for j in queue["running"]] == [a]
    assert [g["held_by"] for g in queue["gpus"]] == [[a]] * 4
    assert queue["waiting"][0]["place"] == 1 and queue["waiting"][0]["why"], queue["waiting"][0]
    assert {(p["job"], p["kind"]) for p in queue["plan"]} >= {(a, "run")}
    trial = server.unix("POST", "/api/v1/jobs?dry_run=1", {"command": ["x"]}).json["jobs"][0]
    assert trial["starts_now"] is False and trial["place"] == 2 and trial["why"], trial
    assert server.unix("DELETE", f"/api/v1/jobs/{b}").json["state"] == "cancelled"
    assert server.unix("DELETE", f"/api/v1/jobs/{b}").code == "conflict"
    assert server.unix("DELETE", f"/api/v1/jobs/{a}").json["state"] == "ending"
    wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{a}").json["state"] == "cancelled", "it has ended")
    one = server.unix("GET", f"/api/v1/jobs/{a}").json
    assert one["reason"] and [r["attempt"] for r in one["runs"]] == [1] and one["runs"][0]["signal"] == 15
    assert server.unix("GET", "/api/v1/jobs/77").status == 404
    assert server.unix("DELETE", "/api/v1/jobs/77").status == 404
    assert server.unix("GET", "/api/v1/jobs/x").status == 404


def test_others_look_but_do_not_touch(server, node):
    a = node.submit(job_record(("hold",)))["first"]
    wait_for(lambda: running(node) == [a], "it runs")
    assert server.unix_as(1001, "GET", f"/api/v1/jobs/{a}")[0] == 200
    assert server.unix_as(1001, "DELETE", f"/api/v1/jobs/{a}")[0] == 403
    assert server.unix_as(1001, "GET", f"/api/v1/jobs/{a}/log")[0] == 403
    assert server.unix_as(1000, "DELETE", f"/api/v1/jobs/{a}")[0] == 200
    uuid = node.uuids[0]
    assert server.unix_as(1000, "PUT", f"/api/v1/gpus/{uuid}/cordon", {"reason": "mine"})[0] == 403


def test_logs(server, node):
    a = node.submit(job_record(("hold",)))["first"]
    b = node.submit(job_record(("hold",), gpus=4))["first"]
    wait_for(lambda: running(node) == [a], "it runs")
    log = server.unix("GET", f"/api/v1/jobs/{a}/log")
    assert log.status == 200 and log.body == f"log of {a}.0.1\n".encode() * 10 and log.headers["X-Log-Over"] == "0"
    part = server.unix("GET", f"/api/v1/jobs/{a}/log?offset=5")
    assert part.body == log.body[5:] and part.headers["X-Log-Offset"] == "5" and part.headers["X-Log-Total"] == str(len(log.body))
    assert server.unix("GET", f"/api/v1/jobs/{b}/log").status == 404
    node.finish((a, 0, 1), 0)
    stream = server.unix("GET", f"/api/v1/jobs/{a}/log?follow=1")
    assert b"event: log" in stream.body and stream.body.rstrip().endswith(b'"total":%d}' % len(log.body))


def test_the_log_of_another_machine_is_followed(server, node):
    """Nobody here has its node's socket: the server asks the machine, also one that is tried again or goes away for a while."""
    a = node.submit(job_record(("hold",), retries=1, name="far"))["first"]
    wait_for(lambda: running(node) == [a], "it runs")
    shown = server.gpumgr("logs", str(a))
    assert shown.returncode == 0 and shown.stdout == f"log of {a}.0.1\n" * 10
    p = subprocess.Popen([str(GPUMGR), "logs", "-f", str(a), "--dir", str(server.dir)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=clean_env())
    assert [p.stdout.readline() for _ in range(10)] == [f"log of {a}.0.1\n"] * 10
    node.finish((a, 0, 1), 3)
    assert [p.stdout.readline() for _ in range(10)] == [f"log of {a}.0.2\n"] * 10, "the next try has a log of its own"
    wait_for(lambda: (a, 0, 2) in node.books.runs and node.books.state((a, 0, 2)) == RUNNING, "it runs again")
    node.finish((a, 0, 2), 0)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0 and out == "", (out, err)
    b = node.submit(job_record(("hold",)))["first"]
    wait_for(lambda: running(node) == [b], "it runs")
    got = server.gpumgr("attach", str(b))
    assert got.returncode == 2 and f"job {b} is on lab: attach to it there" in got.stderr


def test_an_element_that_is_tried_again_is_not_over(server, node):
    a = node.submit(job_record(("hold",), retries=1, array="1-2"))["first"]
    wait_for(lambda: len(node.books.starts) == 2, "both run")
    p = subprocess.Popen([str(GPUMGR), "wait", f"{a}.2", "--dir", str(server.dir)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=clean_env())
    node.finish((a, 1, 1), 3)
    wait_for(lambda: (a, 1, 2) in node.books.runs and node.books.state((a, 1, 2)) == RUNNING, "it is tried again", 60)
    assert p.poll() is None, p.communicate()
    node.finish((a, 1, 2), 4)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 4, err


def test_an_element_behind_a_thousand_others(server, node):
    """Its run is found all the same; and a list shows the last try of a job, not its first."""
    a = node.submit(job_record(("exit", "0"), array="1-1200"))["first"]
    wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{a}").json["state"] == "done", "all are over", 120)
    one = server.unix("GET", f"/api/v1/jobs/{a}?element=1150").json
    assert [(r["element"], r["state"]) for r in one["runs"]] == [(1150, "done")]
    assert server.unix("GET", f"/api/v1/jobs/{a}?element=1300").json["runs"] == []
    assert server.gpumgr("wait", f"{a}.1150", "--quiet").returncode == 0
    b = node.submit(job_record(("hold",), retries=1))["first"]
    for attempt, code in ((1, 3), (2, 4)):
        wait_for(lambda: (b, 0, attempt) in node.books.runs and node.books.state((b, 0, attempt)) == RUNNING, "it runs", 60)
        node.finish((b, 0, attempt), code)
    wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{b}").json["state"] == "failed", "it is over", 60)
    server.stop(kill=True)
    server.start()  # what is over is in the file only
    assert server.unix("GET", "/api/v1/jobs?limit=1").json["jobs"][0]["exit_code"] == 4


def shown(server, job):
    """What a job looks like, by itself and in a list."""
    both = [server.unix("GET", f"/api/v1/jobs/{job}").json, *server.unix("GET", "/api/v1/jobs?limit=1").json["jobs"]]
    facts = [(j["state"], j["exit_code"], j["reason"], j["elements"]) for j in both]
    assert facts[0] == facts[1]
    return facts[0]


@pytest.mark.parametrize("breaks", [False, True], ids=["", "server killed"])
@pytest.mark.parametrize("last", ["ends well", "is cancelled", "is cancelled alone"])
def test_an_array_is_shown_by_what_made_it_fail(breaks, last):
    """Whatever came after that; and who asks later hears the same."""
    books = Books()
    with Server() as server:
        link = server.dir / "run/server/link.sock"
        with JobNode(link, books) as node:
            a = node.submit(job_record(("hold",), array="1-4%2"))["first"]
            wait_for(lambda: len(running(node)) == 2, "two run")
            node.finish((a, 0, 1), 3)
            wait_for(lambda: (a, 0, 1) in node.stored and books.state((a, 2, 1)) == RUNNING, "the first has failed")
            if breaks:
                server.stop(kill=True)
        if breaks:
            server.start()
        with JobNode(link, books) as node:
            if last == "is cancelled":
                assert node.control(CANCEL, a)["result"] == 0
                counts = {"failed": 1, "cancelled": 3}
            else:
                if last == "is cancelled alone":
                    assert server.gpumgr("cancel", f"{a}.4").returncode == 0
                for element in (1, 2, *([3] if last == "ends well" else [])):
                    wait_for(lambda: books.state((a, element, 1)) == RUNNING, "it runs")
                    node.finish((a, element, 1), 0)
                counts = {"failed": 1, "done": 3} if last == "ends well" else {"failed": 1, "done": 2, "cancelled": 1}
            wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{a}").json["state"] == "failed", "it is over")
            want = ("failed", 3, None, {"total": 4, **counts})
            assert shown(server, a) == want
            ended = server.unix("GET", f"/api/v1/jobs/{a}").json["ended"]
            assert server.gpumgr("wait", str(a), "--quiet").returncode == 1
            wait_for(lambda: all(books.runs[k]["stored"] for k in books.starts), "all are stored")
            server.stop(kill=True)
        server.start()  # what is over is in the file only
        assert shown(server, a) == want and server.unix("GET", f"/api/v1/jobs/{a}").json["ended"] == ended
        assert server.gpumgr("wait", str(a), "--quiet").returncode == 1


def lose(server, node, count=1):
    """Jobs that run on a machine which then goes away."""
    first = node.submit(*[job_record(("hold",)) for _ in range(count)])["first"]
    wait_for(lambda: running(node) == list(range(first, first + count)), "they run")
    node.close()
    wait_for(lambda: all(g["verdict"] == "unknown" for g in server.unix("GET", "/api/v1/queue").json["gpus"]), "the machine is away")
    return first


def come_back(server, node, *keys):
    """It tells of all runs that it has, as a node does."""
    again = JobNode(server.dir / "run/server/link.sock", node.books)
    for k in keys:
        again.tell(k)
    return again


def test_a_machine_that_does_not_come_back():
    with Server(jobs__lost_s=1) as server, JobNode(server.dir / "run/server/link.sock") as node:
        a = lose(server, node, 2)
        assert server.unix("DELETE", f"/api/v1/jobs/{a}").status == 200
        got = wait_for(lambda: (j := server.unix("GET", f"/api/v1/jobs/{a}").json)["state"] == "exit unknown" and j, "it is given up", 60)
        assert got["exit_code"] is None and "lab has been away for" in got["text"] and "did not come back" in got["reason"]
        assert server.unix("GET", f"/api/v1/jobs/{a + 1}").json["state"] == "running", "nobody wanted this one to end"
        c = a + 2
        with come_back(server, node, (a, 0, 1), (a + 1, 0, 1)) as again:
            wait_for(lambda: node.books.state((a, 0, 1)) == ENDED and (a, 0, 1) in again.stored, "it is ended there")
            assert node.books.state((a + 1, 0, 1)) == RUNNING and node.books.starts.count((a, 0, 1)) == 1
            assert again.submit(job_record(("exit", "0")))["first"] == c
            wait_for(lambda: (c, 0, 1) in again.stored, "the queue goes on")
        assert server.unix("GET", f"/api/v1/jobs/{a}").json["state"] == "exit unknown"


def test_one_that_nobody_wants_to_end_says_that_its_machine_is_away():
    """It may go on there: it is neither over nor tried elsewhere, people see why nothing moves, and it ends as it does."""
    with Server(jobs__lost_s=6) as server, JobNode(server.dir / "run/server/link.sock") as node:
        a = lose(server, node)
        got = wait_for(lambda: (j := server.unix("GET", f"/api/v1/jobs/{a}").json)["text"] and j, "it is said", 60)
        assert got["state"] == "running" and "lab has been away for" in got["text"] and "whether it still runs there is not known" in got["text"]
        events = wait_for(lambda: [e for e in server.unix("GET", "/api/v1/events").json["events"] if e["kind"] == "job_away"], "an event", 60)
        assert f"job {a}" in events[0]["text"]
        with come_back(server, node, (a, 0, 1)) as again:
            wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{a}").json["text"] is None, "it is here again")
            again.finish((a, 0, 1), 0)
            wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{a}").json["state"] == "done", "and ends")
        assert node.books.starts == [(a, 0, 1)]
        assert len([e for e in server.unix("GET", "/api/v1/events").json["events"] if e["kind"] == "job_away"]) == 1


def test_a_job_is_given_up_when_somebody_insists(server, node):
    a = lose(server, node)
    assert server.gpumgr("cancel", str(a)).returncode == 0
    assert server.unix("GET", f"/api/v1/jobs/{a}").json["state"] == "ending"
    assert server.gpumgr("cancel", "--force", str(a)).returncode == 0
    got = server.unix("GET", f"/api/v1/jobs/{a}").json
    assert got["state"] == "exit unknown" and "it was given up" in got["text"]
    server.stop(kill=True)
    server.start()
    with come_back(server, node, (a, 0, 1)) as again:
        wait_for(lambda: node.books.state((a, 0, 1)) == ENDED and (a, 0, 1) in again.stored, "it is ended there")


@pytest.mark.parametrize("ends", [False, True])
def test_a_run_that_the_queue_never_had(ends):
    with Server(jobs__end_unknown=str(ends).lower()) as server, JobNode(server.dir / "run/server/link.sock") as node:
        stray = (4711, 0, 1)
        with node.books.lock:
            node.books.runs[stray] = {"state": RUNNING, "stored": False, "command": ["hold"], "start": 1}
        node.tell(stray)
        wait_for(lambda: "runs job 4711, which this server never had" in server.unix("GET", "/api/v1/events").body.decode(), "an event")
        if ends:
            wait_for(lambda: node.books.state(stray) == ENDED and stray in node.stored, "it is ended")
        else:
            assert node.submit(job_record(("true",)))["result"] == 0 and node.books.state(stray) == RUNNING


def test_a_gpu_out_of_service(server, node):
    for u in node.uuids[:3]:
        assert server.unix("PUT", f"/api/v1/gpus/{u}/cordon", {"reason": "fan"}).status == 204
    a = node.submit(job_record(("hold",), gpus=2))["first"]
    assert server.unix("GET", "/api/v1/queue").json["gpus"][0]["verdict"] == "cordoned"
    assert server.unix("PUT", "/api/v1/gpus/GPU-none/cordon", {}).status == 404
    assert not running(node)
    assert server.unix("DELETE", f"/api/v1/gpus/{node.uuids[1]}/cordon").status == 204
    wait_for(lambda: running(node) == [a], "it runs")
    assert node.books.grants[0][1] == [node.uuids[1], node.uuids[3]]


def test_a_page_of_jobs_says_whether_there_is_another(server, node):
    first = node.submit(*[job_record(("hold",)) for _ in range(5)])["first"]
    for limit, shown, is_more in ((2, 2, True), (4, 4, True), (5, 5, False), (100, 5, False)):
        page = server.unix("GET", f"/api/v1/jobs?limit={limit}").json
        assert len(page["jobs"]) == shown and (page["next"] == page["jobs"][-1]["id"] if is_more else page["next"] is None), limit
    assert [j["id"] for j in server.unix("GET", f"/api/v1/jobs?limit=3&before={first + 3}").json["jobs"]] == [first + 2, first + 1, first]


def test_a_report(server, node):
    a = node.submit(job_record(("hold",), gpus=2))["first"]
    wait_for(lambda: running(node) == [a], "it runs")
    node.finish((a, 0, 1), 0, gpu_seconds=0.5, energy=120.0)
    wait_for(lambda: (a, 0, 1) in node.stored, "it is stored")
    report = server.unix("GET", "/api/v1/report").json
    assert [u["user"] for u in report["users"]] == ["alice"] and report["total"]["runs"] == 1
    assert report["sentence"].endswith("% of GPU-hours were held idle") and report["total"]["energy_joules"] == 120.0
    assert server.unix("GET", "/api/v1/report?by=moon").status == 400


def test_a_report_counts_what_runs_and_of_a_shared_gpu_its_part(server, node):
    whole = node.submit(job_record(("hold",), gpus=2))["first"]
    part = node.submit(job_record(("hold",), gpus=1, share=20 * GIB), user="bob", uid=1001)["first"]
    wait_for(lambda: running(node) == [whole, part], "both run")

    def report():
        got = server.unix("GET", "/api/v1/report").json
        return got, {u["user"]: u for u in got["users"]}

    begun = server.unix("GET", f"/api/v1/jobs/{whole}").json["started"]
    wait_for(lambda: (r := report()[1])["alice"]["gpu_hours_held"] * 3600 > 2 and r["bob"]["gpu_hours_held"] > 0, "they held their GPUs for some time")
    got, users = report()
    took = got["total"]["gpu_hours_held"] * 3600
    assert users["alice"]["running"] == 1 and users["alice"]["runs"] == 0 and users["alice"]["wait_s_mean"] is None
    assert 6 < users["alice"]["gpu_hours_held"] / users["bob"]["gpu_hours_held"] < 10, "two GPUs against a quarter of one"
    assert [u["user"] for u in got["users"]] == ["alice", "bob"] and got["sentence"] == "100 % of GPU-hours were held idle"
    with node.books.lock:
        node.books.runs[(whole, 0, 1)]["gpu_seconds"] = took / 2
    node.tell((whole, 0, 1))
    wait_for(lambda: report()[1]["alice"]["gpu_hours_used"] * 3600 > took / 2 * 0.9, "what it has used counts")
    node.finish((whole, 0, 1), 0, gpu_seconds=took / 2)
    node.finish((part, 0, 1), 0)
    wait_for(lambda: report()[0]["total"]["runs"] == 2, "both are over")
    got, users = report()
    ended = server.unix("GET", f"/api/v1/jobs/{whole}").json["ended"]
    assert got["total"]["running"] == 0 and abs(users["alice"]["gpu_hours_held"] * 3600 - 2 * (ended - begun)) < 1, "once, not twice"


@pytest.fixture
def member(server):
    """Somebody with an account and a token."""
    assert server.unix("PUT", "/api/v1/users/carol", {"role": "member"}).status == 201
    link = server.unix("POST", "/api/v1/links", {"user": "carol"}).json
    secret = link["url_path"].split("#")[1]
    signed = server.tcp("POST", "/api/v1/session", {"link": secret.split("=")[-1]}, Origin=server.url)
    cookie = signed.cookie()
    csrf = server.tcp("GET", "/api/v1/session", Cookie=cookie).json["csrf"]
    return lambda method, path, body=None, **more: server.tcp(method, path, body, Cookie=cookie, X_CSRF_Token=csrf, Origin=server.url, **more)


def test_handing_in_by_the_api(server, node, member):
    answer = member("POST", "/api/v1/jobs", {"command": ["exit", "0"], "gpus": 1})
    assert answer.status == 201, answer.body
    job = answer.json["id"]
    wait_for(lambda: (job, 0, 1) in node.stored, "it ran")
    one = member("GET", f"/api/v1/jobs/{job}").json
    assert (one["state"], one["account"], one["origin"], one["exit_code"]) == ("done", "carol", "account", 0)
    several = member("POST", "/api/v1/jobs", {"jobs": [{"command": ["exit", "0"]}, {"command": ["exit", "1"]}]})
    assert several.status == 201 and several.json["count"] == 2
    bad = member("POST", "/api/v1/jobs", {"jobs": [{"command": ["a"]}, {"command": ["b"], "gpus": 9}]})
    assert bad.status == 400 and "jobs[1]: gpus: 9 are wanted" in bad.json["error"]["message"]
    assert "colour" in member("POST", "/api/v1/jobs", {"command": ["a"], "colour": 1}).json["error"]["message"]
    assert member("POST", "/api/v1/jobs", "{").status == 400
    again = member("POST", f"/api/v1/jobs/{job}/rerun")
    assert again.status == 201 and again.json["id"] == several.json["id"] + 2
    wait_for(lambda: (again.json["id"], 0, 1) in node.stored, "it ran again")
    held = member("POST", "/api/v1/jobs", {"command": ["hold"], "gpus": 4}).json["id"]
    wait_for(lambda: running(node) == [held], "it runs")
    assert member("DELETE", f"/api/v1/jobs/{held}").status == 200


def test_a_pipeline_by_the_api(server, node, member):
    jobs = [{"name": "eval", "command": ["exit", "0"], "after": ["train"]}, {"name": "train", "command": ["exit", "0"], "after": ["prepare:any"]},
            {"name": "prepare", "command": ["hold"]}]
    plan = member("POST", "/api/v1/jobs?dry_run=1", {"jobs": jobs}).json["jobs"]
    assert [(j["name"], j["step"], j["starts_now"], j["why"]) for j in plan] == [
        ("eval", 3, False, "it waits for train to end well"), ("train", 2, False, "it waits for prepare to end"), ("prepare", 1, True, "it starts now")]
    bad = member("POST", "/api/v1/jobs", {"jobs": [*jobs[:2], {**jobs[2], "after": ["eval"]}]})
    assert bad.status == 400 and bad.json["error"]["message"].startswith('jobs[0]: after: "train" waits for this job in its turn'), bad.body
    assert member("GET", "/api/v1/jobs").json["jobs"] == []
    answer = member("POST", "/api/v1/jobs", {"jobs": jobs})
    assert answer.status == 201 and answer.json["count"] == 3, answer.body
    evaluate, train, prepare = (answer.json["id"] + i for i in range(3))
    wait_for(lambda: running(node) == [prepare], "the first runs")
    assert member("POST", "/api/v1/jobs?dry_run=1", {"command": ["x"], "after": [prepare]}).json["jobs"][0]["why"] == f"it waits for job {prepare} to end well"
    node.finish((prepare, 0, 1), 1)
    wait_for(lambda: (evaluate, 0, 1) in node.stored, "and the rest")
    assert node.books.starts == [(prepare, 0, 1), (train, 0, 1), (evaluate, 0, 1)]
    again = member("POST", f"/api/v1/jobs/{evaluate}/rerun")  # alone: by the numbers of those that it came with
    assert again.status == 201 and member("GET", f"/api/v1/jobs/{again.json['id']}").json["after"] == [train]


def test_a_key_takes_jobs_once(server, node, member):
    hold = [job_record(("hold",), gpus=4, name=f"k{i}") for i in range(2)]
    first = node.submit(*hold, key="abc")
    assert first["result"] == 0 and node.submit(*hold, key="abc") == first
    other = node.submit(hold[0], key="abc")
    assert other["result"] < 0 and "used before, for 2 jobs" in other["text"]
    theirs = node.submit(*hold, key="abc", uid=4711, user="bob")
    assert theirs["first"] == first["first"] + 2, "a key is his who uses it"
    one = member("POST", "/api/v1/jobs", {"command": ["hold"]}, Idempotency_Key="abc")
    assert one.status == 201 and one.json["id"] == theirs["first"] + 2
    assert member("POST", "/api/v1/jobs", {"command": ["hold"]}, Idempotency_Key="abc").json == one.json
    several = member("POST", "/api/v1/jobs", {"jobs": [{"command": ["hold"]}] * 2}, Idempotency_Key="abc")
    assert several.status == 409 and "used before, for 1 job from" in several.json["error"]["message"]
    assert member("POST", "/api/v1/jobs", {"command": ["hold"]}, Idempotency_Key="two words").status == 400
    server.stop(kill=True)
    server.start()
    with JobNode(server.dir / "run/server/link.sock", node.books) as again:
        assert again.submit(*hold, key="abc")["first"] == first["first"], "a server that was killed knows it, too"
    assert len(server.unix("GET", "/api/v1/jobs?limit=100").json["jobs"]) == 5


def test_frames_of_one_submission_are_taken_together(server, node):
    hold = job_record(("hold",), gpus=4)
    request = node.submit_soon([hold] * 3, is_part=True)
    before = node.submit(hold)["first"]
    node.submit_soon([hold] * 2, part_of=request, is_part=True)
    node.submit_soon([hold], part_of=request)
    answer = node.wait_answer(request)
    assert answer["result"] == 0 and answer["count"] == 6 and answer["first"] == before + 1
    bad = node.submit_soon([hold] * 3, is_part=True)
    node.submit_soon([job_record(("hold",), gpus=9)], part_of=bad)
    answer = node.wait_answer(bad)
    assert answer["result"] < 0 and "job 4 of 4" in answer["text"]
    lost = node.submit_soon([hold] * 3, is_part=True)  # and its node goes before the rest
    node.close()
    with JobNode(server.dir / "run/server/link.sock", node.books) as again:
        assert again.submit(hold)["first"] == before + 7, f"nothing of {lost} was taken"


def test_an_account_that_is_nobody_here(server, node, member):
    assert server.unix("PUT", "/api/v1/users/nobody", {"role": "member"}).status == 201
    token = server.unix("POST", "/api/v1/jobs", {"command": ["x"]})
    assert token.status == 403 and "has no account here" in token.json["error"]["message"]


# ---- what was acknowledged is on the disk ----

def kinds(line):
    """The types of the frames that a traced call sends: one call may send several."""
    sent = bytes.fromhex("".join(re.findall(r'iov_base="((?:\\x..)*)"', line)).replace("\\x", "")) if " writev(" in line else b""
    found = []
    while len(sent) >= 8:
        length, kind, version, zero = struct.unpack_from("<IBBH", sent)
        if (version, zero) != (1, 0):
            break  # not the link
        found.append(kind)
        sent = sent[4 + length:]
    return found


def test_a_submission_is_synced_before_it_is_acknowledged(tmp_path):
    trace = tmp_path / "trace"
    with Server() as server, JobNode(server.dir / "run/server/link.sock") as node:
        strace = subprocess.Popen(["strace", "-f", "-xx", "-s", "4096", "-e", "trace=fdatasync,fsync,writev", "-e", "signal=none", "-o", str(trace),
                                   "-p", str(server.process.pid)], stderr=subprocess.PIPE)
        try:
            assert b"attached" in strace.stderr.readline()
            for _ in range(3):
                assert node.submit(job_record(("hold",), gpus=4))["result"] == 0

            def all_answers():  # a call is written down when it has returned: its bytes may be here before
                lines = trace.read_text().splitlines()
                return sum(kinds(line).count(SUBMITTED) for line in lines) == 3 and lines
            lines = wait_for(all_answers, "three answers are traced")
        finally:
            strace.terminate()
            strace.wait(30)
    synced = False
    for line in lines:
        if "sync" in line and line.rstrip().endswith("= 0"):
            synced = True
        if SUBMITTED in kinds(line):
            assert synced, f"acknowledged before it was synced: {line}"
            synced = False


@pytest.mark.parametrize("command", ["exit", "flash"])
def test_whom_a_job_names_is_told(server, node, command):
    told = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        where = f"webhook:http://127.0.0.1:{receiver.server_port}/"
        node.submit(job_record((command, "3"), name="train", notify=(where,)))
        wait_for(lambda: len(told) == 2, "start and failure are told")
        receiver.shutdown()
    assert "has started" in json.dumps(told[0]) and "failed with exit code 3" in json.dumps(told[1])
    refused = node.submit(job_record(("x",), notify=("command:rm -rf /",)))
    assert refused["result"] < 0 and refused["text"].startswith("notify: commands are not run here (jobs.notify_command is off)")


# ---- asked again, since the answer was lost ----

def test_a_service_is_taken_once_by_its_key(server, node):
    """And so is another revision of it; by another key, or none, it is what it always was."""
    first = node.submit(service_record("web"), key="one")
    assert first["result"] == 0
    assert node.submit(service_record("web"), key="one") == {**first, "text": ""}
    assert "there is a service web already" in node.submit(service_record("web"), key="two")["text"]
    assert "there is a service web already" in node.submit(service_record("web"))["text"]
    for _ in range(3):
        assert node.submit(service_record("web", update="replace"), key="three")["first"] == first["first"]
    server.stop(kill=True)
    server.start()
    with JobNode(server.dir / "run/server/link.sock", node.books) as again:
        assert again.submit(service_record("web", update="replace"), key="three")["first"] == first["first"]
        assert again.submit(service_record("web"), key="one")["first"] == first["first"]
        (web,) = server.unix("GET", "/api/v1/services").json["services"]
        assert [v["number"] for v in server.unix("GET", f"/api/v1/services/{web['id']}").json["revisions"]] == [2, 1]


def test_a_reservation_is_made_once_by_its_key(server, node):
    ask = {"from": int(time.time()) + 86400, "for_s": 3600, "gpus": 2}
    first = server.unix("POST", "/api/v1/reservations", ask, Idempotency_Key="one")
    assert first.status == 201
    server.stop(kill=True)
    server.start()
    with JobNode(server.dir / "run/server/link.sock", node.books):
        again = server.unix("POST", "/api/v1/reservations", ask, Idempotency_Key="one")
        assert (again.status, again.json["id"]) == (201, first.json["id"])
        assert len(server.unix("GET", "/api/v1/reservations").json["reservations"]) == 1
        other = server.unix("POST", "/api/v1/reservations", ask, Idempotency_Key="two")
        assert other.status == 201 and other.json["id"] != first.json["id"]
        bad = server.unix("POST", "/api/v1/reservations", ask, Idempotency_Key="a b")
        assert bad.status == 400 and "Idempotency-Key: 1 to 64" in bad.json["error"]["message"]
