"""Scripts become Keras, nothing is lost on the way, and what no fixer knows is marked."""

from __future__ import annotations

import ast
import functools
import io
import itertools
import json
import os
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path
from types import FunctionType
from typing import Any

import libcst
import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.compat.source.fixers.conversion import Conversion, convert
from estimator_bridge.compat.source.fixers.estimators import needed_functions, support
from estimator_bridge.compat.source.fixers.marks import PREFIX, Outcome
from estimator_bridge.compat.source.fixers.normal.normal_form import in_normal_form
from estimator_bridge.compat.source.fixers.normal.tpu import without_tpu
from estimator_bridge.compat.source.fixers.script import Script
from tests.running import ROOT

HOST_CALL = """import tensorflow as tf


def model_fn(features, labels, mode):
    step = tf.train.get_global_step()

    def host_call_fn(step):
        \"\"\"Writes summaries.\"\"\"
        with tf.contrib.summary.create_file_writer("folder").as_default():
            # of the step
            return tf.contrib.summary.all_summary_ops()

    host_call = (host_call_fn, [tf.reshape(step, [1])])
    spec = tf.contrib.tpu.TPUEstimatorSpec(mode, predictions=features, host_call=host_call)
    return spec
"""
converted_once = functools.cache(convert)
SCRIPTS = ROOT / "tests" / "data" / "to_keras"
WHOLE = (
    "adversarial",
    "arg_scopes",
    "asks_labels",
    "asked_updates",
    "bound_arguments",
    "branches",
    "builders",
    "by_branch",
    "by_functions",
    "by_mode",
    "by_test",
    "chains",
    "chosen",
    "chosen_models",
    "chosen_values",
    "canned",
    "canned_numbers",
    "clipped",
    "columns",
    "contrib_blocks",
    "contrib_in_network",
    "contrib_layers",
    "contrib_names",
    "contrib_optimizers",
    "convolutions",
    "counted_names",
    "depends_on_step",
    "derived_estimators",
    "exports",
    "float64",
    "from_keras",
    "frozen_norms",
    "given_optimizer",
    "hooks",
    "in_classes",
    "in_loops",
    "iterated",
    "keras_in_graph",
    "keras_layers",
    "kept_by_methods",
    "linear",
    "made_in_calls",
    "metrics_of_graph",
    "named_classes",
    "normalizers",
    "objects",
    "of_helpers",
    "on_devices",
    "one_feature",
    "own_updates",
    "own_variables",
    "predicts_otherwise",
    "rates_by_functions",
    "recurrent",
    "recurrent_dropout",
    "returns_by_mode",
    "shared_and_named",
    "slim_scopes",
    "specs_by_mode",
    "stacked_cells",
    "spectral",
    "stays_whole",
    "tables",
    "teacher_forcing",
    "tpu",
    "training_features",
    "trains_first",
    "two_calls",
    "without_effect",
)
SHIMMED = (
    "contrib_in_network",
    "frozen_norms",
    "in_classes",
    "in_loops",
    "keras_in_graph",
    "made_in_calls",
    "predicts_otherwise",
    "returns_by_mode",
    "slim_scopes",
    "spectral",
    "stays_whole",
    "teacher_forcing",
    "trains_first",
)
"""Those whose network ``--body shim`` keeps."""
FOR_HUMANS = SCRIPTS / "for_humans.py"
EVERY = sorted(path for folder in ("tests/data", "examples") for path in (ROOT / folder).rglob("*.py"))


def converted(name: str) -> Conversion:
    """Returns the conversion of one of the scripts."""
    text = (SCRIPTS / f"{name}.py").read_text()
    return converted_once(text, shim=True) if name in SHIMMED else converted_once(text)


def comments(text: str) -> Counter[str]:
    """Returns the comments of a source text, without those that mark lines."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(one.string for one in tokens if one.type == tokenize.COMMENT and not one.string.startswith(PREFIX))


QUICK = ("by_mode", "canned", "exports", "recurrent", "tpu")  # of the scripts that are run alone; one takes five seconds


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_script_needs_no_estimators(name: str) -> None:
    conversion = converted(name)
    assert conversion.complete
    names = {code.id for code in ast.walk(ast.parse(conversion.text)) if isinstance(code, ast.Name)}
    attributes = {code.attr for code in ast.walk(ast.parse(conversion.text)) if isinstance(code, ast.Attribute)}
    assert "estimator_bridge" not in names
    assert not {"estimator", "contrib"} & attributes


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in WHOLE])
def test_it_runs_where_neither_package_is_installed(name: str, tmp_path: Path) -> None:
    script = tmp_path / "new.py"
    script.write_text(converted(name).text)
    command = [sys.executable, str(Path(__file__).with_name("alone.py")), str(script)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    expected = {
        "adversarial": "step: 10",
        "depends_on_step": "weight: 1.0000 of 120 predictions",
        "stacked_cells": "loss below 1: True",
        "kept_by_methods": "loss below 1.2: True",
        "branches": "60 predictions",
        "builders": "80 predictions",
        "by_branch": "step 5",
        "by_functions": "60 predictions",
        "by_mode": "step 10",
        "by_test": "metrics: ['error', 'global_step', 'loss', 'mean']",
        "canned": "accuracy above 0: True",
        "canned_numbers": "step 15",
        "chosen": "144 predictions",
        "chosen_values": "loss below 2: True",
        "clipped": "step 6",
        "counted_names": "loss below 2: True True",
        "columns": "error below 1: True",
        "contrib_blocks": "['global_step', 'loss']",
        "contrib_in_network": "32 predictions",
        "contrib_layers": "step 5",
        "chains": "step 5",
        "specs_by_mode": "['accuracy', 'global_step', 'loss'] 40",
        "spectral": "['global_step', 'loss']",
        "tables": "['lines', 'names']",
        "contrib_names": "step 5",
        "exports": "exported",
        "from_keras": "(3,)",
        "given_optimizer": "step 5",
        "hooks": "7 True",
        "in_classes": "16 rows",
        "iterated": "40 predictions",
        "in_loops": "48 ['probability']",
        "keras_in_graph": "metrics: ['accuracy', 'global_step', 'loss', 'rows'] 16.0",
        "keras_layers": "step 5",
        "objects": "step 5",
        "normalizers": "predicted 128",
        "of_helpers": "256 predictions",
        "on_devices": "predicted 60",
        "own_updates": "step 24 f1 above 0: True",
        "rates_by_functions": "['global_step', 'loss']",
        "recurrent": "3 predictions",
        "returns_by_mode": "256 predictions",
        "shared_and_named": "step 5",
        "tpu": "step 15",
        "training_features": "predicted 80",
        "two_calls": "accuracy above 0: True",
        "arg_scopes": "loss below 1: True",
        "asks_labels": "40 predictions (12, 5)",
        "asked_updates": "loss below 1: True",
        "contrib_optimizers": "loss below 1: True",
        "made_in_calls": "predicted 16",
        "one_feature": "predicted 80",
        "derived_estimators": "predicted 64",
        "without_effect": "shape (1,)",
        "own_variables": "loss below 1: True",
        "predicts_otherwise": "predicted 8",
        "recurrent_dropout": "loss below 1: True",
        "teacher_forcing": "predicted [(3,), (3,), (3,), (3,), (3,), (3,), (3,), (3,)]",
        "convolutions": "40 predictions",
        "float64": "float64",
        "linear": "error below 20: True",
        "named_classes": "metrics: ['kept', 'low']",
        "slim_scopes": "metrics: ['global_step', 'loss', 'mean', 'pearson']",
        "trains_first": "metrics: ['average', 'first', 'global_step', 'loss', 'weights']",
        "stays_whole": "exported: True",
        "frozen_norms": "metrics: ['accuracy', 'global_step', 'loss']",
        "bound_arguments": "metrics: ['accuracy', 'global_step', 'loss']",
        "chosen_models": "metrics: ['accuracy', 'global_step', 'loss']",
        "metrics_of_graph": "metrics: ['again', 'binary', 'f1', 'global_step', 'loss', 'per_class', 'recall_0', 'recall_1', 'recall_2', 'right']",
    }
    assert ended.stdout.splitlines()[-1] == expected[name]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["own", "parts"])
def test_updates_that_stay_go_on_where_they_were(way: str, tmp_path: Path) -> None:
    """Twice ten steps are twenty, to the last bit, what the script's optimizers keep included."""
    text = converted("own_updates").text.replace("steps=24", "steps=int(sys.argv[2])")
    (tmp_path / "new.py").write_text(text.replace("import tf_keras\n", "import tf_keras\ntf_keras.utils.set_random_seed(1)\n"))
    found = []
    for name, trainings in {"once": [20], "twice": [10, 10]}.items():
        (tmp_path / name).mkdir()
        for steps in trainings:
            command = [sys.executable, "../new.py", way, str(steps)]
            subprocess.run(command, cwd=tmp_path / name, capture_output=True, timeout=300, check=True)
        reader = tf.train.load_checkpoint(str(tmp_path / name / "model" / "keras"))
        names = [key for key in reader.get_variable_to_shape_map() if key.startswith("model/") and "metric" not in key]
        found.append({key: reader.get_tensor(key) for key in names if key.endswith("VARIABLE_VALUE")})
    assert sum("/made/" in key for key in found[0]) == {"own": 4, "parts": 8}[way]
    for key, value in found[0].items():
        if "mean_loss" not in key:
            np.testing.assert_array_equal(found[1][key], value, err_msg=key)


