"""An engine that a test started ends with everything in it, whoever is killed (engine_end.py). The engine here is a shell with a
child: what names the directories, and what descends from it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from engine_end import EngineEnd
from instance import is_alive, kill
from simulator import wait_for

OWNER = """
import json, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from engine_end import EngineEnd
end = EngineEnd(*sys.argv[2:])
engine = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait", sys.argv[2]], stdout=subprocess.PIPE, text=True, start_new_session=True)
print(json.dumps([end.process.pid, engine.pid, int(engine.stdout.readline())]), flush=True)
time.sleep(1000)
"""


class Left:
    """What there is of an engine whose owner is another process."""

    def __init__(self, tmp_path):
        self.run, self.data = Path(tempfile.mkdtemp(prefix="ee.", dir="/tmp")), tmp_path / "data"
        (self.data / "deep").mkdir(parents=True)
        self.owner = subprocess.Popen([sys.executable, "-c", OWNER, Path(__file__).parent, self.run, self.data], stdout=subprocess.PIPE, text=True)
        self.watcher, *self.others = json.loads(self.owner.stdout.readline())
        if os.geteuid() == 0:
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.data / "deep"], check=True)

    def is_gone(self):
        return not any(map(is_alive, self.others)) and not self.run.exists() and not self.data.exists()

    def kill(self, *pids, number=signal.SIGKILL):
        for pid in pids:
            kill(pid, number)
        self.owner.wait(30)
        wait_for(lambda: not any(map(is_alive, pids)), "they are dead")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_owner(tmp_path, number):
    left = Left(tmp_path)
    assert all(map(is_alive, left.others))
    left.kill(left.owner.pid, number=number)
    wait_for(left.is_gone, "nothing is left")
    assert str(left.data) not in Path("/proc/mounts").read_text()


def test_a_stopped_engine_ends_too(tmp_path):
    left = Left(tmp_path)
    kill(left.others[0], signal.SIGSTOP)
    left.kill(left.owner.pid)
    wait_for(left.is_gone, "nothing is left")


def test_what_is_left_when_all_were_killed_goes_with_the_next_start(tmp_path):
    left, other = Left(tmp_path / "a"), Left(tmp_path / "b")
    left.kill(left.watcher, left.owner.pid)
    assert all(map(is_alive, left.others)) and left.data.exists()
    run = Path(tempfile.mkdtemp(prefix="ee.", dir="/tmp"))
    end = EngineEnd(run)
    wait_for(left.is_gone, "nothing is left")  # another test's start may be at it as well
    assert not other.is_gone(), "those that are somebody's stay"
    end.now()
    other.kill(other.owner.pid)
    assert not run.exists()
    wait_for(other.is_gone, "nothing is left")
