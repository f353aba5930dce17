"""gpumgr top in a terminal: what tmux shows of it at several sizes, as cards come and go, and what keys do."""

import os
import re
import shlex
import shutil
import signal
import subprocess

import pytest

from instance import GPUMGR, Instance, clean_env, is_alive
from simulator import BUILD, LIBRARY, Simulator, wait_for

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux")


RUN = "{top}; echo top ended with $?"
STOP_AND_GO_ON = "set -m; {top}; echo it stands; read go; fg; echo top ended with $?"


class Pane:
    """A terminal with gpumgr top in it; what runs in it afterwards says how it ended and what the terminal is like."""

    def __init__(self, path, size, *flags, env=None, term="screen-256color", user=None, script=RUN):
        self.socket = str(path)
        width, height = size
        env = {**clean_env(), "TERM": term, **(env or {})}
        words = ["env", "-i", *(f"{k}={v}" for k, v in env.items())]
        if user is not None:
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *words]
        command = shlex.join(map(str, [*words, GPUMGR, "top", *flags]))
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "top", "-x", str(width), "-y", str(height),
                  f"stty -a > {path}.before; {script.format(top=command)}; stty -a > {path}.after; exec sleep 1000")

    def tmux(self, *args):
        return subprocess.run(["tmux", "-u", "-S", self.socket, *args], capture_output=True, text=True, timeout=20).stdout

    def text(self, *flags):
        return self.tmux("capture-pane", "-t", "top", "-p", *flags)

    def keys(self, *keys):
        self.tmux("send-keys", "-t", "top", *keys)

    def shows(self, pattern, timeout=30):
        last = [""]

        def seen():
            last[0] = self.text()
            return re.search(pattern, last[0], re.M)

        try:
            return wait_for(seen, f"the terminal shows {pattern}", timeout)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{last[0]}") from None

    def shows_no(self, pattern, timeout=30):
        wait_for(lambda: not re.search(pattern, self.text(), re.M), f"the terminal shows {pattern} no longer", timeout)

    def pid(self):
        parent = int(self.tmux("list-panes", "-t", "top", "-F", "#{pane_pid}"))
        children = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True).stdout.split()
        return next(int(p) for p in children if b"top" in open(f"/proc/{p}/cmdline", "rb").read())

    def settled(self):
        """The terminal after its end: as it was before."""
        self.shows(r"^top ended with 0")
        wait_for(lambda: os.path.exists(f"{self.socket}.after") and os.path.getsize(f"{self.socket}.after"), "stty has spoken")
        before, after = (re.sub(r"rows \d+; columns \d+", "", open(f"{self.socket}.{when}").read()) for when in ("before", "after"))
        assert before == after
        assert self.tmux("display", "-p", "-t", "top", "#{cursor_flag} #{alternate_on} #{keypad_flag}").split() == ["1", "0", "0"]


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:3,rtx4090") as s:
        s.task("--gpu", 0, "--demand", "40%", "--memory", "4G", "--forever", "--name", "first")
        s.task("--gpu", 2, "--demand", "90%", "--memory", "9G", "--forever", "--name", "second")
        wait_for(lambda: s.gpu(0)["util_gpu"] > 20 and s.gpu(2)["util_gpu"] > 40, "the tasks work")
        yield s


@pytest.fixture
def node(sim):
    with Instance(sim, "--wait-ms", "100") as i:
        i.ready(4)
        yield i


@pytest.fixture
def pane(tmp_path, request):
    """pane(size, flags...) -> a Pane; as many as a test wants."""
    open_now = []

    def go(*args, **kw):
        open_now.append(Pane(tmp_path / f"tmux{len(open_now)}", *args, **kw))
        return open_now[-1]

    yield go
    for p in open_now:
        p.tmux("kill-server")


def fits(text, width, height):
    lines = text.splitlines()
    return len(lines) <= height and all(len(line) <= width for line in lines)


