"""The link between node and server, from the server's side: a decoder of its own, written from the description in
src/model/wire.h and not from the code, and a server that only takes notes."""

import os
import select
import socket
import struct
import threading
import time
from pathlib import Path

HELLO, INVENTORY, SAMPLE, LATEST, STATE, PROCESSES, XIDS, GUARD, DRIVER, HOST, EVENT, ROUND, ORDER_RESULT = range(1, 14)
TASK, CONTAINER, NODE, USE = range(20, 24)
WELCOME, ORDER, BYE = 128, 129, 130
VERBS = {"ping": 0, "look": 1, "reload": 2, "guard set": 3, "guard confirm": 4, "guard restore": 5}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def text(self):
        n = self.take("H")
        self.at += n
        assert self.at <= len(self.data)
        return self.data[self.at - n:self.at].decode(errors="surrogateescape")

    def record(self):
        n = self.take("H")
        self.at += n
        assert self.at <= len(self.data)
        return Reader(self.data[self.at - n:self.at])


def text(s):
    b = s.encode()
    return struct.pack("<H", len(b)) + b


def frame(kind, body, version=1):
    return struct.pack("<IBBH", len(body) + 4, kind, version, 0) + body


def bits(r, words):
    value = 0
    for i in range(words):
        value |= r.take("Q") << 64 * i
    return [i for i in range(64 * words) if value >> i & 1]


def hello(r):
    h = {"node": r.text(), "boot_id": r.text(), "version": r.text()}
    h["boot_ns"], h["real_ns"], h["catalogue"], h["devices"], h["sources"] = r.take("qqQHH")
    h["gpu"] = [r.text() for _ in range(r.take("H"))]
    h["host"] = [r.text() for _ in range(r.take("H"))]
    return h


def inventory(r):
    i = dict(zip(("device", "source"), r.take("HH")))
    texts = [r.text() for _ in range(r.take("H"))]
    numbers = [r.take("i") for _ in range(r.take("H"))]
    i.update(uuid=texts[0], name=texts[1], pci=texts[8], index=numbers[0], parent=numbers[2], limit_default_mw=numbers[13])
    i["clocks"] = []
    for _ in range(r.take("H")):
        mhz, n = r.take("iH")
        i["clocks"].append((mhz, [r.take("H") for _ in range(n)]))
    assert r.at == len(r.data)
    return i


def process(r):
    p = dict(zip(("pid", "kinds", "memory_bytes", "gi", "ci", "sm", "memory", "encoder", "decoder", "uid", "start_boot_ns"),
                 r.take("IIQIIHHHHIq")))
    p.update(user=r.text(), comm=r.text(), command=r.text())
    return p


def task(r):
    t = dict(zip(("mark", "pid", "ticks", "state", "source", "verdict", "is_warned", "flags"), r.take("qiQBBBBI")))
    times = r.record()
    t.update(zip(("opened_ns", "start_ns", "end_ns", "opened_real_ns", "start_real_ns", "end_real_ns", "deadline_ns", "float_ns",
                  "expected_ns", "period_ns", "periods", "period_hit", "again"), times.take("qqqqqqqqqqIII")))
    o = r.record()
    t["ns_pid"], t["uid"] = o.take("iI")
    t.update(user=o.text(), comm=o.text(), command=o.text(), kind=o.take("B"), container_id=o.text(), pod=o.text())
    t["owner_uid"], t["slurm_job"] = o.take("qq")
    t.update(slurm_step=o.text(), container=o.text(), image=o.text())
    t["gpu_seconds"], t["energy_joules"], t["memory_bytes"], t["memory_peak_bytes"] = r.take("ddQQ")
    t["gpus"] = []
    for _ in range(r.take("H")):
        g = r.record()
        t["gpus"].append((g.text(), *g.take("II")))
    return t


def slack(r):
    s = r.record()
    out = dict(zip(("tasks", "hits", "misses", "float_ns", "least_ns", "last_miss_ns"), s.take("QQQqqq")))
    out["bands"] = [s.take("Q") for _ in range(s.take("B"))]
    return out


