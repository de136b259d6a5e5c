"""A learner of a `diloco` job, for tests to kill:

    python3 diloco_learner.py URL JOB TRAINER FIRST

It makes inner steps until it is killed, each of which subtracts 1 from every element of `w`. Its own first values are FIRST.
It prints the version and the first element that it has begun with, and then each version that it receives.
"""

import sys

import numpy as np

import pserver
from pserver.diloco import Learner

url, job, trainer, value = sys.argv[1:]
first = {"w": np.full(4, float(value), np.float32)}
with (
    pserver.connect(url, job=job, trainer=trainer) as ps,
    Learner(ps, first, sync_every=2, encoding=None) as learner,
):
    params = learner.params
    print(learner.versions["f0"], params["w"][0], flush=True)
    version = learner.versions["f0"]
    while True:
        params = learner.step({"w": params["w"] - np.float32(1)})
        if learner.versions["f0"] != version:
            version = learner.versions["f0"]
            print(version, flush=True)
