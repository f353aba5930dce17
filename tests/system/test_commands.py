"""`gpumgr` as people call it: the real program, a directory of its own for each test, and simulated GPUs."""

import json
import os
import pty
import re
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest

from instance import GPUMGR, clean_env
from simulator import LIBRARY, ROOT, wait_for

COMMANDS = ["up", "node", "server", "status", "guard", "config", "doctor", "sim"]
SIM_WORDS = ["start", "list", "load", "fault", "heal", "exec", "stop"]


def gpumgr(*args, env=None, **kw):
    kw.setdefault("timeout", 30)
    return subprocess.run([str(GPUMGR), *map(str, args)], capture_output=True, text=True, env=env or clean_env(), **kw)


@pytest.fixture
def sim(place):
    """Four H200 and the environment in which NVML programs see them."""
    where = place / "sim"
    got = gpumgr("sim", "start", "--gpus", 4, "--sim-dir", where)
    assert got.returncode == 0, got.stderr
    yield clean_env(GPUSIM_DIR=where, GPUMGR_GPU_LIBRARY=LIBRARY, GPUMGR_DIR=place / "none")
    gpumgr("sim", "stop", "--sim-dir", where)


@pytest.fixture
def up(place):
    """A running instance on simulated GPUs; yields its directory."""
    where = place / "i"
    process = subprocess.Popen([GPUMGR, "up", "--sim", "4", "--dir", where, "--wait-ms", "100"], env=clean_env(),
                               stdout=subprocess.DEVNULL, stderr=open(place / "log", "w"))
    wait_for(lambda: samples(where), "samples")
    yield where
    process.send_signal(signal.SIGTERM)
    process.wait(30)


def samples(where):
    got = gpumgr("status", "--json", "--dir", where, env=clean_env(GPUMGR_GPU_LIBRARY="/nonexistent.so"))
    gpus = json.loads(got.stdout)["gpus"] if got.returncode == 0 else []
    return gpus and all("gpu_temperature_celsius" in g["metrics"] for g in gpus)


# ---- help ----


@pytest.mark.parametrize("args", [[], ["help"], ["--help"], ["-h"]])
def test_help_lists_every_command(args):
    got = gpumgr(*args)
    assert got.returncode == 0 and got.stderr == ""
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\S", got.stdout, re.M)
    assert "example:" in got.stdout and "Exit codes" in got.stdout


@pytest.mark.parametrize("args", [[c, "--help"] for c in COMMANDS] + [["help", c] for c in COMMANDS]
                         + [["sim", w, "--help"] for w in SIM_WORDS] + [["status", "--json", "-h"]])
def test_every_command_has_help_with_an_example(args):
    got = gpumgr(*args)
    assert got.returncode == 0 and got.stderr == ""
    assert got.stdout.startswith("usage: gpumgr ")
    assert re.search(r"^example: gpumgr |^example: GPUMGR_", got.stdout, re.M)
    assert max(map(len, got.stdout.splitlines())) <= 112


def test_fault_help_has_the_simulators_own_table():
    shown = gpumgr("sim", "fault", "--help").stdout
    for name in re.findall(r'^    \{"([a-z-]+)",', (ROOT / "sim/faults.c").read_text(), re.M):
        assert re.search(rf"^  {name}\b", shown, re.M), name


def test_version():
    assert re.fullmatch(r"gpumgr \d+\.\d+\.\d+\n", gpumgr("--version").stdout)


# ---- bad input: exit 2, one line that says all, nothing started ----

