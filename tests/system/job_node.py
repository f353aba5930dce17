"""A node by hand that runs jobs, as gpumgr-node would, but only in its books: written from model/wire_job.h and wire_run.h.

The books (`Books`) are what a real node has on its disk: which runs it was given, which began, how they ended, and what the
server has acknowledged. They outlive the connection, so a test may cut it, or kill the server, wherever it likes. A job does what
its command says: ["exit", CODE], ["sleep", SECONDS], ["flash", CODE] ends before anybody heard that it runs, anything else runs until
the test ends it."""

import math
import socket
import struct
import threading
import time

from hand_node import boot_ns, record
from link import HELLO, INVENTORY, LATEST, ROUND, WELCOME, Reader, frame, text

SEALED, SUBMIT, CONTROL, RUN, LOG, FREE = range(30, 36)
TRIED, NOTICED = 38, 39
SEAL, SUBMITTED, CONTROLLED, GRANT, STOP, STORED, RUNS, LOG_ASK, TRY = range(140, 149)
WANTED, NOTICE = 158, 159
ABSENT, STARTING, RUNNING, ENDING, ENDED = range(5)
BY_ITSELF, BY_CANCEL, BY_TIME_LIMIT, BY_MEMORY, BY_IDLE, BY_START, BY_REBOOT, BY_SHIM, BY_PREEMPT = range(9)
IS_FREE, IS_FOREIGN, IS_MEMORY, IS_BUSY, IS_HOT, IS_LOST, IS_UNHEALTHY, IS_CORDONED, IS_UNKNOWN = range(9)
CANCEL, HOLD, RELEASE, PRIORITY = range(4)
GIB = 1 << 30
NS = 10**9


def blob(b):
    return struct.pack("<I", len(b)) + b


def job_text(s):
    b = s.encode()
    return struct.pack("<I", len(b)) + b + b"\0"


def words(items):
    b = b"".join(w.encode() + b"\0" for w in items)
    return struct.pack("<II", len(items), len(b)) + b


def job_record(command=("train",), name="", gpus=1, scope=(), memory=0, share=0, priority=0, finish_by_ns=0, limit_ns=0, retries=0,
               after=(), array="", sweep=(), labels=(), notify=()):
    """A spec's bytes, as model/job.c writes them."""
    return (struct.pack("<B", 1) + job_text(name or command[0]) + words(command) + job_text("") + words(()) + words(()) + job_text("")
            + struct.pack("<i", gpus) + words(scope) + struct.pack("<QQBBiqqi", memory, share, 0, 0, priority, finish_by_ns, limit_ns, retries)
            + words(after) + job_text(array) + words(sweep) + words(labels) + words(notify) + struct.pack("<B", 0))


def repeat_record(cron, zone="Europe/Berlin", late="3h", overlap="queue", command=("exit", "0"), name="nightly", edits=0):
    """A job's record with a repeat, or with what another one becomes."""
    return b"\2" + job_record(command, name=name)[1:] + b"\1" + words(
        [f"cron={cron}", f"zone={zone}", f"late={late}", f"overlap={overlap}"] + ([f"edits={edits}"] if edits else []))


def service_record(name, command=("hold",), update="no", pause="1s"):
    """A job's record with a service that is not checked."""
    return b"\2" + job_record(command, name=name)[1:] + b"\2" + words(
        ["restart=always", f"pause={pause}", "pause_most=5m", "forget=1m", "give_up=0", "within=1h", "yield=no", f"update={update}", "probe=none",
         "port=0", "path=", "status=0", "interval=10s", "timeout=3s", "grace=1m", "failures=3"])


def command_of(rec):
    r = Reader(rec)
    r.take("B")
    n = r.take("I")
    r.at += n + 1
    count, n = r.take("II")
    return [w.decode() for w in rec[r.at:r.at + n].split(b"\0")[:count]]


class Books:
    """What a node's disk holds. lock: of all of it."""

    def __init__(self):
        self.lock = threading.RLock()
        self.runs = {}  # (job, element, attempt) -> dict
        self.starts = []  # every start of a process: a run must be in here once
        self.grants = []  # every GRANT that came: (key, uuids)
        self.notices = []  # what was to be said on terminals here: (job, kind, number of the message)

    def state(self, key):
        with self.lock:
            return self.runs[key]["state"] if key in self.runs else ABSENT


