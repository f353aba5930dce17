"""What the pages show can be typed: every command of README, docs/ and the help texts is run as it is printed, on a machine with
eight simulated GPUs, where python, jupyter and the container engines are stand-ins."""

import datetime
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from instance import GPUMGR, Instance, clean_env
from simulator import LIBRARY, Simulator, wait_for

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="reservations for others, and jobs of root, are root's")

LAST = re.compile(r"--watch|--follow| -f\b|attach|--day")  # they go on until somebody ends them: it is enough that they begin
ELSEWHERE = re.compile(r"^gpumgr (up|node|server)\b")      # a second instance: only whether its flags are understood
NO_ENGINE = re.compile(r"^gpumgr (containers|service update)\b|--image")  # there is none: it must be that which is said


def blocks():
    """(page, lines) of every fenced block."""
    for page in PAGES:
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.M | re.S):
            yield page.name, block


def commands():
    found = {}
    for page, block in blocks():
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"^(\$ |example: )|^build/(?=gpumgr)", "", line)
            line = re.sub(r"(?<! ) {2,}(?=[\w`(+#-]).*$", "", line) if not line.startswith(" ") else ""  # what it does stands behind it
            if re.match(r"(\w+=\S* )?gpumgr ", line) or "$(gpumgr" in line:
                found.setdefault(line.strip(), page)
    for page in PAGES[:1]:
        for line in re.findall(r"`(gpumgr [^`]* [^`]*)`", page.read_text()):
            found.setdefault(line, page.name)
    return [pytest.param(c, id=f"{p}: {c}"[:90]) for c, p in found.items() if "..." not in c]


STAND_IN = """#!/bin/sh
case "$*" in *serve*|*jupyter*|lab*) exec sleep 600 ;; esac
echo "$0 $*"
"""


class Desk:
    """Where somebody sits who tries what he has read."""

    def __init__(self, path, up):
        self.path, self.up = path, up
        tools = path / "bin"
        tools.mkdir()
        (tools / "gpumgr").symlink_to(GPUMGR)
        for name in ("python", "jupyter", "docker", "podman", "nvtop", "publish"):
            (tools / name).write_text(STAND_IN)
            (tools / name).chmod(0o755)
        (path / "publish").symlink_to(tools / "publish")
        (path / "jobs.csv").write_text("user,gpus,submit_min,duration_min\nada,1,0,10\nbob,2,1,20\n")
        self.env = clean_env(GPUMGR_DIR=up.dir, GPUMGR_GPU_LIBRARY=LIBRARY, GPUSIM_DIR=up.sim.dir, HOME=path, USER="root", PATH=f"{tools}:/usr/bin:/bin:/usr/sbin:/sbin")

    def sh(self, line):
        return subprocess.run(["bash", "-ec", line], cwd=self.path, env=self.env, capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL)

    def good(self, line):
        done = self.sh(line)
        assert done.returncode == 0, f"{line}: exit {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def begins(self, line):
        """Runs it until it shows something, or has ended well."""
        with subprocess.Popen(["bash", "-c", "exec " + line], cwd=self.path, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL) as p:
            first = p.stdout.read1(4096)
            p.terminate()
            rest = first + p.stdout.read()
        assert first and p.returncode in (0, -15, 143, 130), f"{line}: exit {p.returncode}: {rest.decode()}"

    def rows(self, kind):
        return next(v for v in json.loads(self.good(f"gpumgr {kind} list --json")).values() if isinstance(v, list))

    # What an example takes for granted.

    def a_job(self, line):
        if re.search(r"gpumgr (hold|release)", line):
            before = self.good("gpumgr submit --share 1GiB -- sleep 600").strip()
            return self.good(f"gpumgr submit --share 1GiB --after {before}:any -- true").strip()
        words = "echo hello" if re.search("gpumgr (wait|logs)", line) else "echo hello; sleep 600"
        return self.good(f"gpumgr submit --share 1GiB --ui 8888 -- sh -c '{words}'").strip()

    def in_place(self, line):
        """The example, with numbers, names and days that there are."""
        day = datetime.date.today() + datetime.timedelta(days=2)
        line = re.sub(r"20\d\d-\d\d-\d\d", str(day), line)
        line = re.sub(r"\b(PROGRAM|COMMAND)\b", "true", line).replace("GPU ", "3 ").replace(" NAME", " program")
        line = line.replace("--user ada", "--user games").replace("--group course", "--group games").replace("> /etc/prometheus/", "> ")
        if "18.3" in line:
            line = line.replace("18.3", self.good("gpumgr submit --share 1GiB --array 1-4 -- sleep 600").strip() + ".3")
        if re.search(r"(?<!-)\b17\b", line):  # not the day of a month
            line = re.sub(r"(?<!-)\b17\b", self.a_job(line), line)
        if "nightly" in line and "submit" not in line:
            self.good('gpumgr submit --cron "0 3 * * *" --name nightly -- true')
        if re.search("service (show|logs|update|suspend|restart|remove) web", line):
            self.good("gpumgr service add web --share 1GiB -- sh -c 'echo up; sleep 600'")
            wait_for(lambda: "up" in self.sh("gpumgr service logs web").stdout, "the service runs")
        if re.search("reserve (cancel|edit) 3", line):
            made = json.loads(self.good("gpumgr reserve --gpus 1 --from 'tomorrow 09:00' --for 1h --json"))
            line = re.sub("(cancel|edit) 3", rf"\1 {made['id']}", line)
        return line


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    path = tmp_path_factory.mktemp("desk")
    with Simulator(path / "sim", "--model", "h200:8") as sim:
        flags = ("--gpu-devices", sim.dir / "dev", "--engines.docker", "", "--engines.podman", "")
        with Instance(sim, *flags, role="up") as up:
            up.sim = sim
            up.ready(8)
            d = Desk(path, up)
            wait_for(lambda: d.sh("gpumgr queue").stdout.count(" free") >= 8, "all GPUs are free")
            yield d


