"""TPUStrategy and its resolver; conversion only, tried without a TPU."""

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
    """Makes the resolver of a TPU; this does not contact the TPU."""
    import tensorflow as tf

    return tf.distribute.cluster_resolver.TPUClusterResolver(
        config.strategy.tpu, job_name=config.strategy.tpu_job_name or "worker"
    )


def device_assignment(topology: Any, cores: int) -> Any:
    """Assigns cores to as many replicas as fit in the topology.

    Args:
        topology: Topology of the TPU system.
        cores: Number of cores of one replica.

    Returns:
        A ``tf.tpu.experimental.DeviceAssignment``.

    Raises:
        BridgeError: The number of cores has no shape.
    """
    import tensorflow as tf

    shape = shape_of(cores)
    replicas = topology.num_tasks * topology.num_tpus_per_task // cores
    return tf.tpu.experimental.DeviceAssignment.build(topology, computation_shape=shape, num_replicas=replicas)
