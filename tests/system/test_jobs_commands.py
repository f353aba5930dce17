"""Jobs by the commands that people type: the real program, simulated GPUs, several Unix users, and kills."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pytest

from instance import GPUMGR, Instance, clean_env, kill
from job_box import ADA, BOB, NO_ENGINES, ask, box, gpumgr, idle, job, queue, spawn, state, submit, verdicts
from simulator import Simulator, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="jobs of several users need root")


# ---- running ----

def test_a_job_runs_as_its_user_where_he_stood(box, tmp_path_factory):
    place = tmp_path_factory.mktemp("ada")
    for p in (place, place.parent, place.parent.parent):
        p.chmod(0o755)
    os.chown(place, ADA, ADA)
    script = "id -u; id -g; pwd; umask; echo $WORD; echo $SET; echo $CUDA_VISIBLE_DEVICES; touch mine; cat"
    got = gpumgr(box, "run", "--env", "SET=b c", "--", "sh", "-c", script, user=ADA, cwd=place, umask=0o027,
                 env=clean_env(WORD="of ada's", PATH="/usr/bin:/bin"))
    assert got.returncode == 0, got.stderr
    lines = got.stdout.splitlines()
    assert lines[:6] == [str(ADA), str(ADA), str(place), "0027", "of ada's", "b c"]
    assert re.fullmatch(r"GPU-[0-9a-f-]{36}", lines[6])
    assert (place / "mine").stat().st_uid == ADA and (place / "mine").stat().st_mode & 0o777 == 0o640


def test_output_and_exit_code_are_passed_on(box):
    got = gpumgr(box, "run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert got.returncode == 3 and got.stdout == "out\nerr\n"
    assert re.search(r"^job \d+: failed \(exit code 3\)", got.stderr, re.M), got.stderr
    got = gpumgr(box, "run", "--quiet", "--", "sh", "-c", "kill -9 $$")
    assert got.returncode == 128 + 9 and got.stdout == "" and got.stderr == ""


def test_a_program_that_is_not_there(box):
    got = gpumgr(box, "run", "--", "/nowhere/at-all", "x")
    assert got.returncode in (125, 127) and "/nowhere/at-all" in got.stderr + got.stdout


def test_all_of_its_gpus_and_no_others(box):
    got = gpumgr(box, "run", "--quiet", "--gpus", 2, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES")
    cuda, nvidia = got.stdout.split()
    uuids = {g["uuid"] for g in queue(box)["gpus"]}
    assert set(cuda.split(",")) == uuids == set(nvidia.split(","))
    got = gpumgr(box, "run", "--quiet", "--gpu", 1, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert got.stdout.strip() == next(g["uuid"] for g in queue(box)["gpus"] if g["index"] == 1)


def test_large_output_comes_whole_and_in_order(box):
    got = gpumgr(box, "run", "--quiet", "--", "seq", 1, 300000)
    assert got.stdout == "".join(f"{i}\n" for i in range(1, 300001))


def test_of_what_is_gone_from_a_log_a_line_tells(box):
    number = submit(box, "--", "sh", "-c", "echo first; head -c 80000000 /dev/zero | tr '\\0' '\\n'; echo last")
    assert gpumgr(box, "wait", number).returncode == 0
    for words in ([], ["--attempt", 1], ["-f"]):
        text = gpumgr(box, "logs", number, *words).stdout
        assert text.startswith("first\n") and text.endswith("last\n") and len(text) < 66 << 20
        assert re.findall(r"^\[gpumgr: \d+ MiB of the log are not kept here: .*\]$", text, re.M) != [], words


def test_to_follow_what_is_over_is_to_read_it(box):
    number = submit(box, "--", "sh", "-c", "echo first; echo last")
    assert gpumgr(box, "wait", number).returncode == 0
    begin = time.monotonic()
    assert [gpumgr(box, "logs", "-f", number).stdout for _ in range(3)] == ["first\nlast\n"] * 3
    assert time.monotonic() - begin < 12  # nobody waits for more


def test_words_behind_the_dashes_are_the_commands(box):
    got = gpumgr(box, "run", "--quiet", "--", "printf", "%s|", "--gpus", "9", "a b", "", "--", "-f", "*")
    assert got.stdout == "--gpus|9|a b||--|-f|*|"


# ---- waiting ----

def test_waiting_says_why_and_starts_by_itself(box):
    holder = submit(box, "--gpus", 2, "--time-limit", "1h", "--name", "holder", "--", "sleep", 1000, user=BOB)
    state(box, holder, "running")
    p = spawn(box, "run", "--gpus", 1, "--name", "later", "--", "echo", "my turn", user=ADA)
    line = p.stderr.readline()
    number = int(re.match(r"job (\d+) waits", line)[1])
    assert "GPU" in line and re.search(r"starts about|in \d+", line), line
    shown = gpumgr(box, "queue").stdout
    assert re.search(rf"^ *1 +{number} ", shown, re.M) and "holder" in shown and "2 with jobs. 1 job waits" in shown, shown
    assert job(box, number)["place"] == 1
    assert gpumgr(box, "cancel", holder).returncode == 0
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0 and out == "my turn\n"
    assert err.count("waits") <= 2, err  # a line a change, not a line a second


def test_a_line_that_is_kept_up_to_date_on_a_terminal(box):
    holder = submit(box, "--gpus", 2, "--", "sleep", 1000)
    state(box, holder, "running")
    master, slave = pty.openpty()
    p = spawn(box, "run", "--", "true", stderr=slave, stdout=slave, stdin=slave)
    os.close(slave)
    text = read_until(master, "waits")
    assert "\r" in text and "\x1b[K" in text
    gpumgr(box, "cancel", holder)
    text += read_until(master, None)
    assert p.wait(30) == 0
    assert max(map(len, re.split(r"[\r\n]+", re.sub(r"\x1b\[K", "", text)))) <= 80


def read_until(fd, word, timeout=30):
    """What a terminal shows, until it shows a word, or is closed."""
    text, end = "", time.monotonic() + timeout
    while time.monotonic() < end:
        if word and word in text:
            return text
        if not select.select([fd], [], [], 0.2)[0]:
            continue
        try:
            part = os.read(fd, 65536)
        except OSError:
            part = b""
        if not part:
            assert word is None, text
            return text
        text += part.decode(errors="replace")
    raise AssertionError(f"{word!r} is not in {text!r}")


def test_a_dry_run_changes_nothing(box):
    before = len(ask(box, "jobs", "--json", "--limit", 1000)["jobs"])
    got = gpumgr(box, "run", "--dry-run", "--gpus", 2, "--name", "plan", "--", "true")
    assert got.returncode == 0 and re.match(r"plan \(2 GPUs\): would start now on GPU 0,1 on ", got.stdout), got.stdout
    assert json.loads(gpumgr(box, "submit", "--dry-run", "--json", "--", "true").stdout)["dry_run"] is True
    assert "plan (6 runs, each 1 GPU): the first would start now" in gpumgr(box, "run", "--dry-run", "--sweep", "a=1,2,3", "--sweep", "b=1,2", "--name", "plan", "--", "true").stdout
    assert "would miss its deadline" in gpumgr(box, "run", "--dry-run", "--deadline", "10m", "--time-limit", "1h", "--", "true").stdout
    assert "deadline" not in gpumgr(box, "run", "--dry-run", "--deadline", "2h", "--time-limit", "1h", "--", "true").stdout
    assert len(ask(box, "jobs", "--json", "--limit", 1000)["jobs"]) == before


# ---- signals ----

TRAPS = "trap 'echo INT; exit 7' INT; trap 'echo TERM; exit 8' TERM; trap 'echo USR1; exit 9' USR1; echo up; while :; do sleep 0.05; done"


@pytest.mark.parametrize("sent, code, words", [(signal.SIGINT, 7, "asked to end (INT)"), (signal.SIGTERM, 8, "asked to end (TERM)"), (signal.SIGUSR1, 9, "")])
def test_a_signal_is_passed_on_as_it_is(box, sent, code, words):
    p = spawn(box, "run", "--", "sh", "-c", TRAPS)
    assert p.stdout.readline() == "up\n"
    p.send_signal(sent)
    out, err = p.communicate(timeout=30)
    assert p.returncode == code and out.endswith(sent.name[3:] + "\n") and words in err  # its children heard it, too


def test_a_signal_that_means_nothing_to_one_that_waits(box):
    holder = submit(box, "--gpus", 2, "--", "sleep", 1000)
    state(box, holder, "running")
    p = spawn(box, "run", "--", "true")
    p.stderr.readline()
    p.send_signal(signal.SIGUSR2)
    while "USR2 is not passed on" not in p.stderr.readline():
        pass
    gpumgr(box, "cancel", holder)
    assert p.wait(30) == 0


def test_the_second_cancels_what_does_not_listen(box):
    p = spawn(box, "run", "--", "sh", "-c", "trap '' INT TERM; echo up; while :; do sleep 0.05; done")
    assert p.stdout.readline() == "up\n"
    p.send_signal(signal.SIGINT)
    while "asked to end" not in p.stderr.readline():
        pass
    p.send_signal(signal.SIGINT)
    while "cancelled" not in p.stderr.readline():
        pass
    assert p.wait(60) == 128 + 9


def test_an_interrupt_while_it_waits_takes_it_out_of_the_queue(box):
    holder = submit(box, "--gpus", 2, "--", "sleep", 1000)
    state(box, holder, "running")
    p = spawn(box, "run", "--", "true")
    number = int(re.match(r"job (\d+) waits", p.stderr.readline())[1])
    p.send_signal(signal.SIGINT)
    assert p.wait(30) == 130
    assert job(box, number)["state"] == "cancelled"


def test_ctrl_backslash_leaves_it_running(box):
    p = spawn(box, "run", "--", "sh", "-c", "echo up; sleep 1; echo later")
    assert p.stdout.readline() == "up\n"
    p.send_signal(signal.SIGQUIT)
    err = p.communicate(timeout=30)[1]
    assert p.returncode == 0
    number = int(re.search(r"job (\d+) goes on", err)[1])
    assert gpumgr(box, "logs", "-f", number).stdout == "up\nlater\n"
    assert gpumgr(box, "wait", number).returncode == 0


def test_a_closed_terminal_leaves_it_running(box):
    p = spawn(box, "run", "--", "sh", "-c", "echo up; sleep 1; echo later")
    assert p.stdout.readline() == "up\n"
    number = queue(box)["running"][0]["id"]
    p.kill()
    p.communicate()
    assert gpumgr(box, "wait", "--quiet", number).returncode == 0
    assert gpumgr(box, "logs", number).stdout == "up\nlater\n"


# ---- a terminal of its own ----

def test_a_terminal(box):
    """Keys go there, what it shows comes here, it knows the window, and ours is as it was afterwards."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 111, 0, 0))
    before = termios.tcgetattr(slave)
    script = "echo ready; read word; stty size; echo got $word; tty; read more; exit 4"
    p = spawn(box, "run", "--pty", "--", "sh", "-c", script, user=ADA, stdin=slave, stdout=slave, stderr=slave)
    read_until(master, "ready")
    wait_for(lambda: not termios.tcgetattr(slave)[3] & termios.ICANON, "our terminal is raw")
    os.write(master, b"hello\r")
    text = read_until(master, "/dev/pts")
    assert "33 111" in text and "got hello" in text, text
    os.write(master, b"\r")
    assert p.wait(30) == 4
    assert termios.tcgetattr(slave)[3] == before[3]
    os.close(slave)
    os.close(master)


