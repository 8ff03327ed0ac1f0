"""Planned trainings: they are refused as the trainings are, and their batches get a static number of rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.modern.parallel import mesh
from estimator_bridge.modern.parallel.elastic.position import FILE
from estimator_bridge.modern.parallel.plans.plan import PlacementPlan
from estimator_bridge.modern.planning import EndOfPlanning, PlannedDistribution, PlanningEngine, with_rows
from estimator_bridge.runtime.estimator_calls import methods
from tests.modern.jobs import X, Y, estimator, linear, regression_input, spec, v1, with_plan


@pytest.fixture(params=["TensorFlow 1's shapes", "TensorFlow 2's shapes"])
def _shapes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Under ``run``, scripts that want TensorFlow 1 have its shapes, whose items are never None."""
    if request.param.startswith("TensorFlow 2"):
        yield
        return
    tf.compat.v1.disable_v2_tensorshape()
    yield
    tf.compat.v1.enable_v2_tensorshape()


def batches(size: int, drop: bool) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(({"x": tf.ones([64, 4])}, tf.ones([64]))).batch(size, drop_remainder=drop)


@pytest.mark.usefixtures("_shapes")
@pytest.mark.parametrize("drop", [False, True])
def test_rows_are_static(drop: bool) -> None:
    features, labels = with_rows(batches, 16)(16, drop).element_spec
    assert features["x"].shape.as_list() == [16, 4]
    assert labels.shape.as_list() == [16]


@pytest.mark.usefixtures("_shapes")
def test_another_number_of_rows_is_refused() -> None:
    with pytest.raises(BridgeError, match="Give --rows 8, or the script another batch size"):
        with_rows(batches, 16)(8, drop=True)


def descending(features: Any, labels: Any, mode: str) -> Any:
    """An optimizer without state."""
    loss = v1.losses.mean_squared_error(labels, linear(features["x"]))
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


def with_momentum(features: Any, labels: Any, mode: str) -> Any:
    loss = v1.losses.mean_squared_error(labels, linear(features["x"]))
    return spec(mode, loss, v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, v1.train.get_global_step()))


def by_norms(features: Any, labels: Any, mode: str) -> Any:
    """An optimizer that updates each variable by its norm, as LAMB does."""
    loss = v1.losses.mean_squared_error(labels, linear(features["x"]))
    variables = v1.trainable_variables()
    steps = zip(tf.gradients(loss, variables), variables, strict=True)
    updates = [v1.assign_sub(variable, gradient * tf.norm(variable)) for gradient, variable in steps]
    return spec(mode, loss, tf.group(*updates, v1.assign_add(v1.train.get_global_step(), 1)))


def normalised(features: Any, labels: Any, mode: str) -> Any:
    """A batch norm, whose averages each batch of a step would change."""
    loss = v1.losses.mean_squared_error(labels, linear(v1.layers.batch_normalization(features["x"], training=True)))
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
    return spec(mode, loss, tf.group(train_op, *v1.get_collection(v1.GraphKeys.UPDATE_OPS)))


def drawing(features: Any, labels: Any, mode: str) -> Any:
    """Two layers with a random number in a branch, which each micro-batch would draw alike."""
    drawn = tf.cond(tf.reduce_all(features["x"] < 9), lambda: tf.random.normal([], seed=3), lambda: tf.zeros([]))
    loss = v1.losses.mean_squared_error(labels, linear(v1.layers.dense(features["x"], 4, name="first") * drawn))
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


def tensors() -> Any:
    """An input that workers cannot divide."""
    return {"x": tf.constant(X)}, tf.constant(Y)


def generated() -> tf.data.Dataset:
    """An input that a Python generator makes."""
    rows = lambda: (({"x": x}, y) for x, y in zip(X, Y, strict=True))  # noqa: E731 -- not an input_fn
    signature = ({"x": tf.TensorSpec(X.shape[1:], X.dtype)}, tf.TensorSpec(Y.shape[1:], Y.dtype))
    return tf.data.Dataset.from_generator(rows, output_signature=signature).batch(4)


