"""Micro-batches: the update of the whole batch, whatever the number of parts in which it is computed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.cli.main import main
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.modern.parallel.micro_batches import row_checks
from estimator_bridge.modern.parallel.micro_batches.reductions import Reduction
from estimator_bridge.modern.parallel.plans.plan import ParallelPlan
from tests.modern.jobs import (
    CLASSES,
    IDS,
    WORDS,
    ModelFn,
    Values,
    X,
    Y,
    assert_close,
    embedded,
    engine,
    estimator,
    linear,
    regression_input,
    saved,
    spec,
    v1,
)

TOLERANCE = 1e-6
"""Largest relative difference of the first losses: the order of float32 additions."""


class _Losses(Callback):
    def __init__(self) -> None:
        self.values: list[float] = []

    def after(self, progress: Progress) -> bool:
        self.values.extend(map(float, progress.losses))
        return False


def train(
    model_fn: ModelFn, folder: Path, micro: int, input_fn: Callable[..., Any] = regression_input, steps: int = 5, **options: Any
) -> tuple[list[float], Values]:
    """Returns the losses of a training, and the values of its checkpoint."""
    losses, hooks = _Losses(), options.pop("hooks", None)
    made = model_fn if isinstance(model_fn, v1.estimator.Estimator) else estimator(model_fn, folder)
    engine("modern", micro=micro, callbacks=lambda: [losses], **options).train(made, input_fn, steps=steps, hooks=hooks)
    return losses.values, saved(folder)


def check_same(
    model_fn: ModelFn, folder: Path, numbers: tuple[int, ...] = (2, 4), **options: Any
) -> tuple[list[float], Values]:
    """Asserts that the losses and the checkpoint do not depend on the number of micro-batches; returns those of one."""
    losses, values = train(model_fn, folder / "1", 1, **options)
    for number in numbers:
        others, other = train(model_fn, folder / str(number), number, **options)
        np.testing.assert_allclose(others, losses, rtol=TOLERANCE)
        assert_close(other, values, 1e-5)
    return losses, values


def clipped(loss: Any, optimizer: Any, norm: float = 0.1) -> Any:
    """Applies gradients that are clipped by their global norm."""
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    kept, _ = tf.clip_by_global_norm(gradients, norm)
    return optimizer.apply_gradients(zip(kept, variables, strict=True), v1.train.get_global_step())


def regression(features: Any, labels: Any, mode: str) -> Any:
    """A model with a dense and a sparse gradient, clipped by their global norm."""
    loss = tf.reduce_mean(tf.square(linear(features["x"]) + embedded(features["words"]) - labels))
    return spec(mode, loss, clipped(loss, v1.train.AdagradOptimizer(0.1)))


def test_a_clipped_step_is_that_of_the_whole_batch_in_numpy(tmp_path: Path) -> None:
    """The norm is that of the whole batch's gradient; norms of micro-batches would clip otherwise."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        return spec(mode, loss, clipped(loss, v1.train.GradientDescentOptimizer(1.0), 0.5))

    losses, values = train(model_fn, tmp_path, 4, steps=1)
    x, y = np.float64(X[:8]), np.float64(Y[:8])
    kernel = np.linspace(-0.5, 0.5, 3).reshape(-1, 1)
    error = x @ kernel - y
    by_kernel, by_bias = x.T @ error / 4, error.sum(0) / 4
    scale = 0.5 / np.sqrt(np.square(by_kernel).sum() + np.square(by_bias).sum())
    assert scale < 1
    np.testing.assert_allclose(losses, [np.mean(np.square(error))], rtol=TOLERANCE)
    np.testing.assert_allclose(values["dense/kernel"], kernel - scale * by_kernel, rtol=1e-6)
    np.testing.assert_allclose(values["dense/bias"], -scale * by_bias, rtol=1e-6)


@pytest.mark.parametrize("path", ["modern", "legacy"])
def test_a_checkpoint_goes_on_without_micro_batches(path: str, tmp_path: Path) -> None:
    """On either path, to where a training of whole batches ends."""
    train(regression, tmp_path / "whole", 1, steps=5)
    train(regression, tmp_path / "parts", 4, steps=3)
    engine(path).train(estimator(regression, tmp_path / "parts"), lambda: regression_input().skip(3), steps=2)
    whole, parts = (saved(tmp_path / name) for name in ("whole", "parts"))
    assert parts["global_step"] == 5
    assert_close(parts, whole, 1e-5)