def test_an_exported_model_answers_as_its_variables_say(tmp_path: Path) -> None:
    """Signatures, their inputs and outputs are those of the old script; an image is doubled before the network, an example is not."""
    script = tmp_path / "new.py"
    script.write_text(converted("exports").text)
    subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, timeout=300, check=True)
    folders = ("exported", "trained/export/latest", "trained/export/best_exporter")
    (image,), (latest,), (best,) = ([tf.saved_model.load(str(path)) for path in (tmp_path / one).glob("*")] for one in folders)
    variables = {variable.name: variable.numpy().astype(np.float64) for variable in image.model.trainable_variables}
    kernel, bias = (next(value for name, value in variables.items() if name.endswith(end)) for end in ("kernel:0", "bias:0"))
    logits = np.array([1.0, 2.0, 3.0]) * 2.0 @ kernel + bias
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend([2.0, 4.0, 6.0])
    examples = {"examples": tf.constant([example.SerializeToString()])}
    for served, inputs in ((image, {"image": tf.constant([[1.0, 2.0, 3.0]])}), (latest, examples), (best, examples)):
        assert set(served.signatures) == {"classify", "serving_default"}
        for signature in served.signatures.values():
            outputs = signature(**inputs)
            assert outputs.get("classes", outputs.get("output")).numpy() == [logits.argmax()]
        probabilities = served.signatures["serving_default"](**inputs)["probabilities"]
        np.testing.assert_allclose(probabilities[0], np.exp(logits) / np.exp(logits).sum(), rtol=1e-5)


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in EVERY])
def test_no_comment_is_lost_and_a_second_conversion_changes_nothing(path: Path) -> None:
    text = path.read_text()
    try:
        conversion = converted_once(text)
    except libcst.ParserSyntaxError:
        with pytest.raises(SyntaxError):
            ast.parse(text)
        return
    ast.parse(conversion.text)
    assert not comments(text) - comments(conversion.text)
    assert convert(conversion.text).text == conversion.text


def test_what_no_fixer_knows_is_marked_with_its_name() -> None:
    text = FOR_HUMANS.read_text()
    expected = [line.removeprefix("# mark: ") for line in text.splitlines() if line.startswith("# mark: ")]
    human = [change for change in converted_once(text).changes if change.outcome is Outcome.HUMAN]
    assert [change.name for change in human if change.name != "tf.estimator.Estimator"] == expected


def test_a_size_or_a_name_that_is_not_sure_is_marked() -> None:
    """Each of these model functions was converted once, to something else, and nothing said so."""
    conversion = converted_once((SCRIPTS / "unsure.py").read_text())
    said = {change.message.partition(";")[0] for change in conversion.changes if change.outcome is Outcome.HUMAN}
    assert not conversion.models
    assert said >= {
        'something else may have the default name "block", too',
        "something else is called dense, so TensorFlow 1 gives it another number",
        "it depends on n, a value of the network",
        "it depends on width, a value of the network",
        "two loops around it give one name a value",
        "it also changes sizes, which is the same list",
        "layers of Keras take nothing from scopes",
        "it asks for what all layers made, which only the model knows",
        "there is no graph that has them",
        "it may be a variable of a layer, which Keras makes",
        "it makes layers",  # Net
        "it depends on config, a value of the network",
        "what computes the loss makes it, too, and each step would make it anew",
        "it is not written as one dict",
        "what it calls is only known when the script runs, and may make layers",  # network.layer
    }
    assert "    # estimator-bridge: scope.set_initializer stays" in conversion.text, "above the block"


@pytest.mark.parametrize("shim", [False, True])
def test_a_variable_in_a_scope_that_is_entered_again_is_marked(shim: bool) -> None:
    """TensorFlow 1 gives each its own name, and here they would be one variable; a graph of TensorFlow 1 gives them those names."""
    text = (SCRIPTS / "own_variables.py").read_text()
    looped = text.replace('    with tf.variable_scope("part")', '    for _ in range(2):\n     with tf.variable_scope("part")')
    assert converted_once(text, shim=shim).complete
    found = converted_once(looped, shim=shim)
    human = [change.name for change in found.changes if change.outcome is Outcome.HUMAN]
    assert "class Model(ModelOfGraph):" in found.text if shim else "tf.Variable" in human


def test_what_only_reports_and_values_that_are_no_shapes_stay() -> None:
    """A function that shows all variables is left out; quotients of an initial value stay quotients."""
    text = (SCRIPTS / "chosen_values.py").read_text()
    shown = "def show():\n    print(len(tf.trainable_variables()))\n\n\ndef model_fn("
    text = text.replace("def model_fn(", shown).replace("    loss = tf.losses", "    show()\n    loss = tf.losses")
    assert converted_once(text).complete
    made = converted_once("import tensorflow as tf\ntf.get_variable('w', [6 / 2], tf.float32, [1 / 3, 1.0, 1.0])\n").text
    assert "[int(6 / 2)], tf.float32, [1 / 3, 1.0, 1.0]" in made


