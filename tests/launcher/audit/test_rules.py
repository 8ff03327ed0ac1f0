"""Each fault is found in the records of a cluster, and none is found in those of a sound one."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_bridge.cluster.audit_records import AuditPlan, AuditRecord, Updates
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.audit.rules import rules

TASKS = ["chief 0", "worker 0", "worker 1"]
PAIR = [("chief 0", "worker 1"), ("worker 1", "chief 0")]
OWN, AGGREGATED, MIRRORED, COUNTED = Updates.OWN, Updates.AGGREGATED, Updates.MIRRORED, Updates.COUNTED
EVERY = 10


def named(task: str) -> TaskId:
    job, index = task.split()
    return TaskId(job, int(index))


def found(reports: Iterable[AuditRecord], tasks: Sequence[str] = TASKS, allowed: Sequence[str] = (), over: bool = True) -> str:
    """Returns the first line of the fault, or an empty text without one."""
    chosen = rules([named(task) for task in tasks], allowed)
    problems = (rule.take(report) for report in reports for rule in chosen)
    at_the_end = (rule.end() for rule in chosen if over)
    return next((str(problem).splitlines()[0] for problem in itertools.chain(problems, at_the_end) if problem), "")


def report(task: str, local: int, step: int, updates: Updates = OWN, at: float = 0.0, **fields: object) -> AuditRecord:
    return AuditRecord(named(task), local, step, updates, at=at, **fields)  # type: ignore[arg-type]


@dataclasses.dataclass
class Cluster:
    """Asynchronous workers that make one step after the other, in a given order.

    Attributes:
        batches: Batches of each worker, which repeat.
        start: Global step at the start.
        lost: Worker whose steps the global step does not count, and the interval between them.
    """

    batches: Sequence[Sequence[int]]
    start: int = 0
    lost: tuple[str, int] = ("", 1)

    def play(self, order: Iterable[int]) -> list[AuditRecord]:
        step, locals_ = self.start, [0] * len(self.batches)
        reports = [report(TASKS[worker], 0, step) for worker in range(len(self.batches))]
        for worker in order:
            locals_[worker] += 1
            local, own = locals_[worker], self.batches[worker]
            step += not (TASKS[worker] == self.lost[0] and local % self.lost[1] == 0)
            if AuditPlan.is_due(AUDITING, local):
                digest = own[(local - 1) % len(own)]
                reports.append(report(TASKS[worker], local, step, batches=(digest,), changed=True))
        return reports


AUDITING = AuditPlan(EVERY, None)  # type: ignore[arg-type]
ROUND = [0, 1, 2]
SHARDS = [range(9), range(10, 19), range(20, 29)]


@st.composite
def orders(draw: st.DrawFn) -> list[int]:
    """Draws the worker of each step; a worker may be much faster than others."""
    speeds = draw(st.lists(st.integers(1, 20), min_size=3, max_size=3))
    return [*ROUND, *random.Random(draw(st.integers(0, 2**32))).choices(ROUND, speeds, k=300)]


shards = st.integers(1, 12).map(lambda size: [range(worker * size, (worker + 1) * size) for worker in range(3)])


@given(orders(), shards, st.integers(0, 1000))
def test_a_sharded_asynchronous_training_is_sound(order: list[int], batches: list[range], start: int) -> None:
    """The speeds of the workers, the number of batches and the first global step do not matter."""
    assert found(Cluster(batches, start).play(order)) == ""


@given(orders(), st.integers(5, 40))
def test_the_same_data_in_the_same_order(order: list[int], size: int) -> None:
    batches = [range(size), range(100, 100 + size), range(size)]
    said = found(Cluster(batches).play([*ROUND * 5, *order]), over=False)
    assert said in {f"{one} and {other} train on the same data, so one of them is useless." for one, other in PAIR}


@given(orders(), st.integers(1, 4))
def test_few_batches_say_nothing(order: list[int], size: int) -> None:
    """A shard may consist of one batch, or of two or three in turn."""
    assert found(Cluster([range(size)] * 3).play(order)) == ""


@given(orders(), st.integers(2, 12), st.integers(0, 2**32))
def test_batches_that_are_drawn_from_few_coincide_by_chance(order: list[int], size: int, seed: int) -> None:
    """Workers shuffle the same few batches differently. A rule that fails once in 10^4 cases would be wrong."""
    drawn = random.Random(seed)
    batches = [[drawn.randrange(size) for _ in range(400)] for _ in range(3)]
    batches[1][0], batches[2][0] = -1, -2  # so that this test is not left to chance itself
    batches[0][0] = -3
    assert found(Cluster(batches).play(order)) == ""


@given(orders(), shards, st.sampled_from(TASKS))
def test_steps_that_are_not_counted(order: list[int], batches: list[range], loser: str) -> None:
    """All steps of a worker are lost, or one in five."""
    said = found(Cluster(batches, lost=(loser, 1)).play([*order, *ROUND * 50]))
    assert "steps of the workers are lost" in said
    some = found(Cluster(batches, lost=(loser, 5)).play(ROUND * 100))
    assert "steps of the workers are lost" in some


def counted(shown: Sequence[Sequence[bool]], batches: Sequence[Sequence[int]], uncounted: int = 0) -> list[AuditRecord]:
    """Makes the records of trainers about their batches, and of the chief about the effect of single steps."""
    own = [
        dataclasses.replace(one, updates=Updates.COUNTED, changed=None)
        for one in Cluster(batches).play(ROUND * 50)
        if one.local
    ]
    alone = [
        report(task, local, local, COUNTED, changed=one)
        for task, changed in zip(TASKS, shown, strict=True)
        for local, one in enumerate(changed, 1)
    ]
    return [*own, *alone, *([report("chief 0", 300, 900, COUNTED, uncounted=uncounted)] if uncounted else [])]


@pytest.mark.parametrize(
    ("reports", "said"),
    [
        (counted([[True] * 8] * 3, SHARDS), ""),
        (
            counted([[True] * 8, [False] * 8, [True] * 8], SHARDS),
            "Updates of worker 0 are lost: its steps leave the variables unchanged.",
        ),
        (counted([[False] * 8] * 3, SHARDS), ""),  # a learning rate of 0
        (
            counted([[True] * 8] * 3, [range(9), range(9), range(90, 99)]),
            "worker 0 and chief 0 train on the same data, so one of them is useless.",
        ),
        (
            counted([[True] * 8] * 3, SHARDS, uncounted=1),
            "1 of 300 steps of chief and workers are lost: the global step does not count them.",
        ),
    ],
)
def test_steps_that_one_process_counts(reports: list[AuditRecord], said: str) -> None:
    """No step may be lost on parameter servers of the modern path."""
    assert found(reports) == said
    assert not said or found(reports, allowed=["same-data", "lost-updates"]) == ""


def test_a_server_that_comes_back_with_a_checkpoint_loses_steps_that_were_reported() -> None:
    before = Cluster([[1], [2], [3]]).play([0, 1, 2] * 100)
    again = Cluster([[1], [2], [3]], start=100).play([0, 1, 2] * 100)
    unnoticed = [one for one in again if one.local]  # the session was not lost: the global step alone went back
    assert found(before + again) == ""
    assert found(before + [dataclasses.replace(one, local=one.local + 100) for one in unnoticed]) == ""


def test_a_worker_that_restarts_counts_anew() -> None:
    first = Cluster([[1], [2], [3]]).play([0, 1, 2] * 100)
    second = Cluster([[1], [2], [3]], start=300).play([0, 1, 2] * 100)
    restarted = [one for one in second if str(one.task) == "worker 1"]
    others = [
        dataclasses.replace(one, local=one.local + 100) for one in second if str(one.task) != "worker 1" and one.local > 8
    ]
    assert found([*first, *sorted([*restarted, *others], key=lambda one: one.step)]) == ""


def synchronous(chief: int, others: int, steps: int, share: float | None = 1.0) -> list[AuditRecord]:
    """Makes the records of a training with a fixed number of local steps for each global one."""
    made = [report(task, 0, 0, AGGREGATED, share=share) for task in TASKS]
    for step, (task, each) in itertools.product(range(1, steps), zip(TASKS, (chief, others, others), strict=True)):
        made += [
            report(task, local, step, AGGREGATED, share=share)
            for local in range((step - 1) * each + 1, step * each + 1)
            if AUDITING.is_due(local)
        ]
    return made


@pytest.mark.parametrize(
    ("chief", "others", "share", "said"),
    [
        (1, 1, 1.0, ""),
        (2, 2, 2.0, ""),  # replicas_to_aggregate is twice the number of workers
        (3, 0, 1.0, "chief 0 makes the steps of others: synchronous training is not synchronous."),
        (2, 1, None, ""),  # with a backup worker, whose steps a faster one may make
    ],
)
def test_synchronous_replicas(chief: int, others: int, share: float | None, said: str) -> None:
    assert found(synchronous(chief, others, 50, share), over=False) == said


def test_backup_workers_that_do_nothing() -> None:
    assert found(synchronous(2, 0, 50, None)) == "worker 0, worker 1 took no part in the training."


def test_tasks_that_take_no_part() -> None:
    alone = Cluster([[1], [2]]).play([0, 1] * 50)
    assert found(alone, over=False) == ""
    assert found(alone) == "worker 1 took no part in the training."
    assert found(alone, tasks=TASKS[:2]) == ""
    late = [report("chief 0", 1, 1, at=1000), report("chief 0", 900, 900, at=1119), report("worker 0", 1, 2, at=1119)]
    assert found([*late, report("worker 1", 1, 901, at=1122)], over=False) == ""
    assert found([*late, report("chief 0", 1000, 1000, at=1122)], over=False) == "worker 1 took no part in the training."


def test_updates_that_are_lost() -> None:
    def steps(task: str, changed: Sequence[bool]) -> list[AuditRecord]:
        return [report(task, local, 10 * local, changed=one) for local, one in enumerate(changed, 1)]

    lost = [False, True, True] * 6  # those of others came in between
    said = found(steps("chief 0", [True] * 18) + steps("worker 0", lost), over=False, allowed=["chief-alone"])
    assert said == "Updates of worker 0 are lost: its steps leave the variables unchanged."
    for chief_first in ([False], [False] * 8):  # the learning rate is 0 at first, for everybody
        later = steps("chief 0", chief_first + [True] * 10) + steps("worker 0", [False] * 18)
        assert found(sorted(later, key=lambda one: one.step), over=False, allowed=["chief-alone"]) == said
    warm_up = [False] * 8 + [True] * 10
    assert found(steps("chief 0", warm_up) + steps("worker 0", warm_up), allowed=["chief-alone"]) == ""
    in_time = sorted(steps("chief 0", warm_up) + steps("worker 0", [False, *warm_up]), key=lambda one: one.step)
    assert found(in_time, allowed=["chief-alone"]) == "", "a step may begin before the rate changes, and end after"
    assert found(steps("worker 0", [False] * 20), allowed=["chief-alone"]) == "", "one alone cannot be told from a rate of 0"


def mirrored(*digests: tuple[int, ...], step: int = 20) -> list[AuditRecord]:
    return [report(task, step, step, MIRRORED, variables=own) for task, own in zip(TASKS, digests, strict=False)]


@pytest.mark.parametrize(
    ("digests", "said"),
    [
        ([(1,), (1,), (1,)], ""),
        ([(1, 1), (1, 1)], ""),
        ([(1,), (1,), (2,)], "The variables of chief 0 and worker 1 have diverged at global step 20."),
        ([(1, 2)], "The variables of chief 0, replica 0 and chief 0, replica 1 have diverged at global step 20."),
    ],
)
def test_replicas(digests: list[tuple[int, ...]], said: str) -> None:
    assert found(mirrored(*digests), over=False) == said


def test_replicas_at_other_steps_and_before_a_restart_may_differ() -> None:
    assert found([*mirrored((1,), step=20), *mirrored((2,), step=30)], over=False) == ""
    again = [report(task, 0, 10, MIRRORED) for task in TASKS]
    assert found([*mirrored((1,), (1,), (1,)), *again, *mirrored((2,), (2,), (2,))]) == ""
    many = itertools.chain.from_iterable(mirrored((step,), (step,), step=step) for step in range(1, 500))
    assert found(many, over=False) == ""


@pytest.mark.parametrize(
    ("reports", "kind"),
    [
        (Cluster([range(9)] * 3).play([0, 1, 2] * 9), "same-data"),
        (synchronous(3, 0, 50), "chief-alone"),
        (Cluster([[1], [2], [3]], lost=("worker 0", 1)).play([0, 1, 2] * 50), "lost-updates"),
        (mirrored((1,), (2,), (1,)), "diverged"),
    ],
)
def test_allowed_faults_are_ignored(reports: list[AuditRecord], kind: str) -> None:
    assert found(reports, over=False) != ""
    assert found(reports, over=False, allowed=[kind]) == ""
