"""`gpumgr simulate`: its figures beside those of a queue written here, the same bytes every time, its own history, and what is
wrong with a file in one sentence."""

import csv
import heapq
import io
import json
import math
import random
import subprocess
import time

import pytest

from instance import GPUMGR, clean_env
from job_node import RUNNING, JobNode, job_record
from server import Server
from simulator import wait_for

POLICIES = ["fair", "fifo", "backfill", "edf", "sjf"]


def simulate(*args, env=None):
    return subprocess.run([str(GPUMGR), "simulate", *map(str, args)], capture_output=True, text=True, env=env or clean_env(), timeout=300)


def figures(*args):
    out = simulate(*args, "--json")
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


def trace_text(rows):
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["user", "gpus", "submit_min", "duration_min", "deadline_min"])
    writer.writerows(rows)
    return out.getvalue()


def random_rows(seed, count):
    r = random.Random(seed)
    for _ in range(count):
        minutes = r.randint(1, 60)
        yield r.choice(["ada", "bob", "cyd"]), r.choice([1, 1, 1, 2, 4]), r.randint(0, 500), minutes, minutes + r.choice([0, 5, 60])


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(trace_text(random_rows(7, 300)))
    return path


class Fifo:
    """First come, first served; a job has GPUs of one machine, the one with the fewest to spare; nobody goes past the first."""

    def __init__(self, rows, nodes, each):
        jobs = sorted(enumerate(rows), key=lambda x: (x[1][2], x[0]))
        first = jobs[0][1][2]
        self.jobs = [(int(s) - first, g, d, dl) for _, (_, g, s, d, dl) in jobs]
        free, waiting, ends, coming, now = [each] * nodes, [], [], list(self.jobs), 0
        self.waits, self.ends = [], []
        while coming or ends:
            now = min(([coming[0][0]] if coming else []) + ([ends[0][0]] if ends else []))
            while ends and ends[0][0] <= now:
                _, node, gpus = heapq.heappop(ends)
                free[node] += gpus
            while coming and coming[0][0] <= now:
                waiting.append(coming.pop(0))
            while waiting:
                came, gpus, minutes, deadline = waiting[0]
                room = [(f, n) for n, f in enumerate(free) if f >= gpus]
                if not room:
                    break
                node = min(room)[1]
                free[node] -= gpus
                heapq.heappush(ends, (now + minutes, node, gpus))
                self.waits.append(now - came)
                self.ends.append((now + minutes, came, deadline))
                waiting.pop(0)
        assert not waiting

    def rank(self, part):
        return sorted(self.waits)[max(math.ceil(part * len(self.waits)) - 1, 0)] * 60


@pytest.mark.parametrize("seed", range(5))
def test_fifo_is_what_a_queue_written_here_says(tmp_path, seed):
    path = tmp_path / "jobs.csv"
    rows = list(random_rows(seed, 250))
    path.write_text(trace_text(rows))
    mine = Fifo(rows, 3, 4)
    theirs = figures("--trace", path, "--nodes", 3, "--gpus-per-node", 4, "--policy", "fifo")
    got, = theirs["policies"]
    makespan = max(e for e, _, _ in mine.ends)
    assert theirs["jobs"] == 250 and max(mine.waits) > 0
    assert got["wait_s"] == pytest.approx({"mean": sum(mine.waits) * 60 / 250, "median": mine.rank(0.5), "p90": mine.rank(0.9),
                                           "p99": mine.rank(0.99), "max": max(mine.waits) * 60})
    assert got["makespan_s"] == makespan * 60
    assert got["turnaround_s_mean"] == pytest.approx(sum(e - c for e, c, _ in mine.ends) * 60 / 250)
    assert got["utilisation"] == pytest.approx(sum(j[1] * j[2] for j in mine.jobs) / makespan / 12)
    assert (got["deadlines"], got["deadlines_kept"]) == (250, sum(e - c <= d for e, c, d in mine.ends))
    assert sum(got["busy"]) * theirs["point_s"] == pytest.approx(sum(j[1] * j[2] for j in mine.jobs) * 60, rel=1e-3)
    assert sum(got["waiting"]) * theirs["point_s"] == pytest.approx(sum(mine.waits) * 60, rel=1e-3)


