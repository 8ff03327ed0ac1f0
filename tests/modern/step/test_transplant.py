"""All kinds of TF1 graphs, trained on both paths from the same start: every value in the checkpoints must agree."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.keras.transplanted_model import TransplantedModel
from estimator_bridge.modern.step.transplant import Transplant
from tests.modern.jobs import (
    IDS,
    ModelFn,
    check_same,
    embedded,
    estimator,
    linear,
    minimizing,
    regression_input,
    saved,
    spec,
    train,
    v1,
)
from tests.running import python_output

trainer = v1.train


def step() -> Any:
    return trainer.get_global_step()


def squared(predicted: Any, wanted: Any) -> Any:
    return tf.reduce_mean(tf.square(predicted - wanted))


def adam() -> Any:
    return trainer.AdamOptimizer(0.05)


def finish(mode: str, loss: Any) -> Any:
    return spec(mode, loss, adam().minimize(loss, step()))


def normalized(how: str, training: Callable[[], Any] = lambda: True) -> ModelFn:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        net = v1.layers.batch_normalization(features["x"], training=training(), momentum=0.8)
        loss = squared(linear(net), labels)
        optimizer = trainer.MomentumOptimizer(0.01, 0.9)
        update_ops = v1.get_collection(v1.GraphKeys.UPDATE_OPS)
        if how == "grouped":
            return spec(mode, loss, tf.group(optimizer.minimize(loss, step()), *update_ops))
        gradients = optimizer.compute_gradients(loss)
        with tf.control_dependencies(update_ops):
            train_op = optimizer.minimize(loss, step()) if how == "minimize" else optimizer.apply_gradients(gradients, step())
        return spec(mode, loss, train_op)

    return model_fn


def clipped(features: Any, labels: Any, mode: str) -> Any:
    loss = squared(linear(features["x"]) + embedded(features["words"]), labels)
    optimizer = adam()
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    gradients, _ = tf.clip_by_global_norm(gradients, 0.1)
    return spec(mode, loss, optimizer.apply_gradients(zip(gradients, variables, strict=True), step()))


def multiplied(features: Any, labels: Any, mode: str) -> Any:
    v1.get_variable("unused", shape=[2], initializer=v1.zeros_initializer())  # its gradient is None
    loss = squared(linear(features["x"]) + embedded(features["words"]), labels)
    optimizer = trainer.AdagradOptimizer(0.05)

    def scaled(gradient: Any, variable: Any) -> Any:
        if gradient is None or isinstance(gradient, tf.IndexedSlices):
            return gradient, variable
        return gradient * (3.0 if "bias" in variable.name else 0.5), variable

    pairs = [scaled(gradient, variable) for gradient, variable in optimizer.compute_gradients(loss)]
    return spec(mode, loss, optimizer.apply_gradients(pairs, step()))


def averaged(features: Any, labels: Any, mode: str) -> Any:
    loss = squared(linear(features["x"]), labels)
    update = trainer.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.control_dependencies([update]):
        average = trainer.ExponentialMovingAverage(0.9, num_updates=step()).apply(v1.trainable_variables())
    with tf.control_dependencies([average]):
        return spec(mode, loss, v1.assign_add(step(), 1).op)


def wide_and_deep(features: Any, labels: Any, mode: str) -> Any:
    with v1.variable_scope("wide"):
        wide = linear(features["x"])
    with v1.variable_scope("deep"):
        deep = embedded(features["words"])
    loss = squared(wide + deep, labels)
    one = trainer.FtrlOptimizer(0.1).minimize(loss, var_list=v1.trainable_variables("wide"))
    other = trainer.AdagradOptimizer(0.1).minimize(loss, var_list=v1.trainable_variables("deep"))
    with tf.control_dependencies([tf.group(one, other)]):
        return spec(mode, loss, v1.assign_add(step(), 1).op)


def adversarial(both_count: bool) -> ModelFn:
    def judge(values: Any) -> Any:
        with v1.variable_scope("judge", reuse=v1.AUTO_REUSE):
            return linear(values)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        with v1.variable_scope("maker"):
            made = linear(features["x"])
        loss = squared(judge(labels), 1.0) + squared(judge(made), 0.0)
        counted = step() if both_count else None
        first = trainer.AdamOptimizer(0.05, 0.5).minimize(loss, counted, var_list=v1.trainable_variables("judge"))
        with tf.control_dependencies([first]):  # reads the judge that the first optimizer has just changed
            fooled = squared(judge(tf.identity(made)), 1.0)
            second = trainer.AdamOptimizer(0.05, 0.5).minimize(fooled, step(), var_list=v1.trainable_variables("maker"))
        return spec(mode, loss, tf.group(first, second))

    return model_fn


class PlainAdam(tf.compat.v1.train.Optimizer):
    """Adam like BERT's: own slots by get_variable, apply_gradients of plain assigns, no global step."""

    def __init__(self) -> None:
        super().__init__(use_locking=False, name="PlainAdam")

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        assigned = []
        for gradient, variable in grads_and_vars:
            dense, shape, zeros = tf.convert_to_tensor(gradient), variable.shape.as_list(), v1.zeros_initializer()
            m = v1.get_variable(variable.op.name + "/adam_m", shape, trainable=False, initializer=zeros)
            v = v1.get_variable(variable.op.name + "/adam_v", shape, trainable=False, initializer=zeros)
            next_m, next_v = 0.9 * m + 0.1 * dense, 0.999 * v + 0.001 * tf.square(dense)
            update = next_m / (tf.sqrt(next_v) + 1e-6) + 0.01 * variable
            assigned += [variable.assign(variable - 0.01 * update), m.assign(next_m), v.assign(next_v)]
        return tf.group(*assigned)


