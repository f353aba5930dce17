"""gpumgr on NVML libraries that nobody here wrote (tests/foreign): every figure is the library's, everything else is
absent, and each failure is one sentence."""

import json
import os
import re
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from instance import GPUMGR, Instance, clean_env
from simulator import BUILD, wait_for

SELF = re.compile("^(gpumgr|gpu_guard)_")


def library(name):
    return BUILD / "tests/foreign" / f"foreign_{name}.so"


def gpumgr(*words, env=None, **more):
    return subprocess.run([GPUMGR, *map(str, words)], env=clean_env(GPUMGR_DIR="/nonexistent/gpumgr", **(env or {})),
                          capture_output=True, text=True, timeout=60, **more)


def direct(name, *flags, env=None):
    """What `status` sees without a daemon: the GPUs."""
    got = gpumgr("status", "--json", "--no-daemon", "--gpu-library", library(name), *flags, env=env)
    assert got.returncode == 0, got.stderr
    return json.loads(got.stdout)["gpus"]


def calls(name, env=None):
    """What doctor says of each call of the first GPU."""
    got = gpumgr("doctor", "--json", "--gpu-library", library(name), env=env)
    return {c["name"]: c for c in json.loads(got.stdout)["gpus"][0]["calls"]}


def daemon(name, *flags, env=None):
    return Instance(None, "--gpu-library", library(name), "--wait-ms", "50", *flags, env=env)


def settled(i, want, gpu=0, also_ours=("gpu_energy_joules_total",)):
    """Waits until the daemon shows just these metrics (and its own)."""
    def mine():
        m = {k: v for k, v in i.gpu(gpu)["metrics"].items() if not SELF.match(k) and k != "gpu_xid_errors_total" and k not in also_ours}
        return m == want
    try:
        wait_for(mine, "the metrics")
    except AssertionError:
        assert {k: v for k, v in i.gpu(gpu)["metrics"].items() if not SELF.match(k)} == want


def processes(gpu):
    return {p["pid"]: p for p in gpu["processes"]}


