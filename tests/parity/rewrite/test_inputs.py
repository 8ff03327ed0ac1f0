"""The new script's own batches: other values are told from other rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.input_findings import judge_inputs
from estimator_bridge.parity.rewrite.inputs import Inputs, dataset_shuffles, graph_draws, graph_shuffles
from estimator_bridge.parity.values import rounded

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
    other_rows = np.random.RandomState(1).rand(400, 3).astype(np.float32)
    scaled, _ = judged(tmp_path / "scaled", (other_rows * 255, LABELS))
    others, notes = judged(tmp_path / "others", (other_rows, LABELS))

    assert "other values: features has mean" in scaled[0]
    assert not others
    assert "other batches" in notes[0]


def test_values_of_the_same_rows_in_another_unit_are_a_finding(tmp_path: Path) -> None:
    scaled, _ = judged(tmp_path / "scaled", (ROWS * 255, LABELS))
    shifted, _ = judged(tmp_path / "shifted", (ROWS, LABELS + 1))
    turned, _ = judged(tmp_path / "turned", (ROWS[::-1], LABELS[::-1] * 2))

    assert scaled == ["The new script's own input gives other values: features is 255 x the old script's."]
    assert shifted == ["The new script's own input gives other values: labels is 1 x the old script's +1."]
    assert not [message for message in turned if "features" in message], "the rows are others"


def test_rows_of_one_file_may_be_seen_in_very_different_parts(tmp_path: Path) -> None:
    """The old script shuffles a file that is sorted by time, the new one only within a small buffer."""
    hours = np.arange(4000, dtype=np.float32)[:, None]
    messages = []
    for shared in ((), (7, 8)):
        new = Trace(tmp_path / str(len(shared)))
        new.make()
        inputs = Inputs()
        inputs.add((hours[:1000], LABELS), (np.random.RandomState(0).permutation(hours[3000:]), LABELS))
        inputs.add_rows([1, 2, *shared], [3, 4, *shared])
        inputs.write(new)
        messages.append([finding.message for finding in judge_inputs(new)[0]])

    assert "features has mean" in messages[0][0]
    assert not messages[1], "rows that both have show that the data are the same"


@pytest.mark.parametrize(
    ("own", "recorded", "is_found"),
    [
        ([1, 2, 3, 1], [4, 5, 6, 4], True),
        ([1, 2, 3, 1], [4, 5, 3, 4], False),
        ([1, 2, 3, 7], [4, 5, 6, 4], False),
        ([1, 2, 3, 1], [4, 5, 6, 7], False),
    ],
)
def test_two_sides_that_repeat_their_rows_and_share_none_have_other_data(
    tmp_path: Path, own: list[int], recorded: list[int], is_found: bool
) -> None:
    new, inputs = Trace(tmp_path), Inputs()
    new.make()
    inputs.add((ROWS[:4], LABELS[:4]), (ROWS[4:8], LABELS[5:9]))
    inputs.add_rows(own, recorded)
    inputs.write(new)
    findings, _ = judge_inputs(new)

    assert [finding.level for finding in findings] == (["batch"] if is_found else [])
    assert all("none of its 3 rows is one of the old script's" in finding.message for finding in findings)


@pytest.mark.parametrize(("own", "is_compared"), [([1, 2, 3], False), ([1, 2, 4], True)])
def test_preparation_that_no_common_row_shows_is_said_to_be_not_compared(
    tmp_path: Path, own: list[int], is_compared: bool
) -> None:
    new, inputs = Trace(tmp_path), Inputs()
    new.make()
    inputs.add((ROWS[:3] * 2, LABELS[:3]), (ROWS[4:7], LABELS[4:7]))
    inputs.add_rows(own, [4, 5, 6])
    inputs.write(new)
    findings, (note,) = judge_inputs(new)

    assert not findings
    assert ("None of the 3 rows seen is one of the old script's" in note) is not is_compared


@pytest.mark.parametrize(
    ("own", "old", "said"),
    [
        ([4, 2, 4, 2], [4, 4, 4], "Its batch 2 has 2 rows, the old script's 4: see the order of repeat and batch."),
        ([4, 4, 4], [4, 4, 4], ""),
        ([1, 2, 3, 4], [4, 3, 2, 1], ""),  # by length
    ],
)
def test_batches_of_another_size_are_noted(tmp_path: Path, own: list[int], old: list[int], said: str) -> None:
    new = Trace(tmp_path)
    new.make()
    inputs = Inputs()
    for here, there in zip(own, old, strict=False):
        inputs.add((np.arange(here),), (np.arange(there) + 9,))
    inputs.write(new)
    _, notes = judge_inputs(new)
    assert (said in notes[0], "repeat and batch" in notes[0]) == (True, bool(said))


def test_rows_are_told_apart_by_what_rounding_leaves() -> None:
    assert np.mean(rounded(ROWS) == rounded(ROWS * np.float32(1 + 1e-7))) > 0.99
    assert np.mean(rounded(ROWS) == rounded(ROWS * np.float32(1.01))) < 0.1
    assert rounded(LABELS) is LABELS


def test_rounding_of_values_is_no_finding(tmp_path: Path) -> None:
    findings, notes = judged(tmp_path, (ROWS * np.float32(1.000001), LABELS))

    assert not findings
    assert "other batches" in notes[0]


def unchanged(dataset: Any) -> Any:
    return dataset


def shuffled(dataset: Any) -> Any:
    return dataset.shuffle(9)


def mapped(dataset: Any) -> Any:
    return dataset.map(lambda x: x + tf.random.uniform([], maxval=2, dtype=tf.int64))


def from_python(dataset: Any) -> Any:
    return dataset.map(lambda x: tf.py_function(lambda y: y, [x], tf.int64))


@pytest.mark.parametrize(("change", "expected"), [(shuffled, True), (unchanged, False), (mapped, False), (from_python, None)])
def test_the_order_of_a_dataset_is_random_fixed_or_unknown(change: Any, expected: bool | None) -> None:
    with tf.Graph().as_default() as graph:
        tf.compat.v1.data.make_one_shot_iterator(change(tf.data.Dataset.range(9))).get_next()

    assert graph_shuffles(graph) is expected
    assert dataset_shuffles(change(tf.data.Dataset.range(9)).batch(2)) is expected


def test_a_queue_that_shuffles_has_no_fixed_order() -> None:
    with tf.Graph().as_default() as graph:
        tf.compat.v1.train.shuffle_batch([tf.constant(1)], 2, 9, 3)

    assert graph_shuffles(graph) is True


@pytest.mark.parametrize(
    ("own", "recorded", "trained", "whole", "found"),
    [
        ((1, 2, 3), (4, 5, 6), (7, 8), True, True),
        ((1, 2, 3), (3, 2, 1), (7, 8), True, False),
        ((1, 2, 3), (3, 8, 9), (7, 8), True, False),  # a part of the rows, perhaps prepared in another way
        ((1, 2, 3), (4, 5, 6), (9, 9), True, False),  # so are the rows of the training
        ((1, 2, 3), (4, 5, 6), (7, 8), False, False),  # other parts of the same data
    ],
)
def test_other_rows_of_an_evaluation_are_a_finding(
    tmp_path: Path, own: tuple[int, ...], recorded: tuple[int, ...], trained: tuple[int, ...], whole: bool, found: bool
) -> None:
    new = Trace(tmp_path)
    new.make()
    inputs = Inputs()
    inputs.add((ROWS, LABELS), (ROWS, LABELS))
    inputs.add_rows((7, 8), trained)
    inputs.add_rows(own, recorded, "evaluate-0")
    if whole:
        inputs.read_whole("evaluate-0")
    inputs.write(new)
    findings, _ = judge_inputs(new)
    assert [finding.message for finding in findings] == (
        [
            "Other data is evaluated or predicted: none of the 3 rows that the new script's own input gives evaluate-0 is one of the old script's 3."
        ]
        if found
        else []
    )


def test_of_an_evaluation_with_more_rows_than_are_kept_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows in the order of other files look like others at their beginning."""
    monkeypatch.setattr("estimator_bridge.parity.rewrite.inputs.MOST_ROWS", 3)
    new = Trace(tmp_path)
    new.make()
    inputs = Inputs()
    inputs.add((ROWS, LABELS), (ROWS, LABELS))
    inputs.add_rows((7, 8), (7, 8))
    assert inputs.has_room("evaluate-0")
    inputs.add_rows((1, 2, 3), (4, 5, 6), "evaluate-0")
    assert not inputs.has_room("evaluate-0")
    inputs.read_whole("evaluate-0")
    inputs.write(new)
    assert not judge_inputs(new)[0]


