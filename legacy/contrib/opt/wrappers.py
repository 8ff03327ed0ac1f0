"""An optimizer around an optimizer, which averages its variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
