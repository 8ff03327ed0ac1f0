"""The devices of a mesh inside one process: GPUs, or virtual CPUs on a machine without GPUs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.runtime_settings import set_runtime
from estimator_bridge.modern.parallel.plans.plan import HOST

_CPU = "/device:CPU:0"


@dataclasses.dataclass(frozen=True)
class Mesh:
    """Devices by their numbers in a plan.

    Attributes:
        names: Names of the devices; all are GPUs or all are CPUs.
    """

    names: Sequence[str]

    @property
    def has_gpus(self) -> bool:
        """True if the devices are GPUs."""
        return "GPU" in self.names[0]

    @property
    def host(self) -> str:
        """Name of the CPU, which is device 0 of a mesh of CPUs."""
        return _CPU

    def name(self, device: int | str) -> str:
        """Returns the name of a device, given its number or ``HOST``."""
        return self.host if device == HOST else self.names[int(device)]

    def stages(self, number: int) -> Sequence[Sequence[str]]:
        """Returns the devices of each stage of a pipeline: equally many neighbours.

        Example:
            >>> Mesh(("a", "b", "c", "d")).stages(2)
            [('a', 'b'), ('c', 'd')]
        """
        size = len(self.names) // number
        return [tuple(self.names[stage * size : (stage + 1) * size]) for stage in range(number)]

    def latest(self, names: Sequence[str]) -> str:
        """Returns the device with the highest number; the host counts as lowest."""
        return max(names, key=lambda name: self.names.index(name) if name in self.names else -1)


def prepare_mesh(devices: int) -> Mesh:
    """Makes the devices of a mesh available before TensorFlow initialises them.

    Args:
        devices: Number of devices.

    Raises:
        BridgeError: The machine's GPUs cannot be divided into such meshes.
    """
    gpus = len(tf.config.list_physical_devices("GPU"))
    if not gpus:
        if devices > 1:
            set_runtime({"devices.logical_cpus": devices})
        return Mesh(tuple(f"/device:CPU:{number}" for number in range(devices)))
    if gpus % devices:
        smaller = next(number for number in range(min(devices, gpus), 0, -1) if not gpus % number)
        raise BridgeError(
            f"A mesh of {devices} devices does not divide the GPUs of this machine.",
            expected=f"a divisor of {gpus}",
            received=f"{devices} devices, {gpus} GPUs",
            fix=f"Take {smaller}, or hide GPUs by CUDA_VISIBLE_DEVICES; with -1 the mesh is made of virtual CPUs.",
        )
    return Mesh(tuple(f"/device:GPU:{number}" for number in range(devices)))
