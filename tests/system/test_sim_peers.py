"""Programs that others wrote, unmodified, on the simulated library: what nvtop and gpustat show is what the simulator's
memory holds. script/peers fetches them; without them these tests are skipped."""

import json
import re
import shlex
import shutil
import subprocess

import pytest

from instance import Instance
from simulator import LIBRARY, ROOT, Simulator, wait_for

NVTOP = ROOT / "build-peers/nvtop"
GPUSTAT = ROOT / "build-peers/gpustat"
MIB = 2**20


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:2,rtx4090") as s:
        s.task("--gpu", 0, "--demand", "40%", "--memory", "4G", "--forever")
        s.task("--gpu", 2, "--kind", "graphics", "--demand", "30%", "--memory", "1G", "--forever")
        wait_for(lambda: s.gpu(0)["util_gpu"] > 20 and s.gpu(2)["util_gpu"] > 10, "the tasks work")
        yield s


@pytest.fixture
def pane(tmp_path):
    """pane(command) -> a function that returns what the terminal shows now."""
    socket = str(tmp_path / "tmux")

    def tmux(*args):
        return subprocess.run(["tmux", "-u", "-S", socket, *args], capture_output=True, text=True, timeout=20).stdout

    def show(command):
        tmux("-f", "/dev/null", "new-session", "-d", "-s", "peer", "-x", "200", "-y", "50", command)
        return lambda: tmux("capture-pane", "-t", "peer", "-p")

    yield show
    tmux("kill-server")


# One device in nvtop 3: three lines, of which two devices may stand side by side. Five digits of MHz lose the z.
DEVICE = re.compile(r"Device (\d) \[([^\]]+)\]\s+PCIe GEN (\d)@ ?(\d+)x")
FIGURES = re.compile(r"GPU (\d+)MHz?\s+MEM (\d+)MHz?\s+TEMP\s+(\d+)°C\s+FAN\s+(N/A|\d+)%?\s+POW\s+(\d+) / (\d+) W")


def differences(text, gpus, tasks):
    """What the screen shows and the memory does not hold, near enough for a picture that is up to a second old."""
    devices, figures, wrong = DEVICE.findall(text), FIGURES.findall(text), []
    if (len(devices), len(figures)) != (len(gpus), len(gpus)):
        return [f"{len(devices)} devices with {len(figures)} lines of figures"]
    for (index, name, gen, width), (gr, mem, temp, fan, power, limit) in zip(devices, figures):
        g = gpus[int(index)]
        rows = [("name", name, g["name"], 0), ("generation", gen, g["pcie_gen"], 0), ("width", width, g["pcie_width"], 0),
                ("MHz", gr, g["gr_mhz"], 100), ("memory MHz", mem, g["mem_mhz"], 0), ("temperature", temp, g["temp_c"], 2),
                ("power", power, g["power_avg_mw"] / 1000, 5 + g["power_avg_mw"] / 20000),
                ("limit", limit, g["enforced_mw"] / 1000, 0), ("fan", fan == "N/A", g["fan_count"] == 0, 0)]
        for what, shown, held, slack in rows:
            same = abs(float(shown) - held) <= slack if isinstance(shown, str) and shown.isdigit() else shown == held
            if not same:
                wrong.append(f"{index} {what}: shown {shown}, held {held}")
    for pid, gpu, kind, mib in tasks:
        if not re.search(rf"^\s*{pid}\s.*\s{gpu}\s+{kind}\s.*\s{mib}MiB", text, re.M):
            wrong.append(f"process {pid} is not shown on {gpu} as {kind} with {mib} MiB")
    return wrong


def watch_nvtop(sim, pane, tmp_path, gpus):
    """Waits until nvtop shows what `gpus` gives; fails with what differs."""
    env = f"env LC_ALL=C.UTF-8 HOME={tmp_path} GPUSIM_DIR={sim.dir} LD_LIBRARY_PATH={LIBRARY.parent}"
    screen = pane(f"{env} {shlex.quote(str(NVTOP))}")
    tasks = [(sim.tasks[0].pid, 0, "Compute", 4096), (sim.tasks[1].pid, 2, "Graphic", 1024)]
    last = []

    def agrees():
        last[:] = differences(screen(), gpus(), tasks)
        return not last

    try:
        wait_for(agrees, "nvtop agrees", 30)
    except AssertionError:
        raise AssertionError("\n".join(last)) from None


needs_nvtop = pytest.mark.skipif(not NVTOP.exists() or not shutil.which("tmux"), reason="no nvtop (script/peers) or no tmux")


@needs_nvtop
def test_nvtop_shows_the_numbers(sim, pane, tmp_path):
    watch_nvtop(sim, pane, tmp_path, lambda: sim.facts()["gpus"])


@needs_nvtop
def test_nvtop_and_status_show_the_same(sim, pane, tmp_path):
    """Two programs on one library, at the same moment."""
    def as_status_says(i):
        def gpu(g):
            m = g["metrics"]
            return {"name": g["model"], "pcie_gen": m["gpu_pcie_link_generation"], "pcie_width": m["gpu_pcie_link_width"],
                    "gr_mhz": m["gpu_graphics_clock_hertz"] / 1e6, "mem_mhz": m["gpu_memory_clock_hertz"] / 1e6,
                    "temp_c": m["gpu_temperature_celsius"], "power_avg_mw": m["gpu_power_watts"] * 1000,
                    "enforced_mw": m["gpu_power_limit_enforced_watts"] * 1000, "fan_count": m.get("gpu_fans", 0)}
        return [gpu(g) for g in i.status()["gpus"]]

    with Instance(sim, "--wait-ms", "200") as i:
        i.ready(3)
        watch_nvtop(sim, pane, tmp_path, lambda: as_status_says(i))


@pytest.mark.skipif(not GPUSTAT.exists(), reason="no gpustat (script/peers)")
def test_gpustat_tells_the_numbers(sim):
    before = sim.facts()
    out = subprocess.run([GPUSTAT, "--json"], env=sim.env, capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr
    told, facts = json.loads(out.stdout), sim.facts()
    assert told["driver_version"] == facts["driver_version"]
    for said, g, was in zip(told["gpus"], facts["gpus"], before["gpus"], strict=True):
        assert (said["uuid"], said["name"]) == (g["uuid"], g["name"])
        low, high = sorted((was["temp_c"], g["temp_c"]))  # the cards warm up meanwhile
        assert low - 2 <= said["temperature.gpu"] <= high + 2
        assert said["memory.total"] == g["memory_bytes"] // MIB
        assert said["memory.used"] == (g["used_bytes"] + g["reserved_bytes"]) // MIB
        assert said["enforced.power.limit"] == g["enforced_mw"] // 1000
        assert (said["fan.speed"] is None) == (g["fan_count"] == 0)
        assert [(p["pid"], p["gpu_memory_usage"] * MIB) for p in said["processes"]] == \
            [(p["pid"], p["used_bytes"]) for p in g["processes"]]
