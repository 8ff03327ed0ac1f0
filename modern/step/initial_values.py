"""Initial values that are computed or restored on the devices that hold the variables, never in this process.

A session computes all values in this process and copies them to the devices, so a model must fit into its memory several times. Here
each variable's initialiser is cut out of the graph and runs where the variable is; each slice of a checkpoint is read there, too.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Fragment, Tensor, is_source, upstream
from estimator_bridge.modern.graph.model_graph import ModelGraph, v1
from estimator_bridge.modern.graph.savers import SavedTensor, saved_tensors, unlike
from estimator_bridge.modern.graph.side_effects import Effect, Effects
from estimator_bridge.modern.step.shared_folders import folder_of, is_shared

_OWN_START = ("init_op", "init_feed_dict", "ready_op", "ready_for_local_init_op", "local_init_op", "local_init_feed_dict")
"""Attributes of a Scaffold that replace how a session starts, besides its function."""
_STARTED_OTHERWISE = (
    v1.GraphKeys.INIT_OP,
    v1.GraphKeys.LOCAL_INIT_OP,
    v1.GraphKeys.READY_OP,
    v1.GraphKeys.READY_FOR_LOCAL_INIT_OP,
    v1.GraphKeys.RESOURCES,
    v1.GraphKeys.LOCAL_RESOURCES,
    "saved_model_initializers",
)
"""Collections of what a session runs at its start besides the initialisers of variables and tables."""


@dataclasses.dataclass(frozen=True)
class DeviceValue:
    """Initial value of one variable; calling it makes the value on the device in scope.

    Attributes:
        make: Function of the eager handles of ``reads`` that returns the value.
        shape: Static shape of the value.
        dtype: Type of the value.
        reads: Operation names of other variables that the initialiser reads. If there are any, a call returns zeros, and ``fill``
            assigns the value as soon as all variables exist.
    """

    make: Callable[[Sequence[Tensor]], Tensor]
    shape: tf.TensorShape
    dtype: tf.DType
    reads: tuple[str, ...] = ()

    def __call__(self) -> Tensor:
        """Returns the value, or zeros if other variables are needed."""
        return tf.zeros([size or 0 for size in self.shape], self.dtype) if self.reads else self.computed({})

    def computed(self, variables: Mapping[str, Any]) -> Tensor:
        """Returns the value, given the variables that it reads."""
        return tf.ensure_shape(self.make([variables[name].handle for name in self.reads]), self.shape)


def fill(variables: Mapping[str, Any], values: Mapping[str, Any], made_without: Iterable[str]) -> None:
    """Assigns the initial values that variables did not get when they were made.

    Args:
        variables: Operation name -> variable, in an order in which each reads only those before it.
        values: Operation name -> array, or ``DeviceValue``.
        made_without: Names of the variables that were made without their values, as slots are.
    """
    without = set(made_without)
    for name, variable in variables.items():
        value = values[name]
        if not isinstance(value, DeviceValue):
            if name in without:
                variable.assign(value)
        elif name in without or value.reads:
            with tf.device(variable.device):
                variable.assign(value.computed(variables))


class OnlyBySessionError(Exception):
    """Raised where only a session of this process can start a model; its text is the reason, as a clause."""


def device_values(model: ModelGraph, devices: Sequence[str]) -> dict[str, DeviceValue]:
    """Finishes the graph as a session does, and prepares initial values that are made on devices.

    Args:
        model: Training graph.
        devices: Devices that will hold the variables.

    Returns:
        The value of every variable by its operation's name: from the latest checkpoint, or as its initialiser computes it.

    Raises:
        OnlyBySessionError: The values would not surely be those of a session. The graph may be finished, but nothing else has happened.
    """
    scaffold = model.spec.scaffold
    _check_start(model)
    with model.graph.as_default():
        scaffold.finalize()
    state = tf.train.get_checkpoint_state(model.checkpoint_dir) if model.checkpoint_dir else None
    path = state.model_checkpoint_path if state else None
    values = _restored(model, path, devices) if path else {}
    values |= _initialised([variable for variable in model.variables() if variable.op.name not in values], devices)
    if state and path:
        scaffold.saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
    return values


def _check_start(model: ModelGraph) -> None:
    scaffold = model.spec.scaffold
    if scaffold._init_fn or any(getattr(scaffold, name) is not None for name in _OWN_START):
        raise OnlyBySessionError("the Scaffold of the model_fn starts the session in its own way")
    if any(map(model.collection, _STARTED_OTHERWISE)):
        raise OnlyBySessionError("the session starts more than variables and tables")


def _restored(model: ModelGraph, path: str, devices: Sequence[str]) -> dict[str, DeviceValue]:
    """Returns the values of all global variables as a checkpoint has them, whole or in slices."""
    _check_read(path, devices)
    saved = saved_tensors(model.graph, model.spec.scaffold.saver)
    for name in unlike(path, saved):
        raise OnlyBySessionError(f"the checkpoint has no {name!r} of the model's shape and type")
    values = {one.variable: DeviceValue(functools.partial(_read, path, one), one.shape, one.dtype) for one in saved}
    if {variable.op.name for variable in model.collection(v1.GraphKeys.GLOBAL_VARIABLES)} - values.keys():
        raise OnlyBySessionError("its Saver does not save all variables")
    return values


def _read(path: str, saved: SavedTensor, handles: Sequence[Tensor]) -> Tensor:
    (value,) = tf.raw_ops.RestoreV2(
        prefix=path, tensor_names=[saved.name], shape_and_slices=[saved.slice_spec], dtypes=[saved.dtype]
    )
    return value


def _check_read(path: str, devices: Sequence[str]) -> None:
    if not is_shared(folder_of(path), devices):
        raise OnlyBySessionError(f"not every parameter server reaches the folder of {path}")


def _initialised(variables: Sequence[Any], devices: Sequence[str]) -> dict[str, DeviceValue]:
    """Returns the values that initialisers compute, each by a fragment of its own."""
    users: Counter[Any] = Counter()
    values = {}
    for variable in variables:
        tensor = _initial_tensor(variable)
        ops = upstream([tensor.op], is_source)
        effects = Effects(tensor.graph)
        users.update(op for op in ops if effects.of(op) is Effect.DRAW and not effects.is_seeded(op))
        for op in ops:
            _check_movable(op, effects, devices)
        fragment = Fragment.cut(ops, [tensor])
        if fragment.inputs:
            raise OnlyBySessionError(f"the initial value of {variable.op.name!r} depends on {fragment.inputs[0].name!r}")
        reads = tuple(handle.op.name for handle in fragment.handles)
        values[variable.op.name] = DeviceValue(
            functools.partial(_run, fragment), variable.shape, variable.dtype.base_dtype, reads
        )
    shared = [op.name for op, number in users.items() if number > 1]
    if shared:
        raise OnlyBySessionError(f"several variables start from the numbers that {shared[0]!r} draws without a seed")
    return values


def _initial_tensor(variable: Any) -> Tensor:
    """Returns what a variable's initialiser assigns; a warm start has replaced the initialiser by one that reads a checkpoint."""
    initialiser = variable.initializer
    if initialiser.type != "AssignVariableOp" or initialiser.control_inputs:
        raise OnlyBySessionError(f"the initialiser of {variable.op.name!r} does more than assign a value")
    return initialiser.inputs[1]


def _check_movable(op: Any, effects: Effects, devices: Sequence[str]) -> None:
    """Refuses operations that give something else on another device, as tables, files and Python functions do."""
    if op.type == "RestoreV2" and (path := tf.get_static_value(op.inputs[0])) is not None:
        _check_read(path.item().decode(), devices)
        return
    resources = [tensor for tensor in op.inputs if tensor.dtype == tf.resource and tensor.op.type != "VarHandleOp"]
    effect = effects.of(op)
    if resources or effect is Effect.CHANGE or (effect is Effect.OUTWARD and effects.kinds(op) != {"Assert"}):
        raise OnlyBySessionError(f"the initialiser's operation {op.name!r} ({op.type}) belongs to the chief")


def _run(fragment: Fragment, handles: Sequence[Tensor]) -> Tensor:
    (value,) = fragment.function(handles)(list(handles), [])
    return value
