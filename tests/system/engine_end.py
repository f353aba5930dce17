"""The sure end of a container engine that a test started. Containers outlive the test that is killed, and so do the engine and
its mounts: a watcher that holds nothing but the reading end of a pipe ends them all as soon as the other end is closed,
whatever became of its owner. Should the watcher have been killed as well, the next engine's start does its work.

    end = EngineEnd(RUN_DIR, DATA_DIR)     before the engine starts; both directories are its own
    end.now()                              at last: returns when nothing is left

As a program: engine_end.py DIR..., which waits for the end of its standard input."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path


RUN_DIRS = "/tmp"  # where engines have theirs: a socket's path must be short


class EngineEnd:
    def __init__(self, run, *more):
        sweep()
        places = list(map(str, (run, *more)))
        self.process = subprocess.Popen([sys.executable, "-S", __file__, *places], stdin=subprocess.PIPE, start_new_session=True)
        (Path(run) / "watcher").write_text(json.dumps({"pid": self.process.pid, "places": places}))

    def now(self):
        self.process.communicate(timeout=300)  # a gigabyte of small files on a busy disk


def sweep():
    """Ends what others left behind: engines whose watcher is dead."""
    for note in Path(RUN_DIRS).glob("*/watcher"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            left = json.loads(note.read_text())
            run = str(note.parent)
            if note.stat().st_uid == os.geteuid() and run in left["places"] and not is_watched(left["pid"], run):
                end_all(left["places"])


def is_watched(pid, run):
    """Whether that process is the watcher of this directory, from whichever copy of this file."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_text()
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return run in line.split("\0") or (not line and state not in "ZX")  # one that begins has none for a moment


def everybody():
    """pid -> (parent, command line) of all processes."""
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
                found[int(place.name)] = parent, (place / "cmdline").read_bytes().decode(errors="replace")
    return found


def family(places):
    """Whoever names one of these directories in his command line, and all who descend from him: engine, shims, containers."""
    all_ = everybody()
    all_.pop(os.getpid(), None)  # an owner that names them may still be ending: its child we are, and not of the family
    mine = {pid for pid, (_, line) in all_.items() if any(p in line for p in places)}
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in all_.items() if parent in mine} - mine
        mine, grown = mine | more, bool(more)
    return mine


def kill_all(places):
    until = time.monotonic() + 30
    while (pids := family(places)) and time.monotonic() < until:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)


def groups_of(pids):
    """The control groups of containers among them: they stay when nobody is left to remove them."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            found |= {line.split(":", 2)[2] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()}
    return {g.lstrip("/") for g in found if re.search("[0-9a-f]{64}", g)}


def remove_groups(groups):
    for group in groups:
        for top in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*/")):
            with contextlib.suppress(OSError):
                (top / group).rmdir()


def unmount_all(places):
    lines = Path("/proc/self/mounts").read_text().splitlines()
    for at in reversed([line.split()[1].encode().decode("unicode_escape") for line in lines]):
        if any(at.startswith(p + "/") for p in places):
            subprocess.run(["umount", "-l", at], stderr=subprocess.DEVNULL)


def end_all(places):
    groups = groups_of(family(places))
    kill_all(places)
    remove_groups(groups)
    unmount_all(places)
    subprocess.run(["rm", "-rf", "--one-file-system", "--", *places])


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    end_all(sys.argv[1:])


if __name__ == "__main__":
    main()
