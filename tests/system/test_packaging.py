"""What lies in packaging/ fits the program: rules and dashboards name only metrics that exist, and the rules fire."""

import json
import re
import shutil
import subprocess
from pathlib import Path

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
