"""Two virtual CPUs: split batches equal one device, whole batches equal the legacy MirroredStrategy, the rest is refused."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.distribution.strategies import distribution_for
from estimator_bridge.modern.engine import ModernEngine
from tests.modern.jobs import assert_close, minimizing, train, v1

Run = Callable[..., str]
pytestmark = pytest.mark.timeout(170)

COMMON = """
import sys
from pathlib import Path
from tests.modern.jobs import *
from tests.modern.surface.building import together, two_tables
from tests.modern.step.test_transplant import MODELS, squared
from estimator_bridge.errors import NotSupportedError
folder = Path(sys.argv[1])
two = engine("modern", replicas=2)
one = engine("legacy")

def on(engine, model_fn, name, input_fn=regression_input, steps=12, **config):
    engine.train(estimator(model_fn, folder / name, **config), input_fn, steps=steps)
    return saved(folder / name)
"""


def test_split_batches_train_as_one_device(run_python: Run, tmp_path: Path) -> None:
    run_python(
        COMMON
        + """
train_ops = v1.train
def summed(features, labels, mode):
    loss = v1.losses.mean_squared_error(labels, linear(features["x"]) + embedded(features["words"]), reduction="weighted_sum")
    return spec(mode, loss, train_ops.MomentumOptimizer(0.002, 0.9).minimize(loss, train_ops.get_global_step()))

def declared_mean(features, labels, mode):
    loss = v1.losses.mean_squared_error(labels, linear(features["x"]))
    return spec(mode, loss, train_ops.AdamOptimizer(0.05).minimize(loss, train_ops.get_global_step()))

def scheduled():
    return train_ops.AdamOptimizer(train_ops.exponential_decay(0.1, train_ops.get_global_step(), 3, 0.5))

models = {
    "mean": minimizing(lambda: train_ops.MomentumOptimizer(0.05, 0.9)),
    "scheduled": minimizing(scheduled),
    "declared": declared_mean,
    "sum": summed,
    "wide": MODELS["wide and deep"],
    "slices": MODELS["partitioned"],
    "ema": MODELS["averaged"],
    "tables": together(two_tables),
}
for name, model in models.items():
    # Batches of 7 cannot be divided, and the last one is smaller still.
    for batch_size in (8, 7) if name in ("mean", "sum", "slices") else (7,):
        batches = lambda: regression_input(batch_size, 1)
        steps = -(-48 // batch_size)  # not None: at the end of the input TF1's sparse Adam decays its slots once more
        expected = on(one, model, f"{name}-{batch_size}-one", batches, steps)
        try:
            assert_close(on(two, model, f"{name}-{batch_size}-two", batches, steps), expected, 2e-6)
        except AssertionError as error:
            raise AssertionError(f"{name}, batches of {batch_size}") from error

class Asking(v1.train.SessionRunHook):
    def __init__(self, name):
        self.name, self.seen = name, []
    def begin(self):
        self.held = v1.get_default_graph().get_tensor_by_name("dense/BiasAdd:0")
    def before_run(self, run_context):
        return v1.train.SessionRunArgs([self.name or run_context.original_args.fetches[1], v1.train.get_global_step()])
    def after_run(self, run_context, run_values):
        self.seen.append(run_values.results)

hooks = [Asking(None), Asking(None)]
for engine, hook in zip((one, two), hooks):
    engine.train(estimator(models["mean"], folder / f"hook-{engine is one}", session_config=ONE_BY_ONE if engine is one else None),
        lambda: regression_input(7, 1), hooks=[hook], steps=5)
np.testing.assert_allclose(hooks[1].seen, hooks[0].seen, rtol=1e-5)
from unittest import mock
with mock.patch.object(v1.logging, "warn") as said:
    for engine in (two, one):
        engine.train(estimator(models["mean"], folder / f"said-{engine is one}", save_summary_steps=1), lambda: regression_input(8, 1), steps=2)
assert sum("first replica's rows" in call.args[0] for call in said.call_args_list) == 1  # by the one that splits
try:
    two.train(estimator(models["mean"], folder / "piece"), regression_input, hooks=[Asking("dense/BiasAdd:0")], steps=5)
except NotSupportedError as error:
    assert "Asking asks for 'dense/BiasAdd:0', of which each replica has a piece" in str(error), error
else:
    raise AssertionError("a piece's tensor was not refused")
""",
        tmp_path,
    )


def test_each_replica_draws_numbers_of_its_own(run_python: Run, tmp_path: Path) -> None:
    """With a seed, too; in the bodies of loops, too. The first replica draws what one device does."""
    run_python(
        COMMON
        + """
def model_fn(features, labels, mode):
    def kept(name, mask):
        return v1.get_variable(name, [64], initializer=v1.zeros_initializer(), trainable=False, use_resource=True).assign(mask)
    mask = lambda: v1.nn.dropout(tf.ones([64]), rate=0.5)
    total = v1.while_loop(lambda step, _: step < 2, lambda step, total: (step + 1, total + mask()), [0, tf.zeros([64])])[1]
    loss = squared(linear(features["x"]), labels)
    with tf.control_dependencies([kept("mask", mask()), kept("total", total)]):
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_global_step()))

