"""The exports of both sides on requests made of a recorded batch: equal variables in another graph answer otherwise."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.exports.comparison import Export, compare_answers, load_export
from estimator_bridge.parity.exports.requests import Rows
from estimator_bridge.parity.recording.batches import read_batches
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import ParityFinding, Thresholds

_ROWS = 64
_SERVED = "serve "  # tag before the names of the signatures that are for requests


def loaded(folder: Path) -> Export:
    """Loads an export, once as long as it stays the same: a comparison loads the recorded one while the other side trains.

    Raises:
        BridgeError: It cannot be loaded.
    """
    return _loaded(folder, tuple(file.stat().st_mtime_ns for file in folder.glob("saved_model.pb*")))


@functools.lru_cache(maxsize=8)
def _loaded(folder: Path, written: tuple[int, ...]) -> Export:
    return load_export(folder)


def answer_findings(
    old: dict[str, Any], new: dict[str, Any], recorded: Trace, thresholds: Thresholds
) -> Iterator[ParityFinding | str]:
    """Yields a finding for each signature whose answers differ, and a note for each that was not compared.

    Args:
        old, new: Events of the same export on both sides.
        recorded: Trace of the side that recorded the batches.
        thresholds: Largest differences that count as equal.
    """
    call, rows = old["call"], recorded_requests(recorded)
    if not rows:
        yield f"{call}: its answers were not compared. No recorded batch has features with names, from which requests are made."
        return
    try:
        exports = [loaded(Path(event["folder"])) for event in (old, new)]
    except BridgeError as error:
        yield f"{call}: its answers were not compared. {_said(error)}"
        return
    for signature in sorted(old["signatures"].keys() & new["signatures"].keys()):
        yield from _of_signature(call, exports, rows, signature.removeprefix(_SERVED), thresholds)


def _said(error: BridgeError | ValueError) -> str:
    return " ".join(map(str, filter(None, (error.what, error.received)))) if isinstance(error, BridgeError) else str(error)


def _of_signature(
    call: str, exports: Sequence[Export], rows: Rows, name: str, thresholds: Thresholds
) -> Iterator[ParityFinding | str]:
    ask = functools.partial(compare_answers, rows=_fitting(rows, exports[0], name), signature=name, thresholds=thresholds)
    try:
        result = ask(*exports)
        again = ask(exports[0], exports[0]).outputs if any(output.rows_outside for output in result.outputs) else ()
    except (BridgeError, ValueError) as error:  # e.g. answers of several batches that have no common shape
        yield f"{call}: the answers of the signature {name!r} were not compared. {_said(error)}"
        return
    drawn = {output.old for output in again if output.rows_outside}
    if drawn:
        yield f"{call}: the answers {', '.join(sorted(drawn))} of the signature {name!r} were not compared, for they vary from run to run."
    if result.unpaired:
        alone = ", ".join(result.unpaired)
        yield f"{call}: answers of the signature {name!r} without a counterpart were not compared: {alone}."
    for output in result.outputs:
        if output.rows_outside and output.old not in drawn:
            largest = "another shape" if output.max_abs_diff is None else f"max abs_diff {output.max_abs_diff:.3g}"
            what = f"{call}: the answers {output.old!r} of the signature {name!r} differ"
            yield ParityFinding("export", f"{what} ({largest}, {output.rows_outside} of {result.requests} rows).")


def _fitting(rows: Rows, export: Export, name: str) -> Rows:
    """Returns rows of a feature without a name under the name of a signature's only input."""
    signature = export.model.signatures.get(name)
    inputs = list(signature.structured_input_signature[1]) if signature else []
    return [{inputs[0]: row[""]} for row in rows] if len(inputs) == 1 and rows[0].keys() == {""} else rows


def recorded_requests(recorded: Trace) -> Rows:
    """Returns the rows of the first recorded batch as requests; none without a batch whose features have names.

    Args:
        recorded: Trace of the side that recorded the batches.
    """
    for event in recorded.events("features"):
        for values in read_batches(recorded.batches(event["call"])):
            return _rows(dict(zip(event["names"], values, strict=False)))
    return []


def _rows(tensors: dict[str, Any]) -> Rows:
    """Returns one mapping a row, from a feature's name to its value; that of a sparse feature is a vector."""
    dense = {name: value for name, value in tensors.items() if "#" not in name and value.ndim}
    parts = {name.removesuffix("#0"): value for name, value in tensors.items() if name.endswith("#0") and value.ndim == 2}
    sparse = {name: value for name, value in parts.items() if {f"{name}#1", f"{name}#2"} <= tensors.keys()}
    sizes = {len(value) for value in dense.values()} | {int(tensors[f"{name}#2"][0]) for name in sparse}
    if len(sizes) != 1:
        return []
    rows: Rows = [{name: value[row] for name, value in dense.items()} for row in range(min(_ROWS, *sizes))]
    for name, indices in sparse.items():
        for number, row in enumerate(rows):
            row[name] = np.asarray(tensors[f"{name}#1"])[indices[:, 0] == number]
    return rows
