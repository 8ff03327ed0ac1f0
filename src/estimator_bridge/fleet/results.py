"""The outcome of each pipeline's last comparison, its stage, and the history of all stages."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime
import enum
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_bridge import __version__
from estimator_bridge.errors import BridgeError
from estimator_bridge.fleet.plan import Pipeline
from estimator_bridge.parity.report.write import write_page

_MARK = {"generator": "estimator-bridge"}
_HISTORY = "history.json"


class Stage(enum.Enum):
    """Stage of a pipeline, from the first to the last."""

    HUMAN = "needs a human"
    CHECKED = "checked"
    RUNS = "runs"
    MODERN = "modern"
    EQUAL = "equal"
    KERAS = "Keras"
    DONE = "done"


@dataclasses.dataclass(frozen=True)
class Result:
    """The outcome of a pipeline's last comparison.

    Attributes:
        key: Digest of everything that the comparison depended on, as far as that is known.
        code: Exit code of ``compare``.
        verdict: Verdict in words.
        message: First finding, or the reason why there is no comparison.
        findings: Levels of all findings.
        seconds: Duration.
        tries: Number of tries that were needed.
        date: Time of its end in UTC, ISO 8601.
        recorded: Bytes of what both sides recorded.
    """

    key: str
    code: int
    verdict: str
    message: str = ""
    findings: tuple[str, ...] = ()
    seconds: float = 0.0
    tries: int = 1
    date: str = ""
    recorded: int = 0


def key_of(pipeline: Pipeline) -> str:
    """Returns a digest of a pipeline's row, the text of its scripts, sizes and times of its data, and our version.

    A change of other modules is not noticed.

    Args:
        pipeline: Pipeline.

    Raises:
        BridgeError: A folder of the data must not be entered.
    """
    row = dataclasses.asdict(dataclasses.replace(pipeline, waivers=(), owner="", signed_off="", retries=0, folder=Path()))
    digest = hashlib.sha256(json.dumps([__version__, row], default=str).encode())
    for script in (pipeline.file, Path(pipeline.rewrite)):
        with contextlib.suppress(OSError):
            digest.update((pipeline.folder / script).read_bytes())
    for data in pipeline.data:
        place = pipeline.folder / data
        try:
            for file, found in _files(place):
                digest.update(f"{file.relative_to(place)} {found.st_size} {found.st_mtime_ns}\n".encode())
        except PermissionError as error:
            raise BridgeError(
                "The data of a pipeline cannot be looked at.",
                expected="folders that may be listed and entered",
                received=f"{pipeline.name}: {error.filename}: {error.strerror}",
                fix="Change the permissions of the folder, or take it out of the pipeline's data.",
            ) from None
    return digest.hexdigest()


def _files(place: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yields a file, or those below a folder, with their sizes and times; links to nothing are skipped.

    Raises:
        PermissionError: A folder may be listed, but not entered.
    """
    for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
        try:
            found = file.stat()
        except PermissionError:
            raise
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            yield file, found


def folder_of(out: Path, pipeline: Pipeline) -> Path:
    """Returns the folder of a pipeline's report."""
    return out / pipeline.name


def write_result(out: Path, pipeline: Pipeline, result: Result) -> None:
    """Writes a result: whole, or not at all.

    Args:
        out: Folder of the fleet's results.
        pipeline: Pipeline.
        result: Its result.

    Raises:
        BridgeError: The file cannot be written.
    """
    write_page(folder_of(out, pipeline) / "result.json", json.dumps(_MARK | dataclasses.asdict(result), indent=1) + "\n")


def read_results(out: Path, pipelines: Sequence[Pipeline]) -> dict[str, Result]:
    """Returns the results that are there, by the pipelines' names.

    Args:
        out: Folder of the fleet's results.
        pipelines: Pipelines.

    Raises:
        BridgeError: A file of results is damaged.
    """
    found = {}
    for pipeline in pipelines:
        path = folder_of(out, pipeline) / "result.json"
        values = _read(path)
        if values is not None:
            try:
                known = {field.name: values[field.name] for field in dataclasses.fields(Result)}
                found[pipeline.name] = Result(**(known | {"findings": tuple(known["findings"])}))
            except (KeyError, TypeError):
                raise _damaged(path, "keys are missing") from None
    return found


