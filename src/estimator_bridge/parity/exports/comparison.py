"""Compares what two SavedModels answer to the same requests."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.exports.requests import Rows, batches, read_requests
from estimator_bridge.parity.result import EXIT_CODES, Thresholds, Verdict
from estimator_bridge.parity.values import equal_arrays, max_abs_diff

_PLACE = re.compile(r"\s*(Graph execution error|Detected at node|<stack traces|File \"|\[\[|$)")
"""Lines of TensorFlow's errors that say where in the graph, which the reader of a report does not have."""


class Export(NamedTuple):
    """A SavedModel.

    Attributes:
        folder: Its folder.
        model: Object that TensorFlow loads from it.
    """

    folder: Path
    model: Any


@dataclasses.dataclass(frozen=True)
class OutputDiff:
    """One output of both models.

    Attributes:
        old: Name in the old model.
        new: Name in the new model.
        max_abs_diff: Largest absolute difference; None if the shapes differ. Infinity stands for strings that differ.
        rows_outside: Number of requests whose answers are not equal within the thresholds.
    """

    old: str
    new: str
    max_abs_diff: float | None
    rows_outside: int


@dataclasses.dataclass(frozen=True)
class ExportResult:
    """The result of a comparison of two SavedModels.

    Attributes:
        verdict: "equal" if each paired output is equal and each output has a partner; "not comparable" without a pair.
        requests: Number of requests.
        outputs: Paired outputs.
        unpaired: Outputs that only one model has, with the side's name.
    """

    verdict: Verdict
    requests: int
    outputs: tuple[OutputDiff, ...]
    unpaired: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """The exit code: 0 equal, 1 different, 2 not comparable."""
        return EXIT_CODES[self.verdict]

    def as_dict(self) -> dict[str, Any]:
        """Returns the content of ``--format json``."""
        return {"generator": "estimator-bridge"} | dataclasses.asdict(self) | {"exit_code": self.exit_code}


def compare_exports(
    old: Path,
    new: Path,
    requests: Path,
    *,
    signature: str = "serving_default",
    given: Mapping[str, str] | None = None,
    thresholds: Thresholds | None = None,
) -> ExportResult:
    """Sends the same requests to two SavedModels and compares the answers.

    Args:
        old: Folder of the old SavedModel, or a folder of exports, of which the newest is taken.
        new: Folder of the new one.
        requests: File of requests, see ``read_requests``.
        signature: Name of the signature in both.
        given: Output of the old model -> output of the new one, for outputs of other names.
        thresholds: Largest differences that count as equal.

    Raises:
        BridgeError: A model cannot be loaded or has no such signature, or the requests do not fit it.

    Example:
        >>> compare_exports(Path("export/1700000000"), Path("keras_export"), Path("requests.tfrecord"))  # doctest: +SKIP
        ExportResult(verdict='equal', requests=64, outputs=(...), unpaired=())
    """
    rows = read_requests(requests)
    return compare_answers(load_export(old), load_export(new), rows, signature=signature, given=given, thresholds=thresholds)


def compare_answers(
    old: Export,
    new: Export,
    rows: Rows,
    *,
    signature: str,
    given: Mapping[str, str] | None = None,
    thresholds: Thresholds | None = None,
) -> ExportResult:
    """Sends rows to two SavedModels and compares the answers; see ``compare_exports``.

    Raises:
        BridgeError: A model has no such signature, or the rows do not fit it.
    """
    with _full_float32():
        before, after = (_answers(export, signature, rows) for export in (old, new))
    pairs = _pairs(before, after, given or {})
    limits = thresholds or Thresholds()
    outputs = tuple(_difference(name, other, before[name], after[other], limits) for name, other in pairs.items())
    unpaired = tuple(f"old: {name}" for name in before.keys() - pairs.keys()) + tuple(
        f"new: {name}" for name in after.keys() - set(pairs.values())
    )
    outside = any(output.rows_outside for output in outputs)
    verdict: Verdict = "not comparable" if not outputs else "different" if outside or unpaired else "equal"
    return ExportResult(verdict, len(rows), outputs, tuple(sorted(unpaired)))