def test_a_loss_that_nothing_computes_is_marked() -> None:
    text = (SCRIPTS / "chosen_values.py").read_text().replace("loss = tf.losses", "other = tf.losses")
    said = [change.name for change in converted_once(text).changes if "its loss reads nothing" in change.message]
    assert said == ["EstimatorSpec"]


def test_methods_that_nothing_calls_are_left_out_with_their_object_and_said() -> None:
    conversion = converted("of_helpers")
    left_out = [change.name for change in conversion.changes if "nothing calls this method" in change.message]
    assert left_out == ["Encoder.get_sequence"]
    assert "class Encoder" not in conversion.text


def test_each_mark_stands_above_its_line() -> None:
    conversion = converted_once(FOR_HUMANS.read_text())
    lines = conversion.text.splitlines()
    marked = {lines[place - 1].strip(): lines[place].strip() for place in range(1, len(lines)) if PREFIX in lines[place - 1]}
    unread = next(mark for mark in marked if "nothing reads this layer" in mark)
    assert marked[unread].startswith("unread = tf.compat.v1.layers.dense(")
    assert len([change for change in conversion.changes if change.name == "tf.estimator.Estimator"]) == expected_estimators()


def expected_estimators() -> int:
    """Returns the number of Estimators whose model functions stay."""
    return FOR_HUMANS.read_text().count("tf.estimator.Estimator(")


def test_every_line_that_is_left_out_is_reported() -> None:
    reported = {change.name for change in converted("convolutions").changes if change.outcome is Outcome.APPROXIMATE}
    assert reported == {
        'tf.summary.scalar("the_loss", loss)',
        'export_outputs["class"]',
        'logging_hook = tf.train.LoggingTensorHook({"rate": rate}, every_n_iter=10)',
        "logging_hook = tf.train.LoggingTensorHook(tensors={}, every_n_iter=50)",
        "tf.estimator.RunConfig(save_summary_steps=...)",
    }


@pytest.mark.parametrize(("training", "reported"), [("training", 0), ("True", 1)])
def test_batch_norm_that_trains_in_evaluations_is_reported(training: str, reported: int) -> None:
    """Keras changes its averages there, as one evaluation between two trainings shows; TensorFlow 1 runs no UPDATE_OPS."""
    text = (
        (SCRIPTS / "convolutions.py")
        .read_text()
        .replace("momentum=0.9, training=training", f"momentum=0.9, training={training}")
    )
    assert sum("in all modes" in change.message for change in convert(text).changes) == reported


def test_penalties_of_a_scope_are_not_those_of_all() -> None:
    """What a call asks for below a scope is a part of what the model has."""
    text = (SCRIPTS / "in_classes.py").read_text().replace('Encoder(x, params["units"]).output', "x")
    asked = "    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)\n"
    assert text.count(asked) == 1
    some = asked + '    loss += tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables("hidden")])\n'
    assert (
        'for v in [one for one in self.trainable_variables if one.name.startswith("hidden")]'
        in convert(text.replace(asked, some)).text
    )
    pattern = some.replace('"hidden"', '"hid.*"')  # TensorFlow 1 takes a scope for a regular expression
    assert "what a scope has is not known" in convert(text.replace(asked, pattern)).text
    penalties = asked + '    loss += tf.losses.get_regularization_loss("hidden")\n'
    assert "what a scope has is not known" in convert(text.replace(asked, penalties)).text


@pytest.mark.parametrize("minimize", ["optimizer.minimize(loss, step)", "tf.group(optimizer.minimize(loss, step), loss)"])
def test_a_loss_that_gets_another_value_behind_its_updates_is_marked(minimize: str) -> None:
    """All of the loss is computed before the updates, which would minimize what it becomes."""
    text = f"""
import tensorflow as tf
def model_fn(features, labels, mode):
    logits = tf.layers.dense(features, 2, name="logits")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer, step = tf.train.GradientDescentOptimizer(0.1), tf.train.get_global_step()
    train_op = {minimize}
    loss = loss + 1.0
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
tf.estimator.Estimator(model_fn)
"""
    assert "another value behind them" in convert(text).text
    assert convert(text.replace("    loss = loss + 1.0\n", "")).complete


def test_initial_values_are_those_of_evaluations_and_predictions_too() -> None:
    text = "".join(needed_functions(["init_from_checkpoint", "train", "evaluate", "predict"]))
    assert text.count("set_initial_values(model, data)\n") == 3
    assert "set_initial_values" not in "".join(needed_functions(["train", "evaluate", "predict"]))


def test_an_evaluation_takes_the_number_of_batches_that_it_took() -> None:
    """EvalSpec takes 100 where nothing is given, and all where None is."""
    text = converted("columns").text
    assert "eval_spec = dict(input_fn=make_input_fn(2, 1))" in text
    assert "again = dict(input_fn=make_input_fn(3, None), steps=100)" in text