def test_sparse_and_dense_gradients_are_those_of_the_whole_batch(tmp_path: Path) -> None:
    """3 micro-batches of 8 rows have 2, 3 and 3."""
    check_same(regression, tmp_path, (2, 3, 4))


def test_a_smaller_last_batch_is_whole_too(tmp_path: Path) -> None:
    """48 rows in batches of 10 end with one of 8, which 4 does not divide, as 10."""
    check_same(regression, tmp_path, (4,), input_fn=lambda: regression_input(10, 1))


def test_a_summed_loss_adds_up_and_has_its_regularization_once(tmp_path: Path) -> None:
    """``tf.losses.Reduction.SUM`` with the decay of two variables, one of which the batch reads sparsely."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        out = linear(features["x"]) + embedded(features["words"])
        v1.losses.mean_squared_error(labels, out, reduction=v1.losses.Reduction.SUM)
        weights = v1.trainable_variables()
        v1.losses.add_loss(0.3 * tf.nn.l2_loss(weights[0]), v1.GraphKeys.REGULARIZATION_LOSSES)
        loss = v1.losses.get_total_loss() + 0.1 * tf.nn.l2_loss(weights[1])
        return spec(mode, loss, v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, v1.train.get_global_step()))

    check_same(model_fn, tmp_path)


def test_a_summed_loss_with_a_mean_in_it_is_refused(tmp_path: Path) -> None:
    """Whatever tf.losses was called with last."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        out = linear(features["x"])
        loss = tf.reduce_mean(tf.abs(out)) + v1.losses.mean_squared_error(labels, out, reduction=v1.losses.Reduction.SUM)
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_global_step()))

    with pytest.raises(NotSupportedError, match="declares its loss as a sum, and 'Mean'"):
        train(model_fn, tmp_path, 2)


def test_wide_and_deep_trains_with_both_of_its_optimizers(tmp_path: Path) -> None:
    """A canned Estimator of TensorFlow 1, whose loss is a sum, with partitioned embeddings and sparse gradients."""
    columns = tf.feature_column
    words = columns.categorical_column_with_identity("words", IDS)
    crossed = columns.crossed_column([words, columns.bucketized_column(columns.numeric_column("first"), [0.0])], 20)

    def make(folder: Path) -> Any:
        config = v1.estimator.RunConfig(model_dir=str(folder), tf_random_seed=1, save_summary_steps=2, log_step_count_steps=1)
        return v1.estimator.DNNLinearCombinedClassifier(
            config=config,
            linear_feature_columns=[words, crossed],
            linear_optimizer=v1.train.FtrlOptimizer(0.05),
            dnn_feature_columns=[columns.numeric_column("x", [3]), columns.embedding_column(words, 4)],
            dnn_optimizer=v1.train.AdagradOptimizer(0.05),
            dnn_hidden_units=[8, 4],
            input_layer_partitioner=v1.fixed_size_partitioner(2),
        )

    def input_fn() -> Any:
        features = {"x": X, "words": WORDS, "first": X[:, :1]}
        return tf.data.Dataset.from_tensor_slices((features, CLASSES)).repeat().batch(12, drop_remainder=True)

    results = {number: train(make(tmp_path / str(number)), tmp_path / str(number), number, input_fn) for number in (1, 3)}
    np.testing.assert_allclose(results[3][0], results[1][0], rtol=TOLERANCE)
    assert_close(results[3][1], results[1][1], 1e-5)


def test_rows_of_a_sparse_tensor_are_divided_and_each_word_is_looked_up_once(tmp_path: Path) -> None:
    """``embedding_lookup_sparse`` gives one gradient row for each word of a batch; clipping depends on that."""

    def input_fn() -> Any:
        def sparse(words: Any, label: Any) -> Any:
            return {"words": tf.sparse.from_dense(tf.where(words % 3 > 0, words, tf.zeros_like(words)))}, label

        return tf.data.Dataset.from_tensor_slices((WORDS, Y)).repeat().batch(12).map(sparse)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        partitioner = v1.fixed_size_partitioner(2)
        initializer = v1.random_uniform_initializer(-0.3, 0.3, seed=3)
        table = v1.get_variable("table", [IDS, 2], partitioner=partitioner, initializer=initializer)
        rows = tf.nn.embedding_lookup_sparse(table, features["words"], None, combiner="mean")
        loss = tf.reduce_mean(tf.square(linear(rows) - labels))
        return spec(mode, loss, clipped(loss, v1.train.AdamOptimizer(0.1), 0.05))

    check_same(model_fn, tmp_path, (3,), input_fn=input_fn)


