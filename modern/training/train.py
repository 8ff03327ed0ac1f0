"""Estimator.train on the modern path."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.cluster.audit_records import Auditing
from estimator_bridge.cluster.preemption import EXIT_CODE, Preemption, preemption
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.compat.config.output.callback_rules import Timer
from estimator_bridge.modern.callbacks.audit import AuditReport
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.checkpoint import with_saver
from estimator_bridge.modern.callbacks.counts import EqualCounts
from estimator_bridge.modern.callbacks.from_hooks import callbacks_for
from estimator_bridge.modern.callbacks.logs import LossLogger, NanGuard, StepCounter
from estimator_bridge.modern.callbacks.progress import show_progress
from estimator_bridge.modern.callbacks.session_hook import HookedRun
from estimator_bridge.modern.callbacks.step_report import StepReport
from estimator_bridge.modern.callbacks.stop import StopAtStep
from estimator_bridge.modern.callbacks.summaries import SummarySaver
from estimator_bridge.modern.distribution.input_sharding import batch_size, common_seed, is_endless, own_share, with_context
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.distribution.worker_checks import check_equal
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.graph.input_pipeline import read_ahead, releasing
from estimator_bridge.modern.graph.model_graph import ModelGraph, v1
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.modern.training.step_loop import MAX_STEPS_PER_CALL, NEVER, PREEMPTED, REBUILD, STOP, Loop, Ran, StepLoop
from estimator_bridge.runtime.batch_digest import batch_digest

logging = v1.logging
_WRITERS = (v1.train.CheckpointSaverHook, v1.train.ProfilerHook, v1.train.StepCounterHook, v1.train.SummarySaverHook)


@releasing
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
    make_transplant: Callable[..., Transplant] = Transplant,
    make_loop: Callable[[Transplant, Any], Loop] | None = None,
) -> None:
    """Trains as ``Estimator.train`` does, and leaves the checkpoints that it would leave.

    Args:
        estimator: whose model_fn, config and model_dir to use.
        input_fn, hooks, steps, max_steps, saving_listeners: as ``Estimator.train`` takes them.
        distribution: the strategy and the share of its replicas.
        callbacks: in addition to those that the config and the hooks amount to.
        audited: give the callbacks a digest of each batch.
        make_transplant: ``Transplant`` or a subclass.
        make_loop: makes what runs the steps of a transplant over an iterator of batches; None for a ``StepLoop``.

    Raises:
        NotSupportedError: for what cannot be transplanted, before anything is trained.
        SystemExit: where a task of the cluster was told to end, once everything is saved.
    """
    latest = tf.train.latest_checkpoint(estimator.model_dir)
    seed = common_seed(input_fn, distribution)
    asking = with_context(input_fn, distribution)
    model = model_graph.build(estimator, asking, model_graph.TRAIN, latest, distribution.replicas, distribution.split, seed)
    stop = StopAtStep(steps, max_steps)
    run = HookedRun(model.graph, [model.spec.train_op, model.spec.loss])
    asked = _callbacks if distribution.worker == 0 else _workers_callbacks
    given = asked(model, run, estimator.config, hooks, saving_listeners, stop)
    counts = [EqualCounts(distribution)] if distribution.replicas > 1 else []  # before what saves
    chosen = [*counts, *given, *_told(model, estimator.config, distribution, make_loop is None), *callbacks]
    with distribution.strategy.scope():
        transplant = make_transplant(model, _report(chosen), distribution.split)
    check_equal(transplant.variables, distribution)
    dataset, share = own_share(model.pipeline.dataset(), model.pipeline, input_fn, distribution)
    endless = is_endless(dataset, distribution)
    if audited:
        dataset = dataset.map(lambda *batch: (*batch, _digest_column(batch)))
    logging.info("%s", " ".join(filter(None, [distribution.describe(batch_size(model.pipeline)), share])))
    if transplant.pieces > 1 and transplant.looks:
        logging.warn(
            "Summaries and logged tensors show the first replica's piece of each batch; the loss of a step is that of all."
        )
    iterator = iter(read_ahead(dataset))
    run.batches = None if make_loop else iterator

    def loop() -> Loop:
        return make_loop(transplant, iterator) if make_loop else StepLoop(transplant, iterator, distribution, endless, audited)

    with (
        contextlib.closing(run),
        show_progress(stop) as bar,
        preemption(distribution.together) as told,
    ):
        preempted = _run(transplant, loop, [*chosen, *bar], told)
        distribution.gather(tf.constant([0], tf.int64))  # nobody leaves, or looks for checkpoints, before the chief has saved
    if preempted:
        logging.warn("A task was told to end: all tasks end here, where everything is saved.")
        raise SystemExit(EXIT_CODE)


def _run(transplant: Transplant, make_loop: Callable[[], Loop], callbacks: Sequence[Callback], told: Preemption) -> bool:
    """Trains; all workers of a cluster leave at the same step.

    Returns:
        True where one of them was told to end.
    """
    step = int(transplant.global_step.numpy())
    for callback in callbacks:
        callback.begin(transplant, step)
    loss: Any = None
    stopping = False
    steps = _Steps(transplant, make_loop, callbacks)
    while True:
        for callback in callbacks if not stopping else ():  # another round is what the other workers are told by
            callback.before()
        stops = [callback.next_stop(step) for callback in callbacks]
        ran = steps.run(step, stops, PREEMPTED if told.asked else STOP if stopping else None)
        if _over(ran):
            break
        if not len(ran.losses) and ran.step == step:
            continue  # a worker was lost with the only step that was to run
        loss = ran.losses[-1] if len(ran.losses) else loss
        before, step = step, _advanced(step, ran.step)
        report = transplant.named(ran.report) if ran.report is not None else {}
        progress = Progress(step, ran.losses, ran.digests, report)
        asking = [  # every callback sees every progress
            callback.after(progress)
            for callback, stop in zip(callbacks, stops, strict=True)
            if not (steps.may_jump and _jumped(before, stop, step))
        ]
        stopping = any(asking)
        if ran.ended:
            break
    if loss is None:
        logging.warn("Training made no steps: the input is empty.")
    for callback in callbacks:
        callback.end(step)
    logging.info("Loss for final step: %s.", loss)
    return ran.agreed == PREEMPTED


def _over(ran: Ran) -> bool:
    """True where no step ran, and none will."""
    return not len(ran.losses) and (ran.ended or ran.agreed <= 0)


class _Steps:
    """Runs steps up to where a callback wants to see one.

    Args:
        transplant: what is trained.
        make_loop: builds the loop for what the transplant reports.
        callbacks: may ask for more to be reported.

    Attributes:
        one_by_one: a callback sees every step.
    """

    def __init__(self, transplant: Transplant, make_loop: Callable[[], Loop], callbacks: Sequence[Callback]) -> None:
        self._transplant = transplant
        self._make_loop = make_loop
        self._callbacks = callbacks
        self._loop: Loop | None = None
        self.one_by_one = any(callback.every_step for callback in callbacks)
        self._pace = Pace(1 if self.one_by_one else MAX_STEPS_PER_CALL)

    @property
    def may_jump(self) -> bool:
        """True where steps run one by one, and one may count several."""
        return self.one_by_one and self._loop is not None and not self._loop.exact

    def run(self, step: int, stops: Sequence[int | None], wish: int | None) -> Ran:
        """Runs some.

        Args:
            step: the global step so far.
            stops: where the callbacks stop.
            wish: what this worker asks for in place of steps.
        """
        wanted = _report(self._callbacks)
        grown = sum(map(len, wanted)) > sum(map(len, self._transplant.watched))
        if grown:
            self._transplant.watch(wanted)
        if self.one_by_one:
            self._transplant.ask([callback.needs_report(step + 1) for callback in self._callbacks if callback.report])
        known = self._loop is not None
        self._loop = self._loop or self._make_loop()
        until = min((stop for stop in stops if stop is not None and stop > step and not self.may_jump), default=NEVER)
        reporting = [stop or step for callback, stop in zip(self._callbacks, stops, strict=True) if callback.report]
        report_from = min(reporting, default=NEVER)
        ran = self._pace.run(self._loop, until, report_from, REBUILD if wish is None and known and grown else wish)
        if ran.agreed == REBUILD:
            self._loop = self._make_loop()
            ran = self._pace.run(self._loop, until, report_from, wish)
        return ran


def _report(callbacks: Sequence[Callback]) -> list[list[Tensor]]:
    """A group for each callback that looks at steps."""
    return [list({tensor.name: tensor for tensor in callback.report}.values()) for callback in callbacks if callback.report]


def _jumped(before: int, stop: int | None, after: int) -> bool:
    """True where a train_op that counts several steps at once passed a stop at which TF1's hooks do not act yet."""
    return stop is not None and before + 1 < stop <= after


