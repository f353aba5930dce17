"""Containers by command, on a real Docker Engine: which are listed, who may do what with them, changes that are put back, and that
nothing is lost, whoever is killed."""

import errno
import fcntl
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pytest

from instance import GPUMGR, Instance, clean_env, kill
from job_node import blob, job_text, words
from link import frame, text
from simulator import Simulator, wait_for
from task_containers import IMAGE, TaskEngine

pytestmark = [pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dockerd"), reason="an engine needs root and Docker")]

ADA, BOB, EVE = 61001, 61002, 61003  # EVE may use Docker's socket
DOCKERS = 61999
CONTAINER_CALL, ADD = 180, 8  # model/wire_type.h, model/wire_container_call.h
SLEEP = ("--", "sleep", "100000")
OBEYS = ("sh", "-c", "trap 'exit 0' TERM; while :; do usleep 50000; done")  # others let the engine wait for ten seconds


class Box:
    """A machine with three GPUs and a Docker Engine; `open` is where containers may mount."""

    def __init__(self, path, docker):
        self.docker, self.open = docker, path / "open"
        self.open.mkdir()
        path.chmod(0o755)
        os.chown(docker.socket, 0, DOCKERS)
        docker.socket.chmod(0o660)
        docker.socket.parent.chmod(0o755)
        self.sim = Simulator(path / "sim", "--model", "h200:3").__enter__()
        self.up = Instance(self.sim, "--gpu-devices", self.sim.dir / "dev", "--engines.docker", docker.socket, "--engines.podman", "",
                           "--jobs.mount-roots", self.open, role="up")
        self.up.ready(3)
        wait_for(lambda: self.verdicts() == ["free"] * 3, "the GPUs are free", 60)

    def end(self):
        self.up.process.terminate()
        self.up.process.wait(60)
        for line in reversed(Path("/proc/mounts").read_text().splitlines()):  # of containers that tests removed behind its back
            if line.split()[1].startswith(f"{self.up.dir}/"):
                subprocess.run(["umount", "-l", line.split()[1]], check=True)
        self.up.__exit__()
        self.sim.__exit__()

    def call(self, *words, user=None, groups=(), timeout=120):
        return subprocess.run([str(GPUMGR), *map(str, words[:1]), "--dir", str(self.up.dir), *map(str, words[1:])], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout, env=clean_env(HOME="/tmp"), user=user, group=user,
                              extra_groups=None if user is None else list(groups))

    def containers(self, *words, user=None, groups=()):
        return self.call("containers", *words, user=user, groups=groups)

    def good(self, *words, user=None, groups=()):
        got = self.containers(*words, user=user, groups=groups)
        assert got.returncode == 0 and not got.stderr, got.stderr
        return got.stdout

    def refused(self, sentence, *words, user=None, groups=()):
        got = self.containers(*words, user=user, groups=groups)
        assert got.returncode in (1, 2) and sentence in got.stderr and got.stderr.count("\n") == 1, got.stderr

    def rows(self, user=None, groups=()):
        return {c["name"]: c for c in json.loads(self.good("--json", user=user, groups=groups))}

    def verdicts(self):
        got = self.call("queue", "--json")
        return [g["verdict"] for g in json.loads(got.stdout)["gpus"]] if got.returncode == 0 else []

    def inspect(self, name):
        return json.loads(self.docker("inspect", name).stdout)[0]

    def names(self):
        return sorted(self.docker("ps", "-a", "--format", "{{.Names}}").stdout.split())


@pytest.fixture(scope="module")
def engine():
    where = Path(tempfile.mkdtemp(prefix="gc.", dir="/tmp"))
    one = TaskEngine(where)
    yield one
    one.stop()
    shutil.rmtree(where, ignore_errors=True)


@pytest.fixture(scope="module")
def box(engine, tmp_path_factory):
    b = Box(Path(tempfile.mkdtemp(prefix="gc.", dir="/tmp")), engine)
    yield b
    b.end()
    shutil.rmtree(b.open.parent, ignore_errors=True)


@pytest.fixture(autouse=True)
def nothing_left(box):
    yield
    if box.names():
        box.docker("rm", "-f", *box.names(), check=False)


# ---- adding ----

def test_one_that_is_added_runs_as_its_user_with_just_its_gpus(box):
    script = "id -u; grep -E 'NoNewPrivs|CapEff' /proc/self/status; echo $MINE; echo $CUDA_VISIBLE_DEVICES; exec sleep 100000"
    assert box.good("add", IMAGE, "--name", "ada-lab", "--gpu", "1", "--env", "MINE=a b", "--deadline", "30s", "--label", "team=vision",
                    "--ui", "8888/lab", "--", "sh", "-c", script.replace("id ", "/bin/busybox id ").replace("grep", "/bin/busybox grep"),
                    user=ADA) == "container ada-lab runs\n"
    is_ = box.inspect("ada-lab")
    assert is_["Config"]["User"] == f"{ADA}:{ADA}" and not is_["HostConfig"]["Privileged"]
    assert not {"host"} & {is_["HostConfig"][k] for k in ("NetworkMode", "PidMode", "IpcMode", "UTSMode", "UsernsMode")}
    labels = is_["Config"]["Labels"]
    assert labels["gpumgr.uid"] == str(ADA) and labels["team"] == "vision" and labels["gpumgr.deadline"] == "30s" and labels["gpumgr.ui"] == "8888/lab"
    log = wait_for(lambda: (t := box.good("logs", "ada-lab", user=ADA).splitlines()) and len(t) >= 5 and t, "its log", 60)
    assert log[0] == str(ADA) and "CapEff:\t0000000000000000" in log and "NoNewPrivs:\t1" in log and log[3] == "a b" and log[4].startswith("GPU-")
    row = box.rows(BOB)["ada-lab"]
    assert row["state"] == "running" and row["image"] == IMAGE and row["deadline"] == "30s" and [g["index"] for g in row["gpus"]] == [1]
    assert row["user"] == str(ADA) and row["is_ours"] and row["may"] == []  # bob sees it, no more
    assert "MINE" not in json.dumps(row)
    assert set(box.rows(ADA)["ada-lab"]["may"]) == {"log", "start", "stop", "restart", "remove", "edit", "shell"}
    text = box.good()
    assert "ada-lab" in text and "running" in text


def test_its_gpus_are_kept_from_the_queue_while_it_runs(box):
    box.good("add", IMAGE, "--name", "holder", "--gpus", "2", *SLEEP, user=ADA)
    wait_for(lambda: box.verdicts().count("foreign") == 2, "two are taken", 60)
    box.refused("of 2 that are asked for 1 is free", "add", IMAGE, "--gpus", "2", *SLEEP, user=BOB)
    box.refused("belongs to container holder", "add", IMAGE, "--gpu", "0", *SLEEP, user=BOB)
    box.good("add", IMAGE, "--name", "beside", "--gpu", "0", "--shared", *SLEEP, user=BOB)
    box.good("stop", "beside", user=BOB)
    box.good("stop", "holder", user=ADA)
    wait_for(lambda: box.verdicts() == ["free"] * 3, "all are free again", 60)
    job = box.call("submit", "--gpus", "3", "--", "sleep", "1000").stdout.strip()
    wait_for(lambda: json.loads(box.call("jobs", job, "--json").stdout)["state"] == "running", "a job has them", 60)
    box.refused(f"belongs to job {job}", "start", "holder", user=ADA)
    box.call("cancel", job)
    wait_for(lambda: box.verdicts() == ["free"] * 3, "they are free", 60)
    box.good("start", "holder", user=ADA)
    assert box.rows()["holder"]["state"] == "running"


def test_bad_input_is_one_sentence_and_nothing_is_left(box):
    rows = [("image: none:1 is not on this machine", ("add", "none:1")),
            ("there is no GPU 9 on this machine, which has 3", ("add", IMAGE, "--gpu", "9")),
            ("gpus: 7 are asked for, this machine has 3", ("add", IMAGE, "--gpus", "7")),
            ("name: \"a b\"", ("add", IMAGE, "--name", "a b")), ("deadline: ", ("add", IMAGE, "--deadline", "soon")),
            ("restart: \"maybe\"", ("add", IMAGE, "--restart", "maybe")), ("ui: ", ("add", IMAGE, "--ui", "x")),
            ("env: NVIDIA_VISIBLE_DEVICES follows from gpus", ("add", IMAGE, "--env", "NVIDIA_VISIBLE_DEVICES=all")),
            ("labels: gpumgr.uid is set by gpumgr itself", ("add", IMAGE, "--label", "gpumgr.uid=0")),
            ("mounts: \"data\"", ("add", IMAGE, "--mount", "data")), ("is not below one of jobs.mount_roots", ("add", IMAGE, "--mount", "/etc:/x:ro")),
            ("is not below one of jobs.mount_roots", ("add", IMAGE, "--mount", f"{box.docker.socket.parent}:/x:ro")),
            ("there is no container none on this machine", ("stop", "none")), ("\"../x\" is no name", ("stop", "../x")),
            ("frob: there is list", ("frob",)), ("start what? It needs NAME", ("start",)), ("needs --yes", ("remove", "x"))]
    for sentence, words in rows:
        box.refused(sentence, *words, user=ADA)
    assert box.names() == []
    box.good("add", IMAGE, "--name", "one", *SLEEP, user=ADA)
    box.refused("name: there is a container one already", "add", IMAGE, "--name", "one", *SLEEP, user=BOB)
    box.refused("", "add", IMAGE, "--name", "two", "--", "/no/such/program", user=BOB)
    assert box.names() == ["one"]


def test_who_writes_his_own_calls_says_nothing_to_the_engine(box):
    """A call by hand, by anybody: a record that does not say that it gives a name, and has one that goes on as a request of its own."""
    body = json.dumps({"Image": IMAGE, "Cmd": ["sleep", "100000"], "User": "0:0", "HostConfig": {"Privileged": True, "Binds": ["/:/host"]}})
    name = f"x HTTP/1.1\r\nHost: e\r\n\r\nPOST /containers/create?name=evil HTTP/1.1\r\nHost: e\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}GET /_ping?"
    image = f"{IMAGE}/json\r\nX:"
    for wanted, texts in (("name: ", (name, IMAGE)), ("image: ", ("", image))):
        record = struct.pack("<BI", 1, 0) + b"".join(map(job_text, (*texts, "", "", "", "", ""))) + words(("sleep", "1000")) + 4 * words(()) + struct.pack("<iB", 0, 0)
        call = frame(CONTAINER_CALL, struct.pack("<QB", 7, ADD) + text("") + b"\0\0" + text("") + struct.pack("<I", 0) + blob(record))
        by_hand = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.stdin.buffer.read()); sys.stdout.buffer.write(s.recv(4096))"
        got = subprocess.run([sys.executable, "-c", by_hand, str(box.up.dir / "run/containers.sock")], input=call, capture_output=True, user=ADA, group=ADA,
                             extra_groups=[], timeout=120, check=True).stdout
        assert box.names() == [], got
        assert struct.unpack_from("<i", got, 16)[0] == -errno.EINVAL and wanted.encode() in got, got


