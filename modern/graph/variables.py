"""Variables of a TF1 graph as tf.Variables of a strategy, with their TF1 names."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import device_util
from tensorflow.python.distribute.mirrored_strategy import MirroredExtended
from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyExtended
from tensorflow.python.framework.kernels import get_registered_kernels_for_op
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from estimator_bridge.modern.graph.fragments import Fragment, Tensor
from estimator_bridge.modern.graph.random_streams import RandomStreams
from estimator_bridge.modern.graph.side_effects import READS, Effects

_READS = READS | {"StridedSlice"}
_WRITES = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter", "ResourceStridedSliceAssign", "DestroyResource")

Variable = Any  # tf.Variable or what a strategy makes of it


class VariableStore:
    """Variables by their operation names in the graph.

    Args:
        templates: Variables of the graph.
        values: Operation name -> initial value, of the variable's shape.
        updated: Operation names of variables that the graph itself assigns to. Each of several replicas keeps its own copy of these,
            and the mean is saved, as TF1 does with moving averages.
        shared: Operation name -> existing variable to use.
        streams: Streams of random numbers that all functions share, if there are several with the same random operations.
        devices: Name of a variable's or another operation -> device; without one, the strategy or TensorFlow chooses.

    Attributes:
        by_name: Operation name -> variable.
    """

    def __init__(
        self,
        templates: Iterable[Any],
        values: Mapping[str, Any],
        updated: frozenset[str] = frozenset(),
        shared: Mapping[str, Variable] = MappingProxyType({}),
        streams: RandomStreams | None = None,
        devices: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._streams = streams
        self._devices = devices
        new = {v.op.name: v for v in templates}
        self.by_name = {
            name: shared[name] if name in shared else self._made(v, values[name], name in updated) for name, v in new.items()
        }

    def __getitem__(self, template: Any) -> Variable:
        """Returns the variable for one of the graph's."""
        return self.by_name[template.op.name]

    def _made(self, template: Any, value: Any, updated: bool) -> Variable:
        device = self._devices.get(template.op.name)
        with _placed(device) if device else contextlib.nullcontext():
            return _variable(template, value, updated)

    def function(self, fragment: Fragment, compiled: bool = False) -> Any:
        """Returns ``call(inputs) -> outputs`` over this store's variables; each replica draws random numbers of its own.

        Args:
            fragment: Fragment of the graph.
            compiled: True to have XLA compile it.
        """
        if self._streams is not None and not compiled:
            fragment = self._streams.shared(fragment)
        fragment = fragment.placed(self._devices)

        def handles(replica: int) -> list[Tensor]:
            return [_local(self.by_name[handle.op.name], replica).handle for handle in fragment.handles]

        first = handles(0)
        calls = {0: fragment.function(first, compiled)}

        def bound(inputs: Sequence[Tensor]) -> list[Tensor]:
            replica = _replica() if fragment.seeded else 0
            if replica not in calls:
                calls[replica] = fragment.reseeded(replica).function(first, compiled)
            return calls[replica](handles(_replica()), list(inputs))

        return bound


class Copies:
    """A variable with a copy for each replica of CentralStorageStrategy.

    The strategy's own variables are shared by all replicas, so each replica would add its update to the same value.

    Args:
        template: Variable of the graph.
        value: Initial value.

    Attributes:
        values: Copies, one for each replica.
        synchronization: Synchronization, as the variables of a strategy have it.
    """

    synchronization = tf.VariableSynchronization.ON_READ

    def __init__(self, template: Any, value: Any) -> None:
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        own = {"trainable": False, "name": template.op.name, "dtype": template.dtype.base_dtype}
        self.values = [ResourceVariable(value, **own) for _ in range(replicas)]  # tf.Variable would be the strategy's

    def read_value(self) -> Tensor:
        """Returns the current replica's value; outside of a replica's context, the mean, or the first value if not floating."""
        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            return self.values[int(tf.get_static_value(context.replica_id_in_sync_group))].read_value()
        if not self.values[0].dtype.is_floating:
            return self.values[0].read_value()
        return tf.add_n([value.read_value() for value in self.values]) / len(self.values)

    def numpy(self) -> Any:
        """Returns ``read_value`` as an array."""
        return self.read_value().numpy()


