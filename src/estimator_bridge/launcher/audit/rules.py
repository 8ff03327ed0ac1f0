"""What must not be in the reports of an audited cluster: one rule a fault, each fed report by report in the order of time.

A rule forgets what a task reported before it started again. None of them takes two things for equal, or for lost, that a sound training
brings about; where a script means to do what a rule takes for a fault, ``--audit-allow`` names the rule.
"""

from __future__ import annotations

import abc
import collections
from collections.abc import Mapping, Sequence

from estimator_bridge.cluster.audit_records import KINDS, AuditRecord, Updates
from estimator_bridge.errors import BridgeError

_SEQUENCE = 32  # audited steps, from a training's start, whose batches are compared
_DIFFERENT = 5  # batches among them without which equal sequences mean nothing: few batches coincide by chance
_LEAST_STEPS = 16  # that a worker must have made before its count says anything
_SURPLUS = 1.25  # of local steps over those that synchronous training allows
_ALONE_SECONDS = 120.0  # the others may be late for so long; servers have answered before anybody trains
_LOST_STEPS, _LOST_SHARE = 10, 0.05  # increments of TensorFlow 1's reference variables take no lock: single ones may be lost
_UNCHANGED = 5  # steps without effect
_STEPS_KEPT = 64  # for which the digests of variables wait for those of other tasks


class Rule(abc.ABC):
    """One fault."""

    @abc.abstractmethod
    def take(self, report: AuditRecord) -> BridgeError | None:
        """Looks at one more report; gives what is wrong, if that shows now."""

    def end(self, tasks: Sequence[str]) -> BridgeError | None:
        """Training has ended; ``tasks`` are those that were to train."""
        return None