def test_80x24_shows_cards_and_processes(node, sim, pane):
    p = pane((80, 24), "--dir", node.dir, "--interval", "0.2")
    p.shows(r"^  0 H200 .*% .*/140G .*/\d+°C .*/700W")
    p.shows(r"^  3 RTX 4090|^  3 RTX 40")
    text = p.shows(rf"^ +{sim.tasks[1].pid} +\S+ +2 +C +9\.0G +\d+%").string
    assert fits(text, 80, 24)
    assert re.search(r"4 GPUs, 2 busy", text) and re.search(r" ring +\d\d:\d\d:\d\d", text)
    p.keys("q")
    p.settled()


def test_300x80_shows_panels_and_charts(node, sim, pane):
    p = pane((300, 80), "--dir", node.dir, "--interval", "0.2")
    text = p.shows(r"╭ 0 H200 ─.*╭ 1 H200 ").string
    assert fits(text, 300, 80)
    assert re.search(r"│ util  .*%.*[▁▂▃▄▅▆▇█]", text) and "│ power" in text
    p.shows(r"mean \d+%, \d+ to \d+")


def test_the_chart_is_full_at_once(node):
    """The ring has seconds of history: nobody waits for a chart to grow."""
    began = node.gpu(0)["metrics"]["gpu_energy_joules_total"]
    wait_for(lambda: node.gpu(0)["metrics"]["gpu_energy_joules_total"] > began + 4000, "some eight seconds of work have gone by", 40)
    out = subprocess.run([str(GPUMGR), "top", "--once", "--dir", str(node.dir)], env={**node.env, "COLUMNS": "300", "LINES": "60"},
                         capture_output=True, text=True, timeout=20).stdout
    cells = [line.split("│")[1] for line in out.splitlines() if line.startswith("│")]
    util = next(i for i, cell in enumerate(cells) if cell.startswith(" util"))
    bottom = next(cell for i, cell in enumerate(cells) if i > util and cells[i + 1].strip() == "")  # of the first chart
    assert len(bottom.split()[-1]) >= 2 and set(bottom.split()[-1]) <= set("▁▂▃▄▅▆▇█"), out  # columns of five seconds


def test_it_follows_the_terminal(node, pane):
    p = pane((80, 24), "--dir", node.dir, "--interval", "0.2")
    p.shows(r"^GPU MODEL")
    p.tmux("resize-window", "-t", "top", "-x", "200", "-y", "60")
    p.shows(r"╭ 0 H200 ─.*╭ 1 H200 ")
    assert fits(p.text(), 200, 60)
    p.tmux("resize-window", "-t", "top", "-x", "60", "-y", "16")
    p.shows(r"^GPU MODEL")
    assert fits(p.text(), 60, 16) and "╭" not in p.text()
    p.tmux("resize-window", "-t", "top", "-x", "20", "-y", "4")
    p.shows(r"^ \S+")
    p.keys("q")
    p.tmux("resize-window", "-t", "top", "-x", "80", "-y", "24")
    p.settled()


@pytest.mark.parametrize("flags,env,term", [((), {"LC_ALL": "C"}, "vt100"), (("--ascii",), {"LC_ALL": "C.UTF-8"}, "screen"),
                                            ((), {"LC_ALL": "C", "NO_COLOR": "1"}, "screen-256color"), ((), {}, "linux")])
def test_plain_terminals_get_plain_characters(node, pane, flags, env, term):
    for size in (80, 24), (160, 50):
        p = pane(size, "--dir", node.dir, "--interval", "0.2", *flags, env=env, term=term)
        text = p.shows(r"2 process").string
        assert text.isascii() and re.search(r"#+\.+", text) and re.search(r"\d+/\d+C", text)
        if "NO_COLOR" in env:
            assert not re.search(r"\033\[([34][0-7]|[34]8|9\d)", p.text("-e"))
        p.keys("q")
        p.settled()


