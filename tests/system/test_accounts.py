"""Who may look: first start, links, sessions, tokens, accounts, limits, and what the server may do itself."""

import http.client
import os
import pty
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from instance import clean_env
from server import GPUMGR, SERVER, Server
from simulator import wait_for

NOBODY = 65534
is_root = os.geteuid() == 0
needs_root = pytest.mark.skipif(not is_root, reason="needs root")


@pytest.fixture
def server():
    with Server() as s:
        yield s


@pytest.fixture
def programs():
    """A place that everybody may run programs from: pytest's own is root's, and a tmpfs may be noexec."""
    with tempfile.TemporaryDirectory(prefix="gm-", dir="/tmp") as place:
        os.chmod(place, 0o755)
        yield Path(place)


def first_link(server):
    return re.search(r"#([A-Za-z0-9_-]{43})\n", (server.dir / "server/signin-link").read_text()).group(1)


# ---- the first start ----

def test_first_start_leaves_a_link_that_works_once(server):
    path = server.dir / "server/signin-link"
    state = server.dir / "server"
    assert path.stat().st_mode & 0o7777 == 0o600
    assert state.stat().st_mode & 0o7777 == 0o700
    assert path.stat().st_uid == state.stat().st_uid
    text = path.read_text().strip()
    assert re.fullmatch(re.escape(server.url) + r"/signin#[A-Za-z0-9_-]{43}", text)
    link = first_link(server)
    assert link not in server.log_path.read_text()
    assert str(path) in server.log_path.read_text()

    assert server.tcp("GET", "/signin").status == 200  # looking at it does not use it up
    answer = server.sign_in(link)
    assert answer.status == 204
    flags = answer.headers["Set-Cookie"]
    assert flags.startswith(f"gpumgr_session_{server.host.split(':')[1]}=") and "; Path=/;" in flags
    assert {"HttpOnly", "SameSite=Strict"} <= {f.strip() for f in flags.split(";")}
    assert "Secure" not in flags and "Max-Age=2592000" in flags
    who = server.tcp("GET", "/api/v1/session", Cookie=answer.cookie()).json
    assert who["user"]["name"] == "admin" and who["user"]["role"] == "admin"

    again = server.sign_in(link)
    assert again.status == 401 and again.code == "unauthenticated"
    wait_for(lambda: not path.exists(), "the file of the used link is gone")


def test_a_restart_keeps_the_link_and_makes_no_second_one(server):
    link = first_link(server)
    server.stop(kill=True)
    server.start()
    assert first_link(server) == link
    assert server.sign_in(link).status == 204
    server.stop()
    server.start()
    assert not (server.dir / "server/signin-link").exists()
    assert [u["name"] for u in server.unix("GET", "/api/v1/users").json["users"]] == ["admin"]


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0"])
def test_a_link_names_an_address_that_can_be_opened(listen):
    with Server(listen=listen, listen_plain="true") as server:
        port = server.url.rsplit(":", 1)[1]
        lines = (server.dir / "server/signin-link").read_text().splitlines()
        assert lines == [f"http://{name}:{port}/signin#{first_link(server)}" for name in ("localhost", socket.gethostname())]


def test_the_link_is_shown_where_it_is_asked_for():
    with Server(server__print_link="true") as server:
        assert f"{server.url}/signin#{first_link(server)}" in server.log_path.read_text()


def test_only_hashes_are_kept(server):
    secrets = [first_link(server), server.link()]
    name, cookie = server.sign_in(server.link()).cookie().split("=")
    token = server.unix("POST", "/api/v1/tokens", {"name": "x"}).json["token"]
    assert server.unix("PUT", "/api/v1/users/admin/password", {"password": "correct horse"}).status == 204
    csrf = server.tcp("GET", "/api/v1/session", Cookie=f"{name}={cookie}").json["csrf"]
    secrets += [cookie, token, token[4:], csrf, "correct horse"]
    kept = b"".join(p.read_bytes() for p in (server.dir / "server").glob("state.db*"))
    kept += server.log_path.read_bytes()
    for secret in secrets:
        assert secret.encode() not in kept
    assert b"$argon2id$" in kept
    for path in (server.dir / "server").glob("state.db*"):
        assert path.stat().st_mode & 0o7777 == 0o600


# ---- sessions ----

