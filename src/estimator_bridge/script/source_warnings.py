"""Warnings about a script's source before it runs: Python 2 in it, and code that is not what it claims to be."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from estimator_bridge.compat.source.checking import judge_python2
from estimator_bridge.compat.source.reading import Source, check_path, own_sources
from estimator_bridge.compat.source.rules.misuse_checks import judge_misuse
from estimator_bridge.compat.source.verdicts import SourceFinding
from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.warn_once import warn_once

_SHOWN = 12


def script_sources(target: str, is_module: bool) -> list[Source]:
    """Reads a script and its own modules; imports nothing.

    Args:
        target: Path of the script, or name of the module.
        is_module: True if ``target`` is a module.
    """
    found = _file_and_root(target, is_module)
    return list(own_sources(*found)) if found else []


def warn_about_sources(sources: Iterable[Source], mended: bool) -> None:
    """Logs what ``check`` finds in a script and in its own modules about Python 2 and false claims.

    Args:
        sources: Script and its own modules.
        mended: True if the script runs with ``--py2``.

    Raises:
        BridgeError: A file is Python 2 by its syntax, and ``--py2`` was not given.
    """
    for source in sources:
        if left_out := dict.fromkeys(line.symbol for line in source.ipython_lines):
            warn_once(f"left out, because only IPython can run it: {', '.join(left_out)}", source.path)
        findings = sorted(judge_python2(source, mended))
        if findings and source.error is not None and not mended:
            raise _make_refusal(source, findings)
        if findings and mended:
            places = "1 place" if len(findings) == 1 else f"{len(findings)} places"
            warn_once(f"Python 2, mended in memory in {places}", source.path)
            findings = []
        places_of: dict[str, list[int]] = defaultdict(list)
        for finding in [*findings, *judge_misuse(source)]:
            places_of[f"{finding.symbol}: {finding.message}"].append(finding.line)
        for what, lines in places_of.items():
            also = ", ".join(map(source.cells.line, dict.fromkeys(lines[1:])))
            warn_once(f"{what} (also on {also})" if also else what, source.place(lines[0]))


def _file_and_root(target: str, is_module: bool) -> tuple[Path, Path] | None:
    if not is_module:
        path = Path(target)
        return (path, path.resolve().parent) if path.is_file() else None  # a pipe can be read only once
    base = Path.cwd().joinpath(*target.split("."))
    files = (base.with_suffix(".py"), base / "__main__.py")
    for file in files:
        check_path(file)
    return next(((file, Path.cwd()) for file in files if file.is_file()), None)


def _make_refusal(source: Source, findings: list[SourceFinding]) -> BridgeError:
    shown = [f"{source.cells.line(finding.line)}: {finding.symbol}" for finding in findings[:_SHOWN]]
    more = len(findings) - len(shown)
    received = f"{source.path}: " + ", ".join([*shown, *([f"and {more} more"] if more else [])])
    return BridgeError(
        "The script is written for Python 2.",
        expected="source that Python 3 parses",
        received=received,
        fix="Add --py2 before the script: its source is then rewritten in memory, and the file does not change.",
    )
