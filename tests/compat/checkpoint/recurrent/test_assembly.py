"""Recurrent cells of TensorFlow 1.15.5 in Keras' layouts and back: tests/golden/make_rnn.py."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from estimator_bridge.compat.checkpoint import convert, read_index
from estimator_bridge.compat.checkpoint.errors import NamingError
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.recurrent import assembly, table
from estimator_bridge.compat.checkpoint.recurrent.table import Sizes, Tf1Cell
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from tests.compat.checkpoint import tensorflow_side
from tests.compat.checkpoint.recurrent import recurrent_models
from tests.compat.checkpoint.recurrent.recurrent_models import FAMILIES, GOLDEN, LAYERS, Side

CELLS = GOLDEN / "cells-3"
FORGET_BIAS = [("^stacked/", 0.5)]


@pytest.fixture(scope="module")
def golden() -> Any:
    return np.load(GOLDEN / "cells.npz")


@pytest.fixture(scope="module", params=FAMILIES)
def keras(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Side:
    return recurrent_models.side(request.param, tmp_path_factory.mktemp("rnn"))


def same(one: Path, other: Path) -> None:
    old, new = tensorflow_side.load(one), tensorflow_side.load(other)
    assert old.keys() == new.keys()
    assert [name for name in old if not tensorflow_side.same_bytes(old[name], new[name])] == []


def test_every_cell_computes_and_trains_on_as_it_did(keras: Side, golden: Any, tmp_path: Path) -> None:
    report = convert(CELLS, tmp_path / "m", like=keras.prefix, forget_bias=FORGET_BIAS)
    assert report.complete
    keras.checkpoint.restore(str(tmp_path / "m")).assert_consumed()
    x = golden["x"]
    for scope, output in zip(LAYERS, recurrent_models.outputs(keras.model, x), strict=True):
        assert np.abs(output - golden[f"{scope}/before"]).max() <= 1e-6, scope
    recurrent_models.train(keras, x, 1)
    for scope, output in zip(LAYERS, recurrent_models.outputs(keras.model, x), strict=True):
        if scope == "cudnn_gru":  # two biases for one
            assert np.abs(output - golden[f"{scope}/after"]).max() > 1e-3
        else:
            assert np.abs(output - golden[f"{scope}/after"]).max() <= 3e-6, scope
    names = set(read_index(CELLS).entries)
    kept, old = tensorflow_side.load(tmp_path / "m"), tensorflow_side.load(CELLS)
    assert all(tensorflow_side.same_bytes(kept[name], old[name]) for name in names)  # bilingual: TF1's own are there too
    assert not any(" as " in name for name in kept)


def test_back_to_the_last_bit(keras: Side, tmp_path: Path) -> None:
    convert(CELLS, tmp_path / "m", to="object-based", like=keras.prefix, forget_bias=FORGET_BIAS)
    keras.checkpoint.restore(str(tmp_path / "m")).assert_consumed()
    saved = keras.checkpoint.save(str(tmp_path / "keras"))  # by Keras, which keeps nothing of ours
    report = convert(saved, tmp_path / "back", to="name-based", like=CELLS, forget_bias=FORGET_BIAS)
    assert report.complete
    same(CELLS, tmp_path / "back")
    said = {layout.target: layout.note for layout in report.layouts}
    assert "forget_bias 1 taken out of the forget gate's bias, 0 of 2" in said["basic_lstm/rnn/basic_lstm_cell"]
    assert "forget_bias" not in said["cudnn_lstm/rnn/cudnn_compatible_lstm_cell"]  # CuDNN has none


def one_cell(folder: Path, scope: str = "rnn/basic_lstm_cell", inputs: int = 3, units: int = 2, **more: Any) -> Path:
    """A checkpoint of an LSTM in TF1's layout; each weight is another number."""
    kernel = np.arange((inputs + units) * 4 * units, dtype=np.float32).reshape(inputs + units, 4 * units)
    bias = np.linspace(0.1, 0.7, 4 * units, dtype=np.float32)
    return write_tensors(folder / "one" / "model.ckpt-1", {f"{scope}/kernel": kernel, f"{scope}/bias": bias} | more)


