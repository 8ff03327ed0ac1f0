"""Makes dropout and noise equal on both sides: a function of the step, the static shape, the rate, the occurrence and a loop's turn.

All dropout of TensorFlow 1 and of tf_keras goes through one function of TensorFlow, and so does each distribution. Its static shape in the
new script may name sizes that it leaves open in the old one, as of sequences of any length, and the other way round. Where the old script
draws in the turns of a loop and the new one at once, the new one gets the masks of the turns, stacked.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import tensor_util

from estimator_bridge.modern.graph.fragments import upstream
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.forward_pass.neighbours import places
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
        loops: Number of loops around it, in each turn of which it draws.
        axis: Axis along which the mask stacks those of the turns of the other side's innermost loop; None if it stacks none.
        draw: Operation that draws the mask; None in eager execution.
        number: Tensor with the occurrence, which can be changed; None in eager execution.
        place: Digests of the names of the variables before it, and of the next behind it; None if they are not known.
    """

    shape: tuple[int | None, ...] | None
    rate: float | None
    what: str = DROPOUT
    loops: int = 0
    axis: int | None = None
    draw: Any = None
    number: Any = None
    place: tuple[int, ...] | None = None

    @property
    def kind(self) -> tuple[Any, ...]:
        """The properties that sites with distinct occurrences share."""
        return self.what, self.shape, self.rate, self.loops

    def like(self, others: Sequence[Site], axes: Sequence[int] = ()) -> Site:
        """Returns the site with the shape of another side's site, if that is of its kind and only leaves other sizes open.

        Args:
            others: Sites of the other side; of those that fit, the one that leaves fewest sizes open is taken.
            axes: Axes along which the mask may stack those of the turns of one loop more, if no site fits as it is.
        """
        alike = [other for other in others if (other.what, other.rate) == (self.what, self.rate)]
        for site in (self, *map(self._turn, axes)):
            fitting = [other.shape for other in alike if other.loops == site.loops and _fit(other.shape, site.shape)]
            if fitting:
                best = site.shape if site.shape in fitting else min(fitting, key=lambda shape: (shape or ()).count(None))
                return dataclasses.replace(site, shape=best)
        return self

    def _turn(self, axis: int) -> Site:
        """Returns the site of one turn, if the turns are stacked along an axis; of the first two axes, the other one has the rows."""
        sizes, left_out = self.shape or (), max(axis - 1, 0)
        return dataclasses.replace(self, shape=(*sizes[:left_out], *sizes[left_out + 1 :]), loops=self.loops + 1, axis=axis)


sites: GraphValues[list[Site]] = GraphValues()
"""Graph -> its dropout operations in the order in which they were made."""
refused: GraphValues[list[tuple[str, Any]]] = GraphValues()
"""Graph -> (name, operation) of each draw inside of a loop whose turns are not counted, which keeps its own random numbers."""
drawn: Counter[str] = Counter()
"""Number of ``masks`` that operations were made for, in any graph or eagerly, and of those that ``surely`` drop units wherever they are made."""
_needed: GraphValues[set[Any]] = GraphValues()
"""Graph -> operations of its sites on which a loss depends."""
_eager: Counter[tuple[Any, ...]] = Counter()
_turns: list[Any] = []  # of the loops whose body is being built, the outermost first: int64 tensors that count from 0
_eager_turns: list[Any] = []  # of the loops whose body is executed


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
    return [Site(shape, rate, what, loops) for what, shape, rate, loops in _eager.elements()]


def write_sites(trace: Trace, found: Sequence[Site], loops: Sequence[str]) -> None:
    """Writes what a training step draws.

    Args:
        trace: Trace of the side.
        found: Sites that the step runs.
        loops: Names of those that keep their own random numbers.
    """
    masks = [[site.shape, site.rate, site.loops, site.place] for site in found if site.what == DROPOUT]
    trace.write("dropout", sites=masks, loops=loops)
    trace.write("draws", sites=[[site.shape, site.what, site.loops, site.place] for site in found if site.what != DROPOUT])


def read_sites(trace: Trace) -> list[Site]:
    """Returns what the training steps of a side draw, in order; of several trainings, what each has more than those before.

    Args:
        trace: Trace of the side.
    """
    found: list[Site] = []
    for event in trace.events("dropout", "draws"):
        is_dropout = event["event"] == "dropout"
        drawn = [
            Site(_tuple(shape), what if is_dropout else None, DROPOUT if is_dropout else what, loops, place=_tuple(place))
            for shape, what, loops, place in event["sites"]
        ]
        found += (Counter(drawn) - Counter(found)).elements()
    return found


def read_rows(trace: Trace) -> int | None:
    """Returns the number of rows of a side's first batch; None if its parts do not agree on one.

    Args:
        trace: Trace of the side.
    """
    event: dict[str, Any] = next(trace.events("shapes"), {"shapes": {}})
    sizes = {shape[0] for shape in event["shapes"].values() if shape}
    return int(sizes.pop()) if len(sizes) == 1 else None


