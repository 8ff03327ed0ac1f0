"""from_estimator: one Keras model that trains, evaluates and predicts what the Estimator would, to the last bit."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge import modern
from estimator_bridge.compat.checkpoint import convert
from estimator_bridge.errors import BridgeError, NotSupportedError
from tests.modern.jobs import CLASSES, IDS, WORDS, X, Y, embedded, engine, estimator, linear, regression_input, saved, spec, v1

STEPS = 6
FEATURES = {"x": X, "words": WORDS}
ModelOf = Callable[[Path], Any]


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """A table, batch normalisation, metrics of several kinds, predictions by name."""
    keys = tf.range(IDS, dtype=tf.int64)
    table = v1.lookup.StaticHashTable(v1.lookup.KeyValueTensorInitializer(keys, (keys * 3) % IDS), 0)
    net = v1.layers.batch_normalization(features["x"], training=mode == "train", momentum=0.8)
    logits = linear(net) + embedded(table.lookup(features["words"]))
    predictions = {"logits": logits, "positive": tf.squeeze(logits > 0, 1)}
    if mode == "infer":
        return v1.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.reduce_mean(tf.square(logits - labels), name="the_loss")
    metrics = {
        "accuracy": v1.metrics.accuracy(labels > 0, logits > 0),
        "auc": v1.metrics.auc(labels > 0, tf.sigmoid(logits)),
        "precision": v1.metrics.precision_at_thresholds(labels > 0, tf.sigmoid(logits), [0.3, 0.6]),
        "iou": v1.metrics.mean_iou(labels > 0, logits > 0, 2),
        "per_class": v1.metrics.mean_tensor(tf.reduce_mean(tf.abs(logits - labels), 0)),
    }
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        train_op = v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step())
    return spec(mode, loss, train_op, eval_metric_ops=metrics, predictions=predictions)


def made(folder: Path) -> Any:
    return modern.from_estimator(estimator(model_fn, folder), regression_input)


def once() -> tf.data.Dataset:
    return regression_input(10, 1)


class Curve(tf_keras.callbacks.Callback):
    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.losses.append(logs["loss"])


class Losses(tf.compat.v1.train.SessionRunHook):
    def __init__(self) -> None:
        self.losses: list[float] = []

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs(run_context.session.graph.get_tensor_by_name("the_loss:0"))

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder in which the Estimator itself has trained."""
    folder = tmp_path_factory.mktemp("legacy")
    engine("legacy").train(estimator(model_fn, folder), regression_input, steps=STEPS)
    return folder


@pytest.fixture(scope="module")
def model(trained: Path) -> Any:
    """Made from the Estimator's checkpoint; no test trains it."""
    return made(trained)


def values(model: Any) -> dict[str, np.ndarray]:
    return {variable.name.removesuffix(":0"): variable.numpy() for variable in model.weights}


def test_fit_is_train_bit_for_bit(trained: Path, tmp_path: Path) -> None:
    hook, curve = Losses(), Curve()
    engine("legacy").train(estimator(model_fn, tmp_path / "again"), regression_input, steps=STEPS, hooks=[hook])
    fitted = made(tmp_path / "new")
    fitted.fit(regression_input, steps_per_epoch=STEPS, verbose=0, callbacks=[curve])
    assert curve.losses == hook.losses
    for name, value in values(fitted).items():
        np.testing.assert_array_equal(value, saved(trained)[name], err_msg=name)


def test_many_steps_at_once_change_nothing(trained: Path, tmp_path: Path) -> None:
    fitted = made(tmp_path)
    fitted.compile(steps_per_execution=3)
    history = fitted.fit(regression_input(), steps_per_epoch=STEPS, verbose=0, validation_data=once)
    assert {"loss", "val_loss", "val_auc", "val_per_class"} <= set(history.history)
    for name, value in values(fitted).items():
        np.testing.assert_array_equal(value, saved(trained)[name], err_msg=name)


def test_the_latest_checkpoint_is_continued(trained: Path, model: Any) -> None:
    for name, value in values(model).items():
        np.testing.assert_array_equal(value, saved(trained)[name], err_msg=name)


@pytest.mark.parametrize("data", [(once,), (once(),), (FEATURES, Y)], ids=["input_fn", "dataset", "arrays"])
def test_evaluate_is_the_estimators(data: Any, trained: Path, model: Any) -> None:
    expected = engine("legacy").evaluate(estimator(model_fn, trained), once)
    for _ in range(2):  # metrics start anew
        results = model.evaluate(*data, batch_size=None if len(data) == 1 else 10, verbose=0, return_dict=True)
        assert set(results) == set(expected) - {"global_step"}
        for name, value in results.items():
            np.testing.assert_array_equal(value, expected[name], err_msg=name)
    assert model.metrics_names[0] == "loss"