def test_mounts_have_roots_and_their_users_rights(box):
    mine, closed = box.open / "ada", box.open / "closed"
    mine.mkdir(), closed.mkdir()
    os.chown(mine, ADA, ADA)
    closed.chmod(0o700)
    box.refused("Permission denied", "add", IMAGE, "--mount", f"{closed}:/mnt", user=ADA)
    mine.chmod(0o700)
    box.refused("Permission denied", "add", IMAGE, "--mount", f"{mine}:/mnt", user=BOB)
    box.good("add", IMAGE, "--name", "data", "--mount", f"{mine}:/mnt", "--", "sh", "-c", "echo new > /mnt/file; exec sleep 100000", user=ADA)
    wait_for(lambda: (mine / "file").exists() and (mine / "file").read_text() == "new\n", "it writes there", 60)
    assert (mine / "file").stat().st_uid == ADA
    box.good("restart", "data", user=ADA)
    pin = Path(box.inspect("data")["HostConfig"]["Mounts"][0]["Source"])
    assert str(pin).startswith(f"{box.up.dir}/containers/")  # no path of hers can be changed under the engine
    box.good("stop", "data", user=ADA)
    subprocess.run(["umount", pin], check=True)  # as after a start of the machine
    box.good("start", "data", user=ADA)
    assert "/mnt/file" in box.docker("exec", "data", "/bin/busybox", "ls", "/mnt/file").stdout
    box.good("remove", "data", "--yes", user=ADA)
    assert not pin.exists() and (mine / "file").exists()
    box.good("add", IMAGE, "--name", "data", "--mount", f"{mine}:/mnt", *SLEEP, user=ADA)
    pin = Path(box.inspect("data")["HostConfig"]["Mounts"][0]["Source"])
    box.docker("rm", "-f", "data")  # behind gpumgr's back
    os.utime(pin.parent, (1, 1))
    wait_for(lambda: not pin.parent.exists(), "what was bound for it is let go", 60)
    assert (mine / "file").exists()
    shutil.rmtree(mine), shutil.rmtree(closed)


