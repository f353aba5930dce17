"""The port for watchmen's clients: its addresses, fields and states, without its defects."""

import re
import subprocess
import threading

import pytest

from instance import GPUMGR, clean_env
from job_node import IS_FOREIGN, IS_FREE, JobNode, job_record
from server import Server
from simulator import wait_for
from watchmen_client import Client, Refused


class Port:
    def __init__(self, server):
        self.server = server

    @property
    def address(self):
        return (self.server.dir / "run/server/watchmen").read_text().split("//")[1].strip()

    def client(self, id, gpus, mode="queue", n=0, **more):
        return Client(self.address, id, gpus, mode, n, **more)

    def get(self, path, **headers):
        return self.client("-", []).ask("GET", path, headers=headers)


@pytest.fixture
def server():
    with Server(watchmen__listen="127.0.0.1:0", watchmen__token="none", watchmen__queue_timeout_s=3) as s:
        yield s


@pytest.fixture
def port(server):
    return Port(server)


@pytest.fixture
def node(server):
    with JobNode(server.dir / "run/server/link.sock") as n:
        yield n


def ids(port, which="work"):
    return [(e["id"], e["status"]) for e in port.get(f"/show/{which}")["msg"]]


def test_queue_mode_waits_for_just_these(port, node):
    a, b = port.client("alice@a", [0, 1]), port.client("bob@b", [1, 2])
    assert a.wait() == [0, 1]
    b.register()
    assert b.ping() == ("waiting", [])
    entry = port.get("/show/work")["msg"][1]
    assert set(entry) == {"id", "mode", "register_time", "last_request_time", "status", "queue_num", "gpus", "msg", "req_gpu_num", "available_gpus"}
    assert (entry["id"], entry["mode"], entry["status"], entry["queue_num"], entry["gpus"], entry["available_gpus"]) == ("bob@b", "queue", "waiting", 1, [1, 2], [])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", entry["register_time"])
    # his processes are seen on all of his GPUs: they protect them from now on
    node.free(0, IS_FOREIGN, "alice")
    node.free(1, IS_FOREIGN, "alice")
    wait_for(lambda: ids(port, "finished") == [("alice@a", "ok")], "the grant became use")
    assert b.ping()[0] == "waiting"
    node.free(1, IS_FREE)
    wait_for(lambda: b.ping() == ("ready", [1, 2]), "the next one has them")


def test_schedule_mode_gives_so_many_in_the_order_listed(port, node):
    node.free(2, IS_FOREIGN, "mallory")
    assert port.client("a", [3, 2, 0, 1], "schedule", 2).wait() == [3, 0]
    assert port.client("b", [0, 1, 2, 3], "schedule", 1).wait() == [1]


def test_many_at_once_in_both_modes_get_sets_of_their_own(port, node):
    node.free()
    clients = [port.client(f"user@{i}", [0, 1, 2, 3], "schedule", 1 + i % 2) if i % 3 else port.client(f"user@{i}", [i % 4, (i + 1) % 4])
               for i in range(12)]
    held, lock, clashes = {}, threading.Lock(), []

    def run(c):
        gpus = c.wait(60)
        with lock:
            clashes.extend((g, held[g], c.id) for g in gpus if g in held)
            held.update({g: c.id for g in gpus})
        want = c.req if c.mode == "schedule" else len(c.gpus)
        assert len(gpus) == want and set(gpus) <= set(c.gpus), (c.id, gpus)
        with lock:
            for g in gpus:
                held.pop(g, None)
        c.cancel()

    threads = [threading.Thread(target=run, args=(c,)) for c in clients]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert all(c.granted for c in clients) and not clashes
    wait_for(lambda: not ids(port), "nobody waits")


def test_a_large_request_does_not_starve(port, node):
    first = port.client("a", [0, 1, 2, 3], "schedule", 2)
    assert first.wait() == [0, 1]
    large, small = port.client("large", [0, 1, 2, 3]), port.client("small", [2])
    large.register()
    small.register()
    first.cancel()
    wait_for(lambda: large.ping() == ("ready", [0, 1, 2, 3]), "the large one goes first")
    assert small.ping()[0] == "waiting"


