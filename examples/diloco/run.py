"""Trains a small GPT in a job of its own: by one learner alone, by eight with a barrier, or by eight with Decoupled DiLoCo.

    pserver up &
    python3 run.py alone
    python3 run.py barrier
    python3 run.py decoupled
    python3 run.py decoupled --storm --job storm
    pserver plot --by elapsed --job alone --against barrier,decoupled,storm --out loss.svg

A learner of rank 0 takes `--step-ms` for an inner step, the last one `--slowest` times as long. Meanwhile the loss on text
that no learner has seen is noted in the job, which keeps the model when the run is over. In a storm a random learner is
killed every few seconds and started again at once, and the third kill is that of the job's only host.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import List, Optional, Sequence

import torch

import pserver
from gpt import GPT, Text

PSERVER = ["node", str(Path(__file__).parents[2] / "dist" / "pserver.js")]
LEARNER = str(Path(__file__).with_name("learner.py"))

#: Seconds in which a process ends that was asked to.
STOP_TIMEOUT = 30.0

#: Seconds without progress after which a call fails: a host that was killed is away for a while.
CALL_TIMEOUT = 300.0

#: Which kill of a storm is that of the host.
HOST_KILL = 3


def main() -> None:
    run(parsed())


def parsed(arguments: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Reads the options of a run, by default from the command line."""
    parser = argparse.ArgumentParser(
        description="Trains a small GPT in a job of its own.",
        epilog="Other options are those of learner.py.",
    )
    parser.add_argument("how", choices=["alone", "barrier", "decoupled"])
    parser.add_argument("--job", help="by default named after how it is trained")
    parser.add_argument("--learners", type=int, default=8)
    parser.add_argument("--quorum", type=int, help="if decoupled; by default 3/4 of the learners")
    parser.add_argument("--merge", choices=["mean", "rda"], default="mean", help="of contributions")
    parser.add_argument("--seconds", type=float, default=120, help="how long to train")
    parser.add_argument("--steps", type=int, help="of each learner, in place of a time")
    parser.add_argument("--step-ms", type=float, default=100, help="least time of a step")
    parser.add_argument("--slowest", type=float, default=3, help="how much slower the last one is")
    parser.add_argument("--every", type=float, default=2, help="seconds between two losses")
    parser.add_argument("--storm", action="store_true", help="kill learners, and once the host")
    parser.add_argument("--kill-every", type=float, default=5, help="seconds between two kills")
    parser.add_argument("--kills", type=int, default=1000, help="most kills of the storm")
    parser.add_argument("--seed", type=int, default=0)
    options, others = parser.parse_known_args(arguments)
    options.learner_arguments = others
    options.job = options.job or options.how
    options.learners = 1 if options.how == "alone" else options.learners
    options.quorum = options.quorum or (3 * options.learners + 3) // 4
    return options


def run(options: argparse.Namespace) -> float:
    """Trains as the options say, and prints what comes of it; returns the last loss."""
    with (
        Team(options) as team,
        pserver.connect(job=options.job, trainer="evaluator", timeout=CALL_TIMEOUT) as ps,
    ):
        if ps.status().state == "ready":
            raise SystemExit(f"job {options.job} has a model already: name another one by --job")
        team.start_learners()
        while ps.status().state != "ready":
            team.wait(0.2)
        text, storm = Text(), Storm(team, ps, options)
        loss = evaluate(ps, text)
        begin, elapsed = time.monotonic(), 0.0
        with storm if options.storm else nullcontext():
            while team.is_training and (options.steps is not None or elapsed < options.seconds):
                team.wait(options.every)
                loss = evaluate(ps, text)
                elapsed = time.monotonic() - begin
                print(f"{elapsed:6.1f} s  loss {loss:.3f}", flush=True)
        team.stop_learners()
    print(f"{options.job}: loss {loss:.3f} after {elapsed:.0f} s and {storm.kills} kills")
    return loss


def evaluate(ps: pserver.Client, text: Text) -> float:
    """Returns the loss of the job's model on the held-out text, and notes it."""
    model = GPT()
    names = [name for name, _ in model.named_parameters()]
    values = ps.get_params(names)
    model.load_state_dict({name: torch.from_numpy(values[name]) for name in names})
    loss = text.test_loss(model)
    ps.note({"loss": loss})
    return loss


