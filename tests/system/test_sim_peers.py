"""Programs that others wrote, unmodified, on the simulated library: what nvtop and gpustat show is what the simulator's
memory holds. script/peers fetches them; without them these tests are skipped."""

import json
import re
import shlex
import shutil
import subprocess

import pytest

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


# One device in nvtop 3: three lines, of which two devices may stand side by side.
DEVICE = re.compile(r"Device (\d) \[([^\]]+)\]\s+PCIe GEN (\d)@ ?(\d+)x")
FIGURES = re.compile(r"GPU (\d+)MHz\s+MEM (\d+)MHz\s+TEMP\s+(\d+)°C\s+FAN\s+(N/A|\d+)%?\s+POW\s+(\d+) / (\d+) W")


@pytest.mark.skipif(not NVTOP.exists() or not shutil.which("tmux"), reason="no nvtop (script/peers) or no tmux")
def test_nvtop_shows_the_numbers(sim, pane, tmp_path):
    env = f"env LC_ALL=C.UTF-8 HOME={tmp_path} GPUSIM_DIR={sim.dir} LD_LIBRARY_PATH={LIBRARY.parent}"
    screen = pane(f"{env} {shlex.quote(str(NVTOP))}")
    pids = [t.pid for t in sim.tasks]

    def all_is_there():
        text = screen()
        devices, figures = DEVICE.findall(text), FIGURES.findall(text)
        if len(devices) < 3 or len(figures) < 3 or not all(str(p) in text for p in pids):
            return None
        return text, devices, figures

    text, devices, figures = wait_for(all_is_there, "nvtop shows three cards and both processes", 20)
    gpus = sim.facts()["gpus"]
    for (index, name, gen, width), (gr, mem, temp, fan, power, limit) in zip(devices, figures):
        g = gpus[int(index)]
        assert (name, int(gen), int(width)) == (g["name"], g["pcie_gen"], g["pcie_width"])
        assert abs(int(gr) - g["gr_mhz"]) <= 150 and int(mem) == g["mem_mhz"]
        assert abs(int(temp) - g["temp_c"]) <= 3
        assert abs(int(power) * 1000 - g["power_avg_mw"]) <= 0.15 * g["power_avg_mw"] + 5000
        assert int(limit) * 1000 == g["enforced_mw"]
        assert (fan == "N/A") == (g["fan_count"] == 0)
    for pid, gpu, kind, mib in [(pids[0], 0, "Compute", 4096), (pids[1], 2, "Graphic", 1024)]:
        row = next(line for line in text.splitlines() if re.match(rf"\s*{pid}\s", line))
        assert re.search(rf"\s{gpu}\s+{kind}\s", row) and f"{mib}MiB" in row, row


@pytest.mark.skipif(not GPUSTAT.exists(), reason="no gpustat (script/peers)")
def test_gpustat_tells_the_numbers(sim):
    out = subprocess.run([GPUSTAT, "--json"], env=sim.env, capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr
    told, facts = json.loads(out.stdout), sim.facts()
    assert told["driver_version"] == facts["driver_version"]
    for said, g in zip(told["gpus"], facts["gpus"], strict=True):
        assert (said["uuid"], said["name"]) == (g["uuid"], g["name"])
        assert abs(said["temperature.gpu"] - g["temp_c"]) <= 3
        assert said["memory.total"] == g["memory_bytes"] // MIB
        assert said["memory.used"] == (g["used_bytes"] + g["reserved_bytes"]) // MIB
        assert said["enforced.power.limit"] == g["enforced_mw"] // 1000
        assert (said["fan.speed"] is None) == (g["fan_count"] == 0)
        assert [(p["pid"], p["gpu_memory_usage"] * MIB) for p in said["processes"]] == \
            [(p["pid"], p["used_bytes"]) for p in g["processes"]]
