"""Terms of a summed loss that depend on no batch: each micro-batch adds them, and the whole batch has them once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Fragment, Operation, Tensor, is_source, refused, upstream
from estimator_bridge.modern.graph.optimizers.capture import Derivation
from estimator_bridge.modern.step.split_checks import linear_leaves


class Regularization:
    """Values and gradients of the terms that depend on no batch; it adds operations to the graph.

    Args:
        losses: Losses that are sums over the rows.
        derivations: Calls of ``tf.gradients`` of these losses.
        each: Operations of each micro-batch.

    Attributes:
        names: Names of the losses and gradients that have such terms.
    """

    def __init__(self, losses: Sequence[Tensor], derivations: Sequence[Derivation], each: Collection[Operation]) -> None:
        self._rows = {op.outputs[0].name: op.outputs[0] for loss in losses for op in linear_leaves(loss) if op in each}
        constant = [loss for loss in losses if any(op not in each for op in linear_leaves(loss))]
        found = {loss.name: loss for loss in constant}
        for one in derivations if constant else ():
            with losses[0].graph.as_default():
                terms = tf.compat.v1.gradients(one.losses, one.sources, stop_gradients=list(self._rows.values()))
            for gradient, term in zip(one.gradients, terms, strict=True):
                if isinstance(gradient, tf.IndexedSlices) and term is not None:
                    raise refused(
                        gradient.values.op,
                        f"The gradient {gradient.values.name!r} has rows of the batch and of a regularization.",
                        expected="regularization of whole variables, or a loss that is the mean over the rows",
                        fix="Train without --micro.",
                    )
                if gradient is not None and term is not None:
                    found[gradient.name] = tf.convert_to_tensor(term)
        ends = list(found.values())
        leaves = [one.op for one in self._rows.values()]
        ops = upstream([one.op for one in ends], lambda op: is_source(op) or op in leaves)
        self.names = list(found)
        self._fragment = Fragment.cut(ops, ends, self._rows)

    def function(self, make: Callable[[Fragment], Any]) -> Callable[[], dict[str, Tensor]]:
        """Returns a function that computes the terms, by the names of their losses and gradients.

        Args:
            make: Function that makes a function of a fragment.
        """
        run, inputs = make(self._fragment), self._fragment.inputs
        return lambda: dict(zip(self.names, run([tf.zeros(_any_shape(one), one.dtype) for one in inputs]), strict=True))


def _any_shape(tensor: Tensor) -> list[int]:
    return [size or 1 for size in tensor.shape.as_list()] if tensor.shape.rank else []
