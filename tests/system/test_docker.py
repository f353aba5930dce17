"""Real container engines: what Docker and Podman keep of a deadline, what the node learns of their containers and when, and
our program as Docker's plugin."""

import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from docker_engine import DOCKER, DockerEngine
from engine_follow import Follow, Sampler
from instance import GPUMGR, clean_env
from podman_engine import LIMITS, PodmanEngine
from simulator import wait_for

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="an engine needs root"), pytest.mark.timeout(300)]
RUN = ["--network", "none"]


def scratch():
    return Path(tempfile.mkdtemp(prefix="gd.", dir="/tmp"))


@pytest.fixture(scope="module")
def tree():
    """A root directory with nothing but busybox."""
    root = scratch()
    (root / "bin").mkdir()
    shutil.copy(shutil.which("busybox") or "/bin/busybox", root / "bin" / "busybox")
    for name in ("sh", "sleep", "true", "cat"):
        os.link(root / "bin" / "busybox", root / "bin" / name)
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def docker(tree):
    where = scratch()
    engine = DockerEngine(where)
    engine.import_tree(tree, "tiny:1")
    yield engine
    engine.stop()
    shutil.rmtree(where, ignore_errors=True)


@pytest.fixture(scope="module")
def podman(tree):
    if not shutil.which("podman"):
        pytest.skip("no podman here")
    where = scratch()
    engine = PodmanEngine(where)
    engine.import_tree(tree, "tiny:1")
    yield engine
    engine.stop()
    shutil.rmtree(where, ignore_errors=True)


@pytest.fixture
def spot():
    path = scratch()
    yield path
    shutil.rmtree(path, ignore_errors=True)


def env_for(docker, **more):
    return clean_env(DOCKER_HOST=f"unix://{docker.socket}", PATH=f"{Path(DOCKER).parent}:{os.environ['PATH']}", **more)


def gpumgr(docker, *words, **more):
    return subprocess.run([GPUMGR, *map(str, words)], env=env_for(docker, **more), capture_output=True, text=True, timeout=120)


def events_of(docker, identity, since):
    """The engine's own clock for what happened to a container."""
    got = docker("events", "--since", f"{since:.3f}", "--until", f"{time.time():.3f}", "--filter", f"container={identity}", "--format", "{{json .}}")
    return {e["Action"]: e["timeNano"] / 1e9 for e in map(json.loads, got.stdout.splitlines())}


# ---- the deadline in the container ----


def stored_labels(docker, identity):
    config = json.loads((docker.dir / "data" / "containers" / identity / "config.v2.json").read_text())
    return config["Config"]["Labels"]


def test_a_deadline_lives_in_the_containers_own_configuration(docker):
    made = gpumgr(docker, "docker", "create", "--deadline", "1m30s", "--period", "2m", "--priority", "5", "--tenant", "vision",
                  *RUN, "--label", "other=x", "tiny:1", "sleep", "--deadline", "7")
    assert made.returncode == 0, made.stderr
    identity = made.stdout.strip()
    want = {"gpumgr.deadline": "1m30s", "gpumgr.period": "2m", "gpumgr.priority": "5", "gpumgr.tenant": "vision", "other": "x"}
    assert stored_labels(docker, identity) == want
    assert json.loads(docker("inspect", identity).stdout)[0]["Config"]["Cmd"] == ["sleep", "--deadline", "7"]

    docker.process.send_signal(signal.SIGTERM)
    docker.process.wait(60)
    docker.start()
    assert json.loads(docker("inspect", identity).stdout)[0]["Config"]["Labels"] == want
    assert stored_labels(docker, identity) == want
    with Follow(docker.socket) as follow:
        follow.ask(identity)
        known = follow.wait(identity, news="facts", state="created")
        assert (known["deadline_ms"], known["period_ms"], known["priority"], known["tenant"]) == (90000, 120000, 5, "vision")
    docker("rm", identity)


