"""Times that come again, beside an independent reckoning: Python's own zones and a walk from minute to minute."""
import os
import random
import subprocess
import zoneinfo
from datetime import datetime, timedelta, timezone

import pytest

TOOL = os.path.join(os.environ["BUILD_DIR"], "tests", "recur_times")
DIRECTORY = next((d for d in zoneinfo.TZPATH if os.path.isdir(d)), None)
ZONES = ["Europe/Berlin", "Europe/London", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Kathmandu",
         "Asia/Tehran", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Apia", "Pacific/Chatham", "Africa/Casablanca", "Africa/Cairo",
         "America/Santiago", "America/Nuuk", "Antarctica/Troll", "Europe/Dublin", "Asia/Gaza", "UTC"]
UTC = timezone.utc
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
pytestmark = pytest.mark.skipif(DIRECTORY is None, reason="no time zones on this machine")


def told(rows):
    text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    out = subprocess.run([TOOL], input=text, capture_output=True, text=True, check=True, timeout=300).stdout
    return [[int(w) for w in line.split()] if not line.startswith("!") else line[2:] for line in out.splitlines()]


# ---- cron, read a second time ----

def field(text, least, most, names=()):
    out = set()
    for part in text.split(","):
        body, _, step = part.partition("/")
        value = lambda w: least + names.index(w.lower()) if w.lower() in names else int(w)
        low, _, high = body.partition("-")
        first, last = (least, min(most, 6) if names is DAYS else most) if body == "*" else (value(low), value(high) if high else value(low))
        out |= set(range(first, last + 1, int(step or 1)))
    return out


class Cron:
    def __init__(self, text):
        m, h, d, mo, w = text.split()
        self.minutes, self.hours, self.days = field(m, 0, 59), field(h, 0, 23), field(d, 1, 31)
        self.months, self.weekdays = field(mo, 1, 12, MONTHS), {x % 7 for x in field(w, 0, 7, DAYS)}
        self.both = d[0] == "*" or w[0] == "*"
        self.is_elapsed = m[0] == "*" or h[0] == "*"

    def fits(self, t):
        if t.minute not in self.minutes or t.hour not in self.hours or t.month not in self.months:
            return False
        by_date, by_week = t.day in self.days, (t.weekday() + 1) % 7 in self.weekdays
        return (by_date and by_week) if self.both else (by_date or by_week)


def moment(local, zone):
    """When clocks first show it; where they never do, when they jump over it."""
    there = [u for u in (local.replace(tzinfo=zone, fold=f).astimezone(UTC) for f in (0, 1)) if u.astimezone(zone).replace(tzinfo=None) == local]
    if there:
        return int(min(there).timestamp())
    at = local.replace(tzinfo=UTC) - timedelta(hours=27)
    while at.astimezone(zone).replace(tzinfo=None) < local:
        at += timedelta(minutes=1)
    return int(at.timestamp())


def walked(cron, zone, after, until):
    if cron.is_elapsed:
        first = (after // 60 + 1) * 60
        return [u for u in range(first, until + 1, 60) if cron.fits(datetime.fromtimestamp(u, zone))]
    out = set()
    local = datetime.fromtimestamp(after, zone).replace(tzinfo=None, second=0, microsecond=0, fold=0) - timedelta(days=2)
    end = datetime.fromtimestamp(until, zone).replace(tzinfo=None, fold=0) + timedelta(days=1)
    while local <= end:
        if cron.fits(local):
            out.add(moment(local, zone))
        local += timedelta(minutes=1)
    return sorted(u for u in out if after < u <= until)


def random_field(r, least, most, names=()):
    name = lambda v: r.choice([str(v), names[v - least]]) if names and v - least < len(names) else str(v)
    def part():
        kind = r.random()
        if kind < 0.35:
            return name(r.randint(least, most))
        low = r.randint(least, most)
        high = r.randint(low, most)
        span = "*" if kind < 0.55 else f"{name(low)}-{name(high)}"
        return span if kind > 0.75 else f"{span}/{r.randint(1, max(1, most // 2))}"
    return "*" if r.random() < 0.3 else ",".join(part() for _ in range(r.choice([1, 1, 1, 2, 3])))


def random_cron(r):
    minute = r.choice(["0", "30", "*/15", "0", random_field(r, 0, 59)])
    hour = r.choice(["2", "3", "1-3", "*", random_field(r, 0, 23)])
    return " ".join([minute, hour, r.choice(["*", random_field(r, 1, 31)]), r.choice(["*", "*", random_field(r, 1, 12, MONTHS)]),
                     r.choice(["*", random_field(r, 0, 7, DAYS)])])


def changes(zone, year):
    """Days of a year in which clocks change."""
    at = datetime(year, 1, 1, tzinfo=UTC)
    for _ in range(366):
        later = at + timedelta(days=1)
        if at.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset():
            yield int(at.timestamp())
        at = later


def test_cron_beside_a_walk():
    r = random.Random(7)
    rows, wanted = [], []
    for i in range(300):
        name = r.choice(ZONES)
        zone, text = zoneinfo.ZoneInfo(name), random_cron(r)
        year = r.choice([r.randint(1975, 2037), r.randint(2020, 2030), r.randint(2038, 2190)])
        near = list(changes(zone, year)) if i % 2 else []
        after = (r.choice(near) if near else int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) + r.randrange(360 * 86400)) - r.randrange(86400)
        until = after + r.choice([2, 3, 5]) * 86400
        rows.append(("cron", text, os.path.join(DIRECTORY, name), after, until))
        wanted.append(walked(Cron(text), zone, after, until))
    got = told(rows)
    for row, have, want in zip(rows, got, wanted):
        assert isinstance(have, str) and "never comes" in have and not want or have == want, (row, have, want)
    assert sum(len(w) for w in wanted) > 5000


