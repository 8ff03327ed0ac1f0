"""Which tf.distribute strategy a RunConfig amounts to, and how its replicas share the input."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.inputs import split_batches


@dataclasses.dataclass(frozen=True)
class Distribution:
    """A strategy, and whether each batch of the input_fn is split over its replicas (else each takes whole batches)."""

    strategy: Any
    split: bool = False

    @property
    def replicas(self) -> int:
        """Number of replicas in sync."""
        return int(self.strategy.num_replicas_in_sync)

    def distribute(self, dataset: tf.data.Dataset) -> Any:
        """An iterable whose elements each hold one tuple per replica, in the dataset's order."""
        if self.replicas == 1:
            return dataset.prefetch(tf.data.AUTOTUNE)
        pieces = split_batches(dataset, self.replicas) if self.split else dataset
        return self.strategy.distribute_datasets_from_function(lambda context: pieces)

    def describe(self) -> str:
        """One sentence for the log."""
        if self.replicas == 1:
            return "One device."
        shares = (
            "a piece of each batch (the global batch size is the script's)"
            if self.split
            else "whole batches (as Estimator does)"
        )
        return f"{type(self.strategy).__name__} over {self.replicas} devices; each takes {shares}."


def prepare(replicas: int) -> None:
    """Makes ``replicas`` devices available before TensorFlow initialises them: GPUs, else virtual CPUs.

    Raises:
        BridgeError: for a number that no machine has.
    """
    if replicas < 1:
        raise BridgeError("There is no training on less than one replica.", expected="--replicas 1 or more", received=replicas)
    if replicas > 1 and len(tf.config.list_physical_devices("GPU")) < replicas:
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)


def distribution_for(config: Any, replicas: int = 1) -> Distribution:
    """The distribution of a training run.

    Args:
        config: a RunConfig.
        replicas: asked for on the command line; each batch is split over them.

    Returns:
        MirroredStrategy over the devices of ``config.train_distribute`` or over ``replicas`` devices; else one device.

    Raises:
        NotSupportedError: for strategies and clusters that this path does not execute yet.
    """
    _refuse_cluster(config)
    asked = config.train_distribute
    if asked is None:
        return Distribution(_mirrored(replicas), split=True) if replicas > 1 else Distribution(tf.distribute.get_strategy())
    devices = list(getattr(asked.extended, "worker_devices", ()))
    if not type(asked).__name__.startswith(("MirroredStrategy", "OneDeviceStrategy")):
        raise NotSupportedError(
            f"RunConfig(train_distribute={type(asked).__name__}) does not run on the modern path yet.",
            expected="MirroredStrategy or OneDeviceStrategy",
            fix="Use --path legacy for this script.",
        )
    return Distribution(tf.distribute.MirroredStrategy(devices) if len(devices) > 1 else tf.distribute.get_strategy())


def _mirrored(replicas: int) -> Any:
    kind = "GPU" if len(tf.config.list_logical_devices("GPU")) >= replicas else "CPU"
    return tf.distribute.MirroredStrategy([f"{kind}:{index}" for index in range(replicas)])


def _refuse_cluster(config: Any) -> None:
    unsupported = {
        "TF_CONFIG cluster": bool(config.cluster_spec),
        "RunConfig(master=...)": bool(config.master),
        "RunConfig(eval_distribute=...)": config.eval_distribute is not None,
        "RunConfig(device_fn=...)": config.device_fn is not None,
    }
    for name, present in unsupported.items():
        if present:
            raise NotSupportedError(
                f"A job with a {name} does not run on the modern path yet.",
                expected="one process, with or without RunConfig(train_distribute=MirroredStrategy(...))",
                fix="Use --path legacy for this script.",
            )
