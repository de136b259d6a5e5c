"""Writes the parameters of a job into an HDF5 file."""

from __future__ import annotations

import json
from typing import Any, Collection
from urllib.parse import quote

import pserver
from pserver._files import replacing

_ENDINGS = (".h5", ".hdf5")


def save_hdf5(ps: pserver.Client, path: str) -> None:
    """Pulls every parameter that is ready, one after the other, and writes each as the dataset of its name.

    A name that is no path in HDF5, or that leads through another parameter as ``a/b`` beside ``a``, is
    percent-encoded, and is the dataset's attribute ``PSERVER.name`` as JSON. Directories on the way are
    made. The values are written to a file beside ``path`` that takes its place when it is on disk.
    """
    if not path.lower().endswith(_ENDINGS):
        expected = "a path that ends in .h5 or .hdf5"
        raise pserver.errors.BadPath(
            f"server_save_to_hdf5: expected {expected}; received {path!r}",
            {"expected": expected, "received": path},
        )
    h5py = _import_h5py()
    names = [info.name for info in ps.list_params() if info.ready]
    if not names:
        raise pserver.errors.NotInitialized(
            f"job {ps.job} has no parameter to save", {"job": ps.job}
        )
    with replacing(path) as partial:
        with h5py.File(partial, "w") as file:
            for name in names:
                place = dataset_path(name, names)
                dataset = file.create_dataset(place, data=ps.pull(name))
                if place != name:
                    dataset.attrs["PSERVER.name"] = json.dumps(name)


def dataset_path(name: str, names: Collection[str]) -> str:
    """Returns the path of a parameter's dataset, of all the job's ``names``; no two get the same."""
    parts = name.split("/")
    leads_through = any("/".join(parts[:count]) in names for count in range(1, len(parts)))
    is_path = not any(part in ("", ".", "..") for part in parts)
    # Encoded names hold a %: an unencoded one that holds it could equal another's.
    if is_path and not leads_through and "%" not in name and "\0" not in name:
        return name
    return quote(name, safe="").replace(".", "%2E")


def _import_h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise pserver.LibraryError(
            "server_save_to_hdf5: expected the module h5py; received none that can be imported: "
            "install Debian's python3-h5py, or with pip the package h5py"
        ) from error
    return h5py