def test_cron_that_is_rare():
    """Years apart, against a search by days."""
    r = random.Random(8)
    rows, wanted = [], []
    for _ in range(40):
        text = f"0 12 {r.choice(['29', '31', '30,31', '29'])} {r.choice(['2', 'feb', '2,4', 'jan-dec/3'])} {r.choice(['*', '*/2', '*'])}"
        cron, after = Cron(text), int(datetime(r.randint(1975, 2100), 1, 1, tzinfo=UTC).timestamp())
        until = after + 60 * 366 * 86400
        days = (datetime.fromtimestamp(after, UTC) + timedelta(days=i, hours=12) for i in range(60 * 366))
        rows.append(("cron", text, "", after, min(until, 7258118400 - 1)))
        wanted.append([int(d.timestamp()) for d in days if cron.fits(d) and after < d.timestamp() <= rows[-1][4]])
    for row, have, want in zip(rows, told(rows), wanted):
        assert isinstance(have, str) and "never comes" in have and not want or have == want, row


# ---- intervals ----

def later(day, months):
    month = day.year * 12 + day.month - 1 + months
    year, month = divmod(month, 12)
    for last in range(day.day, 0, -1):
        try:
            return day.replace(year=year, month=month + 1, day=last)
        except ValueError:
            pass


def test_intervals_beside_a_walk():
    r = random.Random(9)
    rows, wanted = [], []
    for _ in range(200):
        name = r.choice(ZONES)
        zone = zoneinfo.ZoneInfo(name)
        start = datetime(r.randint(1975, 2090), r.randint(1, 12), r.randint(1, 28), r.randint(0, 23), r.choice([0, 30]))
        start = r.choice([start, later(start, 1).replace(day=1) - timedelta(days=1)])
        months, days, hours, count = r.choice([(0, 0, r.randint(1, 50), 0), (0, r.randint(1, 9), 0, 5), (r.randint(1, 14), 0, 0, 0), (1, 2, 3, 7)])
        count = count or r.choice([0, 3, 40])
        span = "P" + (f"{months}M" if months else "") + (f"{days}D" if days else "") + (f"T{hours}H" if hours else "")
        to_end, written = r.random() < 0.3, start.isoformat()
        text = f"R{count or ''}/{span}/{written}" if to_end else f"R{count or ''}/{written}/{span}"
        steps = range(-(count or 60), 0) if to_end else range(count or 60)
        all_of_it = []
        for k in steps:
            local = later(start, k * months) + timedelta(days=k * days)
            all_of_it.append(moment(local, zone) + k * hours * 3600)
        at = r.choice(all_of_it)
        after, until = at - r.choice([0, 1, 10 ** 6]), at + 86400 * r.choice([1, 30, 400])
        if not count:
            until, after = min(until, all_of_it[-1]), max(after, all_of_it[0] - 1)
        rows.append(("interval", text, os.path.join(DIRECTORY, name), after, until))
        wanted.append([u for u in all_of_it if after < u <= until])
    for row, have, want in zip(rows, told(rows), wanted):
        assert have == want, row
    assert sum(len(w) for w in wanted) > 500


# ---- zones ----

def test_every_zone_of_the_machine():
    """Each hour at which some clocks change is found: an expression of every minute in a day around it."""
    r = random.Random(10)
    names = sorted(zoneinfo.available_timezones() - {"localtime"})
    names = [n for n in names if os.path.exists(os.path.join(DIRECTORY, n)) and not n.startswith(("right/", "posix/"))]
    rows, wanted = [], []
    for name in names:
        zone, year = zoneinfo.ZoneInfo(name), r.choice([1985, 2007, 2026, 2045, 2150])
        for at in list(changes(zone, year))[:1] or [1700000000]:
            rows.append(("cron", "0,30 * * * *", os.path.join(DIRECTORY, name), at - 3600, at + 90000))
            wanted.append([u for u in range((at - 3600) // 60 * 60 + 60, at + 90001, 60) if datetime.fromtimestamp(u, zone).minute in (0, 30)])
    assert len(names) > 300
    for row, have, want in zip(rows, told(rows), wanted):
        assert have == want, row