def container(r):
    c = {"id": r.text()}
    c["kind"], c["state"] = r.take("BB")
    c.update(name=r.text(), image=r.text(), tenant=r.text())
    c["deadline_ns"], c["period_ns"], c["priority"], c["created_real_ns"] = r.take("qqiq")
    c.update(labels=r.text(), running=r.take("I"), slack=slack(r))
    c["gpu_seconds"], c["energy_joules"], c["memory_bytes"] = r.take("ddQ")
    c["periods"], c["period_hit"] = r.take("II")
    return c


def node(r):
    n = dict(zip(("reasons_bits", "gpus", "tasks", "free_mib", "largest_mib", "float_ms"), r.take("BBHIIi")))
    n.update(reasons=r.text(), slack=slack(r))
    return n


def uses(r):
    boot_ns, count = r.take("qH")
    names = ("pid", "ticks", "gpu_seconds", "energy_joules", "memory_bytes", "memory_peak_bytes", "sm_share")
    return {"boot_ns": boot_ns, "of": [dict(zip(names, r.record().take("iQddQQd"))) for _ in range(count)]}


def run_key(r):
    return r.take("qII")


def blob(r):
    n = r.take("I")
    r.at += n
    assert r.at <= len(r.data)
    return r.data[r.at - n:r.at]


def sealed_job(r):
    return {"uid": r.take("I"), "user": r.text(), "record": blob(r), "seal": blob(r)}


def sealed(r):
    s = dict(zip(("request", "result"), r.take("Qi")), text=r.text())
    return {**s, **(sealed_job(r) if s["result"] == 0 else {})}


def submit(r):
    request, count = r.take("QH")
    return {"request": request, "jobs": [sealed_job(Reader(blob(r))) for _ in range(count)]}


def control(r):
    return dict(zip(("request", "uid", "verb", "job", "element", "value"), r.take("QIBqqq")))


def run(r):
    names = ("state", "reason", "pid", "start_ns", "end_ns", "has_exit", "code", "signal", "gpu_seconds", "energy_joules", "cpu_seconds",
             "gpu_ratio", "cpu_ratio", "memory_peak_bytes", "memory_total_bytes", "host_peak_bytes", "log_bytes")
    return {"key": run_key(r), **dict(zip(names, r.take("BBiqqBiidddddQQQQ"))), "text": r.text()}


def log(r):
    return {**dict(zip(("request", "result", "offset", "total", "is_over"), r.take("QiQQB"))), "bytes": blob(r), "text": r.text()}


def free(r):
    r = r.record()
    f = {"uuid": r.text(), "verdict": r.take("B"), "uid": r.take("I"), "user": r.text()}
    return {**f, **dict(zip(("pid", "memory_bytes", "since_ns", "idle_ns"), r.take("iQqq")))}


def frees(r):
    return {f["uuid"]: f for f in (free(r) for _ in range(r.take("H")))}


def figures(r):
    names = ("gpu_seconds", "energy_joules", "gpu_ratio", "cpu_seconds", "memory_bytes", "memory_peak_bytes", "memory_total_bytes", "host_bytes",
             "read_bytes", "written_bytes", "log_bytes")
    records = [r.record() for _ in range(r.take("I"))]
    return {run_key(one): dict(zip(names, one.take("ddddQQQQQQQ"))) for one in records}


def noticed(r):
    return dict(id=r.take("Q"), result=r.take("i"), text=r.text())


SEALED, SUBMIT, CONTROL, RUN, LOG, FREE, FIGURES = range(30, 37)
NOTICED = 39
JOB_FRAMES = {SEALED: sealed, SUBMIT: submit, CONTROL: control, RUN: run, LOG: log, FREE: frees, FIGURES: figures, NOTICED: noticed}
TASK_FRAMES = {TASK: task, CONTAINER: container, NODE: node, USE: uses}