BAD_FILES = [
    ("unknown key", '{"wait_sm": 100}', ["wait_sm", "wait_ms", "10 to 60000"]),
    ("unknown nested key", '{"guard": {"hot": 80}}', ["guard.hot", "guard.hot_c", "30 to 110"]),
    ("wrong type", '{"wait_ms": "100"}', ["wait_ms", "10 to 60000"]),
    ("out of range", '{"guard": {"hot_c": 500}}', ["guard.hot_c", "30 to 110"]),
    ("unknown GPU", '{"gpus": [0, 9]}', ["gpus", "9", "0 to 3"]),
    ("not JSON", '{"wait_ms": ', ["line"]),
    ("a key twice", '{"wait_ms": 50, "wait_ms": 60}', ["wait_ms"]),
]
BAD_FLAGS = [
    ("unknown flag", ["--wait-sm", "100"], ["--wait-sm", "--wait_ms", "10 to 60000"]),
    ("wrong type", ["--wait-ms", "soon"], ["wait_ms", "soon", "10 to 60000"]),
    ("out of range", ["--wait-ms", "9"], ["wait_ms", "9", "10 to 60000"]),
    ("no value", ["--wait-ms"], ["--wait_ms"]),
    ("unknown GPU", ["--gpus", "0,4"], ["gpus", "4", "0 to 3"]),
    ("not a list of GPUs", ["--gpus", "first"], ["gpus", "first"]),
    ("unknown model", ["--sim-model", "h2000"], ["sim_model", "h2000", "h200"]),
    ("no such file", ["--config", "/no/such.json"], ["config", "/no/such.json"]),
    ("a directory", ["--config", "/tmp"], ["config", "/tmp"]),
    ("not an address", ["--listen", "here"], ["listen", "here", "ADDRESS:PORT"]),
    ("lost before silent", ["--sampler.lost-ms", "1000"], ["sampler.lost_ms", "sampler.answer_ms"]),
    ("a word", ["now"], ["now"]),
]


def assert_refused(got, place, says):
    assert got.returncode == 2, got
    assert got.stdout == ""
    assert got.stderr.count("\n") == 1 and got.stderr.endswith("\n")
    for text in says:
        assert text in got.stderr
    assert not (place / "i").exists(), "something was made"


@pytest.mark.parametrize("command", ["up", "node"])
@pytest.mark.parametrize("text,says", [r[1:] for r in BAD_FILES], ids=[r[0] for r in BAD_FILES])
def test_bad_file(place, command, text, says):
    file = place / "c.json"
    file.write_text(text)
    got = gpumgr(command, "--sim", 4, "--dir", place / "i", "--config", file)
    assert_refused(got, place, [*says, str(file)])


@pytest.mark.parametrize("args,says", [r[1:] for r in BAD_FLAGS], ids=[r[0] for r in BAD_FLAGS])
def test_bad_flags(place, args, says):
    assert_refused(gpumgr("up", "--sim", 4, "--dir", place / "i", *args), place, says)


def test_bad_variable(place):
    got = gpumgr("up", "--sim", 4, "--dir", place / "i", env=clean_env(GPUMGR_WAIT_MS="x"))
    assert_refused(got, place, ["GPUMGR_WAIT_MS", "wait_ms", "10 to 60000"])


def test_unreadable_file(place):
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    file = place / "c.json"
    file.write_text("{}")
    file.chmod(0)
    place.chmod(0o777)
    got = gpumgr("up", "--sim", 4, "--dir", place / "i", "--config", file, user=65534, group=65534, extra_groups=[])
    assert_refused(got, place, ["config", str(file), "Permission denied"])


def test_directory_of_another_owner(place):
    if os.geteuid() != 0:
        pytest.skip("needs root to give a directory away")
    other = place / "other"
    other.mkdir()
    os.chown(other, 65534, 65534)
    got = gpumgr("up", "--sim", 4, "--dir", other)
    assert_refused(got, place, ["dir", str(other), "65534"])
    assert list(other.iterdir()) == []


def test_unknown_gpu_of_a_driver_that_answers(place, sim):
    for gpus in ["7", "0,GPU-00000000-0000-0000-0000-000000000000"]:
        got = gpumgr("up", "--dir", place / "i", "--gpus", gpus, env=sim)
        assert_refused(got, place, ["gpus", gpus.split(",")[-1], "0 to 3"])


def test_a_driver_that_hangs_does_not_hang_the_check(place, sim):
    assert gpumgr("sim", "fault", 2, "hang", env=sim).returncode == 0
    got = gpumgr("up", "--dir", place / "i", "--gpus", "7", env=sim)
    assert_refused(got, place, ["gpus", "7", "0 to 3"])


