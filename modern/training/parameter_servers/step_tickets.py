"""Functions with which chief and workers take steps out of a pool, without Python between the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_bridge.modern.distribution.worker_feed import take
from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.modern.training.step_loop import NEVER, WatchedTensors


class TakenSteps(NamedTuple):
    """Steps that one trainer took out of a pool: their losses and tickets, and whether its input has ended."""

    losses: Any
    tickets: Any
    ended: Any


class TicketedSteps:
    """Takes steps for as long as there are tickets for them.

    Args:
        transplant: Training step and its variables.
        strategy: ``ParameterServerStrategy``.

    Attributes:
        tickets: Variable with the next ticket: the global step before the step that is made with it.
        watched: Watched tensors of the chief's last step.
        on_worker: Function of two numbers; it takes steps with tickets below the first.
        on_chief: Function of two numbers, as ``on_worker``; or, if the second is not 0, it makes that many steps without tickets
            and keeps the watched tensors of the last.
    """

    def __init__(self, transplant: Transplant, strategy: Any) -> None:
        self._transplant = transplant
        self._strategy = strategy
        self._specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in transplant.model.batch]
        self.watched = WatchedTensors(transplant)
        with strategy.scope():
            self.tickets = tf.Variable(0, trainable=False, dtype=tf.int64)
        # There is one function in each process, since a second one would restart the stream of random numbers.
        self.on_worker = self._traced(self._share)
        self.on_chief = self._traced(self._reported_share)

    def _traced(self, share: Any) -> Any:
        return tf.function(share, [tf.TensorSpec([2], tf.int64)], autograph=False).get_concrete_function()

    def _share(self, limits: Tensor) -> TakenSteps:
        """Takes steps with tickets below ``limits[0]``."""
        return self._steps(limits, lambda batch, last: self._transplant.step(batch)[0])

    def _reported_share(self, limits: Tensor) -> TakenSteps:
        """Takes steps as ``_share`` does, or makes ``limits[1]`` steps without a ticket and keeps the last one's watched tensors."""

        def step(batch: Sequence[Tensor], last: Tensor) -> Tensor:
            early = self.watched.read_early(last)
            loss, known = self._transplant.step(batch)
            self.watched.keep(last, known, early)
            return loss

        return self._steps(limits, step)

    def _steps(self, limits: Tensor, step: Any) -> TakenSteps:
        limit, unticketed = limits[0], tf.cast(limits[1], tf.int32)

        def one(count: Tensor, drawn: _Draw, losses: Any, tickets: Any) -> tuple[Any, ...]:
            following = self._draw(count + 1, limit, unticketed, drawn.ticket)  # while the step before it runs
            loss = self._strategy.run(step, (drawn.batch, tf.equal(count + 1, unticketed)))
            return count + 1, following, losses.write(count, tf.cast(loss, tf.float32)), tickets.write(count, drawn.ticket)

        first = self._draw(tf.constant(0), limit, unticketed, None)
        arrays = [tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=[]) for dtype in (tf.float32, tf.int64)]
        _, last, losses, tickets = tf.while_loop(lambda count, drawn, *_: drawn.good, one, (0, first, *arrays))
        return TakenSteps(losses.stack(), tickets.stack(), tf.logical_not(last.given))

    def _draw(self, count: Tensor, limit: Tensor, unticketed: Tensor, ticket: Tensor | None) -> _Draw:
        """Draws a batch and a ticket for the next step.

        The batch comes first, so that no ticket is lost if the input has ended. The last batch of a call is the first of the next.

        Args:
            count: Number of steps so far in this call.
            limit: Limit of the tickets.
            unticketed: Number of steps to make without tickets; 0 to draw tickets.
            ticket: Ticket of the step before; None at first.
        """
        has_tickets = tf.equal(unticketed, 0)
        started = tf.constant(-1, tf.int64) if ticket is None else tf.where(has_tickets, ticket, tf.zeros([], tf.int64))
        given, batch = take(ticket is None, started, self._specs)
        takes_ticket = tf.logical_and(given, has_tickets)
        ticket = tf.cond(takes_ticket, self._next_ticket, lambda: tf.constant(NEVER, tf.int64))
        good = tf.logical_and(given, tf.logical_or(count < unticketed, ticket < limit))
        return _Draw(ticket, good, given, tuple(batch))

    def _next_ticket(self) -> Tensor:
        """Counts in one operation, which no other process can interrupt."""
        return tf.raw_ops.ResourceCountUpTo(resource=self.tickets.handle, limit=NEVER, T=tf.int64)


class _Draw(NamedTuple):
    """A ticket, whether it is good for a step, whether a batch was given for it, and the batch."""

    ticket: Tensor
    good: Tensor
    given: Tensor
    batch: tuple[Tensor, ...]
