"""Each row of the fixers' tables computes what TensorFlow 1 computes, or names the same object."""

from __future__ import annotations

import contextlib
import functools
import importlib
import runpy
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import libcst as cst
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge import legacy
from estimator_bridge.compat.source.fixers.estimators import support
from estimator_bridge.compat.source.fixers.model import metrics
from estimator_bridge.compat.source.fixers.model.layers import LAYERS
from estimator_bridge.compat.source.fixers.model.optimizers import OPTIMIZERS, SCHEDULES, optimizer, schedule
from estimator_bridge.compat.source.fixers.normal.initializers import INITIALIZERS, initializer
from estimator_bridge.compat.source.fixers.same_names import NAMESPACES, public_name
from estimator_bridge.compat.source.fixers.script import Script
from estimator_bridge.compat.source.fixers.surface import kept_names
from tests.running import ROOT

v1 = tf.compat.v1
STEPS = 12
ROWS = np.array([[0, 2], [2, 3], [0, 0]])  # row 1 of the table is never looked up

CALLS = [
    "tf.train.GradientDescentOptimizer(0.3)",
    "tf.train.MomentumOptimizer(0.1, 0.8)",
    "tf.train.MomentumOptimizer(learning_rate=0.1, momentum=0.8, use_nesterov=True)",
    "tf.train.AdamOptimizer()",
    "tf.train.AdamOptimizer(0.01, beta1=0.8, epsilon=1e-3)",
    "tf.train.AdagradOptimizer(0.2, 0.05)",
    "tf.train.FtrlOptimizer(0.2, l1_regularization_strength=0.01, l2_regularization_strength=0.02)",
    "tf.train.FtrlOptimizer(0.2, initial_accumulator_value=0.3)",
    "tf.train.RMSPropOptimizer(0.1)",
    "tf.train.RMSPropOptimizer(0.1, decay=0.8, momentum=0.5, epsilon=1e-3)",
    "tf.train.AdadeltaOptimizer(0.5)",
    "tf.train.ProximalAdagradOptimizer(0.2, l1_regularization_strength=0.01, l2_regularization_strength=0.02)",
]


OVERLOADS = {
    "data.ops.dataset_ops": "Dataset",
    "data.ops.readers": "FixedLengthRecordDataset TFRecordDataset TextLineDataset",
    "training.training": "Checkpoint",
    "framework.constant_op": "constant",
    "framework.ops": "cast colocate_with convert_to_tensor name_scope",
    "ops.array_ops": "constant diag_part ensure_shape reduce_prod tensor_scatter_update",
    "ops.linalg_ops": "einsum",
    "ops.math_ops": "bincount lin_space mod reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum",
    "ops.nn": "avg_pool2d conv3d conv3d_backprop_filter dilation2d max_pool_with_argmax softmax_cross_entropy_with_logits_v2 softplus",
    "ops.nn_impl": "swish",
    "ops.nn_ops": "avg_pool2d conv3d conv3d_backprop_filter dilation2d leaky_relu log_softmax max_pool_with_argmax relu6 softmax_cross_entropy_with_logits_v2 softplus",
    "ops.parsing_ops": "decode_raw serialize_tensor string_to_number",
    "ops.state_ops": "Variable is_variable_initialized",
    "ops.variable_scope": "variable variable_creator_scope",
}
"""Names of a file whose object in the namespace is another: it takes more arguments, warns, or is TensorFlow 2's in the file. TensorFlow 1.15.5
has no more of them."""


def call(text: str) -> tuple[Script, cst.Call]:
    """Returns a script with a call, and the call."""
    script = Script(f"import tensorflow as tf\n{text}\n")
    statement = script.module.body[1]
    assert isinstance(statement, cst.SimpleStatementLine)
    assert isinstance(statement.body[0], cst.Expr)
    assert isinstance(statement.body[0].value, cst.Call)
    return script, statement.body[0].value


def evaluated(text: str) -> Any:
    """Returns the value of an expression in TensorFlow 2."""
    names: dict[str, Any] = {"tf": tf, "tf_keras": tf_keras}
    exec(support()["KernelOptimizer"], names)
    return eval(text, names)


def starts() -> list[Any]:
    """Returns the first values of a matrix and of a table of four rows."""
    random = np.random.RandomState(0)
    return [random.randn(3, 2).astype(np.float32), random.randn(4, 2).astype(np.float32)]


def loss_of(dense: Any, table: Any) -> Any:
    """Returns a loss with a dense and a sparse gradient."""
    return tf.reduce_sum(tf.square(dense - 1.0)) + tf.reduce_sum(tf.square(tf.gather(table, ROWS)))