@pytest.fixture(scope="module")
def lstm(tmp_path_factory: pytest.TempPathFactory) -> Side:
    """A single layer of the legacy family, whose SGD has momentum."""
    layers: dict[str, Any] = {"": (("LSTM", 2, {}),)}
    return recurrent_models.side("legacy", tmp_path_factory.mktemp("lstm"), layers, lambda optimizers: optimizers.SGD(0.5, 0.9))


def by_hand(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """TF1's gates are i, j, f, o; Keras' i, f, c, o, where c is TF1's j."""
    i, j, f, o = np.split(kernel, 4, axis=-1)
    moved = np.concatenate([i, f, j, o], axis=-1)
    return moved[:3], moved[3:]


@pytest.mark.parametrize("scope", ["", "OptimizeLoss/"])
def test_slots_are_laid_out_without_forget_bias(lstm: Side, tmp_path: Path, scope: str) -> None:
    rng = np.random.default_rng(0)
    slots = {
        f"{scope}rnn/basic_lstm_cell/kernel/Momentum": rng.normal(size=(5, 8)).astype(np.float32),
        f"{scope}rnn/basic_lstm_cell/bias/Momentum": rng.normal(size=8).astype(np.float32),
    }
    source = one_cell(tmp_path, **slots, global_step=1)
    old = tensorflow_side.load(source)
    assert convert(source, tmp_path / "m", like=lstm.prefix).complete
    lstm.checkpoint.restore(str(tmp_path / "m")).assert_consumed()
    kernel, recurrent, bias = lstm.model.weights
    np.testing.assert_array_equal(kernel.numpy(), by_hand(old["rnn/basic_lstm_cell/kernel"])[0])
    np.testing.assert_array_equal(recurrent.numpy(), by_hand(old["rnn/basic_lstm_cell/kernel"])[1])
    shifted = by_hand(old["rnn/basic_lstm_cell/bias"][np.newaxis])[0][0] + np.float32([0, 0, 1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(bias.numpy(), shifted)
    momentum = [lstm.optimizer.get_slot(variable, "momentum").numpy() for variable in (kernel, recurrent, bias)]
    wanted = [*by_hand(slots[f"{scope}rnn/basic_lstm_cell/kernel/Momentum"])]
    wanted.append(by_hand(slots[f"{scope}rnn/basic_lstm_cell/bias/Momentum"][np.newaxis])[0][0])
    for found, expected in zip(momentum, wanted, strict=True):
        np.testing.assert_array_equal(found, np.float32(-0.5) * expected)
    saved = lstm.checkpoint.save(str(tmp_path / "keras"))
    convert(saved, tmp_path / "back", to="name-based", like=source)
    same(source, tmp_path / "back")


def test_averages_are_values(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    layers: dict[str, Any] = {"": (("LSTM", 2, {}),)}
    keras = recurrent_models.side(
        "new", tmp_path_factory.mktemp("averages"), layers, lambda optimizers: optimizers.SGD(0.5, use_ema=True)
    )
    scope = "rnn/basic_lstm_cell"
    shadows = {f"{scope}/{part}/ExponentialMovingAverage": np.full(s, 0.25, np.float32) for part, s in PARTS.items()}
    source = one_cell(tmp_path, **shadows, global_step=1)
    assert convert(source, tmp_path / "m", like=keras.prefix).complete
    keras.checkpoint.restore(str(tmp_path / "m")).assert_consumed()
    average = [variable.numpy() for variable in keras.optimizer._model_variables_moving_average]
    np.testing.assert_array_equal(average[2], np.float32([0.25, 0.25, 1.25, 1.25, 0.25, 0.25, 0.25, 0.25]))
    saved = keras.checkpoint.save(str(tmp_path / "keras"))
    convert(saved, tmp_path / "back", to="name-based", like=source)
    same(source, tmp_path / "back")


PARTS = {"kernel": (5, 8), "bias": (8,)}


def test_forget_bias_is_rounded_and_reported_without_the_old_checkpoint(lstm: Side, tmp_path: Path) -> None:
    source = one_cell(tmp_path, **{f"rnn/basic_lstm_cell/{k}/Momentum": np.zeros(s, np.float32) for k, s in PARTS.items()})
    convert(source, tmp_path / "m", like=lstm.prefix, allow_unmatched=True)
    names = tensorflow_side.load(source)
    fresh = write_tensors(tmp_path / "fresh" / "m", {name: np.full_like(value, 7) for name, value in names.items()})
    lstm.checkpoint.restore(str(tmp_path / "m"))
    saved = lstm.checkpoint.save(str(tmp_path / "keras"))
    report = convert(saved, tmp_path / "back", to="name-based", like=fresh, allow_unmatched=True)
    found = tensorflow_side.load(tmp_path / "back")["rnn/basic_lstm_cell/bias"]
    difference = np.abs(found - names["rnn/basic_lstm_cell/bias"])
    assert 0 < difference.max() <= 2**-24  # half a unit in the last place of numbers from 1 to 2
    assert "0 of 2 elements rounded" in report.layouts[0].note  # 1.3 - 1 is exact: what Keras has is kept
    assert any("forget_bias is assumed to be 1" in warning for warning in report.warnings)


def test_forget_bias_given(lstm: Side, tmp_path: Path) -> None:
    source = one_cell(tmp_path)
    report = convert(source, tmp_path / "m", like=lstm.prefix, forget_bias=[("basic", 0.0)], allow_unmatched=True)
    assert [layout.note for layout in report.layouts] == ["BasicLSTMCell as LSTM"]
    assert not any("forget_bias" in warning for warning in report.warnings)
    with pytest.raises(NamingError, match="in a scope that --forget-bias names"):
        convert(source, tmp_path / "n", like=lstm.prefix, forget_bias=[("lstm", 0.0), ("gru", 1.0)], allow_unmatched=True)
    lstm.checkpoint.restore(str(tmp_path / "m"))
    expected = by_hand(tensorflow_side.load(source)["rnn/basic_lstm_cell/bias"][np.newaxis])[0][0]
    np.testing.assert_array_equal(lstm.model.weights[2].numpy(), expected)


def test_a_partitioned_kernel(lstm: Side, tmp_path: Path) -> None:
    whole = one_cell(tmp_path, **{f"rnn/basic_lstm_cell/{k}/Momentum": np.zeros(s, np.float32) for k, s in PARTS.items()})
    convert(whole, tmp_path / "cut", to="name-based", partition=[(".*/kernel", 3)])
    for name, source in (("of whole", whole), ("of slices", tmp_path / "cut")):
        convert(source, tmp_path / name, to="object-based", like=lstm.prefix, allow_unmatched=True)
    same(tmp_path / "of whole", tmp_path / "of slices")


# What cannot be told, or has no counterpart


def test_cells_without_a_counterpart_are_reported_by_name(lstm: Side, tmp_path: Path) -> None:
    report = convert(GOLDEN / "others-3", tmp_path / "m", like=lstm.prefix)
    assert (report.exit_code, report.layouts, report.written) == (1, [], False)
    said = "\n".join(report.warnings)
    assert "peepholes/rnn/lstm_cell has peepholes, for which no recurrent layer of Keras has a place" in said
    assert "projection/rnn/lstm_cell has a projection of the output" in said
    assert "layer_norm/rnn/layer_norm_basic_lstm_cell has layer normalization" in said
    assert "peepholes/rnn/lstm_cell/w_f_diag" in report.unmatched_sources
    assert "peepholes/rnn/lstm_cell/kernel" in report.unmatched_sources


@pytest.mark.parametrize("to", ["object-based", "name-based"])
def test_a_bias_of_other_gates_is_never_paired_by_its_shape(lstm: Side, tmp_path: Path, to: Any) -> None:
    tensors = {"lstm_cell/w_f_diag": (2,), "lstm_cell/kernel": (5, 8), "lstm_cell/bias": (8,)}
    zeros = {name: np.zeros(shape, np.float32) for name, shape in tensors.items()}
    peepholes = write_tensors(tmp_path / "p" / "m", zeros | {"lstm_cell/bias/Momentum": np.zeros(8, np.float32)})
    source, like = (peepholes, lstm.prefix) if to == "object-based" else (lstm.prefix, peepholes)
    report = convert(source, tmp_path / "m", to=to, like=like, allow_unmatched=True)
    assert (report.matches, report.layouts) == ((), [])
    unmatched = report.unmatched_sources if to == "object-based" else report.unmatched_targets
    assert set(tensors) <= set(unmatched)


@pytest.mark.tf221  # with 2.15 comes Keras 2
def test_layers_that_keras_3_tracks_only_through_the_optimizer(tmp_path: Path) -> None:
    import keras
    import tensorflow as tf

    layer = keras.layers.LSTM(2)
    layer.build((None, 5, 3))
    optimizer = keras.optimizers.SGD(0.5)
    optimizer.build(layer.trainable_variables)
    prefix = tf.train.Checkpoint(optimizer=optimizer).save(str(tmp_path / "like"))
    source = one_cell(tmp_path)
    assert len(convert(source, tmp_path / "m", like=prefix, allow_unmatched=True).layouts) == 1
    tf.train.Checkpoint(optimizer=optimizer).restore(str(tmp_path / "m"))
    expected = by_hand(tensorflow_side.load(source)["rnn/basic_lstm_cell/kernel"])
    for variable, value in zip(layer.trainable_variables, expected, strict=False):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_the_other_gru(tmp_path: Path) -> None:
    layers = {"gru": (("GRU", 5, {"reset_after": True}),)}
    keras = recurrent_models.side("keras3", tmp_path, layers)
    report = convert(CELLS, tmp_path / "m", like=keras.prefix, allow_unmatched=True)
    assert any("gru/rnn/gru_cell" in w and "GRU with reset_after=False does" in w for w in report.warnings)
    assert report.layouts == []


@pytest.fixture(scope="module")
def two_layers(tmp_path_factory: pytest.TempPathFactory) -> Side:
    layers: dict[str, Any] = {"": (("LSTM", 3, {"return_sequences": True}), ("LSTM", 3, {}))}
    return recurrent_models.side("legacy", tmp_path_factory.mktemp("two"), layers, lambda optimizers: optimizers.SGD(0.5))


def cells_of_one_size(folder: Path, first: str, second: str) -> Path:
    rng = np.random.default_rng(1)
    shapes = {"kernel": (6, 12), "bias": (12,)}
    tensors = {f"{s}/{p}": rng.normal(size=n).astype(np.float32) for s in (first, second) for p, n in shapes.items()}
    return write_tensors(folder / "two" / "m", tensors | {"global_step": np.int64(1)})


def test_one_of_two_is_not_guessed(two_layers: Side, tmp_path: Path) -> None:
    source = cells_of_one_size(tmp_path, "a/lstm_cell", "b/lstm_cell")
    report = convert(source, tmp_path / "m", like=two_layers.prefix, accept_order=True)  # a and b are no numbers
    assert not report.written
    assert set(report.ambiguous.values()) == {("a/lstm_cell/kernel", "b/lstm_cell/kernel")}
    assert (report.unmatched_sources, report.unmatched_targets) == ([], [])


@pytest.mark.parametrize("how", ["map", "order"])
def test_two_equal_candidates_are_reported(two_layers: Side, tmp_path: Path, how: str) -> None:
    scopes = {"map": ("b/lstm_cell", "a/lstm_cell"), "order": ("rnn/cell_0/lstm_cell", "rnn/cell_1/lstm_cell")}[how]
    source = cells_of_one_size(tmp_path, *scopes)
    names = [variable.name.partition(":")[0] for variable in two_layers.model.weights]
    given = {f"{scopes[0]}/kernel": names[0]} if how == "map" else {}
    with pytest.raises(NamingError, match="twice"):
        convert(source, tmp_path / "n", like=two_layers.prefix, given=dict.fromkeys([f"{s}/kernel" for s in scopes], names[0]))
    report = convert(source, tmp_path / "m", like=two_layers.prefix, given=given, accept_order=how == "order")
    assert report.complete
    two_layers.checkpoint.restore(str(tmp_path / "m")).assert_consumed()
    for place, scope in zip((0, 3), scopes, strict=True):
        expected = by_hand(tensorflow_side.load(source)[f"{scope}/kernel"])[0]
        np.testing.assert_array_equal(two_layers.model.weights[place].numpy(), expected)
    assert {match.how for match in report.matches} == ({"map", "shape"} if how == "map" else {"order"})


def test_a_cell_by_another_name(lstm: Side, tmp_path: Path) -> None:
    source = one_cell(tmp_path, "encoder/mine", **{f"encoder/mine/{k}/Momentum": np.zeros(s) for k, s in PARTS.items()})
    report = convert(source, tmp_path / "m", like=lstm.prefix, allow_unmatched=True)
    assert [layout.source for layout in report.layouts] == ["encoder/mine"]


def test_a_dense_layer_is_no_cell(tmp_path: Path) -> None:
    """Its shapes fit one, but something in the model fits it."""
    import tf_keras

    model = tf_keras.Sequential([tf_keras.Input((5, 3)), tf_keras.layers.LSTM(2), tf_keras.layers.Dense(5)])
    model.add(tf_keras.layers.Dense(8))
    import tensorflow as tf

    prefix = tf.train.Checkpoint(model=model).save(str(tmp_path / "like"))
    dense = {"d/kernel": np.zeros((5, 8), np.float32), "d/bias": np.zeros(8, np.float32)}
    report = convert(write_tensors(tmp_path / "d" / "m", dense), tmp_path / "m", like=prefix, allow_unmatched=True)
    assert report.layouts == []
    assert {match.source: "with_weights-2" in match.target for match in report.matches} == {"d/kernel": True, "d/bias": True}


# The bytes


def read(tensor: Tensor) -> np.ndarray:
    return dtypes.to_numpy(b"".join(map(bytes, tensor.chunks())), tensor.dtype).reshape(tensor.shape)


@hypothesis.settings(max_examples=25)
@hypothesis.given(cell=st.sampled_from(table.CELLS), inputs=st.integers(1, 4), units=st.integers(1, 4), slot=st.booleans())
def test_there_and_back(tmp_path_factory: pytest.TempPathFactory, cell: Tf1Cell, inputs: int, units: int, slot: bool) -> None:
    folder, sizes = tmp_path_factory.mktemp("back"), Sizes(inputs, units)
    rng = np.random.default_rng(inputs * 10 + units)
    old = {p.name: rng.normal(size=table.shape(p, sizes)).astype(np.float32) for p in cell.layout.parts}
    layouts = [(cell.layout.parts, cell.layer.parts), (cell.layer.parts, cell.layout.parts)]
    tensors: dict[str, Any] = old
    for number, (given, wanted) in enumerate(layouts):
        draft = Draft(read_index(write_tensors(folder / str(number), tensors)))
        plans = {part: assembly.plan(part, wanted, given, sizes, slot) for part in wanted}
        names = {part.name: part.name for part in given}
        tensors = {part.name: read(assembly.assemble(draft, part, blocks, names, sizes)) for part, blocks in plans.items()}
    assert all(tensorflow_side.same_bytes(tensors[name], value) for name, value in old.items())


def test_memory_is_bounded_and_every_checksum_compared(tmp_path: Path) -> None:
    cell, sizes = table.CELLS[1], Sizes(3000, 1000)
    kernel = np.random.default_rng(0).normal(size=(4000, 4000)).astype(np.float32)  # 64 MB
    index = read_index(write_tensors(tmp_path / "m", {"kernel": kernel}))
    part = cell.layer.parts[1]
    blocks = assembly.plan(part, cell.layer.parts, cell.layout.parts, sizes, slot=False)
    tensor = assembly.assemble(Draft(index), part, blocks, {"kernel": "kernel"}, sizes)
    tracemalloc.start()
    size = sum(len(data) for data in tensor.chunks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == tensor.size == 1000 * 4000 * 4
    assert peak < 8 * values.CHUNK
    np.testing.assert_array_equal(read(tensor)[:, 1000:2000], kernel[3000:, 2000:3000])  # the forget gate
    with index.shard(0).open("r+b") as file:
        file.seek(0)
        file.write(b"\xff")
    with pytest.raises(Exception, match="have changed"):
        read(tensor)