alone, mean = on(engine("modern"), model_fn, "alone", steps=1), on(two, model_fn, "two", steps=1)
for name, values in {"mask": {0.0, 2.0}, "total": {0.0, 2.0, 4.0}}.items():
    second = 2 * mean[name] - alone[name]
    assert set(second) == values, (name, second)
    assert (second != alone[name]).sum() > 16, (name, second, alone[name])

def counting(features, labels, mode):
    # Both replicas have as many unless a batch is odd.
    rows = v1.get_variable("rows", [], tf.int64, v1.zeros_initializer(), trainable=False, use_resource=True)
    loss = squared(linear(features["x"]), labels)
    with tf.control_dependencies([rows.assign_add(tf.shape(labels, tf.int64)[0])]):
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_global_step()))

assert on(two, counting, "even", steps=3)["rows"] == 12
try:
    on(two, counting, "odd", lambda: regression_input(7, 1), steps=3)
except NotSupportedError as error:
    assert "Replicas wrote different values to 'rows'" in str(error), error
else:
    raise AssertionError("the first replica's count was saved for all")
""",
        tmp_path,
    )


def test_batch_norm_keeps_averages_on_each_replica_and_saves_their_mean(run_python: Run, tmp_path: Path) -> None:
    run_python(
        COMMON
        + """
def model_fn(features, labels, mode):
    net = v1.layers.batch_normalization(features["x"], training=True, momentum=0.5, center=False, scale=False)
    loss = squared(linear(net), labels)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_global_step()))

values = on(two, model_fn, "two", steps=1)
pieces = X[:4], X[4:8]
np.testing.assert_allclose(
    values["batch_normalization/moving_mean"], 0.5 * np.mean([piece.mean(0) for piece in pieces], 0), rtol=1e-5, atol=1e-6)
np.testing.assert_allclose(
    values["batch_normalization/moving_variance"], 0.5 + 0.5 * np.mean([piece.var(0) for piece in pieces], 0), rtol=1e-5)
""",
        tmp_path,
    )


def test_what_splitting_would_change_is_refused_by_name(run_python: Run, tmp_path: Path) -> None:
    run_python(
        COMMON
        + """
step = v1.train.get_global_step
def reducing(reduce):
    def model_fn(features, labels, mode):
        loss = reduce(tf.square(linear(features["x"]) - labels), features)
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss, step()))
    return model_fn

def summed_and_regularized(features, labels, mode):
    predicted = v1.layers.dense(features["x"], 1, kernel_regularizer=lambda w: 0.1 * tf.nn.l2_loss(w))
    v1.losses.mean_squared_error(labels, predicted, reduction="weighted_sum")
    loss = v1.losses.get_total_loss()
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss, step()))

refused = {
    "clipped": (MODELS["clipped"], "clipping"),
    "own optimizer": (MODELS["BERT-style"], "without a Keras counterpart"),
    "in a cond": (MODELS["accumulating"], "without a Keras counterpart"),
    "plain sum": (reducing(lambda errors, _: tf.reduce_sum(errors)), "adds up the batch"),
    "plain sum, half": (reducing(lambda errors, _: 0.5 * tf.reduce_sum(errors) + 1.0), "adds up the batch"),
    "masked": (reducing(lambda errors, f: tf.reduce_sum(errors) / (1 + tf.reduce_sum(tf.nn.relu(f["x"])))), "the values in the batch"),
    "regularized sum": (summed_and_regularized, "regularization"),
}
for name, (model, words) in refused.items():
    try:
        on(two, model, name)
    except NotSupportedError as error:
        assert words in str(error), (name, error)
        assert not list((folder / name).glob("model.ckpt*")), name
    else:
        raise AssertionError(f"{name} was not refused")
""",
        tmp_path,
    )


def test_whole_batches_train_as_the_legacy_mirrored_strategy(run_python: Run, tmp_path: Path) -> None:
    run_python(
        COMMON
        + """
