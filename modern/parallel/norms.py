"""Norms and the like of one variable or of its gradient, which are wrong where a plan cuts the variable or the state beside it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from estimator_bridge.modern.graph.fragments import Operation, Tensor, refused, upstream, variable_of
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.optimizers.capture import components
from estimator_bridge.modern.graph.optimizers.rebuild import RULES
from estimator_bridge.modern.graph.stages import Plan
from estimator_bridge.modern.graph.variables import writes
from estimator_bridge.modern.parallel.micro_batches.reductions import trained

_ADDED_UP = ("Sum", "L2Loss")
_OF_ALL_ELEMENTS = re.compile(
    r"Sum|L2Loss|Mean|Max|Min|Prod|EuclideanNorm|All|Any|ArgMax|ArgMin|TopKV2|Cumsum|Cumprod|(Batch)?(MatMul|Svd|Cholesky|Qr)(V\d)?|SelfAdjointEigV2"
)


def norms_of_one(model: ModelGraph, step: Plan, names: Collection[str]) -> Iterator[tuple[Operation, str]]:
    """Yields each operation of a step that is computed from all elements of one variable, or of its gradient, with the variable's name.

    A sum that is only used in the sum over several variables, as in a global norm, does not count.

    Args:
        model: Training graph.
        step: Training step of the graph.
        names: Names of the variables to look at.
    """
    operations = step.operations - {update.op for update in step.updates}
    gradients = _gradients(model, operations)
    read: dict[str, set[str]] = {}
    for op in sorted(operations, key=lambda op: op._id):
        of_op: set[str] = set()
        for tensor in op.inputs:
            handle = variable_of(tensor)
            of_input = read.get(tensor.op.name, set()) | ({handle.op.name} if handle is not None else set())
            of_op |= {gradients[tensor]} if tensor in gradients else of_input
        read[op.name] = of_op & set(names)
        if _OF_ALL_ELEMENTS.fullmatch(op.type) and len(read[op.name]) == 1 and not _is_added_up(op, operations):
            yield op, next(iter(read[op.name]))


def check_elementwise(model: ModelGraph, step: Plan) -> None:
    """Refuses an optimizer that updates a variable by a norm of it, as LAMB and LARS do, where workers cut the optimizers' state.

    Norms by which a script clips gradients before an optimizer of ``tf.train`` are computed from whole gradients, and stay.

    Args:
        model: Training graph.
        step: Training step of the graph.

    Raises:
        NotSupportedError: There is such an optimizer.
    """
    inside = {op for update in model.updates for op in update.internals}
    trainable = {variable.op.name for variable in model.variables() if variable.trainable}
    written = {name: op for name, op in writes(step.operations - inside) if name in trainable}
    derived = {tensor.op for tensor in _gradients(model, step.operations)}
    behind = {name: upstream([op], lambda one: one in derived or one not in step.operations) for name, op in written.items()}
    for op, name in norms_of_one(model, step, written):
        if op in behind[name]:
            raise refused(
                op,
                f"An optimizer of the script updates {name!r} by a norm or the like of the whole variable: {op.name!r} ({op.type}).",
                expected=f'with state = "sharded", optimizers that treat each element alike: {", ".join(RULES)}',
                received=f"an optimizer of another kind for {len(written)} variables, e.g., LAMB or LARS",
                fix='Leave out state = "sharded" and train with one worker, or take one of these optimizers.',
            )


def _gradients(model: ModelGraph, operations: Collection[Operation]) -> dict[Tensor, str]:
    """Returns the parts of the gradients of a step, each with the name of its variable."""
    return {
        part: handle.op.name
        for one in trained(model, operations)
        for source, gradient in zip(one.sources, one.gradients, strict=True)
        if gradient is not None and (handle := variable_of(source)) is not None
        for part in components([gradient])
    }


def _is_added_up(op: Operation, operations: Collection[Operation]) -> bool:
    """Returns True for a sum that is only used in the sum over all variables, as in a global norm."""
    users = [user for tensor in op.outputs for user in tensor.consumers() if user in operations]
    sums = [next_ for user in users if user.type == "Pack" for tensor in user.outputs for next_ in tensor.consumers()]
    return (
        op.type in _ADDED_UP and all(user.type in ("Pack", "AddN") for user in users) and all(one.type == "Sum" for one in sums)
    )