@pytest.mark.parametrize("words,why", [
    (["--deadline", "soon"], 'gpumgr docker: --deadline: "soon" is not a length of time'),
    (["--deadline", "30"], "has a number without a unit"),
    (["--deadline", "-5s"], "is not a length of time"),
    (["--deadline", "0ms"], "is not from 1ms"),
    (["--deadline", "1s", "--period", "100ms"], "is shorter than the deadline"),
    (["--label", "gpumgr.deadline=often"], "is not a length of time"),
])
def test_nonsense_is_refused_before_docker_is_called(spot, words, why):
    called = spot / "called"
    (spot / "docker").write_text(f"#!/bin/sh\necho called >{called}\n")
    (spot / "docker").chmod(0o755)
    got = subprocess.run([GPUMGR, "docker", "run", *words, "tiny:1"], env=clean_env(PATH=f"{spot}:{os.environ['PATH']}"),
                         capture_output=True, text=True)
    assert got.returncode == 2 and why in got.stderr and len(got.stderr.splitlines()) == 1
    assert not called.exists()


def test_every_other_word_passes_unchanged(spot):
    (spot / "docker").write_text('#!/bin/sh\nprintf "%s\\n" "$0" "$@"\nexit 37\n')
    (spot / "docker").chmod(0o755)
    odd = ["run", "-e", "A=b c", "-v", "/a:/b", "--deadline", "5s", "--name", "", "img", "--deadline", "x", "", "a\tb", "--", "ü"]
    got = subprocess.run([GPUMGR, "docker", "--context", "c", *odd], env=clean_env(PATH=f"{spot}:{os.environ['PATH']}"),
                         capture_output=True, text=True)
    assert got.returncode == 37
    assert got.stdout.splitlines()[1:] == ["--context", "c", "run", "-e", "A=b c", "-v", "/a:/b", "--name", "",
                                           "--label=gpumgr.deadline=5s", "img", "--deadline", "x", "", "a\tb", "--", "ü"]


def test_without_docker_it_says_so(spot):
    got = subprocess.run([GPUMGR, "docker", "run", "--deadline", "5s", "img"], env=clean_env(PATH=str(spot)), capture_output=True, text=True)
    assert got.returncode == 1 and got.stderr == "gpumgr docker: there is no program docker on the path\n"


# ---- Docker's plugin ----


@pytest.fixture
def plugged(docker, spot):
    """Docker's own program with our plugin installed for one user."""
    got = gpumgr(docker, "docker", "install", DOCKER_CONFIG=spot)
    assert got.returncode == 0, got.stderr
    link = spot / "cli-plugins" / "docker-gpu"
    assert stat.S_ISLNK(link.lstat().st_mode) and link.resolve() == GPUMGR.resolve()
    def call(*words):
        return subprocess.run([DOCKER, *map(str, words)], env=env_for(docker, DOCKER_CONFIG=spot), capture_output=True, text=True, timeout=120)
    return call


def test_docker_gpu_run(docker, plugged):
    assert "gpu*" in plugged("--help").stdout
    got = plugged("gpu", "run", "--deadline", "30s", *RUN, "--name", "plugged", "tiny:1", "sh", "-c", "echo from the inside; exit 3")
    assert (got.returncode, got.stdout) == (3, "from the inside\n"), got.stderr
    inspected = json.loads(docker("inspect", "plugged").stdout)[0]
    assert inspected["Config"]["Labels"] == {"gpumgr.deadline": "30s"}
    docker("rm", "plugged")


def test_docker_gpu_with_dockers_own_flags(docker, plugged, spot):
    got = subprocess.run([DOCKER, "--host", f"unix://{docker.socket}", "gpu", "create", "--deadline", "1s", *RUN, "tiny:1", "true"],
                         env=clean_env(DOCKER_CONFIG=spot, PATH=os.environ["PATH"]), capture_output=True, text=True, timeout=120)
    assert got.returncode == 0, got.stderr
    assert stored_labels(docker, got.stdout.strip()) == {"gpumgr.deadline": "1s"}
    docker("rm", got.stdout.strip())