def test_predict_and_a_call_are_the_estimators(trained: Path, model: Any) -> None:
    expected = list(engine("legacy").predict(estimator(model_fn, trained), once))
    called = model({name: tf.constant(value) for name, value in FEATURES.items()})
    for predicted in (model.predict(FEATURES, batch_size=10, verbose=0), model.predict(once, verbose=0), called):
        assert set(predicted) == {"logits", "positive"}
        for name, value in predicted.items():
            np.testing.assert_allclose(value, [one[name] for one in expected], rtol=1e-6, err_msg=name)


def test_evaluation_sees_what_was_trained_since(tmp_path: Path) -> None:
    fitted = made(tmp_path)
    before = fitted.evaluate(FEATURES, Y, verbose=0)[0]
    fitted.fit(FEATURES, Y, batch_size=8, epochs=2, verbose=0)
    assert fitted.evaluate(FEATURES, Y, verbose=0)[0] < before


def test_a_checkpoint_of_keras_becomes_the_estimators(tmp_path: Path, model: Any, trained: Path) -> None:
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    convert(checkpoint.save(str(tmp_path / "keras" / "ckpt")), tmp_path / "back" / "model.ckpt-6", to="name-based")
    wanted = saved(trained)
    for name, value in saved(tmp_path / "back").items():
        np.testing.assert_array_equal(value, wanted[name], err_msg=name)
    engine("legacy").train(estimator(model_fn, tmp_path / "back"), regression_input, steps=1)
    assert saved(tmp_path / "back")["global_step"] == STEPS + 1


@pytest.mark.parametrize("file", ["weights", "weights.h5", "all.weights.h5"])
def test_weights_are_saved_and_loaded(file: str, tmp_path: Path, model: Any) -> None:
    wanted = values(model)
    model.save_weights(tmp_path / file)
    for variable in model.weights:
        variable.assign(tf.zeros_like(variable))
    model.load_weights(tmp_path / file)
    for name, value in values(model).items():
        np.testing.assert_array_equal(value, wanted[name], err_msg=name)


