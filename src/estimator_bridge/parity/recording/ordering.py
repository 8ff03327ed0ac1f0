"""Removes the races of a training graph: an assignment waits for its batch and for reads on earlier lines of the script.

The recorder of a reference runs this file by another interpreter, too: from Python 3.6 and TensorFlow 1.12 on, without this package.
"""

from typing import Any, Callable, Collection, Dict, Iterator, List, Sequence, Tuple

import tensorflow as tf

Operation = Any
Tensor = Any

_WRITES = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter", "ResourceStridedSliceAssign")
_VARIABLES = frozenset({"VarHandleOp", "Variable", "VariableV2"})
_NO_VALUE = frozenset({"Enter", "IsVariableInitialized", "Switch", "VarIsInitializedOp", "VariableShape"})
"""Operations that take a variable but do not read its value."""
_SAME_MEMORY = frozenset({"ExpandDims", "Identity", "Reshape", "Squeeze", "StopGradient"})
"""Operations whose output is still the reference variable's own memory, which an assignment changes."""


def assigns(op: Operation) -> bool:
    """Returns True if an operation on a resource variable assigns to it, or calls a function that may do so."""
    return str(op.type).startswith(_WRITES) or any(value.HasField("func") for value in op.node_def.attr.values())


def order_assignments(
    step: Collection[Operation], batch: Collection[Operation] = (), assigns: Callable[[Operation], bool] = assigns
) -> List[str]:
    """Adds the control dependencies that a TensorFlow 1 script left out between reading a variable and assigning to it.

    TensorFlow 1 may run such a pair in either order; afterwards only that of the script's lines is left, as on the modern path. A read of
    a resource variable that waits for nothing comes before every assignment, however late its line: it runs as a step begins. What reads
    a reference variable on a line after an assignment waits for that.
    Nothing is assigned once the input has ended. Operations inside loops and branches stay as they are.

    Args:
        step: Operations of a training step, in a graph that no session has run yet.
        batch: Operations that give the step its batch.
        assigns: Function that tells of an operation on a resource variable if it assigns to that.

    Returns:
        The names of the variables that had no order, sorted.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default() as graph:
        ...     count = tf.compat.v1.get_variable("count", shape=[], use_resource=True)
        ...     read, assignment = count.value().op, count.assign_add(1.0, read_value=False)
        ...     names = order_assignments(graph.get_operations())
        >>> names, read in assignment.control_inputs
        (['count'], True)
    """
    made = sorted(step, key=lambda op: op._id)
    uses = list(_uses(made, assigns))
    reads = [(op, variable) for op, variable, writes in uses if not writes]
    writes = [(op, variable) for op, variable, writes in uses if writes]
    first = dict.fromkeys([*batch, *(op for op, _ in (*reads, *writes))])
    behind = _masks([*batch, *made], {op: 1 << bit for bit, op in enumerate(first)})
    ordered = set()
    for write, variable in writes:
        earlier = {*batch, *(op for op, read in reads if read == variable and (op._id < write._id or _is_early(op)))}
        earlier -= set(write.control_inputs)  # also those that another of its variables has just added
        free = [op for bit, op in enumerate(first) if op in earlier and not behind[write] >> bit & 1]
        if free:
            write._add_control_inputs(free)
            ordered.add(variable)
    bits = {op: bit for bit, op in enumerate(first)}
    references = {variable for op, variable in writes if any(tensor.dtype._is_ref_dtype for tensor in op.inputs)}
    collections = [made[0].graph.get_collection(name) for name in ("variables", "local_variables")] if made else []
    initial = {variable.initializer for collection in collections for variable in collection}
    for read, variable in reads:
        if variable not in references or read.type in _SAME_MEMORY:
            continue
        lines = [write for write, name in writes if name == variable and write._id < read._id and write not in initial]
        late = [write for write in lines if not behind[read] >> bits[write] & 1 and write not in read.control_inputs]
        if late:
            read._add_control_inputs(late)
            ordered.add(variable)
    return sorted(ordered)


def _is_early(read: Operation) -> bool:
    return read.type == "ReadVariableOp" and not read.control_inputs


def _uses(made: Sequence[Operation], assigns: Callable[[Operation], bool]) -> Iterator[Tuple[Operation, str, bool]]:
    """Yields (operation, variable's name, True if it writes) for each operation of every step that takes a variable."""
    value_of = {op: op.name for op in made if op.type in _VARIABLES}
    for op in made:
        if op.type in _NO_VALUE or op._get_control_flow_context() is not None:
            continue
        for tensor in op.inputs:
            variable = value_of.get(tensor.op)
            if variable is not None:
                yield op, variable, assigns(op) if tensor.dtype == tf.resource else _changes(op, tensor)
                if op.type in _SAME_MEMORY:
                    value_of[op] = variable


def _changes(op: Operation, variable: Tensor) -> bool:
    """Returns True if an operation changes a reference variable."""
    return bool(variable.dtype._is_ref_dtype) and any(argument.is_ref for argument in op.op_def.input_arg)


def _masks(made: Sequence[Operation], own: Dict[Operation, int]) -> Dict[Operation, int]:
    """Returns for each operation the bits of those in ``own`` that it waits for, and its own."""
    masks = {op: own.get(op, 0) for op in made}
    producers = {op: [*(tensor.op for tensor in op.inputs), *op.control_inputs] for op in made}
    before: Dict[Operation, int] = {}
    while masks != before:  # once, but loops also wait for operations of later lines
        before = dict(masks)
        for op in made:
            for producer in producers[op]:
                masks[op] |= masks.get(producer, 0)
    return masks