def test_docker_gpu_refuses_and_helps(docker, plugged):
    before = docker("ps", "-aq").stdout
    got = plugged("gpu", "run", "--deadline", "never", "tiny:1")
    assert got.returncode != 0 and '"never" is not a length of time' in got.stderr
    assert docker("ps", "-aq").stdout == before
    assert "docker gpu COMMAND" in plugged("gpu").stdout
    assert plugged("gpu", "ps", "--help").stdout.startswith("usage: gpumgr ps")
    got = plugged("gpu", "fly")
    assert got.returncode != 0 and 'no such command as "fly"' in got.stderr


# ---- what the node learns ----


def api(docker, method, path, body=None):
    words = ["curl", "-sS", "--unix-socket", docker.socket, "-X", method, f"http://docker{path}"]
    if body is not None:
        words += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_label_set_by_any_client(docker):
    """As a compose file's would be: by the API, without our program."""
    with Follow(docker.socket) as follow:
        labels = {"gpumgr.deadline": "500ms", "com.docker.compose.project": "p"}
        made = json.loads(api(docker, "POST", "/containers/create?name=composed",
                              {"Image": "tiny:1", "Cmd": ["sleep", "100"], "Labels": labels, "HostConfig": {"NetworkMode": "none"}}))
        api(docker, "POST", f"/containers/{made['Id']}/start")
        heard = follow.wait(made["Id"], news="started")
        assert (heard["name"], heard["image"], heard["deadline_ms"], heard["engine"], heard["state"]) == ("composed", "tiny:1", 500, "docker", "running")
        whole = follow.wait(made["Id"], news="facts", state="running")
        assert whole["pid"] > 0 and abs(whole["created"] - time.time()) < 60
        assert f"docker/{made['Id']}" in Path(f"/proc/{whole['pid']}/cgroup").read_text()
        docker("rm", "-f", made["Id"])
        follow.wait(made["Id"], news="gone", state="removed", deadline_ms=500)


@pytest.mark.alone
def test_starts_ends_and_renames_are_news_at_once(docker, spot):
    sampler = Sampler(spot)
    late = []
    with Follow(docker.socket, "", spot) as follow:
        wait_for(lambda: sampler.base() == 0, "all is well")
        for i in range(5):
            since = time.time() - 1
            identity = docker("run", "-d", *RUN, "--name", f"n{i}", "--label", "gpumgr.deadline=30s", "tiny:1", "sleep", "100").stdout.strip()
            started = follow.wait(identity, news="started")
            docker("rename", f"n{i}", f"m{i}")
            follow.wait(identity, name=f"m{i}", deadline_ms=30000)
            docker("kill", identity)
            ended = follow.wait(identity, news="ended", state="exited")
            docker("rm", identity)
            gone = follow.wait(identity, news="gone")
            clock = events_of(docker, identity, since)
            late += [started["at"] - clock["start"], ended["at"] - clock["die"], gone["at"] - clock["destroy"]]
            # The sampler is told when the container is made, well before its first process runs, and again at its start.
            assert any(at <= clock["start"] for at in sampler.announced(clock["create"] - 0.01)), (clock, sampler.hunts[-5:])
            assert [at for at in sampler.announced(clock["start"] - 0.001) if at - clock["start"] < 0.1]
    assert all(-0.01 < x < 0.1 for x in late), late


def test_a_label_that_makes_no_sense(docker):
    with Follow(docker.socket) as follow:
        identity = docker("run", "-d", *RUN, "--label", "gpumgr.deadline=whenever", "tiny:1", "sleep", "100").stdout.strip()
        heard = follow.wait(identity, news="started")
        assert heard["deadline_ms"] == 0 and heard["bad_label"].startswith('label gpumgr.deadline: "whenever" is not a length of time')
        docker("rm", "-f", identity)


def test_containers_that_ran_before_us(docker):
    identity = docker("run", "-d", *RUN, "--name", "early", "--label", "gpumgr.deadline=2m", "tiny:1", "sleep", "100").stdout.strip()
    with Follow(docker.socket) as follow:
        known = follow.wait(identity, news="facts", state="running")
        assert (known["name"], known["deadline_ms"]) == ("early", 120000)
        follow.wait(identity, pid=int(docker("inspect", "--format", "{{.State.Pid}}", identity).stdout))
        docker("rm", "-f", identity)
        follow.wait(identity, news="gone")


