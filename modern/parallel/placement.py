"""Placement: devices of the variables and operations of a training step, for a model that one device does not hold.

In a pipeline the stages decide. Within the devices of a stage, or without a pipeline, an operation runs where the variable lives that it
reads, and one that uses a weight follows the weight. All others run on the latest device of their inputs. The operations of a gradient
follow the forward operation whose gradient they compute, which TensorFlow notes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Operation, is_copied, is_source
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.stages import Plan
from estimator_bridge.modern.parallel.assignment import Assignment, assign
from estimator_bridge.modern.parallel.cutting import Cut, cut
from estimator_bridge.modern.parallel.mesh import Mesh
from estimator_bridge.modern.parallel.partitioning import check_shards
from estimator_bridge.modern.parallel.plans.plan import PlacementPlan
from estimator_bridge.modern.parallel.script_devices import script_device

logging = tf.compat.v1.logging


@dataclasses.dataclass(frozen=True)
class Placer:
    """Function that places a training step; see ``Transplant``.

    Attributes:
        plan: Devices and patterns.
        mesh: Devices.
    """

    plan: PlacementPlan
    mesh: Mesh

    def __call__(self, model: ModelGraph, step: Plan) -> Mapping[str, str]:
        """Returns the devices of a training step's variables and other operations, and logs the bytes of each device."""
        assignment, devices, _ = self.placed(model, step)
        if self.mesh.has_gpus:  # operations that no GPU runs, e.g. on integers, are placed, too
            tf.config.set_soft_device_placement(True)
        for device in dict.fromkeys([*self.mesh.names, *assignment.devices.values()]):
            units = [unit for unit in assignment.units if assignment.devices[unit.first.op.name] == device]
            count, size = sum(len(unit.members) for unit in units), sum(unit.size for unit in units)
            logging.info("%s holds %d variables of %d bytes.", device, count, size)
        return devices

    def placed(self, model: ModelGraph, step: Plan) -> tuple[Assignment, Mapping[str, str], Cut | None]:
        """Returns the devices of a training step's variables, those of its operations, and the stages of a pipeline."""
        if any(rule.shards > 1 for rule in self.plan.rules):
            check_shards(model, step)
        if not self.plan.is_pipeline:
            assignment = assign(self.plan, self.mesh, model, step)
            return assignment, placed_operations(self.plan, self.mesh, assignment, step), None
        stages = cut(model, step, self.plan.stages, self.plan.at)
        assignment = stages.assign(self.mesh, model, step)
        groups = self.mesh.stages(self.plan.stages)
        pinned = {name: groups[stage] for name, stage in stages.stages.items()}
        return assignment, placed_operations(self.plan, self.mesh, assignment, step, pinned), stages


def placed_operations(
    plan: PlacementPlan,
    mesh: Mesh,
    assignment: Assignment,
    step: Plan,
    pinned: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, str]:
    """Chooses devices for the operations of a training step.

    Args:
        plan: Plan, which may keep the script's own devices.
        mesh: Devices.
        assignment: Devices of the variables.
        step: Training step.
        pinned: Name of an operation -> devices of its stage. Unless the operation reads a variable, it runs on one of them.

    Returns:
        Name of an operation -> device, variables included. TensorFlow chooses for the operations that are not there.
    """
    operations = _Operations(plan, mesh, assignment, pinned)
    inside = sorted(step.operations - {update.op for update in step.updates}, key=lambda op: op._id)
    for op in inside:
        operations.place(op)
    for op in reversed(inside):
        operations.place_with_consumer(op)
    return operations.devices


class _Operations:
    """Devices so far, when operations are placed in the order of their creation."""

    def __init__(self, plan: PlacementPlan, mesh: Mesh, assignment: Assignment, pinned: Mapping[str, Sequence[str]]) -> None:
        self._plan = plan
        self._pinned = pinned
        self._mesh = mesh
        self.devices = dict(assignment.devices)
        self._varying: set[Operation] = set()  # operations that depend on the batch
        self._weights: set[Operation] = set()  # operations that depend on variables alone

    def place(self, op: Operation) -> None:
        """Places an operation, unless it depends on no batch and no variable."""
        self._sort(op)
        device = self._mesh.host if _is_host_only(op) else self._device(op)
        if device:
            self.devices[op.name] = device

    def place_with_consumer(self, op: Operation) -> None:
        """Places an operation without a device where its first consumer is: constants, and what is computed from them."""
        if op.name in self.devices or not op.outputs:
            return
        users = (user for tensor in op.outputs for user in tensor.consumers())
        device = next((self.devices[user.name] for user in users if user.name in self.devices), None)
        if device:
            self.devices[op.name] = device

    def _sort(self, op: Operation) -> None:
        if any(_is_batch(tensor.op) or tensor.op in self._varying for tensor in op.inputs):
            self._varying.add(op)
        elif any(tensor.op.type == "VarHandleOp" or tensor.op in self._weights for tensor in op.inputs):
            self._weights.add(op)

    def _device(self, op: Operation) -> str | None:
        handles = {self.devices.get(tensor.op.name) for tensor in op.inputs if tensor.op.type == "VarHandleOp"}
        if handles:  # TensorFlow divides loops and calls that read variables of several devices
            return handles.pop() if len(handles) == 1 else None
        if self._plan.script_devices and (device := script_device(op, self._mesh)):
            return device
        chosen = self._of_original(op) or self._of_colocated(op) or self._of_inputs(op)
        own = self._pinned.get(op.name)
        return chosen if own is None or chosen in own else own[0]

    def _of_original(self, op: Operation) -> str | None:
        """Returns the device of the forward operation whose gradient an operation belongs to."""
        original = op._original_op
        while original is not None and original.name not in self.devices:
            original = original._original_op
        return self.devices[original.name] if original is not None else None

    def _of_colocated(self, op: Operation) -> str | None:
        names = (group.decode().removeprefix("loc:@") for group in op.colocation_groups())
        return next((self.devices[name] for name in names if name in self.devices), None)

    def _of_inputs(self, op: Operation) -> str | None:
        if op not in self._varying and op not in self._weights:
            return None
        placed = [tensor.op for tensor in op.inputs if tensor.op.name in self.devices and not is_copied(tensor.op)]
        weights = [self.devices[one.name] for one in placed if one in self._weights]
        if weights:
            return weights[0]
        return self._mesh.latest([self.devices[one.name] for one in placed]) if placed else self._mesh.names[0]


def _is_host_only(op: Operation) -> bool:
    """Returns True for operations on tables and strings, which are on the host."""
    reads_table = any(one.dtype == tf.resource and one.op.type != "VarHandleOp" for one in op.inputs)
    is_table = not is_source(op) and any(tensor.dtype == tf.resource for tensor in op.outputs)
    return reads_table or is_table or any(tensor.dtype == tf.string for tensor in (*op.inputs, *op.outputs))


def _is_batch(op: Any) -> bool:
    return is_source(op) and op.type != "VarHandleOp"