def _tuple(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


def _fit(one: tuple[int | None, ...] | None, other: tuple[int | None, ...] | None) -> bool:
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def stacking_axes(shape: Sequence[int | None], rows: int | None) -> Sequence[int]:
    """Returns the axes along which a mask may stack those of a loop's turns: the second one, or the first one if that is the time.

    Args:
        shape: Static shape of the mask.
        rows: Number of rows of a batch; None if it is not known.
    """
    if len(shape) < 2 or (shape[0] is not None and shape[0] == shape[1]):  # of two equal sizes, either may be the rows
        return ()
    is_time_major = shape[0] not in (None, rows) and shape[1] in (None, rows)
    return (0,) if is_time_major else range(1, len(shape))


def equalise(
    step: Callable[[], Any],
    feeds: bool,
    trains: Callable[[], bool],
    others: Sequence[Site] = (),
    rows: int | None = None,
) -> None:
    """Replaces how dropout draws, and how other functions do in training steps, for the life of the process.

    Args:
        step: Function that returns the global step before the training step, as an int64 tensor.
        feeds: True to make occurrences placeholders, which ``occurrences`` corrects once the graph is complete.
        trains: Function that returns True while a training step is made, or executed.
        others: Sites of the other side, whose masks this side draws.
        rows: Number of rows of a batch; None if it is not known.
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
        given_rate = None if value is None else round(float(value), 4)
        site = _site(x.shape, given_rate, DROPOUT, graph).like(
            others, stacking_axes(_sizes(x.shape), rows) if noise_shape is None else ()
        )

        def sample(shape: Any, dtype: Any) -> Any:
            return _draw(site, graph, step, feeds, shape, functools.partial(tf.random.stateless_uniform, dtype=dtype))

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
        site = _site(static, None, f"{what} {tf.as_dtype(dtype).name}", graph).like(others, stacking_axes(_sizes(static), rows))
        return _draw(site, graph, step, feeds, shape, functools.partial(draw, dtype=dtype))

    wrap(nn_ops, _dropout=dropout)
    wrap(gen_random_ops, **{name: functools.partial(unit, name) for name in _UNIT})
    # Each of the namespaces has the function; tf_keras calls that of the last one.
    for module in (while_loop, tf.compat.v1, tf.compat.v1.compat.v1, tf.compat.v2.compat.v1):
        wrap(module, while_loop=_counted)


def _sizes(shape: Any) -> tuple[int | None, ...]:
    return () if shape.rank is None else tuple(shape.as_list())


def _site(shape: Any, rate: float | None, what: str, graph: Any) -> Site:
    loops = len(_eager_turns if graph is None else _turns)
    return Site(None if shape.rank is None else _sizes(shape)[1:], rate, what, loops)


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
    if tf.executing_eagerly():
        return original(cond, _executed(body), loop_vars, *args, **kwargs)
    if type(loop_vars) not in (list, tuple) or not loop_vars:
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


def _executed(body: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the body of a loop that runs eagerly, whose turns are counted, and each draw as often as the loop has it."""
    before: list[Counter[tuple[Any, ...]]] = []

    def turn(*values: Any) -> Any:
        before.append(_eager.copy())
        _eager.clear()
        _eager.update(before[0])
        _eager_turns.append(len(before) - 1)
        try:
            return body(*values)
        finally:
            _eager_turns.pop()

    return turn


def _draw(site: Site, graph: Any, step: Callable[[], Any], feeds: bool, shape: Any, sample: functools.partial[Any]) -> Any:
    number, turns = _number(site, graph, feeds), _eager_turns if graph is None else _turns
    now = tf.cast(step(), tf.int64)
    key = tf.constant(zlib.crc32(repr(site.kind).encode()) % 2**31, tf.int64) + tf.cast(number, tf.int64) * 7919
    for turn in turns:
        key = _key_of_turn(key, turn)
    if site.axis is None:
        mask = sample(shape, seed=tf.stack([key, now]))
    else:
        mask = _stacked(site.axis, key, now, shape, sample)
    drawn["masks"] += site.what == DROPOUT
    drawn["surely"] += bool(site.rate) and not type(tf.compat.v1.get_default_graph()).__name__.startswith("CondBranch")
    if graph is not None:
        sites[graph].append(dataclasses.replace(site, draw=mask.op, number=number))
    return mask


def _number(site: Site, graph: Any, feeds: bool) -> Any:
    """Returns the site's occurrence among those of its kind so far, which a graph may correct once it is complete."""
    if graph is None:
        _eager[site.kind] += 1
        return _eager[site.kind] - 1
    number = sum(other.kind == site.kind for other in sites.setdefault(graph, []))
    if feeds:
        with tf.init_scope():
            return tf.compat.v1.placeholder_with_default(tf.constant(number, tf.int64), [])
    around = tf.compat.v1.get_default_graph()
    while type(around).__name__ in _CONTROL_FLOW:
        around = around.outer_graph
    with around.as_default(), tf.control_dependencies(None):
        return tf.constant(number, tf.int64, name="occurrence")


def _key_of_turn(key: Any, turn: Any) -> Any:
    return key * 31 + (turn + 1) * 104729


def _stacked(axis: int, key: Any, now: Any, shape: Any, sample: functools.partial[Any]) -> Any:
    """Returns what the turns of a loop draw, stacked along an axis."""
    static = tensor_util.constant_value_as_shape(sizes := tf.convert_to_tensor(shape, tf.int32))
    of_turn = tf.concat([sizes[:axis], sizes[axis + 1 :]], 0)
    masks = tf.map_fn(
        lambda turn: sample(of_turn, seed=tf.stack([_key_of_turn(key, turn), now])),
        tf.range(tf.cast(sizes[axis], tf.int64)),
        fn_output_signature=sample.keywords["dtype"],
    )
    order = [*range(1, axis + 1), 0, *range(axis + 1, static.rank)]
    return tf.ensure_shape(tf.transpose(masks, order), static)


def occurrences(found: Sequence[Site], others: Sequence[Site] = ()) -> list[tuple[Any, int]]:
    """Returns the tensor with the occurrence of each site, and its occurrence among the sites of its kind.

    Args:
        found: Sites that a training step runs, in order. A graph may have others: Keras builds a layer twice in a TensorFlow 1 graph.
        others: Sites of the other side, in order; those at the same places get the same occurrences.
    """
    numbers: list[tuple[Any, int]] = []
    for kind in dict.fromkeys(site.kind for site in found):
        own, other = ([site for site in side if site.kind == kind] for side in (found, others))
        numbers += zip((site.number for site in own), _places_among(own, other), strict=True)
    return numbers


def _places_among(own: Sequence[Site], others: Sequence[Site]) -> list[int]:
    """Returns the number of the other side's site at the place of each; where places do not tell, the sites are in one order."""
    for parts in (2, 1):  # variables before and behind the site, or those before it alone
        here, there = ([site.place and site.place[:parts] for site in side] for side in (own, others))
        if None not in here and Counter(here) == Counter(there):
            left = defaultdict(list)
            for number, place in enumerate(there):
                left[place].append(number)
            return [left[place].pop(0) for place in here]
    return list(range(len(own)))


def with_places(found: list[Site], graph: Any, forward: Collection[Any], names: Mapping[Any, str]) -> list[Site]:
    """Returns sites with their places, if several are of one kind.

    Args:
        found: Sites that a training step runs.
        graph: Graph of the step; places in its functions are not known.
        forward: Operations on which its loss depends.
        names: Operation that gives a variable -> name of the variable.
    """
    if len({site.kind for site in found}) == len(found):
        return found
    known = places([site.draw for site in found if site.draw.graph is graph], forward, names)
    return [dataclasses.replace(site, place=known.get(site.draw)) for site in found]


def needed_sites(
    graph: Any, loss: Any, others: Sequence[Site] = (), names: Mapping[int, str] = MappingProxyType({})
) -> list[Site]:
    """Returns the sites of a training step on which a loss depends, and corrects their occurrences.

    Keras draws masks that nothing reads: those of a cell's other gates, and those of a call that only says what the cell returns.

    Args:
        graph: Graph of the function that asks for gradients. Those of the losses of one step add up.
        loss: Loss of which it asks for them.
        others: Sites of the other side, in order.
        names: ``id`` of a variable's handle -> its name on the other side.
    """
    outer, innermost = outermost(graph), graph
    found, around = sites.get(outer, []), []
    while graph is not None:
        around.append(graph)
        graph = getattr(graph, "outer_graph", None)
    needed = _needed.setdefault(outer, set())
    for made_in in {site.draw.graph for site in found}:
        if made_in not in around:
            needed |= upstream([output.op for output in made_in.outputs], _is_of_shapes)
        elif made_in is around[0]:
            needed |= upstream([loss.op], _is_of_shapes)
        else:  # it is not complete
            needed |= {site.draw for site in found if site.draw.graph is made_in}
    read = {inner.op: names[id(given)] for given, inner in getattr(innermost, "captures", ()) if id(given) in names}
    kept = with_places([site for site in found if site.draw in needed], innermost, needed, read)
    for tensor, number in occurrences(kept, others):
        tensor.op._set_attr("value", attr_value_pb2.AttrValue(tensor=tf.make_tensor_proto(number, tf.int64)))
    return kept


def _is_of_shapes(op: Any) -> bool:
    """Returns True for an operation that reads the shape of a tensor alone."""
    return op.type in {"OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"}


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


_CONTROL_FLOW = ("CondBranchFuncGraph", "WhileBodyFuncGraph", "WhileCondFuncGraph")
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
        found += type(graph).__name__ in _CONTROL_FLOW[1:]
        graph = getattr(graph, "outer_graph", None)
    return found
