"""A client that speaks Legion's frames as its clients of 2015 did, written from their description."""

import json
import os
import socket
import struct
from typing import Any, List, Tuple

import numpy as np

JSON, NUMERIC = 10, 11


class Client:
    """One connection to a server, found by the environment."""

    def __init__(self) -> None:
        address = (os.environ["legion_server_ip"], int(os.environ["legion_server_port"]))
        self.socket = socket.create_connection(address, timeout=60)

    def send_frame(self, kind: int, data: bytes) -> None:
        self.socket.sendall(struct.pack("<ii", kind, len(data)) + data)

    def send_json(self, value: object) -> None:
        self.send_frame(JSON, json.dumps(value).encode())

    def send_array(self, array: Any) -> None:
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        self.send_json({"shape": list(array.shape), "dtype": str(array.dtype)})
        self.send_frame(NUMERIC, array.tobytes())

    def receive_bytes(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self.socket.recv(min(count - len(data), 1 << 20))
            if not part:
                raise EOFError(f"the connection ended {count - len(data)} bytes early")
            data += part
        return bytes(data)

    def receive_frame(self) -> Tuple[int, bytes]:
        kind, length = struct.unpack("<ii", self.receive_bytes(8))
        return kind, self.receive_bytes(length)

    def receive_json(self) -> Any:
        kind, data = self.receive_frame()
        assert kind == JSON, kind
        return json.loads(data)

    def receive_array(self) -> Any:
        header = self.receive_json()
        kind, data = self.receive_frame()
        assert kind == NUMERIC, kind
        return np.frombuffer(data, header["dtype"]).reshape(header["shape"]).copy()

    def create_if_not_already_created(self, name: str, array: Any) -> Any:
        query = {"query_id": 27, "query_name": "create_if_doesnt_exist", "name": name}
        self.send_json(query)
        if self.receive_json()["requesting_param"]:
            self.send_array(array)
            return array
        return self.receive_array()

    def pull_full(self, name: str) -> Any:
        self.send_json({"query_id": 20, "query_name": "pull_full", "name": name})
        answer = self.receive_json()
        assert (answer["query_id"], answer["name"]) == (30, name), answer
        return self.receive_array()

    def push_full(self, name: str, array: Any, alpha: float, beta: float) -> None:
        self.send_json({"query_id": 22, "name": name, "alpha": alpha, "beta": beta})
        self.send_array(array)

    def pull_part(self, name: str, axes: List[List[int]]) -> Any:
        self.send_json({"query_id": 21, "name": name, "axis_numbers": axes})
        return self.receive_array()

    def push_as_part(
        self, name: str, array: Any, axes: List[List[int]], alpha: float, beta: float
    ) -> None:
        query = {"query_id": 23, "name": name, "axis_numbers": axes, "alpha": alpha, "beta": beta}
        self.send_json(query)
        self.send_array(array)

    def push_from_indices(
        self, name: str, array: Any, indices: Any, alpha: float, beta: float
    ) -> None:
        self.send_json({"query_id": 24, "name": name, "alpha": alpha, "beta": beta})
        self.send_array(np.asarray(indices))
        self.send_array(array)

    def pull_from_indices(self, name: str, indices: Any) -> Any:
        self.send_json({"query_id": 25, "name": name})
        self.send_array(np.asarray(indices))
        return self.receive_array()

    def server_save_to_hdf5(self, path: str) -> None:
        self.send_json({"query_id": 28, "query_name": "save_all_to_hdf5", "path": path})
