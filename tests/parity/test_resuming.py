"""A comparison that ended too early goes on with the sides that have not ended."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity import run
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import Thresholds
from estimator_bridge.parity.resuming import remember, resumed_folder, seconds_of_ended
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.side import Order
from estimator_bridge.script.run import Script

VERSIONS = {"tensorflow": "2.21.0"}
JOB = Path(__file__).parents[1] / "data" / "small_job.py"


@pytest.fixture
def orders(tmp_path: Path) -> dict[str, Order]:
    """The orders of two sides that have ended; the script has imported a module of the user's."""
    (tmp_path / "sides").mkdir()
    for name in ("train.py", "model.py"):
        (tmp_path / name).write_text("")
    script = Script(str(tmp_path / "train.py"))
    orders = {side: Order(side, str(tmp_path / "sides"), script, True, 1) for side in ("legacy", "modern")}
    for side, order in orders.items():
        order.trace(side).make()
        order.trace(side).write("imported", files=[str(tmp_path / "model.py")])
        remember(order, VERSIONS, 12.5)
    return orders


def test_a_side_that_has_ended_is_known(orders: dict[str, Order]) -> None:
    assert [seconds_of_ended(order, VERSIONS) for order in orders.values()] == [12.5, 12.5]


@pytest.mark.parametrize("name", ["train.py", "model.py"])
def test_an_edited_file_of_the_script_runs_both_sides_again(
    orders: dict[str, Order], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("edited = True\n")
    assert [seconds_of_ended(order, VERSIONS) for order in orders.values()] == [None, None]
    assert f"{tmp_path / name} has changed" in capsys.readouterr().err
    assert not list((tmp_path / "sides").iterdir())  # the modern side's batches were the old recording's


@pytest.mark.parametrize(
    "change",
    [
        lambda order: dataclasses.replace(order, steps=5),
        lambda order: dataclasses.replace(order, replicas=2),
        lambda order: dataclasses.replace(order, script=dataclasses.replace(order.script, args=("--train_steps=5",))),
    ],
)
def test_another_order_runs_a_side_again(orders: dict[str, Order], change: Callable[[Order], Order]) -> None:
    assert seconds_of_ended(change(orders["modern"]), VERSIONS) is None
    assert seconds_of_ended(orders["legacy"], VERSIONS) == 12.5  # its recording stays


def test_a_rewrite_that_changes_does_not_run_the_old_script_again(orders: dict[str, Order], tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text("")
    plan = RewritePlan(Script(str(tmp_path / "new.py")))
    asked = [dataclasses.replace(orders["legacy"], side=side, plan=plan) for side in ("legacy", "new")]
    for order in asked:
        order.trace(order.side).make()
        remember(order, VERSIONS, 12.5)

    (tmp_path / "new.py").write_text("edited = True\n")
    assert [seconds_of_ended(order, VERSIONS) for order in asked] == [12.5, None]

    moved = dataclasses.replace(asked[0], plan=RewritePlan(Script(str(tmp_path / "other.py"), ("--flag",))))
    assert seconds_of_ended(moved, VERSIONS) == 12.5
    decided = dataclasses.replace(
        plan, given=(("old", "new"),), accept_order=True, adapt="module:function", forget_bias=(("rnn", 0.0),)
    )
    assert seconds_of_ended(dataclasses.replace(asked[0], plan=decided), VERSIONS) == 12.5, "what only the new script needs"
    assert seconds_of_ended(dataclasses.replace(moved, plan=dataclasses.replace(plan, anchor=1)), VERSIONS) is None


def test_a_recording_without_a_step_is_refused(tmp_path: Path) -> None:
    """A rewrite would end with an error of its own: there is no value to start from."""
    old = Trace(tmp_path)
    old.make()
    old.write("train", call="train-0", max_steps=10, estimator="Estimator")
    with pytest.raises(BridgeError, match="trained no step") as caught:
        run.check_has_trained(old)
    assert caught.value.received == "train-0 up to step 10 that ended at once"

    old.write("step", call="train-0", step=11, loss=1.0, batch=0)
    run.check_has_trained(old)


def test_another_tensorflow_runs_a_side_again(orders: dict[str, Order]) -> None:
    assert seconds_of_ended(orders["legacy"], {"tensorflow": "2.15.1"}) is None


def test_a_recording_of_an_older_estimator_bridge_is_made_again(
    orders: dict[str, Order], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The judge ended with a KeyError where it lacked something."""
    mark = tmp_path / "sides" / "legacy.ended.json"
    mark.write_text(json.dumps({name: value for name, value in json.loads(mark.read_text()).items() if name != "form"}))
    assert seconds_of_ended(orders["legacy"], VERSIONS) is None
    assert "an older estimator-bridge recorded it" in capsys.readouterr().err


def test_what_an_unfinished_side_left_is_removed(orders: dict[str, Order], tmp_path: Path) -> None:
    (tmp_path / "sides" / "modern.ended.json").unlink()
    assert seconds_of_ended(orders["modern"], VERSIONS) is None
    assert not (tmp_path / "sides" / "modern").exists()
    assert seconds_of_ended(orders["legacy"], VERSIONS) == 12.5


def test_a_folder_of_the_users_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BridgeError, match="does not write among other files"), resumed_folder(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BridgeError, match="cannot be written"), resumed_folder(tmp_path / "file"):
        pass


def test_two_comparisons_never_share_a_folder(tmp_path: Path) -> None:
    with (
        resumed_folder(tmp_path / "sides"),
        pytest.raises(BridgeError, match="Another comparison"),
        resumed_folder(tmp_path / "sides"),
    ):
        pass


@pytest.mark.slow
def test_a_killed_comparison_goes_on_and_its_verdict_is_that_of_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = Script(str(shutil.copy(JOB, tmp_path)), ("--train_steps=3",))
    started: list[str] = []

    def killed(order: Order) -> list[str]:
        started.append(order.side)
        return ["false"] if order.side == "modern" and started.count("modern") == 1 else command(order)

    command = run.side_command
    monkeypatch.setattr(run, "side_command", killed)
    recordings = run.Recordings(resumed=tmp_path / "recordings")
    with pytest.raises(BridgeError, match="modern side could not run"):
        run.compare(script, recordings=recordings)
    result = run.compare(script, recordings=recordings)
    assert started == ["legacy", "modern", "modern"]
    assert result.verdict == "equal"
    assert "it does not run again" in capsys.readouterr().err
    unlimited = run.compare(script, recordings=recordings, thresholds=Thresholds(abs=1.0))
    assert started == ["legacy", "modern", "modern"]  # another threshold needs no run
    assert unlimited.losses == result.losses == run.compare(script).losses