REFUSED = [
    ({"id": "x", "gpus": []}, "gpus must not be empty!"),
    ({"id": "x", "gpus": [0], "mode": "magic"}, "mode magic is not supported"),
    ({"id": "x", "gpus": [7]}, "check the gpus existence"),
    ({"id": "x", "gpus": [-1]}, "check the gpus existence"),
    ({"id": "x", "gpus": ["a"]}, "check the gpus existence"),
    ({"id": "x", "gpus": [0, 1], "mode": "schedule", "req_gpu_num": 0}, "`req_gpu_num` is not valid"),
    ({"id": "x", "gpus": [0, 1], "mode": "schedule", "req_gpu_num": 3}, "`req_gpu_num` is not valid"),
    ({"id": "", "gpus": [0]}, "id: a text of 1 to 511 bytes"),
    ({"id": "taken", "gpus": [0]}, "client_id: taken has been registered!"),
]


def test_what_is_refused(port, node):
    port.client("taken", [0]).register()
    for body, sentence in REFUSED:
        c = port.client("-", [])
        assert c.ask("POST", "/client/register", body) == {"status": "err", "msg": sentence} and c.status == 200, body
    assert port.client("-", []).ask("POST", "/client/ping", {"id": "nobody"}) == {"status": "err", "available_gpus": [], "msg": "client not registered or has been cancelled"}
    assert port.client("-", []).ask("POST", "/client/cancel", {"id": "nobody"}) == {"status": "err", "msg": "Client nobody not found"}


def test_gpus(port, node):
    node.free(1, IS_FOREIGN, "mallory")
    wait_for(lambda: port.get("/gpu/1")["msg"] is False, "the server heard of it")
    assert port.get("/gpu/0") == {"status": "ok", "msg": True}
    assert port.get("/gpu/9") == {"status": "err", "msg": "gpu_index: 9 does not exist"}
    assert port.get("/gpus/3,0") == {"status": "ok", "msg": True, "detail": [{"gpu": 0, "status": True}, {"gpu": 3, "status": True}]}
    assert port.get("/gpus/0,1") == {"status": "ok", "msg": False, "detail": [{"gpu": 0, "status": True}, {"gpu": 1, "status": False}]}
    for bad in ("0,x", "0,", "", "9,0", "99999999999"):
        assert port.get(f"/gpus/0,{bad}")["status"] == "err" and port.get(f"/gpus/0,{bad}")["detail"] == [], bad
    assert port.get("/gpus/0,%201")["detail"][1]["gpu"] == 1
    gpus = port.get("/show/gpus")["msg"]
    assert set(gpus) == {"hostname", "query_time", "gpus"} and [g["index"] for g in gpus["gpus"]] == [0, 1, 2, 3]
    assert gpus["gpus"][0]["memory.total"] == 81920 and gpus["gpus"][0]["uuid"] == node.uuids[0]
    c = port.client("-", [])
    everything = c.ask("GET", "/api")
    assert set(everything) == {"gpu", "work_queue", "finished_queue"} and c.headers["Access-Control-Allow-Origin"] == "*"
    c.ask("OPTIONS", "/api")
    assert c.status == 200 and c.headers["Access-Control-Allow-Origin"] == "*"


def test_silence(port, node):
    a, b, c = port.client("a", [0, 1, 2, 3]), port.client("b", [0]), port.client("c", [0])
    assert a.wait() == [0, 1, 2, 3]
    b.register()
    c.register()
    wait_for(lambda: c.ping() and ("b", "timeout") in ids(port, "finished"), "the silent one lost its place")
    wait_for(lambda: c.ping() == ("ready", [0]), "the one that was granted and is silent has its GPUs, or left them")
    assert ("a", "ok") in ids(port, "finished")


def test_the_queue_says_what_a_granted_client_is(server, port, node):
    a = port.client("alice@a", [0, 1])
    assert a.wait() == [0, 1]
    job = server.unix("GET", "/api/v1/queue").json["running"][0]
    words = "granted to a client of watchmen: its own process is not seen on its GPUs yet"
    assert job["state"] == "starting" and job["state_text"] == words
    assert server.unix("GET", f"/api/v1/jobs/{job['id']}").json["state_text"] == words
    shown = subprocess.run([GPUMGR, "queue"], env=clean_env(GPUMGR_DIR=server.dir, COLUMNS="200"), capture_output=True, text=True, timeout=30).stdout
    rows = [line for line in shown.splitlines() if " alice " in line]
    assert len(rows) == 2 and all(" granted " in line for line in rows) and "starting" not in shown and shown.count(words) == 2, shown


