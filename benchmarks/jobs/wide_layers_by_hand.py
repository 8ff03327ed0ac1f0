"""The training of wide_layers.py as it is written by hand today, with tf.distribute: prints steps per second."""

import argparse
import os
import time

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
import tf_keras

PER_CALL = 10


def strategy_of(way):
    """Returns one device, replicas on two devices, or the workers of TF_CONFIG."""
    if way == "workers":
        return tf.distribute.MultiWorkerMirroredStrategy()
    kind = "GPU" if len(tf.config.list_physical_devices("GPU")) > 1 else "CPU"
    if way == "mirrored" and kind == "CPU":
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    return tf.distribute.MirroredStrategy([kind + ":0", kind + ":1"]) if way == "mirrored" else tf.distribute.get_strategy()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", choices=("one", "mirrored", "workers"), required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--rows", type=int, default=16, help="rows of a batch of each worker, or of all replicas together")
    flags = parser.parse_args()
    strategy = strategy_of(flags.way)
    replicas = strategy.num_replicas_in_sync
    random = np.random.RandomState(0)
    x = random.normal(size=[flags.rows, flags.width]).astype(np.float32)
    y = random.normal(size=[flags.rows, 1]).astype(np.float32)
    with strategy.scope():
        hidden = [tf_keras.layers.Dense(flags.width, "relu") for _ in range(4)]
        model = tf_keras.Sequential([tf_keras.layers.Input([flags.width]), *hidden, tf_keras.layers.Dense(1)])
        optimizer = tf_keras.optimizers.legacy.Adam(1e-4)
    batch = flags.rows // (replicas if flags.way == "mirrored" else 1)
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(batch)
    batches = iter(strategy.distribute_datasets_from_function(lambda _: data))

    def step(features, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(features, training=True) - labels)) / replicas
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def many():
        for _ in tf.range(PER_CALL):
            strategy.run(step, args=next(batches))

    many()
    started = time.perf_counter()
    for _ in range(flags.steps // PER_CALL):
        many()
    optimizer.iterations.numpy()
    print("steps per second: %.3f" % (flags.steps // PER_CALL * PER_CALL / (time.perf_counter() - started)), flush=True)


if __name__ == "__main__":
    main()
