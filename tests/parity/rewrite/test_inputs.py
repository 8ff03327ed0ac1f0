"""The new script's own batches: rows in another order are told from other rows, other values from other rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.inputs import Inputs, has_fixed_order, judge_inputs

ROWS = np.random.RandomState(0).rand(40, 3).astype(np.float32)
LABELS = np.arange(40)


def judged(tmp_path: Path, own: tuple[Any, Any], is_fixed: bool) -> tuple[list[str], list[str]]:
    old, new = Trace(tmp_path / "old"), Trace(tmp_path / "new")
    for trace in (old, new):
        trace.make()
    old.write("order", fixed=is_fixed)
    inputs = Inputs()
    for start in (0, 20):
        batch = slice(start, start + 20)
        inputs.add((own[0][batch], own[1][batch]), (ROWS[batch], LABELS[batch]))
    inputs.write(new)
    findings, notes = judge_inputs(old, new)
    return [finding.message for finding in findings], notes


def test_equal_batches_are_noted(tmp_path: Path) -> None:
    findings, notes = judged(tmp_path, (ROWS, LABELS), True)

    assert not findings
    assert "are those of the old script" in notes[0]


@pytest.mark.parametrize("is_fixed", [True, False])
def test_another_order_is_a_finding_only_where_the_old_one_is_fixed(tmp_path: Path, is_fixed: bool) -> None:
    findings, notes = judged(tmp_path, (ROWS[::-1], LABELS[::-1]), is_fixed)

    assert ["another order" in text for text in (findings if is_fixed else notes)] == [True]
    assert not (notes if is_fixed else findings)


def test_other_values_are_a_finding_and_other_rows_a_note(tmp_path: Path) -> None:
    scaled, _ = judged(tmp_path / "scaled", (ROWS * 255, LABELS), False)
    others, notes = judged(tmp_path / "others", (np.random.RandomState(1).rand(40, 3).astype(np.float32), LABELS), True)

    assert "other values: features has mean" in scaled[0]
    assert not others
    assert "other rows" in notes[0]


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_a_graph_that_shuffles_has_no_fixed_order(is_shuffled: bool) -> None:
    with tf.Graph().as_default() as graph:
        dataset = tf.data.Dataset.range(9)
        tf.compat.v1.data.make_one_shot_iterator(dataset.shuffle(9) if is_shuffled else dataset).get_next()

    assert has_fixed_order(graph) is not is_shuffled
