"""TPUConfig: how TPUEstimator looped, split and fed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.tables.build import dropped, exact, manual, mapped
from estimator_bridge.compat.rules import Conversion, Fidelity, RuleTable

_INFEED = "TPUEstimator fed TPUs through a queue; TPUStrategy's functions take their input from the host's iterator"
_PER_CORE = ("PER_SHARD_V1", "PER_HOST_V2", False, 1, 3)  # InputPipelineConfig's numbers, as TPUConfig stores them
_PER_HOST = ("PER_HOST_V1", True, 2)


def _loop(value: Any) -> Conversion:
    if isinstance(value, str) and not value.isdigit():
        return Conversion({}, Fidelity.MANUAL, f"{value!r} is a time; steps_per_execution counts steps")
    return Conversion({"training.steps_per_execution": int(value)})


def _input(value: Any) -> Conversion:
    if value in _PER_HOST:
        return Conversion({"strategy.input_per_replica": False})
    if value in _PER_CORE:
        return Conversion({"strategy.input_per_replica": True})
    return Conversion(
        {}, Fidelity.MANUAL, "BROADCAST gave every replica the same batch: return it unsharded from a function of the context"
    )


def _input_back(settings: Mapping[str, Any]) -> Any:
    per_replica = settings.get("strategy.input_per_replica")
    return None if per_replica is None else "PER_HOST_V2" if per_replica else "PER_HOST_V1"


TPU_CONFIG = RuleTable(
    "tpu_config",
    "TPUConfig",
    (
        mapped("iterations_per_loop", "tf.keras.Model.compile(steps_per_execution=n)", Fidelity.EXACT, _loop,
               lambda settings: settings.get("training.steps_per_execution"), 100,
               note="Callbacks see every n-th step, as hooks did."),
        dropped("num_shards", "TPUEstimator ignored it: the number of replicas is the TPU's own."),
        mapped("num_cores_per_replica", "tf.tpu.experimental.DeviceAssignment.build(topology, computation_shape=...)",
               Fidelity.APPROXIMATE, lambda value: Conversion({"strategy.cores_per_replica": value}),
               lambda settings: settings.get("strategy.cores_per_replica"), 2,
               note="The number of replicas follows from the topology, which only the TPU knows."),
        mapped("per_host_input_for_training", "tf.distribute.InputOptions(experimental_replication_mode=...)", Fidelity.APPROXIMATE,
               _input, _input_back, "PER_HOST_V2", "PER_HOST_V1",
               note="PER_REPLICA calls the input function once a replica, PER_WORKER once a host; params['batch_size'] is no longer "
               "given: a host's function divides the global batch size by its context."),
        exact("tpu_job_name", "strategy.tpu_job_name", "tf.distribute.cluster_resolver.TPUClusterResolver(job_name=...)", "tpu_worker"),
        dropped("initial_infeed_sleep_secs", f"How long the feeding thread slept first. {_INFEED}."),
        manual("input_partition_dims", "tf.distribute.TPUStrategy(experimental_spmd_xla_partitioning=True)",
               "How one replica's input is split over its cores: annotate the tensor with strategy.experimental_split_to_logical_devices."),
        manual("eval_training_input_configuration", "tf.distribute.Strategy.experimental_distribute_dataset",
               "SLICED cut one host's batch into the replicas' shares, which experimental_distribute_dataset does."),
        dropped("experimental_host_call_every_n_steps", "How often host_call ran; a callback runs on the host and chooses its own steps."),
        dropped("experimental_allow_per_host_v2_parallel_get_next", f"Whether batches may be taken out of order. {_INFEED}."),
        dropped("experimental_feed_hook", f"A replacement of the feeding hook. {_INFEED}."),
    ),
)  # fmt: skip
