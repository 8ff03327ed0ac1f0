"""Calls of a script's own session hooks, made as a MonitoredSession makes them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.graph_session import GraphSession
from estimator_bridge.modern.callbacks.session import ReadOnlySession, Request, script_environment
from estimator_bridge.modern.graph.batch_stream import BatchStream
from estimator_bridge.modern.graph.fragments import BATCH, Operation, Tensor, upstream
from estimator_bridge.modern.graph.host_call import SummaryWriters
from estimator_bridge.modern.graph.model_graph import ModelGraph, v1
from estimator_bridge.modern.graph.random_streams import RandomStreams
from estimator_bridge.modern.step.transplant import Transplant


class HookedRun:
    """State that the hooks of one run share, as in TF1: the graph, one session, one coordinator, and a context for each step.

    Args:
        model: Model whose hooks run.
        fetches: Fetches of each step, for ``SessionRunContext.original_args``.
        replicas: Number of replicas; with more than one, hooks can only read.

    Attributes:
        model: Model whose hooks run.
        hooks: Calls of each hook, in order.
        reader: Session that only reads the variables; None before there are any.
        session: Session that hooks are given; it only reads, too, if there are several replicas.
        batches: Batches of the run; None if workers of a cluster read them.
        context: Context of the present step.
        streams: Streams of random numbers that steps share with what hooks run; None with several replicas.
    """

    def __init__(self, model: ModelGraph, fetches: Any, replicas: int = 1) -> None:
        self.model = model
        self.streams = RandomStreams() if replicas == 1 else None
        self.hooks: list[HookCalls] = []
        self.reader: Any = None
        self.session: Any = None
        self.batches: BatchStream | None = None
        self.coordinator = v1.train.Coordinator()
        self.context: Any = None
        self._arguments = v1.train.SessionRunArgs(fetches)

    def open(self, variables: Mapping[str, Any], operations: frozenset[Operation]) -> None:
        """Opens the sessions, unless they are open.

        Args:
            variables: Name of an operation -> variable with its value.
            operations: Operations that every step runs.
        """
        if self.reader is None:
            self.reader = self.session = ReadOnlySession(
                self.model.graph, variables, operations, self.model.references, self.batches
            )
            if self.streams is not None and self.batches is not None:
                self.session = GraphSession(self.reader, self.model.batch, self.batches, self.coordinator, self.streams)

    @property
    def is_free(self) -> bool:
        """True if hooks may run any part of the graph."""
        return self.session is not self.reader

    def feeds(self, feed_dict: Any) -> Mapping[Any, Any]:
        """Returns the feeds of a feed_dict: reference of each tensor -> array."""
        feeds: Mapping[Any, Any] = self.session.feeds(feed_dict) if feed_dict else {}
        return feeds

    def start_step(self) -> None:
        """Makes the context of the next step."""
        self.context = v1.train.SessionRunContext(self._arguments, self.session)

    def finish_step(self, step: int | None = None, stays: bool = False) -> None:
        """Reads the variables that hooks have asked for; call it right after the step.

        Args:
            step: Global step after it, if it is known.
            stays: True if no other process changes the global step before the next step.
        """
        variable = self.model.global_step
        self.reader.known = {} if step is None else {variable.op.name: variable.dtype.base_dtype.as_numpy_dtype(step)}
        for calls in self.hooks:
            calls.finish_step()
        if not stays:
            self.reader.known = {}

    @property
    def stopping(self) -> bool:
        """True once a hook has asked to stop, by the step's context or the coordinator."""
        return bool(self.context.stop_requested or self.coordinator.should_stop())

    def close(self) -> None:
        """Ends the threads that hooks have registered with the coordinator, and closes event files; also after a failed step."""
        self.coordinator.request_stop()
        try:
            self.coordinator.join(ignore_live_threads=True)
        finally:
            if self.is_free:
                self.session.close()
            for calls in self.hooks:
                if isinstance(calls.hook, SummaryWriters):
                    calls.hook.close()


