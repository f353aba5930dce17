"""What lies in packaging/ fits the program: rules and dashboards name only metrics that exist, and the rules fire. What `meson
install` puts in place runs from there, and the unit starts it."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from instance import Instance

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "packaging/prometheus/gpumgr.rules.yml"
GRAFANA = ROOT / "packaging/grafana/gpumgr.json"


def known_metrics():
    names = set()
    for table in ("metrics.def", "host_metrics.def"):
        text = (ROOT / "src/model" / table).read_text()
        names |= set(re.findall(r'METRIC\(\w+,\s*"(\w+)"', text))
    written = (ROOT / "src/model/exposition.c").read_text() + (ROOT / "src/server/exporter.c").read_text()
    return names | set(re.findall(r'"((?:gpu|gpumgr|host)_\w+)"', written))


def test_names_exist():
    known = known_metrics()
    for file in (RULES, GRAFANA):
        text = re.sub(r"label_values\([^,]*,", "", file.read_text())
        named = set(re.findall(r"\b((?:gpu|gpumgr|host)_[a-z0-9_]+)", text))
        assert named, f"{file.name} names no metric"
        assert named <= known, f"{file.name}: not in the catalogue: {sorted(named - known)}"


def test_grafana_is_whole():
    board = json.loads(GRAFANA.read_text())
    ids = [p["id"] for p in board["panels"]]
    assert len(ids) == len(set(ids))
    places = set()
    for panel in board["panels"]:
        g = panel["gridPos"]
        for x in range(g["x"], g["x"] + g["w"]):
            for y in range(g["y"], g["y"] + g["h"]):
                assert (x, y) not in places, f"{panel['title']} lies on another panel"
                places.add((x, y))
        assert g["x"] + g["w"] <= 24


def test_rules_fire(tmp_path):
    shutil.copy(RULES, tmp_path)
    shutil.copy(ROOT / "tests/data/gpumgr.rules.test.yml", tmp_path)
    for words in (["check", "rules", RULES.name], ["test", "rules", "gpumgr.rules.test.yml"]):
        done = subprocess.run(["promtool", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Where an installation's own root is: below it /usr/local."""
    root = tmp_path_factory.mktemp("root")
    subprocess.run(["meson", "install", "--quiet", "--no-rebuild", "-C", os.environ["BUILD_TREE"], "--destdir", root], check=True)
    return root


def test_what_is_installed_runs(installed):
    with Instance(None, "--sim", 1, role="up", program=installed / "usr/local/bin/gpumgr") as up:
        up.ready(1)
    share = installed / "usr/local/share/gpumgr"
    assert (share / "grafana/gpumgr.json").read_bytes() == GRAFANA.read_bytes()
    assert (share / "prometheus/gpumgr.rules.yml").read_bytes() == RULES.read_bytes()


def test_the_unit_is_one_that_systemd_takes(installed, tmp_path):
    unit = installed / "usr/local/lib/systemd/system/gpumgr.service"
    text = unit.read_text()
    assert {"Type=notify", "ExecReload=/bin/kill -HUP $MAINPID"} <= set(text.splitlines())
    called = re.findall(r"^Exec(?:Start|StopPost)=-?(/\S+) (.*)$", text, re.M)
    assert called == [("/usr/local/bin/gpumgr", "up"), ("/usr/local/bin/gpumgr", "guard restore")]
    assert all(os.access(f"{installed}{program}", os.X_OK) for program, _ in called)
    copy = tmp_path / unit.name
    copy.write_text(text.replace("/usr/local/bin/gpumgr", f"{installed}/usr/local/bin/gpumgr"))
    got = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, timeout=60)
    ours = [line for line in got.stderr.splitlines() if "gpumgr" in line]
    assert not ours, got.stderr
