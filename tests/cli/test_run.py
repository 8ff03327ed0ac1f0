"""Whole runs of TF1 scripts on both paths: what the script sees and does, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_bridge.legacy import script as runner
from tests.legacy.running import estimator_bridge_command, write

PATHS = ("legacy", "modern")
OURS = Path(runner.__file__).resolve().parents[1]

pytestmark = pytest.mark.timeout(200)

HELPER = """
    import tensorflow as tf
    from tensorflow.train import GradientDescentOptimizer

    def train_op(loss):
        return GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
"""

SCRIPT = """
    '''A job as it was written in 2017.'''
    import json
    import os
    import sys

    import numpy as np
    import tensorflow as tf

    tf.disable_v2_behavior()
    tf.compat.v1.disable_eager_execution()
    tf.reset_default_graph()
    import helper

    flags = tf.app.flags
    FLAGS = flags.FLAGS
    flags.DEFINE_integer("steps", 2, "Steps.")
    flags.DEFINE_string("model_dir", None, "Folder.")
    flags.DEFINE_string("fail", "", "Where.")
    seen = {}

    def check(features):
        try:
            return features["missing"]
        except KeyError:
            raise ValueError("no such feature")

    def model_fn(features, labels, mode):
        x = features["x"]
        seen[mode] = [x.shape[1].value, tf.executing_eagerly()]
        if FLAGS.fail == mode:
            check(features)
        loss = tf.losses.mean_squared_error(labels, tf.layers.dense(x, 1)) if labels is not None else None
        train_op = helper.train_op(loss) if mode == tf.estimator.ModeKeys.TRAIN else None
        return tf.estimator.EstimatorSpec(mode, {"x": x}, loss, train_op)

    def input_fn():
        x = np.ones((8, 3), np.float32)
        return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1])).repeat(2).batch(4)

    def main(argv):
        seen["argv"] = argv
        seen["flags"] = [FLAGS.steps, FLAGS.model_dir]
        seen["stdin"] = sys.stdin.read()
        own = tf.placeholder(tf.float32, [None, 2])
        with tf.Session() as session:
            seen["session"] = session.run(own + 1, {own: [[1, 2]]}).tolist()
        tf.logging.set_verbosity(tf.logging.ERROR)
        estimator = tf.estimator.Estimator(model_fn, FLAGS.model_dir)
        estimator.train(input_fn, steps=FLAGS.steps)
        seen["graph"] = [own.graph is tf.get_default_graph(), tf.executing_eagerly(), own.shape[1].value]
        seen["step"] = int(estimator.evaluate(input_fn)["global_step"])
        seen["predictions"] = len(list(estimator.predict(input_fn)))
        print(json.dumps(seen))
        return 7

    if __name__ == "__main__":
        tf.app.run()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "code" / "helper.py", HELPER)
    write(tmp_path / "code" / "train.py", SCRIPT)
    return tmp_path


@pytest.mark.parametrize("path", PATHS)
def test_a_job_with_flags(path: str, project: Path) -> None:
    script = str(Path("code") / "train.py")
    arguments = [script, "--steps=3", "--unknown=1", "rest", f"--model_dir={project / 'model'}"]
    ended = estimator_bridge_command("run", "--path", path, *arguments, cwd=project, stdin="given\n")

    assert ended.code == 7, ended.err[-3000:]
    assert ended.last_line == {
        "argv": [script, "--unknown=1", "rest"],  # tf.app.run leaves what it does not know
        "flags": [3, str(project / "model")],
        "stdin": "given\n",
        "session": [[2, 3]],
        "train": [3, False],
        "eval": [3, False],
        "infer": [3, False],
        "graph": [True, False, 2],
        "step": 3,
        "predictions": 16,
    }
    assert len(ended.out.splitlines()) == 1, "stdout is the script's"


@pytest.mark.parametrize("path", PATHS)
def test_an_exception_in_model_fn_shows_the_scripts_frames_and_none_of_ours(path: str, project: Path) -> None:
    script = project / "code" / "train.py"

    ended = estimator_bridge_command("run", "--path", path, script, "--fail=train", cwd=project)

    assert ended.code == 1
    assert ended.err.rstrip().endswith("ValueError: no such feature")
    _, first, second = ended.err.split("Traceback (most recent call last):\n")
    assert "KeyError: 'missing'" in first
    files = [line.split('"')[1] for line in second.splitlines() if line.startswith('  File "')]
    assert files[0] == str(script)
    assert files[-2:] == [str(script)] * 2
    assert "estimator.train(input_fn, steps=FLAGS.steps)" in second
    assert not [file for file in files if Path(file).resolve().is_relative_to(OURS) and "site-packages" not in file]


def test_a_flag_that_does_not_parse_is_the_scripts_business(project: Path) -> None:
    ended = estimator_bridge_command("run", project / "code" / "train.py", "--steps=many", cwd=project)

    assert ended.code == 1
    assert ended.out == ""
    assert ended.err.splitlines()[-1].endswith("flag --steps=many: invalid literal for int() with base 10: 'many'")


def test_a_model_dir_that_cannot_be_written(project: Path) -> None:
    (project / "file").touch()
    script = project / "code" / "train.py"

    ended = estimator_bridge_command(
        "run", "--path", "modern", script, f"--model_dir={project / 'file' / 'model'}", cwd=project
    )

    assert ended.code == 2
    assert "Traceback" not in ended.err
    line = next(number for number, text in enumerate(script.read_text().splitlines(), 1) if "estimator.train(" in text)
    assert ended.err[ended.err.index("estimator-bridge:") :].splitlines() == [
        "estimator-bridge: The model_dir cannot be written.",
        "  expected: a folder for checkpoints, or a path where one can be made",
        f"  received: {project / 'file' / 'model'}: Not a directory",
        "  to do:    Choose another model_dir.",
        f"  asked by: {script}:{line}",
    ]


def test_a_module_with_relative_imports_that_uses_eager_execution(tmp_path: Path) -> None:
    """And has no Estimator, which the modern path says."""
    write(tmp_path / "trainer" / "__init__.py", "")
    write(tmp_path / "trainer" / "names.py", "import tensorflow as tf")
    task = """
        from .names import tf
        tf.enable_eager_execution()
        print(tf.placeholder is not None, tf.constant([3]).numpy()[0], tf.executing_eagerly(), __package__)
    """
    write(tmp_path / "trainer" / "task.py", task)

    ended = estimator_bridge_command("run", "--path", "modern", "-m", "trainer.task", cwd=tmp_path)

    assert ended.out == "True 3 True trainer\n"
    assert ended.code == 2
    assert ended.err.startswith("estimator-bridge: The script called no Estimator, so nothing ran on the modern path.\n")
    assert "Use --path legacy" in ended.err


def test_a_module_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path / "trainer" / "__init__.py", "")

    ended = estimator_bridge_command("run", "-m", "trainer.tusk", cwd=tmp_path)

    assert ended.code == 2
    assert ended.err.startswith("estimator-bridge: There is no such module.\n"), "nor do TensorFlow's warnings of our doing"
    assert "received: trainer.tusk\n" in ended.err
