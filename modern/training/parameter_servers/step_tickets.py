"""Steps as a trainer takes them out of a pool: functions that chief and workers run, without Python between the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_bridge.modern.distribution.worker_feed import take
from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.modern.training.step_loop import NEVER
from estimator_bridge.modern.training.watched_tensors import Report


class Share(NamedTuple):
    """What one trainer took out of a pool: the losses of its steps, their tickets, and whether its input has ended."""

    losses: Any
    tickets: Any
    ended: Any


class Shares:
    """Takes steps for as long as there are tickets for them.

    Args:
        transplant: what to train.
        strategy: a ``ParameterServerStrategy``.

    Attributes:
        tickets: a variable, the next ticket: the global step before the step that is made with it.
        report: what the chief's last step left to look at.
        on_worker: a function of two numbers: it takes steps with tickets below the first.
        on_chief: the same; or as many steps as the second says without a ticket, of which the last one is reported.
    """

    def __init__(self, transplant: Transplant, strategy: Any) -> None:
        self._transplant = transplant
        self._strategy = strategy
        self._specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in transplant.model.batch]
        self.report = Report(transplant)
        with strategy.scope():
            self.tickets = tf.Variable(0, trainable=False, dtype=tf.int64)
        # One function a process: a second one would begin the stream of its random numbers anew.
        self.on_worker = self._traced(self._share)
        self.on_chief = self._traced(self._reported_share)

    def _traced(self, share: Any) -> Any:
        return tf.function(share, [tf.TensorSpec([2], tf.int64)], autograph=False).get_concrete_function()

    def _share(self, limits: Tensor) -> Share:
        """Takes steps with tickets below ``limits[0]``."""
        return self._steps(limits, lambda batch, last: self._transplant.step(batch)[0])

    def _reported_share(self, limits: Tensor) -> Share:
        """As ``_share``; or ``limits[1]`` steps without a ticket, of which the last one is reported."""

        def step(batch: Sequence[Tensor], last: Tensor) -> Tensor:
            early = self.report.early(last)
            loss, known = self._transplant.step(batch)
            self.report.keep(last, known | early)
            return loss

        return self._steps(limits, step)

    def _steps(self, limits: Tensor, step: Any) -> Share:
        limit, alone = limits[0], tf.cast(limits[1], tf.int32)

        def one(count: Tensor, drawn: _Draw, losses: Any, tickets: Any) -> tuple[Any, ...]:
            following = self._draw(count + 1, limit, alone, drawn.ticket)  # while the step before it runs
            loss = self._strategy.run(step, (drawn.batch, tf.equal(count + 1, alone)))
            return count + 1, following, losses.write(count, tf.cast(loss, tf.float32)), tickets.write(count, drawn.ticket)

        first = self._draw(tf.constant(0), limit, alone, None)
        arrays = [tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=[]) for dtype in (tf.float32, tf.int64)]
        _, last, losses, tickets = tf.while_loop(lambda count, drawn, *_: drawn.good, one, (0, first, *arrays))
        return Share(losses.stack(), tickets.stack(), tf.logical_not(last.given))

    def _draw(self, count: Tensor, limit: Tensor, alone: Tensor, ticket: Tensor | None) -> _Draw:
        """What the step after ``count`` others runs with, of which the last had this ticket; ``alone`` steps need none.

        The batch comes first, so that no ticket is lost on a trainer whose input has ended; the last batch of a share is the first of the
        next one.
        """
        numbered = tf.equal(alone, 0)
        begun = tf.constant(-1, tf.int64) if ticket is None else tf.where(numbered, ticket, tf.zeros([], tf.int64))
        given, batch = take(ticket is None, begun, self._specs)
        takes_ticket = tf.logical_and(given, numbered)
        ticket = tf.cond(takes_ticket, self._next_ticket, lambda: tf.constant(NEVER, tf.int64))
        good = tf.logical_and(given, tf.logical_or(count < alone, ticket < limit))
        return _Draw(ticket, good, given, tuple(batch))

    def _next_ticket(self) -> Tensor:
        """Counts in one operation, which no other process can come in between."""
        return tf.raw_ops.ResourceCountUpTo(resource=self.tickets.handle, limit=NEVER, T=tf.int64)


class _Draw(NamedTuple):
    """A ticket, whether it is good for a step, whether there is a batch for it, and the batch."""

    ticket: Tensor
    good: Tensor
    given: Tensor
    batch: tuple[Tensor, ...]
