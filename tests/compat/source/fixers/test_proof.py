"""Converted scripts train as the old ones do, by the comparison of both."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.compat.source.fixers.conversion import convert
from tests.compat.source.fixers.test_conversion import SCRIPTS, WHOLE, converted
from tests.compat.source.fixers.test_whole_function import write_checkpoint
from tests.running import ROOT, estimator_bridge_command

MORE = {
    "asked_updates": ("untold",),
    "bound_arguments": ("lambda",),
    "builders": ("narrow",),
    "by_branch": ("norms", "keras", "plain"),
    "chains": ("class",),
    "chosen": ("plain",),
    "linear": ("classes", "numbers"),
    "chosen_models": ("narrow",),
    "clipped": ("value", "norm", "loss"),
    "objects": ("method",),
    "own_updates": ("parts", "accumulated"),
}
"""Arguments of scripts that train another model with them."""
# Printed scripts use what every tf_keras has; those of test_conversion run on each TensorFlow.
pytestmark = [pytest.mark.once, pytest.mark.usefixtures("warm_python")]
METRICS = re.compile(r"^Metrics: (equal when|\d+ values?, identical)", re.MULTILINE)
"""Heading of an EQUAL report's metrics, which some processors compute to the last bit."""
RUNS = [*((name,) for name in WHOLE), *((name, argument) for name, arguments in MORE.items() for argument in arguments)]


@pytest.mark.parametrize("run", RUNS, ids="-".join)
def test_both_train_alike(run: tuple[str, ...], tmp_path: Path) -> None:
    """Losses, metrics and variables: with dropout, batch norm, a schedule and L2, or with columns and a loop over layers."""
    name, *arguments = run
    old = SCRIPTS / f"{name}.py"
    (tmp_path / "new.py").write_text(converted(name).text)
    ended = estimator_bridge_command(
        "compare", "--out", tmp_path / "report", old, tmp_path / "new.py", *arguments, cwd=tmp_path
    )
    assert ended.code == 0, ended.out + ended.err
    assert "EQUAL. The new script trains as the old script does." in ended.out
    trains_two = run == ("linear",)
    assert ("Not compared: all from the training of a second model on." in ended.out) is trains_two


def test_a_model_function_that_cannot_predict_is_compared(tmp_path: Path) -> None:
    """Its model cannot be called with features alone: the training step makes the variables, which get the old script's values."""
    text = (SCRIPTS / "stays_whole.py").read_text()
    begin, end = text.index("        outputs = {"), text.index("    add_losses(labels, logits)\n    loss")
    text = f"{text[:begin]}        raise NotImplementedError\n{text[end:]}"
    begin, end = text.index("    print(next("), text.index("\n\nif __name__")
    (tmp_path / "old.py").write_text(text[:begin] + text[end:])
    new = convert((tmp_path / "old.py").read_text(), shim=True)
    assert new.complete
    (tmp_path / "new.py").write_text(new.text)
    ended = estimator_bridge_command("compare", "--out", "report", "old.py", "new.py", cwd=tmp_path)
    assert ended.code == 0, ended.out + ended.err
    assert "Loss: 12 of 12 steps within; identical to the last bit" in ended.out


def test_a_method_that_stays_a_model_function_trains_alike(tmp_path: Path) -> None:
    """Each graph calls the method of one object, whose attributes the script may read; its gradients are compared, too."""
    converting = estimator_bridge_command(
        "convert", "source", SCRIPTS / "methods", "--body", "shim", "--out", tmp_path / "new", cwd=tmp_path
    )
    assert converting.code == 0, converting.err
    ended = estimator_bridge_command(
        *("compare", "--resume", "kept", "--out", "report", SCRIPTS / "methods" / "train.py", "new/train.py"), cwd=tmp_path
    )
    assert ended.code == 0, ended.out + ended.err
    (path,) = (tmp_path / "kept").rglob("new/values/gradients-1.npz")
    assert len(np.load(path).files) == 3 * 3 + 2
    assert "Loss: 5 of 5 steps within; identical to the last bit" in ended.out


def test_a_second_training_begins_with_the_first_batch(tmp_path: Path) -> None:
    """A hook ends the first one, for which the new script's input has read ahead; that is no other order of batches."""
    old, path = SCRIPTS / "graph_hooks.py", tmp_path / "old.ckpt"
    write_checkpoint(path)
    (tmp_path / "new.py").write_text(convert(old.read_text(), shim=True).text)
    ended = estimator_bridge_command("compare", "--out", "report", old, "new.py", path, cwd=tmp_path)
    assert ended.code == 0, ended.out + ended.err
    assert "Loss: 9 of 9 steps within; identical to the last bit" in ended.out
    assert "The first 9 batches that the new script's own input gives are those of the old script." in ended.out


