"""The shim alone: what it records, what it leaves behind when anybody is killed, that nothing of a job outlives it, and that
its log keeps its bound."""

import os
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

import shim as s
from shim import Run, is_alive, wait_for

PYTHON = sys.executable
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")


def ended(run, shim, seconds=30):
    assert shim.wait(seconds) == 0
    return run.get(s.EXIT)


@pytest.mark.parametrize("script, code, sig", [("exit 0", 0, 0), ("exit 3", 3, 0), ("exit 255", 255, 0), ("kill -9 $$", 0, 9),
                                               ("kill -SEGV $$", 0, 11)])
def test_exit_is_exact(place, script, code, sig):
    run = Run(place)
    r = ended(run, run.start(["sh", "-c", script]))
    assert run.kinds() == [s.INTENT, s.STARTED, s.EXIT, s.DONE]
    assert (r["has_exit"], r["code"], r["signal"], r["reason"]) == (1, code, sig, s.BY_ITSELF)
    assert r["boot_id"].split(b"\0")[0].decode() == open("/proc/sys/kernel/random/boot_id").read().strip()


@pytest.mark.parametrize("argv, cwd, sentence", [
    (["/no/such/program"], "/", "start /no/such/program: No such file or directory"),
    (["true"], "/no/such/place", "the working directory /no/such/place: No such file or directory"),
    (["/etc"], "/", "start /etc: Permission denied"),
])
def test_what_cannot_start_says_why(place, argv, cwd, sentence):
    run = Run(place)
    r = ended(run, run.start(argv, cwd=cwd))
    assert (r["has_exit"], r["reason"], r["text"]) == (0, s.BY_START, sentence)


def test_what_the_job_finds(place):
    look = """import os, signal, resource, sys
print(sorted(os.environ), os.getcwd(), oct(os.umask(0)), os.getpid() == os.getsid(0), sorted(os.listdir('/proc/self/fd')))
print([n for n in range(1, 65) if n not in (9, 19, 32, 33) and signal.getsignal(n) == signal.SIG_IGN], signal.pthread_sigmask(0, []))
print(os.getpriority(os.PRIO_PROCESS, 0), resource.getrlimit(resource.RLIMIT_NOFILE)[0], os.isatty(0), sys.stdin.read())
"""
    run = Run(place)
    ended(run, run.start([PYTHON, "-c", look], cwd="/tmp", umask=0o027, env={"HOME": "/x", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}))
    lines = run.log.decode().split("\n")
    assert lines[0] == "['HOME', 'LC_ALL', 'PATH'] /tmp 0o27 True ['0', '1', '2', '3']"  # 3: the directory it lists
    assert lines[1] in ("[13, 25] set()", "[13] set()")  # Python's own
    assert lines[2] == "0 1024 False "


def test_output_comes_in_order_and_whole(place):
    run = Run(place)
    ended(run, run.start(["sh", "-c", "for i in $(seq 2000); do echo out $i; echo err $i >&2; done"]))
    assert run.log.decode() == "".join(f"out {i}\nerr {i}\n" for i in range(1, 2001))
    assert run.get(s.DONE)["log_bytes"] == len(run.log) and (run.dir / "log").stat().st_mode & 0o777 == 0o600


TREE = """
import os, signal, sys, time
def spawn(name, how):
    if os.fork():
        return
    if how >= 1:
        os.setsid()
    if how >= 2 and os.fork():
        os._exit(0)
    if how >= 3:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if how >= 4:
        for k in os.environ: del os.environ[k]
        os.execve(sys.executable, ['daemon', '-c', 'import signal, time; signal.signal(15, signal.SIG_IGN); print("up", flush=True); time.sleep(1000)'], {})
    print('up', flush=True)
    time.sleep(1000)
for how in range(5):
    spawn('x', how)
"""


