"""A server that is killed at numbered steps (base/crash_point.h), one after the other, and started again by whoever misses it; a node by
hand beside it, whose books outlive both."""

import os
import shutil
import struct
import subprocess

from instance import clean_env
from job_node import CONTROL, Books, JobNode
from server import Server
from simulator import BUILD, wait_for

PROGRAM = BUILD / "tests/server_crash"
LONG = 60


def sites():
    """What can be killed at: number -> (where, system call or "")."""
    out = subprocess.run([str(PROGRAM), "serve"], env=clean_env(GPUMGR_CRASH="list"), capture_output=True, text=True, timeout=30).stdout
    lines = [(line.split(" ") + [""])[:3] for line in out.splitlines()]
    return {int(number): (where.split("/")[-1], call) for number, where, call in lines}


def programs(at, *mortal):
    """All of them in one place; these (core, node, shim) die where they are told to."""
    shutil.copy(BUILD / "gpumgr", at)
    for name in ("core", "node", "server", "shim"):
        shutil.copy(BUILD / (f"tests/{name}_crash" if name in mortal else f"gpumgr-{name}"), at / f"gpumgr-{name}")
    return at


class Mortal(Server):
    """Dead when its file says so. clock: of the test's own."""

    def __init__(self, orders, clock=None, **settings):
        self.orders, self.clock = orders, clock
        super().__init__(**settings)

    def start(self):
        for name in ("listen", "api.sock"):
            (self.dir / "run/server" / name).unlink(missing_ok=True)
        env = clean_env(**(self.clock.env() if self.clock else {}), GPUMGR_CRASH=f"@{self.orders}")
        self.process = subprocess.Popen([str(PROGRAM), "serve", str(self.dir), str(self.dir / "run/settings"), "0"], env=env,
                                        stderr=self.log_path.open("a"))
        wait_for(lambda: self.is_dead() or self.is_up(), "the server answers, or is dead", LONG)

    def is_up(self):
        try:
            return self.unix("GET", "/healthz").status == 200
        except OSError:
            return False

    def is_dead(self):
        return self.process.poll() is not None


class Place:
    """What people do on it is done again when the server died before it answered, as they would."""

    def __init__(self, path, clock=None, **settings):
        path.chmod(0o777)
        self.orders = path / "crash"
        self.server, self.books, self.node, self.deaths = Mortal(self.orders, clock, **settings), Books(), None, 0
        self.connect()

    def kill_at(self, order):
        """In one go: half an order would be another one."""
        new = self.orders.with_suffix(".new")
        new.write_text(f"server{order}")
        new.chmod(0o666)
        os.rename(new, self.orders)

    def on_death(self):
        """For those who want another order to be there when it is started again."""

    def connect(self):
        while True:
            while self.server.is_dead():
                assert self.server.process.returncode == -9, self.server.log_path.read_text()[-4000:]
                self.deaths += 1
                self.on_death()
                self.server.start()
            if self.node:
                self.node.close()
            try:
                self.node = JobNode(self.server.dir / "run/server/link.sock", self.books)
                return
            except (OSError, AssertionError):
                wait_for(self.server.is_dead, "the server is dead, if its socket is", LONG)

    def until(self, fact, what, seconds=LONG):
        def either():
            if self.server.is_dead():
                self.connect()
            return fact()
        return wait_for(either, what, seconds)

    def do(self, act):
        """Until it was acknowledged: its answer, and whether it was asked more than once."""
        again = False
        while True:
            node, request = self.node, act()
            wait_for(lambda: request in node.answers or self.server.is_dead(), "an answer, or the end", LONG)
            if request in node.answers:
                return node.answers.pop(request), again
            again = True
            self.connect()

    def control_soon(self, verb, job):
        self.node.request += 1
        self.node.say(CONTROL, struct.pack("<QIBqqq", self.node.request, self.node.uid, verb, job, -1, 0))
        return self.node.request

    def ask(self, method, path, body=None, **headers):
        """Until somebody answered."""
        while True:
            try:
                return self.server.unix(method, f"/api/v1/{path}", body, **headers)
            except (OSError, ValueError):
                wait_for(lambda: self.server.is_dead() or self.server.is_up(), "the server is dead, if it does not answer", LONG)
                if self.server.is_dead():
                    self.connect()

    def get(self, path):
        return self.ask("GET", path).json

    def close(self):
        self.node.close()
        if not self.server.is_dead():
            self.server.process.kill()  # its last steps are not the story's
            self.server.process.wait(30)
        self.server.__exit__()
