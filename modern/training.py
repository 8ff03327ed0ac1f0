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
from estimator_bridge.modern.callbacks.progress import shown_progress
from estimator_bridge.modern.callbacks.session_hook import HookedRun
from estimator_bridge.modern.callbacks.stop import StopAtStep
from estimator_bridge.modern.callbacks.summaries import SummarySaver
from estimator_bridge.modern.carving import Tensor
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
    stop = StopAtStep(steps, max_steps)
    chosen = [*_callbacks(model, estimator.config, hooks, saving_listeners, stop), *callbacks]
    with distribution.strategy.scope():
        transplant = Transplant(model, _report(chosen), distribution.split)
    dataset = model.pipeline.dataset()
    if audited:
        dataset = dataset.map(lambda *batch: (*batch, _digest_column(batch)))
    logging.info("%s", distribution.describe())
    if transplant.pieces > 1 and transplant.reported:
        logging.warn(
            "Summaries and logged tensors show the first replica's piece of each batch; the loss of a step is that of all."
        )
    iterator = iter(read_ahead(dataset))
    with shown_progress(stop) as bar:
        _run(transplant, lambda: StepLoop(transplant, iterator, distribution, audited), [*chosen, *bar])


def _run(transplant: Transplant, make_loop: Callable[[], StepLoop], callbacks: Sequence[Callback]) -> None:
    step = int(transplant.global_step.numpy())
    every_step = any(callback.every_step for callback in callbacks)
    loop = None
    for callback in callbacks:
        callback.begin(transplant, step)
    loss: Any = None
    pace = Pace(1 if every_step else MAX_STEPS_PER_CALL)
    while True:
        for callback in callbacks:
            callback.before()
        if len(_report(callbacks)) > len(transplant.reported):
            transplant.watch(_report(callbacks))
            loop = None
        loop = loop or make_loop()
        stops = [callback.next_stop(step) for callback in callbacks]
        until = min((stop for stop in stops if stop is not None and stop > step and not every_step), default=NEVER)
        reporting = [stop or step for callback, stop in zip(callbacks, stops, strict=True) if callback.report]
        ran = pace.run(loop, until, min(reporting, default=NEVER))
        if not len(ran.losses):
            break
        loss = ran.losses[-1]
        before, step = step, _advanced(step, ran.step)
        names = [tensor.name for tensor in transplant.reported]
        report = dict(zip(names, ran.report, strict=True)) if ran.report is not None else {}
        progress = Progress(step, ran.losses, ran.digests, report)
        stopping = [  # every callback sees every progress
            callback.after(progress)
            for callback, stop in zip(callbacks, stops, strict=True)
            if not (every_step and _jumped(before, stop, step))
        ]
        if any(stopping) or ran.ended:
            break
    if loss is None:
        logging.warn("Training made no steps: the input is empty.")
    for callback in callbacks:
        callback.end(step)
    logging.info("Loss for final step: %s.", loss)


def _report(callbacks: Sequence[Callback]) -> list[Tensor]:
    return list({tensor.name: tensor for callback in callbacks for tensor in callback.report}.values())


def _jumped(before: int, stop: int | None, after: int) -> bool:
    """True where a train_op that counts several steps at once passed a stop at which TF1's hooks do not act yet."""
    return stop is not None and before + 1 < stop <= after


class Pace:
    """How many steps to run in one call: so many that Python does not matter, so few that clocks and Ctrl-C are heard."""

    def __init__(self, most: int = MAX_STEPS_PER_CALL, seconds: float = 2.0) -> None:
        self._seconds = seconds
        self._most = self._steps = most

    def run(self, loop: StepLoop, until: int, report_from: int) -> Ran:
        """``loop.run`` with a number of steps that the last call suggests."""
        start = time.monotonic()
        ran = loop.run(self._steps, until, report_from)
        per_step = (time.monotonic() - start) / max(1, len(ran.losses))
        self._steps = max(1, min(self._most, int(self._seconds / per_step)))
        return ran


def _advanced(before: int, step: int) -> int:
    """The global step as the graph counts it, which need not be one a step."""
    if step == before:
        logging.log_first_n(logging.WARN, "The train_op does not increase the global step (still %d).", 5, step)
    return step


def _callbacks(
    model: ModelGraph, config: Any, hooks: Sequence[Any], listeners: Sequence[Any], stop: StopAtStep
) -> list[Callback]:
    """In TF1's order, except that a loss that is not a number ends the training before anything else sees it."""
    spec, every = model.spec, config.log_step_count_steps
    _add_loss_summary(model)
    run = HookedRun(model.graph, [spec.train_op, spec.loss])
    asked = [*hooks, *spec.training_hooks, *spec.training_chief_hooks]
    saver = with_saver(asked, model, config, listeners)[len(asked) :]
    chief = callbacks_for([*saver, *spec.training_chief_hooks], model, run)
    speed = [StepCounter(Timer(steps=every), config.model_dir)] if every else []
    losses = [LossLogger(every)] if every else []
    others = [*callbacks_for(hooks, model, run), stop, *losses, *callbacks_for(spec.training_hooks, model, run)]
    summary = _merged_summaries(model)  # those that hooks have added, too
    written = config.save_summary_steps and summary is not None
    summaries = [SummarySaver(summary, Timer(steps=config.save_summary_steps), config.model_dir)] if written else []
    return [NanGuard(), *chief, *speed, *summaries, *others]


def _add_loss_summary(model: ModelGraph) -> None:
    """Estimator adds a summary of the loss where there is none."""
    with model.graph.as_default():
        if not any(summary.op.name == "loss" for summary in v1.get_collection(v1.GraphKeys.SUMMARIES)):
            v1.summary.scalar("loss", model.spec.loss)
        v1.add_to_collection(v1.GraphKeys.LOSSES, model.spec.loss)


def _merged_summaries(model: ModelGraph) -> Any:
    with model.graph.as_default():
        if model.spec.scaffold.summary_op is not None:
            return model.spec.scaffold.summary_op
        return v1.train.Scaffold.get_or_default("summary_op", v1.GraphKeys.SUMMARY_OP, v1.summary.merge_all)


def _digest_column(batch: Sequence[Any]) -> Any:
    """The digest once for each row, so that it is split with the batch."""
    rows = tf.shape(batch[0])[:1] if batch[0].shape.rank else tf.constant([1])
    return tf.fill(rows, batch_digest(batch))
