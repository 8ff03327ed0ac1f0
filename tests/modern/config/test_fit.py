"""Settings that a call of ``fit`` does not use are named, each with its reason."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge.compat.config.settings import flatten, unflatten
from estimator_bridge.modern.config.fit import prepare_fit


@pytest.mark.parametrize(
    ("settings", "has_checkpoint", "has_validation", "unused"),
    [
        ({"checkpoint.max_to_keep": 3}, False, False, {"checkpoint.max_to_keep": "no checkpoint to save was given"}),
        (
            {"checkpoint.max_to_keep": 3},
            True,
            False,
            {"checkpoint.max_to_keep": "neither checkpoint.interval_steps nor checkpoint.interval_secs says when to save"},
        ),
        ({"evaluation.steps": 2}, False, False, {"evaluation.steps": "no validation data were given"}),
        (
            {"evaluation.steps": 2, "evaluation.name": "holdout"},
            False,
            True,
            {"evaluation.name": "without a model_dir no events are written"},
        ),
        (
            {"training.global_batch_size": 8},
            False,
            False,
            {"training.global_batch_size": "the dataset that fit gets is batched already"},
        ),
    ],
)
def test_a_setting_that_fit_does_not_use_has_a_reason(
    settings: dict[str, Any], has_checkpoint: bool, has_validation: bool, unused: dict[str, str]
) -> None:
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[2])])
    model.compile("sgd", "mse")
    checkpoint = tf.train.Checkpoint(model=model) if has_checkpoint else None
    data = tf.data.Dataset.from_tensors((tf.ones([2, 2]), tf.ones([2, 1]))) if has_validation else None
    config = unflatten(settings)
    assert prepare_fit(config, flatten(config), model, checkpoint, data).without_effect == unused
