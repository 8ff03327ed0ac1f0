"""Runs a side of a comparison as a cluster on this machine, by the launcher of ``estimator-bridge launch``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.launch import LaunchResult, launch, local_layouts
from estimator_bridge.launcher.outcome import Timeouts
from estimator_bridge.launcher.processes.task import State, Task
from estimator_bridge.parity.clusters.plan import ClusterPlan
from estimator_bridge.parity.recording.trace import Trace

_WITHOUT_STEPS = (
    10  # factor for the time until all servers answer, and after the training; the launcher has it for the first step
)
_GRACE_SECONDS = 5.0
_OPTIONS_OF_LAUNCH = ("--ready-timeout", "--finish-timeout")  # in messages; here they come from --stall-timeout
_LINES_SHOWN = 15  # of a task's output, when it failed


def run_tasks(
    plan: ClusterPlan, arguments: Sequence[str], logs: Path, trace_of: Callable[[TaskId], Trace]
) -> BridgeError | None:
    """Runs the tasks of a side until all of them have ended.

    No task is restarted: what a task records would begin again in the middle.

    Args:
        plan: Tasks, and how long they may stand still.
        arguments: Arguments of Python for every task.
        logs: Folder for the output of each task.
        trace_of: Function that returns the trace of a task.

    Returns:
        The error of the first task that failed, or why the cluster was ended; None if all went well.
    """
    long = _WITHOUT_STEPS * plan.stall
    limits = Timeouts(ready=long, finish=long, grace=_GRACE_SECONDS, stall=plan.stall, restarts=0, may_idle=False)
    result = launch(
        local_layouts(plan.counts), arguments, logs, limits, sys.stdout, preload="estimator_bridge.script.preloaded"
    )
    return _find_failure(result, trace_of)


def _find_failure(result: LaunchResult, trace_of: Callable[[TaskId], Trace]) -> BridgeError | None:
    failed = [task for task in result.tasks if task.state is State.FAILED]
    if failed:
        return _describe(min(failed, key=lambda task: (task.ended_at, task.name)), trace_of)
    problem = result.outcome.problem
    if problem is None:
        return BridgeError("The cluster was asked to end.", fix="Run the command again.") if result.outcome.code else None
    text = str(problem)
    for option in _OPTIONS_OF_LAUNCH:
        text = text.replace(option, "--stall-timeout")
    return BridgeError(text, address=problem.address)


def _describe(task: Task, trace_of: Callable[[TaskId], Trace]) -> BridgeError:
    trace = trace_of(task.name)
    for event in trace.events("failed"):
        return BridgeError(f"{task.name}: {event['message']}", address=event["address"])
    lines = [line for event in trace.events("error") for line in event["lines"]]
    lines = lines or [line for line in task.tail if line.strip()][-_LINES_SHOWN:]
    return BridgeError(
        f"{task.name} ended with exit code {task.exit_code}, so the others were ended.",
        expected="exit code 0",
        received="\n    ".join(["it ended with", *lines]) if lines else "no output",
        fix=f"Correct the error; or compare with --keep, and read {task.log.parent.name}/{task.log.name} of this side.",
    )
