"""Claims about two replicas that share a batch of 11 examples: one replica has 6 of them, the other 5.

``python replicas.py FOLDER`` checks each claim and prints one line of JSON: claim -> traceback, or "" if the claim holds.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_estimator.python.estimator.head.sequential_head import SequentialHeadWrapper

from estimator_bridge import modern
from estimator_bridge.modern.canned.clustering import KMeansModel
from estimator_bridge.modern.canned.heads.base import REDUCTIONS, reduce_losses
from estimator_bridge.modern.canned.heads.composed import MultiHead
from estimator_bridge.modern.canned.heads.single import RegressionHead
from tests.modern.jobs import WORDS, X, Y, engine, v1

BATCH = 11
WEIGHTS = np.linspace(0.0, 3.0, len(X), dtype=np.float32)[:, np.newaxis]
WEIGHTS[1::3] = 0.0

Strategy = Any
Variables = Iterable[Any]


def own_half() -> slice:
    """Returns the rows of this replica."""
    context = tf.distribute.get_replica_context()
    return slice(0, 6) if context.replica_id_in_sync_group == 0 else slice(6, BATCH)


def losses_and_gradients_add_up(strategy: Strategy, folder: Path) -> None:
    """The replicas' losses and gradients sum to those of the whole batch, for each reduction."""

    def share(reduction: str) -> tuple[Any, Any]:
        variable, here = tf.constant(1.5), own_half()
        with tf.GradientTape() as tape:
            tape.watch(variable)
            loss = reduce_losses(tf.square(variable * Y[here]), WEIGHTS[here], reduction)
        return loss, tape.gradient(loss, variable)

    for reduction in REDUCTIONS:
        shares = [strategy.experimental_local_results(each) for each in strategy.run(share, [reduction])]
        whole = reduce_losses(tf.square(1.5 * Y[:BATCH]), WEIGHTS[:BATCH], reduction)
        expected = whole, whole * 2 / 1.5
        np.testing.assert_allclose([sum(each) for each in shares], expected, rtol=1e-6, err_msg=reduction)


def metrics_of_several_heads_are_of_the_whole_batch(strategy: Strategy, folder: Path) -> None:
    """A MultiHead reports the same metrics on two replicas as on one."""

    def make_head() -> MultiHead:
        parts = [RegressionHead(units=1, reduction=reduction, title=reduction) for reduction in ("sum", "sum_over_batch_size")]
        head = MultiHead(parts, units=2, reduction="sum")
        head.track_measures()
        return head

    def observe(head: MultiHead, here: slice) -> None:
        logits = tf.concat([X[here, :1], X[here, 1:2]], 1)
        labels = {title: tf.constant(Y[here]) for title in ("sum", "sum_over_batch_size")}
        head.observe(labels, head(logits), {}, None)

    with strategy.scope():
        both = make_head()
    one = make_head()
    observe(one, slice(0, BATCH))
    strategy.run(lambda: observe(both, own_half()))
    for wanted, found in zip(one.metrics, both.metrics, strict=True):
        np.testing.assert_allclose(found.result(), wanted.result(), rtol=1e-6, err_msg=wanted.name)


def centers_move_as_on_one_replica(strategy: Strategy, folder: Path) -> None:
    """KMeans has the same centers and counts after training on two replicas."""

    def make_model() -> KMeansModel:
        model = KMeansModel(3, 3, False, True)
        model.centers.assign(X[:3])
        model.compile()
        return model

    with strategy.scope():
        both = make_model()
    data = tf.data.Dataset.from_tensor_slices(X).batch(BATCH)
    assert_trains_alike(make_model(), both, data, lambda model: [model.centers, model.counts])


def wide_and_deep_models_train_as_on_one_replica(strategy: Strategy, folder: Path) -> None:
    """A wide and deep model has the same variables and optimizer state; the examples' weights differ, and some are zero."""
    words = tf.feature_column.categorical_column_with_identity("words", 7)
    estimator = v1.estimator.DNNLinearCombinedRegressor(
        str(folder / "wide and deep"),
        linear_feature_columns=[words],
        dnn_feature_columns=[tf.feature_column.numeric_column("x", (3,))],
        dnn_hidden_units=[4],
        weight_column="weight",
        loss_reduction=v1.losses.Reduction.MEAN,
    )

    def input_fn() -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS, "weight": WEIGHTS}, Y)).batch(BATCH)

    def state(model: Any) -> Variables:
        return [*model.trainable_variables, *model.optimizer.variables()]

    assert_converts_alike(estimator, strategy, input_fn, state)


def sequences_train_as_on_one_replica(strategy: Strategy, folder: Path) -> None:
    """A recurrent model has the same variables, although the second replica has none of the longest sequences."""
    lengths = np.array([4, 3, 2, 1, 4, 2, 1, 3, 2, 0, 3])[:, np.newaxis]
    steps = tf.feature_column.sequence_categorical_column_with_identity("steps", 7)
    estimator = tf.estimator.experimental.RNNEstimator(
        SequentialHeadWrapper(tf.estimator.BinaryClassHead()),
        [tf.feature_column.embedding_column(steps, 2)],
        units=[3],
        return_sequences=True,
        optimizer="SGD",
        model_dir=str(folder / "recurrent"),
    )
    numbers = np.arange(44).reshape(BATCH, 4)
    features, labels = {"steps": np.where(np.arange(4) < lengths, numbers % 7, -1)}, numbers % 2

    def input_fn() -> tf.data.Dataset:
        return tf.data.Dataset.from_tensors((features, labels))

    assert_converts_alike(estimator, strategy, input_fn, lambda model: model.trainable_variables)


def assert_converts_alike(
    estimator: Any, strategy: Strategy, input_fn: Callable[[], Any], state: Callable[[Any], Variables]
) -> None:
    """Trains an Estimator for a step, then its Keras models on one replica and on two."""
    engine("legacy").train(estimator, input_fn, steps=1)
    one = modern.canned(estimator)
    with strategy.scope():
        both = modern.canned(estimator)
    assert_trains_alike(one, both, input_fn(), state)


def assert_trains_alike(one: Any, both: Any, data: Any, state: Callable[[Any], Variables]) -> None:
    """Trains two models on the same data; their histories and the variables that ``state`` selects must agree."""
    wanted, found = (model.fit(data, verbose=0).history for model in (one, both))
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=1e-6, err_msg=key)
    for expected, variable in zip(state(one), state(both), strict=True):
        np.testing.assert_allclose(variable, expected, rtol=1e-5, atol=1e-6, err_msg=expected.name)


CLAIMS: tuple[Callable[[Strategy, Path], None], ...] = (
    losses_and_gradients_add_up,
    metrics_of_several_heads_are_of_the_whole_batch,
    centers_move_as_on_one_replica,
    wide_and_deep_models_train_as_on_one_replica,
    sequences_train_as_on_one_replica,
)


def main(folder: Path) -> None:
    """Checks all claims on two logical CPUs."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    failures = {claim.__name__: failure_of(claim, strategy, folder) for claim in CLAIMS}
    sys.stdout.write(f"{json.dumps(failures)}\n")


def failure_of(claim: Callable[[Strategy, Path], None], strategy: Strategy, folder: Path) -> str:
    """Returns the traceback of a claim that fails, or ""."""
    try:
        claim(strategy, folder)
    except Exception:  # noqa: BLE001 -- one claim that fails does not stop the others
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
