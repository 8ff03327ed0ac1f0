"""Foresees whether ``run`` runs a script: judges it with its own modules, and tells what stops it from what it never reaches."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.compat.source.checking import FileReport, Judge, distinct_findings
from estimator_bridge.compat.source.reached import ReachedCode
from estimator_bridge.compat.source.reading import Source, own_sources, read_source, resolved
from estimator_bridge.compat.source.removed_names.python import MODULES
from estimator_bridge.compat.source.rules.idioms import NAMES
from estimator_bridge.compat.source.rules.modern_limits import calls_an_estimator, judge_for_micro_batches, judge_for_modern
from estimator_bridge.compat.source.rules.refusals import judge_own_names, judge_packages, judge_refusals
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict
from estimator_bridge.errors import BridgeError

_NOT_REACHED = "not reached from the script, as far as names show"
_ONLY_A_WARNING = "it does not stop the script"
_KEPT_FILES = 512  # parsed files that are kept for the next scripts that import them


def judge_script(judge: Judge, script: Path, path: str = "legacy", micro_batches: bool = False) -> list[FileReport]:
    """Judges a script and its own modules for one path of ``run``; runs nothing.

    Findings that need a human stop the script. Those that do not, or that it does not reach, have the verdict ``LOOK``.

    Args:
        judge: Environment that the script is judged for.
        script: Python file that is run.
        path: ``legacy`` or ``modern``.
        micro_batches: True to judge for ``run --micro``, too.

    Returns:
        Reports on the script and on its own modules that can be parsed.
    """
    roots = _roots(script)
    try:
        sources = list(own_sources(script, *roots, read=_read))
    except BridgeError:  # a notebook that is none
        sources = []
    if not sources:
        return [judge.file(script)]
    reached = ReachedCode(sources, roots)
    own = {resolved(Path(source.path)): source for source in sources}
    changes_path = any("sys.path" in source.text for source in sources)
    found = []
    for source in sources:
        report = _judge_alone(judge, source, path, micro_batches)
        extra = [*judge_packages(source, _searched(source, roots, changes_path)), *judge_own_names(source, own, roots)]
        findings = distinct_findings([*report.findings, *extra])
        findings = [one for one in findings if not _is_of_own_module(one, source, roots)]
        found.append(dataclasses.replace(report, findings=tuple(_weighed(source, findings, reached))))
    if path == "modern" and not calls_an_estimator(sources, reached):
        found[0] = dataclasses.replace(found[0], findings=(_NO_ESTIMATOR, *found[0].findings))
    return found


def _read(content: bytes, path: str) -> Source:
    return _read_once(content, path, "" if Path(path).is_absolute() else str(Path.cwd()))


@functools.lru_cache(_KEPT_FILES)
def _read_once(content: bytes, path: str, folder: str) -> Source:
    del folder  # only tells apart files of equal names
    return read_source(content, path)


@functools.lru_cache(_KEPT_FILES)
def _judge_alone(judge: Judge, source: Source, path: str, micro_batches: bool) -> FileReport:
    """Judges a file as far as that depends on nothing beside it."""
    report = judge.source(source)
    extra = [*judge_refusals(source), *(judge_for_modern(source) if path == "modern" else ())]
    extra += judge_for_micro_batches(source) if micro_batches else ()
    return dataclasses.replace(report, findings=(*report.findings, *extra))


def _roots(script: Path) -> list[Path]:
    """Returns the folders that Python searches first: the script's, the one of its top package, and this one, as for ``-m``."""
    top = script.resolve().parent
    while (top / "__init__.py").is_file():
        top = top.parent
    return list(dict.fromkeys([script.resolve().parent, top, Path.cwd()]))


def _searched(source: Source, roots: list[Path], changes_path: bool) -> list[Path]:
    """Returns the folders in which a package may be: those around and below the script, too, if the script changes ``sys.path``."""
    searched = [*roots, resolved(Path(source.path)).parent]
    if changes_path:
        searched += [*roots[0].parents[:2], *(one for one in roots[0].parent.glob("*/") if one.is_dir())]
        searched += [one for one in roots[0].glob("*/*/") if one.is_dir()]
    return searched


_NO_ESTIMATOR = SourceFinding(
    1,
    1,
    "tf.estimator",
    Kind.TENSORFLOW,
    Verdict.HUMAN,
    "Not on the modern path: the script calls no Estimator. Use --path legacy.",
)


def _is_of_own_module(finding: SourceFinding, source: Source, roots: list[Path]) -> bool:
    """Returns True for a finding about a removed module of Python whose name one of the script's own modules has."""
    top = finding.symbol.removeprefix("import ").partition(".")[0]
    if finding.kind not in {Kind.PYTHON, Kind.PYTHON2} or not (top in MODULES or finding.symbol.startswith("import ")):
        return False
    folders = [*roots, resolved(Path(source.path)).parent]
    return any((folder / f"{top}.py").is_file() or (folder / top).is_dir() for folder in folders)


def _weighed(source: Source, findings: list[SourceFinding], reached: ReachedCode) -> Iterator[SourceFinding]:
    for finding in findings:
        why = ""
        # run reads all of the script's modules, or all of a notebook's cells, first
        is_refused = finding.kind is Kind.NOTEBOOK or (finding.kind is Kind.PYTHON2 and source.error is not None)
        if finding.verdict is Verdict.HUMAN and not is_refused:
            reaches = reached.may_run(source.path, finding.line)
            why = _NOT_REACHED if not reaches else "" if _stops(finding, source) else _ONLY_A_WARNING
        yield dataclasses.replace(finding, verdict=Verdict.LOOK, message=f"{finding.message} ({why})") if why else finding


def _stops(finding: SourceFinding, source: Source) -> bool:
    """Returns True if a script ends at a finding that needs a human."""
    if finding.kind is Kind.PYTHON2:
        is_call = finding.symbol.startswith(".") or finding.symbol in {"[...]", "/"}
        return is_call or finding.symbol in NAMES or finding.symbol.startswith("import ")
    if finding.kind is Kind.PYTHON and finding.symbol in MODULES and not _uses(source, finding.symbol):
        return False  # imported and left alone
    is_star = finding.symbol.startswith("from ") and finding.kind is not Kind.PACKAGE
    return finding.kind not in {Kind.CLAIM, Kind.NUMPY} and not is_star


def _uses(source: Source, module: str) -> bool:
    """Returns True if a file reads a name that it imports from a module, or the module itself."""
    bound = {
        (alias.asname or alias.name).partition(".")[0]
        for dotted, statement, _ in source.names.imports
        if f"{dotted}.".startswith(f"{module}.") and isinstance(statement, (ast.Import, ast.ImportFrom))
        for alias in statement.names
    }
    return any(isinstance(node.ctx, ast.Load) and node.id in bound for node, _ in source.names.nodes(ast.Name))
