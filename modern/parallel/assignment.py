"""Assignment of a model's variables to devices: by the plan's patterns, by the script's own devices, and else by their bytes."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.graph.fragments import refused
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.stages import Plan
from estimator_bridge.modern.parallel.balance import balanced
from estimator_bridge.modern.parallel.mesh import Mesh
from estimator_bridge.modern.parallel.partitioning import fitting
from estimator_bridge.modern.parallel.plans.plan import PlacementPlan, PlaceRule
from estimator_bridge.modern.parallel.script_devices import script_device

_KERNELS = ("ResourceApply", "ResourceSparseApply")  # each updates several variables at once, which must be on one device
_BALANCE, _SCRIPT = "balance", "tf.device"


@dataclasses.dataclass(frozen=True)
class Unit:
    """A variable and those that must live beside it: its slots, copies named after it, and what one kernel updates with it.

    Attributes:
        first: Variable that decides for all.
        members: Variables, ``first`` included.
    """

    first: Any
    members: tuple[Any, ...]

    @property
    def size(self) -> int:
        """Bytes of all members."""
        return sum(map(size_of, self.members))


@dataclasses.dataclass(frozen=True)
class Assignment:
    """Devices of variables.

    Attributes:
        units: Variables that have a device.
        devices: Operation name of a variable -> device. TensorFlow chooses for variables that are not there: counters and the like.
        reasons: Operation name of a unit's first variable -> pattern, "tf.device" or "balance", which chose its device.
    """

    units: Sequence[Unit]
    devices: Mapping[str, str]
    reasons: Mapping[str, str]


def size_of(variable: Any) -> int:
    """Returns the bytes of a variable; 0 for strings, and if its shape is not fully known."""
    if variable.dtype.base_dtype == tf.string:
        return 0
    return int(tf.TensorShape(variable.op.get_attr("shape")).num_elements() or 0) * int(variable.dtype.base_dtype.size)


def assign(placement: PlacementPlan, mesh: Mesh, model: ModelGraph, step: Plan) -> Assignment:
    """Chooses a device for each variable.

    Args:
        placement: Patterns and the number of devices.
        mesh: Devices.
        model: Training graph.
        step: Training step of the graph.

    Raises:
        BridgeError: A pattern matches no variable, or no variable that an earlier pattern has left.
        NotSupportedError: The script names a device that the mesh does not have.
    """
    units = find_units(model, step)
    chosen = _by_rules(placement.rules, units, mesh)
    for unit in units if placement.script_devices else ():
        device = script_device(unit.first.op, mesh)
        if device and unit.first.op.name not in chosen:
            chosen[unit.first.op.name] = device, _SCRIPT
    rest = [unit for unit in units if unit.first.op.name not in chosen and any(one.dtype.is_floating for one in unit.members)]
    sizes = {unit.first.op.name: unit.size for unit in units}
    loads = Counter(dict.fromkeys(mesh.names, 0))
    for name, (device, _) in chosen.items():
        loads[device] += sizes[name]
    numbers = balanced([unit.size for unit in rest], [loads[name] for name in mesh.names])
    for unit, number in zip(rest, numbers, strict=True):
        chosen[unit.first.op.name] = mesh.names[number], _BALANCE
    placed = [unit for unit in units if unit.first.op.name in chosen]
    devices = {one.op.name: chosen[unit.first.op.name][0] for unit in placed for one in unit.members}
    return Assignment(placed, devices, {name: reason for name, (_, reason) in chosen.items()})


def find_units(model: ModelGraph, step: Plan) -> list[Unit]:
    """Returns the variables of a model in the order of their creation, each with those that must live beside it."""
    variables = {variable.op.name: variable for variable in sorted(model.variables(), key=lambda one: one.op._id)}
    owners = {name: name for name in variables}

    def owner(name: str) -> str:
        while owners[name] != name:
            name = owners[name]
        return name

    for names in _beside(model, step):
        roots = sorted({owner(name) for name in names if name in owners}, key=list(variables).index)
        owners.update((root, roots[0]) for root in roots[1:])
    members: dict[str, list[Any]] = {}
    for name, variable in variables.items():
        members.setdefault(owner(name), []).append(variable)
    powers = {power.op.name for update in step.updates for variable, _, power in update.slots() if variable is None}
    return [Unit(variables[name], tuple(ones)) for name, ones in members.items() if name not in powers]


def _beside(model: ModelGraph, step: Plan) -> Iterable[Sequence[str]]:
    """Yields names of variables that must live on one device."""
    for update in step.updates:
        yield from ((variable.op.name, slot.op.name) for variable, _, slot in update.slots() if variable is not None)
    for op in step.operations:
        if op.type.startswith(_KERNELS):
            yield [tensor.op.name for tensor in op.inputs if tensor.op.type == "VarHandleOp"]
    trained = {variable.op.name for variable in model.variables() if variable.trainable}
    for variable in model.variables():
        parts = variable.op.name.split("/")
        prefixes = ("/".join(parts[:length]) for length in range(len(parts) - 1, 0, -1))
        yield from ([prefix, variable.op.name] for prefix in prefixes if prefix in trained)


def _by_rules(rules: Sequence[PlaceRule], units: Sequence[Unit], mesh: Mesh) -> dict[str, tuple[str, str]]:
    chosen: dict[str, tuple[str, str]] = {}
    names = [unit.first.op.name for unit in units]
    for rule in rules:
        _check_cut(rule, units)
        of_shards = rf"(?:{rule.match})/part_\d+" if rule.shards > 1 else rule.match
        matched = [name for name in names if re.fullmatch(of_shards, name)]
        left = [name for name in matched if name not in chosen]
        if not left and not (rule.min_bytes and any(re.fullmatch(rule.match, name) for name in names)):
            near = difflib.get_close_matches(rule.match, names, n=3, cutoff=0.3)
            raise BridgeError(
                f"The plan's pattern {rule.match!r} matches no variable"
                + (
                    f" that the patterns before it leave: {chosen[matched[0]][1]!r} is first for {matched[0]!r}."
                    if matched
                    else "."
                ),
                expected="a regular expression for whole names of variables; their slots follow them",
                received=f"{len(names)} variables, e.g. {', '.join(near or names[:3])}",
                fix="Correct the pattern, or leave it out; estimator-bridge plan lists all variables.",
            )
        chosen |= {name: (_device_of(name, rule, mesh), rule.match) for name in left}
    return chosen


def _check_cut(rule: PlaceRule, units: Sequence[Unit]) -> None:
    matched = (unit.first for unit in units if unit.first.trainable and re.fullmatch(rule.match, unit.first.op.name))
    uncut = (one for one in matched if not re.fullmatch(r".+/part_\d+", one.op.name))
    whole = [one.op for one in uncut if fitting(rule, one.shape, one.dtype.base_dtype).shards > 1]
    if whole:
        raise refused(
            whole[0],
            f"The plan cuts {whole[0].name!r} into {rule.shards} shards, but it is still whole.",
            expected="variables made by tf.get_variable, as tf.layers and tf.contrib.layers do; not tf.Variable, nor layers of Keras",
            received=", ".join(op.name for op in whole[:3]),
            fix="Let the pattern match other variables, or give these a device without shards.",
        )


def _device_of(name: str, rule: PlaceRule, mesh: Mesh) -> str:
    if rule.shards == 1:
        return mesh.name(rule.device)
    return mesh.names[(int(rule.device) + int(name.rpartition("_")[2])) % len(mesh.names)]
