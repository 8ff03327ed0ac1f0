"""The Estimator's side of distributed training; a function a program."""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from estimator_bridge import legacy

legacy.install()
import tensorflow.compat.v1 as tf
from tensorflow.python.distribute import distribute_config
from tensorflow.python.distribute import estimator_training as by_name
from tensorflow_estimator.python.estimator import run_config as run_config_lib

ours: Any = importlib.import_module("estimator_bridge.legacy.restored.estimator_training")

if not tf.__version__.startswith("2.15."):
    assert by_name is ours


def refused(call: Any, *words: Any) -> None:
    try:
        call()
    except ValueError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(words)


cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"], "evaluator": ["f:1"]}


def model_fn(features: Any, labels: Any, mode: Any) -> Any:
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(weight * features)
    metrics = {"mean": tf.metrics.mean(features)} if mode == "eval" else None
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.GradientDescentOptimizer(1.0).minimize(loss, step) if mode == "train" else None
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def numbers(input_context: Any) -> Any:
    data = tf.data.Dataset.from_tensor_slices([1.0, 10.0, 100.0, 1000.0])
    if input_context:
        data = data.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return data.batch(1)


@functools.cache
def mirrored() -> Any:
    return tf.distribute.MirroredStrategy(["/cpu:0"])


@functools.cache
def parameter_server() -> Any:
    return tf.distribute.experimental.ParameterServerStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec({}))
    )


def an_independent_worker() -> None:
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    config = tf.estimator.RunConfig(sys.argv[2], train_distribute=strategy, tf_random_seed=1)
    assert config._distribute_coordinator_mode == "independent_worker"
    estimator = tf.estimator.Estimator(model_fn, config=config)
    train_spec = tf.estimator.TrainSpec(numbers, max_steps=2)
    tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(lambda: numbers(None)))
    os._exit(0)


def print_weight_and_step() -> None:
    reader = tf.train.load_checkpoint(sys.argv[2])
    print(reader.get_tensor("weight"), reader.get_tensor("global_step"))


def every_kind_of_run_config_gets_its_mode() -> None:
    fields = (
        "_distribute_coordinator_mode",
        "_task_type",
        "_is_chief",
        "_num_ps_replicas",
        "_num_worker_replicas",
        "_global_id_in_cluster",
        "_master",
    )
    master = {"master": cluster["chief"], "worker": cluster["worker"], "ps": cluster["ps"]}
    remote = distribute_config.DistributeConfig(remote_cluster={"chief": ["a:1"]})
    cases = [
        ({}, {"train_distribute": mirrored()}, (None, "worker", True, 0, 1, 0, "")),
        (
            {},
            {"experimental_distribute": distribute_config.DistributeConfig(train_distribute=mirrored())},
            (None, "worker", True, 0, 1, 0, ""),
        ),
        (
            {"cluster": cluster, "task": {"type": "worker", "index": 1}},
            {"train_distribute": mirrored()},
            ("independent_worker", "worker", True, 0, 1, 0, ""),
        ),
        (
            {"cluster": cluster, "task": {"type": "worker", "index": 1}},
            {"eval_distribute": mirrored()},
            (None, "worker", False, 2, 3, 3, "grpc://c:1"),
        ),
        (
            {"cluster": master, "task": {"type": "worker", "index": 1}},
            {"train_distribute": mirrored()},
            (None, "worker", False, 2, 3, 2, "grpc://c:1"),
        ),
        (
            {},
            {"train_distribute": mirrored(), "experimental_distribute": remote},
            ("standalone_client", "worker", True, 0, 1, 0, ""),
        ),
    ]
    for module in (ours, by_name):
        run_config_lib.distribute_coordinator_training = module
        for tf_config, arguments, expected in cases:
            os.environ["TF_CONFIG"] = json.dumps(tf_config)
            config = tf.estimator.RunConfig(**arguments)
            found = tuple(getattr(config, field) for field in fields)
            assert found == expected, (module, tf_config, arguments, found)
            assert module.should_run_distribute_coordinator(config) == (expected[0] is not None)
        os.environ["TF_CONFIG"] = "{}"
        twice = distribute_config.DistributeConfig(train_distribute=mirrored(), eval_distribute=mirrored())
        refused(lambda: tf.estimator.RunConfig(train_distribute=mirrored(), experimental_distribute=twice), "train_distribute")
        refused(lambda: tf.estimator.RunConfig(eval_distribute=mirrored(), experimental_distribute=twice), "eval_distribute")
        os.environ["TF_CONFIG"] = json.dumps(cases[2][0])
        refused(lambda: tf.estimator.RunConfig(train_distribute=mirrored(), experimental_distribute=remote), "TF_CONFIG")
        for mode, spec in (("no such mode", {"a": 1}), ("independent_worker", {})):
            config = SimpleNamespace(_distribute_coordinator_mode=mode, cluster_spec=spec)
            assert module.should_run_distribute_coordinator(config) is False


