"""The findings of an earlier ``check --format json``, which are known and left out."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_bridge.compat.source.checking import FileReport
from estimator_bridge.compat.source.verdicts import Verdict
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.json_positions import read_json

_EXPECTED = "the output of check --format json"
_Key = tuple[str, str, str, str]


def read_baseline(path: Path) -> Counter[_Key]:
    """Reads the findings of an earlier check.

    Args:
        path: File with the output of ``check --format json``.

    Returns:
        Number of findings of each path, symbol, verdict and message; lines do not matter, since they move.

    Raises:
        BridgeError: The file cannot be read, or is something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BridgeError(
            "The file of --baseline cannot be read.", expected=_EXPECTED, received=f"{path}: {error}", fix="Check the path."
        ) from None
    value = read_json(text, str(path), _EXPECTED)
    try:
        return Counter(_key(file["path"], finding) for file in value["files"] for finding in file["findings"])
    except (KeyError, TypeError):
        raise BridgeError(
            "The file of --baseline is something else.",
            expected=_EXPECTED,
            received=str(path),
            fix="Write one: estimator-bridge check --format json . > baseline.json",
        ) from None


def without_known(reports: Sequence[FileReport], known: Mapping[_Key, int]) -> list[FileReport]:
    """Returns the reports without findings that a baseline has as often; names that simply run stay.

    Args:
        reports: Reports on files.
        known: Findings of the baseline.
    """
    left = Counter(known)
    return [dataclasses.replace(report, findings=tuple(_new(report, left))) for report in reports]


def _new(report: FileReport, left: Counter[_Key]) -> Iterable[Any]:
    for finding in report.findings:
        key = _key(report.path, dataclasses.asdict(finding) | {"verdict": finding.verdict.value})
        if finding.verdict is not Verdict.RUNS and left[key]:
            left[key] -= 1
        else:
            yield finding


def _key(path: str, finding: Mapping[str, Any]) -> _Key:
    message = re.sub(r"\d+", "#", str(finding["message"]))  # which may name other lines
    return str(path), str(finding["symbol"]), str(finding["verdict"]), message
