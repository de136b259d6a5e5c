"""Compares the losses that a small GPT comes to when each learner makes as many inner steps, at one speed: with a barrier and
decoupled, and with contributions in each encoding.

    pserver up &
    python3 quality.py [--steps 600] [--seeds 3] [--step-ms 30]

Prints a table in Markdown: the mean of the last losses over the seeds, and their standard deviation.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
from typing import Dict, List

from run import PSERVER, parsed, run

LEARNERS = 4

#: What is compared: arguments of run.py. Rounds always wait for all learners.
BARRIER = ["barrier", "--merge", "mean"]
DECOUPLED = ["decoupled", "--quorum", str(LEARNERS)]
WAYS: Dict[str, List[str]] = {
    "alone": ["alone"],
    "barrier, float32": [*BARRIER, "--encoding", "float32"],
    "barrier, bfloat16": [*BARRIER, "--encoding", "bfloat16"],
    "barrier, int8": [*BARRIER, "--encoding", "int8"],
    "barrier, e3m0": [*BARRIER, "--encoding", "e3m0"],
    "barrier, e3m0, no error feedback": [*BARRIER, "--encoding", "e3m0", "--no-error-feedback"],
    "decoupled, 1 fragment, float32": [*DECOUPLED, "--fragments", "1", "--encoding", "float32"],
    "decoupled, 4 fragments, float32": [*DECOUPLED, "--encoding", "float32"],
    "decoupled, 4 fragments, int8": [*DECOUPLED, "--encoding", "int8"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares the losses that ways to train come to.")
    parser.add_argument("--steps", type=int, default=600, help="of each learner")
    parser.add_argument("--step-ms", type=float, default=30, help="time of a step, at least")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY")
    options = parser.parse_args()
    losses: Dict[str, List[float]] = {way: [] for way in options.ways}
    for seed in range(options.seeds):
        for way in options.ways:
            losses[way].append(last_loss(WAYS[way], options.steps, options.step_ms, seed))
    print("| | loss |\n|---|---|")
    for way, found in losses.items():
        spread = f" ± {statistics.stdev(found):.3f}" if len(found) > 1 else ""
        print(f"| {way} | {statistics.mean(found):.3f}{spread} |")


def last_loss(way: List[str], steps: int, step_ms: float, seed: int) -> float:
    """Trains in a job that is removed afterwards."""
    size = ["--learners", str(LEARNERS), "--steps", str(steps), "--every", "600"]
    # Without a common pace learners that share processors drift apart, and some end before others have learned.
    pace = ["--step-ms", str(step_ms), "--slowest", "1"]
    try:
        return run(parsed([*way, *size, *pace, "--job", "quality", "--seed", str(seed)]))
    finally:
        subprocess.run([*PSERVER, "remove", "--yes", "quality"], check=True, capture_output=True)


if __name__ == "__main__":
    main()
