"""The plan of a parallel training: ``plan.toml``, or ``--mesh model=2`` and the like for short. Reading one needs no TensorFlow."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from estimator_bridge.errors import BridgeError, NotSupportedError

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
    """

    match: str
    device: int | str = 0
    shards: int = 1
    axis: int = 0


@dataclasses.dataclass(frozen=True)
class PlacementPlan:
    """Devices inside one process, and what lives on them.

    Attributes:
        devices: Number of devices that hold the model.
        rules: Rules in the order of the plan; the first that matches a variable decides.
        script_devices: True to keep operations on the devices that the script names by ``tf.device``.
        axis: "model" to divide the variables over the devices, "pipeline" to cut the model into a stage for each device.
        at: Operation or scope at which each stage of a pipeline but the first begins; empty to balance the computation.
    """

    devices: int = 1
    rules: tuple[PlaceRule, ...] = ()
    script_devices: bool = False
    axis: str = "model"
    at: tuple[str, ...] = ()

    @property
    def is_pipeline(self) -> bool:
        """True if each device holds a stage of a pipeline."""
        return self.devices > 1 and self.axis == "pipeline"

    def __str__(self) -> str:
        """Returns the mesh as the command line takes it."""
        return f"{self.axis}={self.devices}"


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
        return [number for number in range(least, most + 1) if self.micro % number == 0]

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

    def describe(self, who: str) -> list[str]:
        """Returns a sentence for each part of the plan.

        Args:
            who: Subject of the sentences.
        """
        number = self.placement.devices
        way = (
            f"trains in a pipeline of {number} stages" if self.placement.is_pipeline else f"holds the model on {number} devices"
        )
        holds = [f"{who} {way}."] if number > 1 else []
        is_whole = self.elastic or self.shares
        computes = [f"{who} computes each batch in {self.micro} micro-batches."] if self.micro > 1 and not is_whole else []
        computes += [f"{who} takes {sum(self.shares) or self.micro} batches for a step."] if is_whole else []
        keeps = [f"{who} keeps a part of the optimizers' state in each worker."] if self.sharded_state else []
        sends = [f"{who} adds up gradients in {self.gradients}, which is approximate."] if self.gradients != "float32" else []
        return [*holds, *computes, *keeps, *sends]


NOT_PARALLEL = ParallelPlan()
"""The plan of a training on one device, on whole batches."""


