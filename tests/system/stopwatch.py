"""Time that counts. Beside other tests on a small machine everybody waits for a processor, and what is promised in seconds is
promised by a machine that has one to spare: the kernel says for how long some process that could run had to wait."""

import bisect
import threading
import time
from pathlib import Path

PRESSURE = Path("/proc/pressure/cpu")


def starved():
    """Seconds since the start of the machine in which somebody waited for a processor; 0 where the kernel does not count them."""
    try:
        return int(PRESSURE.read_text().split("total=", 1)[1].split()[0]) / 1e6
    except OSError:
        return 0.0


class Stopwatch:
    def __init__(self):
        self.began, self.before = time.monotonic(), starved()

    @property
    def starved(self):
        return starved() - self.before

    @property
    def elapsed(self):
        return time.monotonic() - self.began

    @property
    def seconds(self):
        """Those in which everybody had a processor."""
        return max(self.elapsed - self.starved, 0.0)


class Starvation:
    """While it runs: how long the machine was starved between two moments of the boot clock."""

    def __enter__(self):
        self.marks, self.is_over = [self.mark()], threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()

    @staticmethod
    def mark():
        return time.clock_gettime(time.CLOCK_BOOTTIME), starved()

    def run(self):
        while not self.is_over.wait(0.02):
            self.marks.append(self.mark())

    def between(self, a, b):
        """At most: up to the next mark."""
        return self.at(b, later=True) - self.at(a, later=False)

    def at(self, when, later):
        i = bisect.bisect(self.marks, (when, 0.0))
        return self.marks[min(i, len(self.marks) - 1) if later else max(i - 1, 0)][1]
