"""`gpumgr up`: sampler, node and server under one supervisor. Who dies comes back and takes nobody with him; what cannot
start is said once, before anything runs where that is possible."""

import json
import os
import pty
import signal
import socket
import stat
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from instance import GPUMGR, Instance, clean_env, followed, is_alive, kill
from simulator import Simulator, wait_for
from stopwatch import Stopwatch


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:2") as s:
        yield s


def url_of(i):
    def read():
        try:
            return (i.dir / "run/server/listen").read_text().split()[0]
        except (FileNotFoundError, IndexError):
            return None
    return wait_for(read, "the server listens")


def answers(i):
    try:
        return urllib.request.urlopen(url_of(i) + "/healthz", timeout=2).status == 200
    except OSError:
        return False


def serves(i, timeout=30):
    return wait_for(lambda: answers(i), "the server answers", timeout)


def server_of(i):
    return wait_for(lambda: i.of_program("server"), "a server runs")[0]


def refused(place, *flags, role="up"):
    """A start that must fail: one sentence, exit code 2, and nothing left."""
    run = subprocess.run([str(GPUMGR), role, "--dir", str(place), *map(str, flags)], capture_output=True, text=True, timeout=20,
                         env=clean_env())
    assert run.returncode == 2 and len(run.stderr.splitlines()) == 1, run
    assert not place.exists()
    return run.stderr


@pytest.fixture
def nowhere():
    place = Path(f"/dev/shm/gm-none-{os.getpid()}")
    yield place
    assert not place.exists()


# ---- together ----

def test_all_parts_come_up_and_are_found(sim):
    with Instance(sim, role="up") as i:
        i.ready(2)
        serves(i)
        assert len(i.samplers()) == len(i.of_program("node")) == len(i.of_program("server")) == 1
        assert url_of(i) in wait_for(lambda: i.said("dashboard"), "it says where to look")[0]["text"]


def test_a_start_while_the_server_before_still_ends(sim):
    """Its supervisor was killed, and somebody starts another one at once: it waits for the old one's last word, and does not give up."""
    with Instance(sim, role="up") as i:
        serves(i)
        old = server_of(i)
        os.kill(old, signal.SIGSTOP)  # one that takes long over its end
        kill(i.process.pid)
        i.process.wait(30)
        again = Instance(sim, role="up", path=i.dir)
        i.process = again.process
        wait_for(lambda: again.of_program("server"), "another server is there")
        assert not answers(again)  # nor does it take what the old one has not written yet
        wait_for(lambda: again.said("ready"), "the rest is up")
        os.kill(old, signal.SIGCONT)
        wait_for(lambda: not is_alive(old), "the old one has ended")
        serves(again)
        assert not again.said("child_refused"), again.log_path.read_text()


def test_a_terminal_is_told_where_to_look(tmp_path):
    with Instance(None, "--sim", "1", role="up") as quiet:  # a second one, to see that each says its own
        place = Path(f"/dev/shm/gm-tty-{os.getpid()}")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(str(GPUMGR), ["gpumgr", "up", "--sim", "1", "--dir", str(place)], clean_env())
        try:
            said = ""
            while "watching" not in said:
                said += os.read(terminal, 4096).decode(errors="replace")
            url = (place / "run/server/listen").read_text().split()[0]
            assert url in said and "dashboard" in said and url != url_of(quiet)
        finally:
            os.kill(pid, signal.SIGTERM)
            try:
                while os.read(terminal, 4096):
                    pass
            except OSError:
                pass
            os.waitpid(pid, 0)
            os.close(terminal)
            subprocess.run(["rm", "-rf", str(place)], check=True)


def test_a_server_alone_watches_nothing(nowhere):
    with Instance(None, role="server") as i:
        serves(i)
        assert not i.samplers() and not i.of_program("node") and len(i.children()) == 1
        assert not list((i.dir / "run").glob("ring.*"))
        i.process.terminate()
        assert i.process.wait(30) == 0


def test_a_node_alone_serves_nothing(sim):
    with Instance(sim, role="node") as i:
        i.ready(2)
        wait_for(lambda: len(i.of_program("node")) == 1, "a node")
        assert not i.of_program("server") and not (i.dir / "run/settings.server").exists()


