"""The Python trainer of a job that has one trainer in each language.

test/e2e/training/team.ts does the same and describes it. After its rounds this program prints "trained",
waits for a line, then pulls the parameters and writes their bytes to a file. Arguments: URL, job, number of
the trainer, rounds, file.
"""

from __future__ import annotations

import sys
from typing import Any, Final, List

import numpy as np

import pserver

TIMEOUT: Final = 60.0
W, ADAM, EMB, SUM = (300, 1031), (4099,), (500, 24), (40, 30)
NAMES: Final = ["w", "adam", "emb", "sum", "blend", "counts"]
ENCODINGS: Final[List[Any]] = [None, "bfloat16", "float16"]


def wave(shape: Any, turn: int, number: int, divisor: int) -> Any:
    i = np.arange(np.prod(shape))
    whole = (i * 7 + turn * 13 + number * 101) % 97 - 48
    return (whole.astype(np.float32) / np.float32(divisor)).reshape(shape)


def part_of(turn: int) -> List[List[int]]:
    rows = [(turn + 4 * j) % SUM[0] for j in range(8)]
    return [rows, [5 * j - (SUM[1] if j % 2 == 1 else 0) for j in range(6)]]


def initialize(ps: pserver.Client) -> None:
    if ps.begin_init():
        ps.init_param("w", np.zeros(W, "f4"), learning_rate=0.5)
        ps.init_param("adam", np.zeros(ADAM, "f4"), optimizer="adam", learning_rate=0.01)
        ps.init_param("emb", np.zeros(EMB, "f4"), learning_rate=0.5, sparse=True)
        ps.init_param("sum", np.zeros(SUM, "f4"))
        ps.init_param("blend", np.zeros(SUM, "f4"))
        ps.init_param("counts", np.zeros(3, "i8"))
        ps.finish_init()


def train(ps: pserver.Client, number: int, rounds: int) -> None:
    for turn in range(rounds):
        encoding = ENCODINGS[turn % 3]
        ids = [
            (number * 17 + turn * 5 + j % 15 * 3) % EMB[0] - (EMB[0] if j % 2 == 1 else 0)
            for j in range(20)
        ]
        grads = {
            "w": wave(W, turn, number, 64),
            "adam": wave(ADAM, turn, number, 97),
            "emb": pserver.Rows(ids, wave((20, EMB[1]), turn, number, 64)),
        }
        assert ps.send_grads(grads, encoding=encoding).late_blocks == 0
        for name, divisor, alpha, beta, part_alpha in (
            ("sum", 64, 1, 1, 1),
            ("blend", 97, 0.75, 0.5, 0.5),
        ):
            ps.push(name, wave(SUM, turn, number, divisor), alpha, beta, encoding=encoding)
            part = wave((8, 6), turn, number, divisor)
            ps.push_part(name, part, part_of(turn), part_alpha, 1, encoding=encoding)
        one = np.zeros(3, "i8")
        one[number - 1] = 1
        ps.push("counts", one, 1, 1)


def read(ps: pserver.Client) -> bytes:
    params = ps.get_params(NAMES)
    arrays = [params[name] for name in NAMES]
    arrays += [ps.pull("blend", encoding=encoding) for encoding in ENCODINGS[1:]]
    return b"".join(array.tobytes() for array in [*arrays, ps.pull_part("blend", part_of(0))])


url, job, number, rounds, path = sys.argv[1:]
with pserver.connect(url, job=job, trainer=f"python-{number}", timeout=TIMEOUT) as client:
    initialize(client)
    train(client, int(number), int(rounds))
    client.exit_steps()
    sys.stdout.write("trained\n")
    sys.stdout.flush()
    sys.stdin.readline()
    with open(path, "wb") as file:
        file.write(read(client))
