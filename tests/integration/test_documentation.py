"""Python blocks of the pages run as they are shown, beside what their pages say that they need."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from estimator_bridge.parity.pytest_plugin import AssertParity
from estimator_bridge.parity.report.summary import render_json
from estimator_bridge.parity.result import ParityResult, Thresholds
from tests.integration import documented_model
from tests.notebooks import notebook
from tests.running import ROOT, estimator_bridge_command

DOCS = ROOT / "docs"
RUN_HERE = {
    "explanation/how-it-works": 1,
    "how-to/canned-estimators": 2,
    "how-to/compare-in-ci": 2,
    "how-to/convert-checkpoints": 1,
    "how-to/finish-by-hand": 7,
    "how-to/keras-models": 2,
    "how-to/notebooks": 1,
    "reference/api": 1,
    "reference/feature-columns": 1,
    "reference/hooks": 1,
    "tutorials/getting-started": 1,
}
"""Number of blocks of each page that a test of this file runs."""
NOT_RUN = {"how-to/notebooks": 1}
"""Blocks with ``...`` in the place of the reader's own code."""


def blocks(page: str) -> list[str]:
    """Returns the Python blocks of a page."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return [textwrap.dedent(one) for one in re.findall(r"^ *```python\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)]


def execute(page: str, *numbers: int, **names: Any) -> dict[str, Any]:
    """Runs blocks of a page, the first one by default.

    Args:
        page: Path below docs, without its suffix.
        numbers: Places of the blocks in the page, from 0.
        names: Names that the page takes for granted.

    Returns:
        All names after the blocks.
    """
    for number in numbers or (0,):
        exec(compile(blocks(page)[number], f"{page}.md", "exec"), names)
    return names


def test_every_python_block_of_the_pages_is_run() -> None:
    pages = [path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")]
    assert Counter({page: len(blocks(page)) for page in pages if blocks(page)}) == Counter(RUN_HERE) + Counter(NOT_RUN)


@pytest.mark.parametrize("page", ["tutorials/getting-started", "reference/api"])
def test_installed(page: str) -> None:
    assert execute(page)["tf"].estimator.RunConfig().save_checkpoints_secs == 600


def test_feature_columns() -> None:
    model = execute("reference/feature-columns")["model"]
    assert model({"colour": np.array([["red"], ["blue"]]), "price": np.array([[1.0], [2.0]])}).shape == (2, 1)


def test_a_hook(capsys: pytest.CaptureFixture[str]) -> None:
    watch = execute("reference/hooks", tf=tf.compat.v1)["Watch"]()
    with tf.Graph().as_default():
        watch.loss, step = tf.constant(0.25), tf.constant(1)
        with tf.compat.v1.train.MonitoredSession(hooks=[watch]) as session:
            session.run(step)
    assert "0.25" in capsys.readouterr().out


def test_the_verdict_of_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = Path("build/parity/report.json")
    report.parent.mkdir(parents=True)
    report.write_text(render_json(ParityResult(("train.py",), "replay", "equal", Thresholds())))
    execute("how-to/compare-in-ci")
    report.write_text(json.dumps({"verdict": "different", "findings": ["loss"]}))
    with pytest.raises(AssertionError, match="loss"):
        execute("how-to/compare-in-ci")


def test_comparisons_as_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called: list[tuple[str, ...]] = []
    monkeypatch.setattr(AssertParity, "__call__", lambda self, *scripts, **options: called.append((*scripts, *options)))
    tests = execute("how-to/compare-in-ci", 1)
    for name in ("test_both_paths_train_alike", "test_the_rewrite_trains_alike"):
        tests[name](AssertParity(tmp_path, {}))
    assert called == [("train.py", "steps", "args"), ("train.py", "keras_train.py", "args", "new_args")]


BY_HAND = "how-to/finish-by-hand"


def test_gradients_that_are_changed() -> None:
    def trained(**methods: Any) -> Any:
        layer = tf_keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model = type("Model", (tf_keras.Sequential,), methods)([layer])
        model.compile(tf_keras.optimizers.SGD(0.1), "mse")
        model.fit(np.ones((4, 1)), np.ones((4, 1)), batch_size=4, verbose=0)
        return layer.kernel.numpy()

    np.testing.assert_allclose(trained(train_step=execute(BY_HAND, tf=tf)["train_step"]), 2.0 * trained())


def test_several_optimizers() -> None:
    variables = [tf.Variable(1.0, name=name) for name in ("wide/w", "deep/w")]
    rates = (0.5, 0.25)
    wide, deep = (tf_keras.optimizers.SGD(rate) for rate in rates)
    with tf.GradientTape() as tape:
        loss = variables[0] + variables[1]
    own = SimpleNamespace(trainable_variables=variables, wide_optimizer=wide, optimizer=deep)
    execute(BY_HAND, 1, self=own, tape=tape, loss=loss)
    assert [float(one) for one in variables] == [0.5, 0.75]


@pytest.mark.parametrize("training", [True, False])
def test_a_statement_that_takes_the_argument_training(training: bool) -> None:
    net = execute(BY_HAND, 2, tf=tf, training=training, net=tf.ones([1000]))["net"]
    assert bool(tf.reduce_any(net == 0.0)) is training


def test_a_model_below_a_strategy() -> None:
    names = execute(BY_HAND, 3, tf=tf, params={}, Model=lambda params: tf_keras.layers.Dense(1))
    assert names["model"].name


def test_what_followed_get_next_moves_into_map() -> None:
    dataset = tf.data.Dataset.from_tensors(([1.0], [2]))
    names: dict[str, Any] = {}
    exec("def input_fn(dataset):\n" + textwrap.indent(blocks(BY_HAND)[4], "    "), names)
    assert names["input_fn"](dataset).element_spec[0].keys() == {"image"}


def test_files_are_read_without_queues(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("1\n2\n")
    rows = execute(BY_HAND, 5, tf=tf, filenames=[str(file)], parse=tf.strings.to_number)["rows"]
    assert next(iter(rows)).shape == (32,)


def test_a_metric_without_a_row() -> None:
    own = SimpleNamespace(eval_metrics={})
    execute(BY_HAND, 6, self=own, tf=tf, tf_keras=tf_keras, labels=[0, 3], logits=tf.constant([[4.0, 3.0, 2.0, 1.0]] * 2))
    assert float(own.eval_metrics["top_3"].result()) == 0.5


def test_a_cell_of_a_notebook(tmp_path: Path) -> None:
    """A kernel runs others in tests/script/test_magics.py."""
    (tmp_path / "old.ipynb").write_bytes(notebook(blocks("how-to/notebooks")[0] + "print(x.shape)"))
    ended = estimator_bridge_command("run", "old.ipynb", cwd=tmp_path)
    assert (ended.code, ended.out) == (0, "(?, 2)\n"), ended.err


def test_estimators_as_keras_models_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = execute("how-to/keras-models", 0, 1)
    assert names["model"].evaluate({"x": names["x"]}, 2 * names["x"], return_dict=True)["loss"] < 0.5
    assert int(names["estimator"].get_variable_value("global_step")) == 300


def test_the_call_that_is_the_whole_description(tmp_path: Path) -> None:
    import estimator_bridge.legacy

    estimator_bridge.legacy.install()
    estimator = tf.compat.v1.estimator.LinearRegressor([tf.feature_column.numeric_column("x")], str(tmp_path))

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensors(({"x": [[1.0]]}, [[2.0]])).repeat()

    execute("explanation/how-it-works", estimator=estimator, input_fn=input_fn)
    assert estimator.get_variable_value("global_step") == 1000


def test_a_canned_estimator_as_a_keras_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    import estimator_bridge.legacy

    estimator_bridge.legacy.install()
    columns = [tf.feature_column.numeric_column("x", (2,))]
    x, y = np.random.RandomState(0).randn(8, 2).astype(np.float32), np.array([[0], [1]] * 4)

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(4)

    tf.estimator.DNNClassifier([64, 32], columns, model_dir="model").train(input_fn)
    names = execute("how-to/canned-estimators", 0, 1, columns=columns, dataset=input_fn())
    assert names["model"].predict({"x": x})["classes"].shape == (8, 1)


def test_checkpoints_are_converted_by_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    values = {"dense/kernel": [[1.0, 2.0]], "dense/bias": [3.0, 4.0], "global_step": 1000}
    write_tensors(Path("model_dir/model.ckpt-1000"), values)
    Path("trainer").mkdir()
    shutil.copy(documented_model.__file__, "trainer/model.py")
    tf.train.Checkpoint(model=documented_model.make()).write("keras/ckpt-1")
    execute("how-to/convert-checkpoints")
    assert "(1, 2)" in capsys.readouterr().out
    np.testing.assert_array_equal(tf_keras.models.load_model("model.keras").layers[0].bias, [3.0, 4.0])
