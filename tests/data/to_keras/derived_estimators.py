"""A class that is derived from Estimator, whose model function calls its methods."""

import numpy as np
import tensorflow as tf


class Ranker(tf.estimator.Estimator):
    """Ranks."""

    def __init__(
        self,
        params,
        model_dir=None,
        optimizer="Adagrad",
        config=None,
        warm_start_from=None,
    ):
        """Makes a ranker."""
        if not optimizer:
            optimizer = "Adagrad"
        self.optimizer = tf.train.AdagradOptimizer(params["rate"])
        self.size = 6  # of the tower

        def _model_fn(features, labels, mode, params):
            # the tower
            net = self.tower(features["x"], mode)
            logits = tf.layers.dense(net, 1)[:, 0]
            if mode == tf.estimator.ModeKeys.PREDICT:
                return tf.estimator.EstimatorSpec(mode, predictions={"score": logits})
            loss = tf.losses.sigmoid_cross_entropy(labels, logits)
            if mode == tf.estimator.ModeKeys.EVAL:
                return tf.estimator.EstimatorSpec(
                    mode, loss=loss, eval_metric_ops={"auc": tf.metrics.auc(labels, tf.sigmoid(logits))}
                )
            train_op = self.optimizer.minimize(loss, global_step=tf.train.get_global_step())
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

        super(Ranker, self).__init__(model_fn=_model_fn, model_dir=model_dir, config=config, params=params)

    def tower(self, x, mode):
        # one layer
        net = tf.layers.dense(x, self.size, tf.nn.relu)
        return self.more(net, self._params["units"])

    def more(self, net, units):
        return tf.layers.dense(net, units, tf.nn.relu)


def input_fn():
    x = np.random.RandomState(0).rand(64, 4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, (x[:, 0] > 0.5).astype(np.float32))).batch(8)


ranker = Ranker({"rate": 0.1, "units": 3})
ranker.train(input_fn)
print("metrics:", sorted(ranker.evaluate(input_fn)))
print("predicted", len(list(ranker.predict(input_fn))))
