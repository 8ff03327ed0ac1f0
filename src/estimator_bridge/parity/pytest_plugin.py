"""The pytest plugin: the fixture ``assert_parity`` fails a test whose scripts do not train alike.

pytest imports this module in every run, so it imports neither TensorFlow nor anything else that takes time; a comparison runs in
processes of its own, as on the command line.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_MARKER = "parity"
_TABLE = "[tool.estimator-bridge]"
_DEFAULTS = ("rel_diff", "abs_diff", "variable_abs_diff", "time_limit", "report_dir")
_KEYWORDS = (*_DEFAULTS, "steps", "args", "new_args", "options")
_TIME_LIMIT = 3600.0
_GRACE_SECONDS = 10.0  # for a comparison to remove what it recorded
_MOST_FINDINGS = 3
_MOST_CHARACTERS = 600


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line("markers", f"{_MARKER}(**options): the test compares scripts; defaults of its assert_parity calls")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks each test that has the fixture, so that ``-m "not parity"`` leaves it out."""
    if "assert_parity" in getattr(item, "fixturenames", ()) and not item.get_closest_marker(_MARKER):
        item.add_marker(_MARKER)


@pytest.fixture
def assert_parity(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AssertParity:
    """Returns a function that compares a script on both paths, or an old script with its rewrite.

    Example:
        >>> def test_the_rewrite(assert_parity):  # doctest: +SKIP
        ...     assert_parity("old.py", "new.py", args=["--train_steps=200"])
    """
    marker = request.node.get_closest_marker(_MARKER)
    defaults = {**_read_table(request.config.rootpath / "pyproject.toml"), **(marker.kwargs if marker else {})}
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    reports = defaults.pop("report_dir", None)
    folder = request.config.rootpath / reports / name if reports else tmp_path_factory.mktemp(_MARKER)
    return AssertParity(folder, defaults)


class AssertParity:
    """The value of the fixture: a function that fails the test if scripts do not train alike.

    Args:
        folder: Folder of the first call's report; the second call's goes to the folder ``2`` in it, and so on.
        defaults: Options of the calls.
    """

    def __init__(self, folder: Path, defaults: Mapping[str, Any]) -> None:
        self._folder = folder
        self._defaults = defaults
        self._calls = 0

    def __call__(
        self, old: str | os.PathLike[str], new: str | os.PathLike[str] | None = None, **options: Any
    ) -> dict[str, Any]:
        """Compares scripts.

        Args:
            old: Path of an unmodified TensorFlow 1 script, from the working directory.
            new: Path of its rewrite; None to compare both paths of ``old``.
            options: ``steps``: number of training steps. ``args``: arguments of the script, or of both. ``new_args``: arguments
                of the rewrite. ``rel_diff``, ``abs_diff``, ``variable_abs_diff``: thresholds. ``time_limit``: seconds.
                ``options``: other options of ``estimator-bridge compare``.

        Returns:
            The content of report.json.

        Raises:
            pytest.fail.Exception: They do not train alike, or they cannot be compared.
        """
        self._calls += 1
        folder = self._folder / str(self._calls) if self._calls > 1 else self._folder
        chosen = {**self._defaults, **options}
        time_limit = float(chosen.pop("time_limit", _TIME_LIMIT))
        arguments = ["--out", str(folder), *_arguments(old, new, chosen)]
        report, error = _run([*compare_command(), "--format", "json", *arguments], time_limit)
        if report.get("exit_code") != 0:
            lines = _describe(report) if report else [error]
            if report:
                lines.append(f"Report: {folder / 'report.html'}")
            lines.append(f"Command: {shlex.join(['estimator-bridge', 'compare', *arguments])}")
            pytest.fail("\n".join(lines), pytrace=False)
        return report


def compare_command() -> list[str]:
    """Returns the command line of ``estimator-bridge compare``, without its arguments."""
    return [sys.executable, "-m", "estimator_bridge", "compare"]


def _read_table(path: Path) -> dict[str, Any]:
    """Returns the defaults of a project; its keys may have hyphens."""
    if not path.is_file():
        return {}
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    with path.open("rb") as file:
        table = toml.load(file).get("tool", {}).get("estimator-bridge", {})
    found = {key.replace("-", "_"): value for key, value in table.items()}
    for key, value in found.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if key not in _DEFAULTS or not (isinstance(value, str) if key == "report_dir" else is_number):
            expected = f"numbers {', '.join(_DEFAULTS[:-1])}, and the text {_DEFAULTS[-1]}"
            pytest.fail(f"{path}: {_TABLE} has {key} = {value!r}; expected: {expected}", pytrace=False)
    return found


def _arguments(old: str | os.PathLike[str], new: str | os.PathLike[str] | None, chosen: Mapping[str, Any]) -> list[str]:
    """Returns the command line of a comparison."""
    unknown = set(chosen) - set(_KEYWORDS)
    if unknown:
        raise TypeError(f"assert_parity has no option {', '.join(sorted(unknown))}; it has {', '.join(_KEYWORDS)}")
    flags: list[str] = []
    for name in ("steps", "rel_diff", "abs_diff", "variable_abs_diff"):
        if chosen.get(name) is not None:
            flags += [f"--{name.replace('_', '-')}", str(chosen[name])]
    if chosen.get("new_args") is not None:
        flags += [f"--new-args={shlex.join(map(str, chosen['new_args']))}"]  # which may begin with a hyphen
    scripts = [os.fspath(script) for script in (old, new) if script is not None]
    return [*flags, *map(str, chosen.get("options", ())), *scripts, *map(str, chosen.get("args", ()))]


def _run(command: list[str], time_limit: float) -> tuple[dict[str, Any], str]:
    """Runs a comparison.

    Returns:
        The report, and what was written to stderr; the report is empty if there is none.
    """
    with _ended(
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    ) as process:
        try:
            out, error = process.communicate(timeout=time_limit)
        except subprocess.TimeoutExpired:
            return {}, f"The comparison took longer than its time limit of {time_limit:g} s, and was ended."
    try:
        report: dict[str, Any] = json.loads(out)
    except ValueError:
        return {}, f"The comparison ended with exit code {process.returncode} and no report.\n{error.strip()[-2000:]}"
    return report, error


@contextlib.contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Yields a process and ends it, whatever happens; its own processes end with it."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=_GRACE_SECONDS)
        process.kill()
        process.communicate()


def _describe(report: Mapping[str, Any]) -> list[str]:
    """Returns the verdict, the cause if the report has one, and the first findings."""
    lines = [f"{report['verdict'].upper()}: {shlex.join(report['command'])}"]
    if report.get("reason"):
        lines.append(_shortened(f"  {report['reason']}"))
    cause = report.get("cause")
    if cause:
        lines += [_shortened(f"  cause: {cause['name']}: {cause['seen']}"), _shortened(f"  to do: {cause['change']}")]
    findings = report["findings"]
    for finding in findings[:_MOST_FINDINGS]:
        step = "" if finding["step"] is None else f"step {finding['step']}, "
        lines.append(_shortened(f"  {step}{finding['level']}: {finding['message']}"))
    if len(findings) > _MOST_FINDINGS:
        lines.append(f"  ... and {len(findings) - _MOST_FINDINGS} more in the report")
    return lines


def _shortened(line: str) -> str:
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}..."