def test_a_task_of_a_cluster_does_not_train_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would write its model over those of the others."""
    scope: dict[str, Any] = {"os": os}
    exec(support()["check_alone"], scope)
    scope["check_alone"]()
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]}}))
    with pytest.raises(ValueError, match="TF_CONFIG names 3 tasks, but this script trains in one"):
        scope["check_alone"]()
    assert "check_alone()" in support()["train"]


def test_a_choice_that_decides_nothing_leaves_the_rest_as_it_was() -> None:
    text = (SCRIPTS.parent / "choices_for_tpu.py").read_text()
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    changed = without_tpu(Script(text))
    exec(text, before)
    exec(changed, after)

    functions = [name for name, value in before.items() if isinstance(value, FunctionType) and name != "for_tpu"]
    for name, *given in itertools.product(functions, (False, True), (False, True)):
        assert after[name](*given) == before[name](*given), name
    assert changed.count("if first") == text.count("if first") - 2
    assert "# kept comment" in changed


@pytest.mark.parametrize("is_called", [False, True])
def test_a_function_that_only_the_host_of_a_tpu_calls_does_nothing(is_called: bool) -> None:
    text = HOST_CALL.replace("return spec", "return spec, host_call_fn(step)") if is_called else HOST_CALL
    changed = without_tpu(Script(text))

    assert len(changed.splitlines()) == len(text.splitlines())
    assert ("create_file_writer" in changed) is is_called
    assert "# of the step" in changed
    assert '"""Writes summaries."""' in changed
    assert any("host of a TPU" in change.message for change in convert(text).changes) is not is_called


def test_a_branch_for_tpus_that_goes_is_reported() -> None:
    left_out = [change.line for change in converted("builders").changes if "the branch for TPUs" in change.message]
    lines = (SCRIPTS / "builders.py").read_text().splitlines()
    assert [lines[number - 1].strip() for number in left_out] == ['if params["use_tpu"]:'] * 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tf.distribute.MirroredStrategy(devices=devices)", "tf.distribute.experimental.ParameterServerStrategy()"),
        ("tf.losses.sparse_softmax_cross_entropy(labels, logits)", "tf.losses.softmax_cross_entropy(labels, logits, reduction=tf.losses.Reduction.SUM)"),
        (
            "optimizer.minimize(loss, ",
            "optimizer.apply_gradients([(tf.clip_by_norm(g, 1.0), v) for g, v in optimizer.compute_gradients(loss)], ",
        ),
        ("tf.losses.sparse_softmax_cross_entropy(labels, logits)", "tf.losses.softmax_cross_entropy(labels, logits, reduction='weighted_sum')"),
        ("tf.losses.sparse_softmax_cross_entropy(labels, logits)", "tf.keras.losses.MeanSquaredError('sum')(labels, logits)"),
        ("estimator.train(input_fn, steps=12)", "tf.estimator.LinearClassifier([], config=config)"),
    ],
    ids=["servers", "sum", "clipped", "sum by its value", "sum of Keras", "canned"],
)  # fmt: skip
def test_a_strategy_that_would_train_otherwise_is_marked(old: str, new: str) -> None:
    """A sum of losses is not divided by the devices; Estimators clip the gradients of each device, and have canned losses that are sums."""
    text = (SCRIPTS / "on_devices.py").read_text()
    assert "with_strategy(Model, " in converted_once(text).text
    found = converted_once(text.replace(old, new))
    assert any(
        change.name == "tf.estimator.RunConfig(train_distribute=...)"
        for change in found.changes
        if change.outcome is Outcome.HUMAN
    )
    assert "with_strategy" not in found.text


def test_towers_of_contrib_become_one_device() -> None:
    """The report says so; a strategy would spread the model again."""
    text = (
        (SCRIPTS / "own_updates.py")
        .read_text()
        .replace("MomentumByHand(rate).apply", "tf.contrib.estimator.TowerOptimizer(MomentumByHand(rate)).apply")
    )
    conversion = convert(text.replace("Estimator(model_fn,", "Estimator(tf.contrib.estimator.replicate_model_fn(model_fn),"))
    assert conversion.text == converted("own_updates").text
    left = [change.name for change in conversion.changes if "on one device" in change.message]
    assert left == ["tf.contrib.estimator.TowerOptimizer", "tf.contrib.estimator.replicate_model_fn"]


def test_a_function_may_return_what_it_got() -> None:
    """Then nothing is left for the branch that returns it."""
    network = converted("returned_input").text.partition("def call(")[2].partition("def compute_loss")[0]
    assert "if wanted:\n            net = self.dense(net)\n" in network
    assert "else" not in network


def test_functions_of_one_name_have_classes_of_their_own() -> None:
    """One is at the top, the other inside of a function."""
    conversion = converted("of_one_name")
    assert conversion.complete
    outer, inner = (text.partition("compute_metrics")[0] for text in conversion.text.split("class Model(")[1:])
    assert ("units=1" in outer, "Adam" in outer, "mean_squared_error" in outer) == (True, True, True)
    assert ("units=7" in inner, "SGD" in inner, "absolute_difference" in inner) == (True, True, True)
    assert "make()()" in conversion.text


ONE_MODEL = (SCRIPTS / "looked_up.py").read_text()
NET = "logits = net("


def test_a_class_has_a_name_of_its_own() -> None:
    """The script's class of that name is made by the new class, or by others."""
    conversion = convert(ONE_MODEL.replace('NETS = {"net": net}\n', ""))
    assert conversion.complete
    assert "class Model(object):" in conversion.text
    assert 'estimator = KerasModel(params={"units": Model.units})' in conversion.text
    imported = ONE_MODEL.replace(
        "class Model(object):\n    units = 2", "from tensorflow.keras import Model as KerasModel, Model"
    )
    assert "class KerasKerasModel(" in convert(imported).text


BUILDER = """
import tensorflow as tf

def make(network, loss_fn):
    def model_fn(features, labels, mode):
        logits = network(features["x"])
        loss = loss_fn(labels, logits)
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    return model_fn
"""


def test_a_network_that_the_function_around_gets_is_kept_or_marked() -> None:
    """A loss that it gets makes no layers."""
    marks = [change.name for change in convert(BUILDER).changes if "may make layers" in change.message]
    assert marks == ["network"]
    kept = convert(BUILDER, shim=True)
    assert kept.complete
    assert "track_tf1_style_variables\n        def call(" in kept.text


@pytest.mark.parametrize("network", ['NETS["net"]', 'params["net"]', "params.net", "held", "chosen"])
def test_a_network_that_is_looked_up_is_kept_or_marked(network: str) -> None:
    """It may make layers, which Keras would not find."""
    text = ONE_MODEL.replace(NET, f"logits = {network}(").replace("import tens", "import nets\nimport tens", 1)
    first = {"chosen": "chosen = nets.named('net')", "held": "held = params['net']"}
    text = text.replace("    logits = ", f"    {first[network]}\n    logits = ") if network in first else text
    assert "may make layers" in convert(text).text
    kept = convert(text, shim=True)
    assert kept.models
    before = kept.text.partition("    def call(")[0].splitlines()
    assert before[-1].strip() == "@tf.compat.v1.keras.utils.track_tf1_style_variables"
    assert any("only known when the script runs" in change.message for change in kept.changes)


def test_a_call_of_what_is_a_class_now_is_marked() -> None:
    text = ONE_MODEL + "spec = model_fn({}, None, 'train', {})\n"
    assert "model_fn stays: it is the class KerasModel now" in convert(text).text


def test_a_model_function_behind_a_star_is_found() -> None:
    imports = "import tensorflow as tf\nfrom nets.small import *\n"
    text = imports + "estimator = tf.estimator.Estimator(model_fn, 'model')\n"
    assert "estimator = SmallModel(model_dir='model')" in convert(text, {"nets.small.model_fn": "SmallModel"}).text
    own = text.replace("import *", "import *\nmodel_fn = other")
    assert "its model function is not converted" in convert(own, {"nets.small.model_fn": "SmallModel"}).text


def test_one_model_function_may_not_freeze_the_averages_of_another() -> None:
    """They share the function of the network; where they stay whole, each has a graph of its own."""
    text = (SCRIPTS / "shared_norms.py").read_text()
    assert convert(text, shim=True).complete
    text = text.replace("tf.train.get_global_step()", "None")  # nothing counts the steps then, so they do not stay whole
    assert "another one does not" in "".join(change.message for change in convert(text, shim=True).changes)
    alone = convert(
        text.replace(", tf.estimator.Estimator(without)", "").replace("def without(features,", "def without(x,"), shim=True
    )
    assert alone.models.keys() == {"updating"}
    assert "momentum=1.0" not in alone.text


def test_a_mode_by_default_is_the_value_of_the_mode() -> None:
    """No module of the new script has ModeKeys."""
    text = ONE_MODEL.replace("def net(x)", "def net(x, mode=tf.estimator.ModeKeys.TRAIN)")
    text = text.replace("return tf.layers.dense(x", "return tf.layers.dense(x if mode == tf.estimator.ModeKeys.TRAIN else -x")
    model = convert(text.replace('NETS = {"net": net}\n', "")).text.partition("class KerasModel")[2]
    assert 'net_mode = "train"' in model
    assert "ModeKeys" not in model


def test_a_path_that_is_searched_later_is_reported() -> None:
    """Modules that Python finds by it are not read."""
    text = ONE_MODEL.replace("import tensorflow", "import sys\nimport tensorflow") + 'sys.path.append("..")\n'
    (change,) = [one for one in convert(text).changes if one.name == 'sys.path.append("..")']
    assert change.outcome is Outcome.APPROXIMATE