def test_a_container_with_device_nodes_of_its_own(docker):
    with Follow(docker.socket) as follow:
        plain = docker("run", "-d", *RUN, "tiny:1", "sleep", "100").stdout.strip()
        own = docker("run", "-d", *RUN, "--device", "/dev/null:/dev/nvidia0", "tiny:1", "sleep", "100").stdout.strip()
        assert not follow.wait(plain, news="facts", state="running")["own_devices"]
        assert follow.wait(own, news="facts", state="running", own_devices=True)
        docker("rm", "-f", plain, own)


def test_somebody_opens_a_device_node_of_a_container(docker, spot):
    """Long after its start, and nothing that the engine would tell of: the file inside is watched."""
    sampler = Sampler(spot)
    with Follow(docker.socket, "", spot) as follow:
        own = docker("run", "-d", *RUN, "--device", "/dev/null:/dev/nvidia0", "tiny:1", "sh", "-c",
                     "while :; do sleep 0.2; if [ -e /go ]; then cat /dev/nvidia0; break; fi; done; sleep 100").stdout.strip()
        root = follow.wait(own, news="facts", state="running", own_devices=True)["pid"]
        wait_for(lambda: time.time() - max(sampler.announced(0)) > 1, "quiet")
        since = time.time()
        Path(f"/proc/{root}/root/go").touch()
        told = wait_for(lambda: [h for h in sampler.hunts if h[0] >= since and h[4] == 0], "the sampler expects somebody on that GPU")[0]
        assert os.geteuid() != 0 or told[3] > 0, "and it is said who"
        docker("rm", "-f", own)


def test_a_container_is_expected_before_its_engine_says_so(docker, spot):
    """Its cgroup is made before its first process: no engine is asked here."""
    sampler = Sampler(spot)
    made = docker("create", *RUN, "tiny:1", "sleep", "100").stdout.strip()
    with Follow("", "", spot):
        wait_for(lambda: sampler.base() == 0, "it runs")
        since = time.time()
        docker("start", made)
        clock = events_of(docker, made, since - 1)
        told = wait_for(lambda: sampler.announced(since), "the sampler expects somebody")
        assert told[0] < clock["start"], (told, clock)
    docker("rm", "-f", made)


def test_a_stopped_engine(docker, spot):
    """SIGSTOP: what is known stays, nobody waits, the samplers look by themselves; afterwards nothing was missed."""
    sampler = Sampler(spot)
    identity = docker("run", "-d", *RUN, "--name", "before", "tiny:1", "sleep", "100").stdout.strip()
    with Follow(docker.socket, "", spot) as follow:
        follow.wait(identity, news="facts", state="running")
        wait_for(lambda: sampler.base() == 0, "all is well")
        docker.process.send_signal(signal.SIGSTOP)
        try:
            wait_for(lambda: sampler.base() == 40, "looks of its own")
            assert follow.ask(identity)["name"] == "before"
            assert not follow.ask("a" * 64)["known"] and follow.answers_at_once("a" * 64)
            # Its containers end all the same.
            os.kill(follow.ask(identity)["pid"], signal.SIGKILL)
        finally:
            docker.process.send_signal(signal.SIGCONT)
        follow.wait(identity, news="ended", state="exited", timeout=20)
        wait_for(lambda: sampler.base() == 0, "well again")
        docker("rm", identity)
        follow.wait(identity, news="gone")


def test_stopped_when_we_start(docker, spot):
    sampler = Sampler(spot)
    docker.process.send_signal(signal.SIGSTOP)
    try:
        with Follow(docker.socket, "", spot) as follow:
            wait_for(lambda: sampler.base() == 40, "looks of its own")
            assert follow.ends_at_once()
    finally:
        docker.process.send_signal(signal.SIGCONT)