def test_the_tensor_that_makes_rows_unequal_is_named(tmp_path: Path) -> None:
    new = Trace(tmp_path)
    new.make()
    inputs = Inputs()
    rows = np.random.RandomState(2).permutation(400)
    for _ in range(2):  # both sides repeat their rows, in other orders
        inputs.add(
            ({"size": ROWS[rows, 0] / 10, "age": ROWS[rows, 1]}, LABELS[rows]),
            ({"size": ROWS[:, 0], "age": ROWS[:, 1]}, LABELS),
        )
        inputs.add_rows(range(400), range(400, 800))
    inputs.write(new)
    findings, _ = judge_inputs(new)
    assert "features/size has hardly a value in common with it, and 0.1 times its standard deviation" in findings[0].message
    assert "age" not in findings[0].message


def compared(tmp_path: Path, own: list[Any], old: list[Any], is_drawn: bool = False) -> list[str]:
    new, inputs = Trace(tmp_path), Inputs(is_drawn)
    new.make()
    for here, there in zip(own, old, strict=True):
        inputs.add(here, there)
        inputs.add_training(here, there)
    inputs.write(new)
    return [finding.message for finding in judge_inputs(new)[0]]


def batches(features: Any, labels: Any, order: Any = None) -> list[Any]:
    order = np.arange(len(labels)) if order is None else order
    return [(features[rows], labels[rows]) for rows in np.split(order, 20)]