def test_second_start_names_the_first(up):
    got = gpumgr("up", "--sim", 4, "--dir", up)
    assert got.returncode == 2 and got.stderr.count("\n") == 1
    pid = int(re.search(r"pid (\d+)", got.stderr)[1])
    assert "supervise" in Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.parametrize("args,says", [
    (["stauts"], "did you mean status?"),
    (["frobnicate"], "gpumgr help"),
    (["status", "--jsn"], "did you mean --json?"),
    (["status", "--watch", "0"], "0.1 to 3600"),
    (["config", "now"], "now"),
    (["sim", "strat"], "did you mean start?"),
    (["sim", "fault", "0", "xdi"], "did you mean xid?"),
    (["sim", "exec"], "which program"),
    (["doctor", "--bundle"], "needs a value"),
])
def test_slips(args, says):
    got = gpumgr(*args)
    assert got.returncode == 2 and got.stdout == ""
    assert got.stderr.count("\n") == 1 and says in got.stderr


# ---- config ----


def test_config_says_where_each_value_came_from(place):
    file = place / "gpumgr.json"
    file.write_text('{"wait_ms": 200, "guard": {"hot_c": 75}, "listen": "0.0.0.0:80", "listen_plain": true}')
    env = clean_env(GPUMGR_GUARD_HOT_C="77", GPUMGR_LISTEN=":81")
    got = json.loads(gpumgr("config", "--json", "--dir", place, "--listen", "[::1]:82", env=env).stdout)
    assert got["wait_ms"] == {"value": 200, "origin": "file", "from": str(file)}
    assert got["guard.hot_c"] == {"value": 77, "origin": "environment", "from": "GPUMGR_GUARD_HOT_C"}
    assert got["listen"] == {"value": "[::1]:82", "origin": "flag", "from": "--listen"}
    assert got["gpus"] == {"value": "all", "origin": "default", "from": ""}
    table = gpumgr("config", "--dir", place, env=env).stdout
    assert re.search(rf"^wait_ms +200 +{file}$", table, re.M)
    assert re.search(r"^guard.hot_c +77 +variable GPUMGR_GUARD_HOT_C$", table, re.M)
    assert re.search(r"^gpus +all +default$", table, re.M)


def test_config_resolved_is_what_the_supervisor_reads(place):
    out = gpumgr("config", "--resolved", "--dir", place, "--wait-ms", "250").stdout
    lines = dict(line.split("=", 1) for line in out.splitlines())
    shown = json.loads(gpumgr("config", "--json", "--dir", place, "--wait-ms", "250").stdout)
    assert lines.keys() == shown.keys()
    assert lines["wait_ms"] == "250" and lines["dir"] == str(place)


# ---- status ----


def test_status_with_nothing_there_says_what_to_do(place):
    got = gpumgr("status", "--dir", place, "--gpu-library", "/nonexistent.so")
    assert got.returncode == 1 and got.stdout == ""
    assert got.stderr.count("\n") == 1 and "gpumgr up --sim 8" in got.stderr


def test_status_asks_the_driver_where_no_daemon_runs(sim):
    got = gpumgr("status", "--json", env=sim)
    assert got.returncode == 0 and got.stderr.count("\n") == 1
    status = json.loads(got.stdout)
    assert status["source"] == "driver" and len(status["gpus"]) == 4
    for i, gpu in enumerate(status["gpus"]):
        assert (gpu["index"], gpu["model"], gpu["state"]) == (i, "NVIDIA H200", "ok")
        assert 15 < gpu["metrics"]["gpu_temperature_celsius"] < 60
        assert 40 < gpu["metrics"]["gpu_power_watts"] < 200
        assert gpu["metrics"]["gpu_power_limit_watts"] == 700
        assert gpu["metrics"]["gpu_pcie_link_width"] == 16
        assert "gpu_sm_active_ratio" in gpu["metrics"]  # needs two readings


