"""Converted scripts train as the old ones do, by the comparison of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_bridge.compat.source.fixers.conversion import convert
from tests.compat.source.fixers.test_conversion import SCRIPTS, WHOLE
from tests.running import estimator_bridge_command

RUNS = [*((name,) for name in WHOLE), ("linear", "classes"), ("linear", "numbers")]


@pytest.mark.parametrize("run", RUNS, ids="-".join)
def test_both_train_alike(run: tuple[str, ...], tmp_path: Path) -> None:
    """Losses, metrics and variables: with dropout, batch norm, a schedule and L2, or with columns and a loop over layers."""
    name, *arguments = run
    old = SCRIPTS / f"{name}.py"
    (tmp_path / "new.py").write_text(convert(old.read_text()).text)
    ended = estimator_bridge_command(
        "compare", "--out", tmp_path / "report", old, tmp_path / "new.py", *arguments, cwd=tmp_path
    )
    assert ended.code == 0, ended.out + ended.err
    assert "EQUAL. The new script trains as the old script does." in ended.out
    trains_two = run == ("linear",)
    assert ("Not compared: all from the training of a second model on." in ended.out) is trains_two
