"""Reads the evidence of both sides from their traces."""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel, read_object_model
from estimator_bridge.parity.evidence import DropoutSite, Evidence, OptimizerEvidence, SideEvidence, StepEvidence
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.plan import FIRST_STEPS
from estimator_bridge.parity.values import read_value


class NewNames:
    """The names of the new script's variables in the words of the old script's checkpoint.

    Args:
        new: Trace of the new side.
    """

    def __init__(self, new: Trace) -> None:
        self.paired: dict[str, Any] = deque(new.events("paired"), 1).pop() if any(new.events("paired")) else {}
        self.by_key = {
            target: source
            for source, target, _ in [*self.paired.get("matches", []), *self.paired.get("slots", [])]
            if source and target
        }
        self.zeros = {target for source, target, _ in self.paired.get("slots", []) if not source}  # slots that only Keras has
        prefix = Path(f"{checkpoint(new, 'at', 0)}.index")
        self.model: ObjectModel | None = read_object_model(read_index(checkpoint(new, "at", 0))) if prefix.exists() else None
        variables = self.model.variables if self.model else ()
        self.keys = {variable.name: variable.key for variable in variables}
        self.shapes = {self.of_key(new.key): new.entry.shape for new in (self.model.variables if self.model else ())}
        self.slots = {slot.stored.key for slot in self.model.slots} if self.model else set()

    def of_key(self, key: str) -> str:
        """Returns the old name of a key, else the key."""
        return self.by_key.get(key, key)

    def of_variable(self, name: str) -> str:
        """Returns the old name of a variable, else its key or name."""
        return self.of_key(self.keys.get(name, name))

    def compared(self) -> list[str]:
        """Returns the keys of variables and slots that have a value of the old script."""
        if not self.model:
            return []
        unmatched = self.zeros.union(self.paired.get("unmatched_new", ()))
        keys = [variable.key for variable in self.model.variables] + sorted(self.slots)
        return [key for key in keys if key not in unmatched]


def checkpoint(new: Trace, kind: str, index: int) -> str:
    """Returns the prefix of the new side's values ``at`` a step, or of those that it got at an ``anchor``."""
    return str(new.folder / "values" / f"{kind}-{index}")


def values_at(new: Trace, names: NewNames, kind: str, index: int) -> dict[str, Any]:
    """Returns values of the new side by the names of the evidence; empty if they do not exist."""
    prefix = checkpoint(new, kind, index)
    if not Path(f"{prefix}.index").exists():
        return {}
    found = read_index(prefix)
    return {names.of_key(key): read_value(found, key) for key in names.compared() if key in found.entries}


def gather(old: Trace, new: Trace) -> Evidence:
    """Reads the evidence of both sides.

    Args:
        old: Trace of the old side.
        new: Trace of the new side.
    """
    names = NewNames(new)
    variables: dict[str, Any] = next(old.events("variables"), {"variables": []})
    paired = names.paired
    anchored = tuple(
        event["index"] for event in old.events("anchor") if Path(f"{checkpoint(new, 'anchor', event['index'])}.index").exists()
    )
    evaluations = list(old.events("evaluation"))
    old_side = SideEvidence(
        steps=_steps(old, new, names, "anchor"),
        trainable=tuple(name for name, _, trainable in variables["variables"] if trainable),
        moving_averages=_moving(names, variables["variables"]),
        dropout=_sites(old),
        batch_shapes=_shapes(old),
        steps_per_epoch=tuple(
            sum(step["call"] == event["call"] for step in old.events("step")) for event in old.events("train")
        ),
        evaluation_losses=tuple(tuple(event["losses"]) for event in evaluations),
        evaluation_rows=tuple(tuple(event["rows"]) for event in evaluations),
    )
    new_side = SideEvidence(
        steps=_steps(new, new, names, "at"),
        trainable=tuple(names.of_variable(name.partition(":")[0]) for name in paired.get("trainable", ())),
        moving_averages=old_side.moving_averages,
        dropout=_sites(new),
        batch_shapes=_shapes(new),
        steps_per_epoch=tuple(event["steps"] for event in new.events("epoch")),
        iterations=tuple(event["iterations"][0] for event in new.events("step") if event["iterations"]),
    )
    return Evidence(
        old_side, new_side, tuple(paired.get("unmatched_old", ())), tuple(paired.get("unmatched_new", ())), anchored
    )


def _steps(side: Trace, new: Trace, names: NewNames, kind: str) -> tuple[StepEvidence, ...]:
    rates = {event["index"]: event["optimizers"] for event in side.events("optimizers")}
    found = []
    for index, event in enumerate(list(side.events("step"))[:FIRST_STEPS], 1):
        optimizers = tuple(
            OptimizerEvidence(one["name"], one["family"], one["hyperparameters"], one.get("iterations"))
            for one in rates.get(index, ())
        )
        gradients = functools.partial(_gradients, side, names, index)
        before = functools.partial(values_at, new, names, "anchor", index - 1)
        after = functools.partial(values_at, new, names, kind, index)
        found.append(StepEvidence(index, event["loss"], gradients, before, after, optimizers))
    return tuple(found)


def _gradients(side: Trace, names: NewNames, index: int) -> Mapping[str, Any]:
    path = side.folder / "values" / f"gradients-{index}.npz"
    if not path.exists():
        return {}
    with np.load(path) as saved:
        found = {name.replace("|", "/"): saved[name] for name in saved.files}
    found = {names.of_variable(name): value for name, value in found.items()}
    shapes = {name: names.shapes.get(name, ()) for name in found}
    return {
        name: value.reshape(shapes[name]) if value.size == math.prod(shapes[name]) else value for name, value in found.items()
    }


def _moving(names: NewNames, variables: list[Any]) -> tuple[str, ...]:
    trained = {name for name, _, trainable in variables if trainable}
    return tuple(source for source, target, _ in names.paired.get("matches", ()) if source not in trained)


def _sites(side: Trace) -> tuple[DropoutSite, ...]:
    event: dict[str, Any] = next(side.events("dropout"), {"sites": []})
    return tuple(DropoutSite(tuple(shape or ()), rate) for shape, rate in event["sites"])


def _shapes(side: Trace) -> dict[str, tuple[int, ...]]:
    event: dict[str, Any] = next(side.events("shapes"), {"shapes": {}})
    return {path: tuple(shape) for path, shape in event["shapes"].items()}
