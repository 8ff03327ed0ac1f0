"""The result of an input_fn as a tf.data.Dataset that runs outside of its graph."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.data.util import structure

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import Fragment, Operation, Tensor, refused, upstream
from estimator_bridge.modern.graph.variables import assigned
from estimator_bridge.runtime.patching import wrapped

v1 = tf.compat.v1
_VARIABLES = ("VarHandleOp", "Variable", "VariableV2")
_GET_NEXT = ("IteratorGetNext", "IteratorGetNextSync")
Feeds = Mapping[Any, Any]
"""Reference of a tensor (``tensor.ref()``) -> its value."""


@contextlib.contextmanager
def recorded_iterators() -> Iterator[list[tuple[Any, Any]]]:
    """Yields a list to which each new v1 iterator is added while this is active, with its dataset."""
    made: list[tuple[Any, Any]] = []

    def recording(original: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        iterator = original(dataset, *args, **kwargs)
        made.append((iterator, dataset))
        return iterator

    cls = tf.compat.v1.data.Dataset
    with wrapped(cls, _make_one_shot_iterator=recording, _make_initializable_iterator=recording):
        yield made


class InputSession:
    """A real session with the iterators, queues and tables of an input; it begins with the first call of ``run`` or ``batch``.

    Args:
        leaves: Tensors of a batch.
        initializers: Operations that run before all others.
        iterators: Initialisers of iterators, which run before the first batch unless the script has run or must feed them.
        queue_runners: Queue runners, which start before the first batch.
    """

    def __init__(
        self,
        leaves: Sequence[Tensor],
        initializers: Sequence[Operation] = (),
        iterators: Sequence[Operation] = (),
        queue_runners: Sequence[Any] = (),
    ) -> None:
        self._leaves = list(leaves)
        self._initializers = list(initializers)
        self._iterators = list(iterators)
        self._queue_runners = list(queue_runners)
        self._coordinator = v1.train.Coordinator()
        self._threads: list[Any] | None = None
        self._session: Any = None
        self._done: set[Operation] = set()

    def run(self, tensors: Sequence[Tensor], feeds: Feeds | None = None, operations: Sequence[Operation] = ()) -> list[Any]:
        """Runs a part of the input, e.g., the initialiser of an iterator, and returns the values of ``tensors``."""
        if self._session is None:
            # No `with`: after an exception, a session's exit starts a thread, which never returns while Python exits.
            self._session = v1.Session(graph=self._leaves[0].graph)
            self._session.run(self._initializers)
            self._done.update(self._initializers)
        values: list[Any]
        fed = {ref.deref(): value for ref, value in (feeds or {}).items()}
        values, _ = self._session.run([list(tensors), list(operations)], fed)
        self._done.update(operations)
        return values

    def batch(self, feeds: Feeds | None = None) -> list[Any]:
        """Returns the values of the next batch.

        Raises:
            tf.errors.OutOfRangeError: The input has ended.
            Exception: An error ended a queue early.
        """
        if self._threads is None:
            self.run([], operations=[op for op in self._iterators if op not in self._done and not _is_fed(op)])
            self._threads = [
                thread
                for runner in self._queue_runners
                for thread in runner.create_threads(self._session, coord=self._coordinator, daemon=True, start=True)
            ]
        try:
            return self.run(self._leaves, feeds)
        except tf.errors.OutOfRangeError:
            self._coordinator.raise_requested_exception()
            raise

    def batches(self) -> Iterator[tuple[Any, ...]]:
        """Yields batches until the input ends."""
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                yield tuple(self.batch())

    def close(self) -> None:
        """Closes the session, if there is one."""
        self._coordinator.request_stop()
        if self._session is not None:
            self._session.close()


def _is_fed(op: Operation) -> bool:
    return any(one.type == "Placeholder" for one in upstream([op]))


@dataclasses.dataclass(frozen=True)
class InputPipeline:
    """The tensors that an input_fn left in its graph, and their sources.

    Attributes:
        structure: (features, labels) as the model_fn receives them.
        datasets: Name of an iterator operation -> its dataset.
        queue_runners: Queue runners that a session must start first if the input is no dataset.
        initializers: Operations that a session must run first if the input is no dataset.
        iterators: Initialisers of iterators, which a session must run next unless the script does.
        session: Session in which the input runs for a script's hooks; None if it runs by itself.
    """

    structure: Any
    datasets: Mapping[str, Any]
    queue_runners: tuple[Any, ...] = ()
    initializers: tuple[Any, ...] = ()
    iterators: tuple[Any, ...] = ()
    session: InputSession | None = None

    @property
    def leaves(self) -> list[Tensor]:
        """The tensors of ``structure``, with composite tensors as their components, and without other values."""
        flat = tf.nest.flatten(self.structure, expand_composites=True)
        return [leaf for leaf in flat if tf.is_tensor(leaf)]

    def with_leaves(self, leaves: list[Tensor]) -> Any:
        """Returns ``structure`` with its tensors replaced by ``leaves``."""
        remaining = iter(leaves)
        flat = tf.nest.flatten(self.structure, expand_composites=True)
        replaced = [next(remaining) if tf.is_tensor(leaf) else leaf for leaf in flat]
        return tf.nest.pack_sequence_as(self.structure, replaced, expand_composites=True)

    @property
    def variables(self) -> list[Operation]:
        """The operations that give the handles of the variables that the pipeline uses."""
        return [op for op in self._upstream if op.type in _VARIABLES]

    @functools.cached_property
    def _upstream(self) -> set[Operation]:
        variants = [dataset._variant_tensor.op for dataset in self.datasets.values()]
        return upstream([*variants, *(leaf.op for leaf in self.leaves)])

    def check(self) -> None:
        """Raises NotSupportedError if the pipeline reads a variable that does not belong to it alone.

        Local variables belong to it, and variables with a constant value that it only reads.
        """
        leaves = self.leaves
        if not leaves:
            return
        known = {variable.op.name: variable for variable in leaves[0].graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)}
        written, after = assigned(self._upstream), upstream([leaf.op for leaf in leaves])
        for op in self.variables:
            variable = known.get(op.name)
            if variable is None:
                continue
            if op.name in written or _may_vary(variable) or (variable.trainable and op in after):
                raise _refused_variable(op, "whose value checkpoints hold and may change")

    def check_unwritten(self, written: Collection[str]) -> None:
        """Raises NotSupportedError if the pipeline reads a variable that a training step writes, given by name."""
        for op in self.variables:
            if op.name in written:
                raise _refused_variable(op, "which the training step changes")

    @property
    def is_fed(self) -> bool:
        """True if the pipeline reads a placeholder, which a hook has to feed."""
        return any(op.type == "Placeholder" for op in self._upstream)

    def dataset(self) -> tf.data.Dataset:
        """Returns the same batches in the same order as flat tuples of ``leaves``; call it in eager mode."""
        if self.session or self.is_fed:
            return self._from_session()
        ops = upstream([leaf.op for leaf in self.leaves], lambda op: op.type in _GET_NEXT)
        read = [*self.leaves, *(tensor for op in ops for tensor in op.inputs)]
        sources = {tensor.op for tensor in read if tensor.op.type in _GET_NEXT}
        is_free = not (self.variables or any(op.op_def.is_stateful for op in ops))
        get_next = sources.pop() if len(sources) == 1 and is_free else None
        source = self.datasets.get(get_next.inputs[0].op.name) if get_next else None
        if get_next is None or source is None:
            return self._from_session()
        if not ops and [leaf.value_index for leaf in self.leaves] == list(range(len(get_next.outputs))):
            return _eager_dataset(source, self._signature)
        dataset = _eager_dataset(source, dataset_ops.get_structure(source))
        fragment = Fragment.cut(ops, self.leaves)
        call, spec = fragment.function([]), source.element_spec

        def leaves(*element: Any) -> tuple[Tensor, ...]:
            tensors = structure.to_tensor_list(spec, element if isinstance(spec, tuple) else element[0])
            given = {output.name: tensor for output, tensor in zip(get_next.outputs, tensors, strict=True)}
            return tuple(call([], [given[tensor.name] for tensor in fragment.inputs]))

        return dataset.map(leaves)

    @property
    def _signature(self) -> tuple[tf.TensorSpec, ...]:
        return tuple(tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in self.leaves)

    def in_session(self) -> InputPipeline:
        """Returns the pipeline in a session that hooks can use, too; the caller closes it."""
        return dataclasses.replace(self, session=self._session())

    def _session(self) -> InputSession:
        return InputSession(self.leaves, self.initializers, self.iterators, self.queue_runners)

    def _from_session(self) -> tf.data.Dataset:
        """Returns the batches of queues, variables and other stateful input, which run in a session of their own."""

        def batches() -> Iterator[tuple[Any, ...]]:
            session = self.session or self._session()
            with contextlib.nullcontext() if self.session else contextlib.closing(session):
                yield from session.batches()

        return tf.data.Dataset.from_generator(batches, output_signature=self._signature)


def _may_vary(variable: Any) -> bool:
    """Returns True for the global step, and for a variable that does not always begin with the same value."""
    return variable is v1.train.get_global_step(variable.graph) or any(
        op.op_def.is_stateful for op in upstream([variable.initial_value.op])
    )


def _refused_variable(op: Operation, what: str) -> NotSupportedError:
    return refused(
        op,
        f"The input_fn uses the variable {op.name!r}, {what}; the modern path runs the input apart from the model.",
        expected="local variables, as tf.train.limit_epochs has, and variables with a constant initial value that nothing writes",
        fix="Use a local variable (collections=[tf.GraphKeys.LOCAL_VARIABLES]), or --path legacy.",
    )


def read_ahead(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns the same batches, which are made while a step computes.

    TensorFlow's tuning of data pipelines is off, since a tuned eager iterator of 2.21 sometimes waits up to a minute at its end.

    Args:
        dataset: Batches; parallel calls that are AUTOTUNE keep TensorFlow's initial number.

    Returns:
        The dataset, read two batches ahead, or as far as the script's own prefetch at its end.

    Example:
        >>> import tensorflow as tf
        >>> [int(number) for number in read_ahead(tf.data.Dataset.range(3))]
        [0, 1, 2]
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return (dataset if isinstance(dataset, _ReadAhead) else dataset.prefetch(2)).with_options(options)


@contextlib.contextmanager
def releasing() -> Iterator[None]:
    """Frees the input pipelines of a function that it decorates when the function ends.

    A pipeline that lives until Python exits may wait then for a py_func or a generator of the script, which Python has stopped. If the
    function raises, the variables of its frames are freed, too.
    """
    try:
        yield
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        gc.collect()  # a compiled function and what it captures refer to each other


class _ReadAhead(dataset_ops._VariantDataset):
    """Dataset whose last operation is a prefetch of the script."""


def _eager_dataset(dataset: Any, element_spec: Any) -> tf.data.Dataset:
    variant = dataset._variant_tensor
    ops = upstream([variant.op])
    with tf.device("/cpu:0"):
        (value,) = Fragment.cut(ops, [variant]).function([])([], [])
    cls = _ReadAhead if variant.op.type.startswith("Prefetch") else dataset_ops._VariantDataset
    return cls(value, element_spec)
