"""Pipelines: the stages of different micro-batches computed at the same time, each stage on devices of its own.

All calls of a step are parts of one function, in which TensorFlow runs each as soon as it has its inputs. A stage begins with another
micro-batch only when it holds the activations of fewer than as many as there are stages from it to the last (one forward, one backward).
"""

from __future__ import annotations

import dataclasses
import functools
import graphlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from estimator_bridge.modern.graph.fragments import Fragment, Operation, Tensor, is_copied, refused
from estimator_bridge.modern.graph.random_streams import unshared
from estimator_bridge.modern.graph.side_effects import Effects
from estimator_bridge.modern.graph.stages import Stage
from estimator_bridge.modern.parallel.micro_batches.loop import Loop, MicroBatches


@dataclasses.dataclass(frozen=True)
class Piece:
    """Computation of one stage for one micro-batch, forward or backward; the last stage does both at once.

    Attributes:
        fragment: Operations.
        call: Function of the fragment.
        device: First device of the stage; None for what follows losses and gradients, e.g., metrics.
        waits_for: Number of the piece that ends the use of the activations that this one makes, and of micro-batches of which they are
            held; None if they are not limited.
    """

    fragment: Fragment
    call: Callable[[Sequence[Tensor]], list[Tensor]]
    device: str | None
    waits_for: tuple[int, int] | None


def check_draws(inside: Collection[Operation]) -> None:
    """Refuses random operations that would draw the same numbers for each micro-batch.

    Args:
        inside: Operations that losses and gradients are computed by.

    Raises:
        NotSupportedError: There is one.
    """
    for op in unshared(inside, Effects(next(iter(inside)).graph)) if inside else ():
        raise refused(
            op,
            f"{op.name!r} ({op.type}) would draw the same random numbers for each micro-batch of a pipeline.",
            expected="random operations outside of loops and branches, or without a seed",
            fix="Train without pipeline; model=N places a model on N devices.",
        )


def pieces(
    each: Stage,
    core: Collection[Operation],
    forward: Collection[Operation],
    devices: Mapping[str, str],
    stages: Sequence[Sequence[str]],
    references: Collection[str],
    function: Callable[[Fragment], Any],
) -> list[Piece]:
    """Cuts the operations of a micro-batch into what each stage computes, in an order in which each piece reads only earlier ones.

    Args:
        each: Operations of a micro-batch.
        core: Operations that losses and gradients are computed by.
        forward: Operations that losses are computed by.
        devices: Name of an operation -> device.
        stages: Devices of each stage.
        references: Operation names of the variables that TensorFlow 1 made reference variables.
        function: Function that imports a fragment.
    """
    inside = each.operations & set(core)
    last = len(stages) - 1
    places = {name: stage for stage, names in enumerate(stages) for name in names}
    order: dict[Operation, int] = {}
    reads = {op: [tensor.op for tensor in op.inputs if tensor.op in inside] for op in inside}
    for op in graphlib.TopologicalSorter(reads).static_order():
        place = places.get(devices.get(op.name, ""), 0)
        own = place if op in forward else 2 * last - place
        order[op] = max([own, *(order[one] for one in reads[op])])
    groups = [{op for op in inside if order[op] == number} for number in range(2 * last + 1)]
    groups.append(set(each.operations - inside))
    wanted, made = list(each.fragment.outputs), list[Piece]()
    for number, ops in reversed(list(enumerate(groups))):
        outputs = {tensor.name: tensor for tensor in wanted if tensor.op in ops}
        fragment = Stage.cut(ops, list(outputs.values()), frozenset(references)).fragment
        wanted += [tensor for op in ops for tensor in op.inputs if not is_copied(tensor.op)]
        device = stages[min(number, 2 * last - number)][0] if number <= 2 * last else None
        waits_for = (2 * last - number, len(stages) - number) if number <= last else None
        made.insert(0, Piece(fragment, function(fragment), device, waits_for))
    return made


class PipelinedLoop(Loop):
    """Loop whose micro-batches overlap; a batch with fewer rows than micro-batches is computed one row after the other.

    Args:
        args: Arguments of ``Loop``.
        number: Number of micro-batches.
        pieces: Pieces of a micro-batch.
        timed: True to measure when each piece began and ended.
        kwargs: Arguments of ``Loop``.

    Attributes:
        times: Variable of shape [micro-batches, pieces, 2]: when all inputs and all outputs of a piece were there in the last step that
            overlapped, in seconds; zeros before.
    """

    def __init__(self, *args: Any, number: int, pieces: Sequence[Piece], timed: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._number = number
        self._pieces = pieces
        self._timed = timed
        self.times = ResourceVariable(tf.zeros([number, len(pieces), 2], tf.float64), trainable=False)

    def _repeated(self, micro: MicroBatches, known: Mapping[str, Any]) -> Any:
        overlapped = functools.partial(self._overlapped, micro, known)
        if micro.are_equal:
            return overlapped()
        return tf.cond(micro.count == self._number, overlapped, functools.partial(super()._repeated, micro, known))

    def _overlapped(self, micro: MicroBatches, known: Mapping[str, Any]) -> Any:
        totals = self._start_totals(micro)
        started: list[list[Tensor]] = []  # for each micro-batch, when each piece had its inputs
        ended: list[list[Tensor]] = []  # and its outputs
        for number in range(self._number):
            index = tf.constant(number, tf.int64)
            started.append([])
            values = self._computed({**known, **self._own(micro, index, known)}, started[-1], ended)
            totals = self._add_to_totals(micro, index, [values[tensor.name] for tensor in self._fragment.outputs], totals)
            combined = zip(self._fragment.outputs, totals[0], strict=True)
            values |= {tensor.name: one for tensor, one in combined if tf.is_tensor(one)}
            outputs = ([values[one.name] for one in piece.fragment.outputs] for piece in self._pieces)
            ended.append([self._time(piece, tensors) for piece, tensors in zip(self._pieces, outputs, strict=True)])
        if self._timed:
            self.times.assign(tf.stack([started, ended], axis=-1))
        return self._end_totals(micro, totals)

    def _computed(
        self, values: dict[str, Tensor], started: list[Tensor], ended: Sequence[Sequence[Tensor]]
    ) -> dict[str, Tensor]:
        for piece in self._pieces:
            inputs = [values[tensor.name] for tensor in piece.fragment.inputs]
            with tf.device(piece.device):
                if piece.waits_for and len(ended) >= piece.waits_for[1]:
                    end = ended[len(ended) - piece.waits_for[1]][piece.waits_for[0]]
                    with tf.control_dependencies([end]):
                        inputs = [tf.identity(one) for one in inputs]
                started.append(self._time(piece, inputs))
                outputs = piece.call(inputs)
                values.update(zip((tensor.name for tensor in piece.fragment.outputs), outputs, strict=True))
        return values

    def _time(self, piece: Piece, tensors: Sequence[Tensor]) -> Tensor:
        """Returns when tensors of a piece were there, combined with those of other micro-batches; 0 if nobody wants to know."""
        with tf.device(piece.device), tf.control_dependencies([tf.identity(one) for one in tensors]):
            if not self._timed:
                return tf.constant(0.0, tf.float64)
            # tf.timestamp would wait for all operations with side effects before it. One that depends on nothing would run only once.
            element = [tf.reshape(one, [-1])[:1] for one in tensors if one.dtype.is_floating][:1]
            now = tf.numpy_function(lambda *_: np.float64(time.perf_counter()), element, tf.float64, stateful=False)
            return tf.ensure_shape(now, [])
