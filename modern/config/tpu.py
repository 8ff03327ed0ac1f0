"""TPUStrategy, as far as it can be made without seeing a TPU."""

from __future__ import annotations

from typing import Any

from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.tables.tpu_config import shape_of


def tpu_strategy(config: ModernConfig) -> Any:
    """Connects to a TPU and makes its strategy."""
    import tensorflow as tf

    found = tpu_resolver(config)
    tf.config.experimental_connect_to_cluster(found)
    topology = tf.tpu.experimental.initialize_tpu_system(found)
    cores = config.strategy.cores_per_replica
    return tf.distribute.TPUStrategy(found, None if cores is None else device_assignment(topology, cores))


def tpu_resolver(config: ModernConfig) -> Any:
    """The resolver of a TPU; making it talks to no TPU."""
    import tensorflow as tf

    return tf.distribute.cluster_resolver.TPUClusterResolver(
        config.strategy.tpu, job_name=config.strategy.tpu_job_name or "worker"
    )


def device_assignment(topology: Any, cores: int) -> Any:
    """Replicas of several cores each, as many as the topology holds.

    Args:
        topology: of the TPU system.
        cores: of one replica.

    Returns:
        A ``tf.tpu.experimental.DeviceAssignment``.

    Raises:
        BridgeError: for a number of cores that has no shape.
    """
    import tensorflow as tf

    shape = shape_of(cores)
    replicas = topology.num_tasks * topology.num_tpus_per_task // cores
    return tf.tpu.experimental.DeviceAssignment.build(topology, computation_shape=shape, num_replicas=replicas)
