"""Estimator.train on the modern path."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.compat.digest import batch_digest
from estimator_bridge.modern import model_graph
from estimator_bridge.modern.callbacks.base import Callback, Progress, Timer
from estimator_bridge.modern.callbacks.checkpoint import with_saver
from estimator_bridge.modern.callbacks.from_hooks import callbacks_for
from estimator_bridge.modern.callbacks.logs import LossLogger, NanGuard, StepCounter
from estimator_bridge.modern.callbacks.stop import StopAtStep
from estimator_bridge.modern.callbacks.summaries import SummarySaver
from estimator_bridge.modern.inputs import read_ahead
from estimator_bridge.modern.loop import MAX_STEPS_PER_CALL, NEVER, Ran, StepLoop
from estimator_bridge.modern.model_graph import ModelGraph, v1
from estimator_bridge.modern.strategies import Distribution
from estimator_bridge.modern.transplant import Transplant

logging = v1.logging


def train(
    estimator: Any,
    input_fn: Callable[..., Any],
    *,
    distribution: Distribution,
    hooks: Sequence[Any] = (),
    steps: int | None = None,
    max_steps: int | None = None,
    saving_listeners: Sequence[Any] = (),
    callbacks: Sequence[Callback] = (),
    audited: bool = False,
) -> None:
    """Trains as ``Estimator.train`` does, and leaves the checkpoints that it would leave.

    Args:
        estimator: whose model_fn, config and model_dir to use.
        input_fn, hooks, steps, max_steps, saving_listeners: as ``Estimator.train`` takes them.
        distribution: the strategy and the share of its replicas.
        callbacks: in addition to those that the config and the hooks amount to.
        audited: give the callbacks a digest of each batch.

    Raises:
        NotSupportedError: for what cannot be transplanted, before anything is trained.
    """
    latest = tf.train.latest_checkpoint(estimator.model_dir)
    model = model_graph.build(estimator, input_fn, model_graph.TRAIN, latest, distribution.replicas, distribution.split)
    summary = _add_summaries(model)
    own = _callbacks(model, estimator.config, hooks, saving_listeners, summary)
    chosen = [StopAtStep(steps, max_steps), *own, *callbacks]
    report = list({tensor.name: tensor for callback in chosen for tensor in callback.report}.values())
    with distribution.strategy.scope():
        transplant = Transplant(model, report, distribution.split)
    dataset = model.pipeline.dataset()
    if audited:
        dataset = dataset.map(lambda *batch: (*batch, _digest_column(batch)))
    logging.info("%s", distribution.describe())
    iterator = iter(read_ahead(dataset))
    loop = StepLoop(transplant, iterator, distribution, [tensor.dtype for tensor in report], audited)
    _run(transplant, loop, chosen, [tensor.name for tensor in report])


def _run(transplant: Transplant, loop: StepLoop, callbacks: Sequence[Callback], report_names: Sequence[str]) -> None:
    step = int(transplant.global_step.numpy())
    for callback in callbacks:
        callback.begin(transplant, step)
    loss: Any = None
    pace = Pace()
    while True:
        stops = [callback.next_stop(step) for callback in callbacks]
        until = min((stop for stop in stops if stop is not None and stop > step), default=NEVER)
        reporting = [stop or step for callback, stop in zip(callbacks, stops, strict=True) if callback.report]
        ran = pace.run(loop, until, min(reporting, default=NEVER))
        if not len(ran.losses):
            break
        loss = ran.losses[-1]
        step = _advanced(transplant, step)
        report = dict(zip(report_names, ran.report, strict=True)) if ran.report is not None else {}
        progress = Progress(step, ran.losses, ran.digests, report)
        stopping = [callback.after(progress) for callback in callbacks]  # every callback sees every progress
        if any(stopping) or ran.ended:
            break
    if loss is None:
        logging.warn("Training made no steps: the input is empty.")
    for callback in callbacks:
        callback.end(step)
    logging.info("Loss for final step: %s.", loss)


class Pace:
    """How many steps to run in one call: so many that Python does not matter, so few that clocks and Ctrl-C are heard."""

    def __init__(self, seconds: float = 2.0) -> None:
        self._seconds = seconds
        self._steps = MAX_STEPS_PER_CALL

    def run(self, loop: StepLoop, until: int, report_from: int) -> Ran:
        """``loop.run`` with a number of steps that the last call suggests."""
        start = time.monotonic()
        ran = loop.run(self._steps, until, report_from)
        per_step = (time.monotonic() - start) / max(1, len(ran.losses))
        self._steps = max(1, min(MAX_STEPS_PER_CALL, int(self._seconds / per_step)))
        return ran


def _advanced(transplant: Transplant, step: int) -> int:
    """The global step as the graph counts it, which need not be one a step."""
    now = int(transplant.global_step.numpy())
    if now == step:
        logging.log_first_n(logging.WARN, "The train_op does not increase the global step (still %d).", 5, step)
    return now


def _callbacks(model: ModelGraph, config: Any, hooks: Sequence[Any], listeners: Sequence[Any], summary: Any) -> list[Callback]:
    asked = with_saver([*hooks, *model.spec.training_hooks, *model.spec.training_chief_hooks], model, config, listeners)
    chosen: list[Callback] = [NanGuard(), *callbacks_for(asked, model, config)]
    if config.log_step_count_steps:
        chosen += [
            LossLogger(config.log_step_count_steps),
            StepCounter(Timer(steps=config.log_step_count_steps), config.model_dir),
        ]
    if config.save_summary_steps and summary is not None:
        chosen.append(SummarySaver(summary, Timer(steps=config.save_summary_steps), config.model_dir))
    return chosen


def _add_summaries(model: ModelGraph) -> Any:
    """Estimator adds a summary of the loss where there is none, and merges all."""
    with model.graph.as_default():
        if not any(summary.op.name == "loss" for summary in v1.get_collection(v1.GraphKeys.SUMMARIES)):
            v1.summary.scalar("loss", model.spec.loss)
        v1.add_to_collection(v1.GraphKeys.LOSSES, model.spec.loss)
        if model.spec.scaffold.summary_op is not None:
            return model.spec.scaffold.summary_op
        return v1.train.Scaffold.get_or_default("summary_op", v1.GraphKeys.SUMMARY_OP, v1.summary.merge_all)


def _digest_column(batch: Sequence[Any]) -> Any:
    """The digest once for each row, so that it is split with the batch."""
    rows = tf.shape(batch[0])[:1] if batch[0].shape.rank else tf.constant([1])
    return tf.fill(rows, batch_digest(batch))