def test_jobs_and_clients_share_one_queue(server, port, node):
    a = port.client("alice@a", [0, 1, 2, 3])
    assert a.wait() == [0, 1, 2, 3]
    job = node.submit(job_record(("hold",), gpus=1))["first"]
    late = port.client("bob@late", [0, 1, 2, 3])
    late.register()
    queue = server.unix("GET", "/api/v1/queue").json
    assert [j["id"] for j in queue["waiting"]] == [job, job + 1] and queue["running"][0]["origin"] == "watchmen"
    assert queue["running"][0]["user"] == "alice" and queue["waiting"][1]["user"] == "bob"
    assert a.cancel() == {"status": "ok", "msg": "Client alice@a cancelled successfully"}
    wait_for(lambda: [k[0] for k in node.books.starts] == [job], "the job runs")
    assert late.ping()[0] == "waiting"
    assert server.unix("DELETE", f"/api/v1/jobs/{job + 1}").status == 200
    assert late.ping() == ("cancelled", [])
    assert late.cancel() == {"status": "err", "msg": "Client bob@late is not waiting"}


def test_one_who_was_not_told_waits_on(port, node):
    """Somebody takes the GPU before the client asks again: a library that never heard "ready" would ask for ever after "ok"."""
    a, b = port.client("a", [0, 1]), port.client("b", [0, 1, 2, 3], "schedule", 4)
    a.register()
    wait_for(lambda: ids(port) == [("a", "ready")], "it has its GPUs, and does not know")
    b.register()
    node.free(1, IS_FOREIGN, "mallory")
    wait_for(lambda: a.ping() == ("waiting", []), "it waits for the GPU that another one took")
    node.free(0, IS_FOREIGN, "mallory")
    waits = port.get("/show/work")["msg"]
    assert [e["id"] for e in waits] == ["a", "b"] and "mallory" in waits[0]["msg"]
    node.free(0, IS_FREE)
    node.free(1, IS_FREE)
    wait_for(lambda: a.ping() == ("ready", [0, 1]), "it kept its place")
    node.free(0, IS_FOREIGN, "a")
    node.free(1, IS_FOREIGN, "a")
    wait_for(lambda: a.ping() == ("ok", [0, 1]), "now it works there")


def test_what_is_free_is_had_at_the_first_question(port, node):
    """The library asks right after it registered, and then only every ten seconds."""
    for i in range(30):
        c = port.client(f"a{i}", [i % 4], *(() if i % 2 else ("schedule", 1)))
        c.register()
        assert c.ping() == ("ready", [i % 4]), i
        c.cancel()


def test_both_taken_before_he_asked(port, node):
    a = port.client("a", [0, 1])
    a.register()
    wait_for(lambda: ids(port) == [("a", "ready")], "it has its GPUs, and does not know")
    node.verdict[node.uuids[0]] = (IS_FOREIGN, "mallory")
    node.free(1, IS_FOREIGN, "mallory")
    wait_for(lambda: ids(port) == [("a", "waiting")], "it waits on")


def test_a_long_name_stays_whole(server):
    port, link = Port(server), server.dir / "run/server/link.sock"
    name = "alice@" + "\u957f" * 150
    with JobNode(link):
        c = port.client(name, [0])
        assert c.wait() == [0] and ids(port) == [(name, "ready")]
        job = server.unix("GET", "/api/v1/queue").json["running"][0]
        assert job["name"] == "alice@" + "\u957f" * 40 and job["user"] == "alice"
        server.stop(kill=True)
    server.start()
    with JobNode(link):
        assert ids(port) == [(name, "ready")]


def test_five_hundred_at_once(port, node):
    node.free(3, IS_FOREIGN, "mallory")
    clients = [port.client(f"user{i % 7}@{i}", [3] if i % 2 else [3, 0], "queue" if i % 2 else "schedule", 0 if i % 2 else 2) for i in range(500)]
    went_wrong = []

    def begin(c):
        try:
            c.register()
            assert c.ping() == ("waiting", [])
        except Exception as e:
            went_wrong.append((c.id, e))

    threads = [threading.Thread(target=begin, args=(c,)) for c in clients]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not went_wrong and len(ids(port)) == 500
    assert [e["queue_num"] for e in port.get("/show/work")["msg"]] == list(range(500))


GARBAGE = [b"", b"{", b"[]", b"[1]", b'"x"', b"null", b"\xff\xfe", b'{"id": {"a": 1}}', b'{"id": "x", "gpus": {"0": 0}}', b'{"id": "x", "gpus": [1e300]}',
           b'{"id": "x", "gpus": [[0]]}', b'{"id": "x", "gpus": [0.5]}', b'{"id": "x\\ny", "gpus": [0]}', b'{"id": "x", "gpus": [true]}',
           b'{"id": "x", "gpus": [0], "mode": 7}', b"[" * 60000]


def test_garbage_gets_a_sentence(port, node):
    c = port.client("-", [])
    for body in GARBAGE:
        for path in ("/client/register", "/client/ping", "/client/cancel"):
            got = c.ask("POST", path, raw=body)
            assert got["status"] == "err" and got["msg"] and c.status == 200, (path, body[:40], got)
    assert not ids(port) and not ids(port, "finished")


