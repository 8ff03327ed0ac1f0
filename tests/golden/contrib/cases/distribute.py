"""Cases of tf.contrib.distribute, on CPU devices."""

import json
import os
import tempfile

import tensorflow as tf

distribute = tf.contrib.distribute


def _batches(strategy):
    """The first batch of each replica: in contrib, the data set's batches are those of one replica."""
    dataset = tf.data.Dataset.range(8).batch(2)
    with strategy.scope():
        iterator = strategy.make_dataset_iterator(dataset)
        values = strategy.experimental_local_results(iterator.get_next())
    return [iterator.initialize(), list(values)]


def mirrored():
    strategy = distribute.MirroredStrategy()
    given = distribute.MirroredStrategy(["/cpu:0"], cross_device_ops=distribute.AllReduceCrossDeviceOps("nccl", 2))
    old = distribute.MirroredStrategy(num_gpus=0, auto_shard_dataset=True, cross_tower_ops=tf.distribute.ReductionToOneDevice())
    return [_told(strategy), _told(given), _told(old), _told(distribute.MirroredStrategy(num_gpus_per_worker=0))]


def _told(strategy):
    devices = [tf.DeviceSpec.from_string(device).device_type for device in strategy.extended.worker_devices]
    return [strategy.num_replicas_in_sync, devices, strategy.extended._global_batch_size, isinstance(strategy, _BASE)]


_BASE = distribute.DistributionStrategy


def refused():
    def answer(**options):
        try:
            distribute.MirroredStrategy(**options)
        except ValueError as error:
            return type(error).__name__

    return [answer(num_gpus=1, num_gpus_per_worker=1), answer(devices=["/cpu:0"], num_gpus=1)]


def batches():
    initializer, values = _batches(distribute.MirroredStrategy(["/cpu:0"]))
    with tf.Session() as session:
        session.run(initializer)
        return session.run(values)


def one_device():
    strategy = distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        inside = [distribute.has_strategy(), distribute.in_cross_replica_context(), distribute.get_strategy() is strategy]
        distribute.get_cross_replica_context()
    return [
        inside,
        distribute.has_distribution_strategy(),
        distribute.get_distribution_strategy() is distribute.get_strategy(),
        distribute.in_cross_replica_context(),
        isinstance(distribute.get_replica_context(), distribute.ReplicaContext),
        distribute.require_replica_context(distribute.get_replica_context()),
        isinstance(tf.distribute.ReductionToOneDevice(), distribute.CrossDeviceOps),
        distribute.get_loss_reduction().name,
    ]


def with_cluster():
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"ps": ["p:1", "p:2"], "worker": ["w:1", "w:2"]}, "task": {"type": "worker", "index": 1}}
    )
    try:
        strategy = distribute.ParameterServerStrategy(num_gpus_per_worker=0)
        told = [strategy.num_replicas_in_sync, strategy.extended._global_batch_size, strategy.extended.parameter_devices]
        return [told, strategy.extended.worker_devices]
    finally:
        del os.environ["TF_CONFIG"]


def collective():
    strategy = distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=0)
    return [strategy.num_replicas_in_sync, strategy.extended._num_workers, strategy.extended._global_batch_size]


def config():
    made = distribute.DistributeConfig(distribute.OneDeviceStrategy("/cpu:0"))
    return [list(made._fields), made.eval_distribute]


def steps():
    def loss_fn(context, x):
        weight = tf.get_variable("weight", initializer=1.0)
        return tf.reduce_sum(weight * x)

    with tf.Graph().as_default(), tf.Session() as session:
        strategy = distribute.OneDeviceStrategy("/cpu:0")
        with strategy.scope():
            step = distribute.StandardSingleLossStep(
                lambda: tf.data.Dataset.from_tensors(2.0).repeat(),
                loss_fn,
                tf.train.GradientDescentOptimizer(0.1),
                strategy,
                iterations_per_step=2,
            )
            initialized, trained = step.initialize(), step()
            session.run(initialized)
            session.run(tf.global_variables_initializer())
            session.run(trained)
            return [
                session.run(tf.global_variables()[0]),
                isinstance(step, distribute.StandardInputStep),
                isinstance(step, distribute.Step),
            ]


def estimator():
    def model_fn(features, labels, mode):
        weight = tf.get_variable("weight", initializer=[[0.5], [2.0]])
        loss = tf.reduce_mean((tf.matmul(features, weight) - labels) ** 2)
        step = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    config = tf.estimator.RunConfig(model_dir=tempfile.mkdtemp(), train_distribute=distribute.MirroredStrategy())
    made = tf.estimator.Estimator(model_fn, config=config)
    made.train(lambda: tf.data.Dataset.from_tensors(([[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0]])).repeat(), steps=3)
    return [made.get_variable_names(), made.get_variable_value("weight")]


def others():
    with distribute.UpdateContext("/cpu:0"):
        inside = distribute.in_cross_replica_context()
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}})
    try:
        server = distribute.run_standard_tensorflow_server(tf.ConfigProto())
    finally:
        del os.environ["TF_CONFIG"]
    return [inside, server.target[:17], server.server_def.job_name]