ON_DEVICES = {
    1: (0.700000, 23, 0.926562, 0.64348, -0.33438, 1.32261, 0.35189, -0.03087, 0.77788, 0.36238, 0.06726, 1.23706),
    2: (0.616667, 19, 0.941724, 0.71921, -0.37603, 1.08702, 0.51544, -0.23388, 0.62638, 0.55788, -0.07457, 1.16655),
    3: (0.533333, 17, 0.965143, 0.82220, -0.40905, 0.88756, 0.62648, -0.29639, 0.52267, 0.68887, -0.11599, 1.07247),
}
"""Number of devices: accuracy, step and loss of the evaluation, and the first predictions, which TensorFlow 1.15.5 prints for the script."""


@pytest.mark.parametrize("number", ON_DEVICES)
def test_the_devices_of_a_strategy_train_as_in_tensorflow_1(number: int, tmp_path: Path) -> None:
    """Each takes a batch of its own, gradients are means, averages of batch norm too; it goes on, and evaluates, as one model.

    Where there is no batch for each device any more, the training ends.
    """
    (tmp_path / "new.py").write_text(converted("on_devices").text)
    command = [sys.executable, str(Path(__file__).with_name("on_processors.py")), str(number), "new.py", str(number)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    lines = re.findall(r"^(?:evaluated|logits) (.*)$", ended.stdout, re.MULTILINE)
    values = [float(one.rpartition("=")[2]) for one in " ".join(lines).split()]
    np.testing.assert_allclose(values, ON_DEVICES[number], atol=2e-5)


def test_averages_that_an_evaluation_changes_are_a_difference(tmp_path: Path) -> None:
    """The old script's evaluation keeps the averages of batch norm that trains; no loss shows that the new one's does not."""
    (tmp_path / "new.py").write_text(converted("normed_always").text)
    ended = estimator_bridge_command(
        "compare", "--out", tmp_path / "report", SCRIPTS / "normed_always.py", tmp_path / "new.py", cwd=tmp_path
    )
    assert ended.code == 1, ended.out + ended.err
    assert "2 variables that no gradient trains are elsewhere" in ended.out


def test_evaluations_behind_a_training_that_was_ended_early_are_compared(tmp_path: Path) -> None:
    """The old side evaluates after the last step that is asked for, so the new one has to, too."""
    (tmp_path / "new.py").write_text(converted("branches").text)
    ended = estimator_bridge_command(
        *("compare", "--steps", 3, "--out", tmp_path / "report", SCRIPTS / "branches.py", tmp_path / "new.py"), cwd=tmp_path
    )
    assert ended.code == 0, ended.out + ended.err
    assert "Loss: 3 of 3 steps within" in ended.out
    assert METRICS.search(ended.out)
    assert "Not compared" not in ended.out


def test_a_loop_that_waits_for_later_steps_ends(tmp_path: Path) -> None:
    """On each side of both comparisons, and the note says so."""
    old = ROOT / "tests" / "data" / "waits_for_steps.py"
    (tmp_path / "new.py").write_text(convert(old.read_text()).text)
    for new in ([], ["new.py"]):
        ended = estimator_bridge_command("compare", "--steps", 4, "--out", "report", old, *new, "model", cwd=tmp_path)
        assert ended.code == 0, ended.out + ended.err
        assert "The third such evaluation ended it" in ended.out


def test_values_of_another_checkpoint_are_there_before_the_first_step(tmp_path: Path) -> None:
    """A comparison replaces the initial values, so it does not show that."""
    kernel = np.linspace(-1, 1, 24).reshape(4, 6).astype(np.float32)
    prefix = str(tmp_path / "before")
    saved = {"old/kernel": kernel, "old/beta": np.full(6, 3, np.float32), "old/gamma": np.full(6, 4, np.float32)}
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=list(saved), shape_and_slices=[""] * 3, tensors=list(saved.values()))
    (tmp_path / "new.py").write_text(converted("in_classes").text)
    look = (
        "import runpy; model = runpy.run_path('new.py', run_name='__main__')['estimator']\n"
        "print(__import__('json').dumps({v.name: v.numpy().ravel().tolist() for v in model.trainable_variables}))"
    )
    (tmp_path / "look.py").write_text(look)
    command = [sys.executable, "look.py", prefix]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    found = json.loads(ended.stdout.splitlines()[-1])
    for name, value in {"dense/kernel": kernel.ravel(), "norm/beta": 3.0, "norm/gamma": 4.0}.items():
        np.testing.assert_allclose(
            found[f"encoder/{name}:0"], value, atol=15 * 0.001 / np.sqrt(0.1)
        )  # what 15 steps can change
    both = ("compare", "--out", tmp_path / "report", SCRIPTS / "in_classes.py", tmp_path / "new.py", prefix)
    compared = estimator_bridge_command(*both, cwd=tmp_path)
    assert compared.code == 0, compared.out + compared.err


