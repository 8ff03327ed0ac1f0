"""A comparison moves an Estimator's folder, and nothing else of its configuration."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from estimator_bridge import legacy

legacy.install()

import tensorflow as tf  # noqa: E402 -- install() gives it Estimator

from estimator_bridge.legacy.contrib.learn.run_config import RunConfig  # noqa: E402
from estimator_bridge.parity.model_dirs import redirect  # noqa: E402


def test_learn_runner_knows_its_configuration_in_another_folder(tmp_path: Path) -> None:
    from tensorflow_estimator.python.estimator import estimator

    config = RunConfig(model_dir=str(tmp_path / "asked"))
    ours = mock.patch.object(
        estimator, "maybe_overwrite_model_dir_and_session_config", estimator.maybe_overwrite_model_dir_and_session_config
    )
    exports = mock.patch.object(estimator.Estimator, "_export_all_saved_models", estimator.Estimator._export_all_saved_models)
    with ours, exports:  # redirect() lasts for the process
        redirect(tmp_path / "side")
        made = tf.compat.v1.estimator.Estimator(lambda features, labels, mode: None, config=config)

    assert made.model_dir == str(tmp_path / "side" / "model-0")
    assert made.config.uid() == config.uid()
