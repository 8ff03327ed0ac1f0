"""Whether a batch may be split over replicas: what they compute on their pieces must add up to what one device computes."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import Operation, Tensor, is_source, upstream
from estimator_bridge.modern.graph.model_graph import ModelGraph, v1
from estimator_bridge.modern.graph.optimizers.capture import Update, sums_loss
from estimator_bridge.modern.graph.source_lines import located

_LINEAR = ("Identity", "Add", "AddV2", "AddN", "Sub", "Neg", "Mul", "RealDiv", "DivNoNan", "Reshape", "Squeeze", "Cast")
_QUOTIENTS = ("RealDiv", "DivNoNan")
_OF_SHAPE_ALONE = ("Shape", "ShapeN", "Size", "Rank", "OnesLike", "ZerosLike")


def check_split(model: ModelGraph, updates: Sequence[Update]) -> None:
    """Refuses what a split batch would silently change.

    Args:
        model: the training graph, built for one piece of a batch.
        updates: those that a step runs.

    Raises:
        NotSupportedError: for a loss that is neither a plain mean over the rows nor a declared sum, and for gradients that are not
            linear in it.
    """
    for update in updates:
        if not update.untouched:
            why = f"{type(update.optimizer).__name__} applies gradients that were changed, such as by clipping, first"
            raise _refused(why, update.op)
    sums, weighted = _reductions(model.spec.loss)
    if sums_loss(model.graph):
        if model.collection(v1.GraphKeys.REGULARIZATION_LOSSES):
            why = "its loss is a sum over the batch, to which each replica would add the regularization once more"
            raise _refused(why, model.spec.loss.op)
    elif sums:
        raise _refused(f"its loss adds up the batch by {sums[0].name!r}, and not by tf.losses, which would say so", sums[0])
    elif weighted:
        why = f"its loss divides by {weighted[0].name!r}, which depends on what is in the batch, not on its size"
        raise _refused(why, weighted[0])


def _refused(why: str, op: Operation) -> NotSupportedError:
    error = NotSupportedError(
        f"A batch of this model cannot be split over replicas: {why}.",
        expected="a loss that is the mean over the batch, and an optimizer's minimize",
        fix="Run on one replica, or set RunConfig(train_distribute=...), under which each replica takes whole batches.",
    )
    return located(error, op)


def _reductions(loss: Tensor) -> tuple[list[Operation], list[Operation]]:
    """The sums over the batch that a loss is a combination of, and the denominators that the batch's values decide."""
    sums, weighted = [], []
    for op in upstream([loss.op], lambda op: is_source(op) or op.type in _OF_SHAPE_ALONE, _linear_parents):
        if op.type == "Sum" and _reads_batch(op):
            sums.append(op)
        if op.type in _QUOTIENTS and op.inputs[1].op.type != "Const" and _reads_batch(op.inputs[1].op):
            weighted.append(op.inputs[1].op)
    return sums, weighted


def _linear_parents(op: Operation) -> list[Operation]:
    """The terms and factors of an operation; a numerator is a mean's own sum where the denominator counts the rows."""
    if op.type in _QUOTIENTS and op.inputs[1].op.type != "Const":
        return []
    return [tensor.op for tensor in op.inputs] if op.type in _LINEAR else []


def _reads_batch(op: Operation) -> bool:
    """True where the values of a batch, not only their shapes, decide what ``op`` gives."""
    if op.type in _OF_SHAPE_ALONE:
        return False
    values_of = upstream([op], lambda one: one.type in _OF_SHAPE_ALONE, lambda one: [tensor.op for tensor in one.inputs])
    return any(one.type == "Placeholder" for one in values_of)
