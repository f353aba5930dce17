#!/usr/bin/env python3
"""Learns to tell digits apart, on GPUs that it waits for.

A script in the manner of watchmen's clients: it asks the server on gpumgr's watchmen port (`watchmen.listen`) for GPUs, waits
until it is granted some, and trains on just those. Nothing but Python is needed to wait; to train it uses PyTorch where there is
one that sees a GPU, else gpusim-task, which uses simulated GPUs (`gpumgr up --sim 4`) as a training would.

  queue      wait until all of --cuda are free, and get these
  schedule   wait until --req_gpu_num of --cuda are free, and get that many of them
  none       do not ask, use --cuda

examples:
  mnist.py --id first --cuda 0,1 --wait queue
  mnist.py --id second --cuda 0,1,2,3 --wait schedule --req_gpu_num 2
"""

import argparse
import getpass
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path


class Refused(Exception):
    """The server said no; its own words."""


class Queue:
    """One client of the server: register, then ping until it is this one's turn."""

    def __init__(self, host, port, token, name):
        self.url = f"http://{host}:{port}"
        self.token = token
        self.name = name

    def call(self, path, body):
        headers = {"Content-Type": "application/json", **({"X-Auth-Token": self.token} if self.token else {})}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                got = json.load(answer)
        except urllib.error.HTTPError as e:
            raise Refused(f"status {e.code}: {e.read().decode(errors='replace').strip()}") from None
        if got["status"] != "ok":
            raise Refused(got["msg"])
        return got

    def register(self, gpus, mode, count):
        self.call("/client/register", {"id": self.name, "gpus": gpus, "mode": mode, "req_gpu_num": count})

    def wait(self, every_s):
        """The GPUs, once they are ours."""
        while True:
            got = self.call("/client/ping", {"id": self.name})
            if got["msg"] in ("ready", "ok"):
                return got["available_gpus"]
            if got["msg"] in ("timeout", "cancelled"):
                raise Refused(f"the place in the queue is gone: {got['msg']}")
            time.sleep(every_s)

    def cancel(self):
        self.call("/client/cancel", {"id": self.name})


# ---- training ----

FONT = ("0e11131519110e", "040c040404040e", "0e11010204081f", "1f02040201110e", "02060a121f0202",
        "1f101e0101110e", "0608101e11110e", "1f010204080808", "0e11110e11110e", "0e11110f01020c")  # 5 x 7 dots a digit


def digits(torch, count, seed):
    """Pictures of 28 x 28 like MNIST's, drawn here so that nothing is fetched: a digit somewhere, of some size, in noise."""
    random = torch.Generator().manual_seed(seed)
    dots = torch.tensor([[[int(row[i:i + 2], 16) >> (4 - x) & 1 for x in range(5)] for i in range(0, 14, 2)] for row in FONT])
    labels = torch.randint(0, 10, (count,), generator=random)
    pictures = torch.rand(count, 1, 28, 28, generator=random) * 0.3
    for i in range(count):
        scale = int(torch.randint(2, 4, (1,), generator=random))
        shape = dots[labels[i]].float().repeat_interleave(scale, 0).repeat_interleave(scale, 1)
        y, x = (int(torch.randint(0, 28 - n + 1, (1,), generator=random)) for n in shape.shape)
        pictures[i, 0, y:y + shape.shape[0], x:x + shape.shape[1]] += shape * 0.7
    return pictures, labels


def train(torch, epochs):
    device = torch.device("cuda")
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(64 * 12 * 12, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    net = torch.nn.DataParallel(net.to(device))
    steps = torch.optim.Adam(net.parameters(), 1e-3)
    pictures, labels = (t.to(device) for t in digits(torch, 8192, 1))
    held_back, truth = (t.to(device) for t in digits(torch, 1024, 2))
    for epoch in range(1, epochs + 1):
        net.train()
        for at in torch.randperm(len(labels), device=device).split(256):
            steps.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(pictures[at]), labels[at])
            loss.backward()
            steps.step()
        net.eval()
        with torch.no_grad():
            right = (net(held_back).argmax(1) == truth).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, {right:.1%} of {len(truth)} unseen digits right", flush=True)
    return 0


def simulated_task():
    """gpusim-task: named by GPUSIM_TASK, on the path, or in the build directory beside this file."""
    beside = Path(__file__).resolve().parent.parent / "build/sim/gpusim-task"
    for program in (os.environ.get("GPUSIM_TASK"), shutil.which("gpusim-task"), beside):
        if program and os.access(program, os.X_OK):
            return str(program)
    return None


def work(gpus, epochs):
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
    try:
        import torch  # only now: it looks at CUDA_VISIBLE_DEVICES when it is loaded
        if torch.cuda.is_available():
            return train(torch, epochs)
    except ImportError:
        pass
    program = simulated_task()
    if not program:
        print("mnist.py: neither a PyTorch that sees a GPU nor gpusim-task is here", file=sys.stderr)
        return 1
    words = [word for gpu in gpus for word in ("--gpu", str(gpu))]
    return subprocess.run([program, *words, "--work", str(epochs), "--name", "mnist"]).returncode


# ---- words ----

def indices(text):
    """"0,2,3" as a list; nothing is evaluated."""
    try:
        gpus = [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of GPU numbers, as in 0,2,3") from None
    if len(set(gpus)) != len(gpus) or min(gpus) < 0:
        raise argparse.ArgumentTypeError(f"{text!r}: each GPU once, none below zero")
    return gpus


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--id", required=True, help="what this one is called in the queue")
    parser.add_argument("--cuda", required=True, type=indices, help="GPUs, as in 0,2,3")
    parser.add_argument("--wait", default="none", choices=["queue", "schedule", "none"])
    parser.add_argument("--req_gpu_num", type=int, default=1, help="with schedule: how many of --cuda (1)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=62333)
    parser.add_argument("--token", default=os.environ.get("WATCHMEN_TOKEN", ""))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--every", type=float, default=1, help="seconds between two questions (1)")
    wish = parser.parse_args()
    gpus = wish.cuda
    if wish.wait != "none":
        queue = Queue(wish.host, wish.port, wish.token, f"{getpass.getuser()}@{wish.id}")
        try:
            queue.register(gpus, wish.wait, wish.req_gpu_num if wish.wait == "schedule" else len(gpus))
            print(f"{wish.id}: waiting for {wish.req_gpu_num if wish.wait == 'schedule' else 'all'} of {gpus}", flush=True)
            gpus = queue.wait(wish.every)
        except KeyboardInterrupt:
            queue.cancel()
            return 130
        except (Refused, OSError) as e:
            print(f"mnist.py: {e}", file=sys.stderr)
            return 1
    print(f"{wish.id}: on GPUs {gpus}", flush=True)
    return work(gpus, wish.epochs)


if __name__ == "__main__":
    sys.exit(main())