def below(pid):
    """All descendants, as /proc says now."""
    parents = {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(p)] = int(open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    found, more = set(), {pid}
    while more:
        more = {p for p, up in parents.items() if up in more} - found
        found |= more
    return found


@pytest.mark.parametrize("end", ["itself", "stop", "term", "kill"])
def test_nothing_of_the_tree_is_left(place, end):
    """Children, those in sessions of their own, double forks, those that ignore TERM, and one without our mark."""
    run = Run(place)
    last = {"itself": "sys.exit(5)", "kill": "os.kill(os.getpid(), 9)"}.get(end, "time.sleep(1000)")
    wait = "\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
    shim = run.start([PYTHON, "-c", TREE + wait + last, str(run.dir / "go")], grace=0.5)
    wait_for(lambda: (run.dir / "log").exists() and run.log.count(b"up") == 5)
    tree = below(shim.pid)
    assert len(tree) >= 5
    (run.dir / "go").touch()
    if end == "stop":
        s.stop(shim.pid, s.BY_TIME_LIMIT, 0.3)
    if end == "term":
        shim.terminate()
    r = ended(run, shim)
    assert not [p for p in tree if is_alive(p)]
    want = {"itself": (s.BY_ITSELF, 5, 0), "stop": (s.BY_TIME_LIMIT, 0, 15), "term": (s.BY_CANCEL, 0, 15), "kill": (s.BY_ITSELF, 0, 9)}
    assert (r["reason"], r["code"], r["signal"]) == want[end]


def test_a_fork_bomb_ends(place):
    run = Run(place)
    bomb = "import os\nfor i in range(7): os.fork()\nprint('up', flush=True)\nwhile True:\n  if os.fork() == 0: os._exit(0)\n  os.wait()"
    shim = run.start([PYTHON, "-c", bomb], grace=0.1)
    run_log = run.dir / "log"
    wait_for(lambda: run_log.exists() and run.log.count(b"up") >= 64)
    shim.terminate()
    tree = below(shim.pid)
    ended(run, shim)
    assert not [p for p in tree if is_alive(p)]


def test_grace_is_kept_and_bounded(place):
    run = Run(place)
    shim = run.start(["sh", "-c", "trap 'echo told; sleep 0.2; exit 7' TERM; echo up; while :; do sleep 0.02; done"])
    run.started(), run.says("up")
    s.stop(shim.pid, s.BY_CANCEL, 20)
    r = ended(run, shim)
    assert (r["code"], r["reason"]) == (7, s.BY_CANCEL) and b"told" in run.log
    other = Run(place, "18.0.1")
    shim = other.start(["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.02; done"])
    other.started(), other.says("up")
    before = time.monotonic()
    s.stop(shim.pid, s.BY_CANCEL, 100)
    s.stop(shim.pid, s.BY_MEMORY, 0.2)  # impatient: sooner, but the first reason stays
    r = ended(other, shim)
    assert (r["signal"], r["reason"]) == (9, s.BY_CANCEL) and 0.15 < time.monotonic() - before < 20


def test_stopped_processes_hear_too(place):
    run = Run(place)
    shim = run.start(["sh", "-c", "trap 'exit 4' TERM; kill -STOP $$; sleep 100"], grace=20)
    pid = run.started()["pid"]
    wait_for(lambda: open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T")
    shim.terminate()
    assert ended(run, shim)["code"] == 4


def test_time_limit_needs_nobody(place):
    run = Run(place)
    before = time.monotonic()
    r = ended(run, run.start(["sleep", "100"], limit=0.4))
    assert (r["reason"], r["signal"]) == (s.BY_TIME_LIMIT, 15) and 0.4 <= time.monotonic() - before < 10


def test_signals_are_passed_on(place):
    run = Run(place)
    shim = run.start(["sh", "-c", "trap 'echo one' USR1; trap 'exit 9' INT; echo up; while :; do sleep 0.01; done"])
    run.started(), run.says("up")
    s.queue_signal(shim.pid, s.PASS_SIGNAL, signal.SIGUSR1)
    run.says("one")
    s.queue_signal(shim.pid, s.PASS_SIGNAL, signal.SIGINT)
    r = ended(run, shim)
    assert (r["code"], r["reason"]) == (9, s.BY_ITSELF)


def test_twice_started_runs_once(place):
    run = Run(place)
    first = run.start(["sh", "-c", "echo ran; sleep 1"])
    run.started()
    assert run.holder() == first.pid
    assert run.start(["sh", "-c", "echo ran"]).wait(10) == 3
    ended(run, first)
    assert run.start(["sh", "-c", "echo ran"]).wait(10) == 3
    assert run.log == b"ran\n" and run.holder() == 0


def test_killed_while_it_runs(place):
    """The job loses its shim: nothing is recorded that nobody knows, and nobody starts it again."""
    run = Run(place)
    shim = run.start(["sh", "-c", "echo ran; sleep 1000"])
    pid = run.started()["pid"]
    run.says("ran")
    shim.kill()
    shim.wait()
    assert run.kinds() == [s.INTENT, s.STARTED] and is_alive(pid) and run.holder() == 0
    assert run.start(["sh", "-c", "echo ran"]).wait(10) == 3
    os.kill(pid, signal.SIGKILL)
    assert run.log == b"ran\n"


def test_torn_records_count_as_unwritten(place):
    run = Run(place)
    state = bytearray((run.dir / "state").read_bytes())
    state[:100] = os.urandom(100)
    (run.dir / "state").write_bytes(state)
    ended(run, run.start(["true"]))
    assert run.kinds() == [s.INTENT, s.STARTED, s.EXIT, s.DONE]


def test_log_keeps_its_bound(place):
    """Head and end stay, each byte in its place; the disk gets the middle back."""
    run = Run(place)
    lines = 400000
    ended(run, run.start([PYTHON, "-c", f"for i in range({lines}): print('%011d' % i)"], log_max=1 << 20))
    path = run.dir / "log"
    assert path.stat().st_size == 12 * lines == run.get(s.DONE)["log_bytes"]
    assert path.stat().st_blocks * 512 <= 1 << 20
    data = path.read_bytes()
    head, tail = data[:1 << 18], data[-(1 << 19):]
    assert head == b"".join(b"%011d\n" % i for i in range(22000))[:1 << 18]
    assert tail == b"".join(b"%011d\n" % i for i in range(lines - 44000, lines))[-(1 << 19):]
    with open(path, "rb") as f:
        f.seek(0)
        assert os.lseek(f.fileno(), 0, os.SEEK_HOLE) == 1 << 18
        assert os.lseek(f.fileno(), 1 << 18, os.SEEK_DATA) >= 12 * lines - (1 << 20)


@pytest.mark.alone
def test_much_output_is_taken_fast(place):
    """A job is not slowed down by its log: at least half as fast as into a file."""
    many = ["sh", "-c", "head -c 1500000000 /dev/zero"]
    plain = place / "plain"
    before = time.monotonic()
    with open(plain, "wb") as f:
        subprocess.run(many, stdout=f, check=True)
    direct = time.monotonic() - before
    plain.unlink()
    run = Run(place)
    before = time.monotonic()
    ended(run, run.start(many, log_max=64 << 20), 120)
    took = time.monotonic() - before
    print(f"1.5 GB: {direct:.2f} s into a file, {took:.2f} s through the shim")
    assert run.get(s.DONE)["log_bytes"] == 1500000000 and took < 2 * direct + 2


def test_output_of_those_left_behind_is_kept(place):
    run = Run(place)
    script = "(trap 'echo last words; exit' TERM; echo up; while :; do sleep 0.01; done) & while ! grep -q up " + \
        f"{run.dir}/log; do sleep 0.01; done; echo bye"
    ended(run, run.start(["sh", "-c", script]))
    assert run.log.startswith(b"up\nbye\n") and b"last words\n" in run.log  # its shell may speak of its sleep between


@needs_root
def test_a_full_disk_takes_neither_job_nor_exit(place):
    disk = place / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], check=True)
    try:
        run = Run(disk)
        r = ended(run, run.start(["sh", "-c", "head -c 8000000 /dev/zero; exit 6"]))
        assert (r["has_exit"], r["code"]) == (1, 6) and run.get(s.DONE)["log_bytes"] == 8000000
        assert (run.dir / "log").stat().st_blocks * 512 <= 2 << 20
    finally:
        subprocess.run(["umount", disk], check=True)


