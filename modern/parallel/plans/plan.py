"""The plan of a parallel training, without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from estimator_bridge.errors import BridgeError

HOST = "host"
"""Device of a rule that stands for the CPU, whatever the mesh is made of."""


@dataclasses.dataclass(frozen=True)
class PlaceRule:
    """Device of the variables whose whole names match a pattern.

    Attributes:
        match: Regular expression.
        device: Number of a device of the mesh, from 0, or ``HOST``. Shards begin there, and go to one device after the other.
        shards: Number of parts into which each of these variables is cut.
        axis: Axis that is cut.
        min_bytes: Bytes that each shard has at least, so that smaller variables are cut into fewer or stay whole; 0 to refuse those that
            cannot be cut into all.
    """

    match: str
    device: int | str = 0
    shards: int = 1
    axis: int = 0
    min_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class PlacementPlan:
    """Devices inside one process, and what lives on them.

    Attributes:
        model: Number of devices over which the variables are divided: those of the model, or of each stage of a pipeline.
        rules: Rules in the order of the plan; the first that matches a variable decides.
        script_devices: True to keep operations on the devices that the script names by ``tf.device``.
        stages: Number of stages into which the model is cut; one for no pipeline.
        at: Operation or scope at which each stage of a pipeline but the first begins; empty to balance the computation.
    """

    model: int = 1
    rules: tuple[PlaceRule, ...] = ()
    script_devices: bool = False
    stages: int = 1
    at: tuple[str, ...] = ()

    @property
    def is_pipeline(self) -> bool:
        """True if the model is cut into stages."""
        return self.stages > 1

    @property
    def devices(self) -> int:
        """Number of devices that hold the model."""
        return self.model * self.stages

    def __str__(self) -> str:
        """Returns the mesh as the command line takes it."""
        axes = {"model": self.model, "pipeline": self.stages}
        return ",".join(f"{axis}={number}" for axis, number in axes.items() if number > 1) or "model=1"


ONE_DEVICE = PlacementPlan()
"""The placement of a model on one device."""


@dataclasses.dataclass(frozen=True)
class ParallelPlan:
    """A whole plan.

    Attributes:
        placement: Devices of the model.
        micro: Number of micro-batches in which a step computes its batch.
        micro_statistics: True to let batch norm and the like see one micro-batch at a time.
        data: Number of workers, each with the whole mesh; None for as many as there are.
        sharded_state: True to cut the optimizers' state between the workers.
        gradients: Type in which gradients travel between workers that have cut their state.
        elastic: Smallest and largest number of workers, of which each takes ``micro`` divided by their number of whole batches for a
            step; None for one number of workers.
        shares: Number of whole batches that each worker takes for a step; empty for equal workers.
    """

    placement: PlacementPlan = ONE_DEVICE
    micro: int = 1
    micro_statistics: bool = False
    data: int | None = None
    sharded_state: bool = False
    gradients: str = "float32"
    elastic: tuple[int, int] | None = None
    shares: tuple[int, ...] = ()

    @property
    def workers(self) -> Sequence[int]:
        """Numbers of workers that an elastic plan allows, ascending.

        Example:
            >>> ParallelPlan(micro=12, elastic=(2, 5)).workers
            [2, 3, 4]
        """
        least, most = self.elastic or (1, 0)
        return [number for number in range(least, min(most, self.micro) + 1) if self.micro % number == 0]

    def check_workers(self, workers: int) -> None:
        """Refuses another number of workers than that of the mesh.

        Args:
            workers: Number of workers that train.

        Raises:
            BridgeError: The mesh has ``data`` with another number.
        """
        if self.data not in {None, workers}:
            raise BridgeError(
                f"The mesh is for {self.data} workers, and {workers} {'trains' if workers == 1 else 'train'}.",
                expected=f"data={workers}, or {self.data} workers, chief included: launch or compare with --worker {(self.data or 1) - 1}",
                received=f"data={self.data}, {workers} worker{'s' if workers > 1 else ''}",
                fix=f"Start {self.data} workers, chief included, or set data={workers}.",
            )

    def step_batches(self, workers: int) -> tuple[int, ...]:
        """Returns the number of whole batches that each worker takes for a step; empty if each takes one.

        Args:
            workers: Number of workers.

        Raises:
            BridgeError: The plan is for another number of workers.
        """
        allowed = [len(self.shares)] if self.shares else self.workers
        if not allowed:
            return ()
        if workers not in allowed:
            listed = ", ".join(map(str, allowed))
            raise BridgeError(
                f"The plan is for another number of workers: {workers} {'trains' if workers == 1 else 'train'}.",
                expected=f"{listed} workers, chief included, since a step takes {sum(self.shares) or self.micro} batches",
                received=workers,
                fix=f"Start {listed.replace(', ', ' or ')}: estimator-bridge launch --path modern --worker N, and a chief.",
            )
        return self.shares or (self.micro // workers,) * workers

    @property
    def is_approximate(self) -> bool:
        """True if the plan itself makes results approximate."""
        return self.micro_statistics or self.gradients != "float32"

    def describe(self, who: str) -> list[str]:
        """Returns a sentence for each part of the plan.

        Args:
            who: Subject of the sentences.
        """
        own = self.placement
        holds = [f"{who} trains in a pipeline of {own.stages} stages."] if own.is_pipeline else []
        holds += (
            [f"{who} holds {'each stage' if own.is_pipeline else 'the model'} on {own.model} devices."] if own.model > 1 else []
        )
        is_whole = self.elastic or self.shares
        computes = [f"{who} computes each batch in {self.micro} micro-batches."] if self.micro > 1 and not is_whole else []
        computes += [f"{who} takes {sum(self.shares) or self.micro} batches for a step."] if is_whole else []
        keeps = [f"{who} keeps a part of the optimizers' state in each worker."] if self.sharded_state else []
        sends = [f"{who} adds up gradients in {self.gradients}, which is approximate."] if self.gradients != "float32" else []
        sees = [f"{who} lets batch norm see one micro-batch at a time, which is approximate."] if self.micro_statistics else []
        return [*holds, *computes, *keeps, *sends, *sees]


NOT_PARALLEL = ParallelPlan()
"""The plan of a training on one device, on whole batches."""


def of_dict(fields: Mapping[str, Any]) -> ParallelPlan:
    """Returns the plan of which ``dataclasses.asdict`` made ``fields``, perhaps by way of JSON.

    Example:
        >>> of_dict(dataclasses.asdict(ParallelPlan(micro=4))).micro
        4
    """
    placement = dict(fields["placement"])
    rules, at = tuple(PlaceRule(**rule) for rule in placement.pop("rules")), tuple(placement.pop("at"))
    lists = {"elastic": tuple(fields["elastic"]) if fields["elastic"] else None, "shares": tuple(fields["shares"])}
    return ParallelPlan(**{**fields, **lists, "placement": PlacementPlan(rules=rules, at=at, **placement)})


def shares_of(speeds: Sequence[float], batches: int) -> tuple[int, ...]:
    """Returns the shares with which workers of different speed end a step earliest.

    Each batch goes to the worker that would end first with it, which is the best for batches of one size.

    Args:
        speeds: Steps per second of one batch each that every worker reaches alone.
        batches: Batches of a step, at least one for each worker.

    Example:
        >>> shares_of([6.0, 2.0], 8), shares_of([1.0, 1.0, 1.0], 4)
        ((6, 2), (2, 1, 1))
    """
    shares = [1] * len(speeds)
    for _ in range(batches - len(speeds)):
        first = min(range(len(speeds)), key=lambda one: (shares[one] + 1) / speeds[one])
        shares[first] += 1
    return tuple(shares)