def test_leaving_a_terminal(box):
    master, slave = pty.openpty()
    p = spawn(box, "run", "--pty", "--", "sh", "-c", "echo ready; read word; echo got $word", stdin=slave, stdout=slave, stderr=slave)
    read_until(master, "ready")
    wait_for(lambda: not termios.tcgetattr(slave)[3] & termios.ICANON, "our terminal is raw")
    os.write(master, b"\x1d")
    number = int(re.search(r"job (\d+) goes on", read_until(master, "ends it"))[1])
    assert p.wait(30) == 0 and job(box, number)["state"] == "running"
    back = spawn(box, "attach", number, stdin=slave, stdout=slave, stderr=slave)
    read_until(master, "ready")  # what it showed before is there again
    wait_for(lambda: not termios.tcgetattr(slave)[3] & termios.ICANON, "our terminal is raw again")
    os.write(master, b"hello\r")
    read_until(master, "got hello")
    assert back.wait(30) == 0
    os.close(slave)
    os.close(master)


def test_coming_back_to_a_job(box, tmp_path):
    """One that was handed in without waiting: from where its log ends to its exit code."""
    go = tmp_path / "go"
    script = f"seq 1 40000; echo begun; until [ -e {go} ]; do sleep 0.05; done; echo over; exit 6"
    number = submit(box, "--", "sh", "-c", script)
    wait_for(lambda: gpumgr(box, "logs", number).stdout.endswith("begun\n"), "it has begun", 60)
    wait_for(lambda: (job(box, number)["log_bytes"] or 0) > 200000, "how much it wrote is told", 60)
    other = gpumgr(box, "attach", number, user=BOB)
    assert other.returncode != 0 and other.stdout == "" and "somebody else's" in other.stderr
    p = spawn(box, "attach", number)
    wait_for(lambda: len(select.select([p.stdout], [], [], 0)[0]), "it says something")
    go.touch()
    out, err = p.communicate(timeout=60)
    assert p.returncode == 6 and out.endswith("40000\nbegun\nover\n") and len(out) < 70000, out[:100]
    over = gpumgr(box, "attach", number)
    assert over.returncode != 0 and f"job {number} is over: it is failed" in over.stderr
    waits = submit(box, "--array", "5-6", "--", "sh", "-c", "echo element {index}; exit {index}")
    assert "name one of it" in gpumgr(box, "attach", waits).stderr
    state(box, waits, "failed")
    assert gpumgr(box, "attach", f"{waits}.6").returncode != 0 and "no job 999999" in gpumgr(box, "attach", 999999).stderr


