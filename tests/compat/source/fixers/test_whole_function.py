"""Model functions that stay whole: what becomes of them, and which ones keep a mark."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.compat.source.fixers import conversion
from estimator_bridge.compat.source.fixers.conversion import convert
from estimator_bridge.compat.source.fixers.marks import Outcome
from tests.running import ROOT

SCRIPTS = ROOT / "tests" / "data" / "to_keras"
SCRIPT = (SCRIPTS / "stays_whole.py").read_text()
pytestmark = pytest.mark.once
REFUSED = {
    "tf.placeholder": ("    add_losses(labels, logits)\n", "    add_losses(labels, tf.placeholder(tf.float32))\n"),
    "tf.contrib.crf.crf_multitag_sequence_score": ("return tf.matmul(", "return tf.contrib.crf.crf_multitag_sequence_score("),
    "tf.keras.metrics.Mean": ("tf.concat([features", "tf.keras.metrics.Mean()([features"),
    "tf.contrib.seq2seq.AttentionWrapper": (
        "    add_losses(labels, logits)\n",
        "    class Wrapper(tf.contrib.seq2seq.AttentionWrapper):\n        pass\n\n    add_losses(labels, logits)\n",
    ),
    "layer.updates": (
        "    add_losses(labels, logits)\n",
        "    layer = tf.keras.layers.BatchNormalization()\n    logits = layer(logits)\n    tf.group(layer.updates)\n    add_losses(labels, logits)\n",
    ),
    "tf.train.batch": ("return tf.matmul(hidden, weights)", "return tf.matmul(tf.train.batch([hidden], 2), weights)"),
    "set_partitioner": ("        weights = ", "        tf.get_variable_scope().set_partitioner(None)\n        weights = "),
    "tf.contrib.layers.optimize_loss(gradient_multipliers=...)": ("clip_gradients=1.0", "gradient_multipliers={}"),
    "spec._replace": (
        "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op",
        "    spec = evaluation(mode, loss, labels, classes)\n    return spec._replace(train_op",
    ),
    "tf.estimator.EstimatorSpec": (
        "def evaluation(mode, loss, labels, classes):",
        "def evaluation(mode, loss, labels, classes, kind=tf.estimator.EstimatorSpec):",
    ),
    "EstimatorSpec(evaluation_hooks=...)": ("[tf.train.LoggingTensorHook(", "[tf.train.StopAtStepHook("),
    "model function": ("def model_fn(", "@tf.contrib.framework.add_arg_scope\ndef model_fn("),
}
"""What the mark names, a text of the script, and what stands in its place."""


def test_only_shim_keeps_it_whole() -> None:
    """The class has the function with today's names, without the hooks; the report says so."""
    assert not convert(SCRIPT).models
    kept = convert(SCRIPT, shim=True)
    assert kept.complete
    assert kept.models == {"model_fn": "Model"}
    assert "class Model(ModelOfGraph):" in kept.text
    assert "return EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)" in kept.text
    assert "tf.estimator" not in kept.text
    assert any("graphs that the function makes" in one.message for one in kept.changes)
    assert any("LoggingTensorHook" in one.name and one.outcome is Outcome.APPROXIMATE for one in kept.changes)
    assert convert(kept.text, shim=True).text == kept.text


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_graph_of_today_has_not_keeps_its_mark(name: str) -> None:
    """A mark says why."""
    old, new = REFUSED[name]
    assert SCRIPT.count(old) == 1
    kept = convert(SCRIPT.replace(old, new), shim=True)
    assert any(name in one.name for one in kept.changes if one.outcome is Outcome.HUMAN)


def test_a_scaffold_for_tpus_is_made_where_there_is_one() -> None:
    old = "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op"
    new = "    scaffold_fn = find_scaffold(params)\n    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, scaffold_fn=scaffold_fn, train_op"
    text = SCRIPT.replace(old, new).replace(
        "def model_fn(", "def find_scaffold(params):\n    return params.get('scaffold')\n\n\ndef model_fn("
    )
    kept = convert(text, shim=True)
    assert kept.complete
    assert "scaffold=scaffold_fn and scaffold_fn()," in kept.text
    assert "class Model(ModelWithSession):" in kept.text


def test_more_arguments_than_an_estimator_gives_are_none() -> None:
    kept = convert(SCRIPT.replace("labels, mode, params):", "labels, mode, params, **more):\n    assert not more"), shim=True)
    assert kept.complete


