"""Session hooks, and the factories of early stopping."""

from __future__ import annotations

from estimator_bridge.compat.config.tables.build import dropped, manual
from estimator_bridge.compat.config.tables.parts import part_rule
from estimator_bridge.compat.rules import ConversionRule, Fidelity, RuleTable

_TENSORS = "The hook names tensors of the graph; a callback sees only the loss and the metrics."
_SAVER = {"checkpoint_dir": "directory", "save_steps": "every_steps", "save_secs": "every_secs"}

HOOKS = RuleTable(
    "hooks",
    "Session hooks",
    (
        part_rule("StopAtStepHook", "StopAtStep", "model.stop_training = True", {"num_steps": "num_steps", "last_step": "last_step"},
                  {"last_step": 20}, fidelity=Fidelity.EXACT),
        part_rule("CheckpointSaverHook", "SaveCheckpoint", "tf.train.CheckpointManager.save", _SAVER,
                  {"checkpoint_dir": "saved", "save_steps": 10},
                  note="Object-based checkpoints; listeners, and the hook's own Saver or Scaffold, stay code."),
        manual("CheckpointSaverListener", "tf.keras.callbacks.Callback", "Code: call its methods before and after the save in a callback."),
        part_rule("LoggingTensorHook", "LogValues", "tf.keras.callbacks.LambdaCallback",
                  {"every_n_iter": "every_steps", "every_n_secs": "every_secs", "at_end": "at_end"}, {"every_n_iter": 10},
                  note=_TENSORS),
        part_rule("StepCounterHook", "StepsPerSecond", "tf.summary.write in a callback",
                  {"every_n_steps": "every_steps", "every_n_secs": "every_secs", "output_dir": "log_dir"}, {"every_n_steps": 10},
                  defaults={"every_steps": 100},
                  note="Steps per second, measured by our callback instead of by the session's runs."),
        part_rule("NanTensorHook", "StopOnNan", "tf.keras.callbacks.TerminateOnNaN", {"fail_on_nan_loss": "fail"},
                          {"fail_on_nan_loss": True},
                          note="It watches the loss that fit reports; TerminateOnNaN stops and does not raise, so our callback raises."),
        part_rule("SummarySaverHook", "WriteSummaries", "tf.summary.write in a callback",
                  {"save_steps": "every_steps", "save_secs": "every_secs", "output_dir": "log_dir"}, {"save_steps": 10},
                  note="The callback writes the loss and the metrics; a model_fn's own summaries move into the model."),
        part_rule("ProfilerHook", "Profile", "tf.profiler.experimental.start",
                  {"save_steps": "every_steps", "save_secs": "every_secs", "output_dir": "log_dir"},
                  {"save_steps": 5}, note="TensorBoard's profiler replaces timeline-*.json; it records one step each time."),
        manual("FinalOpsHook", "tf.keras.callbacks.Callback.on_train_end", "Code: it runs operations of the graph after the last step."),
        dropped("GlobalStepWaiterHook", "A worker waited for the others to reach a step; strategies start together."),
        manual("FeedFnHook", "tf.data.Dataset", "Code: it fed placeholders; what it returned becomes part of the dataset."),
        manual("SessionRunHook", "tf.keras.callbacks.Callback", "The base of a script's own hooks: before_run and after_run become "
               "on_train_batch_begin and on_train_batch_end, without a session to ask for tensors."),
        part_rule("InMemoryEvaluatorHook", "EvaluateEvery", "tf.keras.Model.evaluate in a callback",
                  {"steps": "steps", "name": "name", "every_n_iter": "every_steps"}, {"every_n_iter": 10, "steps": 2},
                  defaults={"every_steps": 100},
                  note="Its estimator and input_fn are code: the callback takes the validation dataset."),
        manual("CheckpointInputPipelineHook", "tf.train.Checkpoint(iterator=iter(dataset))",
               "The input's position saved beside the checkpoint: fit makes the iterator itself, so track it in your own loop."),
    ),
    about="Every public subclass of SessionRunHook. A value is the hook's constructor arguments by name.",
)  # fmt: skip


def _early(name: str, kind: str, mode: str, names: dict[str, str], example: dict[str, object], note: str) -> ConversionRule:
    return part_rule(name, kind, "model.stop_training = True in a callback", names, example, constants={"mode": mode},
                     covered=("run_every_secs", "run_every_steps"), note=note)  # fmt: skip


_PATIENCE = {
    "metric_name": "monitor", "max_steps_without_increase": "max_steps", "max_steps_without_decrease": "max_steps",
    "min_steps": "min_steps", "eval_dir": "eval_dir",
}  # fmt: skip
_THRESHOLD = {"metric_name": "monitor", "threshold": "threshold", "min_steps": "min_steps", "eval_dir": "eval_dir"}
_WHEN = (
    "It stops after the same evaluation, and checks right after each; the hook checked every run_every_secs or run_every_steps, and "
    "trained on until then. Evaluations of earlier runs count, as with the hook, if eval_dir or model_dir is known."
)
_COUNTS = f"{_WHEN} Steps are counted; the patience of tf.keras.callbacks.EarlyStopping counts evaluations, and starts again with each run."


def _patience(verb: str) -> dict[str, str]:
    return {key: to for key, to in _PATIENCE.items() if verb in key or "without" not in key}


EARLY_STOPPING = RuleTable(
    "early_stopping",
    "Early stopping",
    (
        _early("stop_if_no_increase_hook", "StopWithoutImprovement", "max", _patience("increase"),
               {"metric_name": "accuracy", "max_steps_without_increase": 100}, _COUNTS),
        _early("stop_if_no_decrease_hook", "StopWithoutImprovement", "min", _patience("decrease"),
               {"metric_name": "loss", "max_steps_without_decrease": 100}, _COUNTS),
        _early("stop_if_higher_hook", "StopAtThreshold", "max", _THRESHOLD, {"metric_name": "accuracy", "threshold": 0.9}, _WHEN),
        _early("stop_if_lower_hook", "StopAtThreshold", "min", _THRESHOLD, {"metric_name": "loss", "threshold": 0.1}, _WHEN),
        manual("make_early_stopping_hook", "tf.keras.callbacks.Callback", "Code: call should_stop_fn in on_epoch_end or on_test_end."),
        part_rule("make_stop_at_checkpoint_step_hook", "StopAtStep", "model.stop_training = True", {"last_step": "last_step"},
                  {"last_step": 20}, inverse=False,
                  note="Workers waited for the checkpoint of that step; with a strategy all stop at the step itself."),
    ),
    about="The factories of tf.estimator.experimental. A value is the factory's arguments by name, without the estimator.",
)  # fmt: skip