@pytest.fixture(autouse=True)
def tidy(desk):
    yield
    for line in ("gpumgr sim heal all", "gpumgr queue uncordon 3", "gpumgr guard restore", "GPUSIM_DIR=$HOME/other gpumgr sim stop"):
        desk.sh(line)
    for kind, gone in (("repeat", "remove"), ("reserve", "cancel"), ("service", "remove")):
        for row in desk.rows(kind):
            desk.sh(f"gpumgr {kind} {gone} {row['id']}")
    now = json.loads(desk.good("gpumgr queue --json"))
    for job in now["waiting"] + now["running"]:
        desk.sh(f"gpumgr cancel --force {job['id']}")
    wait_for(lambda: not desk.rows("service"), "no service is left")


@pytest.mark.parametrize("example", commands())
def test_it_does_what_is_printed(desk, example):
    line = desk.in_place(example)
    if ELSEWHERE.search(line):
        desk.good(ELSEWHERE.sub("gpumgr config", line))
    elif NO_ENGINE.search(line):
        done = desk.sh(line)
        assert done.returncode == 0 or "engine" in done.stderr.lower() or "image" in done.stderr, f"{line}: exit {done.returncode}: {done.stderr}"
    elif "gpumgr top" in line:
        desk.good(f"{line} --once")
    elif "--pty" in line:
        assert "hello" in desk.good(f"(sleep 1; echo 'echo hel''lo; exit') | script -qec '{line}' /dev/null")
    elif re.search("sim (start|stop)", line):
        desk.good("export GPUSIM_DIR=$HOME/other\n" + ("gpumgr sim start\n" if "stop" in line else "") + line.replace("--for 30", "--for 1"))
    elif LAST.search(line):
        desk.begins(line)
    else:
        desk.good(line.replace("--for 60", "--for 1"))


@pytest.mark.parametrize("page, text", [pytest.param(p, b, id=f"{p}: {b[:30]}") for p, b in blocks() if b.startswith("{") and "..." not in b])
def test_a_file_is_one_that_is_taken(desk, page, text):
    (desk.path / "job.json").write_text(text)
    desk.good("gpumgr submit --dry-run --file job.json" if {"command", "jobs"} & set(json.loads(text)) else "gpumgr config --config job.json")
