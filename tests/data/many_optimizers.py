"""A TensorFlow 1 script that trains a table and a dense layer by each optimizer: ``many_optimizers.py MODEL_DIR MAX_STEPS [OPTION ...]``.

Options: ``clipped``: by the global norm; ``clipped-each``: each gradient by its norm; ``lamb``: an optimizer of the script's own; ``slot-summary``: a summary of a slot; ``stateless``: only gradient descent; ``mirrored``:
MultiWorkerMirroredStrategy by the RunConfig, as TensorFlow 1 needs it.
"""

import sys

import numpy as np
import tensorflow as tf

class Lamb(tf.train.Optimizer):
    """Scales the gradient of each variable by the norms of both."""

    def __init__(self):
        super().__init__(use_locking=False, name="Lamb")

    def _apply_dense(self, gradient, variable):
        return variable.assign_sub(0.01 * gradient * tf.norm(variable) / (tf.norm(gradient) + 1e-6)).op


MODEL_DIR, MAX_STEPS, *OPTIONS = sys.argv[1:]
OPTIMIZERS = {
    "sgd": tf.train.GradientDescentOptimizer(0.1),
    "momentum": tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": tf.train.AdagradOptimizer(0.1),
    "adam": tf.train.AdamOptimizer(0.05),
    "rmsprop": tf.train.RMSPropOptimizer(0.05, momentum=0.5, centered=True),
    "ftrl": tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001),
    "adadelta": tf.train.AdadeltaOptimizer(0.1),
}
RANDOM = np.random.RandomState(0)
X, IDS = RANDOM.normal(size=[240, 3]).astype(np.float32), RANDOM.randint(0, 11, size=[240])
Y = (X.sum(axis=1, keepdims=True) + IDS[:, None] / 11.0).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X, "ids": IDS}, Y)).repeat().batch(8)


def model_fn(features, labels, mode):
    losses, updates = [], []
    for number, (name, optimizer) in enumerate(OPTIMIZERS.items()):
        if "stateless" in OPTIONS and name != "sgd":
            continue
        with tf.variable_scope(name):
            initializer = tf.glorot_uniform_initializer(seed=number)
            table = tf.get_variable("table", [11, 5], initializer=initializer)
            hidden = tf.nn.embedding_lookup(table, features["ids"]) + tf.layers.dense(
                features["x"], 5, kernel_initializer=initializer
            )
            predicted = tf.layers.dense(tf.tanh(hidden), 1, kernel_initializer=initializer, name="out")
            losses.append(tf.losses.mean_squared_error(labels, predicted))
        if mode != tf.estimator.ModeKeys.TRAIN:
            continue
        if "lamb" in OPTIONS and name == "momentum":
            optimizer = Lamb()
        pairs = optimizer.compute_gradients(losses[-1], tf.trainable_variables(name + "/"))
        if isinstance(optimizer, Lamb):
            pairs = [(tf.convert_to_tensor(gradient), variable) for gradient, variable in pairs]
        if "clipped" in OPTIONS:
            gradients, variables = zip(*pairs)
            pairs = list(zip(tf.clip_by_global_norm(gradients, 0.1)[0], variables))
        if "clipped-each" in OPTIONS:
            pairs = [(tf.clip_by_norm(gradient, 0.05), variable) for gradient, variable in pairs]
        updates.append(optimizer.apply_gradients(pairs))
        if "slot-summary" in OPTIONS and name == "adam":
            tf.summary.histogram("moment", optimizer.get_slot(table, "m"))
    with tf.control_dependencies(updates):
        counted = tf.assign_add(tf.train.get_global_step(), 1)
    return tf.estimator.EstimatorSpec(mode, loss=tf.add_n(losses), train_op=counted)


def main():
    tf.logging.set_verbosity(tf.logging.INFO)
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy() if "mirrored" in OPTIONS else None
    config = tf.estimator.RunConfig(
        MODEL_DIR, save_checkpoints_steps=4, log_step_count_steps=1, save_summary_steps=1, train_distribute=strategy
    )
    estimator = tf.estimator.Estimator(model_fn, config=config)
    spec = tf.estimator.TrainSpec(input_fn, max_steps=int(MAX_STEPS))
    tf.estimator.train_and_evaluate(estimator, spec, tf.estimator.EvalSpec(input_fn, steps=1))


main()
