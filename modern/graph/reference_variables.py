"""TensorFlow 1's reference variables, which become resource variables here: a transplanted function takes only their handles.

TensorFlow 1 made reference variables unless a script asked for others, and updated them by other methods and kernels of an optimizer.
An optimizer of a script may have only these methods, or compute something else in them. So they are called here, too.

What is read from a reference variable is the variable's own memory: an operation that waits for an update sees the updated value, even if
the variable was read before. ``read_after_writes`` does the same to a fragment.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from typing import Any

import tensorflow as tf
from tensorflow.python import tf2
from tensorflow.python.framework import op_def_registry
from tensorflow.python.ops import gen_training_ops, resource_variable_ops, variable_scope, variable_v1
from tensorflow.python.training import adam
from tensorflow.python.training import optimizer as optimizers

from estimator_bridge.modern.graph.fragments import Fragment, Operation, Tensor, producers, upstream
from estimator_bridge.modern.graph.variables import writes
from estimator_bridge.runtime.patching import replaced, wrapped

_TOGGLE = sys.modules[tf.compat.v1.resource_variables_enabled.__module__]  # TensorFlow 2.15 has it elsewhere
_OPTIMIZERS_KERNELS = getattr(adam, "training_ops", gen_training_ops)  # TensorFlow 2.15's optimizers read a copy of the names
_KERNELS = (
    "apply_ada_max",
    "apply_adadelta",
    "apply_adagrad",
    "apply_adagrad_da",
    "apply_adagrad_v2",
    "apply_adam",
    "apply_add_sign",
    "apply_centered_rms_prop",
    "apply_ftrl",
    "apply_ftrl_v2",
    "apply_gradient_descent",
    "apply_momentum",
    "apply_power_sign",
    "apply_proximal_adagrad",
    "apply_proximal_gradient_descent",
    "apply_rms_prop",
    "sparse_apply_adadelta",
    "sparse_apply_adagrad",
    "sparse_apply_adagrad_da",
    "sparse_apply_adagrad_v2",
    "sparse_apply_centered_rms_prop",
    "sparse_apply_ftrl",
    "sparse_apply_ftrl_v2",
    "sparse_apply_momentum",
    "sparse_apply_proximal_adagrad",
    "sparse_apply_proximal_gradient_descent",
    "sparse_apply_rms_prop",
)
"""Kernels of TensorFlow for reference variables; ``resource_NAME`` is the same with a handle in place of each variable."""

_IN_PLACE = {
    "__iadd__": operator.add,
    "__imul__": operator.mul,
    "__ipow__": operator.pow,
    "__isub__": operator.sub,
    "__itruediv__": operator.truediv,
}
"""Method of ``variable += value`` and the like, which gave a tensor and changed nothing -> what it computes."""
_SHARING = frozenset({"ExpandDims", "Identity", "PreventGradient", "Reshape", "Squeeze", "StopGradient"})
"""Operations whose result has the memory of their first input."""


def true_variables() -> contextlib.AbstractContextManager[object]:
    """While active, ``if variable`` is true for each variable, as for TF1's reference variables, instead of reading its value."""
    return replaced(resource_variable_ops.BaseResourceVariable, __bool__=lambda variable: True)