def test_status_names_a_silent_gpu_and_shows_the_others(sim):
    gpumgr("sim", "fault", 1, "hang", env=sim)
    gpumgr("sim", "fault", 3, "lost", env=sim)
    status = json.loads(gpumgr("status", "--json", env=sim).stdout)
    assert [g["state"] for g in status["gpus"]] == ["ok", "not answering", "ok", "lost"]
    assert status["gpus"][1]["metrics"] == {} and "5 s" in status["gpus"][1]["state_reason"]


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_the_simulator_of_an_instance_is_found(up, by):
    got = gpumgr("sim", "list", *(["--dir", up] if by == "flag" else []), env=clean_env(**({"GPUMGR_DIR": up} if by == "variable" else {})))
    assert got.returncode == 0 and "H200" in got.stdout, got.stderr


def test_status_reads_the_ring(up):
    env = clean_env(GPUMGR_GPU_LIBRARY="/nonexistent.so")  # the driver is not needed
    got = gpumgr("status", "--json", "--dir", up, env=env)
    assert got.returncode == 0 and got.stderr == ""
    status = json.loads(got.stdout)
    assert status["source"] == "daemon" and len(status["gpus"]) == 4
    assert status["driver"]["state"] == "ok"
    text = gpumgr("status", "--dir", up, env=env).stdout
    assert text.startswith("4 GPUs") and "\033" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_status_numbers_are_whole_steps(up):
    raw = gpumgr("status", "--json", "--dir", up).stdout
    assert not re.search(r"\d\.\d{10,}", raw)
    status = json.loads(raw)
    for gpu in status["gpus"]:
        assert not any(v is None for v in gpu["metrics"].values())


def test_status_fresh_waits_for_a_newer_reading(place, sim):
    env = {**sim, "GPUMGR_DIR": str(place / "i")}

    def used(*flags):
        gpus = json.loads(gpumgr("status", "--json", *flags, env=env).stdout)["gpus"]
        return gpus[0]["metrics"].get("gpu_memory_used_bytes")

    process = subprocess.Popen([GPUMGR, "up", "--wait-ms", "60000"], env=env, stderr=subprocess.DEVNULL)
    try:
        before = wait_for(lambda: (samples(place / "i") and used()) == 0 and [0], "samples")[0]
        pid = int(gpumgr("sim", "load", 0, "--detach", "--memory", "9G", env=env).stdout)
        assert used("--fresh") - before >= 9 << 30
        os.kill(pid, signal.SIGTERM)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def test_watch_prints_a_line_of_json_each_time(up):
    watch = subprocess.Popen([GPUMGR, "status", "--watch", "0.1", "--json", "--dir", up], env=clean_env(),
                             stdout=subprocess.PIPE, text=True)
    times = [json.loads(watch.stdout.readline())["time"] for _ in range(5)]
    assert times == sorted(set(times))
    watch.send_signal(signal.SIGINT)
    watch.stdout.read()
    assert watch.wait(30) == 0


def test_watch_outlives_a_driver_reload(sim):
    watch = subprocess.Popen([GPUMGR, "status", "--watch", "0.1", "--json"], env=sim, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)

    def until(state):
        while (status := json.loads(watch.stdout.readline()))["driver"]["state"] != state:
            pass
        return status

    assert len(until("ok")["gpus"]) == 4
    gpumgr("sim", "fault", 0, "driver-reload", 1, env=sim)
    assert until("absent")["gpus"] == []
    assert len(until("ok")["gpus"]) == 4
    watch.send_signal(signal.SIGINT)
    watch.stdout.read()
    assert watch.wait(30) == 0


def test_watch_refreshes_in_place_and_leaves_the_terminal_as_it_was(up):
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(GPUMGR, ["gpumgr", "status", "--watch", "--dir", str(up)], clean_env(TERM="xterm"))
    seen = b""
    while seen.count(b"\033[H") < 3:
        seen += os.read(fd, 65536)
    os.write(fd, b"\x03")
    rest = b""
    try:
        while got := os.read(fd, 65536):
            rest += got
    except OSError:
        pass  # how a terminal says that nobody is left
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert b"?25l" not in seen and b"?1049h" not in seen  # the cursor was never taken, nor the screen
    assert seen.count(b"\033[2J") == 1 and b"\033[K" in seen and b"\033[32m" in seen


