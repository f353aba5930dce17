"""A Docker Engine of the test's own, from Debian's packages: its own directory and socket, no bridge, no iptables. Images are
imported, never pulled."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from engine_end import EngineEnd

DOCKER = "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else "docker"


def storage_driver(directory):
    """What Docker itself would choose; vfs, which copies whole trees, where the kernel cannot lay one over the other there."""
    low, up, work, at = (directory / f"overlay.{n}" for n in ("low", "up", "work", "at"))
    for path in (low, up, work, at):
        path.mkdir()
    can = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={low},upperdir={up},workdir={work}", at], capture_output=True).returncode == 0
    if can:
        subprocess.run(["umount", at], check=True)
    for path in (low, up, work, at):
        shutil.rmtree(path)
    return "overlay2" if can else "vfs"


class DockerEngine:
    def __init__(self, directory):
        self.dir = Path(directory)
        self.dir.mkdir(parents=True, exist_ok=True)
        # A socket's path must be short, and a data root on tmpfs is a waste of memory.
        self.run = Path(tempfile.mkdtemp(prefix="dk.", dir="/tmp"))
        self.socket = self.run / "docker.sock"
        self.end = EngineEnd(self.run, self.dir)
        self.storage = storage_driver(self.dir)
        self.process = None
        self.start()

    def start(self):
        log = open(self.dir / "dockerd.log", "ab")
        self.process = subprocess.Popen(
            ["dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", f"--storage-driver={self.storage}",
             "--data-root", self.dir / "data", "--exec-root", self.run / "exec", "--pidfile", self.run / "pid",
             "-H", f"unix://{self.socket}"],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + 60
        while subprocess.run([DOCKER, "-H", f"unix://{self.socket}", "version"], capture_output=True).returncode:
            assert self.process.poll() is None, (self.dir / "dockerd.log").read_text()[-2000:]
            assert time.monotonic() < until, "dockerd does not answer"
            time.sleep(0.1)

    def __call__(self, *words, check=True, timeout=120, **more):
        env = {**os.environ, "DOCKER_HOST": f"unix://{self.socket}", "DOCKER_BUILDKIT": "0"}
        done = subprocess.run([DOCKER, *map(str, words)], env=env, capture_output=True, text=True, timeout=timeout, **more)
        assert not check or done.returncode == 0, f"docker {' '.join(map(str, words))}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done

    def import_tree(self, tree, name, *changes):
        """Makes an image of a directory."""
        words = [w for c in changes for w in ("--change", c)]
        tar = subprocess.Popen(["tar", "-C", tree, "-c", "."], stdout=subprocess.PIPE)
        env = {**os.environ, "DOCKER_HOST": f"unix://{self.socket}"}
        subprocess.run([DOCKER, "import", *words, "-", name], stdin=tar.stdout, check=True, capture_output=True, env=env)
        assert tar.wait() == 0

    def stop(self):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)  # a test may have stopped it
        with contextlib.suppress(subprocess.TimeoutExpired):
            names = self("ps", "-aq", check=False, timeout=30).stdout.split()
            if names:
                self("rm", "-f", *names, check=False)
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)
        self.end.now()
        self.process.wait()
        self.process = None