@needs_root
def test_runs_as_its_user(place):
    run = Run(place)
    shim = run.start(["sh", "-c", "id -u; id -g; id -G; touch /root/x; ls -l /proc/self/exe >/dev/null; sleep 0.2"], uid=65534, gid=65534,
                     groups=[65534, 1234], becomes=True)
    ended(run, shim)
    lines = run.log.decode().split("\n")
    assert lines[:3] == ["65534", "65534", "65534 1234"] and "Permission denied" in lines[3]
    assert (run.dir / "log").stat().st_uid == 65534


@needs_root
def test_the_place_is_entered_with_the_users_rights(place):
    (place / "closed").mkdir(mode=0o700)
    run = Run(place)
    r = ended(run, run.start(["true"], uid=65534, gid=65534, becomes=True, cwd=str(place / "closed")))
    assert r["text"] == f"the working directory {place}/closed: Permission denied" and r["reason"] == s.BY_START


@needs_root
def test_cgroup_is_joined_and_removed(place):
    root = next((p for p in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.path.exists(p + "/cgroup.procs")), None)
    if not root or not os.access(root, os.W_OK):
        pytest.skip("no cgroup2 that one may write")
    group = f"{root}/gpumgr-shim-test-{os.getpid()}"
    os.mkdir(group)
    run = Run(place)
    shim = run.start(["sh", "-c", "cat /proc/self/cgroup; trap '' TERM; setsid sleep 1000 & sleep 1000"], cgroup=group, grace=0.2)
    run.started(), run.says(os.path.basename(group))
    assert len(wait_for(lambda: open(group + "/cgroup.procs").read().split())) >= 1
    shim.terminate()
    ended(run, shim)
    assert not os.path.exists(group)