# ---- whose they are ----

def test_who_may_do_what(box):
    """Rows: whose container; columns: who asks."""
    box.good("add", IMAGE, "--name", "of-ada", *SLEEP, user=ADA)
    box.docker("run", "-d", "--name", "elsewhere", "--network", "none", "-e", "NVIDIA_VISIBLE_DEVICES=all", "-e", "SECRET=1", IMAGE, "sleep", "100000")
    box.docker("run", "-d", "--name", "no-gpu", "--network", "none", IMAGE, "sleep", "100000")
    eve = {"user": EVE, "groups": [DOCKERS]}
    assert set(box.rows(BOB)) == {"of-ada", "elsewhere"} and "SECRET" not in box.good("--json", user=BOB)
    may = {who: {n: bool(c["may"]) for n, c in box.rows(**kw).items()} for who, kw in
           {"ada": {"user": ADA}, "bob": {"user": BOB}, "eve": eve, "root": {}}.items()}
    assert may == {"ada": {"of-ada": True, "elsewhere": False}, "bob": {"of-ada": False, "elsewhere": False},
                   "eve": {"of-ada": True, "elsewhere": True}, "root": {"of-ada": True, "elsewhere": True}}
    for words in (("stop", "of-ada"), ("start", "of-ada"), ("restart", "of-ada"), ("remove", "of-ada", "--yes"), ("show", "of-ada"),
                  ("logs", "of-ada"), ("edit", "of-ada", "--env", "A=b", "--yes")):
        box.refused(f"container of-ada is {ADA}'s", *words, user=BOB)
    for words in (("stop", "elsewhere"), ("show", "elsewhere"), ("logs", "elsewhere"), ("remove", "elsewhere", "--yes")):
        box.refused("container elsewhere was started through the engine itself", *words, user=ADA)
    for name in ("of-ada", "elsewhere"):
        box.good("stop", name, **eve), box.good("start", name, **eve), box.good("logs", name, **eve)
    box.refused("container no-gpu has nothing to do with GPUs", "stop", "no-gpu")
    assert box.inspect("no-gpu")["State"]["Running"]
    box.good("remove", "of-ada", "--yes", user=ADA)
    assert "of-ada" not in box.names()