def test_metrics_and_averages_of_a_step_see_all_rows_once(tmp_path: Path) -> None:
    """A streaming accuracy sees each row, and a moving average of the loss moves once a step."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        out = linear(features["x"])
        loss = tf.reduce_mean(tf.square(out - labels))
        minimize = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
        _, accuracy = v1.metrics.accuracy(labels > 0, out > 0)
        kept = [v1.get_variable(name, [], trainable=False, initializer=v1.zeros_initializer()) for name in ("hits", "mean")]
        with tf.control_dependencies([accuracy]):
            total, _ = v1.get_collection(v1.GraphKeys.METRIC_VARIABLES)
            hits = v1.assign(kept[0], total)
        average = v1.train.ExponentialMovingAverage(0.9).apply([loss])
        return spec(mode, loss, tf.group(minimize, average, hits, v1.assign_add(kept[1], loss)))

    _, values = check_same(model_fn, tmp_path, (4,))
    assert values["hits"] > 0


def test_a_second_loss_after_the_first_update_is_that_of_the_whole_batch(tmp_path: Path) -> None:
    """As in adversarial training: the second network is trained on what the first one gives, once that has been updated."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        out = linear(features["x"], "first")
        first = tf.reduce_mean(tf.square(out - labels))
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        update = optimizer.minimize(first, var_list=v1.trainable_variables("first"))
        with tf.control_dependencies([update]):
            second = tf.reduce_mean(tf.square(linear(tf.concat([out, tf.identity(features["x"])], 1), "second") - labels))
            own = v1.trainable_variables("second")
            train_op = v1.train.AdamOptimizer(0.1).minimize(second, v1.train.get_global_step(), own)
        return spec(mode, first + second, train_op)

    check_same(model_fn, tmp_path, (4,))


def test_each_micro_batch_drops_other_units(tmp_path: Path) -> None:
    """A unit's gradient is the mean of two rows' masks, 0 or 2, so it is 1 where they differ; one mask for both would give none."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = v1.get_variable("weight", [1000], initializer=v1.zeros_initializer())
        dropped = tf.nn.dropout(weight + 0.0 * features["x"][:, :1], rate=0.5, seed=3)
        loss = tf.reduce_mean(tf.reduce_sum(dropped, axis=1))
        return spec(mode, loss, v1.train.GradientDescentOptimizer(1.0).minimize(loss, v1.train.get_global_step()))

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(4, drop_remainder=True)

    _, values = train(model_fn, tmp_path, 2, input_fn, steps=1)
    kinds, counts = np.unique(np.round(-values["weight"], 4), return_counts=True)
    np.testing.assert_allclose(kinds, [0, 0.5, 1, 1.5, 2])
    np.testing.assert_allclose(counts / 1000, np.array([1, 4, 6, 4, 1]) / 16, atol=0.06)


def batch_normed(features: Any, labels: Any, mode: str) -> Any:
    """A model whose moving averages are updated before the gradients are applied."""
    net = v1.layers.batch_normalization(linear(features["x"]), training=True)
    loss = tf.reduce_mean(tf.square(net - labels))
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


def test_a_batch_norm_is_refused_unless_it_may_see_micro_batches(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match=r"'batch_normalization/moving_mean'.*has a part") as refusal:
        train(batch_normed, tmp_path / "refused", 2)
    assert "--micro-statistics" in str(refusal.value)
    assert f"{__file__}:" in str(refusal.value)
    assert not list((tmp_path / "refused").glob("model.ckpt-*"))
    _, values = train(batch_normed, tmp_path / "allowed", 2, micro_statistics=True, steps=1)
    halves = [np.float64(X[rows]) @ np.linspace(-0.5, 0.5, 3) for rows in (slice(0, 4), slice(4, 8))]
    moved = 0.01 * halves[1].mean() + 0.99 * 0.01 * halves[0].mean()
    np.testing.assert_allclose(values["batch_normalization/moving_mean"], [moved], rtol=1e-5)


def in_batch_negatives(features: Any, labels: Any, mode: str) -> Any:
    """Two towers: the other rows of a batch are the wrong answers of each."""
    kernel = v1.truncated_normal_initializer(stddev=0.05, seed=1)
    query = v1.layers.dense(features["x"], 4, kernel_initializer=kernel, name="query")
    answer = v1.layers.dense(features["x"] + labels, 4, kernel_initializer=kernel, name="answer")
    scores = tf.matmul(query, answer, transpose_b=True)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.range(tf.shape(scores)[0]), logits=scores)
    loss = tf.reduce_mean(losses)
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


def root_of_a_mean(features: Any, labels: Any, mode: str) -> Any:
    """A loss that is not linear in the mean over the rows."""
    loss = tf.sqrt(tf.reduce_mean(tf.square(linear(features["x"]) - labels)))
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


def forgotten_batch_norm(features: Any, labels: Any, mode: str) -> Any:
    """A batch norm without its moving averages, and with dropout."""
    net = tf.nn.dropout(v1.layers.batch_normalization(linear(features["x"]), training=True), rate=0.5)
    loss = tf.reduce_mean(tf.square(net - labels))
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


@pytest.mark.parametrize("model_fn", [in_batch_negatives, root_of_a_mean, forgotten_batch_norm])
def test_rows_that_depend_on_each_other_are_refused_at_the_first_batch(model_fn: ModelFn, tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match="The rows of a batch depend on each other"):
        train(model_fn, tmp_path, 2)
    assert not list(tmp_path.glob("model.ckpt-[1-9]*"))


def test_large_gradients_are_compared_by_projections_of_the_same_norm() -> None:
    """A hundredth of one row's norm still shows, and sums stay sums; other gradients are compared as they are."""
    random = np.random.RandomState(0)
    one, small = random.normal(size=[300, 257]).astype(np.float32), np.ones([8, 2], np.float32)
    change = np.zeros_like(one)
    change[7] = 0.01 * one[7]

    def total(value: np.ndarray) -> np.ndarray:
        found: np.ndarray = row_checks._total(tf.constant(value), Reduction.COMBINE).numpy()
        return found

    assert total(one).size == 16 * 16
    for value in (one, change):
        assert 0.5 < np.linalg.norm(total(value)) / np.linalg.norm(value) < 2
    np.testing.assert_allclose(total(one + change), total(one) + total(change), atol=1e-6 * np.linalg.norm(one))
    np.testing.assert_array_equal(total(small), small)