class SameData(Rule):
    """Two replicas get the same batches: at every step where both were audited."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[int, int]] = {}

    def take(self, report: AuditRecord) -> BridgeError | None:
        """As the rule says it."""
        for replica, digest in enumerate(report.batches):
            own = f"{report.task}, replica {replica}" if len(report.batches) > 1 else report.task
            if report.local == 1:
                self._seen[own] = {}
            seen = self._seen.setdefault(own, {})
            if len(seen) < _SEQUENCE:
                seen[report.local] = digest
                for other, theirs in self._seen.items():
                    if other != own and (common := _common(seen, theirs)):
                        return _same_data(own, other, common)
        return None


def _common(one: Mapping[int, int], other: Mapping[int, int]) -> list[int]:
    """The local steps of both, if their digests are equal throughout and tell anything."""
    steps = sorted(one.keys() & other.keys())
    equal = all(one[step] == other[step] for step in steps)
    return steps if equal and len({one[step] for step in steps}) >= _DIFFERENT else []


def _same_data(one: str, other: str, steps: Sequence[int]) -> BridgeError:
    return BridgeError(
        f"{one} and {other} train on the same data, so one of them is of no use.",
        expected="batches of its own for each worker",
        received=f"equal ones at each of the {len(steps)} steps of theirs that were audited, {steps[0]} to {steps[-1]}",
        fix="With parameter servers let input_fn take `config` and call dataset.shard(config.num_worker_replicas, "
        "config.global_id_in_cluster); with workers in step let it take `input_context` and shard by num_input_pipelines and "
        "input_pipeline_id. RunConfig's tf_random_seed makes shuffling the same everywhere. If it is meant to be so: --audit-allow same-data.",
    )


class ChiefAlone(Rule):
    """One task makes the steps of the others, too."""

    def __init__(self, tasks: Sequence[str]) -> None:
        self._tasks = tasks
        self._starts: dict[str, AuditRecord] = {}
        self._steps: collections.Counter[str] = collections.Counter()
        self._first: AuditRecord | None = None

    def take(self, report: AuditRecord) -> BridgeError | None:
        """As the rule says it."""
        if report.local == 0:
            self._starts[report.task] = report
            return None
        self._steps[report.task] = max(report.local, self._steps[report.task])
        self._first = self._first or report
        if report.share is not None and report.task in self._starts:
            problem = self._surplus(report, report.share, report.step - self._starts[report.task].step)
            if problem is not None:
                return problem
        return self.end(self._tasks) if report.at - self._first.at > _ALONE_SECONDS else None

    def end(self, tasks: Sequence[str]) -> BridgeError | None:
        """Of asynchronous workers each makes as many steps as it can; only who has made none is missing."""
        idle = [task for task in tasks if not self._steps[task]]
        if not (idle and sum(self._steps.values()) >= _LEAST_STEPS):
            return None
        made = ", ".join(f"{task} {steps}" for task, steps in self._steps.items() if steps)
        return BridgeError(
            f"{', '.join(idle)} took no part in the training.",
            expected="steps of every worker",
            received=f"none of {', '.join(idle)}; audited by then: {made}",
            fix="Look into its log: it started late or waits. A job of few steps can be over before all have begun: train longer, or "
            "use fewer workers. If it is meant to be so: --audit-allow chief-alone.",
        )

    def _surplus(self, report: AuditRecord, share: float, made: int) -> BridgeError | None:
        if report.local < _LEAST_STEPS or report.local <= _SURPLUS * share * (made + 2):
            return None
        return BridgeError(
            f"{report.task} makes the steps of others: synchronous training is not synchronous.",
            expected=f"{share:g} local steps of each worker for a global step",
            received=f"{report.local} local steps of {report.task} for {made} global ones",
            fix="SyncReplicasOptimizer lets who comes first take the tokens of all: use "
            "make_session_run_hook(is_chief, num_tokens=0), and let all workers start together. If it is meant to be so: "
            "--audit-allow chief-alone.",
        )


class LostSteps(Rule):
    """Asynchronous workers make more steps than the global step counts: one too many, where one process counts them all.

    Between the lowest and the highest global step that were reported since the last (re)start of any task, every step that lies
    between two reports of its worker must have been counted; no clock is needed for that.
    """

    def __init__(self) -> None:
        self._first: dict[str, AuditRecord] = {}
        self._last: dict[str, AuditRecord] = {}

    def take(self, report: AuditRecord) -> BridgeError | None:
        """As the rule says it."""
        if report.uncounted:
            return _uncounted(report)
        if report.updates is not Updates.OWN:
            return None
        before = self._last.get(report.task)
        if report.local == 0 or (before and report.step < before.step):  # parameter servers came back with a checkpoint
            self._first, self._last = {}, {}
            return None
        self._first.setdefault(report.task, report)
        self._last[report.task] = report
        made = {task: last.local - self._first[task].local for task, last in self._last.items()}
        counted = max(last.step for last in self._last.values()) - min(first.step for first in self._first.values())
        lost = sum(made.values()) - counted
        if lost <= max(_LOST_STEPS, _LOST_SHARE * sum(made.values())):
            return None
        return BridgeError(
            f"{lost} of {sum(made.values())} steps of the workers are lost: the global step does not count them.",
            expected="a global step that advances by one for every step of a worker",
            received=f"{counted}, while there were {', '.join(f'{steps} of {task}' for task, steps in made.items())}",
            fix="Each worker has to apply its gradients with the global step that all share: minimize(loss, global_step). If the script "
            "counts only every so many steps, as with accumulated gradients: --audit-allow lost-updates.",
        )


def _uncounted(report: AuditRecord) -> BridgeError:
    return BridgeError(
        f"{report.uncounted} of {report.local} steps of chief and workers are lost: the global step does not count them.",
        expected="a global step that advances by one for every step",
        received=f"global step {report.step}, which has advanced by {report.local - report.uncounted}",
        fix="Let the train_op count each of its steps. If the script counts only every so many steps, as with accumulated gradients: "
        "--audit-allow lost-updates.",
    )


class LostUpdates(Rule):
    """An asynchronous worker's steps leave the variables as they were, while the same steps of others do not.

    That begins with the first step that changes them, whosever it is: before it the learning rate may be 0 for all, as in a warm-up.
    """

    def __init__(self) -> None:
        self._begun: int | None = None
        self._audited: collections.Counter[str] = collections.Counter()
        self._unchanged: collections.Counter[str] = collections.Counter()

    def take(self, report: AuditRecord) -> BridgeError | None:
        """As the rule says it."""
        if report.changed and self._begun is None:
            self._begun = report.step
        if report.changed is None or self._begun is None or (not report.changed and report.step <= self._begun):
            return None
        self._audited[report.task] += 1
        self._unchanged[report.task] += not report.changed
        sound = [task for task, audited in self._audited.items() if audited >= _UNCHANGED and not self._unchanged[task]]
        lost = [task for task, unchanged in self._unchanged.items() if unchanged >= _UNCHANGED]
        if not sound or not lost:
            return None
        [task, *_] = lost
        return BridgeError(
            f"Updates of {task} do not arrive: its steps leave the variables as they were.",
            expected=f"variables that change with every step, as with {sound[0]}",
            received=f"the same before and after {self._unchanged[task]} of its {self._audited[task]} audited steps",
            fix="Look at what this worker does otherwise: its optimizer, its devices, or data without a gradient. If it is meant to be "
            "so: --audit-allow lost-updates.",
        )


class Diverged(Rule):
    """Copies of the variables that should be the same are not, at the same global step."""

    def __init__(self) -> None:
        self._seen: dict[int, dict[str, int]] = {}

    def take(self, report: AuditRecord) -> BridgeError | None:
        """As the rule says it."""
        if report.local == 0:
            self._seen = {}
        copies = self._seen.setdefault(report.step, {})
        for replica, digest in enumerate(report.variables):
            own = f"{report.task}, replica {replica}" if len(report.variables) > 1 else report.task
            copies[own] = digest
            other = next((task for task, theirs in copies.items() if theirs != digest), None)
            if other is not None:
                return _diverged(other, own, report.step)
        if len(self._seen) > _STEPS_KEPT:
            del self._seen[min(self._seen)]
        return None


def _diverged(one: str, other: str, step: int) -> BridgeError:
    return BridgeError(
        f"The variables of {one} and {other} have diverged at global step {step}.",
        expected="the same values, bit for bit, in every replica",
        received="other ones: the digests differ",
        fix="Look for variables that are assigned without an aggregation (tf.VariableAggregation.MEAN, or synchronization ON_READ for "
        "moving averages), for updates outside the optimizer, for other values at the start. Processors of other kinds round "
        "otherwise: for those, or where it is meant to be so: --audit-allow diverged.",
    )


def rules(tasks: Sequence[str], allowed: Sequence[str] = ()) -> list[Rule]:
    """Those that are not allowed to be broken.

    Args:
        tasks: that train, such as ``worker 0``.
        allowed: of ``KINDS``.

    Returns:
        Fresh rules.

    Example:
        >>> [type(rule).__name__ for rule in rules(["chief 0"], ["lost-updates", "diverged"])]
        ['SameData', 'ChiefAlone']
    """
    made: dict[str, list[Rule]] = {
        "same-data": [SameData()],
        "chief-alone": [ChiefAlone(tasks)],
        "lost-updates": [LostUpdates(), LostSteps()],
        "diverged": [Diverged()],
    }
    return [rule for kind in KINDS if kind not in allowed for rule in made[kind]]