def test_no_color(up):
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(GPUMGR, ["gpumgr", "status", "--dir", str(up)], clean_env(TERM="xterm", NO_COLOR="1"))
    seen = b""
    try:
        while got := os.read(fd, 65536):
            seen += got
    except OSError:
        pass
    os.waitpid(pid, 0)
    assert b"H200" in seen and b"\033" not in seen


def test_output_that_cannot_be_written_is_noticed(up):
    with open("/dev/full", "w") as full:
        got = subprocess.run([GPUMGR, "status", "--dir", up], stdout=full, stderr=subprocess.PIPE, text=True, env=clean_env())
    assert got.returncode == 1 and "No space left" in got.stderr
    read, write = os.pipe()
    os.close(read)
    got = subprocess.run([GPUMGR, "status", "--dir", up], stdout=write, stderr=subprocess.PIPE, text=True, env=clean_env())
    os.close(write)
    assert got.returncode == 1 and got.stderr == ""


def test_a_daemon_that_ended_is_not_shown_as_running(place):
    process = subprocess.Popen([GPUMGR, "up", "--sim", "2", "--dir", place / "i"], env=clean_env(), stderr=subprocess.DEVNULL)
    wait_for(lambda: samples(place / "i"), "samples")
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    got = gpumgr("status", "--dir", place / "i", "--gpu-library", "/nonexistent.so")
    assert got.returncode == 1 and "no gpumgr runs here" in got.stderr


def test_anyone_may_look(up):
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    up.parent.chmod(0o755)
    got = gpumgr("status", "--dir", up, user=65534, group=65534, extra_groups=[])
    assert got.returncode == 0 and got.stdout.startswith("4 GPUs")


# ---- doctor ----


def test_doctor_is_content_with_a_running_instance(up):
    got = gpumgr("doctor", "--json", "--dir", up)
    report = json.loads(got.stdout)
    assert got.returncode == 0 and report["well"], report["findings"]
    assert len(report["gpus"]) == 4
    calls = {c["name"]: c for c in report["gpus"][0]["calls"]}
    assert sum(c["supported"] == "yes" for c in calls.values()) > 20
    assert all(c["why"] for c in calls.values() if c["supported"] in ("no", "forbidden"))
    assert all(c["wall_seconds"] >= 0 for c in calls.values() if c["supported"] == "yes")
    assert report["gpus"][0]["control"]["workflow"] == "power limit"


@pytest.mark.parametrize("model,workflow", [("h200", "power limit"), ("p100", "power limit"), ("t1000", "locked clocks"),
                                            ("940mx", "observe only")])
def test_doctor_says_how_a_guard_would_act(place, model, workflow):
    where = place / "sim"
    assert gpumgr("sim", "start", "--model", model, "--sim-dir", where).returncode == 0
    try:
        env = clean_env(GPUSIM_DIR=where, GPUMGR_GPU_LIBRARY=LIBRARY, GPUMGR_DIR=place / "none")
        report = json.loads(gpumgr("doctor", "--json", env=env).stdout)
        assert report["gpus"][0]["control"]["workflow"] == workflow
        assert report["gpus"][0]["control"]["why"]
    finally:
        gpumgr("sim", "stop", "--sim-dir", where)


def test_doctor_without_a_driver_gives_advice(place):
    got = gpumgr("doctor", "--json", "--dir", place / "none", "--gpu-library", "/nonexistent.so")
    bad = [f for f in json.loads(got.stdout)["findings"] if f["level"] == "attention"]
    assert got.returncode == 1 and [f["topic"] for f in bad] == ["driver"] and bad[0]["advice"]