class Pace:
    """How many steps to run in one call: so many that Python does not matter, so few that clocks and Ctrl-C are heard."""

    def __init__(self, most: int = MAX_STEPS_PER_CALL, seconds: float = 2.0) -> None:
        self._seconds = seconds
        self._most = self._steps = most

    def run(self, loop: Loop, until: int, report_from: int, wish: int | None = None) -> Ran:
        """``loop.run`` with a number of steps that the last call suggests, or another wish."""
        start = time.monotonic()
        ran = loop.run(self._steps if wish is None else wish, until, report_from)
        per_step = (time.monotonic() - start) / max(1, len(ran.losses))
        self._steps = max(1, min(self._most, int(self._seconds / per_step)))
        return ran


def _advanced(before: int, step: int) -> int:
    """The global step as the graph counts it, which need not be one a step."""
    if step == before:
        logging.log_first_n(logging.WARN, "The train_op does not increase the global step (still %d).", 5, step)
    return step


def _callbacks(
    model: ModelGraph, run: HookedRun, config: Any, hooks: Sequence[Any], listeners: Sequence[Any], stop: StopAtStep
) -> list[Callback]:
    """In TF1's order."""
    spec, every = model.spec, config.log_step_count_steps
    _add_loss_summary(model)
    asked = [*hooks, *spec.training_hooks, *spec.training_chief_hooks]
    saver = with_saver(asked, model, config, listeners)[len(asked) :]
    chief = callbacks_for([*saver, *spec.training_chief_hooks], model, run)
    speed = [StepCounter(Timer(steps=every), config.model_dir)] if every else []
    losses = [LossLogger(every)] if every else []
    others = [*callbacks_for(hooks, model, run), stop, NanGuard(), *losses, *callbacks_for(spec.training_hooks, model, run)]
    summary = _merged_summaries(model)  # those that hooks have added, too
    written = config.save_summary_steps and summary is not None
    summaries = [SummarySaver(summary, Timer(steps=config.save_summary_steps), config.model_dir)] if written else []
    return [*chief, *speed, *summaries, *others]


