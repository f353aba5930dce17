"""Services: jobs that stay up. Real processes that listen, fail, end and are killed; several Unix users; and kill -9 of whoever
looks after them."""

import http.client
import json
import os
import socket
import sys
import time

import pytest

from instance import kill
from job_box import ADA, BOB, api, ask, box, gpumgr, idle, job, queue, state, submit, verdicts  # noqa: F401
from simulator import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="jobs of several users need root")

# Answers with the number in DIR/status, and says in DIR/up that it does.
SERVER = """
import http.server, os, pathlib, sys
where = pathlib.Path(sys.argv[2])
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int((where / "status").read_text()))
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *a):
        pass
s = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer)
with (where / "up").open("a") as f:
    f.write(f"{os.getpid()} {sys.argv[3]}\\n")
print("serving", sys.argv[3], flush=True)
s.serve_forever()
"""
# A check may take a second: on a machine with much to do a shorter one would find healthy services unhealthy.
CHECKS = ("--health-interval", "1s", "--health-timeout", "1s", "--pause", "100ms")
QUICK = (*CHECKS, "--health-grace", "60s", "--health-failures", "5")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Served:
    """A directory that a server's answers are set in."""

    def __init__(self, where):
        self.where, self.port = where, free_port()
        for p in (where, where.parent, where.parent.parent):
            p.chmod(0o755)
        where.chmod(0o777)
        (where / "server.py").write_text(SERVER)
        self.answer(200)

    def answer(self, status):
        fresh = self.where / "status.new"
        fresh.write_text(str(status))
        fresh.rename(self.where / "status")

    def command(self, word="first", port=None):
        return (sys.executable, self.where / "server.py", port or self.port, self.where, word)

    def pids(self):
        """Of every server that ever listened, the oldest first: (pid, word)."""
        return [tuple(line.split()) for line in (self.where / "up").read_text().splitlines()] if (self.where / "up").exists() else []


@pytest.fixture
def served(tmp_path):
    return Served(tmp_path)


@pytest.fixture(autouse=True)
def no_services(box, idle):
    yield
    for s in services(box):
        gpumgr(box, "service", "remove", s["id"])
    wait_for(lambda: not services(box), "no service is left", 60)


def services(box):
    return ask(box, "service", "list", "--json")["services"]


def service(box, name):
    return ask(box, "service", "show", name, "--json")


def add(box, name, *words, user=None):
    got = gpumgr(box, "service", "add", name, "--json", *words, user=user)
    assert got.returncode == 0, got.stderr
    return json.loads(got.stdout)["id"]


def becomes(box, name, *states, seconds=60):
    try:
        return wait_for(lambda: (s := service(box, name))["state"] in states and s, f"service {name} is {states}", seconds)
    except AssertionError:
        raise AssertionError(f"not {states}: {service(box, name)}") from None


def start_web(box, served, *words, user=None, name="web"):
    add(box, name, *QUICK, "--health", f"http:{served.port}/", *words, "--", *served.command(), user=user)
    return becomes(box, name, "healthy")


def is_alive(pid):
    try:
        os.kill(int(pid), 0)
        return True
    except ProcessLookupError:
        return False


# ---- its life ----

def test_it_is_started_checked_and_shown(box, served):
    s = start_web(box, served, "--gpus", 1, user=ADA)
    assert (s["user"], s["uid"], s["revision"], s["restarts"], s["probe"]) == (str(ADA), ADA, 1, 0, "http")
    j = job(box, s["job"])
    assert j["state"] == "running" and j["parent"] == {"kind": "service", "id": s["id"]} and j["name"] == "web"
    assert len(j["gpu_indices"]) == 1
    wait_for(lambda: len(service(box, "web")["checks"]) >= 3, "it is checked again and again", 30)
    s = service(box, "web")
    assert s["checks"][-1]["ok"] and s["checks"][-1]["job"] == s["job"]
    got = gpumgr(box, "service")
    assert "web" in got.stdout and "healthy" in got.stdout
    got = gpumgr(box, "service", "show", s["id"])
    assert f"GET / at port {served.port}" in got.stdout and "++" in got.stdout, got.stdout
    got = gpumgr(box, "service", "logs", "web", user=ADA)
    assert "serving first" in got.stdout, got.stderr
    # Its GPU is held: a job of the same importance waits.
    other = submit(box, "--gpus", 2, "--", "true")
    assert job(box, other)["state"] == "waiting"


