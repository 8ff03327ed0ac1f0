"""Weights in the older HDF5 format, which names each variable, so that no model is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.format.trackable import Node
from estimator_bridge.compat.checkpoint.names.naming import ATTRIBUTE, OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.writing.small_checkpoints import write_tensors


def is_named(path: Path) -> bool:
    """Returns True if a file has that format, without an architecture."""
    import h5py

    if path.suffix == ".keras":
        return False
    with h5py.File(path) as file:
        return "layer_names" in file.attrs and "model_config" not in file.attrs


def write(path: Path, prefix: str) -> None:
    """Writes an object-based checkpoint of such a file.

    Args:
        path: Path of the file, in which a dataset's path is the layer's and the variable's name, e.g. ``h/net/h/kernel:0``.
        prefix: Prefix of the checkpoint.
    """
    import h5py

    found: dict[str, Any] = {}

    def take(place: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[place.partition("/")[2].rpartition(":")[0]] = item[()]

    with h5py.File(path) as file:
        file.visititems(take)
    nodes, values = [Node()], {}
    for number, (name, value) in enumerate(found.items()):
        nodes[0].children[str(number)] = len(nodes)
        nodes.append(trackable.variable(name, f"{number}{ATTRIBUTE}"))
        values[f"{number}{ATTRIBUTE}"] = value
    write_tensors(prefix, {**values, OBJECT_GRAPH: tensors.of_strings([trackable.encode(nodes)], ())})
