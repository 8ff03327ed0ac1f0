"""Head layers against tf.estimator's own heads, and against TensorFlow 1's losses and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge import legacy

legacy.install()

from estimator_bridge.errors import BridgeError, NotSupportedError  # noqa: E402 -- after Keras 2 is settled
from estimator_bridge.modern.canned.heads.base import REDUCTIONS, reduce_losses  # noqa: E402
from estimator_bridge.modern.canned.heads.reading import HEADS, layer  # noqa: E402
from estimator_bridge.modern.canned.heads.single import AccuracyBaseline, TrapezoidalAUC  # noqa: E402

v1 = tf.compat.v1
estimator = tf.estimator
random = np.random.RandomState(3)
ROWS = 12
WEIGHTS = random.uniform(0.0, 2.0, [ROWS, 1]).astype(np.float32)
BITS, IDS = random.randint(0, 2, [ROWS, 1]), random.randint(0, 3, [ROWS, 1])
MANY = random.randint(0, 2, [ROWS, 3])
NUMBERS = random.uniform(0.0, 3.0, [ROWS, 2]).astype(np.float32)
NAMES = ["a", "b", "c"]
MEAN, SUM = tf.losses.Reduction.SUM_OVER_BATCH_SIZE, tf.losses.Reduction.SUM


def pinball(labels: Any, logits: Any, features: Mapping[str, Any]) -> Any:
    return tf.maximum(0.3 * (labels - logits), 0.7 * (logits - labels)) * features["w"]


def tenfold(values: Any) -> Any:
    return values * 10


CASES: dict[str, tuple[Any, Any]] = {  # head, and labels
    "binary": (estimator.BinaryClassHead(), BITS),
    "binary, thresholds": (
        estimator.BinaryClassHead(weight_column="w", thresholds=[0.25, 0.5], loss_reduction=SUM),
        BITS[:, 0],
    ),
    "binary, names": (estimator.BinaryClassHead(label_vocabulary=["n", "y"], name="head"), np.array(["n", "y"])[BITS]),
    "classes": (estimator.MultiClassHead(3, weight_column="w"), IDS),
    "classes, names": (estimator.MultiClassHead(3, label_vocabulary=NAMES, loss_reduction=SUM), np.array(NAMES)[IDS[:, 0]]),
    "labels": (
        estimator.MultiLabelHead(3, weight_column="w", thresholds=[0.5], classes_for_class_based_metrics=[0, 2]),
        MANY,
    ),
    "labels, names": (
        estimator.MultiLabelHead(3, label_vocabulary=NAMES, classes_for_class_based_metrics=["b"]),
        tf.sparse.from_dense(np.where(MANY, np.array(NAMES), "")),
    ),
    "labels, ids": (estimator.MultiLabelHead(3), tf.SparseTensor(np.argwhere(MANY), np.argwhere(MANY)[:, 1], MANY.shape)),
    "numbers": (estimator.RegressionHead(2, weight_column="w"), NUMBERS),
    "numbers, weighted each": (estimator.RegressionHead(2, weight_column="both", loss_reduction=SUM), NUMBERS),
    "numbers, own loss": (estimator.RegressionHead(loss_fn=pinball, inverse_link_fn=tf.nn.softplus), NUMBERS[:, 0]),
    "logistic": (estimator.LogisticRegressionHead(weight_column="w"), BITS),
    "poisson": (
        estimator.PoissonRegressionHead(weight_column=tf.feature_column.numeric_column("w", normalizer_fn=tenfold)),
        NUMBERS[:, :1],
    ),
    "poisson, short": (estimator.PoissonRegressionHead(compute_full_loss=False), NUMBERS[:, :1]),
}
CASES["several"] = (
    estimator.MultiHead(
        [estimator.BinaryClassHead(name="bits"), estimator.RegressionHead(2, weight_column="w", name="numbers")], [1.0, 0.25]
    ),
    {"bits": BITS, "numbers": NUMBERS},
)


@pytest.mark.parametrize("case", CASES)
def test_a_head(case: str) -> None:
    """Compares two batches, so that metrics accumulate."""
    head, labels = CASES[case]
    made = layer(head)
    made.track_measures()
    theirs = head.metrics()
    features = {"w": tf.constant(WEIGHTS), "both": tf.constant(np.hstack([WEIGHTS, WEIGHTS + 1]))}
    for _ in range(2):
        logits = tf.constant(random.normal(size=[ROWS, head.logits_dimension]).astype(np.float32))
        given = tf.nest.map_structure(tf.convert_to_tensor, labels) if not isinstance(labels, tf.SparseTensor) else labels
        expected, actual = head.predictions(logits), made(logits)
        assert {"/".join(key) if isinstance(key, tuple) else key for key in expected} == set(actual)
        for key, value in expected.items():
            mine = actual["/".join(key) if isinstance(key, tuple) else key]
            assert (mine.dtype, mine.shape) == (value.dtype, value.shape)
            np.testing.assert_array_equal(mine, value, err_msg=str(key))
        np.testing.assert_allclose(made.loss(given, actual, features), head.loss(given, logits, features), rtol=1e-6)
        made.observe(given, actual, features, None)
        theirs = head.update_metrics(theirs, features, logits, given)
        if case == "several":
            break  # tf.estimator's head creates new metrics at each update, which accumulate only in a graph
    mine = {metric.name: metric.result().numpy() for metric in made.metrics}
    assert sorted(mine) == sorted(theirs)
    for key, metric in theirs.items():
        np.testing.assert_allclose(mine[key], metric.result(), rtol=1e-6, atol=1e-7, err_msg=key)


def test_labels_out_of_range_are_refused() -> None:
    made = layer(estimator.MultiClassHead(3))
    logits = tf.zeros([1, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Labels must be in"):
        made.loss(tf.constant([[3]]), made(logits), {})


def summed(labels: Any, logits: Any) -> Any:
    return tf.reduce_sum(tf.abs(labels - logits), -1)


MISSHAPEN: dict[str, tuple[Any, Any]] = {  # head, and labels; logits have as many rows, and the weights are ROWS
    "one number of two": (estimator.RegressionHead(2), NUMBERS[:, :1]),
    "one label for all": (estimator.MultiLabelHead(3), MANY[:1]),
    "one class for all": (estimator.MultiClassHead(3), IDS[:1]),
    "a row of bits": (estimator.BinaryClassHead(), BITS.T),
    "a weight for each of one loss": (estimator.MultiLabelHead(3, weight_column="each"), MANY),
    "weights of other rows": (estimator.BinaryClassHead(weight_column="row"), BITS),
    "a loss that is one number for two": (estimator.RegressionHead(2, loss_fn=summed), NUMBERS),
}


@pytest.mark.parametrize("case", MISSHAPEN)
def test_what_would_be_broadcast_is_refused_as_by_the_estimator(case: str) -> None:
    head, labels = MISSHAPEN[case]
    made, given, logits = layer(head), tf.constant(labels), tf.zeros([ROWS, head.logits_dimension])
    features = {"each": tf.ones([ROWS, 3]), "row": tf.ones([1, ROWS])}
    with pytest.raises(ValueError, match=r"shape|dimension"):
        head.loss(given, logits, features)
    with pytest.raises((BridgeError, tf.errors.InvalidArgumentError), match=r"wrong shape|different numbers of examples"):
        made.loss(given, made(logits), features)


def test_labels_with_a_rank_that_only_a_batch_shows() -> None:
    made = layer(estimator.RegressionHead())
    loss = tf.function(lambda labels: made.loss(labels, made(tf.zeros([3, 1])), {}), [tf.TensorSpec(None)])
    assert float(loss(tf.ones([3, 1]))) == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"different numbers of examples|not compatible"):
        loss(tf.ones([3]))


def test_a_head_without_labels_is_named() -> None:
    head, labels = CASES["several"]
    given, logits = {"bits": tf.constant(labels["bits"])}, tf.zeros([ROWS, 3])
    made, features = layer(head), {"w": tf.constant(WEIGHTS)}
    with pytest.raises(ValueError, match="numbers"):
        head.loss(given, logits, features)
    with pytest.raises(BridgeError, match="no label for the head 'numbers'"):
        made.loss(given, made(logits), features)


def test_a_missing_weight_column_is_named() -> None:
    made = layer(estimator.RegressionHead(weight_column="w"))
    with pytest.raises(BridgeError, match="lack 'w'"):
        made.loss(tf.constant([[3.0]]), made(tf.zeros([1, 1])), {"x": tf.zeros([1])})


def test_a_sample_weight_multiplies_the_column() -> None:
    made = layer(estimator.RegressionHead(weight_column="w", loss_reduction=SUM))
    loss = made.loss(
        tf.constant([[1.0], [2.0]]), made(tf.zeros([2, 1])), {"w": tf.constant([2.0, 3.0])}, tf.constant([1.0, 0.5])
    )
    assert float(loss) == 1.0 * 2 + 4.0 * 3 * 0.5


def test_the_table_has_every_head() -> None:
    public = {name for name in dir(estimator) if name.endswith("Head")} - {"Head"}
    assert public <= set(HEADS)


def test_a_custom_head_is_refused() -> None:
    own = type("Own", (estimator.RegressionHead,), {})
    with pytest.raises(NotSupportedError, match="Own"):
        layer(own())


LOSSES = np.array([[1.0, 2.0], [4.0, 8.0], [16.0, 32.0]], np.float32)
ZEROS = np.array([[0.5], [0.0], [3.0]], np.float32)


@pytest.mark.parametrize("reduction", [key for key in v1.losses.Reduction.all() if key != "none"])
def test_reductions_of_tensorflow_1(reduction: str) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        expected = session.run(v1.losses.compute_weighted_loss(LOSSES, ZEROS, reduction=reduction))
    np.testing.assert_allclose(reduce_losses(LOSSES, ZEROS, reduction), expected, rtol=1e-6)


def test_every_reduction_has_a_row() -> None:
    known = {*v1.losses.Reduction.all(), *tf.losses.Reduction.all()} - {"none"}
    assert set(REDUCTIONS) == known


@pytest.mark.parametrize("curve", ["ROC", "PR"])
def test_the_area_under_a_curve_is_tensorflow_1s(curve: str) -> None:
    scores, weights = random.uniform(size=[2, ROWS, 1]).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        value, update = v1.metrics.auc(BITS, scores, weights, curve=curve)
        session.run(v1.local_variables_initializer())
        session.run(update)
        expected = session.run(value)
    metric = TrapezoidalAUC(curve=curve)
    metric.update_state(BITS, scores, sample_weight=weights)
    np.testing.assert_allclose(metric.result(), expected, rtol=1e-6)


def test_the_baseline_of_accuracy_weights_its_labels() -> None:
    metric = AccuracyBaseline()
    metric.update_state([0.0, 1.0, 1.0], sample_weight=[3.0, 0.5, 0.5])
    assert float(metric.result()) == 0.75
