"""Adapter from a script's own session hook to a callback."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.session import ReadOnlySession
from estimator_bridge.modern.callbacks.session_hook import HookCalls, HookedRun
from estimator_bridge.modern.step.transplant import Transplant

logging = tf.compat.v1.logging


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
            self._run.session = ReadOnlySession(self._run.graph, transplant.variables, transplant.operations)
        if self.every_step:
            logging.info("The session hook %s sees every step, so they run one by one, which is slower.", self._calls.name)
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
