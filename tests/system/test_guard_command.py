"""`gpumgr guard` as people and systemd call it: the way back without a daemon on simulated cards of all three levers, and
set, confirm and restore against guards that do as they are told (tools/guard_actor)."""

import fcntl
import json
import os
import re
import signal
import subprocess
import time

import pytest

from instance import GPUMGR, Instance, clean_env
from simulator import BUILD, LIBRARY, Simulator, wait_for

POWER, CLOCKS, APP_CLOCKS = 1, 2, 3
H200, T1000, P100 = range(3)
SET, CONFIRM, RESTORE = 3, 4, 5


def guard(*args, env=None, **kw):
    kw.setdefault("timeout", 30)
    return subprocess.run([str(GPUMGR), "guard", *map(str, args)], capture_output=True, text=True, env=env or clean_env(), **kw)


def one_line(text):
    return text.count("\n") == 1 and text.startswith("gpumgr guard: ")


# ---- bad input: exit 2, one sentence, whether a gpumgr runs or not ----

BAD_WORDS = [
    ("an unknown word", ["sett", "0"], ["sett", "set"]),
    ("set without a GPU", ["set", "--limit", "500W"], ["which GPU"]),
    ("confirm without a GPU", ["confirm"], ["which GPU"]),
    ("two GPUs", ["set", "0", "1", "--limit", "500W"], ["one GPU"]),
    ("nothing to set", ["set", "0"], ["--limit", "--clock", "--target"]),
    ("two things to set", ["set", "0", "--limit", "500W", "--clock", "1400"], ["one of"]),
    ("watts of another size", ["set", "0", "--limit", "0.5kW"], ["--limit", "0.5kW", "500W"]),
    ("the unit of another flag", ["set", "0", "--clock", "500W"], ["--clock", "1400MHz"]),
    ("a negative target", ["set", "0", "--target", "-5"], ["--target"]),
    ("no number", ["set", "0", "--target", "hot"], ["--target", "80C"]),
    ("a time without end", ["set", "0", "--limit", "500W", "--for", "forever"], ["--for", "1s to 168h"]),
    ("a time too long", ["set", "0", "--limit", "500W", "--for", "200h"], ["--for", "1s to 168h"]),
    ("confirmed too late", ["set", "0", "--limit", "500W", "--for", "5s", "--confirm", "6s"], ["--confirm"]),
    ("flags of set alone", ["--limit", "500W"], ["guard set"]),
    ("flags of set with restore", ["restore", "--for", "5s"], ["guard set"]),
    ("JSON of a deed", ["restore", "--json"], ["--json"]),
    ("a flag that is none", ["set", "0", "--limmit", "500W"], ["--limit"]),
]


@pytest.mark.parametrize("args,says", [row[1:] for row in BAD_WORDS], ids=[row[0] for row in BAD_WORDS])
def test_bad_words(place, args, says):
    got = guard(*args, "--dir", place)
    assert got.returncode == 2 and got.stdout == "" and one_line(got.stderr), got.stderr
    for word in says:
        assert word in got.stderr


@pytest.mark.parametrize("args", [[], ["--json"], ["--watch"], ["set", "0", "--limit", "500W"], ["confirm", "0"]])
def test_without_a_daemon(place, args):
    got = guard(*args, "--dir", place)
    assert got.returncode == 1 and got.stdout == "" and one_line(got.stderr)
    assert "gpumgr up" in got.stderr


@pytest.mark.parametrize("args", [[], ["all"], ["0"]])
def test_nothing_to_restore(place, args):
    for where in (place, place / "none"):
        got = guard("restore", *args, "--dir", where, "--gpu-library", "/nonexistent.so")
        assert got.returncode == 0 and got.stderr == "" and got.stdout.startswith("Nothing to restore: ")


# ---- the way back, from records ----


