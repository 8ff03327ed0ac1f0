"""A model function that stays whole, with hooks that read, feed and stop, values of another checkpoint, and a Scaffold."""

import sys

import numpy as np
import tensorflow as tf


class Watch(tf.train.SessionRunHook):
    """Shows the loss of each third step, and what the session computes beside the steps."""

    def __init__(self, loss, total):
        self.loss, self.total = loss, total

    def begin(self):
        self.step = tf.train.get_global_step()
        self.twice = self.total * 2.0

    def after_create_session(self, session, coord):
        print("begins: %.4f" % session.run(self.total))

    def before_run(self, run_context):
        return tf.train.SessionRunArgs({"loss": self.loss, "step": self.step, "before": self.total})

    def after_run(self, run_context, run_values):
        found = run_values.results
        if found["step"] % 3 == 0:
            print("step %d: loss %.4f, before %.4f" % (found["step"], found["loss"], found["before"]))
            print("twice: %.4f" % run_context.session.run(self.twice))

    def end(self, session):
        print("ends: %.4f" % session.run(self.total))


class Rate(tf.train.SessionRunHook):
    """Feeds the learning rate."""

    def __init__(self, rate):
        self.rate, self.steps = rate, 0

    def before_run(self, run_context):
        self.steps += 1
        return tf.train.SessionRunArgs(None, feed_dict={self.rate: 0.5 / self.steps})


class Stop(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.train.get_global_step())

    def after_run(self, run_context, run_values):
        if run_values.results >= 7:
            run_context.request_stop()


def model_fn(features, labels, mode, params):
    hidden = features
    for index in range(params["depth"]):
        with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
            weights = tf.get_variable("weights", [4, 4], initializer=tf.constant_initializer(0.1))
            hidden = tf.nn.tanh(tf.matmul(hidden, weights))
    logits = tf.layers.dense(hidden, 3, kernel_initializer=tf.zeros_initializer(), name="logits")
    tf.train.init_from_checkpoint(params["checkpoint"], {"body/": "layer/"})
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"classes": tf.argmax(logits, 1)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    total = tf.reduce_sum(tf.abs(weights))
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, evaluation_hooks=[Watch(loss, total)])
    rate = tf.placeholder(tf.float32, [], "rate")
    train_op = tf.train.GradientDescentOptimizer(rate).minimize(loss, tf.train.get_global_step())
    logits_of_it = [one for one in tf.global_variables() if one.name.startswith("logits")]
    saver = tf.train.Saver(var_list=logits_of_it[:1])
    own = tf.get_variable("own", [2], trainable=False)
    given, others = tf.reduce_sum(own), [*logits_of_it[1:], own]
    restore = tf.contrib.framework.assign_from_checkpoint_fn(params["checkpoint"], others, ignore_missing_vars=True)
    give = tf.contrib.framework.assign_from_values_fn({"own": np.array([3.0, 4.0], np.float32)})

    def init_fn(scaffold, session):
        saver.restore(session, params["checkpoint"])
        restore(session)
        give(session)
        print("own: %.1f" % session.run(given))

    log = tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=100)
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
        training_hooks=[log, tf.train.SummarySaverHook(100, output_dir="summaries", summary_op=tf.summary.scalar("loss", loss)), Watch(loss, total), Rate(rate)],
        scaffold=tf.train.Scaffold(init_fn=init_fn),
    )


def input_fn():
    draw = np.random.RandomState(3)
    x, y = draw.rand(40, 4).astype(np.float32), draw.randint(0, 3, 40)
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)


def main():
    estimator = tf.estimator.Estimator(model_fn, params={"depth": 2, "checkpoint": sys.argv[1]})
    log = tf.train.LoggingTensorHook(["rate"], every_n_iter=100)
    estimator.train(input_fn, steps=9, hooks=[log, Stop()])
    estimator.train(input_fn, steps=2)
    print("loss: %.4f" % estimator.evaluate(input_fn, steps=3)["loss"])


if __name__ == "__main__":
    main()
