"""Rows about hooks, which become callbacks."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from estimator_bridge.compat.config.output import callbacks
from estimator_bridge.compat.config.tables import EARLY_STOPPING, HOOKS
from tests.modern.config.programs.fits import Fits, Seen, settings_of


def stopping(fit: Fits) -> Seen:
    at_step = fit(settings_of(HOOKS, "StopAtStepHook"), epochs=5).step
    at_checkpoint = fit(settings_of(EARLY_STOPPING, "make_stop_at_checkpoint_step_hook"), epochs=5).step
    return {
        "hooks.StopAtStepHook": at_step == 20,
        "early_stopping.make_stop_at_checkpoint_step_hook": at_checkpoint == 20,
    }


def saving_and_logging(fit: Fits) -> Seen:
    os.chdir(fit.folder)  # the examples have relative paths
    fit(settings_of(HOOKS, "CheckpointSaverHook"))
    with _logged() as lines:
        fit(settings_of(HOOKS, "LoggingTensorHook"))
    steps = [line.split(":")[0] for line in lines if line.startswith("step ")]
    return {
        "hooks.CheckpointSaverHook": len(list(Path("saved").glob("*.index"))) == 5,
        "hooks.LoggingTensorHook": steps == ["step 10", "step 20", "step 30", "step 40"],
    }


def summaries(fit: Fits) -> Seen:
    counted = fit(settings_of(HOOKS, "StepCounterHook"))
    saved = fit(settings_of(HOOKS, "SummarySaverHook"))
    profiled = fit(settings_of(HOOKS, "ProfilerHook"))
    evaluated = fit(settings_of(HOOKS, "InMemoryEvaluatorHook") | {"evaluation.steps": 2}, validation=fit.check.repeat())
    return {
        "hooks.StepCounterHook": ("global_step/sec", 10) in counted.events(),
        "hooks.SummarySaverHook": [step for tag, step in saved.events() if tag == "loss"] == [10, 20, 30, 40],
        "hooks.ProfilerHook": any(name.endswith("xplane.pb") for name in profiled.files()),
        "hooks.InMemoryEvaluatorHook": {step for _, step in evaluated.events("eval")} >= {10, 30},
    }


def nan(fit: Fits) -> Seen:
    callback = callbacks.StopOnNan(**settings_of(HOOKS, "NanTensorHook")["callbacks"][0].arguments)
    try:
        callback.set_model(fit.model)
        callback.on_train_batch_end(0, {"loss": float("nan")})
    except FloatingPointError:
        return {"hooks.NanTensorHook": True}
    return {"hooks.NanTensorHook": False}


@contextmanager
def _logged() -> Iterator[list[str]]:
    """TensorFlow's log, with what it says for information."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    tf.get_logger().addHandler(handler)
    tf.get_logger().setLevel("INFO")
    yield lines
    tf.get_logger().setLevel("ERROR")