NO_REASON = {f"gpu_clock_reason_{r}": 0 for r in (
    "idle", "application_clocks", "power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "power_brake", "display")}

METRICS = {
    "old": {
        "gpu_temperature_celsius": 41, "gpu_power_watts": 51.234, "gpu_power_limit_enforced_watts": 225,
        "gpu_utilization_ratio": 0.37, "gpu_memory_utilization_ratio": 0.12,
        "gpu_memory_total_bytes": 5032706048, "gpu_memory_used_bytes": 1000000000, "gpu_memory_free_bytes": 4032706048,
        "gpu_graphics_clock_hertz": 705e6, "gpu_sm_clock_hertz": 706e6, "gpu_memory_clock_hertz": 2600e6,
        "gpu_performance_state": 8, **NO_REASON, "gpu_clock_reason_power_cap": 1,
        "gpu_fans": 1, "gpu_fan_speed_ratio": 0.3, "gpu_pcie_link_generation": 2, "gpu_pcie_link_width": 16, "gpu_processes": 4,
    },
    "r535": {"gpu_power_watts": 61.5, "gpu_processes": 3},
    "r535_short": {"gpu_power_watts": 61.5, "gpu_processes": 3},
    "sentinels": {
        "gpu_memory_utilization_ratio": 0.55, "gpu_decoder_utilization_ratio": 1,
        "gpu_memory_total_bytes": 24 << 30, "gpu_memory_reserved_bytes": 400 << 20,
        "gpu_power_instant_watts": 123.456, "gpu_power_limit_enforced_watts": 350,
        "gpu_graphics_clock_hertz": 1500e6, "gpu_memory_clock_hertz": 1502e6, "gpu_video_clock_hertz": 1503e6,
        "gpu_thermal_seconds_total": 2.5, "gpu_low_utilization_seconds_total": 1,
        "gpu_fans": 1, "gpu_fan_speed_ratio": 0.45, "gpu_pcie_link_width": 8, "gpu_ecc_uncorrected_total": 7,
        "gpu_remapped_rows_correctable": 3, "gpu_remapped_rows_pending": 1, "gpu_remapped_rows_failed": 0,
        "gpu_retired_pages_uncorrected": 4, "gpu_processes": 3,
    },
    "ada": {"gpu_temperature_celsius": 52, "gpu_power_cap_seconds_total": 5, "gpu_processes": 1},
    "setters": {
        "gpu_temperature_celsius": 99, "gpu_power_watts": 650, "gpu_power_limit_watts": 700, "gpu_power_limit_enforced_watts": 700,
        "gpu_power_limit_default_watts": 700, "gpu_power_limit_min_watts": 200, "gpu_power_limit_max_watts": 700,
        "gpu_fans": 1, "gpu_fan_speed_ratio": 0.6,
    },
}


@pytest.mark.parametrize("name", METRICS)
def test_every_value_is_the_librarys(name):
    assert direct(name)[0]["metrics"] == METRICS[name]
    with daemon(name, env={"GPUMGR_GUARD_MODE": "observe"}) as i:  # one of them does not survive being set
        i.ready(1)
        settled(i, METRICS[name])


# ---- processes ----


def test_short_entries_of_an_old_driver():
    assert processes(direct("old")[0]) == {
        4001: {"pid": 4001, "kinds": ["compute"], "memory_bytes": 300000000},
        4002: {"pid": 4002, "kinds": ["compute", "graphics"], "memory_bytes": 200000000},
        4003: {"pid": 4003, "kinds": ["compute"], "memory_bytes": 100000000},
        4004: {"pid": 4004, "kinds": ["graphics"], "memory_bytes": 50000000},
    }


@pytest.mark.parametrize("name", ["r535", "r535_short"])
def test_long_entries_under_the_same_name(name):
    """Also where the symbols speak for long ones and the entries are short."""
    assert {p: g["memory_bytes"] for p, g in processes(direct(name)[0]).items()} == {5001: 1111, 5002: 2222, 5003: 3333}


def test_memory_that_is_not_told_and_nobody():
    assert processes(direct("sentinels")[0]) == {
        6001: {"pid": 6001, "kinds": ["compute", "graphics"], "memory_bytes": 3000},
        6002: {"pid": 6002, "kinds": ["compute", "graphics"], "memory_bytes": 2000},
        6003: {"pid": 6003, "kinds": ["graphics"]},
    }


def test_a_crowd_that_grows_while_it_is_counted():
    gpu = direct("crowd")[0]
    assert 3007 <= gpu["metrics"]["gpu_processes"] <= 3070 and len(gpu["processes"]) == 128
    with daemon("crowd") as i:
        i.ready(1)
        wait_for(lambda: i.gpu(0)["metrics"].get("gpu_processes") == 3070, "all are counted, none twice")
        shares = wait_for(lambda: {p["pid"]: p.get("sm_ratio") for p in i.gpu(0)["processes"] if "sm_ratio" in p}, "shares")
        assert shares[100000] == 0     # listed and not sampled
        assert shares[100001] == 0.10  # sampled twice: the newer one
        assert shares[100002] == 0     # its sample was nonsense
        assert shares[100004] == 0.13


def test_a_dear_list_does_not_make_processes_come_and_go():
    with daemon("ada") as i:
        i.ready(1)
        reader = i.follow(2)
        program, out = reader
        assert program.wait() == 0
        out.seek(0)
        seen = [json.loads(line)["metrics"] for line in out]
        assert {m["gpu_processes"] for m in seen if "gpu_processes" in m} == {1}


# ---- who may see what ----


def test_a_gpu_that_we_may_not_see():
    gpus = direct("permission")
    assert [g["state"] for g in gpus] == ["ok", "forbidden", "ok"]
    assert "permission" in gpus[1]["state_reason"] and gpus[1]["metrics"] == {}
    assert gpus[0]["uuid"].startswith("GPU-9e20") and gpus[2]["uuid"] == "PCI-00000000:3D:00.0"
    assert all(gpus[n]["metrics"] == {"gpu_power_watts": 33} for n in (0, 2))
    with daemon("permission") as i:
        wait_for(lambda: [g["state"] for g in i.status()["gpus"]] == ["ok", "forbidden", "ok"], "two are watched")
        assert "permission" in i.gpu(1)["state_reason"]
        assert i.said("gpu_forbidden") and not i.said("gpu_lost")


# ---- starting ----


@pytest.mark.parametrize("code,words", [
    (9, "not loaded"), (18, "different versions"), (4, "no permission"), (999, "does not tell"), (12, "library of it is missing"),
    (15, "fallen off the bus"), (28, "no GPU"), (8, "power cable"), (3, "not supported"), (4711, "4711"),
])
def test_a_driver_that_does_not_start(code, words):
    got = gpumgr("status", "--no-daemon", "--gpu-library", library("no_start"), env={"FOREIGN_INIT": code})
    assert got.returncode == 1 and words in got.stderr and len(got.stderr.splitlines()) == 1


@pytest.mark.parametrize("path,words", [
    (library("no_init"), "not an NVML library"), (Path(__file__), "invalid ELF header"), ("/nonexistent/lib.so", "No such file"),
])
def test_a_file_that_is_no_driver(path, words):
    got = gpumgr("status", "--no-daemon", "--gpu-library", path)
    assert got.returncode == 1 and words in got.stderr and len(got.stderr.splitlines()) == 1


def test_a_daemon_waits_for_a_driver_that_does_not_start():
    with daemon("no_start", env={"FOREIGN_INIT": 18}) as i:
        wait_for(lambda: i.said("driver_absent"), "the reason is told")
        assert "different versions" in i.said("driver_absent")[0]["text"]
        assert i.process.poll() is None


# ---- bad days ----


def test_calls_that_fail_now_and_then(tmp_path):
    lost = tmp_path / "lost"
    want = {"gpu_temperature_celsius": 66, "gpu_power_watts": 80.5, "gpu_power_limit_watts": 290, "gpu_power_limit_enforced_watts": 300,
            "gpu_power_limit_default_watts": 300, "gpu_performance_state": 2, "gpu_processes": 1}
    with daemon("flaky", env={"FOREIGN_LOST": lost}) as i:
        i.ready(1)
        settled(i, want)
        lost.touch()
        i.wait_state(0, "lost")
        assert i.gpu(0)["metrics"] == {}
        lost.unlink()
        i.wait_state(0, "ok")
        settled(i, want)
        assert not [line for line in i.log() if line["event"] == "sampler" and line["level"] == "error"]
    inventory = direct("flaky", "--inventory")[0]["inventory"]
    assert inventory["serial"] == "1321321032132" and inventory["vbios"] == "95.02.4A.00.02"


def test_a_lost_gpu_does_not_silence_the_others(tmp_path):
    lost, xid = tmp_path / "lost", tmp_path / "xid"
    with daemon("events", env={"FOREIGN_LOST": lost, "FOREIGN_XID": xid}) as i:
        i.ready(2)
        for told in (1, 2):
            xid.touch()
            wait_for(lambda: [(x["code"], x["count"]) for x in i.gpu(1)["xids"]] == [(94, told)], "the XID of the other")
            lost.touch()
            i.wait_state(0, "lost")
        lost.unlink()
        i.wait_state(0, "ok")


# ---- counters and instances ----


def test_counters_and_instances_with_holes():
    want = {"gpu_sm_active_ratio": 0.405, "gpu_tensor_active_ratio": 1, "gpu_pcie_tx_bytes_per_second": 3 << 20,
            "gpu_memory_total_bytes": 80 << 30, "gpu_memory_used_bytes": 3 << 30, "gpu_memory_free_bytes": 77 << 30,
            "gpu_memory_reserved_bytes": 0, "gpu_power_watts": 123, "gpu_processes": 0}
    gpu = direct("gpm")[0]
    assert gpu["metrics"] == want
    assert [x["uuid"] for x in gpu["instances"]] == [f"MIG-{gpu['uuid']}/{n}/0" for n in (2, 5)]
    for x, gi in zip(gpu["instances"], (2, 5)):
        assert x["gpu_instance"] == gi and x["metrics"]["gpu_sm_active_ratio"] == pytest.approx(0.405 + gi / 100)
        assert x["metrics"]["gpu_memory_total_bytes"] == 40 << 30
        assert list(processes(x)) == [8000 + gi]
        assert not {"gpu_power_watts", "gpu_utilization_ratio", "gpu_temperature_celsius"} & set(x["metrics"])
    with daemon("gpm") as i:
        i.ready(1)
        settled(i, want)
        pid = i.sampler()
        reads = lambda: i.gpu(0)["metrics"].get("gpu_sm_active_ratio")
        wait_for(lambda: reads() == 0.405, "activity")
        i.status("--fresh")
        wait_for(lambda: reads() == 0.405, "activity again")
        assert i.sampler() == pid, i.log_path.read_text()


def test_memory_of_the_machine():
    total = int(re.search(r"MemTotal: +(\d+)", Path("/proc/meminfo").read_text())[1]) * 1024
    integrated, card = direct("uma")
    m = integrated["metrics"]
    assert m["gpu_memory_total_bytes"] == total
    assert m["gpu_memory_used_bytes"] + m["gpu_memory_free_bytes"] == total and m["gpu_memory_free_bytes"] > 0
    assert card["metrics"] == {"gpu_power_watts": 11}  # a card that hides its memory is not taken for one without
    assert "gpu_power_limit_watts" not in m


# ---- what is said of it ----


def test_margins_where_thresholds_are_gone():
    thermal = direct("ada", "--inventory")[0]["inventory"]["temperature_limits"]
    assert thermal == {"shutdown_margin_celsius": -7, "slowdown_margin_celsius": -2, "gpu_max_margin_celsius": 0}
    thermal = direct("sentinels", "--inventory")[0]["inventory"]["temperature_limits"]
    assert thermal == {"shutdown_margin_celsius": -8, "slowdown_margin_celsius": -2, "memory_max_margin_celsius": -3}


def test_the_inventory_by_both_ways():
    want = {
        "architecture": "Hopper", "driver": "580.159.04", "library": str(library("setters"))[:79], "pci": {}, "control": [
            "power limit", "locked clocks", "application clocks"],
        "power_limits": {"min_watts": 200, "max_watts": 700, "default_watts": 700}, "temperature_limits": {},
        "clocks_mhz": [{"memory": 3201, "graphics": [1980, 345]}], "nvlinks": 0,
    }
    assert direct("setters", "--inventory")[0]["inventory"] == want
    assert "inventory" not in direct("setters")[0]
    with daemon("setters", env={"GPUMGR_GUARD_MODE": "observe"}) as i:
        i.ready(1)
        assert i.status("--inventory")["gpus"][0]["inventory"] == want
    old = direct("old", "--inventory")[0]["inventory"]
    assert old["pci"] == {"address": "00000000:83:00.0"} and old["serial"] == "0324512045678"
    mig = direct("gpm", "--inventory")[0]["inventory"]
    assert mig["mig"] and [x["gpu_instance"] for x in mig["mig_instances"]] == [2, 5]
    text = gpumgr("status", "--inventory", "--no-daemon", "--gpu-library", library("setters")).stdout
    assert "memory 3201 MHz: graphics 1980 to 345 MHz in 2 steps" in text and "200 to 700 W" in text
    hidden = gpumgr("status", "--inventory", "--no-daemon", "--gpu-library", library("permission")).stdout
    assert "GPU 1: not known" in hidden and "/dev/nvidia0" not in hidden


def test_doctor_says_why_a_call_is_not_there():
    old = calls("old")
    assert old["TotalEnergyConsumption"]["why"] == old["GpmMetrics"]["why"] == "this driver has no such call"
    assert calls("uma")["PowerManagementLimit"]["why"] == "this GPU does not have it"
    assert calls("uma")["FanSpeed"]["why"] == "this GPU has no fan that the driver can read"
    assert calls("gpm")["PcieThroughput"]["why"] == "GPM tells it at a lower price"
    limit = calls("permission")["PowerManagementLimit"]
    assert limit["supported"] == "forbidden" and limit["why"] == "no permission"
    for name in ("old", "ada", "gpm", "setters", "sentinels"):
        assert all(c["why"] for c in calls(name).values() if c["supported"] in ("no", "forbidden"))


# ---- hands off ----


def test_nothing_is_set_in_observe_mode():
    env = {"GPUMGR_GUARD_MODE": "observe"}
    assert direct("setters", "--inventory", env=env)[0]["metrics"] == METRICS["setters"]
    assert calls("setters", env=env)["PowerUsage"]["supported"] == "yes"
    with daemon("setters", env=env) as i:
        i.ready(1)
        pid = i.sampler()
        i.status("--fresh")
        before = i.gpu(0)["metrics"]["gpumgr_sampler_cpu_seconds_total"]
        wait_for(lambda: i.gpu(0)["metrics"]["gpumgr_sampler_cpu_seconds_total"] > before, "it goes on")
        assert i.sampler() == pid and "called:" not in i.log_path.read_text()


# ---- hands on ----


def test_the_guard_holds_cards_that_nobody_here_made(tmp_path):
    """A power limit and locked clocks, under another driver: held below the target, resumed or cleared after a kill, restored."""
    kept = tmp_path / "state"

    def cards():
        """Degrees and limit of each."""
        return [struct.unpack_from("dd", kept.read_bytes(), 32 * n) for n in range(2)]

    def is_held():
        return all(temp < 81 and limit < most for (temp, limit), most in zip(cards(), (700, 2000)))

    def asked(i):
        return [line.split() for line in i.log_path.read_text().splitlines() if line.startswith(("set ", "reset "))]
    with daemon("heats", "--guard.hot-c", "80", "--guard.lock-dir", tmp_path, env={"FOREIGN_STATE": kept}) as i:
        i.ready(2)
        wait_for(is_held, "both are held")
        levers = [g["guard"]["lever"] for g in i.status()["gpus"]]
        assert levers == ["power limit", "locked clocks"]
        end = time.monotonic() + 3
        while time.monotonic() < end:
            assert max(temp for temp, _ in cards()) < 82
            time.sleep(0.05)
        os.kill(i.sampler(), signal.SIGKILL)
        wait_for(lambda: {e["gpu"] for kind in ("guard_resumed", "guard_stale_cleared") for e in i.said(kind)} == {0, 1},
                 "the next one has found both records")
        wait_for(is_held, "both are held again")
        i.process.terminate()
        assert i.process.wait(30) == 0
        assert [limit for _, limit in cards()] == [700, 2000] and not list((i.dir / "guard").iterdir())
        for words in asked(i):
            low, high = {"0": (200, 700), "1": (300, 2000)}[words[1]]
            assert words[0] == "reset" or low <= int(words[2]) <= high
