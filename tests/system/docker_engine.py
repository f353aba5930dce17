"""A Docker Engine of the test's own, from Debian's packages: its own directory and socket, no bridge, no iptables. Images are
imported, never pulled."""

import ctypes
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
DOCKER = "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else "docker"


def end_with_parent():
    """A test that is killed leaves no engine behind: it is told to end, and ends its containers."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def processes_with(word):
    """Those whose command line has it: word is a name that nobody else uses."""
    found = []
    for one in Path("/proc").iterdir():
        try:
            if one.name.isdigit() and int(one.name) != os.getpid() and word.encode() in (one / "cmdline").read_bytes():
                found.append(int(one.name))
        except OSError:
            pass
    return found


def children_of(pid):
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class DockerEngine:
    def __init__(self, directory):
        self.dir = Path(directory)
        self.dir.mkdir(parents=True, exist_ok=True)
        # A socket's path must be short, and a data root on tmpfs is a waste of memory.
        self.run = Path(tempfile.mkdtemp(prefix="dk.", dir="/tmp"))
        self.socket = self.run / "docker.sock"
        self.process = None
        self.start()

    def start(self):
        log = open(self.dir / "dockerd.log", "ab")
        self.process = subprocess.Popen(
            ["dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs",
             "--data-root", self.dir / "data", "--exec-root", self.run / "exec", "--pidfile", self.run / "pid",
             "-H", f"unix://{self.socket}"],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=end_with_parent)
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
        names = self("ps", "-aq", check=False).stdout.split()
        if names:
            self("rm", "-f", *names, check=False)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None
        self.clear()

    def clear(self):
        """Whoever is left of it: containerd and its shims have our directory in their words, and containers are their children."""
        for pid in processes_with(str(self.run)):
            for doomed in [*children_of(pid), pid]:
                try:
                    os.kill(doomed, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        subprocess.run(f"umount -l {self.run}/exec/netns/* 2>/dev/null; rm -rf --one-file-system {self.run}", shell=True)