def test_methods_that_the_function_never_calls_may_hold_what_a_graph_cannot() -> None:
    owner = "class Restores:\n    def restore(self):\n        tf.train.Saver().restore(tf.Session(), '')\n\n    def __call__(self, x):\n        return x\n\n\n"
    text = SCRIPT.replace("def model_fn(", f"{owner}def model_fn(").replace(
        "    logits = network(features, mode", "    found = Restores()\n    logits = network(features, mode"
    )
    assert convert(text, shim=True).models
    assert not convert(text.replace("found = Restores()", "found = Restores()\n    found.restore()"), shim=True).models


def test_an_assignment_waits_for_reads_on_earlier_lines_and_for_those_that_wait_for_nothing() -> None:
    """A learning rate that depends on the step, e.g., which another operation counts."""
    tree = ast.parse((Path(conversion.__file__).parent / "support.py.txt").read_text())
    function = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "keep_order_of_lines")
    names: dict[str, Any] = {"tf": tf}
    exec(ast.unparse(function), names)
    with tf.Graph().as_default() as graph:
        count = tf.compat.v1.get_variable("count", shape=[], use_resource=True)
        early, unneeded = count.read_value(), count.read_value()
        count.assign_add(early * 2.0, read_value=False)
        write = next(op for op in graph.get_operations() if op.type == "AssignAddVariableOp")
        late = count.read_value()
        with tf.control_dependencies([write]):
            after = count.read_value()
        names["keep_order_of_lines"]([[late, after], [write]])

    waits = {
        name
        for name, read in {"early": early, "late": late, "after": after, "unneeded": unneeded}.items()
        if _read(read) in write.control_inputs
    }
    assert waits == {"early", "late"}


def _read(tensor: Any) -> Any:
    """Returns the operation that reads the variable."""
    return tensor.op if tensor.op.type == "ReadVariableOp" else tensor.op.inputs[0].op


def test_annotations_name_no_class_of_estimators() -> None:
    text = SCRIPT.replace(
        "def evaluation(mode, loss, labels, classes):",
        "def evaluation(mode: tf.estimator.ModeKeys, loss: tf.Tensor, labels, classes) -> tf.estimator.EstimatorSpec:",
    )
    kept = convert(text, shim=True)
    assert kept.complete
    assert "def evaluation(mode: str, loss: tf.Tensor, labels, classes):" in kept.text


def test_a_function_that_counts_no_steps_keeps_its_mark() -> None:
    """Checkpoints are known by their steps."""
    begin, end = (
        SCRIPT.index("    step = tf.train.get_or"),
        SCRIPT.index("    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op"),
    )
    text = f"{SCRIPT[:begin]}    train_op = tf.train.AdamOptimizer().minimize(loss)\n{SCRIPT[end:]}"
    assert any("nothing counts the steps" in one.message for one in convert(text, shim=True).changes)


@pytest.mark.parametrize(
    "given",
    [
        "hooks: list = [tf.train.StopAtStepHook(2)]",
        "hooks, number = [tf.train.StopAtStepHook(2)], 1",
        "for hooks in [[tf.train.StopAtStepHook(2)]]:\n        pass",
        "",
    ],
)
def test_hooks_that_are_given_in_any_way_keep_their_mark(given: str) -> None:
    """A list to which a hook that shows values is added may have had others, or be an argument."""
    old = '    hooks = [tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=10)]\n'
    assert SCRIPT.count(old) == 1
    new = f"    {given}\n    hooks.append(tf.train.LoggingTensorHook({{}}, 10))\n"
    text = SCRIPT.replace(old, new)
    if not given:
        text = text.replace("labels, classes):", "labels, classes, hooks):").replace(
            "labels, classes)\n", "labels, classes, [tf.train.StopAtStepHook(2)])\n"
        )
    kept = convert(text, shim=True)
    assert any("evaluation_hooks" in one.name for one in kept.changes if one.outcome is Outcome.HUMAN)


@pytest.mark.parametrize(("hook", "is_left_out"), [("LoggingTensorHook", True), ("StopAtStepHook", False)])
def test_hooks_of_one_mode_are_left_out_if_they_show_values(hook: str, is_left_out: bool) -> None:
    old = '    hooks = [tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=10)]\n'
    text = SCRIPT.replace(old, f"    hooks = [tf.train.{hook}({{}}, 10)] if mode == tf.estimator.ModeKeys.EVAL else None\n")
    assert convert(text, shim=True).complete is is_left_out


