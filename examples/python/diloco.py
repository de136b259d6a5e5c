"""Learns handwritten digits with Decoupled DiLoCo: each process trains on its own with AdamW, and exchanges one part of
the network after the other in the background, each once in 48 steps.

    pserver run -n 2 --sync diloco -- python3 diloco.py

    pserver up --job diloco --sync diloco
    PSERVER_JOB=diloco python3 diloco.py         # in two terminals; more may join at any time

A process may be killed and started again: it goes on with the weights that the job has.
"""

from itertools import islice

import torch
from torch.nn.functional import cross_entropy

import pserver
from digits import accuracy, batches, load_digits, network
from pserver.torch import DiLoCo

torch.set_num_threads(1)  # the processes of this machine share its processors
train, test = load_digits()
model = network()
inner_optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

with pserver.connect() as ps:
    with DiLoCo(ps, model, inner_optimizer, sync_every=48, fragments=2, tokens=64) as diloco:
        # An ordinary loop, which knows nothing of the server.
        for images, labels in islice(batches(train, 64, ps.session), 500):
            loss = cross_entropy(model(images), labels)
            inner_optimizer.zero_grad()
            loss.backward()
            inner_optimizer.step()
            if diloco.inner_steps % 50 == 0:
                share = accuracy(model, test)
                print(
                    f"{diloco.inner_steps} steps, {diloco.outer_steps} results received: "
                    f"loss {loss.item():.3f}, accuracy {share:.1%}"
                )