# ---- looking and ending ----

def test_others_may_look_but_not_touch(box):
    number = submit(box, "--name", "secret", "--env", "KEY=hidden", "--", "sh", "-c", "echo private; sleep 1000", user=ADA)
    state(box, number, "running")
    seen = gpumgr(box, "jobs", number, "--json", user=BOB)
    assert json.loads(seen.stdout)["name"] == "secret" and "hidden" not in seen.stdout
    for words in (("cancel", number), ("logs", number), ("hold", number)):
        got = gpumgr(box, *words, user=BOB)
        assert got.returncode != 0 and got.stdout == "" and got.stderr.count("\n") == 1, (words, got)
    assert job(box, number)["state"] == "running"
    wait_for(lambda: gpumgr(box, "logs", number, user=ADA).stdout == "private\n", "its log, for its user")
    assert gpumgr(box, "cancel", number, user=ADA).stdout == f"job {number} is cancelled\n"
    assert state(box, number, "cancelled")["signal"] == 15
    assert gpumgr(box, "wait", number).returncode == 128 + 15


def test_hold_and_release(box):
    holder = submit(box, "--gpus", 2, "--", "sleep", 1000)
    state(box, holder, "running")
    number = submit(box, "--", "true")
    assert gpumgr(box, "hold", number).returncode == 0
    gpumgr(box, "cancel", holder)
    state(box, holder, "cancelled")
    other = gpumgr(box, "run", "--quiet", "--", "echo", "past it")
    assert other.stdout == "past it\n" and job(box, number)["state"] == "held"
    assert gpumgr(box, "release", number).returncode == 0
    assert gpumgr(box, "wait", number).returncode == 0