def test_policies_are_side_by_side_and_the_same_to_the_byte(trace):
    args = ("--trace", trace, "--nodes", 2, "--gpus-per-node", 4)
    for more in ((), ("--json",), ("--times", "known")):
        first, second = simulate(*args, *more), simulate(*args, *more)
        assert first.returncode == 0, first.stderr
        assert first.stdout == second.stdout and first.stdout
    by = {p["policy"]: p for p in figures(*args, "--times", "known")["policies"]}
    assert list(by) == POLICIES
    assert by["backfill"]["wait_s"]["mean"] <= by["fifo"]["wait_s"]["mean"]
    assert by["sjf"]["wait_s"]["median"] <= by["backfill"]["wait_s"]["median"]
    assert by["edf"]["deadlines_kept"] > by["fifo"]["deadlines_kept"]
    assert {len(p["waiting"]) for p in by.values()} == {96}


def test_waits_have_a_bound_that_can_be_set(tmp_path):
    """Ada had both GPUs for two days; then others ask for more than there is for a week, with deadlines, and she has one job."""
    rows = ["ada,2,0,2880,0", "ada,1,2879,60,0"] + [f"u{i % 4},1,{2879 + 25 * i},60,240" for i in range(400)]
    path = tmp_path / "jobs.csv"
    path.write_text("user,gpus,submit_min,duration_min,deadline_min\n" + "\n".join(rows) + "\n")
    longest = {}
    for hours in (0, 6):
        got, = figures("--trace", path, "--nodes", 1, "--gpus-per-node", 2, "--policy", "fair", "--times", "known", "--jobs.fair_wait_h", hours)["policies"]
        longest[hours] = got["wait_s"]["max"] / 3600
    assert longest[6] < 0.6 * longest[0]


def test_it_fits_a_terminal_of_80_columns(trace):
    for lang, glyph in (("C.UTF-8", "█"), ("C", "#")):
        out = simulate("--trace", trace, "--nodes", 2, "--gpus-per-node", 4, env={**clean_env(), "LC_ALL": lang}).stdout
        assert glyph in out and all(len(line) <= 80 for line in out.splitlines())
        head, = [line for line in out.splitlines() if line.split() == POLICIES]
        assert "jobs that wait" in out and "GPUs in use" in out and "deadlines kept" in out
    narrow = simulate("--trace", trace, "--nodes", 2, "--gpus-per-node", 4, env={**clean_env(), "COLUMNS": "46"}).stdout
    assert all(len(line) <= 80 for line in narrow.splitlines()) and "fair" in narrow


GOOD = "user,gpus,submit_min,duration_min\nada,1,0,5\n"
WRONG = [
    ((), "ada,1,0,5\n", "line 1: there is no column user"),
    ((), GOOD + "ada,two,0,5\n", 'line 3, column gpus: "two" is no number'),
    ((), GOOD + "ada,1,0\n", "line 3, column duration_min: the line ends before it"),
    ((), "", "line 1: it is empty; it must begin with the names of its columns"),
    (("--policy", "fare"), GOOD, '--policy: there is no "fare"; did you mean "fair"?; there are fair, fifo, backfill, edf, sjf'),
    (("--policy", "sjf", "--policy", "sjf"), GOOD, "--policy: sjf is given twice"),
    (("--times", "guessed"), GOOD, '--times: "guessed" is none; there are past and known'),
    (("--nodes", "2.5"), GOOD, "--nodes, --gpus-per-node: must be whole numbers"),
    ((), "user,gpus,submit_min,duration_min\nada,9,0,5\n", "every job is left out: 1 for more GPUs than a machine has"),
    ((), "user,gpus,submit_min,duration_min,share_gib\nada,1,0,5,10\n", "jobs ask for memory of GPUs: say with --gpu-memory how much each has"),
    ((), "user,gpus,submit_min,duration_min,job,after\nada,1,0,5,1,2\n", 'line 2, column after: there is no job "2"'),
    (("--gpu-memory", "much"), GOOD, '--gpu-memory: "much"'),
    (("--jobs.user_gpus", "-1"), GOOD, "jobs.user_gpus"),
    (("--reserve", "ada 2"), GOOD, '--reserve: "ada 2" is not USER GPUS FROM FOR [EVERY], as in "ada 2 9h 4h 1d"'),
    (("--reserve", "ada 0 9h 4h"), GOOD, '--reserve: "0" is no number of GPUs, 1 to 64'),
    (("--reserve", "ada 9 9h 4h"), GOOD, "--reserve: 9 GPUs are asked for, and no machine has more than 8 that are not reserved then"),
    (("--reserve", "ada 1 9h 4h 2h"), GOOD, "--reserve: it comes again before it is over"),
    (("--reserve", "adda 1 9h 4h"), GOOD, '--reserve: no job is of a user "adda"; did you mean "ada"?'),
]