class HookCalls:
    """Calls of one hook. The constructor calls ``begin``, so the order of hooks counts, and the graph must not be finished.

    Args:
        hook: A ``tf.train.SessionRunHook``.
        run: State that it shares with the other hooks.

    Attributes:
        hook: The hook.
        name: Name of its class.
        every_step: True if it does something at each step.
        wanted: Tensors that steps compute for it; grows.
        asking: True if it has asked for some of them at the present step.
        demand: Feeds, operations and tensors that it adds to the present step; None if it only reads.
    """

    def __init__(self, hook: Any, run: HookedRun) -> None:
        self.hook = hook
        self._run = run
        self._request: Request | None = None
        self._values: dict[str, Any] = {}
        self.demand: Request | None = None
        self._has_run = self._has_fetches = False
        self.name = f"{type(hook).__module__}.{type(hook).__qualname__}"
        self.every_step = not isinstance(hook, v1.train.GlobalStepWaiterHook) and any(
            getattr(type(hook), name) is not getattr(v1.train.SessionRunHook, name) for name in ("before_run", "after_run")
        )
        self.wanted: list[Tensor] = []
        self.asking = False
        run.hooks.append(self)
        with script_environment(run.model.graph):
            hook.begin()

    def create(self) -> None:
        """Calls ``after_create_session``."""
        with self._calling() as reader:
            self._check_early(reader)
            self.hook.after_create_session(self._run.session, self._run.coordinator)
            self.wanted += self._held()

    def before(self) -> None:
        """Calls ``before_run``; reads fetches that depend only on variables before the step, and asks the step for the others."""
        with self._calling() as reader:
            arguments = self.hook.before_run(self._run.context) or v1.train.SessionRunArgs(None)
            reader.check_plain(None if self._run.is_free else arguments.feed_dict, arguments.options)
            self.demand = self._request = None
            self.asking = False
            self._values = {}
            if arguments.fetches is None and not arguments.feed_dict:
                return
            fetches = () if arguments.fetches is None else arguments.fetches
            self._request = Request(self._run.model.graph, fetches, self._run.feeds(arguments.feed_dict))
            self._has_fetches = arguments.fetches is not None
            if self._run.is_free and not self._request.fits_step(reader):
                self.demand = self._request
                return
            later = {element.name for element in self._request.elements if reader.needs_step(element)}
            early = [tensor for tensor in self._request.tensors if tensor.name not in later and not reader.is_reference(tensor)]
            self._values = reader.read(early)
            self.asking = bool(later)
            self._want([tensor for tensor in self._request.tensors if tensor.name in later], reader)

    def finish_step(self) -> None:
        """Reads the variables that the hook has asked for.

        A session gives TensorFlow 1's reference variables as they are after the step, and what is computed from them as before.
        """
        if self._request and not self.demand:
            reader = self._run.reader
            self._values |= reader.read([tensor for tensor in self._request.tensors if reader.is_reference(tensor)])

    def after(self, report: Mapping[str, Any]) -> None:
        """Calls ``after_run`` with the values that ``before`` has read and the step has computed, by the tensors' names."""
        self._has_run = True
        read = {} if self.demand else self._values
        results = self._request.results({**report, **read}) if self._request and self._has_fetches else None
        with self._calling():
            values = v1.train.SessionRunValues(results, v1.RunOptions(), v1.RunMetadata())
            self.hook.after_run(self._run.context, values)

    def end(self) -> None:
        """Calls ``end``."""
        with self._calling():
            self.hook.end(self._run.session)

    def _check_early(self, reader: ReadOnlySession) -> None:
        """Refuses early what FinalOpsHook would find at the end, and GlobalStepWaiterHook never."""
        if isinstance(self.hook, v1.train.FinalOpsHook) and not self._run.is_free:
            reader.check(self.hook._final_ops or [], self.hook._final_ops_feed_dict)
        if isinstance(self.hook, v1.train.GlobalStepWaiterHook):
            last = self.hook._wait_until_step
            if reader.run(self.hook._global_step_tensor) < last:
                raise reader.refusal(f"waits for step {last}, and no other worker would make it", "Drop the hook")

    def refusal(self, what: str, instead: str) -> NotSupportedError:
        """Returns the error for something that the hook does."""
        with self._calling() as session:
            return session.refusal(what, instead)

    def _want(self, tensors: list[Tensor], session: ReadOnlySession) -> None:
        known = {tensor.name for tensor in self.wanted}
        new = [tensor for tensor in tensors if tensor.name not in known]
        if new and self._has_run and session.restarts_draws(self._run.streams is not None):
            raise session.refusal(
                f"asks for {new[0].name!r} after steps without it, which would start the model's random numbers anew",
                "Keep the tensor in an attribute of the hook from begin() on",
            )
        self.wanted += new

    def _held(self) -> list[Tensor]:
        """Returns the tensors in the hook's attributes that a step can compute; the hook may ask for them later."""
        tensors = {one.name: one for one in _tensors(vars(self.hook)) if one.graph is self._run.model.graph}
        return [tensor for tensor in tensors.values() if _is_possible(tensor, self._run.reader)]

    def _calling(self) -> contextlib.AbstractContextManager[ReadOnlySession]:
        reader: ReadOnlySession = self._run.reader
        return reader.caller(f"The session hook {self.name}")