def test_a_tensor_that_differs_while_another_is_equal_is_a_finding(tmp_path: Path) -> None:
    own, old = batches(np.sqrt(ROWS), LABELS), batches(ROWS, LABELS)
    unknown = np.where(ROWS < 0.01, np.nan, ROWS)
    padded = batches(np.pad(ROWS, [(0, 0), (0, 1)]), LABELS)

    assert compared(tmp_path / "values", own, old) == [
        "The new script's own input gives other values: features differs in 20 of 20 batches, whose rows are in the old script's order."
    ]
    assert not compared(tmp_path / "drawn", own, old, is_drawn=True), "images may be turned at random"
    order = np.random.RandomState(7).permutation(400)
    shuffled_and_padded = batches(np.pad(ROWS, [(0, 0), (0, 1)]), LABELS % 7, order)
    assert not compared(tmp_path / "both", shuffled_and_padded, batches(ROWS, LABELS % 7)), (
        "what was not compared shows no order"
    )
    rounded_otherwise = batches(unknown * np.float32(1.000001), LABELS)
    assert not compared(tmp_path / "nan", rounded_otherwise, batches(unknown, LABELS)), "NaN is no value to measure by"
    assert not compared(tmp_path / "padded", padded, batches(ROWS, LABELS)), "sequences may be padded to other lengths"
    few = LABELS % 3
    dummies = batches(ROWS, np.zeros_like(LABELS))
    assert not compared(tmp_path / "dummies", dummies, batches(ROWS, LABELS)), "a loss may read the labels elsewhere"
    words = np.array(["a", "bb", "ccc"])[LABELS % 3]
    texts = [({"word": words[rows]}, LABELS[rows]) for rows in np.split(LABELS, 20)]
    as_bytes = [
        ({"word": np.array([one.encode() for one in words[rows]], object)}, LABELS[rows]) for rows in np.split(LABELS, 20)
    ]
    assert not compared(tmp_path / "texts", texts, as_bytes), "arrays have them as str, tensors as bytes"
    classes = LABELS // 40
    in_classes = np.concatenate([np.random.RandomState(4).permutation(rows) for rows in np.split(LABELS, 10)])
    other_files = batches(ROWS[in_classes], classes)
    assert not compared(tmp_path / "classes", other_files, batches(ROWS, classes)), "files of a folder come in any order"
    wide = np.random.RandomState(5).rand(400, 3000).astype(np.float32)
    nearly = batches(wide * np.float32(1 + 1e-6), LABELS)
    assert not compared(tmp_path / "wide", nearly, batches(wide, LABELS)), "rounding makes digests of wide rows unequal"
    signs = batches(np.where(ROWS < 0.5, -0.0, ROWS), LABELS, np.random.RandomState(6).permutation(400))
    assert not compared(tmp_path / "signs", signs, batches(np.where(ROWS < 0.5, 0.0, ROWS), LABELS)), "0 has two signs"
    other_order = compared(tmp_path / "order", batches(np.sqrt(ROWS), few, LABELS[::-1]), batches(ROWS, few))
    assert not other_order, "labels do not tell which rows are the same"