def test_a_storm_of_restarts_is_bounded(box, served):
    id = add(box, "storm", "--pause", "100ms", "--pause-most", "400ms", "--give-up", 4, "--", "sh", "-c", f"echo x >> {served.where}/runs; exit 3")
    s = becomes(box, "storm", "given up")
    assert s["restarts"] == 4 and "exit code 3" in s["text"] and s["job"] is None
    assert (served.where / "runs").read_text() == "x\n" * 5
    mine = [j for j in ask(box, "jobs", "--json", "--limit", 50)["jobs"] if j["parent"] == {"kind": "service", "id": id}]
    assert len(mine) == 5 and all(j["state"] == "failed" for j in mine)
    times = sorted(j["started"] for j in mine)
    assert all(b - a >= least for a, b, least in zip(times, times[1:], (0.1, 0.2, 0.4, 0.4))), times
    assert not queue(box)["waiting"]
    assert gpumgr(box, "service", "resume", "storm").returncode == 0
    s = becomes(box, "storm", "given up")
    assert s["restarts"] == 8 and (served.where / "runs").read_text() == "x\n" * 10


@pytest.mark.parametrize("policy, code, want", [("on-failure", 0, "ended"), ("never", 1, "ended"), ("on-failure", 1, "backing off"), ("always", 0, "backing off")])
def test_policies(box, policy, code, want):
    add(box, "once", "--restart", policy, "--pause", "10m", "--pause-most", "10m", "--", "sh", "-c", f"exit {code}")
    s = becomes(box, "once", want)
    assert f"exit code {code}" in s["text"]


def test_one_that_fails_its_checks_is_started_again(box, served):
    first = start_web(box, served)
    served.answer(500)
    wait_for(lambda: service(box, "web")["restarts"] >= 1, "it was found unhealthy", 60)
    assert "GET / answers 500" in service(box, "web")["text"]
    served.answer(200)
    s = wait_for(lambda: (s := becomes(box, "web", "healthy"))["job"] != first["job"] and s, "another run serves", 60)
    old = job(box, first["job"])
    assert old["state"] == "cancelled" and len(served.pids()) >= 2 and not is_alive(served.pids()[0][0])
    assert s["restarts"] >= 1


def test_a_check_by_command_and_by_port(box, served):
    flag = served.where / "well"
    flag.write_text("")
    add(box, "cmd", *QUICK, "--health", f"command:test -e {flag} && test $(id -u) = {ADA} && test -n \"$CUDA_VISIBLE_DEVICES\"", "--", "sleep", 1000, user=ADA)
    s = becomes(box, "cmd", "healthy")
    flag.unlink()
    wait_for(lambda: service(box, "cmd")["restarts"] >= 1, "its check failed", 60)
    assert "its check ended with exit code 1" in service(box, "cmd")["text"]
    assert service(box, "cmd")["job"] != s["job"] or service(box, "cmd")["job"] is None
    gpumgr(box, "service", "suspend", "cmd")
    add(box, "tcp", *QUICK, "--health", f"tcp:{served.port}", "--", *served.command(), user=ADA)
    becomes(box, "tcp", "healthy")


