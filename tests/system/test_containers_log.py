"""Engines that end the answer to whoever follows a log before all of it was told: while the container runs, and when it has ended."""

import json
import re
import shutil
import struct
import subprocess
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from instance import GPUMGR, Instance, clean_env
from simulator import wait_for
from test_engine_lies import ONE, Engine, whole

BEGAN = 1794774153


class Talker(Engine):
    """A container of 300 lines, three of them at a time; each answer ends after `each` of them. It ends when `told` were."""

    def __init__(self, path, is_tty, each, told):
        self.is_tty, self.each, self.last, self.told, self.follows = is_tty, each, told, 0, []
        self.lines = [(BEGAN + n // 100, n // 3 * 7 % 1000 * 10**6 + n // 3, f"line {n}\r\n" if is_tty else f"line {n}\n") for n in range(300)]
        super().__init__(path)

    def describe(self):
        is_on = self.told < self.last
        return json.dumps({"Id": ONE, "Name": "/lab", "Created": "2026-11-15T08:00:00Z", "Image": "sha256:1",
                           "State": {"Status": "running" if is_on else "exited", "Running": is_on, "Pid": 7 if is_on else 0, "StartedAt": "2026-11-15T08:00:00.5Z"},
                           "Config": {"Image": "i:1", "Labels": {}, "Tty": self.is_tty, "Env": ["NVIDIA_VISIBLE_DEVICES=0"]}, "HostConfig": {}, "Mounts": []}).encode()

    def message(self, seconds, ns, text):
        stamp = datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{ns:09d}Z "
        body = (stamp + text).encode()
        return body if self.is_tty else b"\x01\0\0\0" + struct.pack(">I", len(body)) + body

    def answer(self, one, target):
        if "/logs?" not in target:
            if re.fullmatch(r"/containers/\w+/json", target):
                one.sendall(whole(self.describe()))
            else:
                super().answer(one, target)
            return
        asked = {k: v[0] for k, v in parse_qs(urlsplit(target).query).items()}
        since = tuple(map(int, asked.get("since", "0.0").split(".")))
        self.follows.append(asked["follow"])
        rest = [m for m in self.lines if m[:2] >= since]
        some = rest if asked["follow"] == "0" else rest[:self.each]
        one.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + b"".join(self.message(*m) for m in some))
        self.told = max(self.told, len(self.lines) - len(rest) + len(some))
        one.close()
        raise OSError


@pytest.fixture
def spot():
    path = Path(tempfile.mkdtemp(prefix="cl.", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("is_tty", [False, True], ids=["plain", "terminal"])
@pytest.mark.parametrize("each, last, rounds", [(100, 300, 4), (250, 200, 1), (1000, 300, 1)])
def test_a_log_is_followed_whole_whatever_its_engine_says(spot, is_tty, each, last, rounds):
    engine = Talker(spot / "engine", is_tty, each, last)
    with Instance(None, "--sim", "1", "--engines.docker", spot / "engine", "--engines.podman", "", role="up") as i:
        wait_for(lambda: "events" in engine.asked, "the node asks")
        got = wait_for(lambda: (g := subprocess.run([str(GPUMGR), "containers", "logs", "lab", "--follow", "--dir", str(i.dir)], capture_output=True, text=True,
                                                    env=clean_env(), timeout=120)).returncode == 0 and g, "the log")
        want = [text.replace("\r", "") for _, _, text in engine.lines]
        assert got.stdout.splitlines(True) == want, (got.stdout[-300:], engine.follows)
        assert engine.follows == ["1"] * rounds + ["0"], "asked again while it runs, and once when it has ended"
    engine.close()
