"""A TF1 graph's variables as tf.Variables of a strategy, under their TF1 names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyExtended
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from estimator_bridge.modern.graph.fragments import Fragment, Tensor
from estimator_bridge.modern.graph.side_effects import Effects

_READS = frozenset(
    {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "VarIsInitializedOp", "StridedSlice"}
)
_WRITES = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter", "ResourceStridedSliceAssign", "DestroyResource")

Variable = Any  # tf.Variable or what a strategy makes of it


class VariableStore:
    """Variables by the operation name that they have in the graph.

    Args:
        templates: the graph's variables.
        values: operation name -> initial value, of the variable's shape.
        updated: operation names of variables that the graph itself assigns to. Under several replicas each replica keeps its
            own copy of these, and their mean is what is saved, as TF1 does with moving averages.
        shared: operation name -> a variable that is there already, taken as it is.
    """

    def __init__(
        self,
        templates: Iterable[Any],
        values: Mapping[str, Any],
        updated: frozenset[str] = frozenset(),
        shared: Mapping[str, Variable] = MappingProxyType({}),
    ) -> None:
        new = {v.op.name: v for v in templates}
        self._by_name = {
            name: shared[name] if name in shared else _variable(v, values[name], name in updated) for name, v in new.items()
        }

    def __getitem__(self, template: Any) -> Variable:
        """The variable that stands for one of the graph's."""
        return self._by_name[template.op.name]

    def named(self, name: str) -> Variable:
        """The variable of an operation name."""
        return self._by_name[name]

    def __contains__(self, template: Any) -> bool:
        return template.op.name in self._by_name

    def values(self) -> list[Variable]:
        """All variables."""
        return list(self._by_name.values())

    def handles(self, fragment: Fragment) -> list[Tensor]:
        """The handles that a fragment needs, of the replica that asks (the first one outside of a replica)."""
        return [_local(self._by_name[handle.op.name], _replica()).handle for handle in fragment.handles]

    def function(self, fragment: Fragment, compiled: bool = False) -> Any:
        """``call(inputs) -> outputs`` over this store's variables, see ``Fragment.function``; each replica draws its own numbers."""
        handles = [_local(self._by_name[handle.op.name], 0).handle for handle in fragment.handles]
        calls = {0: fragment.function(handles, compiled)}

        def bound(inputs: Sequence[Tensor]) -> list[Tensor]:
            replica = _replica() if fragment.seeded else 0
            if replica not in calls:
                calls[replica] = fragment.reseeded(replica).function(handles, compiled)
            outputs: list[Tensor] = calls[replica](self.handles(fragment), list(inputs))
            return outputs

        return bound


class Copies:
    """A copy for each replica, under CentralStorageStrategy, whose own variables are one for all: each would add its update to it.

    Args:
        template: the graph's variable.
        value: the initial one.

    Attributes:
        values: one for each replica.
        synchronization: as a strategy's variables say it.
    """

    synchronization = tf.VariableSynchronization.ON_READ

    def __init__(self, template: Any, value: Any) -> None:
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        own = {"trainable": False, "name": template.op.name, "dtype": template.dtype.base_dtype}
        self.values = [ResourceVariable(value, **own) for _ in range(replicas)]  # tf.Variable would be the strategy's

    def read_value(self) -> Tensor:
        """A replica's own value; outside of replicas the mean, and of what cannot have one the first's."""
        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            return self.values[int(tf.get_static_value(context.replica_id_in_sync_group))].read_value()
        if not self.values[0].dtype.is_floating:
            return self.values[0].read_value()
        return tf.add_n([value.read_value() for value in self.values]) / len(self.values)

    def numpy(self) -> Any:
        """``read_value`` as an array."""
        return self.read_value().numpy()


def _variable(template: Any, value: Any, updated: bool) -> Variable:
    if updated and type(tf.distribute.get_strategy().extended) is ParameterServerStrategyExtended:  # of CentralStorageStrategy
        return Copies(template, value)
    kwargs: dict[str, Any] = {}
    if updated and template.dtype.is_floating:
        kwargs = {"synchronization": tf.VariableSynchronization.ON_READ, "aggregation": tf.VariableAggregation.MEAN}
    elif updated:
        kwargs = {"aggregation": tf.VariableAggregation.ONLY_FIRST_REPLICA}
    if not template.shape.is_fully_defined():  # as of the centers of k-means, whose number grows
        kwargs["shape"] = template.shape
    return tf.Variable(value, trainable=template.trainable, name=template.op.name, dtype=template.dtype.base_dtype, **kwargs)


def _replica() -> int:
    """The number of the replica that asks among those of all workers; outside of replicas, the first one's."""
    context = tf.distribute.get_replica_context()
    return int(tf.get_static_value(context.replica_id_in_sync_group)) if context is not None else 0


def _local(variable: Variable, replica: int) -> Variable:
    """A process has the copies of its own replicas; numbers of replicas count those of the workers before it, too."""
    return variable.values[replica % len(variable.values)] if hasattr(variable, "values") else variable


def assigned(ops: Iterable[Any]) -> frozenset[str]:
    """The names of the variables that some of ``ops`` write to.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default():
        ...     count = tf.compat.v1.get_variable("count", shape=[], use_resource=True)
        ...     op = tf.compat.v1.assign_add(count, 1.0).op
        ...     sorted(assigned(op.graph.get_operations()))
        ['count']
    """
    effects: dict[Any, Effects] = {}
    return frozenset(
        tensor.op.name
        for op in ops
        for tensor in op.inputs
        if tensor.op.type == "VarHandleOp" and not _only_reads(op, effects.setdefault(op.graph, Effects(op.graph)))
    )


def _only_reads(op: Any, effects: Effects) -> bool:
    """Returns True if ``op`` surely does not write; control flow and calls write if any operation in their bodies does."""
    if op.type in _READS:
        return True
    kinds = effects.kinds(op)
    is_call = op.type in kinds and len(kinds) > 1
    return is_call and not any(kind.startswith(_WRITES) for kind in kinds)