def test_somebody_elses_port_is_not_its_own(box, served):
    """What listens there must be the service's: otherwise anybody could make it look well."""
    add(box, "thief", "--health-interval", "1s", "--health-timeout", "1s", "--health-grace", "100ms", "--health-failures", 2, "--pause", "10m", "--pause-most", "10m", "--health", f"http:{served.port}/", "--", "sleep", 1000, user=ADA)
    becomes(box, "thief", "starting", "unhealthy", "backing off")
    with socket.create_server(("127.0.0.1", served.port)):
        s = becomes(box, "thief", "backing off")
    assert "listen" in s["text"], s["text"]


def test_suspend_resume_restart_remove(box, served):
    s = start_web(box, served, user=ADA)
    assert gpumgr(box, "service", "suspend", "web", user=ADA).returncode == 0
    becomes(box, "web", "suspended")
    wait_for(lambda: job(box, s["job"])["state"] == "cancelled", "its run has ended", 60)
    wait_for(lambda: verdicts(box) == ["free", "free"], "its GPU is free", 60)
    got = gpumgr(box, "service", "suspend", "web", user=ADA)
    assert got.returncode == 2 and got.stderr == "gpumgr service: service web: it is suspended already\n"
    assert gpumgr(box, "service", "resume", "web", user=ADA).returncode == 0
    again = becomes(box, "web", "healthy")
    assert again["job"] > s["job"] and again["restarts"] == 0
    assert gpumgr(box, "service", "restart", "web", user=ADA).returncode == 0
    third = wait_for(lambda: (x := service(box, "web"))["state"] == "healthy" and x["job"] != again["job"] and x, "another run serves", 60)
    assert third["restarts"] == 0
    assert gpumgr(box, "service", "remove", "web", user=ADA).returncode == 0
    wait_for(lambda: not services(box), "it is gone", 60)
    got = gpumgr(box, "service", "show", "web")
    assert got.returncode == 2 and got.stderr == "gpumgr service: there is no service web\n"
    wait_for(lambda: not is_alive(served.pids()[-1][0]), "nothing of it runs", 60)


def test_cancelling_its_job_suspends_it(box, served):
    s = start_web(box, served, user=ADA)
    assert gpumgr(box, "cancel", s["job"], user=ADA).returncode == 0
    s = becomes(box, "web", "suspended")
    assert "was cancelled; resume starts it again" in s["text"]


# ---- updates ----

def test_an_update_keeps_the_old_one_until_the_new_one_is_well(box, served):
    port = free_port()
    # Both answer alike: the old one is not ended for it.
    add(box, "web", *CHECKS, "--health-failures", "1000", "--health", f"http:{served.port}/", "--gpus", 1, "--", *served.command(), user=ADA)
    old = becomes(box, "web", "healthy")
    served.answer(503)  # the new one is not well yet
    got = gpumgr(box, "service", "update", "web", "--health", f"http:{port}/", "--", *served.command("second", port), user=ADA)
    assert got.returncode == 0, got.stderr
    s = wait_for(lambda: (s := service(box, "web"))["next_job"] and job(box, s["next_job"])["state"] == "running" and s, "both run", 60)
    assert s["job"] == old["job"] and (s["revision"], s["next_revision"]) == (1, 2)
    wait_for(lambda: served.pids()[-1][1] == "second", "the new one listens", 60)
    assert job(box, old["job"])["state"] == "running"
    got = gpumgr(box, "service", "update", "web", "--health", f"http:{free_port()}/", user=ADA)
    assert got.returncode == 2 and "an update to revision 2 is under way already" in got.stderr
    served.answer(200)
    s = wait_for(lambda: (x := service(box, "web"))["revision"] == 2 and x, "the new one serves", 60)
    assert s["job"] != old["job"] and s["text"] == "updated to revision 2"
    wait_for(lambda: job(box, old["job"])["state"] == "cancelled", "the old one has ended", 60)
    s = becomes(box, "web", "healthy")
    assert s["restarts"] == 0 and [v["number"] for v in s["revisions"]] == [2, 1]
    assert s["revisions"][0]["job"]["gpus"] == 1 and s["revisions"][0]["job"]["service"]["health"]["port"] == port


