"""A bare shim, driven as the node would: a run's directory, an order in a memory file, and a reader of the state that was
written from src/run/record.h and not from the code."""

import fcntl
import os
import signal
import struct
import subprocess
from pathlib import Path

import simulator

BUILD = Path(os.environ["BUILD_DIR"])
NONE, INTENT, STARTED, STOPPING, EXIT, DONE, FIGURES, STORED = range(8)
BY_ITSELF, BY_CANCEL, BY_TIME_LIMIT, BY_MEMORY, BY_IDLE, BY_START = range(6)
STOP_SIGNAL, PASS_SIGNAL = 36, 37
RECORD = struct.Struct("<IBBBBiiQQiiqqqqQQddddQQ40s248s80sQ")
FIELDS = ("magic", "kind", "reason", "has_exit", "zero", "pid", "shim_pid", "ticks", "shim_ticks", "code", "signal", "real_ns",
          "boot_ns", "user_us", "system_us", "host_peak_bytes", "log_bytes", "gpu_seconds", "energy_joules", "gpu_ratio",
          "cpu_ratio", "memory_peak_bytes", "memory_total_bytes", "boot_id", "text", "rest", "sum")


def checksum(data):
    h = 14695981039346656037
    for b in data:
        h = (h ^ b) * 1099511628211 % 2**64
    return h


def records(path):
    """All sound ones, in their order."""
    data, found = Path(path).read_bytes(), []
    for at in range(0, len(data) - RECORD.size + 1, RECORD.size):
        piece = data[at:at + RECORD.size]
        r = dict(zip(FIELDS, RECORD.unpack(piece)))
        if r["magic"] == 0x6a6f6231 and checksum(piece[:-8]) == r["sum"]:
            r["text"] = r["text"].split(b"\0")[0].decode()
            found.append(r)
    return found


def words(of):
    data = b"".join(w.encode() + b"\0" for w in of)
    return struct.pack("<II", len(of), len(data)) + data


def order(argv, uid=None, gid=None, becomes=False, is_pty=False, groups=(), limit=0.0, grace=5.0, log_max=64 << 20, cwd="/",
          cgroup="", env=None, umask=0o022):
    uid = os.getuid() if uid is None else uid
    gid = os.getgid() if gid is None else gid
    env = {"PATH": "/usr/bin:/bin", "GPUMGR_RUN": "17.0.1"} if env is None else env
    return struct.pack("<IIIIBBqqQI", 0x6a6f7231, uid, gid, umask, becomes, is_pty, int(limit * 1e9), int(grace * 1e9), log_max,
                       len(groups)) + b"".join(struct.pack("<I", g) for g in groups) + words([cwd]) + words([cgroup]) + \
        words(argv) + words([f"{k}={v}" for k, v in env.items()])


def start_ticks(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(fact, seconds=30.0, what=""):
    return simulator.wait_for(fact, what or "it comes about", seconds)


class Run:
    """One run's directory, and its shims."""

    def __init__(self, place, name="17.0.1", program=None):
        self.dir = Path(place) / name
        self.dir.mkdir(mode=0o711)
        self.program = program or BUILD / "gpumgr-shim"
        (self.dir / "state").write_bytes(bytes(16 * RECORD.size))
        (self.dir / "state").chmod(0o600)

    def start(self, argv, shim_env=None, order_bytes=None, **more):
        fd = os.memfd_create("order")
        os.write(fd, order(argv, **more) if order_bytes is None else order_bytes)
        os.lseek(fd, 0, os.SEEK_SET)
        shim = subprocess.Popen([self.program, self.dir, str(fd)], pass_fds=[fd], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=shim_env or {})
        os.close(fd)
        return shim

    def records(self):
        return records(self.dir / "state")

    def kinds(self):
        return [r["kind"] for r in self.records()]

    def get(self, kind):
        return next((r for r in self.records() if r["kind"] == kind), None)

    def started(self):
        return wait_for(lambda: self.get(STARTED), what="it did not start")

    @property
    def log(self):
        return (self.dir / "log").read_bytes()

    def says(self, text):
        wait_for(lambda: text.encode() in self.log, what=f"it does not say {text!r}")

    def holder(self):
        """Who has the lock, by the kernel's word."""
        with open(self.dir / "state", "r+b") as f:
            q = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(f, fcntl.F_GETLK, q))
        return 0 if kind == fcntl.F_UNLCK else pid


def queue_signal(pid, signo, value):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.sigqueue(pid, signo, ctypes.c_void_p(value)) == 0


def stop(pid, reason=BY_CANCEL, grace=5.0):
    queue_signal(pid, STOP_SIGNAL, reason | int(grace * 10) << 8)


def kill(pid, signo=signal.SIGKILL):
    os.kill(pid, signo)
