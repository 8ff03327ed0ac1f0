"""The tutorials' MNIST reader; TensorFlow 1.15.5 recorded every batch."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.tf1_surface import mnist_reader as mnist
from estimator_bridge.legacy.tf1_surface.tutorial_modules import example_modules

GOLDEN = Path(__file__).parents[2] / "golden"
make_mnist: Any = SimpleNamespace(
    **runpy.run_path(str(GOLDEN / "make_mnist.py"))
)  # the cases and the files of TensorFlow 1.15.5
RECORDED = json.loads((GOLDEN / "mnist.json").read_text())


@pytest.mark.parametrize("compress", [True, False], ids=["gzipped", "plain"])
@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_as_recorded(number: int, compress: bool, tmp_path: Path) -> None:
    make_mnist.write_files(tmp_path, compress)
    with tf.Graph().as_default():
        answer = make_mnist.played(mnist.read_data_sets, tf.compat.v1.set_random_seed, str(tmp_path), make_mnist.CASES[number])
    assert json.loads(json.dumps(answer)) == RECORDED[number]


def test_missing_files_are_named(tmp_path: Path) -> None:
    make_mnist.write_files(tmp_path, compress=True)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(BridgeError) as raised:
        mnist.read_data_sets(str(tmp_path))
    assert "no t10k-labels-idx1-ubyte" in str(raised.value)
    assert "no train" not in str(raised.value)
    assert str(tmp_path) in str(raised.value)


def test_no_images_for_validation_have_a_shape(tmp_path: Path) -> None:
    """As TensorFlow 1.15.5 has them."""
    make_mnist.write_files(tmp_path, compress=True)
    sets = mnist.read_data_sets(str(tmp_path), validation_size=0)
    assert (sets.train.images.shape, sets.validation.images.shape) == ((20, 6), (0, 6))


def test_the_validation_size_must_fit(tmp_path: Path) -> None:
    make_mnist.write_files(tmp_path, compress=True)
    with pytest.raises(ValueError, match=r"between 0 and 20\. Received: 5000"):
        mnist.read_data_sets(str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"\x00\x00\x08\x01\x00\x00\x00\x05abc", b"\x1f\x8bnothing", b"x" * 100])
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    make_mnist.write_files(tmp_path, compress=False)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(content)
    with pytest.raises(BridgeError, match="train-labels-idx1-ubyte is not the MNIST file"):
        mnist.read_data_sets(str(tmp_path), validation_size=0)


def test_types_are_checked() -> None:
    with pytest.raises(TypeError, match="expected uint8 or float32"):
        mnist.DataSet(np.zeros((1, 2, 2, 1)), np.zeros(1), dtype=tf.int32)
    with pytest.raises(ValueError, match="2 images and 1 labels"):
        mnist.DataSet(np.zeros((2, 2, 2, 1)), np.zeros(1))


def test_it_is_imported_by_its_name_and_leaves_no_trace() -> None:
    found: list[Any] = []
    with example_modules():
        from tensorflow.examples.tutorials.mnist import input_data

        found.append(input_data)
    assert found == [mnist]
    assert "tensorflow.examples" not in sys.modules
    assert not hasattr(tf, "examples")
