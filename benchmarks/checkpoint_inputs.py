"""Inputs of ``checkpoint.py``: name-based checkpoints of any size, and Keras' side of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
from estimator_bridge.compat.checkpoint.format.trackable import Attribute, Node, SlotReference
from estimator_bridge.compat.checkpoint.names.naming import ATTRIBUTE, OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.reading.index import Index, encode_index, read_index
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors

COLUMNS = 1024
ENTRIES = 200_000
SLOTS = {"Adam": {"Adam": "m", "Adam_1": "v"}, "Momentum": {"Momentum": "momentum"}}


def make(folder: Path, size: int, converter_size: int) -> None:
    """Writes a checkpoint of four variables with Adam's slots, one of the same size with Momentum's, and Keras' side of both.

    It also writes a file with the bytes of Momentum's slot, a smaller checkpoint like that of a canned DNN, and an index of many entries.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for optimizer, slots in SLOTS.items():
        rows = size // (4 * COLUMNS * 4 * (1 + len(slots)))
        names = [f"dense_{number}/kernel" for number in range(4)]
        values: dict[str, Any] = {"global_step": 1000}
        for name in [*names, *(f"{name}/{suffix}" for name in names for suffix in slots)]:
            values[name] = noise((rows, COLUMNS))
        write_tensors(folder / optimizer / "old" / "model.ckpt-1000", values)
        write_keras_side(folder / optimizer / "keras" / "ckpt-1", names, (rows, COLUMNS), list(slots.values()))
    slot = size // 2
    with (folder / "slot").open("wb") as file:
        file.writelines(noise((slot // (COLUMNS * 4), COLUMNS)).chunks())
    write_canned(folder / "canned" / "model.ckpt-1000", converter_size)
    write_entries(folder / "many" / "model.ckpt")


def noise(shape: tuple[int, int]) -> Tensor:
    """Returns float32 values between 0 and 2 whose bytes no file system can compress."""
    import numpy as np

    piece = np.random.default_rng(0).random(1 << 20, np.float32).tobytes()
    size = shape[0] * shape[1] * 4
    return Tensor(1, shape, size, lambda: (piece[: size - start] for start in range(0, size, len(piece))))


def write_keras_side(prefix: Path, names: list[str], shape: tuple[int, int], slots: list[str]) -> None:
    """Writes an index with the object graph of a tf_keras model; its data file is a hole of the right size."""
    nodes = [Node({"model": 1, "optimizer": 2}), Node(), Node({"iter": 3, "learning_rate": 4})]
    values: dict[str, Any] = {"optimizer/iter": tensors.number(0), "optimizer/learning_rate": 0.01}
    leaves = {key: key.rpartition("/")[2] for key in values}
    nodes += [Node(attributes=[Attribute(trackable.VALUE, leaf, key + ATTRIBUTE)]) for key, leaf in leaves.items()]
    size = shape[0] * shape[1] * 4
    for number, name in enumerate(names):
        variable = len(nodes)
        nodes[1].children[f"layer-{number}"] = variable
        for slot in [None, *slots]:
            key = f"model/layer-{number}" + (f"/.OPTIMIZER_SLOT/optimizer/{slot}" if slot else "")
            if slot:
                nodes[2].slots.append(SlotReference(variable, slot, len(nodes)))
            nodes.append(Node(attributes=[Attribute(trackable.VALUE, name + (f"/{slot}" if slot else ""), key + ATTRIBUTE)]))
            values[key] = Entry(1, shape, 1, 0, size)
    small = {key + ATTRIBUTE: value for key, value in values.items() if not isinstance(value, Entry)}
    write_tensors(prefix, {**small, OBJECT_GRAPH: tensors.of_strings([trackable.encode(nodes)], ())})
    index = read_index(prefix)
    whole = Index(prefix, Header(2), {**index.entries})
    whole.entries.update({key + ATTRIBUTE: value for key, value in values.items() if isinstance(value, Entry)})
    data = index.shard(0)
    data.rename(whole.shard(0))
    with whole.shard(1).open("wb") as hole:
        hole.truncate(size)
    prefix.with_name(f"{prefix.name}.index").write_bytes(b"".join(encode_index(whole)))


def write_canned(prefix: Path, size: int) -> None:
    """Writes a checkpoint with the names of TF1's canned DNNClassifier, which TensorFlow's converter knows, and an empty graph."""
    rows = size // (2 * COLUMNS * 4)
    kernel = "dnn/hiddenlayer_0/kernel"
    write_tensors(prefix, {"global_step": 1000} | {name: noise((rows, COLUMNS)) for name in (kernel, f"{kernel}/t_0/Adagrad")})
    prefix.with_name("graph.pbtxt").touch()


def write_entries(prefix: Path) -> None:
    """Writes an index of many entries that all have the same eight bytes."""
    prefix.parent.mkdir(parents=True)
    entries = {f"tower/layer_{number:06d}/kernel/Adam": Entry(1, (2,), 0, 0, 8) for number in range(ENTRIES)}
    index = Index(prefix, Header(1), entries)
    prefix.with_name(f"{prefix.name}.index").write_bytes(b"".join(encode_index(index)))
