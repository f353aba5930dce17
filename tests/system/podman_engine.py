"""A Podman of the test's own, with its service on a socket. Limits are given by hand, because its own are more than a test may
have; runc, because crun refuses machines with both kinds of cgroups."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from engine_end import EngineEnd

LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]


class PodmanEngine:
    def __init__(self, directory):
        self.run = Path(tempfile.mkdtemp(prefix="pm.", dir="/tmp"))
        self.socket = self.run / "podman.sock"
        self.end = EngineEnd(self.run, directory)
        self.words = ["podman", "--root", Path(directory) / "root", "--runroot", self.run / "run", "--tmpdir", self.run / "tmp",
                      "--storage-driver", "vfs", "--events-backend", "file", "--cgroup-manager", "cgroupfs",
                      "--runtime", shutil.which("runc") or "/usr/sbin/runc"]
        log = open(self.run / "log", "wb")
        self.process = subprocess.Popen([*map(str, self.words), "system", "service", "--time", "0", f"unix://{self.socket}"],
                                        stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + 30
        while not self.socket.exists():
            assert self.process.poll() is None and time.monotonic() < until, (self.run / "log").read_text()[-2000:]
            time.sleep(0.05)

    def __call__(self, *words, check=True, timeout=120, **more):
        done = subprocess.run([*map(str, self.words), *map(str, words)], capture_output=True, text=True, timeout=timeout, **more)
        assert not check or done.returncode == 0, f"podman {' '.join(map(str, words))}: {done.stderr[-2000:]}"
        return done

    def import_tree(self, tree, name):
        tar = subprocess.Popen(["tar", "-C", tree, "-c", "."], stdout=subprocess.PIPE)
        self("import", "-", name, stdin=tar.stdout)
        assert tar.wait() == 0

    def stop(self):
        self("rm", "-f", "-a", "-t", "0", check=False)
        self.process.terminate()
        self.end.now()
        self.process.wait()