def test_sixteen_cards(pane):
    with Instance(None, "--sim", "16", "--guard.mode", "off") as i:
        i.ready(16)
        p = pane((80, 24), "--dir", i.dir)
        p.shows(r"16 GPUs")
        p.shows(r"to \d+ of 16")
        p.keys("End")
        p.shows(r"^▶15 H200")
        p.keys("q")
        p.settled()
        p = pane((300, 80), "--dir", i.dir)
        text = p.shows(r"╭ 15 H200 ─").string
        assert all(re.search(rf"╭ {n} H200 ─", text) for n in range(16)) and fits(text, 300, 80)


def test_a_card_is_lost_and_comes_back(sim, node, pane):
    lines, panels = (pane(size, "--dir", node.dir, "--interval", "0.2") for size in ((80, 24), (200, 60)))
    sim.say("fault 1 lost")
    for p in lines, panels:
        p.shows(r"1 NEEDS ATTENTION")
        p.shows(r"LOST \d+ m?s")
    lines.shows(r"^  1 H200 +LOST")
    lines.shows(r"GPU 1: (lost|XID 79)")  # the later of the two events, below
    sim.say("heal 1")
    for p in lines, panels:
        p.shows_no(r"NEEDS ATTENTION", 30)
    lines.shows(r"^  1 H200 .*/140G", 30)


def test_old_data_are_called_stale(node, pane):
    p = pane((80, 24), "--dir", node.dir, "--interval", "0.2")
    p.shows(r" ring +\d\d:")
    p.keys("p")
    p.shows(r"ring: PAUSED")
    p.keys("p")
    p.shows_no(r"PAUSED")
    os.kill(node.process.pid, signal.SIGSTOP)  # else a successor comes
    sampler = node.sampler()
    os.kill(sampler, signal.SIGSTOP)
    try:
        p.shows(r"STALE \d+ s", 20)
    finally:
        os.kill(sampler, signal.SIGCONT)
        os.kill(node.process.pid, signal.SIGCONT)
    p.shows_no(r"STALE", 20)


def test_without_a_daemon_it_asks_the_driver(sim, tmp_path, pane):
    env = {"GPUSIM_DIR": sim.dir, "HOME": tmp_path}
    p = pane((100, 30), "--dir", tmp_path / "none", "--gpu-library", LIBRARY, env=env)
    p.shows(r" driver +\d\d:\d\d:\d\d")
    p.shows(rf"{sim.tasks[0].pid} ")
    assert "4 GPUs" in p.text()
    sim.say("fault 1 lost")
    p.shows(r"LOST")
    p.keys("q")
    p.settled()


def test_a_hung_card_does_not_hang_the_keys(sim, tmp_path, pane):
    p = pane((100, 30), "--dir", tmp_path / "none", "--gpu-library", LIBRARY, env={"GPUSIM_DIR": sim.dir, "HOME": tmp_path})
    p.shows(r" driver +\d\d:\d\d:\d\d")
    sim.say("fault 1 hang")
    p.keys("?")
    p.shows(r"any key closes this", 2)
    p.keys("x")
    p.shows(r"NOT ANSWERING", 20)
    p.keys("q")
    p.shows(r"top ended with 0", 20)


def test_sort_and_filter(node, sim, pane):
    first, second = (t.pid for t in sim.tasks)
    p = pane((100, 40), "--dir", node.dir, "--interval", "0.2")
    p.shows(rf"{first} .*\n.*{second} ")  # by GPU
    p.keys("s", "s", "s")
    p.shows(r"sort: GPU memory")
    p.shows(rf"{second} .*\n.*{first} ")
    p.keys("r")
    p.shows(rf"{first} .*\n.*{second} ")
    p.keys("/")
    p.tmux("send-keys", "-t", "top", "-l", "gpu:2 second")
    p.shows(r"1 of 2 processes: gpu:2 second")
    p.keys("Enter")
    p.shows_no(rf"^ +{first} ")
    p.keys("Escape")
    p.shows(rf"^ +{first} ")
    out = subprocess.run([str(GPUMGR), "top", "--once", "--sort", "memory", "--filter", "!second", "--dir", str(node.dir)],
                         env=node.env, capture_output=True, text=True, timeout=20)
    assert out.returncode == 0 and str(first) in out.stdout and str(second) not in out.stdout and "quit" not in out.stdout