def test_an_image_cannot_say_whose_container_it_is(box):
    tree = Path(tempfile.mkdtemp(dir="/tmp"))
    (tree / "bin").mkdir()
    shutil.copy(shutil.which("busybox") or "/bin/busybox", tree / "bin/sleep")
    box.docker.import_tree(tree, "evil:1", f'LABEL gpumgr.uid="{BOB}"')
    shutil.rmtree(tree)
    box.docker("run", "-d", "--name", "trap", "--network", "none", "evil:1", "/bin/sleep", "100000")
    row = box.rows(BOB)["trap"]
    assert not row["is_ours"] and row["may"] == []
    box.refused("started through the engine itself", "edit", "trap", "--yes", "--", "/bin/sleep", "1", user=BOB)
    box.refused("carries labels that only gpumgr sets", "add", "evil:1", user=ADA)


# ---- changes ----

def test_a_change_is_shown_and_made_and_keeps_the_rest(box):
    mine = box.open / "kept"
    mine.mkdir()
    os.chown(mine, ADA, ADA)
    box.good("add", IMAGE, "--name", "work", "--gpu", "2", "--env", "A=1", "--env", "B=2", "--label", "team=x", "--mount", f"{mine}:/mnt", *SLEEP, user=ADA)
    before = box.inspect("work")
    out = box.good("edit", "work", "--env", "A=3", "--env", "B", "--env", "C=4", "--deadline", "1m", "--yes", user=ADA)
    for line in ("env.A: 1 -> 3", "env.B: 2 -> (none)", "env.C: (none) -> 4", "deadline: (none) -> 1m", "It runs: it is stopped and started anew"):
        assert line in out, out
    after = box.inspect("work")
    assert after["Id"] != before["Id"] and after["State"]["Running"] and box.names() == ["work"]
    env = after["Config"]["Env"]
    assert "A=3" in env and "C=4" in env and not [v for v in env if v.startswith("B=")]
    assert after["Config"]["Labels"]["team"] == "x" and after["Config"]["Labels"]["gpumgr.uid"] == str(ADA)
    assert [v for v in env if v.startswith("CUDA_VISIBLE")] == [v for v in before["Config"]["Env"] if v.startswith("CUDA_VISIBLE")]
    assert after["Config"]["Cmd"] == ["sleep", "100000"] and after["HostConfig"]["Mounts"][0]["Target"] == "/mnt"
    assert after["HostConfig"]["SecurityOpt"] == ["no-new-privileges"] and after["Config"]["User"] == f"{ADA}:{ADA}"
    box.refused("nothing would change", "edit", "work", "--env", "A=3", "--yes", user=ADA)
    box.refused("image: none:1 is not on this machine", "edit", "work", "--image", "none:1", "--yes", user=ADA)
    box.refused("there is no GPU 9", "edit", "work", "--gpu", "9", "--yes", user=ADA)
    assert box.inspect("work")["Id"] == after["Id"]
    shutil.rmtree(mine, ignore_errors=True)