def _variable(template: Any, value: Any, updated: bool) -> Variable:
    is_central_storage = type(tf.distribute.get_strategy().extended) is ParameterServerStrategyExtended
    if updated and is_central_storage:
        return Copies(template, value)
    kwargs: dict[str, Any] = {}
    if updated and template.dtype.is_floating:
        kwargs = {"synchronization": tf.VariableSynchronization.ON_READ, "aggregation": tf.VariableAggregation.MEAN}
    elif updated:
        kwargs = {"aggregation": tf.VariableAggregation.ONLY_FIRST_REPLICA}
    declared = tf.TensorShape(template.op.get_attr("shape"))  # set_shape() promises only what reading the variable gives
    if not declared.is_fully_defined():  # e.g., the centers of k-means, whose number grows
        kwargs["shape"] = declared
    return tf.Variable(value, trainable=template.trainable, name=template.op.name, dtype=template.dtype.base_dtype, **kwargs)


@contextlib.contextmanager
def _placed(device: str) -> Iterator[None]:
    """Makes variables on a device, also under a strategy with one replica in this process, which else chooses its own."""
    if not isinstance(tf.distribute.get_strategy().extended, MirroredExtended):
        with tf.device(device):
            yield
        return
    beside = SimpleNamespace(_devices=(device_util.resolve(device),))  # the part of a variable that the strategy looks at

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        return next_creator(**kwargs | {"colocate_with": beside})

    with tf.variable_creator_scope(create):
        yield


def _replica() -> int:
    """Returns the number of the current replica among those of all workers; 0 outside of a replica's context."""
    context = tf.distribute.get_replica_context()
    return int(tf.get_static_value(context.replica_id_in_sync_group)) if context is not None else 0


def _local(variable: Variable, replica: int) -> Variable:
    """Returns a replica's copy; a process has only the copies of its own replicas, but replicas are numbered over all workers."""
    return variable.values[replica % len(variable.values)] if getattr(variable, "values", ()) else variable


def assigned(ops: Iterable[Any]) -> frozenset[str]:
    """Returns the names of the variables that some of ``ops`` write to.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default():
        ...     count = tf.compat.v1.get_variable("count", shape=[], use_resource=True)
        ...     op = tf.compat.v1.assign_add(count, 1.0).op
        ...     sorted(assigned(op.graph.get_operations()))
        ['count']
    """
    return frozenset(name for name, _ in writes(ops))


def writes(ops: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yields the name of each variable that one of ``ops`` writes to, with that operation."""
    effects: dict[Any, Effects] = {}
    for op in ops:
        for tensor in op.inputs:
            if tensor.op.type == "VarHandleOp" and not _only_reads(op, effects.setdefault(op.graph, Effects(op.graph))):
                yield tensor.op.name, op


def on_host(ops: Iterable[Any]) -> dict[str, str]:
    """Returns the host as the device of each variable that an operation without a kernel for GPUs writes to.

    TensorFlow 1 placed such variables there, too: e.g., embeddings that MomentumOptimizer or RMSPropOptimizer update by rows. Empty on a
    machine without GPUs, and where several replicas in this process have copies of a variable.
    """
    strategy = tf.distribute.get_strategy()
    is_alone = not tf.distribute.has_strategy() or (
        isinstance(strategy.extended, MirroredExtended) and len(strategy.extended.worker_devices) == 1
    )
    if not is_alone or not tf.config.list_physical_devices("GPU"):
        return {}
    return {name: "/device:CPU:0" for name, op in writes(ops) if not _runs_on_gpus(op.type)}


@functools.cache
def _runs_on_gpus(kind: str) -> bool:
    """Returns True if operations of a kind have a kernel for GPUs, or none at all, as control flow and calls."""
    devices = {kernel.device_type for kernel in get_registered_kernels_for_op(kind).kernel}
    return not devices or bool(devices & {"GPU", "DEFAULT"})


def _only_reads(op: Any, effects: Effects) -> bool:
    """Returns True if ``op`` surely does not write; control flow and calls write if any operation in their bodies does."""
    if op.type in _READS:
        return True
    kinds = effects.kinds(op)
    is_call = op.type in kinds and len(kinds) > 1
    return is_call and not any(kind.startswith(_WRITES) for kind in kinds)
