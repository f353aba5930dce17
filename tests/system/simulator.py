"""A gpusim of a test's own, and the words it understands. Knows the socket's layout (sim/wire.h), nothing of NVML."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

from stopwatch import Stopwatch

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD_DIR") or os.environ.get("GPUMGR_BUILD") or ROOT / "build")
LIBRARY = BUILD / "sim" / "libnvidia-ml.so.1"

ABILITIES = re.findall(r"^    X\((\w+),", (ROOT / "sim/ability.h").read_text(), re.M)

VERB_COMMAND = 7
REQUEST = struct.Struct("=II512s")
TEXT_AT = 40


MORE_AT_MOST_S = 60  # what a starved machine gets on top of a limit


def wait_for(fact, what, timeout=30):
    """What `fact` returns, as soon as it is true. The last look is after the time is over."""
    watch = Stopwatch()
    while True:
        is_over = watch.seconds >= timeout or watch.elapsed >= timeout + MORE_AT_MOST_S
        got = fact()
        if got:
            return got
        if is_over:
            raise AssertionError(f"{what}: not within {timeout} s")
        time.sleep(0.02)


def can(gpu, *names):
    """Whether a card (a row of facts) has these abilities."""
    return all(gpu["abilities"] >> ABILITIES.index(n) & 1 for n in names)


class Simulator:
    def __init__(self, path, *args):
        self.dir = Path(path)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.tasks = []
        self.process = subprocess.Popen([BUILD / "sim/gpusim", "--dir", self.dir, *map(str, args)], start_new_session=True)
        wait_for(lambda: self.process.poll() is not None or (self.dir / "sock").exists(), "gpusim listens")
        assert self.process.poll() is None, f"gpusim ended with {self.process.returncode}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for task in self.tasks:
            task.kill()
            task.wait()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    @property
    def env(self):
        return {**os.environ, "GPUSIM_DIR": str(self.dir), "LD_LIBRARY_PATH": str(LIBRARY.parent)}

    def say(self, line):
        """One command, as `gpumgr sim` passes it on; returns what it prints."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(10)
            s.connect(str(self.dir / "sock"))
            s.send(REQUEST.pack(VERB_COMMAND, 0, line.encode()))
            reply = s.recv(65536)
        verb, code = struct.unpack_from("=Ii", reply)
        text = reply[TEXT_AT:].split(b"\0")[0].decode()
        assert verb == VERB_COMMAND and code == 0, f"{line}: {code} {text}"
        return text

    def set(self, gpu, name, *values):
        """One NVML call that sets something, as another program would make it."""
        script = ("import ctypes as c, sys\nfrom nvml_client import Nvml\n"
                  "with Nvml(sys.argv[1]) as n:\n    d = c.c_void_p()\n"
                  "    assert n.DeviceGetHandleByIndex_v2(int(sys.argv[2]), c.byref(d)) == 0\n"
                  "    sys.exit(getattr(n, sys.argv[3])(d, *map(int, sys.argv[4:])))\n")
        subprocess.run([sys.executable, "-c", script, str(LIBRARY), str(gpu), name, *map(str, values)], check=True,
                       env=self.env, cwd=ROOT / "tests/system")

    def task(self, *args, **more):
        more.setdefault("env", self.env)
        task = subprocess.Popen([BUILD / "sim/gpusim-task", *map(str, args)], stdout=subprocess.DEVNULL, **more)
        self.tasks.append(task)
        return task

    def facts(self):
        """What stands in the shared memory now: one dict a GPU under "gpus"."""
        out = subprocess.run([BUILD / "sim/gpusim-facts", self.dir], capture_output=True, text=True, check=True)
        return json.loads(out.stdout)

    def gpu(self, index=0):
        return self.facts()["gpus"][index]
