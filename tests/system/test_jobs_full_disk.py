"""The disk fills up while jobs wait and run, and has room again later: who is refused hears one sentence, what was acknowledged is there
afterwards, what ran ends with its own exit code, and nobody was restarted."""

import json
import os
import subprocess
from contextlib import contextmanager

import pytest

from instance import Instance
from job_box import NO_ENGINES, ask, gpumgr, job, queue, state, submit, verdicts
from simulator import Simulator, wait_for

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk"), pytest.mark.timeout(400)]

ROOM, NAMES = 24 << 20, 600


@contextmanager
def small_disk(path):
    path.mkdir(mode=0o755)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM},nr_inodes={NAMES},mode=755", "none", path], capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=False)


@pytest.fixture
def box(tmp_path):
    tmp_path.chmod(0o755)
    with Simulator(tmp_path / "sim", "--model", "h200:2") as sim, small_disk(tmp_path / "disk") as disk:
        with Instance(sim, "--gpu-devices", sim.dir / "dev", *NO_ENGINES, role="up", path=disk) as i:
            i.sim, i.filler = sim, disk / "filler"
            i.ready(2)
            wait_for(lambda: verdicts(i) == ["free", "free"], "both GPUs are free", 60)
            yield i


def fill(box):
    """To the last byte."""
    with box.filler.open("ab", buffering=0) as f:
        for piece in (1 << 20, 1 << 12):
            try:
                while True:
                    f.write(bytes(piece))
            except OSError:
                pass


def no_names(box):
    """No file can be made any more."""
    names = [box.dir / f"name-{n}" for n in range(2 * NAMES)]
    for n, name in enumerate(names):
        try:
            name.touch()
        except OSError:
            return names[:n]
    raise AssertionError("there is no end of names")


def test_full_and_free_again(box, tmp_path):
    go = tmp_path / "go"
    programs = {p: box.of_program(p) for p in ("server", "node")}
    talker = submit(box, "--", "sh", "-c", f"echo before; until test -e {go}; do sleep 0.05; done; seq 200000; exit 7")
    state(box, talker, "running")
    large = submit(box, "--gpus", 2, "--", "sh", "-c", "exit 3")  # waits for both
    fill(box)
    taken, refused = [large], []
    for n in range(60):
        got = gpumgr(box, "submit", "--name", f"n{n}", "--", "sh", "-c", "exit 4", env={**box.env, "PAD": "x" * 20000})
        if got.returncode == 0:
            taken.append(int(got.stdout))
        else:
            refused.append(got.stderr)
            if len(refused) == 3:
                break
        fill(box)
    assert refused, "nothing was refused: the disk was not full"
    assert all(r.count("\n") == 1 and r.startswith("gpumgr submit: ") for r in refused), refused
    go.touch()
    wait_for(lambda: job(box, talker)["state"] in ("ending", "failed") or job(box, talker)["exit_code"] == 7, "what ran has ended", 90)
    box.filler.unlink()
    assert state(box, talker, "failed")["exit_code"] == 7
    for number in taken:
        got = wait_for(lambda: (j := job(box, number))["state"] in ("failed", "done", "cancelled", "exit unknown") and j, f"job {number} is over", 120)
        assert got["exit_code"] == (3 if number == large else 4), got
    after = submit(box, "--", "true")
    state(box, after, "done")
    names = [j["name"] for j in ask(box, "jobs", "--json", "--limit", 1000)["jobs"]]
    assert len(names) == len(taken) + 2, "what was refused is not there"
    assert {p: box.of_program(p) for p in programs} == programs, "nobody was restarted"
    assert gpumgr(box, "logs", talker).stdout.startswith("before\n")


def test_one_that_is_granted_waits_for_room(box, tmp_path):
    """Its machine's trouble is not its failure: it begins when there is room, or ends when somebody wants that."""
    first = submit(box, "--gpus", 2, "--", "sh", "-c", f"until test -e {tmp_path}/go; do sleep 0.05; done")
    state(box, first, "running")
    second, third = submit(box, "--gpus", 1, "--", "sh", "-c", "exit 5"), submit(box, "--gpus", 1, "--", "sh", "-c", "exit 6")
    names = no_names(box)  # its directory cannot be made, while the server's file can be written
    (tmp_path / "go").touch()
    wait_for(lambda: all("waits for room on the disk" in (job(box, n)["text"] or "") for n in (second, third)), "both wait for room", 90)
    assert {j["id"] for j in queue(box)["running"]} >= {second, third}, "they keep their GPUs"
    assert gpumgr(box, "cancel", third).returncode == 0
    assert state(box, third, "cancelled")["exit_code"] is None
    for name in names:
        name.unlink()
    assert state(box, second, "failed")["exit_code"] == 5
    assert json.loads(gpumgr(box, "jobs", second, "--json").stdout)["text"] is None
