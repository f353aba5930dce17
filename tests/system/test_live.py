"""The whole way of a reading, with all the real programs: sampler, node, server, and what the API then says of it. Whoever
is killed on the way, no second that was read is missing from the history, and no event is in it twice."""

import http.client
import json
import os
import random
import time
from pathlib import Path

import pytest

from instance import Instance, followed, kill
from server import Server, UnixConnection
from simulator import Simulator, wait_for

ENERGY = "gpu_energy_joules_total"  # grows with every reading: its value names the reading


@pytest.fixture
def sim(tmp_path):
    with Simulator(tmp_path / "sim", "--model", "h200:2") as s:
        yield s


class Api:
    def __init__(self, i):
        self.path = i.dir / "run/server/api.sock"

    def __call__(self, path, method="GET", body=None, **headers):
        answer = Server.request(UnixConnection(self.path), method, "/api/v1/" + path, body, headers)
        assert answer.status < 300, answer.body
        return answer.json if answer.body else None

    def refuses(self, path, method="GET", body=None):
        answer = Server.request(UnixConnection(self.path), method, "/api/v1/" + path, body, {})
        assert answer.status >= 400
        return answer.status, answer.code

    def ready(self, count):
        """Waits until so many GPUs are known and read."""
        def look():
            try:
                gpus = self("gpus")["gpus"]
            except (OSError, http.client.HTTPException):
                return None
            return gpus if len(gpus) == count and all(g["state"] == "ok" and ENERGY in g["metrics"] for g in gpus) else None
        return wait_for(look, f"the server knows {count} GPUs")

    def stream(self):
        connection = UnixConnection(self.path)
        connection.request("GET", "/api/v1/events", headers={"Accept": "text/event-stream"})
        response = connection.getresponse()
        assert response.status == 200
        return messages(response)

    def readings(self, uuid, metric=ENERGY, since=-600):
        got = self(f"history?of=gpu:{uuid}&metric={metric}&from={since}&width=4000")["series"][0]
        assert got["resolution"] == "raw" and got["step_s"] == 0
        return [v for v in got["mean"] if v is not None]

    def timed(self, uuid, since=-600):
        got = self(f"history?of=gpu:{uuid}&metric={ENERGY}&from={since}&width=4000")["series"][0]
        return [(t, v) for t, v in zip(got["time"], got["mean"]) if v is not None]


def messages(response):
    name = None
    while line := response.readline().decode():
        if line.startswith("event: "):
            name = line[7:].rstrip()
        elif line.startswith("data:"):
            yield name, json.loads(line[5:])


def up(sim, *flags):
    return Instance(sim, "--listen", "127.0.0.1:0", *flags, role="up")


def server_of(i):
    return wait_for(lambda: i.of_program("server"), "a server runs")[0]


# ---- what is shown ----