class Cards:
    """A simulated H200 (power limit), T1000 (locked clocks) and P100 whose power limit cannot be set (application clocks)."""

    def __init__(self, place):
        self.place = place
        self.dir = place / "i"
        self.sim = Simulator(place / "sim", "--model", "h200,t1000,p100")
        self.sim.say("fault 2 sensor power-limit off")
        gpus = self.sim.facts()["gpus"]
        self.uuid = [g["uuid"] for g in gpus]
        self.p100_memory = gpus[P100]["mem_clocks"][0]
        self.env = clean_env(GPUSIM_DIR=self.sim.dir, GPUMGR_GPU_LIBRARY=LIBRARY, GPUMGR_DIR=self.dir,
                             GPUMGR_GUARD_LOCK_DIR=place)

    def throttle(self):
        self.sim.set(H200, "DeviceSetPowerManagementLimit", 300000)
        self.sim.set(T1000, "DeviceSetGpuLockedClocks", 300, 900)
        lowest = self.sim.gpu(P100)["gr_clocks"][-1]
        self.sim.set(P100, "DeviceSetApplicationsClocks", self.p100_memory, lowest)
        return self.becomes([300000, 900, lowest])

    def now(self):
        """What is set on each card."""
        g = self.sim.facts()["gpus"]
        return [g[H200]["limit_mw"], g[T1000]["lock_gr_max_mhz"], g[P100]["app_gr_mhz"]]

    def becomes(self, want):
        """What is set shows at the simulator's next step."""
        wait_for(lambda: self.now() == want, f"the cards are set to {want}, not {self.now()}", 2)
        return want

    def stays(self, want):
        """The same after the simulator has gone on for a while: nothing is under way."""
        until = self.sim.gpu()["at_us"] + 200000
        wait_for(lambda: self.sim.gpu()["at_us"] > until, "the simulator goes on")
        assert self.now() == want

    def record(self, gpu, lever, value, memory=0.0, **other):
        text = (f"gpumgr-baseline 1\nuuid {other.get('uuid', self.uuid[gpu])}\nlever {lever}\nvalue {value:.3f}\n"
                f"memory {memory:.3f}\ntaken 1700000000000000000\nend\n")
        return self.write(other.get("name", self.uuid[gpu]), text)

    def write(self, name, text):
        path = self.dir / "guard" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def record_all(self):
        return [self.record(H200, POWER, 650), self.record(T1000, CLOCKS, self.sim.gpu(T1000)["gr_max_mhz"]),
                self.record(P100, APP_CLOCKS, self.sim.gpu(P100)["gr_clocks"][3], self.p100_memory)]

    def restore(self, *args, **more):
        return guard("restore", *args, env={**self.env, **more})


@pytest.fixture
def cards(place):
    c = Cards(place)
    with c.sim:
        yield c


def test_restore_puts_all_three_levers_back(cards):
    records = cards.record_all()
    cards.throttle()
    got = cards.restore()
    assert got.returncode == 0 and got.stderr == "", got.stderr
    cards.becomes([650000, 0, cards.sim.gpu(P100)["gr_clocks"][3]])
    lines = got.stdout.splitlines()
    assert sorted(line[:6] for line in lines) == ["GPU 0:", "GPU 1:", "GPU 2:"]
    assert "power limit to 650 W" in got.stdout and "application clocks to" in got.stdout and "clocks" in got.stdout
    assert not any(r.exists() for r in records)
    assert cards.restore().stdout.startswith("Nothing to restore")


def test_restore_after_the_run_directory_is_gone(cards):
    """After a power loss /run is empty, and DIR/run is a link to nowhere."""
    cards.record(H200, POWER, 650)
    before = cards.throttle()
    (cards.dir / "run").symlink_to(cards.place / "gone")
    assert cards.restore().returncode == 0
    cards.becomes([650000, *before[1:]])


def test_restore_touches_no_card_without_a_record(cards):
    before = cards.throttle()
    cards.record(T1000, CLOCKS, 1500)
    got = cards.restore()
    assert got.returncode == 0 and got.stdout.count("\n") == 1
    cards.becomes([before[H200], 0, before[P100]])


