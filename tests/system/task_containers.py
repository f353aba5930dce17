"""Containers with GPU tasks in them, on a real Docker Engine: an image of gpusim-task and busybox, run with the simulator's device
files as bind mounts (the host's own files) or as devices (files of the container's own)."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from docker_engine import DockerEngine
from simulator import BUILD

IMAGE = "gputask:1"


def make_tree(root):
    (root / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "/bin/busybox", root / "bin/busybox")
    for name in ("sh", "sleep", "usleep", "seq", "test", "["):
        (root / "bin" / name).symlink_to("busybox")
    shutil.copy(BUILD / "sim/gpusim-task", root / "bin/gpusim-task")
    needs = subprocess.run(["ldd", BUILD / "sim/gpusim-task"], capture_output=True, text=True, check=True).stdout
    for path in re.findall(r"(/\S+) \(0x", needs):
        at = root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, at)


class TaskEngine(DockerEngine):
    """A Docker Engine with the image, and a directory `out` that all containers share."""

    def __init__(self, directory):
        super().__init__(directory)
        self.out = Path(tempfile.mkdtemp(prefix="out.", dir="/dev/shm"))
        self.moments = self.out / "moments"
        tree = Path(tempfile.mkdtemp(prefix="tree.", dir="/tmp"))
        make_tree(tree)
        self.import_tree(tree, IMAGE)
        shutil.rmtree(tree)

    def stop(self):
        super().stop()
        shutil.rmtree(self.out, ignore_errors=True)

    def places(self, sim, way, gpus=(0,)):
        """The words of `docker run` that bring the GPUs in."""
        words = ["--network", "none", "-e", f"GPUSIM_DIR={sim.dir}", "-v", f"{self.out}:{self.out}"]
        if way == "bind":
            return [*words, "-v", f"{sim.dir}:{sim.dir}"]
        names = ["nvidiactl", "nvidia-uvm", *(f"nvidia{g}" for g in gpus)]
        words += ["-v", f"{sim.dir}/sock:{sim.dir}/sock", "-v", f"{sim.dir}/gpus:{sim.dir}/gpus"]
        return words + [w for n in names for w in ("--device", f"{sim.dir}/dev/{n}:{sim.dir}/dev/{n}")]

    def run_task(self, sim, *task, way="bind", words=(), gpus=(0,)):
        """Starts a container with one task in it; its id."""
        return self("run", "-d", *words, *self.places(sim, way, gpus), IMAGE, "/bin/gpusim-task", *task).stdout.strip()

    def run_script(self, sim, script, way="bind", words=(), gpus=(0,)):
        return self("run", "-d", *words, *self.places(sim, way, gpus), IMAGE, "/bin/sh", "-c", script).stdout.strip()

    def truth(self):
        """name -> (opened, registered, ended), by the boot clock in ns."""
        if not self.moments.exists():
            return {}
        rows = [line.split() for line in self.moments.read_text().splitlines()]
        return {r[0]: tuple(map(int, r[1:])) for r in rows if len(r) == 4}