def test_layers_in_scopes_find_their_values_in_another_checkpoint(tmp_path: Path) -> None:
    """Their variables have the names of TensorFlow 1, although its scopes are around their calls."""
    prefix, random = str(tmp_path / "before"), np.random.RandomState(0)
    shapes = {"dense/kernel": (8, 8), "dense/bias": (8,), "LayerNorm/beta": (8,), "LayerNorm/gamma": (8,)}
    values = [random.uniform(size=shape).astype(np.float32) for shape in shapes.values()]
    names = [f"old/{name}" for name in shapes]
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * 4, tensors=values)
    (tmp_path / "new.py").write_text(converted("of_helpers").text)
    both = ("compare", "--out", tmp_path / "report", SCRIPTS / "of_helpers.py", tmp_path / "new.py", prefix)
    compared = estimator_bridge_command(*both, cwd=tmp_path)
    assert compared.code == 0, compared.out + compared.err
    assert "69 variables" in compared.out
    assert "by end of name" not in compared.out + compared.err


def test_an_older_checkpoint_is_evaluated_and_the_training_goes_on_from_the_last(tmp_path: Path) -> None:
    """Also while predictions of the older one are read; what each should give is computed from its file."""
    (tmp_path / "new.py").write_text(converted("metrics_of_graph").text)
    command = [sys.executable, str(Path(__file__).with_name("seen.py")), "new.py", str(tmp_path / "model"), "4"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    last, older, row, end, step = json.loads(ended.stdout.splitlines()[-1])
    assert (last["global_step"], older["global_step"], end["global_step"], step) == (8, 4, 12, 12)
    random = np.random.RandomState(0)
    x, y = random.uniform(size=(60, 5)).astype(np.float32), random.randint(0, 3, 60)
    for found, at, rows in ((last, 8, 60), (older, 4, 60), (end, 12, 24)):
        reader = tf.train.load_checkpoint(str(tmp_path / "model" / "keras" / f"ckpt-{at}"))
        weights = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if "answer" in name}
        kernel, bias = (next(each for name, each in weights.items() if part in name) for part in ("kernel", "bias"))
        logits = x.astype(np.float64) @ kernel + bias
        losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(60), y]
        means = [losses[first : first + 8].mean() for first in range(0, rows, 8)]  # TensorFlow 1 takes the mean of the batches
        np.testing.assert_allclose(found["loss"], np.mean(means), rtol=1e-5)
        classes = logits.argmax(1)
        np.testing.assert_allclose(found["right"], (classes == y)[:rows].mean(), rtol=1e-6)
        recalls = [(classes == y)[:rows][y[:rows] == one].mean() for one in range(3)]
        np.testing.assert_allclose([found[f"recall_{one}"] for one in range(3)], recalls, rtol=1e-6)
        np.testing.assert_allclose(found["per_class"], np.mean(recalls), rtol=1e-6)
        if at == 4:
            np.testing.assert_allclose(row["logits"], logits[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("example", "flags"), [("digits", ()), ("wide_deep", ("--num_examples=4000",)), ("parallel", ("--body", "shim"))]
)
def test_the_examples_need_no_human(example: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    """From the old script to the proof by one command, their exports included; BERT's optimizer has no counterpart in Keras."""
    script = ROOT / "examples" / example / "train.py"
    options, flags = (flags, ()) if example == "parallel" else ((), flags)
    ended = estimator_bridge_command(
        *("convert", "source", "--prove", *options, "--out", tmp_path / "new.py", script),
        *("--", "--train_steps=30", *flags),
        cwd=tmp_path,
    )
    assert ended.code == 0, ended.out + ended.err
    assert "EQUAL. The new script trains as the old script does." in ended.out
    assert "Loss: 30 of 30 steps within" in ended.out
    assert METRICS.search(ended.out)
