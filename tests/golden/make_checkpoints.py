"""Makes tests/golden/checkpoints with TensorFlow 1.15.5: python make_checkpoints.py FOLDER."""

import functools
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
        meta = v1.MetaGraphDef(graph_def=v1.get_default_graph().as_graph_def())  # before a Saver adds a random name
        with open(FOLDER + "/partitioned.ckpt-2.meta", "wb") as file:
            file.write(meta.SerializeToString(deterministic=True))
        with v1.Session(config=TWO_DEVICES) as session:
            session.run(v1.global_variables_initializer())
            session.run([train])
            session.run([train])
            v1.train.Saver(sharded=True).save(
                session, FOLDER + "/partitioned.ckpt", global_step=2, write_meta_graph=False, write_state=False
            )


def optimizers():
    """Every optimizer of tf.train and tf.contrib.opt that keeps slots, dense and sparse, each with variables of its own."""
    from tensorflow.contrib import opt

    made = {
        "AdaMax": opt.AdaMaxOptimizer,
        "Adadelta": v1.train.AdadeltaOptimizer,
        "Adagrad": v1.train.AdagradOptimizer,
        "AdagradDA": lambda rate: v1.train.AdagradDAOptimizer(rate, v1.train.get_global_step()),
        "Adam": v1.train.AdamOptimizer,
        "AdamW": lambda rate: opt.AdamWOptimizer(0.01, rate),
        "AddSign": opt.AddSignOptimizer,
        "Ftrl": v1.train.FtrlOptimizer,
        "GradientDescent": v1.train.GradientDescentOptimizer,
        "LARS": opt.LARSOptimizer,
        "LazyAdam": opt.LazyAdamOptimizer,
        "Momentum": lambda rate: v1.train.MomentumOptimizer(rate, 0.9),
        "MomentumW": lambda rate: opt.MomentumWOptimizer(0.01, rate, 0.9),
        "Nadam": opt.NadamOptimizer,
        "Nesterov": lambda rate: v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True),
        "PowerSign": opt.PowerSignOptimizer,
        "ProximalAdagrad": v1.train.ProximalAdagradOptimizer,
        "ProximalGradientDescent": v1.train.ProximalGradientDescentOptimizer,
        "RMSProp": v1.train.RMSPropOptimizer,
        "RMSPropCentered": lambda rate: v1.train.RMSPropOptimizer(rate, centered=True),
        "RegAdagrad": opt.RegAdagradOptimizer,
        "Shampoo": lambda rate: opt.ShampooOptimizer(v1.train.get_global_step(), learning_rate=rate),
    }
    with tf.Graph().as_default():
        v1.train.get_or_create_global_step()
        for name in sorted(made):
            dense, sparse = (
                v1.get_variable(name + kind, [3, 2], initializer=v1.ones_initializer()) for kind in ("/dense", "/sparse")
            )
            loss = tf.reduce_sum(dense**2) + tf.reduce_sum(tf.gather(sparse, [0, 2]) ** 2)
            made[name](0.1).minimize(loss, var_list=[dense, sparse])
        with v1.Session() as session:  # not trained: tf.contrib's weight decay races with the gradients
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, FOLDER + "/optimizers.ckpt-0", write_meta_graph=False, write_state=False)


def canned():
    """DNN, linear and combined canned Estimators after two steps, one with a shared embedding."""
    column = tf.feature_column.numeric_column("x", shape=(3,))
    word = tf.feature_column.categorical_column_with_hash_bucket("w", 5)
    other = tf.feature_column.categorical_column_with_hash_bucket("o", 5)
    embedded = tf.feature_column.embedding_column(word, 2)
    shared = v1.feature_column.shared_embedding_columns([word, other], 2)
    estimators = {
        "shared": lambda config: v1.estimator.DNNClassifier([4], shared, config=config),
        "dnn": lambda config: v1.estimator.DNNClassifier([4], [column, embedded], config=config),
        "linear": lambda config: v1.estimator.LinearClassifier([column, word], config=config),
        "combined": lambda config: v1.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=[word], dnn_feature_columns=[column, embedded], dnn_hidden_units=[4], config=config
        ),
    }

    def input_fn(shares):
        features = {"x": np.ones((4, 3), np.float32), "w": np.array([["a"], ["b"], ["c"], ["d"]])}
        if shares:  # more features would be other random numbers for the rest
            features["o"] = features["w"][::-1]
        return tf.data.Dataset.from_tensors((features, np.array([[0], [1], [1], [0]]))).repeat()

    for name, make in estimators.items():
        model_dir = FOLDER + "/making-" + name
        make(tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=3)).train(
            functools.partial(input_fn, name == "shared"), steps=2
        )
        for path in glob.glob(model_dir + "/model.ckpt-2.[di][an]*"):  # .index and .data-*, not .meta
            shutil.copy(path, FOLDER + "/" + name + os.path.basename(path)[len("model") :])
        shutil.rmtree(model_dir)


assert v1.VERSION == "1.15.5", v1.VERSION
os.makedirs(FOLDER, exist_ok=True)
both_formats()
parameter_servers()
optimizers()
canned()