def bert_style(features: Any, labels: Any, mode: str) -> Any:
    loss = squared(linear(features["x"]) + embedded(features["words"]), labels)
    variables = v1.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    train_op = PlainAdam().apply_gradients(zip(gradients, variables, strict=True), global_step=step())
    return spec(mode, loss, tf.group(train_op, [step().assign(step() + 1)]))


def regularized(features: Any, labels: Any, mode: str) -> Any:
    kernel = v1.constant_initializer(np.linspace(-0.5, 0.5, 12).reshape(3, 4))
    hidden = v1.layers.dense(features["x"], 4, kernel_regularizer=lambda w: 0.1 * tf.nn.l2_loss(w), kernel_initializer=kernel)
    v1.losses.mean_squared_error(labels, linear(hidden, "out"))
    return finish(mode, v1.losses.get_total_loss())


def recurrent(features: Any, labels: Any, mode: str) -> Any:
    lengths = tf.reduce_sum(tf.cast(features["words"][:, :2] > 2, tf.int32), 1) + 1
    with v1.variable_scope("rnn", initializer=v1.constant_initializer(0.1)):
        cell = v1.nn.rnn_cell.BasicLSTMCell(4)
        _, state = v1.nn.dynamic_rnn(cell, tf.expand_dims(features["x"], 2), dtype=tf.float32, sequence_length=lengths)
    return finish(mode, squared(linear(state.h), labels))


def accumulating(features: Any, labels: Any, mode: str) -> Any:
    loss = squared(linear(features["x"]), labels)
    optimizer, zeros = adam(), v1.zeros_initializer()
    pairs = optimizer.compute_gradients(loss)
    sums = [v1.get_variable(v.op.name + "/sum", v.shape, trainable=False, initializer=zeros) for _, v in pairs]
    added = tf.group(*[v1.assign_add(total, gradient) for total, (gradient, _) in zip(sums, pairs, strict=True)])

    def apply() -> Any:
        means = [(total.read_value() / 2, variable) for total, (_, variable) in zip(sums, pairs, strict=True)]
        with tf.control_dependencies([optimizer.apply_gradients(means)]):
            return tf.group(*[v1.assign(total, tf.zeros_like(total)) for total in sums])

    with tf.control_dependencies([added]):
        applied = tf.cond(tf.equal(step() % 2, 1), apply, tf.no_op)
    with tf.control_dependencies([applied]):
        return spec(mode, loss, v1.assign_add(step(), 1).op)


def partitioned(features: Any, labels: Any, mode: str) -> Any:
    with v1.variable_scope("slices", partitioner=v1.fixed_size_partitioner(3)):
        table = v1.get_variable("table", shape=[IDS, 2], initializer=v1.constant_initializer(0.3))
        kernel = v1.get_variable("kernel", shape=[3, 1], initializer=v1.constant_initializer(0.1))
    vectors = v1.nn.embedding_lookup(table, features["words"], partition_strategy="div")
    predicted = tf.reduce_sum(tf.reduce_mean(vectors, 1), 1, keepdims=True) + tf.matmul(
        features["x"], tf.convert_to_tensor(kernel)
    )
    return finish(mode, squared(predicted, labels))


def awkwardly_named(features: Any, labels: Any, mode: str) -> Any:
    net = features["x"]
    for name in ("inputs", "handles", "batch"):
        net = tf.identity(net, name=name) * v1.Variable(0.9, name=name)
    return finish(mode, squared(linear(net), labels))


