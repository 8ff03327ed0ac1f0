from __future__ import annotations

import json
import math
import os
import pathlib
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.report.summary import render_json
from estimator_bridge.parity.report.write import Summaries, replace_report, write_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from estimator_bridge.parity.result import ParityResult


def _content(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(constant)


class Failing:
    """The real function until its ``nth`` call, which fails as a full disk does."""

    def __init__(self, real: Callable[..., Any], nth: int, error: BaseException) -> None:
        self.real, self.nth, self.error, self.calls = real, nth, error, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls == self.nth:
            raise self.error
        return self.real(*args, **kwargs)


def _inject(monkeypatch: pytest.MonkeyPatch, where: str, nth: int, error: BaseException) -> Failing:
    owner: Any = pathlib.Path if where == "replace" else os
    failing = Failing(getattr(owner, where), nth, error)

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        # A function, which binds as a method of Path where an object that is only callable would not.
        return failing(*args, **kwargs)

    monkeypatch.setattr(owner, where, stand_in)
    return failing


def test_both_files_appear_in_a_new_folder(tmp_path: pathlib.Path, equal_run: ParityResult) -> None:
    folder = tmp_path / "a" / "b"
    write_report(equal_run, folder)
    content = _content(folder)
    assert sorted(content) == ["report.html", "report.json"]
    assert content["report.html"].startswith(b"<!doctype html>")
    assert content["report.html"].rstrip().endswith(b"</html>")
    assert json.loads(content["report.json"])["verdict"] == "equal"


def test_a_report_can_be_read_by_others(tmp_path: pathlib.Path, equal_run: ParityResult) -> None:
    (tmp_path / "plain").write_text("", encoding="utf-8")
    write_report(equal_run, tmp_path)
    assert (tmp_path / "report.html").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_report_replaces_the_one_before_and_touches_nothing_else(
    tmp_path: pathlib.Path, equal_run: ParityResult, different_run: ParityResult
) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    write_report(equal_run, tmp_path)
    write_report(different_run, tmp_path)
    assert sorted(_content(tmp_path)) == ["mine.txt", "report.html", "report.json"]
    assert json.loads(_content(tmp_path)["report.json"])["verdict"] == "different"


def test_a_report_of_the_first_versions_is_replaced(
    tmp_path: pathlib.Path, equal_run: ParityResult, different_run: ParityResult
) -> None:
    write_report(equal_run, tmp_path)
    old = {name: value for name, value in json.loads(_content(tmp_path)["report.json"]).items() if name != "generator"}
    (tmp_path / "report.json").write_text(json.dumps(old), encoding="utf-8")
    write_report(different_run, tmp_path)
    assert json.loads(_content(tmp_path)["report.json"])["verdict"] == "different"


@pytest.fixture
def summaries(tmp_path: pathlib.Path) -> Summaries:
    return Summaries(tmp_path / "ci" / "parity.xml", tmp_path / "ci" / "parity.md")


def test_summaries_are_written_with_the_report_and_replaced(
    tmp_path: pathlib.Path, summaries: Summaries, equal_run: ParityResult, different_run: ParityResult
) -> None:
    write_report(equal_run, tmp_path / "report", summaries)
    write_report(different_run, tmp_path / "report", summaries)
    assert sorted(_content(tmp_path / "report")) == ["report.html", "report.json"]
    content = _content(tmp_path / "ci")
    assert b"<failure " in content["parity.xml"]
    assert b"**DIFFERENT**" in content["parity.md"]
    assert sorted(content) == ["parity.md", "parity.xml"]


def test_a_failure_replaces_a_summary_without_a_report(
    tmp_path: pathlib.Path, summaries: Summaries, equal_run: ParityResult, different_run: ParityResult
) -> None:
    write_report(equal_run, tmp_path / "elsewhere", summaries)
    replace_report(different_run, tmp_path / "report", summaries)
    assert b"<failure " in _content(tmp_path / "ci")["parity.xml"]


@pytest.mark.parametrize("name", ["parity.xml", "parity.md"])
def test_a_summary_of_others_is_kept_and_nothing_is_written(
    name: str, tmp_path: pathlib.Path, summaries: Summaries, equal_run: ParityResult
) -> None:
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / name).write_text("mine", encoding="utf-8")
    with pytest.raises(BridgeError, match=f"{name} was not written by estimator-bridge"):
        write_report(equal_run, tmp_path / "report", summaries)
    assert _content(tmp_path / "ci") == {name: b"mine"}
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_fault_leaves_all_four_files_as_they_were(
    nth: int,
    tmp_path: pathlib.Path,
    summaries: Summaries,
    equal_run: ParityResult,
    different_run: ParityResult,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_report(equal_run, tmp_path / "report", summaries)
    before = _content(tmp_path / "ci") | _content(tmp_path / "report")
    _inject(monkeypatch, "replace", nth, OSError(28, "No space left on device"))
    with pytest.raises(BridgeError, match="No space left on device"):
        write_report(different_run, tmp_path / "report", summaries)
    assert _content(tmp_path / "ci") | _content(tmp_path / "report") == before


FAULTS = [(where, nth) for where, calls in (("fsync", 2), ("replace", 2)) for nth in range(1, calls + 1)]


@pytest.mark.parametrize(("where", "nth"), FAULTS)
def test_a_fault_leaves_the_report_before_whole(
    where: str,
    nth: int,
    tmp_path: pathlib.Path,
    equal_run: ParityResult,
    different_run: ParityResult,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_report(equal_run, tmp_path)
    before = _content(tmp_path)
    failing = _inject(monkeypatch, where, nth, OSError(28, "No space left on device"))
    with pytest.raises(BridgeError, match="No space left on device") as caught:
        write_report(different_run, tmp_path)
    assert failing.calls >= nth
    assert caught.value.exit_code == 2
    assert _content(tmp_path) == before


@pytest.mark.parametrize(("where", "nth"), FAULTS)
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_fault_in_a_new_folder_leaves_nothing(
    where: str, nth: int, error: BaseException, tmp_path: pathlib.Path, equal_run: ParityResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    _inject(monkeypatch, where, nth, error)
    with pytest.raises((BridgeError, KeyboardInterrupt)):
        write_report(equal_run, tmp_path / "a" / "b")
    assert _content(tmp_path) == {}


def test_a_system_that_cannot_sync_folders_still_gets_its_report(
    tmp_path: pathlib.Path, equal_run: ParityResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    _inject(monkeypatch, "fsync", 3, OSError(22, "Invalid argument"))
    write_report(equal_run, tmp_path)
    assert sorted(_content(tmp_path)) == ["report.html", "report.json"]


def _below_a_file(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "file").write_text("", encoding="utf-8")
    return tmp_path / "file" / "parity"


def _is_a_file(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "file").write_text("", encoding="utf-8")
    return tmp_path / "file"


def _link_to_nowhere(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    return tmp_path / "link"


def _name_too_long(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "new" / ("x" * 300)


def _target_is_a_folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "report.json").mkdir()
    return tmp_path


@pytest.mark.parametrize("place", [_below_a_file, _is_a_file, _link_to_nowhere, _name_too_long, _target_is_a_folder])
def test_a_place_that_cannot_be_written_is_refused_by_name(
    place: Callable[[pathlib.Path], pathlib.Path], tmp_path: pathlib.Path, equal_run: ParityResult
) -> None:
    folder = place(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BridgeError) as caught:
        write_report(equal_run, folder)
    message = str(caught.value)
    assert str(folder) in message
    assert "expected:" in message
    assert "--out" in message
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_a_file_of_the_users_is_kept_whole(name: str, tmp_path: pathlib.Path, equal_run: ParityResult) -> None:
    (tmp_path / name).write_text("<title>my results, by the generator of estimator-bridge users</title>", encoding="utf-8")
    before = _content(tmp_path)
    for write in (write_report, replace_report):
        with pytest.raises(BridgeError, match=f"{name} was not written by estimator-bridge") as caught:
            write(equal_run, tmp_path)
        assert "--out" in str(caught.value)
        assert _content(tmp_path) == before


def test_what_is_replaced_is_a_report(
    tmp_path: pathlib.Path, equal_run: ParityResult, different_run: ParityResult, hostile_run: ParityResult
) -> None:
    replace_report(different_run, tmp_path / "new")
    assert _content(tmp_path) == {}
    for result in (hostile_run, equal_run, different_run):  # each is known by the next as a report
        write_report(result, tmp_path)
    (tmp_path / "report.json").unlink()
    replace_report(equal_run, tmp_path)
    assert json.loads(_content(tmp_path)["report.json"])["verdict"] == "equal"
    assert b"<title>Equal" in _content(tmp_path)["report.html"]


@pytest.mark.parametrize("name", ["empty_run", "equal_run", "different_run", "broken_run", "hostile_run"])
def test_the_json_is_strict_and_says_all_of_the_result(name: str, request: pytest.FixtureRequest) -> None:
    result: ParityResult = request.getfixturevalue(name)
    content = json.loads(render_json(result), parse_constant=_refuse)
    expected = json.loads(json.dumps(result.as_dict()), parse_constant=lambda constant: constant)
    summary = content.pop("summary")
    assert content == expected
    assert summary["num_steps"] == len(result.losses)


def test_numbers_that_are_not_finite_read_back(broken_run: ParityResult) -> None:
    content = json.loads(render_json(broken_run))
    assert (content["losses"][-1]["legacy"], content["losses"][30]["modern"]) == ("NaN", "-Infinity")
    assert math.isnan(float(content["metrics"][0]["legacy"]))
    assert float(content["metrics"][0]["modern"]) == math.inf
    assert content["summary"]["max_abs_diff"] == "NaN"