def test_restore_one_gpu(cards):
    records = cards.record_all()
    before = cards.throttle()
    assert cards.restore(cards.uuid[H200][:12]).returncode == 0
    cards.becomes([650000, *before[1:]])
    assert [r.exists() for r in records] == [False, True, True]


def test_observe_sets_nothing_at_all(cards):
    records = cards.record_all()
    before = cards.throttle()
    facts = [{k: g[k] for k in g if re.search("limit|lock|app_", k)} for g in cards.sim.facts()["gpus"]]
    got = cards.restore(GPUMGR_GUARD_MODE="observe")
    assert got.returncode == 0 and got.stderr == ""
    assert got.stdout.count("would ") == 3 and "650 W" in got.stdout
    cards.stays(before)
    assert [{k: g[k] for k in g if re.search("limit|lock|app_", k)} for g in cards.sim.facts()["gpus"]] == facts
    assert all(r.exists() for r in records)


BAD_RECORDS = [
    ("empty", lambda c: c.write(c.uuid[H200], ""), "not a whole"),
    ("cut short", lambda c: c.write(c.uuid[H200], f"gpumgr-baseline 1\nuuid {c.uuid[H200]}\nlever 1\nvalue 6"), "not a whole"),
    ("more after its end", lambda c: (p := c.record(H200, POWER, 650)).write_text(p.read_text() + "x"), "not a whole"),
    ("another card's", lambda c: c.record(H200, POWER, 650, name=c.uuid[T1000]), "another card"),
    ("above the maximum", lambda c: c.record(H200, POWER, 900), "200 to 700"),
    ("below the minimum", lambda c: c.record(H200, POWER, 20), "200 to 700"),
    ("of another lever", lambda c: c.record(H200, CLOCKS, 1500), "locked clocks"),
    ("no number", lambda c: c.record(H200, POWER, float("nan")), "impossible"),
    ("a card that is gone", lambda c: c.record(H200, POWER, 650, uuid="GPU-gone", name="GPU-gone"), "not to be found"),
    ("a directory", lambda c: (c.dir / "guard" / c.uuid[H200]).mkdir(parents=True), "directory"),
    ("far too long", lambda c: c.write(c.uuid[H200], "x" * 100000), "larger"),
]


@pytest.mark.parametrize("make,says", [row[1:] for row in BAD_RECORDS], ids=[row[0] for row in BAD_RECORDS])
def test_bad_records_leave_the_card_and_the_others_are_restored(cards, make, says):
    before = cards.throttle()
    make(cards)
    good = cards.record(P100, APP_CLOCKS, cards.sim.gpu(P100)["gr_clocks"][3], cards.p100_memory)
    there = sorted((cards.dir / "guard").iterdir())
    got = cards.restore()
    assert got.returncode == 1 and one_line(got.stderr) and says in got.stderr, got.stderr
    cards.becomes([*before[:2], cards.sim.gpu(P100)["gr_clocks"][3]])
    assert sorted((cards.dir / "guard").iterdir()) == [p for p in there if p != good]


def test_what_a_dying_writer_left_half_written_is_no_record(cards):
    cards.write(f"{cards.uuid[H200]}.new.123.0", "gpumgr-base")
    assert cards.restore().stdout.startswith("Nothing to restore")


