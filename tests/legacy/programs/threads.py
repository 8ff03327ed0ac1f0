"""Calls install() and uses aliases in eight threads."""

import sys
import threading

from estimator_bridge import legacy

sys.setswitchinterval(1e-6)
barrier = threading.Barrier(8)
failures: list[str] = []


def use() -> None:
    try:
        barrier.wait()
        legacy.install()
        import tensorflow as tf

        v1 = tf.compat.v1
        found = [
            tf.keras.layers.Dense,
            tf.losses.MeanSquaredError,
            tf.optimizers.SGD,
            tf.metrics.Mean,
            v1.layers.Dense,
            v1.nn.rnn_cell.LSTMCell,
            v1.keras.layers.Dense,
            tf.initializers.Zeros,
            tf.compat.v2.keras.Model,
            tf.estimator.DNNClassifier,
            v1.estimator.DNNClassifier,
        ]
        packages = {thing.__module__.partition(".")[0] for thing in found}
        assert len(packages) == 2 and "tensorflow_estimator" in packages, found
    except BaseException as error:  # noqa: BLE001 -- whatever it is
        failures.append(repr(error))


threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
