"""The simulated libnvidia-ml.so.1, driven as any NVML client drives a driver's: every model, every group of calls, and the
traps that a driver sets. What it answers is held against the simulator's own memory (gpusim-facts)."""

import ctypes as c
import os
import re
import subprocess
import time

import pytest

import nvml_client as nv
from nvml_client import handle, i32, u32, u64
from simulator import LIBRARY, ROOT, Simulator, can, wait_for


def models():
    text = (ROOT / "sim/models.c").read_text()
    return re.findall(r'\.key = "([\w-]+)"', text)


@pytest.fixture(scope="module", params=models())
def sim(request, tmp_path_factory):
    with Simulator(tmp_path_factory.mktemp(request.param), "--model", request.param, "--gpus", 2) as s:
        yield s


@pytest.fixture
def nvml(sim, monkeypatch):
    monkeypatch.setenv("GPUSIM_DIR", str(sim.dir))
    with nv.Nvml(LIBRARY) as n:
        yield n


def agrees(sim, ask, fact, index=0):
    """Whether the library says what the memory says. Cards move between two looks, so the memory is looked at before and
    after, and a reading that lies between the two will do."""
    for _ in range(20):
        before, said, after = fact(sim.gpu(index)), ask(), fact(sim.gpu(index))
        if said == before or said == after:
            return True
        if isinstance(said, (int, float)) and min(before, after) <= said <= max(before, after):
            return True
    raise AssertionError(f"said {said}, the memory has {before} and then {after}")


# One row a question with one answer: call, the abilities it needs, and the memory's own answer.
ANSWERS = [
    ("PowerUsage", ["POWER"], lambda g: g["power_inst_mw" if g["power_usage_is_instant"] else "power_avg_mw"]),
    ("PowerManagementLimit", ["POWER_LIMIT"], lambda g: g["limit_mw"]),
    ("PowerManagementDefaultLimit", ["POWER_LIMIT"], lambda g: g["power_default_mw"]),
    ("EnforcedPowerLimit", ["POWER_LIMIT"], lambda g: g["enforced_mw"]),
    ("PerformanceState", ["PSTATE"], lambda g: g["pstate"]),
    ("PowerState", ["PSTATE"], lambda g: g["pstate"]),
    ("FanSpeed", ["FAN"], lambda g: g["fan"][0]),
    ("NumFans", [], lambda g: g["fan_count"]),
    ("PersistenceMode", ["PERSISTENCE"], lambda g: g["persistence"]),
    ("ComputeMode", ["COMPUTE_MODE"], lambda g: g["compute_mode"]),
    ("CurrPcieLinkGeneration", ["PCIE"], lambda g: g["pcie_gen"]),
    ("CurrPcieLinkWidth", ["PCIE"], lambda g: g["pcie_width"]),
    ("MaxPcieLinkGeneration", ["PCIE"], lambda g: g["pcie_gen_max"]),
    ("GpuMaxPcieLinkGeneration", ["PCIE"], lambda g: g["pcie_gen_device"]),
    ("MaxPcieLinkWidth", ["PCIE"], lambda g: g["pcie_width_max"]),
    ("PcieReplayCounter", ["PCIE_REPLAY"], lambda g: g["pcie_replays"]),
    ("Brand", [], lambda g: g["brand"]),
    ("Architecture", [], lambda g: g["architecture"]),
    ("MinorNumber", [], lambda g: g["minor_number"]),
    ("Index", [], lambda g: g["index"]),
    ("BoardId", [], lambda g: g["board_id"]),
    ("NumGpuCores", [], lambda g: g["cores"]),
    ("MemoryBusWidth", [], lambda g: g["bus_width_bits"]),
    ("IrqNum", [], lambda g: g["irq"]),
    ("DefaultEccMode", ["ECC"], lambda g: 1),
]
ANSWERS_64 = [
    ("TotalEnergyConsumption", ["ENERGY"], lambda g: g["energy_mj"]),
    ("CurrentClocksEventReasons", ["REASONS"], lambda g: g["reasons"]),
    ("CurrentClocksThrottleReasons", ["REASONS"], lambda g: g["reasons"]),
    ("SupportedClocksEventReasons", ["REASONS"], lambda g: g["supported_reasons"]),
    ("SupportedEventTypes", ["EVENTS"], lambda g: g["event_types"]),
]
TEXTS = [
    ("Name", [], "name"), ("UUID", [], "uuid"), ("VbiosVersion", [], "vbios"), ("Serial", ["SERIAL"], "serial"),
    ("BoardPartNumber", ["BOARD_PART"], "board_part"), ("InforomImageVersion", ["INFOROM"], "inforom_image"),
]