def test_dropout_does_not_look_like_dependent_rows(tmp_path: Path) -> None:
    """The check draws random numbers once for all comparisons."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        net = tf.nn.dropout(v1.layers.dense(features["x"], 64, name="wide"), rate=0.5)
        loss = tf.reduce_mean(tf.square(linear(net) - labels))
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    losses, _ = train(model_fn, tmp_path, 2)
    assert len(losses) == 5


def test_a_micro_batch_of_one_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match="too few rows for the number of micro-batches"):
        train(regression, tmp_path, 8)


def test_a_loss_that_adds_up_rows_unseen_is_refused(tmp_path: Path) -> None:
    """A product of matrices adds up the rows, which no name of an operation shows; the step would be a part of the right one."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        errors = tf.square(linear(features["x"]) - labels)
        loss = tf.reduce_mean(tf.matmul(errors, tf.ones_like(errors), transpose_a=True))
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    with pytest.raises(NotSupportedError, match="its loss is neither the mean nor the sum over the rows"):
        train(model_fn, tmp_path, 2)


def minimized(loss: Any, mode: str) -> Any:
    """Returns a spec that minimizes a loss by plain gradient descent."""
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_global_step()))


def added_up(features: Any, labels: Any, mode: str) -> Any:
    return minimized(tf.reduce_sum(tf.square(linear(features["x"]) - labels), name="total"), mode)


def halved_and_regularized(features: Any, labels: Any, mode: str) -> Any:
    """Without the decay, or with K times of it, the steps would be others."""
    loss = tf.nn.l2_loss(linear(features["x"]) + embedded(features["words"]) - labels, name="half") / 8.0
    return minimized(loss + 0.5 * tf.nn.l2_loss(v1.trainable_variables()[0]), mode)


@pytest.mark.parametrize("model_fn", [added_up, halved_and_regularized])
def test_an_undeclared_sum_over_the_rows_adds_up(model_fn: ModelFn, tmp_path: Path) -> None:
    check_same(model_fn, tmp_path, (2,))


