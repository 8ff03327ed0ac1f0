"""Training continues from the state of the Estimator's optimizers, with the same weights and state bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge import modern
from estimator_bridge.errors import BridgeError
from tests.modern.jobs import WORDS, X, Y, engine, v1

column, train, keras = tf.feature_column, v1.train, tf.keras.optimizers.legacy
x = column.numeric_column("x", (3,))
words = column.categorical_column_with_identity("words", 7)
embedded = column.embedding_column(words, 2)
with tf.Graph().as_default():  # TensorFlow builds shared embeddings only in a graph
    SHARED = column.shared_embeddings([words, column.categorical_column_with_identity("others", 7)], 2)
steps = column.embedding_column(column.sequence_categorical_column_with_identity("steps", 7), 2)
BOTH = {"linear_feature_columns": [x, words], "dnn_feature_columns": [x, embedded], "dnn_hidden_units": [4]}


def deep(space: Any, optimizer: Any) -> Callable[..., Any]:
    return lambda **config: space.DNNRegressor([4], [x, embedded], optimizer=optimizer, **config)


def wide_and_deep(space: Any, **options: Any) -> Callable[..., Any]:
    return lambda **config: space.DNNLinearCombinedRegressor(**BOTH | options, **config)


def decaying() -> Any:
    rate = tf.keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.5)
    return keras.Adam(rate, amsgrad=True, clipnorm=0.5)


one, two = v1.estimator, tf.estimator
CASES: dict[str, Callable[..., Any]] = {
    "1: wide and deep": wide_and_deep(one),
    "1: two Adams, partitioned": wide_and_deep(
        one,
        linear_optimizer=train.AdamOptimizer(0.1),
        dnn_optimizer=train.AdamOptimizer(0.05, beta1=0.8),
        input_layer_partitioner=v1.fixed_size_partitioner(2),
    ),
    "1: linear, partitioned": lambda **config: one.LinearRegressor(
        [x, words], partitioner=v1.fixed_size_partitioner(2), **config
    ),
    "1: momentum": deep(one, train.MomentumOptimizer(0.01, 0.9)),
    "1: centered RMSProp": deep(one, train.RMSPropOptimizer(0.01, momentum=0.5, centered=True)),
    "1: Adadelta": deep(one, train.AdadeltaOptimizer(0.5)),
    "1: shared embeddings": lambda **config: one.DNNRegressor([4], [x, *SHARED], optimizer="Adam", **config),
    "2: baseline": two.BaselineRegressor,
    "2: two Adams": wide_and_deep(
        two, linear_optimizer=lambda: keras.Adam(0.1), dnn_optimizer=lambda: keras.Adam(0.05, beta_1=0.8)
    ),
    "2: Nadam": deep(two, lambda: keras.Nadam(0.01)),
    "2: a schedule, the largest moments, clipping": deep(two, decaying),
    "2: shared embeddings": lambda **config: two.LinearRegressor([x, *SHARED], **config),
    "2: recurrent": lambda **config: two.experimental.RNNEstimator(
        two.RegressionHead(), [steps], [embedded], [3, 2], "lstm", optimizer="Adam", **config
    ),
}


def input_of(case: str) -> Callable[[], tf.data.Dataset]:
    sentences = np.where(np.arange(4) < 1 + np.arange(len(X))[:, np.newaxis] % 4, WORDS, -1)
    features = {"x": X} | ({} if "baseline" in case else {"words": WORDS, "others": WORDS[:, ::-1], "steps": sentences})
    return lambda: tf.data.Dataset.from_tensor_slices((features, Y)).repeat().batch(16)


def estimator_of(case: str, folder: Path) -> Any:
    config = v1.estimator.RunConfig(str(folder), tf_random_seed=1, save_summary_steps=None, log_step_count_steps=None)
    return CASES[case](config=config)


@pytest.mark.parametrize("case", CASES)
def test_training_continues_as_the_estimators(case: str, tmp_path: Path) -> None:
    estimator, read = estimator_of(case, tmp_path), input_of(case)
    engine("legacy").train(estimator, read, steps=3)
    model = modern.canned(estimator)
    before = model.get_weights()
    model.fit(read(), steps_per_epoch=3, verbose=0)
    engine("legacy").train(estimator, read, steps=3)
    expected = modern.canned(estimator)
    for mine, theirs, old in zip(model.weights, expected.weights, before, strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=mine.name)
        frozen = case == "2: shared embeddings" and mine.name.endswith("embeddings:0")  # tf.estimator never trains it
        assert np.array_equal(mine, old) is frozen, mine.name
    for mine, theirs in zip(model.optimizer.variables(), expected.optimizer.variables(), strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=mine.name)
    assert int(model.optimizer.iterations) == 6


def check_other_optimizer(trained: Any, made: Any, slot: str) -> None:
    engine("legacy").train(trained, input_of(""), steps=1)
    with pytest.raises(BridgeError, match="state of the Estimator's optimizer") as caught:
        modern.canned(made)
    assert slot in str(caught.value)
    given = modern.canned(made, optimizer=tf_keras.optimizers.legacy.SGD(0.1))
    assert int(given.optimizer.iterations) == 1


def test_an_optimizer_that_did_not_train_the_checkpoint(tmp_path: Path) -> None:
    trained, made = (estimator_of(case, tmp_path) for case in ("1: Adadelta", "1: momentum"))
    check_other_optimizer(trained, made, "words_embedding/embedding_weights/momentum")


def test_another_optimizer_with_a_slot_of_the_same_name(tmp_path: Path) -> None:
    """Ftrl and Adagrad both have a slot named accumulator."""
    trained, made = (one.LinearRegressor([x], str(tmp_path), optimizer=name) for name in ("Ftrl", "Adagrad"))
    check_other_optimizer(trained, made, "x/weights/accumulator")
