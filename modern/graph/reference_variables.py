"""TensorFlow 1's reference variables, which become resource variables here: a transplanted function takes only their handles.

TensorFlow 1 made reference variables unless a script asked for others, and updated them by other methods and kernels of an optimizer.
An optimizer of a script may have only these methods, or compute something else in them. So they are called here, too.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Set
from typing import Any

import tensorflow as tf
from tensorflow.python import tf2
from tensorflow.python.framework import op_def_registry
from tensorflow.python.ops import gen_training_ops, resource_variable_ops, variable_scope, variable_v1
from tensorflow.python.training import adam
from tensorflow.python.training import optimizer as optimizers

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

    with (
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
