"""Where variables are made on a machine with a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

from estimator_bridge.modern.graph.variables import on_host
from tests.modern.jobs import WORDS, train, v1

Features = dict[str, tf.Tensor]


def network(features: Features) -> tf.Tensor:
    table = v1.get_variable("table", [int(WORDS.max()) + 1, 3], use_resource=True)
    looked_up = tf.reduce_mean(tf.nn.embedding_lookup(table, features["words"]), axis=1)
    return tf.matmul(tf.concat([features["x"], looked_up], axis=1), v1.get_variable("weights", [6, 1], use_resource=True))


@pytest.fixture
def _gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that says that it has a GPU."""
    real = tf.config.list_physical_devices
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: ["a GPU"] if kind == "GPU" else real(kind))


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        (v1.train.MomentumOptimizer(0.1, 0.9), ["table", "table/Momentum"]),
        (v1.train.RMSPropOptimizer(0.1), ["table", "table/RMSProp", "table/RMSProp_1"]),
        (v1.train.AdamOptimizer(0.1), []),  # its updates of rows have kernels for GPUs
        (v1.train.AdagradOptimizer(0.1), []),
    ],
)
@pytest.mark.usefixtures("_gpu")
def test_what_gpus_cannot_update_lives_on_the_host(optimizer: v1.train.Optimizer, expected: list[str]) -> None:
    """As TensorFlow registers kernels: a variable on a GPU that ResourceSparseApplyMomentum updates ends a training."""
    with tf.Graph().as_default() as graph:
        v1.get_variable_scope().set_use_resource(True)
        features = {"x": tf.ones([2, 3]), "words": tf.zeros([2, 2], tf.int64)}
        optimizer.minimize(tf.reduce_sum(network(features)))
        assert sorted(on_host(graph.get_operations())) == expected


def test_without_gpus_nothing_is_placed() -> None:
    with tf.Graph().as_default() as graph:
        variable = v1.get_variable("v", [2], use_resource=True)
        v1.train.ProximalGradientDescentOptimizer(0.1).minimize(tf.reduce_sum(variable))
        assert not on_host(graph.get_operations())


def test_a_training_with_such_variables_is_the_same(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Without a GPU this shows that placing variables changes nothing else."""

    def model_fn(features: Features, labels: tf.Tensor, mode: str) -> v1.estimator.EstimatorSpec:
        loss = v1.losses.mean_squared_error(tf.reshape(labels, [-1, 1]), network(features))
        train_op = v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, v1.train.get_global_step())
        return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    before = train("modern", model_fn, tmp_path / "before")
    request.getfixturevalue("_gpu")
    after = train("modern", model_fn, tmp_path / "after")
    assert "table/Momentum" in before
    assert before.keys() == after.keys()
    assert all((before[name] == value).all() for name, value in after.items())