def test_a_change_that_cannot_start_is_put_back(box):
    box.good("add", IMAGE, "--name", "work", "--env", "A=1", *SLEEP, user=ADA)
    before = box.inspect("work")
    box.refused("work is as it was before", "edit", "work", "--yes", "--", "/no/such/program", user=ADA)
    box.refused("ended at once with exit code 7; work is as it was before", "edit", "work", "--yes", "--", "sh", "-c", "exit 7", user=ADA)
    after = box.inspect("work")
    assert after["Id"] == before["Id"] and after["State"]["Running"] and box.names() == ["work"]
    box.good("stop", "work", user=ADA)
    box.good("edit", "work", "--yes", "--env", "A=2", user=ADA)
    assert not box.inspect("work")["State"]["Running"] and box.names() == ["work"]  # one that did not run does not


def test_one_from_elsewhere_keeps_what_gpumgr_does_not_know(box):
    box.docker("volume", "create", "named")
    box.docker("run", "-d", "--name", "foreign", "--network", "none", "-e", "NVIDIA_VISIBLE_DEVICES=all", "-e", "A=1", "-v", "named:/named", "-v", "/anonymous",
               "--ulimit", "nofile=4242", "--cap-drop", "NET_RAW", "--shm-size", "123m", "--hostname", "host1", "--restart", "on-failure:3",
               "--tmpfs", "/scratch", IMAGE, "sh", "-c", "echo kept > /anonymous/file; echo kept > /named/file; exec sleep 100000")
    wait_for(lambda: box.docker("exec", "foreign", "/bin/busybox", "cat", "/named/file", check=False).stdout == "kept\n", "it wrote", 60)
    before = box.inspect("foreign")
    box.good("edit", "foreign", "--env", "A=2", "--yes")
    after = box.inspect("foreign")
    assert box.names() == ["foreign"] and after["Id"] != before["Id"] and after["State"]["Running"]
    for path in ("/anonymous/file", "/named/file"):
        assert box.docker("exec", "foreign", "/bin/busybox", "cat", path).stdout == "kept\n"
    for key in ("Ulimits", "CapDrop", "ShmSize", "RestartPolicy", "NetworkMode", "Tmpfs", "Privileged", "Runtime"):
        assert after["HostConfig"][key] == before["HostConfig"][key], key
    assert after["Config"]["Hostname"] == "host1" and after["Config"]["Cmd"] == before["Config"]["Cmd"]
    assert sorted(after["Config"]["Env"]) == sorted(["A=2" if v == "A=1" else v for v in before["Config"]["Env"]])
    box.refused("mounts: of a container that was made elsewhere", "edit", "foreign", "--mount", "/tmp:/x", "--yes")
    box.docker("run", "-d", "--rm", "--name", "fleeting", "--network", "none", "-e", "NVIDIA_VISIBLE_DEVICES=all", IMAGE, "sleep", "100000")
    box.refused("was started with --rm", "edit", "fleeting", "--env", "A=2", "--yes")


def test_a_job_s_container_is_the_queue_s(box):
    job = box.call("submit", "--image", IMAGE, "--", "sleep", "1000", user=ADA).stdout.strip()
    name = wait_for(lambda: next((n for n, c in box.rows().items() if c["job"] == int(job)), None), "the job's container", 60)
    box.refused(f"is that of job {job}", "stop", name, user=ADA)
    assert box.rows(ADA)[name]["may"] == ["log", "shell"]
    box.call("cancel", job)
    wait_for(lambda: name not in box.names(), "it is gone", 60)


def test_networks_are_kept_however_they_were_named(box):
    box.docker("network", "create", "--subnet", f"10.{os.getpid() % 200 + 20}.17.0/24", "first")
    box.docker("network", "create", "second")
    try:
        one = box.docker("network", "inspect", "-f", "{{.Id}}", "first").stdout.strip()
        address = f"10.{os.getpid() % 200 + 20}.17.9"
        for name, said in (("by-name", "first"), ("by-id", one), ("by-part", one[:12])):
            box.docker("run", "-d", "--name", name, "-e", "NVIDIA_VISIBLE_DEVICES=0", "--network", said, "--ip", address, IMAGE, *OBEYS)
            box.docker("network", "connect", "--alias", "also", "second", name)
            before = box.inspect(name)["NetworkSettings"]["Networks"]
            for value in ("1", "2"):
                box.good("edit", name, "--env", f"A={value}", "--yes")
            got = box.inspect(name)
            networks = got["NetworkSettings"]["Networks"]
            assert sorted(networks) == sorted(before) and networks["first"]["IPAddress"] == address, networks
            assert networks["second"]["Aliases"] == ["also", got["Id"][:12]], networks  # nothing of those before
            box.docker("rm", "-f", name)
    finally:
        box.docker("rm", "-f", *box.names(), check=False)
        box.docker("network", "rm", "first", "second")