def test_bundle_names_nobody(place, up):
    file = place / "support.tar"
    got = gpumgr("doctor", "--bundle", file, "--dir", up)
    assert got.returncode == 0 and str(file) in got.stdout and "UUID" in got.stdout
    assert file.stat().st_mode & 0o777 == 0o600
    status = json.loads(gpumgr("status", "--json", "--dir", up).stdout)
    with tarfile.open(file) as tar:
        text = {m.name: tar.extractfile(m).read().decode() for m in tar}
    assert {Path(n).name for n in text} == {"doctor.json", "doctor.txt", "status.json", "inventory.json", "config.json",
                                            "versions.txt", "redacted.txt"}
    whole = "".join(text.values())
    for gpu in status["gpus"]:
        assert gpu["uuid"] not in whole
    inventory = json.loads(text["gpumgr-support/inventory.json"])
    assert all(g.get("serial", "") in ("", "<serial number>") for g in inventory)
    assert json.loads(text["gpumgr-support/status.json"])["gpus"]

    again = gpumgr("doctor", "--bundle", file, "--dir", up)
    assert again.returncode == 2 and "exists" in again.stderr


# ---- sim ----


def test_sim_list_load_fault_heal(sim):
    def listed(i):
        return json.loads(gpumgr("sim", "list", "--json", env=sim).stdout)["gpus"][i]

    assert len(gpumgr("sim", "list", env=sim).stdout.splitlines()) == 4
    done = gpumgr("sim", "load", 1, "--work", "0.2", "--memory", "4G", env=sim)
    assert done.returncode == 0 and "elapsed" in done.stdout

    pid = int(gpumgr("sim", "load", 2, "--detach", "--memory", "4G", "--name", "mine", env=sim).stdout)
    wait_for(lambda: [t["pid"] for t in listed(2)["tasks"]] == [pid], "the task")
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: listed(2)["tasks"] == [], "its end")

    assert gpumgr("sim", "fault", 3, "lost", env=sim).returncode == 0
    wait_for(lambda: listed(3)["lost"], "the fault")
    assert gpumgr("sim", "heal", 3, env=sim).returncode == 0
    wait_for(lambda: not listed(3)["lost"], "the cure")

    for args in [("load", 4), ("load", "x"), ("load", 0, "--demand", "200%"), ("fault", 9, "lost"), ("fault", 0, "ecc", "x")]:
        assert gpumgr("sim", *args, env=sim).returncode == 2, args


def test_sim_exec_shows_the_simulated_gpus_to_other_programs(sim):
    code = ("import ctypes; l = ctypes.CDLL('libnvidia-ml.so.1'); n = ctypes.c_uint(); l.nvmlInit_v2();"
            "l.nvmlDeviceGetCount_v2(ctypes.byref(n)); print(n.value)")
    env = {k: v for k, v in sim.items() if k != "GPUMGR_GPU_LIBRARY"}
    got = gpumgr("sim", "exec", "--", "python3", "-c", code, env=env)
    assert got.stdout == "4\n", got.stderr
    assert gpumgr("sim", "exec", "false", env=env).returncode == 1
    assert gpumgr("sim", "exec", "--", "no-such-program", env=env).returncode == 2


def test_sim_without_a_simulator(place):
    for args in [("list",), ("load", 0), ("heal", "all"), ("stop",), ("exec", "true"), ("fault", 0, "lost")]:
        got = gpumgr("sim", *args, "--sim-dir", place) if args[0] != "exec" else gpumgr("sim", "exec", "--sim-dir", place, "true")
        assert got.returncode == 1 and "gpumgr sim start" in got.stderr and got.stderr.count("\n") == 1


def test_sim_start_refuses_what_the_simulator_refuses(place):
    for args in [("--model", "h2000"), ("--gpus", "0"), ("--gpus", "many")]:
        got = gpumgr("sim", "start", "--sim-dir", place / "s", *args)
        assert got.returncode == 2 and got.stderr.count("\n") == 1, got


def test_sim_commands_find_the_instance_and_leave_its_simulator_alone(up):
    assert len(gpumgr("sim", "list", "--dir", up).stdout.splitlines()) == 4
    got = gpumgr("sim", "stop", "--dir", up)
    assert got.returncode == 2 and "end with it" in got.stderr