@functools.cache
def trained_by_tensorflow_1(text: str) -> tuple[Any, ...]:
    """Returns both variables after some steps."""
    with tf.Graph().as_default(), v1.Session() as session:
        variables = [
            v1.get_variable(name, initializer=value, use_resource=True) for name, value in zip("ab", starts(), strict=True)
        ]
        train = eval(text, {"tf": v1}).minimize(loss_of(*variables))
        session.run(v1.global_variables_initializer())
        for _ in range(STEPS):
            session.run(train)
        return tuple(session.run(variables))


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_follows_a_schedule_as_in_tensorflow_1(nesterov: bool) -> None:
    text = f"tf.train.MomentumOptimizer(RATE, 0.8, use_nesterov={nesterov})"
    new = evaluated(
        optimizer(*call(text.replace("RATE", "tf_keras.optimizers.schedules.ExponentialDecay(0.1, 3, 0.5)")), scheduled=True)
    )
    with tf.Graph().as_default(), v1.Session() as session:
        variables = [
            v1.get_variable(name, initializer=value, use_resource=True) for name, value in zip("ab", starts(), strict=True)
        ]
        step = v1.train.create_global_step()
        old = eval(text, {"tf": v1, "RATE": v1.train.exponential_decay(0.1, step, 3, 0.5)})
        train = old.minimize(loss_of(*variables), step)
        session.run(v1.global_variables_initializer())
        for _ in range(STEPS):
            session.run(train)
        expected = session.run(variables)
    check_trains(new, expected)


