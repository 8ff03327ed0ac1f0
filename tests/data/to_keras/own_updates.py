"""Updates that no optimizer of Keras makes: an optimizer of the script's own, two of tf.train for parts, gradients of
two batches, and another loss than the reported one."""

import sys

import numpy as np
import tensorflow as tf

WAY = sys.argv[1] if len(sys.argv) > 1 else "own"


class MomentumByHand(tf.train.Optimizer):
    def __init__(self, learning_rate, name="MomentumByHand"):
        super(MomentumByHand, self).__init__(False, name)
        self.learning_rate = learning_rate

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        changes = []
        for gradient, variable in grads_and_vars:
            shape = variable.shape.as_list()
            mean = tf.get_variable(variable.op.name + "/mean", shape, trainable=False, initializer=tf.zeros_initializer())
            new = 0.9 * mean + 0.1 * gradient
            changes.extend([variable.assign(variable - self.learning_rate * new), mean.assign(new)])
        return tf.group(*changes, name=name)


def by_own_optimizer(loss, rate):
    step = tf.train.get_or_create_global_step()
    rate = tf.train.polynomial_decay(rate, step, 30, end_learning_rate=0.0)
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
    changed = MomentumByHand(rate).apply_gradients(zip(gradients, variables))
    with tf.control_dependencies([changed]):
        return step.assign(step + 1)


def by_parts(loss, rate):
    first = tf.trainable_variables()[:2]
    rest = tf.trainable_variables()[2:]
    of_first = tf.train.AdamOptimizer(rate).minimize(loss, var_list=first)
    of_rest = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, tf.train.get_global_step(), var_list=rest)
    return tf.group(of_first, of_rest)


def by_two_batches(loss, rate):
    step, variables = tf.train.get_global_step(), tf.trainable_variables()
    batches = tf.get_variable("batches", [], tf.int64, tf.zeros_initializer(), trainable=False)
    sums = [
        tf.get_variable(v.op.name + "/sum", v.shape, trainable=False, initializer=tf.zeros_initializer()) for v in variables
    ]
    optimizer = tf.train.GradientDescentOptimizer(rate)
    added = [total.assign_add(gradient) for total, gradient in zip(sums, tf.gradients(loss, variables))]
    with tf.control_dependencies([*added, batches.assign_add(1)]):

        def update():
            done = optimizer.apply_gradients([(total / 2, v) for total, v in zip(sums, variables)], step)
            with tf.control_dependencies([done]):
                return tf.group(*[total.assign(tf.zeros_like(total)) for total in sums])

        return tf.cond(tf.equal(batches.read_value() % 2, 0), update, tf.no_op)


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features["x"], 6, activation=tf.nn.relu, name="hidden")
    logits = tf.layers.dense(net, 2, name="answer")
    classes = tf.argmax(logits, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"class": classes})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    loss += 0.01 * sum(tf.nn.l2_loss(one) for one in tf.trainable_variables() if one.name.startswith("answer/kernel"))
    if mode == tf.estimator.ModeKeys.EVAL:
        precision = tf.metrics.precision(labels, classes)
        recall, update = tf.metrics.recall(labels, classes)
        score = 2 * precision[0] * recall / (precision[0] + recall)
        others = tf.metrics.recall(1 - labels, 1 - classes)
        metrics = {"precision": precision, "f1": (score, tf.group(precision[1], update)), "recall": others}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    reported = tf.sqrt(loss)  # no update depends on it
    penalty = 0.01 * tf.add_n([tf.nn.l2_loss(variable) for variable in tf.trainable_variables("hidden")])
    make_updates = {"own": by_own_optimizer, "parts": by_parts, "accumulated": by_two_batches}[WAY]
    train_op = make_updates(loss + penalty, params["rate"])
    return tf.estimator.EstimatorSpec(mode, loss=reported, train_op=train_op)


def input_fn():
    x = np.random.RandomState(3).uniform(-1, 1, size=(80, 4)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat(12).batch(16)


estimator = tf.estimator.Estimator(model_fn, "model", params={"rate": 0.1})
estimator.train(input_fn, steps=24)
found = estimator.evaluate(input_fn, steps=5)
print("step", found["global_step"], "f1 above 0:", bool(found["f1"] > 0))
