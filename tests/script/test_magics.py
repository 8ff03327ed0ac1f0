"""Cells of a notebook get TensorFlow 1's names in a real kernel, and %%compare shows its report there."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.script import magics
from tests.running import ROOT

MAKE = """
import tensorflow as tf
%load_ext estimator_bridge
import tensorflow.contrib.layers as layers
x = tf.placeholder(tf.float32, [None, 2])
y = layers.fully_connected(tf.layers.dense(x, 3), 1)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(session.run(y, {x: [[1.0, 2.0]] * 4}).shape, tf.compat.v1 is tf)
"""
TRAIN = """
%%compare --steps 3
import tensorflow as tf
import numpy as np
import own
def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.AdamOptimizer(own.RATE).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
data = np.ones((40, 2), np.float32), np.ones((40, 1), np.float32)
tf.estimator.Estimator(model_fn).train(lambda: tf.data.Dataset.from_tensor_slices(data).batch(4), steps=6)
"""


@pytest.mark.slow
def test_a_kernel_runs_cells_of_tensorflow_1_and_compares_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient, nbformat = (
        pytest.importorskip(name, reason=".ci/full installs Jupyter's kernel, and runs this test")
        for name in ("nbclient", "nbformat")
    )
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{ROOT}")
    (tmp_path / "own.py").write_text("RATE = 0.1\n")
    executed = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source.strip()) for source in (MAKE, TRAIN)])
    nbclient.NotebookClient(
        executed, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()

    made, compared = ("".join(one.get("text", "") for one in cell.outputs) for cell in executed.cells)
    assert made == "(4, 1) True\n"
    assert any(line.startswith("EQUAL.") for line in compared.splitlines())  # below its progress, on a slow machine
    assert "Loss: 3 of 3 steps" in compared
    shown = [one.data["text/html"] for one in executed.cells[1].outputs if one.output_type == "display_data"]
    assert len(shown) == 1
    assert "&lt;title&gt;Equal" in shown[0]


def test_quotes_that_do_not_match_are_said() -> None:
    with pytest.raises(BridgeError, match="The options of %compare cannot be read") as caught:
        magics.compare("--out 'a train.py")
    assert "No closing quotation" in str(caught.value)


def test_names_that_mean_tensorflow_get_tensorflow_1(monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    from estimator_bridge import legacy
    from estimator_bridge.legacy import installation, interactive

    tf1, magic = object(), []
    monkeypatch.setattr(interactive, "show_tf1", lambda: tf1)
    monkeypatch.setattr(installation, "install", lambda **options: None)
    names: dict[str, Any] = {"tf": tf, "v1": tf.compat.v1, "other": legacy, "number": 1}
    magics.register(SimpleNamespace(user_ns=names, register_magic_function=lambda *one: magic.append(one)))

    assert names == {"tf": tf1, "v1": tf1, "other": legacy, "number": 1}
    assert magic == [(magics.compare, "line_cell", "compare")]
