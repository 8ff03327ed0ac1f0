"""Step times and memory of a plan on more machines, extrapolated from a step that was measured on one device.

A step takes three times, one after the other:

- to compute: the measured seconds; in a pipeline of p stages and m micro-batches, those times the largest stage's share, times (m + p - 1) / m;
- to send tensors between the devices of a worker: their bytes divided by the bandwidth; in a pipeline only those of one micro-batch,
  since the others travel while devices compute;
- to add up gradients between N workers: 2 (N - 1) / N times their bytes, as a ring sends them, divided by the bandwidth.

What overlaps is not taken off, and neither start of a transfer nor contention is added.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from estimator_bridge.modern.parallel.estimates import PlanEstimate


@dataclasses.dataclass(frozen=True)
class Measured:
    """Figures of one device, and of the links between devices.

    Attributes:
        seconds: Duration of a step on the whole batch.
        bandwidth: Bytes per second between devices, and between workers.
        rows: Rows of a batch.
    """

    seconds: float
    bandwidth: float
    rows: int


@dataclasses.dataclass(frozen=True)
class Extrapolation:
    """A plan with a number of workers.

    Attributes:
        workers: Number of workers, each with the mesh and batches of its own.
        devices: Number of devices of all workers.
        compute_seconds: Time to compute a step.
        device_seconds: Time to send tensors between the devices of a worker.
        worker_seconds: Time to add up gradients between workers.
        times_as_fast: Rows per second, as a multiple of those of one device.
        bytes: Bytes of the fullest device: variables, slots, gradients and activations.
    """

    workers: int
    devices: int
    compute_seconds: float
    device_seconds: float
    worker_seconds: float
    times_as_fast: float
    bytes: float

    @property
    def seconds(self) -> float:
        """Duration of a step."""
        return self.compute_seconds + self.device_seconds + self.worker_seconds


def extrapolate(
    found: PlanEstimate, measured: Measured, workers: Sequence[int], sharded_state: bool = False
) -> list[Extrapolation]:
    """Extrapolates a plan to numbers of workers.

    Args:
        found: Plan in numbers.
        measured: Figures of one device.
        workers: Numbers of workers.
        sharded_state: True if the workers cut the optimizers' state between them.
    """
    return [_with_workers(found, measured, number, sharded_state) for number in workers]


def _with_workers(found: PlanEstimate, measured: Measured, workers: int, sharded_state: bool) -> Extrapolation:
    stages, micro = len(found.stages), found.micro
    share = max((stage.share for stage in found.stages), default=1.0)
    compute = measured.seconds * (share * (micro + stages - 1) / micro if stages else 1.0)
    sent = sum(one.bytes_of(measured.rows / micro) for one in found.crossings) * (1 if stages else micro)
    between_devices = sent / measured.bandwidth
    gradients = found.sent.bytes_of(measured.rows)
    between_workers = 2 * (workers - 1) / workers * gradients / measured.bandwidth
    seconds = compute + between_devices + between_workers
    most = max(bytes_of_devices(found, measured.rows, workers if sharded_state else 1).values())
    devices = workers * max(1, len(found.mesh))
    return Extrapolation(
        workers, devices, compute, between_devices, between_workers, workers * measured.seconds / seconds, most
    )


def bytes_of_devices(found: PlanEstimate, rows: int, parts: int = 1) -> dict[str, float]:
    """Returns the bytes of each device: variables, slots, gradients and activations; with micro-batches, gradients of one and their sum.

    Where the largest activation is, its gradient comes in and that of an equally large one goes out.

    Args:
        found: Plan in numbers.
        rows: Rows of a batch.
        parts: Number of workers that cut the optimizers' state between them.
    """
    kept, part = found.kept(rows), rows / found.micro
    total = {device: variables + slots / parts + kept[device] for device, (variables, slots) in found.held().items()}
    moving = [(one.source, 2 * one.largest(part)) for one in found.activations]
    moving += [(one.source, one.bytes_of(rows) + (one.bytes_of(part) if found.micro > 1 else 0)) for one in found.gradients]
    for device, size in moving:
        if device in total:  # not a host that holds no variable
            total[device] += size
    return total
