"""``convert``: one call from a checkpoint to another."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from estimator_bridge.compat.checkpoint import partitions, values
from estimator_bridge.compat.checkpoint.draft import Draft
from estimator_bridge.compat.checkpoint.errors import NamingError, UnsupportedError
from estimator_bridge.compat.checkpoint.index import Index
from estimator_bridge.compat.checkpoint.naming import OBJECT_GRAPH, Slot, slot_of
from estimator_bridge.compat.checkpoint.object_graph import read_object_model
from estimator_bridge.compat.checkpoint.opening import opened
from estimator_bridge.compat.checkpoint.publish import Options, publish
from estimator_bridge.compat.checkpoint.report import ConversionReport
from estimator_bridge.compat.checkpoint.to_names import ToNames
from estimator_bridge.compat.checkpoint.to_objects import ToObjects

Kind = Literal["bilingual", "name-based", "object-based"]
KINDS: tuple[Kind, ...] = ("bilingual", "name-based", "object-based")


def convert(
    source: str | Path,
    target: str | Path,
    *,
    to: Kind = "bilingual",
    like: str | Path | None = None,
    rename: Sequence[tuple[str, str]] = (),
    drop: Sequence[str] = (),
    partition: Sequence[tuple[str, int]] = (),
    use_averages: bool = False,
    given: Mapping[str, str] | None = None,
    accept_order: bool = False,
    allow_unmatched: bool = False,
    learning_rate: float | None = None,
    optimizer: str | None = None,
    copy: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
) -> ConversionReport:
    """Converts a checkpoint; the source is only read, and the target is there whole or not at all.

    Args:
        source: what ``read_index`` takes, or a V1 checkpoint.
        target: prefix of the new checkpoint.
        to: what it is to be; "bilingual" is both at once, over the same data files.
        like: a checkpoint of the other side: one whose object graph to write, or one of the old graph whose names to write.
        rename: regular expressions and replacements, applied to TF1's names one after the other.
        drop: regular expressions of names to leave out.
        partition: regular expressions of variables and the number of their slices, 1 for whole; their slots follow.
        use_averages: give each variable the value of its ExponentialMovingAverage, as for serving.
        given: pairs of variables, source -> target, that matching need not find.
        accept_order: pair what is left of one shape in order.
        allow_unmatched: write although some variables have no counterpart.
        learning_rate: for Momentum, whose Keras slot contains it; that of the object graph's optimizer by default.
        optimizer: TF1's name of it, where the slots of an object-based checkpoint do not tell.
        copy: copy data files instead of linking them.
        overwrite: replace a checkpoint that is there.
        dry_run: write nothing.

    Returns:
        What was done; ``written`` is False when something is unmatched or ambiguous.

    Raises:
        CheckpointError: when the source is damaged, the target cannot be written, or the request contradicts itself.

    Example:
        >>> import tempfile
        >>> from estimator_bridge.compat.checkpoint.writing import write_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     old = write_tensors(f"{folder}/old/model.ckpt-7", {"scope/w": [1.0, 2.0], "global_step": 7})
        ...     report = convert(old, f"{folder}/new/model.ckpt-7", to="name-based", rename=[("^scope/", "tower/")])
        >>> report.renamed, report.written
        (1, True)
    """
    report = ConversionReport(str(source), str(target), to, allowed=allow_unmatched)
    with contextlib.ExitStack() as stack:
        index = stack.enter_context(opened(source))
        other = stack.enter_context(opened(like)) if like is not None else None
        for checkpoint in (index, other) if other else (index,):
            values.check_shards(checkpoint)
        draft = Draft(index)
        _drop(draft, drop)
        if use_averages:
            _use_averages(draft)
        if OBJECT_GRAPH in index.entries and to == "name-based":
            _to_names(draft, index, other, report, given or {}, accept_order, optimizer, learning_rate)
            report.renamed = _rename(draft, rename)
        else:
            report.renamed = _rename(draft, rename)
            if to != "name-based":
                ToObjects(draft, read_object_model(_needed(other)), report, learning_rate).run(given or {}, accept_order)
        if to == "object-based":
            _keep(draft, lambda name: ".ATTRIBUTES/" in name or name == OBJECT_GRAPH)
        for pattern, num_shards in partition:
            _partition(draft, pattern, num_shards)
        if report.complete and not dry_run:
            done = publish(draft, Path(target), Options(copy, overwrite))
            report.written, report.unchanged, report.sharing = True, done.unchanged, done.sharing
    return report


def _to_names(
    draft: Draft,
    index: Index,
    like: Index | None,
    report: ConversionReport,
    given: Mapping[str, str],
    accept_order: bool,
    optimizer: str | None,
    learning_rate: float | None,
) -> None:
    """Of a bilingual checkpoint TF1's names are there already, of an object-based one they are made."""
    if all(".ATTRIBUTES/" in name or name == OBJECT_GRAPH for name in index.entries):
        ToNames(draft, read_object_model(index), report, like, optimizer, learning_rate).run(given, accept_order)
    _keep(draft, lambda name: ".ATTRIBUTES/" not in name and name != OBJECT_GRAPH)


def _needed(like: Index | None) -> Index:
    if like is None:
        raise UnsupportedError(
            "The object graph to write is not known.",
            expected="a checkpoint or SavedModel that the Keras side wrote",
            fix="Name it with --like.",
        )
    return like


def _rename(draft: Draft, rules: Sequence[tuple[str, str]]) -> int:
    if not rules:
        return 0
    patterns = [(_compiled(pattern), replacement) for pattern, replacement in rules]

    def renamed(name: str) -> str:
        if ".ATTRIBUTES/" in name or name == OBJECT_GRAPH:
            return name
        for pattern, replacement in patterns:
            name = pattern.sub(replacement, name)
        return name

    try:
        return draft.rename(renamed)
    except (re.error, IndexError) as error:
        raise NamingError("A replacement cannot be used.", received=f"{rules}: {error}") from None


def _drop(draft: Draft, patterns: Iterable[str]) -> None:
    for pattern in patterns:
        expression = _compiled(pattern)
        names = [name for name in draft.entries if expression.search(name)]
        if not names:
            raise NamingError("No variable has such a name.", received=pattern)
        draft.drop(names)


def _use_averages(draft: Draft) -> None:
    """The shadow takes its variable's name; the variable's own value is left out."""
    shadows = {name: slot.variable for name in draft.entries if (slot := slot_of(name, draft.entries)) and _is_average(slot)}
    if not shadows:
        raise NamingError("The checkpoint has no moving averages.", expected="variables named .../ExponentialMovingAverage")
    draft.drop(shadows.values())
    draft.rename(lambda name: shadows.get(name, name))


def _is_average(slot: Slot) -> bool:
    return slot.optimizer == "ExponentialMovingAverage"


def _keep(draft: Draft, wanted: Callable[[str], bool]) -> None:
    draft.drop([name for name in draft.entries if not wanted(name)])


def _partition(draft: Draft, pattern: str, num_shards: int) -> None:
    """Variables of that name, and their slots, which are cut like them."""
    expression = _compiled(pattern)
    variables = [name for name in draft.entries if expression.fullmatch(name)]
    if not variables:
        raise NamingError("No variable has such a name.", received=pattern)
    for variable in variables:
        shape = draft.entries[variable].shape
        followers = [n for n, e in draft.entries.items() if n.startswith(f"{variable}/") and e.shape == shape]
        for name in {variable, *followers}:
            partitions.split(draft, name, num_shards)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise NamingError("This is no regular expression.", received=f"{pattern}: {error}") from None
