"""TrainSpec and EvalSpec, and the objects that they take: session hooks, the factories of early stopping, and exporters."""

from typing import Any

from estimator_bridge.compat.config.tables.build import approximate, dropped, exact, manual, part_rule, zero_is_all
from estimator_bridge.compat.rules import ConversionRule, Fidelity, RuleTable

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


EVAL_SPEC = RuleTable(
    "eval_spec",
    "EvalSpec",
    (
        manual("input_fn", "tf.keras.Model.fit(validation_data=dataset)", "Code: fit takes the dataset that input_fn returns."),
        zero_is_all("steps", "evaluation.steps", "tf.keras.Model.fit(validation_steps=n)", 100, 0,
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


_THRESHOLD = {"metric_name": "monitor", "threshold": "threshold", "min_steps": "min_steps", "eval_dir": "eval_dir"}
_WHEN = (
    "It stops after the same evaluation, and checks right after each; the hook checked every run_every_secs or run_every_steps, and "
    "trained on until then. Evaluations of earlier runs count, as with the hook, if eval_dir or model_dir is known."
)
_COUNTS = f"{_WHEN} Steps are counted; the patience of tf.keras.callbacks.EarlyStopping counts evaluations, and starts again with each run."


def _patience(verb: str) -> dict[str, str]:
    return {
        "metric_name": "monitor",
        f"max_steps_without_{verb}": "max_steps",
        "min_steps": "min_steps",
        "eval_dir": "eval_dir",
    }


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

_CODE = "serving_input_receiver_fn and assets_extra stay code: a tf.function's signature, and files copied beside the model."
_NAMES = {"name": "name", "exports_to_keep": "exports_to_keep"}

EXPORTERS = RuleTable(
    "exporters",
    "Exporters",
    (
        part_rule("FinalExporter", "ExportAtEnd", "tf.saved_model.save in on_train_end", {"name": "name"}, {"name": "final"},
                  where="exporters", note=_CODE),
        part_rule("LatestExporter", "ExportLatest", "tf.saved_model.save in on_test_end", _NAMES,
                  {"name": "latest", "exports_to_keep": 3}, where="exporters", note=f"{_CODE} Our callback deletes old exports."),
        part_rule("BestExporter", "ExportBest", "tf.saved_model.save in on_test_end", _NAMES, {"name": "best", "exports_to_keep": 3},
                  defaults={"name": "best_exporter"}, where="exporters", note=f"{_CODE} Best is the lowest validation loss; the exporter's own compare_fn stays code."),
        manual("Exporter", "tf.keras.callbacks.Callback", "The base of a script's own exporters: export() becomes on_test_end."),
        manual("serving_input_receiver_fn", "tf.function(input_signature=...)", "Code: placeholders become the signature's TensorSpecs."),
        manual("assets_extra", "tf.io.gfile.copy", "Code: copy the files to assets.extra/ after the save."),
        manual("compare_fn", "tf.keras.callbacks.Callback", "Code: it compares two results; the callback keeps the better."),
        dropped("as_text", "SavedModels as text were for reading; saved_model_cli shows a binary one."),
        dropped("event_file_pattern", "Where BestExporter read earlier results; the callback keeps the best result itself."),
    ),
    about="Every public Exporter, and the arguments that they share. A value is the exporter's arguments by name.",
)  # fmt: skip
