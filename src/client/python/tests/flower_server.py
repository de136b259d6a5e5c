"""A server of a federation that is killed in the middle of a round: it contributes for some nodes, says so, and hangs.

usage: flower_server.py URL JOB NODE…
"""

import sys
import time

import numpy as np

from federated.rounds import KeptRounds

url, job, *nodes = sys.argv[1:]
rounds = KeptRounds(url, job)
arrays = rounds.begin({"w": np.zeros(2, np.float32)})
rounds.enter(range(4))
for node in nodes:
    assert rounds.take(int(node), {"w": arrays["w"] + np.float32(int(node))}, examples=10)
print("sent", flush=True)
time.sleep(400)
