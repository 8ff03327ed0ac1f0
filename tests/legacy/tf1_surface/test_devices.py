"""The answer to a question about the build, from which scripts choose the layout of images."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator_bridge.legacy.tf1_surface.devices import is_built_with_cuda


@pytest.mark.parametrize(
    ("built", "devices", "answer"), [(True, [], False), (True, ["GPU:0"], True), (False, [], False), (False, ["GPU:0"], False)]
)
def test_it_needs_a_gpu(built: bool, devices: list[str], answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: built)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: devices)
    assert is_built_with_cuda() is answer