class SessionHook(Callback):
    """Runs one hook, at every step unless the hook does nothing there.

    Args:
        hook: A ``tf.train.SessionRunHook``.
        run: State that the hooks of the training share.
    """

    def __init__(self, hook: Any, run: HookedRun) -> None:
        self._run = run
        self._calls = HookCalls(hook, run)
        self.every_step = self._calls.every_step
        self.report = self._calls.wanted
        self._has_asked = False  # steps of other trainers may follow its last

    def begin(self, transplant: Transplant, step: int) -> None:
        """Gives the hook its session."""
        self._run.open(transplant.variables, transplant.operations)
        if self.every_step:
            v1.logging.info("The session hook %s sees every step, so they run one by one, which is slower.", self._calls.name)
        self._calls.create()
        self._loss = transplant.model.spec.loss.name
        self._parts, self._is_whole = transplant.parts, transplant.is_whole
        if self._parts:
            self._calls.wanted.clear()  # it may keep a piece's tensors, but not ask for them

    def before(self) -> None:
        """Asks the hook for its fetches of the next step."""
        if self._calls is self._run.hooks[0]:
            self._run.start_step()
        if self.every_step:
            self._calls.before()
            self._has_asked = True
            self.demand = self._calls.demand
        pieces = [tensor.name for tensor in self.report if not self._is_whole(tensor)]
        if pieces and self._parts:
            raise self._calls.refusal(f"asks for {pieces[0]!r}, of which {self._parts.each}", self._parts.fix)

    def needs_report(self, step: int) -> bool:
        """Returns True if ``before_run`` has asked for a value of the step."""
        return self._calls.asking

    def after(self, progress: Progress) -> bool:
        """Gives the hook the results; returns True if a hook asks to stop."""
        if self.every_step and self._has_asked:
            self._has_asked = False
            whole = {self._loss: progress.losses[-1]} if self._parts else {}
            self._calls.after({**progress.report, **whole})
        return self._run.stopping

    def end(self, step: int) -> None:
        """Calls the hook's ``end``."""
        self._calls.end()


def merged(feeds: Iterable[Mapping[Any, Any]]) -> dict[Any, Any]:
    """Returns the feeds of several hooks together.

    Raises:
        RuntimeError: Two hooks feed the same tensor, as in TensorFlow 1.
    """
    everything: dict[Any, Any] = {}
    for one in feeds:
        for ref in everything.keys() & one.keys():
            raise RuntimeError(f"Same tensor is fed by two hooks: {ref.deref()}")
        everything |= one
    return everything


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, tf.Tensor) and not hasattr(value, "numpy"):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)


def _is_possible(tensor: Tensor, session: ReadOnlySession) -> bool:
    if any(op.type == "Placeholder" for op in upstream([tensor.op], lambda op: op.name.startswith(BATCH))):
        return False  # a hook may feed it, and no other step computes the tensor
    try:
        return session.needs_step(tensor)
    except NotSupportedError:  # to keep a tensor is not to run it
        return False