def test_names_of_version_1_that_tensorflow_2_keeps_are_imported_as_before() -> None:
    lines = "from tensorflow.compat.v1 import variable_scope", "import tensorflow_estimator as es"
    found = converted_once("\n".join([*lines, "print(variable_scope, es.estimator.Head)", ""]))
    assert lines[0] in found.text
    assert [change.name for change in found.changes] == ["tf.estimator.Head"]


def test_an_estimator_by_the_name_of_its_file_is_one() -> None:
    """Without a fixer for its name, it would stay, and nothing would say so."""
    lines = "from tensorflow.python.tpu import tpu_estimator", "tpu_estimator.TPUEstimator(model_fn, None, train_batch_size=8)"
    found = converted_once("\n".join([*lines, ""]))
    assert [change.name for change in found.changes if change.outcome is Outcome.HUMAN] == ["tf.estimator.Estimator"]


def test_an_import_that_nothing_reads_goes_where_nothing_else_of_tensorflow_is() -> None:
    """Its function is in another module now; TensorFlow 2 has no such module."""
    imports = "import tensorflow as tf\nfrom tensorflow.contrib import tpu as contrib_tpu\n"
    assert "contrib" not in convert(imports + "rate = 3\n").text


def test_layers_of_keras_keep_the_defaults_of_tensorflow_1() -> None:
    text = ONE_MODEL.replace("import tensorflow as tf", "import tensorflow as tf\nfrom tensorflow.keras.layers import *")
    layers = "[LSTM(3), LSTM(3, 'tanh', 'sigmoid'), GRUCell(3), Embedding(5, 2), Dense(1)]"
    names = text.replace("import *", "import LSTM, GRUCell, Embedding, Dense").replace("[tf", layers)
    new = convert(f"{names}\nlayers = {layers}\n").text
    assert "LSTM(3, recurrent_activation=\"hard_sigmoid\"), LSTM(3, 'tanh', 'sigmoid')" in new
    assert (
        'GRUCell(3, recurrent_activation="hard_sigmoid", reset_after=False), Embedding(5, 2, dtype="float32"), Dense(1)]' in new
    )


@pytest.mark.parametrize(
    ("predictions", "cast"),
    [("tf.argmax(logits, 1)", ""), ("tf.sigmoid(logits)", "tf.cast(tf.sigmoid(logits), labels.dtype)")],
)
def test_predictions_of_an_accuracy_have_the_type_of_the_labels(predictions: str, cast: str) -> None:
    """TensorFlow 1 makes whole numbers of probabilities; Keras compares them as they are."""
    metrics = f"eval_metric_ops={{'right': tf.metrics.accuracy(labels, {predictions})}}"
    text = ONE_MODEL.replace("train_op=train_op)", f"train_op=train_op, {metrics})")
    assert f".update_state(labels, {cast or predictions})" in convert(text).text


def test_a_model_function_that_is_passed_on_is_the_class() -> None:
    text = ONE_MODEL.replace("import tensorflow", "import nets\nimport tensorflow") + "run(3, nets.model_fn)\n"
    assert "run(3, nets.Model)" in convert(text, {"nets.model_fn": "Model"}).text


def test_models_of_other_modules_may_keep_updates_and_load_values() -> None:
    """The module that trains does not see that of the model: BERT's values were not loaded, and a step too many was counted."""
    text = (
        ONE_MODEL.replace("import tensorflow", "import nets\nimport tensorflow")
        + "tf.estimator.Estimator(nets.model_fn).train(f)\n"
    )
    new = convert(text, {"nets.model_fn": "Model"}).text
    assert "    set_initial_values(model, data)\n" in new
    assert "data.filter(lambda *batch: True)" in new
    alone = convert(ONE_MODEL + "estimator.train(f)\n").text
    assert "def train(" in alone
    assert "set_initial_values" not in alone
    assert "data.filter" not in alone


@pytest.mark.parametrize("name", ["y", "training", "config", "sample_weight"])
def test_a_bound_argument_that_the_class_has_too_is_marked(name: str) -> None:
    text = ONE_MODEL.replace("def model_fn(features", f"def model_fn({name}, features")
    assert f"{name} stays: it is a name of the script and an argument of the class" in convert(text).text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BatchNormalization(-1, 0.9)", "BatchNormalization(-1, 1.0)"),
        ("BatchNormalization(epsilon=0.1)", "BatchNormalization(epsilon=0.1, momentum=1.0)"),
    ],
)
def test_batch_norm_inside_of_a_network_of_keras_keeps_its_averages(old: str, new: str) -> None:
    """One that is not told to train has the values of evaluations in TensorFlow 1, where Keras would train it with the network around it."""
    layers = f"tf.keras.layers.Dense(2), tf.keras.layers.{old}"
    text = ONE_MODEL.replace(
        NET, f"logits = tf.keras.Sequential([{layers}])(training=mode == tf.estimator.ModeKeys.TRAIN, inputs="
    )
    assert new in convert(text).text
    untold = convert(ONE_MODEL.replace(NET, f"logits = tf.keras.Sequential([{layers}])(")).text
    assert old in untold
    assert "training=False)" in untold


@pytest.mark.parametrize(
    ("loss", "depends"),
    [
        ("loss * 2.0 if mode == tf.estimator.ModeKeys.TRAIN else loss", True),
        ("loss * 2.0 if params['training'] else loss", False),
    ],
)
def test_a_loss_that_depends_on_the_mode_has_two_forms(loss: str, depends: bool) -> None:
    text = ONE_MODEL.replace("    train_op =", f"    loss = {loss}\n    train_op =")
    new = convert(text).text
    assert ("def evaluation_loss(" in new) is depends
    assert ("        loss = loss * 2.0\n" in new) is depends


def test_a_statement_of_training_alone_is_not_done_in_evaluations() -> None:
    """Each branch returns a spec, so nothing tells the class that one network has a factor."""
    spec = "return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)"
    training = f"if mode == tf.estimator.ModeKeys.TRAIN:\n        logits = logits * 2.0\n        {NET_LOSS}\n        STEP\n        {spec}\n"
    step = "train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())"
    text = ONE_MODEL.replace(
        f"    {NET_LOSS}\n    {step}\n    {spec}",
        "    " + training.replace("STEP", step) + f"    {NET_LOSS}\n    return tf.estimator.EstimatorSpec(mode, loss=loss)",
    )
    assert "different statements" in convert(text).text


NET_LOSS = "loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)"


def test_a_variable_with_the_name_of_a_model_function_stays() -> None:
    """A builder's inner function is called so, too, as in BERT's scripts."""
    inner = ONE_MODEL.replace("def model_fn", "def build():\n  def model_fn").partition("estimator =")[0]
    head, _, body = inner.partition("  def model_fn")
    nested = head + "  def model_fn" + body.rstrip().replace("\n    ", "\n      ") + "\n  return model_fn\n"
    text = nested + "def main():\n  model_fn = build()\n  return tf.estimator.Estimator(model_fn=model_fn)\n"
    assert "return model_fn()" in convert(text).text


