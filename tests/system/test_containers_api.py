"""Containers by the API, as a browser uses it: accounts that stand for Unix users by the node's own file, administrators, the audit
log, events, logs and a shell."""

import base64
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from api_shapes import Shapes, differences
from instance import kill, stop
from server import Server, UnixConnection
from simulator import wait_for
from task_containers import IMAGE, TaskEngine
from test_containers import Box

pytestmark = [pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dockerd"), reason="an engine needs root and Docker")]

SLEEP = ["sh", "-c", "trap 'exit 0' TERM; echo up; while :; do usleep 50000; done"]
USERS = {"ada": "games", "bob": "mail", "chief": "lp"}  # accounts, and users that every Debian has


class Browser:
    """Somebody who is signed in."""

    def __init__(self, box, name, role="member"):
        self.url = (box.up.dir / "run/server/listen").read_text().split()[0]
        self.host = self.url.split("//")[1]
        ask = lambda method, path, body: Server.request(UnixConnection(box.up.dir / "run/server/api.sock"), method, path, body, {})
        assert ask("PUT", f"/api/v1/users/{name}", {"role": role}).status in (200, 201)
        link = ask("POST", "/api/v1/links", {"user": name}).json["url_path"].split("#")[1]
        answer = Server.request(http.client.HTTPConnection(self.host, timeout=60), "POST", "/api/v1/session", {"link": link}, {})
        assert answer.status == 204, answer.body
        self.cookie = answer.cookie()
        self.csrf = self("GET", "session").json["csrf"]

    def __call__(self, method, path, body=None):
        headers = {"Cookie": self.cookie, **({"X-CSRF-Token": self.csrf, "Origin": self.url} if method != "GET" else {})}
        return Server.request(http.client.HTTPConnection(self.host, timeout=120), method, f"/api/v1/{path}", body, headers)

    def good(self, method, path, body=None):
        answer = self(method, path, body)
        assert answer.status in (200, 201), answer.body
        return answer.json

    def refused(self, status, sentence, method, path, body=None):
        answer = self(method, path, body)
        assert answer.status == status and sentence in answer.json["error"]["message"], answer.body

    def rows(self):
        answer = self.good("GET", "containers?gpu=true")
        assert answer["problems"] == [], answer
        return {c["name"]: c for c in answer["containers"]}


class WebSocket:
    """Just enough of a browser's side of RFC 6455."""

    def __init__(self, who, path, origin=None):
        host, port = who.host.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall((f"GET /api/v1/{path} HTTP/1.1\r\nHost: {who.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                           f"Sec-WebSocket-Version: 13\r\nOrigin: {origin or who.url}\r\nCookie: {who.cookie}\r\n\r\n").encode())
        self.bytes = b""
        while b"\r\n\r\n" not in self.bytes:
            self.more()
        head, self.bytes = self.bytes.split(b"\r\n\r\n", 1)
        self.status = int(head.split()[1])
        self.shown = ""

    def more(self):
        got = self.sock.recv(65536)
        assert got, "the connection ended"
        self.bytes += got

    def need(self, n):
        while len(self.bytes) < n:
            self.more()
        taken, self.bytes = self.bytes[:n], self.bytes[n:]
        return taken

    def frame(self):
        first, size = self.need(2)
        size = size & 127
        size = struct.unpack(">H", self.need(2))[0] if size == 126 else struct.unpack(">Q", self.need(8))[0] if size == 127 else size
        return first & 15, self.need(size)

    def send(self, data, opcode=2):
        mask, data = os.urandom(4), data.encode() if isinstance(data, str) else data
        size = bytes([128 | len(data)]) if len(data) < 126 else struct.pack(">BH", 128 | 126, len(data))
        self.sock.sendall(bytes([128 | opcode]) + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def until(self, text):
        while text not in self.shown:
            opcode, data = self.frame()
            assert opcode != 8, f"closed: {data[2:]} after {self.shown!r}"
            if opcode == 2:
                self.shown += data.decode(errors="replace")
        return self.shown

    def closed(self):
        """The reason that it is closed with."""
        while True:
            opcode, data = self.frame()
            if opcode == 8:
                return data[2:].decode()


@pytest.fixture(scope="module")
def box():
    where = Path(tempfile.mkdtemp(prefix="ga.", dir="/tmp"))
    path = Path(tempfile.mkdtemp(prefix="ga.", dir="/tmp"))
    engine = TaskEngine(where)
    b = Box(path, engine)
    (b.up.dir / "users").write_text("".join(f"{account} {user}\n" for account, user in USERS.items()))
    yield b
    b.end()
    engine.stop()
    shutil.rmtree(where, ignore_errors=True)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def people(box):
    return {"ada": Browser(box, "ada"), "bob": Browser(box, "bob"), "chief": Browser(box, "chief", "admin"), "stray": Browser(box, "stray"),
            "first": Browser(box, "first", "admin")}  # an administrator who is nobody on this machine, as the first one is


@pytest.fixture(autouse=True)
def nothing_left(box):
    yield
    if box.names():
        box.docker("rm", "-f", *box.names(), check=False)


def test_the_whole_way_of_a_container(box, people):
    ada = people["ada"]
    assert IMAGE in [i["name"] for i in ada.good("GET", "images")] and all(i["size_bytes"] > 0 for i in ada.good("GET", "images"))
    made = ada.good("POST", "containers", {"image": IMAGE, "name": "lab", "gpus": 1, "env": {"SECRET": "s"}, "command": SLEEP, "ui": "8888"})
    row = ada.rows()["lab"]
    assert row["id"] == made["id"] and row["user"] == "games" and row["account"] == "ada" and row["state"] == "running" and len(row["gpus"]) == 1
    assert row["ui"] == "8888" and row["node"] and row["created"] > 1e9 and row["exit_code"] is None and "SECRET" not in json.dumps(people["bob"].rows())
    spec = ada.good("GET", f"containers/{made['id']}/spec")
    assert spec["env"] == {"SECRET": "s"} and spec["command"] == SLEEP and spec["gpus"] == 1
    change = {**spec, "env": {"SECRET": "t", "MORE": "1"}}
    told = ada.good("PUT", f"containers/{made['id']}?dry_run=true", change)
    assert told["changes"] == [{"key": "env.SECRET", "from": "s", "to": "t"}, {"key": "env.MORE", "from": None, "to": "1"}] and told["restarts"]
    assert box.inspect("lab")["Id"] == made["id"]  # nothing was done
    after = ada.good("PUT", f"containers/{made['id']}", change)
    assert after["id"] != made["id"] and box.inspect("lab")["Id"] == after["id"]
    assert wait_for(lambda: ada("GET", "containers/lab/log").body == b"up\n", "its log", 60)
    for verb, state in (("stop", "exited"), ("start", "running"), ("restart", "running")):
        ada.good("POST", f"containers/lab/{verb}")
        assert ada.rows()["lab"]["state"] == state
    ada.good("DELETE", "containers/lab")
    assert "lab" not in ada.rows() and box.names() == []


def test_answers_are_what_is_described(box, people):
    ada = people["ada"]
    shapes = Shapes(ada.good("GET", "openapi.json"))
    ada.good("POST", "containers", {"image": IMAGE, "name": "timed", "gpus": 1, "deadline": "30s", "command": SLEEP})
    with_gpus, with_deadlines = shapes.of("/api/v1/containers")
    seen = wait_for(lambda: [c for c in ada.good("GET", "containers")["containers"] if c["name"] == "timed"], "its deadline is known", 60)
    assert not differences(with_deadlines["containers"], seen)
    assert not differences(with_gpus, ada.good("GET", "containers?gpu=true"))
    assert not differences(shapes.of("/api/v1/containers/{id}")[0], ada.good("GET", f"containers/{seen[0]['id']}"))
    assert not differences(shapes.of("/api/v1/images")[0], ada.good("GET", "images"))


def test_rights_are_those_of_the_one_who_clicks(box, people):
    ada, bob, chief, stray = (people[n] for n in ("ada", "bob", "chief", "stray"))
    ada.good("POST", "containers", {"image": IMAGE, "name": "of-ada", "command": SLEEP})
    box.docker("run", "-d", "--name", "elsewhere", "--network", "none", "-e", "NVIDIA_VISIBLE_DEVICES=all", IMAGE, *SLEEP)
    may = {n: {c: sorted(r["may"]) for c, r in who.rows().items() if c in ("of-ada", "elsewhere")} for n, who in people.items()}  # one that was removed may be named for a moment
    everything, some = sorted(["log", "start", "stop", "restart", "remove", "edit", "shell"]), sorted(["log", "start", "stop", "restart", "remove"])
    assert may == {"ada": {"of-ada": everything, "elsewhere": []}, "bob": {"of-ada": [], "elsewhere": []},
                   "chief": {"of-ada": some, "elsewhere": some}, "stray": {"of-ada": [], "elsewhere": []}, "first": {"of-ada": some, "elsewhere": some}}
    for method, path, body in (("POST", "stop", None), ("POST", "start", None), ("GET", "spec", None), ("GET", "log", None)):
        bob.refused(403, "container of-ada is ada's", method, f"containers/of-ada/{path}", body)
    bob.refused(403, "container of-ada is ada's: edit is not for bob", "PUT", "containers/of-ada", {"env": {"A": "1"}})
    bob.refused(403, "container of-ada is ada's: remove is not for bob", "DELETE", "containers/of-ada")
    chief.refused(403, "edit is not for chief", "PUT", "containers/of-ada", {"env": {"A": "1"}})  # to run something as her is hers
    chief.refused(403, "spec is not for chief", "GET", "containers/of-ada/spec")
    stray.refused(403, "no Unix user is set for account stray", "POST", "containers", {"image": IMAGE})
    stray.refused(403, "no Unix user is set for account stray", "POST", "containers/of-ada/stop")
    first = people["first"]
    first.refused(403, "no Unix user is set for account first", "POST", "containers", {"image": IMAGE})
    first.refused(403, "no Unix user is set for account first", "PUT", "containers/of-ada", {"env": {"A": "1"}})
    assert first("GET", "containers/of-ada/log").status == 200
    first.good("POST", "containers/of-ada/restart")
    chief.good("POST", "containers/elsewhere/stop"), chief.good("POST", "containers/of-ada/stop")
    rows = ada.rows()
    assert rows["of-ada"]["state"] == rows["elsewhere"]["state"] == "exited"
    audit = chief.good("GET", "audit?limit=100")["audit"]
    seen = {(a["user"], a["method"], a["path"].split("/v1/")[1], a["status"]) for a in audit}
    assert {("bob", "DELETE", "containers/of-ada", 403), ("chief", "POST", "containers/of-ada/stop", 200), ("ada", "POST", "containers", 201)} <= seen
    events = wait_for(lambda: [e for e in ada.good("GET", "events?kind=container&limit=50")["events"] if "of-ada was stopped by chief" in e["text"]], "an event", 60)
    assert events[0]["severity"] == "info"


def test_two_accounts_of_one_user_are_told_apart(box, people):
    (box.up.dir / "users").write_text("".join(f"{a} {u}\n" for a, u in {**USERS, "twin": "games"}.items()))
    twin = Browser(box, "twin")
    people["ada"].good("POST", "containers", {"image": IMAGE, "name": "of-ada", "command": SLEEP})
    assert twin.rows()["of-ada"]["may"] == []
    twin.refused(403, "is ada's", "POST", "containers/of-ada/stop")
    # And of a job's container as of the job itself.
    number = people["ada"].good("POST", "jobs", {"image": IMAGE, "command": ["sh", "-c", "echo hers; sleep 100000"]})["id"]
    try:
        name = wait_for(lambda: next((n for n in box.names() if n.startswith(f"gpumgr-{number}.")), None), "its container", 120)
        wait_for(lambda: "hers" in str(people["ada"]("GET", f"containers/{name}/log").body), "what it says", 60)
        assert twin("GET", f"jobs/{number}/log").status == 403
        assert "log" not in twin.rows()[name]["may"]
        twin.refused(403, "is ada's", "GET", f"containers/{name}/log")
    finally:
        box.call("cancel", number)
        wait_for(lambda: box.call("wait", number).returncode is not None and not [n for n in box.names() if n.startswith("gpumgr-")], "it has ended", 120)


def test_bad_input(box, people):
    ada = people["ada"]
    rows = [(400, "image: there is none", {"name": "x1"}), (404, "image: none:1 is not on this machine", {"image": "none:1"}), (400, "imag: a container has no such key; did you mean", {"imag": "x"}),
            (400, "there is no GPU 9", {"image": IMAGE, "gpu_ids": [9], "command": SLEEP}), (400, "mounts: \"x\"", {"image": IMAGE, "mounts": ["x"]}), (400, "not a list", {"image": IMAGE, "mounts": "x"})]
    for status, sentence, body in rows:
        ada.refused(status, sentence, "POST", "containers", body)
    ada.refused(404, "there is no container none", "POST", "containers/none/stop")
    ada.refused(404, "no machine nowhere is known", "POST", "containers/x1/stop?node=nowhere")
    ada.refused(400, "is missing", "POST", "containers")
    assert ada("GET", "containers/x1/log?tail=0").status == 400
    ada.good("POST", "containers", {"image": IMAGE, "name": "one", "command": SLEEP})
    ada.refused(409, "name: there is a container one already", "POST", "containers", {"image": IMAGE, "name": "one", "command": SLEEP})
    ada.refused(400, "nothing would change", "PUT", "containers/one", {"env": {}})


def test_a_log_is_followed(box, people):
    ada = people["ada"]
    ada.good("POST", "containers", {"image": IMAGE, "name": "talker", "command": ["sh", "-c", "i=0; while test $i -lt 15; do echo line $i; i=$((i+1)); usleep 100000; done"]})
    c = http.client.HTTPConnection(ada.host, timeout=60)
    c.request("GET", "/api/v1/containers/talker/log?follow=true", headers={"Cookie": ada.cookie})
    text = c.getresponse().read().decode()  # it ends with the container
    said = "".join(json.loads(line[5:])["text"] for line in text.split("\n") if line.startswith("data:") and "text" in json.loads(line[5:]))
    assert said.split("\n")[:-1] == [f"line {i}" for i in range(15)] and "event: end" in text


def test_a_shell_is_its_owner_s_and_ends_with_him(box, people):
    ada = people["ada"]
    ada.good("POST", "containers", {"image": IMAGE, "name": "lab", "command": SLEEP})
    shell = WebSocket(ada, "containers/lab/shell?rows=30&columns=90")
    assert shell.status == 101
    shell.send("/bin/busybox id -u; /bin/busybox stty size; echo do''ne\r")
    shown = shell.until("done")
    assert "\n5\r\n" in shown and "30 90" in shown  # games
    shell.send('{"rows":40,"columns":100}', opcode=1)
    wait_for(lambda: (setattr(shell, "shown", ""), shell.send("/bin/busybox stty size; echo do''ne\r"), "40 100" in shell.until("done"))[2], "its size follows", 60)
    shell.send("sleep 4321\r")
    wait_for(lambda: "sleep 4321" in box.docker("top", "lab").stdout, "something runs in it", 60)
    shell.sock.close()
    wait_for(lambda: "sleep 4321" not in box.docker("top", "lab").stdout, "nothing is left of it", 60)
    again = WebSocket(ada, "containers/lab/shell")
    again.send("exit\r")
    assert again.closed() == "the shell has ended"
    assert "is not bob's" in WebSocket(people["bob"], "containers/lab/shell").closed()
    assert "is not chief's" in WebSocket(people["chief"], "containers/lab/shell").closed()
    assert WebSocket(ada, "containers/lab/shell", origin="http://evil.example").status == 403  # another site's page, with her cookie
    assert "there is no container none" in WebSocket(ada, "containers/none/shell").closed()
    assert ada("GET", "containers/lab/shell").status in (400, 403)  # no WebSocket, and no page
    ada.good("POST", "containers/lab/stop")
    assert "does not run" in WebSocket(ada, "containers/lab/shell").closed()


def followed(who, path):
    """A stream of events, and its connection."""
    c = http.client.HTTPConnection(who.host, timeout=120)
    c.request("GET", f"/api/v1/{path}", headers={"Cookie": who.cookie})
    return c, c.getresponse()


def test_a_log_that_is_written_fast_comes_whole_to_a_slow_reader(box, people):
    ada, go = people["ada"], box.open / "go"
    write = "trap 'exit 0' TERM; while ! test -e /open/go; do usleep 20000; done; for i in $(seq 1 60000); do echo line $i äöü; done"
    box.open.chmod(0o755)
    ada.good("POST", "containers", {"image": IMAGE, "name": "talker", "mounts": [f"{box.open}:/open:ro"], "command": ["sh", "-c", write]})
    c, answer = followed(ada, "containers/talker/log?follow=true")
    assert answer.status == 200
    go.touch()
    wait_for(lambda: not box.inspect("talker")["State"]["Running"], "all is written before anything is read", 300)
    text, event = "", ""
    for line in answer:
        if line.startswith(b"event:"):
            event = line.split()[1].decode()
        if line.startswith(b"data:") and event == "log":
            text += json.loads(line[5:])["text"]
        if event == "end":
            break
    go.unlink()
    c.close()
    assert text.splitlines() == [f"line {i} äöü" for i in range(1, 60001)]


def test_who_signs_out_loses_his_shells_and_logs(box, people):
    people["ada"].good("POST", "containers", {"image": IMAGE, "name": "lab", "command": SLEEP})
    ada = Browser(box, "ada")  # a session of its own
    shell = WebSocket(ada, "containers/lab/shell")
    shell.send("echo do''ne; sleep 4321\r")
    shell.until("done")
    c, log = followed(ada, "containers/lab/log?follow=true")
    assert log.status == 200
    assert ada("DELETE", "session").status == 204
    assert shell.closed() == "you are not signed in any more"
    assert log.read().startswith(b"event: log")  # to its end
    c.close()
    wait_for(lambda: "sleep 4321" not in box.docker("top", "lab").stdout, "nothing is left of it", 60)


def test_a_window_that_is_drawn_larger_starts_one_thread(box, people):
    ada = people["ada"]
    ada.good("POST", "containers", {"image": IMAGE, "name": "lab", "command": SLEEP})
    shell = WebSocket(ada, "containers/lab/shell?rows=30&columns=90")
    shell.send("echo do''ne\r")
    shell.until("done")
    threads = Path(f"/proc/{box.up.of_program('node')[0]}/task")
    before = len(list(threads.iterdir()))
    stop(box.docker.process.pid)  # the engine answers nobody
    try:
        for rows in range(10, 310):
            shell.send(json.dumps({"rows": rows, "columns": 100}), opcode=1)
        shell.send("x", opcode=9)
        while shell.frame()[0] != 10:  # the server has passed all of them on
            pass
        for _ in range(20):  # nothing says that the node has heard them all: with a thread for each there were hundreds at once
            time.sleep(0.05)
            assert len(list(threads.iterdir())) <= before + 12
    finally:
        kill(box.docker.process.pid, signal.SIGCONT)
    wait_for(lambda: (setattr(shell, "shown", ""), shell.send("/bin/busybox stty size; echo do''ne\r"), "309 100" in shell.until("done"))[2], "the last size counts", 60)


def opened(jar, who):
    """The page of container web; None: it does not listen yet."""
    try:
        return jar.open(who.good("POST", "containers/web/ui")["url"], timeout=60)
    except urllib.error.HTTPError as e:
        assert e.code == 503, e
        return None


def test_its_own_page_is_opened_by_its_owner_alone(box, people):
    ada, www = people["ada"], box.open / "www"
    www.mkdir()
    (www / "index.html").write_text("hello from the container\n")
    ada.good("POST", "containers", {"image": IMAGE, "name": "web", "ui": "8000/index.html", "mounts": [f"{www}:/www:ro"],
                                    "command": ["/bin/busybox", "httpd", "-f", "-p", "8000", "-h", "/www"]})
    jar = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    text = wait_for(lambda: opened(jar, ada), "the page", 60).read().decode()
    assert text == "hello from the container\n"
    for who in ("bob", "chief"):  # what runs there runs as ada
        people[who].refused(403, f"container web is not {who}'s", "POST", "containers/web/ui")
    ada.good("POST", "containers", {"image": IMAGE, "name": "plain", "command": SLEEP})
    ada.refused(404, "container plain has no page of its own", "POST", "containers/plain/ui")
    ada.good("POST", "containers/web/stop")
    ada.refused(409, "container web does not run", "POST", "containers/web/ui")


def listens(url):
    host, port = url.split("/")[2].rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.parametrize("end", ["stopped", "removed", "rights"])
def test_its_own_page_is_closed_with_it(box, people, end):
    ada = people["ada"]
    # one request is answered; the next waits for ever, as a WebSocket does
    serve = "while :; do /bin/busybox nc -l -p 8000 -e sh -c 'read x; printf \"HTTP/1.1 200 OK\\r\\n\\r\\nhello\"; sleep 4321'; done"
    ada.good("POST", "containers", {"image": IMAGE, "name": "web", "ui": "8000", "command": ["sh", "-c", serve]})
    url = ada.good("POST", "containers/web/ui")["url"]
    jar = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    answer = wait_for(lambda: opened(jar, ada), "the page", 60)
    assert answer.read(5) == b"hello" and listens(url)
    try:
        if end == "stopped":
            box.docker("stop", "-t", "0", "web")
        elif end == "removed":
            box.docker("rm", "-f", "web")
        else:
            (box.up.dir / "users").write_text("".join(f"{a} {u}\n" for a, u in {**USERS, "ada": "news"}.items()))
        assert answer.read() == b""  # what was open is cut off
        wait_for(lambda: not listens(url), "nothing listens there any more", 60)
    finally:
        (box.up.dir / "users").write_text("".join(f"{a} {u}\n" for a, u in USERS.items()))


def test_a_machine_whose_engine_is_away_is_said(box, people):
    box.docker.process.send_signal(19)
    try:
        box.docker.socket.rename(box.docker.socket.with_suffix(".away"))
        answer = people["ada"].good("GET", "containers?gpu=true")
        assert "does not run" in answer["problems"][0]["text"] and answer["containers"] == []
    finally:
        box.docker.socket.with_suffix(".away").rename(box.docker.socket)
        box.docker.process.send_signal(18)
