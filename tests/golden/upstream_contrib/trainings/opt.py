"""Each optimizer of contrib.opt that works in one process, each with variables of its own.

Those with decoupled weight decay are left out: in TensorFlow 1.15 the decay of a variable and its reading come in no order.
"""

import tensorflow as tf
from job import TRAIN, config, inputs, normal, run, whole
from tensorflow.contrib import opt


def optimizers(step):
    """Optimizers by name."""
    return {
        "adam_gs": opt.AdamGSOptimizer(step, 0.05),
        "adamax": opt.AdaMaxOptimizer(0.05),
        "add_sign": opt.AddSignOptimizer(0.05),
        "clipping": opt.VariableClippingOptimizer(tf.train.GradientDescentOptimizer(0.3), {}, 1.0),
        "lars": opt.LARSOptimizer(0.05, 0.9, 0.01, eeta=0.1),
        "lazy_adam": opt.LazyAdamOptimizer(0.05),
        "lazy_adam_gs": opt.LazyAdamGSOptimizer(step, 0.05),
        "multitask": opt.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(0.05, 0.9)),
        "nadam": opt.NadamOptimizer(0.05),
        "power_sign": opt.PowerSignOptimizer(0.05),
        "reg_adagrad": opt.RegAdagradOptimizer(0.05),
        "shampoo": opt.ShampooOptimizer(step, 1.0, 0.1),
        "ggt": opt.GGTOptimizer(0.01, window=3),
        "average": opt.MovingAverageOptimizer(tf.train.AdamOptimizer(0.05), 0.8),
    }


def output(features):
    """A prediction of a matrix, a bias and an embedding."""
    kernel = tf.get_variable("kernel", [3, 2])
    bias = tf.get_variable("bias", [2], initializer=tf.zeros_initializer())
    table = tf.get_variable("table", [7, 2])
    return tf.matmul(features["x"], kernel) + bias + tf.nn.embedding_lookup(table, features["id"])


def model_fn(features, labels, mode):
    """A sum of independent models."""
    step = tf.train.get_or_create_global_step()
    losses, updates = {}, []
    for name, optimizer in sorted(optimizers(step).items()):
        with tf.variable_scope(name):
            losses[name] = tf.reduce_mean((tf.tanh(output(features)) - labels) ** 2)
            if mode == TRAIN:
                variables = tf.trainable_variables(name + "/")
                if name in ("shampoo", "ggt"):  # dense gradients only
                    variables = [one for one in variables if "table" not in one.name]
                gradients = optimizer.compute_gradients(losses[name], variables)
                updates.append(optimizer.apply_gradients(gradients))
    loss = tf.add_n([one for _, one in sorted(losses.items())])
    train_op = None
    if mode == TRAIN:
        with tf.control_dependencies(updates):
            train_op = tf.assign_add(step, 1)
    metrics = {name: tf.metrics.mean(one) for name, one in losses.items()}
    return tf.estimator.EstimatorSpec(mode, {}, loss, train_op, None if mode == TRAIN else metrics)


FEATURES = {"x": normal(0, 12, 3), "id": whole(1, 7, 12)}
run(tf.estimator.Estimator(model_fn, config=config()), inputs(FEATURES, normal(2, 12, 2)), predicts=False)