class JobNode:
    def __init__(self, path, books=None, gpus=4, name="lab", memory=80 * GIB, owner=("alice", 1000), tells_free=True, boot="1" * 8, now_ns=time.time_ns):
        self.path, self.books, self.name, self.memory = str(path), books or Books(), name, memory
        self.uuids = [f"GPU-{name}-{i:04d}-0000-0000-000000000000" for i in range(gpus)]
        self.verdict = {u: (IS_FREE, "") for u in self.uuids}
        self.user, self.uid = owner
        self.tells_free = tells_free
        self.now_ns = now_ns  # its wall clock
        self.since = {}  # of verdicts that are older than their telling
        self.wanted = None  # UUIDs that somebody waits for, as the server said last
        self.boot_id = f"{boot}-2222-3333-4444-555555555555"
        self.answers, self.stored, self.seals = {}, [], 0
        self.news = threading.Condition()
        self.request = 0
        self.is_over = False
        self.is_welcomed, self.ended = threading.Event(), threading.Event()
        self.s = socket.socket(socket.AF_UNIX)
        self.s.connect(self.path)
        self.out = threading.Lock()
        self.hello()
        self.begin()

    def begin(self):
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self.read, self.beat)]
        for t in self.threads:
            t.start()
        assert self.is_welcomed.wait(30), "the server did not welcome the node"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.is_over = True
        self.ended.set()
        try:
            self.s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.s.close()
        for t in self.threads:
            t.join(5)

    def say(self, kind, body):
        with self.out:
            try:
                self.s.sendall(frame(kind, body))
            except OSError:
                pass

    def hello(self):
        names = text("gpu_memory_total_bytes")
        self.say(HELLO, text(self.name) + text(self.boot_id) + text("1")
                 + struct.pack("<qqQHH", boot_ns(), self.now_ns(), 1, len(self.uuids), 1) + struct.pack("<H", 1) + names + struct.pack("<H", 0))
        for i, uuid in enumerate(self.uuids):
            texts = [uuid, "NVIDIA H200"]
            numbers = [i, i, -1]
            self.say(INVENTORY, struct.pack("<HH", i, 0) + struct.pack("<H", len(texts)) + b"".join(map(text, texts))
                     + struct.pack("<H", len(numbers)) + struct.pack(f"<{len(numbers)}i", *numbers) + struct.pack("<H", 0))

    def beat(self):
        while not self.is_over:
            self.say(ROUND, struct.pack("<qqH", boot_ns(), self.now_ns(), 0))
            self.ended.wait(0.5)

    # ---- what it measures ----

    def free(self, index=None, verdict=IS_FREE, user=""):
        if index is not None:
            self.verdict[self.uuids[index]] = (verdict, user)
        body = struct.pack("<H", len(self.uuids))
        for u in self.uuids:
            v, who = self.verdict[u]
            body += record(text(u) + struct.pack("<BI", v, 1001 if who else 0xffffffff) + text(who) + struct.pack("<iQqq", 77 if who else 0, 0, self.since.get(u, self.now_ns()), 0))
        self.say(FREE, body)

    def memories(self):
        for i in range(len(self.uuids)):
            self.say(LATEST, struct.pack("<HH", i, 1) + struct.pack("<Hdqq", 0, float(self.memory), boot_ns(), boot_ns() + 3600 * NS))

    # ---- what it is told ----

    def read(self):
        data = b""
        while not self.is_over:
            try:
                piece = self.s.recv(1 << 18)
            except OSError:
                return
            if not piece:
                return
            data += piece
            while len(data) >= 8 and len(data) >= struct.unpack_from("<I", data)[0] + 4:
                n, kind = struct.unpack_from("<IB", data)
                body, data = data[8:n + 4], data[n + 4:]
                self.take(kind, Reader(body))

    @staticmethod
    def key(r):
        return r.take("qII")

    def take(self, kind, r):
        if kind == WELCOME:
            self.memories()
            if self.tells_free:
                self.free()
            with self.books.lock:
                ended = [k for k, run in self.books.runs.items() if run["state"] == ENDED and not run["stored"]]
            for k in ended:
                self.tell(k)
            self.is_welcomed.set()
        elif kind in (SUBMITTED, CONTROLLED):
            request, result, first, count = r.take("QiqI")
            self.answer(request, {"result": result, "first": first, "count": count, "text": r.text()})
        elif kind == GRANT:
            self.grant(r)
        elif kind == STOP:
            k = self.key(r)
            reason, _ = r.take("Bq")
            with self.books.lock:
                if k not in self.books.runs:
                    self.books.runs[k] = {"state": STARTING, "stored": False, "command": []}
                    self.finish(k, None, reason)
                elif self.books.runs[k]["state"] != ENDED:
                    self.finish(k, None, reason, signal=15)
                else:
                    self.tell(k)
        elif kind == STORED:
            k = self.key(r)
            with self.books.lock:
                if k in self.books.runs:
                    self.books.runs[k]["stored"] = True
            self.stored.append(k)
        elif kind == RUNS:
            for _ in range(r.take("I")):
                k = self.key(r.record())
                self.tell(k)
        elif kind == SEAL:
            request = r.take("Q")
            account, _ = r.text(), r.take("B")
            n = r.take("I")
            rec = r.data[r.at:r.at + n]
            self.seals += 1
            if account == "nobody":
                self.say(SEALED, struct.pack("<Qi", request, -13) + text("no Unix user is set for account nobody: see jobs.users_file"))
            else:
                self.say(SEALED, struct.pack("<Qi", request, 0) + text("") + self.sealed(rec))
        elif kind == TRY:
            self.say(TRIED, struct.pack("<Qi", r.take("Q"), 0) + text(""))
        elif kind == NOTICE:
            number, job, _ = r.take("QqH")
            self.books.notices.append((job, r.text(), number))
            self.say(NOTICED, struct.pack("<Qi", number, 0) + text(""))
        elif kind == WANTED:
            self.wanted = [r.record().text() for _ in range(r.take("H"))]
        elif kind == LOG_ASK:
            request = r.take("Q")
            k = self.key(r)
            offset, n = r.take("QI")
            log = f"log of {k[0]}.{k[1]}.{k[2]}\n".encode() * 10
            part = log[offset:offset + n]
            self.say(LOG, struct.pack("<QiQQB", request, 0, min(offset, len(log)), len(log), self.books.state(k) == ENDED) + blob(part) + text(""))

    def answer(self, request, value):
        with self.news:
            self.answers[request] = value
            self.news.notify_all()

    def grant(self, r):
        k = self.key(r)
        uuids = [r.text() for _ in range(r.take("H"))]
        uid = r.take("I")
        user = r.text()
        n = r.take("I")
        rec = r.data[r.at:r.at + n]
        r.at += n
        n = r.take("I")
        seal = r.data[r.at:r.at + n]
        assert seal == b"seal of " + rec, "another seal than the job was handed in with"
        with self.books.lock:
            self.books.grants.append((k, uuids))
            if k in self.books.runs:  # its directory is there: it is not started twice
                self.tell(k)
                return
            command = command_of(rec)
            self.books.runs[k] = {"state": RUNNING, "stored": False, "command": command, "gpus": uuids, "uid": uid, "user": user, "start": self.now_ns()}
            self.books.starts.append(k)
            if command[0] != "flash":
                self.tell(k)
            if command[0] in ("exit", "flash"):
                self.finish(k, int(command[1]))
            elif command[0] == "sleep":
                threading.Timer(float(command[1]), self.finish, (k, 0)).start()

    # ---- runs ----

    def finish(self, k, code, reason=BY_ITSELF, signal=0, has_exit=True, **figures):
        with self.books.lock:
            run = self.books.runs[k]
            if run["state"] == ENDED:
                return
            run.update(state=ENDED, code=code or 0, reason=reason, signal=signal, has_exit=has_exit and (code is not None or signal != 0),
                       end=self.now_ns(), **figures)
        self.tell(k)

    def tell(self, k):
        with self.books.lock:
            run = dict(self.books.runs.get(k, {"state": ABSENT}))
        body = struct.pack("<qII", *k) + struct.pack("<BBiqqBii", run["state"], run.get("reason", 0), 4242 if run.get("start") else 0, run.get("start", 0), run.get("end", 0),
                                                     run.get("has_exit", False), run.get("code", 0), run.get("signal", 0))
        body += struct.pack("<ddddd", run.get("gpu_seconds", 0.0), run.get("energy", 0.0), 1.0, run.get("gpu_ratio", math.nan), run.get("cpu_ratio", math.nan))
        body += struct.pack("<QQQQ", run.get("peak", 0), self.memory, 0, 100) + text(run.get("text", ""))
        self.say(RUN, body)

    # ---- what its callers want ----

    def sealed(self, rec, uid=None, user=None):
        return struct.pack("<I", self.uid if uid is None else uid) + text(user or self.user) + blob(rec) + blob(b"seal of " + rec)

    def wait_answer(self, request, timeout=30):
        with self.news:
            assert self.news.wait_for(lambda: request in self.answers, timeout), "no answer"
            return self.answers.pop(request)

    def submit_soon(self, records, uid=None, user=None, key=None, part_of=0, is_part=False):
        """key: what came by it before is not taken twice. is_part: more frames of this request (part_of it) follow."""
        with self.news:
            self.request += not part_of
            request = part_of or self.request
        body = struct.pack("<QH", request, len(records))
        for rec in records:
            body += blob(self.sealed(rec, uid, user))
        if key is not None or is_part:
            body += text(key or "") + struct.pack("<B", is_part)
        self.say(SUBMIT, body)
        return request

    def submit(self, *records, uid=None, user=None, key=None):
        return self.wait_answer(self.submit_soon(records, uid, user, key))

    def control(self, verb, job, element=-1, value=0, uid=None):
        with self.news:
            self.request += 1
            request = self.request
        self.say(CONTROL, struct.pack("<QIBqqq", request, self.uid if uid is None else uid, verb, job, element, value))
        return self.wait_answer(request)