@pytest.mark.parametrize("flags, text, sentence", WRONG, ids=[w[2][:40] for w in WRONG])
def test_what_is_wrong_is_said_in_one_sentence(tmp_path, flags, text, sentence):
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    machines = () if "--nodes" in flags else ("--nodes", 1)
    out = simulate("--trace", path, *machines, "--gpus-per-node", 8, *flags)
    assert out.returncode == 2 and out.stdout == ""
    assert sentence in out.stderr and out.stderr.count("\n") == 1


def test_a_trace_needs_machines_and_a_file(tmp_path):
    out = simulate("--trace", tmp_path / "none.csv", "--nodes", 1, "--gpus-per-node", 1)
    assert out.returncode != 0 and "none.csv" in out.stderr and out.stderr.count("\n") == 1
    out = simulate("--trace", tmp_path / "none.csv")
    assert out.returncode == 2 and "needs --nodes and --gpus-per-node" in out.stderr


def test_the_history_of_this_machine():
    with Server(user=None) as server, JobNode(server.dir / "run/server/link.sock") as node:
        out = simulate("--dir", server.dir)
        assert out.returncode == 2 and "no job has run here yet" in out.stderr
        first = node.submit(*[job_record(("exit", "0"), name="short") for _ in range(6)])["first"]
        array = node.submit(job_record(("exit", "0"), name="many", array="1-5%2"))["first"]
        wait_for(lambda: len([k for k in node.stored if k[0] >= first]) == 11, "all are over", 60)
        wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{array}").json["state"] == "done", "the array is", 60)
        got = figures("--dir", server.dir, "--policy", "fair", "--policy", "fifo")
        assert (got["jobs"], got["nodes"], got["gpus_per_node"], got["users"]) == (11, 1, 4, 1)
        assert [p["policy"] for p in got["policies"]] == ["fair", "fifo"] and got["policy_set"] == "fair"
        assert (got["reservations"], got["reservations_not_played"]) == (0, 0)
        made = server.unix("POST", "/api/v1/reservations", {"from": int(time.time()) + 3600, "for_s": 3600, "user": "bob"})
        assert made.status == 201, made.body
        assert figures("--dir", server.dir)["reservations"] == 1
        assert "\n1 reservation of GPUs\n" in simulate("--dir", server.dir).stdout
        other = figures("--dir", server.dir, "--nodes", 2, "--gpus-per-node", 8, "--policy", "sjf")
        assert (other["gpus_per_node"], other["reservations"], other["reservations_not_played"]) == (8, 0, 1)
        assert "not played: 1 reservation, of GPUs that are not here\n" in simulate("--dir", server.dir, "--nodes", 2).stdout


def test_nothing_of_a_history_is_left_out_in_silence():
    """One runs, one waits, one was cancelled before it ran, one has a share: each is played, or counted."""
    with Server(user=None) as server, JobNode(server.dir / "run/server/link.sock", gpus=1) as node:
        share = node.submit(job_record(("exit", "0"), share=20 << 30))["first"]
        wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{share}").json["state"] == "done", "the share is over", 60)
        hold = node.submit(job_record(("hold",)))["first"]
        wait_for(lambda: running(node) == [hold], "the GPU is taken")
        gone, _ = [node.submit(job_record(("exit", "0")))["first"] for _ in range(2)]
        assert server.unix("DELETE", f"/api/v1/jobs/{gone}").status in (200, 202, 204)
        wait_for(lambda: server.unix("GET", f"/api/v1/jobs/{gone}").json["state"] == "cancelled", "one is cancelled", 60)
        got = figures("--dir", server.dir)
        assert (got["jobs"], got["shares"], got["running"], got["left_out"]) == (2, 1, 1, 2)
        assert (got["left_out_by"]["never_ran"], got["left_out_by"]["waiting"]) == (1, 1)
        text = simulate("--dir", server.dir).stdout
        for line in ("1 of them with a part of a GPU's memory", "left out: 1 job that never ran", "left out: 1 job that still wait",
                     "not over yet: 1 job, played as if they ended now"):
            assert line in text, text


