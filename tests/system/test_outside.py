"""Who uses a GPU outside the queue: seen, warned on his terminals, later ended, where the operator wants that. The real program,
real processes of several users on simulated GPUs, real terminals."""

import json
import os
import shutil
import signal
import subprocess
from contextlib import ExitStack, contextmanager

import pytest

from desk import Desk
from instance import Instance, is_alive
from job_box import ADA, BOB, NO_ENGINES, gpumgr, queue, state, submit, verdicts
from job_node import CANCEL, IS_FOREIGN, Books, JobNode, job_record
from server import Server
from simulator import BUILD, Simulator, wait_for
from watchmen_client import Client

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="processes of several users need root")

TASK = BUILD / "sim/gpusim-task"
LONG = 60


@contextmanager
def machine(place, *flags, gpus=2):
    place.mkdir(exist_ok=True)
    place.chmod(0o755)  # others use its GPUs
    with Simulator(place / "sim", "--model", f"h200:{gpus}") as sim, \
            Instance(sim, "--gpu-devices", sim.dir / "dev", *NO_ENGINES, *flags, role="up") as i:
        i.sim = sim
        i.ready(gpus)
        wait_for(lambda: verdicts(i) == ["free"] * gpus, "all GPUs are free", LONG)
        yield i


def use(box, desk, gpu, program=TASK, stubborn=False):
    """A process of that desk's user on a GPU, behind the queue's back."""
    words = [program, "--gpu", gpu, "--memory", "4G", "--forever", "--dir", box.sim.dir]
    deaf = "trap '' TERM; " if stubborn else ""
    p = desk.start("sh", "-c", deaf + 'exec "$@"', "sh", *words)
    wait_for(lambda: verdicts(box)[gpu] == "foreign", f"GPU {gpu} is seen to be used", LONG)
    return p


@contextmanager
def ended(*processes):
    try:
        yield
    finally:
        for p in processes:
            p.kill()
            p.wait()


def events(box, kind):
    got = subprocess.run(["curl", "-sS", "--unix-socket", box.dir / "run/server/api.sock", "http://gpumgr/api/v1/events?limit=500"],
                         capture_output=True, text=True, check=True)
    return [e for e in json.loads(got.stdout)["events"] if e["kind"] == kind]


def gpu(box, index):
    return queue(box)["gpus"][index]


def test_warned_waited_for_and_ended(place):
    """Not before somebody waits; on his terminals, not on others'; a stubborn one is killed; then the job runs."""
    with machine(place, "--queue.outside", "end", "--queue.outside-warn-s", "1", "--queue.outside-end-s", "15",
                 "--jobs.grace-s", "1") as box, Desk(ADA) as desk, Desk(ADA) as second, Desk(BOB) as others, Desk(ADA) as stopped:
        stopped.stop()
        p = use(box, desk, 0, stubborn=True)
        with ended(p):
            began = queue(box)["time"]
            wait_for(lambda: queue(box)["time"] > began + 3, "time goes by", LONG)
            assert gpu(box, 0)["outside"] is None and desk.text() == "" and p.poll() is None, "nobody waits for it"

            job = submit(box, "--gpu", "0", "--", "true", user=BOB)
            g = wait_for(lambda: (g := gpu(box, 0))["outside"] == "warned" and g["ends"] and g, "it is warned", LONG)
            assert g["pid"] == p.pid and g["ends"] > began
            assert "; warned, will be ended at " in " ".join(gpumgr(box, "queue").stdout.split())
            text = wait_for(desk.text, "a word on his terminal")
            assert f"your process {p.pid} (gpusim-task) uses GPU 0 outside the queue, and others wait for it." in text
            assert "It will be ended at " in text and text.startswith("\r\r\n\a") and text.endswith("\r\r\n")
            assert "will be ended" in second.text(), "on every terminal of his"

            assert p.wait(2 * LONG) == -signal.SIGKILL, "it did not hear TERM"
            state(box, job, "done")
            assert "is ended now" in desk.text() and others.text() == ""
            wait_for(lambda: events(box, "outside_killed"), "the last event", LONG)
            assert [len(events(box, k)) for k in ("outside_warned", "outside_ended", "outside_killed")] == [1, 1, 1]
            assert "warned on 2 terminals" in events(box, "outside_warned")[0]["text"], "one is stopped, and keeps nobody waiting"
            assert "used GPU 0 outside the queue, and others wait for it: told to end" in events(box, "outside_ended")[0]["text"]


def test_who_is_left_alone(place):
    """Root's own, excepted programs, and jobs of the queue; and one that has the same name elsewhere is not excepted."""
    other = place / "elsewhere" / "gpusim-task"
    other.parent.mkdir()
    other.parent.chmod(0o755)
    shutil.copy(TASK, other)
    with machine(place, "--queue.outside", "end", "--queue.outside-when", "always", "--queue.outside-warn-s", "0",
                 "--queue.outside-end-s", "1", "--queue.outside-except", f"nobody,{TASK}", gpus=4) as box, ExitStack() as stack:
        root, excepted, ada, bob = (stack.enter_context(Desk(u)) for u in (0, ADA, ADA, BOB))
        job = submit(box, "--gpu", "3", "--", other, "--gpu", "3", "--forever", "--dir", box.sim.dir, user=BOB)
        state(box, job, "running")
        processes = [use(box, root, 0, program=other), use(box, excepted, 1), use(box, ada, 2, program=other)]
        with ended(*processes):
            assert processes[2].wait(LONG) == -signal.SIGTERM
            wait_for(lambda: verdicts(box)[2] == "free", "its GPU is free", LONG)
            assert all(p.poll() is None for p in processes[:2]) and state(box, job, "running")
            assert root.text() == "" and bob.text() == "" and "uses GPU 2 outside the queue. It will" in ada.text()
            wait_for(lambda: events(box, "outside_ended"), "the last event", LONG)
            assert len(events(box, "outside_warned")) == 1
        gpumgr(box, "cancel", job)
        state(box, job, "cancelled")