def at_terminal(run):
    c = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(run.dir)
    try:
        wait_for(lambda: (run.dir / "pty").exists())
        c.connect("pty")
    finally:
        os.chdir(here)
    c.settimeout(20)
    return c


def type_in(c, text):
    c.sendall(struct.pack("<BBH", 0, 0, len(text)) + text)


def read_until(c, text):
    got = b""
    while text not in got:
        piece = c.recv(4096)
        assert piece, got
        got += piece
    return got


def test_terminal(place):
    run = Run(place)
    shim = run.start(["sh"], is_pty=True, env={"PATH": "/usr/bin:/bin", "PS1": "prompt> "})
    run.started()
    c = at_terminal(run)
    c.sendall(struct.pack("<BBHHH", 1, 0, 4, 33, 121))
    type_in(c, b"tty; stty size\n")
    got = read_until(c, b"33 121")
    assert b"/dev/pts/" in got
    c.close()  # one gets up; the job stays
    c = at_terminal(run)
    type_in(c, b"sleep 1000\n")
    wait_for(lambda: len(below(shim.pid)) == 2)
    type_in(c, b"\x03")
    type_in(c, b"exit 8\n")
    assert ended(run, shim)["code"] == 8
    assert b"33 121" in run.log and not (run.dir / "pty").exists()


@needs_root
def test_terminal_is_its_users_alone(place):
    run = Run(place)
    shim = run.start(["sh"], is_pty=True, uid=65534, gid=65534, becomes=True)
    run.started()
    st = wait_for(lambda: (run.dir / "pty").exists() and (run.dir / "pty").stat())
    assert st.st_uid == 65534 and st.st_mode & 0o777 == 0o600
    c = at_terminal(run)
    type_in(c, b"tty | xargs stat -c %u; exit\n")
    read_until(c, b"65534")
    ended(run, shim)


@pytest.mark.parametrize("bad", [b"", b"x", b"\x31\x72\x6f\x6a", os.urandom(4000)], ids=["nothing", "short", "magic", "noise"])
def test_bad_orders_are_refused(place, bad):
    run = Run(place)
    shim = run.start([], order_bytes=bad)
    assert shim.wait(30) == 2 and run.kinds() == []
    assert shim.stderr.read().decode().startswith("gpumgr-shim: ")


def test_it_is_small(place):
    run = Run(place)
    shim = run.start(["sleep", "100"])
    run.started()
    status = dict(line.split(":", 1) for line in open(f"/proc/{shim.pid}/status").read().splitlines())
    libraries = {line.split()[-1] for line in open(f"/proc/{shim.pid}/maps") if ".so" in line}
    shim.terminate()
    ended(run, shim)
    print(status["VmRSS"], status["RssAnon"])
    assert int(status["RssAnon"].split()[0]) < 1024 and int(status["Threads"]) == 1
    assert {os.path.basename(lib).split(".")[0] for lib in libraries} <= {"libc", "ld-linux-x86-64", "ld-linux-aarch64"}


@pytest.mark.parametrize("process", ["shim", "become"])
def test_killed_at_every_step_it_runs_once_or_never(place, process):
    """As the node does: what never started is started again, what did is not. The job itself says how often it ran."""
    died = 0
    for number in range(1, 100):
        run = Run(place, f"{number}.0.1", s.BUILD / "tests/shim_crash")
        job = ["sh", "-c", f"echo ran >> {run.dir}/ran; exit 5"]
        shim = run.start(job, shim_env={"GPUMGR_CRASH": f"{process}:{number}"})
        rc = shim.wait(20)
        kinds = run.kinds()
        if process == "shim" and rc == 0:
            break
        if process == "become" and run.get(s.EXIT)["has_exit"] and not run.get(s.EXIT)["signal"]:
            break
        died += 1
        if s.STARTED in kinds and s.EXIT not in kinds:  # the job may be about to end
            pid = run.get(s.STARTED)["pid"]
            wait_for(lambda: not is_alive(pid))
        if s.STARTED not in kinds and s.EXIT not in kinds:
            wait_for(lambda: run.holder() == 0)
            assert not (run.dir / "ran").exists()
            assert run.start(job).wait(20) == 0
            assert run.get(s.EXIT)["code"] == 5 and (run.dir / "ran").read_text() == "ran\n"
        elif s.EXIT in kinds and run.get(s.EXIT)["has_exit"]:
            e = run.get(s.EXIT)
            assert (e["code"], e["signal"]) in ((5, 0), (0, 9)) if process == "become" else (e["code"], e["signal"]) == (5, 0)
        assert run.start(job).wait(20) == 3
        assert not (run.dir / "ran").exists() or (run.dir / "ran").read_text() == "ran\n"
    assert died >= (12 if process == "shim" else 3), died
