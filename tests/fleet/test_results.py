"""Stages, waivers and the history of a fleet."""

from __future__ import annotations

import datetime
import errno
import os
from pathlib import Path

import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.fleet.plan import Pipeline, Waiver
from estimator_bridge.fleet.results import Result, Stage, add_to_history, judge, key_of, read_results, write_result

TODAY = datetime.date(2026, 12, 1)
ONE = Pipeline("ads", "train.py")
WAIVED = Pipeline("ads", "train.py", waivers=(Waiver("metric", "AUC of 200 bins", datetime.date(2026, 12, 1)),))


def result(code: int, *findings: str, message: str = "") -> Result:
    return Result(key_of(ONE), code, "", message, findings)


@pytest.mark.parametrize(
    ("pipeline", "found", "human", "stage"),
    [
        (ONE, None, False, Stage.CHECKED),
        (ONE, None, True, Stage.HUMAN),
        (ONE, result(0), True, Stage.EQUAL),
        (ONE, result(1, "metric"), False, Stage.MODERN),
        (ONE, result(2, "calls", message="The modern side could not run train.py"), False, Stage.RUNS),
        (ONE, result(2, "calls", message="The legacy side could not run train.py"), False, Stage.CHECKED),
        (Pipeline("ads", "train.py", signed_off="R. Roe"), result(0), False, Stage.DONE),
        (Pipeline("ads", "train.py", signed_off="R. Roe"), result(1, "loss"), False, Stage.MODERN),
        (WAIVED, result(1, "metric", "metric"), False, Stage.EQUAL),
        (WAIVED, result(1, "metric", "loss"), False, Stage.MODERN),
        (WAIVED, result(2, "metric"), False, Stage.CHECKED),
    ],
)
def test_stages(pipeline: Pipeline, found: Result | None, human: bool, stage: Stage) -> None:
    assert judge(pipeline, found, human, TODAY)[0] is stage


def test_a_rewrite_that_is_equal_is_on_keras() -> None:
    one = Pipeline("ads", "train.py", rewrite="new.py")
    assert judge(one, Result(key_of(one), 0, "equal"), False, TODAY)[0] is Stage.KERAS


def test_a_waiver_counts_until_its_last_day_and_its_end_is_said() -> None:
    assert judge(WAIVED, result(1, "metric"), False, TODAY) == (Stage.EQUAL, "waived until 2026-12-01: AUC of 200 bins")
    stage, note = judge(WAIVED, result(1, "metric"), False, TODAY + datetime.timedelta(1))
    assert stage is Stage.MODERN
    assert note == "the waiver of 2026-12-01 has expired: AUC of 200 bins"


def test_a_result_of_another_row_no_longer_counts() -> None:
    other = Pipeline("ads", "train.py", ("--fast",))
    assert judge(other, result(0), False, TODAY) == (
        Stage.CHECKED,
        "the script, its row or its data changed since the comparison",
    )


def test_a_folder_of_data_that_may_not_be_entered_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its names may be listed, but not looked at; root may, so the refusal is made here."""
    (tmp_path / "rows.csv").touch()
    pipeline = Pipeline("ads", "train.py", data=(str(tmp_path),))
    key_of(pipeline)
    look = Path.stat

    def refuse(path: Path, **options: bool) -> os.stat_result:
        if path.parent == tmp_path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path, **options)

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(BridgeError, match="cannot be looked at") as refusal:
        key_of(pipeline)
    assert f"ads: {tmp_path / 'rows.csv'}: Permission denied" in str(refusal.value)


def test_a_link_to_nothing_among_the_data_is_skipped(tmp_path: Path) -> None:
    pipeline = Pipeline("ads", "train.py", data=(str(tmp_path),))
    before = key_of(pipeline)
    (tmp_path / "link").symlink_to("nothing")
    assert key_of(pipeline) == before
    (tmp_path / "rows.csv").touch()
    assert key_of(pipeline) != before


def test_results_come_back(tmp_path: Path) -> None:
    write_result(tmp_path, ONE, result(1, "metric"))
    assert read_results(tmp_path, [ONE]) == {"ads": result(1, "metric")}


@pytest.mark.parametrize("content", ["", "[]", '{"key": 1}', "{" * 100_000])
def test_damaged_results_are_said(tmp_path: Path, content: str) -> None:
    (tmp_path / "ads").mkdir()
    (tmp_path / "ads" / "result.json").write_text(content)
    with pytest.raises(BridgeError, match="A file of results is damaged"):
        read_results(tmp_path, [ONE])


def test_a_day_counts_once_in_the_history(tmp_path: Path) -> None:
    first = datetime.datetime(2026, 12, 1, 8, tzinfo=datetime.timezone.utc)
    add_to_history(tmp_path, {"a": Stage.CHECKED, "b": Stage.CHECKED}, first)
    add_to_history(tmp_path, {"a": Stage.EQUAL, "b": Stage.CHECKED}, first.replace(hour=20))
    days = add_to_history(tmp_path, {"a": Stage.EQUAL, "b": Stage.EQUAL}, first.replace(day=2))
    assert days == [
        {"date": "2026-12-01", "counts": {"equal": 1, "checked": 1}},
        {"date": "2026-12-02", "counts": {"equal": 2}},
    ]
