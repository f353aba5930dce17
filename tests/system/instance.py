"""A gpumgr of a test's own: started on a simulator, looked at through its commands and its ring."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from simulator import BUILD, LIBRARY, wait_for
from task_table import TaskTable

GPUMGR = BUILD / "gpumgr"


def clean_env(**more):
    """No settings of the person who runs the tests leak in; a server takes any port that is free."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMGR_", "GPUSIM_"))}
    env = {**env, "LC_ALL": "C.UTF-8", "GPUMGR_LISTEN": "127.0.0.1:0", **more}
    return {k: str(v) for k, v in env.items() if v is not None}


class Instance:
    def __init__(self, sim=None, *flags, role="node", env=None, path=None, user=None, program=GPUMGR):
        """path: the directory of another instance that has ended; else one of its own. user: run as that one (a number)."""
        self.dir = path or Path(tempfile.mkdtemp(prefix="gm-", dir="/dev/shm"))
        self.dir.chmod(0o755)  # a server that was root comes in as somebody else
        self.log_path = self.dir / "log"
        self.table = TaskTable(self.dir / "run/tasks")
        self.env = clean_env(**(env or {}), **({"GPUSIM_DIR": sim.dir} if sim else {}))
        command = [program, role, "--dir", self.dir, *(["--gpu-library", LIBRARY, "--guard.lock-dir", sim.dir] if sim else []), *flags]
        self.started = time.monotonic()
        self.process = subprocess.Popen(list(map(str, command)), env=self.env, stderr=self.log_path.open("w"),
                                        user=user, group=user, extra_groups=None if user is None else [])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        end_jobs(self.dir)
        shutil.rmtree(self.dir, ignore_errors=True)

    def log(self):
        return [json.loads(line) for line in self.log_path.read_text().splitlines() if line.startswith("{")]

    def said(self, event):
        return [line for line in self.log() if line["event"] == event]

    def children(self):
        try:
            return [int(p) for p in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()]
        except FileNotFoundError:
            return []

    def samplers(self):
        def is_sampler(pid):
            try:
                return b"\0sample\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                return False
        return [p for p in self.children() if is_sampler(p)]

    def of_program(self, name):
        """The child that is gpumgr-NAME."""
        def is_it(pid):
            try:
                return Path(f"/proc/{pid}/exe").readlink().name == f"gpumgr-{name}"
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                return False
        return [p for p in self.children() if is_it(p)]

    def sampler(self):
        return wait_for(self.samplers, "a sampler runs")[0]

    def status(self, *flags):
        out = subprocess.run([str(GPUMGR), "status", "--json", "--dir", str(self.dir), *flags], capture_output=True, text=True,
                             env=self.env, timeout=20)
        return json.loads(out.stdout) if out.returncode == 0 and out.stdout.strip() else {"gpus": [], "error": out.stderr}

    def gpu(self, index):
        return next((g for g in self.status()["gpus"] if g["index"] == index), {"state": "none", "metrics": {}})

    def ready(self, count):
        """Waits until so many GPUs are read; returns the status."""
        def is_ready():
            s = self.status()
            return s if len(s["gpus"]) == count and all(g["state"] == "ok" and g["metrics"] for g in s["gpus"]) else None
        return wait_for(is_ready, f"{count} GPUs are read")

    def tracking(self, count):
        """Waits until so many GPUs are read and the node looks at their lists: nobody has seen a short task that ended before."""
        status = self.ready(count)
        self.table.wait_gpus(count)
        return status

    def wait_state(self, index, state, timeout=30):
        return wait_for(lambda: self.gpu(index)["state"] == state, f"GPU {index} is {state}", timeout)

    def follow(self, seconds, worker=0):
        """Starts a reader of the ring; `followed` waits for it and gives what it saw."""
        out = tempfile.TemporaryFile("w+")  # not a pipe: a reader that waits for us would miss samples
        program = subprocess.Popen([str(BUILD / "tests/ring_follow"), str(self.dir / f"run/ring.{worker}"), str(seconds)], stdout=out)
        return program, out


def followed(reader):
    program, out = reader
    assert program.wait() == 0
    out.seek(0)
    return [json.loads(line) for line in out]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def end_jobs(directory):
    """Jobs outlive everything but their shims: what a test leaves running goes with its directory."""
    jobs = f"{directory}/jobs/".encode()
    for p in Path("/proc").glob("[0-9]*"):
        try:
            words = (p / "cmdline").read_bytes().split(b"\0")
            if len(words) > 1 and words[0].endswith(b"/gpumgr-shim") and words[1].startswith(jobs):
                below = [int(w) for t in (p / "task").iterdir() for w in (t / "children").read_text().split()]
                for pid in [int(p.name), *below]:
                    os.kill(pid, signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue


def stop(pid):
    """SIGSTOP, and back when no thread of it runs any more: the first that takes the signal stops the others."""
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    wait_for(lambda: all((t / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for t in threads.iterdir()), "it stands still")