@pytest.mark.parametrize("prediction", ["return None", "raise ValueError(mode)", "pass\n        return spec"])
def test_a_mode_may_have_no_estimator_spec(prediction: str) -> None:
    """The script then predicts nothing that a class could miss."""
    text = (SCRIPTS / "by_test.py").read_text()
    old = 'return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})'
    assert old in text
    text = text.replace(old, prediction).replace('task = params["task"]', 'task = params["task"]\n    spec = None')
    found = convert(text)
    assert found.models == {"model_fn": "Model"}
    assert not [change for change in found.changes if change.outcome is Outcome.HUMAN]


SPECS = (SCRIPTS / "specs_by_mode.py").read_text()


def changed(text: str, *pairs: str) -> str:
    """Returns a text with parts of it replaced; each of them has to be there."""
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("block", ["with tf.name_scope('answer'):", "if params['rate']:"])
def test_a_spec_that_a_block_makes_is_not_lost(block: str) -> None:
    """The name is None before; each mode that has a spec keeps it, or the model function stays."""
    returned = "        return spec_of_predictions(logits)\n"
    spec = "tf.estimator.EstimatorSpec(mode, predictions={'p': logits})"
    text = changed(SPECS, returned, f"        spec = None\n        {block}\n            spec = {spec}\n        return spec\n")
    found = convert(text)
    assert not found.models or "return {'p': logits}" in found.text


@pytest.mark.parametrize("name", ["rate", "params", "mode"])
def test_a_name_of_the_script_that_a_put_in_function_reads_stays_what_it_is(name: str) -> None:
    text = changed(
        SPECS,
        *("def spec_of_training(rate, loss):", "def spec_of_training(loss):", '(params["rate"], loss)', "(loss)"),
        *("AdamOptimizer(rate)", f"AdamOptimizer({name})", "def model_fn(", f"{name} = 0.5\n\n\ndef model_fn("),
        *("    net = ", "    rate = params['rate']\n    net = "),
    )
    assert not convert(text).models


def test_one_line_branches_keep_their_statements() -> None:
    text = changed(
        SPECS, "PREDICT:\n        return spec_of_predictions(logits)\n", "PREDICT: return spec_of_predictions(logits)\n"
    )
    assert "spec_of_predictions(logits)" in convert(text).text


TABLES = (SCRIPTS / "tables.py").read_text()


@pytest.mark.parametrize("more", ["default_value=0", "hasher_spec=None"])
def test_a_table_with_what_the_new_one_has_not_is_marked(more: str) -> None:
    """TensorFlow 1 takes a default that is a number of a word for no number where there are buckets."""
    text = changed(TABLES, "num_oov_buckets=2", f"num_oov_buckets=2, {more}")
    assert not convert(text).models


def test_a_table_may_have_the_name_of_a_printed_function() -> None:
    assert (
        "vars(keras_lookup_table)" in convert(changed(TABLES, "    words = lookup", "    lookup_table = words = lookup")).text
    )


IN_LOOPS = """import tensorflow as tf
turn, sizes = 3, [4, 5]


def conv(x, size, name=None):
    return tf.layers.conv1d(x, size, 1, name=name)


def model_fn(features, labels, mode):
    net = features["x"]
    pairs = zip(sizes, sizes)
    with tf.variable_scope("a"):
LINES
    out = tf.layers.dense(tf.layers.flatten(net), turn, name="out")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, out)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, out)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, out, loss, train_op)
"""
LOOP = """        for size in sizes:
            net = conv(net, size)
"""


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (LOOP, ['str(turn_2) if turn_2 else ""']),
        (LOOP + "            net = conv(net, turn)\n", ['str(2 * turn_2) if 2 * turn_2 else ""', "str(2 * turn_2 + 1)"]),
        (
            LOOP + "        net = conv(net, 2)\n        for size in sizes:\n            net = conv(net, size)\n",
            ["str(len(sizes) + turn_2 + 1)"],
        ),
        (LOOP.replace("sizes:", "pairs:").replace("size in", "size, more in"), "its name is the same in each turn"),
        (
            "        net = conv(net, 4)\n    with tf.variable_scope('a', reuse=tf.AUTO_REUSE):\n" + LOOP,
            "its scope is entered again",
        ),
    ],
    ids=["helper", "two a turn", "two loops", "iterator", "entered again"],
)
def test_layers_without_names_in_loops(lines: str, found: list[str] | str) -> None:
    """Those of a helper that may be given a name, too; the variable that counts turns is none of the script's."""
    conversion = convert(IN_LOOPS.replace("LINES", lines.rstrip()))
    if isinstance(found, str):
        assert any(found in change.message for change in conversion.changes)
    else:
        assert conversion.complete
        assert all(f'"a/conv1d" + ("_" + {number})' in conversion.text for number in found)


@pytest.mark.parametrize("shim", [False, True], ids=["layers", "shim"])
@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("tf.assign(kept, kept + 1.0)", True),
        ("kept.assign_add(tf.ones([4]))", True),
        ("unread = tf.assign_sub(kept, kept)", True),
        ("hidden = tf.assign(kept, kept + 1.0) + hidden", False),
    ],
)
def test_an_assignment_that_nothing_needs_is_marked(line: str, stays: bool, shim: bool) -> None:
    """TensorFlow 1 does not run it, and a step of Keras would; a graph of TensorFlow 1 in the step does not."""
    network = """    with tf.variable_scope("net"):
        kept = tf.get_variable("kept", [4], trainable=False)
        hidden = tf.layers.dense(features["x"], 4) + kept
        LINE
    out = tf.layers.dense(hidden, 2)
"""
    before = (SCRIPTS / "depends_on_step.py").read_text()
    begin, end = before.index("    hidden = tf.layers"), before.index("    if mode ==")
    text = before[:begin] + network.replace("LINE", line) + before[end:]
    found = convert(text, shim=shim)
    marked = [change for change in found.changes if "only if something else needs it" in change.message]
    assert len(marked) == (stays and not shim)
    assert ("(ModelOfGraph):" in found.text) is (stays and shim)


def test_what_a_block_around_the_updates_shows_is_said_to_be_left_out() -> None:
    text = changed(
        ONE_MODEL, "    train_op = ", "    with tf.control_dependencies([]):\n        print(loss)\n        train_op = "
    )
    left_out = [change for change in convert(text).changes if change.outcome is Outcome.APPROXIMATE]
    assert [change.message for change in left_out if change.name == "print(loss)"] == [
        "left out: no loss, metric or prediction needs it"
    ]


def test_a_step_that_nothing_counts_is_marked() -> None:
    """TensorFlow 1's stays 0 then, and Keras counts."""
    counted = (SCRIPTS / "depends_on_step.py").read_text()
    assert convert(counted).complete
    for argument in ("", ", global_step=None"):
        conversion = convert(counted.replace(", global_step=step", argument))
        assert any("which nothing here counts" in change.message for change in conversion.changes)


def test_a_variable_behind_the_labels_is_marked() -> None:
    text = changed(ONE_MODEL, "    train_op = ", '    loss += tf.get_variable("more", [])\n    train_op = ')
    assert "tf.get_variable stays: it is made behind the labels" in convert(text).text


def test_comments_between_the_arguments_of_a_likelihood_stay() -> None:
    text = changed((SCRIPTS / "chains.py").read_text(), "inputs=logits, ", "inputs=logits,  # a comment\n                ")
    assert "# a comment" in convert(text).text


