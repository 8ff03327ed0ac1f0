"""Calls of a script's own session hooks, made as a MonitoredSession makes them; the hooks must only read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.session import ReadOnlySession, Request, script_environment
from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.graph.host_call import SummaryWriters
from estimator_bridge.modern.graph.model_graph import ModelGraph, v1
from estimator_bridge.modern.step.transplant import Transplant


class HookedRun:
    """State that the hooks of one run share, as in TF1: the graph, one session, one coordinator, and a context for each step.

    Args:
        model: Model whose hooks run.
        fetches: Fetches of each step, for ``SessionRunContext.original_args``.

    Attributes:
        model: Model whose hooks run.
        hooks: Calls of each hook, in order.
        session: Session that reads the variables; None before there are any.
        batches: Iterator over the training's input, before the first step.
        context: Context of the present step.
    """

    def __init__(self, model: ModelGraph, fetches: Any) -> None:
        self.model = model
        self.hooks: list[HookCalls] = []
        self.session: Any = None
        self.batches: Any = None
        self.coordinator = v1.train.Coordinator()
        self.context: Any = None
        self._arguments = v1.train.SessionRunArgs(fetches)

    def start_step(self) -> None:
        """Makes the context of the next step."""
        self.context = v1.train.SessionRunContext(self._arguments, self.session)

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
    """

    def __init__(self, hook: Any, run: HookedRun) -> None:
        self.hook = hook
        self._run = run
        self._request: Request | None = None
        self._values: dict[str, Any] = {}
        self._has_run = False
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
        with self._calling():
            self._check_early(self._run.session)
            self.hook.after_create_session(self._run.session, self._run.coordinator)
            self.wanted += self._held()

    def before(self) -> None:
        """Calls ``before_run``; reads fetches that depend only on variables before the step, and asks the step for the others."""
        with self._calling() as session:
            arguments = self.hook.before_run(self._run.context) or v1.train.SessionRunArgs(None)
            session.check_plain(arguments.feed_dict, arguments.options)
            self._request = None if arguments.fetches is None else Request(self._run.model.graph, arguments.fetches)
            self.asking = False
            if self._request:
                later = {element.name for element in self._request.elements if session.needs_step(element)}
                self._values = session.read([tensor for tensor in self._request.tensors if tensor.name not in later])
                self.asking = bool(later)
                self._want([tensor for tensor in self._request.tensors if tensor.name in later], session)

    def after(self, report: Mapping[str, Any]) -> None:
        """Calls ``after_run`` with the values that ``before`` has read and the step has computed, by the tensors' names."""
        self._has_run = True
        results = self._request.results({**report, **self._values}) if self._request else None
        with self._calling():
            values = v1.train.SessionRunValues(results, v1.RunOptions(), v1.RunMetadata())
            self.hook.after_run(self._run.context, values)

    def end(self) -> None:
        """Calls ``end``."""
        with self._calling() as session:
            self.hook.end(session)

    def _check_early(self, session: ReadOnlySession) -> None:
        """Refuses early what FinalOpsHook would find at the end, and GlobalStepWaiterHook never."""
        if isinstance(self.hook, v1.train.FinalOpsHook):
            session.check(self.hook._final_ops or [], self.hook._final_ops_feed_dict)
        if isinstance(self.hook, v1.train.GlobalStepWaiterHook):
            last = self.hook._wait_until_step
            if session.run(self.hook._global_step_tensor) < last:
                raise session.refusal(f"waits for step {last}, and no other worker would make it", "Drop the hook")

    def refusal(self, what: str, instead: str) -> NotSupportedError:
        """Returns the error for something that the hook does."""
        with self._calling() as session:
            return session.refusal(what, instead)

    def _want(self, tensors: list[Tensor], session: ReadOnlySession) -> None:
        known = {tensor.name for tensor in self.wanted}
        new = [tensor for tensor in tensors if tensor.name not in known]
        if new and self._has_run and session.steps_draw:
            raise session.refusal(
                f"asks for {new[0].name!r} after steps without it, which would start the model's random numbers anew",
                "Keep the tensor in an attribute of the hook from begin() on",
            )
        self.wanted += new

    def _held(self) -> list[Tensor]:
        """Returns the tensors in the hook's attributes that a step can compute; the hook may ask for them later."""
        tensors = {one.name: one for one in _tensors(vars(self.hook)) if one.graph is self._run.model.graph}
        return [tensor for tensor in tensors.values() if _is_possible(tensor, self._run.session)]

    def _calling(self) -> contextlib.AbstractContextManager[ReadOnlySession]:
        session: ReadOnlySession = self._run.session
        return session.caller(f"The session hook {self.name}")


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

    def begin(self, transplant: Transplant, step: int) -> None:
        """Gives the hook its session."""
        if self._run.session is None:
            self._run.session = ReadOnlySession(self._run.model.graph, transplant.variables, transplant.operations)
        if self.every_step:
            v1.logging.info("The session hook %s sees every step, so they run one by one, which is slower.", self._calls.name)
        self._calls.create()
        self._loss = transplant.model.spec.loss.name
        self._split = transplant.pieces > 1
        if self._split:
            self._calls.wanted.clear()  # it may keep a piece's tensors, but not ask for them

    def before(self) -> None:
        """Asks the hook for its fetches of the next step."""
        if self._calls is self._run.hooks[0]:
            self._run.start_step()
        if self.every_step:
            self._calls.before()
        pieces = [tensor.name for tensor in self.report if self._split and tensor.name != self._loss]
        if pieces:
            raise self._calls.refusal(f"asks for {pieces[0]!r}, of which each replica has a piece", "Run on one replica")

    def needs_report(self, step: int) -> bool:
        """Returns True if ``before_run`` has asked for a value of the step."""
        return self._calls.asking

    def after(self, progress: Progress) -> bool:
        """Gives the hook the results; returns True if a hook asks to stop."""
        if self.every_step:
            whole = {self._loss: progress.losses[-1]} if self._split else {}
            self._calls.after({**progress.report, **whole})
        return self._run.stopping

    def end(self, step: int) -> None:
        """Calls the hook's ``end``."""
        self._calls.end()


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, tf.Tensor) and not hasattr(value, "numpy"):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)


def _is_possible(tensor: Tensor, session: ReadOnlySession) -> bool:
    try:
        return session.needs_step(tensor)
    except NotSupportedError:  # to keep a tensor is not to run it
        return False
