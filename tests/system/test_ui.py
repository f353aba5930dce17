"""A job's own UI through the server: a real HTTP and WebSocket server as a job, opened by its owner, by others, and by those who should not."""

import asyncio
import contextlib
import hashlib
import http.client
import json
import os
import socket
import ssl
from pathlib import Path

import pytest
import websockets

from instance import Instance, kill
from job_box import ADA, BOB, NO_ENGINES, box, gpumgr, idle, job, spawn, state, submit, verdicts
from server import certificate
from simulator import Simulator, wait_for
from ui_view import View, run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="jobs of several users need root")
# A copy that everybody may read: the checkout may be somebody's own.
APP_SOURCE = Path(__file__).with_name("ui_app.py")


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    place = tmp_path_factory.mktemp("app")
    for p in (place, place.parent, place.parent.parent):
        p.chmod(0o755)
    copy = place / "ui_app.py"
    copy.write_text(APP_SOURCE.read_text())
    copy.chmod(0o644)
    return copy


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(box, app, *flags, user=None, ui="auto", port="$GPUMGR_UI_PORT", before=""):
    number = submit(box, "--ui", ui, *flags, "--", "sh", "-c", f"{before}exec /usr/bin/python3 {app} {port}", user=user)
    runs(box, number)
    return number


def runs(box, number):
    """Patient: on a busy machine it takes a while until the GPU of the job before is measured free."""
    seen = {}

    def is_running():
        seen.update(job(box, number))
        assert seen["state"] not in ("failed", "cancelled", "done"), seen
        return seen["state"] == "running"
    try:
        wait_for(is_running, f"job {number} runs", 120)
    except AssertionError:
        raise AssertionError(f"job {number} does not run: {seen}") from None


def up(box, number):
    wait_for(lambda: "up" in gpumgr(box, "logs", number).stdout, f"job {number} listens", 120)


@pytest.fixture
def view(box, app):
    number = start(box, app, user=ADA)
    up(box, number)
    v = View(box, number, user=ADA)
    v.number = number
    return v


# ---- requests ----

def test_what_a_request_looks_like_to_the_job(view):
    assert view.entered.status == 303 and view.entered.getheader("Location") == "/"
    got = view.fields("/say?a=b%2Fc", X_Own="kept", X_Forwarded_For="9.9.9.9", Connection="keep-alive, X-Hop", X_Hop="no",
                      Referer=view.origin + "/page", Accept_Encoding="gzip")
    assert got["host"].startswith("localhost") and got["x-own"] == "kept" and "x-hop" not in got
    assert got["x-forwarded-for"] == "127.0.0.1" and got["x-forwarded-host"] == view.host and got["x-forwarded-proto"] == "http"
    assert "cookie" not in got and got["referer"] == f"http://{got['host']}/page"
    said = json.loads(view.ask("PATCH", "/say?x=%2F../..", b"body").text)
    assert said["method"] == "PATCH" and said["target"] == "/say?x=%2F../.."  # as it was sent


def test_answers_of_every_kind_on_one_connection(view):
    c = view.connect()
    for _ in range(2):
        assert view.ask("GET", "/chunks", connection=c).text == b"one two three"
        head = view.ask("HEAD", "/say", connection=c)
        assert head.status == 200 and head.text == b""
        assert view.ask("GET", "/nothing", connection=c).status == 204
        assert view.ask("GET", "/same", connection=c).status == 304
        assert view.ask("GET", "/none", connection=c).status == 404
        assert view.ask("POST", "/say", b"x" * 1000, connection=c).status == 200
    answer = view.ask("GET", "/until-close", connection=c)
    assert answer.text == b"all of it\n" * 1000 and answer.getheader("Connection") == "close"
    c.close()
    answer = view.ask("GET", "/moved")
    assert answer.status == 302 and answer.getheader("Location") == "/say?moved"


def test_an_answer_is_safe_beside_others(view):
    answer = view.ask("GET", "/say")
    assert "frame-ancestors 'self'" in answer.getheader("Content-Security-Policy")
    assert answer.getheader("Cross-Origin-Resource-Policy") == "same-origin" and answer.getheader("Cache-Control") == "no-store"
    assert view.ask("GET", "/say", Service_Worker="script").status == 403


def test_uploads_are_passed_on_as_they_come(view):
    data = os.urandom(1 << 20) * 20
    want = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert json.loads(view.ask("POST", "/upload", data).text) == want
    pieces = (data[i:i + 100003] for i in range(0, len(data), 100003))
    answer = view.ask("POST", "/upload", pieces)  # chunked
    assert json.loads(answer.text) == want


