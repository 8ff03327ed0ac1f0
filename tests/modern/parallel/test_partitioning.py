"""Variables that the plan cuts into shards: what is refused, since a shard is not the whole variable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.model_graph import operation
from estimator_bridge.modern.graph.stages import plan
from estimator_bridge.modern.parallel.partitioning import partitioned
from estimator_bridge.modern.parallel.placement import Placer
from estimator_bridge.modern.parallel.plans.plan import PlacementPlan, PlaceRule
from tests.modern.jobs import ModelFn, estimator, regression_input, spec, v1
from tests.modern.parallel.test_placement import CPUS

CUT = PlacementPlan(2, (PlaceRule("weight", shards=2, axis=1),))


def placed(model_fn: ModelFn, folder: Path, placement: PlacementPlan = CUT) -> Any:
    """Builds a training graph with shards and places its step."""
    made = estimator(model_fn, folder)
    around: Callable[[], Any] = lambda: partitioned(placement.rules)  # noqa: E731
    model = model_graph.build(made, regression_input, model_graph.TRAIN, None, around_model=around)
    step = plan(operation(model.spec.train_op), model.spec.loss, model.updates, (), model.references)
    return Placer(placement, CPUS).placed(model, step)[0]


def trained_by(changed: Callable[[Any], Any], used: Callable[[Any], Any] = lambda weight: weight) -> ModelFn:
    """Returns a model with a weight of three rows and four columns, whose gradient a function changes."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = v1.get_variable("weight", [3, 4], initializer=v1.glorot_uniform_initializer(seed=1))
        loss = v1.losses.mean_squared_error(labels, tf.reduce_sum(features["x"] @ used(weight), 1, keepdims=True))
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        pairs = [(changed(gradient), variable) for gradient, variable in optimizer.compute_gradients(loss)]
        return spec(mode, loss, optimizer.apply_gradients(pairs, v1.train.get_global_step()))

    return model_fn


def test_shards_go_to_one_device_after_the_other(tmp_path: Path) -> None:
    """From the device that the rule names."""
    assignment = placed(trained_by(lambda gradient: gradient * 2.0), tmp_path, PlacementPlan(2, (PlaceRule("w.*", 1, 4, 1),)))
    assert [assignment.devices[f"weight/part_{number}"][-1] for number in range(4)] == ["1", "0", "1", "0"]
    assert [unit.first.shape.as_list() for unit in assignment.units] == [[3, 1]] * 4


@pytest.mark.parametrize(
    "changed",
    [
        lambda gradient: tf.clip_by_norm(gradient, 0.1),
        lambda gradient: gradient / tf.reduce_max(tf.abs(gradient)),
        lambda gradient: tf.linalg.svd(gradient)[1],
        lambda gradient: gradient / tf.sqrt(tf.stack([tf.reduce_sum(gradient**2)]))[0],  # stacked, but added to no other norm
    ],
)
def test_a_norm_of_one_shard_is_refused(tmp_path: Path, changed: Callable[[Any], Any]) -> None:
    """The norm of the whole variable's gradient is another; no error would tell."""
    with pytest.raises(NotSupportedError, match="computed from one shard of a variable") as refused:
        placed(trained_by(changed), tmp_path)
    assert str(refused.value.asked_by).startswith(__file__)


def test_a_norm_of_one_shard_in_the_loss_is_refused(tmp_path: Path) -> None:
    """As a script writes a penalty that goes through all trained variables."""

    def penalized(weight: Any) -> Any:
        return tf.convert_to_tensor(weight) + tf.add_n([tf.norm(one) for one in v1.trainable_variables()])

    with pytest.raises(NotSupportedError, match="computed from one shard of a variable"):
        placed(trained_by(lambda gradient: gradient, penalized), tmp_path)


def test_shards_that_the_script_itself_makes_may_have_norms(tmp_path: Path) -> None:
    """They have them without a plan, too."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        v1.get_variable("other", [4], initializer=v1.zeros_initializer())
        with v1.variable_scope("", partitioner=v1.fixed_size_partitioner(2)):
            return trained_by(lambda gradient: None if gradient is None else tf.clip_by_norm(gradient, 0.1))(
                features, labels, mode
            )

    assert len(placed(model_fn, tmp_path, PlacementPlan(2, (PlaceRule("other", shards=2),))).units) == 4


def test_a_variable_of_keras_that_the_plan_cannot_cut_is_refused(tmp_path: Path) -> None:
    """It is named, and not trained whole in silence."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        tf_keras.layers.Dense(4, name="dense")(features["x"])
        loss = v1.losses.mean_squared_error(labels, tf_keras.layers.Dense(1, name="output")(features["x"]))
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    with pytest.raises(NotSupportedError, match=r"'output/kernel' into 2 shards, but it is still whole"):
        placed(model_fn, tmp_path, PlacementPlan(2, (PlaceRule("output/kernel", shards=2),)))


def test_a_slice_of_a_variable_with_shards_is_refused(tmp_path: Path) -> None:
    """TensorFlow 1 has no slices of partitioned variables."""
    with pytest.raises(
        NotSupportedError, match=r"in a way that only whole variables have(?s:.)*with shards: weight"
    ) as refused:
        placed(trained_by(lambda gradient: gradient, lambda weight: weight[:, :2]), tmp_path)
    assert refused.value.asked_by is not None
    assert refused.value.asked_by.startswith(__file__), "the line of the slice"


@pytest.mark.parametrize(
    ("rule", "nearest"),
    [
        (PlaceRule("weight", shards=5, axis=1), "Set shards = 4, axis = 1,"),
        (PlaceRule("weight", shards=2, axis=2), "Set shards = 2, axis = 1,"),
    ],
)
def test_an_axis_that_cannot_be_cut_is_refused(tmp_path: Path, rule: PlaceRule, nearest: str) -> None:
    """The message has the shape, and shards that it allows."""
    with pytest.raises(NotSupportedError, match=rf"shape \(3, 4\)(?s:.)*{nearest}"):
        placed(trained_by(lambda gradient: gradient), tmp_path, PlacementPlan(2, (rule,)))


@pytest.mark.parametrize(
    ("shards", "axis", "min_bytes", "expected"),
    [
        (2, 0, 1, 2),
        (9, 0, 1, 3),  # as many as the axis is long
        (4, 1, 16, 3),  # 48 bytes
        (4, 1, 20, 3),  # rounded up, as TensorFlow 1 does
        (4, 1, 24, 2),
        (4, 1, 48, 0),  # one shard would be the whole variable
        (4, 2, 1, 0),
    ],
)
def test_shards_of_a_smallest_size_are_those_for_which_there_is_room(
    tmp_path: Path, shards: int, axis: int, min_bytes: int, expected: int
) -> None:
    """A variable without room stays whole, as with TensorFlow 1's partitioner; another has the shards."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        v1.get_variable("other", [4], initializer=v1.zeros_initializer())
        return trained_by(lambda gradient: gradient)(features, labels, mode)

    rules = PlaceRule("weight", 0, shards, axis, min_bytes), PlaceRule("other", shards=2)
    names = [unit.first.op.name for unit in placed(model_fn, tmp_path, PlacementPlan(2, rules)).units]
    assert len([name for name in names if name.startswith("weight/part_")]) == expected


def test_a_large_variable_of_keras_is_refused_whatever_the_smallest_size(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = v1.losses.mean_squared_error(labels, tf_keras.layers.Dense(1, name="output")(features["x"]))
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    with pytest.raises(NotSupportedError, match="still whole"):
        placed(model_fn, tmp_path, PlacementPlan(2, (PlaceRule(".*", shards=2, min_bytes=1),)))
