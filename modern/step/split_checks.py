"""Checks of models whose batches are split: the results of the replicas must add up to the result of one device."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import Operation, Tensor, data_producers, is_source, refused, upstream, variable_of
from estimator_bridge.modern.graph.model_graph import ModelGraph, v1
from estimator_bridge.modern.graph.optimizers.capture import Update, sums_loss
from estimator_bridge.modern.graph.side_effects import Effects

_LINEAR = ("Identity", "Add", "AddV2", "AddN", "Sub", "Neg", "Mul", "RealDiv", "DivNoNan", "Reshape", "Squeeze", "Cast", "CheckNumerics",
           "ExpandDims", "StopGradient")  # fmt: skip
_SUMS = ("Sum", "L2Loss")
_QUOTIENTS = ("RealDiv", "DivNoNan")
_OF_FIXED_SHAPE = ("Sum", "Prod", "StridedSlice")
_UNIQUE = ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
_SELECTIONS = ("Where", "DynamicPartition", *_UNIQUE)
"""Types of operations whose results have rows for some rows of a batch, by its values; ``tf.boolean_mask`` is one."""
_OF_EVERY_ROW = re.compile("Segment|(?<!TensorArray)Scatter|Stitch|SparseToDense|SparseReduce|SparseTensorDense|RaggedTensorTo")
"""Parts of the types of operations that bring selected rows, or values of sparse tensors, back to where they belong."""
_MEANS = ("Mean", "FusedBatchNorm")
_BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")
OF_SHAPE_ALONE = ("Shape", "ShapeN", "Size", "Rank", "OnesLike", "ZerosLike")


def check_split(
    model: ModelGraph,
    updates: Sequence[Update],
    writes: Iterable[tuple[str, Operation]],
    every: Iterable[tuple[str, Operation]],
) -> None:
    """Refuses a model whose results a split batch would silently change.

    Args:
        model: Training graph, built for one replica's rows of a batch.
        updates: Updates that a step runs.
        writes: Name of each variable that a replica changes by its rows, and the operation that does so.
        every: The same for each variable that the graph changes.

    Raises:
        NotSupportedError: The loss is neither a plain mean over the rows nor a declared sum, the gradients are not linear in it, or
            variables are changed by the rows otherwise than by their mean.
    """
    metrics = {variable.op.name for variable in model.collection(v1.GraphKeys.METRIC_VARIABLES)}
    losses = (
        {loss.op for loss in (*_minimized(model), *model.collection(v1.GraphKeys.LOSSES))}
        if not sums_loss(model.graph)
        else set()
    )
    rows = {one.shape[0] for one in model.batch if one.shape.rank} - {None, 0, 1}  # if each batch has as many
    undeclared = {one.op.name for one in model.variables() if one.aggregation == tf.VariableAggregation.NONE} - metrics
    for name, op in writes:
        if name in undeclared and _adds_rows_up(op, losses):
            raise _refused(f"{op.name!r} ({op.type}) changes {name!r} by the rows, and not by their mean", op)
    for name, op in every:
        if name in undeclared and any(_constant(tensor) in rows for tensor in op.inputs[1:] if rows and tensor.shape.rank == 0):
            raise _refused(f"{op.name!r} ({op.type}) changes {name!r} by the rows of each batch", op)
    for update in updates:
        if not update.untouched:
            why = f"{type(update.optimizer).__name__} applies gradients that were changed first (e.g., by clipping)"
            raise _refused(why, update.op)
    is_sum = sums_loss(model.graph)
    for loss in _minimized(model):
        if is_sum and (
            model.collection(v1.GraphKeys.REGULARIZATION_LOSSES) or any(map(_reads_variables_alone, linear_leaves(loss)))
        ):
            why = "its loss is a sum over the batch, and each replica would add the regularization again"
            raise _refused(why, loss.op)
        problem = nonlinear_part(loss, is_sum)
        if problem is not None:
            raise _refused(*problem)


def _minimized(model: ModelGraph) -> list[Tensor]:
    """Returns the loss of a step, and the losses whose gradients by variables are computed, each once."""
    derivations = (one for one in model.derivations if all(variable_of(source) is not None for source in one.sources))
    losses = [model.spec.loss, *(loss for one in derivations for loss in one.losses)]
    return list({loss.name: loss for loss in losses}.values())


def nonlinear_part(loss: Tensor, declared_sum: bool) -> tuple[str, Operation] | None:
    """Returns why parts of a batch do not make up its loss, and the operation to blame; None if they do.

    Args:
        loss: Loss of a step.
        declared_sum: True if the model declares that it adds up the losses of the rows.
    """
    sums, weighted = _reductions(loss)
    if declared_sum:
        others = [op for op in linear_leaves(loss) if op.type not in _SUMS and _reads_batch(op)]
        return (
            (f"it declares its loss as a sum, and {others[0].name!r} ({others[0].type}) is none", others[0]) if others else None
        )
    if sums:
        return f"its loss adds up the batch by {sums[0].name!r} instead of tf.losses, which would declare the sum", sums[0]
    if weighted:
        why = f"its loss divides by {weighted[0].name!r}, which depends on the values in the batch, not on its size"
        return why, weighted[0]
    selection = _selection(linear_leaves(loss))
    if selection is not None:
        return f"its loss is the mean over rows that {selection.name!r} ({selection.type}) selects by their values", selection
    return None


def adds_up_rows(losses: Sequence[Tensor]) -> bool:
    """Returns True if all that losses combine of a batch are sums, so that they may add up its rows without declaring it."""
    return all(
        _reductions(loss)[0]
        and nonlinear_part(loss, declared_sum=True) is None
        and all(_reads_batch(op) or not _depends_on_batch(op) for op in linear_leaves(loss))  # e.g., the number of rows
        for loss in losses
    )


def common_divisor(losses: Sequence[Tensor]) -> Tensor | None:
    """Returns the number by which losses divide their sums over a batch, computed from the batch alone, e.g., from weights.

    Returns:
        A scalar; None if there is none, or several, or if losses have sums that are not divided. They may have means beside them.
    """
    combined = {op for loss in losses for op in linear_leaves(loss)}
    leaves = {op for op in combined if _reads_batch(op)}
    if any(map(_depends_on_batch, combined - leaves)):  # on its number of rows
        return None
    divided = {op for op in leaves if op.type in _QUOTIENTS and _reads_batch(op.inputs[1].op)}
    divisors = {op.inputs[1].name: op.inputs[1] for op in divided}
    if len(divisors) != 1 or not all(_is_sum(op.inputs[0]) for op in divided) or any(_reductions(loss)[0] for loss in losses):
        return None
    if _selection(leaves - divided) is not None:
        return None
    (divisor,) = divisors.values()
    read_before = set(divisor.consumers()) & upstream([loss.op for loss in losses]) > divided  # e.g., weights are divided
    is_data = not any(op.op_def.is_stateful for op in upstream([divisor.op], parents=data_producers))
    is_of_batch = is_data and not read_before and _reads_batch(divisor.op)
    return divisor if is_of_batch and divisor.shape.rank == 0 else None


def own_quotients(losses: Sequence[Tensor]) -> list[Operation]:
    """Returns the quotients of sums over a batch that losses consist of, if they have one divisor, which is such a sum, too.

    So ``tf.losses`` counts weights, in the shape of what the model computes. There may be terms that depend on no batch.
    """
    leaves = {op for loss in losses for op in linear_leaves(loss) if _depends_on_batch(op)}
    if (
        not all(op.type == "DivNoNan" and _is_sum(op.inputs[0]) for op in leaves)
        or len({op.inputs[1].name for op in leaves}) != 1
    ):
        return []
    divisor = next(iter(leaves)).inputs[1]
    read_before = set(divisor.consumers()) & upstream([loss.op for loss in losses]) > leaves  # e.g., weights are divided
    is_data = not any(op.op_def.is_stateful for op in _values_of(divisor.op))
    return [*leaves] if divisor.shape.rank == 0 and adds_up_rows([divisor]) and is_data and not read_before else []


def _is_sum(numerator: Tensor) -> bool:
    constants = (op for op in linear_leaves(numerator) if not _reads_batch(op))
    return adds_up_rows([numerator]) and all(op.type == "Const" for op in constants)


def _refused(why: str, op: Operation) -> NotSupportedError:
    return refused(
        op,
        f"A batch of this model cannot be split over replicas: {why}.",
        expected="a loss that is the mean over the batch, an optimizer's minimize, and other variables that change by means of rows",
        fix="Run on one replica, or set RunConfig(train_distribute=...), so that each replica takes whole batches.",
    )


def _reductions(loss: Tensor) -> tuple[list[Operation], list[Operation]]:
    """Returns the sums over the batch that a loss combines, and the denominators that depend on the batch's values, in order."""
    sums, weighted = [], []
    for op in linear_operations(loss):
        if op.type in _SUMS and _reads_batch(op):
            sums.append(op)
        if op.type == "Mean":  # of what may have added up the rows before
            sums += filter(_adds_rows, linear_operations(op.inputs[0]))
        if op.type in _QUOTIENTS and op.inputs[1].op.type != "Const" and _reads_batch(op.inputs[1].op):
            weighted.append(op.inputs[1].op)
    return sums, weighted