def test_restore_leaves_a_card_that_another_guard_holds(cards):
    records = cards.record_all()
    before = cards.throttle()
    with (cards.place / f"gpumgr-guard-{cards.uuid[H200]}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        got = cards.restore()
    assert got.returncode == 1 and "GPU 0: another guard" in got.stderr
    cards.becomes([before[H200], 0, cards.sim.gpu(P100)["gr_clocks"][3]])
    assert records[H200].exists()


def test_a_driver_that_hangs_costs_seconds_and_the_others_are_restored(cards):
    records = cards.record_all()
    before = cards.throttle()
    cards.sim.say("fault 0 hang nvmlDeviceSetPowerManagementLimit")
    began = time.monotonic()
    got = cards.restore()
    assert time.monotonic() - began < 15
    assert got.returncode == 1 and one_line(got.stderr) and "GPU 0: the driver did not answer" in got.stderr
    cards.becomes([before[H200], 0, cards.sim.gpu(P100)["gr_clocks"][3]])
    assert [r.exists() for r in records] == [True, False, False]


def test_no_driver(cards):
    records = cards.record_all()
    got = cards.restore(GPUMGR_GPU_LIBRARY="/nonexistent.so")
    assert got.returncode == 1 and "no GPU driver answers" in got.stderr and all(r.exists() for r in records)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_who_may_not_set_is_told_so(cards):
    records = cards.record_all()
    before = cards.throttle()
    for path in (cards.place, cards.dir, cards.dir / "guard", *records):
        path.chmod(0o777)
        os.chown(path, 65534, 65534)
    got = guard("restore", env=cards.env, user=65534, group=65534, extra_groups=[])
    assert got.returncode == 1 and got.stderr.count("uid 65534") == 3, got.stderr
    cards.stays(before)
    assert all(r.exists() for r in records)


# ---- a gpumgr whose guards do as they are told ----


class Actor:
    def __init__(self, place):
        self.dir = place / "a"
        self.process = subprocess.Popen([BUILD / "tests/guard_actor", self.dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        assert self.process.stdout.readline() == "ready\n"

    def guard(self, *args, **kw):
        return guard(*args, "--dir", self.dir, **kw)

    def gpu(self, index):
        got = self.guard("--json")
        return next(g for g in json.loads(got.stdout)["gpus"] if g["index"] == index)

    def was_asked(self):
        """WORKER VERB ARGUMENTS of everything it was asked; ends it."""
        self.process.stdin.close()
        lines = self.process.stdout.read().splitlines()
        self.process.wait(30)
        return [tuple(map(int, line.split())) for line in lines]


@pytest.fixture
def actor(place):
    a = Actor(place)
    yield a
    a.process.stdin.close()
    a.process.wait(30)


def test_table_fits_a_terminal(actor):
    got = actor.guard()
    assert got.returncode == 0 and got.stderr == ""
    assert max(map(len, got.stdout.splitlines())) <= 80
    for text in ("81/84°C", "700/700 W", "1530/1530 MHz", "locked clocks", "observes only: nothing can be moved"):
        assert text in got.stdout


def test_json_has_every_field_and_leaves_out_what_is_absent(actor):
    assert actor.gpu(0) | {"since": ""} == {
        "index": 0, "uuid": "GPU-00000000-aaaa", "model": "NVIDIA Actor", "state": "ok", "mode": "acts", "lever": "power limit",
        "why": "it can be moved", "targets": {"core": 84, "memory": 92}, "readings": {"core": 81, "memory": 70}, "limit": 700,
        "baseline": 700, "floor": 200, "unit": "W", "reason": "calm", "since": "", "throttled_seconds": 0, "withheld_watts": 0}
    none = actor.gpu(2)
    assert none["mode"] == "observes" and none["lever"] == "none" and not {"limit", "unit", "withheld_watts", "manual"} & set(none)


def test_watch_prints_a_line_of_json_each_time(actor):
    with subprocess.Popen([str(GPUMGR), "guard", "--json", "--watch", "0.1", "--dir", str(actor.dir)], stdout=subprocess.PIPE,
                          text=True, env=clean_env()) as p:
        assert all(len(json.loads(p.stdout.readline())["gpus"]) == 3 for _ in range(3))
        p.send_signal(signal.SIGINT)
        assert p.wait(30) == 0


SETS = [
    ("a limit", ["0", "--limit", "500W"], (0, SET, 0, 0, 500000, 3600000, 0)),
    ("a limit to confirm", ["GPU-0", "--limit", "512.5", "--for", "30m", "--confirm", "60"],
     (0, SET, 0, 0, 512500, 1800000, 60000)),
    ("a clock, on the other worker", ["1", "--clock", "1400MHz", "--for", "2h"], (1, SET, 1, 0, 1400000, 7200000, 0)),
    ("a target", ["1", "--target", "80C", "--for", "90s"], (1, SET, 1, 1, 80000, 90000, 0)),
]


@pytest.mark.parametrize("args,asked", [row[1:] for row in SETS], ids=[row[0] for row in SETS])
def test_set_asks_the_worker_that_has_the_gpu(actor, args, asked):
    got = actor.guard("set", *args)
    assert got.returncode == 0 and got.stderr == "" and got.stdout.count("\n") == 1, got.stderr
    assert got.stdout.startswith(f"GPU {asked[2]}: ") and "until" in got.stdout
    assert ("guard confirm" in got.stdout) == (asked[-1] > 0)
    shown = actor.gpu(asked[2])
    assert "until" in shown["manual"] and ("confirm_by" in shown["manual"]) == (asked[-1] > 0)
    assert "set by hand until" in actor.guard().stdout
    assert actor.was_asked() == [asked]


OUTSIDE = [
    ("below the floor", ["0", "--limit", "199W"], "200 to 700 W"),
    ("above the baseline", ["0", "--limit", "701W"], "200 to 700 W"),
    ("a target above slowdown", ["0", "--target", "90"], "30 to 89 C"),
    ("a target below 30", ["0", "--target", "29"], "30 to 89 C"),
    ("a clock of a power card", ["0", "--clock", "1400"], "--limit"),
    ("a limit of a clock card", ["1", "--limit", "500"], "--clock"),
    ("a clock above the baseline", ["1", "--clock", "1531"], "300 to 1530 MHz"),
    ("a card without a lever", ["2", "--limit", "500"], "nothing can be moved"),
    ("all, and one cannot", ["all", "--target", "80"], "GPU 2"),
    ("no such GPU", ["7", "--limit", "500"], "no GPU 7"),
    ("no such UUID", ["GPU-9", "--limit", "500"], "no GPU GPU-9"),
    ("a beginning of three", ["GPU-", "--limit", "500"], "3 UUIDs"),
]


@pytest.mark.parametrize("args,says", [row[1:] for row in OUTSIDE], ids=[row[0] for row in OUTSIDE])
def test_what_a_card_cannot_have_is_asked_of_nobody(actor, args, says):
    got = actor.guard("set", *args)
    assert got.returncode == 2 and got.stdout == "" and one_line(got.stderr) and says in got.stderr, got.stderr
    assert actor.was_asked() == []


def test_confirm_and_restore(actor):
    assert actor.guard("confirm", "0").returncode == 1
    assert actor.guard("set", "0", "--limit", "500", "--confirm", "60s").returncode == 0
    got = actor.guard("confirm", "0")
    assert got.returncode == 0 and "confirmed" in got.stdout
    assert "manual" in actor.gpu(0) and "confirm_by" not in actor.gpu(0)["manual"]
    got = actor.guard("restore", "0")
    assert got.returncode == 0 and "baseline of 700 W" in got.stdout
    assert actor.gpu(0)["limit"] == 700 and "manual" not in actor.gpu(0)
    assert [(a[0], a[1], a[2]) for a in actor.was_asked()] == [(0, SET, 0), (0, CONFIRM, 0), (0, RESTORE, 0)]


def test_restore_while_a_supervisor_holds_the_directory_asks_all_its_samplers(actor):
    (actor.dir / "guard").mkdir()
    (actor.dir / "guard" / "GPU-x").write_text("whatever")
    got = actor.guard("restore")
    assert got.returncode == 0 and got.stdout.count("\n") == 3, got.stderr
    assert sorted((a[0], a[1], a[2]) for a in actor.was_asked()) == [(0, RESTORE, 0), (0, RESTORE, 2), (1, RESTORE, 1)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_others_may_look_but_not_set(actor):
    actor.dir.parent.chmod(0o755)
    other = {"user": 65534, "group": 65534, "extra_groups": []}
    assert actor.guard(**other).returncode == 0
    for args in (["set", "0", "--limit", "500"], ["restore"]):
        got = actor.guard(*args, **other)
        assert got.returncode == 1 and one_line(got.stderr) and "only root and the owner" in got.stderr, got.stderr
    assert actor.was_asked() == []


def test_a_sampler_that_is_gone_is_one_sentence(actor):
    (actor.dir / "run/sampler.0.sock").unlink()
    got = actor.guard("set", "0", "--limit", "500")
    assert got.returncode == 1 and one_line(got.stderr) and "sampler" in got.stderr


# ---- settings that the cards do not allow ----

REFUSED = [
    ("too hot", {"guard": {"hot_c": 95}}, ["guard.hot_c", "95", "30 to 89"]),
    ("memory too hot", {"guard": {"memory_c": 100}}, ["guard.memory_c", "100", "30 to 95"]),
    ("a budget too small", {"guard": {"budget_w": 399}}, ["guard.budget_w", "399", "400"]),
]


@pytest.mark.parametrize("settings,says", [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
@pytest.mark.parametrize("flags", [["--sim", "2"], []], ids=["simulated", "by the driver"])
def test_refused_at_start(place, settings, says, flags):
    file = place / "gpumgr.json"
    file.write_text(json.dumps(settings))
    with Simulator(place / "sim", "--model", "h200:2") as sim:
        env = clean_env(GPUSIM_DIR=sim.dir, **({} if flags else {"GPUMGR_GPU_LIBRARY": LIBRARY}))
        for role in ("up", "node"):
            got = subprocess.run([str(GPUMGR), role, "--dir", str(place / "i"), "--config", str(file), *flags], env=env,
                                 capture_output=True, text=True, timeout=30)
            assert got.returncode == 2 and got.stderr.count("\n") == 1, got.stderr
            for word in [*says, "gpumgr.json"]:
                assert word in got.stderr
            assert not (place / "i").exists()


def test_cards_that_are_not_watched_do_not_count(place):
    with Simulator(place / "sim", "--model", "h200,p100") as sim:
        env = clean_env(GPUSIM_DIR=sim.dir, GPUMGR_GPU_LIBRARY=LIBRARY)
        got = subprocess.run([str(GPUMGR), "up", "--dir", str(place / "i"), "--guard.hot_c", "85"], env=env, capture_output=True,
                             text=True, timeout=30)
        assert got.returncode == 2 and "GPU 1" in got.stderr and "30 to 82" in got.stderr
        with Instance(sim, "--guard.hot_c", "85", "--gpus", "0") as i:
            i.ready(1)


def test_refused_at_reload_and_the_old_settings_stay(place):
    file = place / "gpumgr.json"
    file.write_text("{}")
    with Simulator(place / "sim", "--model", "h200:2") as sim, Instance(sim, "--config", file) as i:
        i.ready(2)
        calls = [GPUMGR, "config", "--resolved", "--dir", i.dir, "--gpu-library", "/nonexistent.so", "--config", file]
        assert subprocess.run(calls, env=i.env, capture_output=True).returncode == 0
        targets = lambda: [g["guard"].get("target") for g in i.status()["gpus"]]
        before = wait_for(lambda: None not in targets() and targets(), "targets of both cards")
        file.write_text('{"guard": {"hot_c": 95}}')
        got = subprocess.run(calls, env=i.env, capture_output=True, text=True)
        assert got.returncode == 2 and "guard.hot_c" in got.stderr and "30 to 89" in got.stderr
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any("guard.hot_c" in json.dumps(line) for line in i.log()), "the refusal is logged")
        assert i.process.poll() is None and targets() == before
        file.write_text('{"guard": {"hot_c": 70}}')
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: targets() == [70, 70], "a good one is taken")
