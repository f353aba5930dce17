"""Container engines that hang, rave and lie: nobody waits for them, memory and time are bounded, and an honest engine beside them
is heard at once."""

import json
import os
import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path

import pytest

from engine_follow import Follow, Sampler
from instance import Instance
from job_box import ADA, api, gpumgr, queue, state, submit, verdicts
from simulator import Simulator, wait_for
from stopwatch import Stopwatch
from ui_view import View

ONE, TWO = "1" * 64, "2" * 64
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
NOT_FOUND = b'HTTP/1.1 404 Not Found\r\nContent-Length: 18\r\n\r\n{"message":"none"}'


def event(action, identity, **attributes):
    return json.dumps({"Type": "container", "Action": action, "Actor": {"ID": identity, "Attributes": attributes}}).encode() + b"\n"


def whole(body):
    return OK + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunk(body):
    return b"%x\r\n" % len(body) + body + b"\r\n"


def description(identity, name="one", **labels):
    return json.dumps({"Id": identity, "Name": "/" + name, "Created": "2026-11-15T08:00:00Z", "State": {"Status": "running", "Pid": 7},
                       "Config": {"Image": "i:1", "Labels": labels}, "HostConfig": {}}).encode()


class Engine:
    """Answers as an engine does; a test gives it other answers. `say` sends an event to everybody who listens."""

    def __init__(self, path, events=None, rows=None, describe=None, ping=None):
        self.path, self.listeners, self.asked, self.known = path, [], [], {}
        self.answers = {"events": events, "list": rows, "describe": describe, "ping": ping}
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(32)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(one,), daemon=True).start()

    def serve(self, one):
        try:
            text = b""
            while True:
                while b"\r\n\r\n" not in text:
                    more = one.recv(65536)
                    if not more:
                        return
                    text += more
                head, text = text.split(b"\r\n\r\n", 1)
                self.answer(one, head.split(b" ")[1].decode())
        except OSError:
            pass

    def answer(self, one, target):
        what = "events" if target.startswith("/events") else "list" if target == "/containers/json" else "ping" if target == "/_ping" else "describe"
        self.asked.append(what)
        other = self.answers[what]
        if other:
            other(one)
        elif what == "events":
            one.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n")
            self.listeners.append(one)
        elif what == "list":
            one.sendall(whole(b"[]"))
        elif what == "ping":
            one.sendall(whole(b"OK"))
        else:
            identity = target.split("/")[2]
            one.sendall(whole(description(identity, **self.known.get(identity, {}))))

    def say(self, body):
        for line in body.splitlines():
            actor = json.loads(line)["Actor"]
            self.known[actor["ID"]] = actor["Attributes"]
        for one in list(self.listeners):
            try:
                one.sendall(chunk(body))
            except OSError:
                self.listeners.remove(one)

    def close(self):
        self.listener.close()
        for one in self.listeners:
            one.close()


def for_ever(piece, first=b""):
    """Sends for as long as somebody reads."""
    def send(one):
        one.sendall(first)
        while True:
            one.sendall(piece)
    return send


def slowly(one):
    for byte in whole(b"[" + b" " * 2000 + b"]"):
        one.sendall(bytes([byte]))
        time.sleep(0.05)


def silence(one):
    time.sleep(60)


def gone(one):
    one.shutdown(socket.SHUT_RDWR)
    raise OSError


