"""Recorded batches in the structure of a rewrite: pairs by name, type and rank, order; errors name both structures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.rewrite.feeding import Feeder, Leaf, adapted, pair
from estimator_bridge.parity.rewrite.plan import check_keras, read_map
from estimator_bridge.script.run import Script


def test_names_come_before_types() -> None:
    old = [Leaf("features/a", "float32", 2), Leaf("features/b", "float32", 2), Leaf("labels", "int64", 1)]
    new = [Leaf("features/b", "float32", 2), Leaf("features/a", "float32", 2), Leaf("labels", "int64", 1)]

    assert pair(old, new, print) == [1, 0, 2]


def test_a_missing_tensor_names_both_structures() -> None:
    with pytest.raises(BridgeError, match=r"(?s)labels \(int64.*features/x.*--adapt"):
        pair([Leaf("features/x", "float32", 2)], [Leaf("labels", "int64", 1)], print)


def test_rows_may_be_grouped_otherwise() -> None:
    rows = np.arange(24, dtype=np.float32).reshape(2, 12)
    notes: list[str] = []

    image = adapted(rows, Leaf("features", "float32", 4, 1, (4, 3, 1)), notes.append)

    np.testing.assert_array_equal(image, rows.reshape(2, 4, 3, 1))
    assert notes == ["features: rows of shape [12] became [4, 3, 1]"]


@pytest.mark.parametrize("row", [(3, 4, 2), (4, 3), (2, 4, 3)])
def test_rows_are_not_transposed(row: tuple[int, ...]) -> None:
    with pytest.raises(BridgeError, match="do not fit"):
        adapted(np.zeros((5, 4, 3, 2), np.float32), Leaf("features", "float32", len(row) + 1, row[-1], row), print)


def test_a_loops_own_tuple_is_taken_in_order() -> None:
    old = [Leaf("features/ids", "int32", 2), Leaf("features/values", "float32", 2), Leaf("labels", "float32", 1)]
    new = [Leaf("features", "int32", 2), Leaf("labels", "float32", 2), Leaf("weights", "float32", 1)]

    assert pair(old, new, print) == [0, 1, 2]


TARGET, MASK = np.arange(32, dtype=np.int32).reshape(4, 8) % 7, (np.arange(32).reshape(4, 8) % 8 < 5).astype(np.int32)
SEQUENCES = [Leaf("features", "float32", 2), Leaf("labels/mask", "int32", 2), Leaf("labels/target", "int32", 2)]
LOOP = [Leaf("features", "float32", 2), Leaf("labels", "int32", 2), Leaf("weights", "int32", 2)]
ROWS = np.zeros((4, 2), np.float32)


@pytest.mark.parametrize(
    ("own", "places"),
    [
        ([ROWS, TARGET, MASK], [0, 2, 1]),
        ([ROWS, MASK, TARGET], [0, 1, 2]),
        ([ROWS, TARGET[::-1], MASK[::-1].astype(np.float32)], [0, 2, 1]),  # other rows, and another type
        ([ROWS, TARGET[:2], MASK[:2]], [0, 2, 1]),
    ],
)
def test_values_decide_where_names_do_not(own: list[Any], places: list[int]) -> None:
    notes: list[str] = []

    assert pair(SEQUENCES, LOOP, notes.append, [ROWS, MASK, TARGET], own) == places
    assert "labels/target -> " in "".join(notes)
    assert all(note.endswith("by the values of the new script's own batch") for note in notes), notes


@pytest.mark.parametrize(
    "own",
    [
        [ROWS, MASK, MASK],
        [ROWS, TARGET + 50, MASK + 50],
        [ROWS, (TARGET == 0).astype(np.int32), (TARGET == 1).astype(np.int32)],  # seldom ones in either
        [ROWS[:1], TARGET[:1, :1], MASK[:1, :1]],
    ],
)
def test_values_that_do_not_single_one_out_decide_nothing(own: list[Any]) -> None:
    """Masks in the place of the recorded target, so that each pairing is as good as the other."""
    notes: list[str] = []
    recorded = [ROWS, (TARGET == 2).astype(np.int32), (TARGET == 3).astype(np.int32)]

    assert pair(SEQUENCES, LOOP, notes.append, recorded, own) == [0, 1, 2]
    assert "taken in this order: neither names nor values decide; if it is wrong, --adapt" in notes[-1]


def test_text_is_no_choice_for_a_number() -> None:
    """Only order decides between the two texts."""
    texts = [np.array([b"a", b"b"]), np.array([b"c", b"d"])]
    old = [Leaf("features/n", "int64", 1), Leaf("features/s1", "string", 1), Leaf("features/s2", "string", 1)]
    new = [Leaf("features/m", "int32", 1), Leaf("features/t1", "string", 1), Leaf("features/t2", "string", 1)]

    assert pair(old, new, print, [np.array([1, 2]), *texts], [np.array([1, 2], np.int32), *texts[::-1]]) == [0, 2, 1]
    unknown = [np.array([3, 4], np.int32), np.array([b"e", b"f"]), np.array([b"g", b"h"])]
    assert pair(old, new, print, [np.array([1, 2]), *texts], unknown) == [0, 1, 2]


def test_a_feature_is_weights_only_if_it_is_equal() -> None:
    """By hand: the old mask is a feature, and the new script gives it as weights."""
    old = [Leaf("features/mask", "int32", 2), Leaf("features/x", "float32", 2), Leaf("labels", "int32", 2)]
    recorded = [MASK, ROWS, TARGET]

    assert pair(old, LOOP, print, recorded, [ROWS, TARGET, MASK]) == [1, 2, 0]
    with pytest.raises(BridgeError, match="do not fit"):
        pair(old, LOOP, print, recorded, [ROWS, TARGET, MASK[::-1] * 0])


def test_an_evaluation_is_paired_as_the_training_is() -> None:
    """By hand; without its own batch, or with one that decides nothing."""
    notes: list[str] = []
    feeder = Feeder("", notes.append)
    spec = (tf.TensorSpec([None, 2]), tf.TensorSpec([None, 8], tf.int32), tf.TensorSpec([None, 8], tf.int32))
    recorded = [ROWS, MASK, TARGET]

    assert feeder.batch(recorded, SEQUENCES, spec, True)[1] is MASK
    assert not notes
    for own in ((ROWS, TARGET, MASK), (ROWS, MASK, MASK), None):
        assert feeder.batch(recorded, SEQUENCES, spec, True, own)[1] is TARGET
    fixed = (tf.TensorSpec([4, 2]), tf.TensorSpec([4, 8], tf.int32), tf.TensorSpec([4, 8], tf.int32))
    assert feeder.batch(recorded, SEQUENCES, fixed, True)[1] is TARGET


def test_labels_may_be_in_the_one_dictionary_of_a_batch() -> None:
    old = [Leaf("features/x", "float32", 2), Leaf("labels", "float32", 1)]
    notes: list[str] = []

    assert pair(old, [Leaf("features/label", "float32", 1), Leaf("features/x", "float32", 2)], notes.append) == [1, 0]
    assert pair(old, [Leaf("features/clicked", "float32", 1), Leaf("features/x", "float32", 2)], notes.append) == [1, 0]
    assert [note.partition(" by ")[2] for note in notes] == ["name of labels", "type and rank, as labels"]
    unused = Leaf("features/age", "float32", 1)
    assert pair([unused, *old], [Leaf("features/label", "float32", 1), Leaf("features/x", "float32", 2)], print) == [2, 1]


def test_one_hot_labels_become_integers() -> None:
    one_hot, notes = np.eye(3, dtype=np.float32)[[2, 0]], list[str]()

    np.testing.assert_array_equal(adapted(one_hot, Leaf("labels", "int32", 1), notes.append), [2, 0])
    assert notes[0] == "labels: one-hot rows were made integers"
    for value, path in ((one_hot * 2, "labels"), (one_hot, "features/x"), (np.zeros((2, 3)), "labels")):
        with pytest.raises(BridgeError, match="do not fit"):
            adapted(value, Leaf(path, "int32", 1), print)


def test_a_last_dimension_of_unknown_size_is_one_of_size_1() -> None:
    """As that of ``tf.strings.split(line, " ").values[:1]``: a value a row fills it."""
    said: list[str] = []
    found = adapted(np.array([0.0, 1.0], np.float32), Leaf("labels", "float32", 2, None, (None,)), said.append)
    assert found.shape == (2, 1)
    assert said == ["labels: a last dimension of 1 was added"]


def test_words_in_place_of_numbers_do_not_fit() -> None:
    """The new script looks them up in its input, so a function has to adapt them."""
    with pytest.raises(BridgeError, match="do not fit") as refused:
        adapted(np.array([b"<=50K", b">50K"], object), Leaf("labels", "int64", 1), print)
    assert "labels (string, rank 1)" in str(refused.value)


def test_fractions_are_not_cut_off() -> None:
    """Pixels that the old script's input scales, and the new script's model."""
    whole, leaf = np.array([[0.0, 255.0]]), Leaf("features", "uint8", 2)

    assert adapted(whole, leaf, print).tolist() == [[0, 255]]
    with pytest.raises(BridgeError, match=r"(?s)features has fractions.*float64 from 0 to 1\n.*--adapt"):
        adapted(np.array([[0.0, 0.5, 1.0]]), leaf, print)


SPEC = (tf.TensorSpec([None, 2]), tf.TensorSpec([None]), tf.TensorSpec([None]))
X, Y = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([0, 1, 1, 0], np.float32)


def weights(own: tuple[Any, ...], labels: Any = Y) -> Any:
    old = [Leaf("features/x", "float32", 2), Leaf("labels", "float32", 1)]
    return Feeder("", lambda note: None).batch([X[: len(labels)], labels], old, SPEC, True, own)[2].tolist()


def test_weights_among_the_old_features_are_the_new_weights() -> None:
    old = [Leaf("features/weight", "float32", 1), Leaf("features/x", "float32", 2), Leaf("labels", "float32", 1)]
    given = np.array([3, 1, 2, 4], np.float32)
    batch = Feeder("", lambda note: None).batch([given, X, Y], old, SPEC, True, (X, Y, np.ones(4, np.float32)))

    assert batch[2].tolist() == [3, 1, 2, 4]


def test_own_weights_of_rows_that_the_old_script_does_not_weigh() -> None:
    assert weights((X[::-1], Y, np.full(4, 2.0))) == [2, 2, 2, 2], "one weight for all rows"
    assert weights((X[::-1], 1 - Y, np.array([5.0, 1, 1, 5]))) == [1, 5, 5, 1], "a weight for each label"
    assert weights((X, Y, np.array([1.0, 2, 3, 4]))) == [1, 2, 3, 4], "the same rows in the same order"
    assert weights((X, Y, np.full(4, 2.0)), Y[:3]) == [2, 2, 2], "a batch of other size"
    with pytest.raises(BridgeError, match="weights that belong to its own rows"):
        weights((X[::-1], Y, np.array([1.0, 2, 3, 4])))


def test_a_map_has_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text("# two layers\nold/kernel = model/layer-1/kernel\n")

    assert read_map(path) == (("old/kernel", "model/layer-1/kernel"),)
    path.write_text("old/kernel\n")
    with pytest.raises(BridgeError, match="no pair"):
        read_map(path)


@pytest.mark.parametrize(
    "text",
    [
        "import keras",
        "import tensorflow as tf\ntf.keras.Model()",
        "import tensorflow\ntensorflow.keras.Model()",
        "import tensorflow as tf2\ntf2.keras.Model()",
        "import tensorflow.compat.v2 as tf\ntf.keras.Model()",
        "from settings import *\ntf.keras.Model()",
        "from tensorflow.compat import v2\nv2.keras.Model()",
    ],
)
def test_keras_3_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    path = tmp_path / "new.py"
    path.write_text(f"{text}\n")

    with pytest.raises(BridgeError, match="another Keras than tf_keras"):
        check_keras(Script(str(path)))


def test_tf_keras_is_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    path = tmp_path / "new.py"
    path.write_text("import tensorflow as tf\nfrom tf_keras import Model\n")

    check_keras(Script(str(path)))
