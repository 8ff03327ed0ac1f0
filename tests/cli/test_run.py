"""Whole runs of TF1 scripts on both paths: what the script sees and does, and how it ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.script import run as runner
from tests.running import estimator_bridge_command, write

PATHS = ("legacy", "modern")
DATA = Path(__file__).parents[1] / "data"
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


@pytest.mark.usefixtures("warm_python")
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


@pytest.mark.usefixtures("warm_python")
def test_a_flag_that_does_not_parse_is_the_scripts_business(project: Path) -> None:
    ended = estimator_bridge_command("run", project / "code" / "train.py", "--steps=many", cwd=project)

    assert ended.code == 1
    assert ended.out == ""
    assert ended.err.splitlines()[-1].endswith("flag --steps=many: invalid literal for int() with base 10: 'many'")


@pytest.mark.usefixtures("warm_python")
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


@pytest.mark.usefixtures("warm_python")
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


SESSIONS = """
    '''Of Python 2 and NumPy 1, without an Estimator.'''
    import json, sys
    import numpy as np
    import tensorflow as tf
    from tensorflow.examples.tutorials.mnist import input_data

    def step(x):
        w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(tf.square(w - x))
        return tf.train.GradientDescentOptimizer(0.25).minimize(loss, tf.train.get_or_create_global_step()), loss

    sizes = map(int, "4,2".split(","))
    seen = {"sizes": [len(sizes), sizes[0] / 3], "dtype": np.zeros(1, np.float).dtype.name}
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        train, loss = step(x)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            seen["session"] = [float(session.run([train, loss], {x: [2, 4]})[1]) for _ in xrange(3)]
    with tf.Graph().as_default():
        train, loss = step(tf.constant([2.0, 4.0]))
        hooks = [tf.train.StopAtStepHook(last_step=3)]
        seen["monitored"] = []
        with tf.train.MonitoredTrainingSession(hooks=hooks, checkpoint_dir=sys.argv[1]) as session:
            while not session.should_stop():
                seen["monitored"].append(float(session.run([train, loss])[1]))
    seen["raw"] = np.array([1], np.uint8).tostring() == b"\\x01"
    seen["mnist"] = len(input_data.read_data_sets(None, fake_data=True).train.next_batch(3, True)[0])
    print json.dumps(seen)
"""


@pytest.mark.usefixtures("warm_python")
def test_sessions_without_an_estimator(tmp_path: Path) -> None:
    """Losses by hand: w moves half the way to x at each step, so the squared distance of 20 becomes a quarter each time."""
    script = write(tmp_path / "train.py", SESSIONS)
    before = script.read_bytes()

    ended = estimator_bridge_command("run", "--py2", script, tmp_path / "model", cwd=tmp_path)

    assert ended.code == 0, ended.err[-3000:]
    assert ended.last_line == {
        "sizes": [2, 1],
        "dtype": "float64",
        "session": [20.0, 5.0, 1.25],
        "monitored": [20.0, 5.0, 1.25],
        "raw": True,
        "mnist": 3,
    }
    assert (tmp_path / "model" / "model.ckpt-3.index").exists()
    assert f"{script}: Python 2, mended in memory in" in ended.err
    assert "train.py:14: numpy.float no longer exists; float is used instead" in ended.err
    assert script.read_bytes() == before


SEEDED = """
    import sys

    import numpy as np
    import tensorflow as tf


    def model_fn(features, labels, mode):
        net = tf.layers.dense(features["x"], 4, activation=tf.nn.relu)
        net = tf.keras.layers.Dense(4, name="keras_dense")(net)
        net = tf.layers.dropout(net, 0.5, training=True)
        net = tf.matmul(net, tf.get_variable("own", [4, 3])) + tf.random_normal([3])
        loss = tf.losses.mean_squared_error(labels, net)
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


    def input_fn():
        x = np.random.RandomState(0).rand(32, 3).astype(np.float32)
        return tf.data.Dataset.from_tensor_slices(({"x": x}, x)).shuffle(32).repeat().batch(4)


    estimator = tf.estimator.Estimator(model_fn, sys.argv[1], tf.estimator.RunConfig(tf_random_seed=1))
    estimator.train(input_fn, steps=5)