def test_wait_for_several(box):
    good, bad = submit(box, "--", "true"), submit(box, "--", "sh", "-c", "exit 9")
    got = gpumgr(box, "wait", good, bad)
    assert got.returncode == 9 and f"job {good}: done" in got.stderr and f"job {bad}: failed" in got.stderr
    long = submit(box, "--", "sleep", 1000)
    assert gpumgr(box, "wait", "--timeout", "300ms", long).returncode == 124


def test_when_it_was_granted_is_kept(box):
    number = submit(box, "--", "true")
    assert gpumgr(box, "wait", number).returncode == 0
    j = job(box, number)
    assert j["submitted"] <= j["granted"] <= j["started"] <= j["ended"]


def test_one_job_with_all(box):
    number = submit(box, "--name", "all-of-it", "--time-limit", "1h", "--label", "team=vision", "--", "sh", "-c", "echo a; exit 2")
    gpumgr(box, "wait", number)
    text = gpumgr(box, "jobs", number).stdout
    for word in (f"job {number}  all-of-it  failed", "command      sh -c echo a; exit 2", "time limit   1h", "team=vision", "exit         2"):
        assert word in text, (word, text)


def test_lists(box):
    number = submit(box, "--name", "listed", "--", "false", user=ADA)
    gpumgr(box, "wait", number)
    text = gpumgr(box, "jobs", env=clean_env(COLUMNS="200")).stdout
    assert re.search(rf"^{number} +failed +{ADA} +listed ", text, re.M), text
    assert str(number) in gpumgr(box, "jobs", "--mine", user=ADA).stdout
    assert str(number) not in gpumgr(box, "jobs", "--mine", user=BOB).stdout
    assert all(j["state"] == "failed" for j in ask(box, "jobs", "--state", "failed", "--json")["jobs"])
    for width in (80, 120, 200):
        for words in (("jobs",), ("queue",), ("jobs", number)):
            shown = gpumgr(box, *words, env=clean_env(COLUMNS=width)).stdout
            assert shown and max(map(len, shown.splitlines())) <= width


# ---- several at once ----

def test_an_array(box):
    number = submit(box, "--array", "1-6%2", "--", "sh", "-c", "echo {index} is $GPUMGR_ARRAY_INDEX; test {index} != 4")
    got = gpumgr(box, "wait", number)
    assert got.returncode == 1 and "5 of 6 ended well" in got.stderr, got.stderr
    assert gpumgr(box, "logs", f"{number}.3").stdout == "3 is 3\n"
    assert gpumgr(box, "wait", "--quiet", f"{number}.4").returncode == 1
    assert gpumgr(box, "wait", "--quiet", f"{number}.5").returncode == 0
    for wrong in (number, f"{number}.7"):
        got = gpumgr(box, "logs", wrong)
        assert got.returncode == 2 and got.stderr.count("\n") == 1


def test_a_sweep_that_run_waits_for(box):
    got = gpumgr(box, "run", "--sweep", "lr=1e-3,1e-4", "--sweep", "seed=1,2", "--", "sh", "-c", "echo $lr {seed}")
    assert got.returncode == 0 and "4 of 4 ended well" in got.stderr, got.stderr
    number = int(re.search(r"job (\d+)", got.stderr)[1])
    assert {gpumgr(box, "logs", f"{number}.{i}").stdout for i in (1, 2, 3, 4)} == {f"{lr} {s}\n" for lr in ("1e-3", "1e-4") for s in (1, 2)}
    text = gpumgr(box, "jobs", number).stdout  # which is which
    assert re.search(r"^sweep +lr=1e-3,1e-4 seed=1,2$", text, re.M) and re.search(rf"^{number}\.3 +lr=1e-4 seed=1 +done", text, re.M), text
    assert re.search(r"^sweep +lr=1e-4 seed=2$", gpumgr(box, "jobs", f"{number}.4").stdout, re.M)
    assert {json.dumps(r["values"]) for r in job(box, number)["runs"]} == {json.dumps({"lr": lr, "seed": s}) for lr in ("1e-3", "1e-4") for s in "12"}


def test_after_another(box):
    first = submit(box, "--", "sh", "-c", "sleep 0.5; echo first")
    second = gpumgr(box, "run", "--after", first, "--", "echo", "second")
    assert second.returncode == 0 and second.stdout == "second\n"
    assert job(box, first)["ended"] <= ask(box, "jobs", "--json", "--limit", 1)["jobs"][0]["started"]


