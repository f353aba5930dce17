"""The sampler on simulated GPUs that fail: hung, lost, reloaded, poor in sensors; killed at random; and its ring as a
reader sees it."""

import random
import signal
import time

import pytest

from instance import Instance, followed, kill
from simulator import BUILD, Simulator, wait_for
from stopwatch import Starvation
from unkillable import Unkillable


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:8") as s:
        yield s


def late_ms(lines, gpu):
    return sorted(1000 * x["metrics"]["gpumgr_sampler_late_seconds"] for x in lines
                  if x.get("gpu") == gpu and "gpumgr_sampler_late_seconds" in x["metrics"])


@pytest.mark.alone
def test_first_sample_is_prompt(sim):
    with Instance(sim) as i:
        wait_for(lambda: (i.dir / "run/ring.0").exists(), "the ring")
        began = time.monotonic()
        i.ready(8)
        assert time.monotonic() - began < 2


@pytest.mark.alone
def test_a_call_that_never_returns_stops_nobody_else(sim):
    with Instance(sim, "--wait-ms", "100", "--sampler.lost-ms", "4000") as i:
        i.ready(8)
        sim.say("fault 3 hang")
        reader = i.follow(6)
        i.wait_state(3, "not answering")
        hung = i.gpu(3)
        assert "has not come back" in hung["state_reason"]
        assert hung["metrics"] == {} and "processes" not in hung
        i.wait_state(3, "lost")
        lines = followed(reader)
        for gpu in {0, 1, 2, 4, 5, 6, 7}:
            times = [x["boot"] for x in lines if x["gpu"] == gpu and "gpu_temperature_celsius" in x["metrics"]]
            assert len(times) > 55, f"GPU {gpu}: {len(times)} samples in 6 s"
            assert late_ms(lines, gpu)[int(len(times) * 0.9)] < 10
        assert i.said("gpu_not_answering") and i.said("gpu_lost")

        began = time.monotonic()
        i.process.send_signal(signal.SIGTERM)  # a stuck thread does not keep it from stopping
        i.process.wait(30)
        assert time.monotonic() - began < 5 and i.process.returncode == 0


def test_a_hung_card_heals(sim):
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(8)
        sim.say("fault 2 hang")
        i.wait_state(2, "not answering")
        sim.say("heal 2")
        i.wait_state(2, "ok")
        assert i.gpu(2)["metrics"]["gpu_temperature_celsius"] > 0
        assert i.said("gpu_back")


def test_a_card_that_hangs_before_the_start_is_shown(sim):
    sim.say("fault 5 hang")
    with Instance(sim, "--wait-ms", "100") as i:
        wait_for(lambda: sum(g["state"] == "ok" for g in i.status()["gpus"]) == 7, "the other seven")
        i.wait_state(5, "not answering")
        sim.say("heal 5")
        i.ready(8)


def test_one_slow_call_that_hangs_costs_only_its_metrics(sim):
    with Instance(sim, "--wait-ms", "100", "--sampler.lost-ms", "2000") as i:
        i.ready(8)
        sim.say("fault 1 hang nvmlDeviceGetTotalEnergyConsumption")
        i.status("--fresh")
        wait_for(lambda: i.said("call_stuck"), "the stuck call is told")
        assert i.gpu(1)["state"] == "ok"
        assert i.gpu(1)["metrics"]["gpu_power_watts"] > 0


def test_a_lost_gpu(sim):
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(8)
        xids = lambda: {x["code"]: x["count"] for x in i.gpu(4)["xids"]}
        wait_for(lambda: sim.say("fault 4 xid 31") is not None and xids(), "the driver's events are listened to")  # by a thread of its own
        sim.say("fault 4 lost")
        i.wait_state(4, "lost")
        wait_for(lambda: xids().get(79) == 1, "its XID, once")
        lost = i.gpu(4)
        assert lost["metrics"] == {} and "lost" in lost["state_reason"]
        assert all(i.gpu(n)["state"] == "ok" for n in (0, 7))
        sim.say("heal 4")
        i.wait_state(4, "ok")


def test_a_driver_reload(sim):
    with Instance(sim, "--wait-ms", "100") as i:
        before = {g["uuid"] for g in i.ready(8)["gpus"]}
        sim.say("fault all driver-reload 2")
        wait_for(lambda: all(g["state"] != "ok" and not g["metrics"] for g in i.status()["gpus"]), "all are gone")
        after = i.ready(8)
        assert {g["uuid"] for g in after["gpus"]} == before
        assert i.process.poll() is None


