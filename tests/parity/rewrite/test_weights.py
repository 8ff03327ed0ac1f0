"""Values of the old script in a rewrite: variables that group the same elements otherwise, optimizers built late, pairs by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras

from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.models.object_graph import read_graph
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.rewrite.plan import RewritePlan, read_map
from estimator_bridge.parity.rewrite.weights import Weights, build_optimizer
from estimator_bridge.parity.values import read_value
from estimator_bridge.script.run import Script

ROWS = np.arange(5, dtype=np.float32)


def test_variables_may_group_the_same_elements_otherwise(tmp_path: Path) -> None:
    old = write_tensors(tmp_path / "old", {"fm_w": ROWS, "fm_w/Momentum": ROWS + 10, "global_step": np.int64(3)})
    model = keras.Sequential([keras.layers.Embedding(5, 1)])
    model.build([None, 2])
    optimizer = keras.optimizers.SGD(0.5, momentum=0.9)
    build_optimizer(optimizer, model.trainable_variables)
    notes: list[str] = []
    weights = Weights(tmp_path, RewritePlan(Script("new.py")), [model], [optimizer], notes.append)

    for _ in range(2):  # an anchor follows
        weights.give_back(str(old), weights.write("at-0"), "anchor-0")

        np.testing.assert_array_equal(model.get_weights()[0], ROWS[:, None])
        np.testing.assert_array_equal(optimizer.momentums[0].numpy(), -0.5 * (ROWS[:, None] + 10))
    assert notes == ["fm_w of shape [5] is model/layer_with_weights-0/embeddings of shape [5, 1]"]


def test_a_variable_that_is_regrouped_keeps_its_dtype(tmp_path: Path) -> None:
    """NumPy has no bfloat16."""
    rows = tf.cast(ROWS, tf.bfloat16)
    stored = tensors.Tensor(dtypes.BFLOAT16, (5,), 10, lambda: [rows.numpy().tobytes()])
    old = write_tensors(tmp_path / "old", {"w": stored, "name": b"text", "global_step": np.int64(3)})
    module = tf.Module()
    module.w = tf.Variable(tf.zeros([5, 1], tf.bfloat16), name="w")
    weights = Weights(tmp_path, RewritePlan(Script("new.py")), [module], [], print)

    weights.give_back(str(old), weights.write("at-0"), "anchor-0")

    np.testing.assert_array_equal(tf.cast(module.w, tf.float32), ROWS[:, None])


@pytest.mark.parametrize("shape", [None, [None]])
def test_a_variable_may_change_its_shape(shape: Any, tmp_path: Path) -> None:
    """TensorFlow writes it, each time."""
    old = write_tensors(tmp_path / "old", {"w": ROWS, "global_step": np.int64(0)})
    module = tf.Module()
    module.w, module.rows = tf.Variable(ROWS + 1, name="w"), tf.Variable(ROWS, shape=tf.TensorShape(shape), trainable=False)
    weights = Weights(tmp_path, RewritePlan(Script("new.py"), given=(("w", "model/w"),)), [module], [], print)
    weights.write("at-0")
    module.rows.assign(np.float32([1.0, 2.0]))
    like = weights.write("at-1")

    weights.give_back(str(old), like, "anchor-1")

    np.testing.assert_array_equal(module.w.numpy(), ROWS)
    np.testing.assert_array_equal(module.rows.numpy(), [1.0, 2.0])


@pytest.mark.parametrize("family", [keras.optimizers, keras.optimizers.legacy])
@pytest.mark.parametrize("is_scheduled", [False, True])
def test_momentum_beside_another_optimizer_is_scaled_by_its_own_rate(family: Any, is_scheduled: bool, tmp_path: Path) -> None:
    values = {"w": ROWS, "w/Momentum": ROWS + 10, "b": ROWS + 1, "b/Adagrad": ROWS + 2, "global_step": np.int64(1)}
    old = write_tensors(tmp_path / "old", values)
    module = tf.Module()
    module.w, module.b = tf.Variable(ROWS, name="w"), tf.Variable(ROWS, name="b")
    rate = keras.optimizers.schedules.PiecewiseConstantDecay([5], [0.5, 0.25]) if is_scheduled else 0.5
    optimizers = [family.SGD(rate, momentum=0.9), family.Adagrad(0.1)]
    for optimizer, variable in zip(optimizers, (module.w, module.b), strict=True):
        build_optimizer(optimizer, [variable])
    plan = RewritePlan(Script("new.py"), given=(("w", "model/w"), ("b", "model/b")))
    weights = Weights(tmp_path, plan, [module], optimizers, print)

    weights.give_back(str(old), weights.write("at-0"), "anchor-0")

    variables = optimizers[0].variables() if family is keras.optimizers.legacy else optimizers[0].variables
    slots = [value for variable in variables if (value := variable.numpy()).shape == ROWS.shape]
    np.testing.assert_array_equal(slots, [-0.5 * (ROWS + 10)])
    assert float(optimizers[1].learning_rate) == np.float32(0.1)


def test_pairs_by_hand_are_written_as_the_error_prints_them(tmp_path: Path) -> None:
    old = write_tensors(tmp_path / "old", {"first": ROWS, "second": ROWS + 10, "global_step": np.int64(0)})
    module = tf.Module()
    module.a, module.b = tf.Variable(ROWS), tf.Variable(ROWS)
    plan = RewritePlan(Script("new.py"), given=(("first", "model/b"), ("second", "model/a")))
    weights = Weights(tmp_path, plan, [module], [], print)

    weights.give_back(str(old), weights.write("at-0"), "anchor-0")

    np.testing.assert_array_equal(module.b.numpy(), ROWS)
    np.testing.assert_array_equal(module.a.numpy(), ROWS + 10)


@pytest.mark.parametrize("name", ["model/a", "first_name"])
def test_a_pair_by_hand_may_group_the_same_elements_otherwise(name: str, tmp_path: Path) -> None:
    old = write_tensors(tmp_path / "old", {"first": ROWS, "second": ROWS + 10, "global_step": np.int64(0)})
    module = tf.Module()
    module.a, module.b = tf.Variable(ROWS[:, None], name="first_name"), tf.Variable(ROWS[:, None], name="second_name")
    weights = Weights(tmp_path, RewritePlan(Script("new.py"), given=(("second", name),)), [module], [], print)

    weights.give_back(str(old), weights.write("at-0"), "anchor-0")

    np.testing.assert_array_equal(module.a.numpy(), ROWS[:, None] + 10)
    np.testing.assert_array_equal(module.b.numpy(), ROWS[:, None])


def test_a_pair_by_hand_of_other_shapes_says_what_to_do(tmp_path: Path) -> None:
    old = write_tensors(tmp_path / "old", {"w": ROWS, "global_step": np.int64(0)})
    module = tf.Module()
    module.a = tf.Variable(ROWS[1:])
    weights = Weights(tmp_path, RewritePlan(Script("new.py"), given=(("w", "model/a"),)), [module], [], print)

    with pytest.raises(BridgeError, match="different shapes") as refused:
        weights.give_back(str(old), weights.write("at-0"), "anchor-0")
    assert (refused.value.fix or "").startswith("Pair variables of one shape")


CROSS = {f"cross_layer/cross_{part}{number}": number for number in range(3) for part in ("weight", "bias")}


@pytest.mark.parametrize("accept_order", [False, True])
def test_pairs_are_offered_by_words_of_names_whatever_the_dimensions_of_1(accept_order: bool, tmp_path: Path) -> None:
    """Kernels of shape [5, 1] beside biases of shape [5], which the old script has as vectors of one shape."""
    values = {name: ROWS + number + 10 * ("bias" in name) for name, number in CROSS.items()}
    old = write_tensors(tmp_path / "old", {**values, "global_step": np.int64(0)})
    module = tf.Module()
    module.layers = [tf.Module() for _ in range(3)]
    for number, layer in enumerate(module.layers):
        layer.kernel = tf.Variable(ROWS[:, None], name=f"cross_{number or ''}/kernel")
        layer.bias = tf.Variable(ROWS, name=f"cross_{number or ''}/bias")
    described = {"variables": [(name, [5], True) for name in CROSS]}
    plan = RewritePlan(Script("new.py"), accept_order=accept_order)
    weights = Weights(tmp_path, plan, [module], [], print, described)
    if not accept_order:
        with pytest.raises(BridgeError, match="cannot be paired") as refused:
            weights.give_back(str(old), weights.write("at-0"), "anchor-0")
        offered = [line.strip() for line in str(refused.value).splitlines() if " = " in line]
        (tmp_path / "pairs.txt").write_text("\n".join(offered))
        plan = RewritePlan(Script("new.py"), given=read_map(tmp_path / "pairs.txt"))
        weights = Weights(tmp_path, plan, [module], [], print, described)

    weights.give_back(str(old), weights.write("at-0"), "anchor-0")

    for number, layer in enumerate(module.layers):
        np.testing.assert_array_equal(layer.kernel.numpy(), ROWS[:, None] + number)
        np.testing.assert_array_equal(layer.bias.numpy(), ROWS + number + 10)


@pytest.mark.parametrize(
    ("is_trained_here", "is_trained_there", "change", "is_kept"),
    [(False, False, 0.0, True), (True, False, 0.0, False), (False, True, 0.0, False), (False, False, 1.0, False)],
    ids=["frozen", "trained by the old script", "trained by the new script", "other rows"],
)
def test_a_frozen_table_with_its_rows_in_another_order_keeps_its_values(
    is_trained_here: bool, is_trained_there: bool, change: float, is_kept: bool, tmp_path: Path
) -> None:
    """The new script's ids are others, e.g. with the unknown word first."""
    table = np.float32([[1, 2], [3, 4], [5, 6], [0, 0]])
    own = np.roll(table, 1, axis=0) + np.float32([[change], [0], [0], [0]])
    module = tf.Module()
    module.table = tf.Variable(own, name="table", trainable=is_trained_there)
    described = {"variables": [("glove", [4, 2], is_trained_here)]}
    notes: list[str] = []
    plan = RewritePlan(Script("new.py"), given=(("glove", "table"),))
    weights = Weights(tmp_path, plan, [module], [], notes.append, described)
    for step in range(2):  # an anchor follows
        old = write_tensors(tmp_path / f"old-{step}", {"glove": table, "global_step": np.int64(step)})
        weights.give_back(str(old), weights.write(f"at-{step}"), f"anchor-{step}")

        np.testing.assert_array_equal(module.table.numpy(), own if is_kept else table)
        given = read_index(str(tmp_path / f"anchor-{step}"))
        np.testing.assert_array_equal(read_value(given, "model/table/.ATTRIBUTES/VARIABLE_VALUE"), module.table.numpy())
    assert [note.startswith("model/table keeps its own values: they are the rows of glove") for note in notes] == [
        True
    ] * is_kept