def reused(features: Any, labels: Any, mode: str) -> Any:
    with v1.variable_scope("shared") as scope:
        one = linear(features["x"])
        scope.reuse_variables()
        other = linear(features["x"] * 2.0)
    return finish(mode, squared(one + other, labels))


def initialised_by_session(features: Any, labels: Any, mode: str) -> Any:
    loss = squared(linear(features["x"]), labels)
    train_op = adam().minimize(loss, step())
    kernel = next(variable for variable in v1.trainable_variables() if "kernel" in variable.name)
    value = v1.placeholder(tf.float32, [3, 1])
    assign = kernel.assign(value)
    scaffold = trainer.Scaffold(init_fn=lambda _, session: session.run(assign, {value: np.ones([3, 1])}))
    return spec(mode, loss, train_op, scaffold=scaffold)


def with_python(features: Any, labels: Any, mode: str) -> Any:
    halved = v1.py_func(lambda values: values * np.float32(0.5), [features["x"][:, :1]], tf.float32)
    halved.set_shape([None, 1])
    return finish(mode, squared(linear(features["x"]) + halved, labels))


def counting_by_three(features: Any, labels: Any, mode: str) -> Any:
    loss = squared(linear(features["x"]), labels)
    with tf.control_dependencies([adam().minimize(loss, step())]):
        return spec(mode, loss, v1.assign_add(step(), 2))


def in_float64(features: Any, labels: Any, mode: str) -> Any:
    weights = v1.get_variable("w", [3, 1], tf.float64, v1.constant_initializer(0.1, tf.float64))
    return finish(mode, squared(tf.matmul(tf.cast(features["x"], tf.float64), weights), tf.cast(labels, tf.float64)))


def with_local_variable(features: Any, labels: Any, mode: str) -> Any:
    count = v1.get_variable("count", initializer=0.0, trainable=False, collections=[v1.GraphKeys.LOCAL_VARIABLES])
    with tf.control_dependencies([v1.assign_add(count, 0.1)]):
        factor = count.read_value()
    return finish(mode, squared(linear(features["x"]) * factor, labels))


def with_dropout(features: Any, labels: Any, mode: str) -> Any:
    return finish(mode, squared(linear(tf.nn.dropout(features["x"], rate=0.5, seed=5)), labels))


def with_dimensions(features: Any, labels: Any, mode: str) -> Any:
    width = features["x"].get_shape().as_list()[1]
    return finish(mode, squared(linear(tf.reshape(features["x"], [-1, width])), labels))


def with_keras_layer(features: Any, labels: Any, mode: str) -> Any:
    layer = tf.keras.layers.Dense(1, kernel_initializer=tf.keras.initializers.Constant(0.2))
    return finish(mode, squared(layer(features["x"]), labels))


MODELS: dict[str, ModelFn] = {
    "batch norm around minimize": normalized("minimize"),
    "batch norm around apply_gradients": normalized("apply"),
    "batch norm grouped": normalized("grouped"),
    "batch norm in a cond": normalized("minimize", training=lambda: tf.less(step() % 3, 2)),
    "adversarial": adversarial(both_count=False),
    "adversarial, both count": adversarial(both_count=True),
    "by three": counting_by_three,
    "clipped": clipped,
    "multiplied": multiplied,
    "averaged": averaged,
    "wide and deep": wide_and_deep,
    "BERT-style": bert_style,
    "regularized": regularized,
    "recurrent": recurrent,
    "partitioned": partitioned,
    "awkward names": awkwardly_named,
    "reused": reused,
    "init_fn": initialised_by_session,
    "py_func": with_python,
    "float64": in_float64,
    "local variable": with_local_variable,
    "dropout": with_dropout,
    "shapes": with_dimensions,
    "Keras layer": with_keras_layer,
}


@pytest.mark.parametrize("name", MODELS)
def test_both_paths_train_the_same(name: str, tmp_path: Path) -> None:
    check_same(MODELS[name], tmp_path)


def test_gradients_that_are_accumulated_by_a_branch(tmp_path: Path) -> None:
    """The names of what Adam makes there are those that scripts get under ``run``, whose control flow is TensorFlow 1's."""
    with mock.patch.object(control_flow_util, "ENABLE_CONTROL_FLOW_V2", False):
        check_same(accumulating, tmp_path)


def test_moving_averages_move(tmp_path: Path) -> None:
    values = train("modern", normalized("minimize"), tmp_path)
    assert np.abs(values["batch_normalization/moving_mean"]).min() > 1e-3
    assert np.abs(values["batch_normalization/moving_variance"] - 1.0).max() > 1e-2


