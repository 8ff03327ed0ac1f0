"""--jit-compile: results differ only by rounding, the log names the compiled operations, and useless compilation is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.cli.main import main
from estimator_bridge.errors import NotSupportedError
from tests.modern.jobs import WORDS, X, Y, engine, estimator, linear, regression_input, saved, spec, v1


def input_fn() -> tf.data.Dataset:
    features = {"x": X, "word": WORDS[:, 0].astype(str)}
    return tf.data.Dataset.from_tensor_slices((features, Y)).repeat().batch(8, drop_remainder=True)


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    table = v1.get_variable("table", [4, 3], use_resource=True)
    known = tf.lookup.KeyValueTensorInitializer([str(number) for number in range(4)], tf.range(4, dtype=tf.int64))
    ids = tf.lookup.StaticHashTable(known, 0).lookup(features["word"])
    net = tf.concat([features["x"], tf.nn.embedding_lookup(table, ids)], axis=1)
    net = v1.layers.batch_normalization(net, training=True, momentum=0.9)
    for units in (16, 1):
        net = v1.layers.dense(net, units, tf.nn.tanh, kernel_initializer=v1.glorot_uniform_initializer())
    loss = v1.losses.mean_squared_error(labels, net)
    if params["printed"]:
        loss = v1.Print(loss, [loss])
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        train_op = v1.train.MomentumOptimizer(0.01, 0.5).minimize(loss, v1.train.get_global_step())
    return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def train(folder: Path, printed: bool = False, **options: Any) -> dict[str, np.ndarray]:
    made = estimator(model_fn, folder, {"printed": printed})
    engine("modern", **options).train(made, input_fn, steps=20)
    return saved(folder)


def test_twenty_steps_are_equal_but_for_rounding(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plain = train(tmp_path / "plain")
    assert "XLA" not in caplog.text
    compiled = train(tmp_path / "compiled", jit_compile=True)

    assert "it has no kernel for HashTableV2, LookupTableFindV2" in caplog.text
    assert compiled.keys() == plain.keys()
    for name, value in plain.items():
        np.testing.assert_allclose(compiled[name], value, rtol=1e-3, atol=1e-4, err_msg=name)
    assert any((compiled[name] != value).any() for name, value in plain.items()), "XLA's kernels are others"


def test_a_loss_that_xla_cannot_compile_is_refused_by_name_and_line(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match="Print 'Print' waits for") as refusal:
        train(tmp_path, printed=True, jit_compile=True)

    assert f"{__file__}:" in str(refusal.value)
    assert not list(tmp_path.glob("model.ckpt-*"))


def summed(net: Any) -> Any:
    """Sums a tensor whose size XLA does not know before the step runs."""
    return tf.reduce_sum(net) * tf.reduce_sum(tf.range(v1.random_uniform([], 1.0, 5.0)))


def of_random_size(features: Any, labels: Any, mode: str) -> Any:
    return minimizing(summed(linear(features["x"])), mode)


def counting(features: Any, labels: Any, mode: str) -> Any:
    """A step of Python between a variable's change and its use."""
    count = v1.get_variable("grown", initializer=0.0, trainable=False, use_resource=True)
    with tf.control_dependencies([v1.py_func(lambda value: value, [count.assign_add(1.0)], tf.float32)]):
        return minimizing(count.read_value() * tf.reduce_mean(tf.square(linear(features["x"]) - labels)), mode)


def minimizing(loss: Any, mode: str) -> Any:
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_global_step()))


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (of_random_size, r"XLA cannot compile the training step(.|\n)*received: .*must be a compile-time constant"),
        (counting, "'grown' changes before an operation that XLA cannot compile"),
    ],
)
def test_a_step_that_xla_cannot_compile_is_refused(refused: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match=words):
        engine("modern", jit_compile=True).train(estimator(refused, tmp_path), regression_input, steps=2)


def test_what_a_script_has_xla_compile_is_not_put_down_to_the_flag(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        return minimizing(tf.function(summed, jit_compile=True)(linear(features["x"])), mode)

    with pytest.raises(tf.errors.InvalidArgumentError, match="compile-time constant"):
        engine("modern").train(estimator(model_fn, tmp_path), regression_input, steps=2)


def test_several_replicas_are_refused(run_python: Callable[..., str], tmp_path: Path) -> None:
    assert "received: --jit-compile on 2 replicas" in run_python(Path(__file__).with_name("two_compiled_replicas.py"), tmp_path)


def test_it_belongs_to_the_modern_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--jit-compile", __file__]) == 2
    assert "--jit-compile works only on the modern path" in capsys.readouterr().err
