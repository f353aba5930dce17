"""/metrics: clean text, absent is absent, DCGM's names where they are wanted, and a real Prometheus that scrapes it."""

import json
import re
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from instance import GPUMGR, Instance
from simulator import Simulator, wait_for
from test_up import serves, url_of


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:2,a100:1") as s:
        yield s


def scrape(i):
    with urllib.request.urlopen(url_of(i) + "/metrics", timeout=30) as a:
        assert a.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return a.read().decode()


def samples(text, name):
    found = re.findall(rf"^{name}\{{(.*)\}} (\S+)$", text, re.M)
    return [(dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)), float(value)) for labels, value in found]


def checked(text):
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def full(i, gpus=3):
    serves(i)
    return wait_for(lambda: len(samples(scrape(i), "gpu_temperature_celsius")) == gpus and scrape(i), "all GPUs are there")


def test_clean_and_true(sim):
    with Instance(sim, role="up") as i:
        i.ready(3)
        text = full(i)
        checked(text)
        shown = {g["uuid"]: g for g in i.status()["gpus"]}
        limits = samples(text, "gpu_power_limit_watts")
        assert len(limits) == 3
        for labels, value in limits:
            gpu = shown[labels["uuid"]]
            assert labels["gpu"] == str(gpu["index"]) and labels["model"] == gpu["model"] and labels["host"] == socket.gethostname()
            assert value == gpu["metrics"]["gpu_power_limit_watts"]
        # An A100 tells no true activity; nothing stands for it.
        old = next(u for u, g in shown.items() if "A100" in g["model"])
        assert old not in [labels["uuid"] for labels, _ in samples(text, "gpu_sm_active_ratio")]
        assert "DCGM" not in text
        assert samples(text, "host_cpus")[0][1] >= 1


def test_a_lost_gpu_has_no_readings_and_is_said_to_be_down(sim):
    with Instance(sim, "--sampler.lost_ms", 1500, "--sampler.answer_ms", 800, role="up") as i:
        i.ready(3)
        full(i)
        sim.say("fault 1 lost")
        uuid = next(g["uuid"] for g in i.status()["gpus"] if g["index"] == 1)
        def is_down():
            ups = {labels["uuid"]: value for labels, value in samples(scrape(i), "gpu_up")}
            return ups[uuid] == 0 and sum(ups.values()) == 2
        wait_for(is_down, "gpu_up says 0")
        assert uuid not in [labels["uuid"] for labels, _ in samples(scrape(i), "gpu_temperature_celsius")]
        sim.say("heal 1")
        wait_for(lambda: len(samples(scrape(i), "gpu_temperature_celsius")) == 3, "it is back")


def test_xids_are_counted_by_code(sim):
    with Instance(sim, role="up") as i:
        i.ready(3)
        full(i)
        sim.say("fault 0 xid 31")
        sim.say("fault 0 xid 31")
        sim.say("fault 0 xid 79")
        def counts():
            return {labels["xid"]: v for labels, v in samples(scrape(i), "gpu_xid_code_errors_total")}
        wait_for(lambda: counts() == {"31": 2, "79": 1}, "XIDs by code")
        checked(scrape(i))


def test_dcgm_names(sim):
    with Instance(sim, "--exporter.dcgm_names", "true", role="up") as i:
        i.ready(3)
        text = full(i)
        # DCGM's own labels (modelName) are no good style to promtool; it finds nothing else, and nothing in our names.
        said = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        assert said.returncode == 3 and all(line.startswith("DCGM_FI_") for line in said.stderr.splitlines() if line), said.stderr
        own = {labels["uuid"]: v for labels, v in samples(text, "gpu_power_limit_watts")}
        for labels, value in samples(text, "DCGM_FI_DEV_POWER_MGMT_LIMIT"):
            assert value == own[labels["UUID"]]
            assert {"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "hostname"} <= labels.keys()
        clocks = {labels["uuid"]: v for labels, v in samples(text, "gpu_sm_clock_hertz")}
        assert all(v == clocks[labels["UUID"]] / 1e6 for labels, v in samples(text, "DCGM_FI_DEV_SM_CLOCK"))
        # What NVIDIA's own dashboard asks for.
        for name in ("GPU_TEMP", "POWER_USAGE", "SM_CLOCK", "GPU_UTIL", "FB_USED"):
            wait_for(lambda: len(samples(scrape(i), f"DCGM_FI_DEV_{name}")) == 3, name)


def test_beyond_loopback_a_token_is_needed(sim):
    with Instance(sim, "--listen_plain", "true", role="up", env={"GPUMGR_LISTEN": "0.0.0.0:0"}) as i:
        i.ready(3)
        port = url_of(i).rsplit(":", 1)[1]
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30)
        assert refusal.value.code == 401
        made = subprocess.run([GPUMGR, "token", "new", "prometheus", "--json", "--dir", i.dir], capture_output=True, text=True, env=i.env)
        token = json.loads(made.stdout)["token"]
        ask = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {token}"})
        assert urllib.request.urlopen(ask, timeout=30).status == 200


@pytest.fixture
def prometheus(tmp_path):
    started = []

    def start(target):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        config = tmp_path / "prometheus.yml"
        rules = (Path(__file__).parents[2] / "packaging/prometheus/gpumgr.rules.yml").resolve()
        config.write_text("global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
                          f"rule_files: [{rules}]\n"
                          f"scrape_configs: [{{job_name: gpumgr, static_configs: [{{targets: ['{target}']}}]}}]\n")
        process = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
                                    f"--web.listen-address=127.0.0.1:{port}"],
                                   stderr=(tmp_path / "prometheus.log").open("w"), stdout=subprocess.DEVNULL)
        started.append(process)

        def ask(path, **query):
            try:
                url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
                return json.load(urllib.request.urlopen(url, timeout=30))["data"]
            except OSError:
                return None
        wait_for(lambda: ask("status/runtimeinfo"), "Prometheus answers", 30)
        return ask

    yield start
    for process in started:
        process.terminate()
        process.wait(20)


def test_prometheus_scrapes_it(sim, prometheus):
    with Instance(sim, role="up") as i:
        i.ready(3)
        full(i)
        ask = prometheus(url_of(i).split("//")[1])
        found = wait_for(lambda: (ask("query", query="gpu_power_watts") or {}).get("result"), "readings in Prometheus")
        assert len(found) == 3 and {f["metric"]["host"] for f in found} == {socket.gethostname()}
        targets = ask("targets")["activeTargets"]
        assert [t["health"] for t in targets] == ["up"] and not targets[0]["lastError"]
        meta = ask("metadata", metric="gpu_temperature_celsius")["gpu_temperature_celsius"][0]
        assert meta["type"] == "gauge" and meta["help"] == "GPU core temperature"
        sim.say("fault 0 xid 79")
        wait_for(lambda: any(a["labels"]["alertname"] == "GpuXid" for a in (ask("alerts") or {}).get("alerts", [])),
                 "our rule fires", 30)