def _selection(leaves: Iterable[Operation]) -> Operation | None:
    """Returns an operation that selects the rows of which one of ``leaves`` is the mean, so that their number differs between parts.

    An operation computes selected rows if all that it reads row by row are such, since others would not fit them.
    """
    scalars = upstream([op for op in leaves if op.type in ("Mean", *_QUOTIENTS, *_BRANCHES)], parents=_scalar_parents)
    averaged = [tensor for op in scalars for tensor in op.inputs if tensor.shape.rank != 0]
    averaged += [tensor for op in scalars if op.type in _BRANCHES for tensor in op.outputs]
    selected: dict[str, Operation | None] = {}  # by the names of tensors that depend on values of the batch
    behind = upstream([tensor.op for tensor in averaged], lambda op: op.type in OF_SHAPE_ALONE, data_producers)
    for op in sorted(behind, key=lambda op: op._id):
        # A loop reads the rows of its first turn as a list of tensors, which is a scalar.
        has_rows = (tensor for tensor in op.inputs if tensor.shape.rank != 0 or tensor.dtype == tf.variant)
        read = [tensor for tensor in has_rows if tensor.name in selected]
        if op.type.startswith("Gather"):
            read = [one for one in read if one.name == op.inputs[1].name] or read
        if op.type in OF_SHAPE_ALONE or not (read or op.type == "Placeholder"):
            continue
        found = [selected[one.name] for one in read]
        is_whole = _OF_EVERY_ROW.search(op.type) or (None in found and op.type != "ConcatV2")
        rows = None if is_whole else next(filter(None, found), None)
        places = op.inputs[2 if op.type.startswith("Sparse") else 1] if "Segment" in op.type else None
        if places is not None and _is_place(places):
            rows = places.op
        for tensor in op.outputs:
            selected[tensor.name] = op if _selects(op) and not _is_place(tensor) else rows
    return next((one for one in (selected.get(tensor.name) for tensor in averaged) if one), None)


