"""Estimator.train on the modern path."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.cluster.audit_records import AuditPlan
from estimator_bridge.cluster.preemption import EXIT_CODE, Preemption, catch_preemption
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.modern.callbacks.at_steps import StopAtStep
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.checkpoint import default_saver
from estimator_bridge.modern.callbacks.counts import CountedSteps, EqualCounts
from estimator_bridge.modern.callbacks.from_hooks import callbacks_for
from estimator_bridge.modern.callbacks.launcher_reports import AuditReport, StepReport
from estimator_bridge.modern.callbacks.logs import LossLogger, NanGuard, SummarySaver
from estimator_bridge.modern.callbacks.progress import show_progress
from estimator_bridge.modern.callbacks.session_hook import HookedRun, merged
from estimator_bridge.modern.distribution.input_sharding import (
    batch_size,
    common_seed,
    is_endless,
    is_share,
    own_share,
    with_context,
)
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.distribution.worker_checks import check_equal
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.batch_stream import BatchStream
from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.graph.input_pipeline import InputPipeline, read_ahead, releasing
from estimator_bridge.modern.graph.model_graph import ModelGraph, v1
from estimator_bridge.modern.parallel.elastic.position import InputPosition, check_whole, common_position, keep_position
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.modern.training.step_loop import (
    MAX_STEPS_PER_CALL,
    NEVER,
    PREEMPTED,
    REBUILD,
    SAVE,
    STOP,
    Loop,
    Ran,
    StepLoop,
)
from estimator_bridge.runtime.batch_digest import batch_digest
from estimator_bridge.runtime.estimator_calls import TrainCall

logging = v1.logging
_CALL_SECONDS = 2.0  # aim for the duration of a call
_WRITERS = (v1.train.CheckpointSaverHook, v1.train.ProfilerHook, v1.train.StepCounterHook, v1.train.SummarySaverHook)


@releasing()
def train(
    estimator: Any,
    call: TrainCall,
    distribution: Distribution,
    *,
    callbacks: Sequence[Callback] = (),
    audited: bool = False,
    make_transplant: Callable[..., Transplant] = Transplant,
    make_loop: Callable[[Transplant, Any, bool], Loop] | None = None,
) -> None:
    """Trains as ``Estimator.train`` does, and leaves the checkpoints that it would leave.

    Args:
        estimator: Estimator with the model_fn, config and model_dir.
        call: Arguments of ``Estimator.train``.
        distribution: Strategy, and whether its replicas split each batch.
        callbacks: Callbacks in addition to those of the config and the hooks.
        audited: True to give the callbacks a digest of each batch.
        make_transplant: ``Transplant`` or a subclass.
        make_loop: Function that makes a loop from a transplant, an iterator of batches, and True if hooks see each step; None for a
            ``StepLoop``.

    Raises:
        NotSupportedError: The job cannot be transplanted; nothing has been trained.
        SystemExit: A task of the cluster received the order to end; everything is saved.
    """
    model, position = checked_model(estimator, call, distribution)
    stop = StopAtStep(call.steps, call.max_steps)
    pieces = distribution.graph_replicas * distribution.micro_batches
    run = HookedRun(model, [model.spec.train_op, model.spec.loss], pieces)
    own = _callbacks(run, estimator.config, call, stop, distribution.worker == 0)
    counts = [EqualCounts(distribution)] if distribution.replicas > 1 else []  # must come before the saver
    launched = _launcher_callbacks(model, estimator.config, distribution, make_loop is None)
    counted = [CountedSteps()] if position else []
    every = [*counts, *counted, *own, *launched, *callbacks]
    with distribution.strategy.scope():
        transplant = make_transplant(model, _report(every), distribution.split, run.streams if run.hooks else None)
    check_equal(transplant.variables, distribution)
    if transplant.parts and not all(transplant.is_whole(tensor) for group in transplant.watched for tensor in group):
        logging.warn(
            f"Summaries and logged tensors show only {transplant.parts.shown} of each batch; the loss is that of all rows."
        )
    source = _Source(model.pipeline, call.input_fn, distribution, audited)
    if position:
        keep_position(estimator.model_dir, position, distribution)
        source.follow(position, int(transplant.global_step.numpy()))
    batches = BatchStream(model.pipeline, source.iterator, audited)
    if not run.hooks:  # hooks may initialise the input before its first batch
        _ = batches.iterator
    run.batches = None if make_loop else batches

    one_by_one = any(callback.every_step for callback in every)

    def loop() -> Loop:
        transplant.check_fed()
        if run.is_free:
            run.session.claim(transplant.operations, "steps")
        iterator = batches.iterator
        return (
            make_loop(transplant, iterator, one_by_one)
            if make_loop
            else StepLoop(transplant, iterator, distribution, source.endless, audited, one_by_one)
        )

    with (
        contextlib.closing(run),
        show_progress(stop) as bar,
        catch_preemption(distribution.together or bool(distribution.step_batches)) as preemption,
    ):
        preempted = run_steps(transplant, loop, [*every, *bar], preemption, run)
        distribution.gather(tf.constant([0], tf.int64))  # no worker leaves or looks for checkpoints before the chief has saved
    if preempted:
        logging.warn("A task received the order to end, so all tasks end here. Everything is saved.")
        raise SystemExit(EXIT_CODE)


def checked_model(estimator: Any, call: TrainCall, distribution: Distribution) -> tuple[ModelGraph, InputPosition | None]:
    """Builds the training graph from the latest checkpoint, for a training or for its plan; all workers must call it.

    Args:
        estimator: Estimator with the model_fn, config and model_dir.
        call: Arguments of ``Estimator.train``.
        distribution: Strategy, with the number of batches of a step.

    Returns:
        The graph, and the position of the input if a step takes several batches.

    Raises:
        BridgeError: The training cannot go on where it ended.
        NotSupportedError: The graph cannot be transplanted, or the workers cannot divide the input.
    """
    position = None
    if distribution.step_batches:
        position = common_position(estimator.model_dir, saved_step(estimator.model_dir), distribution)
    model = training_model(estimator, call.input_fn, distribution, position.seed if position else None)
    (check_whole if position else is_share)(model.pipeline, call.input_fn, distribution)
    return model, position


def saved_step(model_dir: str) -> int:
    """Returns the global step of the latest checkpoint; 0 without one."""
    latest = tf.train.latest_checkpoint(model_dir)
    return int(tf.train.load_variable(latest, "global_step")) if latest else 0


def training_model(
    estimator: Any, input_fn: Callable[..., Any], distribution: Distribution, seed: int | None = None
) -> ModelGraph:
    """Builds the training graph from the latest checkpoint.

    Args:
        estimator: Estimator with the model_fn, config and model_dir.
        input_fn: Function that gives the batches.
        distribution: Strategy, and the number of micro-batches.
        seed: Seed of the input; None to choose one.

    Raises:
        NotSupportedError: The graph cannot be transplanted.
    """
    latest = tf.train.latest_checkpoint(estimator.model_dir)
    seed = common_seed(input_fn, distribution) if seed is None else seed
    given = with_context(
        input_fn, distribution.workers, distribution.worker, 1 if distribution.split else distribution.replicas
    )
    micro = distribution.micro_batches
    own = distribution.graph_replicas, distribution.split, seed, micro, distribution.around_model
    return model_graph.build(estimator, given, model_graph.TRAIN, latest, *own)


class _Source:
    """This worker's batches.

    Args:
        pipeline: Pipeline of the input_fn.
        input_fn: The script's function.
        distribution: Strategy, with the number of workers.
        audited: True to add a digest to each batch.

    Attributes:
        endless: True if no worker's input ends; known once there is an iterator.
    """

    def __init__(
        self, pipeline: InputPipeline, input_fn: Callable[..., Any], distribution: Distribution, audited: bool
    ) -> None:
        self._input_fn = input_fn
        self._distribution = distribution
        self._audited = audited
        self._size = batch_size(pipeline)
        self._begun: tuple[InputPosition, int] | None = None
        self.endless = False

    def follow(self, position: InputPosition, step: int) -> None:
        """Takes the batches that come after those of earlier steps, rather than beginning with the first."""
        self._begun = position, step

    def iterator(self, pipeline: InputPipeline) -> Any:
        """Returns an eager iterator over the batches, and logs this worker's share."""
        dataset = pipeline.dataset()
        if self._begun is None:
            dataset, share = own_share(dataset, pipeline, self._input_fn, self._distribution)
            self.endless = is_endless(dataset, self._distribution)
        else:
            position, step = self._begun
            self.endless = is_endless(dataset, self._distribution)
            dataset, share = position.rest(dataset, step, self._distribution), ""
            if position.used(step):  # it may take long, and nothing else says why
                logging.warn("The input goes on behind %d batches, which are read again and passed over.", position.used(step))
        if self._audited:
            dataset = dataset.map(lambda *batch: (*batch, _digest_column(batch)))
        logging.info("%s", " ".join(filter(None, [self._distribution.describe(self._size), share])))
        return iter(dataset if pipeline.session else read_ahead(dataset))  # hooks may read the session's batches, too


