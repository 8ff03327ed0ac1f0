"""Optimizers around an optimizer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops.variables import PartitionedVariable
from tensorflow.python.training.saving.saveable_object_util import op_list_to_dict


class MovingAverageOptimizer(tf.train.Optimizer):
    """Also keeps exponential moving averages of the variables, and a saver that saves them in the variables' place.

    Args:
        opt: computes and applies the gradients.
        average_decay: of ``tf.train.ExponentialMovingAverage``; the averages are ``VARIABLE/ExponentialMovingAverage``.
        num_updates: likewise.
        sequential_update: average after the step, not beside it.
    """

    def __init__(
        self, opt: Any, average_decay: float = 0.9999, num_updates: Any = None, sequential_update: bool = True
    ) -> None:
        self._optimizer = opt
        self._ema = tf.train.ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._sequential_update = sequential_update
        self._swapped: dict[str, str] | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """As of the optimizer inside."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> tf.Operation:
        """Applies the gradients and updates the averages."""
        pairs = list(grads_and_vars)
        train_op = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        variables = [variable for gradient, variable in pairs if gradient is not None]
        with tf.control_dependencies([train_op] if self._sequential_update else []):
            average_op = self._ema.apply(variables)
        names = [(variable.op.name, self._ema.average(variable).op.name) for variable in variables]
        self._swapped = dict(names) | {average: variable for variable, average in names}
        return tf.group(train_op, average_op, name="train_with_avg")

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> tf.train.Saver:
        """A saver that saves each average under its variable's name and the variable under the average's.

        Args:
            var_list: as of ``tf.train.Saver``; all variables that are there by now unless given.

        Returns:
            A ``tf.train.Saver``, made with the other arguments.

        Raises:
            RuntimeError: nothing has been applied yet.
            ValueError: a variable is to be saved without its average, or an average without its variable.
        """
        if self._swapped is None:
            raise RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver")
        variables = tf.global_variables() if var_list is None else var_list
        by_name = variables if isinstance(variables, dict) else op_list_to_dict(variables)
        single = {}
        for key, value in by_name.items():
            single.update({part.op.name: part for part in value} if _is_partitioned(value) else {key: value})
        swap = self._swap_among(single)
        return tf.train.Saver(
            {
                key: [swap(part.op.name) for part in value] if _is_partitioned(value) else swap(key)
                for key, value in by_name.items()
            },
            name=name,
            **kwargs,
        )

    def _swap_among(self, variables: Mapping[str, Any]) -> Callable[[str], Any]:
        def swap(name: str) -> Any:
            other = (self._swapped or {}).get(name, name)
            if other not in variables:
                raise ValueError(
                    f"Variable to swap {other} is not part of variables to save. This breaks MovingAverageOptimizer."
                )
            return variables[other]

        return swap


def _is_partitioned(value: Any) -> bool:
    return isinstance(value, list | PartitionedVariable)


class VariableClippingOptimizer(tf.train.Optimizer):
    """After each step clips the L2 norm of some variables (of their slices, rather, along some dimensions).

    Args:
        opt: computes and applies the gradients.
        vars_to_clip_dims: for each variable to clip the dimensions along which its norm is taken, as of ``tf.clip_by_norm``.
        max_norm: the largest norm.
        colocate_clip_ops_with_vars: put the operations where the variable is.
    """

    def __init__(
        self,
        opt: Any,
        vars_to_clip_dims: Mapping[Any, Sequence[int]],
        max_norm: float,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._dims = {id(variable): list(dims) for variable, dims in vars_to_clip_dims.items()}
        self._max_norm = max_norm
        self._colocate = colocate_clip_ops_with_vars

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """As of the optimizer inside."""
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """As of the optimizer inside."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """As of the optimizer inside."""
        return self._opt.get_slot_names(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> tf.Operation:
        """Applies the gradients, then clips."""
        pairs = list(grads_and_vars)
        with tf.name_scope(name, self._name) as scope:
            update = self._opt.apply_gradients(pairs, global_step=global_step)
            clips = []
            with tf.control_dependencies([update]):
                for gradient, variable in pairs:
                    if gradient is not None and id(variable) in self._dims:
                        with tf.name_scope("clip_" + variable.op.name):
                            clips.append(self._clip(gradient, variable))
            return tf.group(update, *clips, name=scope)

    def _clip(self, gradient: Any, variable: Any) -> Any:
        dims = self._dims[id(variable)]
        rows_alone = isinstance(gradient, tf.IndexedSlices) and 0 not in dims
        with tf.colocate_with(variable) if self._colocate else contextlib.nullcontext():
            values = tf.gather(variable, gradient.indices) if rows_alone else variable.read_value()
            excess = values - tf.clip_by_norm(values, self._max_norm, dims)
        with tf.colocate_with(variable):
            if rows_alone:
                return variable.scatter_sub(tf.IndexedSlices(excess, gradient.indices), use_locking=self._use_locking)
            return variable.assign_sub(excess, use_locking=self._use_locking)


class MultitaskOptimizerWrapper:
    """Leaves a variable and its slots alone at a step where its gradient is all zeros: a task that is missing in the batch.

    Args:
        opt: a ``tf.train.Optimizer``; it is changed.

    Raises:
        TypeError: it is none.
    """

    def __init__(self, opt: Any) -> None:
        if not isinstance(opt, tf.train.Optimizer):
            raise TypeError("Supplied optimizer must be an instance of tf.train.Optimizer")
        self._opt = opt
        for name in ("_apply_dense", "_resource_apply_dense", "_apply_sparse", "_resource_apply_sparse"):
            setattr(opt, name, _unless_zero(getattr(opt, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def clip_gradients_by_global_norm(
    gradients_variables: Sequence[tuple[Any, Any]], clip_norm: Any = 20.0
) -> tuple[list[tuple[Any, Any]], tf.Tensor]:
    """Clips gradients by the norm of those that are not all zeros.

    Args:
        gradients_variables: pairs of gradient and variable.
        clip_norm: the largest norm of all together.

    Returns:
        The pairs with clipped gradients, and the norm, a scalar.
    """
    gradients, variables = zip(*gradients_variables, strict=True)
    counted = [gradient if gradient is None else _zero_if_zeros(gradient) for gradient in gradients]
    norm = tf.global_norm(counted)
    clipped, _ = tf.clip_by_global_norm(gradients, clip_norm, use_norm=norm)
    return list(zip(clipped, variables, strict=True)), norm


def _zero_if_zeros(gradient: Any) -> tf.Tensor:
    return tf.cond(_all_zeros(gradient), lambda: tf.zeros([], gradient.dtype), lambda: tf.convert_to_tensor(gradient))


def _all_zeros(gradient: Any) -> tf.Tensor:
    return tf.equal(tf.count_nonzero(gradient), 0)


def _unless_zero(apply: Callable[..., Any]) -> Callable[..., Any]:
    def applied(gradient: Any, *args: Any) -> tf.Operation:
        def apply_it() -> tf.Operation:
            with tf.control_dependencies([apply(gradient, *args)]):
                return tf.no_op()

        return tf.cond(_all_zeros(gradient), tf.no_op, apply_it)

    return applied