class _Key(NamedTuple):
    """Values of one key of a plan.

    Attributes:
        accepts: Function that returns True for a value of the key's kind.
        expected: Words for such values.
        works: Values that work so far; None if all do.
        instead: Advice for the values that do not work yet.
    """

    accepts: Callable[[Any], bool]
    expected: str
    works: Collection[Any] | None = None
    instead: str = ""


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_pattern(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(re.compile(value))
    except re.error:
        return False


def _is_device(value: Any) -> bool:
    return value == HOST or (type(value) is int and value >= 0)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_shares(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(map(_is_count, value))


def _is_range(value: Any) -> bool:
    return _is_shares(value) and len(value) == 2 and value[0] <= value[1]


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(name, str) and name for name in value)


_COUNT = "a whole number of 1 or more"
_FORM: Mapping[str, Mapping[str, _Key]] = {
    "mesh": {
        "data": _Key(_is_count, _COUNT),
        "model": _Key(_is_count, _COUNT),
        "pipeline": _Key(_is_count, _COUNT),
    },
    "batch": {
        "micro": _Key(_is_count, _COUNT),
        "statistics": _Key(lambda value: value in ("batch", "micro"), '"batch" or "micro"'),
        "shares": _Key(_is_shares, "a list with the number of batches of each worker"),
    },
    "place": {
        "match": _Key(_is_pattern, "a regular expression for whole names of variables, in quotes"),
        "device": _Key(_is_device, f'the number of a device, from 0, or "{HOST}"'),
        "shards": _Key(_is_count, _COUNT),
        "axis": _Key(lambda value: type(value) is int and value >= 0, "a whole number of 0 or more"),
        "layout": _Key(_is_list, "a list of axes", (), "Leave out layout, and give a device."),
    },
    "script": {"devices": _Key(lambda value: isinstance(value, bool), "true or false")},
    "pipeline": {
        "stages": _Key(_is_count, _COUNT, (), "Leave out stages, and set pipeline in [mesh]."),
        "at": _Key(_is_names, "a list of names of operations or scopes"),
    },
    "optimizer": {
        "state": _Key(lambda value: value in ("replicated", "sharded"), '"replicated" or "sharded"'),
        "gradients": _Key(lambda value: value in ("float32", "float16", "bfloat16"), '"float32", "float16" or "bfloat16"'),
    },
    "elastic": {"workers": _Key(_is_range, "a list with the smallest and the largest number of workers")},
}
"""Tables of a plan and their keys. Keys that do not work yet have their place, so that plans stay readable."""


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


def of_mesh(text: str) -> ParallelPlan:
    """Reads a mesh, e.g. ``data=1,model=2``.

    Args:
        text: Axes and their lengths, as ``--mesh`` takes them.

    Raises:
        BridgeError: The text is no mesh, or asks for what does not work yet.

    Example:
        >>> of_mesh("data=1,model=2").placement.devices
        2
    """
    mesh: dict[str, Any] = {}
    for part in text.split(","):
        axis, _, length = (word.strip() for word in part.partition("="))
        if axis in mesh or not (axis and length):
            raise BridgeError(
                "--mesh needs each axis once, with its length.",
                expected="--mesh model=2",
                received=f"--mesh {text}",
                fix=f"Name one or more of {', '.join(_FORM['mesh'])}.",
            )
        mesh[axis] = int(length) if length.isdecimal() else length
    return _of_tables({"mesh": mesh}, f"--mesh {text}")


def read_plan(path: Path) -> ParallelPlan:
    """Reads a ``plan.toml``.

    Args:
        path: File to read.

    Raises:
        BridgeError: The file cannot be read, is no plan, or asks for what does not work yet.
    """
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BridgeError(
            "The plan cannot be read.", received=f"{path}: {error.strerror}", fix="Name an existing file."
        ) from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError and UnicodeDecodeError are the first
        raise BridgeError(
            f"{path}: this is not TOML.", expected="a plan as TOML", received=error, fix="Correct that line."
        ) from None
    return _of_tables(tables, str(path))


def _of_tables(tables: Mapping[str, Any], source: str) -> ParallelPlan:
    for name, given in tables.items():
        keys = _known(_FORM, name, source, "table")
        kind = list if name == "place" else dict
        if not isinstance(given, kind) or not all(isinstance(one, dict) for one in (given if name == "place" else ())):
            form = f"[[{name}]]" if name == "place" else f"[{name}]"
            raise BridgeError(f"{source}: {name!r} is not written as {form}.", expected=form, received=given)
        for table in given if isinstance(given, list) else [given]:
            for key, value in table.items():
                _check(_known(keys, key, f"{source}: [{name}]", "key"), f"{source}: {key}", value)
    mesh, batch = tables.get("mesh", {}), tables.get("batch", {})
    rules = tuple(_rule(table, source) for table in tables.get("place", []))
    at = tuple(tables.get("pipeline", {}).get("at", ()))
    axis = "pipeline" if mesh.get("pipeline", 1) > 1 else "model"
    placement = PlacementPlan(mesh.get(axis, 1), rules, _script_devices(tables), axis, at)
    if placement.is_pipeline and mesh.get("model", 1) > 1:
        raise NotSupportedError(
            f"{source}: a pipeline whose stages are divided over devices does not work yet.",
            expected="model = 1 or pipeline = 1",
            received=f"model = {mesh['model']}, pipeline = {placement.devices}",
            fix="Leave out one of them.",
        )
    (_check_pipeline if placement.is_pipeline or at else _check_devices)(placement, source)
    optimizer = tables.get("optimizer", {})
    is_sharded, gradients = optimizer.get("state") == "sharded", optimizer.get("gradients", "float32")
    _check_state(placement, is_sharded, gradients, source)
    workers, shares = tables.get("elastic", {}).get("workers"), tuple(batch.get("shares", ()))
    return checked(
        ParallelPlan(
            placement,
            batch.get("micro", sum(shares) or 1),
            batch.get("statistics") == "micro",
            mesh.get("data"),
            is_sharded,
            gradients,
            tuple(workers) if workers else None,
            shares,
        ),
        source,
    )


def checked(plan: ParallelPlan, source: str) -> ParallelPlan:
    """Returns a plan whose parts do not contradict each other.

    Args:
        plan: Plan.
        source: Words for its origin.

    Raises:
        BridgeError: The number of workers may not change as the plan says.
        NotSupportedError: Parts of the plan do not work together yet.
    """
    if not (plan.elastic or plan.shares):
        return plan
    what = "[elastic]" if plan.elastic else "shares"
    others = {
        "shares": plan.elastic is not None and bool(plan.shares),
        "data in [mesh]": plan.data is not None,
        f"a mesh with {plan.placement}": plan.placement.devices > 1,
    }
    for other, is_there in others.items():
        if is_there:
            raise NotSupportedError(
                f"{source}: {what} and {other} cannot be combined.", expected="one of them", fix=f"Leave out {other}."
            )
    if plan.shares and plan.micro != sum(plan.shares):
        raise BridgeError(
            f"{source}: the shares do not add up to micro.",
            expected=f"micro = {sum(plan.shares)}, or no micro",
            received=f"micro = {plan.micro}, shares = {list(plan.shares)}",
        )
    if plan.elastic and not plan.workers:
        least, most = plan.elastic
        raise BridgeError(
            f"{source}: no number of workers from {least} to {most} divides the batches of a step.",
            expected=f"micro as a multiple of {least}, e.g. {max(1, round(plan.micro / least)) * least}",
            received=f"micro = {plan.micro}",
        )
    if plan.sharded_state and plan.elastic and plan.workers[0] == 1:
        raise BridgeError(
            f"{source}: one worker keeps the whole state, so there is nothing to cut.",
            expected="[elastic] with workers from 2",
            fix='Write workers = [2, ...], or leave out state = "sharded".',
        )
    return plan


def _check_state(placement: PlacementPlan, is_sharded: bool, gradients: str, source: str) -> None:
    if is_sharded and placement.devices > 1:
        raise NotSupportedError(
            f"{source}: state that is cut between workers does not work yet with a mesh inside of each.",
            expected="[mesh] with data alone",
            received=f"{placement}",
            fix='Leave out state = "sharded", or the mesh.',
        )
    if gradients != "float32" and not is_sharded:
        raise NotSupportedError(
            f"{source}: gradients = {gradients!r} works only with state that is cut between workers.",
            expected='state = "sharded"',
            fix="Add that, or leave out gradients.",
        )


def _known(known: Mapping[str, Any], name: str, source: str, what: str) -> Any:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise BridgeError(
            f"{source}: a plan has no {what} {name!r} here.",
            expected=", ".join(known),
            received=name,
            fix=f"Did you mean {near[0]!r}?" if near else "Leave it out.",
        )
    return known[name]


def _check(key: _Key, name: str, value: Any) -> None:
    if not key.accepts(value):
        raise BridgeError(f"{name} has a value that it cannot have.", expected=key.expected, received=repr(value))
    if key.works is not None and value not in key.works:
        raise NotSupportedError(
            f"{name} = {value!r} does not work yet.",
            expected=" or ".join(map(repr, key.works)) or "a plan without it",
            received=repr(value),
            fix=key.instead,
        )


def _rule(table: Mapping[str, Any], source: str) -> PlaceRule:
    is_cut = table.get("shards", 1) > 1
    complete = {
        "match": "match" in table,
        "device": is_cut or "device" in table,
        "shards": is_cut or "axis" not in table,
    }
    missing = [key for key, is_there in complete.items() if not is_there]
    if missing:
        raise BridgeError(
            f"{source}: a [[place]] has no {missing[0]}.",
            expected="match, and device or shards of 2 or more; axis only with shards",
            received=", ".join(f"{key} = {value!r}" for key, value in table.items()),
        )
    if is_cut and table.get("device") == HOST:
        raise BridgeError(
            f"{source}: shards live on the devices of the mesh.", expected="shards without a device, or the first"
        )
    return PlaceRule(**table)


def _script_devices(tables: Mapping[str, Any]) -> bool:
    return bool(tables.get("script", {}).get("devices", False))


def _check_pipeline(placement: PlacementPlan, source: str) -> None:
    if placement.rules or placement.script_devices:
        raise BridgeError(
            f"{source}: [[place]] and [script] choose devices, and in a pipeline the stages do.",
            expected="[pipeline] with at, or nothing",
            fix="Leave out [[place]] and [script]; at = [...] in [pipeline] says where stages begin.",
        )
    if placement.at and len(placement.at) != placement.devices - 1:
        raise BridgeError(
            f"{source}: [pipeline] does not say where each stage but the first begins.",
            expected=f"{placement.devices - 1} names, for [mesh] has pipeline = {placement.devices}",
            received=f"at = {list(placement.at)}",
            fix=f"Set pipeline = {len(placement.at) + 1}, or correct at.",
        )


def _check_devices(placement: PlacementPlan, source: str) -> None:
    if placement.devices == 1 and (placement.rules or placement.script_devices):
        raise BridgeError(
            f"{source}: [[place]] and [script] choose between devices, and the mesh has one.",
            expected="[mesh] with model = 2 or more",
            fix="Add that, or leave them out.",
        )
    for rule in placement.rules:
        if isinstance(rule.device, int) and rule.device >= placement.devices:
            raise BridgeError(
                f"{source}: the rule for {rule.match!r} names a device that the mesh does not have.",
                expected=f'0 to {placement.devices - 1}, or "{HOST}"',
                received=rule.device,
                fix=f"Name one of these, or set model = {rule.device + 1}.",
            )