def run_steps(
    transplant: Transplant,
    make_loop: Callable[[], Loop],
    callbacks: Sequence[Callback],
    preemption: Preemption,
    hooked: HookedRun | None = None,
) -> bool:
    """Trains; all workers of a cluster leave at the same step.

    Args:
        transplant: Training step and its variables.
        make_loop: Function that builds the loop for the tensors that the transplant reports.
        callbacks: Callbacks in the order of their calls.
        preemption: Order of the launcher or the system to end, of which the workers tell each other.
        hooked: State of the session hooks, whose session runs the steps to which a hook adds something.

    Returns:
        True if a worker received the order to end.
    """
    step = int(transplant.global_step.numpy())
    for callback in callbacks:
        callback.begin(transplant, step)
    transplant.follow()
    loss: Any = None
    stopping = False
    is_preempted = False
    steps = _Steps(transplant, make_loop, callbacks, hooked)
    with steps.ending():
        while True:
            for callback in callbacks if not stopping else ():  # the next call only tells the other workers to stop
                callback.before()
            stops = [callback.next_stop(step) for callback in callbacks]
            ran, report = steps.run(step, stops, PREEMPTED if preemption.is_requested else STOP if stopping else None)
            is_preempted = ran.agreed == PREEMPTED
            if not len(ran.losses) and (ran.ended or ran.agreed <= 0):  # no step ran, and none will
                step = ran.step
                break
            if not len(ran.losses) and ran.step == step:
                continue  # the only step was lost with its worker
            loss = ran.losses[-1] if len(ran.losses) else loss
            if ran.step == step:
                logging.log_first_n(logging.WARN, "The train_op does not increase the global step (still %d).", 5, step)
            before, step = step, ran.step
            progress = Progress(step, ran.losses, ran.digests, report)
            requests = [  # a list, since every callback must see every progress
                callback.after(progress)
                for callback, stop in zip(callbacks, stops, strict=True)
                if not (steps.may_jump and _jumped(before, stop, step))
            ]
            step = steps.current(step)
            stopping = any(requests)
            if ran.ended or ran.agreed <= 0:
                break
    if loss is None:
        logging.warn("Training made no steps: the input is empty.")
    transplant.interrupt = None
    for callback in callbacks:
        callback.end(step)
    transplant.follow()
    logging.info("Loss for final step: %s.", loss)
    return is_preempted


