"""The simulated library's life: sessions, stale handles, driver reloads, lost and hung cards, events, MIG, costs, rights
and threads. What it reads is the matter of test_sim_library.py."""

import ctypes as c
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import nvml_client as nv
from nvml_client import handle, u32, u64
from simulator import LIBRARY, Simulator, can, wait_for


@pytest.fixture
def start(tmp_path, monkeypatch):
    """start(args...) -> (simulator, library), for tests that break things."""
    open_now = []

    def go(*args):
        s = Simulator(tmp_path / f"sim{len(open_now)}", *args)
        monkeypatch.setenv("GPUSIM_DIR", str(s.dir))
        n = nv.Nvml(LIBRARY)
        open_now.extend([n, s])
        return s, n

    yield go
    for thing in open_now:
        thing.__exit__()


def test_refcount_and_stale_handles(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUSIM_DIR", str(tmp_path))
    with Simulator(tmp_path), nv.Nvml(LIBRARY, init=False) as n:
        assert n.Shutdown() == nv.UNINITIALIZED
        assert n.DeviceGetCount_v2(c.byref(u32())) == nv.UNINITIALIZED
        assert n.Init_v2() == nv.OK and n.InitWithFlags(0) == nv.OK
        d = n.device()
        assert n.Shutdown() == nv.OK and n.get("Index", d) == (nv.OK, 0)
        assert n.Shutdown() == nv.OK and n.get("Index", d)[0] == nv.UNINITIALIZED
        assert n.Init_v2() == nv.OK and n.get("Index", d)[0] == nv.INVALID_ARGUMENT
        assert n.InitWithFlags(64) == nv.INVALID_ARGUMENT


def test_without_a_simulator(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUSIM_DIR", str(tmp_path))
    n = nv.Nvml(LIBRARY, init=False)
    assert n.Init_v2() == nv.DRIVER_NOT_LOADED
    out = c.create_string_buffer(80)
    assert n.SystemGetNVMLVersion(out, 80) == nv.OK and out.value


def test_found_beside_the_library(tmp_path):
    """A container mounts library and directory side by side and sets no variable."""
    (tmp_path / "libnvidia-ml.so.1").write_bytes(LIBRARY.read_bytes())
    code = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).nvmlInit_v2())"
    env = {k: v for k, v in os.environ.items() if k != "GPUSIM_DIR"}
    with Simulator(tmp_path / "gpusim", "--gpus", 1):
        run = subprocess.run([sys.executable, "-c", code, tmp_path / "libnvidia-ml.so.1"], env=env, timeout=20)
    assert run.returncode == nv.OK


def test_lost(start):
    sim, n = start("--gpus", 2)
    a, b = n.device(0), n.device(1)
    sim.say("fault 0 lost")
    wait_for(lambda: n.get("Temperature", a, 0)[0] == nv.GPU_IS_LOST, "the card is lost")
    assert n.text("Name", a)[0] == nv.GPU_IS_LOST
    assert n.DeviceGetHandleByIndex_v2(0, c.byref(handle())) == nv.GPU_IS_LOST
    assert n.get("Temperature", b, 0)[0] == nv.OK
    count = u32()
    assert n.DeviceGetCount_v2(c.byref(count)) == nv.OK and count.value == 2


def test_a_sensor_that_goes(start):
    sim, n = start("--gpus", 1)
    d = n.device()
    sim.say("fault 0 sensor power off")
    wait_for(lambda: n.get("PowerUsage", d)[0] == nv.NOT_SUPPORTED, "power is gone")
    assert n.get("Temperature", d, 0)[0] == nv.OK
    sim.say("heal 0")
    wait_for(lambda: n.get("PowerUsage", d)[0] == nv.OK, "power is back")


def test_driver_reload(start):
    sim, n = start("--gpus", 1)
    d = n.device()
    sim.say("fault 0 driver-reload 1")
    wait_for(lambda: n.get("Temperature", d, 0)[0] == nv.DRIVER_NOT_LOADED, "the driver is gone")
    wait_for(lambda: n.get("Temperature", d, 0)[0] == nv.UNINITIALIZED, "the driver is back, the session is not")
    assert n.Shutdown() == nv.OK and n.Init_v2() == nv.OK
    assert n.get("Temperature", d, 0)[0] == nv.INVALID_ARGUMENT
    assert n.get("Temperature", n.device(), 0)[0] == nv.OK


