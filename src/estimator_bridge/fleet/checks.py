"""Judges the scripts of a fleet without running any, in as many processes as there are processors."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from estimator_bridge.compat.source.checking import Judge
from estimator_bridge.compat.source.forecast import judge_script
from estimator_bridge.compat.source.surface import installed_version, load_surface
from estimator_bridge.compat.source.verdicts import Verdict
from estimator_bridge.fleet.plan import Pipeline
from estimator_bridge.legacy.upstream_contrib import offered

_PART = 16
"""Number of pipelines that a process takes at once: neighbours share modules, which are read once."""


def find_blockers(pipelines: Sequence[Pipeline]) -> list[list[str]]:
    """Returns the findings of ``check`` that need a human, as text, for each pipeline.

    Args:
        pipelines: Pipelines of the fleet.
    """
    parts = [pipelines[start : start + _PART] for start in range(0, len(pipelines), _PART)]
    processes = min(len(parts), os.cpu_count() or 1)
    if processes < 2:
        found = map(_blockers_of_part, parts)
        return [blockers for part in found for blockers in part]
    with multiprocessing.get_context("spawn").Pool(processes, _leave_interrupts) as pool:
        return [blockers for part in pool.imap(_blockers_of_part, parts) for blockers in part]


def _leave_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others


def _blockers_of_part(pipelines: Sequence[Pipeline]) -> list[list[str]]:
    return [_blockers(_judge("--py2" in pipeline.options), pipeline) for pipeline in pipelines]


@functools.cache
def _judge(python2: bool) -> Judge:
    return Judge(load_surface(installed_version()), offered, python2)


def _blockers(judge: Judge, pipeline: Pipeline) -> list[str]:
    here = Path.cwd()
    lacking = [
        f"{pipeline.folder / data}: its data is not there" for data in pipeline.data if not (pipeline.folder / data).exists()
    ]
    try:
        os.chdir(pipeline.folder)  # where its own modules are found
        return lacking + [
            f"{report.cells.place(report.path, finding.line)}: {finding.symbol}: {finding.message}"
            for report in judge_script(judge, pipeline.file, "legacy", False)
            for finding in report.findings
            if finding.verdict is Verdict.HUMAN
        ]
    except OSError as error:
        return [f"{pipeline.folder / pipeline.file}: {error.strerror}"]
    finally:
        os.chdir(here)
