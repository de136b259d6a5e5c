"""Learns the line y = 3 x + 1. Start it several times at once: all train the same parameter."""

import numpy as np

import pserver

with pserver.connect() as ps:  # where PSERVER_URL says, else the broker of this machine
    # One process is selected to give the first values; the others wait for it.
    if ps.begin_init():
        ps.init_param("line", np.zeros(2, np.float32), learning_rate=0.2)
        ps.finish_init()

    random = np.random.default_rng()
    for step in range(1, 101):
        slope, offset = ps.pull("line")
        x = random.uniform(-1, 1)
        error = slope * x + offset - (3 * x + 1)
        ps.send_grads({"line": np.array([error * x, error], np.float32)})
        if step % 20 == 0:
            print(f"y = {slope:.3f} x + {offset:.3f}")