def test_tried_again(box, tmp_path):
    tmp_path.chmod(0o777)
    flag = tmp_path / "once"
    got = gpumgr(box, "run", "--retries", 1, "--", "sh", "-c", f"test -e {flag} && echo again || {{ touch {flag}; echo first; exit 5; }}")
    assert got.returncode == 0 and got.stdout == "first\nagain\n", got
    number = int(re.search(r"job (\d+)", got.stderr)[1])
    assert gpumgr(box, "logs", number).stdout == "again\n"
    assert gpumgr(box, "logs", "--attempt", 1, number).stdout == "first\n"


# ---- files ----

def test_jobs_from_a_file(box, tmp_path):
    one = tmp_path / "job.json"
    one.write_text(json.dumps({"command": "echo from $WHERE", "env": {"WHERE": "a file"}, "gpus": 2}))
    assert gpumgr(box, "run", "--quiet", "--file", one).stdout == "from a file\n"
    several = json.dumps([{"command": ["echo", str(n)]} for n in range(3)])
    p = spawn(box, "submit", "--file", "-", stdin=subprocess.PIPE)
    out, err = p.communicate(several, timeout=30)
    numbers = [int(n) for n in out.split()]
    assert len(numbers) == 3 and numbers == list(range(numbers[0], numbers[0] + 3)), err
    assert gpumgr(box, "wait", *numbers).returncode == 0
    assert [gpumgr(box, "logs", n).stdout for n in numbers] == ["0\n", "1\n", "2\n"]
    both = gpumgr(box, "run", "--quiet", "--file", one, "--env", "WHERE=a flag", "--gpus", 1, "--name", "of both")
    assert both.stdout == "from a flag\n"
    last = ask(box, "jobs", "--json", "--limit", 1)["jobs"][0]
    assert last["name"] == "of both" and last["gpus"] == 1


@pytest.mark.parametrize("words,because", [
    (["--gpus", "3", "--", "true"], r"3 GPUs|gpus"),
    (["--gpu", "7", "--", "true"], r"7"),
    (["--memory", "900GiB", "--", "true"], r"memory"),
    (["--memory", "much", "--", "true"], r"--memory: \"much\""),
    (["--after", "999999", "--", "true"], r"999999"),
    (["--deadline", "soon", "--", "true"], r"--deadline: \"soon\""),
    (["--finish-by", "2020-01-01 00:00", "--", "true"], r"--finish-by: .* over"),
    (["--env", "CUDA_VISIBLE_DEVICES=1", "--", "true"], r"--env: CUDA_VISIBLE_DEVICES"),
    (["--array", "5-1", "--", "true"], r"--array: "),
    (["--pty", "--array", "1-2", "--", "true"], r"pty"),
    (["--mount", "/a:/b", "--", "true"], r"--mount: "),
    (["--share", "1GiB", "--gpus", "2", "--", "true"], r"--share: "),
    (["--file", "/nowhere.json"], r"--file: /nowhere.json"),
    ([], r"no command"),
])
def test_nonsense_is_one_sentence_and_changes_nothing(box, words, because):
    before = len(ask(box, "jobs", "--json", "--limit", 1000)["jobs"])
    for command in ("submit", "run"):
        got = gpumgr(box, command, *words)
        assert got.returncode == 2 and got.stdout == "" and got.stderr.count("\n") == 1, got
        assert re.search(because, got.stderr), got.stderr
    assert len(ask(box, "jobs", "--json", "--limit", 1000)["jobs"]) == before


def test_a_file_that_another_user_opened(box, tmp_path):
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"command": ["echo", "taken"]}))
    file.chmod(0o600)
    with file.open() as opened:  # as sudo -u ada gpumgr ... < file
        p = spawn(box, "run", "--quiet", "--file", "-", "--cwd", "/", user=ADA, stdin=opened)
        assert p.communicate(timeout=60)[0] == "taken\n"


def test_of_several_the_one_is_named(box, tmp_path):
    file = tmp_path / "jobs.json"
    for second, words in [({"after": [99999999]}, "job 2 of 2: after: there is no job 99999999"), ({"gpu_ids": [9]}, "job 2 of 2: gpu_ids: there is no GPU 9")]:
        file.write_text(json.dumps([{"command": "true"}, {"command": "true", **second}]))
        got = gpumgr(box, "submit", "--file", file)
        assert got.returncode == 2 and words in got.stderr, got.stderr


PIPELINE = [{"name": "eval", "command": "echo eval >> {0}", "after": ["train", "clean:any"]}, {"name": "prep", "command": "echo prep >> {0}"},
            {"name": "train", "command": "echo train >> {0}", "after": "prep"}, {"name": "clean", "command": "echo clean >> {0}; exit 3", "after": ["train"]}]


