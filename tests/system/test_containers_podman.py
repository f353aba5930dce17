"""Containers by command on a real Podman, whose socket speaks Docker's language: the whole way of one, from elsewhere and from here."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from podman_engine import LIMITS, PodmanEngine
from task_containers import make_tree
from test_containers import OBEYS, Box

pytestmark = [pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("podman"), reason="an engine needs root and Podman")]

IMAGE = "localhost/gputask:1"


@pytest.fixture
def box(tmp_path, monkeypatch):
    # more than a test may have is what Podman gives by itself, and a network of its own it cannot make everywhere
    (tmp_path / "containers.conf").write_text('[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]\nnetns = "none"\n')
    monkeypatch.setenv("CONTAINERS_CONF", str(tmp_path / "containers.conf"))
    place = Path(tempfile.mkdtemp(prefix="gp.", dir="/tmp"))
    engine = PodmanEngine(place / "engine")
    make_tree(place / "tree")
    engine.import_tree(place / "tree", "gputask:1")
    b = Box(place, engine)
    yield b
    b.end()
    engine.stop()
    shutil.rmtree(place, ignore_errors=True)


def test_the_whole_way_of_a_container(box):
    image = box.good("images").split("\n")[1]
    assert image.startswith(IMAGE) and " MiB " in image
    box.docker("create", "--name", "foreign", "--network", "none", *LIMITS, "-e", "NVIDIA_VISIBLE_DEVICES=1", IMAGE, "sleep", "1000")
    data = box.open / "data"
    data.mkdir()
    (data / "note").write_text("kept\n")
    box.good("add", IMAGE, "--name", "lab", "--gpus", "1", "--mount", f"{data}:/data:ro", "--", "sh", "-c", f"echo hello; {OBEYS[2]}")
    rows = box.rows()
    assert [g["index"] for g in rows["foreign"]["gpus"]] == [1] and rows["foreign"]["state"] == "created"
    assert rows["lab"]["state"] == "running" and len(rows["lab"]["gpus"]) == 1
    assert box.good("logs", "lab") == "hello\n"
    shell = subprocess.run(["sh", "-c", f"echo 'read x < /data/note; exit $((${{#x}} + 3))' | {os.environ.get('BUILD_DIR', 'build')}/gpumgr containers shell lab --dir {box.up.dir}"],
                           capture_output=True, text=True, timeout=120)
    assert shell.returncode == 7, shell.stderr
    old = box.rows()["lab"]["id"]
    box.good("edit", "lab", "--env", "A=1", "--yes")
    now = box.rows()["lab"]
    assert now["id"] != old and now["state"] == "running" and box.names() == ["foreign", "lab"]
    box.good("stop", "lab")
    assert box.rows()["lab"]["state"] == "exited"
    box.good("start", "lab")
    for name in ("lab", "foreign"):
        box.good("remove", name, "--yes")
    assert box.rows() == {}
