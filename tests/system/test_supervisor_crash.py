"""The supervisor is killed at every numbered step of its way (base/crash_point.h): while it starts, reloads, misses the dead, makes a
directory anew and stops. The jobs of a Unix user go on meanwhile and are adopted by the next one: each runs once, its log is whole, its
exit code exact, no GPU is given twice; and no card stays lowered without a record that says what it was."""

import json
import math
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from instance import GPUMGR, Instance, is_alive, kill, stop
from job_box import ADA, NO_ENGINES
from mortal import programs
from simulator import Simulator, wait_for

pytestmark = [pytest.mark.timeout(900), pytest.mark.skipif(os.geteuid() != 0, reason="needs root to run jobs of others")]

STEPS_MOST, ELEMENTS = 200, 100
LONG = 90
HOT = 2  # the card that is lowered all the time; the other two are for jobs
STEADY = "echo $$ $CUDA_VISIBLE_DEVICES >> {0}/steady; n=0; until test -e {0}/go; do n=$((n+1)); echo line $n; sleep 0.1; done; echo end $n; exit 7"
SHORT = ('say() {{ echo $1 $GPUMGR_ARRAY_INDEX $CUDA_VISIBLE_DEVICES $(date +%s.%N) >> {0}/spans; }}; say begin; echo begin $GPUMGR_ARRAY_INDEX; '
         'until test -e {0}/go.$GPUMGR_ARRAY_INDEX -o -e {0}/go; do sleep 0.05; done; echo end $GPUMGR_ARRAY_INDEX; say end; exit $((GPUMGR_ARRAY_INDEX % 5 + 1))')


class Told:
    """What systemd would be told."""

    def __init__(self, path):
        self.socket, self.path = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), path
        self.socket.bind(str(path))
        self.socket.setblocking(False)
        self.all = []

    def count(self, word):
        try:
            while True:
                self.all.append(self.socket.recv(4096).decode())
        except BlockingIOError:
            return sum(word in told for told in self.all)


