"""gpumgr top --server: a stand-in for the server speaks the API of docs/api.md, so that what is said and when is the
test's choice: a stream that breaks, a token that is missing, words that nobody knows."""

import json
import queue
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from instance import GPUMGR, Instance, clean_env
from simulator import BUILD, Simulator, wait_for
from test_top import Pane, pytestmark  # noqa: F401

UUIDS = [f"GPU-0000000{i}-aaaa" for i in range(2)]
GIB = 2**30


def gpu(index, **more):
    return {"index": index, "uuid": UUIDS[index], "model": "NVIDIA H200", "state": "ok", "pci": "00000000:19:00.0", "node": "far7",
            "metrics": {"gpu_utilization_ratio": 0.5 + index / 10, "gpu_temperature_celsius": 61, "gpu_power_watts": 412.5,
                        "gpu_power_limit_enforced_watts": 700, "gpu_memory_used_bytes": 8 * GIB, "gpu_memory_total_bytes": 80 * GIB,
                        "gpu_of_tomorrow": 1},
            "processes": [{"pid": 4000 + index, "user": "carol", "command": "python train.py", "kinds": ["compute"],
                           "memory_bytes": 3 * GIB, "sm_ratio": 0.25}],
            "xids": [], "instances": [], "age_s": 0.1, **more}


class Stub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, token=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.token, self.gpus, self.streams, self.asked = token, [gpu(0), gpu(1)], [], []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # a client that goes away is no error

    def say(self, event, data):
        for q in self.streams:
            q.put(f"event: {event}\r\ndata: {json.dumps(data)}\r\n\r\n".encode())

    def hang_up(self):
        for q in self.streams:
            q.put(None)
        self.streams.clear()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        s = self.server
        s.asked.append(self.path)
        if s.token and self.headers.get("Authorization") != f"Bearer {s.token}":
            return self.answer(401, {"error": {"code": "unauthenticated", "message": "sign in"}})
        if self.path.startswith("/api/v1/history"):
            now = time.time()
            return self.answer(200, {"resolution": "raw", "series": [
                {"of": f"gpu:{u}", "metric": "gpu_utilization_ratio", "time": [now - 200 + i for i in range(190)],
                 "mean": [(i % 2 or None) and 1 for i in range(190)]} for u in UUIDS]})
        if self.path.startswith("/api/v1/events") and "event-stream" in self.headers["Accept"]:
            return self.stream()
        if self.path.startswith("/api/v1/events"):
            return self.answer(200, {"events": [{"id": 1, "time": time.time() - 60, "severity": "error", "kind": "xid", "gpu": UUIDS[1],
                                                 "text": "XID 31: a page fault"}], "next": None})
        if self.path == "/api/v1/gpus":
            return self.answer(200, {"time": time.time(), "gpus": s.gpus})
        return self.answer(404, {"error": {"code": "not_found", "message": "no"}})

    def stream(self):
        q = queue.Queue()
        nodes = [{"name": "far7", "state": "ok", "driver": {"state": "ok", "version": "580.1"}}]
        q.put(f"retry: 1000\n: a comment\n\nevent: snapshot\ndata: {json.dumps({'seq': 1, 'gpus': self.server.gpus, 'nodes': nodes})}\n\n".encode())
        self.server.streams.append(q)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        while (piece := q.get()) is not None:
            for part in (piece[:7], piece[7:]):  # pieces do not end where messages do
                self.wfile.write(part)
                self.wfile.flush()


@pytest.fixture
def stub():
    s = Stub()
    yield s
    s.hang_up()
    s.shutdown()


@pytest.fixture
def pane(tmp_path):
    open_now = []

    def go(*args, **kw):
        open_now.append(Pane(tmp_path / f"tmux{len(open_now)}", *args, **kw))
        return open_now[-1]

    yield go
    for p in open_now:
        p.tmux("kill-server")


def beat(stub):
    """A server speaks once a second."""
    stop = threading.Event()

    def go():
        while not stop.wait(0.5):
            stub.say("delta", {"seq": 2, "gpus": {}})
    threading.Thread(target=go, daemon=True).start()
    return stop


def test_it_shows_another_machine_and_follows_it(stub, pane):
    stop = beat(stub)
    p = pane((120, 34), "--server", stub.url + "/")
    p.shows(r"far7 · 2 GPUs, 2 busy")
    p.shows(r"driver 580\.1")
    p.shows(rf"127\.0\.0\.1:{stub.server_port} +\d\d:\d\d:\d\d")
    p.shows(r"^ +4001 carol +1 +C +3\.0G +25% .*python train\.py")
    p.shows(r"GPU 1: XID 31: a page fault")
    p.shows(r"util .*[▁▂▃▄▅▆▇█]{20}")  # the past, at once
    stub.say("delta", {"gpus": {UUIDS[0]: {"metrics": {"gpu_temperature_celsius": 77, "gpu_power_watts": None}},
                                "GPU-unknown": {"metrics": {"gpu_temperature_celsius": 1}}}})
    p.shows(r"77/83°C")
    p.shows(r"power .* -  ")
    stub.say("delta", {"gpus": {UUIDS[1]: {"state": "lost", "state_reason": "fell off the bus", "state_since": "2026-01-01T00:00:00.000Z"}}})
    p.shows(r"1 NEEDS ATTENTION")
    p.shows(r"LOST .*fell off the bus")
    stub.say("delta", {"gpus": {UUIDS[1]: {"state": "ok"}, UUIDS[0]: {"guard": {
        "mode": "acts", "lever": "power limit", "limit": 412, "baseline": 700, "unit": "W", "target": 75, "reason": "the core is hot"}}}})
    p.shows_no(r"NEEDS ATTENTION")
    p.shows(r"held at 412 of 700 W")
    p.shows(r"77/75°C!")
    stub.say("event", {"id": 9, "time": time.time(), "severity": "warning", "kind": "x", "gpu": None, "text": "something new"})
    p.shows(r"something new")
    p.keys("Tab", "K")
    p.shows(r"Signals go to processes of this machine only")
    p.keys("q")
    p.settled()
    stop.set()