class Team:
    """The processes of a run: the job's host and its learners. Those that end by themselves too early end the run."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._learners: List["subprocess.Popen[bytes]"] = []
        #: Held while processes are replaced.
        self._lock = threading.Lock()
        self._host = self._start_host()

    def __enter__(self) -> Team:
        assert self._host.stdout is not None
        if not self._host.stdout.readline():
            raise SystemExit("expected a host to start: see what it says above")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_learners()
        self._host.terminate()
        self._host.wait(STOP_TIMEOUT)

    def start_learners(self) -> None:
        self._learners = [self._start_learner(rank) for rank in range(self._options.learners)]

    def stop_learners(self) -> None:
        """Stops those that have not ended."""
        for learner in self._learners:
            learner.terminate()
        for learner in self._learners:
            learner.wait(STOP_TIMEOUT)

    @property
    def is_training(self) -> bool:
        """Whether any learner has not ended yet. Raises SystemExit if a process has failed."""
        with self._lock:
            if self._host.poll() is not None:
                raise SystemExit(f"the host has ended with code {self._host.returncode}")
            codes = [learner.poll() for learner in self._learners]
        for rank, code in enumerate(codes):
            if code not in (None, 0):
                raise SystemExit(f"learner {rank} has ended with code {code}")
        return None in codes

    def wait(self, seconds: float) -> None:
        """Waits for so long, or until all learners have ended."""
        end = time.monotonic() + seconds
        while self.is_training and time.monotonic() < end:
            time.sleep(0.05)

    def kill_learner(self, rank: int) -> None:
        """Kills a learner, and starts it again under its id. Does nothing if it has ended."""
        with self._lock:
            if self._learners[rank].poll() is None:
                self._learners[rank].kill()
                self._learners[rank].wait()
                self._learners[rank] = self._start_learner(rank)

    def kill_host(self) -> None:
        """Kills the host, and starts another one."""
        with self._lock:
            self._host.kill()
            self._host.wait()
            self._host = self._start_host()

    def _start_host(self) -> "subprocess.Popen[bytes]":
        options = self._options
        flags = ["--job", options.job, "--shards", "4", "--journal-limit", "64MiB"]
        if options.how == "barrier":
            flags += ["--sync", "diloco", "--quorum", str(options.learners), "--grace-cap-ms", "0"]
            flags += ["--weights", "uniform", "--merge", options.merge]
        elif options.how == "decoupled":
            flags += ["--sync", "diloco", "--quorum", str(options.quorum), "--merge", options.merge]
        return subprocess.Popen([*PSERVER, "host", "--json", *flags], stdout=subprocess.PIPE)

    def _start_learner(self, rank: int) -> "subprocess.Popen[bytes]":
        options = self._options
        slowness = 1 + (options.slowest - 1) * rank / max(1, options.learners - 1)
        arguments = ["--how", options.how, "--step-ms", str(options.step_ms * slowness)]
        arguments += ["--seed", str(options.seed), *options.learner_arguments]
        if options.steps is not None:
            arguments += ["--steps", str(options.steps)]
        variables = {"PSERVER_JOB": options.job, "PSERVER_TRAINER": f"learner-{rank}"}
        variables |= {"PSERVER_RANK": str(rank), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, LEARNER, *arguments]
        return subprocess.Popen(command, env={**os.environ, **variables})


class Storm:
    """Kills learners and once the host, on a thread of its own, from when it is entered until it is left."""

    def __init__(self, team: Team, ps: pserver.Client, options: argparse.Namespace) -> None:
        self._team = team
        self._ps = ps
        self._options = options
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._rage)
        #: Processes that it has killed.
        self.kills = 0

    def __enter__(self) -> Storm:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _rage(self) -> None:
        options = self._options
        chance = random.Random(options.seed)
        while self.kills < options.kills and not self._is_over.wait(options.kill_every):
            self.kills += 1
            if self.kills == HOST_KILL:
                print("the host gets SIGKILL", flush=True)
                self._team.kill_host()
                self._ps.note({"mark": "host killed"})
            else:
                rank = chance.randrange(options.learners)
                print(f"learner {rank} gets SIGKILL", flush=True)
                self._team.kill_learner(rank)


if __name__ == "__main__":
    main()