"""


@pytest.mark.usefixtures("warm_python")
def test_a_seed_reaches_all_random_numbers_on_both_paths(tmp_path: Path) -> None:
    """Initial values that Keras chooses by default, too: no checkpoint is shared, as it is in a comparison."""
    script = write(tmp_path / "train.py", SEEDED)
    for path in PATHS:
        ended = estimator_bridge_command("run", "--path", path, script, tmp_path / path, cwd=tmp_path)
        assert ended.code == 0, ended.err[-3000:]

    legacy, modern = (tf.train.load_checkpoint(str(tmp_path / path)) for path in PATHS)
    names = legacy.get_variable_to_shape_map()
    assert {"dense/kernel", "keras_dense/kernel", "own"} < set(names)
    assert set(names) == set(modern.get_variable_to_shape_map())
    for name in names:
        np.testing.assert_array_equal(modern.get_tensor(name), legacy.get_tensor(name), err_msg=name)


def test_a_script_that_wants_tensorflow_1_reads_its_version() -> None:
    ended = estimator_bridge_command("run", "asks_version.py", cwd=DATA)
    assert ended.code == 0, ended.err
    assert ended.last_line == dict.fromkeys(("__version__", "VERSION", "version", "v1"), "1.15.5")
    assert (
        "asks_version.py:10: tf.__version__ is 1.15.5 here: the script refuses TensorFlow 2; --tf-version changes it"
        in ended.err
    )


def test_the_flag_decides_the_version() -> None:
    ended = estimator_bridge_command("run", "--path", "modern", "--tf-version", "2.3.0", "asks_version.py", cwd=DATA)
    assert ended.code == 1
    assert set(ended.last_line.values()) == {"2.3.0"}
    assert ended.err.splitlines()[-1] == "RuntimeError: TensorFlow 1 is needed"


def test_python2_without_the_flag(tmp_path: Path) -> None:
    script = write(tmp_path / "train.py", SESSIONS)
    line = next(number for number, text in enumerate(script.read_text().splitlines(), 1) if text.startswith("print "))

    ended = estimator_bridge_command("run", "train.py", cwd=tmp_path)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("estimator-bridge: The script is written for Python 2.\n")
    assert f"line {line}: print statement" in ended.err
    assert "Add --py2" in ended.err


@pytest.mark.usefixtures("warm_python")
def test_dropped_names_on_the_modern_path(tmp_path: Path) -> None:
    write(
        tmp_path / "train.py",
        "import numpy as np\nhidden = filter(None, [1])\nprint(np.int(3), len(list(hidden)), len(list(hidden)))\n",
    )

    ended = estimator_bridge_command("run", "--path", "modern", "train.py", cwd=tmp_path)

    assert ended.out == "3 1 0\n"
    first, second, third = ended.err.splitlines()[:3]
    assert first.startswith("estimator-bridge: train.py:3: filter: Read again")
    assert second.endswith("train.py:3: numpy.int no longer exists; int is used instead")
    assert "The script called no Estimator" in third


TENSORFLOW_2 = """
    import json
    import tensorflow as tf

    def input_fn():
        return tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [[2.0], [4.0]]))

    x = tf.feature_column.numeric_column("x")
    estimator = tf.estimator.LinearRegressor([x], optimizer=tf.keras.optimizers.legacy.Adam(0.1))
    estimator.train(input_fn, steps=1)
    print(json.dumps([
        tf.executing_eagerly(), tf.constant([3]).numpy().tolist(), hasattr(tf, "placeholder"), tf.__name__,
        type(estimator).__name__, hasattr(tf.compat.v1, "placeholder"),
    ]))
"""


@pytest.mark.usefixtures("warm_python")
def test_a_script_of_tensorflow_2_with_an_estimator(tmp_path: Path) -> None:
    write(tmp_path / "train.py", TENSORFLOW_2)

    ended = estimator_bridge_command("run", "--v2-behavior", "train.py", cwd=tmp_path)

    assert ended.code == 0, ended.err[-3000:]
    assert ended.last_line == [True, [3], False, "tensorflow", "LinearRegressorV2", True]
