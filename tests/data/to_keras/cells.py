"""A model function that stays whole, with cells of contrib."""

import sys

import numpy as np
import tensorflow as tf

class OwnCell(tf.contrib.rnn.LayerRNNCell):
    """A cell with one matrix."""

    state_size = output_size = 6

    def build(self, shape):
        self.matrix = self.add_variable("matrix", [int(shape[1]) + 6, 6])
        self.built = True

    def call(self, inputs, state):
        found = tf.tanh(tf.matmul(tf.concat([inputs, state], 1), self.matrix))
        return found, found


CELLS = {
    "own": lambda: OwnCell(name="own"),
    "norm": lambda: tf.contrib.rnn.LayerNormBasicLSTMCell(6, norm_gain=0.8, norm_shift=0.1),
    "plain": lambda: tf.contrib.rnn.LayerNormBasicLSTMCell(6, layer_norm=False),
    "lstm": lambda: tf.contrib.rnn.LSTMBlockCell(6, use_peephole=True),
    "gru": lambda: tf.contrib.rnn.GRUBlockCellV2(6),
    "projected": lambda: tf.contrib.rnn.OutputProjectionWrapper(tf.contrib.rnn.GRUBlockCellV2(5), 6, activation=tf.tanh),
}


def waves(shape, dtype=tf.float32, partition_info=None):
    """First values that no generator draws."""
    return tf.reshape(0.5 * tf.cos(1.7 * tf.range(np.prod(shape), dtype=tf.float32)), shape)


def both_ways(rows, length):
    forward = tf.contrib.rnn.LSTMBlockFusedCell(3)
    backward = tf.contrib.rnn.TimeReversedFusedRNN(tf.contrib.rnn.LSTMBlockFusedCell(3, forget_bias=0.5))
    there, last = forward(rows, dtype=tf.float32, sequence_length=length)
    back, (_, first) = backward(rows, dtype=tf.float32, sequence_length=length)
    print(sorted(one.name for one in tf.trainable_variables()))
    return tf.concat([there, back], 2) + tf.concat([last.h, first], 1)


def model_fn(features, labels, mode, params):
    with tf.variable_scope("network", initializer=waves):
        if params["cell"] == "fused":
            outputs = both_ways(tf.transpose(features["rows"], [1, 0, 2]), features["length"])
        else:
            cell = CELLS[params["cell"]]()
            outputs, _ = tf.nn.dynamic_rnn(cell, features["rows"], features["length"], dtype=tf.float32)
            outputs = tf.contrib.rnn.transpose_batch_time(outputs)
        found = tf.layers.dense(outputs[-1] + tf.reduce_mean(outputs, 0), 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"found": found[:, 0]})
    loss = tf.losses.mean_squared_error(labels, found)
    if params["cell"] == "own" and mode == tf.estimator.ModeKeys.TRAIN:
        averages = tf.train.ExponentialMovingAverage(0.9, name="average")
        with tf.control_dependencies([averages.apply([loss, *tf.trainable_variables()])]):
            loss += 0.1 * loss * averages.average(loss).read_value()
    train_op = tf.train.AdamOptimizer(0.02).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draw = np.random.RandomState(1)
    rows, length = draw.randn(24, 5, 3).astype("float32"), draw.randint(1, 6, 24).astype("int32")
    data = ({"rows": rows, "length": length}, rows[:, 0, :1] * 2)
    return tf.data.Dataset.from_tensor_slices(data).batch(8).repeat(4)


def main():
    estimator = tf.estimator.Estimator(model_fn, params={"cell": sys.argv[1]})
    estimator.train(input_fn, steps=10)
    predicted = [row["found"] for row in estimator.predict(input_fn)]
    print("found", estimator.evaluate(input_fn, steps=3)["loss"], *predicted[:3])


if __name__ == "__main__":
    main()
