"""Hooks of runs with batches of several sizes: they begin and end once, change variables, and end evaluations and predictions."""

import numpy as np
import tensorflow as tf


class Count(tf.train.SessionRunHook):
    def __init__(self, name, last=100):
        self.name, self.last = name, last

    def begin(self):
        self.seen = 0
        print("%s begins" % self.name)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs("total:0")

    def after_run(self, run_context, run_values):
        self.seen += 1
        if self.seen >= self.last:
            run_context.request_stop()

    def end(self, session):
        print("%s ends after %d" % (self.name, self.seen))


class Rate(tf.train.SessionRunHook):
    """Sets the rate of the next step."""

    def __init__(self, rate, counted):
        self.rate, self.counted = rate, counted
        self.fed = tf.placeholder(tf.float32, [])
        self.set = tf.assign(rate, self.fed)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs([self.counted, "global_step:0"])

    def after_run(self, run_context, run_values):
        counted, step = run_values.results
        run_context.session.run(self.set, feed_dict={self.fed: 0.5 / (step + 1)})
        print("counted %d at %d, rate %.4f" % (counted, step, run_context.session.run(self.rate)))


def model_fn(features, labels, mode):
    weights = tf.get_variable("weights", [4, 3], initializer=tf.constant_initializer(0.1))
    logits = tf.layers.dense(tf.matmul(features, weights), 3, kernel_initializer=tf.constant_initializer([[0.1, 0.2, 0.3]] * 3))
    tf.reduce_sum(tf.abs(weights), name="total")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"classes": tf.argmax(logits, 1)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    rate = tf.get_variable("rate", [], initializer=tf.constant_initializer(0.5), trainable=False)
    counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer(), trainable=False)
    counted = tf.identity(tf.assign_add(counter, 1.0))
    with tf.control_dependencies([counted]):
        train_op = tf.train.MomentumOptimizer(rate, 0.5).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=[Rate(rate, counted)])


def input_fn():
    draw = np.random.RandomState(3)
    x, y = draw.rand(20, 4).astype(np.float32), draw.randint(0, 3, 20)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def main():
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn, steps=3, hooks=[Count("training")])
    print("loss %.4f" % estimator.evaluate(input_fn, hooks=[Count("evaluation")])["loss"])
    print("loss %.4f" % estimator.evaluate(input_fn, hooks=[Count("short evaluation", 2)])["loss"])
    print("%d rows" % len(list(estimator.predict(input_fn, hooks=[Count("prediction", 2)]))))
    left_open = estimator.predict(input_fn, hooks=[Count("open prediction")])
    next(left_open)
    print("%d rows" % len(list(estimator.predict(input_fn))))
    train_spec = tf.estimator.TrainSpec(input_fn, max_steps=5, hooks=[Count("training by a spec")])
    eval_spec = tf.estimator.EvalSpec(input_fn, hooks=[Count("evaluation by a spec")], throttle_secs=0)
    found, _ = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
    print("loss %.4f at %d" % (found["loss"], found["global_step"]))


if __name__ == "__main__":
    main()
