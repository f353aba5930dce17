"""Container engines as the node sees them (tests/tools/engine_follow.c), and a sampler that only listens."""

import json
import os
import queue
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

from simulator import BUILD, wait_for
from stopwatch import Stopwatch

HUNT = 6


class Sampler:
    """Takes what is said to the sampler of an instance, and keeps the hunts: (time, for_ms, base_ms, pid, minor or -1)."""

    def __init__(self, directory):
        (Path(directory) / "run").mkdir(parents=True, exist_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(Path(directory) / "run" / "sampler.0.sock"))
        self.listener.listen(64)
        self.hunts = []
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            with one:
                said = one.recv(4096)
            magic, verb, *argument = struct.unpack("<II5q", said)
            assert magic == 0x67706374 and verb == HUNT and argument[0] == -1
            self.hunts.append((time.time(), argument[1], argument[2], argument[3], argument[4] - 1))

    def base(self):
        """What the sampler was last told to do by itself."""
        told = [h[2] for h in self.hunts if h[2] >= 0]
        return told[-1] if told else None

    def announced(self, since):
        return [h[0] for h in self.hunts if h[1] and h[0] >= since]


class Follow:
    def __init__(self, docker="", podman="", place=None):
        words = [BUILD / "tests" / "engine_follow", docker, podman, *([place] if place else [])]
        self.errors = open((place or Path("/tmp")) / "follow.err", "w+") if place else subprocess.DEVNULL
        self.process = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=self.errors)
        self.news = []
        self.over = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.news.append(json.loads(line))
        self.over.put(True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def of(self, identity, news=None):
        return [n for n in list(self.news) if n.get("id") == identity and (news is None or n["news"] == news)]

    def wait(self, identity, timeout=30, **want):
        """The first news of a container that has all of these."""
        def found():
            return [n for n in self.of(identity) if all(n.get(k) == v for k, v in want.items())]
        return wait_for(found, f"{identity[:12]} {want}: {self.of(identity)[-3:]}", timeout)[0]

    def ask(self, identity):
        before = len(self.news)
        self.process.stdin.write(identity + "\n")
        self.process.stdin.flush()
        def answer():
            return [n for n in list(self.news)[before:] if n["news"] == "asked" and n["id"] == identity]
        return wait_for(answer, "an answer")[0]

    def end(self):
        """Ends it in good order; how long that took in seconds."""
        self.process.stdin.close()
        self.process.wait(30)
        self.over.get(timeout=30)
        return self.news[-1]["took_us"] / 1e6

    def answers_at_once(self, identity):
        watch = Stopwatch()
        return self.ask(identity)["took_us"] / 1e6 - watch.starved < 0.05

    def ends_at_once(self):
        watch = Stopwatch()
        return self.end() - watch.starved < 0.5

    def memory(self):
        for line in Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no Pss")

    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
