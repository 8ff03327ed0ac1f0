"""TowerOptimizer: gathers the gradients of the towers that ``replicate_model_fn`` builds, and applies their sum once."""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.util.deprecation import deprecated


@dataclasses.dataclass
class Towers:
    """The towers of a graph that is being built.

    Attributes:
        number: how many there will be.
        loss_reduction: how a tower's examples became its loss.
        gradients: of each tower so far, the (gradient, variable) pairs of each call.
        scopes: the first tower's variable scope and name scope.
        optimized: whether a TowerOptimizer was used.
    """

    number: int = 1
    loss_reduction: str = tf.losses.Reduction.SUM
    gradients: list[list[Any]] = dataclasses.field(default_factory=list)
    scopes: tuple[Any, Any] = ("", "")
    optimized: bool = False

    def scaled(self, loss: Any) -> Any:
        """A tower's share of the loss."""
        if loss is None or self.number == 1 or self.loss_reduction == tf.losses.Reduction.SUM:
            return loss
        return tf.div(loss, 1.0 * self.number, name="averaged_loss")


_building: weakref.WeakKeyDictionary[Any, Towers] = weakref.WeakKeyDictionary()


@contextlib.contextmanager
def building(towers: Towers) -> Iterator[Towers]:
    """While active, TowerOptimizers of the default graph work for these towers."""
    graph = tf.get_default_graph()
    _building[graph] = towers
    try:
        yield towers
    finally:
        del _building[graph]


def sum_on_device(values: list[Any], device: str, name: str | None = None) -> Any:
    """The sum of tensors, or of gradients that may be sparse."""
    with tf.device(device):
        if isinstance(values[0], tf.IndexedSlices):
            return tf.IndexedSlices(
                tf.concat([value.values for value in values], axis=0),
                tf.concat([value.indices for value in values], axis=0),
                values[0].dense_shape,
            )
        return tf.add_n(values, name=name)


class TowerOptimizer(tf.train.Optimizer):
    """An optimizer for a model_fn that is replicated; use ``tf.distribute.MirroredStrategy``.

    Args:
        optimizer_or_optimizer_fn: the one that applies the sum of the towers' gradients, or what makes it.
    """

    @deprecated("2018-05-31", "Please use `tf.contrib.distribute.MirroredStrategy` instead.")
    def __init__(self, optimizer_or_optimizer_fn: Any) -> None:
        self._given: Any | Callable[[], Any] = optimizer_or_optimizer_fn

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The inner optimizer's."""
        return self._optimizer().get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The inner optimizer's."""
        return self._optimizer().get_slot_names(*args, **kwargs)

    def get_name(self) -> Any:
        """The inner optimizer's."""
        return self._optimizer().get_name()

    def variables(self) -> Any:
        """The inner optimizer's."""
        return self._optimizer().variables()

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """The gradients of this tower's share of the loss."""
        return self._optimizer().compute_gradients(_towers().scaled(loss), *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, **kwargs: Any) -> Any:
        """In the last tower, applies the sum of all towers' gradients; in the others, an operation that computes them."""
        towers, optimizer = _towers(), self._optimizer()
        if towers.number == 1:
            return optimizer.apply_gradients(grads_and_vars, global_step, **kwargs)
        towers.gradients[-1].append(list(grads_and_vars))
        if len(towers.gradients) < towers.number:
            with tf.control_dependencies(
                [_tensor(gradient) for gradient, _ in towers.gradients[-1][-1] if gradient is not None]
            ):
                return tf.no_op(name="train_op_placeholder")
        call = len(towers.gradients[-1]) - 1
        by_name: dict[str, tuple[Any, list[Any]]] = {}
        for tower in towers.gradients:
            for gradient, variable in tower[call]:
                if gradient is not None:
                    by_name.setdefault(variable.name, (variable, []))[1].append(gradient)
        variable_scope, name_scope = towers.scopes
        with tf.variable_scope(variable_scope), tf.name_scope(name_scope):
            with tf.name_scope("gradient_aggregating"):
                summed = [(sum_on_device(gradients, variable.device), variable) for variable, gradients in by_name.values()]
            return optimizer.apply_gradients(summed, global_step=global_step, **kwargs)

    def _optimizer(self) -> Any:
        if callable(self._given):
            self._given = self._given()
        _towers().optimized = True
        return self._given


def _towers() -> Towers:
    return _building.get(tf.get_default_graph()) or Towers()


def _tensor(gradient: Any) -> Any:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
