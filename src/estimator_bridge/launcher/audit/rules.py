"""Faults that an audit looks for: one rule a fault, which takes the records of all tasks in the order of time.

A rule forgets what a task wrote before it started again. A rule reports only what a correct training never does. If a script does it
on purpose, ``--audit-allow`` names the rule.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Protocol

from estimator_bridge.cluster.audit_records import KINDS, AuditRecord, Updates
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError

_SEQUENCE = 32  # audited steps, from a training's start, whose batches are compared
_DIFFERENT = 5  # different batches that two equal sequences need at least: few batches coincide by chance
_LEAST_STEPS = 16  # steps that a worker must have made before its count is judged
_SURPLUS = 1.25  # factor over the local steps that synchronous training allows
_ALONE_SECONDS = 120.0  # delay that other workers may have; all servers answered before the training began
_LOST_STEPS, _LOST_SHARE = 10, 0.05  # increments of TensorFlow 1's reference variables take no lock: single ones may be lost
_UNCHANGED = 5  # steps without effect
_STEPS_KEPT = 64  # global steps whose digests of variables wait for those of other tasks


class AuditRule(Protocol):
    """One fault."""

    def take(self, record: AuditRecord) -> BridgeError | None:
        """Takes one more record, and returns the fault if the record shows it."""

    def end(self) -> BridgeError | None:
        """Returns the fault if it shows at the end of the training."""
        return None


class SameData(AuditRule):
    """Two replicas that get the same batch at every step that was audited in both."""

    def __init__(self) -> None:
        self._digests: dict[str, dict[int, int]] = {}

    def take(self, record: AuditRecord) -> BridgeError | None:
        """Compares the batch of each replica with the batches of all others."""
        for own, digest in _by_replica(record.task, record.batches):
            if record.local == 1:
                self._digests[own] = {}
            digests = self._digests.setdefault(own, {})
            if len(digests) < _SEQUENCE:
                digests[record.local] = digest
                for other, theirs in self._digests.items():
                    if other != own and (common := _common(digests, theirs)):
                        return _same_data(own, other, common)
        return None


def _by_replica(task: TaskId, digests: Sequence[int]) -> list[tuple[str, int]]:
    return [(f"{task}, replica {replica}" if len(digests) > 1 else str(task), one) for replica, one in enumerate(digests)]


def _common(one: Mapping[int, int], other: Mapping[int, int]) -> list[int]:
    """Returns the local steps of both replicas, if their digests are equal throughout and different enough to mean something."""
    steps = sorted(one.keys() & other.keys())
    is_equal = all(one[step] == other[step] for step in steps)
    return steps if is_equal and len({one[step] for step in steps}) >= _DIFFERENT else []


def _same_data(one: str, other: str, steps: Sequence[int]) -> BridgeError:
    return BridgeError(
        f"{one} and {other} train on the same data, so one of them is useless.",
        expected="different batches for each worker",
        received=f"equal batches at each of the {len(steps)} audited steps of both, {steps[0]} to {steps[-1]}",
        fix="With parameter servers let input_fn take `config` and call dataset.shard(config.num_worker_replicas, "
        "config.global_id_in_cluster). With workers in step let it take `input_context` and shard by num_input_pipelines and "
        "input_pipeline_id. RunConfig's tf_random_seed makes shuffling the same everywhere. If this is intended: --audit-allow same-data.",
    )


class ChiefAlone(AuditRule):
    """One task that also makes the steps of the others.

    Args:
        tasks: Tasks that have to train.
    """

    def __init__(self, tasks: Sequence[TaskId]) -> None:
        self._tasks = tasks
        self._starts: dict[TaskId, AuditRecord] = {}
        self._steps: collections.Counter[TaskId] = collections.Counter()
        self._first: AuditRecord | None = None

    def take(self, record: AuditRecord) -> BridgeError | None:
        """Counts the steps of each task."""
        if record.local == 0:
            self._starts[record.task] = record
            return None
        self._steps[record.task] = max(record.local, self._steps[record.task])
        self._first = self._first or record
        if record.share is not None and record.task in self._starts:
            problem = self._surplus(record, record.share, record.step - self._starts[record.task].step)
            if problem is not None:
                return problem
        return self.end() if record.at - self._first.at > _ALONE_SECONDS else None

    def end(self) -> BridgeError | None:
        """Names the tasks without any step: an asynchronous worker makes as many steps as it can, and no fixed number."""
        idle = ", ".join(str(task) for task in self._tasks if not self._steps[task])
        if not (idle and sum(self._steps.values()) >= _LEAST_STEPS):
            return None
        counts = ", ".join(f"{task} {steps}" for task, steps in self._steps.items() if steps)
        return BridgeError(
            f"{idle} took no part in the training.",
            expected="steps of every worker",
            received=f"none of {idle}; audited by then: {counts}",
            fix="Read the logs of these tasks: they started late, or are waiting. A short job can end before all workers have started: "
            "train longer, or use fewer workers. If this is intended: --audit-allow chief-alone.",
        )

    def _surplus(self, record: AuditRecord, share: float, steps: int) -> BridgeError | None:
        if record.local < _LEAST_STEPS or record.local <= _SURPLUS * share * (steps + 2):
            return None
        return BridgeError(
            f"{record.task} makes the steps of others: synchronous training is not synchronous.",
            expected=f"{share:g} local steps of each worker for a global step",
            received=f"{record.local} local steps of {record.task} for {steps} global ones",
            fix="In SyncReplicasOptimizer the first worker can take the tokens of all: use "
            "make_session_run_hook(is_chief, num_tokens=0), and let all workers start together. If this is intended: "
            "--audit-allow chief-alone.",
        )


class LostSteps(AuditRule):
    """Asynchronous workers that make more steps than the global step counts: one too many, if one process counts them all.

    The rule compares the lowest and the highest global step since the last (re)start of any task. Between them every step that lies
    between two records of its worker must have been counted; no clock is needed for that.
    """

    def __init__(self) -> None:
        self._first: dict[TaskId, AuditRecord] = {}
        self._last: dict[TaskId, AuditRecord] = {}

    def take(self, record: AuditRecord) -> BridgeError | None:
        """Compares the steps of all workers with the global step."""
        if record.uncounted:
            return BridgeError(
                f"{record.uncounted} of {record.local} steps of chief and workers are lost: the global step does not count them.",
                expected="a global step that advances by one for every step",
                received=f"global step {record.step}, which has advanced by {record.local - record.uncounted}",
                fix="Let the train_op count each of its steps. If the script counts only every so many steps, e.g. with accumulated "
                "gradients: --audit-allow lost-updates.",
            )
        if record.updates is not Updates.OWN:
            return None
        before = self._last.get(record.task)
        if record.local == 0 or (before and record.step < before.step):  # parameter servers came back with a checkpoint
            self._first, self._last = {}, {}
            return None
        self._first.setdefault(record.task, record)
        self._last[record.task] = record
        steps = {task: last.local - self._first[task].local for task, last in self._last.items()}
        counted = max(last.step for last in self._last.values()) - min(first.step for first in self._first.values())
        total = sum(steps.values())
        if total - counted <= max(_LOST_STEPS, _LOST_SHARE * total):
            return None
        return BridgeError(
            f"{total - counted} of {total} steps of the workers are lost: the global step does not count them.",
            expected="a global step that advances by one for every step of a worker",
            received=f"{counted} global steps, and {', '.join(f'{number} of {task}' for task, number in steps.items())}",
            fix="Each worker has to apply its gradients with the global step that all share: minimize(loss, global_step). If the script "
            "counts only every so many steps, e.g. with accumulated gradients: --audit-allow lost-updates.",
        )


class LostUpdates(AuditRule):
    """An asynchronous worker whose steps leave the variables unchanged, while the same steps of others change them.

    Steps count from the first one that changes the variables, whichever worker makes it: before it the learning rate may be 0 for all
    workers, e.g. in a warm-up.
    """

    def __init__(self) -> None:
        self._first_change: int | None = None
        self._audited: collections.Counter[TaskId] = collections.Counter()
        self._unchanged: collections.Counter[TaskId] = collections.Counter()

    def take(self, record: AuditRecord) -> BridgeError | None:
        """Counts the steps with and without effect."""
        if record.changed and self._first_change is None:
            self._first_change = record.step
        first = self._first_change
        if record.changed is None or first is None or (not record.changed and record.step <= first):
            return None
        self._audited[record.task] += 1
        self._unchanged[record.task] += not record.changed
        sound = [task for task, audited in self._audited.items() if audited >= _UNCHANGED and not self._unchanged[task]]
        lost = [task for task, unchanged in self._unchanged.items() if unchanged >= _UNCHANGED]
        if not sound or not lost:
            return None
        task = lost[0]
        return BridgeError(
            f"Updates of {task} are lost: its steps leave the variables unchanged.",
            expected=f"variables that change with every step, like those of {sound[0]}",
            received=f"equal variables before and after {self._unchanged[task]} of its {self._audited[task]} audited steps",
            fix="Check what differs on this worker: its optimizer, its devices, or data without a gradient. If this is intended: "
            "--audit-allow lost-updates.",
        )


class Diverged(AuditRule):
    """Copies of the variables that should be equal and differ at the same global step."""

    def __init__(self) -> None:
        self._digests: dict[int, dict[str, int]] = {}

    def take(self, record: AuditRecord) -> BridgeError | None:
        """Compares the copies of all replicas at each global step."""
        if record.local == 0:
            self._digests = {}
        copies = self._digests.setdefault(record.step, {})
        for own, digest in _by_replica(record.task, record.variables):
            copies[own] = digest
            other = next((replica for replica, theirs in copies.items() if theirs != digest), None)
            if other is not None:
                return BridgeError(
                    f"The variables of {other} and {own} have diverged at global step {record.step}.",
                    expected="the same values, bit for bit, in every replica",
                    received="different digests",
                    fix="Check for variables that are assigned without an aggregation (tf.VariableAggregation.MEAN, or synchronization ON_READ for "
                    "moving averages), for updates outside the optimizer, and for different initial values. Processors of different kinds round "
                    "differently: for those, or if this is intended: --audit-allow diverged.",
                )
        if len(self._digests) > _STEPS_KEPT:
            del self._digests[min(self._digests)]
        return None


def rules(tasks: Sequence[TaskId], allowed: Sequence[str] = ()) -> list[AuditRule]:
    """Returns fresh rules for all faults that are not allowed.

    Args:
        tasks: Tasks that have to train.
        allowed: Names of the rules that are ignored, from ``KINDS``.

    Example:
        >>> [type(rule).__name__ for rule in rules([TaskId("chief", 0)], ["lost-updates", "diverged"])]
        ['SameData', 'ChiefAlone']
    """
    by_kind: dict[str, list[AuditRule]] = {
        "same-data": [SameData()],
        "chief-alone": [ChiefAlone(tasks)],
        "lost-updates": [LostUpdates(), LostSteps()],
        "diverged": [Diverged()],
    }
    return [rule for kind in KINDS if kind not in allowed for rule in by_kind[kind]]