def _workers_callbacks(
    model: ModelGraph, run: HookedRun, config: Any, hooks: Sequence[Any], listeners: Sequence[Any], stop: StopAtStep
) -> list[Callback]:
    """Of a worker that is not the chief: it writes nothing."""
    every = config.log_step_count_steps
    losses = [LossLogger(every)] if every else []
    given, own = (callbacks_for(_reading(some), model, run) for some in (hooks, model.spec.training_hooks))
    return [*given, stop, NanGuard(), *losses, *own]


def _reading(hooks: Sequence[Any]) -> list[Any]:
    """Without those of TensorFlow's that write into a folder, where the chief's do."""
    writing = [hook for hook in hooks if isinstance(hook, _WRITERS)]
    if writing:
        logging.info("The chief alone runs %s.", ", ".join(type(hook).__name__ for hook in writing))
    return [hook for hook in hooks if hook not in writing]


def _told(model: ModelGraph, config: Any, distribution: Distribution, in_step: bool) -> list[Callback]:
    """Where a launcher started this process, it wants to know how far the training is, and perhaps whether it is sound.

    Trainers that are not ``in_step`` with this one tell that themselves.
    """
    meeting, task = Rendezvous.of_this_process(), (config.task_type, config.task_id)
    auditing = Auditing.asked(meeting)
    steps = [StepReport(meeting, *task)] if meeting else []
    return [*steps, *([AuditReport(auditing, task, model, distribution)] if auditing and in_step else [])]


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
