"""Makes tests/golden/checkpoints-native with TensorFlow 2.15.1 and its own Estimator: python make_checkpoints_native.py FOLDER."""

import glob
import os
import shutil
import sys

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
FOLDER = sys.argv[1]
ONE_THREAD = v1.ConfigProto(device_count={"CPU": 2}, inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)


def input_fn():
    """Four examples, over and over."""
    features = {"x": np.ones((4, 3), np.float32), "w": np.array([["a"], ["b"], ["c"], ["d"]])}
    return tf.data.Dataset.from_tensors((features, np.array([[0], [1], [1], [0]]))).repeat()


def keep(model_dir, name):
    """The files of step 2, and nothing else."""
    for path in glob.glob(f"{model_dir}/model.ckpt-2.[di][an]*"):
        shutil.copy(path, f"{FOLDER}/{name}{os.path.basename(path)[len('model') :]}")
    shutil.rmtree(model_dir)


def canned():
    """Canned Estimators after two steps: TF1's, whose optimizers are tf.train's, and TF2's, whose are Keras'."""
    column = tf.feature_column.numeric_column("x", shape=(3,))
    word = tf.feature_column.categorical_column_with_hash_bucket("w", 5)
    embedded = tf.feature_column.embedding_column(word, 2)
    adam = tf.keras.optimizers.legacy.Adam(beta_1=0.8)
    estimators = {
        "v1-dnn": lambda config: v1.estimator.DNNClassifier([4], [column, embedded], config=config),
        "v1-linear": lambda config: v1.estimator.LinearClassifier([column, word], config=config),
        "v1-combined": lambda config: v1.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=[word], dnn_feature_columns=[column, embedded], dnn_hidden_units=[4], config=config
        ),
        "v2-dnn": lambda config: tf.estimator.DNNClassifier([4], [column, embedded], optimizer=adam, config=config),
        "v2-linear": lambda config: tf.estimator.LinearClassifier([column, word], config=config),
        "v2-combined": lambda config: tf.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=[word], dnn_feature_columns=[column, embedded], dnn_hidden_units=[4], config=config
        ),
    }
    for name, make in estimators.items():
        train(name, make)


def train(name, make, input_fn=input_fn):
    """Two steps of an Estimator."""
    model_dir = f"{FOLDER}/making-{name}"
    make(tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=3, session_config=ONE_THREAD)).train(input_fn, steps=2)
    keep(model_dir, name)


def two_labels():
    """The same examples for a MultiHead."""
    return input_fn().map(lambda features, labels: (features, {"a": labels, "b": labels}))


def two_optimizers(features, labels, mode):
    """A model_fn with two optimizers of Keras of one class, without a scope around them."""
    hidden, logits = tf.keras.layers.Dense(2, name="hidden"), tf.keras.layers.Dense(1, name="logits")
    loss = tf.reduce_mean((logits(hidden(features["x"])) - tf.cast(labels, tf.float32)) ** 2)
    first, second = tf.keras.optimizers.legacy.Adam(0.1), tf.keras.optimizers.legacy.Adam(0.2)
    first.iterations = v1.train.get_or_create_global_step()
    updates = [*first.get_updates(loss, hidden.trainable_variables), *second.get_updates(loss, logits.trainable_variables)]
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(*updates))


def other_names():
    """Slots under other names: a MultiHead's, those of a model_fn's Keras optimizers, those of slices of a linear model."""
    column = tf.feature_column.numeric_column("x", shape=(3,))
    heads = [tf.estimator.BinaryClassHead(name=name) for name in ("a", "b")]
    cut = v1.fixed_size_partitioner(2)
    train(
        "v2-multi",
        lambda config: tf.estimator.DNNEstimator(tf.estimator.MultiHead(heads), [4], [column], optimizer="Adam", config=config),
        two_labels,
    )
    train("two-optimizers", lambda config: tf.estimator.Estimator(two_optimizers, config=config))
    train("v1-linear-cut", lambda config: v1.estimator.LinearRegressor([column], partitioner=cut, config=config))


def parameter_servers(features, labels, mode):
    """A model_fn with a table partitioned as over two parameter servers, trained by Momentum."""
    with v1.device(lambda op: "/cpu:1" if "part_1" in op.name else "/cpu:0"):
        table = v1.get_variable("embedding/table", [13, 4], partitioner=v1.fixed_size_partitioner(2))
        kernel = v1.get_variable("dense/kernel", [4, 1])
    rows = v1.nn.embedding_lookup(table, [0, 7, 12, 7], partition_strategy="div")
    loss = tf.reduce_sum((tf.matmul(rows, kernel) - tf.cast(labels, tf.float32)) ** 2)
    train_op = v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def partitioned():
    """The Estimator's own sharded Saver writes one data file a device."""
    model_dir = f"{FOLDER}/making-partitioned"
    config = tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=3, session_config=ONE_THREAD)
    tf.estimator.Estimator(parameter_servers, config=config).train(input_fn, steps=2)
    keep(model_dir, "partitioned")


def keras():
    """The same small model with an optimizer of either family of Keras 2.15, after two steps, by tf.train.Checkpoint."""
    for name, optimizers in (("keras-legacy", tf.keras.optimizers.legacy), ("keras-new", tf.keras.optimizers)):
        tf.keras.utils.set_random_seed(3)
        embedding = tf.keras.layers.Embedding(5, 2, input_length=1)
        model = tf.keras.Sequential([embedding, tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
        model.compile(optimizers.Adam(0.01), "mse")
        model.fit(np.array([[0], [4], [4]]), np.array([[1.0], [0.5], [0.0]]), epochs=2, batch_size=3, verbose=0)
        tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(f"{FOLDER}/{name}")
    os.remove(f"{FOLDER}/checkpoint")


assert tf.__version__ == "2.15.1", tf.__version__
os.makedirs(FOLDER, exist_ok=True)
keras()
canned()
partitioned()
other_names()