ELASTIC: dict[str, Any] = {"micro": 2, "elastic": (1, 2)}
PIPELINE: dict[str, Any] = {"micro": 2, "placement": PlacementPlan(stages=2)}
THREE_STAGES: dict[str, Any] = {"placement": PlacementPlan(stages=3)}
MIRRORED = tf.distribute.MirroredStrategy(["/cpu:0"])
SERVERS = {"cluster": {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"], "ps": ["127.0.0.1:3"]}}


def train_both(
    monkeypatch: pytest.MonkeyPatch,
    model_fn: Callable[..., Any],
    folder: Path,
    input_fn: Callable[..., Any],
    plan: dict[str, Any],
    config: dict[str, Any],
    call: dict[str, int],
) -> tuple[list[type], list[str]]:
    """Runs and plans a training; returns the types and the messages of what ended both. If the plan has workers, the run has, too."""
    ends: list[BaseException] = []
    for engine in (ModernEngine, PlanningEngine):
        made = engine(**with_plan(plan))
        if engine is ModernEngine and plan.get("data", 1) > 1:
            monkeypatch.setattr(made, "_distribution", lambda _: PlannedDistribution.of(plan["data"]))
        with pytest.raises((BridgeError, EndOfPlanning)) as ended:
            methods(made)["train"](estimator(model_fn, folder / engine.__name__, **config), input_fn, **call)
        ends.append(ended.value)
    return [type(end) for end in ends], [str(end) for end in ends]


@pytest.mark.parametrize(
    ("model_fn", "input_fn", "plan", "config", "call", "message"),
    [
        (descending, regression_input, ELASTIC, {}, {"steps": 4}, "needs one call of train, with max_steps"),
        (descending, lambda: regression_input().shard(2, 0), ELASTIC, {}, {}, "shards its dataset by itself"),
        (normalised, regression_input, ELASTIC, {}, {}, "changes the variable"),
        (descending, regression_input, {"data": 1, "sharded_state": True}, {}, {}, "One worker keeps the whole state"),
        (descending, regression_input, {"data": 2, "sharded_state": True}, {}, {}, "No optimizer of the script keeps state"),
        (by_norms, regression_input, {"data": 2, "sharded_state": True}, {}, {}, "by a norm or the like of the whole variable"),
        (by_norms, regression_input, {"data": 2, "micro": 2, "sharded_state": True}, {}, {}, "by a norm or the like"),
        (with_momentum, tensors, {"data": 2}, {}, {}, "cannot share an input that is not a tf.data.Dataset"),
        (with_momentum, generated, {"data": 2}, {}, {}, "a dataset of a Python generator from the input_fn"),
        (descending, regression_input, THREE_STAGES, {}, {}, "too few operations with variables for a pipeline"),
        (drawing, regression_input, PIPELINE, {}, {}, "the same random numbers for each micro-batch"),
        (descending, regression_input, PIPELINE, {"train_distribute": MIRRORED}, {}, "A mesh and RunConfig(train_distribute="),
        (descending, regression_input, PIPELINE, {"tf_config": SERVERS}, {}, "A mesh and ParameterServerStrategy"),
        (descending, regression_input, {"micro": 2}, {"tf_config": SERVERS}, {}, "--micro does not work with Param"),
        (
            descending,
            regression_input,
            {"sharded_state": True},
            {"tf_config": SERVERS},
            {},
            '"sharded" does not work with Param',
        ),
    ],
)
def test_a_plan_is_refused_as_its_training_is(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    model_fn: Callable[..., Any],
    input_fn: Callable[..., Any],
    plan: dict[str, Any],
    config: dict[str, Any],
    call: dict[str, int],
    message: str,
) -> None:
    """Word for word, and before anything is computed or written."""
    monkeypatch.setattr(mesh, "set_runtime", lambda _: None)  # other tests have used the devices
    own = dict(config)
    if "tf_config" in own:
        monkeypatch.setenv("TF_CONFIG", json.dumps(own.pop("tf_config") | {"task": {"type": "chief", "index": 0}}))
    kinds, messages = train_both(monkeypatch, model_fn, tmp_path, input_fn, plan, own, call or {"max_steps": 4})
    assert kinds[0] is kinds[1]
    assert messages[0] == messages[1]
    assert message in messages[0]
    assert not list(tmp_path.glob("*/model.ckpt*"))
    assert not (tmp_path / "PlanningEngine").exists()


@pytest.mark.parametrize(
    "plan",
    [ELASTIC, {"micro": 3, "shares": (2, 1)}, {"data": 3, "sharded_state": True}, {"sharded_state": True, "micro": 2}],
    ids=["elastic", "shares", "sharded state", "sharded state, micro-batches"],
)
def test_a_plan_for_workers_is_estimated_without_them(tmp_path: Path, plan: dict[str, Any]) -> None:
    """Variables and slots are those of one worker without the plan."""
    train = methods(PlanningEngine(**with_plan(plan)))["train"]
    with pytest.raises(EndOfPlanning) as ended:
        train(estimator(with_momentum, tmp_path), regression_input, max_steps=4)
    assert ended.value.found.held() == {"/device:CPU:0": (24, 16)}  # the global step, too
    assert not any(tmp_path.iterdir())


def test_a_generated_input_that_the_script_shards_is_planned(tmp_path: Path) -> None:
    """The other workers' shards, which a run compares with this one, are not there."""
    train = methods(PlanningEngine(**with_plan({"data": 2})))["train"]
    with pytest.raises(EndOfPlanning):
        train(estimator(with_momentum, tmp_path), lambda: generated().shard(2, 0), max_steps=4)


@pytest.mark.parametrize("job", ["ps", "evaluator"])
def test_a_task_that_does_not_train_has_no_plan(monkeypatch: pytest.MonkeyPatch, job: str) -> None:
    """Before the script runs: a parameter server would wait for requests, and an evaluator for checkpoints."""
    monkeypatch.setenv("TF_CONFIG", json.dumps(SERVERS | {"task": {"type": job, "index": 0}}))
    with (
        pytest.raises(BridgeError, match="The task of this process trains nothing") as refused,
        PlanningEngine().surroundings(),
    ):
        raise AssertionError("the script runs")
    assert f"received: {job} 0" in str(refused.value)


def test_a_plan_for_another_number_of_batches_than_that_of_the_training_is_refused(tmp_path: Path) -> None:
    """As the run would do; the file says what the training took."""
    (tmp_path / FILE).write_text('{"seed": 1, "first_step": 0, "batches": 4}')
    train = methods(PlanningEngine(**with_plan(ELASTIC)))["train"]
    with pytest.raises(BridgeError, match="takes 4 batches for each step, and this plan takes 2"):
        train(estimator(with_momentum, tmp_path), regression_input, max_steps=4)


def test_a_batch_that_the_script_divides_counts_as_divided(tmp_path: Path) -> None:
    """Each of two workers has half of the rows, and keeps half of the activations."""

    def divided(input_context: Any) -> Any:
        return regression_input(8 // input_context.num_replicas_in_sync).map(lambda *batch: batch).take(4)

    kept = []
    for data in (1, 2):
        made = PlanningEngine(rows=8 // data, **with_plan({"data": data}))
        with pytest.raises(EndOfPlanning) as ended:
            methods(made)["train"](estimator(with_momentum, tmp_path), divided, max_steps=4)
        kept.append(sum(one.bytes_of(8 // data) for one in ended.value.found.activations))
    assert 0 < kept[1] < 0.7 * kept[0]  # some do not depend on the rows
