"""Cases of tf.contrib.tpu on a machine without one."""

import tempfile

import tensorflow as tf

tpu = tf.contrib.tpu


def _model_fn(features, labels, mode, params):
    weight = tf.get_variable("weight", initializer=[[0.5], [2.0]])
    y = tf.matmul(features, weight)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, {"y": y, "rows": tf.fill([params["batch_size"]], params["batch_size"])})
    loss = tf.reduce_mean((y - labels) ** 2)
    optimizer = tf.train.MomentumOptimizer(0.01, 0.9)  # TensorFlow 1.15 has no CrossShardOptimizer outside a TPU
    if mode == tf.estimator.ModeKeys.TRAIN:
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()))

    def metric_fn(labels, y):
        return {"mean": tf.metrics.mean(y), "error": tf.metrics.mean_squared_error(labels, y)}

    return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, {"labels": labels, "y": y}))


def _input_fn(params):
    x = tf.data.Dataset.from_tensor_slices(([[1.0, 2.0], [3.0, 4.0], [0.5, 0.25], [1.0, -1.0]], [[1.0], [2.0], [0.0], [1.0]]))
    return x.repeat().batch(params["batch_size"], drop_remainder=True)


def estimator():
    config = tpu.RunConfig(
        tpu_config=tpu.TPUConfig(2, num_shards=1, per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2),
        model_dir=tempfile.mkdtemp(),
    )
    made = tpu.TPUEstimator(
        _model_fn, config=config, use_tpu=False, train_batch_size=2, eval_batch_size=4, predict_batch_size=1, params={"a": 1}
    )
    made.train(_input_fn, max_steps=4)
    predicted = list(made.predict(lambda params: _input_fn(params).map(lambda x, y: x).take(2), yield_single_examples=False))
    values = {name: made.get_variable_value(name) for name in sorted(made.get_variable_names())}
    return [made.evaluate(_input_fn, steps=1), predicted, values]


def configs():
    default = tpu.TPUConfig()
    config = tpu.RunConfig(
        tpu_config=tpu.TPUConfig(iterations_per_loop=100, num_shards=8, initial_infeed_sleep_secs=3), master="m"
    )
    known = ["iterations_per_loop", "num_shards", "num_cores_per_replica", "per_host_input_for_training", "tpu_job_name"]
    return [
        {name: getattr(default, name) for name in known},
        [config.tpu_config.iterations_per_loop, config.tpu_config.num_shards, config.master, config.evaluation_master],
        [config.save_checkpoints_secs, config.keep_checkpoint_max, config.tpu_config.initial_infeed_sleep_secs],
        [getattr(tpu.InputPipelineConfig, name) for name in ("PER_SHARD_V1", "PER_HOST_V1", "PER_HOST_V2", "BROADCAST")],
    ]


def optimizer():
    with tf.Graph().as_default():
        weight = tf.get_variable("weight", initializer=1.0)
        made = tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), reduction=tf.losses.Reduction.MEAN)
        made.minimize(weight * 2.0)
        return [variable.name for variable in tf.global_variables()] + [made.get_slot_names()]


def bfloat16_scope():
    with tf.Graph().as_default():
        with tpu.bfloat16_scope():
            weight = tf.get_variable("weight", [2], tf.bfloat16)
            cast = tf.get_variable("cast", [2], tf.float32)
        return [[v.name, v.dtype.base_dtype.name] for v in tf.global_variables()] + [weight.dtype.name, cast.dtype.name]


def operations():
    """What is built for a TPU: the kinds of operations, none of which is run."""
    with tf.Graph().as_default() as graph:
        one = tf.constant([1.0])
        tpu.cross_replica_sum(one, [[0]])
        tpu.infeed_enqueue(one, [1])
        tpu.infeed_enqueue_tuple([one], [[1]])
        tpu.infeed_dequeue(tf.float32, [1])
        tpu.infeed_dequeue_tuple([tf.float32], [[1]])
        tpu.outfeed_enqueue(one)
        tpu.outfeed_enqueue_tuple([one])
        tpu.outfeed_dequeue(tf.float32, [1])
        tpu.outfeed_dequeue_tuple([tf.float32], [[1]])
        tpu.initialize_system()
        tpu.shutdown_system()
        queue = tpu.InfeedQueue(tuple_types=[tf.float32], tuple_shapes=[[1]])
    return [sorted({operation.type for operation in graph.get_operations()}), queue.number_of_tuple_elements]


def programs():
    with tf.Graph().as_default() as graph:
        inputs = [tf.constant([1.0, 2.0])]
        tpu.rewrite(lambda x: x * 2.0, inputs)
        tpu.replicate(lambda x: x * 2.0, [inputs, inputs])
        tpu.shard(lambda x: x * 2.0, inputs, 2)
        tpu.batch_parallel(lambda x: x * 2.0, inputs, 2)
        tpu.rewrite(lambda x: tpu.repeat(3, lambda y: y + 1.0, [x]), inputs)
        tpu.rewrite(lambda x: tpu.while_loop(lambda y: y[0] < 3.0, lambda y: y + 1.0, [x]), inputs)
        tpu.rewrite(lambda x: tpu.outside_compilation(lambda y: y + 1.0, x), inputs)
    kinds = [operation.type for operation in graph.get_operations()]
    return {kind: kinds.count(kind) for kind in ("TPUReplicateMetadata", "TPUReplicatedInput", "TPUReplicatedOutput")}
