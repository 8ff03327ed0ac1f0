"""Session for TF1's hooks and listeners: it reads variables, and refuses everything else by name."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any

from tensorflow.python.client.session import SessionInterface, _FetchHandler
from tensorflow.python.eager import context
from tensorflow.python.training import training_util

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.batch_stream import BatchStream
from estimator_bridge.modern.graph.fragments import Fragment, Operation, Tensor, is_source, upstream, variable_of
from estimator_bridge.modern.graph.input_pipeline import Feeds
from estimator_bridge.modern.graph.model_graph import operation, v1
from estimator_bridge.modern.graph.random_streams import unshared
from estimator_bridge.modern.graph.reference_variables import true_variables
from estimator_bridge.modern.graph.shapes import script_shapes, tf2_shapes
from estimator_bridge.modern.graph.side_effects import Effect, Effects


class Request:
    """Structure of fetches as ``Session.run`` takes it: tensors, operations, variables, names.

    Args:
        graph: Graph of the fetches.
        fetches: Fetches.
        feeds: Reference of a tensor -> its value in place of the one that the graph would compute.

    Attributes:
        tensors: Tensors to evaluate, each once; those that are fed are missing.
        operations: Operations to run.
        feeds: Reference of a tensor -> its value.
    """

    def __init__(self, graph: Any, fetches: Any, feeds: Mapping[Any, Any] = MappingProxyType({})) -> None:
        self.feeds = feeds
        self._graph = graph
        self._handler = _FetchHandler(graph, fetches, self.feeds)
        self.tensors: list[Tensor] = self._handler.fetches()
        self.operations: list[Operation] = self._handler.targets()

    @property
    def elements(self) -> list[Any]:
        """Tensors and operations."""
        return [*self.tensors, *self.operations]

    def fits_step(self, reader: ReadOnlySession) -> bool:
        """Returns True if it only reads: what the step computes anyway, and what depends on variables."""
        try:
            for element in self.elements:
                reader.needs_step(element)
        except NotSupportedError:
            return False
        return not self.feeds

    def results(self, values: Mapping[str, Any]) -> Any:
        """Returns the structure with the values of the tensors, given by name; None for an operation."""
        with self._graph.as_default():  # where TensorFlow 1's variables can be keys of a dictionary
            return self._handler.build_results(None, [values[tensor.name] for tensor in self.tensors])


class FeedConverter(v1.Session):
    """Session that only checks and converts feeds."""

    def converted(self, feed_dict: Mapping[Any, Any]) -> Feeds:
        """Returns what a session makes of a feed_dict: reference of each tensor -> array; raises the errors that it raises."""
        self.run([], feed_dict)
        return self._feeds

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Keeps the feeds, and runs nothing."""
        return super().run(self.graph.get_operations()[0], feed_dict)

    def _do_run(
        self, handle: Any, target_list: Any, fetch_list: Any, feed_dict: Any, options: Any, run_metadata: Any
    ) -> list[Any]:
        self._feeds: Feeds = feed_dict
        return []


