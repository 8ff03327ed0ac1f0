"""The examples in the docstrings of contrib's modules, which can be imported once legacy.install() has been called."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from estimator_bridge import legacy

ROOT = Path(__file__).parents[3]
MODULES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in (ROOT / "legacy" / "contrib").rglob("*.py")
)


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    legacy.install()

    failed, _ = doctest.testmod(importlib.import_module(f"estimator_bridge.{module}"), optionflags=doctest.ELLIPSIS)

    assert failed == 0


def test_there_are_examples() -> None:
    legacy.install()

    hparams = importlib.import_module("estimator_bridge.legacy.contrib.training.hparams")

    assert doctest.testmod(hparams).attempted >= 3
