"""Telling someone, from a fault on a card to the receiver: webhook, Slack, mail and command; once, with its end, retried,
not lost with a server that is killed."""

import contextlib
import http.server
import json
import os
import signal
import socketserver
import subprocess
import threading
from pathlib import Path

import pytest

from hand_node import HandNode
from instance import GPUMGR, Instance
from server import UnixConnection, Server
from simulator import Simulator, wait_for
from test_up import server_of, serves


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:2") as s:
        yield s


class Hook:
    """A receiver of web hooks that can be out of order."""

    def __init__(self):
        self.got, self.status, self.refused = [], 200, 0
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if hook.status == 200:
                    hook.got.append((self.path, json.loads(body)))
                else:
                    hook.refused += 1
                self.send_response(hook.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def of(self, path):
        return [body for at, body in self.got if at == path]

    def about(self, topic):
        return [body for body in self.of("/hook") if body["commonLabels"]["topic"] == topic]


@pytest.fixture
def hook():
    h = Hook()
    yield h
    h.server.shutdown()


class Mailbox(socketserver.ThreadingTCPServer):
    allow_reuse_address = True

    def __init__(self):
        self.messages = []
        super().__init__(("127.0.0.1", 0), MailSession)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class MailSession(socketserver.StreamRequestHandler):
    def say(self, line):
        self.wfile.write(line.encode() + b"\r\n")

    def handle(self):
        self.say("220 box")
        to = []
        for line in self.rfile:
            word = line.split()[0].upper().decode() if line.split() else ""
            if word == "DATA":
                self.say("354 go on")
                text = b""
                for part in self.rfile:
                    if part == b".\r\n":
                        break
                    text += part
                self.server.messages.append((to, text.decode()))
                self.say("250 kept")
            elif word == "RCPT":
                to.append(line.split(b"<")[1].split(b">")[0].decode())
                self.say("250 ok")
            elif word == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")


@pytest.fixture
def mailbox():
    box = Mailbox()
    yield box
    box.shutdown()


LOST = ("--sampler.lost_ms", 1500, "--sampler.answer_ms", 800)


def state_of(i):
    return Server.request(UnixConnection(i.dir / "run/server/api.sock"), "GET", "/api/v1/notifications", None, {}).json


def test_every_way_gets_it_once_and_its_end(sim, hook, mailbox, tmp_path):
    out = Path(f"/dev/shm/tell-{os.getpid()}")
    out.mkdir(mode=0o777)
    out.chmod(0o777)  # the command runs as the server's user
    try:
        with Instance(sim, *LOST, "--tell.webhook", hook.url + "/hook", "--tell.slack", hook.url + "/slack",
                      "--tell.smtp_url", f"smtp://127.0.0.1:{mailbox.server_address[1]}", "--tell.mail_to", "a@lab.example,b@lab.example",
                      "--tell.command", f"echo \"$GPUMGR_STATUS $GPUMGR_HEADLINE\" >> {out}/said", role="up") as i:
            i.ready(2)
            serves(i)
            sim.say("fault 1 lost")  # which comes with an XID
            wait_for(lambda: hook.about("gpu") and hook.about("xid"), "web hooks")
            alert = hook.about("gpu")[0]
            assert alert["version"] == "4" and alert["status"] == "firing"
            labels = alert["alerts"][0]["labels"]
            assert labels["gpu"] == "1" and labels["severity"] in ("critical", "warning") and labels["model"] == "NVIDIA H200"
            assert "/gpus/" + labels["uuid"] in alert["alerts"][0]["generatorURL"]
            wait_for(lambda: ["critical"] == [n["severity"] for n in state_of(i)["open"] if n["title"] == "GPU lost"], "it is open, as lost")
            sim.say("heal 1")
            wait_for(lambda: hook.about("gpu")[-1]["status"] == "resolved", "its end")
            wait_for(lambda: "resolved GPU" in (out / "said").read_text() or "resolved Over" in (out / "said").read_text(),
                     "the command hears of it")
            wait_for(lambda: any("Over:" in text for _, text in mailbox.messages), "mail")
            wait_for(lambda: all(c["waiting"] == 0 for c in state_of(i)["channels"]), "nothing waits")
            # not answering, then perhaps lost (worse: told again), then over
            assert [h["status"] for h in hook.about("gpu")] in (["firing", "resolved"], ["firing", "firing", "resolved"])
            assert len(hook.about("xid")) == 1
            told = len(hook.of("/hook"))
            assert len(hook.of("/slack")) == len(mailbox.messages) == len((out / "said").read_text().splitlines()) == told
            assert any(":white_check_mark:" in h["text"] for h in hook.of("/slack"))
            to, text = mailbox.messages[0]
            assert to == ["a@lab.example", "b@lab.example"] and "From: a@lab.example\r\n" in text and "Subject: [gpumgr] " in text
            # its XID keeps it from the queue until somebody vouches for it
            assert [n["title"] for n in state_of(i)["open"]] == ["GPU not given away: it has a fault"]
            subprocess.run([GPUMGR, "queue", "uncordon", "1", "--dir", i.dir], env=i.env, check=True, capture_output=True)
            wait_for(lambda: state_of(i)["open"] == [], "nothing is open")
    finally:
        for file in out.glob("*"):
            file.unlink()
        out.rmdir()


def test_an_xid_is_told_once_and_below_the_severity_nothing_is(sim, hook):
    with Instance(sim, "--tell.webhook", hook.url + "/hook", "--tell.severity", "error", role="up") as i:
        i.ready(2)
        serves(i)
        for _ in range(5):
            sim.say("fault 0 xid 48")
        wait_for(lambda: hook.about("xid"), "the first")
        sim.say("fault 1 xid 48")
        wait_for(lambda: len(hook.about("xid")) == 2, "another card's")
        assert [h["commonLabels"]["gpu"] for h in hook.about("xid")] == ["0", "1"]
        assert {h["commonLabels"]["severity"] for h in hook.of("/hook")} <= {"error", "critical"}


def test_a_receiver_that_is_down_gets_it_later_though_the_server_was_killed(sim, hook):
    hook.status = 503
    with Instance(sim, *LOST, "--tell.webhook", hook.url + "/hook", role="up") as i:
        i.ready(2)
        serves(i)
        sim.say("fault 0 xid 48")
        wait_for(lambda: hook.refused, "it was tried")
        os.kill(server_of(i), signal.SIGKILL)
        hook.status = 200
        wait_for(lambda: hook.about("xid"), "it comes after all", 30)
        serves(i)
        wait_for(lambda: all(c["waiting"] == 0 for c in state_of(i)["channels"]), "nothing waits")
        assert [h["commonLabels"]["code"] for h in hook.about("xid")] == ["48"]


def test_nobody_to_tell_and_bad_addresses(sim, tmp_path):
    with Instance(sim, role="up") as i:
        i.ready(2)
        serves(i)
        answer = Server.request(UnixConnection(i.dir / "run/server/api.sock"), "POST", "/api/v1/notifications/test", None,
                                {"Content-Type": "application/json"})
        assert answer.status == 404 and "tell.webhook" in answer.json["error"]["message"]


@pytest.mark.parametrize("flags, word", [
    (("--tell.webhook", "ftp://x/"), "tell.webhook"),
    (("--tell.slack", "hooks.example"), "tell.slack"),
    (("--tell.smtp_url", "smtp://127.0.0.1"), "tell.mail_to"),
    (("--tell.smtp_url", "smtp://127.0.0.1", "--tell.mail_to", "a@b", "--tell.smtp_user", "u"), "tell.smtp_password_file"),
    (("--tell.severity", "loud"), "tell.severity"),
])
def test_refused_at_the_start(flags, word):
    from test_up import refused
    assert word in refused(Path(f"/dev/shm/gm-none-tell-{os.getpid()}"), *flags)


@pytest.fixture
def small_disk(hook):
    with Server(tell__webhook=hook.url + "/hook") as s:
        place = s.dir / "server"
        s.stop()
        owner = place.stat()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], capture_output=True).returncode:
            pytest.skip("a small file system cannot be mounted here")
        os.chown(place, owner.st_uid, owner.st_gid)
        place.chmod(0o700)
        s.start()
        yield s
        s.stop()
        subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_told_and_so_is_its_end(small_disk, hook):
    with HandNode(small_disk.dir / "run/server/link.sock") as node:
        wait_for(lambda: small_disk.unix("GET", "/readyz").status == 200, "the node is there")
        with contextlib.suppress(OSError), (small_disk.dir / "server/fill").open("wb", 0) as fill:
            while True:
                fill.write(bytes(4096))
        for pid in range(100, 140):
            node.task(pid, ["GPU-a"], took=1.0)
        wait_for(lambda: hook.about("store"), "somebody is told")
        assert hook.about("store")[0]["status"] == "firing" and "full" in json.dumps(hook.about("store")[0])
        (small_disk.dir / "server/fill").unlink()
        wait_for(lambda: len(hook.about("store")) == 2, "and that it is over")
        assert hook.about("store")[1]["status"] == "resolved" and "; 0 were lost" in json.dumps(hook.about("store")[1])
        assert len(small_disk.unix("GET", "/api/v1/tasks?limit=1000").json["tasks"]) == 40
    log = small_disk.log_path.read_text()
    assert log.count("messages cannot be stored") <= 1 and log.count("nothing is stored") == 1