class _Steps:
    """Runs steps up to the next one that a callback wants to see.

    Args:
        transplant: Training step and its variables.
        make_loop: Function that builds the loop for the tensors that the transplant reports.
        callbacks: Callbacks, which may ask for more tensors.
        hooked: State of the session hooks, if any.

    Attributes:
        one_by_one: True if a callback sees every step.
    """

    def __init__(
        self, transplant: Transplant, make_loop: Callable[[], Loop], callbacks: Sequence[Callback], hooked: HookedRun | None
    ) -> None:
        self._hooks = hooked
        self._transplant = transplant
        self._make_loop = make_loop
        self._callbacks = callbacks
        self._loop: Loop | None = None
        self._asked: list[int] = []
        self.one_by_one = any(callback.every_step for callback in callbacks)
        self._pace = Pace(1 if self.one_by_one else MAX_STEPS_PER_CALL)

    @property
    def may_jump(self) -> bool:
        """Returns True if steps run one by one and one may count several."""
        return self.one_by_one and self._loop is not None and not self._loop.exact

    @property
    def _hooked(self) -> HookedRun | None:
        return self._hooks if self._hooks is not None and self._hooks.is_free else None

    def ending(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context manager that a hook leaves by reading past the end of the input, which ends a training of TF1, too."""
        return contextlib.suppress(tf.errors.OutOfRangeError, StopIteration) if self._hooked else contextlib.nullcontext()

    def current(self, step: int) -> int:
        """Returns the global step, which hooks may have changed since ``step``."""
        if not (self._hooked and self.one_by_one and self._hooked.session.has_run):
            return step
        self._hooked.session.has_run = False
        return int(self._transplant.global_step.numpy())

    def run(self, step: int, stops: Sequence[int | None], wish: int | None) -> tuple[Ran, Mapping[str, Any]]:
        """Runs steps up to the nearest stop at most; a step to which a hook adds something runs alone.

        Args:
            step: Global step so far.
            stops: Next stop of each callback, None without one.
            wish: Request of this worker in place of steps, if any: ``STOP`` or ``PREEMPTED``.

        Returns:
            The steps, and the values of the tensors that callbacks observe, by name.
        """
        if self._hooked and wish is None and any(callback.demand for callback in self._callbacks):
            return self._run_with_demands(self._hooked, step)
        if self._hooked and wish is not None:  # no other worker waits for it, and there may be no loop
            return Ran(np.zeros([0], np.float32), np.zeros([0], np.int64), step, None, False, wish), {}
        ran = self._run(step, stops, wish)
        if self.one_by_one and self._hooks is not None and len(ran.losses):
            self._hooks.finish_step(ran.step, stays=self._loop is not None and not self._loop.exact)
        return ran, self._transplant.named(ran.report) if ran.report is not None else {}

    def _run_with_demands(self, hooked: HookedRun, step: int) -> tuple[Ran, Mapping[str, Any]]:
        """Runs a step as one call of a session, with what the hooks add to it."""
        spec = self._transplant.model.spec
        observed = [tensor for one in self._callbacks if one.report and one.needs_report(step + 1) for tensor in one.report]
        demands = [callback.demand for callback in self._callbacks if callback.demand]
        added = [element for demand in demands for element in demand.elements]
        elements = {element.name: element for element in (spec.train_op, spec.loss, *observed, *added)}
        values = hooked.session.compute([*elements.values()], merged([demand.feeds for demand in demands]))
        hooked.finish_step()
        loss = np.asarray(values[spec.loss.name], np.float32).reshape([1])
        digests = np.array([hooked.batches.digest if hooked.batches else 0], np.int64)
        return Ran(loss, digests, int(self._transplant.global_step.numpy()), None, False, 1), values

    def _needs(self, step: int) -> list[bool]:
        return [callback.needs_report(step) for callback in self._callbacks if callback.report]

    def _interrupt(self) -> None:
        assert self._loop
        self._loop.run(SAVE)

    def _run(self, step: int, stops: Sequence[int | None], wish: int | None) -> Ran:
        asked = [len(callback.report) for callback in self._callbacks]
        wanted = _report(self._callbacks) if asked != self._asked else self._transplant.watched
        grown = sum(map(len, wanted)) > sum(map(len, self._transplant.watched))
        self._asked = asked
        if grown:
            self._transplant.watch(wanted)
        if self.one_by_one:
            self._transplant.set_wanted(self._needs(step + 1))
        has_loop = self._loop is not None
        self._loop = self._loop or self._make_loop()
        until = min((stop for stop in stops if stop is not None and stop > step and not self.may_jump), default=NEVER)
        if self.one_by_one and self._loop.exact:
            self._transplant.due = self._needs(until)
        reporting = [stop or step for callback, stop in zip(self._callbacks, stops, strict=True) if callback.report]
        report_from = min(reporting, default=NEVER)
        request = REBUILD if wish is None and has_loop and grown else wish
        while True:
            ran = self._pace.run(self._loop, until, report_from, request)
            if ran.agreed == SAVE:
                self._transplant.follow()
            elif ran.agreed == REBUILD:
                self._loop, request = self._make_loop(), wish
            else:
                self._transplant.interrupt = None if ran.ended else self._interrupt  # at the end, no other worker goes on
                return ran


def _report(callbacks: Sequence[Callback]) -> list[list[Tensor]]:
    """Returns a group of tensors for each callback that observes steps."""
    return [list({tensor.name: tensor for tensor in callback.report}.values()) for callback in callbacks if callback.report]


def _jumped(before: int, stop: int | None, after: int) -> bool:
    """Returns True if a train_op that counts several steps at once passed a stop at which TF1's hooks do not act yet."""
    return stop is not None and before + 1 < stop <= after


class Pace:
    """Chooses how many steps one call runs: enough to hide Python's time, few enough for timers and Ctrl-C.

    Args:
        most: Largest number of steps.
    """

    def __init__(self, most: int = MAX_STEPS_PER_CALL) -> None:
        self._most = self._steps = most

    def run(self, loop: Loop, until: int, report_from: int, wish: int | None = None) -> Ran:
        """Calls ``loop.run`` with a number of steps that the last call suggests, or with ``wish``."""
        start = time.monotonic()
        ran = loop.run(self._steps if wish is None else wish, until, report_from)
        per_step = (time.monotonic() - start) / max(1, len(ran.losses))
        self._steps = max(1, min(self._most, int(_CALL_SECONDS / per_step)))
        return ran


def _callbacks(run: HookedRun, config: Any, call: TrainCall, stop: StopAtStep, is_chief: bool) -> list[Callback]:
    """Returns the callbacks in TF1's order; those of a worker that is not the chief write nothing."""
    model, spec, every = run.model, run.model.spec, config.log_step_count_steps
    hooks, own = (given if is_chief else _without_writers(given) for given in (call.hooks or (), spec.training_hooks or ()))
    writers: list[Callback] = []
    if is_chief:
        _add_loss_summary(model)
        given = [*hooks, *own, *spec.training_chief_hooks]
        saver = default_saver(given, model, config, call.saving_listeners or ())
        counter = [v1.train.StepCounterHook(every, output_dir=config.model_dir)] if every else []
        writers += callbacks_for([*saver, *spec.training_chief_hooks, *counter], run)
    losses = [LossLogger(every)] if every else []
    others = [*callbacks_for(hooks, run), stop, NanGuard(), *losses, *callbacks_for(own, run)]
    summary = _merged_summaries(model) if is_chief else None  # after the hooks, which may add summaries
    if config.save_summary_steps and summary is not None:
        saving = v1.train.SummarySaverHook(config.save_summary_steps, output_dir=config.model_dir, summary_op=summary)
        writers.append(SummarySaver(saving, run))
    return [*writers, *others]


def _without_writers(hooks: Sequence[Any]) -> list[Any]:
    """Leaves out TensorFlow's hooks that write into a folder, where the chief writes already."""
    writers = [hook for hook in hooks if isinstance(hook, _WRITERS)]
    if writers:
        logging.info("Only the chief runs %s.", ", ".join(type(hook).__name__ for hook in writers))
    return [hook for hook in hooks if hook not in writers]


def _launcher_callbacks(model: ModelGraph, config: Any, distribution: Distribution, in_step: bool) -> list[Callback]:
    """Returns callbacks that report progress and audited steps to the launcher, if one started this process.

    Trainers that are not ``in_step`` with this one report their audited steps themselves.
    """
    rendezvous, task = Rendezvous.of_this_process(), TaskId.of_config(config)
    auditing = AuditPlan.read(rendezvous)
    steps = [StepReport(rendezvous, task, bool(distribution.step_batches))] if rendezvous else []
    return [*steps, *([AuditReport(auditing, task, model, distribution)] if auditing and in_step else [])]


def _add_loss_summary(model: ModelGraph) -> None:
    """Adds a summary of the loss if there is none, as Estimator does."""
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
    """Returns the digest once for each row, so that it is split with the batch."""
    rows = tf.shape(batch[0])[:1] if batch[0].shape.rank else tf.constant([1])
    return tf.fill(rows, batch_digest(batch))
