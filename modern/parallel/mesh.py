"""The devices of a mesh inside one process: GPUs, or virtual CPUs on a machine without GPUs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.runtime_settings import set_runtime
from estimator_bridge.modern.distribution.strategies import task_context
from estimator_bridge.modern.parallel.plans.plan import HOST

logging = tf.compat.v1.logging
_CPU = "/device:CPU:0"


@dataclasses.dataclass(frozen=True)
class Mesh:
    """Devices by their numbers in a plan.

    Attributes:
        names: Names of the devices; all are GPUs or all are CPUs.
        place: Number of this process among the workers on its machine, and how many these are.
    """

    names: Sequence[str]
    place: tuple[int, int] = (0, 1)

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
    worker, workers = place_on_machine()
    if workers > 1:
        chosen = own_gpus(gpus, devices, worker, workers)
        logging.info("Worker %d of %d on this machine holds its mesh on GPUs %s of %d.", worker, workers, chosen, gpus)
        set_runtime({"devices.visible_gpus": chosen})
    else:
        _check_divides(gpus, devices)
    return Mesh(tuple(f"/device:GPU:{number}" for number in range(devices)), (worker, workers))


def place_on_machine() -> tuple[int, int]:
    """Returns the number of this process among the workers on its machine, from 0, and how many these are."""
    context = task_context()
    return context.place_on_machine() if context else (0, 1)


def own_gpus(gpus: int, devices: int, worker: int, workers: int) -> tuple[int, ...]:
    """Returns the GPUs of one of several workers on a machine; a worker that a scheduler shows just its own takes all of them.

    Args:
        gpus: Number of GPUs that the worker sees.
        devices: Number of devices of a mesh.
        worker: Number of the worker on its machine, from 0.
        workers: Number of workers on the machine.

    Raises:
        BridgeError: There are too few.

    Example:
        >>> own_gpus(4, 2, worker=1, workers=2)
        (2, 3)
    """
    if gpus == devices and "CUDA_VISIBLE_DEVICES" in os.environ:
        return tuple(range(devices))
    if gpus < devices * workers:
        fits = [f"start {gpus // devices} here"] if gpus >= devices else []
        fits += [f"take a mesh of {gpus // workers} in each" if gpus >= workers else f"start {gpus} here with one device each"]
        raise BridgeError(
            f"The {workers} workers on this machine have too few GPUs for a mesh of {devices} devices in each.",
            expected=f"{devices * workers} GPUs, or just {devices} that CUDA_VISIBLE_DEVICES shows each worker",
            received=f"{gpus} GPUs",
            fix=f"{' or '.join(fits).capitalize()}; with CUDA_VISIBLE_DEVICES=-1 meshes are made of virtual CPUs.",
        )
    return tuple(range(worker * devices, (worker + 1) * devices))


def _check_divides(gpus: int, devices: int) -> None:
    if gpus % devices:
        smaller = next(number for number in range(min(devices, gpus), 0, -1) if not gpus % number)
        raise BridgeError(
            f"A mesh of {devices} devices does not divide the GPUs of this machine.",
            expected=f"a divisor of {gpus}",
            received=f"{devices} devices, {gpus} GPUs",
            fix=f"Take {smaller}, or hide GPUs by CUDA_VISIBLE_DEVICES; with -1 the mesh is made of virtual CPUs.",
        )