class House:
    """Whoever finds the supervisor dead starts another one."""

    def __init__(self, path, program):
        self.dir, self.path = (Path(tempfile.mkdtemp(prefix="gm-", dir="/dev/shm")) for _ in range(2))
        self.path.chmod(0o777)  # its jobs leave word there
        self.program, self.order = program, path / "crash"
        self.told = Told(self.dir / "told")
        self.sim = Simulator(path / "sim", "--model", "h200:3")
        self.i, self.deaths, self.refused = None, 0, 0
        self.sim.say(f"fault {HOT} cooling 5")
        self.sim.task("--gpu", HOT, "--forever")
        self.usual = [g["limit_mw"] for g in self.sim.facts()["gpus"]]

    def close(self):
        if self.i:
            self.i.__exit__()
        self.sim.__exit__()
        self.told.socket.close()
        shutil.rmtree(self.path, ignore_errors=True)

    # ---- the supervisor ----

    def begin(self):
        flags = ("--gpu-devices", self.sim.dir / "dev", "--guard.hot-c", "75", *NO_ENGINES)
        self.i = Instance(self.sim, *flags, role="up", path=self.dir, program=self.program / "gpumgr",
                          env={"GPUMGR_CRASH": f"@{self.order}", "NOTIFY_SOCKET": self.told.path})

    def is_dead(self):
        return self.i.process.poll() is not None

    def is_ready(self):
        return any(line["process"] == "supervisor" for line in self.i.said("ready"))

    def up(self):
        """As somebody would: again, while one that is being killed is in the way."""
        while True:
            self.begin()
            wait_for(lambda: self.is_dead() or self.is_ready(), "it is ready, or dead", LONG)
            if not self.is_dead():
                return
            assert self.i.process.returncode == 2 and "already runs" in self.i.log_path.read_text(), self.i.log_path.read_text()
            self.refused += 1

    def has_cards(self):
        queue = self.call("queue", "--json")
        return queue.returncode == 0 and len(json.loads(queue.stdout)["gpus"]) == len(self.usual)

    def serving(self):
        wait_for(self.has_cards, "the queue knows the cards", LONG)
        return self

    def lowered(self):
        wait_for(lambda: self.sim.gpu(HOT)["limit_mw"] < self.usual[HOT] * 0.97, "the card is lowered", LONG)

    def record(self):
        return self.dir / "guard" / self.sim.gpu(HOT)["uuid"]

    def mourn(self, family, is_patient):
        """It died where it was told to: its jobs know nothing of it."""
        assert self.i.process.returncode == -signal.SIGKILL, self.i.log_path.read_text()
        self.deaths += 1
        assert is_alive(self.steady), "its job is gone"
        for element in self.open_elements():
            (self.path / f"go.{element}").touch()  # it ends while nobody looks
        if is_patient:
            wait_for(lambda: not any(map(is_alive, family)), "its children are gone", LONG)
            assert self.record().exists() or self.sim.gpu(HOT)["limit_mw"] == self.usual[HOT], "a card is left lowered, and nobody knows"

    # ---- people ----

    def call(self, *words):
        return subprocess.run([GPUMGR, words[0], "--dir", self.dir, *map(str, words[1:])], env=self.i.env, capture_output=True,
                              text=True, timeout=LONG, cwd="/", user=ADA, group=ADA, extra_groups=[])

    def submit(self, *words):
        done = self.call("submit", *words)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    def settle(self):
        """A job that runs all the time, and one after the other beside it."""
        self.long = self.submit("--", "sh", "-c", STEADY.format(self.path))
        wait_for(lambda: (self.path / "steady").exists() and (self.path / "steady").read_text().endswith("\n"), "it runs", LONG)
        self.steady = int((self.path / "steady").read_text().split()[0])
        self.array = self.submit("--array", f"1-{ELEMENTS}", "--", "sh", "-c", SHORT.format(self.path))

    def spans(self):
        spans = self.path / "spans"
        return [line.split() for line in spans.read_text().splitlines()] if spans.exists() else []

    def begun(self):
        return [int(s[1]) for s in self.spans() if s[0] == "begin"]

    def open_elements(self):
        said = self.spans()
        return {s[1] for s in said if s[0] == "begin"} - {s[1] for s in said if s[0] == "end"}

    def job(self, number):
        return json.loads(self.call("jobs", number, "--json").stdout)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return programs(tmp_path_factory.mktemp("bin"), "core")


@pytest.fixture
def house(tmp_path, program):
    house = House(tmp_path, program)
    try:
        house.up()
        house.serving().settle()
        yield house
    finally:
        house.close()


# ---- what happens to it; each returns a fact: that it is over ----

def start(house, order):
    if not house.is_dead():
        house.i.process.terminate()
        house.i.process.wait(LONG)
    house.order.write_text(order)
    house.begin()
    return house.is_ready


def reload(house, order):
    before = house.told.count("READY=1")
    house.order.write_text(order)
    house.i.process.send_signal(signal.SIGHUP)
    return lambda: house.told.count("READY=1") > before


def lose_children(house, order):
    """All of them at once."""
    before = house.i.children()
    stop(house.i.process.pid)
    house.order.write_text(order)
    for child in before:
        kill(child)
    house.i.process.send_signal(signal.SIGCONT)
    return lambda: len(house.i.children()) == len(before) and not set(before) & set(house.i.children())


def lose_directory(house, order):
    before = house.i.children()
    house.order.write_text(order)
    (house.dir / "run/settings").unlink()
    house.i.process.send_signal(signal.SIGCHLD)  # it looks when it wakes up
    return lambda: len(house.i.children()) == len(before) and not set(before) & set(house.i.children())


def end(house, order):
    house.lowered()
    house.order.write_text(order)
    house.i.process.terminate()
    return house.is_dead


def end_without_sampler(house, order):
    """Nobody is there to put the card back but a program that the supervisor starts for that."""
    house.lowered()
    stop(house.i.process.pid)
    house.order.write_text(order)
    kill(house.i.samplers()[0])
    house.i.process.terminate()
    house.i.process.send_signal(signal.SIGCONT)
    return house.is_dead


WAYS = [(start, 40), (reload, 10), (lose_children, 5), (lose_directory, 10), (end, 4), (end_without_sampler, 6)]


