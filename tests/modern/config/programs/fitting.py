"""Rows about a training's length, its checkpoints, summaries, evaluations and exports."""

from __future__ import annotations

from estimator_bridge.compat.config.output import callbacks
from estimator_bridge.compat.config.tables import EXPORTERS
from tests.modern.config.programs.fits import Fits, Fitted, Seen, settings_of


def checkpoints(fit: Fits) -> Seen:
    every_20 = fit(
        {"training.max_steps": 50, "checkpoint.interval_steps": 20, "checkpoint.max_to_keep": "all", "evaluation.steps": 2}
    )
    every_10 = {"training.max_steps": 50, "checkpoint.interval_steps": 10}
    resumed = fit(every_10 | {"checkpoint.max_to_keep": 2}, start=30)
    # every hundred millionth of an hour: all are kept, whatever max_to_keep says
    all_kept = fit(every_10 | {"checkpoint.max_to_keep": 1, "checkpoint.keep_every_n_hours": 1e-8})
    by_time = fit({"checkpoint.interval_secs": 0.0001, "checkpoint.max_to_keep": "all"})
    steps = sorted(int(name.split("-")[1].split(".")[0]) for name in _indices(every_20))
    model_dir = all_kept.in_force["training.model_dir"] == all_kept.config.training.model_dir
    return {
        "train_spec.max_steps": every_20.step == 50,
        "run_config.save_checkpoints_steps": steps == [0, 20, 40, 50],
        "absolute": resumed.step == 50,
        "run_config.keep_checkpoint_max": len(_indices(resumed)) == 2,
        "run_config.keep_checkpoint_every_n_hours": len(_indices(all_kept)) == 6,
        "run_config.model_dir": model_dir,
        "tf_config.model_dir": model_dir,
        "run_config.save_checkpoints_secs": len(_indices(by_time)) > 3,
    }


def summaries_and_loops(fit: Fits) -> Seen:
    tags = {tag for tag, _ in fit({"summaries.update_freq": 10, "summaries.speed_freq": 10}).events()}
    ran = fit({"training.steps_per_execution": 5}).model._steps_per_execution
    return {
        "run_config.save_summary_steps": "loss" in tags,
        "run_config.log_step_count_steps": "global_step/sec" in tags,
        "tpu_config.iterations_per_loop": int(ran.numpy() if ran is not None else 0) == 5,
    }


def evaluation(fit: Fits) -> Seen:
    endless = fit.check.repeat()
    named = fit({"evaluation.steps": 2, "evaluation.name": "holdout"}, validation=endless)
    to_the_end = fit({"evaluation.steps": "all"}, validation=fit.check)
    later = fit({"evaluation.steps": 1, "evaluation.start_delay_secs": 120.0}, validation=endless)
    rarely = fit({"evaluation.steps": 1, "evaluation.throttle_secs": 600.0}, validation=endless)
    return {
        "eval_spec.name": len(named.events("eval_holdout")) > 0,
        "eval_spec.steps": "val_loss" in named.history.history,
        "eval_spec.steps all": "val_loss" in to_the_end.history.history,
        "eval_spec.start_delay_secs": "val_loss" not in later.history.history,
        "eval_spec.throttle_secs": len(rarely.events("eval")) == 1,
    }


def exporters(fit: Fits) -> Seen:
    seen = {}
    for name, inner, counts in (
        ("FinalExporter", "final", {1}),
        ("LatestExporter", "latest", {3}),
        ("BestExporter", "best", {1, 2, 3}),
    ):
        fitted = fit(settings_of(EXPORTERS, name) | {"evaluation.steps": 1}, validation=fit.check.repeat(), epochs=4)
        found = [folder.name for folder in (fitted.folder / "export" / inner).iterdir()]
        # named as an Estimator names them, so that its own stay the older
        seen[f"exporters.{name} by time"] = all(int(one) > 1_700_000_000 for one in found)
        seen[f"exporters.{name}"] = len(found) in counts
    return seen


def oldest_export(fit: Fits) -> Seen:
    exports = fit.folder / "export"
    (exports / "1600000000").mkdir(parents=True)  # of an Estimator, in the same folder
    older = callbacks.Export(str(exports), "latest", 1)
    older.set_model(fit.model)
    older._export()
    return {"the oldest export goes first": [int(folder.name) > 1_700_000_000 for folder in exports.iterdir()] == [True]}


def _indices(fitted: Fitted) -> list[str]:
    return [name for name in fitted.files() if name.endswith(".index")]
