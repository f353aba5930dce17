"""A clock that a test may set (tests/tools/set_clock.c), for a process and all that it starts."""

import mmap
import struct
import time
from datetime import datetime, timezone

from simulator import BUILD

LIBRARY = BUILD / "tests/libset_clock.so"


def at(text):
    """Unix seconds of 2026-10-25T00:30:00Z."""
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


class Clock:
    def __init__(self, path, now):
        path.write_bytes(bytes(8))
        path.chmod(0o644)
        self.path = path
        with path.open("r+b") as f:
            self.map = mmap.mmap(f.fileno(), 8)
        self.set(now)

    def set(self, unix):
        """It shows this now, and goes on."""
        self.ahead = unix - time.time()
        self.map[0:8] = struct.pack("<q", int(self.ahead * 1e9))  # one store of eight bytes

    def now(self):
        return time.time() + self.ahead

    def text(self):
        return datetime.fromtimestamp(self.now(), timezone.utc).isoformat()

    def env(self):
        return {"LD_PRELOAD": LIBRARY, "SET_CLOCK": self.path}
