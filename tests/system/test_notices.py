"""Whom a job names is told, whoever dies and whoever hangs meanwhile: web hooks with a node by hand, terminals and commands with the
real program and several users."""

import base64
import email
import email.policy
import http.server
import json
import os
import socket
import socketserver
import ssl
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
from test_http import certificate
from test_jobs import Place
from test_outside import machine

LONG = 60
NOTICE = 159
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes other users")


class Receiver:
    """Takes messages at a port, or refuses them."""

    def __init__(self, port=0, code=200):
        self.told = told = []
        self.code, self.body = code, b""
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(outer.code)
                self.end_headers()
                self.wfile.write(outer.body)

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


def refusal(node, where):
    answer = node.submit(job_record(("exit", "0"), notify=(where,)))
    return answer["text"] if answer["result"] < 0 else ""


def test_an_operator_says_where_users_web_hooks_may_go():
    with Receiver() as ears:
        with Server(tell__user_webhooks="no") as server, JobNode(server.dir / "run/server/link.sock") as node:
            assert refusal(node, ears.where) == "notify: this server sends no web hooks for users (tell.user_webhooks is no)"
            assert not refusal(node, "terminal")
        with Server(tell__user_webhooks=f"https://chat.example.org,http://127.0.0.1:{ears.port}/mine") as server, JobNode(server.dir / "run/server/link.sock") as node:
            assert refusal(node, ears.where) == "notify: this server sends no web hook there; tell.user_webhooks says where to"
            assert refusal(node, f"{ears.where}mine/../yours")
            assert not refusal(node, f"{ears.where}mine/x")
            wait_for(lambda: len(ears.told) == 2, "start and end are told", LONG)


@pytest.mark.parametrize("host", ["169.254.169.254", "[::ffff:169.254.169.254]", "[fe80::1]", "2852039166"])
def test_no_web_hook_of_a_user_reaches_a_link_local_address(host):
    with Server() as server, JobNode(server.dir / "run/server/link.sock") as node:
        job = node.submit(job_record(("exit", "0"), notify=(f"webhook:http://{host}/latest/",)))["first"]
        untold = wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{job}").json["untold"], "it is not sent", LONG)
        assert "that is a link-local address, to which nothing is sent for users" in untold, untold


