"""Fits the line y = 2 x + 1. Start it several times at once: all train the same parameter."""

import numpy as np

import pserver

with pserver.connect() as ps:  # where PSERVER_URL says, else the broker of this machine
    # Of all trainers that begin, exactly one is selected to initialize; the others wait.
    if ps.begin_init():
        ps.init_param("line", np.zeros(2, np.float32), learning_rate=0.1)
        ps.finish_init()

    random = np.random.default_rng()
    for step in range(200):
        slope, offset = ps.pull("line")
        x = random.random(32)
        error = slope * x + offset - (2 * x + 1)
        gradient = np.array([(2 * error * x).mean(), (2 * error).mean()], np.float32)
        ps.send_grads({"line": gradient})
    print(ps.pull("line"))