def test_a_gpu_is_what_status_shows(sim):
    sim.task("--gpu", 0, "--memory", "8G", "--forever")
    with up(sim) as i:
        api = Api(i)
        api.ready(2)
        shown = wait_for(lambda: (g := api("gpus")["gpus"][0]).get("processes") and "user" in g["processes"][0] and g, "the task has a name")
        # What is read seldom comes a second later: both have it then.
        wait_for(lambda: set(api("gpus")["gpus"][0]["metrics"]) == set(i.gpu(0)["metrics"]) and "gpu_sm_active_ratio" in i.gpu(0)["metrics"],
                 "server and ring tell the same metrics")
        shown, local = api("gpus")["gpus"][0], i.gpu(0)
        assert shown["node"] == api("nodes")["nodes"][0]["name"] and shown["age_s"] < 5
        assert list(shown)[:len(local)] == list(local) and set(shown) - set(local) == {"node", "age_s"}
        assert shown["guard"] == local["guard"] and shown["xids"] == local["xids"] and shown["uuid"] == local["uuid"]
        process = shown["processes"][0]
        ticks = int(Path(f"/proc/{process['pid']}/stat").read_text().rsplit(")", 1)[1].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        assert abs(time.time() - age - process["start"]) < 1
        assert process["pid"] == local["processes"][0]["pid"] and "gpusim-task" in process["command"] and process["user"]
        one = api("gpus/" + shown["uuid"])
        inventory = i.status("--inventory")["gpus"][0]["inventory"]
        assert one["inventory"] == inventory and one["inventory"]["clocks_mhz"]
        node = api("nodes")["nodes"][0]
        assert node["state"] == "ok" and node["totals"]["gpus"] == 2 and node["host"]["host_cpus"] > 0
        assert node["driver"]["state"] == "ok" and node["gpus"][0] == shown["uuid"]
        assert api("nodes/" + node["name"])["boot_id"] == node["boot_id"]
        assert api.refuses("gpus/GPU-none") == (404, "not_found") and api.refuses("nodes/none") == (404, "not_found")


def test_the_stream_follows_a_card_that_is_lost_and_comes_back(sim):
    with up(sim) as i:
        api = Api(i)
        uuid = api.ready(2)[1]["uuid"]
        stream = api.stream()
        name, snapshot = next(stream)
        assert name == "snapshot" and [g["index"] for g in snapshot["gpus"]] == [0, 1]
        moved, state, events, seq = set(), None, [], snapshot["seq"]
        sim.say("fault 1 lost")
        for name, data in stream:
            if name == "event":
                events.append(data)
            if name == "delta":
                assert data["seq"] == seq + 1
                seq = data["seq"]
                change = data["gpus"].get(uuid, {})
                state = change.get("state", state)
                moved |= set(data["gpus"].get(snapshot["gpus"][0]["uuid"], {}).get("metrics", {}))
            if state == "lost" and any(e["kind"] == "gpu_lost" for e in events):
                break
        assert ENERGY in moved
        assert events[-1]["gpu"] == uuid and events[-1]["gpu_index"] == 1 and events[-1]["node"]
        assert api("nodes")["nodes"][0]["totals"]["lost"] == 1
        sim.say("heal 1")
        for name, data in stream:
            state = data["gpus"].get(uuid, {}).get("state", state) if name == "delta" else state
            if state == "ok":
                break
        listed = wait_for(lambda: [e for e in api(f"events?gpu={uuid}&kind=gpu_back")["events"]], "the list has it")
        assert len(listed) == 1
        assert {e["kind"] for e in api("events?severity=error")["events"]} >= {"gpu_lost"}
        assert api("events?kind=gpu_lost&to=-86400")["events"] == []


def test_pages_of_events(sim):
    with up(sim) as i:
        api = Api(i)
        api.ready(2)
        for n in range(6):
            sim.say("fault 0 lost" if n % 2 == 0 else "heal 0")
            wait_for(lambda: api("gpus")["gpus"][0]["state"] == ("lost" if n % 2 == 0 else "ok"), "the state")
        whole = wait_for(lambda: len(api("events?limit=1000")["events"]) >= 6 and api("events?limit=1000"), "all of them")
        assert whole["next"] is None
        got, cursor = [], None
        while True:
            page = api("events?limit=2" + (f"&before={cursor}" if cursor else ""))
            got += page["events"]
            cursor = page["next"]
            if not cursor:
                break
            assert len(page["events"]) == 2
        assert got == whole["events"]
        assert [e["time"] for e in got] == sorted((e["time"] for e in got), reverse=True)
        node = api("nodes")["nodes"][0]["name"]
        assert api(f"events?node={node}&limit=1000")["events"] == whole["events"] and api("events?node=none")["events"] == []


def test_history_of_several(sim):
    with up(sim) as i:
        api = Api(i)
        a, b = (g["uuid"] for g in api.ready(2))
        node = api("nodes")["nodes"][0]["name"]
        api("groups/pair", "PUT", {"members": [f"gpu:{a}", f"gpu:{b}"]})
        wait_for(lambda: len(api.readings(a)) > 3, "some readings")
        got = api(f"history?of=gpu:{a},gpu:{b},node:{node},group:pair,host:{node}".replace(f",host:{node}", "") + "&metric=gpu_power_limit_watts,gpu_temperature_celsius&from=-60")
        last = {(s["of"].split(":")[0], s["metric"]): [v for v in s["mean"] if v is not None][-1] for s in got["series"]}
        assert last["node", "gpu_power_limit_watts"] == last["group", "gpu_power_limit_watts"] == 1400  # watts add up
        assert last["node", "gpu_temperature_celsius"] < 100                                           # degrees do not
        host = api(f"history?of=host:{node},node:{node}&metric=host_cpus&from=-60")["series"]
        assert host[0]["mean"] == host[1]["mean"] != []
        assert api("history?of=gpu:GPU-none&metric=gpu_power_watts")["series"][0]["mean"] == []
        for query, want in [("of=gpu:a&metric=nothing", 400), ("of=a&metric=gpu_power_watts", 400), ("of=group:none&metric=gpu_power_watts", 404),
                            ("of=host:a&metric=gpu_power_watts", 400), ("of=gpu:a&metric=host_cpus", 400), ("metric=gpu_power_watts", 400),
                            ("of=gpu:a&metric=gpu_power_watts&from=-10&to=-20", 400), ("of=gpu:a&metric=gpu_power_watts&width=5", 400),
                            ("of=gpu:a&metric=gpu_power_watts&width=100000", 400), ("of=" + ",".join(["gpu:a"] * 65) + "&metric=gpu_power_watts", 400)]:
            assert api.refuses("history?" + query)[0] == want, query


# ---- orders ----

def test_a_limit_by_hand(sim):
    with up(sim) as i:
        api = Api(i)
        uuid = api.ready(2)[0]["uuid"]
        guard = f"gpus/{uuid}/guard"
        wait_for(lambda: api("gpus")["gpus"][0]["guard"].get("limit") == 700, "the guard acts")
        for body, want in [({}, 400), ({"limit_w": 100}, 400), ({"limit_w": 9999}, 400), ({"limit_w": 300, "target_c": 70}, 400), ({"clock_mhz": 900}, 409),
                           ({"limit_w": 300, "for_s": 0}, 400), ({"limit_w": 300, "for_s": 10, "confirm_s": 20}, 400), ({"confirm": True, "limit_w": 300}, 400),
                           ({"limit_w": "300"}, 400), ({"colour": 1}, 400)]:
            assert api.refuses(guard, "POST", body)[0] == want, body
        assert api("gpus")["gpus"][0]["guard"]["limit"] == 700
        assert api(guard, "POST", {"limit_w": 300, "for_s": 600}) == {"accepted": True}
        wait_for(lambda: api("gpus")["gpus"][0]["guard"]["limit"] == 300, "it is in force")
        assert api(guard, "POST", {"restore": True}) == {"accepted": True}
        wait_for(lambda: api("gpus")["gpus"][0]["guard"]["limit"] == 700, "it is as before")
        kill(wait_for(lambda: i.of_program("node"), "a node runs")[0])
        assert wait_for(lambda: api.refuses(guard, "POST", {"limit_w": 300}) if not i.of_program("node") else True, "it is away")
        for path in [("POST", "/api/v1/gpus/x/guard")]:
            member = Server.request(UnixConnection(api.path), *path, {"restore": True}, {})
            assert member.status == 404


# ---- whoever dies ----

@pytest.mark.parametrize("victims", [["server"], ["node"], ["server", "node", "sampler"]], ids=["server", "node", "all"])
def test_no_second_is_missing_whoever_is_killed(sim, victims):
    with up(sim, "--wait-ms", "200") as i:
        api = Api(i)
        uuids = {g["index"]: g["uuid"] for g in api.ready(2)}
        reader = i.follow(16)
        dice = random.Random(str(victims))
        end, kills = time.monotonic() + 11, 0
        while time.monotonic() < end:
            victim = dice.choice(victims)
            found = i.samplers() if victim == "sampler" else i.of_program(victim)
            if found:
                kill(found[0])
                kills += 1
            time.sleep(dice.uniform(0.5, 2.5))
        seen = [s for s in followed(reader) if "missed" not in s and ENERGY in s["metrics"]]
        assert kills >= 3 and len(seen) > 100
        api.ready(2)
        missing = None
        def all_there():
            nonlocal missing
            have = {index: set(api.readings(uuid)) for index, uuid in uuids.items()}
            missing = [s for s in seen if round(s["metrics"][ENERGY], 3) not in have[s["gpu"]]]
            return not missing
        try:
            wait_for(all_there, "every reading is in the history")
        except AssertionError:
            raise AssertionError((len(missing), len(seen), missing[:3]))


def test_a_stop_keeps_the_last_second_and_the_next_start_goes_on(sim):
    with up(sim) as i:
        api = Api(i)
        uuid = api.ready(2)[0]["uuid"]
        wait_for(lambda: len(api.readings(uuid)) >= 3, "some readings")
        server = server_of(i)
        before = api.timed(uuid)
        kill(server, 15)
        wait_for(lambda: i.of_program("server") and i.of_program("server")[0] != server, "another server")
        api.ready(2)
        after = wait_for(lambda: len(r := api.timed(uuid)) > len(before) and r, "more readings")
        assert after[:len(before)] == before, "what was there is there, once"
        assert all(t >= before[-1][0] for t, _ in after[len(before):]), "and what came later is later"


def test_an_event_is_kept_once_whoever_is_killed(sim):
    with up(sim) as i:
        api = Api(i)
        api.ready(2)
        for n in range(3):
            sim.say("fault 1 lost")
            i.wait_state(1, "lost")
            kill(server_of(i))
            sim.say("heal 1")
            i.wait_state(1, "ok")
            api.ready(2)
        def kinds():
            return sorted(e["kind"] for e in api("events?limit=1000")["events"] if e["kind"] in ("gpu_lost", "gpu_back"))
        wait_for(lambda: len(kinds()) >= 6, "all events")
        assert kinds() == ["gpu_back"] * 3 + ["gpu_lost"] * 3


def test_silence_is_shown(sim):
    with up(sim) as i:
        api = Api(i)
        api.ready(2)
        stream = api.stream()
        node = wait_for(lambda: i.of_program("node"), "a node runs")[0]
        kill(node, 19)  # stopped: it says nothing, and its connection stays
        try:
            for name, data in stream:
                if name == "delta" and any(n.get("state") == "stale" for n in data["nodes"].values()):
                    break
            gpu = api("gpus")["gpus"][0]
            assert gpu["state"] == "stale" and "node" in gpu["state_reason"]
        finally:
            kill(node, 18)
        wait_for(lambda: api("gpus")["gpus"][0]["state"] == "ok", "it speaks again")
