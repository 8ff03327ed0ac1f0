"""On real parameter servers variables start, are saved and are restored where they live; the legacy path is the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.running import estimator_bridge_command

JOB = Path(__file__).parents[4] / "benchmarks" / "jobs" / "large_variables.py"
pytestmark = pytest.mark.timeout(900)


def launched(path: str, model_dir: Path, steps: int) -> str:
    """Trains with two parameter servers and returns what the tasks printed."""
    words: list[Any] = ["launch", "--worker", 1, "--ps", 2, "--path", path, JOB]
    words += ["--model_dir", model_dir, "--rows", 20, "--steps", steps]
    ended = estimator_bridge_command(*words, cwd=model_dir.parent)
    assert ended.code == 0, ended.err[-4000:]
    return ended.out + ended.err


def test_two_parameter_servers_hold_what_the_chief_never_does(tmp_path: Path) -> None:
    printed = launched("modern", tmp_path / "modern", 6)
    assert "The chief's memory must hold" not in printed
    launched("legacy", tmp_path / "legacy", 6)
    first, oracle = (tf.train.load_checkpoint(str(tmp_path / path / "model.ckpt-0")) for path in ("modern", "legacy"))
    assert first.get_variable_to_shape_map() == oracle.get_variable_to_shape_map()
    for name in oracle.get_variable_to_shape_map():
        np.testing.assert_array_equal(first.get_tensor(name), oracle.get_tensor(name), name)
    files = sorted(file.name for file in (tmp_path / "modern").glob("model.ckpt-0*"))
    assert files == [f"model.ckpt-0{end}" for end in (".data-00000-of-00002", ".data-00001-of-00002", ".index", ".meta")]

    before = tf.train.latest_checkpoint(str(tmp_path / "modern"))
    assert "The chief's memory must hold" not in launched("modern", tmp_path / "modern", 12)
    assert int(tf.train.load_variable(str(tmp_path / "modern"), "global_step")) >= 12
    assert tf.train.load_checkpoint(before).has_tensor("table/Adagrad"), "older checkpoints stay readable"
    assert not list((tmp_path / "modern").glob("*temp*")), "no part of a checkpoint is left"
