"""What a shell completes: asked as bash asks, in a bash of its own; and with the Tab key, in a zsh of its own."""

import os
import pty
import select
import shutil
import subprocess
import time

import pytest

from instance import GPUMGR, clean_env

ASK = r"""
eval "$(gpumgr completion bash)" || exit 9
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_gpumgr gpumgr
printf '%s\n' "${COMPREPLY[@]}"
"""


def complete(*words, **env):
    """What bash would offer for the last of these words."""
    path = f"{GPUMGR.parent}:/usr/bin:/bin"
    got = subprocess.run(["bash", "--norc", "-c", ASK, "bash", *words], capture_output=True, text=True, timeout=30,
                         env=clean_env(PATH=path, **env))
    assert got.returncode == 0 and got.stderr == "", got.stderr
    return [w for w in got.stdout.split("\n") if w]


ZSH = r"""
PS1='> '; autoload -U compinit; compinit -u -D; setopt no_beep
source <(gpumgr completion zsh)
show() { print -r -- "$BUFFER" > $SHOWN.new && mv $SHOWN.new $SHOWN }
zle -N show; bindkey '^X' show
print ready$((6 * 7))
"""


class Zsh:
    """A zsh at a terminal, whose line can be looked at."""

    def __init__(self, place):
        self.shown = place / "line"
        (place / "rc").write_text(ZSH)
        path = f"{GPUMGR.parent}:/usr/bin:/bin"
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve("/usr/bin/zsh", ["zsh", "-f", "-i"], clean_env(PATH=path, TERM="dumb", HOME=str(place), SHOWN=str(self.shown), GPUMGR_DIR=str(place)))
        self.said = b""
        self.type(f"source {place}/rc\n")
        self.wait(lambda: b"ready42" in self.said)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def wait(self, is_there):
        until = time.monotonic() + 60
        while not is_there():
            assert time.monotonic() < until, self.said
            if select.select([self.fd], [], [], 0.05)[0]:
                self.said += os.read(self.fd, 65536)

    def complete(self, words):
        """The line after Tab, and what was said meanwhile."""
        self.shown.unlink(missing_ok=True)
        self.said = b""
        self.type(f"{words}\t\x18")
        self.wait(self.shown.exists)
        line = self.shown.read_text().rstrip("\n")
        self.type("\x15")
        return line, self.said

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def commands():
    text = subprocess.run([GPUMGR, "help"], capture_output=True, text=True, env=clean_env()).stdout
    return [line.split()[0] for line in text.split("usage:")[1].split("\n`")[0].splitlines()[2:] if line.strip()]


def test_commands():
    assert set(complete("gpumgr", "")) == {*commands(), "help"}
    assert complete("gpumgr", "sub") == ["submit"]
    assert complete("gpumgr", "nothing") == []


@pytest.mark.parametrize("command", commands())
def test_flags_are_those_of_the_help_text(command):
    """Every flag that begins a line of the help is offered, and each is one that the command takes."""
    text = subprocess.run([GPUMGR, command, "--help"], capture_output=True, text=True, env=clean_env()).stdout
    listed = {line.split()[0].split("=")[0] for line in text.splitlines() if line.startswith("  --")}
    assert set(complete("gpumgr", command, "--")) == listed | {"--help"} or command == "sim"


def test_words_of_commands():
    assert set(complete("gpumgr", "queue", "")) == {"cordon", "uncordon"}
    assert complete("gpumgr", "completion", "b") == ["bash"]
    assert complete("gpumgr", "token", "re") == ["revoke"]


def test_values(tmp_path):
    (tmp_path / "job.json").touch()
    assert complete("gpumgr", "submit", "--file", f"{tmp_path}/jo") == [f"{tmp_path}/job.json"]
    assert complete("gpumgr", "submit", "--gpus", "") == []  # a number: nothing to offer
    assert complete("gpumgr", "run", "--pty", "--gpu") == ["--gpus", "--gpu"]


def test_the_command_of_a_job():
    assert "bash" in complete("gpumgr", "run", "--gpus", "2", "--", "bas")
    assert "bash" in complete("gpumgr", "run", "--gpus", "2", "bas")
    assert complete("gpumgr", "run", "--gpus", "2", "--", "bash", "--pt") == []  # that is bash's own


def test_no_server_is_no_trouble(tmp_path):
    assert complete("gpumgr", "logs", "", GPUMGR_DIR=tmp_path) == []


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
def test_zsh_with_its_tab_key(tmp_path):
    (tmp_path / "job.json").touch()
    z = Zsh(tmp_path)
    try:
        for words, line in [("gpumgr sub", "gpumgr submit "), ("gpumgr run --time", "gpumgr run --time-limit "),
                            (f"gpumgr submit --file {tmp_path}/jo", f"gpumgr submit --file {tmp_path}/job.json "),
                            # values with a colon in their name have nothing to offer, and no complaint either
                            ("gpumgr run --mount ", "gpumgr run --mount "), ("gpumgr up --listen ", "gpumgr up --listen ")]:
            got, said = z.complete(words)
            assert got.rstrip() == line.rstrip() and b"not found" not in said and b"error" not in said, (words, got, said)
    finally:
        z.end()


def test_wrong_shell_is_one_sentence():
    for words in ([], ["fish"], ["bash", "zsh"]):
        got = subprocess.run([GPUMGR, "completion", *words], capture_output=True, text=True, env=clean_env())
        assert got.returncode == 2 and got.stdout == "" and got.stderr.count("\n") == 1


def test_scripts_are_sound(tmp_path):
    for shell in ("bash", "zsh"):
        text = subprocess.run([GPUMGR, "completion", shell], capture_output=True, text=True, env=clean_env()).stdout
        assert text.endswith("\n")
        file = tmp_path / shell
        file.write_text(text)
        if shutil.which(shell):
            subprocess.run([shell, "-n", file], check=True)
    if shutil.which("shellcheck"):
        got = subprocess.run(["shellcheck", "-s", "bash", tmp_path / "bash"], capture_output=True, text=True)
        assert got.returncode == 0, got.stdout