def test_a_broken_stream_is_said_and_mended(stub, pane):
    stop = beat(stub)
    p = pane((100, 30), "--server", stub.url)
    p.shows(r"far7")
    stop.set()
    p.shows(r"STALE \d+ s", 15)  # a server that says nothing
    stop = beat(stub)
    p.shows_no(r"STALE", 15)
    stub.hang_up()
    wait_for(lambda: stub.streams, "it connects again")
    stub.say("delta", {"gpus": {UUIDS[0]: {"metrics": {"gpu_temperature_celsius": 44}}}})
    p.shows(r" 44 of 83 °C", 15)
    p.keys("q")
    p.shows(r"top ended with 0")
    stop.set()


def test_words_that_nobody_knows_do_no_harm(stub, pane):
    stop = beat(stub)
    stub.gpus = [gpu(0, state="dreaming", metrics={"gpu_power_watts": "many"}, processes=[{"pid": "x", "command": "\x1b[31mred"}, 7, None],
                     guard={"mode": 3}, xids={"code": 1}, instances=[1])]
    p = pane((100, 30), "--server", stub.url)
    p.shows(r"NOT ANSWERING")
    for data in ([], {"gpus": []}, {"gpus": {UUIDS[0]: 5}}, {"gpus": {UUIDS[0]: {"metrics": [1]}}}, "text"):
        stub.say("delta", data)
    stub.say("event", {"text": "\x1b]0;title\x07" * 50, "time": 1, "severity": "critical"})
    p.shows(r"far7")
    assert "\x1b[31mred" not in p.text("-e")
    p.keys("q")
    p.shows(r"top ended with 0")
    stop.set()


def once(*flags):
    return subprocess.run([str(GPUMGR), "top", "--once", *map(str, flags)], capture_output=True, text=True, timeout=30, env=clean_env())


def test_tokens_and_what_is_wrong(tmp_path):
    stub = Stub(token="sesame")
    (tmp_path / "good").write_text("sesame\n")
    (tmp_path / "bad").write_text("melon\n")
    (tmp_path / "empty").write_text("\n")
    out = once("--server", stub.url, "--token-file", tmp_path / "good")
    assert out.returncode == 0 and "2 GPUs" in out.stdout and "carol" in out.stdout, out
    for flags in ((), ("--token-file", tmp_path / "bad")):
        out = once("--server", stub.url, *flags)
        assert out.returncode == 1 and "--token-file" in out.stderr and out.stderr.count("\n") == 1, out
    assert "sesame" not in out.stderr
    for flags, words in ((("--server", "gpu7:7000"), "is not http"), (("--server", "http://"), "names no host"),
                         (("--server", stub.url, "--token-file", tmp_path / "empty"), "holds no token"),
                         (("--server", stub.url, "--token-file", tmp_path / "none"), "none")):
        out = once(*flags)
        assert out.returncode == 2 and words in out.stderr and out.stderr.count("\n") == 1, out
    stub.shutdown()
    stub.server_close()
    out = once("--server", stub.url)
    assert out.returncode == 1 and "no connection" in out.stderr, out


@pytest.mark.skipif(not (BUILD / "gpumgr-server").exists(), reason="no server in this build")
def test_the_server_itself(tmp_path, pane):
    """No stand-in: all of gpumgr up, with a token, and a card that is lost and comes back."""
    with Simulator(tmp_path / "sim", "--model", "h200:2,rtx4090") as sim:
        task = sim.task("--gpu", 1, "--demand", "80%", "--memory", "9G", "--forever")
        with Instance(sim, "--listen", "127.0.0.1:0", role="up") as i:
            i.ready(3)
            address = i.dir / "run/server/listen"
            wait_for(lambda: address.exists() and address.read_text().strip(), "the server listens")
            url = address.read_text().split()[0]
            token = subprocess.run([str(GPUMGR), "token", "new", "top", "--dir", str(i.dir)], capture_output=True, text=True, env=i.env, timeout=20)
            (tmp_path / "token").write_text(token.stdout.split()[0] + "\n")
            p = pane((100, 30), "--server", url, "--token-file", tmp_path / "token")
            p.shows(r"3 GPUs, 1 busy")
            p.shows(rf"^ +{task.pid} +\w+ +1 +C +9\.0G .*gpusim-task")
            assert "STALE" not in p.text()
            sim.say("fault 0 lost")
            p.shows(r"LOST \d+ m?s", 15)
            p.shows(r"GPU 0: lost", 15)
            sim.say("heal 0")
            p.shows_no(r"NEEDS ATTENTION", 30)
            task.kill()
            task.wait()
            p.shows(r"No process uses a GPU", 15)
            p.keys("q")
            p.settled()
            out = once("--server", url)
            assert out.returncode == 1 and "--token-file" in out.stderr, out
