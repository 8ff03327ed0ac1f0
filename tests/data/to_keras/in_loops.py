"""A network of factorized pairs, and a function with layers and any number of arguments, so ``--body shim`` keeps the network."""

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("optimizer", "adagrad", "Optimizer.")
FLAGS = flags.FLAGS


def norm(inputs, training, *names):
    if not names:
        return inputs
    return tf.contrib.layers.batch_norm(
        inputs, decay=0.9, scale=True, updates_collections=None, is_training=training, scope=names[0]
    )


def model_fn(features, labels, mode, params):
    weights = tf.get_variable("weights", [30], initializer=tf.glorot_normal_initializer())
    factors = tf.get_variable("factors", [30, 4], initializer=tf.glorot_normal_initializer())
    ids = tf.reshape(features["ids"], [-1, 3])
    linear = tf.reduce_sum(tf.nn.embedding_lookup(weights, ids), 1)
    vectors = tf.nn.embedding_lookup(factors, ids)
    with tf.variable_scope("pairs"):
        pairs = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(vectors, 1)) - tf.reduce_sum(tf.square(vectors), 1), 1)
    with tf.variable_scope("deep"):
        net = tf.reshape(vectors, [-1, 12])
        for place, units in enumerate(params["layers"]):
            net = tf.contrib.layers.fully_connected(
                net, units, weights_regularizer=tf.contrib.layers.l2_regularizer(0.01), scope="layer_%d" % place
            )
            net = norm(9 * net, mode == tf.estimator.ModeKeys.TRAIN, "norm_%d" % place)
            if mode == tf.estimator.ModeKeys.TRAIN:
                net = tf.nn.dropout(net, keep_prob=params["keep"][place])
        deep = tf.reshape(tf.contrib.layers.fully_connected(net, 1, activation_fn=tf.identity, scope="out"), [-1])
    logits = linear + pairs + deep
    answers = {"probability": tf.sigmoid(logits), "logits": logits}
    key = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    export_outputs = {key: tf.estimator.export.PredictOutput(answers)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=answers, export_outputs=export_outputs)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels))
    loss += 0.01 * tf.nn.l2_loss(factors) + tf.losses.get_regularization_loss()
    metrics = {"auc": tf.metrics.auc(labels, answers["probability"])}
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    if FLAGS.optimizer == "adam":
        optimizer = tf.train.AdamOptimizer(0.05)
    elif FLAGS.optimizer == "adagrad":
        optimizer = tf.train.AdagradOptimizer(0.1, initial_accumulator_value=1e-8)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    ids = np.random.RandomState(1).randint(0, 30, (48, 3))
    return tf.data.Dataset.from_tensor_slices(({"ids": ids}, (ids[:, 0] > 15).astype(np.float32))).batch(8)


def main(_):
    session = tf.ConfigProto(device_count={"GPU": 0, "CPU": 2})
    config = tf.estimator.RunConfig().replace(session_config=session, log_step_count_steps=3)
    estimator = tf.estimator.Estimator(model_fn, "trained", params={"layers": [8, 4], "keep": [0.8, 0.9]}, config=config)
    estimator.train(input_fn)
    estimator.evaluate(input_fn)
    answers = list(estimator.predict(input_fn=input_fn, predict_keys="probability"))
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn({"ids": tf.placeholder(tf.int64, [None, 3], "ids")})
    estimator.export_savedmodel("exported", receiver)
    print(len(answers), sorted(answers[0]))


if __name__ == "__main__":
    tf.app.run()
