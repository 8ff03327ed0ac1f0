"""Which tf.distribute strategy a RunConfig amounts to, and how its replicas share the input."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.compat.config.applying.in_force import set_runtime
from estimator_bridge.compat.config.applying.reading import settings_of_strategy
from estimator_bridge.compat.config.applying.strategy import make_strategy
from estimator_bridge.compat.config.decisions import decide
from estimator_bridge.compat.config.legacy import LegacyConfig
from estimator_bridge.compat.config.model import ModernConfig, Part, Strategy
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.inputs import piece_of


@dataclasses.dataclass(frozen=True)
class Distribution:
    """A strategy, and whether each batch of the input_fn is split over its replicas (else each takes whole batches)."""

    strategy: Any
    split: bool = False

    @property
    def replicas(self) -> int:
        """Number of replicas in sync."""
        return int(self.strategy.num_replicas_in_sync)

    @property
    def replica(self) -> int:
        """The number of the replica that asks, in a replica's context."""
        return int(tf.get_static_value(tf.distribute.get_replica_context().replica_id_in_sync_group))

    def take(self, iterator: Any) -> list[Any]:
        """The batches that one step needs, from a plain iterator: one for all replicas, or one for each.

        A distributed iterator would do the same, but one that is dropped before its input's end may wait for itself for ever.
        """
        return [next(iterator) for _ in range(1 if self.split else self.replicas)]

    def share(self, batches: Sequence[Any]) -> Any:
        """What the replica that asks gets of them."""
        if self.replicas == 1:
            return batches[0]
        if not self.split:
            return batches[self.replica]
        with tf.device("/cpu:0"):  # only the piece is copied to the replica's device
            return piece_of(batches[0], self.replica, self.replicas)

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
        BridgeError: for a number that no machine has, and for a task of a cluster.
    """
    if _has_cluster(os.environ.get("TF_CONFIG", "")):  # a ps task would wait for ever before it asks us anything
        raise _cluster_refusal("TF_CONFIG cluster")
    if replicas < 1:
        raise BridgeError("There is no training on less than one replica.", expected="--replicas 1 or more", received=replicas)
    if replicas > 1 and len(tf.config.list_physical_devices("GPU")) < replicas:
        set_runtime({"devices.logical_cpus": replicas})


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
    name = type(asked).__name__
    if decide(LegacyConfig(train_distribute=Part(name))).strategy not in {"MirroredStrategy", "OneDeviceStrategy"}:
        raise NotSupportedError(
            f"RunConfig(train_distribute={name}) does not run on the modern path yet.",
            expected="MirroredStrategy or OneDeviceStrategy",
            fix="Use --path legacy for this script.",
        )
    devices = settings_of_strategy(asked)["strategy.devices"]
    one = ModernConfig(strategy=Strategy("OneDeviceStrategy", devices))
    return Distribution(_mirrored_over(devices) if len(devices) > 1 else make_strategy(one))


def _mirrored(replicas: int) -> Any:
    kind = "GPU" if len(tf.config.list_logical_devices("GPU")) >= replicas else "CPU"
    return _mirrored_over(tuple(f"{kind}:{index}" for index in range(replicas)))


@functools.cache
def _mirrored_over(devices: tuple[str, ...]) -> Any:
    """One strategy a process and set of devices: a second one would number its collective operations as the first did.

    On CPUs without collective operations: those refuse sparse gradients whose number of rows changes from step to step.
    """
    on_cpus = all(device.startswith("CPU") for device in devices)
    return make_strategy(
        ModernConfig(strategy=Strategy("MirroredStrategy", devices, "ReductionToOneDevice" if on_cpus else None))
    )


def _refuse_cluster(config: Any) -> None:
    unsupported = {
        "TF_CONFIG cluster": bool(config.cluster_spec),
        "RunConfig(master=...)": bool(config.master),
        "RunConfig(eval_distribute=...)": config.eval_distribute is not None,
        "RunConfig(experimental_distribute=...)": config._experimental_distribute is not None,
        "RunConfig(device_fn=...)": config.device_fn is not None,
    }
    for name, present in unsupported.items():
        if present:
            raise _cluster_refusal(name)


def _cluster_refusal(what: str) -> NotSupportedError:
    return NotSupportedError(
        f"A job with a {what} does not run on the modern path yet.",
        expected="one process, with or without RunConfig(train_distribute=MirroredStrategy(...))",
        fix="Use --path legacy for this script.",
    )


def _has_cluster(tf_config: str) -> bool:
    try:
        parsed = json.loads(tf_config or "{}")
    except ValueError:  # RunConfig has its own word on that
        return False
    return isinstance(parsed, dict) and bool(parsed.get("cluster"))