def test_which_gpus_one_from_elsewhere_asked_for(box):
    uuids = [g["uuid"] for g in box.up.status()["gpus"]]
    def create(name, requests=None, words=()):
        if requests is None:
            box.docker("create", "--name", name, "--network", "none", *words, IMAGE, "sleep", "1")
            return
        body = json.dumps({"Image": IMAGE, "Cmd": ["sleep", "1"], "HostConfig": {"NetworkMode": "none", "DeviceRequests": requests}})
        answer = subprocess.run(["curl", "-s", "--unix-socket", str(box.docker.socket), "-H", "Content-Type: application/json", "-d", body,
                                 f"http://engine/containers/create?name={name}"], capture_output=True, text=True, check=True).stdout
        assert "Id" in json.loads(answer), answer
    create("flag-all", words=("--gpus", "all"))
    create("flag-two", words=("--gpus", '"device=0,2"'))
    create("flag-count", words=("--gpus", "2"))
    create("cdi-two", [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=1", f"nvidia.com/gpu={uuids[2]}"]}])
    create("cdi-all", [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}])
    create("env-index", words=("-e", "NVIDIA_VISIBLE_DEVICES=1,2"))
    create("env-uuid", words=("-e", f"NVIDIA_VISIBLE_DEVICES={uuids[0]}"))
    create("env-all", words=("-e", "NVIDIA_VISIBLE_DEVICES=all"))
    create("device", words=("--device", f"{box.sim.dir}/dev/nvidia1:/dev/nvidia1", "--device", f"{box.sim.dir}/dev/nvidiactl:/dev/nvidiactl"))
    create("bound", words=("-v", f"{box.sim.dir}/dev/nvidia2:/dev/nvidia2"))
    create("network-card", [{"Driver": "cdi", "DeviceIDs": ["other.com/net=1"]}])
    create("no-env", words=("-e", "NVIDIA_VISIBLE_DEVICES=void"))
    create("nothing")
    got = {name: "all" if c["all_gpus"] else [g["index"] for g in c["gpus"]] for name, c in box.rows().items()}
    assert got == {"flag-all": "all", "flag-two": [0, 2], "flag-count": [], "cdi-two": [1, 2], "cdi-all": "all", "env-index": [1, 2],
                   "env-uuid": [0], "env-all": "all", "device": [1], "bound": [2]}


# ---- whoever is killed ----

def test_a_name_alone_takes_nothing_of_others(box):
    """Names that changes give in between: nobody else may give them, and what has one by chance is nobody's successor."""
    precious = box.docker("create", "--name", "precious", "--network", "none", IMAGE, "sleep", "100000").stdout.strip()
    for tail in ("up", "down", "new-up", "new-down"):
        box.refused('name: "-gpumgr-" is in names that gpumgr itself gives', "add", IMAGE, "--name", f"precious-gpumgr-{tail}", *SLEEP, user=BOB)
    box.good("add", IMAGE, "--name", "own", "--", *OBEYS, user=BOB)
    box.refused("name:", "edit", "own", "--name", "precious-gpumgr-up", "--yes", user=BOB)
    other = box.docker("create", "--name", "precious-gpumgr-new-up", "--network", "none", IMAGE, "sleep", "100000").stdout.strip()
    box.docker("create", "--name", "precious-gpumgr-up", "--network", "none", IMAGE, "sleep", "100000")
    box.docker("create", "--name", "lonely-gpumgr-down", "--network", "none", IMAGE, "sleep", "100000")
    box.refused("own is as it was before", "edit", "own", "--yes", "--", "/no/such/program", user=BOB)  # what is left over is looked for now
    wait_for(lambda: "lonely" in box.names(), "it was looked for", 60)
    assert box.inspect("precious")["Id"] == precious and not box.inspect("precious")["State"]["Running"]
    assert box.inspect("precious-gpumgr-new-up")["Id"] == other


@pytest.mark.parametrize("left", ["new", "old-alone", "both-down", "both-up", "renamed-up", "renamed-down", "neither-named"])
def test_a_change_that_was_interrupted_is_put_right(box, left):
    """What a node that was killed at each step leaves, by names and label."""
    name = {"new": "xx-gpumgr-new-up", "neither-named": "xx-gpumgr-new-up", "renamed-up": "yy", "renamed-down": "yy"}.get(left, "xx")
    run = ("run", "-d", "--network", "none", "-e", "NVIDIA_VISIBLE_DEVICES=all")
    make = ("create", "--network", "none", "-e", "NVIDIA_VISIBLE_DEVICES=all")
    kill(box.up.of_program("node")[0], signal.SIGSTOP)
    try:
        old = box.docker(*run, "--name", "xx" if left == "new" else "xx-gpumgr-up", IMAGE, "sleep", "100000").stdout.strip()
        if left != "old-alone":
            how = run if left.endswith("-up") else make
            new = box.docker(*how, "--name", name, "--label", f"gpumgr.from={old}", IMAGE, "sleep", "100000").stdout.strip()
        if left != "both-up":
            box.docker("stop", "-t", "0", old)
    finally:
        kill(box.up.of_program("node")[0], signal.SIGKILL)
    want, called = (new, name) if left.endswith("-up") else (old, "xx")
    wait_for(lambda: box.names() == [called] and box.inspect(called)["Id"] == want and box.inspect(called)["State"]["Running"], f"{left}: one is left", 60)


def test_an_engine_that_dies_in_the_middle_of_a_change(box):
    began = time.time()
    box.good("add", IMAGE, "--name", "work", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done", user=ADA)
    p = subprocess.Popen([str(GPUMGR), "containers", "edit", "work", "--env", "A=1", "--yes", "--dir", str(box.up.dir)], text=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env(HOME="/tmp"))
    def is_told_to_end():  # it takes its ten seconds for that
        return "signal=15" in box.docker("events", "--since", int(began), "--until", int(time.time()) + 1, "--filter", "container=work", "--filter", "event=kill").stdout
    wait_for(is_told_to_end, "the change is under way", 60)
    box.docker.process.kill()
    box.docker.process.wait()
    try:
        out, err = p.communicate(timeout=120)
        assert p.returncode == 1 and "put back as soon as the engine answers" in err, err
        box.refused("does not run", "stop", "work", user=ADA)
    finally:  # whoever comes next needs it
        for path in (box.docker.socket, box.docker.run / "pid", *(box.docker.run / "exec/containerd").glob("containerd*")):  # killed with it
            path.unlink(missing_ok=True)
        box.docker.start()
        os.chown(box.docker.socket, 0, DOCKERS)
        box.docker.socket.chmod(0o660)
    wait_for(lambda: box.names() == ["work"] and box.inspect("work")["State"]["Running"], "it is put back", 120)
    assert not [v for v in box.inspect("work")["Config"]["Env"] if v == "A=1"]


def test_after_a_start_of_the_machine_data_are_there_before_the_container(box):
    """Engine and node begin anew, and nothing is mounted any more: the engine must not start it with an empty directory."""
    mine = box.open / "boot"
    mine.mkdir()
    os.chown(mine, ADA, ADA)
    (mine / "kept").write_text("data\n")
    box.good("add", IMAGE, "--name", "steady", "--restart", "always", "--mount", f"{mine}:/mnt", *SLEEP, user=ADA)
    box.docker.process.send_signal(signal.SIGTERM)
    box.docker.process.wait(120)
    root = box.up.dir / "containers"
    for line in reversed(Path("/proc/mounts").read_text().splitlines()):
        if line.split()[1].startswith(str(root)):
            subprocess.run(["umount", "-l", line.split()[1]], check=True)
    box.docker.start()
    os.chown(box.docker.socket, 0, DOCKERS)
    box.docker.socket.chmod(0o660)
    state = box.inspect("steady")["State"]
    assert not state["Running"] and str(root) in state["Error"], state
    kill(box.up.of_program("node")[0], signal.SIGKILL)
    wait_for(lambda: box.inspect("steady")["State"]["Running"], "it runs again", 120)
    assert box.docker("exec", "steady", "/bin/busybox", "cat", "/mnt/kept").stdout == "data\n"
    box.good("remove", "steady", "--yes", user=ADA)
    shutil.rmtree(mine)


def test_an_engine_that_hangs_makes_nobody_wait(box):
    box.good("add", IMAGE, "--name", "work", *SLEEP, user=ADA)
    os.kill(box.docker.process.pid, signal.SIGSTOP)
    try:
        waiting = [subprocess.Popen([str(GPUMGR), "containers", "--dir", str(box.up.dir)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True, env=clean_env(HOME="/tmp")) for _ in range(12)]
        wait_for(lambda: any(p.poll() is not None for p in waiting), "more than eight are refused", 60)
        job = box.call("submit", "--", "true").stdout.strip()
        wait_for(lambda: json.loads(box.call("jobs", job, "--json").stdout)["state"] == "done", "jobs run on", 60)
    finally:
        os.kill(box.docker.process.pid, signal.SIGCONT)
    for p in waiting:
        _, err = p.communicate(timeout=120)
        assert p.returncode == 0 or "try again" in err, err


def test_a_log_is_followed(box):
    box.good("add", IMAGE, "--name", "talker", "--", "sh", "-c", "i=0; while test $i -lt 20; do echo line $i; i=$((i+1)); usleep 100000; done", user=ADA)
    got = box.good("logs", "talker", "--follow", user=ADA)
    assert got.splitlines() == [f"line {i}" for i in range(20)]
    assert box.good("logs", "talker", "--tail", "3", user=ADA).splitlines() == ["line 17", "line 18", "line 19"]


def test_a_log_that_is_written_fast_is_followed_whole(box):
    write = "trap 'exit 0' TERM; echo ready; while ! test -e /open/go; do usleep 20000; done; for i in $(seq 1 30000); do echo line $i; done"
    want = [f"line {i}" for i in range(1, 30001)]
    for name, words in (("plain", ()), ("terminal", ("-t",))):
        box.docker("run", "-d", "--name", name, "--network", "none", "-e", "NVIDIA_VISIBLE_DEVICES=0", "-v", f"{box.open}:/open", *words, IMAGE, "sh", "-c", write)
        reader = subprocess.Popen([str(GPUMGR), "containers", "logs", name, "--follow", "--dir", str(box.up.dir)], stdout=subprocess.PIPE, env=clean_env(), text=True)
        assert reader.stdout.readline() == "ready\n"
        (box.open / "go").touch()
        out, _ = reader.communicate(timeout=300)
        (box.open / "go").unlink()
        assert reader.returncode == 0 and out.splitlines() == want


# ---- a shell ----

class Terminal:
    """`gpumgr containers shell` at a terminal of the test's own."""

    def __init__(self, box, name, rows, columns, user=None):
        self.fd, other = os.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen([str(GPUMGR), "containers", "shell", name, "--dir", str(box.up.dir)], stdin=other, stdout=other, stderr=other,
                                        env=clean_env(HOME="/tmp"), user=user, group=user, extra_groups=None if user is None else [], start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(other)
        self.shown = b""

    def until(self, text, timeout=60):
        end = time.monotonic() + timeout
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.shown += os.read(self.fd, 65536)
                except OSError:  # everybody at the other end is gone
                    assert text in self.shown, self.shown
        return self.shown.decode(errors="replace")

    def type(self, text):
        os.write(self.fd, text.encode())


def test_a_shell_by_command(box):
    box.good("add", IMAGE, "--name", "lab", "--", *OBEYS, user=ADA)
    at = Terminal(box, "lab", 33, 101, user=ADA)
    at.type("/bin/busybox id -u; /bin/busybox stty size; echo do''ne\r")
    shown = at.until(b"done")
    assert f"\n{ADA}\r\n" in shown
    wait_for(lambda: (at.type("/bin/busybox stty size; echo ne''xt\r"), "33 101" in at.until(b"next"))[1], "its size is the window's", 60)
    fcntl.ioctl(at.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 102, 0, 0))
    wait_for(lambda: (setattr(at, "shown", b""), at.type("/bin/busybox stty size; echo ne''xt\r"), "44 102" in at.until(b"next"))[2], "and follows it", 60)
    at.type("exit 7\r")
    assert at.process.wait(60) == 7
    gone = Terminal(box, "lab", 24, 80, user=ADA)
    gone.type("sleep 4321\r")
    wait_for(lambda: "sleep 4321" in box.docker("top", "lab").stdout, "something runs in it", 60)
    gone.process.kill()
    gone.process.wait()
    wait_for(lambda: "sleep 4321" not in box.docker("top", "lab").stdout, "nothing is left of it", 60)
    box.refused("container lab is not yours: it is entered by whoever it runs as", "shell", "lab", user=BOB)
    box.refused("there is no container none", "shell", "none", user=BOB)
    box.refused("shell what? It needs NAME", "shell")
    box.good("stop", "lab", user=ADA)
    box.refused("container lab does not run", "shell", "lab", user=ADA)


def test_one_user_cannot_take_all_shells_and_logs(box):
    box.good("add", IMAGE, "--name", "lab", "--", *OBEYS, user=ADA)
    words = [str(GPUMGR), "containers", "logs", "lab", "--follow", "--dir", str(box.up.dir)]
    many = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=clean_env(), user=ADA, group=ADA, extra_groups=[], text=True) for _ in range(20)]
    try:
        refused = wait_for(lambda: (n := [p for p in many if p.poll() is not None]) and len(n) >= 4 and n, "those beyond sixteen are refused", 120)
        assert all("try again" in (text := p.stderr.read()) or "too many" in text for p in refused)
        box.good("list", user=BOB)  # others are answered all the same
        one = Terminal(box, "lab", 24, 80)
        one.type("exit 5\r")
        assert one.process.wait(60) == 5
    finally:
        for p in many:
            p.kill()
            p.wait()
