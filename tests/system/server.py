"""A gpumgr-server of a test's own, without GPUs: started as the supervisor would, asked as browsers and programs would."""

import http.client
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from pathlib import Path

from instance import clean_env
from simulator import BUILD, wait_for

SERVER = BUILD / "gpumgr-server"
GPUMGR = BUILD / "gpumgr"


def certificate(directory):
    """One for this machine, and its key."""
    directory.mkdir(exist_ok=True)
    cert, key = directory / "cert.pem", directory / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    return cert, key


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("gpumgr", timeout=20)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json["error"]["code"]

    def cookie(self):
        return (self.headers.get("Set-Cookie") or "").split(";")[0]


class Server:
    """settings: lines of the file that the supervisor would write. user: run as that one (a number). base: where its directory is.
    clock: a test's own (set_clock.py)."""

    clock = None

    def __init__(self, user=None, base="/dev/shm", clock=None, **settings):
        self.clock = clock or self.clock
        self.dir = Path(tempfile.mkdtemp(prefix="gs-", dir=base))
        self.dir.chmod(0o755)
        (self.dir / "run").mkdir(mode=0o755)
        self.user = user
        lines = {"dir": self.dir, "listen": "127.0.0.1:0", **{k.replace("__", "."): v for k, v in settings.items()}}
        (self.dir / "run/settings").write_text("".join(f"{k}={v}\n" for k, v in lines.items()))
        self.log_path = self.dir / "log"
        self.log_path.touch()
        if user is not None:
            for path in (self.dir, self.dir / "run", self.log_path):
                os.chown(path, user, user)
        self.start()

    def start(self):
        for name in ("listen", "api.sock"):
            (self.dir / "run/server" / name).unlink(missing_ok=True)
        self.process = subprocess.Popen([str(SERVER), "serve", str(self.dir), str(self.dir / "run/settings"), "0"],
                                        env=clean_env(**(self.clock.env() if self.clock else {})), stderr=self.log_path.open("a"), user=self.user, group=self.user,
                                        extra_groups=None if self.user is None else [])
        wait_for(self.is_up, "the server answers")
        self.url = (self.dir / "run/server/listen").read_text().split()[0]
        self.host = self.url.split("//")[1]

    def is_up(self):
        assert self.process.poll() is None, self.log_path.read_text()
        try:
            return self.unix("GET", "/healthz").status == 200
        except (FileNotFoundError, ConnectionError):
            return False

    def stop(self, kill=False):
        (self.process.kill if kill else self.process.terminate)()
        assert self.process.wait(30) == (-9 if kill else 0), self.log_path.read_text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- asking ----

    @staticmethod
    def request(connection, method, path, body, headers):
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        headers = {**({"Content-Type": "application/json"} if body is not None else {}), **headers}
        connection.request(method, path, body, {k: v for k, v in headers.items() if v is not None})
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def tcp(self, method, path, body=None, **headers):
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        return self.request(http.client.HTTPConnection(self.host, timeout=20), method, path, body, headers)

    def unix(self, method, path, body=None, **headers):
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        return self.request(UnixConnection(self.dir / "run/server/api.sock"), method, path, body, headers)

    def unix_as(self, uid, method, path, body=None):
        """The same from a process of another user: (status, text)."""
        # It imports nothing of ours: he may not come into the directory of whoever made this clone.
        script = ("import http.client, json, socket, sys\n"
                  "path, method, target, body = json.loads(sys.stdin.read())\n"
                  "c = http.client.HTTPConnection('gpumgr', timeout=20)\n"
                  "c.sock = socket.socket(socket.AF_UNIX)\nc.sock.connect(path)\n"
                  "c.request(method, target, None if body is None else json.dumps(body), {} if body is None else {'Content-Type': 'application/json'})\n"
                  "a = c.getresponse()\nprint(json.dumps([a.status, a.read().decode()]))")
        asked = json.dumps([str(self.dir / "run/server/api.sock"), method, path, body])
        out = subprocess.run(["/usr/bin/python3", "-c", script], input=asked, capture_output=True, text=True, check=True, cwd="/", user=uid,
                             group=uid, extra_groups=[])
        status, text = json.loads(out.stdout)
        return status, json.loads(text) if text else None

    def gpumgr(self, *words, user=None, stdin="", env=None):
        return subprocess.run([str(GPUMGR), *words, "--dir", str(self.dir)], capture_output=True, text=True, input=stdin,
                              env=clean_env(**(env or {})), user=user, group=user, extra_groups=None if user is None else [],
                              timeout=30)

    def link(self, user=None):
        """The secret of a new one-time link."""
        answer = self.unix("POST", "/api/v1/links", {"user": user} if user else None)
        assert answer.status == 201, answer.body
        return answer.json["url_path"].split("#")[1]

    def sign_in(self, link):
        return self.tcp("POST", "/api/v1/session", {"link": link})

    def browser(self, user=None):
        """A browser that is signed in: its cookie and what its page sends with a mutating call."""
        answer = self.sign_in(self.link(user))
        assert answer.status == 204, answer.body
        cookie = answer.cookie()
        csrf = self.tcp("GET", "/api/v1/session", Cookie=cookie).json["csrf"]
        return {"Cookie": cookie}, {"Cookie": cookie, "X_CSRF_Token": csrf, "Origin": self.url}

    def database(self, text, *values):
        """While the server is stopped."""
        db = sqlite3.connect(self.dir / "server/state.db")
        with db:
            rows = db.execute(text, values).fetchall()
        db.close()
        return rows