def test_a_saved_model_predicts_with_its_tables(tmp_path: Path, model: Any) -> None:
    model.save(tmp_path / "saved")
    served = tf.saved_model.load(tmp_path / "saved").signatures["serving_default"]
    expected = model.predict(FEATURES, verbose=0)
    for name, value in served(x=tf.constant(X), words=tf.constant(WORDS)).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-6, err_msg=name)
    again = tf_keras.models.load_model(tmp_path / "saved")
    np.testing.assert_allclose(again.predict(FEATURES, verbose=0)["logits"], expected["logits"], rtol=1e-6)


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_a_file_of_keras_predicts_in_another_process(
    suffix: str, tmp_path: Path, model: Any, run_python: Callable[..., str]
) -> None:
    """Two models whose tables have one name keep their own values, and variables in partitions come back."""

    def other(features: Any, labels: Any, mode: str) -> Any:
        keys = tf.range(IDS, dtype=tf.int64)
        table = v1.lookup.StaticHashTable(v1.lookup.KeyValueTensorInitializer(keys, (keys * 5) % IDS), 0)
        parts = v1.fixed_size_partitioner(2)
        rows = v1.get_variable("rows", [IDS, 1], initializer=v1.random_normal_initializer(seed=3), partitioner=parts)
        logits = linear(features["x"]) + tf.reduce_sum(tf.nn.embedding_lookup(rows, table.lookup(features["words"])), 1)
        if mode == "infer":
            return v1.estimator.EstimatorSpec(mode, predictions={"logits": logits})
        loss = tf.reduce_mean(tf.square(logits - labels))
        return spec(mode, loss, v1.train.AdagradOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    second = modern.from_estimator(estimator(other, tmp_path / "second"), regression_input)
    second.fit(regression_input, steps_per_epoch=3, verbose=0)
    for name, one in (("first", model), ("second", second)):
        one.save(tmp_path / f"{name}{suffix}")
    files = [tmp_path / f"{name}{suffix}" for name in ("first", "second")]
    run_python(Path(__file__).with_name("read_keras_files.py"), tmp_path / "answers.npz", *files)
    answers = np.load(tmp_path / "answers.npz")
    for one, answer in zip((model, second), answers.values(), strict=True):
        np.testing.assert_array_equal(answer, one.predict(FEATURES, verbose=0)["logits"])
    assert abs(answers["arr_0"] - answers["arr_1"]).max() > 0.01
    assert {"rows/part_0:0", "rows/part_1:0"} <= {one.name for one in second.weights}


def sentences() -> tf.data.Dataset:
    """Sparse strings."""
    names = np.array(list("abcdefg"))
    data = tf.data.Dataset.from_tensor_slices(({"x": X, "word": names[WORDS]}, Y)).batch(16)
    return data.map(lambda features, labels: (features | {"word": tf.sparse.from_dense(features["word"])}, labels))


def test_two_optimizers_sparse_strings_a_warm_start_and_a_vocabulary_file(tmp_path: Path) -> None:
    """The model equals the Estimator to the last bit, and the saved model contains the file."""
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("a\nb\nc\nd\n")
    word = tf.feature_column.categorical_column_with_vocabulary_file("word", str(vocabulary), num_oov_buckets=2)
    x = tf.feature_column.numeric_column("x", (3,))

    def wide_and_deep(folder: str, **options: Any) -> Any:
        deep = [x, tf.feature_column.embedding_column(word, 2)]
        config = v1.estimator.RunConfig(str(tmp_path / folder), tf_random_seed=1, save_summary_steps=None)
        return v1.estimator.DNNLinearCombinedRegressor(
            linear_feature_columns=[x, word], dnn_feature_columns=deep, dnn_hidden_units=[4], config=config, **options
        )

    engine("legacy").train(wide_and_deep("before"), sentences, steps=2)
    old = wide_and_deep("legacy", warm_start_from=str(tmp_path / "before"))
    engine("legacy").train(old, sentences, steps=2)
    fitted = modern.from_estimator(wide_and_deep("new", warm_start_from=str(tmp_path / "before")), sentences)
    fitted.fit(sentences, steps_per_epoch=2, verbose=0)
    for name, value in values(fitted).items():
        np.testing.assert_array_equal(value, saved(tmp_path / "legacy")[name.replace("/part_0", "")], err_msg=name)
    expected = engine("legacy").evaluate(old, sentences)
    for name, value in fitted.evaluate(sentences, verbose=0, return_dict=True).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
    wanted = [one["predictions"] for one in engine("legacy").predict(old, sentences)]
    np.testing.assert_allclose(fitted.predict(sentences, verbose=0)["predictions"], wanted, rtol=1e-6, atol=1e-7)
    with pytest.raises(NotSupportedError, match=re.escape(str(vocabulary))):
        fitted.save(tmp_path / "saved.keras")
    fitted.save(tmp_path / "saved")
    assert (tmp_path / "saved" / "assets" / "words.txt").read_text() == vocabulary.read_text()
    assert not constants_with(str(vocabulary), tmp_path / "saved")
    vocabulary.unlink()
    again = tf_keras.models.load_model(tmp_path / "saved")
    features = sentences().map(lambda features, labels: features)
    np.testing.assert_allclose(again.predict(features, verbose=0)["predictions"], wanted, rtol=1e-6, atol=1e-7)


def constants_with(text: str, folder: Path) -> list[str]:
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    model = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    nodes = (node for function in model.meta_graphs[0].graph_def.library.function for node in function.node_def)
    return [node.name for node in nodes if node.op == "Const" and text.encode() in node.attr["value"].tensor.string_val]


def test_ragged_features(tmp_path: Path) -> None:
    def of_ragged(features: Any, labels: Any, mode: str) -> Any:
        logits = linear(features["x"]) + tf.reduce_sum(features["ragged"], axis=1, keepdims=True)
        if mode == "infer":
            return v1.estimator.EstimatorSpec(mode, predictions={"logits": logits})
        loss = tf.reduce_mean(tf.square(logits - labels))
        return spec(mode, loss, v1.train.AdamOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    def read() -> tf.data.Dataset:
        ragged = tf.RaggedTensor.from_row_lengths(np.arange(96, dtype=np.float32) / 100, np.tile([1, 3], 24))
        return tf.data.Dataset.from_tensor_slices(({"x": X, "ragged": ragged}, Y)).batch(16)

    old = estimator(of_ragged, tmp_path / "legacy")
    engine("legacy").train(old, read, steps=3)
    fitted = modern.from_estimator(estimator(of_ragged, tmp_path / "new"), read)
    fitted.fit(read, steps_per_epoch=3, verbose=0)
    for name, value in values(fitted).items():
        np.testing.assert_array_equal(value, saved(tmp_path / "legacy")[name], err_msg=name)
    wanted = [one["logits"] for one in engine("legacy").predict(old, read)]
    np.testing.assert_allclose(fitted.predict(read, verbose=0)["logits"], wanted, rtol=1e-6)
    fitted.save(tmp_path / "ragged.keras")
    again = tf_keras.models.load_model(tmp_path / "ragged.keras")
    features = read().map(lambda features, labels: features)
    np.testing.assert_allclose(again.predict(features, verbose=0)["logits"], wanted, rtol=1e-6)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(again(next(iter(features)))["logits"])
    assert all(gradient is not None for gradient in tape.gradient(total, again.trainable_weights))
    assert len(again.trainable_weights) == 2


def test_callbacks_of_keras(tmp_path: Path) -> None:
    """Those that watch, stop and save; a learning rate is the model_fn's."""
    fitted, callbacks = made(tmp_path / "model"), tf_keras.callbacks
    stops = callbacks.EarlyStopping("val_accuracy", patience=0, mode="min", baseline=-1.0)
    saves = [callbacks.ModelCheckpoint(str(tmp_path / "saved")), callbacks.CSVLogger(tmp_path / "log.csv")]
    history = fitted.fit(once, steps_per_epoch=2, epochs=5, verbose=0, validation_data=once, callbacks=[stops, *saves])
    assert len(history.epoch) == 2  # of five: the second is the first that may stop
    assert "val_auc" in (tmp_path / "log.csv").read_text().splitlines()[0]
    wanted = fitted.predict(FEATURES, verbose=0)["logits"]
    loaded = tf_keras.models.load_model(tmp_path / "saved")
    np.testing.assert_allclose(loaded.predict(FEATURES, verbose=0)["logits"], wanted, rtol=1e-6)
    for changes in (callbacks.LearningRateScheduler(lambda epoch: 0.1), callbacks.ReduceLROnPlateau("loss")):
        with pytest.raises(NotSupportedError, match=type(changes).__name__):
            fitted.fit(once, steps_per_epoch=1, verbose=0, callbacks=[changes])


ONES = np.ones(len(Y))


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (lambda model, path: model.fit(FEATURES, Y, class_weight={0: 1.0}), "class_weight"),
        (lambda model, path: model.fit(FEATURES, Y, sample_weight=ONES), "sample_weight"),
        (lambda model, path: model.fit(regression_input().map(lambda x, y: (x, y, y))), "sample_weight"),
        (lambda model, path: model.evaluate(regression_input().map(lambda x, y: (x, y, y))), "sample_weight"),
        (lambda model, path: model.fit(FEATURES, Y, validation_data=(FEATURES, Y, ONES)), "sample_weight"),
        (lambda model, path: model.fit({"x": X}, Y), "expected:.*words"),
        (lambda model, path: model.fit(FEATURES, CLASSES), r"received:.*int64\(None, 1\)"),
        (lambda model, path: model.fit(FEATURES), "differ from those that the model was built for"),
        (lambda model, path: model.compile("adam"), "optimizer"),
    ],
)
def test_mistakes_are_named(mistake: Any, told: str, tmp_path: Path, model: Any) -> None:
    with pytest.raises(BridgeError, match=told):
        mistake(model, tmp_path)


def test_a_dataset_in_place_of_an_input_fn(tmp_path: Path) -> None:
    data = regression_input(8, 1)
    fitted = modern.from_estimator(estimator(model_fn, tmp_path), data)
    first, last = (fitted.fit(data, epochs=epochs, verbose=0).history["loss"][-1] for epochs in (1, 5))
    assert last < first


def test_hooks_that_do_more_than_report_are_refused(tmp_path: Path) -> None:
    class Stopper(tf.compat.v1.train.SessionRunHook):
        pass

    def with_hook(features: Any, labels: Any, mode: str) -> Any:
        return model_fn(features, labels, mode)._replace(training_hooks=[Stopper()])

    with pytest.raises(NotSupportedError, match="Stopper"):
        modern.from_estimator(estimator(with_hook, tmp_path), regression_input)


def test_a_batch_is_split_over_replicas(run_python: Callable[..., str], tmp_path: Path) -> None:
    run_python(Path(__file__).with_name("model_on_two_replicas.py"), tmp_path)