def test_every_listed_function_is_exported_and_nothing_else():
    listed = re.findall(r"^    X\((\w+)\)", (ROOT / "sim/nvml_calls.h").read_text(), re.M)
    nm = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    exported = [line.split()[-1] for line in nm.splitlines()]
    assert sorted(exported) == sorted(listed)
    assert len(listed) > 200


def test_soname_is_the_drivers():
    out = subprocess.run(["objdump", "-p", LIBRARY], capture_output=True, text=True, check=True).stdout
    assert re.search(r"SONAME\s+libnvidia-ml\.so\.1$", out, re.M)


@pytest.mark.parametrize("call,needs,fact", ANSWERS, ids=[a[0] for a in ANSWERS])
def test_one_answer(sim, nvml, call, needs, fact):
    d = nvml.device()
    if can(sim.gpu(), *needs):
        assert agrees(sim, lambda: nvml.get(call, d)[1], fact)
        assert nvml.get(call, d)[0] == nv.OK
    else:
        assert nvml.get(call, d)[0] == nv.NOT_SUPPORTED
    assert getattr(nvml, "DeviceGet" + call)(d, None) == nv.INVALID_ARGUMENT
    assert nvml.get(call, handle(0x1234))[0] == nv.INVALID_ARGUMENT


@pytest.mark.parametrize("call,needs,fact", ANSWERS_64, ids=[a[0] for a in ANSWERS_64])
def test_one_long_answer(sim, nvml, call, needs, fact):
    d = nvml.device()
    if not can(sim.gpu(), *needs):
        assert nvml.get(call, d, kind=u64)[0] == nv.NOT_SUPPORTED
        return
    assert agrees(sim, lambda: nvml.get(call, d, kind=u64)[1], fact)


@pytest.mark.parametrize("call,needs,fact", TEXTS, ids=[a[0] for a in TEXTS])
def test_text(sim, nvml, call, needs, fact):
    d = nvml.device(1)
    if not can(sim.gpu(1), *needs):
        assert nvml.text(call, d)[0] == nv.NOT_SUPPORTED
        return
    want = sim.gpu(1)[fact]
    assert nvml.text(call, d) == (nv.OK, want)
    assert nvml.text(call, d, len(want))[0] == nv.INSUFFICIENT_SIZE
    assert nvml.text(call, d, len(want) + 1) == (nv.OK, want)


def test_system(sim, nvml):
    out, facts, n = c.create_string_buffer(80), sim.facts(), i32()
    assert nvml.SystemGetDriverVersion(out, 80) == nv.OK and out.value.decode() == facts["driver_version"]
    assert nvml.SystemGetNVMLVersion(out, 80) == nv.OK and out.value.decode() == facts["nvml_version"]
    assert nvml.SystemGetDriverVersion(out, 3) == nv.INSUFFICIENT_SIZE
    assert nvml.SystemGetCudaDriverVersion_v2(c.byref(n)) == nv.OK and n.value == facts["cuda_version"]
    assert nvml.SystemGetProcessName(os.getpid(), out, 80) == nv.OK and b"python" in out.value
    assert nvml.SystemGetProcessName(os.getpid(), out, 4) == nv.OK and len(out.value) == 3
    assert nvml.SystemGetProcessName(2**22 + 1, out, 80) == nv.NOT_FOUND
    assert nvml.UnitGetCount(c.byref(n)) == nv.OK and n.value == 0
    assert nvml.UnitGetHandleByIndex(0, c.byref(handle())) == nv.INVALID_ARGUMENT
    assert nvml.ErrorString(15) == b"GPU is lost" and nvml.ErrorString(4711) == b"Unknown Error"


def test_handles(sim, nvml):
    g, h, n = sim.gpu(1), handle(), u32()
    assert nvml.DeviceGetCount_v2(c.byref(n)) == nv.OK and n.value == 2
    assert nvml.DeviceGetCount(c.byref(n)) == nv.OK and n.value == 2
    assert nvml.DeviceGetHandleByIndex_v2(2, c.byref(h)) == nv.INVALID_ARGUMENT
    short = "%02x:%02x.0" % (g["pci_bus"], g["pci_device"])
    forms = ["%08X:%02X:%02X.0" % (g["pci_domain"], g["pci_bus"], g["pci_device"]), "%04x:%s" % (g["pci_domain"], short)]
    if g["pci_domain"] == 0:
        forms.append(short)
    for form in forms:
        assert nvml.DeviceGetHandleByPciBusId_v2(form.encode(), c.byref(h)) == nv.OK, form
        assert nvml.text("UUID", h)[1] == g["uuid"]
    assert nvml.DeviceGetHandleByPciBusId_v2(b"0000:ff:1f.0", c.byref(h)) == nv.NOT_FOUND
    assert nvml.DeviceGetHandleByPciBusId_v2(b"nonsense", c.byref(h)) == nv.INVALID_ARGUMENT
    assert nvml.DeviceGetHandleByUUID(g["uuid"].encode(), c.byref(h)) == nv.OK and nvml.get("Index", h)[1] == 1
    assert nvml.DeviceGetHandleByUUID(b"GPU-none", c.byref(h)) == nv.NOT_FOUND
    want = nv.OK if can(g, "SERIAL") else nv.NOT_FOUND
    assert nvml.DeviceGetHandleBySerial(g["serial"].encode(), c.byref(h)) == want