def test_driver_mismatch(start):
    sim, n = start("--gpus", 1)
    sim.say("fault 0 driver-mismatch")
    wait_for(lambda: n.Shutdown() == nv.OK and n.Init_v2() == nv.VERSION_MISMATCH, "init tells the mismatch")


def test_simulator_restarted(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUSIM_DIR", str(tmp_path / "sim"))
    with nv.Nvml(LIBRARY, init=False) as n:
        with Simulator(tmp_path / "sim", "--gpus", 1):
            assert n.Init_v2() == nv.OK
            d = n.device()
        assert n.get("Temperature", d, 0)[0] == nv.DRIVER_NOT_LOADED
        assert n.Shutdown() == nv.OK and n.Init_v2() == nv.DRIVER_NOT_LOADED
        with Simulator(tmp_path / "sim", "--gpus", 3):
            assert n.Init_v2() == nv.OK
            count = u32()
            assert n.DeviceGetCount_v2(c.byref(count)) == nv.OK and count.value == 3
            assert n.Shutdown() == nv.OK


HANG = """
import ctypes, sys, threading
lib = ctypes.CDLL(sys.argv[1])
assert lib.nvmlInit_v2() == 0
out = ctypes.c_uint()
def ask(index, call, *more):
    h = ctypes.c_void_p()
    assert lib.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(h)) == 0
    getattr(lib, call)(h, *more, ctypes.byref(out))
    sys.stdout.write(f"{index} {call}\\n"); sys.stdout.flush()
print("pid", __import__("os").getpid(), flush=True)
sys.stdin.readline()
jobs = [(0, "nvmlDeviceGetTemperature", 0), (0, "nvmlDeviceGetPowerUsage"), (1, "nvmlDeviceGetTemperature", 0)]
for job in jobs:
    threading.Thread(target=ask, args=job, daemon=True).start()
sys.stdin.readline()
"""


def hanging(sim):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    p = subprocess.Popen([sys.executable, "-c", HANG, LIBRARY], env=sim.env, **pipes)
    return p, int(p.stdout.readline().split()[1])


def answers(p, count):
    return sorted(p.stdout.readline().strip() for _ in range(count))


@pytest.mark.parametrize("words,hangs", [
    ("", {"0 nvmlDeviceGetTemperature", "0 nvmlDeviceGetPowerUsage"}),
    ("nvmlDeviceGetTemperature", {"0 nvmlDeviceGetTemperature"}),
    ("pid=MINE", {"0 nvmlDeviceGetTemperature", "0 nvmlDeviceGetPowerUsage"}),
    ("pid=1", set()),
])
def test_hang(start, words, hangs):
    """Calls that never return do so on one card, in one client, for one function; others answer; healing lets go."""
    sim, n = start("--gpus", 2)
    p, pid = hanging(sim)
    try:
        sim.say("fault 0 hang " + words.replace("MINE", str(pid)))
        wait_for(lambda: sim.gpu(0)["hung"], "the fault is in the memory")
        every = {"0 nvmlDeviceGetTemperature", "0 nvmlDeviceGetPowerUsage", "1 nvmlDeviceGetTemperature"}
        p.stdin.write("go\n")
        p.stdin.flush()
        assert answers(p, len(every - hangs)) == sorted(every - hangs)
        if words == "pid=MINE":
            assert n.get("Temperature", n.device(0), 0)[0] == nv.OK
        sim.say("heal 0")
        assert answers(p, len(hangs)) == sorted(hangs)
    finally:
        p.kill()
        p.wait()


def test_events(start):
    sim, n = start("--gpus", 2)
    s, e, old = handle(), nv.Event(), nv.EventOld()
    a, b = n.device(0), n.device(1)
    assert n.EventSetCreate(c.byref(s)) == nv.OK
    assert n.EventSetWait_v2(s, c.byref(e), 10) == nv.TIMEOUT
    sim.say("fault 0 xid 31")  # before anyone asked: never told
    assert n.DeviceRegisterEvents(a, u64(8), s) == nv.OK
    assert n.DeviceRegisterEvents(a, u64(1 << 40), s) == nv.NOT_SUPPORTED
    assert n.EventSetWait_v2(s, c.byref(e), 50) == nv.TIMEOUT
    sim.say("fault 1 xid 13")  # not of this set
    sim.say("fault 0 xid 43")
    assert n.EventSetWait_v2(s, c.byref(e), 5000) == nv.OK
    assert (e.type, e.data, e.gi, e.ci) == (8, 43, 0xFFFFFFFF, 0xFFFFFFFF)
    assert n.get("Index", handle(e.device)) == (nv.OK, 0)
    assert n.DeviceRegisterEvents(b, u64(8), s) == nv.OK
    sim.say("fault 1 xid 94")
    assert n.EventSetWait(s, c.byref(old), 5000) == nv.OK and (old.type, old.data) == (8, 94)
    sim.say("fault 1 lost")
    assert n.EventSetWait_v2(s, c.byref(e), 5000) == nv.OK and e.data == 79
    assert n.EventSetWait_v2(s, c.byref(e), 5000) == nv.GPU_IS_LOST
    assert n.EventSetFree(s) == nv.OK
    assert n.EventSetFree(s) == nv.INVALID_ARGUMENT
    assert n.EventSetWait_v2(s, c.byref(e), 10) == nv.INVALID_ARGUMENT


@pytest.mark.alone
def test_event_wait_is_timely(start):
    sim, n = start("--gpus", 1)
    s, e = handle(), nv.Event()
    assert n.EventSetCreate(c.byref(s)) == nv.OK and n.DeviceRegisterEvents(n.device(), u64(8), s) == nv.OK
    before = time.monotonic()
    assert n.EventSetWait_v2(s, c.byref(e), 300) == nv.TIMEOUT
    assert 0.29 < time.monotonic() - before < 1


@pytest.mark.parametrize("model", ["h200", "a100"])
def test_mig(start, model):
    sim, n = start("--model", model, "--gpus", 1, "--mig")
    d, g = n.device(), sim.gpu()
    now, next_, count, m = u32(), u32(), u32(), handle()
    assert n.DeviceGetMigMode(d, c.byref(now), c.byref(next_)) == nv.OK and (now.value, next_.value) == (1, 1)
    assert n.get("UtilizationRates", d, kind=nv.Utilization)[0] == nv.NOT_SUPPORTED
    assert n.DeviceGetMaxMigDeviceCount(d, c.byref(count)) == nv.OK and count.value == 7
    assert len(g["mig"]) > 1
    for i, want in enumerate(g["mig"]):
        assert n.DeviceGetMigDeviceHandleByIndex(d, i, c.byref(m)) == nv.OK
        assert n.text("UUID", m) == (nv.OK, want["uuid"]) and want["uuid"].startswith("MIG-")
        assert n.text("Name", m)[1].endswith("MIG " + want["profile"])
        assert n.get("GpuInstanceId", m) == (nv.OK, want["gi"]) and n.get("ComputeInstanceId", m) == (nv.OK, want["ci"])
        is_mig = u32()
        assert n.DeviceIsMigDeviceHandle(m, c.byref(is_mig)) == nv.OK and is_mig.value == 1
        code, attributes = n.get("Attributes_v2", m, kind=nv.Attributes)
        assert code == nv.OK and attributes.sm == want["sm_count"] and attributes.memory_mib == want["memory_bytes"] >> 20
        code, memory = n.get("MemoryInfo", m, kind=nv.Memory)
        assert code == nv.OK and memory.total == want["memory_bytes"]
        code, bar = n.get("BAR1MemoryInfo", m, kind=nv.Memory)
        assert code == nv.OK and 0 < bar.total < g["bar1_bytes"]
        assert n.get("MemoryErrorCounter", m, 1, 0, 7, kind=u64) == (nv.OK, 0)
        assert n.get("MemoryErrorCounter", m, 0, 0, 2, kind=u64)[0] == nv.NOT_SUPPORTED
        assert n.get("PowerUsage", m)[0] == nv.NOT_SUPPORTED
        assert n.DeviceGetDeviceHandleFromMigDeviceHandle(m, c.byref(m)) == nv.OK and n.text("UUID", m)[1] == g["uuid"]
    hole = n.DeviceGetMigDeviceHandleByIndex(d, len(g["mig"]), c.byref(m))
    assert hole == nv.NOT_FOUND
    assert n.DeviceGetMigDeviceHandleByIndex(d, 99, c.byref(m)) == nv.NOT_FOUND
    assert n.DeviceGetHandleByUUID(g["mig"][1]["uuid"].encode(), c.byref(m)) == nv.OK
    assert n.get("GpuInstanceId", m)[1] == g["mig"][1]["gi"]
    assert n.DeviceGetGpuInstanceId(d, c.byref(count)) == nv.INVALID_ARGUMENT
    sample = handle()
    assert n.GpmSampleAlloc(c.byref(sample)) == nv.OK
    want = nv.OK if can(g, "GPM") else nv.NOT_SUPPORTED
    assert n.GpmMigSampleGet(d, g["mig"][0]["gi"], sample) == want


@pytest.mark.alone
def test_costs(start):
    sim, n = start("--gpus", 1, "--costs")
    d = n.device()

    def spent(call, *args):
        wall, cpu = time.perf_counter(), time.thread_time()
        call(*args)
        return time.perf_counter() - wall, time.thread_time() - cpu

    wall, cpu = min(spent(n.get, "PcieThroughput", d, 0) for _ in range(5))
    assert 0.020 < wall < 0.030 and cpu < 0.004
    wall, cpu = min(spent(lambda: n.get("TotalEnergyConsumption", d, kind=u64)) for _ in range(5))
    assert 0.003 < cpu < 0.006
    assert min(spent(n.get, "Temperature", d, 0) for _ in range(50))[0] < 0.001
    assert n.fields(d, 83)[0].latency > 3000 and n.fields(d, 82)[0].latency < 1000


NOBODY = """
import ctypes, os, sys
os.setgid(65534); os.setuid(65534)
lib, h = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
assert lib.nvmlInit_v2() == 0 and lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(h)) == 0
sys.exit(getattr(lib, sys.argv[2])(h, *map(int, sys.argv[3:])))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_set_calls_need_the_right(monkeypatch):
    with tempfile.TemporaryDirectory() as place:  # pytest's own directories are closed to others
        os.chmod(place, 0o755)
        library = Path(place, "libnvidia-ml.so.1")
        library.write_bytes(LIBRARY.read_bytes())
        with Simulator(Path(place, "gpusim"), "--model", "p100") as sim:
            as_nobody = lambda *words: subprocess.run(
                [sys.executable, "-c", NOBODY, library, *map(str, words)], env=sim.env, timeout=20).returncode
            app_clocks = ["nvmlDeviceSetApplicationsClocks", sim.gpu()["mem_clocks"][0], sim.gpu()["gr_clocks"][3]]
            assert as_nobody("nvmlDeviceSetPowerManagementLimit", 200000) == nv.NO_PERMISSION
            assert as_nobody(*app_clocks) == nv.NO_PERMISSION
            assert as_nobody("nvmlDeviceSetAPIRestriction", 0, 0) == nv.NO_PERMISSION
            monkeypatch.setenv("GPUSIM_DIR", str(sim.dir))
            with nv.Nvml(LIBRARY) as n:
                assert n.get("APIRestriction", n.device(), 0) == (nv.OK, 1)
                assert n.DeviceSetAPIRestriction(n.device(), 0, 0) == nv.OK
                wait_for(lambda: n.get("APIRestriction", n.device(), 0) == (nv.OK, 0), "application clocks are open")
                assert as_nobody(*app_clocks) == nv.OK
                wait_for(lambda: n.get("ApplicationsClock", n.device(), 0)[1] == app_clocks[2], "somebody set them")


def test_killed_simulator(start):
    """Its memory stays behind with the last readings in it; they must not pass for readings."""
    sim, n = start("--gpus", 1)
    d = n.device()
    sim.process.kill()
    sim.process.wait()
    wait_for(lambda: n.get("Temperature", d, 0)[0] == nv.DRIVER_NOT_LOADED, "the driver is gone")
    assert n.Shutdown() == nv.OK and n.Init_v2() == nv.DRIVER_NOT_LOADED


def test_many_threads(start):
    """Getters from many threads while others initialise and shut down; answers are answers or UNINITIALIZED, never torn."""
    sim, n = start("--gpus", 4)
    handles = [n.device(i) for i in range(4)]
    uuids = [g["uuid"] for g in sim.facts()["gpus"]]

    def read(k):
        for _ in range(300):
            assert n.text("UUID", handles[k % 4]) == (nv.OK, uuids[k % 4])
            assert n.Init_v2() == nv.OK and n.Shutdown() == nv.OK
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(8)))