def check_jobs(house):
    """What was begun is ended by its own word; what was not is cancelled."""
    begun = house.begun()
    assert house.call("cancel", *(f"{house.array}.{n}" for n in range(1, ELEMENTS + 1) if n not in begun)).returncode == 0
    (house.path / "go").touch()
    wait_for(lambda: all(house.job(n)["ended"] for n in (house.long, house.array)), "all is over", LONG)
    all_ = house.begun()
    assert len(all_) == len(set(all_)) and len((house.path / "steady").read_text().splitlines()) == 1, "one ran twice"
    ran = {r["element"]: r for r in house.job(house.array)["runs"] if r["started"]}
    assert set(all_) <= set(ran)
    for n in begun:
        assert (ran[n]["state"], ran[n]["exit_code"], ran[n]["attempt"]) == ("failed", n % 5 + 1, 1), ran[n]
        assert house.call("logs", f"{house.array}.{n}").stdout == f"begin {n}\nend {n}\n"
    job, lines = house.job(house.long), house.call("logs", house.long).stdout.splitlines()
    assert (job["state"], job["exit_code"], len(job["runs"])) == ("failed", 7, 1), job
    assert lines == [*(f"line {n}" for n in range(1, len(lines))), f"end {len(lines) - 1}"], "its log is not whole"
    return len(begun)


def check_gpus(house):
    """At no time had two of them the same. One that began just before it was cancelled has no last word: of it the books tell the end."""
    has = {(house.path / "steady").read_text().split()[1]: "steady"}
    cut = {str(r["element"]): r["ended"] for r in house.job(house.array)["runs"] if r["state"] == "cancelled"}
    for verb, element, gpu, at in house.spans():
        if verb == "begin":
            assert gpu not in has or cut.get(has[gpu], math.inf) <= float(at), f"{gpu} was given to {has[gpu]} and {element}"
            has[gpu] = element
        elif has.get(gpu) == element:
            del has[gpu]


def check_the_end(house):
    """All cards are as they were, and nothing is left of those who died."""
    house.i.process.terminate()
    assert house.i.process.wait(LONG) == 0
    assert [g["limit_mw"] for g in house.sim.facts()["gpus"]] == house.usual and not list((house.dir / "guard").iterdir())
    assert not (left := [p.name for p in house.dir.rglob("*.new*")]), left


def finish(house):
    if house.is_dead():
        house.up()
    house.serving()
    begun = check_jobs(house)
    check_gpus(house)
    check_the_end(house)
    print(f"{house.deaths} deaths, {begun} jobs beside the one that ran all the time; in the way {house.refused} times")


@pytest.mark.parametrize("way, least", WAYS, ids=lambda w: getattr(w, "__name__", ""))
def test_a_kill_at_every_step(house, way, least):
    for number in range(1, STEPS_MOST):
        if house.is_dead() and (way != start or number % 8 == 1):  # the way to a start is quick; now and then it gets further
            house.up()
        family = house.i.children()
        is_over = way(house, f"supervisor:{number}:{way.__name__}")
        wait_for(lambda: house.is_dead() or is_over(), "it is over, or dead", LONG)
        if house.order.exists():
            break
        wait_for(house.is_dead, "it is dead", LONG)
        house.mourn(family, number % 2)
    house.order.unlink(missing_ok=True)
    print(f"{way.__name__}: killed at {number - 1} steps")
    assert number > least
    finish(house)


@pytest.mark.parametrize("who", ["sampler", "node", "server"])
def test_a_kill_of_each_process_to_be(house, who):
    """Between the supervisor's fork and the program that is to run: it is missed, and another one is started."""
    for number in range(1, STEPS_MOST):
        house.i.process.terminate()
        assert house.i.process.wait(LONG) == 0
        house.order.write_text(f"{who}:{number}")
        house.up()
        wait_for(lambda: len(house.i.children()) == 3, "all are there", LONG)
        if house.order.exists():
            break
        house.serving()
    house.order.unlink()
    print(f"{who}: killed at {number - 1} steps")
    assert number > 1
    finish(house)
