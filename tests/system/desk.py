"""Somebody at a terminal: a real pty that belongs to a user, read as he would read it."""

import fcntl
import os
import subprocess
import termios


class Desk:
    def __init__(self, uid):
        self.uid = uid
        self.master, self.slave = os.openpty()
        os.fchown(self.slave, uid, -1)
        self.mesg(True)
        os.set_blocking(self.master, False)
        self.seen = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.master)
        os.close(self.slave)

    def mesg(self, is_yes):
        """As by mesg y and mesg n."""
        os.fchmod(self.slave, 0o620 if is_yes else 0o600)

    def text(self):
        """Everything that was shown so far."""
        while True:
            try:
                got = os.read(self.master, 4096)
            except (BlockingIOError, OSError):
                return self.seen
            if not got:
                return self.seen
            self.seen += got.decode()

    def stop(self):
        """As by ^S: nothing more is shown."""
        termios.tcflow(self.slave, termios.TCOOFF)

    def start(self, *command, **kw):
        """A process of his that sits at this terminal."""
        def sit():
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
            os.setresuid(self.uid, self.uid, self.uid)
        return subprocess.Popen(list(map(str, command)), stdin=self.slave, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                preexec_fn=sit, cwd="/", **kw)
