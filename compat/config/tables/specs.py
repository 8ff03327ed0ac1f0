"""TrainSpec and EvalSpec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.tables.build import approximate, exact, manual, mapped
from estimator_bridge.compat.rules import Conversion, Fidelity, RuleTable

EVAL_DEFAULTS: dict[str, Any] = {"steps": 100, "throttle_secs": 600}
"""Defaults of an EvalSpec."""
EVALUATOR_DEFAULTS: dict[str, Any] = {"start_delay_secs": 120}
"""Further defaults in an evaluator's process; other processes do not wait before the first evaluation."""

TRAIN_SPEC = RuleTable(
    "train_spec",
    "TrainSpec",
    (
        manual("input_fn", "tf.keras.Model.fit(dataset)", "Code: fit takes the dataset that input_fn returns, made under the strategy."),
        exact("max_steps", "training.max_steps", "tf.keras.Model.fit(steps_per_epoch, epochs), less the restored step", 1000,
              note="The global step at which training ends, not a number of steps to train."),
        manual("hooks", "tf.keras.callbacks.Callback", "One by one: see Session hooks."),
        manual("saving_listeners", "tf.keras.callbacks.Callback", "Code: call the listener before and after the manager's save in a callback."),
    ),
)  # fmt: skip


def _steps(value: int | None) -> Conversion:
    return Conversion({"evaluation.steps": value or "all"})


def _steps_back(settings: Mapping[str, Any]) -> Any:
    steps = settings.get("evaluation.steps")
    return 0 if steps == "all" else steps


EVAL_SPEC = RuleTable(
    "eval_spec",
    "EvalSpec",
    (
        manual("input_fn", "tf.keras.Model.fit(validation_data=dataset)", "Code: fit takes the dataset that input_fn returns."),
        mapped("steps", "tf.keras.Model.fit(validation_steps=n)", Fidelity.EXACT, _steps, _steps_back, 100, 0,
               note="None (0 in a file) evaluates the whole input on both sides."),
        approximate("name", "evaluation.name", "a sub-folder of the events", "holdout",
                    note="The callback writes to eval_NAME/ in model_dir, as an Estimator does; Keras' own TensorBoard writes to validation/."),
        manual("hooks", "tf.keras.callbacks.Callback", "One by one: see Session hooks; on_test_batch_end sees evaluation's batches."),
        manual("exporters", "tf.keras.callbacks.Callback", "One by one: see Exporters."),
        approximate("start_delay_secs", "evaluation.start_delay_secs", "a callback that checks the clock", 120,
                    note="Only an evaluator's process waited, and still does; validation in fit comes at the end of an epoch, the first after the delay."),
        approximate("throttle_secs", "evaluation.throttle_secs", "a callback that checks the clock", 600,
                    note="validation_freq counts epochs, so our callback checks the clock when a checkpoint was saved."),
    ),
)  # fmt: skip