def test_the_stop_ends_the_server_before_the_sampler(sim):
    with Instance(sim, role="up") as i:
        i.ready(2)
        serves(i)
        pids = i.children()
        watch = Stopwatch()
        i.process.terminate()
        assert i.process.wait(30) == 0 and watch.seconds < 5
        assert not any(map(is_alive, pids))
        said = [(line["process"], line["event"]) for line in i.log()]
        assert said.index(("server", "stopped")) < said.index(("sampler", "stop")) and said[-1] == ("supervisor", "stopped")


# ---- whoever dies ----

@pytest.mark.alone
@pytest.mark.parametrize("part", ["node", "server"])
def test_a_part_that_is_killed_comes_back_and_the_sampler_does_not_notice(sim, part):
    with Instance(sim, "--wait-ms", "100", role="up") as i:
        i.ready(2)
        serves(i)
        sampler, reader = i.sampler(), i.follow(4)
        for _ in range(3):
            pid = wait_for(lambda: i.of_program(part), f"a {part}")[0]
            kill(pid)
            wait_for(lambda: (now := i.of_program(part)) and now != [pid], "another one")
            serves(i)
        seen = [s["boot"] for s in followed(reader) if s.get("device") == 0 and "gpu_temperature_celsius" in s["metrics"]]
        assert max(b - a for a, b in zip(seen, seen[1:])) < 0.6
        assert i.sampler() == sampler and len(i.said("child_ended")) == 3


def test_a_hung_server_is_replaced(sim):
    with Instance(sim, "--wait-ms", "100", role="up") as i:
        i.ready(2)
        serves(i)
        sampler, server, node = i.sampler(), server_of(i), i.of_program("node")
        kill(server, signal.SIGSTOP)
        wait_for(lambda: i.said("child_hung"), "its heart is missed")
        wait_for(lambda: (now := i.of_program("server")) and now != [server], "another one")
        serves(i)
        assert i.sampler() == sampler and i.of_program("node") == node


def test_a_supervisor_that_is_killed_leaves_no_server(sim):
    with Instance(sim, role="up") as i:
        i.ready(2)
        serves(i)
        pids = i.children()
        kill(i.process.pid)
        wait_for(lambda: not any(map(is_alive, pids)), "nobody is left behind")


def test_only_the_guard_goes_before_others(sim):
    """A service that is high in the scheduler's list, and low in that of the out-of-memory killer, means the guard."""
    path = Path("/proc/self/oom_score_adj")
    before, nice = int(path.read_text()), os.getpriority(os.PRIO_PROCESS, 0)
    asked = []
    try:
        for ask in (lambda: path.write_text("-500"), lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)):
            try:
                asked.append(ask())
            except PermissionError:
                pass  # not this root's to ask
        if not asked:
            pytest.skip("only root may go before others")
        ours = (int(path.read_text()), os.getpriority(os.PRIO_PROCESS, 0))
        with Instance(sim, role="up") as i:
            i.ready(2)
            serves(i)
            of = lambda pid: (int(Path(f"/proc/{pid}/oom_score_adj").read_text()), os.getpriority(os.PRIO_PROCESS, pid))
            assert of(i.sampler()) == ours
            assert of(server_of(i)) == of(i.of_program("node")[0]) == (max(ours[0], 0), max(ours[1], 0))
    finally:
        path.write_text(str(before))
        os.setpriority(os.PRIO_PROCESS, 0, nice)


# ---- what cannot start ----

def test_a_port_that_is_taken_is_said_at_once(nowhere):
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
        sentence = refused(nowhere, "--sim", 1, "--listen", f"127.0.0.1:{port}")
        assert f"127.0.0.1:{port}" in sentence and "another program listens there" in sentence
        assert "another program" in refused(nowhere, "--listen", f"127.0.0.1:{port}", role="server")


@pytest.mark.parametrize("flags,says", [
    (("--listen", "127.0.0.1:80"), "not root"),
    (("--listen", "192.0.2.77:7001", "--listen_plain", "true"), "192.0.2.77"),
    (("--tls.cert", "/nonexistent.pem", "--tls.key", "/nonexistent.key"), "tls.cert"),
    (("--tls.cert", "/etc/passwd", "--tls.key", "/etc/passwd"), "PEM"),
])
def test_what_would_keep_the_server_from_starting_is_said_at_once(nowhere, flags, says):
    if says == "not root" and os.geteuid() != 0:
        says = "denied"
    assert says in refused(nowhere, "--sim", 1, *flags)