def test_a_bad_update_is_taken_back(box, served):
    old = start_web(box, served, "--gpus", 1, user=ADA)
    got = gpumgr(box, "service", "update", "web", "--health", f"http:{free_port()}/", "--", "sh", "-c", "echo cannot; exit 7", user=ADA)
    assert got.returncode == 0, got.stderr
    s = wait_for(lambda: (x := service(box, "web"))["text"] and x, "it was taken back", 60)
    assert "revision 2 was taken back, revision 1 stays" in s["text"] and "exit code 7" in s["text"]
    assert (s["state"], s["job"], s["revision"], s["next_revision"], s["restarts"]) == ("healthy", old["job"], 1, None, 0)
    # One that never gets well, neither.
    got = gpumgr(box, "service", "update", "web", "--health", f"http:{free_port()}/", "--health-grace", "200ms", "--health-failures", 2, "--", "sleep", 1000, user=ADA)
    assert got.returncode == 0, got.stderr
    s = wait_for(lambda: "revision 3 was taken back" in ((x := service(box, "web"))["text"] or "") and x, "it was taken back", 60)
    assert "does not listen" in s["text"] and s["job"] == old["job"]
    wait_for(lambda: len(queue(box)["running"]) == 1, "only the old one runs", 60)
    assert len(served.pids()) == 1 and is_alive(served.pids()[0][0])


def test_replace_ends_the_old_one_first_and_goes_back(box, served):
    old = start_web(box, served, "--gpus", 2, user=ADA)
    got = gpumgr(box, "service", "update", "web", "--priority", 1, user=ADA)
    assert got.returncode == 2 and "is the old one's; beside it the new one needs another, or --replace ends the old one first" in got.stderr
    got = gpumgr(box, "service", "update", "web", "--replace", "--", *served.command("second"), user=ADA)
    assert got.returncode == 0, got.stderr
    s = wait_for(lambda: (x := service(box, "web"))["text"] == "updated to revision 2" and x, "it was replaced", 60)
    assert s["job"] != old["job"] and [w for _, w in served.pids()] == ["first", "second"]
    got = gpumgr(box, "service", "update", "web", "--replace", "--", "sh", "-c", "exit 9", user=ADA)
    assert got.returncode == 0, got.stderr
    s = wait_for(lambda: "revision 3 was taken back, revision 2 stays" in ((x := service(box, "web"))["text"] or "") and x["state"] == "healthy" and x, "the old one is back", 60)
    assert [w for _, w in served.pids()] == ["first", "second", "second"] and "exit code 9" in s["text"]


def test_an_update_waits_for_gpus_of_its_own(box, served):
    old = start_web(box, served, "--gpus", 2, user=ADA)
    got = gpumgr(box, "service", "update", "web", "--health", f"http:{free_port()}/", user=ADA)
    assert got.returncode == 0, got.stderr
    s = wait_for(lambda: (x := service(box, "web"))["next_job"] and x, "the new one waits", 60)
    waiting = next(j for j in s["jobs"] if j["id"] == s["next_job"])
    assert waiting["state"] == "waiting" and "2 GPUs" in waiting["why"] and s["job"] == old["job"] and s["state"] == "healthy"
    assert gpumgr(box, "service", "suspend", "web", user=ADA).returncode == 0
    becomes(box, "web", "suspended")
    wait_for(lambda: not queue(box)["running"] and not queue(box)["waiting"], "both are gone", 60)


# ---- yielding ----

