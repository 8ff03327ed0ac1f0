"""Faults that nobody notices: what each trainer reports of itself, what the chief reports of all, and a real cluster with three of them."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import estimator_bridge
from estimator_bridge.cluster.audit_records import FIRST, KINDS, AuditPlan, AuditRecord
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.audit.audit import Audit, AuditRequest
from estimator_bridge.launcher.launch import LaunchResult, launch, local_layouts
from estimator_bridge.launcher.outcome import Timeouts
from estimator_bridge.launcher.processes.task import State
from tests.modern import jobs  # noqa: F401 -- installs the legacy path

from estimator_bridge.modern.distribution.parameter_server_audit import BatchReport, EffectReport  # isort: skip
from estimator_bridge.modern.distribution.worker_feed import Feed, take  # isort: skip

pytestmark = pytest.mark.timeout(900)
JOB = Path(__file__).with_name("faulty_workers.py")
LONG = 500_000  # steps, of which the audit needs twenty-one


@dataclasses.dataclass
class Ended:
    """A launch that is over, with what its tasks reported."""

    launched: LaunchResult
    output: str
    reported: Path

    def judged(self, allowed: Sequence[str]) -> str:
        """The first line of what is wrong."""
        members = [TaskId("chief", 0), *(TaskId("worker", index) for index in range(3))]
        problem = Audit(AuditPlan(1, self.reported), members, allowed).check(is_over=True)
        return str(problem).splitlines()[0]


Run = Callable[..., Ended]


@pytest.fixture(scope="module")
def run(_warm_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    def launched(plan: str, workers: int, steps: int, audit: AuditRequest | None) -> Ended:
        folder, stream = tmp_path_factory.mktemp(plan), io.StringIO()
        reported = folder / "rendezvous"
        arguments = ["-m", "estimator_bridge", "run", "--path", "modern", str(JOB), str(folder / "model"), plan, str(steps)]
        layouts, preload = local_layouts({"chief": 1, "worker": workers, "ps": 1}), "estimator_bridge.script.preloaded"
        ended = launch(
            layouts, arguments, folder / "logs", Timeouts(ready=300, stall=600, restarts=0), stream, preload, audit, reported
        )
        return Ended(ended, stream.getvalue(), reported)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.executable", _warm_python)
        patched.setenv("PYTHONPATH", str(Path(estimator_bridge.__file__).parents[1]))
        yield launched


@pytest.fixture(scope="module")
def audited(run: Run) -> Ended:
    """Three faults, of which the audit is to end the training for one."""
    return run("planted", 3, LONG, AuditRequest(allowed=["same-data"]))


def test_it_ends_while_it_trains_and_says_why(audited: Ended) -> None:
    assert audited.launched.outcome.code == 1, audited.output
    assert {task.state for task in audited.launched.tasks if task.name.job == "chief"} == {State.STOPPED}, (
        "it was still training"
    )
    said = str(audited.launched.outcome.problem).splitlines()[0]
    assert said == "Updates of worker 2 are lost: its steps leave the variables unchanged."


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("same-data", r"(worker|chief) 0 and (chief|worker) 0 train on the same data, so one of them is useless\."),
        ("chief-alone", r"worker 1 took no part in the training\."),
        ("lost-updates", r"Updates of worker 2 are lost: its steps leave the variables unchanged\."),
        ("diverged", "None"),  # there is one copy of the variables
    ],
)
def test_each_fault_is_found_in_what_was_reported(audited: Ended, kind: str, said: str) -> None:
    assert re.fullmatch(said, audited.judged([other for other in KINDS if other != kind]))


@pytest.mark.once
def test_without_the_audit_the_faults_go_unnoticed(run: Run) -> None:
    """The faults are planted well: without the audit the training ends without an error."""
    ended = run("planted", 3, 60, None)
    assert (ended.launched.outcome.code, ended.launched.outcome.problem) == (0, None), ended.output


def test_a_sound_training(run: Run) -> None:
    ended = run("sound", 1, 300, AuditRequest(every=20))
    assert ended.launched.outcome.code == 0, ended.output
    assert re.search(r"audit: no fault found; audited steps: \d+ of worker 0, \d+ of chief 0", ended.output)


TRAINERS = [TaskId("chief", 0), TaskId("worker", 0), TaskId("worker", 1)]


class Trainers:
    """Each makes a step when it is its turn, which changes the variables and counts, unless it is as the test wants it."""

    def __init__(self, folder: Path, idle: int = -1, without_effect: int = -1) -> None:
        self.step = self.variables = 0
        self.turns: list[int] = []
        self.effects = EffectReport(AuditPlan(10, folder), TRAINERS, lambda: self.variables)
        self._idle, self._without_effect = idle, without_effect

    def train(self, limit: int) -> None:
        for place, step in self.effects.turns(self.step, limit, lambda: self.step):
            assert step == self.step
            self.turns.append(place)
            self.step += place != self._idle
            self.variables += place not in (self._idle, self._without_effect)


def reports(folder: Path, task: str = "chief-0") -> list[AuditRecord]:
    file = folder / f"{task}.audit.jsonl"
    return [AuditRecord.from_json(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_each_has_its_turn_at_first_and_then_one_of_them_now_and_then(tmp_path: Path) -> None:
    trainers = Trainers(tmp_path)
    trainers.train(2)
    assert trainers.turns == [0, 1], "no step is made beyond the limit"
    trainers.train(1000)
    assert trainers.turns == [0, 1, 2] * FIRST
    for step, turns in ((24 + 28, 0), (24 + 29, 1), (24 + 30, 1), (24 + 59, 2)):  # one for ten steps of each of the three
        trainers.step = step
        trainers.train(1000)
        assert len(trainers.turns) == 3 * FIRST + turns
    assert trainers.turns[-2:] == [0, 1]


def test_the_chief_reports_trainers_whose_steps_have_no_effect(tmp_path: Path) -> None:
    """A trainer that makes no steps is not reported."""
    Trainers(tmp_path, idle=1, without_effect=2).train(1000)
    told = [(str(report.task), report.local, report.changed) for report in reports(tmp_path)]
    assert told == [each for turn in range(1, FIRST + 1) for each in (("chief 0", turn, True), ("worker 1", turn, False))]


def test_steps_that_are_not_counted_are_told(tmp_path: Path) -> None:
    """A worker that is lost has made more than we know of."""
    effects = Trainers(tmp_path).effects
    effects.count(made=40, before=100, after=140)
    effects.count(made=39, before=140, after=180)
    assert reports(tmp_path) == []
    effects.count(made=41, before=180, after=220)
    [report] = reports(tmp_path)
    assert (str(report.task), report.step, report.local, report.uncounted) == ("chief 0", 220, 41, 1)


def test_a_trainer_tells_of_each_batch_once_and_of_equal_ones_alike(tmp_path: Path) -> None:
    def train(index: int, batches: Sequence[tuple[float, bytes]]) -> None:
        feed = Feed(f"worker {index}", BatchReport(AuditPlan(500, tmp_path), TaskId("worker", index)))
        dataset = tf.data.Dataset.from_tensor_slices(tuple(map(np.array, zip(*batches, strict=True))))
        feed.publish(iter(dataset))
        for unused, ticket in [(True, -1), (True, -1), (False, 7), (True, -1), (False, 0)]:  # the chief's steps may have none
            take(unused, tf.constant(ticket, tf.int64), dataset.element_spec)

    train(0, [(1.0, b"a"), (2.0, b"b"), (3.0, b"c")])
    train(1, [(1.0, b"a"), (2.0, b"x"), (3.0, b"c")])
    one, other = (reports(tmp_path, f"worker-{index}") for index in range(2))
    assert [(report.local, report.step) for report in one] == [(1, 8), (2, 8)]
    assert [a.batches == b.batches for a, b in zip(one, other, strict=True)] == [True, False]
