"""Cards that are cut into MIG instances: each instance is given away by itself, and who asks for cards gets cards."""

import json
import os

import pytest

from instance import BUILD, Instance
from job_box import NO_ENGINES, gpumgr, job, queue, state, submit, verdicts
from simulator import Simulator, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the box has a system's instance")
TASK = f"{BUILD}/sim/gpusim-task"


def machine(path, models):
    sim = Simulator(path / "sim", "--model", models, "--mig")
    return sim, Instance(sim, "--gpu-devices", sim.dir / "dev", *NO_ENGINES, role="up")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """An H200 in four parts, and a whole RTX 4090."""
    sim, box = machine(tmp_path_factory.mktemp("mig"), "h200,rtx4090")
    with sim, box as i:
        i.sim = sim
        wait_for(lambda: verdicts(i) == ["free"] * 5, "all are free", 60)
        yield i


def names(box):
    return {g["name"]: g for g in queue(box)["gpus"]}


def test_instances_have_names_and_memory_of_their_own(mixed):
    got = names(mixed)
    assert list(got) == ["0:0", "0:1", "0:2", "0:3", "1"]
    assert all(g["uuid"].startswith("MIG-") for n, g in got.items() if ":" in n) and got["0:1"]["index"] == 0
    assert got["0:0"]["memory_total_bytes"] > got["0:1"]["memory_total_bytes"] > got["0:2"]["memory_total_bytes"]


def test_who_asks_for_a_card_gets_a_card_and_who_says_how_much_the_least_that_suffices(mixed):
    rows = [((), "1"), (("--memory", "10GiB"), "0:2"), (("--memory", "20GiB"), "1"), (("--memory", "30GiB"), "0:1"), (("--gpu", "0:3"), "0:3"),
            (("--of", "0:0,0:1"), "0:1"), (("--gpu", names(mixed)["0:0"]["uuid"]), "0:0")]
    for words, want in rows:
        done = state(mixed, submit(mixed, *words, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"), "done")
        assert done["gpu_names"] == [want], words
        assert gpumgr(mixed, "logs", done["id"]).stdout.strip() == names(mixed)[want]["uuid"]


@pytest.mark.parametrize("words, sentence", [
    (("--gpus", "2"), "--gpus: 2 are wanted, and {node} has 1; MIG instances are given one by one, or by name (0:1)"),
    (("--gpu", "0"), "--gpu: GPU 0 of {node} is cut into MIG instances: name one, from 0:0 to 0:3"),
    (("--gpu", "0:4"), "--gpu: there is no GPU 0:4 on {node}"),
    (("--gpu", "0:01"), '--gpu: "0:01" is neither an index nor a UUID'),
    (("--gpu", "0:"), '--gpu: "0:" is neither an index nor a UUID'),
    (("--memory", "100GiB"), "--memory: 100.0 GiB on 1 GPU is wanted, and 0 of {node} can have that; the largest has 69.8 GiB"),
])
def test_what_cannot_be_is_refused(mixed, words, sentence):
    got = gpumgr(mixed, "submit", *words, "--", "true")
    assert got.returncode == 2 and sentence.format(node=queue(mixed)["gpus"][0]["node"]) in got.stderr, got.stderr


def test_each_instance_is_given_to_one_at_a_time_and_told_apart(mixed):
    a = submit(mixed, "--gpu", "0:1", "--", TASK, "--quiet", "--memory", "2G", "--forever")
    b = submit(mixed, "--gpu", "0:2,0:3", "--", "sleep", "1000")
    state(mixed, a, "running"), state(mixed, b, "running")
    c = submit(mixed, "--gpu", "0:1", "--", "true")
    waits = wait_for(lambda: (j := job(mixed, c))["why"] and j, "a reason")
    assert waits["state"] == "waiting" and f"GPU 0:1 is held by job {a}" in waits["why"]
    used = wait_for(lambda: (j := job(mixed, a))["gpu_utilization_ratio"] and j["memory_now_bytes"] and j, "its figures", 60)
    assert used["gpu_seconds"] > 0 and used["memory_now_bytes"] >= 2 << 30, "an H200 tells what an instance does"
    wait_for(lambda: (names(mixed)["0:1"]["memory_bytes"] or 0) >= 2 << 30 and not names(mixed)["0:2"]["memory_bytes"], "its memory is its instance's")
    for number in (a, b):
        gpumgr(mixed, "cancel", number)
    state(mixed, c, "done")


def test_somebody_outside_the_queue_has_his_instance_and_no_other(mixed):
    task = mixed.sim.task("--gpu", "0", "--mig", "2", "--forever", "--memory", "1G")
    wait_for(lambda: names(mixed)["0:2"]["verdict"] == "foreign", "he is seen", 60)
    assert {n: g["verdict"] for n, g in names(mixed).items() if n != "0:2"} == dict.fromkeys(["0:0", "0:1", "0:3", "1"], "free")
    assert state(mixed, submit(mixed, "--memory", "10GiB", "--", "true"), "done")["gpu_names"] == ["0:3"]
    task.kill()
    task.wait()
    wait_for(lambda: names(mixed)["0:2"]["verdict"] == "free", "he is gone", 60)


def test_a_machine_of_instances_alone_gives_them_to_everybody_and_invents_no_use(tmp_path):
    """An A100 does not tell what an instance of it does: then nobody knows, and nothing is called idle."""
    sim, box = machine(tmp_path, "a100")
    with sim, box as i:
        i.sim = sim
        wait_for(lambda: set(verdicts(i)) == {"free"}, "all are free", 60)
        number = submit(i, "--", TASK, "--quiet", "--memory", "1G", "--forever")
        got = wait_for(lambda: (j := job(i, number))["memory_now_bytes"] and j, "its figures", 60)
        assert got["gpu_names"][0].startswith("0:") and got["gpu_seconds"] is None and got["gpu_utilization_ratio"] is None
        gpumgr(i, "cancel", number)
        assert state(i, number, "cancelled")["gpu_utilization_ratio"] is None


def test_a_history_with_instances_is_played_on_them(mixed):
    """What ran in a part of a card is replayed in parts: a job for 10 GiB would not fit where only the whole card is."""
    for words in (("--memory", "10GiB"), ("--gpu", "0:3"), ("--share", "5GiB"), ()):
        state(mixed, submit(mixed, *words, "--", "true"), "done")
    got = json.loads(gpumgr(mixed, "simulate", "--json").stdout)
    assert (got["nodes"], got["gpus"], got["left_out_by"]["scope"], got["left_out_by"]["memory"]) == (1, 5, 0, 0)
    assert got["jobs"] >= 4 and got["shares"] >= 1
    text = gpumgr(mixed, "simulate", "--policy", "fair").stdout
    assert "on 1 machine with 5 GPUs each (4 MIG instances)" in text, text