def test_a_sum_over_something_else_than_rows_is_refused(tmp_path: Path) -> None:
    """The loss is a mean, of which a sum is only the last operation: added up, it would be K times too large."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        return minimized(tf.reduce_sum(tf.reduce_mean(tf.square(linear(features["x"]) - labels), 0)), mode)

    with pytest.raises(NotSupportedError, match="its loss is neither the mean nor the sum over the rows"):
        train(model_fn, tmp_path, 2)


def errors(features: Any, labels: Any) -> Any:
    return features["weights"] * tf.square(linear(features["x"]) + embedded(features["words"]) - labels)


def by_weights(features: Any, labels: Any, mode: str) -> Any:
    """As sequence_loss computes it, beside a decay that each step has once; the term has a summary of its own."""
    mean = tf.reduce_sum(errors(features, labels)) / (tf.reduce_sum(features["weights"]) + 1e-12)
    v1.summary.scalar("mean", mean)
    return minimized(mean + 0.5 * tf.nn.l2_loss(v1.trainable_variables()[0]), mode)


def by_the_rare(features: Any, labels: Any, mode: str) -> Any:
    """As a focal loss: a part has rows, but may have none of those that are counted."""
    rare = tf.reduce_sum(tf.cast(features["weights"] > 1.0, tf.float32), name="rare")
    v1.summary.scalar("rare", rare)
    return minimized(tf.reduce_sum(tf.square(linear(features["x"]) - labels)) / rare, mode)


def by_a_bounded_mean(features: Any, labels: Any, mode: str) -> Any:
    """Neither a sum nor additive: it is computed from the whole batch."""
    divisor = tf.maximum(tf.reduce_sum(tf.reduce_mean(features["weights"], 0)), 0.5) + 1.0
    first = tf.reduce_sum(errors(features, labels)) / divisor
    return minimized(first + tf.nn.l2_loss(labels - features["x"][:, :1] * v1.trainable_variables()[0][0]) / divisor, mode)


def weighted_input(size: int = 8) -> Any:
    """The first half of each eight rows weighs nothing."""
    weights = np.where(np.arange(len(Y)) % 8 > 3, 1.0 + np.abs(Y[:, 0]), 0.0).astype(np.float32)[:, None]
    rows = tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS, "weights": weights}, Y))
    return rows.repeat().batch(size)


def with_gradients_of_its_own(features: Any, labels: Any, mode: str) -> Any:
    """Summaries of gradients that are computed beside those of the optimizer."""
    loss = tf.reduce_sum(errors(features, labels)) / tf.reduce_sum(features["weights"])
    (gradient,) = tf.gradients(loss, v1.trainable_variables()[:1])
    v1.summary.histogram("gradient", gradient)
    return minimized(loss, mode)


def squeezed(features: Any, labels: Any, mode: str) -> Any:
    """The sum is no scalar yet."""
    loss = tf.squeeze(tf.reduce_sum(tf.square(linear(features["x"]) - labels), 0) / tf.reduce_sum(features["weights"]))
    return minimized(loss + 0.1 * tf.nn.l2_loss(v1.trainable_variables()[0]), mode)


def beside_a_mean(features: Any, labels: Any, mode: str) -> Any:
    """As BERT is pretrained: masked words are divided by their number, the next sentence by the number of rows."""
    masked = tf.reduce_sum(errors(features, labels)) / (tf.reduce_sum(features["weights"]) + 1e-5)
    following = tf.reduce_mean(tf.square(linear(features["x"], "following") - 2.0 * labels))
    return minimized(masked + following + 0.1 * tf.nn.l2_loss(v1.trainable_variables()[0]), mode)


def by_rows(features: Any, labels: Any, mode: str) -> Any:
    """A mean that is written as a sum; parts of two rows are enough for its check."""
    loss = tf.reduce_sum(tf.square(linear(features["x"]) - labels)) / tf.cast(tf.shape(labels)[0], tf.float32)
    return minimized(loss, mode)


def test_a_mean_that_is_written_as_a_sum_needs_two_rows_a_part(tmp_path: Path) -> None:
    check_same(by_rows, tmp_path, (4,))


@pytest.mark.parametrize(
    "model_fn", [by_weights, by_the_rare, by_a_bounded_mean, with_gradients_of_its_own, squeezed, beside_a_mean]
)
def test_a_sum_that_is_divided_by_a_number_of_the_batch_is_divided_by_that_of_the_whole_batch(
    model_fn: ModelFn, tmp_path: Path
) -> None:
    losses, _ = check_same(model_fn, tmp_path, (2,), input_fn=weighted_input)
    assert np.all(np.isfinite(losses))


def test_an_empty_batch_has_a_divisor_too(tmp_path: Path) -> None:
    def with_an_empty_one() -> Any:
        def cut(number: Any, batch: Any) -> Any:
            return tf.nest.map_structure(lambda one: one[: tf.where(number == 2, 0, 8)], batch)

        return weighted_input().enumerate().map(cut)

    check_same(by_a_bounded_mean, tmp_path, (2,), input_fn=with_an_empty_one)


@pytest.mark.parametrize("model_fn", [by_weights, beside_a_mean])
def test_parts_of_unequal_size_may_have_sums_that_the_batch_divides(model_fn: ModelFn, tmp_path: Path) -> None:
    check_same(model_fn, tmp_path, (3,), input_fn=lambda: weighted_input(14))


def of_losses(features: Any, labels: Any, mode: str) -> Any:
    """The weighted mean of tf.losses, which counts weights in the shape of the squares, beside a decay; random numbers change nothing."""
    drawn = features["x"] + 0.0 * tf.random.uniform(tf.shape(features["x"]))
    predicted = linear(drawn) + embedded(features["words"])
    loss = v1.losses.mean_squared_error(labels, predicted, weights=features["weights"])
    loss += 0.1 * tf.nn.l2_loss(v1.trainable_variables()[0])
    return spec(mode, loss, clipped(loss, v1.train.AdagradOptimizer(0.1)))


def by_two_weighted_means(features: Any, labels: Any, mode: str) -> Any:
    weights = features["weights"]
    loss = v1.losses.absolute_difference(labels, linear(features["x"]), weights=weights)
    return minimized(loss + 2.0 * v1.losses.huber_loss(labels, embedded(features["words"]), weights=weights), mode)


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_the_weighted_mean_of_losses_is_that_of_the_whole_batch(drop_remainder: bool, tmp_path: Path) -> None:
    """Also where a part, or a whole batch, weighs nothing, and where parts have other numbers of rows and weights."""

    def weigh(number: Any, batch: Any) -> Any:
        features, labels = batch
        return {**features, "weights": tf.where(number == 2, 0.0, features["weights"])}, labels

    def batches() -> Any:
        return weighted_input().unbatch().batch(14, drop_remainder=drop_remainder).enumerate().map(weigh)

    check_same(of_losses, tmp_path, (2, 3) if not drop_remainder else (2, 7), input_fn=batches)


def two_divisors(features: Any, labels: Any, mode: str) -> Any:
    loss = tf.reduce_sum(features["weights"] * tf.square(linear(features["x"]) - labels))
    return minimized(
        loss / tf.reduce_sum(features["weights"], name="under") + loss / tf.reduce_sum(features["weights"] ** 2), mode
    )


def beside_a_mean_of_selected_rows(features: Any, labels: Any, mode: str) -> Any:
    squares = tf.square(linear(features["x"]) - labels)
    masked = tf.reduce_sum(features["weights"] * squares) / tf.reduce_sum(features["weights"], name="under")
    return minimized(masked + tf.reduce_mean(tf.boolean_mask(squares, features["weights"] > 0.0)), mode)


def divided_twice(features: Any, labels: Any, mode: str) -> Any:
    under = tf.reduce_sum(features["weights"], name="under")
    return minimized(tf.reduce_sum(features["weights"] / under * tf.square(linear(features["x"]) - labels)) / under, mode)


def declared(features: Any, labels: Any, mode: str) -> Any:
    loss = v1.losses.mean_squared_error(labels, linear(features["x"]), reduction=v1.losses.Reduction.SUM)
    return minimized(tf.divide(loss, tf.reduce_sum(features["weights"]), name="under"), mode)


def beside_rows(features: Any, labels: Any, mode: str) -> Any:
    loss = tf.reduce_sum(tf.square(linear(features["x"]) - labels)) / tf.reduce_sum(features["weights"], name="under")
    decay = 1e-4 * tf.nn.l2_loss(v1.trainable_variables()[0])
    return minimized(loss + tf.cast(tf.shape(labels)[0], tf.float32) * decay, mode)


def added_up_first(features: Any, labels: Any, mode: str) -> Any:
    return minimized(tf.reduce_mean(tf.reduce_sum(tf.square(linear(features["x"]) - labels), axis=0, name="rows")), mode)


def by_hand(features: Any, labels: Any, mode: str) -> Any:
    rows = tf.cast(tf.shape(labels)[0], tf.float32)
    return minimized(tf.reduce_sum(tf.square(linear(features["x"]) - labels), name="rows") * (1.0 / rows), mode)


def test_losses_that_are_no_mean_are_refused_by_name(tmp_path: Path) -> None:
    total = tf.reduce_sum

    def quotient(over: Any, under: Any) -> ModelFn:
        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            weighted = features["weights"] * tf.square(linear(features["x"]) - labels)
            return minimized(over(weighted) / tf.identity(under(features["weights"]), "under"), mode)

        return model_fn

    def decayed(weighted: Any) -> Any:
        return total(weighted) + 1e-6 * tf.nn.l2_loss(v1.trainable_variables()[0])

    refused: tuple[tuple[ModelFn, str], ...] = (
        (quotient(tf.reduce_mean, total), "'under'"),
        (quotient(decayed, total), "'under'"),
        (quotient(total, lambda weights: total(weights * tf.reduce_mean(v1.trainable_variables()[0]))), "'under'"),
        (quotient(total, lambda weights: total(weights * tf.random.uniform([]))), "'under'"),
        (by_two_weighted_means, "num_present'"),
        (two_divisors, "'under'"),
        (divided_twice, "'under'"),
        (beside_a_mean_of_selected_rows, "'under'"),
        (declared, "'under'"),
        (beside_rows, "'under'"),
        (added_up_first, "'rows'"),
        (by_hand, "'rows'"),
    )
    for model_fn, name in refused:
        with pytest.raises(NotSupportedError, match=f"The micro-batches of this model do not make up its batch: .*{name}"):
            train(model_fn, tmp_path, 2, weighted_input)


def of_fixed_size() -> Any:
    return tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS}, Y)).repeat().batch(8, drop_remainder=True)


def test_a_sum_that_is_divided_by_a_constant_stays_a_sum(tmp_path: Path) -> None:
    """However the constant is made; it is no number of rows of a part."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        return minimized(tf.reduce_sum(tf.square(linear(features["x"]) - labels)) / tf.cast(8, tf.float32), mode)

    check_same(model_fn, tmp_path / "any", (2,))
    with pytest.raises(NotSupportedError, match="its loss adds up the batch by 'Sum'"):
        train(model_fn, tmp_path / "fixed", 2, of_fixed_size)


