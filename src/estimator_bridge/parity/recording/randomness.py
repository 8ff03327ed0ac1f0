"""Makes both sides draw the same random numbers: seeds depend on an operation's place in the model, not on a counter.

TensorFlow seeds an operation by the number of random operations that its graph had before. In that number the graphs of the two
paths differ (e.g. a replayed input has no shuffle), so initialisers and dropout would differ although nothing is wrong.
"""

import functools
import inspect
import itertools
import random
import re
import sysconfig
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from estimator_bridge.runtime.patching import replace, wrap

SEED = 20_171_101  # for scripts that set none

_SAMPLERS = ("All", "FixedUnigram", "LearnedUnigram", "LogUniform", "ThreadUnsafeUnigram", "Uniform")
_OF_GENERATORS = (
    *("RandomBinomial", "StandardNormal", "StandardNormalV2", "TruncatedNormal", "Uniform", "UniformFullInt", "UniformInt"),
)
STATEFUL_RANDOM = frozenset(
    {
        *("FractionalAvgPool", "FractionalMaxPool", "Multinomial", "ParameterizedTruncatedNormal", "RandomCrop", "RandomGamma"),
        *("RandomPoisson", "RandomPoissonV2", "RandomShuffle", "RandomStandardNormal", "RandomUniform", "RandomUniformInt"),
        *("RngReadAndSkip", "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "TruncatedNormal"),
        *(f"{name}CandidateSampler" for name in _SAMPLERS),
        *(f"Stateful{name}" for name in _OF_GENERATORS),
    }
)
"""Types of the operations that draw from a stream of their own. Cells of cuDNN, which draw if they have dropout, are not among them."""

_OF_REPLICA = re.compile(r"^replica_\d+/")
_drawn: WeakKeyDictionary[Any, dict[tuple[int | None, str], int]] = WeakKeyDictionary()
"""Graph -> replica and place -> number of random operations there."""
_seeded_in_replicas: WeakSet[Any] = WeakSet()
"""Graphs in which an operation of a replica but the first has a seed of the script."""

_SUFFIX = re.compile(r"_\d+(?=/|$)")

_INSTALLED = (*{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}, str(Path(__file__).parents[2]))

_OF_PYTHON = ("choice", "choices", "gauss", "randint", "random", "randrange", "uniform")
_RandomState = np.random.RandomState  # which is replaced later
_generators: list[int] = []  # generators of NumPy that the script has made
_unseeded: list[int] = []  # those of them that get no seed, and calls of Python's global one
_of_python: list[int] = []  # generators of Python that the script has made
_seeded_state: list[str] = []  # of NumPy's global generator after each seed of the script
_shuffles: list[int] = []  # calls of generators of Python and NumPy that put something in a random order


def equalise(seed: int = SEED) -> None:
    """Seeds Python and NumPy, and replaces how TensorFlow derives the seed of an operation in a graph; lasts for the process.

    Iterations of loops run one after the other.

    Args:
        seed: Seed of Python, NumPy, and of graphs for which the script sets none.
    """
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops, random_seed
    from tensorflow.python.ops import control_flow_ops, while_v2

    from estimator_bridge.modern.graph.fragments import SEEDS_APART

    seed_globals(seed)

    def get_seed(original: Callable[..., Any], op_seed: int | None) -> tuple[int | None, int | None]:
        graph = ops.get_default_graph()
        replica = None if context.executing_eagerly() else _replica()
        if op_seed is not None and replica:
            _seeded_in_replicas.add(_outermost(graph))
        if op_seed is not None or context.executing_eagerly():
            seeds: tuple[int | None, int | None] = original(op_seed)
            return seeds
        own_seed = graph.seed
        scope = "/".join(filter(None, _scopes(graph)))
        if replica is not None:
            scope = _OF_REPLICA.sub("", scope)  # the legacy path builds the model for each
        if _is_in_branch(graph):  # names of the second branch have suffixes in one graph alone
            scope, graph = _SUFFIX.sub("", scope), _outermost(graph)
        counts = _drawn.setdefault(graph, defaultdict(int))
        counts[replica, scope] += 1
        place = zlib.crc32(f"{scope}#{counts[replica, scope]}".encode())
        return (seed if own_seed is None else own_seed) % 2**31, place % 2**31 + (replica or 0) * SEEDS_APART

    wrap(random_seed, get_seed=get_seed)
    wrap(control_flow_ops.WhileContext, __init__=_one_iteration_at_a_time)
    wrap(while_v2, while_loop=_one_iteration_at_a_time)


def seed_globals(seed: int = SEED) -> None:
    """Seeds the global generators of Python and NumPy, which old scripts use, and begins to count what shuffles.

    Generators that a script makes keep its own seeds, and are counted, too.
    """
    random.seed(seed)
    np.random.seed(seed)
    wrap(np.random, seed=_seed_again)
    wrap(random.Random, __init__=functools.partial(_counted_of_script, _of_python))
    wrap(random, **{name: functools.partial(_counted_of_script, _unseeded) for name in _OF_PYTHON})
    for owner in (random, random.Random):
        wrap(owner, shuffle=_counted, sample=_counted)
    replace(np.random, "RandomState", _counting(np.random.RandomState))
    replace(np.random, "Generator", generator := _counting(np.random.Generator))
    wrap(np.random, default_rng=functools.partial(_seeded, generator))


def _counted_of_script(counts: list[int], original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Counts a call of a function that the script makes; installed packages call them, too."""
    frame = inspect.currentframe()
    while frame and frame.f_code.co_filename.startswith(_INSTALLED[-1]):
        frame = frame.f_back
    if frame and not frame.f_code.co_filename.startswith(_INSTALLED):
        counts.append(1)
    return original(*args, **kwargs)


def _seed_again(original: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Seeds NumPy's global generator for the script, and counts what it has drawn before."""
    _shuffles.extend([1] * draws_rows())
    original(*args, **kwargs)
    _seeded_state.append(repr(np.random.get_state()))
    _unseeded.extend([1] * (not args and not kwargs))


def _seeded(generator: Any, make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Returns a generator of NumPy that is counted."""
    if not _is_imported():
        _unseeded.extend([1] * (not args and not kwargs))
    return generator(make(*args, **kwargs).bit_generator)


class _LikeItsBase(type):
    """The type of a class whose base's objects count as its own."""

    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, cls.__base__)  # type: ignore[arg-type]  # only object has no base


def _counting(kind: Any) -> Any:
    """Returns a class of NumPy's generators whose calls that choose or order rows are counted."""
    made = _LikeItsBase(kind.__name__, (kind,), {"__doc__": kind.__doc__})
    wrap(
        made,
        __init__=_counted_generator,
        choice=_counted_choice,
        **{name: _counted for name in ("shuffle", "permutation", "permuted") if hasattr(kind, name)},
    )
    return made


def _counted_choice(
    original: Callable[..., Any], generator: Any, a: Any, size: Any = None, replace: Any = True, p: Any = None
) -> Any:
    """Counts a choice of rows; with repetitions, it rather makes values."""
    return (original if replace else functools.partial(_counted, original))(generator, a, size, replace, p)


def _counted_generator(original: Callable[..., None], generator: Any, *args: Any, **kwargs: Any) -> None:
    if not _is_imported():
        _generators.append(1)
        _unseeded.extend([1] * (not args and not kwargs))
    original(generator, *args, **kwargs)


def _counted(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if not _is_imported():
        _shuffles.append(1)
    return original(*args, **kwargs)


def _is_imported() -> bool:
    """Returns True while an installed package is imported: scipy.stats shuffles then, which is no order of rows."""
    frame = inspect.currentframe()
    while frame := frame.f_back if frame else None:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return True
        if not name.startswith(_INSTALLED):
            return False
    return False


def draws_rows() -> bool:
    """Returns True if the script may have put rows in a random order with NumPy or Python."""
    return bool(_shuffles) or repr(np.random.get_state()) != (_seeded_state or [repr(_RandomState(SEED).get_state())])[-1]


def state() -> tuple[Any, ...]:
    """Returns what differs after each draw from a global generator, or a generator that the script makes."""
    return random.getstate(), len(_generators), len(_shuffles), repr(np.random.get_state())


def draws_anew() -> bool:
    """Returns True if Python or NumPy may have drawn values that are others in each run of the script."""
    return draws_rows() or bool(_unseeded)


def may_have_drawn(since: tuple[Any, ...]) -> bool:
    """Returns True if a global generator has drawn since ``state`` gave a value, or one that the script made may have."""
    return bool(_generators or _of_python) or state() != since


def draws_values() -> bool:
    """Returns True if the script may have drawn values with NumPy, such as initial ones."""
    return draws_rows() or bool(_generators)


def _one_iteration_at_a_time(make_loop: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Makes a loop whose iterations wait for each other: in parallel they would draw in any order."""
    return make_loop(*args, **{**kwargs, "parallel_iterations": 1})


def _replica() -> int | None:
    """Returns the number of the replica for which operations are made; None outside of several."""
    from tensorflow.python.distribute import distribute_lib
    from tensorflow.python.framework import tensor_util

    context = distribute_lib.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return int(tensor_util.constant_value(context.replica_id_in_sync_group) or 0)


def draws_by_replica(graph: Any) -> bool:
    """Returns True if replicas draw what the other side cannot: by names or seeds of their own.

    Layers of Keras have other names in each replica, and a seed of the script is the same in each.

    Args:
        graph: Graph with the model of each replica of this process.
    """
    places: dict[int, dict[str, int]] = defaultdict(dict)
    for (replica, scope), count in _drawn.get(graph, {}).items():
        if replica is not None:
            places[replica][scope] = count
    return graph in _seeded_in_replicas or any(one != other for one, other in itertools.pairwise(places.values()))


def _scopes(graph: Any) -> list[str]:
    """The open name scopes of a graph and of those around it, the outermost first.

    The legacy path has loops and branches in the model's own graph, the modern path has them in graphs of functions.
    """
    outer = getattr(graph, "outer_graph", None)
    around = getattr(graph, "scope_around", "")  # with which names in a branch of the modern path begin
    own = f"{graph.get_name_scope()}/".removeprefix(f"{around}/").removesuffix("/")
    return [*(_scopes(outer) if outer is not None else ()), own]


def _is_in_branch(graph: Any) -> bool:
    """Returns True while a branch of a condition is built: in a context of the graph, or in a graph of its own."""
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None:
            if context.IsCondContext():
                return True
            context = context.outer_context
        if type(graph).__name__ == "CondBranchFuncGraph":
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


def _outermost(graph: Any) -> Any:
    while getattr(graph, "outer_graph", None) is not None:
        graph = graph.outer_graph
    return graph


def random_operations(operations: Iterable[Any]) -> list[str]:
    """Returns the names of the operations that draw from their own stream."""
    return [op.name for op in operations if op.type in STATEFUL_RANDOM]


def random_functions(operations: Iterable[Any], graph_def: Any) -> list[str]:
    """Returns the functions in a graph's library that ``operations`` may call and that draw random numbers.

    The two paths call such functions (loops and branches) differently, so their streams cannot be made equal.
    """
    drawing = {
        function.signature.name
        for function in graph_def.library.function
        if any(node.op in STATEFUL_RANDOM for node in function.node_def)
    }
    called = {value.func.name for op in operations for value in op.node_def.attr.values() if value.HasField("func")}
    return sorted(drawing & called)
