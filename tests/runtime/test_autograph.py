"""Keras' own functions are called as they are, on each TensorFlow, once anything of ours has begun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tf_keras
from tensorflow.python.autograph.core import config
from tensorflow.python.autograph.impl import conversion

from estimator_bridge.compat.config.model import Devices, ModernConfig
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.runtime.autograph import leave_tf_keras_alone


def apply_a_config() -> None:
    apply(ModernConfig(devices=Devices(soft_placement=True)))


@pytest.mark.parametrize("begin", [leave_tf_keras_alone, apply_a_config])
def test_tf_keras_is_a_library(begin: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    others = tuple(rule for rule in config.CONVERSION_RULES if "tf_keras" not in str(rule))
    monkeypatch.setattr(config, "CONVERSION_RULES", others)
    assert not conversion.is_allowlisted(tf_keras.Model.fit), "as TensorFlow 2.15 comes"

    for _ in range(2):
        begin()
        assert conversion.is_allowlisted(tf_keras.Model.fit)
        assert len(config.CONVERSION_RULES) == len(others) + 1
    assert not conversion.is_allowlisted(test_tf_keras_is_a_library), "a script's own functions are no library's"