def test_everything_of_one_card(node, pane):
    p = pane((120, 110), "--dir", node.dir, "--interval", "0.2")
    p.shows(r"4 GPUs")
    p.keys("Down", "g")
    p.shows(r"GPU 0 NVIDIA H200")
    p.shows(r"^ utilization +\d")
    p.keys("Right", "Right", "Right")
    p.shows(r"GPU 3 NVIDIA GeForce RTX 4090")
    p.shows(r"fan speed +\d+\.\d %")
    p.keys("Escape")
    p.shows_no(r"GPU 3 NVIDIA")


def test_a_signal_to_a_process_of_ones_own(node, sim, pane):
    task = sim.tasks[1]
    p = pane((100, 30), "--dir", node.dir, "--interval", "0.2")
    p.shows(rf"{task.pid} ")
    p.keys("Tab", "K")
    p.shows(r"Read-only: start `gpumgr top --signals`")
    p.keys("q")
    p.settled()

    p = pane((100, 30), "--dir", node.dir, "--interval", "0.2", "--signals", "--filter", "second")
    p.shows(rf"{task.pid} ")
    p.keys("Tab", "K")
    p.shows(rf"SIGTERM to process {task.pid} of \w+ on GPU 2\?")
    p.keys("n")
    p.shows(r"Nothing was sent")
    assert is_alive(task.pid)
    p.keys("K")
    p.shows(rf"SIGTERM to process {task.pid}")
    p.keys("y")
    p.shows(rf"SIGTERM was sent to process {task.pid}")
    wait_for(lambda: task.poll() is not None, "the task ends")
    p.shows(r"0 of 1 process|No process meets")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's eyes")
def test_no_signal_to_another_users_process(node, sim, pane, tmp_path):
    os.chmod(tmp_path, 0o755)
    os.chmod(node.dir, 0o755)
    for parent in tmp_path.parents:
        if str(parent).startswith("/tmp/"):
            os.chmod(parent, 0o755)
    p = pane((100, 30), "--dir", node.dir, "--interval", "0.2", "--signals", user=65534)
    p.shows(rf"{sim.tasks[0].pid} ")
    p.keys("Tab", "K")
    p.shows(r"belongs to root, not to you")
    assert all(is_alive(t.pid) for t in sim.tasks)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_give_the_terminal_back(node, pane, number):
    p = pane((80, 24), "--dir", node.dir)
    p.shows(r"4 GPUs")
    os.kill(p.pid(), number)
    p.settled()


def test_stop_and_continue(node, pane):
    p = pane((80, 24), "--dir", node.dir, "--interval", "0.2", script=STOP_AND_GO_ON)
    p.shows(r"4 GPUs")
    p.keys("C-z")
    p.shows(r"it stands")
    assert p.tmux("display", "-p", "-t", "top", "#{cursor_flag} #{alternate_on}").split() == ["1", "0"]
    p.keys("Enter")
    p.shows(r"4 GPUs")
    p.keys("q")
    p.settled()


def test_bad_input(node):
    for flags, words in ((("--sort", "size"), 'is none of gpu, pid'), (("--interval", "0"), "interval"), (("extra",), "extra")):
        out = subprocess.run([str(GPUMGR), "top", *flags, "--dir", str(node.dir)], env=node.env, capture_output=True, text=True, timeout=20)
        assert out.returncode == 2 and words in out.stderr and out.stderr.count("\n") == 1, out
    out = subprocess.run([str(GPUMGR), "top", "--dir", str(node.dir)], env=node.env, capture_output=True, text=True, timeout=20,
                         stdin=subprocess.DEVNULL)
    assert out.returncode == 1 and "--once" in out.stderr