def _selects(op: Operation) -> bool:
    """Returns True for an operation that selects rows, and for branches of which one does so and brings none back."""
    kinds = Effects(op.graph).kinds(op) if op.type in _BRANCHES else {op.type}
    return not kinds.isdisjoint(_SELECTIONS) and not any(map(_OF_EVERY_ROW.search, kinds))


def _is_place(tensor: Tensor) -> bool:
    """Returns True for the place of each value among the unique ones, as which a batch still has all of its rows."""
    return tensor.op.type in _UNIQUE and tensor.value_index == 1


def _scalar_parents(op: Operation) -> list[Operation]:
    return [tensor.op for tensor in op.inputs if tensor.shape.rank == 0]


def linear_operations(loss: Tensor) -> list[Operation]:
    """Returns the operations on whose results a loss depends linearly, in order: its terms and factors, and what adds them up."""
    combined = upstream([loss.op], lambda op: is_source(op) or op.type in OF_SHAPE_ALONE, _linear_parents)
    return sorted(combined, key=lambda op: op._id)


def linear_leaves(loss: Tensor) -> list[Operation]:
    """Returns those of ``linear_operations`` at which the walk ends: reductions of a batch, regularization, constants."""
    return [op for op in linear_operations(loss) if not _linear_parents(op)]


