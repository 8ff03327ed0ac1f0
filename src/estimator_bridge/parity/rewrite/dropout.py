"""Makes dropout and noise equal on both sides: a function of the step, the static shape, the rate, the occurrence and a loop's turn.

All dropout of TensorFlow 1 and of tf_keras goes through one function of TensorFlow, and so does each distribution. Its static shape in the
new script may name sizes that it leaves open in the old one, as of sequences of any length, and the other way round.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import tensor_util

from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.runtime.graph_values import GraphValues
from estimator_bridge.runtime.patching import wrap

DROPOUT = "dropout"
_UNIT = {
    "random_standard_normal": ("normal", tf.random.stateless_normal),
    "random_uniform": ("uniform", tf.random.stateless_uniform),
    "truncated_normal": ("truncated normal", tf.random.stateless_truncated_normal),
}
"""Functions of ``gen_random_ops`` that all others scale: the distribution, and the function that draws it from a seed."""


@dataclasses.dataclass(frozen=True)
class Site:
    """A dropout operation in a graph, or one that draws other random numbers.

    Attributes:
        shape: Static shape without the batch dimension; None if the rank is not known.
        rate: Share of dropped units, rounded; None if it is a tensor.
        what: ``DROPOUT``, or the distribution and type of other random numbers.
        draw: Operation that draws the mask; None in eager execution.
        number: Tensor with the occurrence, which can be fed; None outside a TensorFlow 1 graph.
    """

    shape: tuple[int | None, ...] | None
    rate: float | None
    what: str = DROPOUT
    draw: Any = None
    number: Any = None

    @property
    def kind(self) -> tuple[Any, ...]:
        """The properties that sites with distinct occurrences share."""
        return self.what, self.shape, self.rate

    def like(self, others: Sequence[Site]) -> Site:
        """Returns the site with the shape of another side's site, if that is of its kind and only leaves other sizes open.

        Args:
            others: Sites of the other side; of those that fit, the one that leaves fewest sizes open is taken.
        """
        like = (other for other in others if (other.what, other.rate) == (self.what, self.rate))
        fitting = [other for other in like if _fit(other.shape, self.shape)]
        best = min(fitting, key=lambda other: (other.shape != self.shape, (other.shape or ()).count(None)), default=self)
        return dataclasses.replace(self, shape=best.shape)


sites: GraphValues[list[Site]] = GraphValues()
"""Graph -> its dropout operations in the order in which they were made."""
refused: GraphValues[list[tuple[str, Any]]] = GraphValues()
"""Graph -> (name, operation) of each draw inside of a loop whose turns are not counted, which keeps its own random numbers."""
drawn: Counter[str] = Counter()
"""Number of ``masks`` that operations were made for, in any graph or eagerly, and of those that ``surely`` drop units wherever they are made."""
_eager: Counter[tuple[Any, ...]] = Counter()
_turns: list[Any] = []  # of the loops whose body is being built, the outermost first: int64 tensors that count from 0


def drawn_since(before: Counter[str]) -> dict[str, int]:
    """Returns what an evaluation has drawn, as its event says it.

    Args:
        before: Copy of ``drawn`` at its begin.
    """
    return {"dropout": drawn["masks"] - before["masks"], "surely": drawn["surely"] - before["surely"]}


def begin_step() -> None:
    """Forgets the occurrences of the last step that ran eagerly."""
    _eager.clear()


def eager_sites() -> list[Site]:
    """Returns the sites of the present step, if it runs eagerly."""
    return [Site(shape, rate, what) for what, shape, rate in _eager.elements()]


def write_sites(trace: Trace, found: Sequence[Site], loops: Sequence[str]) -> None:
    """Writes what a training step draws.

    Args:
        trace: Trace of the side.
        found: Sites that the step runs.
        loops: Names of those that keep their own random numbers.
    """
    masks = [[site.shape, site.rate] for site in found if site.what == DROPOUT]
    trace.write("dropout", sites=masks, loops=loops)
    trace.write("draws", sites=[[site.shape, site.what] for site in found if site.what != DROPOUT])


def read_sites(trace: Trace) -> list[Site]:
    """Returns what the training steps of a side draw, each kind once.

    Args:
        trace: Trace of the side.
    """
    masks = [Site(_tuple(shape), rate) for event in trace.events("dropout") for shape, rate in event["sites"]]
    draws = [Site(_tuple(shape), None, what) for event in trace.events("draws") for shape, what in event["sites"]]
    return list(dict.fromkeys([*masks, *draws]))


def _tuple(shape: list[int | None] | None) -> tuple[int | None, ...] | None:
    return None if shape is None else tuple(shape)


def _fit(one: tuple[int | None, ...] | None, other: tuple[int | None, ...] | None) -> bool:
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def equalise(step: Callable[[], Any], feeds: bool, trains: Callable[[], bool], others: Sequence[Site] = ()) -> None:
    """Replaces how dropout draws, and how other functions do in training steps, for the life of the process.

    Args:
        step: Function that returns the global step before the training step, as an int64 tensor.
        feeds: True to make occurrences placeholders, which ``occurrences`` corrects once the graph is complete.
        trains: Function that returns True while a training step is made, or executed.
        others: Sites of the other side, whose masks this side draws.
    """
    from tensorflow.python.ops import gen_random_ops, nn_ops, while_loop

    def dropout(
        original: Callable[..., Any], x: Any, rate: Any, noise_shape: Any, uniform_sampler: Any, *args: Any, **kwargs: Any
    ) -> Any:
        graph = None if tf.executing_eagerly() else outermost(tf.compat.v1.get_default_graph(), feeds)
        given = x, rate, noise_shape, uniform_sampler, *args
        dropped = _kept(graph, functools.partial(original, *given, **kwargs), DROPOUT)
        if dropped is not None:
            return dropped
        value = tf.get_static_value(rate) if tf.is_tensor(rate) else rate
        shape = None if x.shape.rank is None else tuple(x.shape.as_list()[1:])
        site = Site(shape, None if value is None else round(float(value), 4)).like(others)

        def sample(shape: Any, dtype: Any) -> Any:
            return _draw(site, graph, step, feeds, functools.partial(tf.random.stateless_uniform, shape, dtype=dtype))

        return original(x, rate, noise_shape, sample, *args, **kwargs)

    def unit(name: str, original: Callable[..., Any], shape: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        make = functools.partial(original, shape, dtype, *args, **kwargs)
        if not trains() or "/Initializer/" in f"/{tf.get_current_name_scope()}/":
            return make()
        graph = None if tf.executing_eagerly() else outermost(tf.compat.v1.get_default_graph(), feeds)
        drawn = _kept(graph, make, name)
        if drawn is not None:
            return drawn
        what, draw = _UNIT[name]
        static = tensor_util.constant_value_as_shape(tf.convert_to_tensor(shape, tf.int32))
        sizes = None if static.rank is None else tuple(static.as_list()[1:])
        site = Site(sizes, None, f"{what} {tf.as_dtype(dtype).name}").like(others)
        return _draw(site, graph, step, feeds, functools.partial(draw, shape, dtype=dtype))

    wrap(nn_ops, _dropout=dropout)
    wrap(gen_random_ops, **{name: functools.partial(unit, name) for name in _UNIT})
    for module in (while_loop, tf.compat.v1):
        wrap(module, while_loop=_counted)


def _kept(graph: Any, make: Callable[[], Any], name: str) -> Any:
    """Returns what a function draws by itself where no step runs it, and in a loop whose turns are not counted; elsewhere None."""
    inner = tf.compat.v1.get_default_graph()
    if graph is None or (_loops() == len(_turns) and not _is_structure(inner)):
        return None
    made = make()
    if not _is_structure(inner):
        refused.setdefault(graph, []).append((inner.get_name_scope() or name, made.op))
    return made


def _counted(original: Callable[..., Any], cond: Any, body: Any, loop_vars: Any, *args: Any, **kwargs: Any) -> Any:
    """Executes ``tf.while_loop`` with one more variable: the number of the turn."""
    if tf.executing_eagerly() or type(loop_vars) not in (list, tuple) or not loop_vars:
        return original(cond, body, loop_vars, *args, **kwargs)
    shapes = args[0] if args else kwargs.pop("shape_invariants", None)

    def turn(*values: Any) -> Any:
        _turns.append(values[-1])
        try:
            found = body(*values[:-1])
        finally:
            _turns.pop()
        is_many = isinstance(found, (list, tuple)) if len(loop_vars) > 1 else type(found) in (list, tuple) and len(found) == 1
        return [*(found if is_many else [found]), values[-1] + 1]

    same = kwargs.pop("return_same_structure", False)
    *result, _ = original(
        lambda *values: cond(*values[:-1]),
        turn,
        [*loop_vars, tf.constant(0, tf.int64)],
        None if shapes is None else [*shapes, tf.TensorShape([])],
        *args[1:],
        return_same_structure=True,
        **kwargs,
    )
    return result[0] if len(result) == 1 and not same else type(loop_vars)(result)


def _draw(site: Site, graph: Any, step: Callable[[], Any], feeds: bool, sample: Callable[..., Any]) -> Any:
    if graph is None:
        number: Any = _eager[site.kind]
        _eager[site.kind] += 1
    else:
        known = sites.setdefault(graph, [])
        number = sum(other.kind == site.kind for other in known)
    if feeds:
        with tf.init_scope():
            number = tf.compat.v1.placeholder_with_default(tf.constant(number, tf.int64), [])
    key = tf.constant(zlib.crc32(repr(site.kind).encode()) % 2**31, tf.int64) + tf.cast(number, tf.int64) * 7919
    for turn in _turns if graph is not None else ():
        key = key * 31 + (turn + 1) * 104729
    seed = tf.stack([key, tf.cast(step(), tf.int64)])
    mask = sample(seed=seed)
    drawn["masks"] += site.what == DROPOUT
    drawn["surely"] += bool(site.rate) and not type(tf.compat.v1.get_default_graph()).__name__.startswith("CondBranch")
    if graph is not None:
        sites[graph].append(dataclasses.replace(site, draw=mask.op, number=number if feeds else None))
    return mask


def occurrences(found: list[Site]) -> dict[Any, int]:
    """Returns the occurrence of each site among those of its kind, by the tensor to feed.

    Args:
        found: Sites that a training step runs, in order. A graph may have others: Keras builds a layer twice in a TensorFlow 1 graph.
    """
    seen: Counter[tuple[Any, ...]] = Counter()
    numbers = {}
    for site in found:
        numbers[site.number] = seen[site.kind]
        seen[site.kind] += 1
    return numbers


def outermost(graph: Any, through_functions: bool = False) -> Any:
    """Returns the graph of the outermost function around a graph.

    Args:
        graph: Graph.
        through_functions: True to return the graph in which that function is called.
    """
    outer = getattr(graph, "outer_graph", None)
    while outer is not None and (through_functions or hasattr(outer, "outer_graph")):
        graph, outer = outer, getattr(outer, "outer_graph", None)
    return graph


_NEVER_RUN = (
    "keras_graph",
    "_scratch_graph",
    "_layer_call_fn",
    "_layer_call_and_return_conditional_losses",
    "_layer_call_and_return_all_conditional_losses",
)
"""Ends of the names of such graphs."""


def _is_structure(graph: Any) -> bool:
    """Returns True for a graph that no step runs: the structure of a functional model, or a call that is traced to be saved."""
    while graph is not None and not str(getattr(graph, "name", "")).endswith(_NEVER_RUN):
        graph = getattr(graph, "outer_graph", None)
    return graph is not None


def _loops() -> int:
    """Returns the number of loops around the operation that is made next."""
    graph, found = tf.compat.v1.get_default_graph(), 0
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None:
            found += context.IsWhileContext()
            context = context.outer_context
        found += type(graph).__name__ in {"WhileBodyFuncGraph", "WhileCondFuncGraph"}
        graph = getattr(graph, "outer_graph", None)
    return found