def own_gradients(features, labels, mode):  # without compute_gradients TF1 adds the replicas' gradients up
    loss = squared(linear(features["x"]), labels)
    variables = v1.trainable_variables()
    pairs = zip(tf.gradients(loss, variables), variables)
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.02).apply_gradients(pairs, v1.train.get_global_step()))

def clipped(features, labels, mode):
    loss = squared(linear(features["x"]), labels)
    optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    return spec(mode, loss, optimizer.apply_gradients(zip(gradients, variables), v1.train.get_global_step()))

class Mirror(tf.distribute.MirroredStrategy):
    pass

def reducing():
    class Ops(tf.distribute.ReductionToOneDevice):
        used = 0

        def batch_reduce_implementation(self, *args):
            Ops.used += 1
            return super().batch_reduce_implementation(*args)

    return Ops

modern = engine("modern")  # the script brings its strategy
session_config = v1.ConfigProto(device_count={"CPU": 2})
cpus = ["/cpu:0", "/cpu:1"]
models = {
    "momentum": minimizing(lambda: v1.train.MomentumOptimizer(0.05, 0.9)),
    "adam": minimizing(lambda: v1.train.AdamOptimizer(0.05)),
    "own": own_gradients,
    "clipped": clipped,
    "batch norm": MODELS["batch norm around minimize"],
}
for name, model in models.items():
    results = []
    for engine in (one, modern):
        strategy = tf.distribute.MirroredStrategy(cpus)
        path = f"{name}-{engine is one}"
        # 11 batches: the last one has no partner, and neither path takes it
        results.append(on(engine, model, path, lambda: regression_input(4, 1).take(11), steps=None if name == "momentum" else 5,
                          train_distribute=strategy, session_config=session_config))
    assert results[1]["global_step"] == 5
    try:
        assert_close(results[1], results[0], 2e-6)
    except AssertionError as error:
        raise AssertionError(name) from error
    print(name, max(np.abs(results[0][key] - value).max() for key, value in results[1].items()))
    operations = reducing()
    with tf.Graph().as_default():  # as in a script
        others = {"own": Mirror(cpus, operations()), "central": tf.distribute.experimental.CentralStorageStrategy(cpus, "/cpu:0")}
    for other, strategy in others.items():
        same = on(modern, model, f"{name}-{other}", lambda: regression_input(4, 1).take(11), train_distribute=strategy)
        assert same["global_step"] == 5
        assert_close(same, results[1], 0.0)
    assert operations.used
""",
        tmp_path,
    )


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("device_fn", {"device_fn": lambda op: "/cpu:0"}),
        ("eval_distribute", {"eval_distribute": object()}),
        ("remote_cluster", {"_experimental_distribute": types.SimpleNamespace(remote_cluster={"worker": ["a:1"]})}),
        ("CentralStorageStrategy", {"cluster_spec": tf.train.ClusterSpec({"chief": ["a:1"], "worker": ["b:1"]})}),
    ],
)
def test_what_is_not_honoured_is_refused_by_name(name: str, config: dict[str, Any], tmp_path: Path) -> None:
    class Settings:
        cluster_spec = master = eval_distribute = device_fn = train_distribute = _experimental_distribute = None

    settings: Any = Settings()
    for key, value in config.items():
        setattr(settings, key, value)
    if name == "CentralStorageStrategy":
        settings.train_distribute = tf.distribute.experimental.CentralStorageStrategy(["/cpu:0"], "/cpu:0")
    with pytest.raises(NotSupportedError, match=name):
        distribution_for(settings)


def test_one_device_strategies_are_one_device(tmp_path: Path) -> None:
    model = minimizing(lambda: v1.train.AdamOptimizer(0.05))
    alone = train("legacy", model, tmp_path / "alone", steps=5)
    for strategy in (tf.distribute.OneDeviceStrategy("/cpu:0"), tf.distribute.MirroredStrategy(["/cpu:0"])):
        config = {"train_distribute": strategy}
        same = train("modern", model, tmp_path / type(strategy).__name__, steps=5, config=config)
        assert_close(same, alone, 1e-6)


def test_no_replicas_make_no_training() -> None:
    with pytest.raises(BridgeError, match="must be at least 1"):
        ModernEngine(replicas=0)


def test_replicas_are_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
    with pytest.raises(NotSupportedError, match="--replicas cannot be used in a cluster"):
        ModernEngine(replicas=2)


@pytest.mark.parametrize("tf_config", ["", "{}", '{"task": {"type": "worker"}}', "no json"])
def test_a_tf_config_without_a_cluster_is_no_reason_to_refuse(tf_config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", tf_config)
    assert ModernEngine().calls == 0