class MailServer(socketserver.ThreadingTCPServer):
    """SMTP as a provider's: nothing is taken before STARTTLS and a password. Without `tls` a relay that asks for nothing."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, tls=None):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if tls else None
        if tls:
            self.context.load_cert_chain(*tls)
        self.password, self.refused, self.mails = "right", [], []
        super().__init__(("127.0.0.1", 0), MailSession)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"smtp://127.0.0.1:{self.server_address[1]}"

    def subjects(self):
        return [m["Subject"] for m in self.mails]


class MailSession(socketserver.BaseRequestHandler):
    def handle(self):
        sock, is_in, server = self.request, not self.server.context, self.server
        lines = sock.makefile("rb")

        def say(text):
            sock.sendall(text.encode() + b"\r\n")

        say("220 box")
        while line := lines.readline().strip():
            word = line.split()[0].upper()
            if word == b"EHLO":
                say("250-box")
                say("250 AUTH PLAIN" if not server.context or isinstance(sock, ssl.SSLSocket) else "250 STARTTLS")
            elif word == b"STARTTLS":
                say("220 go on")
                sock = server.context.wrap_socket(sock, server_side=True)
                lines = sock.makefile("rb")
            elif word == b"AUTH":
                proof = line.split()[2] if len(line.split()) > 2 else (say("334 "), lines.readline())[1]
                is_in = base64.b64decode(proof) == b"\0gpu\0" + server.password.encode()
                server.refused += [] if is_in else [proof]
                say("235 welcome" if is_in else "535 no")
            elif not (is_in or (server.password is None and isinstance(sock, ssl.SSLSocket))) and word != b"QUIT":
                say("530 sign in first")
            elif word == b"DATA":
                say("354 go on")
                text = b""
                while (part := lines.readline()) != b".\r\n":
                    text += part
                server.mails.append(email.message_from_bytes(text, policy=email.policy.default))
                say("250 kept")
            else:
                say("250 ok")


def test_mail_of_a_job_can_be_read():
    """The subject says what happened, whatever alphabet it takes; the text what else one wants to know. The operator himself gets none."""
    box = MailServer()
    with Server(tell__smtp_url=box.url, tell__mail_from="gpu@lab.example", server__public_url="http://gpus.example:7000") as server:
        with JobNode(server.dir / "run/server/link.sock") as node:
            name = "Gr\u00f6\u00dfe \u8bd5\u9a8cx " + "\u957f" * 30  # is cut in the sentence, by whole characters
            job = node.submit(job_record(("hold",), name=name, notify=("mail:anna@lab.example",)))["first"]
            late = node.submit(job_record(("exit", "0"), name="late", after=(str(job),), notify=("mail:anna@lab.example",)))["first"]
            wait_for(lambda: (job, 0, 1) in node.books.runs, "it runs", LONG)
            node.finish((job, 0, 1), 3)  # not before another one is to follow it
            wait_for(lambda: len(box.mails) == 3, "start, failure, and that the other one never starts", LONG)
    shown = name[:name.index("\u957f")] + "\u957f" * 14
    assert box.subjects() == [f"[gpumgr] lab: job {job} ({shown}, alice) has started on 1 GPU",
                              f"[gpumgr] lab: job {job} ({shown}, alice) failed with exit code 3",
                              f"[gpumgr] lab: job {late} (late, alice) was cancelled before it started: "
                              f"job {job}, which it was to follow, ended as: failed"]
    failed = box.mails[1]
    assert (failed["From"], failed["To"], failed["Auto-Submitted"]) == ("gpu@lab.example", "anna@lab.example", "auto-generated")
    body = failed.get_content().splitlines()
    assert body[0] == f"job {job} ({shown}, alice) failed with exit code 3" and "Machine: lab" in body and "GPU: 0" in body
    assert f"Its log: gpumgr logs {job}" in body and f"http://gpus.example:7000/jobs/{job}" in body
    assert all(len(line) < 998 for line in failed.as_string().splitlines())
    box.shutdown()


def test_mail_by_tls_and_a_password(place):
    """A wrong password is told where the owner looks, and mended while it is tried again; without a certificate that is vouched for
    no password is sent."""
    cert, key = certificate(place / "tls")
    box, secret = MailServer((cert, key)), place / "password"
    secret.write_text("wrong\n")
    flags = {"tell__smtp_url": box.url, "tell__mail_from": "gpu@lab.example", "tell__smtp_user": "gpu", "tell__smtp_password_file": secret}
    with Server(**flags) as server, JobNode(server.dir / "run/server/link.sock") as node:
        job = node.submit(job_record(("exit", "0"), notify=("mail:anna@lab.example",)))["first"]
        untold = wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{job}").json["untold"], "it is not taken", LONG)
        assert "by mail" in untold and "its certificate is not trusted" in untold and not box.refused
    with Server(**flags, tell__smtp_ca_file=cert) as server, JobNode(server.dir / "run/server/link.sock") as node:
        job = node.submit(job_record(("exit", "0"), notify=("mail:anna@lab.example",)))["first"]
        untold = wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{job}").json["untold"], "it is not taken", LONG)
        assert "user or password was refused" in untold and box.refused and not box.mails
        secret.write_text("right\n")
        wait_for(lambda: len(box.mails) == 2, "both are taken", LONG)
        wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{job}").json["untold"] is None, "nothing is owed", LONG)
    box.shutdown()


def test_a_relay_with_a_certificate_of_its_own(tmp_path):
    """As Debian's mail servers come: STARTTLS by a certificate that nobody vouches for, no password. Mail goes, and not in plain text."""
    box = MailServer(certificate(tmp_path / "tls"))
    box.password = None
    with Server(tell__smtp_url=box.url, tell__mail_from="gpu@lab.example") as server, JobNode(server.dir / "run/server/link.sock") as node:
        node.submit(job_record(("exit", "0"), notify=("mail:anna@lab.example",)))
        wait_for(lambda: len(box.mails) == 2, "start and end", LONG)
    box.shutdown()


def test_what_a_receiver_wrote_is_not_shown():
    """One may name any address that the server reaches: he is not to read by it what stands there."""
    with Server() as server, Receiver(code=500) as hook, JobNode(server.dir / "run/server/link.sock") as node:
        hook.body = b"the secret of another service"
        job = node.submit(job_record(("exit", "0"), name="train", notify=(hook.where,)))["first"]
        untold = wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{job}").json["untold"], "it is not taken", LONG)
        assert "the receiver answered 500 (" in untold and "secret" not in untold
        said = hook.told[0]["alerts"][0]
        assert said["labels"] == {"alertname": said["labels"]["alertname"], "severity": "info", "topic": said["labels"]["topic"], "host": "lab",
                                  "job": str(job), "event": "job_started", "name": "train", "user": "alice"}
        assert said["annotations"]["summary"] == f"lab: job {job} (train, alice) has started on 1 GPU"
        assert said["generatorURL"].endswith(f"/jobs/{job}")


@needs_root
def test_on_his_terminals(place):
    """Of start and end, on all that are his and nobody else's; who has none is told when he sits down at one."""
    with machine(place) as box, Desk(BOB) as others:
        with Desk(ADA) as desk, Desk(ADA) as second:
            job = submit(box, "--name", "train", "--notify", "terminal", "--", "true", user=ADA)
            for d in (desk, second):
                wait_for(lambda: "has started" in d.text() and "is done" in d.text(), "start and end", LONG)
                assert f"gpumgr: job {job} (train, " in d.text()
        with Desk(ADA) as quiet, Desk(ADA) as desk:
            quiet.mesg(False)
            submit(box, "--name", "hush", "--notify", "terminal", "--", "true", user=ADA)
            wait_for(lambda: "is done" in desk.text(), "he is told where he lets himself be told", LONG)
            assert quiet.text() == ""
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
