"""Jobs in containers, on a real Docker Engine: whose they are, what they may mount, how they end, and that nothing of one is left,
whoever is killed."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from job_node import BY_CANCEL, BY_ITSELF, BY_SHIM, RUNNING
from simulator import Simulator, wait_for
from task_containers import IMAGE, TaskEngine
from test_jobs import NOBODY, Place

pytestmark = [pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dockerd"), reason="an engine needs root and Docker")]


@pytest.fixture(scope="module")
def docker():
    where = Path(tempfile.mkdtemp(prefix="gj.", dir="/tmp"))
    engine = TaskEngine(where)
    yield engine
    engine.stop()
    shutil.rmtree(where, ignore_errors=True)


@pytest.fixture
def spot(docker, place, tmp_path):
    """Where jobs may mount: place/open."""
    (place / "open").mkdir()
    with Simulator(tmp_path / "sim", "--model", "h200:4") as sim:
        with Place(sim, "--engines.docker", docker.socket, "--jobs.mount-roots", place / "open") as p:
            p.docker, p.open = docker, place / "open"
            yield p


def start(p, *command, uid=NOBODY, **more):
    return p.start(*command, uid=uid, image=IMAGE, **more)


def log_of(p, key):
    return (p.dir(key) / "log").read_text()


def says(p, key, text):
    wait_for(lambda: p.server.runs_of(key) and (p.dir(key) / "log").exists() and text in log_of(p, key), f"it says {text}", 60)


def containers(p):
    return p.docker("ps", "-a", "--format", "{{.Names}}").stdout.split()


def test_it_runs_as_its_user_with_nothing_more(spot):
    p = spot
    script = "/bin/busybox id -u; /bin/busybox id -g; /bin/busybox grep -E 'NoNewPrivs|CapEff' /proc/self/status; echo $MINE $GPUMGR_JOB_ID $SECRET; echo err >&2; exit 9"
    key = start(p, "sh", "-c", script, gpus=(1,), env={"PATH": "/bin", "SECRET": "x"})
    end = p.server.ended(key, 60)
    assert (end["has_exit"], end["code"], end["reason"]) == (1, 9, BY_ITSELF), log_of(p, key)
    lines = sorted(log_of(p, key).splitlines(), key=lambda line: line == "err")  # two pipes: which comes first is chance
    assert lines[:2] == [str(NOBODY), str(NOBODY)] and "CapEff:\t0000000000000000" in lines and "NoNewPrivs:\t1" in lines
    assert lines[4] == str(key[0]) and lines[5] == "err"  # the caller's environment stays outside
    assert (p.dir(key) / "log").stat().st_uid == NOBODY and containers(p) == []


def test_what_the_engine_is_told(spot):
    p = spot
    key = start(p, "sleep", "1000")
    start_of_name = "gpumgr-%d.%d.%d-" % key  # and a part that no other instance has
    name = wait_for(lambda: next((n for n in p.docker("ps", "--format", "{{.Names}}").stdout.split() if n.startswith(start_of_name)), None), "the container runs", 60)
    form = "{{.HostConfig.Privileged}} {{.HostConfig.NetworkMode}} {{.HostConfig.PidMode}} {{.HostConfig.IpcMode}} {{.HostConfig.CgroupnsMode}} {{.Config.User}} {{index .Config.Labels \"gpumgr.job\"}}"
    said = p.docker("inspect", "-f", form, name).stdout.split()
    assert said[0] == "false" and "host" not in said and said[-2:] == [f"{NOBODY}:{NOBODY}", str(key[0])]
    p.server.stop(key, BY_CANCEL, 3)
    end = p.server.ended(key, 60)
    assert end["reason"] == BY_CANCEL and end["has_exit"] and containers(p) == []


def test_mounts_have_roots_and_their_users_rights(spot):
    p = spot
    mine, closed, outside = p.open / "mine", p.open / "closed", p.open.parent / "outside"
    for d in (mine, closed, outside):
        d.mkdir()
    os.chown(mine, NOBODY, NOBODY)
    closed.chmod(0o700)
    outside.chmod(0o777)
    (outside / "secret").write_text("secret\n")
    (mine / "way").symlink_to(outside)
    key = start(p, "sh", "-c", "echo new > /mnt/file && /bin/busybox cat /mnt/file", mounts=(f"{mine}:/mnt",))
    assert p.server.ended(key, 60)["code"] == 0 and (mine / "file").read_text() == "new\n", log_of(p, key)
    assert (mine / "file").stat().st_uid == NOBODY
    rows = [(f"{mine}:/mnt:ro", 1, "Read-only"), (f"{closed}:/mnt", 125, "Permission denied"), ("/etc:/mnt", 125, "/etc is not below one of jobs.mount_roots"),
            (f"{p.open}:/mnt", 125, "you may read it, but not write there; mount it with :ro"), (f"{outside}:/mnt", 125, "is not below one of jobs.mount_roots"),
            (f"{mine}/way:/mnt", 125, "is not below one of jobs.mount_roots"), (f"{p.open}/none:/mnt", 125, "No such file"),
            (f"{p.docker.socket}:/mnt", 125, "mounts: "), ("/:/mnt", 125, "mounts: ")]
    for mount, code, words in rows:
        key = start(p, "sh", "-c", "echo new > /mnt/other", mounts=(mount,))
        end = p.server.ended(key, 60)
        assert end["code"] == code and words in log_of(p, key), (mount, end, log_of(p, key))
        assert (words in end["text"]) == (code == 125)  # the job says it, too, not its log alone
    assert containers(p) == []


def test_what_a_job_mounts_is_no_way_in_for_others(spot):
    """A directory that everybody may read lies in one that is closed: where it is bound it is as closed."""
    p = spot
    home = p.open / "home"
    (home / "data").mkdir(parents=True)
    (home / "data/file").write_text("secret\n")
    home.chmod(0o700)
    for d in (home, home / "data", home / "data/file"):
        os.chown(d, NOBODY, NOBODY)
    key = start(p, "sh", "-c", "/bin/busybox cat /mnt/file; sleep 1000", mounts=(f"{home}/data:/mnt:ro",))
    says(p, key, "secret")
    look = ["sh", "-c", 'cat "$1"/*/file "$1"/*/*/file "$1"/mount.0/file "$1"/mounts/mount.0/file 2>/dev/null', "sh", p.dir(key)]
    assert subprocess.run(look, capture_output=True, text=True).stdout.startswith("secret"), "it is there"
    assert subprocess.run(look, capture_output=True, text=True, user=1234, group=1234, extra_groups=[]).stdout == ""
    p.server.stop(key, BY_CANCEL, 0.5)
    p.server.ended(key, 60)
    assert str(p.i.dir) not in Path("/proc/mounts").read_text() and not (p.dir(key) / "mounts").exists()


def test_signals_and_graces_reach_it(spot):
    p = spot
    key = start(p, "sh", "-c", "trap 'echo told; exit 5' TERM; echo up; while :; do /bin/busybox usleep 20000; done")
    says(p, key, "up")
    p.server.stop(key, BY_CANCEL, 20)
    end = p.server.ended(key, 60)
    assert (end["code"], end["reason"]) == (5, BY_CANCEL) and "told" in log_of(p, key)
    key = start(p, "sh", "-c", "trap '' TERM; echo up; while :; do /bin/busybox usleep 20000; done")
    says(p, key, "up")
    p.server.stop(key, BY_CANCEL, 0.5)
    assert p.server.ended(key, 60)["reason"] == BY_CANCEL and containers(p) == []


@pytest.mark.parametrize("who", ["shim", "helper", "node"])
def test_whoever_is_killed_nothing_is_left(spot, who):
    p = spot
    key = start(p, "sh", "-c", "echo up; sleep 4; exit 3")
    says(p, key, "up")
    shim = p.shim_of(key)
    helper = p.server.wait_state(key, RUNNING)["pid"]
    os.kill({"shim": shim, "helper": helper, "node": p.node()}[who], signal.SIGKILL)
    end = p.server.ended(key, 60)
    want = {"shim": (0, BY_SHIM, 0, 0), "helper": (1, BY_ITSELF, 0, 9), "node": (1, BY_ITSELF, 3, 0)}[who]
    assert (end["has_exit"], end["reason"], end["code"], end["signal"]) == want and containers(p) == []


def test_what_a_container_uses_is_told(spot):
    p = spot
    key = start(p, "sh", "-c", "i=0; while :; do i=$((i+1)); done")
    got = wait_for(lambda: (f := p.server.figures_of(key)) and f["cpu_seconds"] > 1 and f, "CPU time of what runs in it", 120)
    assert got["host_bytes"] > 0
    p.server.stop(key, BY_CANCEL, 0.5)
    end = p.server.ended(key, 60)
    assert end["cpu_seconds"] >= got["cpu_seconds"], "its end does not say less"


def test_an_image_that_is_nowhere_says_so(spot):
    p = spot
    key = p.start("true", uid=NOBODY, image="127.0.0.1:9/nothing:1")
    end = p.server.ended(key, 90)
    assert end["code"] == 125 and "127.0.0.1:9/nothing:1" in log_of(p, key)