def test_it_yields_to_a_higher_priority_and_comes_back(box, served):
    s = start_web(box, served, "--gpus", 2, "--yield", user=ADA)
    same = submit(box, "--", "true", user=BOB)
    assert job(box, same)["state"] == "waiting" and service(box, "web")["state"] == "healthy"
    gpumgr(box, "cancel", same)
    flag = served.where / "go"
    urgent = submit(box, "--priority", 5, "--", "sh", "-c", f"while ! test -e {flag}; do sleep 0.1; done", user=BOB)
    state(box, urgent, "running")
    y = becomes(box, "web", "yielded")
    assert y["job"] == s["job"] and y["restarts"] == 0
    assert job(box, s["job"])["state"] == "waiting"
    flag.write_text("")
    state(box, urgent, "done")
    back = becomes(box, "web", "healthy")
    assert back["job"] == s["job"] and job(box, s["job"])["attempt"] == 2 and len(served.pids()) == 2
    assert [r["reason"] for r in job(box, s["job"])["runs"]] == ["gave its GPUs to another job", None]


def test_one_that_does_not_yield_stays(box, served):
    s = start_web(box, served, "--gpus", 2, user=ADA)
    urgent = submit(box, "--priority", 50, "--", "true", user=BOB)
    wait_for(lambda: job(box, urgent)["why"], "it is known why it waits", 30)
    assert job(box, urgent)["state"] == "waiting" and service(box, "web")["job"] == s["job"]


# ---- rights ----

def test_whose_it_is(box, served):
    start_web(box, served, "--env", "SECRET=x", user=ADA)
    assert "web" in gpumgr(box, "service", user=BOB).stdout
    for verb in ("suspend", "resume", "restart", "remove"):
        got = gpumgr(box, "service", verb, "web", user=BOB)
        assert got.returncode == 2 and got.stderr == f"gpumgr service: service web is {ADA}'s\n", (verb, got)
    got = gpumgr(box, "service", "update", "web", "--priority", 3, user=BOB)
    assert got.returncode == 2 and got.stderr == f"gpumgr service: service web is {ADA}'s\n"
    got = gpumgr(box, "service", "logs", "web", user=BOB)
    assert got.returncode != 0 and "serving" not in got.stdout
    assert "SECRET" not in gpumgr(box, "service", "show", "web", "--json", user=BOB).stdout
    # He may have one of the same name, and then it is his that is meant.
    other = Served(served.where.parent / "bob") if (served.where.parent / "bob").mkdir() is None else None
    add(box, "web", *QUICK, "--health", f"http:{other.port}/", "--", *other.command(), user=BOB)
    assert gpumgr(box, "service", "suspend", "web", user=BOB).returncode == 0
    states = {s["user"]: s["state"] for s in services(box)}
    assert states[str(BOB)] == "suspended" and states[str(ADA)] == "healthy"
    got = gpumgr(box, "service", "show", "web")
    assert got.returncode == 2 and "2 services are called web; give the number of one" in got.stderr
    mine = next(s["id"] for s in services(box) if s["user"] == str(ADA))
    assert gpumgr(box, "service", "suspend", mine).returncode == 0  # root may


def as_account(box, name):
    """Calls of an account's browser: method, path, body -> status, document."""
    assert api(box, f"users/{name}", "PUT", {"role": "member"})[0] in (200, 201)
    secret = api(box, "links", "POST", {"user": name})[1]["url_path"].split("#")[1]
    url = (box.dir / "run/server/listen").read_text().split()[0]
    fields = {"Content-Type": "application/json", "Origin": url}

    def call(method, path, body=None):
        c = http.client.HTTPConnection(url.split("//")[1], timeout=60)
        c.request(method, f"/api/v1/{path}", body and json.dumps(body), fields)
        answer = c.getresponse()
        text = answer.read()
        return answer, json.loads(text) if text else None

    fields["Cookie"] = call("POST", "session", {"link": secret})[0].getheader("Set-Cookie").split(";")[0]
    fields["X-CSRF-Token"] = call("GET", "session")[1]["csrf"]
    return lambda *words: (lambda got: (got[0].status, got[1]))(call(*words))


