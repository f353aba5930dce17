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

from instance import GPUMGR, Instance, clean_env, kill
from job_node import Books, JobNode, job_record, words
from server import Server
from set_clock import Clock
from simulator import BUILD, Simulator, wait_for
from test_recur import Cron, walked

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
NIGHTS = {"spring": datetime(2026, 3, 28, 23, 5, tzinfo=BERLIN), "autumn": datetime(2026, 10, 24, 23, 5, tzinfo=BERLIN)}
STEPS = 30  # of the server's way with one slot


def repeat_record(cron, zone="Europe/Berlin", late="3h", overlap="queue", command=("exit", "0"), name="nightly"):
    """A job's record with a repeat, as model/job.c writes it."""
    return b"\2" + job_record(command, name=name)[1:] + b"\1" + words([f"cron={cron}", f"zone={zone}", f"late={late}", f"overlap={overlap}"])


class Mortal(Server):
    """On a clock of the test's, and dead when its file says so."""

    def __init__(self, clock, orders):
        self.clock, self.orders = clock, orders
        super().__init__()

    def start(self):
        for name in ("listen", "api.sock"):
            (self.dir / "run/server" / name).unlink(missing_ok=True)
        env = clean_env(**self.clock.env(), GPUMGR_CRASH=f"@{self.orders}")
        self.process = subprocess.Popen([str(BUILD / "tests/server_crash"), "serve", str(self.dir), str(self.dir / "run/settings"), "0"],
                                        env=env, stderr=self.log_path.open("a"))
        wait_for(lambda: self.is_dead() or self.is_up(), "the server answers, or is dead", 30)

    def is_up(self):
        try:
            return self.unix("GET", "/healthz").status == 200
        except OSError:
            return False

    def is_dead(self):
        return self.process.poll() is not None


class Night:
    def __init__(self, path, start):
        path.chmod(0o777)
        self.clock = Clock(path / "clock", start)
        self.orders = path / "crash"
        self.server, self.books, self.node, self.deaths = Mortal(self.clock, self.orders), Books(), None, 0
        self.connect()

    def connect(self):
        while True:
            if self.server.is_dead():
                assert self.server.process.returncode == -9, self.server.log_path.read_text()
                self.deaths += 1
                self.server.start()
            if self.node:
                self.node.close()
            try:
                self.node = JobNode(self.server.dir / "run/server/link.sock", self.books)
                return
            except (OSError, AssertionError):
                wait_for(self.server.is_dead, "the server is dead, if its socket is", 30)

    def get(self, path):
        try:
            return self.server.unix("GET", path).json
        except OSError:
            return None

    def is_settled(self):
        """Nothing is due, nothing is open; or there is nobody to ask."""
        if self.server.is_dead():
            self.connect()
        got = self.get("/api/v1/repeats")
        return got and all(r["next"][0]["at"] > self.clock.now() and not r["open_jobs"] for r in got["repeats"])

    def settle(self):
        wait_for(self.is_settled, f"all is decided at {self.clock.text()}", 60)

    def close(self):
        self.node.close()
        if not self.server.is_dead():
            self.server.process.kill()
            self.server.process.wait(10)
        self.server.__exit__()


CRONS = ["*/10 * * * *", "30 2 * * *", "0,15,30,45 1-3 * * *", "5 */2 * * *"]


def check(night, first, start, end):
    """What is in the file against an independent reckoning."""
    jobs = {j["id"]: j for j in night.get("/api/v1/jobs?limit=1000")["jobs"]}
    starts = [k for k in night.books.starts]
    assert len(starts) == len(set(starts)), "a run was started twice"
    for i, cron in enumerate(CRONS):
        slots = night.get(f"/api/v1/repeats/{first + i}")["slots"]
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
            night.orders.write_text(f"server:{step % STEPS + 1}\n")
            night.orders.chmod(0o666)
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
