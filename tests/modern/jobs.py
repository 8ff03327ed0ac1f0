"""Small training jobs and the two engines that can execute them: the legacy one is the oracle of these tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge import legacy
from estimator_bridge.legacy.tf1_surface.python_keras import keras_file
from estimator_bridge.legacy.upstream_contrib import packages
from estimator_bridge.runtime.estimator_calls import Engine, EstimatorEngine, methods

legacy.install()

from estimator_bridge.modern.engine import ModernEngine  # noqa: E402 -- needs Keras 2, which install() has settled on
from estimator_bridge.modern.parallel.plans.plan import NOT_PARALLEL, ParallelPlan  # noqa: E402

v1 = tf.compat.v1
PATHS = ("legacy", "modern")
ONE_BY_ONE = v1.ConfigProto(allow_soft_placement=True, inter_op_parallelism_threads=1, use_per_session_threads=True)
"""With several threads, a session sometimes reads a variable after the step that it runs along with has changed it."""
Values = dict[str, np.ndarray]
ModelFn = Callable[..., Any]

ROWS, WIDTH, IDS = 48, 3, 7
_random = np.random.RandomState(0)
X = _random.normal(size=[ROWS, WIDTH]).astype(np.float32)
WEIGHTS = _random.normal(size=[WIDTH, 1]).astype(np.float32)
Y = (X @ WEIGHTS + 0.1 * _random.normal(size=[ROWS, 1])).astype(np.float32)
CLASSES = (Y > 0).astype(np.int64)
WORDS = _random.randint(0, IDS - 1, size=[ROWS, 4]).astype(np.int64)  # with duplicates; the last id never occurs


def contrib_estimator() -> Any:
    """Returns the ``tf.contrib.estimator`` of scripts; most of its heads are in a fetched tf.contrib alone."""
    return packages.contrib(keras_file).estimator


def make_engine(path: str, **options: Any) -> Engine:
    """Returns the engine of one path; ``options`` may hold parts of a plan."""
    return EstimatorEngine() if path == "legacy" else ModernEngine(**with_plan(options))


def with_plan(options: dict[str, Any]) -> dict[str, Any]:
    """Returns options of an engine in which parts of a plan are one plan."""
    parts = {name: value for name, value in options.items() if name in vars(NOT_PARALLEL)}
    return {name: value for name, value in options.items() if name not in parts} | {"plan": ParallelPlan(**parts)}


def engine(path: str, **options: Any) -> Any:
    """Returns Estimator's methods as one path executes them."""
    return SimpleNamespace(**methods(make_engine(path, **options)))


def estimator(model_fn: ModelFn, model_dir: Path, params: Any = None, **config: Any) -> Any:
    """Returns an Estimator with a seed, which writes no events of its own unless ``config`` says so."""
    settings = {"tf_random_seed": 1, "save_summary_steps": None, "log_step_count_steps": None} | config
    warm_start = settings.pop("warm_start_from", None)
    run_config = v1.estimator.RunConfig(model_dir=str(model_dir), **settings)
    return v1.estimator.Estimator(model_fn, config=run_config, params=params, warm_start_from=warm_start)


def regression_input(batch_size: int = 8, epochs: int | None = None) -> tf.data.Dataset:
    """Returns dense features, word ids and a real label, always in the same order."""
    return tf.data.Dataset.from_tensor_slices(({"x": X, "words": WORDS}, Y)).repeat(epochs).batch(batch_size)


def train(
    path: str, model_fn: ModelFn, model_dir: Path, input_fn: Callable[..., Any] = regression_input, **kwargs: Any
) -> Values:
    """Trains a new Estimator on one path and returns the values of its last checkpoint; ``config`` goes to the RunConfig."""
    ordered = {"session_config": ONE_BY_ONE} if path == "legacy" else {}
    made = estimator(model_fn, model_dir, **(ordered | kwargs.pop("config", {})))
    engine(path).train(made, input_fn, **({"steps": 20} | kwargs))
    return saved(model_dir)


def saved(model_dir: Path) -> Values:
    """Returns all values of a folder's latest checkpoint, read by TensorFlow's own reader."""
    latest = tf.train.latest_checkpoint(str(model_dir))
    assert latest, f"no checkpoint in {model_dir}"
    reader = tf.train.load_checkpoint(latest)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def check_same(model_fn: ModelFn, folder: Path, tolerance: float = 1e-5, **kwargs: Any) -> Values:
    """Trains on both paths; the checkpoints must hold the same names, and values within ``tolerance``."""
    results = {path: train(path, model_fn, folder / path, **kwargs) for path in PATHS}
    assert_close(results["modern"], results["legacy"], tolerance)
    return results["modern"]


def assert_close(actual: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float = 1e-5) -> None:
    """Asserts the same names, types and shapes, and numbers within ``tolerance`` (relative above 1)."""
    assert sorted(actual) == sorted(expected)
    for name, value in expected.items():
        assert np.asarray(actual[name]).dtype == np.asarray(value).dtype, name
        np.testing.assert_allclose(actual[name], value, rtol=tolerance, atol=tolerance, err_msg=name)


def linear(features: Any, name: str = "dense") -> Any:
    """A dense layer with values that need no random numbers."""
    kernel = np.linspace(-0.5, 0.5, features.shape[-1]).astype(np.float32).reshape(-1, 1)
    return v1.layers.dense(features, 1, kernel_initializer=v1.constant_initializer(kernel), name=name)


def embedded(words: Any, name: str = "embedding") -> Any:
    """The mean of the words' vectors, which has a sparse gradient with duplicate rows."""
    table = np.linspace(-0.3, 0.3, IDS * 2).astype(np.float32).reshape(IDS, 2)
    variable = v1.get_variable(name, initializer=table)
    return tf.reduce_sum(tf.reduce_mean(tf.nn.embedding_lookup(variable, words), axis=1), axis=1, keepdims=True)


def spec(mode: str, loss: Any, train_op: Any, **kwargs: Any) -> Any:
    """An EstimatorSpec."""
    return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, **kwargs)


def minimizing(make_optimizer: Callable[[], Any]) -> ModelFn:
    """A model_fn with a dense and an embedded part, mean squared error and the given optimizer."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) + embedded(features["words"]) - labels))
        return spec(mode, loss, make_optimizer().minimize(loss, v1.train.get_global_step()))

    return model_fn
