"""The server is killed at every numbered step of submit, grant, start, end and cancel (base/crash_point.h), one after the other: the
story goes on with another one, and ends as it should."""

import struct
import subprocess

import pytest

from instance import clean_env
from job_node import CANCEL, CONTROL, ENDED, RUNNING, Books, JobNode, job_record
from server import Server
from simulator import BUILD, wait_for


PARTS = 4  # that may run beside each other


class Mortal(Server):
    """Dies at the step of that number, once."""

    def __init__(self, step):
        self.step = step
        super().__init__()

    def start(self):
        for name in ("listen", "api.sock"):
            (self.dir / "run/server" / name).unlink(missing_ok=True)
        env = {**clean_env(), **({"GPUMGR_CRASH": f"server:{self.step}"} if self.step else {})}
        self.process = subprocess.Popen([str(BUILD / "tests/server_crash"), "serve", str(self.dir), str(self.dir / "run/settings"), "0"],
                                        env=env, stderr=self.log_path.open("a"))
        wait_for(self.is_there, "the server answers, or is dead")

    def is_there(self):
        return self.is_dead() or self.is_up()

    def is_up(self):
        try:
            return self.unix("GET", "/healthz").status == 200
        except OSError:
            return False

    def is_dead(self):
        return self.process.poll() is not None


class Story:
    """What people do; whatever fails because the server died is done again, as they would."""

    def __init__(self, step):
        self.server, self.books, self.died = Mortal(step), Books(), False
        self.node = None
        self.connect()

    def connect(self):
        while True:
            if self.server.is_dead():
                assert self.server.process.returncode == -9 and not self.died, self.server.log_path.read_text()
                self.died, self.server.step = True, 0
                self.server.start()
            if self.node:
                self.node.close()
            try:
                self.node = JobNode(self.server.dir / "run/server/link.sock", self.books)
                return
            except (OSError, AssertionError):
                wait_for(self.server.is_dead, "the server is dead, if its socket is")

    def until(self, fact, what):
        def either():
            if self.server.is_dead():
                self.connect()
            return fact()
        wait_for(either, what)

    def do(self, act):
        """Until it was acknowledged. True: not at the first go."""
        for again in (False, True):
            request = act()
            self.until_answer(request)
            if request in self.node.answers:
                return self.node.answers.pop(request), again
            self.connect()
        raise AssertionError("no answer, and the server lives")

    def until_answer(self, request):
        wait_for(lambda: request in self.node.answers or self.server.is_dead(), "an answer, or the end")

    def get(self, path):
        for again in (False, True):
            try:
                return self.server.unix("GET", path).json
            except OSError:
                assert not again
                wait_for(self.server.is_dead, "the server is dead, if it does not answer")
                self.connect()

    def cancel_soon(self, job):
        self.node.request += 1
        self.node.say(CONTROL, struct.pack("<QIBqqq", self.node.request, self.node.uid, CANCEL, job, -1, 0))
        return self.node.request

    def close(self):
        self.node.close()
        if not self.server.is_dead():
            self.server.process.kill()  # its last steps are not the story's
            self.server.process.wait(30)
        self.server.__exit__()


def tell(story):
    """Three jobs: one that is done, one that fails and is tried again, one that is cancelled while it runs."""
    jobs = []
    for rec in (job_record(("exit", "0"), gpus=4), job_record(("exit", "3"), gpus=4, retries=1), job_record(("hold",), gpus=4)):
        answer, again = story.do(lambda: story.node.submit_soon([rec]))
        assert answer["result"] == 0
        jobs.append((answer["first"], again))
    second, last = jobs[1][0], jobs[2][0]
    books = story.books
    story.until(lambda: others_end(story, last) and books.state((last, 0, 1)) == RUNNING, "the last one runs")
    answer, again = story.do(lambda: story.cancel_soon(last))
    assert answer["result"] == 0 or again, answer
    story.until(lambda: books.state((last, 0, 1)) == ENDED, "it has ended")
    story.until(lambda: others_end(story, None) and books.state((second, 0, 2)) == ENDED, "the second attempt was made")
    story.until(lambda: all(r["stored"] for r in books.runs.values()), "all ends are stored")
    return jobs


def others_end(story, last):
    """A submission that was stored but not acknowledged is there, too: people end it when they see it."""
    for k, run in list(story.books.runs.items()):
        if run["state"] == RUNNING and k[0] != last:
            story.node.finish(k, 0)
    return True


def check(story, jobs):
    books = story.books
    assert len(books.starts) == len(set(books.starts)), "a run was started twice"
    known = {j["id"]: j for j in story.get("/api/v1/jobs")["jobs"]}
    for (job, _), state in zip(jobs, ("done", "failed", "cancelled")):
        assert known[job]["state"] == state, known[job]
    second = [k for k in books.starts if k[0] == jobs[1][0]]
    assert second == [(jobs[1][0], 0, 1), (jobs[1][0], 0, 2)]
    runs = story.get(f"/api/v1/jobs/{jobs[1][0]}")["runs"]
    assert [(r["attempt"], r["exit_code"]) for r in runs] == [(1, 3), (2, 3)]


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_every_step(part):
    step, survived, seen = part, 0, 0
    while survived < 2:
        step += PARTS
        story = Story(step)
        try:
            jobs = tell(story)
            check(story, jobs)
            survived += not story.died
            seen += story.died
        except AssertionError as e:
            raise AssertionError(f"killed at step {step}: {e}") from e
        finally:
            story.close()
    assert seen > 5, f"{seen} steps were seen"
