"""Learns handwritten digits with PyTorch; the optimizer, Adam, runs on the server.

    pserver run -n 2 -- python3 pytorch.py       # with a server of its own

    pserver up --job digits                      # or with one that stays
    PSERVER_JOB=digits python3 pytorch.py        # several times at once, if you like

All processes train the same weights, each on batches of its own, without waiting for each other.
"""

from itertools import islice

import torch
from torch.nn.functional import cross_entropy

import pserver
import pserver.torch
from digits import accuracy, batches, load_digits, network

torch.set_num_threads(1)  # the processes of this machine share its processors
train, test = load_digits()
model = network()

with pserver.connect() as ps:
    # The first process gives the job its model; the others get it.
    pserver.torch.sync(ps, model, optimizer="adam", learning_rate=2e-3)
    optimizer = pserver.torch.Optimizer(ps, model.parameters(), encoding="bfloat16")

    # Sessions differ, and with them the order of the batches.
    for step, (images, labels) in enumerate(islice(batches(train, 64, ps.session), 400), start=1):
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}, accuracy {accuracy(model, test):.1%}")