def test_a_warning_is_taken_back_when_nobody_waits_any_more(place):
    with machine(place, "--queue.outside", "end", "--queue.outside-warn-s", "1") as box, Desk(ADA) as desk:
        p = use(box, desk, 1)
        with ended(p):
            first, second = (submit(box, "--gpu", "1", "--", "true", user=BOB) for _ in range(2))
            wait_for(lambda: gpu(box, 1)["outside"] == "warned", "it is warned", LONG)
            assert "will be ended" in wait_for(desk.text, "a word")
            gpumgr(box, "cancel", first)
            gpumgr(box, "cancel", second)
            wait_for(lambda: gpu(box, 1)["outside"] is None, "the warning is taken back", LONG)
            wait_for(lambda: "may go on using GPU 1" in desk.text(), "and he is told", LONG)
            assert p.poll() is None and gpu(box, 1)["ends"] is None
            assert len(wait_for(lambda: events(box, "outside_spared"), "an event", LONG)) == 1


def test_who_is_in_whose_way():
    """A GPU is wanted by a job that waits for it, or has it; not by one that waits for another, is held, or may have no more; and a
    client of watchmen that the queue let in is in nobody's way, nor is anybody who may be one, for a server that was started anew."""
    with Server(watchmen__listen="127.0.0.1:0", watchmen__token="none", jobs__user_gpus=2) as server:
        address = (server.dir / "run/server/watchmen").read_text().split("//")[1].strip()
        link, books = server.dir / "run/server/link.sock", Books()
        with JobNode(link, books) as node:
            wait_for(lambda: node.wanted == [], "it is told that nothing is wanted", LONG)
            assert Client(address, "alice@a", [0]).wait(LONG) == [0]
            node.free(0, IS_FOREIGN, "alice")
            node.free(1, IS_FOREIGN, "mallory")
            node.free(2, IS_FOREIGN, "mallory")
            wait_for(lambda: not json.loads(server.unix("GET", "/api/v1/queue").body)["gpus"][0]["held_by"], "the lease is over", LONG)
            first = node.submit(*(job_record(("hold",), scope=(str(g),)) for g in (0, 1)))["first"]
            wait_for(lambda: node.wanted == [node.uuids[1]], "one is wanted", LONG)
            node.control(CANCEL, first + 1)
            wait_for(lambda: node.wanted == [], "and is not any more", LONG)
            node.submit(job_record(("hold",), scope=("3",)))
            wait_for(lambda: node.books.grants, "one has GPU 3", LONG)
            node.free(3, IS_FOREIGN, "mallory")
            wait_for(lambda: node.wanted == [node.uuids[3]], "whoever has it wants it for himself", LONG)
            node.submit(job_record(("hold",), gpus=2, scope=("1", "2")))  # with that he would have three
            node.submit(job_record(("hold",), scope=("2",)))
            wait_for(lambda: node.wanted == [node.uuids[2], node.uuids[3]], "one more", LONG)
        server.stop(kill=True)
        server.start()
        with JobNode(link, books) as node:
            node.verdict = {u: (IS_FOREIGN, "mallory") for u in node.uuids}
            node.since = {u: 1 for u in node.uuids[:3]}
            node.free()
            wait_for(lambda: node.wanted == [node.uuids[3]], "just what came after the server's start", LONG)


def test_warned_only_and_shown_only(place):
    """The default does nothing to anybody; `warn` never ends."""
    with machine(place, "--queue.outside-warn-s", "0", "--queue.outside-end-s", "1") as box, Desk(ADA) as desk:
        p = use(box, desk, 0)
        with ended(p):
            submit(box, "--gpu", "0", "--", "true", user=BOB)
            began = queue(box)["time"]
            wait_for(lambda: queue(box)["time"] > began + 3, "time goes by", LONG)
            assert desk.text() == "" and gpu(box, 0)["outside"] is None and gpu(box, 0)["verdict"] == "foreign"
            assert not events(box, "outside_warned") and p.poll() is None

    with machine(place / "warn", "--queue.outside", "warn", "--queue.outside-warn-s", "0", "--queue.outside-end-s", "1") as box, \
            Desk(ADA) as desk:
        p = use(box, desk, 0)
        with ended(p):
            submit(box, "--gpu", "0", "--", "true", user=BOB)
            wait_for(lambda: gpu(box, 0)["outside"] == "warned", "it is warned", LONG)
            began = queue(box)["time"]
            wait_for(lambda: queue(box)["time"] > began + 4, "time goes by", LONG)
            text = desk.text()
            assert "and others wait for it" in text and "will be ended" not in text and text.count("\a") == 1
            assert p.poll() is None and gpu(box, 0)["ends"] is None and is_alive(p.pid)