def test_a_tensor_that_differs_in_rows_that_are_equal_else_is_a_finding(tmp_path: Path) -> None:
    order = np.random.RandomState(3).permutation(400)
    few = (LABELS % 3 == 0).astype(np.int64)
    own, old = batches(ROWS, np.roll(few, 1), order), batches(ROWS, few)
    two = [
        ({"a": ROWS[rows, 0], "b": ROWS[rows, 0] > 0.5}, {"x": few[rows], "y": LABELS[rows] % 2})
        for rows in np.split(order, 20)
    ]
    swapped = [(features, {"x": labels["y"], "y": labels["x"]}) for features, labels in two][::-1]
    coarse = batches((ROWS[:, :1] * 4).astype(np.int64), few, order)

    (message,) = compared(tmp_path / "labels", own, old)
    assert "labels differs in 266 of 400 rows whose other tensors are the old script's" in message
    assert "labels differs in 181 of 382 rows" in compared(tmp_path / "two", swapped, two)[0]
    assert not compared(tmp_path / "same", batches(ROWS, few, order), old)
    assert not compared(tmp_path / "coarse", coarse, batches((ROWS[:, :1] * 4).astype(np.int64), few)), (
        "rows are not told apart"
    )
    assert not compared(tmp_path / "drawn", own, old, is_drawn=True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (shuffled, False),
        (unchanged, False),
        (mapped, True),
        (from_python, None),
        (lambda _: queued(), True),
        (lambda dataset: dataset.map(lambda x: tf.random.truncated_normal([])), True),
        (lambda dataset: dataset.map(lambda x: tf.random.stateless_normal([], [1, x])), True),
        (lambda dataset: tf.data.Dataset.zip((dataset, dataset.shuffle(9))).map(lambda x, y: x + y), True),
        (lambda dataset: tf.data.Dataset.zip((dataset, dataset)).map(lambda x, y: x + y), False),
    ],
)
def test_values_of_batches_are_drawn_by_tensorflow_by_python_or_not_at_all(change: Any, expected: bool | None) -> None:
    with tf.Graph().as_default() as graph:
        batch = tf.compat.v1.data.make_one_shot_iterator(change(tf.data.Dataset.range(9))).get_next()
        tf.random.uniform([])  # of a model

        assert graph_draws(graph, [batch]) is expected


def queued() -> Any:
    return tf.data.Dataset.range(9).map(lambda x: tf.image.random_brightness(tf.fill([2, 2, 1], tf.cast(x, tf.float32)), 0.5))
