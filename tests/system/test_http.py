"""HTTP as it is on the wire: what is refused and how, what may follow on a connection, TLS, proxies, streams, the end."""

import gzip
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import warnings

import pytest

import server as server_module
from hand_node import HandNode
from server import SERVER, Server, certificate
from simulator import wait_for

HOST = b"Host: localhost\r\n"


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


def connect(server, port=None):
    host, own = server.host.rsplit(":", 1)
    sock = socket.create_connection((host, port or int(own)), timeout=20)
    return sock


def ask(server, data, shut=False):
    """Everything that comes back until the server closes."""
    with connect(server) as sock:
        sock.sendall(data)
        if shut:
            sock.shutdown(socket.SHUT_WR)
        got = b""
        while True:
            try:
                piece = sock.recv(65536)
            except ConnectionResetError:
                break
            if not piece:
                break
            got += piece
    return got


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


def statuses(answer):
    """Of all replies in what came back."""
    return [int(n) for n in re.findall(rb"^HTTP/1\.1 (\d+) ", answer, re.M)]


def json_of(answer):
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])


# ---- requests that two programs could read in two ways ----

REFUSED = [
    ("both lengths", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("two lengths", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    ("equal lengths", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400),
    ("a signed length", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Content-Length: +2\r\n\r\n{}", 400),
    ("an unknown coding", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    ("a coding in disguise", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    ("a blank before the colon", b"GET /healthz HTTP/1.1\r\n" + HOST + b"Content-Length : 5\r\n\r\n", 400),
    ("a folded line", b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\r\n c\r\n\r\n", 400),
    ("a bare line feed", b"GET /healthz HTTP/1.1\nHost: x\n\n", 400),
    ("a bare carriage return", b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\rc\r\n\r\n", 400),
    ("a NUL", b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\0c\r\n\r\n", 400),
    ("an absolute target", b"GET http://x/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("no host", b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    ("two hosts", b"GET /healthz HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    ("dots", b"GET /a/../healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("encoded dots", b"GET /a/%2e%2e/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("an encoded slash", b"GET /api%2fv1/gpus HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("not UTF-8", b"GET /%ff HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("another version", b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
    ("no such method", b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    ("another expectation", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Expect: tea\r\nContent-Length: 2\r\n\r\n{}", 417),
    ("too long", b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 431),
    ("too many fields", b"GET / HTTP/1.1\r\n" + HOST + b"".join(b"A%d: b\r\n" % i for i in range(101)) + b"\r\n", 431),
    ("a bad chunk", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ("a chunk's extension", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n", 400),
    ("a trailer", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nA: b\r\n\r\n", 400),
    ("a chunk beyond all limits", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\n", 413),
    ("a length beyond all limits", b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999\r\n\r\n", 413),
]


@pytest.mark.parametrize("name,data,want", REFUSED, ids=[row[0] for row in REFUSED])
def test_refused(server, name, data, want):
    answer = ask(server, data + b"GET /healthz HTTP/1.1\r\nHost: y\r\n\r\n")
    assert status_of(answer) == want
    assert len(statuses(answer)) == 1, "what follows such a request is not believed"
    assert b"Connection: close" in answer
    error = json_of(answer)["error"]
    assert error["code"] in ("bad_request", "too_large", "method_not_allowed") and error["message"]


def test_garbage_and_tls_on_the_plain_port(server):
    assert status_of(ask(server, bytes.fromhex("16030100c8010000c40303"))) == 400
    assert ask(server, b"", shut=True) == b""
    assert ask(server, b"GET / HT", shut=True) == b""
    assert server.tcp("GET", "/healthz").status == 200


# ---- what may follow ----

def test_one_connection_many_requests(server):
    answer = ask(server, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
                 b"HEAD /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
                 b"GET /nothing.txt HTTP/1.1\r\n" + HOST + b"\r\n"
                 b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    assert statuses(answer) == [200, 200, 404, 200]
    assert answer.count(b'{"status":"ok"}') == 2  # HEAD has none


def test_bytes_one_by_one(server):
    with connect(server) as sock:
        for byte in b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n":
            sock.sendall(bytes([byte]))
        assert b"200 OK" in sock.recv(4096)


def test_version_1_0(server):
    assert status_of(ask(server, b"GET /healthz HTTP/1.0\r\n" + HOST + b"\r\n")) == 200
    again = b"GET /healthz HTTP/1.0\r\n" + HOST
    assert statuses(ask(server, again + b"Connection: keep-alive\r\n\r\n" + again + b"\r\n")) == [200, 200]


def test_methods(server):
    answer = server.unix("POST", "/api/v1/gpus", {})
    assert answer.status == 405 and answer.code == "method_not_allowed" and answer.headers["Allow"] == "GET, HEAD"
    assert set(server.unix("POST", "/api/v1/groups/x", {}).headers["Allow"].split(", ")) == {"GET", "HEAD", "PUT", "DELETE"}
    assert server.unix("DELETE", "/nothing").status == 404


def test_every_reply_has_the_security_headers(server):
    for path in ("/", "/healthz", "/nothing.txt", "/api/v1/gpus", "/api/v1/session"):
        h = server.tcp("GET", path).headers
        assert h["X-Content-Type-Options"] == "nosniff" and h["X-Frame-Options"] == "DENY" and h["Referrer-Policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in h["Content-Security-Policy"] and "default-src 'self'" in h["Content-Security-Policy"]
        assert h["Cross-Origin-Opener-Policy"] == "same-origin"
        assert "Set-Cookie" not in h and "Server" not in h


# ---- bodies ----

BODIES = [
    ("no JSON", b"{", "bad_json"),
    ("cut", b'{"members":["gpu:GPU-1"', "bad_json"),
    ("a list", b"[]", "bad_json"),
    ("empty", b"", "bad_request"),
    ("a key twice", b'{"members":[],"members":[]}', "bad_json"),
    ("not UTF-8", b'{"members":["gpu:\xff"]}', "bad_json"),
    ("deep", b'{"members":' + b"[" * 3000 + b"]" * 3000 + b"}", "bad_json"),
    ("nested", b'{"a":' * 20 + b"1" + b"}" * 20, "bad_json"),
    ("a field nobody knows", b'{"members":[],"colour":"red"}', "bad_request"),
    ("a text for a list", b'{"members":"gpu:GPU-1"}', "bad_request"),
    ("a number for a text", b'{"members":[],"label":7}', "bad_request"),
    ("no member", b'{"label":"x"}', "bad_request"),
    ("what is no GPU", b'{"members":["GPU-1"]}', "bad_request"),
    ("a NUL in a text", b'{"members":[],"label":"a\\u0000b"}', "bad_json"),
    ("text after it", b'{"members":[]} x', "bad_json"),
]


@pytest.mark.parametrize("name,body,code", BODIES, ids=[row[0] for row in BODIES])
def test_bad_bodies_change_nothing(server, name, body, code):
    before = server.unix("GET", "/api/v1/groups").body
    answer = server.unix("PUT", "/api/v1/groups/bad", body)
    assert answer.status == 400 and answer.code == code and answer.json["error"]["message"]
    assert server.unix("GET", "/api/v1/groups").body == before


def test_a_body_that_is_too_large(server):
    answer = server.unix("PUT", "/api/v1/groups/big", b'{"members":["' + b"x" * 1100000 + b'"]}')
    assert answer.status == 413 and answer.code == "too_large"
    assert server.tcp("PUT", "/api/v1/groups/big", b'{"members":["' + b"x" * 5000 + b'"]}').code == "too_large"  # nobody signed in
    assert server.unix("PUT", "/api/v1/groups/x", {"members": []}, Content_Type="text/plain").status == 400


def test_groups(server):
    assert server.unix("PUT", "/api/v1/groups/lab%20two", {"members": ["gpu:GPU-1", "node:a"], "label": "L\u00e4b"}).status == 201
    assert server.unix("PUT", "/api/v1/groups/lab%20two", {"members": []}).status == 200
    assert server.unix("GET", "/api/v1/groups/lab%20two").json["members"] == []
    server.stop(kill=True)
    server.start()
    assert server.unix("GET", "/api/v1/groups/lab%20two").json["name"] == "lab two"
    assert server.unix("DELETE", "/api/v1/groups/lab%20two").status == 204
    assert server.unix("DELETE", "/api/v1/groups/lab%20two").status == 404
    assert server.unix("PUT", "/api/v1/groups/a:b", {"members": []}).status == 400


def test_bad_parameters(server):
    for query in ("x=1", "limit=1&limit=2", "limit=0", "limit=nan", "limit=1e999", "limit=0x10", "severity=bad", "limit=%zz", "from=a"):
        answer = server.unix("GET", "/api/v1/events?" + query)
        assert answer.status == 400 and answer.code == "bad_request", query


# ---- pages ----

def test_pages(server):
    for path in ("/", "/gpus/GPU-1", "/events", "/compare?of=a"):
        answer = server.tcp("GET", path)
        assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/html")
    assert server.tcp("GET", "/missing.js").status == 404
    assert server.tcp("GET", "/api/v1/missing").code == "not_found"
    api = server.tcp("GET", "/api/v1/openapi.json").json
    assert "/api/v1/gpus/{uuid}" in api["paths"]
    for path in api["paths"].values():
        for operation in path.values():
            assert operation["summary"] and operation["responses"]
    good = lambda method, path: next(iter(api["paths"][path][method]["responses"]))
    assert [good("get", "/api/v1/gpus"), good("post", "/api/v1/tokens"), good("delete", "/api/v1/tokens/{id}")] == ["200", "201", "204"]


def test_below_a_base_path():
    with Server(server__base_path="/gpu/mgr") as s:
        assert b'<base href="/gpu/mgr/">' in s.tcp("GET", "/gpu/mgr/").body
        assert s.tcp("GET", "/gpu/mgr").headers["Location"] == "/gpu/mgr/"
        assert s.tcp("GET", "/gpu/mgr/healthz").status == 200
        assert s.tcp("GET", "/gpu/mgrx/").status == 404
        assert s.tcp("GET", "/api/v1/session").status == 404


# ---- who is behind a proxy ----

def test_a_proxy_makes_no_local_of_anybody(server):
    assert server.tcp("GET", "/healthz").status == 200
    assert server.tcp("GET", "/healthz", X_Forwarded_For="198.51.100.7").status == 401
    assert server.tcp("GET", "/metrics", Forwarded="for=198.51.100.7").status == 401


def test_what_a_trusted_proxy_says_counts():
    with Server(server__trusted_proxies="127.0.0.1") as s:
        s.tcp("POST", "/api/v1/session", {"link": "x" * 43}, X_Forwarded_For="198.51.100.7")
        s.tcp("POST", "/api/v1/session", {"link": "x" * 43}, X_Forwarded_For="198.51.100.9, 127.0.0.1")
        seen = lambda: [row["address"] for row in s.unix("GET", "/api/v1/audit").json["audit"] if row["path"] == "/api/v1/session"]
        assert wait_for(lambda: len(seen()) == 2 and seen(), "both are in the log") == ["198.51.100.9", "198.51.100.7"]
        cookie = s.tcp("POST", "/api/v1/session", {"link": s.link()}, X_Forwarded_Proto="https").headers["Set-Cookie"]
        assert "Secure" in cookie
    with Server() as s:
        s.tcp("POST", "/api/v1/session", {"link": "x" * 43}, X_Forwarded_For="198.51.100.7")
        rows = wait_for(lambda: s.unix("GET", "/api/v1/audit").json["audit"], "it is in the log")
        assert rows[0]["address"] == "127.0.0.1"


# ---- TLS, and plain only where it is meant ----

def test_tls(tmp_path):
    cert, key = certificate(tmp_path / "tls")
    with Server(tls__cert=cert, tls__key=key) as s:
        assert s.url.startswith("https://")
        trust = ssl.create_default_context(cafile=cert)
        connection = http.client.HTTPSConnection(s.host, timeout=20, context=trust)
        for _ in range(3):
            connection.request("GET", "/healthz")
            assert connection.getresponse().read() == b'{"status":"ok"}\n'
        connection.request("POST", "/api/v1/session", json.dumps({"link": s.link()}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 204 and "Secure" in answer.headers["Set-Cookie"]
        cookie = answer.headers["Set-Cookie"].split(";")[0]
        connection.request("GET", "/api/v1/events", headers={"Accept": "text/event-stream", "Cookie": cookie})
        stream = connection.getresponse()
        assert stream.status == 200 and stream.readline() == b"retry: 1000\n"
        assert not ask(s, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n").startswith(b"HTTP")
        old = ssl.create_default_context(cafile=cert)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            http.client.HTTPSConnection(s.host, timeout=20, context=old).request("GET", "/healthz")


def served_certificate(s):
    host, port = s.host.rsplit(":", 1)
    return ssl.get_server_certificate((host, int(port)), timeout=20)


def test_a_new_certificate_is_taken_without_a_restart():
    with Server() as place:  # a directory that the server's user may read
        cert, key = certificate(place.dir / "tls")
        key.chmod(0o644)
        (place.dir / "tls").chmod(0o755)
        with Server(tls__cert=cert, tls__key=key) as s:
            first = served_certificate(s)
            assert first.strip() == cert.read_text().strip()
            certificate(place.dir / "tls")
            key.chmod(0o644)
            s.process.send_signal(signal.SIGHUP)
            wait_for(lambda: served_certificate(s) != first, "the new one")
            second = served_certificate(s)
            key.write_text("no key")
            s.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "the old certificate stays" in s.log_path.read_text(), "it is said")
            assert served_certificate(s) == second


def refuses_to_start(tmp_path, **settings):
    (tmp_path / "run").mkdir(parents=True)
    lines = {"dir": tmp_path, "listen": "127.0.0.1:0", **settings}
    file = tmp_path / "run/settings"
    file.write_text("".join(f"{k}={v}\n" for k, v in lines.items()))
    done = subprocess.run([SERVER, "serve", tmp_path, file, "0"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2
    return done.stderr


def test_plain_http_beyond_loopback_must_be_meant(tmp_path):
    assert "listen_plain" in refuses_to_start(tmp_path / "a", listen="0.0.0.0:0")
    assert "tls.key" in refuses_to_start(tmp_path / "b", **{"tls.cert": "/nowhere"})
    assert "/nowhere" in refuses_to_start(tmp_path / "c", **{"tls.cert": "/nowhere", "tls.key": "/nowhere"})
    assert "trusted_proxies" in refuses_to_start(tmp_path / "d", **{"server.trusted_proxies": "here"})
    assert "base_path" in refuses_to_start(tmp_path / "e", **{"server.base_path": "/a b"})
    with Server(listen="0.0.0.0:0", listen_plain="true") as s:
        port = int(s.host.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
            sock.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            assert status_of(sock.recv(65536)) == 401  # a listener that all can reach asks who it is


# ---- streams ----

def events_of(response, count):
    """The next messages of a stream: (name, data)."""
    got, name = [], None
    while len(got) < count:
        line = response.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data:"):
            got.append((name, json.loads(line[5:])))
    return got


def open_stream(server):
    from server import UnixConnection
    connection = UnixConnection(server.dir / "run/server/api.sock")
    connection.request("GET", "/api/v1/events", headers={"Accept": "text/event-stream"})
    response = connection.getresponse()
    assert response.status == 200 and response.headers["Content-Type"] == "text/event-stream"
    return connection, response


def test_the_stream_goes_on_without_news(server):
    connection, response = open_stream(server)
    (first, snapshot), (second, delta) = events_of(response, 2)
    assert first == "snapshot" and snapshot["gpus"] == [] and snapshot["nodes"] == []
    assert second == "delta" and delta["seq"] > snapshot["seq"]
    connection.close()


def test_a_stream_needs_a_sign_in(server):
    answer = server.tcp("GET", "/api/v1/events", Accept="text/event-stream")
    assert answer.status == 401 and answer.code == "unauthenticated"


def test_a_stream_ends_with_its_session(server):
    reads, changes = server.browser()
    connection = http.client.HTTPConnection(server.host, timeout=30)
    connection.request("GET", "/api/v1/events", headers={"Accept": "text/event-stream", **reads})
    response = connection.getresponse()
    assert response.status == 200 and events_of(response, 1)[0][0] == "snapshot"
    assert server.tcp("DELETE", "/api/v1/session", **changes).status == 204
    response.read()  # to its end, which comes within seconds


# ---- the end ----

def test_a_stop_finishes_what_is_under_way():
    with Server() as s:
        sock = connect(s)
        sock.sendall(b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{")
        connection, response = open_stream(s)
        idle = connect(s)
        events_of(response, 1)
        s.process.terminate()
        assert idle.recv(1) == b""            # nothing was under way
        response.read()                       # a stream ends at once
        sock.sendall(b"}")                    # what was begun is answered
        answer = sock.recv(65536)
        assert status_of(answer) == 400 and b"Connection: close" in answer
        assert s.process.wait(30) == 0
        assert not (s.dir / "run/server/api.sock").exists() and not (s.dir / "run/server/link.sock").exists()


def test_a_stop_does_not_wait_for_the_slow():
    with Server() as s:
        sock = connect(s)
        sock.sendall(b"POST /api/v1/session HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n{")
        s.process.terminate()
        assert s.process.wait(8) == 0


def test_many_at_once(server):
    """Eight clients of a thousand requests: every reply is the right one."""
    failed = []

    def client(n):
        connection = http.client.HTTPConnection(server.host, timeout=20)
        for i in range(1000):
            connection.request("GET", "/healthz" if i % 2 else f"/missing-{n}-{i}.txt")
            response = connection.getresponse()
            body = response.read()
            if response.status != (200 if i % 2 else 404) or (i % 2 and body != b'{"status":"ok"}\n'):
                failed.append((n, i, response.status, body))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    fds = lambda: len(os.listdir(f"/proc/{server.process.pid}/fd"))
    before = fds()
    wait_for(lambda: fds() <= before, "connections are let go")


def test_without_descriptors_it_waits_and_goes_on(tmp_path, monkeypatch):
    few = tmp_path / "few"
    few.write_text(f'#!/bin/sh\nulimit -n 40\nexec "{SERVER}" "$@"\n')
    few.chmod(0o755)
    monkeypatch.setattr(server_module, "SERVER", few)
    with Server() as s:
        fds = lambda: len(os.listdir(f"/proc/{s.process.pid}/fd"))
        crowd = [connect(s) for _ in range(60)]
        wait_for(lambda: fds() >= 39, "none is left")
        for sock in crowd:
            sock.close()
        wait_for(lambda: fds() < 30, "they are let go")
        assert s.tcp("GET", "/healthz").status == 200
        assert s.process.poll() is None


# ---- answers that are packed for their way ----

def test_answers_are_packed_for_those_who_ask_and_are_elsewhere(server):
    token = server.unix("POST", "/api/v1/tokens", {"name": "t"}).json["token"]

    def get(path, coding="gzip", origin="192.0.2.7"):
        return server.tcp("GET", path, Authorization=f"Bearer {token}", Accept_Encoding=coding, X_Forwarded_For=origin)
    for path in ("/api/v1/metrics", "/api/v1/openapi.json"):
        plain, packed = get(path, "identity"), get(path)
        assert plain.headers["Content-Encoding"] is None and len(plain.body) > 10000
        assert packed.headers["Content-Encoding"] == "gzip" and packed.headers["Vary"] == "Accept-Encoding"
        assert gzip.decompress(packed.body) == plain.body and len(packed.body) < len(plain.body) / 3
        for same in (get(path, "gzip;q=0"), get(path, "br"), get(path, origin=None)):
            assert same.body == plain.body, "not asked for, or on this machine"
    assert get("/api/v1/session").headers["Content-Encoding"] is None, "what is short is left as it is, secrets above all"
    with HandNode(server.dir / "run/server/link.sock") as node:
        for pid in range(50):
            node.task(pid + 1, ["GPU-a"], took=1.0)
        wait_for(lambda: len(server.unix("GET", "/api/v1/tasks").json["tasks"]) == 50, "they are there")
        tasks = get("/api/v1/tasks")  # from the history's thread
        assert json.loads(gzip.decompress(tasks.body)) == get("/api/v1/tasks", "identity").json
        text = gzip.decompress(get("/metrics").body)
        assert text.startswith(b"# HELP gpumgr_build_info")