def test_sessions_are_listed_and_ended(server):
    look, act = server.browser()
    other, _ = server.browser()
    sessions = server.tcp("GET", "/api/v1/sessions", **look, User_Agent="Test/1").json["sessions"]
    assert len(sessions) == 2 and [s["is_current"] for s in sessions] == [True, False]
    assert sessions[0]["address"] == "127.0.0.1"
    assert server.tcp("DELETE", f"/api/v1/sessions/{sessions[1]['id']}", **act).status == 204
    assert server.tcp("GET", "/api/v1/sessions", **other).status == 401
    assert server.tcp("DELETE", f"/api/v1/sessions/{sessions[1]['id']}", **act).status == 404
    out = server.tcp("DELETE", "/api/v1/session", **act)
    assert out.status == 204 and "Max-Age=0" in out.headers["Set-Cookie"]
    assert server.tcp("GET", "/api/v1/sessions", **look).status == 401
    assert server.tcp("GET", "/api/v1/session", **look).json["user"] is None


def test_sessions_links_and_tokens_expire(server):
    look, _ = server.browser()
    link, kept = server.link(), server.link()
    token = server.unix("POST", "/api/v1/tokens", {"name": "x", "expires_s": 3600}).json["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    assert server.tcp("GET", "/api/v1/tokens", **bearer).status == 200
    server.stop()
    server.database("UPDATE sessions SET seen=seen-30*86400-10")
    server.database("UPDATE links SET expires=1 WHERE id=(SELECT min(id) FROM links WHERE is_first=0)")
    server.database("UPDATE tokens SET expires=created")
    server.start()
    assert server.tcp("GET", "/api/v1/sessions", **look).status == 401
    refused = server.tcp("GET", "/api/v1/tokens", **bearer)
    assert refused.status == 401 and refused.code == "unauthenticated"
    assert server.sign_in(link).status == 401
    assert server.sign_in(kept).status == 204


def test_a_link_is_good_once_however_many_try(server):
    link = server.link()
    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(a.status for a in pool.map(server.sign_in, [link] * 8))
    assert statuses[0] == 204 and set(statuses[1:]) <= {401, 429}


def test_sessions_of_one_account_are_bounded(server):
    first, _ = server.browser()
    for _ in range(64):
        assert server.sign_in(server.link()).status == 204
    assert server.tcp("GET", "/api/v1/sessions", **first).status == 401
    assert len(server.unix("GET", "/api/v1/sessions").json["sessions"]) == 64


# ---- what a page must send ----

@pytest.mark.parametrize("change, code", [
    ({"X_CSRF_Token": None}, "csrf"),
    ({"X_CSRF_Token": "x" * 43}, "csrf"),
    ({"Origin": "http://evil.example"}, "csrf"),
    ({"Origin": "null"}, "csrf"),
    ({"Origin": None}, "csrf"),
    ({"Sec_Fetch_Site": "cross-site"}, "csrf"),
    ({"Sec_Fetch_Site": "same-site"}, "csrf"),
    ({"Content_Type": "text/plain"}, "bad_request"),
    ({"Content_Type": "application/x-www-form-urlencoded"}, "bad_request"),
])
def test_a_cookie_alone_changes_nothing(server, change, code):
    _, act = server.browser()
    body = '{"name":"x"}'
    refused = server.tcp("POST", "/api/v1/tokens", body, **{**act, **change})
    assert refused.status in (400, 403) and refused.code == code
    assert server.unix("GET", "/api/v1/tokens?all=true").json["tokens"] == []
    assert server.tcp("POST", "/api/v1/tokens", body, **act).status == 201
    assert server.tcp("POST", "/api/v1/tokens", '{"name":"y"}', **{**act, "Origin": None, "Sec_Fetch_Site": "same-origin"}).status == 201


def test_sessions_of_two_accounts_at_once_are_nobody_s(server):
    """A page at another port of the host can set a cookie for a path of ours: it is sent first."""
    assert server.unix("PUT", "/api/v1/users/mallory", {"role": "member"}).status == 201
    (his, _), (hers, act), (again, _) = server.browser(), server.browser("mallory"), server.browser()
    own, tossed, second = his["Cookie"], hers["Cookie"], again["Cookie"]
    for both in (f"{tossed}; {own}", f"{own}; {tossed}", f"{own}; {second}; {tossed}"):
        assert server.tcp("GET", "/api/v1/session", Cookie=both).json["user"] is None
        assert server.tcp("POST", "/api/v1/tokens", '{"name":"x"}', **{**act, "Cookie": both}).status == 401
    for both in (f"{own}; {second}", f"{own.split('=')[0]}={'x' * 43}; {own}"):  # one account, and nonsense beside it
        assert server.tcp("GET", "/api/v1/session", Cookie=both).json["user"] not in (None, "mallory")


def test_signing_in_from_another_page_is_refused(server):
    link = server.link()
    refused = server.tcp("POST", "/api/v1/session", {"link": link}, Origin="http://evil.example")
    assert refused.status == 403 and refused.code == "csrf"
    assert server.tcp("POST", "/api/v1/session", {"link": link}, Origin=server.url).status == 204


def test_a_name_that_was_rebound_is_no_loopback(server):
    assert server.tcp("GET", "/healthz").status == 200
    assert server.tcp("GET", "/healthz", Host="localhost:1234").status == 200
    assert server.tcp("GET", "/healthz", Host="evil.example").status == 401


def test_behind_a_base_path():
    with Server(server__base_path="/gpus", server__public_url="https://lab.example/gpus") as server:
        assert (server.dir / "server/signin-link").read_text().startswith("https://lab.example/gpus/signin#")
        answer = server.tcp("POST", "/gpus/api/v1/session", {"link": first_link(server)}, Origin="https://lab.example")
        assert answer.status == 204 and "; Path=/gpus/;" in answer.headers["Set-Cookie"]
        assert server.gpumgr("web", "--print").stdout.startswith("https://lab.example/gpus/signin#")


def test_behind_a_proxy_with_tls():
    with Server(server__trusted_proxies="127.0.0.1", server__public_url="https://lab.example/") as server:
        proxy = {"X_Forwarded_Proto": "https", "X_Forwarded_For": "192.0.2.7", "Host": "lab.example"}
        answer = server.tcp("POST", "/api/v1/session", {"link": first_link(server)}, Origin="https://lab.example", **proxy)
        assert answer.status == 204
        assert answer.headers["Set-Cookie"].startswith("__Host-gpumgr_session=") and "; Secure" in answer.headers["Set-Cookie"]
        cookie = answer.cookie()
        assert server.tcp("GET", "/api/v1/sessions", Cookie=cookie, **proxy).json["sessions"][0]["address"] == "192.0.2.7"
        assert server.tcp("GET", "/api/v1/session", Cookie=cookie).json["user"] is None  # not in the clear
        assert server.tcp("GET", "/healthz", **proxy).status == 401  # who comes through a proxy is not on this machine
        assert tries_before_a_pause(lambda n: sign_in_by(server, f"user{n}", "wrong horse", **proxy)) >= 5
        assert sign_in_by(server, "user", "wrong horse", **{**proxy, "X_Forwarded_For": "192.0.2.8"}).status == 401


# ---- tokens ----

def test_tokens_are_made_used_listed_and_revoked(server):
    made = server.unix("POST", "/api/v1/tokens", {"name": "prom", "expires_s": 86400})
    assert made.status == 201 and re.fullmatch(r"gpm_[A-Za-z0-9_-]{43}", made.json["token"])
    assert made.json["role"] == "member" and abs(made.json["expires"] - time.time() - 86400) < 60
    bearer = {"Authorization": f"Bearer {made.json['token']}"}
    assert server.tcp("GET", "/api/v1/users", **bearer).code == "forbidden"
    listed = server.tcp("GET", "/api/v1/tokens", **bearer).json["tokens"]
    assert [(t["name"], t["role"]) for t in listed] == [("prom", "member")] and "token" not in listed[0]
    assert abs(listed[0]["last_used"] - time.time()) < 60
    assert server.unix("POST", "/api/v1/tokens", {"name": "prom"}).code == "conflict"
    assert server.unix("DELETE", f"/api/v1/tokens/{made.json['id']}").status == 204
    assert server.tcp("GET", "/api/v1/tokens", **bearer).status == 401
    assert server.tcp("GET", "/healthz", **bearer).status == 401  # one that is wrong is never passed over


def test_when_a_token_was_used_outlives_a_stop(server):
    token = server.unix("POST", "/api/v1/tokens", {"name": "x"}).json["token"]
    assert server.tcp("GET", "/api/v1/tokens", Authorization=f"Bearer {token}").status == 200
    before = server.unix("GET", "/api/v1/tokens").json["tokens"]
    server.stop()
    server.start()
    assert server.unix("GET", "/api/v1/tokens").json["tokens"] == before and before[0]["last_used"]


def test_a_members_token_makes_nothing_that_signs_in(server):
    token = server.unix("POST", "/api/v1/tokens", {"name": "m"}).json["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    for method, path, body in (("POST", "/api/v1/links", None), ("POST", "/api/v1/tokens", {"name": "n"}),
                               ("PUT", "/api/v1/users/root/password", {"password": "long enough"})):
        assert server.tcp(method, path, body, **bearer).code == "forbidden"


@pytest.mark.parametrize("body, code", [
    ({}, "bad_request"), ({"name": ""}, "bad_request"), ({"name": "x" * 101}, "bad_request"), ({"name": "a\nb"}, "bad_request"),
    ({"name": 7}, "bad_request"), ({"name": "x", "role": "root"}, "bad_request"), ({"name": "x", "expires_s": -1}, "bad_request"),
    ({"name": "x", "expires_s": 1e12}, "bad_request"), ({"name": "x", "more": 1}, "bad_request"),
    ('{"name":"x","name":"y"}', "bad_json"), ('{"name":"x"', "bad_json"), (b'{"name":"\xff"}', "bad_json"), ("[]", "bad_json"),
    ("[" * 3000, "bad_json"), ('{"name":"' + "x" * 5000 + '"}', "too_large"),
])
def test_bad_bodies_change_nothing(server, body, code):
    refused = server.unix("POST", "/api/v1/tokens", body)
    assert 400 <= refused.status < 500 and refused.code == code
    assert server.unix("GET", "/api/v1/tokens").json["tokens"] == []


# ---- members and administrators ----

@needs_root
def test_unix_users_are_members_and_root_is_an_administrator(server):
    assert server.unix("GET", "/api/v1/session").json["user"] == {"name": "root", "role": "admin", "unix": True, "has_password": False}
    status, who = server.unix_as(NOBODY, "GET", "/api/v1/session")
    assert status == 200 and who["user"] == {"name": "nobody", "role": "member", "unix": True, "has_password": False}
    assert server.unix_as(NOBODY, "GET", "/api/v1/metrics")[0] == 200  # he sees everything
    for method, path, body in (("GET", "/api/v1/users", None), ("PUT", "/api/v1/users/x", {"role": "admin"}),
                               ("GET", "/api/v1/audit", None), ("DELETE", "/api/v1/users/admin", None),
                               ("POST", "/api/v1/links", {"user": "admin"}), ("GET", "/api/v1/tokens?all=true", None),
                               ("POST", "/api/v1/tokens", {"name": "x", "role": "admin"}),
                               ("PUT", "/api/v1/users/admin/password", {"password": "long enough"})):
        status, answer = server.unix_as(NOBODY, method, path, body)
        assert status == 403 and answer["error"]["code"] == "forbidden", (method, path)
    admins = server.unix("POST", "/api/v1/tokens", {"name": "root's", "role": "admin"}).json
    status, answer = server.unix_as(NOBODY, "DELETE", f"/api/v1/tokens/{admins['id']}")
    assert status == 404  # not even that it is there
    assert [u["name"] for u in server.unix("GET", "/api/v1/users").json["users"]] == ["admin", "root"]


@needs_root
def test_the_owner_of_an_instance_is_its_administrator():
    with Server(user=12345) as server:
        assert Path(f"/proc/{server.process.pid}").stat().st_uid in (12345, 0)  # 0: not to be looked into
        assert "NoNewPrivs:\t1" in Path(f"/proc/{server.process.pid}/status").read_text()
        assert server.unix_as(12345, "GET", "/api/v1/users")[0] == 200
        assert server.unix_as(NOBODY, "GET", "/api/v1/users")[0] == 403
        assert server.unix("GET", "/api/v1/users").status == 200
        assert (server.dir / "server/signin-link").stat().st_uid == 12345


@needs_root
def test_a_number_without_a_name_gets_no_account(server):
    assert server.unix_as(54321, "GET", "/api/v1/metrics")[0] == 200
    for path, body in (("/api/v1/links", None), ("/api/v1/tokens", {"name": "x"})):
        status, refused = server.unix_as(54321, "POST", path, body)
        assert status == 403 and "54321" in refused["error"]["message"]
    assert [u["name"] for u in server.unix("GET", "/api/v1/users").json["users"]] == ["admin"]


@needs_root
def test_an_account_belongs_to_whom_it_was_given(server):
    assert server.unix("PUT", "/api/v1/users/nobody", {"role": "admin"}).status == 201
    status, who = server.unix_as(NOBODY, "GET", "/api/v1/session")
    assert who["user"]["role"] == "member" and who["user"]["name"] == "nobody-65534"  # the name alone is nothing
    assert server.unix("PUT", "/api/v1/users/nobody", {"uid": NOBODY}).status == 200
    status, who = server.unix_as(NOBODY, "GET", "/api/v1/session")
    assert who["user"]["role"] == "admin" and who["user"]["name"] == "nobody"
    assert server.unix("PUT", "/api/v1/users/nobody", {"disabled": True}).status == 200
    status, refused = server.unix_as(NOBODY, "POST", "/api/v1/links")
    assert status == 403 and refused["error"]["code"] == "forbidden"


def test_accounts_are_made_changed_and_removed(server):
    made = server.unix("PUT", "/api/v1/users/alice", {"role": "admin"})
    assert made.status == 201 and made.json["role"] == "admin"
    look, act = server.browser("alice")
    assert server.tcp("GET", "/api/v1/users", **look).status == 200
    assert server.unix("PUT", "/api/v1/users/alice", {"role": "member"}).status == 200
    assert server.tcp("GET", "/api/v1/users", **look).code == "forbidden"  # at once, in the same session
    link = server.link("alice")
    assert server.unix("PUT", "/api/v1/users/alice", {"disabled": True}).status == 200
    assert server.tcp("GET", "/api/v1/tokens", **look).status == 401
    assert server.sign_in(link).status == 401
    assert server.unix("POST", "/api/v1/links", {"user": "alice"}).code == "forbidden"
    assert server.unix("DELETE", "/api/v1/users/alice").status == 204
    assert server.unix("GET", "/api/v1/users/alice").status == 404
    for name in ("a b", "-x", "x" * 64, ".."):
        assert server.unix("PUT", f"/api/v1/users/{name.replace(' ', '%20')}", {}).status in (400, 404)
    last = server.unix("DELETE", "/api/v1/users/admin")
    assert last.status == 409 and "last administrator" in last.json["error"]["message"]


# ---- passwords ----

def sign_in_by(server, user, password, **headers):
    return server.tcp("POST", "/api/v1/session", {"user": user, "password": password}, **headers)


def test_passwords(server):
    look, act = server.browser("admin")
    other, _ = server.browser("admin")
    short = server.tcp("PUT", "/api/v1/users/admin/password", {"password": "1234567"}, **act)
    assert short.status == 400
    assert sign_in_by(server, "admin", "").status == 401  # without a password there is none to guess
    assert server.tcp("PUT", "/api/v1/users/admin/password", {"password": "correct horse"}, **act).status == 204
    assert server.tcp("GET", "/api/v1/sessions", **look).status == 200
    assert server.tcp("GET", "/api/v1/sessions", **other).status == 401  # all others had to go
    assert sign_in_by(server, "admin", "correct horse").status == 204
    wrong, unknown = sign_in_by(server, "admin", "wrong horse"), sign_in_by(server, "nemo", "wrong horse")
    assert (wrong.status, wrong.body) == (unknown.status, unknown.body) and wrong.status == 401
    for body in ({"password": "another horse"}, {"password": "another horse", "current": "wrong"}):
        assert server.tcp("PUT", "/api/v1/users/admin/password", body, **act).code == "forbidden"
    assert server.tcp("PUT", "/api/v1/users/admin/password", {"password": "", "current": "correct horse"}, **act).status == 204
    assert sign_in_by(server, "admin", "correct horse").status == 401
    assert sign_in_by(server, "admin", "").status == 401


@pytest.mark.alone
def test_an_account_that_is_not_there_takes_as_long(server):
    assert server.unix("PUT", "/api/v1/users/admin/password", {"password": "correct horse"}).status == 204

    def seconds(user):
        begin = time.monotonic()
        assert sign_in_by(server, user, "wrong horse").status == 401
        return time.monotonic() - begin
    pairs = [(seconds("admin"), seconds("nemo")) for _ in range(4)]
    there, absent = (min(p[i] for p in pairs) for i in (0, 1))
    assert 0.5 < absent / there < 2, pairs
    assert absent > 0.005  # it did hash


def tries_before_a_pause(attempt):
    """How many were let through until one was told to wait. On a slow machine a pause may be over before the next try;
    they grow."""
    for n in range(20):
        answer = attempt(n)
        if answer.status == 429:
            assert answer.code == "rate_limited" and 1 <= int(answer.headers["Retry-After"]) <= 900
            return n
        assert answer.status == 401
    raise AssertionError("nobody was told to wait")


def test_guessing_is_slowed_down(server):
    assert tries_before_a_pause(lambda n: sign_in_by(server, f"user{n}", "wrong horse")) >= 10
    tries_before_a_pause(lambda n: server.sign_in("x" * 43))
    assert server.sign_in(server.link()).status == 204  # whoever has a right link is let in, and the tries are forgotten
    assert sign_in_by(server, "user1", "wrong horse").status == 401


def test_one_account_is_not_guessed_at_from_everywhere(server):
    def attempt(n):
        server.sign_in(server.link())  # the address is forgiven, the account is not
        return sign_in_by(server, "admin", "wrong horse")
    assert tries_before_a_pause(attempt) >= 10


def peak_kb(server):
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{server.process.pid}/status").read_text()).group(1))


@pytest.mark.alone
def test_hashing_never_holds_up_the_loop(server):
    before_kb = peak_kb(server)
    assert server.unix("PUT", "/api/v1/users/admin/password", {"password": "correct horse"}).status == 204
    begin = time.monotonic()
    assert sign_in_by(server, "admin", "correct horse").status == 204
    hashing, waits, over = time.monotonic() - begin, [], threading.Event()

    def look():
        while not over.is_set():
            begin = time.monotonic()
            server.tcp("GET", "/healthz")
            waits.append(time.monotonic() - begin)
    looking = threading.Thread(target=look)
    looking.start()
    with ThreadPoolExecutor(30) as pool:
        statuses = {a.status for a in pool.map(lambda n: sign_in_by(server, f"user{n}", "wrong horse"), range(30))}
    over.set()
    looking.join()
    assert statuses == {401, 429}
    assert peak_kb(server) - before_kb < 120 * 1024  # one hash takes 64 MiB: two at a time would be more
    assert sorted(waits)[len(waits) // 2] < hashing / 2, (hashing, waits)


# ---- the audit log ----

def test_every_mutating_call_is_in_the_audit_log(server):
    _, act = server.browser("admin")
    server.tcp("POST", "/api/v1/tokens", {"name": "x"}, **act)
    server.tcp("POST", "/api/v1/tokens", {"name": "y"}, **{**act, "X_CSRF_Token": None})
    server.tcp("PUT", "/api/v1/users/x", {})
    server.unix("DELETE", "/api/v1/users/nemo")

    def lines():
        rows = server.unix("GET", "/api/v1/audit?limit=5").json["audit"]
        return [(r["user"], r["means"], r["address"], r["method"], r["path"], r["status"]) for r in rows]
    me = server.unix("GET", "/api/v1/session").json["user"]["name"]
    want = [(me, "unix", "unix", "DELETE", "/api/v1/users/nemo", 404),
            ("", "", "127.0.0.1", "PUT", "/api/v1/users/x", 401),
            ("admin", "session", "127.0.0.1", "POST", "/api/v1/tokens", 403),
            ("admin", "session", "127.0.0.1", "POST", "/api/v1/tokens", 201),
            ("admin", "", "127.0.0.1", "POST", "/api/v1/session", 204)]
    wait_for(lambda: lines() == want, f"the log has these lines, not {lines()}")
    page = server.unix("GET", "/api/v1/audit?limit=2").json
    rest = server.unix("GET", f"/api/v1/audit?limit=2&before={page['next']}").json
    assert [r["id"] for r in page["audit"] + rest["audit"]] == sorted([r["id"] for r in page["audit"] + rest["audit"]], reverse=True)
    assert server.unix("GET", "/api/v1/audit?limit=0").status == 400
    assert server.unix("GET", "/api/v1/audit?before=x").status == 400


def test_nobody_cannot_flood_the_audit_log(server):
    connection = http.client.HTTPConnection(server.host, timeout=20)
    for _ in range(300):
        connection.request("PUT", "/api/v1/users/x", "{}", {"Content-Type": "application/json"})
        assert connection.getresponse().read()
    connection.close()
    server.unix("DELETE", "/api/v1/users/nemo")
    lines = wait_for(lambda: [r for r in server.unix("GET", "/api/v1/audit?limit=1000").json["audit"] if r["path"].endswith("nemo")]
                     and server.unix("GET", "/api/v1/audit?limit=1000").json["audit"], "the last call is in the log")
    assert 100 <= len([r for r in lines if r["user"] == ""]) < 200


# ---- what the server itself may do ----

@needs_root
def test_the_server_is_never_root(server):
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    uids, gids = status["Uid"].split(), status["Gid"].split()
    owner = (server.dir / "server").stat()
    assert len(set(uids)) == 1 and int(uids[0]) == owner.st_uid != 0
    assert len(set(gids)) == 1 and int(gids[0]) == owner.st_gid != 0
    assert status["Groups"].split() == [] and status["NoNewPrivs"] == "1"
    assert {status[k] for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    server.stop()
    server.start()
    assert (server.dir / "server").stat().st_uid == owner.st_uid  # the same number every time


@needs_root
def test_the_server_takes_its_files_along_to_another_user(server):
    link = first_link(server)
    server.stop()
    secret = server.dir / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    (server.dir / "server/trap").symlink_to(secret)
    os.link(secret, server.dir / "server/trap2")
    settings = server.dir / "run/settings"
    settings.write_text(settings.read_text() + "server.user=nobody\n")
    server.start()
    assert (server.dir / "server").stat().st_uid == NOBODY
    assert (server.dir / "server/state.db").stat().st_uid == NOBODY
    assert secret.stat().st_uid == 0  # not what somebody linked there
    assert server.sign_in(link).status == 204


@needs_root
def test_a_user_that_is_root_is_refused(server):
    server.stop()
    settings = server.dir / "run/settings"
    settings.write_text(settings.read_text() + "server.user=root\n")
    out = subprocess.run([str(SERVER), "serve", str(server.dir), str(settings), "0"], capture_output=True, text=True, timeout=20)
    assert out.returncode != 0 and "anybody but root" in out.stderr


def test_a_state_file_of_a_newer_gpumgr_is_left_alone(server):
    server.stop()
    server.database("PRAGMA user_version=1000")
    before = (server.dir / "server/state.db").read_bytes()
    out = subprocess.run([str(SERVER), "serve", str(server.dir), str(server.dir / "run/settings"), "0"], capture_output=True,
                         text=True, timeout=20)
    assert out.returncode != 0 and "newer gpumgr" in out.stderr and len(out.stderr.splitlines()) == 1
    assert (server.dir / "server/state.db").read_bytes() == before


# ---- the commands ----

@needs_root
def test_web_gives_everybody_a_link_of_his_own(server):
    out = server.gpumgr("web", "--print", user=NOBODY)
    assert out.returncode == 0 and out.stdout.startswith(server.url + "/signin#")
    assert "nobody (member)" in out.stderr
    cookie = server.sign_in(out.stdout.strip().split("#")[1]).cookie()
    who = server.tcp("GET", "/api/v1/session", Cookie=cookie).json["user"]
    assert (who["name"], who["role"], who["unix"]) == ("nobody", "member", True)
    root = server.gpumgr("web")
    assert "root (admin)" in root.stderr
    assert not server.gpumgr("user", user=NOBODY).stdout


@needs_root
def test_web_opens_a_browser_without_showing_the_link_to_others(server, programs):
    place, browser = server.dir / "place", programs / "browser"
    place.mkdir(mode=0o700)
    os.chown(place, NOBODY, NOBODY)
    browser.write_text(f"#!/bin/sh\necho \"$@\" > {place}/words.new; mv {place}/words.new {place}/words\n")
    browser.chmod(0o755)
    out = server.gpumgr("web", user=NOBODY, env={"BROWSER": browser, "XDG_RUNTIME_DIR": place})
    assert out.returncode == 0 and "signin#" not in out.stdout and "nobody (member)" in out.stdout
    words = wait_for(lambda: (place / "words").exists() and (place / "words").read_text(), "the browser was started")
    page = Path(words.strip())
    assert "signin#" not in words and page.stat().st_mode & 0o7777 == 0o600 and page.stat().st_uid == NOBODY
    link = re.search(r"signin#([A-Za-z0-9_-]{43})", page.read_text()).group(1)
    assert server.sign_in(link).status == 204
    as_root = server.gpumgr("web", env={"BROWSER": browser, "XDG_RUNTIME_DIR": place})
    assert "signin#" in as_root.stdout  # root's browser is not started


def test_commands_without_a_server_say_so_in_one_sentence(server):
    server.stop()
    for words in (["web"], ["token"], ["user"], ["token", "new", "x"]):
        out = server.gpumgr(*words)
        assert out.returncode == 1 and out.stdout == ""
        assert out.stderr == f"gpumgr {words[0]}: no server is running here; `gpumgr up` starts one\n"


def test_tokens_and_accounts_by_command(server):
    token = server.gpumgr("token", "new", "for prometheus", "--for", "30d").stdout.strip()
    assert re.fullmatch(r"gpm_[A-Za-z0-9_-]{43}", token)
    assert "for prometheus" in server.gpumgr("token").stdout
    assert server.gpumgr("token", "revoke", "1").returncode == 0
    assert server.tcp("GET", "/api/v1/tokens", Authorization=f"Bearer {token}").status == 401
    assert server.gpumgr("user", "add", "alice.example", "--role", "admin").returncode == 0
    assert server.gpumgr("user", "password", "alice.example", stdin="correct horse\n").returncode == 0
    assert sign_in_by(server, "alice.example", "correct horse").status == 204
    link = server.gpumgr("user", "link", "alice.example").stdout.strip().split("#")[1]
    assert server.sign_in(link).status == 204
    assert server.gpumgr("user", "set", "alice.example", "--disable").returncode == 0
    assert sign_in_by(server, "alice.example", "correct horse").status == 401
    assert server.gpumgr("user", "remove", "alice.example").returncode == 0


@pytest.mark.parametrize("words", [
    ["token", "nwe", "x"], ["token", "new"], ["token", "new", "a", "b"], ["token", "new", "x", "--for", "1s"],
    ["token", "new", "x", "--role", "king"], ["token", "revoke", "nothing"], ["token", "list", "--role", "admin"],
    ["user", "set", "nemo", "--disable"], ["user", "add", "a b"], ["user", "add", "admin"], ["user", "remove", "admin"],
    ["user", "set", "admin", "--disable", "--enable"], ["user", "add", "x", "--uid", "no-such-user"], ["web", "now"],
])
def test_bad_words_are_one_sentence(server, words):
    before = server.unix("GET", "/api/v1/users").json["users"]
    out = server.gpumgr(*words)
    assert out.returncode == 2 and out.stdout == "" and len(out.stderr.splitlines()) == 1
    assert out.stderr.startswith(f"gpumgr {words[0]}: ")
    assert server.unix("GET", "/api/v1/users").json["users"] == before
    assert server.unix("GET", "/api/v1/tokens").json["tokens"] == []


# ---- killed at any moment ----

def test_no_change_without_its_line_in_the_audit_log(server):
    random.seed(7)
    made = 0
    for _ in range(10):
        killer = threading.Timer(random.uniform(0.002, 0.06), server.process.kill)  # the moment is meant to be any
        killer.start()
        while True:
            try:
                server.unix("PUT", f"/api/v1/groups/g{made}", {"members": ["node:a"]})
            except (OSError, http.client.HTTPException):
                break
            made += 1
        made += 1  # the one that was under way
        server.process.wait()
        server.start()
    groups = {g["name"] for g in server.unix("GET", "/api/v1/groups").json["groups"]}
    lines = {r["path"].rsplit("/", 1)[1]: r["status"] for r in server.unix("GET", "/api/v1/audit?limit=1000").json["audit"]}
    assert len(groups) > 10 and groups <= lines.keys()
    assert set(lines.values()) <= {0, 201}

def test_what_was_acknowledged_outlives_a_kill(server):
    random.seed(4)
    cookies, used = [], []
    for _ in range(12):
        pid_over = threading.Event()

        def end(seconds):
            time.sleep(seconds)  # the moment is meant to be any
            server.stop(kill=True)
            pid_over.set()
        killer = threading.Thread(target=end, args=(random.uniform(0.002, 0.08),))
        killer.start()
        while not pid_over.is_set():
            try:
                link = server.unix("POST", "/api/v1/links").json["url_path"].split("#")[1]
                answer = server.sign_in(link)
            except (OSError, http.client.HTTPException):
                break  # it was killed in the middle of it
            if answer.status == 204:
                cookies.append((server.host, answer.cookie()))
                used.append(link)
        killer.join()
        server.start()
    assert len(cookies) > 20
    for host, cookie in cookies[-60:]:  # an account has 64 sessions; the port is another one with each start here
        assert server.tcp("GET", "/api/v1/session", Cookie=cookie, Host=host).json["user"], "an acknowledged session is gone"
    for link in used[-5:]:
        assert server.sign_in(link).status == 401, "a used link came back"
    server.stop()
    assert server.database("PRAGMA integrity_check") == [("ok",)]


# ---- all of it ----

def test_up_shows_the_link_on_a_terminal():
    place = Path(tempfile.mkdtemp(prefix="gm-", dir="/dev/shm"))
    place.chmod(0o755)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(GPUMGR, ["gpumgr", "up", "--sim", "1", "--dir", str(place), "--listen", "127.0.0.1:0"], clean_env())
    shown = b""
    try:
        deadline = time.monotonic() + 20
        while b"signin#" not in shown or b"serving at" not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096)
        link = re.search(rb"(http://127\.0\.0\.1:\d+)/signin#([A-Za-z0-9_-]{43})", shown)
        assert link.group(2).decode() in (place / "server/signin-link").read_text()
        connection = http.client.HTTPConnection(link.group(1).decode().split("//")[1], timeout=20)
        assert Server.request(connection, "POST", "/api/v1/session", {"link": link.group(2).decode()}, {}).status == 204
        doctor = subprocess.run([str(GPUMGR), "doctor", "--dir", str(place)], capture_output=True, text=True, env=clean_env(), timeout=60)
        assert re.search(rf"^server +ok +answers at {link.group(1).decode()}; it knows you as \S+ \(admin\)$", doctor.stdout, re.M)
    finally:
        os.kill(pid, signal.SIGTERM)
        os.set_blocking(terminal, False)
        while os.waitpid(pid, os.WNOHANG)[0] == 0:  # its last words must not fill the terminal
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    os.read(terminal, 4096)
                except OSError:
                    time.sleep(0.05)
        os.close(terminal)
        shutil.rmtree(place, ignore_errors=True)


def test_two_servers_on_one_machine_are_two_sessions():
    """A browser sends every cookie of a host to every port of it."""
    with Server() as one, Server() as two:
        jar = "; ".join(s.sign_in(s.link()).cookie() for s in (one, two))
        assert len({c.split("=")[0] for c in jar.split("; ")}) == 2, "the second would replace the first"
        for s in (one, two):
            assert s.tcp("GET", "/api/v1/session", Cookie=jar).json["user"]
