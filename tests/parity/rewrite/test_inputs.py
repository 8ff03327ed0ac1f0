"""The new script's own batches: other values are told from other rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.input_findings import judge_inputs
from estimator_bridge.parity.rewrite.inputs import Inputs, has_fixed_order

ROWS = np.random.RandomState(0).rand(400, 3).astype(np.float32)
LABELS = np.arange(400)


def judged(tmp_path: Path, own: tuple[Any, Any]) -> tuple[list[str], list[str]]:
    new = Trace(tmp_path)
    new.make()
    inputs = Inputs()
    for start in (0, 200):
        batch = slice(start, start + 200)
        inputs.add((own[0][batch], own[1][batch]), (ROWS[batch], LABELS[batch]))
    inputs.write(new)
    findings, notes = judge_inputs(new)
    return [finding.message for finding in findings], notes


def test_equal_batches_are_noted(tmp_path: Path) -> None:
    findings, notes = judged(tmp_path, (ROWS, LABELS))

    assert not findings
    assert "are those of the old script" in notes[0]


def test_other_values_are_a_finding_and_other_rows_a_note(tmp_path: Path) -> None:
    scaled, _ = judged(tmp_path / "scaled", (ROWS * 255, LABELS))
    others, notes = judged(tmp_path / "others", (np.random.RandomState(1).rand(400, 3).astype(np.float32), LABELS))

    assert "other values: features has mean" in scaled[0]
    assert not others
    assert "other batches" in notes[0]


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_a_graph_that_shuffles_has_no_fixed_order(is_shuffled: bool) -> None:
    with tf.Graph().as_default() as graph:
        dataset = tf.data.Dataset.range(9)
        tf.compat.v1.data.make_one_shot_iterator(dataset.shuffle(9) if is_shuffled else dataset).get_next()

    assert has_fixed_order(graph) is not is_shuffled