@contextlib.contextmanager
def reference_variables(kept: bool = True) -> Iterator[Set[str]]:
    """While active, variables that TensorFlow 1 made reference variables are resource variables that its optimizers update alike.

    Args:
        kept: False where TensorFlow 1 itself made resource variables: in a strategy's scope.

    Yields:
        The operation names of the variables so far that TensorFlow 1 made reference variables.

    Example:
        >>> v1 = tf.compat.v1
        >>> class Halving(v1.train.Optimizer):
        ...     def _apply_dense(self, grad, var):
        ...         return var.assign(var / 2)
        >>> with tf.Graph().as_default(), reference_variables(), v1.Session() as session:
        ...     weight = v1.get_variable("weight", initializer=4.0, use_resource=False)
        ...     step = Halving(False, "halving").apply_gradients([(tf.constant(1.0), weight)])
        ...     _ = session.run(weight.initializer), session.run(step)
        ...     hasattr(weight, "handle"), float(session.run(weight))
        (True, 2.0)
    """
    names: set[str] = set()
    # TensorFlow 2 is the default outside of the runner, which follows the script's own enable_resource_variables().
    enabled = tf.compat.v1.resource_variables_enabled() and not tf2.enabled()

    def create(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        asked = kwargs.get("use_resource")
        asked = variable_scope.get_variable_scope().use_resource if asked is None else asked
        variable = original(*args, **(kwargs | {"use_resource": True}))
        if kept and not (enabled if asked is None else asked):
            names.add(variable.op.name)
        return variable

    def update(original: Callable[..., Any], processor: Any, optimizer: Any, gradient: Any) -> Any:
        by_reference = processor._v.op.name in names
        return (optimizers._RefVariableProcessor.update_op if by_reference else original)(processor, optimizer, gradient)

    def compute(method: str, original: Callable[..., Any], variable: Any, value: Any) -> Any:
        return _IN_PLACE[method](variable, value) if variable.op.name in names else original(variable, value)

    with (
        wrapped(resource_variable_ops.BaseResourceVariable, **{name: functools.partial(compute, name) for name in _IN_PLACE}),
        replaced(_TOGGLE, _DEFAULT_USE_RESOURCE=enabled),
        wrapped(variable_v1, default_variable_creator=create),
        wrapped(optimizers._DenseResourceVariableProcessor, update_op=update),
        wrapped(resource_variable_ops._UnreadVariable, sparse_read=_read_after, gather_nd=_read_after, _lazy_read=_write_after),
        wrapped(_OPTIMIZERS_KERNELS, **{name: functools.partial(_run_kernel, name) for name in _KERNELS}),
    ):
        yield names


def _read_after(original: Callable[..., Any], assigned: Any, *args: Any, **kwargs: Any) -> Any:
    """Reads some rows of what an assignment returned; TensorFlow waits for the assignment only if it reads all of them."""
    with tf.control_dependencies([assigned._parent_op]):
        return original(assigned, *args, **kwargs)


def _write_after(original: Callable[..., Any], assigned: Any, op: Any) -> Any:
    """Lets an operation on what an assignment returned wait for the assignment."""
    if assigned._parent_op not in op.control_inputs:
        op._add_control_inputs([assigned._parent_op])
    return original(assigned, op)


def _run_kernel(name: str, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a kernel for reference variables, or its twin of the same arguments if it gets a resource variable."""
    given = inspect.signature(original).bind(*args, **kwargs).arguments
    variable = given["var"]
    if not isinstance(variable, resource_variable_ops.BaseResourceVariable):
        return original(*args, **kwargs)
    assigned = [one._parent_op for one in given.values() if hasattr(one, "_parent_op")]  # what an assignment returned
    with tf.control_dependencies(assigned):
        handles = {argument: given[argument].handle for argument in _updated(name)}
        op = getattr(gen_training_ops, f"resource_{name}")(**(given | handles))
    return variable._lazy_read(op)


@functools.cache
def _updated(name: str) -> tuple[str, ...]:
    """Returns the arguments of a kernel that are variables."""
    kind = next(kind for kind in dir(tf.raw_ops) if kind.lower() == name.replace("_", ""))
    return tuple(argument.name for argument in op_def_registry.get(kind).input_arg if argument.is_ref)


def read_after_writes(fragment: Fragment, ops: Collection[Operation], references: Set[str]) -> Fragment:
    """Returns a fragment whose operations read a reference variable anew if they wait for a write that came after the reading.

    Args:
        fragment: Fragment of ``ops``.
        ops: Operations of a graph.
        references: Operation names of the variables that TensorFlow 1 made reference variables.
    """
    written: dict[Operation, set[str]] = collections.defaultdict(set)
    for name, op in writes(ops):
        if name in references:
            written[op].add(name)
    awaited = _awaited(ops, written)
    outside = {tensor.name for tensor in fragment.inputs}
    again: dict[str, list[Any]] = collections.defaultdict(list)
    for op, waited_for in awaited.items():
        for place, tensor in enumerate(op.inputs):
            chain = reading(tensor, references, outside)
            late = [write for write in waited_for if chain and chain[-1].inputs[0].op.name in written[write]]
            if chain and set(late) - awaited.get(chain[-1], set()):
                again[op.name].append((place, chain, late))
    return dataclasses.replace(fragment, graph_def=_with_readings(fragment.graph_def, again)) if again else fragment


def _awaited(ops: Collection[Operation], written: Collection[Operation]) -> Mapping[Operation, set[Operation]]:
    """Returns the writes that each operation waits for."""
    followers: dict[Operation, list[Operation]] = collections.defaultdict(list)
    for op in ops if written else ():
        for producer in producers(op):
            followers[producer].append(op)
    awaited: dict[Operation, set[Operation]] = collections.defaultdict(set)
    for write in written:
        for op in upstream(followers[write], parents=lambda op: followers[op]):
            awaited[op].add(write)
    return awaited


def reading(tensor: Tensor, references: Set[str], outside: Collection[str] = ()) -> list[Operation]:
    """Returns the operations, the last first, that give the memory of a reference variable as a tensor; none for other tensors.

    Args:
        tensor: Tensor of a graph.
        references: Operation names of the variables that TensorFlow 1 made reference variables.
        outside: Names of tensors that something else than the graph gives.
    """
    chain = []
    while tensor.name not in outside and tensor.op.type in _SHARING:
        chain.append(tensor.op)
        tensor = tensor.op.inputs[0]
    if tensor.name in outside or tensor.op.type != "ReadVariableOp" or tensor.op.inputs[0].op.name not in references:
        return []
    return [*chain, tensor.op]


def _with_readings(graph_def: Any, again: Mapping[str, list[Any]]) -> Any:
    """Returns a graph in which operations have own copies of their readings: name -> (input, chain of operations, writes before it)."""
    nodes = {node.name: node for node in graph_def.node}
    changed = tf.compat.v1.GraphDef(versions=graph_def.versions, library=graph_def.library)
    for node in graph_def.node:
        reader = type(node).FromString(node.SerializeToString())
        for place, chain, late in again.get(node.name, ()):
            names = [f"{node.name}/again_{place}_{number}" for number in range(len(chain))]
            reader.input[place] = names[0]
            for number in reversed(range(len(chain))):
                copied = changed.node.add()
                copied.CopyFrom(nodes[chain[number].name])
                copied.name = names[number]
                if number + 1 < len(chain):
                    copied.input[0] = names[number + 1]
                else:
                    copied.input.extend(f"^{write.name}" for write in late)
        changed.node.append(reader)
    return changed