def declared_mean(features: Any, labels: Any, mode: str) -> Any:
    return minimized(v1.losses.mean_squared_error(labels, linear(features["x"])), mode)


def declared_weighted_mean(features: Any, labels: Any, mode: str) -> Any:
    return minimized(v1.losses.mean_squared_error(labels, linear(features["x"]), weights=0.5), mode)


@pytest.mark.parametrize("model_fn", [declared_mean, declared_weighted_mean, by_rows])
def test_a_mean_over_a_fixed_number_of_rows_is_a_mean(model_fn: ModelFn, tmp_path: Path) -> None:
    """TensorFlow makes the number of rows a constant, which is that of a part in a part."""
    check_same(model_fn, tmp_path, (2,), input_fn=of_fixed_size)


def test_undeclared_sums_that_cannot_be_checked_are_refused_by_name(tmp_path: Path) -> None:
    """Dropout has other numbers in each part, parts of a fixed size have no halves, and statistics switch the check off."""

    def dropped(features: Any, labels: Any, mode: str) -> Any:
        return minimized(tf.reduce_sum(tf.square(linear(tf.nn.dropout(features["x"], rate=0.5)) - labels), name="total"), mode)

    ways: tuple[tuple[ModelFn, Any, dict[str, Any]], ...] = (
        (dropped, regression_input, {}),
        (added_up, of_fixed_size, {}),
        (added_up, regression_input, {"micro_statistics": True}),
    )
    for model_fn, input_fn, options in ways:
        with pytest.raises(NotSupportedError, match="its loss adds up the batch by 'total'"):
            train(model_fn, tmp_path, 2, input_fn, **options)


