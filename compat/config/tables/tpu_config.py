"""TPUConfig: loops, replicas and input of TPUEstimator."""

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.tables.build import approximate, dropped, manual, mapped
from estimator_bridge.compat.rules import Conversion, Fidelity, RuleTable
from estimator_bridge.errors import BridgeError

_INFEED = "TPUEstimator fed TPUs through a queue; TPUStrategy's functions take their input from the host's iterator"
_PER_HOST: Mapping[Any, str] = {  # InputPipelineConfig's numbers, as TPUConfig stores them
    **dict.fromkeys(("PER_HOST_V2", 3), "its batch was one core's, and still is"),
    **dict.fromkeys(("PER_HOST_V1", True, 2), "its batch was one host's: divide it by the host's cores"),
}
_UNTRIED = "Conversion only: tried without a TPU."

SHAPES: Mapping[int, list[int]] = {
    1: [1, 1, 1, 1], 2: [1, 1, 1, 2], 4: [1, 2, 1, 2], 8: [2, 2, 1, 2], 16: [4, 2, 1, 2], 32: [4, 4, 1, 2], 64: [8, 4, 1, 2],
    128: [8, 8, 1, 2],
}  # fmt: skip
"""Number of cores of one replica -> their shape in the topology (x, y, z, core), as in TPUEstimator."""


def shape_of(cores: int) -> list[int]:
    """Returns the shape of one replica's cores in a topology.

    Args:
        cores: Number of cores of one replica.

    Returns:
        x, y, z and core.

    Raises:
        BridgeError: The number of cores has no shape.

    Example:
        >>> shape_of(4)
        [1, 2, 1, 2]
    """
    if cores not in SHAPES:
        raise BridgeError("strategy.cores_per_replica has no shape.", expected=", ".join(map(str, SHAPES)), received=cores)
    return SHAPES[cores]


def _loop(value: Any) -> Conversion:
    if isinstance(value, str) and not value.isdecimal():
        return Conversion({}, Fidelity.MANUAL, f"{value!r} is a time; steps_per_execution counts steps")
    return Conversion({"training.steps_per_execution": int(value)})


def _input(value: Any) -> Conversion:
    if (value == 1 and value is not True) or value in ("PER_SHARD_V1", False):
        note = "TPUStrategy calls no input function once a core: shard by the host's input context, and batch for one core"
        return Conversion({}, Fidelity.MANUAL, note)
    if value in _PER_HOST:
        return Conversion({"strategy.input_per_replica": False}, note=f"Called once a host: {_PER_HOST[value]}. {_UNTRIED}")
    note = "BROADCAST gave every replica the same batch: return it unsharded from a function of the context"
    return Conversion({}, Fidelity.MANUAL, note)


def _input_back(settings: Mapping[str, Any]) -> Any:
    per_replica = settings.get("strategy.input_per_replica")
    return None if per_replica is None else "PER_SHARD_V1" if per_replica else "PER_HOST_V2"


TPU_CONFIG = RuleTable(
    "tpu_config",
    "TPUConfig",
    (
        mapped("iterations_per_loop", "tf.keras.Model.compile(steps_per_execution=n)", Fidelity.EXACT, _loop,
               lambda settings: settings.get("training.steps_per_execution"), 100,
               note="Callbacks see every n-th step, as hooks did."),
        dropped("num_shards", "TPUEstimator only checked it: the number of replicas is the TPU's own."),
        approximate("num_cores_per_replica", "strategy.cores_per_replica",
                    "tf.tpu.experimental.DeviceAssignment.build(topology, computation_shape=...)", 2,
                    note="The number of replicas follows from the topology; the cores' shapes are TPUEstimator's. Conversion only: tried on the "
                    "topology of a TPU, without a TPU."),
        mapped("per_host_input_for_training", "tf.distribute.InputOptions(experimental_replication_mode=...)", Fidelity.APPROXIMATE,
               _input, _input_back, "PER_HOST_V2",
               note=f"PER_WORKER calls the function of distribute_datasets_from_function once a host; params['batch_size'] is no longer "
               f"given. {_UNTRIED}"),
        approximate("tpu_job_name", "strategy.tpu_job_name", "tf.distribute.cluster_resolver.TPUClusterResolver(job_name=...)",
                    "tpu_worker", note=_UNTRIED),
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
