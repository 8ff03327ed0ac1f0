"""The rounds of an elastic training on several machines: who takes part, who stands by, and who decides."""

from __future__ import annotations

import concurrent.futures
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from estimator_bridge.cluster.rendezvous import Rendezvous, TaskFailure
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher import machines as module
from estimator_bridge.launcher.launch import _following
from estimator_bridge.launcher.layout import Layout
from estimator_bridge.launcher.machines import Machines
from estimator_bridge.launcher.outcome import Outcome

HOSTS = ["a:1", "b:1", "c:1", "d:1"]
CHIEF, WORKERS = TaskId("chief", 0), [TaskId("worker", index) for index in range(3)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(module, "_BEAT_SECONDS", 0.02)


@pytest.fixture
def pool() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    with concurrent.futures.ThreadPoolExecutor(8) as executor:
        yield executor


def machine(
    folder: Path, index: int, *, allowed: tuple[int, ...] = (1, 2, 4), ready: float = 30.0, lost: float = 20.0
) -> Machines:
    folder.mkdir(exist_ok=True)
    return Machines(folder, HOSTS, HOSTS[index], allowed, ready=ready, lost=lost)


def joining(
    pool: concurrent.futures.ThreadPoolExecutor, members: list[Machines], lost: tuple[TaskId, ...] = ()
) -> list[concurrent.futures.Future[Layout | None]]:
    return [pool.submit(one.join, lambda line: None, lost) for one in members]


def names(layouts: list[concurrent.futures.Future[Layout | None]]) -> list[str]:
    made = [one.result(20) for one in layouts]
    return [str(next(iter(layout.tf_configs))) if layout else "" for layout in made]


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_machines_leave_stand_by_and_come_back(tmp_path: Path, pool: concurrent.futures.ThreadPoolExecutor) -> None:
    first = [machine(tmp_path, index) for index in range(4)]
    layouts = joining(pool, first)
    assert names(layouts) == ["chief 0", "worker 0", "worker 1", "worker 2"]
    cluster = json.loads(layouts[2].result().tf_configs[WORKERS[1]])["cluster"]  # type: ignore[union-attr]
    assert cluster == {"chief": ["a:1"], "worker": ["b:1", "c:1", "d:1"]}
    assert [one.wanted() for one in first] == [""] * 4

    # the chief's machine is lost; one of the others has seen it, three are left, of which the plan allows two
    left = first[1:]
    again = [*joining(pool, left[:1], lost=(CHIEF,)), *joining(pool, left[1:])]
    assert names(again[:2]) == ["chief 0", "worker 0"]
    assert left[0].members == left[1].members == ["b:1", "c:1"]
    assert left[0].folder != tmp_path / "round-0"
    wait_until((tmp_path / "there-2-3").exists)
    assert left[0].wanted() == "", "one that stands by is not enough for four"
    assert not again[2].done()

    # it comes back, and is the first again
    back = joining(pool, [machine(tmp_path, 0)])
    wait_until(lambda: left[1].wanted() == "more machines are there: a:1, d:1")
    more = joining(pool, left[:2])
    assert names([*back, *more, again[2]]) == ["chief 0", "worker 0", "worker 1", "worker 2"]


def test_nobody_waits_for_a_machine_whose_launcher_has_said_that_it_ends(
    tmp_path: Path, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    pair = [machine(tmp_path, index, allowed=(1, 2)) for index in range(4)]
    layouts = joining(pool, pair)
    assert names(layouts[:2]) == ["chief 0", "worker 0"]
    Rendezvous(pair[0].folder).folder.mkdir()
    Rendezvous(pair[0].folder).report_failure(WORKERS[0], TaskFailure(1.0, 143, None))
    wait_until(lambda: all((tmp_path / f"there-1-{index}").exists() for index in (2, 3)))  # both stand by
    again = joining(pool, pair[:1])
    wait_until(lambda: sum(one.done() for one in [*again, *layouts]) >= 4)
    assert pair[0].members == ["a:1", "c:1"], "one that stood by takes its place"
    pair[0].end(0)
    assert layouts[3].result(20) is None
    assert pair[3].exit_code == 0


def test_machines_that_stand_by_go_on_if_all_others_are_lost(
    tmp_path: Path, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    made = [machine(tmp_path, index, allowed=(2,), lost=0.5) for index in range(4)]
    layouts = joining(pool, made)
    assert names(layouts[:2]) == ["chief 0", "worker 0"]
    wait_until(lambda: all(one.done() for one in layouts))
    assert made[2].members == made[3].members == ["c:1", "d:1"]


def test_a_training_begins_with_those_that_come_in_time(tmp_path: Path, pool: concurrent.futures.ThreadPoolExecutor) -> None:
    assert names(joining(pool, [machine(tmp_path, index, ready=0.3) for index in (1, 3)])) == ["chief 0", "worker 0"]
    with pytest.raises(BridgeError, match="Too few machines"):
        machine(tmp_path / "other", 2, allowed=(2, 4), ready=0.1).join(lambda line: None)
    assert not list((tmp_path / "other").glob("there-*")), "it does not wait any more"


def test_the_end_of_a_training(tmp_path: Path) -> None:
    alone = machine(tmp_path, 0, ready=0.1)
    assert alone.join(lambda line: None) is not None
    alone.end(1)
    assert machine(tmp_path, 0, ready=0.1).join(lambda line: None) is not None, "a failed one may begin again"
    alone.end(0)
    with pytest.raises(BridgeError, match="has ended"):
        machine(tmp_path, 0).join(lambda line: None)


def test_a_round_that_others_want_is_followed_however_many_had_no_step(tmp_path: Path) -> None:
    """Machines that come one after the other, each before the first step, are no end of the training; a loss after a loss is."""
    alone = machine(tmp_path, 0, ready=0.1)
    assert alone.join(lambda line: None) is not None
    lost = Outcome(1, BridgeError("Lost."), lost=[WORKERS[0]])
    said: list[str] = []

    def say(task: str, line: str) -> None:
        said.append(line)

    assert _following(alone, lost, say, in_vain=3) is None
    assert not said
    assert _following(alone, Outcome(0, workers=1), say, in_vain=3) is not None
    assert _following(alone, lost, say, in_vain=2) is not None
    assert said == ["Lost. The training goes on with the machines that are there"]


def test_a_machine_that_was_killed_while_it_stood_by_is_soon_not_there(tmp_path: Path) -> None:
    one = machine(tmp_path, 0, allowed=(1, 2), ready=0.05, lost=0.3)
    assert one.join(lambda line: None) is not None
    (tmp_path / "there-1-2").write_text("1")
    assert one.wanted() == "more machines are there: c:1"
    wait_until(lambda: one.wanted() == "")


def test_a_full_disk_ends_no_training_and_nobody_waits_unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = machine(tmp_path, 0, ready=0.1)
    assert one.join(lambda line: None) is not None

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    time.sleep(0.05)
    assert one.wanted() == ""
    with pytest.raises(BridgeError, match="cannot be told"):
        one.join(lambda line: None)


def test_the_first_decision_counts(tmp_path: Path) -> None:
    """Two launchers may both find themselves the first if a network file system shows one of them late."""
    one = machine(tmp_path, 1, ready=0.0)
    (tmp_path / "round-0.json").write_text(json.dumps(["c:1", "d:1"]))
    one._round = 0
    one._decide(["b:1"], is_late=True)
    assert json.loads((tmp_path / "round-0.json").read_text()) == ["c:1", "d:1"]
    assert [file.name for file in tmp_path.iterdir()] == ["round-0.json"]