def test_an_optimizer_that_is_built_late_has_slots(tmp_path: Path) -> None:
    values = {"w": ROWS, "w/Adagrad": ROWS + 10, "global_step": np.int64(1)}
    old = write_tensors(tmp_path / "old", values)
    module = tf.Module()
    module.w = tf.Variable(ROWS, name="w")
    optimizer = keras.optimizers.Adagrad(0.1)
    weights = Weights(tmp_path, RewritePlan(Script("new.py")), [module], [optimizer], print)
    weights.write("at-0")
    optimizer.apply_gradients([(tf.ones(5), module.w)])

    weights.give_back(str(old), weights.write("at-1"), "anchor-1")

    np.testing.assert_array_equal(optimizer._accumulators[0].numpy(), ROWS + 10)


def test_the_lines_for_pairs_by_hand_name_layers_as_the_script_does(tmp_path: Path) -> None:
    """A functional model, whose layers a checkpoint only numbers; the lines are then taken as they are."""
    values = {
        "one/kernel": np.eye(5, dtype=np.float32),
        "two/kernel": np.eye(5, dtype=np.float32) * 2,
        "global_step": np.int64(0),
    }
    old = write_tensors(tmp_path / "old", values)
    inputs = keras.Input([5])
    hidden = keras.layers.Dense(5, use_bias=False, name="hidden")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(5, use_bias=False, name="logits")(hidden))
    weights = Weights(tmp_path, RewritePlan(Script("new.py")), [model], [], print)
    with pytest.raises(BridgeError) as refused:
        weights.give_back(str(old), weights.write("at-0"), "anchor-0")
    lines = [line.strip() for line in str(refused.value).splitlines() if " = " in line]
    assert lines == ["one/kernel = hidden/kernel", "two/kernel = logits/kernel"]

    (tmp_path / "pairs.txt").write_text("\n".join(lines))
    plan = RewritePlan(Script("new.py"), given=read_map(tmp_path / "pairs.txt"))
    Weights(tmp_path, plan, [model], [], print).give_back(str(old), weights.write("at-0"), "anchor-0")
    assert [float(value.max()) for value in model.get_weights()] == [1.0, 2.0]


