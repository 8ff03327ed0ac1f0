"""What scripts of 2019 do with pandas, PyYAML and NumPy, with the results of pandas 1.3.5, PyYAML 5.4.1 and NumPy 1.18.5."""

from __future__ import annotations

import contextlib
import sys
import types
from pathlib import Path

import pandas
import pytest

from estimator_bridge.legacy.removed_names import pandas_columns
from estimator_bridge.legacy.removed_names.old_libraries import OldLibraries
from tests.running import Ended, estimator_bridge_command

DATA = Path(__file__).parents[2] / "data"
RECORDED = Path(__file__).parents[2] / "golden" / "pandas_columns.txt"
"""What ``pandas_columns.py`` prints with pandas 1.3.5."""


@pytest.fixture(scope="module")
def ended() -> Ended:
    done = estimator_bridge_command("run", "old_libraries.py", cwd=DATA)
    assert done.code == 0, done.err
    return done


def test_results(ended: Ended) -> None:
    assert ended.last_line == {
        "append": [[1, 2, 3], [0, 1, 2]],
        "row": [[1, 2, 9], ["int64"]],
        "series": [1, 2, 1, 2],
        "iteritems": ["a"],
        "drop": ["a"],
        "dummies": "uint8",
        "object": "object",
        "read": [[1, 2], [3, 4]],
        "squeezed": [1, 3],
        "whitespace": ["a", "b"],
        "written": [8, 4],
        "yaml": {"rate": 0.5},
        "ragged": ["object", [[1, 2], [3]]],
        "several columns": 2,  # of a copy, in pandas 1.3 with a warning
        "stacked": [[0.0, 1.0], [["1"], ["2"]], [[1]]],  # NumPy 1.18.5's
    }


def test_it_says_so(ended: Ended) -> None:
    assert "old_libraries.py:31: an array of lists of different lengths" in ended.err
    assert "old_libraries.py:33: np.hstack of a generator; write np.hstack(list(...))" in ended.err


@pytest.mark.skipif(int(pandas.__version__.partition(".")[0]) < 3, reason="pandas 2 still changes the frame")
def test_an_assignment_without_effect_is_an_error() -> None:
    done = estimator_bridge_command("run", "chained_assignment.py", cwd=DATA)
    assert done.code == 1
    assert "ChainedAssignmentError" in done.err


def test_a_change_of_a_column_changes_its_frame() -> None:
    done = estimator_bridge_command("run", "pandas_columns.py", cwd=DATA)
    assert (done.code, done.out) == (0, RECORDED.read_text()), done.err


@pytest.mark.skipif(int(pandas.__version__.partition(".")[0]) < 3, reason="pandas 2 still changes the frame")
def test_a_change_of_a_column_that_its_frame_has_replaced_is_refused() -> None:
    done = estimator_bridge_command("run", "replaced_column.py", cwd=DATA)
    assert done.code == 1
    assert "use frame.loc[rows, 'a']" in done.err


@pytest.mark.skipif(int(pandas.__version__.partition(".")[0]) < 3, reason="pandas 2 still changes the frame")
def test_a_column_that_another_package_takes_stays_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pandas_columns, "is_users", lambda file: False)
    with contextlib.ExitStack() as stack:
        pandas_columns.adapt_columns(stack, pandas)
        frame = pandas.DataFrame({"a": [1.0, 2.0]})
        column = frame["a"]
        column[0] = 5.0
    assert frame["a"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("file", ["yaml.py", None])
def test_a_module_of_the_script_that_has_a_librarys_name_stays_as_it_is(
    file: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = types.ModuleType("yaml")
    if file:
        (tmp_path / file).touch()
        own.__file__ = str(tmp_path / file)
    monkeypatch.setitem(sys.modules, "yaml", own)

    with OldLibraries() as libraries:
        libraries.adapt("yaml")

    assert not hasattr(own, "load")
