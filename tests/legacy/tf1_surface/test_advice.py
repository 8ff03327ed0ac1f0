"""What a script hears that ends because a name is not there; TensorFlow is not loaded."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from estimator_bridge.runtime.log_output import log_to_stderr
from estimator_bridge.script.tracebacks import run_as_python_does

GPUS = "tf.keras.utils.multi_gpu_model"


def stderr(source: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that a script leaves on stderr as it ends with code 1."""
    file = folder / "train.py"
    file.write_text(source, encoding="utf-8")
    code = compile(source, str(file), "exec")

    with log_to_stderr():
        assert run_as_python_does(lambda: exec(code, {})) == 1
    return capsys.readouterr().err.splitlines()


@pytest.fixture(autouse=True)
def empty_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    tensorflow = types.ModuleType("tensorflow")
    tensorflow.__path__ = []
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)


@pytest.mark.parametrize(
    ("line", "symbol", "use"),
    [
        ("tf.keras.utils.multi_gpu_model", GPUS, "Use tf.distribute.MirroredStrategy."),
        ("from tensorflow.keras.utils import multi_gpu_model", GPUS, "Use tf.distribute.MirroredStrategy."),
        ("import tensorflow.keras.wrappers", "tf.keras.wrappers", "Use SciKeras (scikeras.wrappers)."),
    ],
)
def test_a_name_that_is_gone(line: str, symbol: str, use: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    advice, *traceback = stderr(f"import tensorflow as tf\n\n{line}\n", tmp_path, capsys)

    assert traceback[0] == "Traceback (most recent call last):"
    assert "Error: " in traceback[-1]
    assert advice.startswith(f"estimator-bridge: {tmp_path / 'train.py'}:3: {symbol}: ")
    assert advice.endswith(use)


def test_a_package_that_tensorflow_1_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)  # as if it were not installed
    advice, *_ = stderr("from tensorboard.backend import application\n", tmp_path, capsys)

    assert advice.startswith(f"estimator-bridge: {tmp_path / 'train.py'}:1: tensorboard: ")
    assert advice.endswith("pip install tensorboard")


def test_an_error_of_another_kind_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = stderr(f"import tensorflow as tf\n(1).nothing, lambda: {GPUS}\n", tmp_path, capsys)

    assert lines[-1].startswith("AttributeError: ")


def test_a_line_of_which_nothing_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stderr("import nowhere_at_all\n", tmp_path, capsys)[-1] == "ModuleNotFoundError: No module named 'nowhere_at_all'"