def _linear_parents(op: Operation) -> list[Operation]:
    """Returns the terms and factors of an operation, but none of a quotient by the batch, whose numerator is the sum of a mean."""
    if op.type in _QUOTIENTS and (_depends_on_batch(op.inputs[1].op) or _counts_rows(op.inputs[1].op, op.inputs[0].op)):
        return []
    if op.type == "Print" or (op.type == "Mean" and op.inputs[0].shape.rank == 0):
        return [op.inputs[0].op]
    return [tensor.op for tensor in op.inputs] if op.type in _LINEAR else []


def _counts_rows(divisor: Operation, numerator: Operation) -> bool:
    """Returns True if a divisor is computed from the fixed shape of what the numerator adds up, as ``tf.losses`` does.

    A number that the script gives is none: it would stay the same in a part of the batch.
    """
    count = _constant(divisor.outputs[0])
    if count is None or not any(op.type in _OF_FIXED_SHAPE for op in upstream([divisor])):
        return False
    summed = [op.inputs[0].shape for op in _values_of(numerator) if op.type == "Sum" and _reads_batch(op)]
    return any(shape.rank and np.all((count == shape[0]) | (count == shape.num_elements())) for shape in summed)


def _constant(tensor: Tensor) -> Any:
    """Returns the value of a tensor that depends on no batch and no state; None for all else."""
    if any(op.op_def.is_stateful or op.type == "Placeholder" for op in upstream([tensor.op])):
        return None
    with v1.Session(graph=tensor.graph) as session:
        return session.run(tensor)


def _adds_rows(op: Operation) -> bool:
    """Returns True if an operation surely adds up the rows of a batch: along an axis that only the batch has."""
    shape = op.inputs[0].shape if op.type == "Sum" else tf.TensorShape(None)
    axes = tf.get_static_value(op.inputs[1]) if shape.rank else None
    if axes is None or 0 not in axes.reshape(-1) % shape.rank:
        return False
    sources = [one.outputs[0].shape for one in _values_of(op) if one.type == "Placeholder"]
    return {source[0] for source in sources if source.rank} == {shape[0]} and shape[0] not in shape.as_list()[1:]


def _adds_rows_up(write: Operation, losses: Collection[Operation]) -> bool:
    """Returns True if what an operation writes depends on the rows of a batch, or their number, otherwise than by means over them.

    Args:
        write: Operation that changes a variable.
        losses: Operations that compute means over the rows.
    """
    values = upstream(
        [tensor.op for tensor in write.inputs[1:]], lambda op: op in losses or _is_mean_of_rows(op), data_producers
    )
    return any(op.type == "Placeholder" for op in values)


def _is_mean_of_rows(op: Operation) -> bool:
    axes = tf.get_static_value(op.inputs[1]) if op.type == "Mean" and op.inputs[0].shape.rank else None
    return op.type.startswith(_MEANS) and (axes is None or 0 in axes.reshape(-1) % op.inputs[0].shape.rank)


def _reads_batch(op: Operation) -> bool:
    """Returns True if the result of ``op`` depends on the values of a batch, not only on their shapes."""
    if op.type in OF_SHAPE_ALONE:
        return False
    return any(one.type == "Placeholder" for one in _values_of(op))


def _reads_variables_alone(op: Operation) -> bool:
    """Returns True for a part of a loss that is computed from variables, and from no batch: regularization, mostly."""
    return not _depends_on_batch(op) and any(one.type == "VarHandleOp" for one in _values_of(op))


def _depends_on_batch(op: Operation) -> bool:
    """Returns True if the result of ``op`` depends on the values of a batch, or on their shapes."""
    return any(one.type == "Placeholder" for one in upstream([op], parents=data_producers))


def _values_of(op: Operation) -> set[Operation]:
    """Returns the operations on whose values the result of ``op`` depends."""
    return upstream([op], lambda one: one.type in OF_SHAPE_ALONE, data_producers)
