"""A script of TensorFlow 1 whose workers train in step: ``in_step.py MODEL_DIR NOTES [options]``."""

import argparse
import json
import os

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
parser = argparse.ArgumentParser()
parser.add_argument("model_dir")
parser.add_argument("notes")
parser.add_argument("--strategy", default="multi_worker", choices=["multi_worker", "mirrored", "none"])
parser.add_argument("--communication", default="AUTO")
parser.add_argument("--batches", type=int, help="of the input; endless without")
parser.add_argument("--max-steps", type=int)
parser.add_argument("--sharded", action="store_true", help="the input_fn takes an input_context")
parser.add_argument("--slow", type=float, default=0.0, help="seconds that a batch takes")
flags = parser.parse_args()
task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "only", "index": 0})


def note(line):
    with open(os.path.join(flags.notes, "{type}-{index}".format(**task)), "a") as file:
        file.write(line + "\n")


class Noting(v1.train.SessionRunHook):
    """Each worker has one: session hooks of train_and_evaluate belong to every worker."""

    def __init__(self, name):
        self.name = name
        self.steps = 0

    def before_run(self, run_context):
        return v1.train.SessionRunArgs(v1.train.get_global_step())

    def after_run(self, run_context, run_values):
        self.steps += 1
        note("{} step {}".format(self.name, self.steps))

    def end(self, session):
        note("{} end {}".format(self.name, self.steps))


def model_fn(features, labels, mode):
    def uniform(seed):
        return v1.random_uniform_initializer(-0.5, 0.5, seed=seed)

    hidden = v1.layers.dense(features["x"], 8, activation=tf.nn.relu, kernel_initializer=uniform(1))
    large = tf.where(features["x"] > 0.5)  # as many as there are: the rows of a sparse gradient
    rows = tf.nn.embedding_lookup(v1.get_variable("table", [3, 8], initializer=uniform(4)), large[:, 1])
    hidden += tf.math.unsorted_segment_sum(rows, large[:, 0], tf.shape(hidden)[0])
    hidden = v1.layers.batch_normalization(hidden, training=mode == "train", momentum=0.9)
    predicted = v1.layers.dense(hidden, 1, kernel_initializer=uniform(2))
    if mode == "infer":
        outputs = {"serving_default": tf.estimator.export.PredictOutput(predicted)}
        return tf.estimator.EstimatorSpec(mode, predictions=predicted, export_outputs=outputs)
    loss = v1.losses.mean_squared_error(labels, predicted)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        train_op = v1.train.GradientDescentOptimizer(0.05).minimize(loss, v1.train.get_global_step())
    metrics = {"rmse": v1.metrics.root_mean_squared_error(labels, predicted)}
    hooks = [Noting("chief")] if flags.slow else []
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops=metrics, predictions=predicted, training_chief_hooks=hooks
    )


def numbers(input_context=None):
    random = np.random.RandomState(3)
    x = random.normal(size=[160, 3]).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(axis=1, keepdims=True)))
    if input_context is not None:
        note("input_context {0.input_pipeline_id} of {0.num_input_pipelines}".format(input_context))
        dataset = dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    dataset = dataset.shuffle(64, seed=5).repeat().batch(4)
    if flags.slow:
        dataset = dataset.map(lambda x, y: (x, tf.ensure_shape(v1.py_func(slowly, [y], tf.float32), [None, 1])))
    return dataset if flags.batches is None else dataset.take(flags.batches)


def slowly(value):
    import time

    time.sleep(flags.slow)
    return value


def main():
    note("pid {}".format(os.getpid()))
    v1.logging.set_verbosity(v1.logging.INFO)
    strategy, session_config = None, None
    if flags.strategy == "multi_worker":
        wanted = tf.distribute.experimental.CollectiveCommunication[flags.communication]
        strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy(communication=wanted)
    elif flags.strategy == "mirrored":
        strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
        session_config = v1.ConfigProto(device_count={"CPU": 2})  # a session of TF1 knows no other virtual CPUs
    config = tf.estimator.RunConfig(
        flags.model_dir,
        tf_random_seed=1,
        train_distribute=strategy,
        session_config=session_config,
        save_checkpoints_steps=50,
        save_summary_steps=20,
        log_step_count_steps=20,
    )
    hooks = [Noting("worker")] if flags.slow else []
    estimator = tf.estimator.Estimator(model_fn, config=config)
    serving = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.zeros([1, 3])})
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(numbers if flags.sharded else lambda: numbers(), max_steps=flags.max_steps, hooks=hooks),
        tf.estimator.EvalSpec(
            lambda: numbers().take(10),
            start_delay_secs=0,
            throttle_secs=600,
            exporters=[tf.estimator.LatestExporter("latest", serving)],
        ),
    )


main()