def test_cancel_on_the_page(port, node):
    c = port.client('x"><b>', [0])
    c.register()
    page = c.ask("GET", "/")
    key = re.search(r'name=form value="([^"]+)"', page)[1]
    send = {"Content-Type": "application/x-www-form-urlencoded"}
    assert c.ask("POST", "/cancel", raw=b"form=guessed&id=x%22%3E%3Cb%3E", headers=send)["status"] == "err" and c.status == 403
    assert c.ping()[0] != "cancelled"
    c.ask("POST", "/cancel", raw=f"form={key}&id=x%22%3E%3Cb%3E".encode(), headers=send)
    assert c.status == 303 and c.headers["Location"] == "/" and c.ping()[0] == "cancelled"
    c.ask("POST", "/cancel", raw=f"form={key}&id=x%22%3E%3Cb%3E".encode(), headers=send)
    assert c.status == 303
    for column in ("Temp", "Util", "Memory", "Process", "Queue Num", "GPU Scope", "Request GPU Num", "Available GPUs", "Last Request Time", "Host Name", "Query Time"):
        assert column in page


def test_entries_outlive_a_restart(server):
    port, link = Port(server), server.dir / "run/server/link.sock"
    with JobNode(link) as node:
        used = port.client("used", [3, 2], "schedule", 1)
        assert used.wait() == [3]
        node.free(3, IS_FOREIGN, "used")
        wait_for(lambda: used.ping() == ("ok", [3]), "it works there")
        a, b, gone = port.client("a", [0, 1]), port.client("b", [1, 2, 3], "schedule", 3), port.client("gone", [0, 1])
        assert a.wait() == [0, 1]
        b.register()
        gone.register()
        gone.cancel()
        server.stop(kill=True)
    server.start()
    with JobNode(link) as node:
        a.address = b.address = used.address = port.address
        assert a.ping() == ("ready", [0, 1]) and b.ping() == ("waiting", [])
        assert ids(port, "finished") == [("used", "ok"), ("gone", "cancelled")] and used.ping() == ("ok", [3])
        a.cancel()
        wait_for(lambda: b.ping() == ("ready", [1, 2, 3]), "the other's turn")


def test_tokens():
    with Server(watchmen__listen="127.0.0.1:0") as server, JobNode(server.dir / "run/server/link.sock"):
        port = Port(server)
        path = server.dir / "server/watchmen.token"
        token = path.read_text()
        assert re.fullmatch("[0-9a-f]{32}", token) and path.stat().st_mode & 0o777 == 0o600
        c = port.client("a", [0])
        for method, where, body in (("GET", "/show/work", None), ("GET", "/gpu/0", None), ("POST", "/client/register", {"id": "a", "gpus": [0]})):
            assert c.ask(method, where, body)["status"] == "err" and c.status == 401
        assert c.ask("POST", "/auth", {"token": "wrong"})["status"] == "err" and c.status == 401
        assert c.ask("POST", "/auth", {})["status"] == "err" and c.status == 400
        assert c.ask("GET", f"/show/work?token={token}")["status"] == "ok"
        assert c.ask("POST", "/auth", {"token": token})["status"] == "ok"
        cookie = c.headers["Set-Cookie"].split(";")[0]
        assert "SameSite=Strict" in c.headers["Set-Cookie"] and "HttpOnly" in c.headers["Set-Cookie"]
        assert c.ask("GET", "/show/work", headers={"Cookie": cookie})["status"] == "ok"
        assert "Token" in c.ask("GET", "/") and c.status == 200
        assert "Working Queue" in c.ask("GET", "/", headers={"Cookie": cookie})
        c.token = token
        assert c.wait() == [0]
        server.stop(kill=True)
        server.start()
        assert path.read_text() == token


def test_a_page_elsewhere_can_change_nothing(port, node):
    c = port.client("a", [0])
    got = c.ask("POST", "/client/register", {"id": "x", "gpus": [0]}, {"Content-Type": "text/plain"})
    assert got["status"] == "err" and not ids(port)
    evil = port.client("<script>alert(1)</script>", [0])
    evil.register()
    assert "<script>" not in c.ask("GET", "/") and "&lt;script&gt;" in c.ask("GET", "/")


def test_nothing_listens_beyond_this_machine_unless_it_is_meant():
    with pytest.raises(AssertionError, match="watchmen.listen: .* is not the loopback address"):
        Server(watchmen__listen="0.0.0.0:0")