def test_a_job_that_needs_a_services_gpu_holds_up_nobody(box):
    """Nobody knows when it can start: what is free is for others, however short the like of the service was."""
    web = add(box, "web", "--", "sleep", "1000", user=ADA)
    becomes(box, web, "running", "healthy")
    large = submit(box, "--gpus", "2", "--", "true", user=ADA)
    for _ in range(2):  # with what is known of short ones, too
        small = submit(box, "--", "true", user=BOB)
        state(box, small, "done")
    told = job(box, large)
    assert (told["state"], told["starts_at"]) == ("waiting", None) and "1 kept by services" in told["why"], told
    assert gpumgr(box, "service", "suspend", web).returncode == 0
    state(box, large, "done")


def test_accounts_that_share_a_unix_user_have_services_of_their_own(box):
    users = box.dir / "users"
    users.write_text("ada nobody\nbob nobody\n")
    users.chmod(0o644)
    ada, bob = as_account(box, "ada"), as_account(box, "bob")
    job = {"name": "llm", "command": ["sleep", "1000"], "service": {}}
    status, mine = ada("POST", "jobs", job)
    assert status == 201
    status, got = bob("POST", "jobs", {**job, "command": ["sleep", "2000"], "service": {"update": "replace"}})
    assert status == 404 and "bob has no service llm" in got["error"]["message"], got
    assert service(box, mine["id"])["revision"] == 1 and service(box, mine["id"])["next_revision"] in (None, 0, 1)
    assert bob("POST", f"services/{mine['id']}/suspend")[0] == 403
    status, other = bob("POST", "jobs", job)
    assert status == 201 and other["id"] != mine["id"]
    assert bob("POST", "jobs", {**job, "service": {"update": "replace"}})[1]["id"] == other["id"]
    assert {s["account"]: s["id"] for s in services(box)} == {"ada": mine["id"], "bob": other["id"]}


# ---- kill -9 ----

def kill_program(box, name):
    """Ends one of the instance's programs and waits for the next."""
    pid = wait_for(lambda: box.of_program(name), f"a {name} runs", 60)[0]
    kill(pid)
    wait_for(lambda: (now := box.of_program(name)) and now != [pid], f"another {name} runs", 60)


@pytest.mark.parametrize("who", ["server", "node", "both"])
def test_it_outlives_whoever_looks_after_it(box, served, who):
    s = start_web(box, served, user=ADA)
    for name in ("server", "node") if who == "both" else (who,):
        kill_program(box, name)
    wait_for(lambda: gpumgr(box, "service", "show", "web").returncode == 0, "the server answers", 60)
    wait_for(lambda: service(box, "web")["checks"], "it is checked again", 60)
    after = becomes(box, "web", "healthy")
    assert (after["job"], after["restarts"], len(served.pids())) == (s["job"], 0, 1)
    served.answer(500)  # and what it fails is seen
    wait_for(lambda: service(box, "web")["restarts"] == 1, "it was found unhealthy", 60)
    served.answer(200)
    becomes(box, "web", "healthy")


def test_restarts_are_not_doubled_by_kills(box, served):
    """The server is killed again and again while a service restarts: never two runs at once, none forgotten."""
    lock = served.where / "lock"
    script = f"mkdir {lock} || {{ echo twice >> {served.where}/twice; exit 1; }}; echo x >> {served.where}/runs; sleep 0.3; rmdir {lock}; exit 1"
    id = add(box, "crashes", "--pause", "100ms", "--pause-most", "300ms", "--give-up", 0, "--", "sh", "-c", script, user=ADA)
    runs = served.where / "runs"
    for n in range(6):
        seen = len(runs.read_text()) if runs.exists() else 0
        wait_for(lambda: runs.exists() and len(runs.read_text()) > seen, "it runs again", 60)
        time.sleep(0.13 * n % 0.5)  # another moment each time, not a wait for anything
        kill_program(box, "server")
        wait_for(lambda: gpumgr(box, "service").returncode == 0, "it answers", 60)
    assert not (served.where / "twice").exists()
    alive = [j for j in queue(box)["running"] + queue(box)["waiting"] if j["parent"] == {"kind": "service", "id": id}]
    assert len(alive) <= 1


