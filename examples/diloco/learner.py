"""One learner of a small GPT. It trains by itself, and exchanges what it has learned with the others by Decoupled DiLoCo:

    pserver run -n 8 --sync diloco --quorum 4 -- python3 learner.py

Kill it at any time, and start it again: it goes on with the values that the job has then. `run.py` starts many, in this
way and in others to compare with.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import count
from typing import Iterator

import torch

import pserver
from gpt import GPT, TOKENS_PER_STEP, Text
from pserver.torch import DiLoCo

#: Seconds without progress after which a call fails: a learner that is started while no host is there waits for one.
CALL_TIMEOUT = 300.0

#: Learning alone: how many steps there are from one time that the values are stored in the job to the next.
STORE_EVERY = 12


def main() -> None:
    options = parsed()
    torch.set_num_threads(1)  # the learners of this machine share its processors
    torch.manual_seed(options.seed)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    with pserver.connect(timeout=CALL_TIMEOUT) as ps:
        steps = inner_steps(model, optimizer, ps.session, options)
        if options.how == "alone":
            learn_alone(ps, model, steps)
            return
        has_barrier = options.how == "barrier"
        with DiLoCo(
            ps,
            model,
            optimizer,
            sync_every=options.sync_every,
            fragments=1 if has_barrier else options.fragments,
            delay=0 if has_barrier else 2,
            tokens=TOKENS_PER_STEP,
            encoding=None if options.encoding == "float32" else options.encoding,
            error_feedback=not options.no_error_feedback,
        ):
            for _ in steps:
                pass


def parsed() -> argparse.Namespace:
    """Reads the options from the command line."""
    parser = argparse.ArgumentParser(description="One learner of a small GPT.")
    parser.add_argument("--how", choices=["decoupled", "barrier", "alone"], default="decoupled")
    parser.add_argument("--steps", type=int, help="how many to make; else until it is stopped")
    parser.add_argument("--seed", type=int, default=0, help="of the first values and the batches")
    parser.add_argument("--step-ms", type=float, default=0, help="least time of a step")
    parser.add_argument("--sync-every", type=int, default=12, help="steps between exchanges")
    parser.add_argument("--fragments", type=int, default=4, help="how many, if decoupled")
    parser.add_argument("--encoding", default="int8", help="float32, bfloat16, int8 or e3m0")
    parser.add_argument("--no-error-feedback", action="store_true")
    return parser.parse_args()


def inner_steps(
    model: GPT, optimizer: torch.optim.Optimizer, session: int, options: argparse.Namespace
) -> Iterator[int]:
    """Makes an inner step for each number that it yields. An ordinary loop, which knows nothing of the other learners."""
    text = Text()
    rank = int(os.environ.get("PSERVER_RANK", "0"))
    # A learner that is started again, in a new session, goes on with other batches.
    generator = torch.Generator().manual_seed(options.seed * 10**6 + rank * 10**3 + session)
    for number in count(1) if options.steps is None else range(1, options.steps + 1):
        begin = time.monotonic()
        loss = model.loss(text.batch(generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(max(0.0, begin + options.step_ms / 1000 - time.monotonic()))
        yield number


def learn_alone(ps: pserver.Client, model: GPT, steps: Iterator[int]) -> None:
    """Only stores the values in the job now and then, where others can read them."""
    if ps.begin_init():
        ps.init_params(model.state_dict())
        ps.finish_init()
    for number in steps:
        if number % STORE_EVERY == 0:
            ps.set_params(model.state_dict())
    ps.set_params(model.state_dict())


if __name__ == "__main__":
    main()
