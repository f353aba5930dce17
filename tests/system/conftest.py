"""Before any test is read: where the programs under test lie. Some tests run them as another user, who may not come into
the directory of whoever built them (a clone in root's home): then a copy that anyone may run stands in for it."""

import atexit
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD_DIR") or os.environ.get("GPUMGR_BUILD") or ROOT / "build").resolve()


def anyone_may_come(path):
    return all(p.stat().st_mode & 0o5 == 0o5 for p in (path, *path.parents))


os.environ.setdefault("BUILD_TREE", str(BUILD))  # as meson made it; another process of these tests may have set it already
if os.geteuid() == 0 and not anyone_may_come(BUILD):
    copy = Path(tempfile.mkdtemp(prefix="gpumgr-build-"))
    copy.chmod(0o755)
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    for name in ("gpumgr", "gpumgr-core", "gpumgr-node", "gpumgr-server", "gpumgr-shim"):
        shutil.copy(BUILD / name, copy)
    for name in ("sim", "tests"):
        shutil.copytree(BUILD / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("*.p", "*.a"))
    BUILD = copy
os.environ["BUILD_DIR"] = os.environ["GPUMGR_BUILD"] = str(BUILD)


def interrupt(*_):
    raise KeyboardInterrupt


def pytest_configure(config):
    # Asked to end, tests end as by ^C: with what cleans up behind them. A shell's background takes ^C away from all below it.
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "alone: measures a time or a share of a core; run after the others, one by one")
    config.addinivalue_line("markers", "long: mostly waits, for a minute or more; begun first")
    config.addinivalue_line("markers", "xdist_group: tests that stay in one worker")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Among several workers: long ones first; those that share something of their module (a server, an engine) stay together."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    for item in items:
        if hasattr(item.module, "Desk"):  # what is said to a user comes to all his terminals, whichever test opened them
            item.add_marker(pytest.mark.xdist_group("terminals"))
        elif any(defs[-1].scope == "module" for defs in item._fixtureinfo.name2fixturedefs.values()):
            item.add_marker(pytest.mark.xdist_group(item.module.__name__))


@pytest.fixture(scope="session", autouse=True)
def everybody_may_pass(tmp_path_factory):
    """Tests become other users and go to directories of their own below pytest's: a worker has one level more there."""
    base = tmp_path_factory.getbasetemp()
    for path in (base, *base.parents):
        if path.name.startswith(("pytest-", "popen-")):
            path.chmod(0o755)
    here = Path.cwd()
    if os.geteuid() == 0 and not anyone_may_come(here):  # nor can he begin a job in a clone that is in root's home
        os.chdir(base)
    yield
    os.chdir(here)


@pytest.fixture
def place():
    """A directory on tmpfs with a short path: sockets live in it."""
    path = Path(tempfile.mkdtemp(prefix="gm-", dir="/dev/shm"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)
