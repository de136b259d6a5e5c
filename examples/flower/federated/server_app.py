"""The server of the federation. It may be killed and started again at any moment: nothing lasts in it."""

from __future__ import annotations

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from . import task
from .records import from_record, to_record
from .rounds import KeptRounds
from .strategy import PserverFedAvg

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Runs the rounds that are left."""
    nodes = int(context.run_config["nodes"])
    rounds = KeptRounds()
    strategy = PserverFedAvg(
        rounds, min_train_nodes=nodes, min_available_nodes=nodes, fraction_evaluate=0.0
    )
    count = int(context.run_config["rounds"])
    result = strategy.start(grid, to_record(task.initial()), num_rounds=count)
    print(f"after {rounds.version} rounds: {from_record(result.arrays)}")
    rounds.close()
