"""Checkpoints of step 0 that TensorFlow 1.15.5 and later ones start from, and digests of variables. For Python 3.7 and later.

A variable that is trained starts from values that follow from its name and shape; the others from what TensorFlow 1.15.5 gave them.
"""

from __future__ import annotations

import os
import zlib
from typing import Any, Sequence

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
MOST = 64  # values of one variable that are recorded one by one


def seeded(key: str, shape: Sequence[int]) -> Any:
    """Values between -1 and 1 that follow from a text and a shape alone."""
    return np.random.RandomState(zlib.crc32(("%s %s" % (key, list(shape))).encode())).uniform(-1, 1, shape)


def describe(value: Any, is_trained: bool) -> dict[str, Any]:
    """What is recorded of a variable's initial value: a constant, all values, or None for values by name."""
    array = np.asarray(value)
    found: dict[str, Any] = {"shape": list(array.shape), "dtype": "string" if array.dtype == object else array.dtype.name}
    flat = [one.decode("latin1") if isinstance(one, bytes) else one for one in array.ravel().tolist()]
    if flat and all(one == flat[0] for one in flat):
        found["value"] = flat[0]
    elif not is_trained and (len(flat) <= MOST or array.dtype.kind != "f"):
        found["value"] = flat
    else:
        found["value"] = None
    found["trained"] = bool(is_trained and array.dtype.kind == "f")
    return found


def initial(name: str, described: dict[str, Any]) -> Any:
    """The array that a variable starts from."""
    dtype = object if described["dtype"] == "string" else described["dtype"]
    value = described["value"]
    if isinstance(value, list):
        value = [one.encode("latin1") if isinstance(one, str) else one for one in value]
        return np.array(value, dtype).reshape(described["shape"])
    array = np.full(described["shape"], 0 if value is None else value, dtype)
    if described["trained"] or value is None:
        array = (array + 0.3 * seeded(name, described["shape"])).astype(dtype)
    return array


def write(folder: str, variables: dict[str, Any]) -> None:
    """Writes model.ckpt-0 into a folder."""
    os.makedirs(folder)
    prefix = os.path.join(folder, "model.ckpt-0")
    names = sorted(variables)
    arrays = [initial(name, variables[name]) for name in names]
    with v1.Session(graph=tf.Graph()) as session, session.graph.as_default():
        tensors = [tf.constant(one) for one in arrays]
        session.run(tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors))
    with open(os.path.join(folder, "checkpoint"), "w") as stream:
        stream.write('model_checkpoint_path: "model.ckpt-0"\nall_model_checkpoint_paths: "model.ckpt-0"\n')


def digest(name: str, array: Any) -> list[Any]:
    """A few numbers that change with each value of a variable, and its norm."""
    array = np.asarray(array)
    if array.dtype == object:
        return [one.decode("latin1") for one in array.ravel().tolist()]
    array = array.astype(np.float64)
    sums = [float(np.sum(array * seeded(name + salt, array.shape))) for salt in ("", "again", "thrice")]
    return [*sums, float(np.sqrt(np.sum(array**2)))]


def digests(folder: str) -> dict[str, list[Any]]:
    """The digest of each variable in a folder's latest checkpoint."""
    reader = v1.train.NewCheckpointReader(v1.train.latest_checkpoint(folder))
    return {name: digest(name, reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()}