@pytest.mark.parametrize("family", [keras.optimizers, keras.optimizers.legacy])
def test_later_anchors_leave_tensorflows_checkpoints_out(family: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They took ten times as long as a small model's step; TensorFlow reads what is written in their place."""
    model = keras.Sequential([keras.layers.Dense(2, name="dense")])
    optimizer = family.Adam(0.5)
    model.build([None, 3])
    build_optimizer(optimizer, model.trainable_variables)
    model.compile(optimizer, "mse", metrics=["mae"])
    model.train_on_batch(np.ones([1, 3], np.float32), np.ones([1, 2], np.float32))
    weights = Weights(tmp_path, RewritePlan(Script("new.py")), [model], [optimizer], print)
    by_tensorflow = read_index(weights.write("at-0"))
    written: list[str] = []
    write = tf.train.Checkpoint.write

    def count(checkpoint: Any, prefix: str) -> Any:
        written.append(Path(prefix).name)
        return write(checkpoint, prefix)

    monkeypatch.setattr(tf.train.Checkpoint, "write", count)
    model.layers[0].set_weights([np.full([3, 2], 7.0), np.full([2], 8.0)])
    prefix = weights.write("at-1")
    again = tf.train.Checkpoint(model=keras.Sequential([keras.layers.Dense(2, name="dense")]))
    again.model.build([None, 3])
    again.restore(prefix).expect_partial()
    by_us = read_index(prefix)
    model.layers[0].set_weights([np.zeros([3, 2]), np.zeros([2])])
    weights._restore(prefix)

    assert not written
    assert by_us.entries.keys() == by_tensorflow.entries.keys()
    assert read_graph(by_us) == read_graph(by_tensorflow)
    for found in (model, again.model):
        assert [value.max() for value in found.get_weights()] == [7.0, 8.0]

    model.added = tf.Variable(1.0)
    weights.write("at-2")
    assert written == ["at-2"]
