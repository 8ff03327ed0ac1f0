"""Plans as they are written: ``plan.toml``, or ``--mesh model=2`` and the like for short."""

from __future__ import annotations

import difflib
import importlib
import math
import re
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.parallel.plans.plan import HOST, ParallelPlan, PlacementPlan, PlaceRule


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
        "min_bytes": _Key(_is_count, _COUNT),
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
    try:
        tables = _toml().loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BridgeError(
            "The plan cannot be read.", received=f"{path}: {error.strerror}", fix="Name an existing file."
        ) from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError and UnicodeDecodeError are the first
        raise BridgeError(
            f"{path}: this is not TOML.", expected="a plan as TOML", received=error, fix="Correct that line."
        ) from None
    return _of_tables(tables, str(path))


def names_tables(path: Path) -> bool:
    """Returns True for TOML with a table that plans have, as far as that can be read."""
    try:
        tables = _toml().loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return not tables.keys().isdisjoint(_FORM)


def _toml() -> Any:
    return importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


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
    placement = PlacementPlan(mesh.get("model", 1), rules, _script_devices(tables), mesh.get("pipeline", 1), at)
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
    least, most = plan.elastic or (1, 1)
    if plan.elastic and len(plan.workers) < min(2, most - least + 1):
        raise BridgeError(
            f"{source}: {len(plan.workers) or 'no'} number of workers from {least} to {most} divides the batches of a step.",
            expected=f"micro as a multiple of several of them, e.g. {math.lcm(least, most)}",
            received=f"micro = {plan.micro}: a step takes {plan.micro} of the input_fn's batches",
            fix=f"Set micro, on the command line --micro {math.lcm(least, most)}.",
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
        "shards": is_cut or not {"axis", "min_bytes"} & table.keys(),
    }
    missing = [key for key, is_there in complete.items() if not is_there]
    if missing:
        raise BridgeError(
            f"{source}: a [[place]] has no {missing[0]}.",
            expected="match, and device or shards of 2 or more; axis and min_bytes only with shards",
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
    if placement.at and len(placement.at) != placement.stages - 1:
        raise BridgeError(
            f"{source}: [pipeline] does not say where each stage but the first begins.",
            expected=f"{placement.stages - 1} names, for [mesh] has pipeline = {placement.stages}",
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
