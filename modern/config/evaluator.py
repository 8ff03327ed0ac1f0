"""An evaluator's process: a SidecarEvaluator that does what EvalSpec said."""

from __future__ import annotations

from typing import Any

from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.modern.config.fit_arguments import exporter, folder_of, model_folder
from estimator_bridge.modern.config.runtime_settings import check


def sidecar_evaluator(config: ModernConfig, model: Any, data: Any) -> Any:
    """Evaluates each checkpoint in model_dir as it comes, up to max_steps.

    Args:
        config: its evaluation and training sections, and its exporters.
        model: compiled under the strategy.
        data: a dataset.

    Returns:
        A ``tf_keras.utils.SidecarEvaluator``; its ``start()`` ends with the checkpoint of max_steps, and without one never.

    Raises:
        BridgeError: without a model_dir, and for a setting that is not in force.
    """
    from estimator_bridge.compat.config.output import callbacks

    own, last, folder = config.evaluation, config.training.max_steps, model_folder(config, "the evaluator")
    sidecar = callbacks.Sidecar(folder_of(config, own.name), own.throttle_secs or 0.0, last)
    made = callbacks.DelayedEvaluator(
        model,
        data,
        folder,
        steps=None if own.steps == "all" else own.steps,
        max_evaluations=last,  # a checkpoint's number is its step
        callbacks=[*(exporter(part, config) for part in config.exporters), sidecar],
        start_delay_secs=own.start_delay_secs or 0.0,
    )
    told = {
        "evaluation.sidecar": True,
        "evaluation.steps": "all" if made.steps is None else made.steps,
        "evaluation.name": sidecar.log_dir.removeprefix(f"{folder}/eval").removeprefix("_"),
        "evaluation.start_delay_secs": made.start_delay_secs,
        "evaluation.throttle_secs": sidecar.throttle_secs,
        "training.model_dir": made.checkpoint_dir,
        "training.max_steps": made.max_evaluations,
    }
    settings = flatten(config)
    check(settings, {name: value for name, value in told.items() if name in settings})
    return made