def export_folder(path: Path) -> Path | None:
    """Returns the folder of a SavedModel: the path itself, or its newest export; None if there is none."""
    exports = sorted((folder.parent for folder in path.glob("*/saved_model.pb*") if folder.parent.name.isdigit()), key=_number)
    return path if any(path.glob("saved_model.pb*")) else exports[-1] if exports else None


def _number(folder: Path) -> int:
    return int(folder.name)


def load_export(path: Path) -> Export:
    """Loads a SavedModel.

    Args:
        path: Its folder, or a folder of exports, of which the newest is taken.

    Raises:
        BridgeError: It cannot be loaded.
    """
    folder = export_folder(path)
    if folder is None:
        raise BridgeError("There is no SavedModel.", expected="a folder with a saved_model.pb, or with exports", received=path)
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")  # TensorFlow warns of each reference variable, which only its training would miss
    try:
        return Export(folder, tf.saved_model.load(str(folder)))
    except Exception as error:  # whatever TensorFlow raises at damaged files and operations that it does not have
        reason = str(error).splitlines()[0]
        raise BridgeError(
            "The SavedModel cannot be loaded.", received=f"{folder}: {reason}", fix="Export it again with this TensorFlow."
        ) from error
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _full_float32() -> Iterator[None]:
    """Multiplies float32 without TF32, which would make a difference in a model's last place one of 1e-5 in its answers on GPUs."""
    before = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        yield
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(before)


def _answers(export: Export, name: str, rows: Rows) -> dict[str, Any]:
    folder, model = export
    if name not in model.signatures:
        have = ", ".join(model.signatures) or "none"
        raise BridgeError(
            f"{folder} has no signature {name!r}.", expected=f"one of: {have}", received=name, fix="Name it with --signature."
        )
    found: dict[str, list[Any]] = {}
    for batch in batches(rows, model.signatures[name]):
        try:
            answer = model.signatures[name](**batch)
        except tf.errors.OpError as error:
            raise BridgeError(
                "A model does not answer a request.",
                received=f"{folder}: {' '.join(line.strip() for line in error.message.splitlines() if not _PLACE.match(line))}",
                fix="Correct the request, or leave it out.",
            ) from error
        for output, value in answer.items():
            found.setdefault(output, []).append(np.atleast_1d(value.numpy()))
    return {output: np.concatenate(values) for output, values in found.items()}


def _pairs(before: Mapping[str, Any], after: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    unknown = [name for name in given if name not in before] + [name for name in given.values() if name not in after]
    if unknown:
        known = f"old: {', '.join(before)}; new: {', '.join(after)}"
        raise BridgeError("A line of --map names no output.", expected=known, received=", ".join(unknown))
    pairs = dict(given) | {name: name for name in before if name in after and name not in given and name not in given.values()}
    if not pairs and len(before) == len(after) == 1:
        pairs = dict(zip(before, after, strict=True))
    return pairs


def _difference(old: str, new: str, before: Any, after: Any, thresholds: Thresholds) -> OutputDiff:
    if before.shape != after.shape:
        return OutputDiff(old, new, None, max(len(before), 1))
    rows = (slice(row, row + 1) for row in range(len(before)))
    outside = sum(not equal_arrays(before[row], after[row], thresholds) for row in rows)
    return OutputDiff(old, new, max_abs_diff(before, after) if before.size else 0.0, outside)


def render(result: ExportResult) -> str:
    """Returns the lines for a terminal: the verdict, and a row an output."""
    lines = [f"{result.verdict.upper()}. {result.requests} requests were sent to both models."]
    for output in result.outputs:
        name = output.old if output.old == output.new else f"{output.old} = {output.new}"
        largest = "another shape" if output.max_abs_diff is None else f"max abs_diff {output.max_abs_diff:.3g}"
        lines.append(f"  {name}: {largest}, {output.rows_outside} of {result.requests} requests outside")
    if result.unpaired:
        lines += [f"No counterpart: {', '.join(result.unpaired)}.", "Pair outputs of other names with --map FILE: OLD = NEW."]
    return "\n".join(lines) + "\n"