def test_a_restarted_engine(docker, spot):
    """What ended while the engine was away is noticed when it is back; what starts afterwards too."""
    sampler = Sampler(spot)
    identity = docker("run", "-d", *RUN, "--name", "old", "tiny:1", "sleep", "100").stdout.strip()
    with Follow(docker.socket, "", spot) as follow:
        follow.wait(identity, news="facts", state="running")
        docker.process.send_signal(signal.SIGTERM)
        docker.process.wait(60)
        wait_for(lambda: sampler.base() == 40, "looks of its own")
        docker.start()
        follow.wait(identity, news="ended", timeout=20)
        wait_for(lambda: sampler.base() == 0, "well again")
        fresh = docker("run", "-d", *RUN, "--label", "gpumgr.deadline=3s", "tiny:1", "sleep", "100").stdout.strip()
        assert follow.wait(fresh, news="started")["deadline_ms"] == 3000
        docker("rm", "-f", identity, fresh)


@pytest.mark.alone
def test_running_containers_cost_next_to_nothing(docker):
    names = docker("run", "-d", *RUN, "tiny:1", "sleep", "1000").stdout.split()
    with Follow(docker.socket) as follow:
        for _ in range(9):
            names += docker("run", "-d", *RUN, "tiny:1", "sleep", "1000").stdout.split()
        for identity in names:
            follow.wait(identity, state="running", known=True)
        before, at = follow.cpu(), time.monotonic()
        time.sleep(5)
        share = (follow.cpu() - before) / (time.monotonic() - at)
        assert share < 0.01, f"{share:.2%} of a core while nothing happens"
        assert follow.memory() < 4e6
    docker("rm", "-f", *names)


# ---- Podman ----


def test_podman_works_too(podman, docker):
    """Its service looks for events four times a second, so they come as late as that."""
    with Follow(docker.socket, podman.socket) as follow:
        since = time.time()
        made = subprocess.run([GPUMGR, "podman", *map(str, podman.words[1:]), "run", "-d", "--deadline", "5s", *RUN, *LIMITS, "--name", "pod1",
                               "tiny:1", "sleep", "100"], env=clean_env(), capture_output=True, text=True, timeout=60)
        assert made.returncode == 0, made.stderr
        identity = made.stdout.strip()
        heard = follow.wait(identity, news="started")
        assert (heard["name"], heard["deadline_ms"], heard["engine"], heard["image"]) == ("pod1", 5000, "podman", "localhost/tiny:1")
        assert heard["at"] - since < 10
        # The event comes first; its pid is known once the engine was asked.
        whole = wait_for(lambda: [n for n in follow.of(identity) if n.get("state") == "running" and n.get("pid")], "facts with a pid")[-1]
        assert f"libpod-{identity}" in Path(f"/proc/{whole['pid']}/cgroup").read_text()
        assert abs(whole["created"] - time.time()) < 60
        other = docker("run", "-d", *RUN, "tiny:1", "sleep", "100").stdout.strip()
        assert follow.wait(other, news="started")["engine"] == "docker"
        podman("rename", "pod1", "pod2")
        follow.wait(identity, name="pod2", deadline_ms=5000)
        podman("rm", "-f", "-t", "0", "pod2")
        follow.wait(identity, news="gone", state="removed")
        docker("rm", "-f", other)


# ---- doctor ----


def test_doctor_says_how_engines_are(docker, spot):
    def doctor(path):
        got = gpumgr(docker, "doctor", "--dir", spot / "none", "--engines.docker", path, "--engines.podman", "")
        return [line for line in got.stdout.splitlines() if "docker" in line.lower() or "engines" in line]
    assert any(f"answers at {docker.socket}" in line for line in doctor(docker.socket))
    assert any("neither Docker nor Podman is here" in line for line in doctor(spot / "nothing"))
    docker.process.send_signal(signal.SIGSTOP)
    try:
        before = time.monotonic()
        said = doctor(docker.socket)
        assert any(str(docker.socket) in line and "answers at" not in line for line in said), said
        assert time.monotonic() - before < 20
    finally:
        docker.process.send_signal(signal.SIGCONT)
