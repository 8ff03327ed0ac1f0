"""install(): the names come back, once, whatever was imported first; what cannot work is refused."""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy import installation

TENSORFLOW = tuple(int(part) for part in importlib.metadata.version("tensorflow").split(".")[:2])
restored_only = pytest.mark.skipif(TENSORFLOW < (2, 16), reason="TensorFlow 2.15 has its own Estimator and Keras 2")


def run(script: str) -> str:
    """Run a script in a fresh process, without TF_USE_LEGACY_KERAS; its standard output."""
    environment = {name: value for name, value in os.environ.items() if name not in {"TF_USE_LEGACY_KERAS", "TF_CONFIG"}}
    environment |= {"PYTHONPATH": str(Path(installation.__file__).parents[2]), "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_importing_the_package_loads_no_tensorflow() -> None:
    out = run("""
        import os, sys
        import estimator_bridge.legacy
        print(sorted({"tensorflow", "keras", "tf_keras", "numpy"} & set(sys.modules)), "TF_USE_LEGACY_KERAS" in os.environ)
    """)
    assert out.split() == ["[]", "False"]


def test_names_are_back_in_every_namespace_and_a_second_call_changes_nothing() -> None:
    run("""
        import sys
        from estimator_bridge import legacy
        legacy.install()
        import tensorflow as tf
        import tensorflow.compat.v1 as tf1
        import tensorflow.compat.v2 as tf2
        from tensorflow_estimator.python.estimator import estimator as real

        assert tf.estimator.Estimator is tf.compat.v2.estimator.Estimator is tf2.estimator.Estimator is real.EstimatorV2
        assert tf.compat.v1.estimator.Estimator is tf1.estimator.Estimator is real.Estimator
        assert tf1.estimator.tpu.TPUEstimator and tf1.estimator.inputs.numpy_input_fn
        assert {"DNNClassifier", "RunConfig", "train_and_evaluate", "export", "experimental"} <= set(dir(tf.estimator))

        before = tf.estimator, tf1.estimator, list(sys.meta_path), set(sys.modules)
        legacy.install()
        assert before == (tf.estimator, tf1.estimator, list(sys.meta_path), set(sys.modules))

        from tensorflow.python.autograph.core import config
        assert "DoNotConvert rule for tf_keras" in map(str, config.CONVERSION_RULES)
    """)


@pytest.mark.usefixtures("warm_python")
def test_old_module_names_import() -> None:
    run("""
        from estimator_bridge import legacy
        legacy.install()
        import tensorflow as tf
        import tensorflow.python.estimator.canned.dnn as old_dnn
        import tensorflow_estimator.python.estimator.canned.dnn as real_dnn
        from tensorflow.python.estimator import keras, model_fn, run_config
        from tensorflow.python.estimator.head import base_head  # never a name of TensorFlow's own
        from tensorflow.python.tpu import tpu_config
        from tensorflow.estimator import Estimator
        from tensorflow.estimator.export import ServingInputReceiver
        from tensorflow_estimator.python.estimator.keras import model_to_estimator
        import tensorflow_estimator.python.estimator.head.base_head as real_head

        assert old_dnn.DNNClassifier is real_dnn.DNNClassifier
        assert base_head is real_head and real_head.__spec__.name == real_head.__name__
        assert Estimator is tf.estimator.Estimator
        try:
            import tensorflow.python.estimator.no_such_module
        except ModuleNotFoundError as error:
            assert "tensorflow.python.estimator.no_such_module" in str(error), error
        else:
            raise AssertionError
    """)


USES = ["tf.keras.layers.Dense", "tf.losses.MeanSquaredError", "import tensorflow.keras.layers"]


@pytest.fixture(scope="module")
def refusals() -> list[str]:
    """What is said after each of the uses, in copies of one process that has imported TensorFlow."""
    out = run(f"""
        import os
        import tensorflow as tf
        for use in {USES}:
            if not os.fork():
                exec(use)
                from estimator_bridge import errors, legacy
                for _ in range(2):
                    try:
                        legacy.install()
                    except errors.BridgeError as error:
                        print(error)
                assert not hasattr(tf, "estimator") and "TF_USE_LEGACY_KERAS" not in os.environ
                print("end of use", flush=True)
                os._exit(0)
            assert os.wait()[1] == 0
    """)
    return out.split("end of use\n")


@restored_only
@pytest.mark.parametrize("number", range(len(USES)), ids=USES)
def test_keras_3_in_use_is_refused(number: int, refusals: list[str]) -> None:
    assert refusals[number].count("Keras 3 is already in use as tf.") == 2
    assert "to do:    Call install() first, or start the process with TF_USE_LEGACY_KERAS=1" in refusals[number]


@restored_only
def test_tensorflow_and_keras_3_imported_but_not_used_through_tensorflow() -> None:
    run("""
        import keras
        import tensorflow as tf
        kept, compat = tf.keras, tf.compat.v1
        from estimator_bridge import legacy
        legacy.install()
        from tensorflow.keras.layers import Dense

        assert keras.__version__.startswith("3.")
        assert "tf_keras" in tf.keras.layers.Dense.__module__ and "tf_keras" in kept.layers.Dense.__module__
        assert Dense is tf.keras.layers.Dense
        assert compat.estimator is tf.compat.v1.estimator
        assert "tf_keras" in compat.layers.dense.__module__ and "tf_keras" in compat.nn.rnn_cell.LSTMCell.__module__
    """)


def test_threads_may_install_and_use_aliases_at_once() -> None:
    run("""
        import sys, threading
        from estimator_bridge import legacy

        sys.setswitchinterval(1e-6)
        barrier, failures = threading.Barrier(8), []

        def use():
            try:
                barrier.wait()
                legacy.install()
                import tensorflow as tf
                v1 = tf.compat.v1
                found = [tf.keras.layers.Dense, tf.losses.MeanSquaredError, tf.optimizers.SGD, tf.metrics.Mean,
                         v1.layers.Dense, v1.nn.rnn_cell.LSTMCell, v1.keras.layers.Dense, tf.initializers.Zeros,
                         tf.compat.v2.keras.Model, tf.estimator.DNNClassifier, v1.estimator.DNNClassifier]
                packages = {thing.__module__.partition(".")[0] for thing in found}
                assert len(packages) == 2 and "tensorflow_estimator" in packages, found
            except BaseException as error:
                failures.append(repr(error))

        threads = [threading.Thread(target=use) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not failures, failures
    """)


def test_a_failed_import_of_the_estimator_before_the_call_does_no_harm() -> None:
    run("""
        try:
            from tensorflow_estimator.python.estimator import estimator
        except ImportError:
            pass
        from estimator_bridge import legacy
        legacy.install()
        import tensorflow as tf
        from tensorflow import *
        from tensorflow_estimator.python.estimator import estimator as real
        assert tf.compat.v1.estimator.Estimator is real.Estimator and estimator.Estimator is real.EstimatorV2
    """)


@restored_only
def test_an_alias_whose_first_use_failed_is_mended() -> None:
    run("""
        import os, sys
        import tensorflow as tf
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        sys.modules["tf_keras"] = None  # as if it could not be imported
        try:
            tf.keras.layers
        except ImportError:
            pass
        del sys.modules["tf_keras"]
        from estimator_bridge import legacy
        legacy.install()
        assert "tf_keras" in tf.keras.layers.Dense.__module__
    """)


@pytest.mark.parametrize(
    ("versions", "missing", "message"),
    [
        ({}, "", "TensorFlow is not installed."),
        ({"tensorflow": "2.12.1", "tensorflow-estimator": "2.12.0"}, "", "This TensorFlow is older than"),
        ({"tensorflow": "2.21.0"}, "", "tensorflow-estimator is not installed."),
        ({"tensorflow": "2.21.0", "tensorflow-estimator": "2.14.0"}, "", "This tensorflow-estimator cannot be loaded."),
        ({"tensorflow": "2.21.0", "tensorflow-estimator": "2.15.0"}, "tf_keras", "tf_keras is not installed"),
    ],
)
def test_what_is_missing_or_too_old_is_refused(
    versions: dict[str, str], missing: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(distribution: str) -> str:
        if distribution not in versions:
            raise importlib.metadata.PackageNotFoundError(distribution)
        return versions[distribution]

    monkeypatch.setattr(importlib.metadata, "version", version)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else find_spec(name))
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    monkeypatch.setattr(installation, "_install", installation._install.__wrapped__)
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")
    with pytest.raises(BridgeError, match=message) as refused:
        installation.install()
    assert "to do:    pip install" in str(refused.value)
    assert os.environ["TF_USE_LEGACY_KERAS"] == "0"


def test_a_refused_call_may_be_repeated() -> None:
    run("""
        import importlib.metadata
        from estimator_bridge import errors, legacy

        original = importlib.metadata.version
        importlib.metadata.version = lambda name: "1.0" if name == "tensorflow-estimator" else original(name)
        try:
            legacy.install()
        except errors.BridgeError:
            importlib.metadata.version = original
        legacy.install()
        import tensorflow as tf
        tf.estimator.Estimator
    """)
