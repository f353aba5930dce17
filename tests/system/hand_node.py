#!/usr/bin/env python3
"""A node by hand: tells a server of GPU tasks and containers that a test makes up, over the link as gpumgr-node would.

As a program: hand_node.py LINK_SOCKET; lines of JSON on standard input, each a task ({"pid", "gpu", "ago", "took", "deadline",
"container"}), and it stays until that ends. For tests that are not in Python."""

import json
import socket
import struct
import sys
import threading
import time

from link import CONTAINER, HELLO, INVENTORY, ROUND, TASK, frame, text

BANDS = 12
RUNNING, OVERDUE, ENDED = range(3)
NO_DEADLINE, HIT, MISS, PENDING = range(4)
NS = 10**9


def record(body):
    return struct.pack("<H", len(body)) + body


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class HandNode:
    def __init__(self, path, name="hand", boot_id="11111111-2222-3333-4444-555555555555", gpus=()):
        self.name, self.boot_id = name, boot_id
        self.mark = boot_ns()
        self.slack = {}  # by container: tasks, hits, misses, float, least, last miss, bands
        self.s = socket.socket(socket.AF_UNIX)
        self.s.connect(str(path))
        self.lock = threading.Lock()
        self.say(HELLO, text(name) + text(boot_id) + text("1") + struct.pack("<qqQHHHH", boot_ns(), time.time_ns(), 1, len(gpus), 1, 0, 0))
        for i, uuid in enumerate(gpus):  # as much as tells a card from others: its UUID and name, index, (minor,) no parent
            self.say(INVENTORY, struct.pack("<HHH", i, 0, 2) + text(uuid) + text("NVIDIA H200") + struct.pack("<HiiiH", 3, i, i, -1, 0))
        self.is_over = False
        threading.Thread(target=self.beat, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.is_over = True
        self.s.close()

    def say(self, kind, body):
        with self.lock:
            self.s.sendall(frame(kind, body))

    def beat(self):
        while not self.is_over:
            try:
                self.round()
            except OSError:
                return
            time.sleep(0.5)

    def round(self):
        self.say(ROUND, struct.pack("<qqH", boot_ns(), time.time_ns(), 0))

    def task(self, pid, gpus, ago=0.0, took=None, deadline=None, container=None, name=None, ticks=77, user="alice", mark=None):
        """ago: seconds since its start; took: how long it took, None while it runs. The verdict follows."""
        start = boot_ns() - int(ago * NS)
        end = 0 if took is None else start + int(took * NS)
        limit = int((deadline or 0) * NS)
        late = limit and (end or boot_ns()) - start > limit
        state = ENDED if end else OVERDUE if late else RUNNING
        verdict = NO_DEADLINE if not limit else MISS if late else HIT if end else PENDING
        left = limit - (end - start) if end and limit else 0
        real = time.time_ns() - boot_ns()
        self.mark = mark or self.mark + 1
        body = struct.pack("<qiQBBBBI", self.mark, pid, ticks, state, 1, verdict, 0, 0)
        body += record(struct.pack("<qqqqqqqqqqIII", start, start, end, start + real, start + real, end + real if end else 0, limit, left, 0, 0, 0, 0, 0))
        body += record(struct.pack("<iI", 0, 1000) + text(user) + text("python3") + text("python3 train.py")
                       + struct.pack("<B", 8 if container else 0) + text(container or "") + text("") + struct.pack("<qq", -1, -1) + text("")
                       + text(name or "") + text("lab/train:1" if container else ""))
        body += struct.pack("<ddQQ", 1.5, 300.0, 1 << 30, 2 << 30)
        body += struct.pack("<H", len(gpus)) + b"".join(record(text(g) + struct.pack("<II", 0xffffffff, 0xffffffff)) for g in gpus)
        self.say(TASK, body)
        return {"start": (start + real) / NS, "end": (end + real) / NS if end else None, "float_s": left / NS if end and limit else None}

    def container(self, id, name, deadline=None, running=0, hits=0, misses=0, state=2, float_s=0.0, least_s=0.0, labels=""):
        body = text(id) + struct.pack("<BB", 8, state) + text(name) + text("lab/train:1") + text("team-a")
        body += struct.pack("<qqiq", int((deadline or 0) * NS), 0, 0, time.time_ns()) + text(labels) + struct.pack("<I", running)
        bands = [misses, *[0] * (BANDS - 2), hits]
        judged = hits + misses
        body += record(struct.pack("<QQQqqq", judged, hits, misses, int(float_s * NS), int(least_s * NS) if judged else 2**63 - 1,
                                   boot_ns() if misses else -2**63) + struct.pack("<B", BANDS) + struct.pack(f"<{BANDS}Q", *bands))
        body += struct.pack("<ddQII", 12.5, 900.0, 1 << 30, 0, 0)
        self.say(CONTAINER, body)


def main():
    with HandNode(sys.argv[1]) as node:
        for line in sys.stdin:
            t = json.loads(line)
            if "name" in t and "pid" not in t:
                node.container(**t)
            else:
                node.task(**t)
            print("told", flush=True)


if __name__ == "__main__":
    main()