def test_a_variable_is_true_whatever_its_value(tmp_path: Path) -> None:
    """TF1's reference variables were true, and common getters of moving averages rely on it; resource variables raise."""
    found: list[bool] = []

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        made = finish(mode, squared(linear(features["x"]), labels))
        average = trainer.ExponentialMovingAverage(0.9)
        average.apply(v1.trainable_variables())
        found.extend(bool(average.average(variable)) for variable in v1.global_variables())
        return made

    model_graph.build(estimator(model_fn, tmp_path), regression_input, model_graph.TRAIN, None)
    assert found.count(True) == 2  # kernel and bias; of the rest there is no average
    assert found.count(False) > 0


def test_an_update_outside_of_the_train_op_stays_out(tmp_path: Path) -> None:
    def forgotten(features: Any, labels: Any, mode: str) -> Any:
        net = v1.layers.batch_normalization(features["x"], training=True, momentum=0.8)
        return finish(mode, squared(linear(net), labels))

    values = check_same(forgotten, tmp_path)
    np.testing.assert_array_equal(values["batch_normalization/moving_mean"], np.zeros(3))


def test_init_from_checkpoint(tmp_path: Path) -> None:
    source = train("legacy", minimizing(adam), tmp_path / "source")

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        made = minimizing(adam)(features, labels, mode)
        trainer.init_from_checkpoint(str(tmp_path / "source"), {"dense/": "dense/"})
        return made

    values = check_same(model_fn, tmp_path, steps=1)
    assert np.abs(values["dense/kernel"] - source["dense/kernel"]).max() < 0.1, "one step of Adam away from the source"


@pytest.mark.parametrize("which", [".*", "dense/k.*"])
def test_warm_start_from(which: str, tmp_path: Path) -> None:
    train("legacy", minimizing(adam), tmp_path / "source", steps=3)
    settings = tf.estimator.WarmStartSettings(str(tmp_path / "source"), vars_to_warm_start=which)
    values = check_same(minimizing(adam), tmp_path, steps=3, config={"warm_start_from": settings})
    assert values["global_step"] == 3


def test_a_resumed_training_runs_no_initialiser(tmp_path: Path) -> None:
    calls: list[int] = []

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        made = minimizing(adam)(features, labels, mode)
        return made._replace(scaffold=trainer.Scaffold(init_fn=lambda *_: calls.append(1)))

    train("modern", model_fn, tmp_path, steps=2)
    train("modern", model_fn, tmp_path, steps=2)
    assert calls == [1]


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    train("legacy", MODELS["regularized"], tmp_path)
    before = saved(tmp_path)
    with pytest.raises(BridgeError, match="lacks"):
        train("modern", minimizing(adam), tmp_path)
    assert sorted(saved(tmp_path)) == sorted(before)


def test_fit_of_the_keras_model_trains_as_the_engine_does(tmp_path: Path) -> None:
    expected = train("legacy", minimizing(adam), tmp_path / "legacy")
    model = model_graph.build(estimator(minimizing(adam), tmp_path), regression_input, model_graph.TRAIN, None)
    transplant = Transplant(model)
    items = transplant.saved()
    keras_model = TransplantedModel(transplant)
    history = keras_model.fit(model.pipeline.dataset(), steps_per_epoch=10, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    for item in items:
        np.testing.assert_allclose(
            transplant.settled[item.variable].read_value(), expected[item.name], rtol=1e-5, atol=1e-5, err_msg=item.name
        )
    assert {variable.name for variable in keras_model.trainable_weights} == {"dense/kernel:0", "dense/bias:0", "embedding:0"}


def test_a_read_that_waits_for_nothing_gives_the_value_before_the_step(tmp_path: Path) -> None:
    """A Keras layer of batch norm that is called three times: TensorFlow 1.15.5 adds up what each call would change alone."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        mean = v1.get_variable("mean", initializer=0.0, use_resource=True, trainable=False)
        updates = [mean.assign_sub((mean - value) * 0.1) for value in (1.0, 2.0, 3.0)]
        with tf.control_dependencies([update.op for update in updates]):
            loss = squared(linear(features["x"]), labels)
        return finish(mode, loss)

    assert train("modern", model_fn, tmp_path, steps=1)["mean"] == pytest.approx(0.1 * 1.0 + 0.1 * 2.0 + 0.1 * 3.0)


@pytest.mark.usefixtures("warm_python")
def test_tables_are_filled_on_other_machines() -> None:
    """A lookup right after has the words, though a remote function may run no more than its outputs depend on."""
    answers = python_output(sys.executable, Path(__file__).with_name("tables_of_servers.py")).splitlines()[-1]
    assert json.loads(answers) == {job: ["not filled", True, [6, -1, 5]] for job in ("ps", "worker")}