def test_an_import_whose_name_is_another_variable_goes() -> None:
    text = changed(
        ONE_MODEL, "import tensorflow as tf\n", "import tensorflow as tf\nfrom tensorflow.contrib import estimator\n"
    )
    text = text.replace("estimator = tf.", "def main():\n    estimator = tf.")
    assert "import estimator" not in convert(text).text


def test_a_default_of_an_inner_function_is_renamed_and_its_parameter_is_not() -> None:
    text = "def f(x):\n    net = x\n    def g(v, net=net): return v, net\n    return g(net, net=net)\n"
    script = Script(text)
    new = script.renamed(script.module.body[0], {"net": "other"})
    inner = "def g(v, net=other): return v, net"
    assert script.module.code_for_node(new) == f"def f(x):\n    other = x\n    {inner}\n    return g(other, net=other)\n"


def test_a_spec_that_a_block_changes_is_not_taken_as_it_was() -> None:
    text = changed(
        SPECS,
        "        return spec_of_predictions(logits)\n",
        "        spec = spec_of_predictions(logits)\n        return spec\n",
    )
    text = changed(
        text,
        "        return spec\n",
        "        with tf.name_scope('a'):\n            spec = spec._replace(loss=1)\n        return spec\n",
    )
    assert not convert(text).models


def test_names_that_are_spelled_anew_need_no_import() -> None:
    found = convert("from tensorflow import flags, logging\nlogging.info(flags.FLAGS)\n")
    assert "from tensorflow" not in found.text
    assert not found.changes


def test_what_the_standard_library_returns_makes_no_layers() -> None:
    text = changed(
        ONE_MODEL,
        *("import tensorflow as tf\n", "import collections\nimport tensorflow as tf\n"),
        *("NETS = {", "Pair = collections.namedtuple('Pair', 'a')\nNETS = {"),
        *(NET, "logits = Pair(net(features)).a; same = ("),
    )
    assert convert(text).models


def test_a_helper_for_the_last_modes_may_fall_off_its_end() -> None:
    text = changed(
        SPECS,
        *("def spec_of_evaluation(logits, labels, loss):", "def spec_of_evaluation(logits, labels, loss, mode):"),
        *("spec_of_evaluation(logits, labels, loss)\n", "spec_of_evaluation(logits, labels, loss, mode)\n"),
        *(
            "    return tf.estimator.EstimatorSpec(mode=tf.estimator.ModeKeys.EVAL",
            "    if mode == tf.estimator.ModeKeys.EVAL:\n        return tf.estimator.EstimatorSpec(mode=tf.estimator.ModeKeys.EVAL",
        ),
    )
    assert convert(text).models


def test_imports_below_the_files_of_tensorflow_are_those_of_tensorflow() -> None:
    """TensorFlow 1.15 has them in the package tensorflow_core, and editors write that."""
    text = (SCRIPTS / "contrib_names.py").read_text()
    assert convert(text.replace("from tensorflow.", "from tensorflow_core.")).text == convert(text).text


def test_a_field_of_another_object_is_not_one_of_the_session() -> None:
    """A function's own argument has the name of the session's settings, as BERT's config has in public scripts."""
    settings = "config = tf.ConfigProto()\nrun = tf.estimator.RunConfig(session_config=config)\n"
    text = f"import tensorflow as tf\n{settings}def change(config):\n    config.rate = 0.0\n"
    assert convert(text).complete
    assert not convert(text.replace("def change(config):\n    ", "")).complete


def test_the_config_that_a_function_gives_an_estimator_is_a_dict() -> None:
    """Its callers are in other files, where the RunConfig becomes one."""
    more = "def build(given):\n    return tf.estimator.Estimator(model_fn, given.model_dir, config=given)\n"
    assert 'Model(model_dir=given.get("model_dir"), config=given)' in convert(f"{ONE_MODEL}\n\n{more}").text


def test_the_initial_values_of_a_scope_around_the_whole_function_stay() -> None:
    """A comparison replaces initial values, so it does not show that."""
    text = converted("teacher_forcing").text
    assert 'with tf.compat.v1.variable_scope("model", initializer=tf.compat.v1.random_uniform_initializer(-0.5, 0.5)):' in text


@pytest.mark.parametrize(
    ("change", "is_complete"),
    [
        ("hooks.append(tf.train.LoggingTensorHook([], 9))", True),
        ("hooks.append(Own())", False),
        ("hooks += [Own()]", False),
        ("hooks.extend([Own()])", False),
        ("hooks = hooks", False),
    ],
)
def test_hooks_that_a_block_gives_go_if_they_only_show_values(change: str, is_complete: bool) -> None:
    given = f"hooks = None\n    if params:\n        hooks = []\n        {change}\n    "
    text = changed(
        ONE_MODEL,
        "return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op",
        f"{given}return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=hooks",
    )
    assert ("EstimatorSpec(training_hooks=...) stays" not in convert(text).text) is is_complete


def test_the_mark_of_a_class_says_what_keeps_its_methods_out_of_the_model_function() -> None:
    text = (SCRIPTS / "in_classes.py").read_text()
    named = text.replace(
        'net = Encoder(x, params["units"]).output', 'encoder = Encoder(x, params["units"])\n    net = encoder.output'
    )
    conversion = converted_once(named)
    (mark,) = [one for one in conversion.changes if one.name == "Encoder"]
    assert "with its methods as functions, what stops the model function is" in mark.message
    assert mark.comment in conversion.text


_SECOND = "other = dataset\n    dataset = dataset.make_one_shot_iterator()\n    dataset.get_next()\n    dataset = other.make"
_LATER = "it = dataset.make_one_shot_iterator()\n    dataset = dataset.map(tf.identity)\n    return it"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("without_effect", "Saver(max_to_keep", 'Saver({"kernel": kernel}, max_to_keep'),
        ("without_effect", "tf.tables_initializer()", "kernel.assign(zeros)"),
        ("without_effect", "out = tf.reshape(out, [-1])", "out = tf.reshape(out, [-1]) + tf.random_normal([])"),
        ("without_effect", "out = tf.reshape(out, [-1])", "out += [tf.layers.dense(out, 1)]"),
        ("without_effect", "dataset = dataset.make", _SECOND),
        ("without_effect", "dataset = dataset.make_one_shot_iterator()\n    return dataset", _LATER),
        ("exports", "        outputs = {", "        classes = classes + 1\n        outputs = {"),
        ("by_test", "    task = params", "    training = params['training']\n    task = params"),
        (
            "one_feature",
            "logits = network(values, ",
            "units = [features for features in (8,)]\n        logits = network(values, ",
        ),
    ],
    ids=[
        "Saver of variables",
        "initial values",
        "drawn",
        "layers",
        "two iterators",
        "dataset that goes on",
        "rebound prediction",
        "a training that is not the mode",
        "inner name",
    ],
)
def test_what_looks_as_if_it_had_no_effect_but_has_one_is_marked(name: str, old: str, new: str) -> None:
    text = (SCRIPTS / f"{name}.py").read_text()
    assert text.count(old) == 1
    assert converted_once(text).complete
    assert not converted_once(text.replace(old, new)).complete


def test_a_choice_of_training_stays_where_the_network_makes_it() -> None:
    text = converted("by_test").text
    assert (
        "if training:\n                code = kept = tf.clip_by_value(net, -0.5, 0.5)\n            else:\n                code = kept = net\n"
        in text
    )


