"""The history file when things go wrong: kill -9 at any moment, a full disk, damage, files that are newer or older."""
import contextlib, os, pathlib, random, select, sqlite3, subprocess, time

import pytest

from hand_node import HandNode
from server import Server
from simulator import wait_for

WRITER = pathlib.Path(os.environ.get("BUILD_DIR", "build")) / "tests" / "history_writer"


def tool(*args, check=True):
    done = subprocess.run([WRITER, *map(str, args)], capture_output=True, text=True, timeout=60)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def lines_until_killed(writer, after_s):
    """Reads what it says, kills it some time after its first line, and gives the last whole line."""
    text, end = b"", None
    while end is None or time.monotonic() < end:
        ready, _, _ = select.select([writer.stdout], [], [], 10 if end is None else max(0, end - time.monotonic()))
        if ready:
            more = os.read(writer.stdout.fileno(), 65536)
            assert more, "the writer ended by itself"
            text += more
            end = end or time.monotonic() + after_s
    writer.kill()
    writer.wait()
    text += writer.stdout.read()
    return int(text[:text.rindex(b"\n")].split(b"\n")[-1])


@contextlib.contextmanager
def opened(path):
    """A connection that commits and closes: what an open one leaves is in the WAL."""
    db = sqlite3.connect(path)
    yield db
    db.commit()
    db.close()


def integrity(path):
    with opened(path) as db:
        return db.execute("PRAGMA integrity_check").fetchall()


def test_killed_at_any_moment(tmp_path):
    path, rng, stored = tmp_path / "history.db", random.Random(11), 0
    rounds = 0
    while rounds < 40 or (stored <= 2000 and rounds < 200):  # long enough for parts and merges to have been cut short
        rounds += 1
        writer = subprocess.Popen([WRITER, "write", path], stdout=subprocess.PIPE)
        said = lines_until_killed(writer, rng.random() * 0.12)
        assert said > stored
        assert integrity(path) == [("ok",)]
        stored = int(tool("check", path).stdout.split()[0])
        assert said <= stored <= said + 5, "what was said to be stored is, and at most one flush more"
    assert stored > 2000
    with opened(path) as db:
        kinds = {row[0] for row in db.execute("SELECT DISTINCT id >> 56 FROM block")}
        events = [row[0] for row in db.execute("SELECT code FROM event ORDER BY id")]
    assert {1, 4, 7} <= kinds, "readings, minutes and hours were merged"
    assert events == sorted(set(events)) and len(events) >= stored // 50 - 1


def test_restart_goes_on_where_it_ended(tmp_path):
    path = tmp_path / "history.db"
    for count in (5, 100, 400, 405, 2000):
        tool("write", path, count)
        assert tool("check", path).stdout.split() == [str(count), str(3 * count)]
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert not os.path.exists(f"{path}-wal"), "a normal end leaves one file"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte of our own."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], capture_output=True).returncode:
        pytest.skip("a small file system needs the right to mount one")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def start_without_room(place):
    """What a server says that starts when there is no room at all."""
    done = tool("write", place / "other.db", 5, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    return done.stderr


def test_full_disk(small_disk):
    path, filler = small_disk / "history.db", small_disk / "filler"
    writer = subprocess.Popen([WRITER, "write", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    said = int(writer.stdout.readline())
    fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, b"x" * 4096)
    os.close(fd)
    line = ""
    for line in writer.stdout:
        if line.startswith("failed"):
            break
        said = int(line)
    assert line.startswith("failed -28 ") and str(path) in line, line
    no_room = start_without_room(small_disk)
    assert "disk is full" in no_room or "No space left" in no_room
    filler.unlink()
    writer.stdin.write("\n")  # room was made: the same flush is tried again
    writer.stdin.flush()
    after = int(writer.stdout.readline())
    assert after == said + 5
    writer.kill()
    writer.wait()
    assert integrity(path) == [("ok",)]
    assert int(tool("check", path).stdout.split()[0]) >= after


def test_newer_and_foreign_files_are_left_alone(tmp_path):
    path = tmp_path / "history.db"
    tool("write", path, 50)
    with opened(path) as db:
        db.execute("UPDATE meta SET value = 99 WHERE key = 'version'")
    before = path.read_bytes()
    done = tool("write", path, 100, check=False)
    assert done.returncode != 0 and "newer gpumgr" in done.stderr and done.stderr.count("\n") == 1
    assert path.read_bytes() == before
    other = tmp_path / "other.db"
    with opened(other) as db:
        db.execute("CREATE TABLE mine (a)")
    done = tool("write", other, 100, check=False)
    assert done.returncode != 0 and "is not a history" in done.stderr
    with opened(other) as db:
        assert [row[0] for row in db.execute("SELECT name FROM sqlite_schema")] == ["mine"]


def test_damaged_rows_cost_themselves_only(tmp_path):
    path = tmp_path / "history.db"
    tool("write", path, 3000)
    with opened(path) as db:
        rows = db.execute("SELECT id FROM block WHERE id >> 56 IN (0, 1)").fetchall()
        for (row,) in rows[::5]:
            (data,) = db.execute("SELECT data FROM block WHERE id = ?", (row,)).fetchone()
            rng = random.Random(row)
            spoilt = bytearray(data)
            for _ in range(8):
                spoilt[rng.randrange(len(spoilt) // 2)] = rng.randrange(256)
            db.execute("UPDATE block SET data = ? WHERE id = ?", (bytes(spoilt[: len(spoilt) - 3]), row))
        for (row,) in db.execute("SELECT id FROM flush LIMIT 1").fetchall():
            db.execute("UPDATE flush SET data = x'01ffffff' WHERE id = ?", (row,))
    marked, found, damaged = map(int, tool("count", path).stdout.split())
    assert marked == 3000 and 0.6 * 9000 < found < 9000
    tool("write", path, 4000)  # goes on, and still merges what is sound
    later, found_later, _ = map(int, tool("count", path).stdout.split())
    assert later == 4000 and found_later == found + 3000


def test_the_indexes_of_tasks_come_with_the_first_task():
    """They are pages that a machine without tasks need not have; with many tasks a container's page would be slow without."""
    with Server() as server:
        def indexes():
            db = sqlite3.connect(f"file:{server.dir}/server/history.db?mode=ro", uri=True)
            names = {row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'task_%'")}
            db.close()
            return names
        assert indexes() == set()
        with HandNode(server.dir / "run/server/link.sock") as node:
            node.task(77, ["GPU-a"], took=1.0, container="ab" * 32)
            wait_for(lambda: indexes() == {"task_container", "task_open"}, "they are there")
        assert [t["pid"] for t in server.unix("GET", f"/api/v1/tasks?container={'ab' * 32}").json["tasks"]] == [77]
