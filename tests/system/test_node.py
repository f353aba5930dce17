"""The node: what it says on the link is what the ring holds, whoever dies; nobody it talks to can hold it up; the machine's
own readings are /proc's; processes have names."""

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from instance import Instance, followed, is_alive, kill
from link import (BYE, DRIVER, EVENT, GUARD, HELLO, HOST, INVENTORY, LATEST, ORDER, ORDER_RESULT, PROCESSES, ROUND, SAMPLE,
                  STATE, WELCOME, XIDS, StubServer, cpu_seconds, frame, text)
from simulator import BUILD, Simulator, wait_for
from stopwatch import Stopwatch

EPERM, EINVAL, ENODEV, ERANGE = 1, 22, 19, 34


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:4") as s:
        yield s


def node_of(i):
    return wait_for(lambda: i.of_program("node"), "a node runs")[0]


def caught_up(server, seconds=10):
    """Waits for a round that ends after now."""
    began = len(server.frames)
    wait_for(lambda: any(kind == ROUND for _, kind, _ in server.frames[began:]), "a round", seconds)


# ---- what is said ----

def test_it_says_who_is_there_and_then_what_is_read(sim):
    with Instance(sim, "--wait-ms", "100") as i, StubServer(i.dir / "run") as server:
        status = i.ready(4)
        caught_up(server)
        wait_for(lambda: len({s["uuid"] for s in server.of(SAMPLE)}) == 4, "samples of all four")
        hello = server.of(HELLO)[0]
        assert hello["node"] == socket.gethostname() and hello["sources"] == 2
        assert hello["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert len(set(hello["gpu"])) == len(hello["gpu"]) > 50 and "host_cpus" in hello["host"]
        told = {d["uuid"]: d for d in server.of(INVENTORY)}
        for gpu in status["gpus"]:
            assert told[gpu["uuid"]]["index"] == gpu["index"] and told[gpu["uuid"]]["name"] == gpu["model"]
            assert told[gpu["uuid"]]["clocks"] and told[gpu["uuid"]]["limit_default_mw"] == 700000
        assert {s["uuid"]: s["state"] for s in server.of(STATE)} == {g["uuid"]: 1 for g in status["gpus"]}
        assert server.of(DRIVER)[-1]["state"] == 1
        latest = server.of(LATEST)[-1]["of"]
        value, boot_ns, until_ns = latest["gpu_power_limit_watts"]
        assert value == 700 and 0 < boot_ns < until_ns
        assert {g["uuid"] for g in server.of(GUARD)} == set(told)
        beat_ns, writer = server.of(ROUND)[-1]["sources"][0]
        assert writer == i.sampler() and abs(time.clock_gettime_ns(time.CLOCK_BOOTTIME) - beat_ns) < 5e9
        assert not server.twice


def test_every_sample_of_the_ring_arrives_once(sim):
    """Two readers of the same ring, the node and ring_follow, saw the same."""
    with Instance(sim, "--wait-ms", "50") as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        caught_up(server)
        seen = followed(i.follow(4))
        assert not [s for s in seen if s.get("missed")]
        caught_up(server)
        marks = [(s["uuid"], s["mark"]) for s in server.of(SAMPLE)]
        assert len(set(marks)) == len(marks), "nothing twice"
        told = {(s["uuid"], s["boot_ns"] // 1000) for s in server.of(SAMPLE)}  # two threads read a card: two may be of one microsecond
        uuids = {d["device"]: d["uuid"] for d in server.of(INVENTORY)}
        missing = [s for s in seen if not told & {(uuids[s["device"]], round(s["boot"] * 1e6) - n) for n in (0, 1)}]
        assert len(seen) > 200 and not missing, missing[:3]


def test_rounds_come_once_a_second_in_few_writes(sim):
    with Instance(sim, "--wait-ms", "100") as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        caught_up(server)
        before = len(server.of(ROUND))
        watch = Stopwatch()
        wait_for(lambda: len(server.of(ROUND)) >= before + 5, "five rounds")
        assert 3.5 < watch.elapsed and watch.seconds < 8


@pytest.mark.alone
def test_an_event_is_prompt(sim):
    with Instance(sim) as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        caught_up(server)
        late = []
        for code in (31, 43, 45, 13, 63):
            before = len(server.of(EVENT))
            sim.say(f"fault 1 xid {code}")
            wait_for(lambda: len(server.of(EVENT)) > before, "the event")
            when, event = [(t, w) for t, k, w in server.frames if k == EVENT][-1]
            assert event["kind"] == "xid" and str(code) in event["text"] and event["uuid"]
            offset = time.monotonic() - time.clock_gettime(time.CLOCK_BOOTTIME)
            late.append(when - (event["boot_ns"] / 1e9 + offset))
        assert sorted(late)[len(late) // 2] < 0.3, late
        wait_for(lambda: server.of(XIDS) and len(server.of(XIDS)[-1]["of"]) == 5, "and its count")


def test_several_samplers_are_one_machine(sim):
    with Instance(sim, "--wait-ms", "100", "--sampler.workers", "3") as i, StubServer(i.dir / "run") as server:
        status = i.ready(4)
        wait_for(lambda: len({s["uuid"] for s in server.of(SAMPLE)}) == 4, "samples of all four")
        assert server.of(HELLO)[-1]["sources"] == 4
        devices = {d["uuid"]: d for d in server.of(INVENTORY)[-4:]}
        assert set(devices) == {g["uuid"] for g in status["gpus"]}
        assert sorted(d["device"] for d in devices.values()) == [0, 1, 2, 3] and {d["source"] for d in devices.values()} == {0, 1, 2}
        before = len(server.of(EVENT))
        for index in range(4):
            sim.say(f"fault {index} xid 31")
        wait_for(lambda: len(server.of(EVENT)) >= before + 4, "an event of each")
        assert {e["uuid"] for e in server.of(EVENT)[before:]} == set(devices)
        assert not server.twice


def test_another_layout_is_another_hello(sim):
    """A changed rate makes another ring file: what was in the old one is not lost."""
    config = sim.dir / "gpumgr.json"
    config.write_text('{"gpus": "0,1"}')
    with Instance(sim, "--wait-ms", "100", "--config", config) as i, StubServer(i.dir / "run") as server:
        i.ready(2)
        wait_for(lambda: len(server.of(SAMPLE)) > 20, "samples")
        assert server.of(HELLO)[-1]["devices"] == 2
        config.write_text('{"gpus": "all"}')
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server.of(HELLO)[-1]["devices"] == 4, "four devices")
        wait_for(lambda: len({s["uuid"] for s in server.of(SAMPLE)}) == 4, "samples of all four")
        assert not server.twice


# ---- whoever dies ----

def seconds_of(server, uuid):
    return [s["boot_ns"] for kind, key, s in server.kept if kind == SAMPLE and key == uuid]


@pytest.mark.parametrize("order", ["node", "server", "sampler", "all"])
def test_no_second_is_lost_or_twice_whoever_is_killed(sim, order):
    """ring_follow sees every sample there was; the stub keeps what it had stored when it was killed, and what came after."""
    with Instance(sim, "--wait-ms", "100") as i:
        server = StubServer(i.dir / "run", flush=0.7)
        try:
            i.ready(4)
            caught_up(server)
            reader = i.follow(9)
            dice = random.Random(order)
            end = time.monotonic() + 7
            kills = 0
            while time.monotonic() < end:
                victim = order if order != "all" else dice.choice(["node", "server", "sampler"])
                if victim == "node":
                    kill(node_of(i))
                elif victim == "sampler":
                    kill(i.sampler())
                else:
                    server.crash()
                    time.sleep(dice.uniform(0, 0.5))
                    server.start()
                kills += 1
                time.sleep(dice.uniform(0.3, 1.0))
            seen = followed(reader)
            wait_for(lambda: i.of_program("node") and server.connection, "it is back")
            caught_up(server, 15)
            server.store()
            assert kills >= 5
            kept = [(key, s["boot_ns"]) for kind, key, s in server.kept if kind == SAMPLE]
            assert len(set(kept)) == len(kept), "nothing twice"
            uuids = {d["device"]: d["uuid"] for d in server.of(INVENTORY)}
            near = {(key, ns // 1000) for key, ns in kept} | {(key, ns // 1000 + 1) for key, ns in kept}
            lost = [s for s in seen if "boot" in s and (uuids[s["device"]], round(s["boot"] * 1e6)) not in near]
            assert len(seen) > 150 and not lost, (len(lost), lost[:2])
            assert not i.said("overrun")
            marks = [(key, s["mark"]) for kind, key, s in server.kept if kind in (SAMPLE, EVENT, HOST)]
            assert len(set(marks)) == len(marks)
        finally:
            server.close()


def test_host_readings_survive_a_server_that_is_away(sim):
    with Instance(sim) as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        wait_for(lambda: len(server.of(HOST)) >= 3, "host readings")
        server.store()
        server.crash()
        away = time.monotonic() + 4
        wait_for(lambda: time.monotonic() > away, "four seconds without a server")
        server.start()
        caught_up(server)
        server.store()
        times = [s["boot_ns"] for kind, key, s in server.kept if kind == HOST]
        assert times == sorted(set(times)) and max(b - a for a, b in zip(times, times[1:])) < 1.9e9


@pytest.mark.alone
def test_nobody_disturbs_the_sampler(sim):
    """Node killed, server hung, link full of garbage: the sampler's rounds go on."""
    with Instance(sim, "--wait-ms", "100") as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        caught_up(server)
        sampler = i.sampler()
        reader = i.follow(4)
        for _ in range(3):
            kill(node_of(i))
            time.sleep(0.4)
        server.is_reading = False
        seen = [s["boot"] for s in followed(reader) if s.get("device") == 0 and "gpu_temperature_celsius" in s["metrics"]]
        assert max(b - a for a, b in zip(seen, seen[1:])) < 0.5
        assert i.sampler() == sampler


def test_a_hung_server_holds_nobody_up(sim):
    """It takes the connection and reads nothing: the node stays small, alive and prompt, and goes on when it wakes."""
    with Instance(sim, "--wait-ms", "20") as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        caught_up(server)
        node = node_of(i)
        server.is_reading = False
        before = cpu_seconds(node)
        hung = time.monotonic() + 6
        wait_for(lambda: time.monotonic() > hung, "six seconds of silence")
        assert node_of(i) == node and cpu_seconds(node) - before < 0.6
        rollup = Path(f"/proc/{node}/smaps_rollup").read_text()
        assert int(next(x for x in rollup.splitlines() if x.startswith("Pss_Anon:")).split()[1]) < 3000
        server.is_reading = True
        caught_up(server, 20)
        wait_for(lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME) - server.of(SAMPLE)[-1]["boot_ns"] < 3e9, "it has caught up")
        assert not i.said("child_hung") and not server.twice


# ---- bad input ----

GARBAGE = {
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "zeros": bytes(64),
    "huge": struct.pack("<IBBH", 0xffffffff, WELCOME, 1, 0),
    "a second welcome": frame(WELCOME, b""),
    "a cut order": frame(ORDER, b"\1\2\3"),
    "an order without an end": frame(ORDER, struct.pack("<QIH", 1, 3, 60000) + b"x" * 50),
    "an unknown type": frame(200, b"what?"),
    "a later version": frame(WELCOME, b"", version=7),
    "half a frame": struct.pack("<IBBH", 1000, WELCOME, 1, 0) + b"abc",
    "a farewell": frame(BYE, text("go away")),
    "an endless farewell": frame(BYE, struct.pack("<H", 65535) + b"a" * 65535),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_from_the_server_changes_nothing(sim, what):
    with Instance(sim) as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        caught_up(server)
        node = node_of(i)
        server.say(GARBAGE[what])
        if what not in ("an unknown type", "a later version", "a second welcome", "half a frame"):
            wait_for(lambda: server.hellos >= 2, "it comes anew")
        caught_up(server, 15)
        assert node_of(i) == node and not i.said("child_ended") and not server.twice


def test_a_listener_of_somebody_else_is_not_trusted(sim):
    """A socket in the server's place by another user than the place's owner gets nothing."""
    script = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print('up', flush=True);"
              "c = s.accept()[0]; c.settimeout(3); print(len(c.recv(100)), flush=True)")
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    with Instance(sim) as i:
        i.ready(4)
        place = i.dir / "run/server"
        place.mkdir()
        place.chmod(0o777)
        i.dir.chmod(0o755)
        other = subprocess.Popen([sys.executable, "-c", script, str(place / "link.sock")], stdout=subprocess.PIPE, text=True,
                                 user=65534, group=65534, extra_groups=[])
        try:
            assert other.stdout.readline() == "up\n"
            assert other.stdout.readline() == "0\n", "closed without a byte"
            wait_for(lambda: any("not this instance's server" in line["text"] for line in i.said("link")), "it says why")
        finally:
            other.kill()
            other.wait()


# ---- orders ----

def test_orders_reach_the_sampler_and_come_back(sim):
    with Instance(sim, "--wait-ms", "100") as i, StubServer(i.dir / "run") as server:
        gpu = i.ready(4)["gpus"][2]
        caught_up(server)

        def ask(number, *order):
            server.order(number, *order)
            return wait_for(lambda: next((r for r in server.of(ORDER_RESULT) if r["id"] == number), None), "a result")

        assert ask(1, "guard set", gpu["uuid"], 0, 400000, 60000, 0)["result"] == 0
        wait_for(lambda: i.gpu(2)["metrics"].get("gpu_power_limit_watts") == 400, "the limit is set")
        assert wait_for(lambda: [g for g in server.of(GUARD) if g["uuid"] == gpu["uuid"]][-1]["limit"] == 400, "the server sees it")
        assert ask(2, "guard restore", gpu["uuid"])["result"] == 0
        wait_for(lambda: i.gpu(2)["metrics"].get("gpu_power_limit_watts") == 700, "and back")
        assert ask(3, "guard set", gpu["uuid"], 0, 5000, 60000, 0)["result"] == -ERANGE
        assert ask(4, "guard set", "GPU-none", 0, 400000, 60000, 0)["result"] == -ENODEV
        assert ask(5, "guard set", "", 0, 400000, 60000, 0)["result"] == -EINVAL
        assert ask(6, "reload", "")["result"] == -EPERM
        assert ask(7, 99, "")["result"] == -EPERM
        assert ask(8, "look", "")["result"] == 0 and ask(9, "guard restore", "")["result"] == 0
        assert all(len(r["text"]) > 5 for r in server.of(ORDER_RESULT) if r["result"] < 0)


def test_an_order_to_a_hung_sampler_is_answered(sim):
    with Instance(sim) as i, StubServer(i.dir / "run") as server:
        gpu = i.ready(4)["gpus"][0]
        caught_up(server)
        sampler = i.sampler()
        kill(sampler, signal.SIGSTOP)
        try:
            server.order(1, "guard restore", gpu["uuid"])
            result = wait_for(lambda: server.of(ORDER_RESULT), "a result")[0]
            assert result["result"] < 0 and "does not answer" in result["text"]
        finally:
            kill(sampler, signal.SIGCONT)


def test_an_order_to_all_has_one_answer_though_one_hangs(sim):
    with Instance(sim, "--sampler.workers", "2") as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        caught_up(server)
        hung = i.sampler()
        kill(hung, signal.SIGSTOP)
        try:
            server.order(1, "guard restore", "")
            for number in range(2, 5):  # others meanwhile change nothing of that
                server.order(number, "guard restore", "GPU-none")
            wait_for(lambda: any(r["id"] == 1 for r in server.of(ORDER_RESULT)), "a result")
            caught_up(server)
            results = [r for r in server.of(ORDER_RESULT) if r["id"] == 1]
            assert len(results) == 1 and results[0]["result"] < 0 and "does not answer" in results[0]["text"]
            assert sorted(r["id"] for r in server.of(ORDER_RESULT)) == [1, 2, 3, 4]
        finally:
            kill(hung, signal.SIGCONT)


# ---- the machine ----

def meminfo():
    return {k: int(v.split()[0]) * 1024 for k, v in (x.split(":") for x in Path("/proc/meminfo").read_text().splitlines())}


def test_host_readings_are_procs(sim):
    with Instance(sim) as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        wait_for(lambda: len(server.of(HOST)) >= 3, "host readings")
        began = time.monotonic()
        burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            wait_for(lambda: time.monotonic() > began + 3.5, "some load")
        finally:
            burner.kill()
            burner.wait()
        got = server.of(HOST)[-1]["metrics"]
        m = meminfo()
        disk = os.statvfs("/")
        assert got["host_cpus"] == os.sysconf("SC_NPROCESSORS_ONLN")
        assert got["host_memory_total_bytes"] == m["MemTotal"]
        assert abs(got["host_memory_available_bytes"] - m["MemAvailable"]) < 0.1 * m["MemTotal"]
        assert got["host_memory_used_bytes"] == got["host_memory_total_bytes"] - got["host_memory_available_bytes"]
        assert abs(got["host_swap_used_bytes"] - (m["SwapTotal"] - m["SwapFree"])) < 64 << 20
        assert got["host_disk_total_bytes"] == disk.f_blocks * disk.f_frsize
        assert abs(got["host_disk_used_bytes"] - (disk.f_blocks - disk.f_bfree) * disk.f_frsize) < 1 << 30
        assert 0.9 / got["host_cpus"] <= got["host_cpu_utilization_ratio"] <= 1, "one busy loop at least"
        assert abs(got["host_uptime_seconds"] - time.clock_gettime(time.CLOCK_BOOTTIME)) < 5
        load = list(map(float, Path("/proc/loadavg").read_text().split()[:3]))
        assert abs(got["host_load15"] - load[2]) < 1 and got["host_processes"] > 10
        assert got["host_network_sent_bytes_per_second"] >= 0
        if Path("/proc/pressure/cpu").exists():
            assert 0 <= got["host_pressure_cpu_ratio"] <= 1
        assert 0 < got["gpumgr_node_cpu_seconds_total"] < 5


def test_host_traffic_is_counted(sim, tmp_path):
    """Written to a disk and synced: the bytes show, if the disk is one of this machine's."""
    with Instance(sim) as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        wait_for(lambda: len(server.of(HOST)) >= 3, "host readings")
        if "host_disk_written_bytes_per_second" not in server.of(HOST)[-1]["metrics"]:
            pytest.skip("no disk of its own here")
        before = len(server.of(HOST))
        path = Path("/var/tmp") / f"gpumgr-test-{os.getpid()}"
        try:
            with path.open("wb") as f:
                f.write(os.urandom(16 << 20))
                f.flush()
                os.fsync(f.fileno())
            wait_for(lambda: len(server.of(HOST)) >= before + 3, "three more")
            written = sum(h["metrics"]["host_disk_written_bytes_per_second"] for h in server.of(HOST)[before:])
            assert written > 8 << 20
        finally:
            path.unlink()


# ---- processes ----

def listed(server, pid):
    return next((p for frame_ in reversed(server.of(PROCESSES)) for p in frame_["of"] if p["pid"] == pid), None)


def start_ns(pid):
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def test_processes_have_names(sim):
    with Instance(sim, "--wait-ms", "100") as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        user = dict(user=65534, group=65534, extra_groups=[]) if os.geteuid() == 0 else {}
        for d in (sim.dir, *sim.dir.parents) if user else ():
            d.chmod(d.stat().st_mode | 0o011)
        task = sim.task("--gpu", 1, "--memory", "3G", "--forever", **user)
        try:
            p = wait_for(lambda: (q := listed(server, task.pid)) and q["comm"] and q, "it has a name")
            assert p["comm"] == "gpusim-task" and "--memory" in p["command"] and p["memory_bytes"] >= 3 << 30
            assert p["uid"] == (65534 if user else os.geteuid()) and p["start_boot_ns"] == start_ns(task.pid)
            assert p["user"] == ("nobody" if user else subprocess.check_output(["id", "-un"], text=True).strip())
        finally:
            task.kill()
            task.wait()
        wait_for(lambda: not any(p["pid"] == task.pid for p in server.of(PROCESSES)[-1]["of"]), "and it is gone")
        assert b"--memory" not in (i.dir / "run/ring.0").read_bytes(), "command lines stay out of the ring"


def test_a_strange_command_line_is_text(sim):
    with Instance(sim, "--wait-ms", "100") as i, StubServer(i.dir / "run") as server:
        i.ready(4)
        name = "a\nb\x1b[31m\tc" + "\u00e4" * 2000
        task = sim.task("--gpu", 0, "--forever", "--quiet", "--name", name)
        try:
            p = wait_for(lambda: (q := listed(server, task.pid)) and q["command"] and q, "it has a command")
            assert len(p["command"].encode()) < 512 and not any(ord(c) < 32 for c in p["command"])
            p["command"].encode("utf-8")  # no half character at the end
        finally:
            task.kill()
            task.wait()


# ---- through the real server into its history ----

def api(i, path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(str(i.dir / "run/server/api.sock"))
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: gpumgr\r\nConnection: close\r\n\r\n".encode())
        reply = b""
        while piece := s.recv(1 << 16):
            reply += piece
    head, body = reply.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 200"), head
    return json.loads(body)


def history(i, uuid, metric, begin, end):
    got = api(i, f"/api/v1/history?of=gpu:{uuid}&metric={metric}&from={begin:.3f}&to={end:.3f}&width=4000")
    assert got["resolution"] == "raw", got["resolution"]
    series = got["series"][0] if got["series"] else {"time": [], "mean": []}
    return [t for t, v in zip(series["time"], series["mean"]) if v is not None]


@pytest.mark.parametrize("order", ["node", "server", "sampler", "all"])
def test_the_history_has_every_reading_once_whoever_is_killed(sim, order):
    metric = "gpu_temperature_celsius"
    with Instance(sim, "--wait-ms", "200", role="up") as i:
        uuids = {g["index"]: g["uuid"] for g in i.ready(4)["gpus"]}
        wait_for(lambda: (i.dir / "run/server/api.sock").exists(), "the server listens")
        reader = i.follow(14)
        offset = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        dice = random.Random(order)
        end = time.monotonic() + 11
        kills = 0
        while time.monotonic() < end:
            part = order if order != "all" else dice.choice(["node", "server", "sampler"])
            pids = i.samplers() if part == "sampler" else i.of_program(part)
            for pid in pids:
                kill(pid)
                kills += 1
            time.sleep(dice.uniform(0.5, 1.6))
        lines = followed(reader)
        seen = [s for s in lines if "boot" in s and metric in s["metrics"]]
        assert kills >= 4 and len(seen) > 100
        last = max(s["boot"] for s in seen) + offset

        def stored():
            try:
                return all(history(i, uuid, metric, last - 60, last + 60)[-1:] > [last] for uuid in uuids.values())
            except (OSError, ValueError):
                return False
        wait_for(stored, "what came after is there")
        for index, uuid in uuids.items():
            want = sorted(s["boot"] + offset for s in seen if s["gpu"] == index)
            # A round that was late has the next one close behind it: the first and the last are not looked beyond.
            got = history(i, uuid, metric, want[0] - 0.004, want[-1] + 0.004)
            assert len(set(got)) == len(got), "nothing twice"
            missing = [t for t in want if not any(abs(t - g) < 0.005 for g in got)]
            extra = [g for g in got if not any(abs(t - g) < 0.005 for t in want)]
            assert not missing and not extra, (index, len(want), len(got), [(want.index(t), t - want[0]) for t in missing],
                                               [(t - want[0], want[-1] - t) for t in extra], [s for s in lines if s.get("missed")])
