"""A node of the federation, which knows nothing of the parameter server."""

from __future__ import annotations

import time

from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from . import task
from .records import from_record, to_record

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Learns from the node's own data."""
    arrays = dict(from_record(message.content["arrays"]))
    # So that there is time to watch, and to kill the server in between.
    time.sleep(float(context.run_config["pause"]))
    learned, examples, loss = task.train(arrays, int(context.node_config["partition"]))
    metrics = MetricRecord({"num-examples": examples, "loss": loss})
    content = RecordDict({"arrays": to_record(learned), "metrics": metrics})
    return Message(content=content, reply_to=message)
