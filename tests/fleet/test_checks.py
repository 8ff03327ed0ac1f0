"""Scripts of a fleet are judged by several processes, and each module is read once."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_bridge.compat.source.reading import Source, read_source
from estimator_bridge.fleet import checks
from estimator_bridge.fleet.plan import Pipeline
from tests.running import write

GONE = "import tensorflow as tf\ntf.contrib.learn.Nothing()\n"


def make_fleet(folder: Path, size: int) -> list[Pipeline]:
    """Makes scripts that share a module: those with an even number need a human, and so does the module's function, which odd ones call."""
    write(folder / "shared.py", "import tensorflow as tf\nold = lambda: tf.contrib.learn.Gone()\n")
    for number in range(size):
        write(folder / f"{number}.py", GONE if number % 2 == 0 else "import shared\nshared.old()\n")
    return [Pipeline(str(number), f"{number}.py", folder=folder) for number in range(size)]


def test_many_scripts_are_judged_in_their_order_by_several_processes(tmp_path: Path) -> None:
    found = checks.find_blockers(make_fleet(tmp_path, 20))
    symbols = [[one.split(": ")[0].rpartition("/")[2] + " " + one.split(": ")[1] for one in blockers] for blockers in found]
    assert symbols == [
        [f"{number}.py:2 tf.contrib.learn.Nothing"] if number % 2 == 0 else ["shared.py:2 tf.contrib.learn.Gone"]
        for number in range(20)
    ]


def test_a_module_that_several_scripts_import_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def count(content: bytes, path: str) -> Source:
        read.append(Path(path).name)
        return read_source(content, path)

    monkeypatch.setattr("estimator_bridge.compat.source.forecast.read_source", count)
    assert all(checks.find_blockers(make_fleet(tmp_path, 4)))
    assert sorted(read) == ["0.py", "1.py", "2.py", "3.py", "shared.py"]


def test_a_script_that_changes_is_read_again(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 1)
    assert checks.find_blockers(fleet) != [[]]
    write(tmp_path / "0.py", "x = 1\n")
    assert checks.find_blockers(fleet) == [[]]