def once(text):
    return lambda one: one.sendall(text)


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
NESTED = b"[" * 500000
LIES = {
    "garbage": dict(events=for_ever(os.urandom(4096))),
    "no_http": dict(events=once(b"SSH-2.0-OpenSSH_9.2\r\n")),
    "endless_head": dict(events=for_ever(b"X-More: " + b"a" * 1000 + b"\r\n", b"HTTP/1.1 200 OK\r\n")),
    "endless_chunk": dict(events=for_ever(b"a" * 65536, CHUNKED + b"7fffffff\r\n")),
    "endless_line": dict(events=for_ever(chunk(b"a" * 60000), CHUNKED)),
    "endless_events": dict(events=for_ever(chunk(b"".join(event("start", f"{i:064x}", name="n" * 60) for i in range(200))), CHUNKED)),
    "ever_new_ids": dict(events=lambda one: [one.sendall(CHUNKED)] + [one.sendall(chunk(event("start", f"{i:064x}", name="x"))) for i in range(200000)]),
    "bad_events": dict(events=for_ever(chunk(b'{"Type":"container","Action":{},"Actor":7}\n'), CHUNKED)),
    "half_an_event": dict(events=lambda one: (one.sendall(CHUNKED + chunk(event("start", TWO)[:40])), gone(one))),
    "refuses_events": dict(events=once(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")),
    "two_lengths": dict(rows=once(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n[]]")),
    "list_of_anything": dict(rows=once(whole(b'[7,null,{"Id":7},{"Id":"x"},{"Id":[]},[[]],{"Id":"' + TWO.encode() + b'","Names":7,"Labels":[1],"State":{}}]'))),
    "endless_list": dict(rows=for_ever(b'{"Id":"' + TWO.encode() + b'"},' * 500, b"HTTP/1.0 200 OK\r\n\r\n[")),
    "huge_list": dict(rows=once(OK + b"Content-Length: 99999999999\r\n\r\n")),
    "nested_list": dict(rows=once(whole(NESTED))),
    "slow_list": dict(rows=slowly),
    "no_list": dict(rows=silence),
    "no_ping": dict(ping=silence),
    "nothing_at_all": dict(events=silence),
    "hangs_up": dict(events=gone),
    "list_hangs_up": dict(rows=gone),
    "another_one": dict(describe=once(whole(description("3" * 64)))),
    "more_than_asked": dict(describe=once(whole(description(ONE)) + b"HTTP/1.1 200 OK\r\n\r\n")),
}


@pytest.fixture
def spot():
    path = Path(tempfile.mkdtemp(prefix="el.", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


# The one that makes two hundred thousand events needs a core for itself.
@pytest.mark.parametrize("lie", [pytest.param(lie, marks=pytest.mark.alone) if lie == "ever_new_ids" else lie for lie in LIES])
def test_a_lying_engine_harms_nobody(spot, lie):
    liar, honest = Engine(spot / "liar", **LIES[lie]), Engine(spot / "honest")
    with Follow(f"{spot}/liar,{spot}/honest", "", spot) as follow:
        wait_for(lambda: honest.listeners, "the honest one is listened to")
        liar.say(event("start", ONE, name="lied"))
        wait_for(lambda: "events" in liar.asked, "the liar is asked")
        time.sleep(1.5)  # what it does to us takes its time
        worst = 0
        for i in range(5):
            watch, said = Stopwatch(), time.time()
            identity = f"{i + 10:064x}".replace("0", "e")
            honest.say(event("start", identity, name=f"good{i}", **{"gpumgr.deadline": "30s"}))
            heard = follow.wait(identity, news="started", name=f"good{i}", deadline_ms=30000)
            worst = max(worst, heard["at"] - said - watch.starved)
            assert follow.answers_at_once("f" * 63 + str(i))
        assert worst < 0.5, f"an event of the honest engine came {worst:.3f} s late"
        assert follow.memory() < 24e6, follow.memory()
        before, at = follow.cpu(), time.monotonic()
        time.sleep(1)
        share = (follow.cpu() - before) / (time.monotonic() - at)
        assert share < 0.5, f"{share:.0%} of a core for a lying engine"
        assert follow.ends_at_once()
    liar.close()
    honest.close()


def test_what_it_said_before_stays(spot):
    engine = Engine(spot / "engine")
    with Follow(spot / "engine", "", spot) as follow:
        wait_for(lambda: engine.listeners, "it is listened to")
        engine.say(event("start", ONE, name="one", **{"gpumgr.deadline": "soon", "gpumgr.tenant": "a\x1b[2Jb"}))
        heard = follow.wait(ONE, news="started")
        assert heard["deadline_ms"] == 0 and heard["tenant"] == "a?[2Jb"
        assert heard["bad_label"].startswith('label gpumgr.deadline: "soon" is not a length of time')
        engine.close()
        os.unlink(spot / "engine")
        time.sleep(1)
        assert follow.ask(ONE)["name"] == "one"


@pytest.mark.parametrize("state", ["exited", "running"])
def test_a_list_that_lags_behind_the_events(spot, state):
    """Docker says that one ended, and lists it as running for a moment: how it is described counts. It may run again, too."""
    row = json.dumps([{"Id": ONE, "Names": ["/one"], "Image": "i:1", "Labels": {}, "State": "running", "Created": 1794700000}]).encode()
    described = json.loads(description(ONE))
    described["State"] = {"Status": state, "Pid": 7 if state == "running" else 0}
    engine = Engine(spot / "engine", rows=once(whole(row)))
    with Follow(spot / "engine", "", spot) as follow:
        follow.wait(ONE, state="running", pid=7)
        engine.say(event("die", ONE, name="one"))
        follow.wait(ONE, news="ended", state="exited")
        engine.answers["describe"] = once(whole(json.dumps(described).encode()))
        before, heard = len(engine.asked), len(follow.news)
        for one in engine.listeners:
            one.shutdown(socket.SHUT_RDWR)
        engine.listeners.clear()
        wait_for(lambda: "describe" in engine.asked[before:], "it is asked of")
        assert "list" in engine.asked[before:engine.asked.index("describe", before)]
        wait_for(lambda: follow.ask(ONE)["state"] == state, state)
        assert state == "running" or all(n["state"] == "exited" for n in follow.news[heard:]), follow.news[heard:]
    engine.close()


def test_an_engine_that_does_not_answer_raises_the_base_rate(spot):
    """Told once when it falls silent, told again for samplers that were restarted, taken back when it is well."""
    sampler, hangs = Sampler(spot), threading.Event()
    def ping(one):
        if hangs.is_set():
            time.sleep(30)
        one.sendall(whole(b"OK"))
    engine = Engine(spot / "engine", ping=ping)
    with Follow(spot / "engine", "", spot) as follow:
        wait_for(lambda: engine.listeners, "it is listened to")
        wait_for(lambda: sampler.base() == 0, "nothing of its own to do")
        hangs.set()
        wait_for(lambda: sampler.base() == 40, "looks of its own")
        wait_for(lambda: len([h for h in sampler.hunts if h[2] == 40]) >= 2, "told again")
        hangs.clear()
        wait_for(lambda: sampler.base() == 0, "well again")
        since = time.time()
        engine.say(event("start", ONE, name="one"))
        follow.wait(ONE, news="started")
        wait_for(lambda: sampler.announced(since), "the sampler expects somebody")
    engine.close()


def test_a_listener_that_accepts_nobody(spot):
    """Stopped for good: its queue is full, and connect says so at once."""
    sampler = Sampler(spot)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(spot / "full"))
    listener.listen(0)
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    filler.connect(str(spot / "full"))
    with Follow(spot / "full", "", spot) as follow:
        wait_for(lambda: sampler.base() == 40, "looks of its own")
        assert follow.answers_at_once(ONE)
        assert follow.ends_at_once()


def test_no_engine_is_no_trouble(spot):
    sampler = Sampler(spot)
    with Follow(spot / "none", spot / "u*" / "podman.sock", spot) as follow:
        wait_for(lambda: sampler.base() == 0, "nothing of its own to do")
        before = follow.cpu()
        time.sleep(2)
        assert follow.cpu() - before < 0.1 and sampler.base() == 0
        engine = Engine(spot / "none")
        (spot / "u7").mkdir()
        podman = Engine(spot / "u7" / "podman.sock")
        wait_for(lambda: engine.listeners, "an engine that comes later is found")
        wait_for(lambda: podman.listeners, "and one that a pattern finds")
        podman.say(event("start", ONE, name="rootless"))
        assert follow.wait(ONE, news="started")["engine"] == "podman"
        follow.end()


def test_another_users_engine_is_not_believed_about_others(spot):
    """Whoever listens on a socket is asked of the kernel: what root's engine said of a container stands."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    spot.chmod(0o777)
    good = Engine(spot / "good")
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        bad = Engine(spot / "bad")
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        wait_for(lambda: bad.listeners, "it is listened to")
        bad.say(event("rename", ONE, name="stolen", **{"gpumgr.deadline": "1ms"}) + event("start", TWO, name="mine"))
        os.read(go[0], 1)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        with Follow(spot / "good", spot / "bad", spot) as follow:
            wait_for(lambda: good.listeners, "it is listened to")
            good.say(event("start", ONE, name="one", **{"gpumgr.deadline": "30s"}))
            follow.wait(ONE, news="started")
            os.write(go[1], b"x")
            assert follow.wait(TWO, news="started")["uid"] == 65534
            known = follow.ask(ONE)
            assert known["name"] == "one" and known["deadline_ms"] == 30000 and known["uid"] == 0
    finally:
        os.write(go[1], b"x")
        os.waitpid(child, 0)
        good.close()


class Liar:
    """An engine of another user, in a process of his; says what it is told to."""

    def __init__(self, path, describe=lambda: None):
        ready, self.words = os.pipe(), os.pipe()
        self.child = os.fork()
        if self.child == 0:
            os.close(self.words[1])  # else its end would never be heard
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            engine = Engine(path, describe=describe())
            os.write(ready[1], b"x")
            for line in os.fdopen(self.words[0], "rb"):
                wait_for(lambda: engine.listeners, "it is listened to", 120)
                engine.say(line)
            os._exit(0)
        os.read(ready[0], 1)

    def say(self, line):
        os.write(self.words[1], line)

    def end(self):
        os.close(self.words[1])
        os.waitpid(self.child, 0)


def stolen_page(port):
    """What another user listens with, and his engine's word that it is whatever container is asked for."""
    listener = socket.create_server(("127.0.0.1", port))

    def serve():
        while True:
            one, _ = listener.accept()
            one.recv(65536)
            one.sendall(whole(b"stolen"))
            one.close()
    threading.Thread(target=serve, daemon=True).start()
    said = json.dumps({"Id": TWO, "Name": "/x", "Created": "2026-11-15T08:00:00Z", "State": {"Status": "running", "Pid": os.getpid()},
                       "Config": {"Image": "i:1", "Labels": {}}, "HostConfig": {}}).encode()
    return lambda one: one.sendall(whole(said))


class Pulling(Engine):
    """Has no image and no container, and a pull takes its time."""

    def answer(self, one, target):
        if target.startswith("/images/create"):
            self.asked.append("pull")
            silence(one)
        elif target.startswith("/containers/") and not target.startswith("/containers/json"):
            one.sendall(NOT_FOUND)
        else:
            super().answer(one, target)


def test_another_users_engine_does_not_say_where_a_ui_is(spot, tmp_path):
    """Of a job whose image is still being pulled root's engine knows no container. Somebody else's says that it has it."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    spot.chmod(0o777)
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    good = Pulling(spot / "good")
    bad = Liar(spot / "bad", lambda: stolen_page(port))
    try:
        with Simulator(tmp_path / "sim", "--model", "h200:1") as sim:
            with Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", f"{spot}/good,{spot}/b*d", "--engines.podman", "", role="up") as box:
                box.sim = sim
                box.ready(1)
                wait_for(lambda: verdicts(box) == ["free"], "the GPU is free", 60)
                number = submit(box, "--image", "i:1", "--ui", port, user=ADA)
                state(box, number, "running")
                wait_for(lambda: "pull" in good.asked, "its image is asked for", 60)
                answer = View(box, number, user=ADA).ask("GET", "/")
                assert answer.status == 503 and b"stolen" not in answer.text and b"does not listen" in answer.text
                assert gpumgr(box, "cancel", number).returncode == 0
                state(box, number, "cancelled")
    finally:
        bad.end()
        good.close()


@pytest.fixture
def beside_a_liar(spot, tmp_path):
    """A machine with two GPUs, root's engine and another user's."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    spot.chmod(0o777)
    good, bad = Engine(spot / "good"), Liar(spot / "bad")
    try:
        with Simulator(tmp_path / "sim", "--model", "h200:2") as sim:
            with Instance(sim, "--gpu-devices", sim.dir / "dev", "--engines.docker", spot / "good", "--engines.podman", spot / "bad", role="up") as box:
                box.sim, box.good, box.bad = sim, good, bad
                box.ready(2)
                wait_for(lambda: verdicts(box) == ["free", "free"], "both GPUs are free", 60)
                wait_for(lambda: good.listeners, "root's engine is listened to", 60)
                yield box
    finally:
        bad.end()
        good.close()


def test_another_users_engine_gives_nobody_gpus(beside_a_liar):
    """The label of those that were given GPUs is gpumgr's own, and only root's engine has containers of gpumgr."""
    box = beside_a_liar
    uuids = [g["uuid"] for g in queue(box)["gpus"]]
    box.bad.say(event("start", TWO, name="mine", **{"gpumgr.gpus": uuids[0], "gpumgr.uid": "61001", "gpumgr.deadline": "30s"}))
    wait_for(lambda: "mine" in [c["name"] for c in api(box, "containers")[1]["containers"]], "it is known", 60)
    box.good.say(event("start", ONE, name="held", **{"gpumgr.gpus": uuids[1], "gpumgr.uid": "61001"}))
    wait_for(lambda: verdicts(box)[1] == "foreign", "root's engine is believed", 60)
    assert verdicts(box) == ["free", "foreign"]


@pytest.mark.skipif(not os.access("/sys/fs/cgroup/unified/cgroup.procs", os.W_OK) and not os.access("/sys/fs/cgroup/cgroup.procs", os.W_OK), reason="needs a cgroup of its own")
def test_another_users_container_is_no_jobs(beside_a_liar):
    """It has the very name of a job's container: what works in it is the job's neither in the queue nor in its figures."""
    box = beside_a_liar
    number = submit(box, "--", "sleep", "1000", user=ADA)
    job = state(box, number, "running")
    environment = Path(f"/proc/{job['pid']}/environ").read_bytes().split(b"\0")
    run, mark = next(v for v in environment if v.startswith(b"GPUMGR_RUN=")).decode()[11:].split("-")
    name, identity = f"gpumgr-{run}-{mark[:8]}", os.urandom(32).hex()
    box.bad.say(event("start", identity, name=name, **{"gpumgr.deadline": "30s"}))
    top = next(p for p in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")) if (p / "cgroup.procs").exists())
    group = top / f"libpod-{identity}.scope"
    group.mkdir()
    other = next(i for i in (0, 1) if i not in job["gpu_indices"])
    try:
        task = box.sim.task("--gpu", other, "--forever", preexec_fn=lambda: (group / "cgroup.procs").write_text("0"))
        try:
            seen = wait_for(lambda: next((t for t in api(box, "tasks")[1]["tasks"] if t["pid"] == task.pid and t["container"]), None), "its task has a name", 60)
            assert seen["container"] == identity[:12]
            wait_for(lambda: verdicts(box)[other] == "foreign", "it is outside the queue", 60)
            assert "was not given" not in json.dumps(queue(box)["gpus"][other])
        finally:
            task.kill()
            task.wait()
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text(), "nobody is in it", 60)
        group.rmdir()


def test_the_node_goes_on_beside_a_hung_engine(spot):
    engine = Engine(spot / "engine", events=silence, ping=silence)
    with Instance(None, "--sim", "1", "--engines.docker", spot / "engine", "--engines.podman", "", role="up") as instance:
        wait_for(lambda: "events" in engine.asked, "the node asks")
        node = wait_for(lambda: instance.of_program("node"), "a node")[0]
        time.sleep(4)
        assert instance.of_program("node") == [node], "the node was taken for hung"
    engine.close()