def test_the_mode_has_its_value_where_the_loss_reads_it_too() -> None:
    text = (SCRIPTS / "by_test.py").read_text()
    named = text.replace("    task = params", "    training = mode == tf.estimator.ModeKeys.TRAIN\n    task = params")
    named = named.replace(
        "reduce_mean(tf.square(difference))", "reduce_mean(tf.square(difference)) * (1.0 if training else 2.0)"
    )
    conversion = converted_once(named)
    assert conversion.complete
    assert "training = None" not in conversion.text


ADDED = """
import tensorflow as tf

def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features["x"], 3, name="out")
    predictions = {"net": net}
    BEFORE
    if labels is not None:
        predictions.update({"labels": tf.identity(labels), "net": net + 1.0})
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.mean_squared_error(predictions["labels"], predictions["net"])
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""


def test_a_branch_may_add_to_a_dict() -> None:
    found = convert(ADDED.replace("BEFORE", "pass"))
    assert found.complete
    assert 'predictions = {**predictions, "labels": tf.identity(labels), "net": net + 1.0}' in found.text


@pytest.mark.parametrize(
    "before",
    [
        "kept = predictions",
        "kept = [predictions]",
        "params['found'] = predictions",
        "predictions = dict(net=net)",
        "use(predictions)",
        "predictions = kept = {'net': net}",
        "items = predictions.items()",
        "add = predictions.update",
        "global predictions",
    ],
)
def test_a_dict_that_something_else_has_stays(before: str) -> None:
    assert "{**predictions" not in convert(ADDED.replace("BEFORE", before)).text


def test_a_dict_that_a_function_is_given_stays() -> None:
    function = "def add(given):\n    if given:\n        given = {}\n    if 1:\n        given.update({'rate': 0.5})\n"
    assert "given.update({'rate': 0.5})" in convert(f"import tensorflow as tf\n{function}tf.log(1.0)\n").text


SHOWN = """
import tensorflow as tf

def model_fn(features, labels, mode):
    net = tf.layers.dense(features["x"], 3, name="out")
    rows = FIRST
    for place in range(3):
        rows.append(net[:, place])
    rows = tf.stack(rows)
    tf.summary.histogram("rows", rows)
    loss = tf.losses.mean_squared_error(labels, net)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""


@pytest.mark.parametrize(("first", "goes"), [("[]", True), ("features['rows']", False), ("SEEN", False)])
def test_a_list_that_only_a_summary_reads_goes_with_it(first: str, goes: bool) -> None:
    found = convert(SHOWN.replace("FIRST", first))
    assert found.complete is goes
    assert ("append" in found.text) is not goes


def test_a_list_below_a_key_is_filled() -> None:
    """Other lists are made for keys, too; the loss may read this one where another function looks for it."""
    text = (
        SHOWN.replace("rows = FIRST", "shapes = {}\n    shapes['a'] = []")
        .replace("    rows = tf.stack(rows)\n", "")
        .replace("rows.append", "AUX['losses'].append")
    )
    found = convert(text.replace('    tf.summary.histogram("rows", rows)\n', ""))
    assert not found.complete
    assert "AUX['losses'].append" in found.text


def test_a_list_of_the_module_is_filled_though_no_network_reads_it() -> None:
    text = (
        SHOWN.replace("rows = FIRST", "")
        .replace("def model_fn", "rows = []\n\ndef model_fn")
        .replace("rows = tf.stack(rows)", "")
    )
    found = convert(text + "\nprint(rows[0])\n")
    assert not found.complete
    assert "rows.append" in found.text


INSIDE = """# The header.
def network(x):  # TensorFlow loads late
    import tensorflow as tf  # here
    return tf.layers.dense(x, 3, name="out")


def model_fn(features, labels, mode):
    "A model."
    import numpy as np
    import tensorflow as tf

    loss = tf.losses.mean_squared_error(labels, network(features["x"])) * np.float32(2)
    tf.summary.scalar("loss", loss)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""


def test_imports_inside_of_functions_go_to_the_top() -> None:
    found = convert(INSIDE)
    assert found.complete
    assert found.text.index("import numpy as np") < found.text.index("class Model")
    assert "    import" not in found.text
    assert not comments(INSIDE) - comments(found.text)
    assert {change.line for change in found.changes if change.name.startswith("tf.summary")} == {13}


DECORATED = "@command\n@option('--a')\ndef table():\n    import numpy as np\n    return np.zeros(3)\n"
ONLY_IMPORTS = "def check():\n    import numpy as np\n    import tensorflow as tf\n"


BEHIND = "def rows():\n    import numpy as np;\n    return np.zeros(2)\n"
LATER = "def rows():\n    import numpy as np\n    return np.zeros(2)\nX = rows()\nimport numpy as np\n"


@pytest.mark.parametrize(
    ("text", "stays"),
    [(DECORATED, False), (ONLY_IMPORTS, True), (BEHIND, True), (LATER, False)],
    ids=["decorated", "only imports", "semicolon", "imported later"],
)
def test_a_script_without_inner_imports_parses(text: str, stays: bool) -> None:
    found = convert(f"import tensorflow as tf\n{text}tf.log(1.0)\n").text
    compile(found, "new.py", "exec")
    assert ("    import numpy" in found) is stays
    assert stays or found.index("import numpy as np") < found.index("np.zeros")


def test_an_import_of_what_may_be_gone_stays_in_a_function() -> None:
    text = "def wide(model):\n    from tensorflow.keras.utils import multi_gpu_model\n    return multi_gpu_model(model)\n"
    assert "\n    from " in convert(f"import tensorflow as tf\n{text}tf.log(1.0)\n").text


NORMALIZED = """
import tensorflow as tf
from tensorflow.contrib import slim

def network(x, training):
    params = {"is_training": training}
    CHANGE
    return slim.fully_connected(x, 3, normalizer_fn=slim.batch_norm, normalizer_params=params, scope="a")
tf.log(1.0)
"""


@pytest.mark.parametrize(
    ("change", "is_known"),
    [("pass", True), ("training = False", False), ("training |= True", False), ("params['decay'] = 0.5", False)],
)
def test_the_arguments_of_a_norm_are_those_of_their_dict(change: str, is_known: bool) -> None:
    text = in_normal_form(Script(NORMALIZED.replace("CHANGE", change)))
    assert ("batch_norm(" in text) is is_known


def test_an_import_that_hides_a_function_of_python_stays() -> None:
    text = "def highest(a):\n    from numpy import max\n    return max(a)\n"
    assert "    from numpy import max" in convert(f"import tensorflow as tf\n{text}tf.log(max(1, 2))\n").text


@pytest.mark.parametrize(
    "other",
    [
        "np = None\n",
        "del np\n",
        "with open(__file__) as np:\n    pass\n",
        "def other(np):\n    return np\n",
        "def other():\n    global np\n    np = 1\n",
        "def other():\n    import notpy as np\n    return np\n",
    ],
)
def test_an_import_whose_name_means_something_else_elsewhere_stays(other: str) -> None:
    text = convert(INSIDE + other).text
    assert "    import numpy as np\n" in text
    assert "\nimport tensorflow as tf\n" in text
