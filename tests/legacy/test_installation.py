"""install(): the names come back, once, whatever was imported first; what cannot work is refused."""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy import installation
from tests.running import ROOT, write

TENSORFLOW = tuple(int(part) for part in importlib.metadata.version("tensorflow").split(".")[:2])
restored_only = pytest.mark.skipif(TENSORFLOW < (2, 16), reason="TensorFlow 2.15 has its own Estimator and Keras 2")


def run(script: str, *arguments: str) -> str:
    """Runs a script of programs/ in a fresh process, without TF_USE_LEGACY_KERAS; returns its standard output."""
    environment = {name: value for name, value in os.environ.items() if name not in {"TF_USE_LEGACY_KERAS", "TF_CONFIG"}}
    environment |= {"PYTHONPATH": str(Path(installation.__file__).parents[2]), "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "programs" / script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_importing_the_package_loads_no_tensorflow() -> None:
    out = run("loaded_by_the_package.py")
    assert out.split() == ["[]", "False"]


def test_names_are_back_in_every_namespace_and_a_second_call_changes_nothing() -> None:
    run("names_in_every_namespace.py")


@pytest.mark.usefixtures("warm_python")
def test_old_module_names_import() -> None:
    run("old_module_names.py")


USES = ["tf.keras.layers.Dense", "tf.losses.MeanSquaredError", "import tensorflow.keras.layers"]


@pytest.fixture(scope="module")
def refusals() -> list[str]:
    """What is said after each of the uses, in copies of one process that has imported TensorFlow."""
    out = run("keras_3_in_use.py", *USES)
    return out.split("end of use\n")


@restored_only
@pytest.mark.parametrize("number", range(len(USES)), ids=USES)
def test_keras_3_in_use_is_refused(number: int, refusals: list[str]) -> None:
    assert refusals[number].count("Keras 3 is already in use as tf.") == 2
    assert "to do:    Call install() first, or start the process with TF_USE_LEGACY_KERAS=1" in refusals[number]


@restored_only
def test_tensorflow_and_keras_3_imported_but_not_used_through_tensorflow() -> None:
    run("keras_3_imported.py")


def test_threads_may_install_and_use_aliases_at_once() -> None:
    run("threads.py")


def test_a_failed_import_of_the_estimator_before_the_call_does_no_harm() -> None:
    run("failed_import.py")


@pytest.mark.parametrize("error", ["ImportError", "RuntimeError"])
def test_a_broken_tensorflow_is_said_without_a_traceback(error: str, tmp_path: Path) -> None:
    write(tmp_path / "tensorflow" / "__init__.py", f"raise {error}('libcudart.so.12')\n")
    command = [sys.executable, "-m", "estimator_bridge", "run", str(ROOT / "tests" / "data" / "small_job.py")]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'src'}"}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout, "Traceback" in ended.stderr) == (2, "", False)
    assert "The installed TensorFlow cannot be imported." in ended.stderr
    assert f"received: {error}: libcudart.so.12" in ended.stderr


@restored_only
def test_an_alias_whose_first_use_failed_is_mended() -> None:
    run("failed_alias.py")


@pytest.mark.parametrize(
    ("versions", "missing", "message"),
    [
        ({}, "", "TensorFlow is not installed."),
        ({"tensorflow": "2.12.1", "tensorflow-estimator": "2.12.0"}, "", "This TensorFlow is older than"),
        ({"tensorflow": "2.21.0"}, "", "tensorflow-estimator is not installed."),
        ({"tensorflow-rocm": "2.21.0"}, "", "tensorflow-estimator is not installed."),
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
    monkeypatch.setattr(
        importlib.metadata,
        "packages_distributions",
        lambda: {"tensorflow": [name for name in versions if name.endswith("-rocm")]},
    )
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
    run("repeated_call.py")
