"""evaluate, predict, export_saved_model and train_and_evaluate give what the legacy path gives from the same checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.legacy.contrib import training as contrib_training
from tests.modern.callbacks.test_session_hook import assert_same
from tests.modern.jobs import CLASSES, PATHS, WORDS, X, engine, estimator, linear, train, v1
from tests.modern.training.test_train import events


def rows(epochs: int | None = 1, batch_size: int = 7) -> Any:
    return tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS}, CLASSES)).repeat(epochs).batch(batch_size)


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    net = v1.layers.batch_normalization(features["x"], training=mode == "train", momentum=0.8)
    logits = linear(v1.layers.dropout(net, 0.1, seed=1, training=mode == "train"))
    probabilities = tf.sigmoid(logits)
    if mode == "infer":
        predictions = {"probabilities": probabilities, "words": features["words"]}
        outputs = {"serving_default": v1.estimator.export.PredictOutput({"probabilities": probabilities})}
        return v1.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    loss = v1.losses.sigmoid_cross_entropy(labels, logits)
    metrics = {
        "accuracy": v1.metrics.accuracy(labels, tf.cast(probabilities > 0.5, tf.int64)),
        "auc": v1.metrics.auc(labels, probabilities),
        "mean": v1.metrics.mean(probabilities),
        "precision": v1.metrics.precision_at_thresholds(labels, probabilities, [0.3, 0.6]),
    }
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        train_op = v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step())
    return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def canned(model_dir: Path, v2: bool) -> Any:
    columns = [
        tf.feature_column.numeric_column("x", shape=[3]),
        tf.feature_column.embedding_column(tf.feature_column.categorical_column_with_identity("words", 7), 2),
    ]
    config = v1.estimator.RunConfig(model_dir=str(model_dir), tf_random_seed=3)
    module = tf.estimator if v2 else v1.estimator
    return module.DNNClassifier([4], columns, config=config)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    train("legacy", model_fn, folder, lambda: rows(None), steps=15)
    return folder


def test_metrics_are_equal(trained: Path) -> None:
    results = [engine(path).evaluate(estimator(model_fn, trained), rows, name=path) for path in PATHS]
    assert sorted(results[1]) == sorted(results[0]) == ["accuracy", "auc", "global_step", "loss", "mean", "precision"]
    for name, value in results[0].items():
        assert np.asarray(results[1][name]).dtype == np.asarray(value).dtype
        np.testing.assert_allclose(results[1][name], value, rtol=1e-6, err_msg=name)


def test_steps_and_checkpoint_path(trained: Path, tmp_path: Path) -> None:
    for path in PATHS:
        train(path, model_fn, tmp_path / path, lambda: rows(None), steps=2)
    checkpoint = tf.train.latest_checkpoint(str(trained))
    results = [
        engine(path).evaluate(estimator(model_fn, tmp_path / path), rows, steps=2, checkpoint_path=checkpoint) for path in PATHS
    ]
    np.testing.assert_allclose(results[1]["auc"], results[0]["auc"], rtol=1e-6)
    assert results[1]["global_step"] == 15


def counting_model_fn(features: Any, labels: Any, mode: str) -> Any:
    """A metric whose count is known before any batch is: its update reads none."""
    loss = v1.losses.sigmoid_cross_entropy(labels, linear(features["x"]))
    return v1.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"x": v1.metrics.mean(features["x"])})


def test_an_update_that_reads_no_batch_runs_once_a_batch(tmp_path: Path) -> None:
    def whole_batches() -> Any:
        given = ({"x": X, "words": WORDS}, CLASSES)
        return tf.data.Dataset.from_tensor_slices(given).batch(5, drop_remainder=True)

    result = engine("modern").evaluate(estimator(counting_model_fn, tmp_path), whole_batches)

    np.testing.assert_allclose(result["x"], np.mean(X[: len(X) // 5 * 5], dtype=np.float64), rtol=1e-5, atol=1e-6)


def test_evaluation_without_a_checkpoint_uses_the_initial_values(tmp_path: Path) -> None:
    results = [engine(path).evaluate(estimator(model_fn, tmp_path / path), rows) for path in PATHS]
    assert results[1]["global_step"] == 0
    np.testing.assert_allclose(results[1]["loss"], results[0]["loss"], rtol=1e-6)


def test_evaluation_on_an_empty_input_gives_what_estimator_gives(trained: Path) -> None:
    results = [engine(path).evaluate(estimator(model_fn, trained), lambda: rows().take(0)) for path in PATHS]
    assert results[1]["accuracy"] == results[0]["accuracy"] == 0.0


def test_evaluation_writes_the_same_events(tmp_path: Path) -> None:
    written = []
    for path in PATHS:
        train(path, model_fn, tmp_path / path, lambda: rows(None), steps=2)
        engine(path).evaluate(estimator(model_fn, tmp_path / path), rows, name="held_out")
        v1.summary.FileWriterCache.clear()
        written.append([event[:2] for event in events(tmp_path / path / "eval_held_out")])
    assert written[1] == written[0]
    assert (2, "auc") in written[1]


def test_impossible_steps_raise(trained: Path) -> None:
    for path in PATHS:
        with pytest.raises(ValueError, match="steps"):
            engine(path).evaluate(estimator(model_fn, trained), rows, steps=0)


class Recorder(tf.compat.v1.train.SessionRunHook):
    """Writes down every call and what it can read: a variable or metric between batches, a tensor of a batch, its updates.

    What TF1 reads of a metric while a batch updates it is not defined.
    """

    def __init__(self, name: str, value: str, inside: str, stop_at: int | None = None) -> None:
        self.seen: list[Any] = []
        self._name, self._value, self._inside, self._stop_at = name, value, inside, stop_at

    def begin(self) -> None:
        self._step = v1.train.get_global_step()
        self._count = 0
        self.seen.append([self._name, "begin", v1.get_default_graph() is self._step.graph])

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.seen.append([self._name, "created", session.run([self._step, self._value])])

    def before_run(self, run_context: Any) -> Any:
        self.seen.append([self._name, "before", run_context.session.run(self._step)])
        return v1.train.SessionRunArgs([self._step, self._inside, run_context.original_args.fetches])

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._count += 1
        read = run_context.session.run(self._value)
        self.seen.append([self._name, "after", run_values.results, read, run_context.stop_requested])
        if self._count == self._stop_at:
            run_context.request_stop()

    def end(self, session: Any) -> None:
        self.seen.append([self._name, "end", session.run(self._value)])


def hooked(stop_at: int | None) -> tuple[Recorder, Recorder, Any]:
    """Two recorders and a model_fn that brings the second one."""
    first = Recorder("argument", "mean/value:0", "Sigmoid:0", stop_at)
    second = Recorder("spec", "mean/value:0", "Sigmoid:0")

    def made(features: Any, labels: Any, mode: str) -> Any:
        plain = model_fn(features, labels, mode)
        return plain._replace(evaluation_hooks=[second])

    return first, second, made


@pytest.mark.parametrize(("steps", "stop_at"), [(3, None), (None, 2)])
def test_hooks_see_an_evaluation_as_on_the_legacy_path(steps: int | None, stop_at: int | None, trained: Path) -> None:
    outcome = []
    for path in PATHS:
        first, second, made = hooked(stop_at)
        results = engine(path).evaluate(estimator(made, trained), rows, steps=steps, hooks=[first], name="hooked")
        outcome.append((results, [first.seen, second.seen]))
    assert_same(outcome[1], outcome[0])
    assert [record[1] for record in outcome[1][1][0]].count("after") == (stop_at or steps)


def test_hooks_see_predictions_as_on_the_legacy_path(trained: Path) -> None:
    outcome = []
    for path in PATHS:
        hook = Recorder("argument", "batch_normalization/gamma/Read/ReadVariableOp:0", "Sigmoid:0")
        predictions = list(engine(path).predict(estimator(model_fn, trained), rows, hooks=[hook], yield_single_examples=False))
        outcome.append((predictions, hook.seen))
    assert_same(outcome[1], outcome[0])
    assert [record[1] for record in outcome[1][1]][-3:] == ["after", "before", "end"]  # the input ended within the last step


class AsksForStep(tf.compat.v1.train.SessionRunHook):
    """Asks in each call if there is a global step, as of a reference variable of TensorFlow 1, which is always true."""

    answers = 0

    def begin(self) -> None:
        self.answers += bool(v1.train.get_global_step())

    def before_run(self, run_context: Any) -> None:
        self.answers += bool(v1.train.get_global_step())


def test_hooks_may_ask_if_there_is_a_step(trained: Path) -> None:
    hook = AsksForStep()
    engine("modern").evaluate(estimator(model_fn, trained), rows, steps=3, hooks=[hook])
    assert hook.answers == 4


def test_hooks_of_tensorflow_run_in_an_evaluation(trained: Path, tmp_path: Path) -> None:
    def summarising(features: Any, labels: Any, mode: str) -> Any:
        made = model_fn(features, labels, mode)
        v1.summary.scalar("accuracy", made.eval_metric_ops["accuracy"][0])
        tf.identity(v1.summary.merge_all(), name="merged")
        return made

    outcome = []
    for path in PATHS:
        final = v1.train.FinalOpsHook({"step": "global_step/Read/ReadVariableOp:0", "value": "accuracy/value:0"})
        counted = contrib_training.StopAfterNEvalsHook(3)
        at_end = contrib_training.SummaryAtEndHook(str(tmp_path / path), summary_op="merged:0")
        waiting = v1.train.GlobalStepWaiterHook(15)
        hooks = [final, counted, at_end, waiting]
        results = engine(path).evaluate(estimator(summarising, trained), rows, hooks=hooks, name="more")
        v1.summary.FileWriterCache.clear()
        outcome.append((results, final.final_ops_values, [list(event) for event in events(tmp_path / path)]))
    assert_same(outcome[1], outcome[0])


def test_hooks_write_and_feed_in_an_evaluation(trained: Path) -> None:
    class Resetting(tf.compat.v1.train.SessionRunHook):
        """Forgets the first batches."""

        count = 0

        def begin(self) -> None:
            self._initializer = v1.local_variables_initializer()

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.count += 1
            if self.count == 2:
                run_context.session.run(self._initializer)

    def doubled(features: Any, labels: Any, mode: str) -> Any:
        factor = v1.placeholder(tf.float32, [], name="factor")
        return model_fn(features | {"x": features["x"] * factor}, labels, mode)

    fed: Any = v1.train.FeedFnHook
    outcome = []
    for path in PATHS:
        results = engine(path).evaluate(estimator(model_fn, trained), rows, hooks=[Resetting()])
        made = estimator(doubled, trained)
        predicted = list(engine(path).predict(made, rows, hooks=[fed(lambda: {"factor:0": 2.0})]))
        outcome.append([results, predicted])
    assert_same(outcome[1], outcome[0])


def test_a_metric_called_loss_is_refused_as_estimator_does(tmp_path: Path) -> None:
    def misnamed(features: Any, labels: Any, mode: str) -> Any:
        made = model_fn(features, labels, mode)
        return made._replace(eval_metric_ops={"loss": v1.metrics.mean(made.loss)})

    for path in PATHS:
        with pytest.raises(ValueError, match="loss"):
            engine(path).evaluate(estimator(misnamed, tmp_path), rows)


@pytest.mark.parametrize("arguments", [{}, {"predict_keys": ["probabilities"]}, {"yield_single_examples": False}])
def test_predictions_are_equal(arguments: Any, trained: Path) -> None:
    legacy, modern = (list(engine(path).predict(estimator(model_fn, trained), rows, **arguments)) for path in PATHS)
    assert len(modern) == len(legacy)
    for one, other in zip(modern, legacy, strict=True):
        assert sorted(one) == sorted(other)
        for key, value in other.items():
            np.testing.assert_allclose(one[key], value, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("v2", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_canned_classifier_goes_all_the_way(v2: bool, tmp_path: Path) -> None:
    """Trained by the modern path, evaluated and predicted by both."""
    engine("modern").train(canned(tmp_path, v2), lambda: rows(None), steps=30)
    results = [engine(path).evaluate(canned(tmp_path, v2), rows) for path in PATHS]
    assert sorted(results[1]) == sorted(results[0])
    for name, value in results[0].items():
        np.testing.assert_allclose(results[1][name], value, rtol=1e-5, err_msg=name)
    legacy, modern = ([p["logits"] for p in engine(path).predict(canned(tmp_path, v2), rows)] for path in PATHS)
    np.testing.assert_allclose(modern, legacy, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("v2", [False, True])
def test_a_canned_classifier_trains_as_on_the_legacy_path(v2: bool, tmp_path: Path) -> None:
    engine("legacy").train(canned(tmp_path / "legacy", v2), lambda: rows(None), steps=1)
    start = tf.train.latest_checkpoint(str(tmp_path / "legacy"))
    values = {}
    for path in PATHS:
        folder = tmp_path / f"from-{path}"
        folder.mkdir()
        for file in Path(start).parent.glob("model.ckpt-1.*"):
            (folder / file.name).write_bytes(file.read_bytes())
        (folder / "checkpoint").write_text(
            'model_checkpoint_path: "model.ckpt-1"\nall_model_checkpoint_paths: "model.ckpt-1"\n'
        )
        engine(path).train(canned(folder, v2), lambda: rows(None), steps=19)
        reader = tf.train.load_checkpoint(str(folder))
        values[path] = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    assert sorted(values["modern"]) == sorted(values["legacy"])
    for name, value in values["legacy"].items():
        np.testing.assert_allclose(values["modern"][name], value, rtol=1e-5, atol=1e-5, err_msg=name)
