"""A strategy that copies the model to each device: as many processors as the argument says."""

import sys

import numpy as np
import tensorflow as tf

DEVICES = int(sys.argv[1]) if len(sys.argv) > 1 else 1


def initial(shape, dtype=None, partition_info=None):
    return np.random.RandomState(int(np.prod(shape))).randn(*shape).astype(np.float32) * 0.5


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.layers.dense(features["x"], params["units"], activation=tf.nn.relu, kernel_initializer=initial)
    net = tf.layers.batch_normalization(net, momentum=0.9, training=training)
    logits = tf.layers.dense(net, 3, kernel_initializer=initial)
    predictions = {"classes": tf.argmax(logits, 1), "logits": logits}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    loss += 0.01 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "kernel" in v.name])
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["classes"])}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.MomentumOptimizer(0.05, 0.9)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(repeats=None):
    rng = np.random.RandomState(1)
    x = rng.rand(60, 5).astype(np.float32)
    y = (x.sum(1) * 1.3).astype(np.int64) % 3
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat(repeats).batch(8)


def main():
    devices = ["/cpu:%d" % index for index in range(DEVICES)]
    distribution = tf.distribute.MirroredStrategy(devices=devices) if DEVICES else None
    session_config = tf.ConfigProto(device_count={"CPU": DEVICES}, allow_soft_placement=True)
    config = tf.estimator.RunConfig(train_distribute=distribution, session_config=session_config)
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"units": 4})
    estimator.train(input_fn, steps=12)
    estimator.train(input_fn, max_steps=15)
    estimator.train(lambda: input_fn(1).filter(lambda x, y: y[0] >= 0))  # nothing says how many batches there are
    found = estimator.evaluate(lambda: input_fn(1))
    print("evaluated", " ".join("%s=%.6f" % (name, found[name]) for name in ("accuracy", "global_step", "loss")))
    predicted = [one["logits"] for one in estimator.predict(lambda: input_fn(1))]
    print("logits", " ".join("%.5f" % one for one in np.array(predicted)[:3].ravel()))
    print("predicted", len(predicted))


if __name__ == "__main__":
    main()
