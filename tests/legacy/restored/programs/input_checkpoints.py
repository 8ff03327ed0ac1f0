"""Trains, stops and goes on with CheckpointInputPipelineHook. The files are those that TensorFlow 1.15.5 leaves, steps and names."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

from estimator_bridge import legacy

legacy.install()
import tensorflow as tf

tf1 = tf.compat.v1
folder = sys.argv[2]
Hook = tf.data.experimental.CheckpointInputPipelineHook
assert Hook is tf1.data.experimental.CheckpointInputPipelineHook


def last_part(path: str) -> str:
    return path.rpartition("/")[2]


def going_on() -> None:
    def model_fn(features: Any, labels: Any, mode: Any) -> Any:
        seen = tf1.get_variable("seen", [], tf.int64)
        step = tf.group(seen.assign(features), tf1.train.get_global_step().assign_add(1))
        return tf.estimator.EstimatorSpec(mode, loss=tf.constant(0.0), train_op=step)

    estimator = tf.estimator.Estimator(model_fn, folder, tf.estimator.RunConfig(save_checkpoints_steps=2))
    for last_seen in (2, 5):
        estimator.train(lambda: tf.data.Dataset.range(100), hooks=[Hook(estimator)], steps=3)
        assert estimator.get_variable_value("seen") == last_seen
    files = sorted(
        name for name in [path.name for path in Path(folder).iterdir()] if name.startswith("input") and name.endswith(".index")
    )
    assert files == [f"input.ckpt-{step}.index" for step in (0, 2, 3, 4, 6)], files
    assert last_part(tf1.train.latest_checkpoint(folder, "checkpoint_input")) == "input.ckpt-6"
    assert last_part(tf1.train.latest_checkpoint(folder)) == "model.ckpt-6"

    def worker(name: Any, save_checkpoints_steps: Any = 1) -> Any:
        config = types.SimpleNamespace(num_worker_replicas=2, task_type="worker", task_id=1)
        config.save_checkpoints_secs, config.save_checkpoints_steps = None, save_checkpoints_steps
        return types.SimpleNamespace(model_dir=f"{folder}/{name}", config=config, _config=config)

    def run_two_steps(policy: Any, data: Any) -> None:
        with tf.Graph().as_default():
            element = tf1.data.make_one_shot_iterator(data()).get_next()
            step = tf.group(tf1.train.create_global_step().assign_add(1), element)
            with tf1.train.MonitoredSession(hooks=[Hook(worker(str(policy)), policy)]) as session:
                session.run(step), session.run(step)

    run_two_steps(None, lambda: tf.data.Dataset.range(100))
    assert last_part(tf1.train.latest_checkpoint(folder + "/None", "checkpoint_input_worker_1")) == "input_worker_1.ckpt-2"

    def raised(call: Any, *arguments: Any) -> Any:
        try:
            call(*arguments)
        except Exception as error:  # noqa: BLE001 -- its type is what is compared
            return type(error)

    def random() -> Any:
        return tf.data.Dataset.range(100).map(lambda x: x + tf.random.uniform([], maxval=9, dtype=tf.int64))

    assert raised(run_two_steps, "fail", random) is tf.errors.FailedPreconditionError
    assert raised(run_two_steps, "ignore", random) is None
    assert raised(Hook, estimator, "nowhere") is ValueError
    assert raised(Hook, worker("x", save_checkpoints_steps=None)) is ValueError

    from tensorflow.python.util import nest

    sequences: tuple[Any, ...] = [1], (1,), {}, "a", b"b", set(), None, 1, {1: 2}.keys(), range(2)
    assert [nest.is_sequence(one) for one in sequences] == [True, True, True, *[False] * 5, True, True]  # as in 1.15.5
    assert tf1.config.experimental_list_devices()[0] == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert tf1.pywrap_tensorflow.NewCheckpointReader(folder + "/model.ckpt-6").get_tensor("seen") == 5
    assert not hasattr(tf, "pywrap_tensorflow")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
