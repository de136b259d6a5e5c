"""Arrays as Flower's records, and back."""

from __future__ import annotations

from typing import Any, Mapping

from flwr.app import Array, ArrayRecord


def to_record(arrays: Mapping[str, Any]) -> ArrayRecord:
    """Makes a record of numpy arrays."""
    return ArrayRecord({name: Array(value) for name, value in arrays.items()})


def from_record(record: ArrayRecord) -> Mapping[str, Any]:
    """Returns the numpy arrays of a record."""
    return {name: array.numpy() for name, array in record.items()}
