"""examples/mnist.py, a script in the manner of watchmen's clients: several at once, in every mode, on the real program's port. It
trains on simulated GPUs here, so that what the queue gives away is really used."""

import json
import os
import re
import socket
import subprocess
import sys
import urllib.request

import pytest

from instance import GPUMGR, Instance, clean_env
from simulator import BUILD, ROOT, Simulator, wait_for

EXAMPLE = ROOT / "examples/mnist.py"
TOKEN = "of-the-test"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture
def box(tmp_path):
    """Three GPUs behind a watchmen port."""
    port = free_port()
    with Simulator(tmp_path / "sim", "--model", "h200:3") as sim:
        flags = ("--gpu-devices", sim.dir / "dev", "--engines.docker", "", "--engines.podman", "",
                 "--watchmen.listen", f"127.0.0.1:{port}", "--watchmen.token", TOKEN)
        with Instance(sim, *flags, role="up") as i:
            i.sim, i.port = sim, port
            i.ready(3)
            wait_for(lambda: verdicts(i) == ["free"] * 3, "all GPUs are free", 30)
            yield i


def verdicts(box):
    got = subprocess.run([GPUMGR, "queue", "--json", "--dir", box.dir], capture_output=True, text=True, env=clean_env())
    return [g["verdict"] for g in json.loads(got.stdout)["gpus"]] if got.returncode == 0 else []


# In place of gpusim-task: works on until it is let go.
HELD = """#!/bin/sh
%s $(echo "$@" | sed 's/--work [0-9]*/--forever/') &
until test -e %s; do sleep 0.05; done
kill $!
"""


def start(box, name, *words, program=BUILD / "sim/gpusim-task"):
    env = clean_env(GPUSIM_DIR=box.sim.dir, GPUSIM_TASK=program, WATCHMEN_TOKEN=TOKEN)
    return subprocess.Popen([sys.executable, str(EXAMPLE), "--id", name, "--port", str(box.port), "--epochs", "1",
                             "--every", "0.05", *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def show(box, what):
    request = urllib.request.Request(f"http://127.0.0.1:{box.port}/show/{what}", headers={"X-Auth-Token": TOKEN})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["msg"]


def granted(out):
    return [int(g) for g in re.search(r"on GPUs \[(.*)\]", out)[1].split(", ")]


def test_several_at_once_in_different_modes(box, tmp_path):
    """What each is granted is what it asked for, and no GPU is given to two at a time: what runs there is seen to run."""
    held, go = tmp_path / "held", tmp_path / "go"
    held.write_text(HELD % (BUILD / "sim/gpusim-task", go))
    held.chmod(0o755)
    first = start(box, "first", "--cuda", "0,1", "--wait", "queue", program=held)
    wait_for(lambda: verdicts(box)[:2] == ["foreign", "foreign"], "the first one trains", 30)
    second = start(box, "second", "--cuda", "1", "--wait", "queue")
    third = start(box, "third", "--cuda", "2,1,0", "--wait", "schedule", "--req_gpu_num", "1")
    fourth = start(box, "fourth", "--cuda", "0,1,2", "--wait", "schedule", "--req_gpu_num", "3")
    wait_for(lambda: {c["id"].split("@")[1] for c in show(box, "work")} >= {"second", "fourth"}, "two wait")
    waiting = {c["id"].split("@")[1]: c for c in show(box, "work")}
    assert waiting["second"]["status"] == "waiting" and waiting["second"]["gpus"] == [1]
    assert waiting["fourth"]["mode"] == "schedule" and waiting["fourth"]["req_gpu_num"] == 3
    wait_for(lambda: third.poll() is not None, "the third has what was free at once")
    go.touch()
    out = {name: p.communicate(timeout=250) for name, p in
           {"first": first, "second": second, "third": third, "fourth": fourth}.items()}
    assert all(p.returncode == 0 for p in (first, second, third, fourth)), out
    assert granted(out["first"][0]) == [0, 1]
    assert granted(out["second"][0]) == [1]
    assert granted(out["third"][0]) == [2]  # it was free at once
    assert sorted(granted(out["fourth"][0])) == [0, 1, 2]


def test_without_waiting_nobody_is_asked(box):
    p = start(box, "none", "--cuda", "2")
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0 and granted(out) == [2], err
    assert not show(box, "work") and not show(box, "finished")


@pytest.mark.parametrize("words,because", [
    (["--cuda", "9", "--wait", "queue"], "exist"),
    (["--cuda", "0,1", "--wait", "schedule", "--req_gpu_num", "3"], "req_gpu_num"),
    (["--cuda", "0", "--wait", "queue", "--token", "wrong"], "401"),
])
def test_refusals_are_one_sentence(box, words, because):
    p = start(box, "wrong", *words)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 1 and because in err and err.count("\n") == 1, (out, err)


@pytest.mark.parametrize("cuda", ["x", "__import__('os').system('touch /tmp/evil')", "0,0", "-1", ""])
def test_numbers_are_not_evaluated(cuda):
    got = subprocess.run([sys.executable, EXAMPLE, "--id", "x", f"--cuda={cuda}"], capture_output=True, text=True)
    assert got.returncode == 2 and not os.path.exists("/tmp/evil")
