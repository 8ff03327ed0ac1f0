"""Evaluator's process: a SidecarEvaluator that does what EvalSpec asked for."""

from __future__ import annotations

from typing import Any

from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.output.callback_calls import evaluator_call
from estimator_bridge.compat.config.output.calls import make
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.modern.config.fit.callbacks import differences, in_force, model_folder, scope
from estimator_bridge.modern.config.runtime_settings import check

_ORIGINS = (
    ("steps", "evaluation.steps"),
    ("log_dir", "evaluation.name"),
    ("start_delay_secs", "evaluation.start_delay_secs"),
    ("throttle_secs", "evaluation.throttle_secs"),
    ("checkpoint_dir", "training.model_dir"),
    ("max_evaluations", "training.max_steps"),
)


def sidecar_evaluator(config: ModernConfig, model: Any, data: Any) -> Any:
    """Makes the evaluator of each checkpoint in model_dir, up to max_steps.

    Args:
        config: Modern configuration: its evaluation and training sections, and its exporters.
        model: Model, compiled under the strategy.
        data: A dataset.

    Returns:
        A ``tf_keras.utils.SidecarEvaluator``; its ``start()`` ends with the checkpoint of max_steps, and without one never.

    Raises:
        BridgeError: There is no model_dir, or a setting is not in force.
    """
    known = scope(model=model, validation_data=data)
    call = evaluator_call(config, model_folder(config, "The evaluator"))
    made = make(call, known)
    settings = flatten(config)
    held = in_force(_ORIGINS, differences(made, call, known), settings)
    check(settings, {name: value for name, value in held.items() if name in settings})
    return made