def test_pci(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    code, pci = nvml.get("PciInfo_v3", d, kind=nv.Pci)
    assert code == nv.OK
    assert (pci.domain, pci.bus, pci.device) == (g["pci_domain"], g["pci_bus"], g["pci_device"])
    assert (pci.id, pci.subsystem) == (g["pci_device_id"], g["pci_subsystem_id"])
    assert pci.bus_id.decode() == "%08X:%02X:%02X.0" % (pci.domain, pci.bus, pci.device)
    assert pci.legacy.decode() == "%04X:%02X:%02X.0" % (pci.domain, pci.bus, pci.device)
    old = (c.c_ubyte * 68)(*[0xAA] * 68)  # the old layout must not be written beyond its ids
    assert nvml.DeviceGetPciInfo(d, old) == nv.OK and bytes(old)[:36] == bytes(pci)[:36] and set(old[36:]) == {0xAA}
    assert nvml.DeviceGetPciInfo_v2(d, old) == nv.OK and set(old[36:]) == {0xAA}


def test_memory(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    m, m2 = nv.Memory(), nv.Memory2(version=nv.Memory2.word(2))
    if not can(g, "MEMORY"):
        assert nvml.DeviceGetMemoryInfo(d, c.byref(m)) == nv.NOT_SUPPORTED
        return
    assert nvml.DeviceGetMemoryInfo(d, c.byref(m)) == nv.OK
    assert nvml.DeviceGetMemoryInfo_v2(d, c.byref(m2)) == nv.OK
    assert m.total == m2.total == g["memory_bytes"] and m2.reserved == g["reserved_bytes"]
    assert m.used == m2.used + m2.reserved and m2.used == g["used_bytes"] and m.free == m2.free
    assert m2.used + m2.reserved + m2.free == m2.total
    m2.version = 2
    assert nvml.DeviceGetMemoryInfo_v2(d, c.byref(m2)) == nv.FUNCTION_NOT_FOUND  # it is older than the code for this


def test_bar1(sim, nvml):
    code, bar = nvml.get("BAR1MemoryInfo", nvml.device(), kind=nv.Memory)
    g = sim.gpu()
    assert code == (nv.OK if can(g, "BAR1") else nv.NOT_SUPPORTED)
    if code == nv.OK:
        assert (bar.total, bar.used, bar.free) == (g["bar1_bytes"], g["bar1_used_bytes"], bar.total - bar.used)


def test_temperatures(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    assert agrees(sim, lambda: nvml.get("Temperature", d, 0)[1], lambda g: g["temp_c"])
    assert nvml.get("Temperature", d, 1)[0] == nv.INVALID_ARGUMENT
    t = nv.Temperature(version=nv.Temperature.word(1))
    assert nvml.DeviceGetTemperatureV(d, c.byref(t)) == nv.OK and abs(t.celsius - g["temp_c"]) < 5
    t.version = 1
    assert nvml.DeviceGetTemperatureV(d, c.byref(t)) == nv.BAD_VERSION
    margin = nv.Margin(version=nv.Margin.word(1))
    code = nvml.DeviceGetMarginTemperature(d, c.byref(margin))
    assert code == (nv.OK if can(g, "MARGIN") else nv.NOT_SUPPORTED)
    if code == nv.OK:
        assert abs(margin.celsius - g["margin_c"]) < 5
    names = ["shutdown_c", "slowdown_c", "mem_max_c", "gpu_max_c", "acoustic_min_c", "acoustic_c", "acoustic_max_c"]
    for kind, name in enumerate(names):
        has_it = can(g, "THRESHOLDS") and g[name] != 0 and (kind < 4 or g["acoustic_max_c"] != 0)
        assert nvml.get("TemperatureThreshold", d, kind) == ((nv.OK, g[name]) if has_it else (nv.NOT_SUPPORTED, 0)), name
    assert nvml.get("TemperatureThreshold", d, 99)[0] == (nv.INVALID_ARGUMENT if can(g, "THRESHOLDS") else nv.NOT_SUPPORTED)


def test_fans(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    low, high = u32(), u32()
    rpm = nv.FanSpeed(version=nv.FanSpeed.word(1))
    if not can(g, "FAN"):  # as an H200 answers: no fans, so every number of one is wrong
        assert nvml.get("FanSpeed", d)[0] == nv.NOT_SUPPORTED
        for code in (nvml.get("FanSpeed_v2", d, 0)[0], nvml.DeviceGetMinMaxFanSpeed(d, c.byref(low), c.byref(high)),
                     nvml.DeviceGetFanSpeedRPM(d, c.byref(rpm)), nvml.get("FanControlPolicy_v2", d, 0)[0]):
            assert code == nv.INVALID_ARGUMENT
        rpm.version = 1
        assert nvml.DeviceGetFanSpeedRPM(d, c.byref(rpm)) == nv.BAD_VERSION
        return
    for fan in range(g["fan_count"]):
        assert agrees(sim, lambda: nvml.get("FanSpeed_v2", d, fan)[1], lambda g: g["fan"][4 * fan])
        assert nvml.get("FanControlPolicy_v2", d, fan) == (nv.OK, 0)
    assert nvml.get("FanSpeed_v2", d, g["fan_count"])[0] == nv.INVALID_ARGUMENT
    assert nvml.DeviceGetMinMaxFanSpeed(d, c.byref(low), c.byref(high)) == nv.OK
    assert (low.value, high.value) == (g["fan_min_pct"], g["fan_max_pct"])
    assert nvml.DeviceGetFanSpeedRPM(d, c.byref(rpm)) == nv.OK
    rpm.version = 1
    assert nvml.DeviceGetFanSpeedRPM(d, c.byref(rpm)) == nv.BAD_VERSION


def test_power_box(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    low, high = u32(), u32()
    code = nvml.DeviceGetPowerManagementLimitConstraints(d, c.byref(low), c.byref(high))
    assert code == (nv.OK if can(g, "POWER_LIMIT") else nv.NOT_SUPPORTED)
    if code == nv.OK:
        assert (low.value, high.value) == (g["power_min_mw"], g["power_max_mw"])
    for policy in (0, 1, 2, 3, 4, 5, 10, 11):
        v = nv.Violation()
        code = nvml.DeviceGetViolationStatus(d, policy, c.byref(v))
        assert code == (nv.OK if can(g, "VIOLATION") else nv.NOT_SUPPORTED)
        if code == nv.OK:
            assert abs(v.at - time.time() * 1e6) < 5e6


def test_clocks(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    for kind, (now, top) in enumerate([("gr_mhz", "gr_max_mhz"), ("sm_mhz", "gr_max_mhz"), ("mem_mhz", "mem_max_mhz"),
                                       ("video_mhz", "video_max_mhz")]):
        assert agrees(sim, lambda: nvml.get("ClockInfo", d, kind)[1], lambda g: g[now])
        assert nvml.get("MaxClockInfo", d, kind) == (nv.OK, g[top])
        assert agrees(sim, lambda: nvml.get("Clock", d, kind, 0)[1], lambda g: g[now])
    assert nvml.get("ClockInfo", d, 4)[0] == nv.NOT_SUPPORTED
    for kind, now, default in [(0, "app_gr_mhz", "app_gr_default_mhz"), (2, "app_mem_mhz", "app_mem_default_mhz")]:
        if can(g, "APP_CLOCKS"):
            assert nvml.get("ApplicationsClock", d, kind) == (nv.OK, g[now])
            assert nvml.get("DefaultApplicationsClock", d, kind) == (nv.OK, g[default])
        else:
            assert nvml.get("ApplicationsClock", d, kind)[0] == nv.NOT_SUPPORTED


def test_supported_clocks(sim, nvml):
    d, g, count = nvml.device(), sim.gpu(), u32(0)
    code = nvml.DeviceGetSupportedMemoryClocks(d, c.byref(count), None)
    if not can(g, "SUPPORTED_CLOCKS"):
        assert code == nv.NOT_SUPPORTED
        return
    assert code == nv.INSUFFICIENT_SIZE and count.value == g["mem_clock_count"]
    mem = (u32 * count.value)()
    assert nvml.DeviceGetSupportedMemoryClocks(d, c.byref(count), mem) == nv.OK and list(mem) == g["mem_clocks"]
    count.value = 0
    assert nvml.DeviceGetSupportedGraphicsClocks(d, mem[0], c.byref(count), None) == nv.INSUFFICIENT_SIZE
    graphics = (u32 * count.value)()
    assert nvml.DeviceGetSupportedGraphicsClocks(d, mem[0], c.byref(count), graphics) == nv.OK
    assert list(graphics) == g["gr_clocks"]
    count.value -= 1
    assert nvml.DeviceGetSupportedGraphicsClocks(d, mem[0], c.byref(count), graphics) == nv.INSUFFICIENT_SIZE
    assert nvml.DeviceGetSupportedGraphicsClocks(d, 1, c.byref(count), graphics) == nv.NOT_FOUND


def test_utilization(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    assert nvml.get("UtilizationRates", d, kind=nv.Utilization)[0] == (nv.OK if can(g, "UTIL") else nv.NOT_SUPPORTED)
    for call, needs, fact in [("Encoder", "CODEC", "util_enc"), ("Decoder", "CODEC", "util_dec"), ("Jpg", "JPEG_OFA", "util_jpg"),
                              ("Ofa", "JPEG_OFA", "util_ofa")]:
        used, period = u32(), u32()
        code = getattr(nvml, f"DeviceGet{call}Utilization")(d, c.byref(used), c.byref(period))
        assert code == (nv.OK if can(g, needs) else nv.NOT_SUPPORTED)
        if code == nv.OK:
            assert used.value == g[fact] and period.value > 0


def test_samples(sim, nvml):
    d, g, kind, count = nvml.device(), sim.gpu(), u32(), u32()
    if not can(g, "SAMPLES"):
        assert nvml.DeviceGetSamples(d, 0, u64(0), c.byref(kind), c.byref(count), None) == nv.NOT_SUPPORTED
        return
    assert nvml.DeviceGetSamples(d, 0, u64(0), c.byref(kind), c.byref(count), None) == nv.OK
    room = count.value
    samples = (nv.Sample * room)()

    def newer(than):
        count.value = room
        return nvml.DeviceGetSamples(d, 0, u64(than), c.byref(kind), c.byref(count), samples)

    wait_for(lambda: newer(0) == nv.OK and count.value >= 2, "two samples")
    assert kind.value == 1
    times = [s.at for s in samples[: count.value]]
    assert times == sorted(set(times))
    assert newer(times[-1] + 10**9) == nv.NOT_FOUND and count.value == room  # left as it was
    assert nvml.DeviceGetSamples(d, 99, u64(0), c.byref(kind), c.byref(count), None) == nv.INVALID_ARGUMENT


def test_ecc(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    current, pending, total = u32(), u32(), u64()
    code = nvml.DeviceGetEccMode(d, c.byref(current), c.byref(pending))
    if not can(g, "ECC"):
        assert code == nv.NOT_SUPPORTED
        assert nvml.DeviceGetTotalEccErrors(d, 0, 0, c.byref(total)) == nv.NOT_SUPPORTED
        return
    assert code == nv.OK and (current.value, pending.value) == (1, 1)
    sim.say("fault 0 ecc corrected 7")
    wait_for(lambda: sum(sim.gpu()["ecc_corrected"][:8]) >= 7, "errors are counted")
    g = sim.gpu()
    for counter in (0, 1):
        assert nvml.DeviceGetTotalEccErrors(d, 0, counter, c.byref(total)) == nv.OK
        assert total.value == sum(g["ecc_corrected"][8 * counter: 8 * counter + 8])
        detail = nv.EccCounts()
        assert nvml.DeviceGetDetailedEccErrors(d, 0, counter, c.byref(detail)) == nv.OK
        assert detail.memory == g["ecc_corrected"][8 * counter + 2]
        assert nvml.DeviceGetMemoryErrorCounter(d, 0, counter, 2, c.byref(total)) == nv.OK and total.value == detail.memory
        tells_places = g["architecture"] < 7  # from Ampere on: DRAM and SRAM
        want = nv.OK if tells_places else nv.NOT_SUPPORTED
        assert nvml.DeviceGetMemoryErrorCounter(d, 0, counter, 1, c.byref(total)) == want
        assert nvml.fields(d, 9)[0].result == want
    assert nvml.DeviceGetTotalEccErrors(d, 2, 0, c.byref(total)) == nv.INVALID_ARGUMENT
    assert nvml.DeviceGetMemoryErrorCounter(d, 0, 0, 8, c.byref(total)) == nv.INVALID_ARGUMENT
    assert nvml.fields(d, 3, 5, 11)[0].value == sum(g["ecc_corrected"][:8])


def test_retired_and_remapped(sim, nvml):
    d, g, n = nvml.device(), sim.gpu(), u32(0)
    pages = (u64 * 64)()
    n.value = 64
    code = nvml.DeviceGetRetiredPages(d, 0, c.byref(n), pages)
    assert code == (nv.OK if can(g, "RETIRED_PAGES") else nv.NOT_SUPPORTED)
    if code == nv.OK:
        assert n.value == g["retired_sbe"]
    words = [u32() for _ in range(4)]
    code = nvml.DeviceGetRemappedRows(d, *map(c.byref, words))
    assert code == (nv.OK if can(g, "REMAP") else nv.NOT_SUPPORTED)
    if code == nv.OK:
        assert words[0].value == g["remapped_corrected"]
        h = nv.Histogram()
        assert nvml.DeviceGetRowRemapperHistogram(d, c.byref(h)) == nv.OK and h.max > 0


# field, abilities, type (1 u32, 3 u64, 5 s32), the memory's answer
FIELDS = [
    (82, ["MEM_TEMP"], 1, lambda g: g["mem_temp_c"]),
    (83, ["ENERGY"], 3, lambda g: g["energy_mj"]),
    (91, ["NVLINK"], 1, lambda g: g["link_count"]),
    (94, ["PCIE_REPLAY"], 1, lambda g: g["pcie_replays"]),
    (142, ["REMAP"], 3, lambda g: g["remapped_corrected"]),
    (185, ["POWER_FIELDS"], 1, lambda g: g["power_avg_mw"]),
    (186, ["POWER_FIELDS"], 1, lambda g: g["power_inst_mw"]),
    (187, ["POWER_FIELDS"], 1, lambda g: g["power_min_mw"]),
    (188, ["POWER_FIELDS"], 1, lambda g: g["power_max_mw"]),
    (189, ["POWER_FIELDS"], 1, lambda g: g["power_default_mw"]),
    (190, ["POWER_FIELDS"], 1, lambda g: g["enforced_mw"]),
    (191, ["ENERGY"], 3, lambda g: g["energy_mj"]),
    (192, ["POWER_FIELDS"], 1, lambda g: g["limit_mw"]),
    (193, ["MARGIN"], 5, lambda g: g["tlimit_c"][0]),
    (194, ["MARGIN"], 5, lambda g: g["tlimit_c"][1]),
    (196, ["MARGIN"], 5, lambda g: g["tlimit_c"][3]),
    (197, ["PCIE_BYTES"], 1, lambda g: g["pcie_tx_bytes"] % 2**32),
    (230, ["RECOVERY"], 1, lambda g: g["recovery_action"]),
    (269, ["REASON_TIMES"], 3, lambda g: g["reason_ns"][5]),
    (270, ["REASON_TIMES"], 3, lambda g: g["reason_ns"][6]),
    (271, ["REASON_TIMES"], 3, lambda g: g["reason_ns"][7]),
]


def test_field_values(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    for field, needs, kind, fact in FIELDS:
        got = nvml.fields(d, field)[0]
        assert got.result == (nv.OK if can(g, *needs) else nv.NOT_SUPPORTED), field
        if got.result == nv.OK:
            assert got.type == kind, field
            assert agrees(sim, lambda: nvml.fields(d, field)[0].value, fact), field


def test_field_results_are_each_its_own(sim, nvml):
    d = nvml.device()
    rows = nvml.fields(d, 0, 82, 9999, 302, (185, 7), 94)
    assert [r.result for r in rows[:1] + rows[2:3]] == [nv.INVALID_ARGUMENT] * 2
    if can(sim.gpu(), "POWER_FIELDS"):
        assert rows[4].result == nv.INVALID_ARGUMENT
        assert nvml.fields(d, (185, 1))[0].result == nv.NOT_SUPPORTED
        assert nvml.fields(d, (190, 2))[0].result == nv.INVALID_ARGUMENT
    assert all(abs(r.at - time.time() * 1e6) < 5e6 for r in rows)
    assert nvml.DeviceGetFieldValues(d, 0, (nv.Field * 1)()) == nv.INVALID_ARGUMENT
    assert nvml.DeviceGetFieldValues(d, 1, None) == nv.INVALID_ARGUMENT


def test_nvlink(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    if not can(g, "NVLINK"):
        assert nvml.get("NvLinkState", d, 0)[0] == nv.NOT_SUPPORTED
        assert nvml.fields(d, (138, 0xFFFFFFFF))[0].result == nv.NOT_SUPPORTED
        return
    for link in range(g["link_count"]):
        assert nvml.get("NvLinkState", d, link) == (nv.OK, 1)
    assert nvml.get("NvLinkState", d, g["link_count"])[0] == nv.INVALID_ARGUMENT
    code, remote = nvml.get("NvLinkRemotePciInfo_v2", d, 0, kind=nv.Pci)
    assert code == nv.OK and re.fullmatch(rb"[0-9A-F]{8}:[0-9A-F]{2}:00\.0", remote.bus_id)
    assert nvml.get("NvLinkErrorCounter", d, 0, 0, kind=u64) == (nv.OK, g["link_replays"])
    one, both, speed = nvml.fields(d, (138, 0), (138, 0xFFFFFFFF), (164, 0))
    assert both.value >= one.value and speed.value == g["link_speed_mbps"]
    assert nvml.fields(d, (165, g["link_count"]))[0].result == nv.INVALID_ARGUMENT


def test_topology(sim, nvml):
    a, b, n = nvml.device(0), nvml.device(1), u32()
    assert nvml.DeviceGetTopologyCommonAncestor(a, a, c.byref(n)) == nv.NOT_SUPPORTED
    assert nvml.DeviceGetTopologyCommonAncestor(a, b, c.byref(n)) == nv.OK and n.value in (40, 50)
    level, found = n.value, (handle * 2)()
    n.value = 0
    assert nvml.DeviceGetTopologyNearestGpus(a, level, c.byref(n), None) == nv.OK and n.value == 1
    assert nvml.DeviceGetTopologyNearestGpus(a, level, c.byref(n), found) == nv.OK
    assert nvml.get("Index", handle(found[0])) == (nv.OK, 1)
    cpus = (c.c_ulong * 16)()
    assert nvml.DeviceGetCpuAffinity(a, 16, cpus) == nv.OK and any(cpus)


def test_what_no_card_has(sim, nvml):
    d, a, b = nvml.device(), u32(), u32()
    for call in ("GpuOperationMode", "DriverModel", "AutoBoostedClocksEnabled"):
        assert getattr(nvml, "DeviceGet" + call)(d, c.byref(a), c.byref(b)) == nv.NOT_SUPPORTED
    assert nvml.DeviceGetBridgeChipInfo(d, (c.c_ubyte * 2048)()) == nv.NOT_SUPPORTED
    assert nvml.get("VirtualizationMode", d) == (nv.OK, 0)
    assert nvml.get("MultiGpuBoard", d) == (nv.OK, 0)


def test_gpm(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    support = nv.Support(version=1)
    assert nvml.GpmQueryDeviceSupport(d, c.byref(support)) == nv.OK
    assert bool(support.is_supported) == can(g, "GPM")
    a, b = handle(), handle()
    assert nvml.GpmSampleAlloc(c.byref(a)) == nv.OK and nvml.GpmSampleAlloc(c.byref(b)) == nv.OK
    if can(g, "GPM"):
        get = nv.Metrics(version=1, count=3, first=a.value, second=b.value)
        get.metric[0].id = 2
        assert nvml.GpmMetricsGet(c.byref(get)) == nv.OK  # nothing in the samples yet, and each metric says so
        assert get.metric[0].result == nv.NO_DATA
        assert nvml.GpmSampleGet(d, a) == nv.OK
        at = sim.gpu()["at_us"]
        wait_for(lambda: sim.gpu()["at_us"] > at + 150000, "time passes")
        assert nvml.GpmSampleGet(d, b) == nv.OK
        for slot, metric in zip(get.metric, (2, 14, 332)):
            slot.id = metric
        assert nvml.GpmMetricsGet(c.byref(get)) == nv.OK
        assert [m.result for m in get.metric[:3]] == [nv.OK, nv.OK, nv.NOT_SUPPORTED]
        assert 0 <= get.metric[0].value <= 100 and get.metric[0].unit == b"%"
        get.second = a.value
        assert nvml.GpmMetricsGet(c.byref(get)) == nv.INVALID_ARGUMENT  # one sample is no two
        get.version = nv.Metrics.word(1) & 0xFFFFFFFF
        assert nvml.GpmMetricsGet(c.byref(get)) == nv.BAD_VERSION
    else:
        assert nvml.GpmSampleGet(d, a) == nv.NOT_SUPPORTED
    assert nvml.GpmSampleFree(a) == nv.OK and nvml.GpmSampleFree(b) == nv.OK


def test_processes(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    if not can(g, "PROCESSES"):
        assert nvml.processes("ComputeRunningProcesses_v3", d)[0] == nv.NOT_SUPPORTED
        return
    task = sim.task("--gpu", 0, "--demand", "50%", "--memory", "1G", "--forever")
    has_it = lambda: [p for p in nvml.processes("ComputeRunningProcesses_v3", d)[1] if p.pid == task.pid]
    one = wait_for(has_it, "the task is listed")[0]
    fact = [p for p in sim.gpu()["processes"] if p["pid"] == task.pid][0]
    assert (one.used, one.gi, one.ci) == (fact["used_bytes"], 0xFFFFFFFF, 0xFFFFFFFF) and one.used >= 2**30
    old = [p for p in nvml.processes("ComputeRunningProcesses", d, nv.Process1)[1] if p.pid == task.pid][0]
    assert old.used == one.used
    assert task.pid not in [p.pid for p in nvml.processes("MPSComputeRunningProcesses_v3", d)[1]]
    detail = nv.DetailList(version=nv.DetailList.word(1), mode=0)
    assert nvml.DeviceGetRunningProcessDetailList(d, c.byref(detail)) == nv.INSUFFICIENT_SIZE
    room = (nv.Detail * detail.count)()
    detail.array = room
    assert nvml.DeviceGetRunningProcessDetailList(d, c.byref(detail)) == nv.OK
    assert [p.used for p in room if p.pid == task.pid] == [one.used]
    detail.version = 1
    assert nvml.DeviceGetRunningProcessDetailList(d, c.byref(detail)) == nv.BAD_VERSION
    if can(g, "PROCESS_UTIL"):
        check_shares(nvml, d, task.pid)
    task.kill()
    task.wait()
    wait_for(lambda: not has_it(), "a killed task is gone")


def check_shares(nvml, d, pid):
    count = u32(0)
    assert nvml.DeviceGetProcessUtilization(d, None, c.byref(count), u64(0)) == nv.INSUFFICIENT_SIZE
    room = count.value
    assert room >= 72
    shares = (nv.Share * room)()

    def since(at):
        count.value = room
        return nvml.DeviceGetProcessUtilization(d, shares, c.byref(count), u64(at))

    wait_for(lambda: since(0) == nv.OK, "the task's share")
    mine = [s for s in shares[: count.value] if s.pid == pid][0]
    assert 0 < mine.sm <= 100 and abs(mine.at - time.time() * 1e6) < 10e6
    assert since(int(time.time() * 1e6) + 10**9) == nv.NOT_FOUND and count.value == room  # left as it was
    rows = (nv.ShareRow * room)()
    new = nv.Shares(version=nv.Shares.word(1), count=room, last_seen=0, rows=rows)
    assert nvml.DeviceGetProcessesUtilizationInfo(d, c.byref(new)) == nv.OK
    assert pid in [r.pid for r in rows[: new.count]]
    new.rows = None
    assert nvml.DeviceGetProcessesUtilizationInfo(d, c.byref(new)) == nv.INSUFFICIENT_SIZE
    new.version = 7
    assert nvml.DeviceGetProcessesUtilizationInfo(d, c.byref(new)) == nv.BAD_VERSION


def test_setters(sim, nvml):
    d, g = nvml.device(), sim.gpu()
    if can(g, "POWER_SET"):
        half = (g["power_min_mw"] + g["power_max_mw"]) // 2
        assert nvml.DeviceSetPowerManagementLimit(d, half) == nv.OK
        wait_for(lambda: nvml.get("PowerManagementLimit", d) == (nv.OK, half), "the limit is as set")
        assert nvml.DeviceSetPowerManagementLimit(d, g["power_max_mw"] + 1000) == nv.INVALID_ARGUMENT
        value = nv.PowerValue(version=nv.PowerValue.word(2), scope=0, milliwatts=g["power_default_mw"])
        assert nvml.DeviceSetPowerManagementLimit_v2(d, c.byref(value)) == nv.OK
        wait_for(lambda: nvml.get("PowerManagementLimit", d)[1] == g["power_default_mw"], "the limit is back")
        value.version = 1
        assert nvml.DeviceSetPowerManagementLimit_v2(d, c.byref(value)) == nv.BAD_VERSION
    else:
        assert nvml.DeviceSetPowerManagementLimit(d, 100000) == nv.NOT_SUPPORTED
    want = nv.OK if can(g, "LOCKED_CLOCKS") else nv.NOT_SUPPORTED
    assert nvml.DeviceSetGpuLockedClocks(d, g["gr_clocks"][-1] if g["gr_clocks"] else 300, g["gr_max_mhz"]) == want
    assert nvml.DeviceResetGpuLockedClocks(d) == want
    want = nv.OK if can(g, "APP_CLOCKS") else nv.NOT_SUPPORTED
    if g["mem_clocks"]:
        assert nvml.DeviceSetApplicationsClocks(d, g["mem_clocks"][0], g["gr_clocks"][0]) == want
        assert nvml.DeviceResetApplicationsClocks(d) == want
    want = nv.OK if can(g, "FAN_SET") else nv.NOT_SUPPORTED
    assert nvml.DeviceSetFanSpeed_v2(d, 0, 70) == want
    if want == nv.OK:
        wait_for(lambda: nvml.get("FanControlPolicy_v2", d, 0) == (nv.OK, 1), "a set fan is manual")
    assert nvml.DeviceSetDefaultFanSpeed_v2(d, 0) == want
    if want == nv.OK:
        wait_for(lambda: nvml.get("FanControlPolicy_v2", d, 0) == (nv.OK, 0), "the fan follows the temperature again")
    if can(g, "COMPUTE_MODE"):
        assert nvml.DeviceSetComputeMode(d, 3) == nv.OK
        wait_for(lambda: nvml.get("ComputeMode", d) == (nv.OK, 3), "the compute mode is as set")
        assert nvml.DeviceSetComputeMode(d, 0) == nv.OK