class Session:
    """What one node says on one connection, decoded."""

    def __init__(self):
        self.hello = None
        self.devices = {}

    def decode(self, kind, r):
        if kind == HELLO:
            self.hello, self.devices = hello(r), {}
            return self.hello
        if kind == INVENTORY:
            i = inventory(r)
            self.devices[i["device"]] = i
            return i
        if kind == SAMPLE:
            device, mark, boot_ns, real_ns, words = r.take("HqqqH")
            asked, has = bits(r, words), bits(r, words)
            values = {self.hello["gpu"][i]: r.take("d") for i in has}
            return {"uuid": self.devices[device]["uuid"], "mark": mark, "boot_ns": boot_ns, "real_ns": real_ns,
                    "asked": [self.hello["gpu"][i] for i in asked], "metrics": values}
        if kind == LATEST:
            device, count = r.take("HH")
            of = {}
            for _ in range(count):
                metric, value, boot_ns, until_ns = r.take("Hdqq")
                of[self.hello["gpu"][metric]] = (value, boot_ns, until_ns)
            return {"uuid": self.devices[device]["uuid"], "of": of}
        if kind == STATE:
            device, since_boot, since_real, state = r.take("HqqB")
            return {"uuid": self.devices[device]["uuid"], "state": state, "since_boot_ns": since_boot, "text": r.text()}
        if kind == PROCESSES:
            device, boot_ns, total, count = r.take("HqIH")
            return {"uuid": self.devices[device]["uuid"], "boot_ns": boot_ns, "total": total,
                    "of": [process(r.record()) for _ in range(count)]}
        if kind == XIDS:
            device, count = r.take("HH")
            return {"uuid": self.devices[device]["uuid"], "of": [r.take("QQq") for _ in range(count)]}
        if kind == GUARD:
            device, since, mode, lever, reason, sensors = r.take("HqBBBB")
            reals = [r.take("d") for _ in range(2 * sensors + 5)]
            until_ns, confirm_ns = r.take("qq")
            return {"uuid": self.devices[device]["uuid"], "mode": mode, "lever": lever, "reason": reason,
                    "limit": reals[2 * sensors + 2], "manual_until_ns": until_ns, "confirm_by_ns": confirm_ns, "why": r.text()}
        if kind == DRIVER:
            source, since, state = r.take("HqB")
            return {"source": source, "state": state, "text": r.text()}
        if kind == HOST:
            mark, boot_ns, real_ns, words = r.take("qqqH")
            return {"mark": mark, "boot_ns": boot_ns, "real_ns": real_ns,
                    "metrics": {self.hello["host"][i]: r.take("d") for i in bits(r, words)}}
        if kind == EVENT:
            source, mark, boot_ns, real_ns, severity, device, code, pid = r.take("HqqqBHii")
            return {"source": source, "mark": mark, "boot_ns": boot_ns, "severity": severity, "code": code, "pid": pid,
                    "uuid": None if device == 0xffff else self.devices[device]["uuid"], "kind": r.text(), "text": r.text()}
        if kind == ROUND:
            boot_ns, real_ns, sources = r.take("qqH")
            return {"boot_ns": boot_ns, "sources": [r.record().take("qI") for _ in range(sources)]}
        if kind == ORDER_RESULT:
            number, result, value = r.take("Qiq")
            return {"id": number, "result": result, "value": value, "text": r.text()}
        if kind in TASK_FRAMES:
            return TASK_FRAMES[kind](r)
        if kind in JOB_FRAMES:
            return JOB_FRAMES[kind](r)
        raise AssertionError(f"a frame of type {kind}")