def test_what_was_acknowledged_is_kept(box, served):
    for verb, want in (("suspend", "suspended"), ("resume", "healthy")):
        if verb == "suspend":
            start_web(box, served, user=ADA)
        assert gpumgr(box, "service", verb, "web", user=ADA).returncode == 0
        kill_program(box, "server")
        wait_for(lambda: gpumgr(box, "service").returncode == 0, "it answers", 60)
        becomes(box, "web", want)
        if want == "suspended":
            wait_for(lambda: not queue(box)["running"], "its run has ended", 60)


# ---- bad input ----

def test_what_makes_no_sense_is_one_sentence_and_changes_nothing(box, served):
    taken = socket.create_server(("127.0.0.1", 0))
    rows = [
        (("add",), "a name is missing"),
        (("add", "17", "--", "sleep", "9"), "could be a service's number"),
        (("add", "a/b", "--", "sleep", "9"), "a service's has no slash"),
        (("add", "s", "--health", "command:", "--", "sleep", "9"), "service.health.command: it is empty"),
        (("add", "x"), "there is no command"),
        (("add", "x", "--health", "http:/healthz", "--", "sleep", "9"), "is not http:PORT/PATH, tcp:PORT or command:TEXT"),
        (("add", "x", "--health", "http:99999/", "--", "sleep", "9"), "nobody could listen there"),
        (("add", "x", "--health", "tcp:0", "--", "sleep", "9"), "nobody could listen there"),
        (("add", "x", "--health", "tcp:80", "--health-timeout", "20s", "--", "sleep", "9"), "longer than the interval"),
        (("add", "x", "--health-interval", "5s", "--", "sleep", "9"), "it says neither http, tcp nor command"),
        (("add", "x", "--restart", "often", "--", "sleep", "9"), "neither \"always\", \"on-failure\" nor \"never\""),
        (("add", "x", "--give-up", "no", "--", "sleep", "9"), "--give-up: \"no\" is not a whole number"),
        (("add", "x", "--time-limit", "1h", "--", "sleep", "9"), "does not go with service"),
        (("add", "x", "--gpus", "3", "--", "sleep", "9"), "3 are wanted"),
        (("add", "x", "--health", f"tcp:{taken.getsockname()[1]}", "--", "sleep", "9"), "is taken already: somebody listens there"),
        (("update", "x", "--priority", "1"), "there is no service x"),
        (("suspend",), "which service?"),
        (("suspend", "x"), "there is no service x"),
        (("suspend", "x", "y"), "what is \"y\"?"),
        (("frobnicate", "x"), "what is \"frobnicate\"?"),
    ]
    for words, want in rows:
        got = gpumgr(box, "service", *words)
        assert got.returncode == 2 and want in got.stderr and got.stderr.count("\n") == 1, (words, got.stderr)
    taken.close()
    file = served.where / "job.json"
    file.write_text(json.dumps({"command": ["sleep", "9"], "service": {}}))
    got = gpumgr(box, "run", "--file", file)
    assert got.returncode == 2 and "`gpumgr service add` takes one that stays up" in got.stderr
    file.write_text(json.dumps({"command": ["sleep", "9"], "service": {}, "repeat": {"cron": "0 3 * * *"}}))
    got = gpumgr(box, "submit", "--file", file)
    assert got.returncode == 2 and "service: does not go with repeat" in got.stderr
    assert not services(box) and not queue(box)["waiting"]
    add(box, "x", "--health", f"tcp:{served.port}", "--", "sleep", 1000)
    got = gpumgr(box, "service", "add", "x", "--", "sleep", 9)
    assert got.returncode == 2 and "there is a service x already" in got.stderr
    got = gpumgr(box, "service", "add", "y", "--health", f"tcp:{served.port}", "--", "sleep", 9)
    assert got.returncode == 2 and f"{served.port} is that of service x" in got.stderr
    assert len(services(box)) == 1
