"""Session for hooks on one replica: it runs any part of the model's graph on the modern path's variables and batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.modern.callbacks.session import FeedConverter, ReadOnlySession, read_variable
from estimator_bridge.modern.graph.batch_stream import BatchStream
from estimator_bridge.modern.graph.fragments import Fragment, Operation, Tensor, is_source, refused, upstream
from estimator_bridge.modern.graph.input_pipeline import Feeds
from estimator_bridge.modern.graph.model_graph import operation
from estimator_bridge.modern.graph.random_streams import RandomStreams, unshared
from estimator_bridge.modern.graph.reference_variables import read_after_writes
from estimator_bridge.modern.graph.shapes import tf2_shapes
from estimator_bridge.modern.graph.side_effects import Effects


@dataclasses.dataclass(frozen=True)
class _Part:
    """A part of a graph that one call of ``run`` executes.

    Attributes:
        call: Function of ``inputs``, which returns ``outputs``.
        inputs: Tensors that come from feeds, the batch and the input.
        outputs: Tensors to return.
        crossing: Tensors of the input that the part reads beside the batch.
        operations: Operations of the input to run.
        batch: True if it needs a batch.
    """

    call: Callable[[list[Any]], list[Tensor]]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    crossing: list[Tensor]
    operations: list[Operation]
    batch: bool


class GraphSession(tf.compat.v1.Session):
    """A session of TensorFlow 1 for a script's code, which takes fetches and feeds as any session does.

    Each call runs what its fetches need of the graph, and no more. What needs a batch takes the next one, as in TensorFlow 1. The
    iterators and queues of the input run in the input's own session.

    Args:
        reader: Session that only reads the same variables.
        placeholders: Placeholders of the model for the tensors of a batch.
        batches: Batches of the run.
        coordinator: Coordinator of the run.
        streams: Streams of random numbers of all that the run executes.

    Attributes:
        has_run: True once a call has run more than reading variables.
    """

    has_run = False

    def __init__(
        self,
        reader: ReadOnlySession,
        placeholders: Sequence[Tensor],
        batches: BatchStream,
        coordinator: Any,
        streams: RandomStreams,
    ) -> None:
        super().__init__(graph=reader.graph)
        self._reader = reader
        self._batches = batches
        self._leaf = {placeholder.name: leaf for placeholder, leaf in zip(placeholders, batches.leaves, strict=True)}
        self._leaf |= {leaf.name: leaf for leaf in batches.leaves}
        self._coordinator = coordinator
        self._streams = streams
        self._effects = Effects(reader.graph)
        self._drawn: dict[Operation, Any] = {}
        self._parts: dict[Any, _Part] = {}
        self._converter = FeedConverter(graph=reader.graph)

    def close(self) -> None:
        """Closes the session; its fetches cannot run any more."""
        self._converter.close()
        super().close()

    def should_stop(self) -> bool:
        """Returns True once a hook has asked to stop."""
        return bool(self._coordinator.should_stop())

    def make_callable(self, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Callable[..., Any]:
        """Returns a function of the values of ``feed_list`` that runs ``fetches``."""
        return lambda *values: self.run(fetches, dict(zip(feed_list or (), values, strict=True)))

    def feeds(self, feed_dict: Mapping[Any, Any]) -> Feeds:
        """Returns what ``run`` makes of a feed_dict: reference of each tensor -> array; raises the errors that ``run`` raises."""
        return self._converter.converted(feed_dict) if feed_dict else {}

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> Any:
        """Refuses the call."""
        raise self._reader.refusal("uses session.partial_run_setup", "Use session.run")

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs operations and tensors once.

        Raises:
            NotSupportedError: The caller asks for a trace.
        """
        self._reader.check_plain(None, options, run_metadata)  # as they are here: _do_run gets buffers
        return super().run(fetches, feed_dict)

    def _do_run(
        self, handle: Any, target_list: Any, fetch_list: Any, feed_dict: Any, options: Any, run_metadata: Any
    ) -> list[Any]:
        values = self.compute([*fetch_list, *target_list], feed_dict)
        return [values[tensor.name] for tensor in fetch_list]

    def compute(self, elements: Sequence[Any], feeds: Feeds) -> dict[str, Any]:
        """Runs operations and tensors once, all together.

        Args:
            elements: Operations and tensors of the graph.
            feeds: Values of tensors in place of those that the graph would compute.

        Returns:
            Name -> value of the tensors among ``elements``, and of those of the batch, if any.

        Raises:
            tf.errors.OutOfRangeError: The input has ended.
            tf.errors.InvalidArgumentError: A placeholder has no value.
            NotSupportedError: The modern path cannot run them.
        """
        # A function's call takes as long as some small steps, and most hooks read the global step alone.
        only_reads = not feeds and all(tf.is_tensor(element) and read_variable(element) is not None for element in elements)
        references = [element for element in elements if only_reads or self._reader.is_reference(element)]
        computed = [element for element in elements if not only_reads and not self._reader.is_reference(element)]
        values = self._run_part(computed, feeds) if computed else {}
        return values | self._reader.read(references)

    def _run_part(self, elements: Sequence[Any], feeds: Feeds) -> dict[str, Any]:
        fed = {ref.deref().name: value for ref, value in feeds.items()}
        key = tuple(element.name for element in elements), tuple(sorted(fed))
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = self._cut(elements, frozenset(fed), key)
        known = self.read_input(part, feeds) | fed
        known |= {name: known[leaf.name] for name, leaf in self._leaf.items() if leaf.name in known and name not in fed}
        with context.eager_mode(), tf2_shapes():
            given = [tf.convert_to_tensor(_value(known, tensor), tensor.dtype) for tensor in part.inputs]
            self.has_run, self._reader.known = True, {}  # also if it fails half-way
            outputs = part.call(given)
            return known | {tensor.name: value.numpy() for tensor, value in zip(part.outputs, outputs, strict=True)}

    def claim(self, ops: Iterable[Operation], function: Any) -> None:
        """Notes which function draws the random numbers whose streams functions cannot share.

        Args:
            ops: Operations of a function.
            function: Key of the function.

        Raises:
            NotSupportedError: Another function draws some of them, too.
        """
        for op in unshared(ops, self._effects):
            if self._drawn.setdefault(op, function) != function:
                raise refused(
                    op,
                    f"Session hooks make the seeded random operation {op.name!r} ({op.type}) run in two ways.",
                    expected="with such hooks: tf.random_normal, random_uniform and truncated_normal, outside of tf.cond",
                    fix="Leave out the seed of this operation and RunConfig(tf_random_seed=...), or use --path legacy.",
                )

    def read_input(self, part: _Part, feeds: Feeds) -> dict[str, Any]:
        """Runs what a part needs of the input."""
        known: dict[str, Any] = {}
        if part.crossing or part.operations:
            values = self._batches.session().run(part.crossing, feeds, part.operations)
            known = {tensor.name: value for tensor, value in zip(part.crossing, values, strict=True)}
        if part.batch:
            leaves = self._batches.leaves
            known |= {leaf.name: value for leaf, value in zip(leaves, self._batches.next(feeds), strict=True)}
        return known

    def _cut(self, elements: Sequence[Any], fed: frozenset[str], key: Any) -> _Part:
        outside = fed | self._leaf.keys()

        def parents(op: Operation) -> Iterable[Operation]:
            yield from (tensor.op for tensor in op.inputs if tensor.name not in outside)
            yield from op.control_inputs

        ends = [operation(element) for element in elements if element is operation(element) or element.name not in outside]
        ops = upstream(ends, is_source, parents)
        of_input = upstream([op for op in ops if self._batches.touches(op)], lambda op: op not in ops, parents)
        _check_input(of_input, outside, self._batches.pipeline.variables)
        rest = ops - of_input
        self.claim(rest, key)
        outputs = [element for element in elements if tf.is_tensor(element)]
        read = [*(tensor for op in rest for tensor in op.inputs), *outputs]
        crossing = {tensor.name: tensor for tensor in read if tensor.op in of_input and tensor.name not in outside}
        fragment = read_after_writes(Fragment.cut(rest, outputs, outside | crossing.keys()), rest, self._reader.references)
        handles = self._reader.handles(fragment)
        call = self._streams.shared(fragment).function(handles)
        inputs = fragment.inputs
        needs_batch = any(
            tensor.name in self._leaf and not {tensor.name, self._leaf[tensor.name].name} & fed for tensor in inputs
        )
        ends_of_input = [op for op in of_input if not op.outputs]
        return _Part(
            lambda given: call(handles, given), inputs, tuple(outputs), [*crossing.values()], ends_of_input, needs_batch
        )


def _check_input(ops: Iterable[Operation], fed: Set[str], own: Collection[Operation]) -> None:
    """Raises NotSupportedError if a part of the input needs a batch, or a variable other than its ``own``."""
    for op in ops:
        sources = [one.op for one in op.inputs if one.name not in fed and is_source(one.op) and one.op.type != "Placeholder"]
        if any(one not in own for one in sources):
            raise refused(
                op,
                f"The iterator or queue operation {op.name!r} reads a variable of the model or a batch.",
                expected="an input of constants, files, feeds and Python values",
                fix="Use --path legacy for this script.",
            )


def _value(known: Mapping[str, Any], tensor: Tensor) -> Any:
    if tensor.name in known:
        return known[tensor.name]
    message = f"You must feed a value for placeholder tensor {tensor.op.name!r} with dtype {tensor.dtype.name}"
    raise tf.errors.InvalidArgumentError(None, tensor.op, message)