class StubServer:
    """Takes the link in a thread and keeps all that came, with when. What it took counts as stored every `flush` seconds: a
    stub that is killed (`crash`) forgets the rest, as a server does that dies before it has written."""

    def __init__(self, run, flush=0.0):
        self.dir = Path(run) / "server"
        self.flush = flush
        self.stored, self.taken, self.boot_id = {}, {}, ""  # marks: uuid, ("event", source) or "host"
        self.kept = []  # (what, key, frame) that survive
        self.pending = []
        self.frames = []  # (monotonic, kind, what)
        self.hellos = 0
        self.twice = []
        self.lock = threading.Lock()
        self.thread = None
        self.start()

    def start(self):
        self.dir.mkdir(parents=True, exist_ok=True)
        path = self.dir / "link.sock"
        path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(4)
        self.connection = None
        self.is_over = False
        self.is_reading = True
        self.flushed = time.monotonic()
        self.taken = dict(self.stored)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def crash(self):
        """Dies without a word; what was not stored is forgotten."""
        self.is_over = True
        self.thread.join()
        for s in (self.connection, self.listener):
            if s:
                s.close()
        self.pending = []

    def close(self):
        self.store()
        self.crash()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.is_over:
            self.close()

    def store(self):
        with self.lock:
            self.kept += self.pending
            self.pending = []
            self.stored = dict(self.taken)
            self.flushed = time.monotonic()

    def take(self, key, mark, kind, what):
        """The rule of the link: a mark that is not larger was taken before."""
        with self.lock:
            if mark <= self.taken.get(key, 0):
                self.twice.append((key, mark))
                return
            self.taken[key] = mark
            self.pending.append((kind, key, what))

    def welcome(self, session):
        if session.hello["boot_id"] != self.boot_id:
            self.boot_id = session.hello["boot_id"]
        body = text(self.boot_id) + struct.pack("<q", self.taken.get("host", 0))
        sources = session.hello["sources"]
        body += struct.pack("<H", sources) + b"".join(struct.pack("<q", self.taken.get(("event", i), 0)) for i in range(sources))
        marks = [(k, v) for k, v in self.taken.items() if isinstance(k, str) and k not in ("host", "task")]
        body += struct.pack("<H", len(marks))
        for uuid, mark in marks:
            record = text(uuid) + struct.pack("<q", mark)
            body += struct.pack("<H", len(record)) + record
        body += struct.pack("<q", self.taken.get("task", 0))
        self.connection.sendall(frame(WELCOME, body))

    def handle(self, session, kind, what):
        self.frames.append((time.monotonic(), kind, what))
        if kind == HELLO:
            self.hellos += 1
        if kind in (HELLO, INVENTORY) and len(session.devices) == session.hello["devices"]:
            self.welcome(session)
        if kind == SAMPLE:
            self.take(what["uuid"], what["mark"], kind, what)
        if kind == EVENT:
            self.take(("event", what["source"]), what["mark"], kind, what)
        if kind == HOST:
            self.take("host", what["mark"], kind, what)
        if kind == TASK:
            self.take("task", what["mark"], kind, what)

    def run(self):
        data, session = b"", None
        while not self.is_over:
            wanted = [self.listener, *([self.connection] if self.connection and self.is_reading else [])]
            ready = select.select(wanted, [], [], 0.02)[0]
            if self.listener in ready:
                if self.connection:
                    self.connection.close()
                self.connection, data, session = self.listener.accept()[0], b"", Session()
            elif self.connection in ready:
                try:
                    piece = self.connection.recv(1 << 18)
                except ConnectionError:
                    piece = b""
                if not piece:
                    self.connection.close()
                    self.connection = None
                    continue
                data += piece
                while len(data) >= 8:
                    length, kind, version, zero = struct.unpack_from("<IBBH", data)
                    assert 4 <= length <= 4 << 20 and version == 1 and zero == 0, data[:16]
                    if len(data) < length + 4:
                        break
                    what = session.decode(kind, Reader(data[8:length + 4]))
                    data = data[length + 4:]
                    try:
                        self.handle(session, kind, what)
                    except (BrokenPipeError, ConnectionError):
                        break
            if time.monotonic() - self.flushed >= self.flush:
                self.store()

    def say(self, data):
        self.connection.sendall(data)

    def order(self, number, verb, uuid, *values):
        values = (*values, *[0] * (4 - len(values)))
        self.say(frame(ORDER, struct.pack("<QI", number, VERBS.get(verb, verb)) + text(uuid) + struct.pack("<4q", *values)))

    def of(self, kind):
        return [what for _, k, what in list(self.frames) if k == kind]


def ring_samples(followed):
    """What ring_follow saw, as (gpu, boot time) pairs."""
    return {(s["gpu"], round(s["boot"], 6)) for s in followed if "boot" in s}


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