def test_an_upload_that_asks_first(view):
    with socket.create_connection(view.host.split(":"), timeout=30) as s:
        s.sendall(f"POST /upload HTTP/1.1\r\nHost: {view.host}\r\nCookie: {view.cookie}\r\nContent-Length: 5\r\n"
                  "Expect: 100-continue\r\n\r\n".encode())
        assert s.recv(100).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        s.sendall(b"hello")
        got = b""
        while b"sha256" not in got:
            got += s.recv(4096)
        assert got.startswith(b"HTTP/1.1 200") and b'"bytes": 5' in got


def test_what_two_programs_could_read_in_two_ways_is_refused(view):
    for lines in ("Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding: gzip"):
        with socket.create_connection(view.host.split(":"), timeout=30) as s:
            s.sendall(f"POST /say HTTP/1.1\r\nHost: {view.host}\r\nCookie: {view.cookie}\r\n{lines}\r\n\r\nhello".encode())
            assert s.recv(4096).split(b" ")[1] in (b"400", b"501")


def memory_kib(pid):
    return int(next(line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:")))


def test_large_answers_and_slow_readers_take_little_memory(box, view):
    """200 MB with a reader that keeps up; then several that read nothing for a while."""
    server, node = box.of_program("server")[0], box.of_program("node")[0]
    before = memory_kib(server) + memory_kib(node)
    n = 200_000_000
    c = view.connect()
    c.request("GET", f"/large?{n}", headers={"Cookie": view.cookie})
    answer, got, most = c.getresponse(), 0, 0
    while piece := answer.read(1 << 20):
        got += len(piece)
        if got % (32 << 20) < 1 << 20:
            most = max(most, memory_kib(server) + memory_kib(node))
    c.close()
    assert got == n and most - before < 24 * 1024, (before, most)
    lazy = [view.connect() for _ in range(8)]
    for c in lazy:
        c.request("GET", f"/large?{n}", headers={"Cookie": view.cookie})
    heads = [c.getresponse() for c in lazy]
    assert view.ask("GET", "/say").status == 200  # nobody waits for them
    assert all(h.read(1 << 20) for h in heads)
    assert memory_kib(server) + memory_kib(node) - before < 48 * 1024
    for c in lazy:
        c.close()


# ---- WebSockets ----

def test_websockets_both_ways(view):
    async def talk():
        async with view.socket() as s:
            await s.send("hello")
            assert await s.recv() == "you said: hello"
            await s.send(b"\x00\xff" * 1000)
            assert await s.recv() == b"\x00\xff" * 1000
            await s.send("large 30000000")
            assert len(await s.recv()) == 30_000_000
            await s.send(b"y" * 5_000_000)
            assert len(await s.recv()) == 5_000_000
            pong = await s.ping()
            await asyncio.wait_for(pong, 30)
            await s.send("close")
            with pytest.raises(websockets.ConnectionClosed) as end:
                await s.recv()
            assert end.value.rcvd.code == 4000 and end.value.rcvd.reason == "as you wish"
        many = await asyncio.gather(*(view.socket() for _ in range(20)))
        for i, s in enumerate(many):
            await s.send(f"number {i}")
        assert [await s.recv() for s in many] == [f"you said: number {i}" for i in range(20)]
        await asyncio.gather(*(s.close() for s in many))
    run(talk())


def refused(view, **how):
    async def talk():
        async with view.socket(**how):
            pass
    with pytest.raises(websockets.InvalidStatusCode) as e:
        run(talk())
    return e.value.status_code


# ---- who may ----

def test_a_ticket_works_once_and_for_this_ui_alone(box, view):
    again = View(box, view.number, user=ADA, enter=False)
    assert again.host == view.host and again.enter().status == 303
    assert again.enter().status == 403 and b"used already" in again.entered.text
    assert view.ask("GET", "/say", Cookie="").status == 403
    assert view.ask("GET", "/say", Cookie=view.cookie[:-3] + "xyz").status == 403
    assert view.ask("GET", "/.gpumgr/enter?ticket=" + "A" * 43).status == 403


def test_others_may_not(box, view):
    got = gpumgr(box, "open", view.number, user=BOB)
    assert got.returncode != 0 and f"job {view.number} is not yours" in got.stderr and "http" not in got.stdout
    root = View(box, view.number)  # an administrator
    assert root.ask("GET", "/say").status == 200


def test_a_ui_is_open_to_nobody_else(box, app, view):
    """Two UIs of two users: the cookie of one opens nothing of the other, and neither sees the other's."""
    number = start(box, app, user=BOB)
    up(box, number)
    other = View(box, number, user=BOB)
    assert other.host != view.host
    assert other.ask("GET", "/say", Cookie=view.cookie).status == 403
    set_by_it = view.ask("GET", "/cookies").headers.get_all("Set-Cookie")
    names = [c.split("=")[0] for c in set_by_it]
    assert len(names) == 2 and names[1] == "open" and names[0].startswith("gpumgr_") and names[0].endswith("_hidden")
    assert not any("Domain" in c for c in set_by_it)
    jar = "; ".join([c.split(";")[0] for c in set_by_it] + ["gpumgr_session_7000=secret", "__Host-gpumgr_session=secret"])
    assert view.fields(Cookie=f"{view.cookie}; {jar}")["cookie"] == "hidden=1; open=2"
    assert other.fields(Cookie=f"{other.cookie}; {jar}")["cookie"] == "open=2"


def test_pages_of_other_origins_get_nothing(view):
    evil = view.origin.rsplit(":", 1)[0] + ":1"
    assert refused(view, origin=evil) == 403 and refused(view, origin="") == 403 and refused(view, cookie="") == 403
    assert view.ask("POST", "/say", b"x", Origin=evil).status == 403
    assert view.ask("GET", "/say", Origin="null").status == 403
    assert view.ask("POST", "/say", b"x", Origin=view.origin).status == 200
    for site in ("same-site", "cross-site"):
        assert view.ask("GET", "/say", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="script").status == 403
        assert view.ask("GET", "/say", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe").status == 403
        assert view.ask("GET", "/say", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document").status == 200
    assert view.ask("GET", "/say", Sec_Fetch_Site="same-origin").status == 200


def test_a_port_that_is_somebody_elses(box, app):
    """Ada declares the port that Bob's job listens at: she does not get there."""
    port = free_port()
    bobs = start(box, app, user=BOB, ui=str(port), port=port)
    up(box, bobs)
    number = submit(box, "--ui", port, "--", "sleep", 1000, user=ADA)
    ended = state(box, number, "failed")
    assert f"port {port} is taken already" in json.dumps(ended), ended
    with socket.create_server(("127.0.0.1", 0)) as mine:
        own = mine.getsockname()[1]
        mine.close()
        number = submit(box, "--ui", own, "--", "sleep", 1000, user=ADA)
        runs(box, number)
        with socket.create_server(("127.0.0.1", own)):
            v = View(box, number, user=ADA)
            answer = v.ask("GET", "/")
            assert answer.status == 502 and f"port {own} is not of job {number}: somebody else listens there" in answer.text.decode()


# ---- bad input ----

def test_bad_input(box, app):
    for ui, words in (("0", "is not PORT"), ("70000", "is not PORT"), ("x", "is not PORT"), ("8888lab", "is not PORT"),
                      ("8888//evil.example", "two slashes"), ("8888/a b", "must be encoded")):
        got = gpumgr(box, "submit", "--ui", ui, "--", "true")
        assert got.returncode == 2 and got.stderr.startswith("gpumgr submit: --ui") and words in got.stderr, got.stderr
    for flag, value, words in (("--ui.ports", "7199-7100", "ui.ports"), ("--ui.url", "https://gpu.example.org/{ui}", "ui.url")):
        got = gpumgr(box, "up", flag, value)
        assert got.returncode == 2 and words in got.stderr and len(got.stderr.splitlines()) == 1, got.stderr
    got = gpumgr(box, "open")
    assert got.returncode == 2 and "which job?" in got.stderr
    got = gpumgr(box, "open", 99999)
    assert got.returncode != 0 and "job 99999" in got.stderr
    plain = submit(box, "--", "sleep", 1000)
    runs(box, plain)
    got = gpumgr(box, "open", plain)
    assert got.returncode != 0 and "declares no UI" in got.stderr and len(got.stderr.splitlines()) == 1


def test_one_that_does_not_run_yet_is_waited_for(box):
    """`gpumgr open $(gpumgr submit ...)`: why it waits is said; its end, too, where it never runs."""
    holder = submit(box, "--gpus", 2, "--", "sleep", 1000)
    runs(box, holder)
    waiting, cancelled = (submit(box, "--gpus", 1, "--ui", 8888, "--", "sleep", 1000) for _ in range(2))
    opens, fails = spawn(box, "open", waiting, "--print"), spawn(box, "open", cancelled, "--print")
    assert f"job {waiting} waits" in opens.stderr.readline() and f"job {cancelled} waits" in fails.stderr.readline()
    gpumgr(box, "cancel", cancelled)
    out, err = fails.communicate(timeout=120)
    assert fails.returncode == 2 and out == "" and f"job {cancelled} does not run: it is cancelled" in err
    gpumgr(box, "cancel", holder)
    out, err = opens.communicate(timeout=120)
    assert opens.returncode == 0 and out.startswith("http://"), err


def test_a_ui_that_is_not_there_yet(box, app):
    """A page says so and tries again; once it listens, it is there."""
    gate = Path("/dev/shm") / f"ui-gate-{os.getpid()}"
    number = start(box, app, user=ADA, before=f"while [ ! -e {gate} ]; do sleep 0.05; done; ")
    try:
        v = View(box, number, user=ADA)
        answer = v.ask("GET", "/", Accept="text/html")
        text = answer.text.decode()
        assert answer.status == 503 and f"job {number} does not listen at port" in text and answer.getheader("Refresh") == "2"
        assert v.ask("GET", "/say").getheader("Retry-After") == "2"
        gate.touch()
        wait_for(lambda: v.ask("GET", "/say").status == 200, "the UI answers", 60)
    finally:
        gate.unlink(missing_ok=True)


def test_one_that_gives_no_answer(view):
    answer = view.ask("GET", "/gone", Accept="text/html")
    assert answer.status == 502 and b"closed the connection without an answer" in answer.text and b"Try again" in answer.text
    assert view.ask("GET", "/say").status == 200


# ---- the end ----

def is_closed(view):
    try:
        return view.ask("GET", "/say").status == 403
    except OSError:
        return True


def test_it_ends_with_the_job(box, view):
    async def talk():
        async with view.socket() as s:
            await s.send("x")
            await s.recv()
            await asyncio.get_running_loop().run_in_executor(None, gpumgr, box, "cancel", view.number)
            with pytest.raises(websockets.ConnectionClosed):
                await asyncio.wait_for(s.recv(), 60)
    run(talk())
    wait_for(lambda: is_closed(view), "its port is closed", 30)


def test_a_node_that_is_killed_comes_back(box, view):
    kill(box.of_program("node")[0])
    wait_for(lambda: view.ask("GET", "/say").status == 200, "the UI answers again", 60)


def test_a_server_that_is_killed_forgets_who_may(box, view):
    """Nothing is open after that; it is opened once more, and the job never noticed."""
    kill(box.of_program("server")[0])
    wait_for(lambda: gpumgr(box, "queue", "--json").returncode == 0, "the server is back", 60)
    assert is_closed(view)
    wait_for(lambda: gpumgr(box, "open", view.number, "--json", user=ADA).returncode == 0, "it can be opened", 60)
    fresh = View(box, view.number, user=ADA)
    wait_for(lambda: fresh.ask("GET", "/say").status == 200, "the UI answers", 60)
    assert job(box, view.number)["state"] == "running"


def session_of(box):
    """A browser that is signed in as the administrator: its API's address, and what it sends."""
    url = (box.dir / "run/server/listen").read_text().split()[0]
    secret = json.loads(gpumgr(box, "web", "--print", "--json").stdout)["url"].split("#")[1]
    c = http.client.HTTPConnection(url.split("//")[1], timeout=60)
    c.request("POST", "/api/v1/session", json.dumps({"link": secret}), {"Content-Type": "application/json"})
    answer = c.getresponse()
    answer.read()
    cookie = answer.getheader("Set-Cookie").split(";")[0]
    c.request("GET", "/api/v1/session", headers={"Cookie": cookie})
    csrf = json.loads(c.getresponse().read())["csrf"]
    return c, {"Cookie": cookie, "X-CSRF-Token": csrf, "Origin": url}


def test_it_ends_with_the_session(box, view):
    """Opened from a browser: signing out ends it there, with what is open; others go on."""
    c, headers = session_of(box)
    c.request("POST", f"/api/v1/jobs/{view.number}/ui", headers=headers)
    answer = c.getresponse()
    url = json.loads(answer.read())["url"]
    mine = View.__new__(View)
    mine.host, mine.origin, mine.cookie = view.host, view.origin, ""
    mine.enter_target = url.split(view.host)[1]
    assert mine.enter().status == 303 and mine.ask("GET", "/say").status == 200
    assert "gpumgr" not in json.dumps(mine.fields(Cookie=f"{mine.cookie}; {headers['Cookie']}"))

    def sign_out():
        c.request("DELETE", "/api/v1/session", headers=headers)
        assert c.getresponse().status == 204

    async def talk():
        async with mine.socket() as s:
            await s.send("x")
            await s.recv()
            sign_out()
            with pytest.raises(websockets.ConnectionClosed):
                await asyncio.wait_for(s.recv(), 60)
    run(talk())
    assert mine.ask("GET", "/say").status == 403 and view.ask("GET", "/say").status == 200


@contextlib.contextmanager
def named_uis(tmp_path, gpus):
    """ui.url: all UIs at one port, told apart by their names."""
    port = free_port()
    with Simulator(tmp_path / "sim", "--model", f"h200:{gpus}") as sim:
        with Instance(sim, "--gpu-devices", sim.dir / "dev", *NO_ENGINES, "--ui.ports", port, "--ui.url", f"http://{{ui}}.localhost:{port}/",
                      role="up") as i:
            i.sim = sim
            i.ready(gpus)
            wait_for(lambda: verdicts(i) == ["free"] * gpus, "the GPUs are free", 30)
            yield i, port


def test_names_instead_of_ports(app, tmp_path):
    with named_uis(tmp_path, 1) as (i, port):
        number = start(i, app)
        up(i, number)
        v = View(i, number, enter=False)
        assert v.host == f"job-{number}.localhost:{port}"
        named, v.host = v.host, f"127.0.0.1:{port}"  # not every resolver knows that *.localhost is here
        v.enter(Host=named)
        assert v.entered.getheader("Clear-Site-Data") is None
        assert v.fields(Host=named)["x-forwarded-host"] == named
        assert v.ask("GET", "/say", Host=named).getheader("Cache-Control") is None
        assert v.ask("GET", "/say", Host=f"job-{number + 1}.localhost").status == 404
        got = gpumgr(i, "cancel", number)
        assert got.returncode == 0
        wait_for(lambda: v.ask("GET", "/say", Host=named).status == 404, "it is not open any more", 30)


def test_names_on_one_connection_lead_to_different_uis(app, tmp_path):
    """A proxy before us sends what several browsers ask through one connection."""
    with named_uis(tmp_path, 2) as (i, port):
        views = []
        for user in (ADA, BOB):
            number = start(i, app, user=user, ui=str(own := free_port()), port=own)
            up(i, number)
            v = View(i, number, user=user, enter=False)
            v.named, v.host, v.own = v.host, f"127.0.0.1:{port}", own
            v.enter(Host=v.named)
            views.append(v)
        connection = views[0].connect()
        for v in (views[0], views[1], views[0], views[0]):
            answer = v.ask("GET", "/say", connection=connection, Host=v.named)
            assert answer.status == 200 and json.loads(answer.text)["port"] == v.own
        connection.close()


def test_over_tls(app, tmp_path):
    """The same certificate as the dashboard; cookies that nobody else can set; WebSockets as wss."""
    cert, key = certificate(tmp_path / "tls")
    for p in (cert.parent, cert, key, tmp_path):
        p.chmod(0o755)
    key.chmod(0o600)
    trust = ssl.create_default_context(cafile=cert)
    with Simulator(tmp_path / "sim", "--model", "h200:1") as sim:
        with Instance(sim, "--gpu-devices", sim.dir / "dev", *NO_ENGINES, "--tls.cert", cert, "--tls.key", key, role="up") as i:
            i.sim = sim
            i.ready(1)
            wait_for(lambda: verdicts(i) == ["free"], "the GPU is free", 30)
            number = start(i, app)
            up(i, number)
            v = View(i, number, trust=trust)
            assert v.origin.startswith("https://") and v.entered.status == 303
            said = v.entered.getheader("Set-Cookie")
            assert said.startswith("__Host-gpumgr_ui_") and "Secure" in said and "HttpOnly" in said, said
            got = v.fields()
            assert got["x-forwarded-proto"] == "https" and "cookie" not in got and got["host"].startswith("localhost"), got
            body = os.urandom(1 << 20)
            assert hashlib.sha256(body).hexdigest() in v.ask("POST", "/upload", body, Origin=v.origin).text.decode()

            async def talk():
                async with v.socket() as s:
                    await s.send("large 3000000")
                    assert len(await s.recv()) == 3_000_000
            run(talk())
            assert refused(v, origin=v.origin.replace("https", "http")) == 403
            plain = http.client.HTTPConnection(v.host, timeout=20)
            with pytest.raises((http.client.BadStatusLine, ConnectionError, http.client.RemoteDisconnected)):
                plain.request("GET", "/say", headers={"Cookie": v.cookie})
                plain.getresponse()