def test_a_place_where_the_servers_user_cannot_go_is_refused():
    if os.geteuid() != 0:
        pytest.skip("only root's server becomes somebody else")
    closed = Path(f"/dev/shm/gm-closed-{os.getpid()}")
    closed.mkdir(mode=0o700)
    try:
        assert str(closed) in refused(closed / "i", "--sim", 1)
        run = subprocess.run([str(GPUMGR), "config", "--dir", str(closed / "i")], env=clean_env(), capture_output=True)
        assert run.returncode == 0
    finally:
        closed.rmdir()


def test_settings_that_the_server_refuses_are_said_once(sim):
    """A reload breaks it: it says why, is not tried again and again, all else goes on; mended and reloaded it is back."""
    path = sim.dir / "gpumgr.json"
    path.write_text("{}")
    with Instance(sim, "--config", path, role="up") as i:
        i.ready(2)
        serves(i)
        sampler = i.sampler()
        bad = i.dir / "bad.pem"
        bad.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        path.write_text(json.dumps({"tls": {"cert": str(bad), "key": str(bad)}}))
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: i.said("child_refused"), "it gives up")
        patience = time.monotonic() + 3
        wait_for(lambda: time.monotonic() > patience, "a while")
        assert not i.of_program("server") and len(i.said("child_refused")) == 1
        assert [line["text"] for line in i.log() if line["process"] == "server" and line["level"] == "error"]
        path.write_text("{}")
        i.process.send_signal(signal.SIGHUP)
        serves(i)
        assert i.sampler() == sampler


def test_a_port_that_is_stolen_is_waited_for(sim):
    """Somebody took the address while the server was down: tried again with growing pauses, and it comes back."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    with Instance(sim, "--listen", f"127.0.0.1:{port}", role="up") as i:
        i.ready(2)
        serves(i)
        kill(i.process.pid, signal.SIGSTOP)  # nobody starts another one before the thief is there
        kill(server_of(i))
        thief = socket.socket()
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def is_taken():
            try:
                thief.bind(("127.0.0.1", port))
                thief.listen()
                return True
            except OSError:
                return False
        wait_for(is_taken, "the address is free, and taken")
        kill(i.process.pid, signal.SIGCONT)
        try:
            wait_for(lambda: len(i.said("child_ended")) >= 3, "it tries")
            assert len(i.said("child_ended")) < 8
            assert i.gpu(0)["state"] == "ok"
        finally:
            thief.close()
        serves(i, 20)


# ---- settings ----

def test_keys_of_others_are_for_the_server_alone(sim):
    """run/settings is for everybody; where messages go is not."""
    path = sim.dir / "gpumgr.json"
    secret = "http://127.0.0.1:9/services/T000/B000/SECRET"
    path.write_text(json.dumps({"tell": {"webhook": secret}}))
    with Instance(sim, "--config", path, role="up") as i:
        i.ready(2)
        serves(i)
        assert "SECRET" not in (i.dir / "run/settings").read_text()
        private = i.dir / "run/settings.server"
        assert secret in private.read_text() and stat.S_IMODE(private.stat().st_mode) == 0o600
        path.write_text(json.dumps({"tell": {"webhook": secret + "2"}}))
        server = server_of(i)
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: secret + "2" in private.read_text(), "the new one")
        if os.geteuid() == 0:
            wait_for(lambda: private.stat().st_uid == (i.dir / "server").stat().st_uid, "it can be read by the server")
        patience = time.monotonic() + 1
        wait_for(lambda: time.monotonic() > patience, "a while")
        assert server_of(i) == server and not [x for x in i.log() if x["event"] == "reload" and x["level"] == "error"]
        assert "SECRET" not in (i.dir / "run/settings").read_text()


def test_a_changed_address_moves_the_server(sim):
    path = sim.dir / "gpumgr.json"
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as s:
        first = s.getsockname()[1]
    path.write_text(json.dumps({"listen": f"127.0.0.1:{first}"}))
    with Instance(sim, "--config", path, role="up", env={"GPUMGR_LISTEN": None}) as i:
        i.ready(2)
        serves(i)
        assert str(first) in url_of(i)
        sampler = i.sampler()
        path.write_text(json.dumps({"listen": f"127.0.0.1:{port}"}))
        i.process.send_signal(signal.SIGHUP)
        wait_for(lambda: str(port) in url_of(i), "it moved")
        serves(i)
        assert i.sampler() == sampler
