"""Plots the loss against time for 1, 2 and 4 workers that train the same network.

    python3 plot_workers.py [--seconds 20] [--out workers.svg]

For each number it starts a broker and a host of its own (`pserver up`, from this checkout after
`make build`), and the workers, which are this program again. They step without waiting for each
other; each computes on one processor, so that there should be more processors than workers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List, Tuple

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import pserver
import pserver.torch
from digits import batches, load_digits
from svg_plot import plot_lines

JOB = "plot"
PSERVER = Path(__file__).parents[2] / "dist" / "pserver.js"
STOP_TIMEOUT = 30.0
#: Losses are averaged over so many parts of the time.
PARTS = 40


def work(rank: int, seconds: float) -> None:
    """Trains until the time is over; prints the time and the loss of every step."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    train, _ = load_digits()
    model = nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        *(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(512, 10)),
    )
    with pserver.connect(trainer=f"worker-{rank}") as ps:
        pserver.torch.sync(ps, model, optimizer="sgd", learning_rate=0.02)
        optimizer = pserver.torch.Optimizer(ps, model.parameters())
        print("ready", flush=True)
        sys.stdin.readline()
        begin = time.monotonic()
        for images, labels in batches(train, 128, seed=rank):
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            elapsed = time.monotonic() - begin
            print(json.dumps([elapsed, loss.item()]), flush=True)
            if elapsed > seconds:
                return


@contextmanager
def server() -> Iterator[str]:
    """Runs a broker and a host; gives the broker's address."""
    with tempfile.TemporaryDirectory() as store:
        up = ["node", str(PSERVER), "up", "--json", "--job", JOB, "--port", "0", "--store", store]
        with subprocess.Popen(up, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                if not line:
                    raise SystemExit("expected `pserver up` to start: see what it says above")
                yield json.loads(line)["url"]
            finally:
                process.terminate()
                process.wait(STOP_TIMEOUT)


def run(workers: int, seconds: float) -> List[Tuple[float, float]]:
    """Trains with so many workers at once; times in seconds, and losses, averaged."""
    with server() as url:
        environment = {**os.environ, "PSERVER_URL": url, "PSERVER_JOB": JOB}
        processes = [
            subprocess.Popen(
                [sys.executable, __file__, "--seconds", str(seconds), "--rank", str(rank)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(workers)
        ]
        try:
            outputs = train_together(processes, seconds)
        finally:
            for process in processes:
                process.kill()
    losses = [json.loads(line) for output in outputs for line in output.splitlines()]
    return averages(losses, seconds)


def train_together(processes: List[subprocess.Popen[str]], seconds: float) -> List[str]:
    """Lets the workers begin once all are ready; what they have printed from then on."""
    for process in processes:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit("expected every worker to get ready: see what it says above")
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=seconds + STOP_TIMEOUT)[0] for process in processes]
    for process in processes:
        if process.returncode != 0:
            raise SystemExit(f"a worker ended with exit code {process.returncode}")
    return outputs


def averages(losses: List[Tuple[float, float]], seconds: float) -> List[Tuple[float, float]]:
    """Returns the mean loss in each part of the time that has any losses."""
    parts: List[List[float]] = [[] for _ in range(PARTS)]
    for elapsed, loss in losses:
        parts[min(int(PARTS * elapsed / seconds), PARTS - 1)].append(loss)
    width = seconds / PARTS
    return [
        ((place + 0.5) * width, sum(part) / len(part)) for place, part in enumerate(parts) if part
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Plots the loss against time.")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="how many")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each run trains")
    parser.add_argument("--out", default="workers.svg", help="the file to write")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank is not None:
        work(arguments.rank, arguments.seconds)
        return
    lines = {}
    for workers in arguments.workers:
        name = "1 worker" if workers == 1 else f"{workers} workers"
        lines[name] = run(workers, arguments.seconds)
        print(f"{name}: loss {lines[name][-1][1]:.3f} after {arguments.seconds:g} s", flush=True)
    plot = plot_lines("Handwritten digits", "seconds", "loss", lines)
    Path(arguments.out).write_text(plot)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
