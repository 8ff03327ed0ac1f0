"""Every optimizer of the table follows TF1's own, dense and sparse, slots included, and the table is complete."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge.modern.graph.optimizers import rebuild
from estimator_bridge.modern.graph.optimizers.capture import Update, recorded_updates
from tests.modern.jobs import check_same, engine, estimator, linear, minimizing, regression_input, spec, v1

Make = Callable[[], Any]
train = v1.train


def decayed(rate: float) -> Any:
    return train.exponential_decay(rate, train.get_global_step(), decay_steps=3, decay_rate=0.5)


KERAS: dict[str, Make] = {
    "GradientDescent": lambda: train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: train.MomentumOptimizer(0.05, 0.9),
    "Momentum of 0": lambda: train.MomentumOptimizer(0.05, 0.0),
    "Nesterov": lambda: train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "Adagrad": lambda: train.AdagradOptimizer(0.2, initial_accumulator_value=0.05),
    "Adam": lambda: train.AdamOptimizer(0.05, beta1=0.8, beta2=0.99, epsilon=1e-6),
    "Adam without momentum": lambda: train.AdamOptimizer(0.05, beta1=0.0),
    "RMSProp": lambda: train.RMSPropOptimizer(0.02, decay=0.8),
    "RMSProp, momentum": lambda: train.RMSPropOptimizer(0.02, decay=0.8, momentum=0.5, epsilon=1e-6),
    "RMSProp, centered": lambda: train.RMSPropOptimizer(0.02, decay=0.8, momentum=0.5, epsilon=1e-6, centered=True),
    "RMSProp, centered, no momentum": lambda: train.RMSPropOptimizer(0.02, decay=0.8, epsilon=1e-6, centered=True),
    "Ftrl": lambda: train.FtrlOptimizer(0.1),
    "Ftrl, l1, l2, shrinkage": lambda: train.FtrlOptimizer(
        0.1, -0.6, 0.2, 0.01, 0.02, l2_shrinkage_regularization_strength=0.03
    ),
    "Ftrl, beta": lambda: train.FtrlOptimizer(0.1, beta=0.5),
    "Adadelta": lambda: train.AdadeltaOptimizer(1.0, rho=0.9, epsilon=1e-4),
    "scheduled GradientDescent": lambda: train.GradientDescentOptimizer(decayed(0.1)),
    "scheduled Momentum": lambda: train.MomentumOptimizer(decayed(0.1), 0.9),
    "Momentum, rate of 0": lambda: train.MomentumOptimizer(0.0, 0.9),
    "scheduled Adam": lambda: train.AdamOptimizer(decayed(0.1)),
    "scheduled RMSProp": lambda: train.RMSPropOptimizer(decayed(0.1), momentum=0.5),
    "scheduled Ftrl": lambda: train.FtrlOptimizer(decayed(0.1)),
    "rate from a callable": lambda: train.AdamOptimizer(lambda: 0.05),
    "float64 rate": lambda: train.AdagradOptimizer(tf.cast(decayed(0.1), tf.float64)),
}
AS_THEY_ARE: dict[str, Make] = {
    "ProximalAdagrad": lambda: train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
    "AdagradDA": lambda: train.AdagradDAOptimizer(0.1, train.get_global_step()),
    "rate in a variable": lambda: train.AdamOptimizer(v1.get_variable("rate", initializer=0.05, trainable=False)),
    "rate from a callable that makes tensors": lambda: train.AdamOptimizer(lambda: tf.constant(0.05) * tf.sqrt(4.0)),
    "changing momentum": lambda: train.MomentumOptimizer(0.05, decayed(0.9)),
}


class Doubling(tf.compat.v1.train.GradientDescentOptimizer):
    """A subclass may do anything, so only its own code knows what."""

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return super()._resource_apply_dense(2.0 * grad, handle)


def captured(make: Make) -> list[Update]:
    with tf.Graph().as_default(), recorded_updates() as updates:
        train.create_global_step()
        variable = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
        make().minimize(tf.reduce_sum(variable**2.0))
    return updates


@pytest.mark.parametrize("name", KERAS)
def test_twenty_steps_equal_those_of_a_session(name: str, tmp_path: Path) -> None:
    assert captured(KERAS[name]), "the optimizer was not taken over by Keras"
    values = check_same(minimizing(KERAS[name]), tmp_path, tolerance=0.0)  # the same kernels: not one bit may differ
    moved = not np.array_equal(values["dense/kernel"], np.linspace(-0.5, 0.5, 3).reshape(-1, 1).astype(np.float32))
    assert moved == ("rate of 0" not in name)


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_what_keras_lacks_runs_as_it_is_on_one_device(name: str, tmp_path: Path) -> None:
    assert not captured(AS_THEY_ARE[name])
    make = AS_THEY_ARE[name]
    if name != "AdagradDA":
        check_same(minimizing(make), tmp_path)
        return

    def dense_only(features: Any, labels: Any, mode: str) -> Any:  # its sparse form does not sum duplicates in TF1 either
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        return spec(mode, loss, make().minimize(loss, train.get_global_step()))

    check_same(dense_only, tmp_path)


def test_a_subclass_runs_as_it_is(tmp_path: Path) -> None:
    assert not captured(lambda: Doubling(0.1))
    minimize = minimizing(lambda: Doubling(0.05))

    def with_resources(features: Any, labels: Any, mode: str) -> Any:  # its method is for resource variables
        with v1.variable_scope(v1.get_variable_scope(), use_resource=True):
            return minimize(features, labels, mode)

    check_same(with_resources, tmp_path)


def test_one_optimizer_that_applies_twice_in_a_step_counts_both(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        first, second = linear(features["x"], "first"), linear(features["x"], "second")
        loss = tf.reduce_mean(tf.square(first - labels)) + tf.reduce_mean(tf.square(second - 2 * labels))
        optimizer = train.AdamOptimizer(0.05, beta1=0.8, beta2=0.95)
        one = optimizer.minimize(loss, var_list=v1.trainable_variables("first"))
        with tf.control_dependencies([one]):  # a second gradient would depend on the first update: order it
            two = optimizer.minimize(
                tf.reduce_mean(tf.square(linear(features["x"], "third") - labels)),
                train.get_global_step(),
                var_list=v1.trainable_variables("third"),
            )
        return spec(mode, loss, two)

    values = check_same(model_fn, tmp_path)
    np.testing.assert_allclose(values["beta1_power"], 0.8**41, rtol=1e-4)


@pytest.mark.parametrize("name", sorted(rebuild.RULES))
def test_a_row_names_real_attributes_and_every_argument(name: str) -> None:
    rule = rebuild.RULES[name]
    (update,) = next(found for make in KERAS.values() if type((found := captured(make))[0].optimizer).__name__ == name)
    made = update.optimizer
    for attribute in rule.hyperparameters.values():
        assert hasattr(made, attribute)
    arguments = set(inspect.signature(type(made).__init__).parameters) - {"self", "name", "use_locking"}
    ignored = {"accum_name", "linear_name", "use_own_namescope_for_non_slot_vars"}  # names, which the variables have already
    assert len(rule.hyperparameters) == len(arguments - ignored), arguments
    built = rebuild.build(made, update.hyperparameters)
    assert isinstance(built, tf_keras.optimizers.legacy.Optimizer)


@pytest.mark.parametrize("name", [name for name in KERAS if "rate" not in name and "scheduled" not in name])
def test_the_slots_of_both_sides_are_all_in_the_row(name: str) -> None:
    (update,) = captured(KERAS[name])
    rule = rebuild.rule_for(update.optimizer)
    assert rule is not None
    built = rebuild.build(update.optimizer, update.hyperparameters)
    built._create_all_weights([tf.Variable([1.0, 2.0])])
    used = {slot for slot in rule.slots if update.optimizer.get_slot(update.pairs[0][1], slot) is not None}
    assert set(update.optimizer.get_slot_names()) == used
    assert set(built.get_slot_names()) == {rule.slots[slot] for slot in used}


def test_the_table_covers_the_optimizers_of_tf_train() -> None:
    classes = {name for name, value in vars(train).items() if inspect.isclass(value) and issubclass(value, train.Optimizer)}
    without_keras = {
        "Optimizer",
        "SyncReplicasOptimizer",
        "AdagradDAOptimizer",
        "ProximalAdagradOptimizer",
        "ProximalGradientDescentOptimizer",
    }
    assert classes == set(rebuild.RULES) | without_keras


def test_every_row_says_how_keras_makes_epsilon_and_the_like() -> None:
    for make in KERAS.values():
        (update,) = captured(make)
        built = rebuild.build(update.optimizer, update.hyperparameters)
        if hasattr(update.optimizer, "_epsilon"):
            assert built.epsilon == update.optimizer._epsilon


def test_adam_follows_after_thousands_of_steps_in_float32(tmp_path: Path) -> None:
    """TF1 multiplies its powers in float32 at each step; raising beta to a count instead would drift away."""
    model_fn = minimizing(lambda: train.AdamOptimizer(0.001, beta2=0.99))
    check_same(model_fn, tmp_path, steps=1500)


def test_training_goes_on_where_the_other_optimizer_stopped(tmp_path: Path) -> None:
    model_fn = minimizing(lambda: train.AdamOptimizer(0.05))
    made = estimator(model_fn, tmp_path)
    engine("modern").train(made, regression_input, steps=3)
    power = tf.train.load_variable(str(tmp_path), "beta1_power")
    np.testing.assert_allclose(power, 0.9**4, rtol=1e-6)
