"""Nights of repeating jobs on a clock that is set: across both changes of the clocks, with the server killed at one numbered step after
the other (base/crash_point.h), or server and node of the real program at any moment, and with the clock set back and forth. Each
time becomes one job, and that runs once."""

import json
import os
import random
import subprocess
import time
import zoneinfo
from datetime import timedelta, datetime, timezone

import pytest

from instance import GPUMGR, Instance, kill
from job_node import repeat_record
from mortal import Place
from set_clock import Clock
from simulator import Simulator, wait_for
from test_recur import Cron, walked

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
NIGHTS = {"spring": datetime(2026, 3, 28, 23, 5, tzinfo=BERLIN), "autumn": datetime(2026, 10, 24, 23, 5, tzinfo=BERLIN)}
STEPS = 151  # of the server's way with one slot: a prime, so that each comes up


class Night(Place):
    def __init__(self, path, start):
        path.chmod(0o777)
        self.clock = Clock(path / "clock", start)
        super().__init__(path, self.clock)

    def is_settled(self):
        """Nothing is due, nothing is open; or there is nobody to ask."""
        if self.server.is_dead():
            self.connect()
        got = self.get("repeats")
        return all(r["next"][0]["at"] > self.clock.now() and not r["open_jobs"] for r in got["repeats"])

    def settle(self):
        wait_for(self.is_settled, f"all is decided at {self.clock.text()}", 60)


CRONS = ["*/10 * * * *", "30 2 * * *", "0,15,30,45 1-3 * * *", "5 */2 * * *"]


def check(night, first, start, end):
    """What is in the file against an independent reckoning."""
    jobs = {j["id"]: j for j in night.get("jobs?limit=1000")["jobs"]}
    starts = [k for k in night.books.starts]
    assert len(starts) == len(set(starts)), "a run was started twice"
    for i, cron in enumerate(CRONS):
        slots = night.get(f"repeats/{first + i}")["slots"]
        have = [s["at"] for s in reversed(slots)]
        assert have == walked(Cron(cron), BERLIN, start, end), f"{cron}: {[s['local'] for s in reversed(slots)]}"
        assert [s["outcome"] for s in slots] == ["done"] * len(slots), cron
        numbers = sorted(s["job"] for s in slots)
        assert numbers == sorted(n for n, j in jobs.items() if j["parent"] == {"kind": "repeat", "id": first + i}), cron
        assert len(set(numbers)) == len(numbers) and all((n, 0, 1) in starts for n in numbers), cron


@pytest.mark.parametrize("season", NIGHTS)
def test_killed_at_every_step(season, tmp_path):
    start, r = int(NIGHTS[season].timestamp()), random.Random(season)
    night = Night(tmp_path, start)
    try:
        answers = [night.node.submit(repeat_record(c, name=f"r{i}")) for i, c in enumerate(CRONS)]
        assert [a["result"] for a in answers] == [0] * len(CRONS), answers
        first, now, step = answers[0]["first"], start, 0
        end = int((NIGHTS[season].astimezone(timezone.utc) + timedelta(hours=6)).timestamp())
        while now < end:
            now, step = min(now + 300, end), step + 1
            night.kill_at(f":{step * 7 % STEPS + 1}")
            night.clock.set(now)
            night.settle()
            if step % 8 == 0:  # back over what has run, for more than a look
                night.clock.set(now - 1500)
                time.sleep(1.2)
                night.clock.set(now)
            if step % 11 == 0 and now + 2400 < end:  # ahead by more than a slot, and back: what ran early does not run again
                night.clock.set(now + r.randrange(600, 2400))
                night.settle()
                night.clock.set(now)
        night.orders.unlink(missing_ok=True)
        night.settle()
        assert night.deaths > 20, night.deaths
        check(night, first, start, end)
    finally:
        night.close()


# ---- the real program ----

def ask(i, *words_):
    got = subprocess.run([str(GPUMGR), words_[0], "--dir", str(i.dir), *map(str, words_[1:])], capture_output=True, text=True, env=i.env, timeout=60)
    return json.loads(got.stdout) if got.returncode == 0 and got.stdout.startswith("{") else None


@pytest.mark.skipif(os.geteuid() != 0, reason="a server that gives its rights up needs root")
@pytest.mark.parametrize("season", NIGHTS)
def test_the_real_program(season, tmp_path):
    """Two hours around the change; server or node killed while the clock goes on."""
    tmp_path.chmod(0o777)
    start = int(NIGHTS[season].astimezone(timezone.utc).timestamp()) + 2 * 3600 + 20 * 60  # 01:25
    clock, r, out = Clock(tmp_path / "clock", start), random.Random(season), tmp_path / "ran"
    cron = "*/10 * * * *"
    with Simulator(tmp_path / "sim", "--model", "h200:2") as sim:
        with Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", "", "--engines.podman", "", role="up", env=clock.env()) as i:
            i.ready(2)
            command = f"echo $GPUMGR_JOB_ID >> {out}"
            got = wait_for(lambda: ask(i, "submit", "--json", "--cron", cron, "--zone", "Europe/Berlin", "--late", "2h", "--overlap", "queue", "--name", "n",
                                       "--", "sh", "-c", command), "it is handed in", 30)
            assert got["kind"] == "repeat"

            def settled():
                one = ask(i, "repeat", "show", got["id"], "--json")
                return one and one["next"][0]["at"] > clock.now() and not one["open_jobs"] and one
            now = start
            while now < start + 2 * 3600:
                now += 600
                clock.set(now)
                for p in i.of_program(r.choice(["server", "node", "server"])):
                    time.sleep(r.random() * 0.7)  # any moment
                    kill(p)
                if r.random() < 0.3:
                    clock.set(now - 900)
                    clock.set(now)
                wait_for(settled, f"all is decided at {clock.text()}", 90)
            one = settled()
            want = walked(Cron(cron), BERLIN, start, now)
            assert [s["at"] for s in reversed(one["slots"])] == want
            assert [s["outcome"] for s in one["slots"]] == ["done"] * len(want), one["slots"]
            assert sorted(map(int, out.read_text().split())) == sorted(s["job"] for s in one["slots"])