class _Asks(v1.train.SessionRunHook):
    """Asks for a tensor of the graph at each step."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.values: list[Any] = []

    def begin(self) -> None:
        self._tensor = v1.get_default_graph().get_tensor_by_name(self._name)

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs(self._tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.values.append(run_values.results)


def named(features: Any, labels: Any, mode: str) -> Any:
    """The model of ``regression``, with names for a hook."""
    made = regression(features, labels, mode)
    tf.identity(made.loss, "the_loss")
    tf.identity(tf.exp(made.loss), "of_the_loss")
    tf.identity(features["x"], "rows")
    return made


def test_a_hook_sees_the_loss_of_the_whole_batch_and_what_is_computed_from_it(tmp_path: Path) -> None:
    hooks = [_Asks("the_loss:0"), _Asks("of_the_loss:0"), _Asks("clip_by_global_norm/mul:0")]
    losses, _ = train(named, tmp_path, 4, hooks=hooks)
    np.testing.assert_allclose(hooks[0].values, losses, rtol=TOLERANCE)
    np.testing.assert_allclose(hooks[1].values, np.exp(losses), rtol=1e-5)
    assert np.all(np.array(hooks[2].values) > 0)


def test_a_hook_that_asks_for_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match="'rows:0', of which each micro-batch has a part"):
        train(named, tmp_path, 4, hooks=[_Asks("rows:0")])


def test_a_model_that_knows_its_batch_size_is_refused(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        return regression({"x": tf.reshape(features["x"], [8, 3]), "words": features["words"]}, labels, mode)

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS}, Y)).repeat().batch(8, drop_remainder=True)

    with pytest.raises(NotSupportedError, match="The model_fn fails when it is called with the rows of a micro-batch"):
        train(model_fn, tmp_path, 2, input_fn)


def test_a_feature_that_is_the_same_for_all_rows_is_refused(tmp_path: Path) -> None:
    def input_fn() -> Any:
        features = {"x": X, "words": WORDS}
        rows = tf.data.Dataset.from_tensor_slices((features, Y)).repeat().batch(8)
        return rows.map(lambda some, label: (some | {"weights": tf.ones([3])}, label))

    with pytest.raises(NotSupportedError, match="different numbers of rows"):
        train(regression, tmp_path, 2, input_fn)


@pytest.mark.parametrize("micro", [1, 2])
def test_a_step_that_fails_tells_if_it_computes_micro_batches(
    micro: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The model has a batch size of its own; one batch has 8 rows."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(tf.square(tf.reshape(linear(features["x"]) - labels, [8 if micro > 1 else 7])))
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    with pytest.raises(tf.errors.InvalidArgumentError):
        train(model_fn, tmp_path, micro)
    assert ("computes micro-batches" in caplog.text) is (micro == 2)


def test_summaries_show_the_whole_loss_and_the_last_micro_batch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        v1.summary.scalar("first_feature", features["x"][0, 0])
        return regression(features, labels, mode)

    made = estimator(model_fn, tmp_path, save_summary_steps=1)
    losses = _Losses()
    engine("modern", micro=4, callbacks=lambda: [losses]).train(made, regression_input, steps=2)
    (path,) = tmp_path.glob("events.out.*")
    shown = [(value.tag, value.simple_value) for event in v1.train.summary_iterator(str(path)) for value in event.summary.value]
    np.testing.assert_allclose([value for tag, value in shown if tag == "loss"], losses.values, rtol=TOLERANCE)
    assert [value for tag, value in shown if tag == "first_feature"] == [X[6, 0], X[14, 0]]
    assert "show only the last micro-batch of each batch; the loss is that of all rows" in caplog.text


def test_it_does_not_go_with_other_ways_to_compute_a_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match="one of --jit-compile and --micro"):
        ModernEngine(plan=ParallelPlan(micro=2), jit_compile=True)
    with pytest.raises(NotSupportedError, match="one of --mixed-precision and --micro"):
        ModernEngine(plan=ParallelPlan(micro=2), mixed_precision=True)
    with pytest.raises(BridgeError, match="--micro-statistics works only with --micro"):
        ModernEngine(plan=ParallelPlan(micro_statistics=True))
    cluster = {name: ["127.0.0.1:1"] for name in ("chief", "ps", "worker")}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
    with pytest.raises(NotSupportedError, match="--micro does not work with ParameterServerStrategy"):
        train(regression, tmp_path, 2)


def test_it_belongs_to_the_modern_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--micro", "2", __file__]) == 2
    assert "--micro works only on the modern path" in capsys.readouterr().err


def test_replicas_compute_their_pieces_in_micro_batches(run_python: Callable[..., str]) -> None:
    """Two replicas with two micro-batches each train as one device."""
    assert "equal" in run_python(Path(__file__).with_name("two_accumulating_replicas.py"))
