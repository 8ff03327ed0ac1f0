"""Reads the evidence of both sides from their traces."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel, read_object_model
from estimator_bridge.parity.evidence import (
    BatchEvidence,
    DropoutSite,
    Evidence,
    ForwardValue,
    GraphFacts,
    OptimizerEvidence,
    SideEvidence,
    StepEvidence,
)
from estimator_bridge.parity.recording.trace import FORWARD_FILE, Trace
from estimator_bridge.parity.rewrite.input_findings import any_shuffles, other_evaluations, other_values
from estimator_bridge.parity.rewrite.plan import FIRST_STEPS
from estimator_bridge.parity.values import read_value


class NewNames:
    """The names of the new script's variables in the words of the old script's checkpoint.

    Args:
        new: Trace of the new side.
    """

    def __init__(self, new: Trace) -> None:
        self.paired: dict[str, Any] = _last(new, "paired") or {}
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


def gather(old: Trace, new: Trace, looked: Trace | None = None) -> Evidence:
    """Reads the evidence of both sides.

    Args:
        old: Trace of the old side.
        new: Trace of the new side.
        looked: Trace of the new side's first step, with what its forward pass computes.
    """
    names = NewNames(new)
    paired = names.paired
    anchored = tuple(
        event["index"] for event in old.events("anchor") if Path(f"{checkpoint(new, 'anchor', event['index'])}.index").exists()
    )
    facts: dict[str, Any] = next(old.events("facts"), {})
    start = next(old.events("step"), {"step": 1})["step"] - 1
    here, there = _old_side(old, new, names, facts), _new_side(old, new, names)
    if looked:
        here, there = (
            dataclasses.replace(side, forward=read_forward(trace.folder / "values"))
            for side, trace in ((here, old), (there, looked))
        )
    return Evidence(
        here,
        there,
        tuple(paired.get("unmatched_old", ())),
        tuple(paired.get("unmatched_new", ())),
        anchored,
        start=start,
        shapes=_unpaired_shapes(old, new, names),
        slots=frozenset(map(names.of_key, names.slots)),
        lost=tuple((event["step"], tuple(event["variables"])) for event in new.events("lost")),
        estimator=next(old.events("train"), {}).get("estimator", ""),
        batches=tuple(BatchEvidence(tuple(event["rows"]), tuple(event["digests"])) for event in new.events("own batch")),
        other_values=other_values(new),
        shared_rows=next((event["shared"] for event in new.events("inputs")), 0),
        evaluation_rows=other_evaluations(new),
        drops_in_evaluation=here.evaluation_dropout == 0 and any(event.get("surely") for event in new.events("evaluation")),
        kept_metrics=tuple(dict.fromkeys(name for event in new.events("kept metrics") for name in event["names"])),
        evaluation_batches=tuple(tuple(event["batches"]) for event in new.events("evaluated") if "batches" in event),
    )


def _unpaired_shapes(old: Trace, new: Trace, names: NewNames) -> dict[str, tuple[int, ...]]:
    shapes = {name: tuple(shape) for event in old.events("variables") for name, shape, _ in event["variables"]}
    if names.model:
        shapes |= {key: entry.shape for key, entry in read_index(checkpoint(new, "at", 0)).entries.items()}
    unpaired = [*names.paired.get("unmatched_old", ()), *names.paired.get("unmatched_new", ())]
    return {name: shapes[name] for name in unpaired if name in shapes}


def minimizes_another_loss(old: Trace, new: Trace) -> bool:
    """Returns True if the old script reports another loss than it minimizes, and the new one's first loss is nearer to the latter."""
    first = next(old.events("minimized"), None)
    if first is None:
        return False
    reported, other = (next(itertools.islice(side.events("step"), first["index"] - 1, None), None) for side in (old, new))
    if reported is None or other is None:
        return False
    return bool(abs(first["loss"] - other["loss"]) < abs(reported["loss"] - other["loss"]))


def old_losses(old: Trace, new: Trace) -> Iterator[float]:
    """Yields the old side's loss of each step that has a counterpart in the new side's: the one that it reports, or the one that it minimizes."""
    others = old.events("minimized") if minimizes_another_loss(old, new) else iter(())
    following = next(others, None)
    for index, event in enumerate(old.events("step"), 1):
        if following is not None and following["index"] == index:
            yield following["loss"]
            following = next(others, None)
        else:
            yield event["loss"]


def _old_side(old: Trace, new: Trace, names: NewNames, facts: dict[str, Any]) -> SideEvidence:
    variables: dict[str, Any] = next(old.events("variables"), {"variables": []})
    evaluations = list(old.events("evaluation"))
    losses = array("d", old_losses(old, new))  # of a million steps, their events would take a gigabyte
    lengths = Counter(step["call"] for step in old.events("step"))
    return SideEvidence(
        steps=_steps(old, new, names, losses, "anchor"),
        trainable=tuple(name for name, _, trainable in variables["variables"] if trainable),
        moving_averages=_moving(names, variables["variables"]),
        dropout=_sites(old),
        batch_shapes=_shapes(old),
        steps_per_epoch=tuple(lengths[event["call"]] for event in old.events("train")),
        evaluation_losses=tuple(tuple(event["losses"]) for event in evaluations),
        evaluation_rows=tuple(tuple(event["rows"]) for event in evaluations),
        losses=losses,
        learning_rates=_rates(old, len(losses)),
        initial=functools.partial(values_at, new, names, "anchor", 0),
        given=frozenset(variables.get("given", ())),
        set=frozenset(name for event in old.events("set") for name in event["variables"]),
        graph=_graph(old),
        changes_gradients=facts.get("changes_gradients"),
        evaluation_dropout=max((event["dropout"] for event in evaluations), default=None),
        collected_only=facts.get("collected_only", 0),
        shuffles=any_shuffles(*(event.get("shuffles") for event in old.events("facts"))) if facts else None,
    )


