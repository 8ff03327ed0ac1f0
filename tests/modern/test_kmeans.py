"""k-means has the same first centers and the same training on both paths, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.modern.jobs import PATHS, X, engine, saved, v1

from estimator_bridge.modern.graph.fragments import upstream  # isort: skip -- jobs has settled on a Keras
from estimator_bridge.parity.recording.ordering import order_assignments  # isort: skip


class Ordered(v1.train.SessionRunHook):
    """Removes the legacy path's race: mini-batch k-means reads the counts of points and adds to them in no fixed order."""

    def begin(self) -> None:
        step = v1.get_default_graph().get_operation_by_name("control_dependency")
        order_assignments(upstream([step]))


def points(batch_size: int, epochs: int | None = None) -> Callable[[], tf.data.Dataset]:
    return lambda: tf.data.Dataset.from_tensor_slices({"x": X}).repeat(epochs).batch(batch_size)


def made(model_dir: Path, **arguments: Any) -> Any:
    config = v1.estimator.RunConfig(str(model_dir), tf_random_seed=7, save_summary_steps=None, log_step_count_steps=None)
    return v1.estimator.experimental.KMeans(4, config=config, **arguments)


def few(inputs: Any, wanted: Any) -> Any:
    """Returns data of which k-means needs two batches."""
    return inputs[0][: tf.minimum(wanted, 3)]


def serving() -> Any:
    x = {"x": v1.placeholder(tf.float32, [None, 3])}
    return v1.estimator.export.ServingInputReceiver(x, x)


@pytest.mark.parametrize(
    ("batch_size", "arguments"),
    [
        (3, {}),  # fewer points than centers, so that the first two batches provide the centers
        (48, {"use_mini_batch": False, "initial_clusters": "kmeans_plus_plus", "distance_metric": "cosine"}),
        (8, {"mini_batch_steps_per_iteration": 3, "initial_clusters": few, "relative_tolerance": 1e-4}),
    ],
    ids=["random", "kmeans++", "a function"],
)
def test_both_paths_are_equal(batch_size: int, arguments: dict[str, Any], tmp_path: Path) -> None:
    outcomes = []
    for path in PATHS:
        executor, estimator = engine(path), made(tmp_path / path, **arguments)
        hooks = [Ordered()] if path == "legacy" else []
        for steps in (7, 4):  # the second run finds its centers in the checkpoint
            executor.train(estimator, points(batch_size), hooks=hooks, steps=steps)
        metrics = executor.evaluate(estimator, points(20, epochs=1))
        predictions = list(executor.predict(estimator, points(20, epochs=1)))
        exported = executor.export_saved_model(estimator, str(tmp_path / path / "export"), serving)
        served = tf.saved_model.load(exported.decode()).signatures["cluster_index"](tf.constant(X))["output"].numpy()
        start = tf.train.load_variable(str(tmp_path / path / "model.ckpt-0"), "clusters")
        outcomes.append((saved(tmp_path / path), metrics, predictions, served, start))
    tf.nest.map_structure(np.testing.assert_array_equal, outcomes[1], outcomes[0])
    final, _, predictions, served, start = outcomes[1]
    assert final["clusters"].shape == (4, 3)
    assert start.shape == (0,), "the hook that saves comes before that which picks centers"
    np.testing.assert_array_equal(served, [one["cluster_index"] for one in predictions])


def test_an_input_that_ends_before_there_are_centers_ends_as_on_the_legacy_path(tmp_path: Path) -> None:
    for path in PATHS:
        with pytest.raises(tf.errors.OutOfRangeError):
            engine(path).train(made(tmp_path / path), lambda: points(3)().take(1), steps=2)