def test_each_step_trains_each_variable_once(tmp_path: Path) -> None:
    """Four steps of gradient descent, by hand: nothing else made the variables before, and an average begins with the value of its variable."""
    script = SCRIPTS / "trains_first.py"
    kept = convert(script.read_text(), shim=True)
    assert kept.complete
    for comment in ("# of five numbers", "# of the run"):
        assert kept.text.count(comment) == 1
    (tmp_path / "new.py").write_text(kept.text.replace("print(found)", "print('found:', found)"))
    ended = subprocess.run([sys.executable, "new.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    line = next(one for one in ended.stdout.splitlines() if one.startswith("found: "))
    found = {name: float(value) for name, value in re.findall(r"'(\w+)': (?:np\.\w+\()?([-\d.e]+)", line)}
    draw = np.random.RandomState(1)
    features, labels = draw.rand(64, 5).astype("float32"), draw.rand(64, 1).astype("float32")
    weights = np.ones([5, 1])
    for place in range(0, 64, 16):
        x, y = features[place : place + 16].astype(float), labels[place : place + 16]
        weights -= 0.1 * (2 * x.T @ (x @ weights - y) / 16 + 0.1)
    np.testing.assert_allclose(found["weights"], weights.mean(), rtol=1e-5)
    assert (found["first"], found["average"], found["global_step"]) == (1.0, 2.0, 4.0)


DECODED = {
    "bahdanau": (2.089759, 0.2857143, 2, 2, 1, 2, 3, 3, 2, 2, -0.39649174, -0.5583954, 0.15236393),
    "normalized": (2.089394, 0.2857143, 2, 2, 1, 2, 3, 3, 2, 2, -0.39839908, -0.56296057, 0.15292785),
    "luong": (2.0904171, 0.2857143, 2, 2, 1, 2, 3, 3, 3, 2, -0.3964485, -0.56541276, 0.14974263),
    "beams": (
        2.089759,
        0.2857143,
        43.840004,
        39,
        35.39,
        39,
        34.379997,
        36.47,
        36.47,
        43.840004,
        -2.1389165,
        -2.2528548,
        -2.3232336,
    ),
    "derived": (2.089759, 0.2857143, 6, 6, 6, 6, 6, 6, 6, 6, -0.34889346, -0.6661876, 0.05969447),
    "scheduled": (2.089759, 0.0, 2, 2, 1, 2, 3, 3, 2, 2, -0.39649168, -0.5583968, 0.15236342),
}
"""Kind of attention: loss, accuracy, lengths and first logits that TensorFlow 1.15.5 prints for the script after ten steps."""


@pytest.mark.parametrize("kind", DECODED)
def test_decoders_train_and_predict_as_in_tensorflow_1(kind: str, tmp_path: Path) -> None:
    """With attention, given words or its own, of sequences that end."""
    np.testing.assert_allclose(numbers_found(tmp_path, "translates.py", kind), DECODED[kind], atol=2e-5)


WITH_CELLS = {
    "norm": (4.550471, -0.104478374, -0.06548337, -0.19589365),
    "plain": (4.4251842, -0.050284483, -0.008959563, -0.42282635),
    "lstm": (4.520738, -0.06100621, -0.029067697, -0.19489728),
    "gru": (4.059255, 0.0666099, -0.15695608, -0.5429203),
    "fused": (2.9233665, 0.8369241, -0.5019966, -1.2558237),
    "projected": (3.8975503, 0.11119372, -0.11092478, -0.8079371),
    "own": (3.7470872, 0.262473, -0.2028735, -0.4000852),
}
"""Kind of cell: loss and first predictions that TensorFlow 1.15.5 prints for the script after ten steps."""


@pytest.mark.parametrize("cell", WITH_CELLS)
def test_cells_of_contrib_train_as_in_tensorflow_1(cell: str, tmp_path: Path) -> None:
    """They are made by functions in a value of the module."""
    np.testing.assert_allclose(numbers_found(tmp_path, "cells.py", cell), WITH_CELLS[cell], atol=2e-6)


def numbers_found(folder: Path, script: str, argument: str) -> list[float]:
    """Returns the numbers that a converted script prints behind "found"."""
    kept = convert((SCRIPTS / script).read_text(), shim=True)
    assert kept.complete
    line = next(one for one in printed(folder, kept.text, argument).splitlines() if one.startswith("found "))
    return [float(one) for one in line.split()[1:]]


def printed(folder: Path, text: str, *arguments: str | Path) -> str:
    """Returns what a script prints."""
    (folder / "new.py").write_text(text)
    ended = subprocess.run(
        [sys.executable, "new.py", *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


def write_checkpoint(path: Path) -> None:
    """Writes the checkpoint of TensorFlow 1 from which the script with hooks begins."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, shape in {"body/weights": (4, 4), "logits/kernel": (4, 3), "logits/bias": (3,)}.items():
            values = np.linspace(-1, 1, np.prod(shape), dtype=np.float32).reshape(shape)
            tf.compat.v1.get_variable(name, initializer=values)
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, str(path), write_meta_graph=False)


SEEN = """own: 7.0
begins: 8.5333
step 3: loss 0.9925, before 8.3606
twice: 16.7195
step 6: loss 1.4352, before 8.3550
twice: 16.7068
ends: 8.3542
begins: 8.3542
step 9: loss 1.0829, before 8.3533
twice: 16.7199
ends: 8.3599
begins: 8.3599
step 9: loss 1.2221, before 8.3599
twice: 16.7199
step 9: loss 1.0638, before 8.3599
twice: 16.7199
step 9: loss 0.9591, before 8.3599
twice: 16.7199
ends: 8.3599
loss: 1.0817"""
"""What TensorFlow 1.15.5 prints for the script with hooks."""


def test_hooks_see_what_they_see_in_tensorflow_1(tmp_path: Path) -> None:
    """They read steps and variables, run parts of the graph, feed and stop; variables begin with values of a checkpoint, by two ways."""
    kept = convert((SCRIPTS / "graph_hooks.py").read_text(), shim=True)
    assert kept.complete
    assert "class Model(ModelWithHooks):" in kept.text
    path = tmp_path / "old.ckpt"
    write_checkpoint(path)
    out = re.sub("[\b\r]", "\n", printed(tmp_path, kept.text, path))
    lines = re.findall(r"(?:own|begins|step \d+|twice|ends): [^\n]*?(?=$)|^loss: \d\.\d{4}$", out, re.MULTILINE)
    assert lines == SEEN.splitlines()


RUNS = """16 rows
20 rows
counted 1 at 1, rate 0.2500
counted 2 at 2, rate 0.1667
counted 3 at 3, rate 0.1250
counted 4 at 4, rate 0.1000
counted 5 at 5, rate 0.0833
evaluation begins
evaluation by a spec begins
evaluation by a spec ends after 3
evaluation ends after 3
loss 1.0277 at 5
loss 1.0488
loss 1.0677
open prediction begins
prediction begins
prediction ends after 2
short evaluation begins
short evaluation ends after 2
training begins
training by a spec begins
training by a spec ends after 2
training ends after 3"""
"""What TensorFlow 1.15.5 prints for the script of several runs, sorted: it ends the hooks of a TrainSpec behind the evaluation."""


def test_hooks_of_each_run_begin_and_end_once(tmp_path: Path) -> None:
    """Batches have two sizes; hooks change variables, fetch what a step changes, and end an evaluation and predictions."""
    kept = convert((SCRIPTS / "hooked_runs.py").read_text(), shim=True)
    assert kept.complete
    out = re.sub("[\b\r]", "\n", printed(tmp_path, kept.text))
    found = r" *((?:[a-z ]+ begins|[a-z ]+ ends after \d+|counted \d+ at \d+, rate [\d.]+|loss \d\.\d{4}(?: at \d)?|\d+ rows))$"
    assert sorted(re.findall(found, out, re.MULTILINE)) == RUNS.splitlines()


def test_updates_in_a_block_of_the_network_are_no_part_of_its_call() -> None:
    """They would be made anew in each call, and train nothing; a graph has them where they stand."""
    text = (SCRIPTS / "for_humans.py").read_text()
    begin = text.index("def updates_in_a_block_of_the_network")
    name = "updates_in_a_block_of_the_network"
    function = text[begin : text.index("\n\n\n", begin)]
    kept = convert(f"import tensorflow as tf\n\n\n{function}\n\n\ntf.estimator.Estimator({name})\n", shim=True)
    assert kept.complete
    assert kept.text.count(".minimize(") == 1
    assert "(ModelOfGraph):" in kept.text


def test_hooks_of_a_method_keep_their_mark() -> None:
    """A class of the script makes the spec, with a hook that ends the training."""
    method = SCRIPT[SCRIPT.index("def evaluation(") : SCRIPT.index("def model_fn(")].replace(
        "LoggingTensorHook", "StopAtStepHook"
    )
    body = "\n".join(f"    {line}".rstrip() for line in method.replace("(mode, loss,", "(self, mode, loss,").splitlines())
    text = SCRIPT.replace(method.replace("StopAtStepHook", "LoggingTensorHook"), f"class Specs:\n{body}\n\n")
    text = text.replace("return evaluation(", "return Specs().evaluation(")
    kept = convert(text, shim=True)
    assert any(one.name.startswith("EstimatorSpec(evaluation_hooks") for one in kept.changes if one.outcome is Outcome.HUMAN)


def test_a_helper_of_both_kinds_of_classes_stays() -> None:
    """One model function is taken apart, with the body of the network in its class; the other one calls it."""
    kept = convert((SCRIPTS / "shares_network.py").read_text(), shim=True)
    assert kept.complete
    assert kept.models == {"plain_fn": "PlainModel", "whole_fn": "WholeModel"}
    assert "class PlainModel(tf_keras.Model):" in kept.text
    assert "class WholeModel(ModelOfGraph):" in kept.text
    assert "def network(" in kept.text


def test_a_function_of_the_script_is_not_taken_for_one_of_contrib() -> None:
    """It has the name of one that the new script may define."""
    text = (SCRIPTS / "by_mode.py").read_text() + "\n\ndef tile_batch(t):\n    return t\n\n\nprint(tile_batch(1))\n"
    assert "keras_tile_batch" not in convert(text).text


def test_functions_that_a_kept_network_looks_up_stay() -> None:
    """The network is the function of a name that the script gets; its layers have no marks."""
    text = (SCRIPTS / "shares_network.py").read_text().replace("logits = network(", 'logits = eval("network")(')
    kept = convert(text, shim=True)
    assert kept.complete
    assert "hidden = tf.compat.v1.layers.dense(" in kept.text


def test_arguments_that_only_the_script_knows_are_those_of_the_class() -> None:
    """``functools.partial`` gives them, also before the features."""
    text = SCRIPT.replace("def model_fn(features,", "def model_fn(scale, features,").replace(
        "* tf.reduce_mean(", "* 1.0 * tf.reduce_mean("
    )
    text = text.replace("logits = network(features,", "logits = scale * network(features,")
    text = text.replace("Estimator(model_fn,", "Estimator(functools.partial(model_fn, 2.0),").replace(
        "import numpy", "import functools\n\nimport numpy"
    )
    kept = convert(text, shim=True)
    assert kept.complete
    assert "def __init__(self, scale, params=None, model_dir=None, config=None):" in kept.text
    assert "def model_fn(self, features, labels, mode, params):\n        scale = self.of_script_scale\n" in kept.text


def test_it_evaluates_serves_and_goes_on_as_an_estimator(tmp_path: Path) -> None:
    """Each evaluation counts anew, parameters are copies, what nothing needs is not run, and another model goes on from the checkpoint."""
    text = SCRIPT.replace(
        "    logits = network(features, mode", '    params["rate"] *= 0.5\n    logits = network(features, mode'
    )
    text = text.replace("labels, mode, params):", "labels, mode, params, config):\n    check(config)\n")
    text = text.replace(
        "def model_fn(",
        'def check(config):\n    assert config.model_dir != ""\n    assert (config.save_summary_steps, config.is_chief) == (100, True)\n\n\ndef model_fn(',
    )
    text = text.replace('{"rate": 0.05})', '{"rate": 0.05}, config=tf.estimator.RunConfig(save_summary_steps=7))')
    kept = convert(text, shim=True)
    assert kept.complete
    assert "config=dict(save_summary_steps=7)" in kept.text
    (tmp_path / "new.py").write_text(kept.text)
    program = Path(__file__).with_name("whole.py")
    ended = subprocess.run(
        [sys.executable, str(program), "new.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    first, second = found["evaluations"]
    assert first == second
    assert found["signature"] == {"classes": found["classes"]}
    assert first["updates"] == 210
    assert (found["restored"], found["unused"], found["copies"], found["step"]) == (0.0, 0.0, 0.0, 8)
