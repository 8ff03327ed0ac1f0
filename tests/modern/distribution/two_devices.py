"""Claims about training on two virtual CPUs: ``two_devices.py CLAIM FOLDER`` ends with an error if the claim does not hold."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from estimator_bridge.errors import NotSupportedError
from tests.modern.jobs import (
    ONE_BY_ONE,
    Values,
    X,
    assert_close,
    embedded,
    engine,
    estimator,
    linear,
    minimizing,
    regression_input,
    saved,
    spec,
    v1,
)
from tests.modern.step.test_transplant import MODELS, accumulating, squared
from tests.modern.surface.building import together, two_tables

TWO, ONE = engine("modern", replicas=2), engine("legacy")
MEAN = minimizing(lambda: v1.train.MomentumOptimizer(0.05, 0.9))
CPUS = ["/cpu:0", "/cpu:1"]


def train_on(
    path: Any, model_fn: Any, model_dir: Path, input_fn: Any = regression_input, steps: int | None = 12, **config: Any
) -> Values:
    """Trains, and returns the saved values."""
    path.train(estimator(model_fn, model_dir, **config), input_fn, steps=steps)
    return saved(model_dir)


def minimize(mode: str, loss: Any, optimizer: Any) -> Any:
    """Returns the spec of a model that minimizes a loss."""
    return spec(mode, loss, optimizer.minimize(loss, v1.train.get_global_step()))


def check_refused(words: str, train: Callable[[], Any]) -> None:
    """Checks that a training is refused with these words."""
    with pytest.raises(NotSupportedError, match=re.escape(words)):
        train()


def summed(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model whose loss is a declared sum."""
    predicted = linear(features["x"]) + embedded(features["words"])
    loss = v1.losses.mean_squared_error(labels, predicted, reduction="weighted_sum")
    return minimize(mode, loss, v1.train.MomentumOptimizer(0.002, 0.9))


