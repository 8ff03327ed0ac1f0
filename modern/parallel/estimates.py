"""Costs of a plan by static shapes: bytes of variables, slots and activations on each device, and of tensors between devices."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Operation, Tensor, is_copied, is_source, upstream, variable_of
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.optimizers.capture import components
from estimator_bridge.modern.graph.stages import Plan
from estimator_bridge.modern.parallel.assignment import Assignment, size_of
from estimator_bridge.modern.parallel.cutting import Cut
from estimator_bridge.modern.parallel.mesh import Mesh
from estimator_bridge.modern.parallel.micro_batches.reductions import losses_of, trained
from estimator_bridge.modern.step.split_checks import OF_SHAPE_ALONE

_ELSEWHERE = "TensorFlow"
_KINDS = ("step", "row", "unknown")
_SAME_BUFFER = frozenset({"Reshape", "Identity", "Squeeze", "ExpandDims"})
"""Operations whose output has the memory of their first input."""


@dataclasses.dataclass(frozen=True)
class PlacedVariable:
    """A variable and what follows it.

    Attributes:
        name: Operation name.
        device: Device.
        chosen_by: Pattern of the plan, "tf.device", "balance", or "TensorFlow" for counters and the like.
        shape: Shape, as text.
        variable_bytes: Bytes of the variable, and of trained variables beside it.
        slot_bytes: Bytes of its slots and of copies named after it.
    """

    name: str
    device: str
    chosen_by: str
    shape: str
    variable_bytes: int
    slot_bytes: int


@dataclasses.dataclass(frozen=True)
class Crossing:
    """Tensors that a step sends from one device to another, each counted once for a device.

    Attributes:
        source: Device that computes them.
        target: Device that reads them.
        tensors: Number of tensors.
        step_bytes: Bytes of tensors whose shapes are known.
        row_bytes: Bytes for each row of a batch, of tensors whose first axis alone is unknown.
        unknown: Number of tensors whose bytes are unknown.
        largest_step_bytes: Bytes of the largest tensor whose shape is known.
        largest_row_bytes: Bytes for each row of the largest tensor whose first axis alone is unknown.
    """

    source: str
    target: str
    tensors: int
    step_bytes: int
    row_bytes: int
    unknown: int
    largest_step_bytes: int = 0
    largest_row_bytes: int = 0

    def bytes_of(self, rows: float) -> float:
        """Returns the bytes of a batch, or micro-batch, with a number of rows."""
        return self.step_bytes + self.row_bytes * rows

    def largest(self, rows: float) -> float:
        """Returns the bytes of the largest tensor of a batch, or micro-batch, with a number of rows."""
        return max(self.largest_step_bytes, self.largest_row_bytes * rows)


@dataclasses.dataclass(frozen=True)
class StageEstimate:
    """A stage of a pipeline.

    Attributes:
        devices: Devices.
        begins: Name of its first operation.
        share: Share in the computation of the forward operations, from 0 to 1.
        micro_batches: Number of micro-batches whose activations it holds at most.
    """

    devices: Sequence[str]
    begins: str
    share: float
    micro_batches: int


@dataclasses.dataclass(frozen=True)
class PlanEstimate:
    """A plan in numbers.

    Attributes:
        devices: Devices of the mesh, and others that hold variables.
        micro: Number of micro-batches of a step.
        variables: Variables.
        crossings: Tensors between devices; with micro-batches, those of each.
        activations: Forward tensors that gradients read, as crossings from a device to itself; with micro-batches, those of each.
        gradients: Gradients of a batch, as crossings from a device to itself.
        mesh: Devices of the mesh alone.
        stages: Stages of a pipeline, if it is one.
        whole: Bytes of the activations of a batch that is computed whole; None if its rows are unknown.
    """

    devices: Sequence[str]
    micro: int
    variables: Sequence[PlacedVariable]
    crossings: Sequence[Crossing]
    activations: Sequence[Crossing]
    gradients: Sequence[Crossing]
    mesh: Sequence[str]
    stages: Sequence[StageEstimate] = ()
    whole: int | None = None

    @property
    def sent(self) -> Crossing:
        """Gradients that workers send each other in each step."""
        numbers = zip(*((one.tensors, one.step_bytes, one.row_bytes, one.unknown) for one in self.gradients), strict=True)
        return Crossing("workers", "workers", *(list(map(sum, numbers)) or [0, 0, 0, 0]))

    @property
    def bubble(self) -> float:
        """Part of a step in which each device of a pipeline waits if all stages take equally long, from 0 to 1."""
        return (len(self.stages) - 1) / (self.micro + len(self.stages) - 1) if self.stages else 0.0

    def held(self) -> dict[str, tuple[int, int]]:
        """Returns the bytes of variables and of slots on each device."""
        found = dict.fromkeys(self.devices, (0, 0))
        for one in self.variables:
            variables, slots = found[one.device]
            found[one.device] = variables + one.variable_bytes, slots + one.slot_bytes
        return found

    def kept(self, rows: float) -> dict[str, float]:
        """Returns the bytes of activations that each device keeps at a time: of one micro-batch, in a pipeline of several.

        Args:
            rows: Rows of a whole batch.
        """
        numbers = {device: stage.micro_batches for stage in self.stages for device in stage.devices}
        own = {one.source: one.bytes_of(rows / self.micro) * numbers.get(one.source, 1) for one in self.activations}
        return {device: own.get(device, 0.0) for device in self.devices}

    def as_dict(self, rows: int | None = None) -> dict[str, Any]:
        """Returns the estimate as JSON takes it, given the rows of a batch if they are known."""
        devices: list[dict[str, Any]] = [
            {"device": name, "variable_bytes": own, "slot_bytes": slots} for name, (own, slots) in self.held().items()
        ]
        for device in devices if rows else ():
            device["activation_bytes"] = round(self.kept(rows or 0)[device["device"]])
        return {
            "devices": devices,
            "micro": self.micro,
            "variables": list(map(dataclasses.asdict, self.variables)),
            "crossings": list(map(dataclasses.asdict, self.crossings)),
            "activations": list(map(dataclasses.asdict, self.activations)),
            "gradients": dataclasses.asdict(self.sent),
            "stages": list(map(dataclasses.asdict, self.stages)),
            "bubble": self.bubble,
            "whole_batch_activation_bytes": self.whole,
        }


def estimate(
    model: ModelGraph, step: Plan, mesh: Mesh, placed: tuple[Assignment, Mapping[str, str], Cut | None], micro: int
) -> PlanEstimate:
    """Estimates a plan by the shapes of the graph; nothing is computed.

    Args:
        model: Training graph.
        step: Training step of the graph.
        mesh: Devices; TensorFlow puts what has no device on the first.
        placed: Devices of the variables, device of each operation by its name, and the stages of a pipeline.
        micro: Number of micro-batches of a step.
    """
    assignment, devices, cut = placed
    default = mesh.names[0]
    rows = [_placed(unit.first, unit.members, assignment) for unit in assignment.units]
    others = [variable for variable in model.variables() if variable.op.name not in assignment.devices]
    rows += [PlacedVariable(one.op.name, default, _ELSEWHERE, str(_shape(one)), size_of(one), 0) for one in others]
    names = tuple(dict.fromkeys([*mesh.names, *(row.device for row in rows)]))
    derivations = trained(model, step.operations - {update.op for update in step.updates})
    losses = losses_of(model, derivations)
    forward = upstream([loss.op for loss in losses], is_source)
    crossing, activations = list[tuple[Tensor, str, str]](), list[tuple[Tensor, str, str]]()
    for tensor, reader in _reads(step):
        pair = devices.get(tensor.op.name, default), devices.get(reader.name, default)
        if pair[0] != pair[1]:
            crossing.append((tensor, *pair))
        is_read_back = tensor.op in forward and reader not in forward and reader.type not in OF_SHAPE_ALONE
        buffer = _buffer(tensor) if is_read_back else tensor
        if is_read_back and buffer.op in forward and variable_of(buffer) is None:
            activations.append((buffer, pair[0], pair[0]))
    derived = components(gradient for one in derivations for gradient in one.gradients)
    homes = [(part, devices.get(part.op.name, default)) for part in derived]
    gradients = _added_up([(part, home, home) for part, home in homes])
    crossings, kept = _added_up(crossing), _added_up(activations)
    return PlanEstimate(names, micro, rows, crossings, kept, gradients, mesh.names, _stages(cut, mesh, micro))


def _stages(cut: Cut | None, mesh: Mesh, micro: int) -> list[StageEstimate]:
    groups = mesh.stages(len(cut.begins)) if cut else []
    rows = zip(groups, cut.begins, cut.shares, strict=True) if cut else ()
    return [StageEstimate(*row, min(micro, len(groups) - stage)) for stage, row in enumerate(rows)]


def _placed(first: Any, members: Iterable[Any], assignment: Assignment) -> PlacedVariable:
    own = sum(size_of(one) for one in members if one is first or one.trainable)
    slots = sum(size_of(one) for one in members if one is not first and not one.trainable)
    name = first.op.name
    return PlacedVariable(name, assignment.devices[name], assignment.reasons[name], str(_shape(first)), own, slots)


def _shape(variable: Any) -> Any:
    return tf.TensorShape(variable.op.get_attr("shape"))


def _added_up(tensors: Iterable[tuple[Tensor, str, str]]) -> list[Crossing]:
    sent: dict[tuple[str, str], set[str]] = {}
    sizes: dict[tuple[str, str], Counter[str]] = {}
    largest: dict[tuple[str, str], Counter[str]] = {}
    for tensor, *ends in tensors:
        pair = ends[0], ends[1]
        if tensor.name not in sent.setdefault(pair, set()):
            sent[pair].add(tensor.name)
            kind, size = _size(tensor)
            sizes.setdefault(pair, Counter())[kind] += size
            largest[pair] = largest.get(pair, Counter()) | Counter({kind: size})
    return [
        Crossing(*pair, len(names), *(sizes[pair][kind] for kind in _KINDS), *(largest[pair][kind] for kind in _KINDS[:2]))
        for pair, names in sorted(sent.items())
    ]


def _reads(step: Plan) -> Iterator[tuple[Tensor, Operation]]:
    """Yields the tensors that an operation or an update of a variable reads; constants are copied, and handles are no data."""
    ops = step.operations - {update.op for update in step.updates}
    for op in ops:
        yield from ((tensor, op) for tensor in op.inputs if tensor.dtype != tf.resource and not is_copied(tensor.op))
    for update in step.updates:
        for gradient, variable in update.pairs:
            parts = tf.nest.flatten(gradient, expand_composites=True)
            yield from ((part, variable.op) for part in parts if part.op in ops and not is_source(part.op))


def _buffer(tensor: Tensor) -> Tensor:
    while tensor.op.type in _SAME_BUFFER:
        tensor = tensor.op.inputs[0]
    return tensor


def _size(tensor: Tensor) -> tuple[str, int]:
    shape = tensor.shape
    if shape.is_fully_defined() and tensor.dtype.is_numpy_compatible and tensor.dtype != tf.string:
        return "step", int(shape.num_elements()) * int(tensor.dtype.size)
    if shape.rank and shape[1:].is_fully_defined() and tensor.dtype.is_numpy_compatible and tensor.dtype != tf.string:
        return "row", int(shape[1:].num_elements()) * int(tensor.dtype.size)
    return "unknown", 1
