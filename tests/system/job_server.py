"""A server by hand that grants runs, and callers of the node's own socket: written from model/wire_job.h, wire_run.h and
jobs_socket.h."""

import os
import socket
import struct
from contextlib import contextmanager

import link
from job_node import (ENDED, GRANT, LOG_ASK, RUNS, SEAL, STOP, STORED, SUBMITTED, CONTROLLED, blob, job_record, words)
from link import Reader, StubServer, frame, text
from simulator import wait_for

CALL_SUBMIT, CALL_FOLLOW, CALL_SIGNAL = 60, 61, 62


def spec(*command, env=(), cwd="", image="", mounts=(), is_pty=False, over=(0, 0), **more):
    """job_record with what it leaves out. over: what happens beyond the share of memory, and when idle; 1: it is ended."""
    plain = job_record(command=command, **more)
    head = struct.pack("<B", 1) + link_text(more.get("name") or command[0]) + words(command)
    assert plain.startswith(head)
    rest = bytearray(plain[len(head) + len(link_text("") + words(()) + words(()) + link_text("")):-1])
    at = 4 + len(words(more.get("scope", ()))) + 16
    rest[at:at + 2] = bytes(over)
    return head + link_text(image) + words(mounts) + words(env) + link_text(cwd) + rest + struct.pack("<B", is_pty)


def link_text(s):
    b = s.encode()
    return struct.pack("<I", len(b)) + b + b"\0"


def environment(env):
    b = b"".join(f"{k}={v}".encode() + b"\0" for k, v in env.items())
    return struct.pack("<HI", len(env), len(b)) + b


class JobServer(StubServer):
    """Takes what is submitted, and grants when a test says so. stores: acknowledges ends at once."""

    def __init__(self, run, stores=True):
        self.stores = stores
        self.jobs = {}  # number -> sealed job
        self.next_job = 1
        self.request = 0
        super().__init__(run)

    def start(self):
        super().start()
        os.chmod(self.dir / "link.sock", 0o666)  # the node may be somebody else

    def handle(self, session, kind, what):
        super().handle(session, kind, what)
        if kind == link.SUBMIT:
            first = self.next_job
            for j in what["jobs"]:
                self.jobs[self.next_job] = j
                self.next_job += 1
            self.say(frame(SUBMITTED, struct.pack("<QiqI", what["request"], 0, first, len(what["jobs"])) + text("")))
        if kind == link.CONTROL:
            self.say(frame(CONTROLLED, struct.pack("<QiqI", what["request"], 0, what["job"], 1) + text("")))
        if kind == link.RUN and what["state"] == ENDED and self.stores:
            self.store_end(what["key"])

    def store_end(self, key):
        self.say(frame(STORED, struct.pack("<qII", *key)))

    def grant(self, job, uuids, element=0, attempt=1, **change):
        j = {**self.jobs[job], **change}
        self.say(frame(GRANT, struct.pack("<qIIH", job, element, attempt, len(uuids)) + b"".join(map(text, uuids))
                       + struct.pack("<I", j["uid"]) + text(j["user"]) + blob(j["record"]) + blob(j["seal"])))
        return (job, element, attempt)

    def stop(self, key, reason=1, grace=5.0):
        self.say(frame(STOP, struct.pack("<qIIBq", *key, reason, int(grace * 1e9))))

    def ask_runs(self, *keys):
        self.say(frame(RUNS, struct.pack("<I", len(keys)) + b"".join(struct.pack("<HqII", 16, *k) for k in keys)))

    def seal(self, account, record, is_admin=False):
        self.request += 1
        number = self.request
        self.say(frame(SEAL, struct.pack("<Q", number) + text(account) + struct.pack("<B", is_admin) + blob(record)))
        return wait_for(lambda: [s for s in self.of(link.SEALED) if s["request"] == number], "an answer to SEAL")[0]

    def log(self, key, offset=0, n=65536):
        self.request += 1
        number = self.request
        self.say(frame(LOG_ASK, struct.pack("<QqIIQI", number, *key, offset, n)))
        return wait_for(lambda: [s for s in self.of(link.LOG) if s["request"] == number], "a log")[0]

    def runs_of(self, key):
        return [r for r in self.of(link.RUN) if r["key"] == key]

    def figures_of(self, key):
        """What was told last of what a run uses; None: nothing yet."""
        return next((f[key] for f in reversed(self.of(link.FIGURES)) if key in f), None)

    def wait_state(self, key, state, seconds=20):
        return wait_for(lambda: [r for r in self.runs_of(key) if r["state"] == state], f"run {key} in state {state}", seconds)[-1]

    def ended(self, key, seconds=30):
        return self.wait_state(key, ENDED, seconds)

    def frees(self):
        got = self.of(link.FREE)
        return got[-1] if got else {}


@contextmanager
def somebody(uid):
    """This process's effective user for a moment: the kernel notes who connects."""
    if uid is None or uid == os.geteuid():
        yield
        return
    groups = os.getgroups()
    os.setgroups([uid])
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


class Caller:
    def __init__(self, run, uid=None):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(30)
        with somebody(uid):
            wait_for(lambda: self.connects(str(run / "jobs.sock")), "the node takes callers")
        self.data = b""
        self.request = 0

    def connects(self, path):
        try:
            self.s.connect(path)
            return True
        except OSError:
            return False

    def close(self):
        self.s.close()

    def next(self):
        """The next frame: (kind, what)."""
        while len(self.data) < 8 or len(self.data) < struct.unpack_from("<I", self.data)[0] + 4:
            piece = self.s.recv(1 << 18)
            if not piece:
                raise EOFError
            self.data += piece
        n, kind = struct.unpack_from("<IB", self.data)
        body, self.data = self.data[8:n + 4], self.data[n + 4:]
        r = Reader(body)
        if kind in (SUBMITTED, CONTROLLED):
            return kind, {**dict(zip(("request", "result", "first", "count"), r.take("QiqI"))), "text": r.text()}
        return kind, link.JOB_FRAMES[kind](r)

    def submit(self, *records, cwd="/", env=None, umask=0o022):
        self.request += 1
        env = {"PATH": "/usr/bin:/bin"} if env is None else env
        self.s.sendall(frame(CALL_SUBMIT, struct.pack("<QI", self.request, umask) + text(cwd) + environment(env)
                             + struct.pack("<H", len(records)) + b"".join(map(blob, records))))
        kind, answer = self.next()
        assert kind == SUBMITTED and answer["request"] == self.request
        return answer

    def control(self, verb, job, element=-1, value=0):
        self.request += 1
        self.s.sendall(frame(link.CONTROL, struct.pack("<QIBqqq", self.request, 4711, verb, job, element, value)))
        return self.next()[1]

    def signal(self, job, number, element=0):
        self.request += 1
        self.s.sendall(frame(CALL_SIGNAL, struct.pack("<QqIi", self.request, job, element, number)))
        return self.next()[1]

    def follow(self, job, element=0, has_log=True, attempt=0, offset=0):
        self.request += 1
        self.s.sendall(frame(CALL_FOLLOW, struct.pack("<QqIBIQ", self.request, job, element, has_log, attempt, offset)))

    def followed(self):
        """All that is said until the run has ended: (log, states)."""
        log, states = b"", []
        while not states or states[-1]["state"] != ENDED:
            kind, what = self.next()
            if kind == link.RUN:
                states.append(what)
            elif kind == link.LOG:
                log += what["bytes"]
            else:
                return log, what
        return log, states
