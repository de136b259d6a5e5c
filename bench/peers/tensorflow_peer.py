"""TensorFlow: variables on a parameter server's device, updated and read by functions of the worker."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import List

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

from steps import RATE, DenseStep, RowStep, free_port

DEVICE = "/job:ps/replica:0/task:0/device:CPU:0"


class TensorFlowPeer:
    """A server in a process of its own, to which this process connects as the coordinator."""

    def __init__(self) -> None:
        port = free_port()
        self.server = subprocess.Popen([sys.executable, __file__, str(port)])
        cluster = tf.train.ClusterSpec({"ps": [f"127.0.0.1:{port}"]})
        tf.config.experimental_connect_to_cluster(cluster)

    def versions(self) -> str:
        return f"TensorFlow {tf.__version__}"

    def create_dense(self, step: DenseStep) -> None:
        with tf.device(DEVICE):
            variables = [tf.Variable(tf.zeros(step.elements)) for _ in range(step.parameters)]

        @tf.function
        def one_step(gradients: List[tf.Tensor]) -> List[tf.Tensor]:
            for variable, gradient in zip(variables, gradients):
                variable.assign_sub(RATE * gradient)
            return [variable.read_value() for variable in variables]

        self.one_step = one_step

    def step_dense(self, gradients: List[np.ndarray]) -> None:
        for read in self.one_step([tf.constant(gradient) for gradient in gradients]):
            read.numpy()

    def create_rows(self, step: RowStep) -> None:
        with tf.device(DEVICE):
            table = tf.Variable(tf.zeros([step.table_rows, step.row_elements]))

        @tf.function
        def one_step(rows: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
            with tf.device(DEVICE):
                table.scatter_sub(tf.IndexedSlices(RATE * values, rows))
                return tf.gather(table, rows)

        self.one_step_of_rows = one_step

    def step_rows(self, rows: np.ndarray, values: np.ndarray) -> None:
        self.one_step_of_rows(tf.constant(rows), tf.constant(values)).numpy()

    def close(self) -> None:
        self.server.kill()
        self.server.wait()


def open_peer(_: str) -> TensorFlowPeer:
    return TensorFlowPeer()


if __name__ == "__main__":
    tf.distribute.Server({"ps": [f"127.0.0.1:{sys.argv[1]}"]}, job_name="ps", task_index=0).join()