def test_a_driver_that_comes_late(tmp_path):
    class Nowhere:
        dir = tmp_path / "sim"
    with Instance(Nowhere, "--wait-ms", "100") as i:
        wait_for(lambda: i.said("driver_absent"), "the absence is told")
        assert "not loaded" in i.said("driver_absent")[0]["text"]
        assert i.status()["gpus"] == []
        with Simulator(tmp_path / "sim", "--gpus", "2"):
            i.ready(2)


def test_the_old_laptop_part(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "940mx") as sim, Instance(sim, "--wait-ms", "100") as i:
        metrics = i.ready(1)["gpus"][0]["metrics"]
        for absent in ("gpu_power_watts", "gpu_power_limit_watts", "gpu_fan_speed_ratio", "gpu_processes", "gpu_energy_joules_total"):
            assert absent not in metrics
        assert metrics["gpu_temperature_celsius"] > 20


@pytest.mark.alone
def test_what_a_card_cannot_do_is_not_asked_again(tmp_path):
    """Failing calls cost, too: with prices on, the laptop part's dear refusals are made once."""
    with Simulator(tmp_path / "sim", "--model", "940mx", "--costs") as sim, Instance(sim, "--wait-ms", "20") as i:
        i.ready(1)
        cpu = lambda: i.gpu(0)["metrics"]["gpumgr_sampler_cpu_seconds_total"]
        first, began = cpu(), time.monotonic()
        wait_for(lambda: time.monotonic() - began > 3, "three seconds")
        rounds = 3 / 0.02
        assert (cpu() - first) / rounds < 400e-6


def test_a_sensor_that_comes_and_goes(sim):
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(8)
        sim.say("fault 6 sensor memory-temperature off")
        wait_for(lambda: "gpu_memory_temperature_celsius" not in i.gpu(6)["metrics"], "the sensor is absent")
        assert i.gpu(6)["state"] == "ok" and "gpu_temperature_celsius" in i.gpu(6)["metrics"]
        assert "gpu_memory_temperature_celsius" in i.gpu(5)["metrics"]


def test_xids_are_counted_once_by_two_sources(sim):
    with Instance(sim, "--wait-ms", "100", "--sampler.kmsg", sim.dir / "kmsg") as i:
        i.ready(8)
        for _ in range(3):
            sim.say("fault 2 xid 31")
        sim.say("fault 2 xid 94")
        wait_for(lambda: {x["code"]: x["count"] for x in i.gpu(2)["xids"]} == {31: 3, 94: 1}, "three and one")
        wait_for(lambda: i.gpu(2)["metrics"]["gpu_xid_errors_total"] == 4, "the total")
        assert len(i.said("xid")) == 4 and "XID 94" in i.said("xid")[-1]["text"]


def test_counts_survive_the_sampler(sim):
    with Instance(sim, "--wait-ms", "100", "--sampler.kmsg", sim.dir / "kmsg") as i:
        i.ready(8)
        sim.say("fault 2 xid 31")
        wait_for(lambda: i.gpu(2)["xids"], "the XID")
        pid = i.sampler()
        kill(pid)
        wait_for(lambda: i.samplers() and i.sampler() != pid, "a new sampler")
        i.ready(8)
        sim.say("fault 2 xid 31")
        wait_for(lambda: {x["code"]: x["count"] for x in i.gpu(2)["xids"]} == {31: 2}, "both")


def test_mig_instances(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "a100", "--mig") as sim, Instance(sim, "--wait-ms", "100") as i:
        i.ready(1)
        gpu = wait_for(lambda: (g := i.gpu(0)) and all("gpu_memory_total_bytes" in p["metrics"] for p in (g, *g["instances"])) and g, "all of it is read")
        assert len(gpu["instances"]) >= 2
        for part in gpu["instances"]:
            assert part["uuid"].startswith("MIG-")
            assert 0 < part["metrics"]["gpu_memory_total_bytes"] < gpu["metrics"]["gpu_memory_total_bytes"]


def test_mig_instances_that_come_and_go(tmp_path):
    """The simulator's layout is fixed when it starts: a library before it hides it for a while."""
    off = tmp_path / "off"
    with Simulator(tmp_path / "sim", "--model", "a100", "--mig") as sim:
        env = {"RECUT_FILE": off}
        with Instance(sim, "--wait-ms", "100", "--gpu-library", BUILD / "tests/libnvml-recut.so", env=env) as i:
            count = len(i.ready(1)["gpus"][0]["instances"])
            assert count >= 2
            off.touch()
            wait_for(lambda: "instances" not in i.gpu(0) or not i.gpu(0)["instances"], "they are gone")
            i.wait_state(0, "ok")
            off.unlink()
            wait_for(lambda: len(i.gpu(0).get("instances", [])) == count, "they are back")
            assert all("other MIG instances" in line["text"] for line in i.said("stop"))


