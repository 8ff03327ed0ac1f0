"""A task of a cluster: it reads its RunConfig from JSON, applies it and does its part."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from estimator_bridge.compat.config import LegacyConfig, to_legacy, to_modern
from estimator_bridge.compat.config.live_objects import settings_of_strategy
from estimator_bridge.compat.config.reading.legacy_json import legacy_of
from estimator_bridge.compat.config.settings import flatten, unflatten
from estimator_bridge.modern.config.apply import Applied, apply
from estimator_bridge.runtime.json_positions import read_object


def train(run_config: str) -> list[Any]:
    """Returns what is in force, what has no effect, the step reached, the device of a variable, and the TF_CONFIG of the strategy."""
    applied = _applied(run_config)
    with applied.strategy.scope():
        own = _model()
    made = applied.fit(own, tf.train.Checkpoint(model=own))
    own.fit(_data().repeat(), verbose=0, callbacks=made.callbacks, **made.arguments)
    back, _ = to_legacy(unflatten(settings_of_strategy(applied.strategy)))
    held = json.loads(json.dumps({**applied.in_force, **made.in_force}, default=str))
    step = int(own.optimizer.iterations.numpy())
    return [held, sorted(applied.without_effect), step, own.variables[0].device, back.tf_config]


def serve(run_config: str) -> None:
    """Says its task's type and what has no effect, and serves until it is killed."""
    applied = _applied(run_config)
    sys.stdout.write(json.dumps([applied.in_force["cluster.task_type"], sorted(applied.without_effect)]) + "\n")
    sys.stdout.flush()
    applied.server.join()


def evaluate(run_config: str) -> list[Any]:
    """Returns the strategy's name, what is in force, and the step of the last checkpoint evaluated."""
    applied = _applied(run_config)
    own = _model()
    applied.evaluator(own, _data()).start()
    in_force = json.loads(json.dumps(applied.in_force))
    return [type(applied.strategy).__name__, in_force, int(own.optimizer.iterations.numpy())]


def reduce(run_config: str) -> list[Any]:
    """Returns the strategy's name, the sum of a one from each replica, how many there are, and the communication."""
    applied = _applied(run_config)
    ones = applied.strategy.run(lambda: tf.ones([]))
    total = applied.strategy.reduce("SUM", ones, axis=None)
    folder = Path(applied.config.training.model_dir or "")
    (folder / f"{applied.config.cluster.task_type}.done").touch()
    while len(list(folder.glob("*.done"))) < 2:  # one that ends breaks the other's last collective
        time.sleep(0.01)
    communication = applied.in_force.get("strategy.communication")
    return [type(applied.strategy).__name__, float(total), applied.strategy.num_replicas_in_sync, communication]


def hold(run_config: str) -> dict[str, Any]:
    """Returns what is in force."""
    return dict(_applied(run_config).in_force)


def connect(port: str) -> list[Any]:
    """Connects to a server of its own; returns whether both ways to ask agree, the devices, and what is in force with filters."""
    address = f"localhost:{port}"
    server = tf.distribute.Server({"worker": [address]}, job_name="worker", task_index=0, protocol="grpc")
    jobs = ({"name": "worker", "tasks": {0: address}},)
    config, _ = to_modern(LegacyConfig(session_config={"cluster_def.job": jobs, "device_filters": ("/job:ps",)}))
    same, _ = to_modern(LegacyConfig(remote_cluster={"worker": (address,)}))
    assert apply(config).without_effect == {"devices.filters": "filters belong to a task, and cluster.task_type is not set"}
    filtered = apply(unflatten(dict(flatten(config)) | {"cluster.task_type": "worker", "cluster.task_id": 0}))
    devices = [device.name for device in tf.config.list_logical_devices()]
    assert server.target  # it must live until here
    return [config.strategy == same.strategy, devices, filtered.in_force]


def _applied(run_config: str) -> Applied:
    config, _ = to_modern(legacy_of(read_object(run_config, "run.json")))
    return apply(config)


def _model() -> Any:
    made = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[2])])
    made.compile("sgd", "mse")
    return made


def _data() -> Any:
    x = np.ones([48, 2], np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4)
