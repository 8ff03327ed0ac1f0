"""``tf.contrib.distribute``: the strategies as TensorFlow 1's contrib had them, over those of ``tf.distribute``.

They differ from the ones of core in their arguments, and in that a data set's batches are those of one replica, not of all.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.distribute import collective_all_reduce_strategy, mirrored_strategy, parameter_server_strategy
from tensorflow.python.distribute.cross_device_ops import AllReduceCrossDeviceOps
from tensorflow.python.distribute.distribute_config import DistributeConfig
from tensorflow.python.distribute.distribute_coordinator import run_standard_tensorflow_server
from tensorflow.python.distribute.distribute_lib import ReplicaContextBase as ReplicaContext
from tensorflow.python.distribute.distribute_lib import StrategyV1 as DistributionStrategy
from tensorflow.python.distribute.distribute_lib import (
    UpdateContext,
    get_cross_replica_context,
    require_replica_context,
)
from tensorflow.python.distribute.step_fn import StandardInputStep, StandardSingleLossStep, Step
from tensorflow.python.distribute.v1.input_lib import DatasetIterator

__all__ = [
    "AllReduceCrossDeviceOps",
    "CollectiveAllReduceStrategy",
    "CrossDeviceOps",
    "DistributeConfig",
    "DistributionStrategy",
    "MirroredStrategy",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
    "ReplicaContext",
    "StandardInputStep",
    "StandardSingleLossStep",
    "Step",
    "UpdateContext",
    "get_cross_replica_context",
    "get_distribution_strategy",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_distribution_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "require_replica_context",
    "run_standard_tensorflow_server",
]

CrossDeviceOps = tf.distribute.CrossDeviceOps
OneDeviceStrategy = tf.distribute.OneDeviceStrategy
get_distribution_strategy = get_strategy = tf.distribute.get_strategy
get_loss_reduction = tf.distribute.get_loss_reduction
get_replica_context = tf.distribute.get_replica_context
has_distribution_strategy = has_strategy = tf.distribute.has_strategy
in_cross_replica_context = tf.distribute.in_cross_replica_context


class _BatchesOfOneReplica:
    """Of a strategy's ``extended``: each replica gets whole batches of the data set."""

    def _make_dataset_iterator(self: Any, dataset: Any) -> Any:
        return DatasetIterator(dataset, self._input_workers, self._container_strategy())

    @property
    def _global_batch_size(self) -> bool:
        return False


class _MirroredExtended(_BatchesOfOneReplica, mirrored_strategy.MirroredExtended):
    pass


class _ParameterServerExtended(_BatchesOfOneReplica, parameter_server_strategy.ParameterServerStrategyExtended):
    pass


class MirroredStrategy(DistributionStrategy):
    """Variables copied to each device of this machine, gradients summed; use ``tf.distribute.MirroredStrategy``.

    Args:
        devices: their names; all GPUs, or else the CPU, unless given.
        num_gpus: so many GPUs instead of ``devices``.
        num_gpus_per_worker: another name of ``num_gpus``.
        cross_device_ops: how gradients are summed.
        auto_shard_dataset: has no effect, as in TensorFlow 1.15.
        cross_tower_ops: the old name of ``cross_device_ops``.

    Raises:
        ValueError: more than one of ``devices``, ``num_gpus`` and ``num_gpus_per_worker``.
    """

    _collective_key_base = 0

    def __init__(
        self,
        devices: Any = None,
        num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None,
        cross_device_ops: Any = None,
        auto_shard_dataset: bool = False,
        cross_tower_ops: Any = None,
    ) -> None:
        del auto_shard_dataset
        if sum(given is not None for given in (devices, num_gpus, num_gpus_per_worker)) > 1:
            raise ValueError("Only one of `devices`, `num_gpus` and `num_gpus_per_worker` can be specified.")
        if devices is None:
            devices = mirrored_strategy.all_local_devices(num_gpus if num_gpus is not None else num_gpus_per_worker)
        super().__init__(_MirroredExtended(self, devices, cross_device_ops or cross_tower_ops))


class ParameterServerStrategy(DistributionStrategy):
    """Variables on the parameter servers of TF_CONFIG, asynchronous workers.

    Args:
        num_gpus_per_worker: GPUs that each worker uses.
    """

    def __init__(self, num_gpus_per_worker: int = 0) -> None:
        super().__init__(_ParameterServerExtended(self, _resolver(num_gpus_per_worker)))


class CollectiveAllReduceStrategy(collective_all_reduce_strategy.CollectiveAllReduceStrategyV1):
    """Variables copied to each worker of TF_CONFIG, gradients summed over all; use ``MultiWorkerMirroredStrategy``.

    Args:
        num_gpus_per_worker: GPUs that each worker uses.
        communication: how gradients are summed.
    """

    def __init__(
        self, num_gpus_per_worker: int = 0, communication: Any = tf.distribute.experimental.CollectiveCommunication.AUTO
    ) -> None:
        super().__init__(communication, _resolver(num_gpus_per_worker))


def _resolver(num_gpus_per_worker: int) -> Any:
    environment = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        environment.cluster_spec(),
        task_type=environment.task_type,
        task_id=environment.task_id,
        num_accelerators={"GPU": num_gpus_per_worker},
        rpc_layer=environment.rpc_layer,
    )
