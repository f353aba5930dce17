"""UIs inside containers, on a real Docker Engine: reached in the container's own network, where nothing is published."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from instance import Instance
from job_box import ADA, gpumgr, state, submit, verdicts
from simulator import Simulator, wait_for
from task_containers import IMAGE, TaskEngine
from ui_view import View, run

pytestmark = [pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dockerd"), reason="an engine needs root and Docker")]

# This machine's Python, as it is: an image of our own would be a copy of it.
PYTHON = [w for a, b in (("/usr", "/usr"), ("/usr/lib", "/lib"), ("/usr/lib64", "/lib64")) for w in (a, b)]


def mounts(app):
    pairs = [(PYTHON[i], PYTHON[i + 1]) for i in range(0, len(PYTHON), 2)] + [(app, "/app.py")]
    return [f"{a}:{b}:ro" for a, b in pairs]


@pytest.fixture(scope="module")
def spot(tmp_path_factory):
    where = Path(tempfile.mkdtemp(prefix="gu.", dir="/tmp"))
    where.chmod(0o755)
    app = where / "app.py"
    app.write_text(Path(__file__).with_name("ui_app.py").read_text())
    app.chmod(0o644)
    engine = TaskEngine(where / "engine")
    try:
        with Simulator(tmp_path_factory.mktemp("sim"), "--model", "h200:2") as sim:
            with Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", engine.socket, "--engines.podman", "",
                          "--jobs.mount-roots", f"/usr,{where}", role="up") as i:
                i.sim, i.docker, i.app = sim, engine, app
                i.ready(2)
                wait_for(lambda: verdicts(i) == ["free", "free"], "both GPUs are free", 30)
                yield i
    finally:
        engine.stop()
        shutil.rmtree(where, ignore_errors=True)


def talks(view):
    async def talk():
        async with view.socket() as s:
            await s.send("hello")
            assert await s.recv() == "you said: hello"
            await s.send("large 3000000")
            assert len(await s.recv()) == 3_000_000
    run(talk())


def test_a_container_of_a_job(spot):
    words = [w for m in mounts(spot.app) for w in ("--mount", m)]
    number = submit(spot, "--ui", "auto", "--image", IMAGE, *words, "--", "sh", "-c", "exec /usr/bin/python3 /app.py $GPUMGR_UI_PORT", user=ADA)
    state(spot, number, "running")
    view = View(spot, number, user=ADA)
    wait_for(lambda: view.ask("GET", "/say").status == 200, "the UI answers", 120)
    talks(view)
    name = next(n for n in spot.docker("ps", "--format", "{{.Names}}").stdout.split() if n.startswith(f"gpumgr-{number}."))
    assert spot.docker("port", name).stdout == ""  # nothing is published
    assert gpumgr(spot, "cancel", number).returncode == 0
    state(spot, number, "cancelled")