def every_task_knows_its_place_in_the_cluster() -> None:
    spec = tf.train.ClusterSpec(cluster)
    places = {
        ("chief", 0): (2, 3, 0),
        ("worker", 0): (2, 3, 2),
        ("worker", 1): (2, 3, 3),
        ("ps", 0): (2, 3, 4),
        ("ps", 1): (2, 3, 5),
        ("evaluator", 0): (0, 0, None),
        (None, 0): (2, 3, 0),
    }
    adopters = [ours.adopt_worker_context]
    if by_name is not ours:
        adopters.append(by_name._init_run_config_from_worker_context)
    for adopt in adopters:
        for (task_type, task_id), row in places.items():
            config = SimpleNamespace()
            adopt(
                config,
                SimpleNamespace(
                    cluster_spec=spec,
                    task_type=task_type,
                    task_id=task_id,
                    master_target="grpc://x:1",
                    is_chief=task_type == "chief",
                ),
            )
            found = (config._num_ps_replicas, config._num_worker_replicas, config._global_id_in_cluster)
            assert found == row, (adopt, task_type, found)
            assert (config._task_type, config._task_id, config._service) == (task_type, task_id, None)
            assert config._master == config._evaluation_master == "grpc://x:1"
            assert config._is_chief == (task_type == "chief")
            assert bool(config._cluster_spec) == (task_type != "evaluator")
        config = SimpleNamespace()
        adopt(config, SimpleNamespace(cluster_spec=None, task_type=None, task_id=None, master_target="", is_chief=True))
        assert (config._num_ps_replicas, config._num_worker_replicas, config._global_id_in_cluster) == (0, 1, 0)
    try:
        ours.global_id(spec, "master", 0)
    except RuntimeError as error:
        assert "'master'" in str(error)
    else:
        raise AssertionError


def calls_that_no_cluster_can_carry_out_are_refused() -> None:
    default = mirrored()

    def estimator(train: Any = default, evaluate: Any = default, mode: Any = "standalone_client", cluster: Any = None) -> Any:
        if cluster is None:
            cluster = {"chief": ["a:1"]}
        config = SimpleNamespace(
            _train_distribute=train,
            _eval_distribute=evaluate,
            train_distribute=train,
            eval_distribute=evaluate,
            _distribute_coordinator_mode=mode,
            session_config=None,
            cluster_spec=tf.train.ClusterSpec(cluster),
        )
        return SimpleNamespace(_config=config, config=config)

    for module in {ours, by_name}:
        for call, name in ((module.estimator_train, "Estimator.train"), (module.estimator_evaluate, "Estimator.evaluate")):
            refused(lambda: call(estimator(cluster={"chief": ["a:1"], "evaluator": ["b:1"]}), None, []), "evaluator")
            refused(lambda: call(estimator(train=parameter_server(), evaluate=parameter_server()), None, []), name)
            refused(lambda: call(estimator(mode="independent_worker"), None, []), name.partition(".")[2])
        refused(lambda: module.train_and_evaluate(estimator(mode=None), None, None, None), "oordinator mode")
    refused(lambda: ours.estimator_train(estimator(mode=None), None, []), "coordinator mode")
    refused(lambda: ours.estimator_train(estimator(train=None), None, []), "without a strategy")
    refused(lambda: ours.estimator_evaluate(estimator(cluster={}), None, []), "without a cluster")


def a_standalone_client_drives_running_servers() -> None:
    spec = {"chief": [sys.argv[3]], "worker": [sys.argv[4]]}
    _servers = [tf.train.Server(spec, job_name=job, task_index=0) for job in spec]
    replicas, hooked = [], []

    def counted_model_fn(features: Any, labels: Any, mode: Any) -> Any:
        replicas.append(mode)
        return model_fn(features, labels, mode)

    class Hook(tf.train.SessionRunHook):
        def begin(self) -> None:
            hooked.append(1)

    remote = distribute_config.DistributeConfig(remote_cluster=spec)

    def strategy() -> Any:  # the only reduction that TensorFlow takes over several machines in one graph
        return tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.ReductionToOneDevice())

    config = tf.estimator.RunConfig(train_distribute=strategy(), eval_distribute=strategy(), experimental_distribute=remote)
    estimator = tf.estimator.Estimator(counted_model_fn, sys.argv[2], config)
    assert config._distribute_coordinator_mode == "standalone_client"
    estimator.train(numbers, steps=1, hooks=[Hook()])
    assert replicas == ["train"] * 2 and hooked == [1], (replicas, hooked)
    np.testing.assert_allclose(estimator.get_variable_value("weight"), -(1 + 10) / 2)
    np.testing.assert_allclose(estimator.evaluate(numbers)["mean"], 1111 / 4)
    tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(numbers, max_steps=2, hooks=[Hook()]), tf.estimator.EvalSpec(numbers)
    )
    assert estimator.get_variable_value("global_step") == 2 and hooked == [1, 1]
    os._exit(0)  # a Server cannot be stopped


if __name__ == "__main__":
    globals()[sys.argv[1]]()
