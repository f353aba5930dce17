"""The project's own scripts: they are how a newcomer meets the project, so their promises are tested like any other."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*args, **kw):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=240, **kw)


ARROWS = [
    ("base is allowed", "src/model/a.c", '#include "base/x.h"', True),
    ("upwards is not", "src/base/a.c", '#include "model/x.h"', False),
    ("sideways is not", "src/core/a.c", '#include "client/x.h"', False),
    ("model does no I/O", "src/model/a.c", "#include <unistd.h>", False),
    ("a room must be named", "src/model/a.c", '#include "a.h"', False),
    ("its own room is allowed", "src/model/a.c", '#include "model/a.h"', True),
    ("a fenced library in its file", "src/base/json_read.c", "#include <jansson.h>", True),
    ("a fenced library elsewhere", "src/client/a.c", "#include <jansson.h>", False),
    ("an unknown library", "src/client/a.c", "#include <zlib.h>", False),
    ("NVML's interface in the simulator", "sim/a.c", '#include "gpu/nvml_abi.h"', True),
    ("the device layer in the simulator", "sim/a.c", '#include "gpu/nvml.h"', False),
    ("the setters where cards are put back", "src/client/guard_restore.c", '#include "gpu/control.h"', True),
    ("the setters elsewhere", "src/client/doctor.c", '#include "gpu/control.h"', False),
    ("a file outside every room", "src/misc/a.c", "#include <stdio.h>", False),
    ("the C library", "src/core/a.c", "#  include <sys/epoll.h>", True),
]


@pytest.mark.parametrize("file,line,allowed", [a[1:] for a in ARROWS], ids=[a[0] for a in ARROWS])
def test_rooms(tmp_path, file, line, allowed):
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / "src").mkdir(exist_ok=True)
    (tmp_path / "src/rooms.txt").write_text((ROOT / "src/rooms.txt").read_text())
    (tmp_path / file).write_text(line + "\n")
    got = run(ROOT / "script/rooms", tmp_path)
    assert (got.returncode == 0) == allowed, got.stdout
    if not allowed:
        assert got.stdout.startswith(f"{file}:1: ")


def test_bootstrap_on_another_distribution_says_what_to_install(tmp_path):
    (tmp_path / "os-release").write_text('ID=fedora\nPRETTY_NAME="Fedora Linux 40"\n')
    got = run(ROOT / "script/bootstrap", env={**os.environ, "OS_RELEASE": str(tmp_path / "os-release")})
    assert got.returncode == 3
    assert got.stderr.startswith("bootstrap: Fedora Linux 40 is not Debian")
    assert "meson" in got.stderr and "jansson" in got.stderr


@pytest.mark.parametrize("args", [[], ["no-such-bench"], ["../script/build"]])
def test_bench_lists_what_there_is(args):
    got = run(ROOT / "script/bench", *args)
    assert got.returncode == 2
    assert "usage: script/bench NAME" in got.stderr


TESTLOG = """\
{"name": "unit / a", "stdout": "1..2\\nok 1 - one\\nnot ok 2 - two\\n# because\\n", "result": "ERROR", "returncode": 1}
{"name": "unit / died", "stdout": "1..2\\nok 1 - one\\n", "result": "TIMEOUT", "returncode": -15}
{"name": "unit / silent", "stdout": "", "result": "FAIL", "returncode": 1, "stderr": "said why\\n"}
{"name": "unit / good", "stdout": "1..1\\nok 1 - one\\n", "result": "OK", "returncode": 0}
"""


def test_counting_forgets_no_program_that_died(tmp_path):
    (tmp_path / "unit.json").write_text(TESTLOG)
    (tmp_path / "script.plain").write_text("pass rooms\nfail clang\n")
    (tmp_path / "system.xml").write_text(
        '<testsuites><testsuite><testcase classname="c" name="ok"/><testcase classname="c" name="s"><skipped/></testcase>'
        '<testcase classname="c" name="f"><failure/></testcase></testsuite></testsuites>'
    )
    got = run(ROOT / "script/count-tests", tmp_path)
    assert got.stdout.splitlines()[-1] == "5 5 1 0"
    assert "# because" in got.stdout and "said why" in got.stdout
    assert "FAIL unit: unit / died: timeout, return code -15" in got.stdout


def junit(**cases):
    return '<testsuites><testsuite>' + "".join(
        f'<testcase classname="tests.system.test_x" name="{name}">{f"<{verdict}/>" if verdict else ""}</testcase>' for name, verdict in cases.items()
    ) + '</testsuite></testsuites>'


def test_what_passed_only_alone_is_unsteady(tmp_path):
    """It has passed, and nobody can overlook it; what failed twice, or was skipped the second time, has failed once."""
    first = {"test_good": "", "test_a": "failure", "test_b[x.y-1]@test_x": "failure", "test_c": "error", "test_d": "failure", "test_late": "failure"}
    (tmp_path / "system.xml").write_text(junit(**first))
    (tmp_path / "alone.xml").write_text(junit(test_a="failure"))  # another test of this name is not made up for
    (tmp_path / "again-system.xml").write_text(junit(**{"test_a": "", "test_b[x.y-1]": "", "test_c": "failure", "test_d": "skipped"}))
    got = run(ROOT / "script/count-tests", tmp_path).stdout.splitlines()
    assert got[-1] == "3 4 0 2"
    assert [line for line in got if line.startswith("UNSTEADY")] == ["UNSTEADY system: tests.system.test_x.test_a", "UNSTEADY system: tests.system.test_x.test_b[x.y-1]"]
    (tmp_path / "again-system.xml").unlink()
    assert run(ROOT / "script/count-tests", "--failed", tmp_path).stdout.splitlines() == ["alone tests/system/test_x.py::test_a"] + [
        f"system tests/system/test_x.py::{t}" for t in ("test_a", "test_b[x.y-1]", "test_c", "test_d", "test_late")]


def program(name, out, code, result="ERROR", err=""):
    return json.dumps({"name": f"gpumgr:unit+tsan / {name}", "stdout": out, "stderr": err, "result": result, "returncode": code}) + "\n"


FAILED = "1..2\nok 1 - one\nnot ok 2 - two\n"
NEVER_AGAIN = {
    "crash": program("x", FAILED, -11),
    "time-out": program("x", FAILED, 1, "TIMEOUT"),
    "cut off": program("x", "1..3\nok 1 - one\nnot ok 2 - two\n", 1),
    "a signal that cmocka caught": program("x", FAILED.replace("- two\n", "- two\n# Test failed with exception: Segmentation fault(11)\n"), 1),
    "address": program("x", FAILED, 1, err="==7==ERROR: AddressSanitizer: heap-use-after-free\n"),
    "thread": program("x", FAILED, 66, err="WARNING: ThreadSanitizer: data race (pid=7)\n"),
    "undefined": program("x", FAILED, 1, err="a.c:1:2: runtime error: signed integer overflow\n"),
    "leak": program("x", "1..1\nok 1 - one\n", 23, err="==7==ERROR: LeakSanitizer: detected memory leaks\n"),
    "no plan": program("x", "not ok 1 - one\n", 1),
    "passed": program("x", "1..1\nok 1 - one\n", 0, "OK"),
}


@pytest.mark.parametrize("log", NEVER_AGAIN.values(), ids=list(NEVER_AGAIN))
def test_a_crash_or_a_finding_is_never_run_again(tmp_path, log):
    (tmp_path / "asan.json").write_text(log + program("y", FAILED, 1))
    assert run(ROOT / "script/count-tests", "--failed", tmp_path).stdout == "asan y\n"


@pytest.mark.parametrize("second, counted", [
    (program("x", "1..2\nok 1 - one\nok 2 - two\n", 0, "OK"), "2 0 0 1"),
    (program("x", FAILED, 1), "1 1 0 0"),
    (program("x", "1..2\nnot ok 1 - one\nok 2 - two\n", 1), "1 1 0 0"),  # another case this time
    (program("x", "1..2\nok 1 - one\nok 2 - two\n", 23, err="LeakSanitizer"), "1 1 0 0"),
    (program("x", "1..2\nok 1 - one\n", -11), "1 1 0 0"),
    ("", "1 1 0 0"),
])
def test_a_program_that_is_run_again_passes_as_a_whole(tmp_path, second, counted):
    (tmp_path / "asan.json").write_text(program("x", FAILED, 1))
    (tmp_path / "again-asan.json").write_text(second)
    got = run(ROOT / "script/count-tests", tmp_path).stdout.splitlines()
    assert got[-1] == counted and ("UNSTEADY asan: gpumgr:unit+tsan / x: two" in got) == (counted == "2 0 0 1"), got


@pytest.fixture
def script_test(tmp_path):
    """script/test in a tree of its own, in which nothing is to be installed or built."""
    (tmp_path / "script").mkdir()
    for name in ("test", "count-tests", "bootstrap", "build"):
        made = tmp_path / "script" / name
        made.write_text((ROOT / "script" / name).read_text() if "test" in name else "#!/bin/sh\n")
        made.chmod(0o755)

    def call(suite):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        env["PATH"] = f"{tmp_path}/bin:{env['PATH']}"
        # its pytest closes the directory that all of a user's runs share to everybody else: not that of the run we are in
        return run(tmp_path / "script/test", suite, env=env | {"PYTEST_DEBUG_TEMPROOT": str(tmp_path)})
    return call


@pytest.mark.parametrize("bad, lines, code", [
    (0, ["9 passed, 0 failed"], 0), (2, ["2 UNSTEADY", "9 passed, 0 failed"], 0), (6, ["6 tests failed: more than 5 are not run again.", "3 passed, 6 failed"], 1)])
def test_what_failed_is_run_once_more(tmp_path, script_test, bad, lines, code):
    """Tests that fail when they run beside others."""
    (tmp_path / "tests/system").mkdir(parents=True)
    (tmp_path / "tests/system/conftest.py").write_text("def pytest_configure(config):\n    config.addinivalue_line('markers', 'alone: x')\n")
    (tmp_path / "tests/system/test_it.py").write_text(
        "import os, pytest\n@pytest.mark.parametrize('n', range(8))\ndef test_it(n):\n"
        f"    assert n >= {bad} or 'PYTEST_XDIST_WORKER' not in os.environ\n"
        "@pytest.mark.alone\ndef test_alone():\n    pass\n")
    got = script_test("system")
    assert got.returncode == code, got.stdout + got.stderr
    assert got.stdout.splitlines()[-1] == lines[-1], got.stdout
    assert all(line in got.stdout for line in lines) and ("UNSTEADY" in got.stdout) == (bad == 2)


MESON = """#!/bin/sh
# b fails beside another, c always, d crashes: it is not even asked for again
[ "$1 $2 $4" = "test -C --num-processes" ] || exit 0
mkdir -p "$3/meson-logs"
[ "$5" = 2 ] && { cp first "$3/meson-logs/testlog.json"; exit 1; }
[ "$*" = "test -C build --num-processes 1 b c" ] && cp second "$3/meson-logs/testlog.json"
"""


def test_what_failed_in_c_is_run_once_more(tmp_path, script_test):
    (tmp_path / "bin").mkdir()
    for name, text in (("meson", MESON), ("ninja", "#!/bin/sh\n")):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    good = "1..2\nok 1 - one\nok 2 - two\n"
    (tmp_path / "first").write_text(program("a", good, 0, "OK") + program("b", FAILED, 1) + program("c", FAILED, 1) + program("d", FAILED, -11))
    (tmp_path / "second").write_text(program("b", good, 0, "OK") + program("c", FAILED, 1))
    got = script_test("unit")
    assert got.returncode == 1 and got.stdout.splitlines()[-1] == "6 passed, 2 failed", got.stdout + got.stderr
    assert "UNSTEADY unit: gpumgr:unit+tsan / b: two" in got.stdout and "1 UNSTEADY" in got.stdout
    assert all(f"FAIL unit: gpumgr:unit+tsan / {name}: two" in got.stdout for name in "cd")


BROWSER = """#!/bin/sh
# b fails beside others, c always
[ $# = 0 ] && { printf 'ok 1 - a\\nnot ok 2 - it: "b" (is) one?\\nnot ok 3 - c\\n'; exit 1; }
[ "$1" = '^it: "b" \\(is\\) one\\?$' ] && { printf 'ok 1 - a # SKIP no match\\nok 2 - it: "b" (is) one?\\n'; exit 0; }
[ "$1" = '^c$' ] && { printf 'ok 1 - c # SKIP no match\\n'; exit 0; }
"""


def test_what_failed_in_the_browser_is_run_once_more(tmp_path, script_test):
    """What is not run the second time has not passed."""
    (tmp_path / "tests/browser").mkdir(parents=True)
    (tmp_path / "tests/browser/run").write_text(BROWSER)
    (tmp_path / "tests/browser/run").chmod(0o755)
    got = script_test("browser")
    assert got.returncode == 1 and got.stdout.splitlines()[-1] == "2 passed, 1 failed", got.stdout + got.stderr
    assert 'UNSTEADY browser: it: "b" (is) one?' in got.stdout and "FAIL browser: c" in got.stdout and "1 UNSTEADY" in got.stdout
