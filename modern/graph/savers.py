"""The tensors that a TF1 Saver saves, read from its operations; any Saver of variables is supported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.graph.fragments import Tensor, is_source, upstream

v1 = tf.compat.v1
_READS = ("Identity", "ReadVariableOp")


class SavedTensor(NamedTuple):
    """One tensor of a checkpoint: a whole variable, or one slice of a partitioned one.

    Attributes:
        name: Key in the checkpoint; for a slice, the key of the whole variable.
        slice_spec: Full shape and extents of a slice in TensorFlow's notation, or "".
        dtype: Type in the checkpoint.
        shape: Static shape of the variable or slice.
        variable: Operation name of the variable.
    """

    name: str
    slice_spec: str
    dtype: tf.DType
    shape: tf.TensorShape
    variable: str

    @property
    def whole(self) -> tf.TensorShape:
        """Shape in the checkpoint: that of the whole variable."""
        return tf.TensorShape([int(size) for size in self.slice_spec.split()[:-1]]) if self.slice_spec else self.shape


def saved_tensors(graph: Any, saver: Any) -> list[SavedTensor]:
    """Finds the tensors that a Saver saves.

    Args:
        graph: Graph of the Saver's operations.
        saver: ``tf.compat.v1.train.Saver`` that is built.

    Returns:
        The tensors in the Saver's order.

    Raises:
        NotSupportedError: The Saver writes the format of TensorFlow 0, or saves other objects than variables.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default() as graph:
        ...     weight = tf.compat.v1.get_variable("weight", shape=[2], use_resource=True)
        ...     saver = tf.compat.v1.train.Saver({"renamed": weight})
        >>> saved_tensors(graph, saver)
        [SavedTensor(name='renamed', slice_spec='', dtype=tf.float32, shape=TensorShape([2]), variable='weight')]
    """
    last = graph.get_tensor_by_name(saver.saver_def.save_tensor_name).op
    writes = [op for op in upstream([last], is_source) if op.type in ("SaveV2", "SaveSlices")]
    return [tensor for op in sorted(writes, key=lambda op: op._id) for tensor in _tensors(op)]


def missing_from(path: str | None, saved: Sequence[SavedTensor]) -> BridgeError | None:
    """Returns an error with the tensors of ``saved`` that a checkpoint lacks; None if it lacks none or there is no checkpoint."""
    reader = tf.train.load_checkpoint(path) if path else None
    missing = sorted({tensor.name for tensor in saved if reader and not reader.has_tensor(tensor.name)})
    if not reader or not missing:
        return None
    return BridgeError(
        f"The checkpoint {path} lacks {len(missing)} of the model's variables.",
        expected=", ".join(missing[:5]) + (", ..." if len(missing) > 5 else ""),
        received=f"{len(reader.get_variable_to_shape_map())} variables",
        fix="Use the model_dir of the same model, or an empty one.",
    )


def unlike(path: str, saved: Sequence[SavedTensor]) -> list[str]:
    """Returns the names of the tensors that a checkpoint does not have in the model's shape and type.

    Args:
        path: Checkpoint, as a Saver names it.
        saved: Tensors to look for.

    Raises:
        tf.errors.OpError: There is no readable checkpoint.
    """
    reader = v1.train.NewCheckpointReader(path)
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    return [
        one.name for one in saved if dtypes.get(one.name) != one.dtype or not one.whole.is_compatible_with(shapes[one.name])
    ]


def _tensors(op: Any) -> list[SavedTensor]:
    if op.type != "SaveV2":
        raise NotSupportedError(
            "A Saver of the model_fn writes the old checkpoint format, which TensorFlow replaced in 2016.",
            expected="Saver(write_version=tf.train.SaverDef.V2), the default",
            fix="Drop write_version, or use --path legacy.",
        )
    names, specs = ([text.decode() for text in tf.get_static_value(tensor).tolist()] for tensor in op.inputs[1:3])
    tensors = op.inputs[3:]
    return [
        SavedTensor(name, spec, tensor.dtype.base_dtype, tensor.shape, _variable(name, tensor))
        for name, spec, tensor in zip(names, specs, tensors, strict=True)
    ]


def _variable(name: str, tensor: Tensor) -> str:
    op = tensor.op
    while op.type in _READS:
        op = op.inputs[0].op
    if op.type not in ("VarHandleOp", "VariableV2"):
        raise NotSupportedError(
            f"A Saver of the model_fn saves {name!r}, which is not a variable, so the modern path would not save it.",
            expected="variables, and tables that do not change",
            fix="Use --path legacy for this script.",
        )
    return str(op.name)
