"""A converted Estimator checkpoint restores into the modern path's own model, by the object graph that is derived from names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.compat.checkpoint import convert
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.keras.transplanted_model import TransplantedModel
from estimator_bridge.modern.step.transplant import Transplant
from tests.modern.jobs import CLASSES, WORDS, X, assert_close, engine, estimator, minimizing, regression_input, saved, train, v1
from tests.modern.step.test_transplant import MODELS

FIRST, MORE = 10, 10


def canned(model_dir: Path) -> Any:
    """Two optimizers, and a partitioned variable, whose slots get names of their own."""
    columns = tf.feature_column
    words = columns.categorical_column_with_identity("words", 7)
    config = v1.estimator.RunConfig(model_dir=str(model_dir), tf_random_seed=1, save_summary_steps=None)
    return v1.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=[words],
        dnn_feature_columns=[columns.numeric_column("x", 3), columns.embedding_column(words, 2)],
        dnn_hidden_units=[4],
        linear_optimizer=v1.train.FtrlOptimizer(0.1),
        dnn_optimizer=v1.train.AdagradOptimizer(0.05),
        input_layer_partitioner=v1.fixed_size_partitioner(2),
        config=config,
    )


def canned_input() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS[:, :1]}, CLASSES)).repeat().batch(8)


def of_model_fn(model_fn: Any) -> Callable[[Path], Any]:
    return lambda folder: estimator(model_fn, folder)


JOBS: dict[str, tuple[Callable[[Path], Any], Callable[[], tf.data.Dataset]]] = {
    "Adam, partitioned": (of_model_fn(MODELS["partitioned"]), regression_input),
    "two Adams": (of_model_fn(MODELS["adversarial"]), regression_input),
    "no slots": (of_model_fn(minimizing(lambda: v1.train.GradientDescentOptimizer(0.05))), regression_input),
    "no counterpart": (of_model_fn(minimizing(lambda: v1.train.ProximalAdagradOptimizer(0.05))), regression_input),
    "canned, Adagrad and Ftrl": (canned, canned_input),
}


def skipped(input_fn: Callable[[], tf.data.Dataset]) -> Callable[[], tf.data.Dataset]:
    return lambda: input_fn().skip(FIRST)


@pytest.mark.parametrize("job", JOBS)
def test_there_trained_on_and_back(job: str, tmp_path: Path) -> None:
    make, input_fn = JOBS[job]
    engine("legacy").train(make(tmp_path / "whole"), input_fn, steps=FIRST + MORE)
    engine("legacy").train(make(tmp_path / "first"), input_fn, steps=FIRST)
    report = convert(tmp_path / "first", tmp_path / "both" / "model.ckpt-10")
    assert (report.written, report.sharing, report.warnings) == (True, ("link",), [])

    graph = model_graph.build(make(tmp_path / "unused"), skipped(input_fn), model_graph.TRAIN, None)
    model = TransplantedModel(Transplant(graph))
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    checkpoint.restore(str(tmp_path / "both" / "model.ckpt-10")).assert_consumed()
    tf.train.Checkpoint(model=model).restore(str(tmp_path / "both" / "model.ckpt-10")).assert_consumed()
    model.fit(graph.pipeline.dataset(), steps_per_epoch=MORE, verbose=0)
    whole = saved(tmp_path / "whole")
    prefix = checkpoint.save(str(tmp_path / "keras" / "ckpt"))

    convert(prefix, tmp_path / "back" / "model.ckpt-20", to="name-based")
    assert_close(saved(tmp_path / "back"), whole)
    engine("legacy").train(make(tmp_path / "back"), input_fn, steps=1)  # an Estimator goes on from it
    assert saved(tmp_path / "back")["global_step"] == FIRST + MORE + 1


def test_what_the_modern_path_saves_is_converted_alike(tmp_path: Path) -> None:
    model_fn = minimizing(lambda: v1.train.AdamOptimizer(0.05))
    values = train("modern", model_fn, tmp_path / "modern", steps=FIRST)
    convert(tmp_path / "modern", tmp_path / "new" / "m", to="object-based")
    graph = model_graph.build(estimator(model_fn, tmp_path / "unused"), regression_input, model_graph.TRAIN, None)
    model = TransplantedModel(Transplant(graph))
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).restore(str(tmp_path / "new" / "m")).assert_consumed()
    for variable in model.weights:
        np.testing.assert_array_equal(variable, values[variable.name.partition(":")[0]])