def test_a_pipeline_in_one_file(box, tmp_path):
    tmp_path.chmod(0o777)
    file, out = tmp_path / "jobs.json", tmp_path / "out"
    file.write_text(json.dumps({"jobs": [{**j, "command": j["command"].format(out)} for j in PIPELINE]}))
    plan = gpumgr(box, "submit", "--file", file, "--dry-run").stdout.splitlines()
    assert [re.match(r"(\d)\. (\w+)", line).groups() for line in plan] == [("1", "prep"), ("2", "train"), ("3", "clean"), ("4", "eval")], plan
    assert "would start now" in plan[0] and "would wait: it waits for prep to end well" in plan[1] and "it waits for train to end well" in plan[3], plan
    planned = json.loads(gpumgr(box, "submit", "--file", file, "--dry-run", "--json").stdout)["jobs"]
    assert [(j["name"], j["step"], j["after"]) for j in planned] == [("eval", 4, ["train", "clean:any"]), ("prep", 1, []), ("train", 2, ["prep"]), ("clean", 3, ["train"])]
    numbers = [int(n) for n in gpumgr(box, "submit", "--file", file).stdout.split()]
    evaluate, prep, train, clean = numbers
    assert job(box, evaluate)["after"] == [train, f"{clean}:any"] and job(box, train)["after"] == [prep]
    assert gpumgr(box, "wait", evaluate).returncode == 0
    assert out.read_text().split() == ["prep", "train", "clean", "eval"]
    assert re.search(rf"^after +{train},{clean}:any$", gpumgr(box, "jobs", evaluate).stdout, re.M)


def test_a_pipeline_that_breaks_ends_what_follows(box, tmp_path):
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps([{"name": "last", "command": "true", "after": "next"}, {"name": "next", "command": "true", "after": "first"},
                                {"name": "first", "command": "exit 3"}, {"name": "other", "command": "true", "after": "first:any"}]))
    last, next_, first, other = [int(n) for n in gpumgr(box, "submit", "--file", file).stdout.split()]
    assert gpumgr(box, "wait", other).returncode == 0
    assert [state(box, n, "cancelled", "failed", "done")["state"] for n in (first, next_, last)] == ["failed", "cancelled", "cancelled"]
    assert job(box, next_)["state_text"] == f"job {first}, which it was to follow, ended as: failed"


@pytest.mark.parametrize("jobs, because", [
    ([{"name": "a", "after": "b"}, {"name": "b", "after": "a"}], r'jobs\[0\]: after: "b" waits for this job in its turn: in a circle'),
    ([{"name": "a"}, {"after": ["a", "bb"]}], r'jobs\[1\]: after: "bb" is neither the number of a job, as in 17 or 17:any, nor the name'),
    ([{"name": "train"}, {"after": "tran"}], r'jobs\[1\]: after: no job here is called "tran"; did you mean "train"\?'),
    ([{"name": "a"}, {"name": "a"}, {"after": "a"}], r'jobs\[2\]: after: jobs\[0\] and jobs\[1\] are both called "a"'),
    ([{}, {"name": "a", "after": "a:any"}], r'jobs\[1\]: after: "a" is this job itself'),
    ([{"name": "a"}, {"after": "-1"}], r'jobs\[1\]: after: "-1" is neither'),
    ([{"name": "a"}, {"after": ["a", 99999999]}], r"job 2 of 2: after: there is no job 99999999"),
])
def test_a_pipeline_that_makes_no_sense(box, tmp_path, jobs, because):
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps([{"command": "true", **j} for j in jobs]))
    before = ask(box, "jobs", "--json", "--limit", 1)["jobs"]
    got = gpumgr(box, "submit", "--file", file)
    assert got.returncode == 2 and got.stdout == "" and got.stderr.count("\n") == 1 and re.search(because, got.stderr), got
    assert ask(box, "jobs", "--json", "--limit", 1)["jobs"] == before


def test_a_file_that_is_wrong_names_key_and_job(box, tmp_path):
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"jobs": [{"command": "true"}, {"command": "true", "gpu": 2}]}))
    got = gpumgr(box, "submit", "--file", file)
    assert got.returncode == 2 and "jobs[1]: gpu: a job has no such key" in got.stderr and got.stderr.count("\n") == 1


def test_jobs_by_name_and_label(box):
    first = submit(box, "--name", "find-1", "--label", "set=a,b", "--label", "run=1", "--", "true")
    second = submit(box, "--name", "find-2", "--label", "set=a,b", "--after", first, "--", "true", user=ADA)
    gpumgr(box, "wait", first, second)

    def found(*words):
        return [j["id"] for j in ask(box, "jobs", "--json", *words)["jobs"]]
    assert found("--label", "set=a,b") == [second, first] and found("--label", "set=a,b", "--label", "run") == [first]
    assert found("--name", "find-?") == [second, first] and found("--name", "find-?", "--limit", 1) == [second]
    assert found("--label", "set", "--user", job(box, second)["user"]) == [second] and found("--mine", "--label", "set") == [first]
    assert found("--label", "set", "--state", "failed") == []
    assert re.search(rf"^{first} +done +root +find-1 ", gpumgr(box, "jobs", "--name", "find-1").stdout, re.M)
    assert gpumgr(box, "jobs", "--label", "nobody-has-it").stdout == "No such job is known.\n"
    for words in (("jobs", "--label", "=x"), ("jobs", "--name", ""), ("queue", "--label", "")):
        got = gpumgr(box, *words)
        assert got.returncode == 2 and got.stderr.count("\n") == 1 and re.search("(label|name): ", got.stderr), got