def judge(pipeline: Pipeline, result: Result | None, needs_human: bool, today: datetime.date) -> tuple[Stage, str]:
    """Returns the stage of a pipeline, and a note on waivers.

    Args:
        pipeline: Pipeline.
        result: Result of its last comparison; None if there is none.
        needs_human: True if ``check`` says that a human must change the script.
        today: Day for which waivers are judged.

    Example:
        >>> from estimator_bridge.fleet.plan import Waiver
        >>> one = Pipeline("ads", "train.py", waivers=(Waiver("metric", "AUC of 200 bins", datetime.date(2027, 1, 31)),))
        >>> different = Result(key_of(one), 1, "different", findings=("metric",))
        >>> judge(one, different, False, datetime.date(2027, 1, 1))
        (<Stage.EQUAL: 'equal'>, 'waived until 2027-01-31: AUC of 200 bins')
        >>> judge(one, different, False, datetime.date(2027, 2, 1))
        (<Stage.MODERN: 'modern'>, 'the waiver of 2027-01-31 has expired: AUC of 200 bins')
    """
    if result is None or result.key != key_of(pipeline):
        outdated = "the script, its row or its data changed since the comparison" if result else ""
        return (Stage.HUMAN if needs_human else Stage.CHECKED), outdated
    note, code = "", result.code
    if code == 1:
        fitting = {one.finding: one for one in pipeline.waivers if one.finding in result.findings}
        expired = [one for one in fitting.values() if one.until < today]
        if expired:
            note = f"the waiver of {expired[0].until} has expired: {expired[0].reason}"
        elif fitting and set(result.findings) <= set(fitting):
            note, code = "; ".join(f"waived until {one.until}: {one.reason}" for one in fitting.values()), 0
    if code == 0:
        return (Stage.DONE if pipeline.signed_off else Stage.KERAS if pipeline.rewrite else Stage.EQUAL), note
    if code == 1:
        return Stage.MODERN, note
    ran = result.message.startswith(("The modern side", "The new side"))
    return (Stage.RUNS if ran else Stage.HUMAN if needs_human else Stage.CHECKED), note


def add_to_history(out: Path, stages: Mapping[str, Stage], now: datetime.datetime) -> list[dict[str, Any]]:
    """Adds the number of pipelines at each stage to the history, once a day, the last one.

    Args:
        out: Folder of the fleet's results.
        stages: Stage of each pipeline.
        now: Time.

    Returns:
        The whole history: ``date`` and ``counts``, oldest first.

    Raises:
        BridgeError: The history is damaged, or cannot be written.
    """
    counts = collections.Counter(stage.value for stage in stages.values())
    values = _read(out / _HISTORY) or {"days": []}
    days = values.get("days")
    if not isinstance(days, list) or not all(
        isinstance(day, dict) and isinstance(day.get("counts"), dict) and isinstance(day.get("date"), str) for day in days
    ):
        raise _damaged(out / _HISTORY, "it has no days")
    date = now.date().isoformat()
    days = [day for day in days if day.get("date") != date] + [{"date": date, "counts": dict(counts)}]
    write_page(out / _HISTORY, json.dumps(_MARK | {"days": days}, indent=1) + "\n")
    return days


def _read(path: Path) -> dict[str, Any] | None:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, error) from None
    if not isinstance(values, dict):
        raise _damaged(path, "it is no object")
    return values


def _damaged(path: Path, reason: object) -> BridgeError:
    return BridgeError(
        "A file of results is damaged.", expected="what fleet compare wrote", received=f"{path}: {reason}", fix="Delete it."
    )
