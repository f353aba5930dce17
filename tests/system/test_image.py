"""The container image: built by Debian's Docker Engine on a base that debootstrap made, run with simulated GPUs."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from docker_engine import DockerEngine

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="a Docker Engine of one's own needs root"), pytest.mark.timeout(1500), pytest.mark.long]


def script(name, *words):
    return subprocess.run([ROOT / "script" / name, *words], capture_output=True, text=True, check=True).stdout.split()


def make_base(tree):
    """A minimal Debian, with the network as this machine has it."""
    mirror = script("mirror")[0]
    subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", tree, mirror],
                   check=True, capture_output=True)
    (tree / "etc/dpkg/dpkg.cfg.d/quick").write_text("force-unsafe-io\n")
    shutil.copy("/etc/resolv.conf", tree / "etc/resolv.conf")
    def npm(name):
        return subprocess.run(["npm", "config", "get", name], capture_output=True, text=True, cwd="/").stdout.strip()
    settings = []
    # Whom this machine trusts, in a file of its own: the package ca-certificates makes its own anew.
    trusted = next((p for p in (Path(npm("cafile")), Path("/etc/ssl/certs/ca-certificates.crt")) if p.is_file()), None)
    if trusted:
        shutil.copy(trusted, tree / "etc/ssl/here.crt")
        shutil.copy(trusted, tree / "etc/ssl/certs/ca-certificates.crt")
        settings.append("cafile=/etc/ssl/here.crt")
    if npm("registry").startswith("http"):
        settings.append(f"registry={npm('registry')}")
    (tree / "root/.npmrc").write_text("\n".join(settings) + "\n")
    for proxy in Path("/etc/apt/apt.conf.d").glob("*proxy*"):
        shutil.copy(proxy, tree / "etc/apt/apt.conf.d")


@pytest.fixture(scope="module")
def engine():
    place = Path(os.environ.get("GPUMGR_TEST_DISK", "/var/tmp")) / f"gpumgr-image.{os.getpid()}"
    tree = place / "base"
    tree.mkdir(parents=True)
    docker = None
    # dpkg waits for the disk after every file, and this tree is needed for a minute only.
    in_memory = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", tree], capture_output=True).returncode == 0
    try:
        make_base(tree)
        docker = DockerEngine(place)
        docker.import_tree(tree, "base:bookworm")
        if in_memory:
            subprocess.run(["umount", tree], check=True)
        shutil.rmtree(tree)
        # The committed tree, as a user would have it.
        source = place / "source"
        subprocess.run(["git", "-c", f"safe.directory={ROOT}", "clone", "-q", ROOT, source], check=True)
        docker("build", "--network=host", "--build-arg", "BASE=base:bookworm", "-t", "gpumgr", source, timeout=1200)
        yield docker
    finally:
        if docker:
            docker.stop()
        subprocess.run(["umount", "-l", tree], capture_output=True)
        subprocess.run(["rm", "-rf", "--one-file-system", place])


class Container:
    """Runs it without a network of its own but the loopback, which is reached by entering its namespace."""

    def __init__(self, docker, *options, words=("--sim", "2")):
        self.docker = docker
        self.id = docker("run", "-d", "--network=none", *options, "gpumgr", *words).stdout.strip()
        self.pid = docker("inspect", "-f", "{{.State.Pid}}", self.id).stdout.strip()

    def ask(self, path, method="GET", body=None, cookie=None):
        code = (
            "import sys, json, urllib.request as u, urllib.error as ue\n"
            "path, method, body, cookie = json.loads(sys.argv[1])\n"
            "h = {'Content-Type': 'application/json', 'Origin': 'http://127.0.0.1:7000'}\n"
            "if cookie: h['Cookie'] = cookie\n"
            "r = u.Request('http://127.0.0.1:7000' + path, method=method, headers=h, data=body.encode() if body else None)\n"
            "try: a = u.urlopen(r, timeout=5)\n"
            "except ue.HTTPError as e: a = e\n"
            "print(json.dumps([a.status, a.headers.get('Set-Cookie'), a.read().decode()]))\n")
        done = subprocess.run(["nsenter", "-t", self.pid, "-n", "/usr/bin/python3", "-c", code, json.dumps([path, method, body, cookie])],
                              capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else [0, None, done.stderr]

    def log(self):
        done = self.docker("logs", self.id)
        return done.stdout + done.stderr

    def wait_for(self, what, instead=lambda: "", seconds=30):
        until = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < until, instead() + self.log()[-3000:]
            time.sleep(0.1)
        return found

    def status(self):
        """The states of its GPUs, as the program says inside; or what stands in the way."""
        done = self.docker("exec", self.id, "gpumgr", "status", "--json", check=False)
        if done.returncode:
            return f"gpumgr status: exit {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return [g["state"] for g in json.loads(done.stdout)["gpus"]]

    def ready(self):
        self.wait_for(lambda: "with 2 GPUs" in self.log() and self.status() == ["ok", "ok"], lambda: f"{self.status()}\n")

    def remove(self):
        self.docker("rm", "-f", self.id)


def test_comes_up_and_says_what_it_lacks(engine):
    c = Container(engine)
    try:
        c.ready()
        assert c.ask("/healthz")[0] == 401  # it listens on all addresses: nothing is open there
        link = c.wait_for(lambda: re.search(r"/signin#(\S+)", c.log())).group(1)
        assert "--privileged" in c.log() and "--pid=host" in c.log()
        assert "http://0.0.0.0:7000" in c.log()
        status, _, page = c.ask("/")
        assert status == 200 and "<title" in page
        assert c.ask("/api/v1/gpus")[0] == 401
        status, cookie, _ = c.ask("/api/v1/session", "POST", json.dumps({"link": link}))
        assert status == 204 and cookie
        status, _, text = c.ask("/api/v1/gpus", cookie=cookie.split(";")[0])
        assert status == 200 and len(json.loads(text)["gpus"]) == 2
    finally:
        c.remove()


def all_rights(docker):
    """--privileged, or what of it gpumgr wants where the Engine itself may not give everything."""
    for options in (["--privileged"], ["--cap-add=SYS_ADMIN"]):
        if docker("run", "--rm", "--network=none", "--entrypoint=true", *options, "gpumgr", check=False).returncode == 0:
            return options
    pytest.skip("the Engine may give no container the right to set limits")


def test_lacks_nothing_when_it_has_all(engine):
    c = Container(engine, *all_rights(engine), "--pid=host")
    try:
        c.ready()
        assert "in this container: without" not in c.log()
        said = engine("exec", c.id, "gpumgr", "doctor", check=False).stdout
        assert "has the rights and the sight" in said
    finally:
        c.remove()


def test_a_stop_is_clean(engine):
    c = Container(engine)
    try:
        c.ready()
        began = time.monotonic()
        engine("stop", "-t", "20", c.id)
        assert time.monotonic() - began < 15
        assert engine("inspect", "-f", "{{.State.ExitCode}}", c.id).stdout.strip() == "0"
    finally:
        c.remove()
