"""The task table as any reader sees it: written from include/gpumgr/tasks.h and not from the code."""

import mmap
import struct
import time
from pathlib import Path

from simulator import wait_for

HEAD = struct.Struct("=QIIIIIIIi40s16s64x")
GPU = struct.Struct("=96sII")
TASK = struct.Struct("=QqQiiIIIBBBBqqqqqqqqqqq4QddQQ32s72s72s128s40sII")
FIELDS = ("turn", "mark", "ticks", "pid", "ns_pid", "uid", "again", "flags", "state", "source", "verdict", "kind",
          "opened_ns", "start_ns", "end_ns", "opened_real_ns", "start_real_ns", "end_real_ns", "deadline_ns", "period_ns",
          "float_ns", "expected_ns", "slurm_job", "g0", "g1", "g2", "g3", "gpu_seconds", "energy_joules", "memory_bytes",
          "memory_peak_bytes", "comm", "container_id", "container", "image", "pod", "periods", "periods_kept")
RUNNING, OVERDUE, ENDED = range(3)
NO_DEADLINE, HIT, MISS, PENDING = range(4)
BY_LIST, BY_OPEN, BY_CONTAINER = range(3)
END_UNKNOWN, FOUND_LATE, WARNED = 1, 2, 4


def words(raw):
    return raw.split(b"\0")[0].decode()


class TaskTable:
    def __init__(self, path):
        self.path = Path(path)

    def map(self):
        wait_for(lambda: self.path.exists(), "a task table")
        with self.path.open("rb") as f:
            return mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)

    def head(self, m):
        names = ("magic", "version", "slot_bytes", "slot_count", "slots_at", "gpus_at", "gpu_count", "changes", "writer_pid",
                 "boot_id", "node_state")
        return dict(zip(names, HEAD.unpack_from(m, 0)))

    def tasks(self):
        with self.map() as m:
            h = self.head(m)
            assert h["magic"] == int.from_bytes(b"gpmtasks", "little") and h["version"] == 1
            gpus = [words(GPU.unpack_from(m, h["gpus_at"] + GPU.size * i)[0]) for i in range(h["gpu_count"])]
            found = []
            for i in range(h["slot_count"]):
                at = h["slots_at"] + i * h["slot_bytes"]
                while True:
                    turn = struct.unpack_from("=Q", m, at)[0]
                    if turn == 0:
                        break
                    t = dict(zip(FIELDS, TASK.unpack_from(m, at)))
                    if turn % 2 == 0 and struct.unpack_from("=Q", m, at)[0] == turn == t["turn"]:
                        bits = sum(t.pop(f"g{k}") << 64 * k for k in range(4))
                        t["gpus"] = [u for b, u in enumerate(gpus) if bits >> b & 1]
                        for k in ("comm", "container_id", "container", "image", "pod"):
                            t[k] = words(t[k])
                        found.append(t)
                        break
            return sorted(found, key=lambda t: t["start_ns"])

    def wait_gpus(self, count):
        """Until the node knows so many devices, whose lists it then looks at."""
        def is_there():
            with self.map() as m:
                return self.head(m)["gpu_count"] >= count
        wait_for(is_there, f"a node that knows {count} devices")

    def writer(self):
        """The node that has it."""
        with self.map() as m:
            return self.head(m)["writer_pid"]

    def of(self, pid):
        return [t for t in self.tasks() if t["pid"] == pid]

    def one(self, pid, what="a task", timeout=30, **want):
        """The newest task of a process, as soon as it is so."""
        def look():
            for t in self.of(pid)[::-1]:
                if all(t[k] == v for k, v in want.items()):
                    return t
            return None
        return wait_for(look, f"{what} of {pid} with {want}", timeout)


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
