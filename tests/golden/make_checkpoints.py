"""Makes tests/golden/checkpoints with TensorFlow 1.15.5: python make_checkpoints.py FOLDER."""

import glob
import os
import shutil
import sys

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
FOLDER = sys.argv[1]
TWO_DEVICES = v1.ConfigProto(device_count={"CPU": 2})
DTYPES = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64")


def both_formats():
    """The same values in V1's and in V2's format: every dtype that V1 has, strings, a partitioned variable."""
    with tf.Graph().as_default():
        v1.set_random_seed(1)
        v1.get_variable("partitioned", [11, 3], partitioner=v1.fixed_size_partitioner(3))
        for number, name in enumerate(DTYPES):
            with tf.device("/cpu:%d" % (number % 2)):
                v1.get_variable("of_" + name, initializer=tf.cast(tf.constant([[1, 0, 2], [3, 4, 100]]), name))
        v1.get_variable("negative", initializer=tf.constant([-5, -1, 2**40], tf.int64))
        v1.get_variable("strings", initializer=tf.constant(["a", "bc\0", ""]))
        v1.train.get_or_create_global_step()
        with v1.Session(config=TWO_DEVICES) as session:
            session.run(v1.global_variables_initializer())
            v1.train.Saver(write_version=1).save(session, FOLDER + "/v1.ckpt", write_meta_graph=False, write_state=False)
            v1.train.Saver().save(session, FOLDER + "/v2.ckpt", write_meta_graph=False, write_state=False)
            sharded = v1.train.Saver(write_version=1, sharded=True)
            sharded.save(session, FOLDER + "/v1-sharded.ckpt", write_meta_graph=False, write_state=False)


def parameter_servers():
    """A variable partitioned over two devices, as over two parameter servers, with Adam: one data file a device."""
    with tf.Graph().as_default():
        v1.set_random_seed(2)
        with tf.device(lambda op: "/cpu:1" if "part_1" in op.name else "/cpu:0"):
            table = v1.get_variable("embedding/table", [13, 4], partitioner=v1.fixed_size_partitioner(2))
            kernel = v1.get_variable("dense/kernel", [4, 1])
        rows = v1.nn.embedding_lookup(table, [0, 7, 12], partition_strategy="div")
        loss = tf.reduce_sum(tf.matmul(rows, kernel) ** 2)
        step = v1.train.get_or_create_global_step()
        train = v1.train.AdamOptimizer(0.01).minimize(loss, step)
        with v1.Session(config=TWO_DEVICES) as session:
            session.run(v1.global_variables_initializer())
            session.run([train])
            session.run([train])
            v1.train.Saver(sharded=True).save(
                session, FOLDER + "/partitioned.ckpt", global_step=2, write_meta_graph=False, write_state=False
            )


def canned():
    """DNN, linear and combined canned Estimators after two steps."""
    column = tf.feature_column.numeric_column("x", shape=(3,))
    word = tf.feature_column.categorical_column_with_hash_bucket("w", 5)
    embedded = tf.feature_column.embedding_column(word, 2)
    estimators = {
        "dnn": lambda config: v1.estimator.DNNClassifier([4], [column, embedded], config=config),
        "linear": lambda config: v1.estimator.LinearClassifier([column, word], config=config),
        "combined": lambda config: v1.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=[word], dnn_feature_columns=[column, embedded], dnn_hidden_units=[4], config=config
        ),
    }

    def input_fn():
        features = {"x": np.ones((4, 3), np.float32), "w": np.array([["a"], ["b"], ["c"], ["d"]])}
        return tf.data.Dataset.from_tensors((features, np.array([[0], [1], [1], [0]]))).repeat()

    for name, make in estimators.items():
        model_dir = FOLDER + "/making-" + name
        make(tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=3)).train(input_fn, steps=2)
        for path in glob.glob(model_dir + "/model.ckpt-2.[di][an]*"):  # .index and .data-*, not .meta
            shutil.copy(path, FOLDER + "/" + name + os.path.basename(path)[len("model") :])
        shutil.rmtree(model_dir)


assert v1.VERSION == "1.15.5", v1.VERSION
os.makedirs(FOLDER, exist_ok=True)
both_formats()
parameter_servers()
canned()
