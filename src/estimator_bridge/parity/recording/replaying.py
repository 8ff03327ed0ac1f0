"""Gives a side that follows a recorded one its batches and initial values."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.distribution.input_sharding import with_context
from estimator_bridge.parity.recording.batches import replay
from estimator_bridge.parity.recording.folders.model_dirs import install_checkpoint, one_task
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.runtime.estimator_calls import EvaluateCall, PredictCall, TrainCall

_MODES = {TrainCall: "train", EvaluateCall: "eval", PredictCall: "infer"}


def with_recorded_batches(recorded: Trace, estimator: Any, call: Any, name: str) -> Any:
    """Returns a call with the batches that were recorded for it; the call itself if there are none.

    Args:
        recorded: Trace of the recorded side.
        estimator: Estimator that is called.
        call: The call.
        name: Name of the call.
    """
    path = recorded.batches(name)
    if not path.exists():
        return call
    given, config = call.input_fn, estimator.config
    strategy = {TrainCall: config.train_distribute, EvaluateCall: config.eval_distribute}.get(type(call))
    workers = config.num_worker_replicas if isinstance(call, TrainCall) else 1
    if workers > 1:
        given = with_context(given, workers, config.global_id_in_cluster, workers)
    elif strategy is not None:
        given = with_context(given, 1, 0, strategy.num_replicas_in_sync)
    return dataclasses.replace(call, input_fn=replay(path, lambda: estimator._call_input_fn(given, _MODES[type(call)])))


def install_start(recorded: Trace, estimator: Any, name: str, moment: str) -> None:
    """Gives a model_dir without a checkpoint the values from which the recorded side started a training.

    Args:
        recorded: Trace of the recorded side.
        estimator: Estimator that is trained.
        name: Name of the call.
        moment: Name of the values: "initial", or "start" for a free run.
    """
    initial = recorded.values(name, moment)
    folder = Path(estimator.model_dir)
    with one_task(folder.parent):
        if tf.train.latest_checkpoint(estimator.model_dir) is None and tf.io.gfile.exists(f"{initial}.index"):
            step = int(tf.train.load_variable(initial, "global_step"))
            install_checkpoint(initial, folder, f"model.ckpt-{step}")