def check_trains(new: Any, expected: Any) -> None:
    """Asserts that an optimizer leads to the values of both variables."""
    variables = [tf.Variable(value) for value in starts()]
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = loss_of(*variables)
        new.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    for old, variable in zip(expected, variables, strict=True):
        np.testing.assert_allclose(variable.numpy(), old, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("text", CALLS)
def test_an_optimizer_updates_as_in_tensorflow_1(text: str) -> None:
    check_trains(evaluated(optimizer(*call(text))), trained_by_tensorflow_1(text))


def test_every_optimizer_has_a_case() -> None:
    assert {text.removeprefix("tf.train.").partition("(")[0] for text in CALLS} == set(OPTIMIZERS)


@pytest.mark.parametrize("function", sorted(INITIALIZERS))
@pytest.mark.parametrize("given", ["", "uniform=False", "uniform=True", "factor=0.7, mode='FAN_OUT'", "2.0, 'FAN_AVG', False"])
def test_an_initializer_draws_as_in_contrib(function: str, given: str) -> None:
    legacy.install()
    if function != "variance_scaling_initializer" and ("factor" in given or "2.0" in given):
        given = "uniform=True, dtype=tf.float32"
    text = f"tf.contrib.layers.{function}({given}{', ' * bool(given)}seed=3)"
    written = initializer(*call(text))
    assert written is not None
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        contrib = importlib.import_module("estimator_bridge.legacy.contrib.layers")
        old = session.run(eval(text.replace("tf.contrib.layers.", "contrib."), {"tf": tf, "contrib": contrib})([4, 5, 6]))
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        new = session.run(eval(f"tf.{written}", {"tf": v1})([4, 5, 6]))
    np.testing.assert_allclose(new, old, rtol=1e-6)


DECAYS = [
    "tf.train.exponential_decay(0.5, STEP, 3, 0.7, staircase=True)",
    "tf.train.exponential_decay(0.5, STEP, 3, 0.7)",
    "tf.train.polynomial_decay(0.5, STEP, 8, end_learning_rate=0.1, power=2.0)",
    "tf.train.polynomial_decay(0.5, STEP, 4, cycle=True)",
    "tf.train.piecewise_constant(STEP, [2, 5], [0.3, 0.2, 0.1])",
    "tf.train.cosine_decay(0.5, STEP, 8, alpha=0.1)",
]


@pytest.mark.parametrize("text", DECAYS)
def test_a_schedule_decays_as_in_tensorflow_1(text: str) -> None:
    written = schedule(*call(text.replace("STEP", "step")))
    assert written is not None
    new = evaluated(written)
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.placeholder(tf.int64, [])
        old = eval(text.replace("STEP", "step"), {"tf": v1, "step": step})
        rates = [session.run(old, {step: number}) for number in range(12)]
    np.testing.assert_allclose([new(tf.constant(number, tf.int64)).numpy() for number in range(12)], rates, rtol=1e-6)


def test_every_schedule_has_a_case() -> None:
    assert {text.removeprefix("tf.train.").partition("(")[0] for text in DECAYS} == set(SCHEDULES)


@pytest.mark.parametrize("threads", [1, 3])
def test_arrays_are_read_as_often_as_in_tensorflow_1(threads: int) -> None:
    """Each thread of TensorFlow 1 reads all epochs."""
    legacy.install()
    names: dict[str, Any] = {"tf": tf}
    exec(support()["numpy_input_fn"], names)
    given: dict[str, Any] = {"batch_size": 4, "num_epochs": 2, "shuffle": False, "num_threads": threads}
    values = np.arange(5.0)
    with tf.Graph().as_default(), v1.Session() as session:
        batch = v1.estimator.inputs.numpy_input_fn(values, **given)()
        coordinator = v1.train.Coordinator()
        runners = v1.train.start_queue_runners(session, coordinator)
        expected = []
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                expected += session.run(batch).tolist()
        coordinator.request_stop()
        coordinator.join(runners)
    found = [value for rows in names["numpy_input_fn"](values, **given)() for value in rows.numpy().tolist()]
    assert sorted(found) == sorted(expected)


def test_a_table_follows_its_file(tmp_path: Path) -> None:
    """A script may write a vocabulary anew for each training; its name may be a tensor of a dataset's function."""
    names: dict[str, Any] = {"tf": tf}
    for one in ("lookup_table", "lines_of", "numbers_of_words", "numbers_of_lines"):
        exec(support()[one], names)
    file = tmp_path / "words.txt"
    for words in (["a", "b"], ["b", "a"]):
        file.write_text("".join(f"{word}\n" for word in words))
        ids = tf.data.Dataset.from_tensor_slices(words).map(
            lambda one: names["numbers_of_lines"](tf.constant(str(file))).lookup(one)
        )
        assert list(ids.as_numpy_iterator()) == [0, 1]


@pytest.mark.parametrize("name", ["kernel", "bias"])
def test_norms_scale_the_rate_of_momentum(name: str) -> None:
    """Against the formula of LARS in float64; variables of the skip list have plain momentum."""
    names: dict[str, Any] = {"tf": tf}
    exec(support()["MomentumByNorms"], names)
    rate, momentum, decay, eeta, epsilon = 2.0, 0.8, 0.01, 0.1, 1e-3
    value, average = np.array([[0.5, -1.0], [2.0, 0.25]]), np.zeros((2, 2))
    with tf.Graph().as_default(), v1.Session() as session:
        variable = v1.get_variable(name, initializer=value.astype(np.float32), use_resource=True)
        optimizer = names["MomentumByNorms"](rate, momentum, decay, eeta, epsilon, skip_list=["bias"])
        update = optimizer.minimize(tf.reduce_sum(variable**3))
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            gradient, trust = 3 * value**2, 1.0
            if name == "kernel":
                norms = np.linalg.norm(value), np.linalg.norm(gradient)
                trust = eeta * norms[0] / (norms[1] + decay * norms[0] + epsilon)
                gradient = gradient + decay * value
            average = momentum * average + rate * trust * gradient
            value = value - average
            session.run(update)
            np.testing.assert_allclose(session.run(variable), value, rtol=1e-4)


@pytest.mark.parametrize("epochs", [1, None])
def test_the_size_of_endless_batches_is_known_as_in_tensorflow_1(epochs: int | None) -> None:
    legacy.install()
    names: dict[str, Any] = {"tf": tf}
    exec(support()["numpy_input_fn"], names)
    given: dict[str, Any] = {"batch_size": 4, "num_epochs": epochs, "shuffle": False}
    with tf.Graph().as_default():
        expected = v1.estimator.inputs.numpy_input_fn(np.arange(5.0), **given)()
    assert names["numpy_input_fn"](np.arange(5.0), **given)().element_spec.shape.as_list() == expected.shape.as_list()


BATCHES = (7, 7, 3)  # the last one is smaller


def batches(columns: bool) -> list[tuple[Any, Any, Any]]:
    """Returns labels, predictions and weights of each batch, as classes 0 and 1 or as numbers."""
    random = np.random.RandomState(1)
    found = []
    for size in BATCHES:
        labels, weights = random.randint(0, 2, size), random.rand(size).astype(np.float32)
        predictions = random.rand(size, 1) if columns else random.rand(size).round()
        found.append((labels.astype(np.float32), predictions.astype(np.float32), weights))
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", sorted(metrics.ROWS))
def test_a_metric_adds_up_as_in_tensorflow_1(name: str, weighted: bool) -> None:
    """Also where the last batch is smaller, and where labels lack the dimension of size 1 that predictions have."""
    columns = name in ("mean_squared_error", "mean_absolute_error") and not weighted
    arguments = "predictions" if name == "mean" else "labels, predictions" + ", num_classes=2" * (name == "mean_iou")
    text = f"tf.metrics.{name}({arguments}{', weights=weights' * weighted})"
    script, node = call(text)
    row = metrics.metric(script, "it", node)
    new = evaluated(row.made)
    for labels, predictions, weights in batches(columns):
        names: dict[str, Any] = {"labels": tf.constant(labels), "predictions": tf.constant(predictions), "weights": weights}
        eval(f"metric.update_state({row.update})", {"metric": new, "tf": tf, **names})

    with tf.Graph().as_default(), v1.Session() as session:
        shape = [None, 1] if columns else [None]
        fed = [v1.placeholder(tf.float32, [None]), v1.placeholder(tf.float32, shape), v1.placeholder(tf.float32, [None])]
        value, update = eval(text, {"tf": v1, "labels": fed[0], "predictions": fed[1], "weights": fed[2]})
        session.run(v1.local_variables_initializer())
        for batch in batches(columns):
            session.run(update, dict(zip(fed, batch, strict=True)))
        expected = session.run(value)
    assert new.result().numpy() == pytest.approx(expected, rel=1e-6)


SIZES: dict[str, dict[str, Any]] = {
    "Dense": {"units": 3},
    **{f"Conv{rank}D": {"filters": 3, "kernel_size": 2} for rank in (1, 2, 3)},
    **{f"Conv{rank}DTranspose": {"filters": 3, "kernel_size": 2} for rank in (2, 3)},
    **{f"SeparableConv{rank}D": {"filters": 3, "kernel_size": 2} for rank in (1, 2)},
    **{f"{kind}Pooling{rank}D": {"pool_size": 2, "strides": 2} for kind in ("Max", "Average") for rank in (1, 2, 3)},
    "Dropout": {"rate": 0.5},
}


@pytest.mark.parametrize("function", sorted(name for name in LAYERS if name.startswith("layers.")))
def test_a_layer_has_the_defaults_of_tensorflow_1(function: str) -> None:
    """Activation, strides, padding, initial values, momentum, epsilon: all that a layer is made of."""
    keras, parameters = LAYERS[function]
    old_class: Callable[..., Any] = getattr(v1.layers, keras)
    sizes = SIZES.get(keras, {})
    old, new = old_class(**sizes).get_config(), getattr(tf_keras.layers, keras)(**sizes).get_config()
    left = set(parameters) - {"inputs", "training", "name", "reuse", "fused"}
    assert left <= set(new)
    for name in ("kernel_initializer", "depthwise_initializer", "pointwise_initializer"):
        assert new.get(name, {"class_name": "GlorotUniform"})["class_name"] == "GlorotUniform"
        old[name] = old.get(name) or new.get(name)  # None is get_variable's default
    differing = {key for key in left if plain(old.get(key)) != plain(new[key])}
    assert differing == set()


def plain(value: Any) -> Any:
    """Returns a value of a config without the module of a class, and with the default of unset initial values."""
    if isinstance(value, dict):
        return value["class_name"], {key: one for key, one in value["config"].items() if key != "dtype"}
    if isinstance(value, list):
        return tuple(value)
    return value


def test_the_pages_are_written_from_the_tables() -> None:
    generate = runpy.run_path(str(ROOT / "docs" / "reference" / "generate_conversions.py"))
    written = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference" / "conversions").iterdir()}
    assert written == generate["pages"](), "run python docs/reference/generate_conversions.py"


def test_a_kept_name_means_the_same_object_in_both_versions() -> None:
    assert len(kept_names()) > 1000
    wrong = [name for name in kept_names() if not same(attribute(v1, name), attribute(tf, name))]
    assert wrong == []


def test_a_file_of_tensorflow_has_the_functions_of_its_namespace() -> None:
    found = {}
    for file in NAMESPACES:
        with contextlib.suppress(ModuleNotFoundError):  # Estimators' files are gone
            for name, value in vars(importlib.import_module(file)).items():
                if (
                    not name.startswith("_")
                    and public_name(f"{file}.{name}") != f"{file}.{name}"
                    and not isinstance(value, ModuleType)
                ):
                    public = unwrapped(attribute(v1, public_name(f"{file}.{name}").partition(".")[2]))
                    found[f"{file}.{name}".removeprefix("tensorflow.python.")] = same(unwrapped(value), public)
    assert len(found) > 700
    of_keras = ("ops.rnn_cell", "layers.")  # today's TensorFlow takes cells and layers from there
    other = {name for name, is_same in found.items() if not is_same and not name.startswith(of_keras)}
    assert other <= {f"{file}.{name}" for file, names in OVERLOADS.items() for name in names.split()}


def unwrapped(function: Any) -> Any:
    """Returns what a decorator of TensorFlow is around."""
    return getattr(function, "__wrapped__", function)


def attribute(module: Any, dotted: str) -> Any:
    """Returns a name below a module."""
    return functools.reduce(getattr, dotted.split("."), module)


def same(one: Any, other: Any) -> bool:
    """Returns True for the same object, or the same constant."""
    return one is other or (isinstance(one, int | float | str) and one == other)
