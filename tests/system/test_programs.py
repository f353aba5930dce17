"""What the build must deliver, whatever else changes."""

import os
import re
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))


@pytest.mark.parametrize("program", ["gpumgr", "gpumgr-core", "sim/gpusim", "sim/gpusim-task", "sim/libnvidia-ml.so.1"])
def test_is_built(program):
    assert os.access(BUILD / program, os.X_OK)


def needed(program):
    out = subprocess.run(["readelf", "-d", BUILD / program], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"NEEDED.*\[(.*?)\]", out))


@pytest.mark.parametrize("program", ["gpumgr-core", "sim/libnvidia-ml.so.1"])
def test_links_the_c_library_only(program):
    """The process that opens the driver holds nobody else's code, nor does what other programs load."""
    assert needed(program) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
