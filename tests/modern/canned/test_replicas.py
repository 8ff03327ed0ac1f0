"""Several replicas that share a batch train and report as one does: they weigh its examples together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(180)


def test_replicas_share_a_batch(run_python: Callable[..., str], tmp_path: Path) -> None:
    """Of 11 examples one replica has 6 and the other 5, with other weights, some of them zero."""
    run_python(
        """
        import sys
        import numpy as np
        import tensorflow as tf

        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
        strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])

        import estimator_bridge.legacy
        estimator_bridge.legacy.install()
        from estimator_bridge import modern
        from estimator_bridge.modern.canned.clustering import KMeansModel
        from estimator_bridge.modern.canned.heads.composed import MultiHead
        from estimator_bridge.modern.canned.heads.regression import RegressionHead
        from estimator_bridge.modern.canned.heads.losses import REDUCTIONS, reduced
        from tensorflow_estimator.python.estimator.head.sequential_head import SequentialHeadWrapper
        from tests.modern.jobs import WORDS, X, Y, engine, v1

        weights = np.linspace(0.0, 3.0, len(X), dtype=np.float32)[:, np.newaxis]
        weights[1::3] = 0.0

        def half():
            return slice(0, 6) if tf.distribute.get_replica_context().replica_id_in_sync_group == 0 else slice(6, 11)

        def share(reduction):
            variable, here = tf.constant(1.5), half()
            with tf.GradientTape() as tape:
                tape.watch(variable)
                loss = reduce_losses(tf.square(variable * Y[here]), weights[here], reduction)
            return loss, tape.gradient(loss, variable)

        for reduction in REDUCTIONS:
            shares = [strategy.experimental_local_results(each) for each in strategy.run(share, [reduction])]
            whole = reduce_losses(tf.square(1.5 * Y[:11]), weights[:11], reduction)
            expected = whole, whole * 2 / 1.5
            np.testing.assert_allclose([sum(each) for each in shares], expected, rtol=1e-6, err_msg=reduction)

        def heads():
            parts = [RegressionHead(1, reduction, title=reduction) for reduction in ("sum", "sum_over_batch_size")]
            head = MultiHead(parts, units=2, reduction="sum")
            head.track_measures()
            return head

        def observe(head, here):
            logits = tf.concat([X[here, :1], X[here, 1:2]], 1)
            head.observe({part.title: tf.constant(Y[here]) for part in head._heads}, head(logits), {}, None)

        with strategy.scope():
            both = heads()
        one = heads()
        observe(one, slice(0, 11))
        strategy.run(lambda: observe(both, half()))
        for wanted, found in zip(one.metrics, both.metrics, strict=True):
            np.testing.assert_allclose(found.result(), wanted.result(), rtol=1e-6, err_msg=wanted.name)

        def same(one, both, data, state):
            wanted, found = (model.fit(data, verbose=0).history for model in (one, both))
            assert found.keys() == wanted.keys()
            for key, value in wanted.items():
                np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=1e-6, err_msg=key)
            for expected, variable in zip(state(one), state(both), strict=True):
                np.testing.assert_allclose(variable, expected, rtol=1e-5, atol=1e-6, err_msg=expected.name)

        def kmeans():
            model = KMeansModel(3, 3, False, True)
            model.centers.assign(X[:3])
            model.compile()
            return model

        with strategy.scope():
            both = kmeans()
        same(kmeans(), both, tf.data.Dataset.from_tensor_slices(X).batch(11), lambda model: [model.centers, model.counts])

        words = tf.feature_column.categorical_column_with_identity("words", 7)
        estimator = v1.estimator.DNNLinearCombinedRegressor(
            sys.argv[1],
            linear_feature_columns=[words],
            dnn_feature_columns=[tf.feature_column.numeric_column("x", (3,))],
            dnn_hidden_units=[4],
            weight_column="weight",
            loss_reduction=v1.losses.Reduction.MEAN,
        )
        data = lambda: tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS, "weight": weights}, Y)).batch(11)
        engine("legacy").train(estimator, data, steps=1)
        one = modern.canned(estimator)
        with strategy.scope():
            both = modern.canned(estimator)
        same(one, both, data(), lambda model: [*model.trainable_variables, *model.optimizer.variables()])

        lengths = np.array([4, 3, 2, 1, 4, 2, 1, 3, 2, 0, 3])[:, np.newaxis]  # the second replica has none of the longest
        steps = tf.feature_column.sequence_categorical_column_with_identity("steps", 7)
        estimator = tf.estimator.experimental.RNNEstimator(
            SequentialHeadWrapper(tf.estimator.BinaryClassHead()),
            [tf.feature_column.embedding_column(steps, 2)],
            units=[3],
            return_sequences=True,
            optimizer="SGD",
            model_dir=sys.argv[2],
        )
        there = np.arange(4) < lengths
        features, labels = {"steps": np.where(there, np.arange(44).reshape(11, 4) % 7, -1)}, np.arange(44).reshape(11, 4) % 2
        data = lambda: tf.data.Dataset.from_tensors((features, labels))
        engine("legacy").train(estimator, data, steps=1)
        one = modern.canned(estimator)
        with strategy.scope():
            both = modern.canned(estimator)
        same(one, both, data(), lambda model: model.trainable_variables)
        """,
        str(tmp_path / "wide and deep"),
        str(tmp_path / "recurrent"),
    )