def test_limits_shares_and_reservations_of_a_file(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("user,gpus,submit_min,duration_min,share_gib,colour\n" + "".join(f"{u},1,0,60,{s},red\n" for u in ("ada", "bob") for s in (40, 40, "", "")))
    args = ("--trace", path, "--nodes", 1, "--gpus-per-node", 4, "--gpu-memory", "80GiB", "--policy", "fifo")

    def longest(*more):
        got = figures(*args, *more)
        return got["policies"][0]["wait_s"]["max"], got

    whole = simulate(*args[:6], "--gpu-memory", "40GiB", "--policy", "fifo", "--json")
    assert json.loads(whole.stdout)["policies"][0]["wait_s"]["max"] == 3600, "a share of a smaller GPU is all of it"
    plain, got = longest()
    assert plain == 3600 and (got["shares"], got["columns_unused"]) == (4, "colour"), "six GPUs' worth for four"
    limited, got = longest("--jobs.user_gpus", 1)
    assert limited == 7200 and got["user_gpus"] == 1, "a share and a share, then one, then the other"
    hours, got = longest("--jobs.user_gpu_hours", 1)
    assert hours > 6 * 86400 and got["user_gpu_hours"] == 1, "who had his hours waits for a week"
    given_back, got = longest("--reserve", "ada 4 1h 2h")
    assert got["reservations"] == 1 and given_back == 75 * 60, "she has nothing to do then: after a quarter of an hour it is bob's"
    kept, got = longest("--reserve", "ada 4 1h 2h", "--reserve.unused_min", 0)
    assert kept == 3 * 3600, "his wait for her window to end"
    _, got = longest("--reserve", "ada 4 30m 30m 1h", "--reserve.unused_min", 0)
    assert got["policies"][0]["never_begin"] == 4, "an hour's job never fits between half an hour's windows"
    out = simulate(*args, "--reserve", "ada 4 30m 30m 1h", "--reserve.unused_min", 0).stdout
    assert "\njobs that never begin           4\n" in out, out
    out = simulate(*args, "--jobs.user_gpus", 1).stdout
    assert "columns that nobody reads: colour\n" in out and "a user has 1 GPU at once at most (jobs.user_gpus)\n" in out


def test_followers_of_a_file(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("user,gpus,submit_min,duration_min,job,after\na,1,0,60,prepare,\na,1,0,60,train,prepare\na,1,0,60,report,train;prepare\na,9,0,1,big,\na,1,0,1,then,big\n")
    got = figures("--trace", path, "--nodes", 1, "--gpus-per-node", 4, "--policy", "fair")
    assert got["policies"][0]["makespan_s"] == 3 * 3600 and got["policies"][0]["wait_s"]["max"] == 0, "waiting for another is no wait for GPUs"
    assert (got["jobs"], got["left_out"], got["left_out_by"]["gpus"], got["left_out_by"]["after"]) == (3, 2, 1, 1)


def running(node):
    with node.books.lock:
        return sorted(k[0] for k, r in node.books.runs.items() if r["state"] == RUNNING)


@pytest.mark.parametrize("policy, who", [("fair", "late"), ("fifo", "early"), ("edf", "late")])
def test_a_policy_can_be_switched_on(policy, who):
    """Two wait for the only GPU: an early one, and a late one with a deadline, which comes first but where nobody looks at it."""
    with Server(jobs__policy=policy) as server, JobNode(server.dir / "run/server/link.sock", gpus=1) as node:
        hold = node.submit(job_record(("hold",)))["first"]
        wait_for(lambda: running(node) == [hold], "the GPU is taken")
        early = node.submit(job_record(("hold",)))["first"]
        late = node.submit(job_record(("hold",), name="late", limit_ns=3600 * 10**9, finish_by_ns=time.time_ns() + 4000 * 10**9))["first"]
        wait_for(lambda: len(server.unix("GET", "/api/v1/queue").json["waiting"]) == 2, "two wait")
        node.finish((hold, 0, 1), 0)
        wait_for(lambda: running(node) == [{"early": early, "late": late}[who]], f"{who} runs")