def test_workers_divide_the_gpus(sim):
    with Instance(sim, "--wait-ms", "100", "--sampler.workers", "3") as i:
        assert [g["index"] for g in i.ready(8)["gpus"]] == list(range(8))
        assert len(i.samplers()) == 3
        assert {p.name for p in (i.dir / "run").glob("ring.*")} == {"ring.0", "ring.1", "ring.2"}


def test_only_the_gpus_that_were_asked_for(sim):
    uuid = sim.gpu(6)["uuid"]
    with Instance(sim, "--gpus", f"1,{uuid}") as i:
        assert [g["index"] for g in i.ready(2)["gpus"]] == [1, 6]


def test_energy_follows_the_counter(sim):
    """Integrated between readings of the dear counter, and corrected by it: never backwards, never far off."""
    sim.task("--gpu", "0", "--forever")
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(8)
        reader = i.follow(8)
        lines = followed(reader)
        joules = [x["metrics"]["gpu_energy_joules_total"] for x in lines if x["gpu"] == 0 and "gpu_energy_joules_total" in x["metrics"]]
        assert len(joules) > 50 and joules == sorted(joules)
        truth = sim.gpu(0)["energy_mj"] / 1000
        assert abs(i.gpu(0)["metrics"]["gpu_energy_joules_total"] - truth) < 0.1 * truth + 800


@pytest.mark.long
def test_killed_at_random_for_a_minute(sim):
    """Nothing is lost but the moments in which it was dead, and no reader sees a torn or invented value."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    dice = random.Random(seed)
    total = 143771 << 20
    with Instance(sim, "--wait-ms", "50") as i, Starvation() as starvation:
        i.ready(8)
        reader = i.follow(60)
        end, kills = time.monotonic() + 58, []
        while time.monotonic() < end:
            pause = time.monotonic() + dice.uniform(0.05, 2.5)
            wait_for(lambda: time.monotonic() > pause, "the next moment")
            pid = i.sampler()
            kills.append(time.clock_gettime(time.CLOCK_BOOTTIME))
            kill(pid)
            wait_for(lambda: pid not in i.samplers(), "it is gone")
        lines = followed(reader)
        assert len(kills) > 20
        assert not any(x.get("missed") for x in lines), "a reader that kept up was told of samples that it could not read"
        assert {x["file"] for x in lines} == {1}, "the ring is continued, not begun anew"
        for gpu in range(8):
            mine = [x for x in lines if x["gpu"] == gpu]
            numbers = [x["number"] for x in mine]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            times = [x["boot"] for x in mine if "gpu_temperature_celsius" in x["metrics"]]
            gaps = [(a, b) for a, b in zip(times, times[1:]) if b - a - starvation.between(a, b) > 0.4]
            unexplained = [g for g in gaps if not any(g[0] - 0.1 < k < g[1] for k in kills)]
            assert not unexplained, f"GPU {gpu}: gaps without a kill: {unexplained}"
            assert max((b - a - starvation.between(a, b) for a, b in gaps), default=0) < 1.5
            for x in mine:
                m = x["metrics"]
                assert m.get("gpu_memory_total_bytes", total) == total
                assert 15 < m.get("gpu_temperature_celsius", 30) < 100
                assert 50 < m.get("gpu_power_watts", 100) < 1000
                assert m.get("gpu_utilization_ratio", 0) <= 1


def test_a_gpu_whose_thread_cannot_be_killed_is_left_alone(sim):
    """The rest of a process dies, one thread of it hangs on in the driver: that GPU is not asked by the next process,
    the others are, and it comes back when the thread is gone."""
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(8)
        pid = i.sampler()
        with Unkillable(pid, "gpu-3"):
            kill(pid)
            wait_for(lambda: i.gpu(3)["state"] == "fenced", "it is fenced")
            wait_for(lambda: sum(g["state"] == "ok" for g in i.status()["gpus"]) == 7, "the others are watched")
            assert "stuck" in i.gpu(3)["state_reason"]
            assert i.said("child_fenced") and pid in i.children()
        i.ready(8)
        wait_for(lambda: i.said("fence_open"), "the end of the stuck one is told")
        assert pid not in i.children()
