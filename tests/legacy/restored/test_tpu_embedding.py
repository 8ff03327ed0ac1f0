"""Descriptions of embedding tables: the same parameters, defaults and checks as TensorFlow 2.15's own."""

import importlib.metadata
from collections.abc import Callable

import pytest

Run = Callable[..., str]
NATIVE = importlib.metadata.version("tensorflow").startswith("2.15.")


@pytest.mark.skipif(not NATIVE, reason="compares with the classes that TensorFlow 2.15 has")
def test_everything_is_as_in_tensorflow_2_15(run_python: Run) -> None:
    run_python("tpu_embedding.py", "everything_is_as_in_tensorflow_2_15")


def test_public_names_and_checks(run_python: Run) -> None:
    run_python("tpu_embedding.py", "public_names_and_checks")