def _new_side(old: Trace, new: Trace, names: NewNames) -> SideEvidence:
    variables: dict[str, Any] = next(old.events("variables"), {"variables": []})
    losses = array("d", (event["loss"] for event in new.events("step")))
    applied = [event for event in new.events("applied") if event["known"]]
    return SideEvidence(
        steps=_steps(new, new, names, losses, "at"),
        trainable=tuple(names.of_variable(name) for name in names.paired.get("trainable", ())),
        moving_averages=_moving(names, variables["variables"]),
        dropout=_sites(new),
        batch_shapes=_shapes(new),
        steps_per_epoch=tuple(event["steps"] for event in new.events("epoch")),
        iterations=tuple(event["iterations"][0] for event in new.events("step") if event["iterations"]),
        losses=losses,
        learning_rates=_rates(new, len(losses)),
        initial=functools.partial(values_at, new, names, "at", 0),
        graph=_graph(new),
        changes_gradients=any(event["changed"] for event in applied) if applied else None,
        evaluation_dropout=max((event["dropout"] for event in new.events("evaluation")), default=None),
        shuffles=any_shuffles(*(event["shuffles"] for event in new.events("input"))),
        fit_shuffles=any(event.get("by_fit") for event in new.events("input")),
    )


def _steps(side: Trace, new: Trace, names: NewNames, losses: Sequence[float], kind: str) -> tuple[StepEvidence, ...]:
    rates = {event["index"]: event["optimizers"] for event in side.events("optimizers")}
    named = names.of_variable if side is new else str  # the old side's names may be those of other variables of the new one
    found = []
    for index, loss in enumerate(losses[:FIRST_STEPS], 1):
        optimizers = tuple(
            OptimizerEvidence(
                one["name"],
                one["family"],
                one["hyperparameters"],
                one.get("iterations"),
                tuple(map(named, one.get("variables", ()))),
            )
            for one in rates.get(index, ())
        )
        gradients, applied = (
            functools.partial(_gradients, side, named, names.shapes, what, index) for what in ("gradients", "applied")
        )
        before = functools.partial(values_at, new, names, "anchor", index - 1)
        after = functools.partial(values_at, new, names, kind, index)
        found.append(StepEvidence(index, loss, gradients, before, after, optimizers, applied))
    return tuple(found)


def _gradients(
    side: Trace, named: Callable[[str], str], shapes: Mapping[str, tuple[int, ...]], what: str, index: int
) -> Mapping[str, Any]:
    path = side.folder / "values" / f"{what}-{index}.npz"
    if not path.exists():
        return {}
    with np.load(path) as saved:
        found = {named(name.replace("|", "/")): saved[name] for name in saved.files}
    wanted = {name: shapes.get(name, ()) for name in found}
    return {
        name: value.reshape(wanted[name]) if value.size == math.prod(wanted[name]) else value for name, value in found.items()
    }


def _moving(names: NewNames, variables: list[Any]) -> tuple[str, ...]:
    others = {name for name, _, trainable in variables if not trainable}
    return tuple(source for source, target, _ in names.paired.get("matches", ()) if source in others)


def _last(side: Trace, kind: str) -> dict[str, Any] | None:
    """Returns the last event of a kind: the first tracing of a tf.function builds layers, with operations that no step runs."""
    found = deque(side.events(kind), 1)
    return found.pop() if found else None


def _sites(side: Trace) -> tuple[DropoutSite, ...] | None:
    event = _last(side, "dropout")
    return None if event is None else tuple(DropoutSite(tuple(shape or ()), rate) for shape, rate, *_ in event["sites"])


def _shapes(side: Trace) -> dict[str, tuple[int, ...]]:
    event: dict[str, Any] = next(side.events("shapes"), {"shapes": {}})
    return {path: tuple(shape) for path, shape in event["shapes"].items()}


def _graph(side: Trace) -> GraphFacts | None:
    event = _last(side, "graph")
    if event is None:
        return None
    return GraphFacts(tuple(event["broadcasts"]), tuple(map(tuple, event["flattened"])), tuple(event["epsilons"]))


def read_forward(folder: Path) -> tuple[ForwardValue, ...]:
    """Reads the values of a forward pass; none if they were not looked at.

    Args:
        folder: Folder of a side's values.
    """
    path = folder / FORWARD_FILE
    if not path.exists():
        return ()
    tuples = ("inputs", "numbers", "shape")
    fields = json.loads(path.read_text(encoding="utf-8"))
    return tuple(
        ForwardValue(**{**one, **{name: None if one[name] is None else tuple(one[name]) for name in tuples}}) for one in fields
    )


def _rates(side: Trace, steps: int) -> tuple[tuple[float, ...], ...]:
    """Returns the learning rates of each step; the trace has those that differ from the step before."""
    changes = {event["index"]: event["rates"] for event in side.events("rates")}
    rates: list[tuple[float, ...]] = []
    for index in range(1, steps + 1):
        if index in changes:
            rates.append(tuple(np.nan if rate is None else rate for rate in changes[index]))
        elif rates:
            rates.append(rates[-1])
    return tuple(rates)