def declared_mean(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model whose loss is a declared mean."""
    loss = v1.losses.mean_squared_error(labels, linear(features["x"]))
    return minimize(mode, loss, v1.train.AdamOptimizer(0.05))


def by_loss(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model whose rate depends on the loss of the batch."""
    loss = squared(linear(features["x"]), labels)
    return minimize(mode, loss, v1.train.MomentumOptimizer(tf.where(loss > 2.0, 0.1, 0.01) / (1.0 + loss), 0.9))


def scheduled() -> Any:
    """Returns an optimizer with a decaying rate."""
    return v1.train.AdamOptimizer(v1.train.exponential_decay(0.1, v1.train.get_global_step(), 3, 0.5))


@mock.patch.object(control_flow_util, "ENABLE_CONTROL_FLOW_V2", False)  # names in branches are those of a run
def split_batches_train_as_one_device(folder: Path) -> None:
    """Batches of 7 cannot be divided, and the last one is smaller still."""
    models = {
        "mean": MEAN,
        "scheduled": minimizing(scheduled),
        "declared": declared_mean,
        "sum": summed,
        "wide": MODELS["wide and deep"],
        "slices": MODELS["partitioned"],
        "ema": MODELS["averaged"],
        "moving loss": averaging,
        "moving mean": changing(lambda own, x: own.assign(0.9 * own + 0.1 * tf.reduce_mean(x, 0))),
        "tables": together(two_tables),
        "clipped": MODELS["clipped"],
        "own optimizer": MODELS["BERT-style"],
        "in a cond": accumulating,
        "rate by loss": by_loss,
    }
    for name, model in models.items():
        unequal = () if name.startswith("moving") else (7,)  # the mean of pieces of 4 and 3 rows is another one
        for batch_size in (8, *unequal) if name in {"mean", "sum", "slices", "own optimizer"} or not unequal else (7,):

            def batches(batch_size: int = batch_size) -> Any:
                return regression_input(batch_size, 1)

            steps = -(-48 // batch_size)  # not None: at the end of the input TF1's sparse Adam decays its slots once more
            expected = train_on(ONE, model, folder / f"{name}-{batch_size}-one", batches, steps)
            found = train_on(TWO, model, folder / f"{name}-{batch_size}-two", batches, steps)
            try:
                assert_close(found, expected, 2e-6)
            except AssertionError as error:
                raise AssertionError(f"{name}, batches of {batch_size}") from error


def an_input_fn_gives_batches_for_all_replicas(folder: Path) -> None:
    """It would divide its batch by the replicas that it is told of."""
    told: list[int] = []

    def batches(input_context: Any = None) -> Any:
        told.append(input_context.num_replicas_in_sync)
        return regression_input(8 // input_context.num_replicas_in_sync, 1)

    found = train_on(TWO, MEAN, folder / "two", batches, 3)
    assert set(told) == {1}
    assert_close(found, train_on(ONE, MEAN, folder / "one", lambda: regression_input(8, 1), 3), 2e-6)


class AskingHook(v1.train.SessionRunHook):
    """Asks for a tensor by name, or for the loss, and for the global step."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.seen: list[Any] = []

    def begin(self) -> None:
        """Finds a tensor, as hooks do."""
        self.held = v1.get_default_graph().get_tensor_by_name("dense/BiasAdd:0")

    def before_run(self, run_context: Any) -> Any:
        """Asks."""
        return v1.train.SessionRunArgs([self.name or run_context.original_args.fetches[1], v1.train.get_global_step()])

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Records the answers."""
        self.seen.append(run_values.results)


def hooks_see_the_whole_batch(folder: Path) -> None:
    """A hook gets the loss of the whole batch, and is refused a tensor of which each replica has a piece."""
    hooks = [AskingHook(None), AskingHook(None)]
    for path, hook in zip((ONE, TWO), hooks, strict=True):
        made = estimator(MEAN, folder / f"hook-{path is ONE}", session_config=ONE_BY_ONE if path is ONE else None)
        path.train(made, lambda: regression_input(7, 1), hooks=[hook], steps=5)
    # Without the runner the legacy path has resource variables, which are read before a step; TensorFlow 1's are read after it.
    np.testing.assert_allclose(hooks[1].seen, np.add(hooks[0].seen, [0, 1]), rtol=1e-5)

    made, hook = estimator(MEAN, folder / "piece"), AskingHook("dense/BiasAdd:0")
    words = "AskingHook asks for 'dense/BiasAdd:0', of which each replica has a piece"
    check_refused(words, lambda: TWO.train(made, regression_input, hooks=[hook], steps=5))


def summaries_of_one_replica_are_announced(folder: Path) -> None:
    """The path that splits batches says once that summaries show the first replica's rows; the loss is that of all."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        v1.summary.scalar("rows", tf.reduce_mean(features["x"]))
        return MEAN(features, labels, mode)

    for model, count in ((model_fn, 1), (MEAN, 0)):
        with mock.patch.object(v1.logging, "warn") as said:
            for path in (TWO, ONE):
                made = estimator(model, folder / f"said-{count}-{path is ONE}", save_summary_steps=1)
                path.train(made, lambda: regression_input(8, 1), steps=2)
        assert sum("first replica's rows" in call.args[0] for call in said.call_args_list) == count
    ours, theirs = (event_losses(folder / f"said-0-{is_one}") for is_one in (False, True))
    assert len(ours) == 2
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def event_losses(folder: Path) -> list[float]:
    """Returns the losses that the summaries of a training have."""
    events = (event for path in folder.glob("events*") for event in v1.train.summary_iterator(str(path)))
    return [value.simple_value for event in events for value in event.summary.value if value.tag == "loss"]


def sums_of_gradients_are_announced(folder: Path) -> None:
    """TensorFlow 1 averages gradients of ``minimize`` alone; the log says where it adds them up."""
    for name, model, count in (("own", own_gradients, 1), ("minimize", MEAN, 0)):
        with mock.patch.object(v1.logging, "warn") as said:
            config = {"train_distribute": tf.distribute.MirroredStrategy(CPUS)}
            train_on(engine("modern"), model, folder / name, lambda: regression_input(4, 1), 1, **config)
        assert sum("are added up, and so is the loss" in call.args[0] for call in said.call_args_list) == count, name


def masked(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model that saves random masks, one of them drawn in a loop."""

    def save(name: str, mask: Any) -> Any:
        zeros = v1.zeros_initializer()
        return v1.get_variable(name, [64], initializer=zeros, trainable=False, use_resource=True).assign(mask)

    def mask() -> Any:
        return v1.nn.dropout(tf.ones([64]), rate=0.5)

    def add(step: Any, total: Any) -> Any:
        return step + 1, total + mask()

    total = v1.while_loop(lambda step, _: step < 2, add, [0, tf.zeros([64])])[1]
    loss = squared(linear(features["x"]), labels)
    with tf.control_dependencies([save("mask", mask()), save("total", total)]):
        return minimize(mode, loss, v1.train.GradientDescentOptimizer(0.01))


def counting(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model that counts its rows: both replicas have as many unless a batch is odd."""
    rows = v1.get_variable("rows", [], tf.int64, v1.zeros_initializer(), trainable=False, use_resource=True)
    loss = squared(linear(features["x"]), labels)
    with tf.control_dependencies([rows.assign_add(tf.shape(labels, tf.int64)[0])]):
        return minimize(mode, loss, v1.train.GradientDescentOptimizer(0.01))


def each_replica_draws_its_own_numbers(folder: Path) -> None:
    """The first replica draws what one device does."""
    alone, mean = train_on(engine("modern"), masked, folder / "alone", steps=1), train_on(TWO, masked, folder / "two", steps=1)
    for name, values in {"mask": {0.0, 2.0}, "total": {0.0, 2.0, 4.0}}.items():
        second = 2 * mean[name] - alone[name]
        assert set(second) == values, (name, second)
        assert (second != alone[name]).sum() > 16, (name, second, alone[name])


def replicas_write_equal_values(folder: Path) -> None:
    """Different values of one variable are refused: the first replica's would be saved for all."""
    modern, config = engine("modern"), {"train_distribute": tf.distribute.MirroredStrategy(CPUS)}
    assert train_on(modern, counting, folder / "even", lambda: regression_input(4), 3, **config)["rows"] == 12
    words = "Replicas wrote different values to 'rows'"

    def unlike() -> Any:
        return regression_input(4, 1).take(1).concatenate(regression_input(5, 1).take(1))

    check_refused(words, lambda: train_on(modern, counting, folder / "unlike", unlike, 1, **config))


def batch_norm_saves_the_mean_of_its_averages(folder: Path) -> None:
    """Each replica keeps averages of its rows."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        net = v1.layers.batch_normalization(features["x"], training=True, momentum=0.5, center=False, scale=False)
        loss = squared(linear(net), labels)
        with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
            return minimize(mode, loss, v1.train.GradientDescentOptimizer(0.01))

    values = train_on(TWO, model_fn, folder / "two", steps=1)
    pieces = X[:4], X[4:8]
    mean = 0.5 * np.mean([piece.mean(0) for piece in pieces], 0)
    variance = 0.5 + 0.5 * np.mean([piece.var(0) for piece in pieces], 0)
    np.testing.assert_allclose(values["batch_normalization/moving_mean"], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(values["batch_normalization/moving_variance"], variance, rtol=1e-5)


def reducing(reduce: Callable[[Any, Any], Any]) -> Any:
    """Returns a model_fn whose loss is made of the squared errors and the features."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = reduce(tf.square(linear(features["x"]) - labels), features)
        return minimize(mode, loss, v1.train.GradientDescentOptimizer(0.01))

    return model_fn


def changing(change: Callable[[Any, Any], Any]) -> Any:
    """Returns a model_fn that changes a variable of three numbers by the features."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        own = v1.get_variable("own", [3], initializer=v1.zeros_initializer(), trainable=False)
        with tf.control_dependencies([change(own, features["x"])]):
            return MEAN(features, labels, mode)

    return model_fn


def averaging(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model that keeps a moving average of its loss."""
    loss = v1.losses.mean_squared_error(labels, linear(features["x"]))
    with tf.control_dependencies([tf.train.ExponentialMovingAverage(0.9).apply([loss])]):
        return minimize(mode, loss, v1.train.MomentumOptimizer(0.05, 0.9))


def summed_and_regularized(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model whose loss is a declared sum and a regularization."""
    predicted = v1.layers.dense(features["x"], 1, kernel_regularizer=lambda w: 0.1 * tf.nn.l2_loss(w))
    v1.losses.mean_squared_error(labels, predicted, reduction="weighted_sum")
    return minimize(mode, v1.losses.get_total_loss(), v1.train.GradientDescentOptimizer(0.01))


def summed_and_decayed(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model whose loss is a declared sum and a decay of the weights that no collection has."""
    loss = v1.losses.mean_squared_error(labels, linear(features["x"]), reduction="weighted_sum")
    loss += 0.1 * tf.add_n([tf.nn.l2_loss(one) for one in v1.trainable_variables()])
    return minimize(mode, loss, v1.train.GradientDescentOptimizer(0.01))


def minimizing_more(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model that reports a mean, and minimizes a sum."""
    errors = tf.square(linear(features["x"]) - labels)
    train_op = v1.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_sum(errors), v1.train.get_global_step())
    return spec(mode, tf.reduce_mean(errors), train_op)


def pieces_that_do_not_make_up_a_batch_are_refused(folder: Path) -> None:
    """Before the first update, by the first batch: no operation's name tells these."""
    unlike = np.linspace(0.1, 1.0, 48, dtype=np.float32).reshape(48, 1)

    def unlike_rows() -> Any:
        numbers = tf.data.Dataset.from_tensor_slices(unlike).batch(8)
        return tf.data.Dataset.zip((regression_input(8, 1), numbers)).map(
            lambda batch, more: (batch[0] | {"more": more}, batch[1])
        )

    def in_batch(errors: Any, features: Any) -> Any:
        return tf.reduce_mean(tf.nn.softmax(errors[:, 0]) * features["more"][:, 0])

    def per_row(features: Any, labels: Any, mode: str) -> Any:
        errors = tf.square(linear(features["x"]) - labels)[:, 0]
        train_op = v1.train.GradientDescentOptimizer(0.01).minimize(errors, v1.train.get_global_step())
        return spec(mode, tf.reduce_mean(errors), train_op)

    depends, no_mean = "The rows of a batch depend on each other", "its loss is neither the mean nor the sum over the rows"
    refused = {
        "root": (reducing(lambda errors, _: tf.sqrt(tf.reduce_mean(errors))), depends),
        "product of means": (reducing(lambda e, x: tf.reduce_mean(e) * tf.reduce_mean(x["more"])), depends),
        "in batch": (reducing(in_batch), depends),
        "scaled by rows": (reducing(lambda e, x: tf.reduce_mean(e) * tf.cast(tf.shape(x["x"])[0], tf.float32)), no_mean),
        "loss of each row": (per_row, no_mean),
    }
    for name, (model, words) in refused.items():
        check_refused(words, lambda: train_on(TWO, model, folder / name, unlike_rows))  # noqa: B023
        assert not list((folder / name).glob("model.ckpt-[1-9]*")), name

    def with_bank() -> Any:
        bank = tf.data.Dataset.from_tensors(tf.ones([100, 3])).repeat()
        return tf.data.Dataset.zip((regression_input(8, 1), bank)).map(
            lambda batch, more: (batch[0] | {"bank": more}, batch[1])
        )

    model = reducing(lambda errors, x: tf.reduce_mean(errors) + 0.0 * tf.reduce_mean(x["bank"]))
    for micro in (1, 2):
        both = engine("modern", replicas=2, micro=micro)
        check_refused("different numbers of rows", lambda: train_on(both, model, folder / f"bank-{micro}", with_bank))  # noqa: B023


def later_terms_are_refused(folder: Path) -> None:
    """The square of the mean error counts from step 50 on, which batch 100 shows."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        mean = squared(linear(features["x"]), labels)
        later = v1.train.get_global_step() >= 50
        loss = mean + tf.cond(later, lambda: tf.square(mean), lambda: 0.0 * mean)
        return minimize(mode, loss, v1.train.GradientDescentOptimizer(0.001))

    for name, options in {"replicas": {"replicas": 2}, "micro": {"micro": 2}}.items():
        path = engine("modern", **options)
        train_on(path, model_fn, folder / f"{name}-40", steps=40)
        words = "The rows of a batch depend on each other"
        check_refused(words, lambda: train_on(path, model_fn, folder / name, steps=120))  # noqa: B023


def replicas_combine_nothing_in_a_model_fn(folder: Path) -> None:
    """It is called once, for one of them; what it declares as a sum of theirs would be a mean."""

    def combined(features: Any, labels: Any, mode: str) -> Any:
        loss = squared(linear(features["x"]), labels)
        rate = 0.1 / tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, loss)
        return minimize(mode, loss, v1.train.GradientDescentOptimizer(rate))

    def declared(features: Any, labels: Any, mode: str) -> Any:
        how = {"synchronization": tf.VariableSynchronization.ON_READ, "aggregation": tf.VariableAggregation.SUM}
        rows = v1.get_variable("rows", [], initializer=v1.zeros_initializer(), trainable=False, **how)
        with tf.control_dependencies([rows.assign_add(tf.cast(tf.shape(labels)[0], tf.float32))]):
            return MEAN(features, labels, mode)

    refused = {"combines values of the replicas itself": combined, "is declared as the sum": declared}
    for words, model in refused.items():
        config = {"train_distribute": tf.distribute.MirroredStrategy(CPUS)}
        check_refused(words, lambda: train_on(engine("modern"), model, folder / words[:5], **config))  # noqa: B023


def of_one_size(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model that reshapes to the size of a whole batch."""
    return MEAN(features | {"x": tf.reshape(features["x"], [8, 3])}, labels, mode)


def changes_by_splitting_are_refused(folder: Path) -> None:
    """Models that would train differently on pieces of a batch are refused by name."""
    by_rows = "changes 'own' by the rows, and not by their mean"
    refused = {
        "plain sum": (reducing(lambda errors, _: tf.reduce_sum(errors)), "adds up the batch"),
        "plain sum, half": (reducing(lambda errors, _: 0.5 * tf.reduce_sum(errors) + 1.0), "adds up the batch"),
        "masked": (
            reducing(lambda errors, x: tf.reduce_sum(errors) / (1 + tf.reduce_sum(tf.nn.relu(x["x"])))),
            "the values in the batch",
        ),
        "weighted, in a mean": (
            reducing(lambda errors, x: tf.reduce_mean(v1.losses.compute_weighted_loss(errors, tf.nn.relu(x["x"][:, :1])))),
            "the values in the batch",
        ),
        "printed sum": (reducing(lambda errors, _: v1.Print(tf.reduce_sum(errors), [])), "adds up the batch"),
        "regularized sum": (summed_and_regularized, "regularization"),
        "decayed sum": (summed_and_decayed, "regularization"),
        "minimized sum": (minimizing_more, "adds up the batch"),
        "counted": (changing(lambda own, x: own.assign_add(tf.fill([3], tf.cast(tf.shape(x)[0], tf.float32)))), by_rows),
        "summed": (changing(lambda own, x: own.assign_add(tf.fill([3], tf.reduce_sum(tf.reduce_mean(x, 1))))), by_rows),
        "largest": (changing(lambda own, x: own.assign(tf.maximum(own, tf.reduce_max(x, 0)))), by_rows),
        "scattered": (changing(lambda own, x: v1.scatter_add(own, tf.cast(x[:, 0] > 0, tf.int32), x[:, 0])), by_rows),
    }
    for name, (model, words) in refused.items():
        check_refused(words, lambda: train_on(TWO, model, folder / name))  # noqa: B023
        assert not list((folder / name).glob("model.ckpt*")), name

    def of_fixed_size() -> Any:
        return regression_input().unbatch().batch(8, drop_remainder=True)

    words = "fails when it is called with the rows of a replica's piece"
    check_refused(words, lambda: train_on(TWO, of_one_size, folder / "size", of_fixed_size))
    check_refused("changes 'rows' by the rows", lambda: train_on(TWO, counting, folder / "rows", of_fixed_size))


def own_gradients(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model without compute_gradients, for which TF1 adds the replicas' gradients up."""
    loss = squared(linear(features["x"]), labels)
    variables = v1.trainable_variables()
    pairs = zip(tf.gradients(loss, variables), variables, strict=True)
    train_op = v1.train.GradientDescentOptimizer(0.02).apply_gradients(pairs, v1.train.get_global_step())
    return spec(mode, loss, train_op)


def clipped(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model that clips its gradients."""
    loss = squared(linear(features["x"]), labels)
    optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    pairs = zip(gradients, variables, strict=True)
    return spec(mode, loss, optimizer.apply_gradients(pairs, v1.train.get_global_step()))


class Mirror(tf.distribute.MirroredStrategy):
    """A strategy of the user's class."""


class CountingReduction(tf.distribute.ReductionToOneDevice):
    """Counts the reductions of all instances: a strategy copies its own."""

    used = 0

    def batch_reduce_implementation(self, *args: Any) -> Any:
        """Counts a call."""
        CountingReduction.used += 1
        return super().batch_reduce_implementation(*args)


def whole_batches_train_as_the_legacy_mirrored_strategy(folder: Path) -> None:
    """The script brings its strategy. Of 11 batches the last one has no partner, and neither path takes it."""
    modern = engine("modern")
    models = {
        "momentum": MEAN,
        "adam": minimizing(lambda: v1.train.AdamOptimizer(0.05)),
        "own": own_gradients,
        "clipped": clipped,
        "batch norm": MODELS["batch norm around minimize"],
    }

    def batches() -> Any:
        return regression_input(4, 1).take(11)

    for name, model in models.items():
        results = []
        for path in (ONE, modern):
            config = {"session_config": v1.ConfigProto(device_count={"CPU": 2})}
            config |= {"train_distribute": tf.distribute.MirroredStrategy(CPUS)}
            steps = None if name == "momentum" else 5
            results.append(train_on(path, model, folder / f"{name}-{path is ONE}", batches, steps, **config))
        assert results[1]["global_step"] == 5
        try:
            assert_close(results[1], results[0], 2e-6)
        except AssertionError as error:
            raise AssertionError(name) from error
        used = CountingReduction.used
        with tf.Graph().as_default():  # as in a script
            central = tf.distribute.experimental.CentralStorageStrategy(CPUS, "/cpu:0")
            others = {"own": Mirror(CPUS, CountingReduction()), "central": central}
        for other, strategy in others.items():
            same = train_on(modern, model, folder / f"{name}-{other}", batches, train_distribute=strategy)
            assert same["global_step"] == 5
            assert_close(same, results[1], 0.0)
        assert CountingReduction.used > used


def optimizers_of_a_script_take_the_mean_of_whole_batches(folder: Path) -> None:
    """Two batches of four rows are one of eight. TensorFlow 1 cannot train this."""
    for name, model in {"own optimizer": MODELS["BERT-style"], "no optimizer": by_hand}.items():
        config = {"train_distribute": tf.distribute.MirroredStrategy(CPUS)}
        found = train_on(engine("modern"), model, folder / f"{name}-two", lambda: regression_input(4, 1), 5, **config)
        expected = train_on(engine("modern"), model, folder / f"{name}-one", lambda: regression_input(8, 1), 5)
        assert_close(found, expected, 2e-6)


def by_hand(features: Any, labels: Any, mode: str) -> Any:
    """Makes a model that updates its variables itself, by gradients of ``compute_gradients``, which divides the loss by the replicas."""
    loss = squared(linear(features["x"]), labels)
    optimizer = v1.train.GradientDescentOptimizer(0.1)
    updates = [variable.assign_sub(0.1 * gradient) for gradient, variable in optimizer.compute_gradients(loss)]
    with tf.control_dependencies(updates):
        return spec(mode, loss, v1.assign_add(v1.train.get_global_step(), 1).op)


def numbers_drawn_beside_an_optimizer_are_refused(folder: Path) -> None:
    """Noise on gradients would differ between the replicas' copies of a variable."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = squared(linear(features["x"]), labels)
        variables = v1.trainable_variables()
        noisy = [one + v1.random_normal(one.shape, name="noise") for one in tf.gradients(loss, variables)]
        train_op = v1.train.GradientDescentOptimizer(0.1).apply_gradients(zip(noisy, variables, strict=True))
        with tf.control_dependencies([train_op]):
            return spec(mode, loss, v1.assign_add(v1.train.get_global_step(), 1).op)

    check_refused("draws random numbers beside the optimizer", lambda: train_on(TWO, model_fn, folder))


def rows_beside_gradients_are_refused(folder: Path) -> None:
    """Each replica has rows of its own, and the gradients are those of all: by an optimizer of TensorFlow, by the script, and in two steps."""

    def scaled_by_rows(apply: Callable[[Any], Any]) -> Any:
        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            loss = squared(linear(features["x"]), labels)
            variables = v1.trainable_variables()
            mixed = [one * tf.reduce_max(labels) for one in tf.gradients(loss, variables)]
            with tf.control_dependencies([apply(list(zip(mixed, variables, strict=True)))]):
                return spec(mode, loss, v1.assign_add(v1.train.get_global_step(), 1).op)

        return model_fn

    def by_script(pairs: Any) -> Any:
        return tf.group(*[variable.assign_sub(0.1 * gradient) for gradient, variable in pairs])

    def by_sums(pairs: Any) -> Any:
        zeros = v1.zeros_initializer()
        sums = [v1.get_variable(v.op.name + "/sum", v.shape, trainable=False, initializer=zeros) for _, v in pairs]
        added = [v1.assign_add(total, gradient) for total, (gradient, _) in zip(sums, pairs, strict=True)]
        return by_script([(total, variable) for total, (_, variable) in zip(added, pairs, strict=True)])

    own = {
        "which is different in each replica and no gradient by tf.gradients": lambda pairs: v1.train.GradientDescentOptimizer(
            0.1
        ).apply_gradients(pairs),
        "changes the trained variable 'dense/kernel' by something else": by_script,
        "for an update, and each replica computes that from rows of its own": by_sums,
    }
    for words, apply in own.items():
        check_refused(words, lambda: train_on(TWO, scaled_by_rows(apply), folder / words[:5]))  # noqa: B023


def places_and_a_scalar_train_as_one_device(folder: Path) -> None:
    """A table that is looked up at the same places for each row, a number beside the batch, and a loss of another type."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        table = v1.get_variable("places", [3, 1], initializer=v1.ones_initializer())
        x = features["x"] * tf.nn.embedding_lookup(table, tf.range(3))[:, 0] * features["scale"]
        loss = tf.cast(squared(linear(x), labels), tf.float64)
        reported = tf.cast(loss, tf.float32)
        variables = v1.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.1)
        updates = [
            variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))
            for gradient, variable in zip(gradients, variables, strict=True)
        ]
        with tf.control_dependencies(updates):
            return spec(mode, reported, v1.assign_add(v1.train.get_global_step(), 1).op)

    def batches(size: int) -> Any:
        return regression_input(size, 1).map(lambda features, labels: (features | {"scale": tf.constant(0.5)}, labels))

    config = {"train_distribute": tf.distribute.MirroredStrategy(CPUS)}
    found = train_on(engine("modern"), model_fn, folder / "two", lambda: batches(4), 5, **config)
    assert_close(found, train_on(engine("modern"), model_fn, folder / "one", lambda: batches(8), 5), 2e-6)
    alone = train_on(engine("modern"), model_fn, folder / "alone", lambda: regression_input(8, 1).map(whole), 5)
    assert_close(
        train_on(engine("modern", micro=2), model_fn, folder / "micro", lambda: regression_input(8, 1).map(whole), 5),
        alone,
        2e-6,
    )


def whole(features: Any, labels: Any) -> Any:
    """Returns a batch whose number is a column."""
    return features | {"scale": tf.ones_like(labels)}, labels


def each_replica_evaluates_batches_of_its_own(folder: Path) -> None:
    """Five batches of two rows, of which two replicas take four in two steps; the numbers are TensorFlow 1.15.5's."""

    def squares() -> Any:
        x = np.arange(10, dtype=np.float32).reshape(10, 1) ** 2
        return tf.data.Dataset.from_tensor_slices(({"x": x}, x * 3)).batch(2)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        y = v1.layers.dense(features["x"], 1, kernel_initializer=v1.ones_initializer())
        loss = v1.losses.mean_squared_error(labels, y)
        made = minimize(mode, loss, v1.train.GradientDescentOptimizer(0.0))
        return made._replace(eval_metric_ops={"mean": v1.metrics.mean(features["x"])})

    trained = estimator(model_fn, folder, eval_distribute=tf.distribute.MirroredStrategy(CPUS))
    modern = engine("modern")
    modern.train(trained, squares, steps=1)
    two_steps = modern.evaluate(trained, squares, steps=2)
    assert (two_steps["mean"], two_steps["loss"]) == (17.5, 2338.0)
    with mock.patch.object(v1.logging, "warn") as warn:
        assert modern.evaluate(trained, squares)["mean"] == 28.5, "that of all rows"
    assert "batches count" in warn.call_args[0][0]


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
