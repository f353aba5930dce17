"""Makes threads of a process survive SIGKILL, as one does that hangs in a driver: a tracer that asks to be told of their
exit stops them there, before the kernel takes anything from them. Whoever may trace a process can do it: no root, no
cgroup, no driver. Run as a program it holds threads until its standard input ends; then they die at last."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

PTRACE_SEIZE, PTRACE_O_TRACEEXIT = 0x4206, 0x40


def threads(pid, name=None):
    """The threads of a process; with a name, those that are called so."""
    tasks = [t for t in Path(f"/proc/{pid}/task").iterdir()]
    return [int(t.name) for t in tasks if name is None or (t / "comm").read_text().strip() == name]


class Unkillable:
    """with Unkillable(pid): all threads; with Unkillable(pid, "gpu-3"): that one outlives the rest."""

    def __init__(self, pid, name=None):
        tids = threads(pid, name)
        assert tids, f"{pid} has no thread {name}"
        self.process = subprocess.Popen([sys.executable, __file__, *map(str, tids)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "held\n", "these threads cannot be traced here"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()

    def release(self):
        if not self.process.stdin.closed:
            self.process.communicate()


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    for tid in map(int, sys.argv[1:]):
        if libc.ptrace(PTRACE_SEIZE, tid, None, PTRACE_O_TRACEEXIT) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    print("held", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
