"""Whom a job names is told, whoever dies and whoever hangs meanwhile: web hooks with a node by hand, terminals and commands with the
real program and several users."""

import http.server
import json
import os
import socket
import struct
import threading
from contextlib import contextmanager

import pytest

import link
from desk import Desk
from job_box import ADA, BOB, gpumgr, state, submit
from job_node import JobNode, blob, job_record
from job_server import spec
from link import frame, text
from server import Server
from simulator import Simulator, wait_for
from test_jobs import Place
from test_outside import machine

LONG = 60
NOTICE = 159
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes other users")


class Receiver:
    """Takes messages at a port, or refuses them."""

    def __init__(self, port=0, code=200):
        self.told = told = []
        self.code = code
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(outer.code)
                self.end_headers()

            def log_message(self, *_):
                pass
        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.http.server_port
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def words(self):
        return [json.dumps(t) for t in self.told]

    @property
    def where(self):
        return f"webhook:http://127.0.0.1:{self.port}/"


@contextmanager
def free_port():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    yield s.getsockname()[1]
    s.close()


def waiting(server):
    return server.database("SELECT count(*) FROM letters")[0][0]


def test_what_was_not_taken_survives_the_server():
    """Nobody listens, and the server is killed: what it had to say is in its file, with what it tells of."""
    with free_port() as port, Server() as server:
        with JobNode(server.dir / "run/server/link.sock") as node:
            where = f"webhook:http://127.0.0.1:{port}/"
            job = node.submit(job_record(("exit", "3"), name="train", notify=(where,)))["first"]
            wait_for(lambda: (job, 0, 1) in node.stored, "the end is acknowledged", LONG)
            server.stop(kill=True)
        assert waiting(server) == 2, "in the file with the end that was acknowledged"


def test_told_after_a_restart():
    """Each once, and in order."""
    with Server() as server:
        with Receiver(code=503) as refusing:
            with JobNode(server.dir / "run/server/link.sock") as node:
                job = node.submit(job_record(("exit", "3"), name="train", notify=(refusing.where,)))["first"]
                wait_for(lambda: (job, 0, 1) in node.stored and refusing.told, "it is tried", LONG)
                server.stop(kill=True)
            tried = refusing.words()
            assert all("has started" in w for w in tried), "the second waits behind the first"
            refusing.told.clear()
            refusing.code = 200
            server.start()
            wait_for(lambda: len(refusing.told) == 2, "both are told", LONG)
            assert "has started" in refusing.words()[0] and "failed with exit code 3" in refusing.words()[1]
            wait_for(lambda: waiting(server) == 0, "and forgotten", LONG)
            assert len(refusing.told) == 2


def test_one_that_hangs_delays_nobody_else():
    """Eight receivers that accept and never answer, of one user: another user is told at once, and so are his own later ones."""
    deaf = [socket.create_server(("127.0.0.1", 0)) for _ in range(8)]
    with Server() as server, Receiver() as ears:
        path = server.dir / "run/server/link.sock"
        with JobNode(path) as alice, JobNode(path, name="other", owner=("bob", 1001)) as bob:
            hooks = tuple(f"webhook:http://127.0.0.1:{s.getsockname()[1]}/" for s in deaf)
            job = alice.submit(job_record(("exit", "0"), notify=hooks))["first"]
            wait_for(lambda: (job, 0, 1) in alice.stored, "alice's job is over", LONG)
            for s in deaf[:2]:
                s.settimeout(LONG)
                s.accept()  # both that she may have under way are
            job = bob.submit(job_record(("exit", "0"), notify=(ears.where,)))["first"]
            wait_for(lambda: len(ears.told) == 2, "bob is told", 25)  # less than a receiver is waited for
            wait_for(lambda: waiting(server) == 16, "his are delivered, and hers still wait", LONG)
    for s in deaf:
        s.close()


@needs_root
def test_on_his_terminals(place):
    """Of start and end, on all that are his and nobody else's; who has none is told when he sits down at one."""
    with machine(place) as box, Desk(BOB) as others:
        with Desk(ADA) as desk, Desk(ADA) as second:
            job = submit(box, "--name", "train", "--notify", "terminal", "--", "true", user=ADA)
            for d in (desk, second):
                wait_for(lambda: "has started" in d.text() and "is done" in d.text(), "start and end", LONG)
                assert f"gpumgr: job {job} (train, " in d.text()
        late = submit(box, "--notify", "terminal", "--", "false", user=ADA)
        state(box, late, "failed")
        with Desk(ADA) as desk:
            wait_for(lambda: "failed with exit code 1" in desk.text(), "he is told now", LONG)
        assert others.text() == ""


@needs_root
def test_commands_are_the_operators_to_allow_and_run_as_the_owner(place):
    with machine(place) as box:
        got = gpumgr(box, "submit", "--notify", "command:id", "--", "true", user=ADA)
        assert got.returncode != 0 and got.stderr.count("\n") == 1 and "jobs.notify_command is off" in got.stderr, got.stderr
    out = place / "told"
    out.mkdir()
    out.chmod(0o777)
    with machine(place / "on", "--jobs.notify-command", "true") as box:
        command = f'echo "$(id -u) $GPUMGR_JOB_ID $GPUMGR_EVENT" >>{out}/words; exit 1'
        job = submit(box, "--notify", f"command:{command}", "--", "false", user=ADA)
        state(box, job, "failed")
        words = out / "words"
        wait_for(lambda: words.exists() and len(words.read_text().splitlines()) == 2, "start and failure", LONG)
        assert sorted(words.read_text().splitlines()) == sorted(f"{ADA} {job} {k}" for k in ("job_started", "job_failed"))
        assert words.stat().st_uid == ADA


@needs_root
def test_a_server_cannot_choose_whom_or_what(place):
    """A notice whose record or user was changed, or that asks for a word the job does not have, is refused by the node."""
    place.chmod(0o755)
    with Simulator(place / "sim", "--model", "h200:4") as sim, Place(sim, "--jobs.notify-command", "true") as p, Desk(BOB) as bob:
        job = p.submit("true", uid=ADA, notify=("terminal",))
        j = p.server.jobs[job]

        def ask(number, word=0, **change):
            s = {**j, **change}
            p.server.say(frame(NOTICE, struct.pack("<QqH", number, job, word) + text("job_done") + text("words") +
                               struct.pack("<I", s["uid"]) + text(s["user"]) + blob(s["record"]) + blob(s["seal"])))
            return wait_for(lambda: [a for a in p.server.of(link.NOTICED) if a["id"] == number], "an answer", LONG)[0]
        assert ask(1, record=spec("true", notify=("command:id",)))["result"] < 0
        assert ask(2, uid=BOB)["result"] < 0
        assert "asks for no such word" in ask(3, word=1)["text"]
        assert "no terminal" in ask(4)["text"]
        with Desk(ADA) as ada:
            assert ask(5)["result"] == 0 and "gpumgr: words" in wait_for(ada.text, "a word", LONG)
        assert bob.text() == ""