class ReadOnlySession(SessionInterface):
    """Evaluates tensors that depend only on variables, at their present values, and initialises iterators of the input.

    Args:
        graph: Graph of the tensors.
        variables: Name of an operation -> variable with its value.
        steps: Operations that every step runs.
        references: Operation names of the variables that TensorFlow 1 made reference variables.
        batches: Batches of the run, if this process reads them.

    Attributes:
        graph: Graph of the tensors.
        references: Operation names of the variables that TensorFlow 1 made reference variables.
        known: Operation name of a variable -> its value, which need not be read.
        sess_str: Name of the process as TensorFlow gives it.
    """

    graph: Any = None
    known: Mapping[str, Any] = MappingProxyType({})
    sess_str = ""

    def __init__(
        self,
        graph: Any,
        variables: Mapping[str, Any],
        steps: frozenset[Operation],
        references: Set[str] = frozenset(),
        batches: BatchStream | None = None,
    ) -> None:
        self.graph = graph
        self._batches = batches
        self.references = references
        self._variables = variables
        self._steps = steps
        self._effects = Effects(graph)
        self._functions: dict[tuple[str, ...], Callable[[], list[Tensor]]] = {}
        self._known: dict[str, bool] = {}
        self._asker = "A script"

    @functools.cached_property
    def _converter(self) -> FeedConverter:
        return FeedConverter(graph=self.graph)

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs fetches that only read variables, or operations of the input's iterators and queues.

        Raises:
            NotSupportedError: There is a feed_dict for another part, options or metadata, or a fetch writes or needs a batch.
        """
        self.check_plain(None, options, run_metadata)
        request = Request(self.graph, fetches)
        if self._is_of_input(request):
            assert self._batches is not None
            feeds = self._converter.converted(feed_dict) if feed_dict else {}
            self._batches.session().run([], feeds, request.operations)
            return request.results({})
        self.check_plain(feed_dict, None)
        self._check_each(request)
        return request.results(self.read(request.tensors, request.operations))

    def _is_of_input(self, request: Request) -> bool:
        if self._batches is None or request.tensors or not request.operations:
            return False
        return all(map(self._batches.touches, request.operations))

    def check(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Request:
        """Returns the request of fetches that only read variables; raises the errors that ``run`` would raise for others."""
        self.check_plain(feed_dict, options, run_metadata)
        request = Request(self.graph, fetches)
        self._check_each(request)
        return request

    def _check_each(self, request: Request) -> None:
        for element in request.elements:
            self._check_alone(element)

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> Any:
        """Refuses the call."""
        raise self.refusal("uses session.partial_run_setup", "Use session.run")

    def partial_run(self, handle: Any, fetches: Any, feed_dict: Any = None) -> Any:
        """Refuses the call."""
        raise self.refusal("uses session.partial_run", "Use session.run")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self.refusal(f"uses session.{name}", "Use session.run")

    @contextlib.contextmanager
    def caller(self, asker: str) -> Iterator[ReadOnlySession]:
        """Gives this session; while active, refusals name this caller."""
        before, self._asker = self._asker, asker
        try:
            with script_environment(self.graph):
                yield self
        finally:
            self._asker = before

    def check_plain(self, feed_dict: Any, options: Any, run_metadata: Any = None) -> None:
        """Raises NotSupportedError for arguments that need a real session."""
        if feed_dict:
            fed = ", ".join(sorted(getattr(key, "name", str(key)) for key in feed_dict))
            raise self.refusal(f"feeds {fed} by a feed_dict", "Keep the value in a variable, or train on one device")
        traced = options is not None and options.trace_level != v1.RunOptions.NO_TRACE
        if traced or run_metadata is not None:
            raise self.refusal(
                "asks for RunOptions or RunMetadata", "Use tf.profiler.experimental.start and stop around the training"
            )

    def restarts_draws(self, shares_streams: bool) -> bool:
        """Returns True if another function of a step would draw the random numbers of the first one again.

        Args:
            shares_streams: True if functions share the streams that can be shared.
        """
        draws = unshared(self._steps, self._effects) if shares_streams else [op for op in self._steps if self._draws(op)]
        return bool(draws)

    def _draws(self, op: Operation) -> bool:
        return self._effects.of(op) is Effect.DRAW

    def needs_step(self, element: Any) -> bool:
        """Returns True for a tensor or operation that needs a step, False for one that can be read before it.

        Raises:
            NotSupportedError: The element writes something that the step does not write anyway.
        """
        if element.name not in self._known:
            self._known[element.name] = self._judge(element)
        return self._known[element.name]

    def _judge(self, element: Any) -> bool:
        behind = _behind(element)
        beside = upstream([operation(element)], lambda op: is_source(op) or op in self._steps)
        self._refuse_writing(element, beside)
        effects = {op for op in behind if self._effects.of(op) > Effect.NONE}
        if element is operation(element) and effects & beside:
            raise self.refusal(
                f"runs {element.name!r}, which is not part of a step ({min(op.name for op in effects & beside)!r})",
                "Let the train_op depend on it",
            )
        return bool(effects or _batches(behind))

    def is_reference(self, element: Any) -> bool:
        """Returns True for a variable whose value a session gives as it is after all that it runs.

        These are TensorFlow 1's reference variables, and the name of a variable (``"global_step:0"``), which is its handle here.
        """
        handle = variable_of(element) if element is not operation(element) else None
        return handle is not None and (handle is element or handle.op.name in self.references)

    def handles(self, fragment: Fragment) -> list[Tensor]:
        """Returns the handles of a fragment's variables."""
        return [self._variable(handle).handle for handle in fragment.handles]

    def _check_alone(self, element: Any) -> None:
        behind = _behind(element)
        self._refuse_writing(element, behind)
        batches = _batches(behind) or {op.name for op in behind & self._steps if self._effects.of(op) > Effect.NONE}
        if batches:
            raise self.refusal(
                f"evaluates {element.name!r}, which is computed with a batch ({min(batches)!r}), outside of a step",
                "Return it from before_run: tf.estimator.SessionRunArgs(fetches)",
            )

    def _refuse_writing(self, element: Any, ops: Iterable[Operation]) -> None:
        writing = sorted(op.name for op in ops if self._effects.of(op) is Effect.CHANGE)
        if writing:
            raise self.refusal(
                f"runs {element.name!r}, which may write ({writing[0]!r}, {self.graph.get_operation_by_name(writing[0]).type})",
                "Let the train_op write it (tf.group, tf.control_dependencies), or the Scaffold's init_fn before the first step",
            )

    def read(self, tensors: Sequence[Tensor], operations: Sequence[Operation] = ()) -> dict[str, Any]:
        """Returns the values, by name, of tensors that need no step, and runs ``operations``."""
        plain = {tensor.name: read_variable(tensor) for tensor in tensors}  # most hooks read only the global step
        computed = [tensor for tensor in tensors if plain[tensor.name] is None]
        key = tuple(element.name for element in (*computed, *operations))
        names = {name: handle.op.name for name, handle in plain.items() if handle is not None}
        if not key and self.known.keys() >= set(names.values()):  # at each step, the contexts below would take time
            return {name: self.known[variable] for name, variable in names.items()}
        with context.eager_mode(), tf2_shapes():
            if key and key not in self._functions:
                self._functions[key] = self._function(computed, operations)
            read = {name: self._value(handle) for name, handle in plain.items() if handle is not None}
            values = self._functions[key]() if key else []
            return read | {tensor.name: value.numpy() for tensor, value in zip(computed, values, strict=True)}

    def _value(self, handle: Tensor) -> Any:
        name = handle.op.name
        return self.known[name] if name in self.known else self._variable(handle).numpy()

    def _variable(self, handle: Tensor) -> Any:
        if handle.op.name not in self._variables:
            raise self.refusal(
                f"reads the variable {handle.op.name!r}, which the modern path keeps in another form", "Leave it out"
            )
        variable = self._variables[handle.op.name]
        return variable.values[0] if hasattr(variable, "values") else variable  # of the first replica

    def _function(self, tensors: Sequence[Tensor], operations: Sequence[Operation]) -> Callable[[], list[Tensor]]:
        ops = upstream([*(tensor.op for tensor in tensors), *operations], is_source)
        fragment = Fragment.cut(ops, tensors)
        handles = self.handles(fragment)
        call = fragment.function(handles)
        return lambda: call(handles, [])

    def refusal(self, what: str, instead: str) -> NotSupportedError:
        """Returns the error for the present caller."""
        return NotSupportedError(
            f"{self._asker} {what}, which the modern path cannot do here: it has no session.",
            expected="reading of what depends only on variables",
            fix=f"{instead}; or use --path legacy.",
        )


@contextlib.contextmanager
def script_environment(graph: Any) -> Iterator[None]:
    """Gives a script's own code the environment of TF1 while active: its graph as the default graph, its shapes, variables that are true."""
    with graph.as_default(), script_shapes(), true_variables():
        yield


def read_variable(tensor: Tensor) -> Tensor | None:
    """Returns the handle of the variable whose value a tensor is; None if it is something else."""
    # TensorFlow's hooks read the global step by an operation of their own, which would give the initial value before initialisation.
    if any(tensor is read for read in tensor.graph.get_collection(training_util.GLOBAL_STEP_READ_KEY)):
        return v1.train.get_global_step(tensor.graph).handle
    return variable_of(tensor)


def _behind(element: Any) -> set[Operation]:
    return upstream([operation(element)], is_source) | {operation(element)}


def _batches(ops: Iterable[Operation]) -> set[str]:
    """Returns the names of sources that are not variables: the tensors of a batch."""
    sources = [one for op in ops for one in (op, *(tensor.op for tensor in op.inputs)) if is_source(one)]
    return {op.name for op in sources if op.type != "VarHandleOp"}
