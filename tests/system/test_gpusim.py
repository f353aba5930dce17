"""gpusim and gpusim-task as processes: who may have the directory, what is left behind, tasks that end and tasks that are
killed, sentences for people, the day it plays. What NVML shows of it is the matter of test_sim_library.py."""

import os
import re
import signal
import socket
import struct
import subprocess
import time

import pytest

from simulator import BUILD, Simulator, wait_for

GPUSIM, TASK = BUILD / "sim/gpusim", BUILD / "sim/gpusim-task"


def run(program, *args, **env):
    return subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=60, env={**os.environ, **env})


def task(sim, *args):
    return run(TASK, *args, GPUSIM_DIR=str(sim.dir))


def tasks_on(sim, gpu):
    return int(re.search(r"(\d+) tasks?", sim.say("list").splitlines()[gpu]).group(1))


def test_leaves_nothing_behind(tmp_path):
    home = tmp_path / "new" / "sim"
    p = subprocess.Popen([GPUSIM, "--dir", home, "--day"], stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline().startswith("gpusim: 1 GPU in ")
    assert {"gpus", "sock", "kmsg", "dev", "lock"} <= set(os.listdir(home))
    assert (home / "gpus").stat().st_mode & 0o777 == 0o644
    p.send_signal(signal.SIGTERM)
    assert p.wait(30) == 0
    assert not home.exists()


@pytest.mark.parametrize("args, names", [
    ([], ["h200"]), (["--gpus", 2], ["h200"] * 2), (["--model", "a100:2,p100"], ["a100", "a100", "p100"]),
    (["--model", "h200,p100", "--gpus", 5], ["h200", "p100", "h200", "p100", "h200"]), (["--model", "a100:3", "--gpus", 1], ["a100"]),
])
def test_which_cards(tmp_path, args, names):
    with Simulator(tmp_path, *args) as s:
        assert [g["model"] for g in s.facts()["gpus"]] == names


def test_one_simulator_a_directory(tmp_path):
    with Simulator(tmp_path) as s:
        second = run(GPUSIM, "--dir", tmp_path)
        assert second.returncode != 0 and "another simulator runs there" in second.stderr
        assert s.say("list")


def test_a_killed_one_is_replaced(tmp_path):
    s = Simulator(tmp_path)
    s.process.kill()
    s.process.wait()
    with Simulator(tmp_path) as again:
        wait_for(lambda: task(again, "--work", "0.05").returncode == 0, "the new one answers")


def test_a_tied_one_ends_with_its_parent(tmp_path):
    shell = subprocess.Popen(["sh", "-c", f'"{GPUSIM}" --dir "{tmp_path}/s" --tied & wait'], stdout=subprocess.DEVNULL)
    wait_for(lambda: (tmp_path / "s/sock").exists(), "gpusim listens")
    shell.kill()
    shell.wait()
    wait_for(lambda: not (tmp_path / "s").exists(), "gpusim ends and cleans up")


def test_a_deep_directory(tmp_path):
    deep = tmp_path / ("d" * 100) / ("e" * 60)
    p = subprocess.Popen([GPUSIM, "--dir", deep], stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: (deep / "sock").exists(), "gpusim listens")
        assert run(TASK, "--work", "0.05", GPUSIM_DIR=str(deep)).returncode == 0
    finally:
        p.terminate()
        p.wait(30)


@pytest.mark.alone
def test_a_task_and_its_end(tmp_path):
    with Simulator(tmp_path, "--gpus", 2) as s:
        began = time.monotonic()
        done = task(s, "--gpu", 1, "--work", "0.7")
        assert done.returncode == 0 and 0.7 <= time.monotonic() - began < 1.2
        assert [line.split()[0] for line in done.stdout.splitlines()] == ["start", "end", "elapsed"]
        assert done.stdout.splitlines()[2].split()[1] == "0.700"
        assert tasks_on(s, 1) == 0


def test_a_killed_task_is_gone_at_once(tmp_path):
    with Simulator(tmp_path) as s:
        t = s.task("--forever", "--memory", "3G")
        wait_for(lambda: s.gpu()["used_bytes"] == 3 << 30, "the task holds its memory")
        assert [p["pid"] for p in s.gpu()["processes"]] == [t.pid]
        assert any(f.endswith("dev/nvidia0") for f in (os.readlink(f"/proc/{t.pid}/fd/{n}") for n in os.listdir(f"/proc/{t.pid}/fd")))
        t.kill()
        t.wait()
        wait_for(lambda: tasks_on(s, 0) == 0, "the task is gone", 1)


def test_a_task_uses_what_is_visible_to_it(tmp_path):
    with Simulator(tmp_path, "--model", "h200:3,a100", "--mig") as s:
        gpus = s.facts()["gpus"]
        part = gpus[3]["mig"][1]
        for visible, args, want in (("2,1", (), [1, 2]), (gpus[1]["uuid"], (), [1]), (part["uuid"], (), [3]), ("1,9,2", (), [1]), ("2", ("--gpu", 0), [0])):
            t = s.task(*args, "--forever", "--memory", "1G", env={**s.env, "CUDA_VISIBLE_DEVICES": visible})
            wait_for(lambda: [i for i in range(4) if any(p["pid"] == t.pid for p in s.gpu(i)["processes"])] == want, f"{visible}: on {want}")
            if visible == part["uuid"]:
                assert s.gpu(3)["mig_used_bytes"][1] == 1 << 30
            t.kill()
            t.wait()
        for visible in ("", "9", "GPU-none"):
            r = run(TASK, "--work", "0.1", GPUSIM_DIR=str(s.dir), CUDA_VISIBLE_DEVICES=visible)
            assert r.returncode == 1 and "no GPU is visible" in r.stderr


@pytest.mark.parametrize("args, sentence", [
    (["--gpu", "3"], "GPU 3: no such GPU, there are 1"),
    (["--memory", "200G"], "out of memory on GPU 0: 204800 MiB asked"),
    (["--demand", "140%"], "--demand: 0% to 100%, not '140%'"),
    (["--work", "-1"], "--work: seconds of 0 or more, not '-1'"),
    (["--kind", "poem"], "no such kind of task"),
    (["--mig", "2"], "GPU 0 has no such MIG instance"),
    (["--nonsense"], "--nonsense: no such option"),
    (["words"], "'words': options only"),
])
def test_tasks_are_refused_with_a_sentence(tmp_path, args, sentence):
    with Simulator(tmp_path) as s:
        r = task(s, *args)
        assert r.returncode in (1, 2) and r.stdout == ""
        assert sentence in r.stderr and r.stderr.count("\n") == 1


def test_no_simulator(tmp_path):
    r = run(TASK, GPUSIM_DIR=str(tmp_path))
    assert r.returncode == 1 and "no simulator in" in r.stderr


@pytest.mark.parametrize("args", [
    ["--model", "voodoo"], ["--model", "h200:0"], ["--model", "h200:65"], ["--gpus", "0"], ["--gpus", "65"], ["--speed", "0"],
    ["--ambient", "nan"], ["--seed", "x"], ["--nonsense"], ["word"], ["--model"],
])
def test_bad_options(tmp_path, args):
    r = run(GPUSIM, "--dir", tmp_path / "s", *args)
    assert r.returncode == 2 and r.stderr.startswith("gpusim: ") and r.stderr.count("\n") == 1
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("command", [
    "", "dance", "fault", "fault 7 lost", "fault 0", "fault 0 nonsense", "fault 0 xid", "fault 0 xid 0", "fault 0 xid 1.5",
    "fault 0 cap 10", "fault 0 cooling nan", "fault 0 fan-stop", "fault 0 sensor nose", "fault 0 hang foo", "load 0 150%",
    "load 0 banana", "heal 9", "costs maybe", "fault 0 ambient 1000", "fault 0 ecc many", "x " * 200,
])
def test_bad_commands(tmp_path, command):
    with Simulator(tmp_path) as s:
        r = run(GPUSIM, "--dir", s.dir, "--tell", command)
        assert r.returncode == 2 and r.stdout == "" and r.stderr.count("\n") == 1
        assert s.say("list").startswith(" 0  NVIDIA H200")


def test_a_stranger_on_the_socket(tmp_path):
    """Packets of any size and content close that connection, and nothing else."""
    with Simulator(tmp_path) as s:
        for packet in [b"x", b"\0" * 519, b"\0" * 520, b"\xff" * 520, b"\0" * 60000, struct.pack("=II", 4, 0) + b"\0" * 512]:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as c:
                c.settimeout(5)
                c.connect(str(s.dir / "sock"))
                c.send(packet)
                try:
                    assert c.recv(100) == b""
                except ConnectionResetError:
                    pass
        assert s.say("list")


def test_xids_reach_the_kernel_log(tmp_path):
    with Simulator(tmp_path, "--gpus", 2) as s:
        t = s.task("--forever", "--gpu", 1, "--name", "python3")
        wait_for(lambda: tasks_on(s, 1) == 1, "the task runs")
        s.say("fault 1 xid 31")
        s.say("fault 0 xid 119")
        lines = (s.dir / "kmsg").read_text().splitlines()
        assert re.fullmatch(rf"3,1,\d+,-;NVRM: Xid \(PCI:0000:3b:00\): 31, pid={t.pid}, name=python3, .*", lines[0])
        assert re.match(r"3,2,\d+,-;NVRM: Xid \(PCI:0000:19:00\): 119, pid='<unknown>', name=<unknown>, Timeout", lines[1])


def test_a_lost_card_ends_its_tasks(tmp_path):
    with Simulator(tmp_path, "--gpus", 2) as s:
        p = subprocess.Popen([TASK, "--forever"], env=s.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: tasks_on(s, 0) == 1, "the task runs")
        s.say("fault 0 lost")
        assert p.wait(30) == 1 and "fallen off the bus" in p.stderr.read()
        assert task(s, "--work", 0).returncode == 1 and task(s, "--work", 0, "--gpu", 1).returncode == 0
        s.say("heal 0")
        assert task(s, "--work", 0).returncode == 0


def test_strangers_may_look_but_not_touch(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs a second user")
    with Simulator(tmp_path) as s:
        for d in [tmp_path, *tmp_path.parents]:
            if d.owner() == "root" and not d.stat().st_mode & 1:
                d.chmod(d.stat().st_mode | 0o011)
        asked = lambda c: subprocess.run([GPUSIM, "--dir", s.dir, "--tell", c], capture_output=True, text=True, user=65534)
        assert asked("list").returncode == 0
        refused = asked("fault 0 lost")
        assert refused.returncode == 2 and "only root" in refused.stderr


def test_a_directory_of_another_owner(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs a second user")
    os.chown(tmp_path, 65534, 65534)
    r = run(GPUSIM, "--dir", tmp_path)
    assert r.returncode == 2 and "belongs to another user" in r.stderr and not os.listdir(tmp_path)


def test_the_day_is_lively(tmp_path):
    with Simulator(tmp_path, "--model", "h200:8", "--day", "--speed", 4) as s:
        busy = lambda: [i for i in range(8) if tasks_on(s, i)]
        wait_for(lambda: len(busy()) >= 5, "five cards at work")
        wait_for(lambda: "Xid" in (s.dir / "kmsg").read_text(), "an XID")
        wait_for(lambda: max(int(n) for n in re.findall(r"(\d+) C ", s.say("list"))) >= 78, "a hot card")