def test_several_are_cancelled_at_once(box):
    """Ranges, names and labels: one's own that wait or run, and nobody else's."""
    holder = submit(box, "--gpus", 2, "--name", "holder", "--", "sleep", 1000)
    state(box, holder, "running")
    mine = [submit(box, "--name", f"many-{i}", "--label", f"odd={i % 2}", "--", "true") for i in range(4)]
    hers = submit(box, "--name", "many-hers", "--label", "odd=1", "--", "true", user=ADA)
    last = submit(box, "--name", "many-last", "--label", "odd=1", "--array", "1-3", "--", "true")
    assert re.search(r"\. 2 such jobs wait\.$", gpumgr(box, "queue", "--name", "many-?", "--label", "odd=1").stdout.splitlines()[0])
    got = gpumgr(box, "cancel", "--label", "odd=1", "--name", "many-?")
    assert got.returncode == 0 and got.stdout == f"job {mine[3]} is cancelled\njob {mine[1]} is cancelled\n2 jobs are cancelled\n", got
    got = gpumgr(box, "hold", f"{mine[0]}-{last}")
    assert got.returncode == 0 and got.stdout.endswith("3 jobs are held\n") and job(box, last)["state"] == "held", got
    assert gpumgr(box, "release", "--name", "many-last").stdout == f"job {last} waits for its turn again\n"
    got = gpumgr(box, "cancel", f"{mine[0]}-{last}")
    assert got.returncode == 0 and got.stdout == f"job {last} is cancelled\njob {mine[2]} is cancelled\njob {mine[0]} is cancelled\n3 jobs are cancelled\n", got
    assert job(box, hers)["state"] in ("waiting", "held") and job(box, holder)["state"] == "running"
    for words, why in (((f"{mine[0]}-{last}",), f"no job of yours from {mine[0]} to {last} waits or runs"), (("--label", "odd"), "no job of yours with that label waits or runs"),
                       (("--name", "many*", "--label", "odd", f"{mine[0]}-{last}"), f"no job of yours from {mine[0]} to {last} with that name and label waits or runs")):
        got = gpumgr(box, "cancel", *words)
        assert got.returncode != 0 and got.stdout == "" and got.stderr == f"gpumgr cancel: {why}\n", got
    got = gpumgr(box, "cancel", mine[0], hers, f"{hers}-{hers + 1}", holder)  # what one refuses does not save the others
    assert got.returncode != 0 and "is over: cancelled" in got.stderr and got.stdout == f"job {hers} is cancelled\njob {holder} is cancelled\n2 jobs are cancelled\n", got
    assert gpumgr(box, "wait", holder).returncode != 0


@pytest.mark.parametrize("words, why", [
    (("20-12",), '"20-12": a range goes up, as in 12-20'), (("12-",), '"12-" is no range of jobs'), (("12-x",), '"12-x" is no range'), (("1.2-4",), '"1.2-4" is no range'),
    (("12-1.3",), '"12-1.3" is no range'), (("17", "--label", "a=b"), "17: a job's number says it all; a name or a label goes with a range"),
    (("--label", "=b"), "label: "), (("--name", ""), "name: it is empty"), (("0-5",), '"0-5" is no range'),
])
def test_what_is_no_range(box, words, why):
    for command in ("cancel", "hold", "release"):
        got = gpumgr(box, command, *words)
        assert got.returncode == 2 and got.stdout == "" and got.stderr.count("\n") == 1 and why in got.stderr, got


def test_jobs_that_are_not_there(box):
    for words in (("logs", 999999), ("cancel", 999999), ("wait", 999999), ("jobs", 999999)):
        got = gpumgr(box, *words)
        assert got.returncode in (1, 2) and got.stdout == "" and got.stderr.count("\n") == 1 and "999999" in got.stderr
    for words in (("logs", "x"), ("cancel",), ("wait", "0"), ("logs",), ("queue", "cordn"), ("queue", "cordon"), ("jobs", "1", "2")):
        got = gpumgr(box, *words)
        assert got.returncode == 2 and got.stdout == "" and got.stderr.count("\n") == 1


# Opens a socket as often as it is told, and again whatever is closed. Says so when it has tried as often as that.
HOG = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
path, many = sys.argv[1], int(sys.argv[2])
tried, held = 0, []
while True:
    for _ in range(min(100, many - len(held))):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.setblocking(False)
        held.append(s)
        tried += 1
    for s in list(held):
        try:
            is_closed = s.recv(1) == b""
        except BlockingIOError:
            continue
        except OSError:
            is_closed = True
        if is_closed:
            held.remove(s)
            s.close()
    if tried >= many:
        print("has tried", flush=True)
    time.sleep(0.05)
"""


@pytest.mark.parametrize("name, many", [("jobs.sock", 1200), ("containers.sock", 24)])
def test_one_user_cannot_keep_the_others_out(box, name, many):
    hog = subprocess.Popen([sys.executable, "-c", HOG, str(box.dir / "run" / name), str(many)], stdout=subprocess.PIPE, user=ADA, group=ADA,
                           extra_groups=[], env=clean_env(), text=True)
    try:
        assert hog.stdout.readline() == "has tried\n"
        if name == "jobs.sock":
            number = submit(box, "--", "true", user=BOB)
            state(box, number, "done")
        else:
            got = gpumgr(box, "containers", "list", user=BOB)
            assert "no container engine is set" in got.stderr, got
    finally:
        hog.kill()
        hog.wait()


# ---- operators ----

def test_out_of_service(box):
    assert gpumgr(box, "queue", "cordon", 1, "--reason", "fan", user=ADA).returncode != 0  # for administrators
    begin = time.time() - 0.1
    got = gpumgr(box, "queue", "cordon", 1, "--reason", "fan to be replaced")
    assert got.returncode == 0, got.stderr
    try:
        text = gpumgr(box, "queue").stdout
        assert re.search(r"^1 +cordoned", text, re.M) and "fan to be replaced" in text, text
        assert queue(box)["gpus"][1]["since"] >= begin  # not since when it was free
        a = submit(box, "--", "sleep", 1000)
        state(box, a, "running")
        b = submit(box, "--", "true")
        assert job(box, a)["gpu_indices"] == [0] and job(box, b)["state"] == "waiting"
    finally:
        assert gpumgr(box, "queue", "uncordon", 1).returncode == 0
    assert gpumgr(box, "wait", b).returncode == 0


def test_foreign_work_is_seen(box):
    task = box.sim.task("--gpu", "0", "--forever")
    try:
        wait_for(lambda: verdicts(box)[0] == "foreign", "the queue sees it")
        text = gpumgr(box, "queue").stdout
        assert re.search(rf"^0 +foreign .*pid {task.pid}", text, re.M), text
        assert gpumgr(box, "run", "--quiet", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES").stdout.strip() == queue(box)["gpus"][1]["uuid"]
    finally:
        task.kill()
        task.wait()


def test_the_report(box):
    gpumgr(box, "run", "--quiet", "--", "sleep", 1, user=ADA)
    report = ask(box, "report", "--last", "1h", "--json")
    mine = next(u for u in report["users"] if u["user"] == str(ADA))
    assert mine["runs"] >= 1 and mine["gpu_hours_held"] > 0
    text = gpumgr(box, "report", "--last", "1h").stdout
    assert report["sentence"] in text and re.search(rf"^{ADA} ", text, re.M), text
    for words in (["--last", "x"], ["--from", "18:00", "--last", "1h"], ["--from", "2026-02-01 00:00", "--to", "2026-01-01 00:00"]):
        got = gpumgr(box, "report", *words)
        assert got.returncode == 2 and got.stderr.count("\n") == 1


def test_numbers_for_shells(box):
    number = submit(box, "--", "true")
    assert str(number) in gpumgr(box, "completion", "jobs").stdout.split()


# ---- whoever is killed ----

@pytest.mark.parametrize("part", ["node", "server"])
def test_a_killed_part_is_not_noticed_by_a_run(box, part):
    p = spawn(box, "run", "--", "sh", "-c", "for i in $(seq 40); do echo $i; sleep 0.1; done; exit 6", user=ADA)
    assert p.stdout.readline() == "1\n"
    for _ in range(2):
        victim = wait_for(lambda: box.of_program(part), f"a {part}")[0]
        kill(victim)
        wait_for(lambda: (now := box.of_program(part)) and now[0] != victim, f"another {part}", 30)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 6, err
    assert out == "".join(f"{i}\n" for i in range(2, 41))


# ---- a gpumgr of one's own ----

def test_without_root_only_its_owner_may_hand_in(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:1") as sim:
        for p in (tmp_path, tmp_path.parent, tmp_path.parent.parent, sim.dir):
            p.chmod(0o755)
        own = Path(tempfile.mkdtemp(prefix="gm-", dir="/dev/shm"))
        os.chown(own, ADA, ADA)
        with Instance(sim, *NO_ENGINES, "--guard.mode", "off", role="up", path=own, user=ADA) as i:
            i.sim = sim
            wait_for(lambda: verdicts(i) == ["free"], "its GPU is free", 30)
            got = gpumgr(i, "run", "--quiet", "--", "id", "-u", user=ADA, cwd="/")
            assert got.returncode == 0 and got.stdout == f"{ADA}\n", got.stderr
            for user in (BOB, None):  # root neither: what it handed in would run as somebody else
                got = gpumgr(i, "submit", "--", "true", user=user, cwd="/")
                assert got.returncode == 2 and got.stdout == "" and got.stderr.count("\n") == 1 and str(ADA) in got.stderr, got
            assert gpumgr(i, "jobs", user=BOB, cwd="/").returncode == 0
