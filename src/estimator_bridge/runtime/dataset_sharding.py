"""The rule of both paths for the datasets of workers: they are shards of one dataset already, or one dataset that has to be sharded."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from estimator_bridge.errors import NotSupportedError

_INTERLEAVES = ("ExperimentalParallelInterleaveDataset", "ParallelInterleaveDataset")
"""Operations whose last inputs but two say if they are sloppy."""
FIX = "Let input_fn take `input_context` and return dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)."
"""The change that works for every script."""


class Definition(NamedTuple):
    """The properties of a dataset that workers compare.

    Attributes:
        digest: Hash (56 bits) of the graph, including its functions.
        shards: True if it calls ``shard``.
        off: True if its options turn automatic sharding off.
        generated: True if it reads a Python generator, which the graph does not show.
        python: True if it calls Python functions, which the graph does not show.
    """

    digest: int
    shards: bool
    off: bool
    generated: bool
    python: bool


def definition(datasets: Iterable[Any]) -> Definition:
    """Returns the definition of the datasets of one input, which are in one graph.

    Args:
        datasets: One or more ``tf.data.Dataset``, made in graph mode.

    Returns:
        A definition that is equal for equal datasets of equal processes, whatever their devices and the names of their functions.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default():
        ...     definition([tf.data.Dataset.range(4).shard(2, 0)]).shards
        True
    """
    graph, functions = _graph_of(datasets)
    nodes = [*graph.node, *_inner_nodes(graph, functions)]
    kinds = {node.op for node in nodes}
    return Definition(
        _digest(graph.node, functions),
        "ShardDataset" in kinds,
        any(node.op == "OptionsDataset" and _is_off(node) for node in nodes),
        "GeneratorDataset" in kinds,
        any("PyFunc" in kind for kind in kinds),
    )


def without_order(datasets: Iterable[Any]) -> Iterator[str]:
    """Yields the names of the nodes, also inside of functions, by which elements may come in an order that changes from run to run.

    Args:
        datasets: One or more ``tf.data.Dataset``, made in graph mode.
    """
    from tensorflow.python.framework import tensor_util

    graph, functions = _graph_of(datasets)
    for nodes in (graph.node, [*_inner_nodes(graph, functions)]):
        constants = {node.name: node for node in nodes if node.op == "Const"}
        for node in nodes:
            sloppy = node.input[-3].partition(":")[0] if node.op in _INTERLEAVES else ""
            value = constants.get(sloppy)
            is_sloppy = bool(sloppy) and (value is None or bool(tensor_util.MakeNdarray(value.attr["value"].tensor)))
            is_off = node.op == "OptionsDataset" and _is_unordered(node)
            if node.attr["deterministic"].s == b"false" or node.attr["sloppy"].b or is_sloppy or is_off:
                yield node.name


def _graph_of(datasets: Iterable[Any]) -> tuple[Any, Mapping[str, Any]]:
    """Returns the GraphDef of datasets, and its functions by their names."""
    import tensorflow as tf
    from tensorflow.python.util import deprecation

    variants = [dataset._variant_tensor for dataset in datasets]
    with deprecation.silence():
        graph = tf.compat.v1.graph_util.extract_sub_graph(variants[0].graph.as_graph_def(), [one.op.name for one in variants])
    return graph, {one.signature.name: one for one in graph.library.function}


def _inner_nodes(graph: Any, functions: Mapping[str, Any]) -> Iterator[Any]:
    return (node for name in reached_functions(graph.node, functions) for node in functions[name].node_def)


def are_shares(definitions: Sequence[Definition], origin: str) -> bool:
    """Returns True if the workers' datasets are shards already, False if all workers have the same dataset.

    Args:
        definitions: Definition of each worker's dataset.
        origin: Function that made them, for the message.

    Raises:
        NotSupportedError: Neither can be known.

    Example:
        >>> whole = Definition(7, shards=False, off=False, generated=False, python=False)
        >>> are_shares([whole, whole], "the input_fn")
        False
    """
    different = len({one.digest for one in definitions})
    if all(one.off for one in definitions) or (different == len(definitions) and all(one.shards for one in definitions)):
        return True
    if any(one.generated for one in definitions):
        found = "a dataset of a Python generator"
    elif any(one.python for one in definitions):
        found = "a dataset with Python functions (tf.py_function, tf.numpy_function)"
    elif different == 1:
        return False
    else:
        found = f"{different} different datasets on {len(definitions)} workers"
    raise NotSupportedError(
        "The input_fn takes no input_context, so it is unknown whether the workers' datasets are shards of one dataset.",
        expected="the same dataset on every worker, or a sharded one",
        received=f"{found} from {origin}",
        fix=FIX,
    )


def called_functions(node: Any) -> Iterator[Any]:
    """Yields the NameAttrList of each function that a NodeDef has as an attribute."""
    for value in node.attr.values():
        yield from (value.func, *value.list.func) if value.HasField("func") else value.list.func


def reached_functions(
    nodes: Iterable[Any], functions: Mapping[str, Any], gradients: Mapping[str, Any] = MappingProxyType({})
) -> set[str]:
    """Finds the functions that nodes call, and those that these call in turn.

    Args:
        nodes: NodeDefs; the type of a node that calls a Defun of TensorFlow 1 is the function's name.
        functions: Name -> FunctionDef; other names are left out.
        gradients: Function's name -> GradientDef, whose function counts as called.

    Returns:
        The names of the functions.
    """
    found: set[str] = set()
    waiting = list(nodes)
    for node in waiting:  # the list grows meanwhile
        names = {node.op, *(called.name for called in called_functions(node))}
        while names := names & functions.keys() - found:
            found |= names
            waiting += [inner for name in names for inner in functions[name].node_def]
            names = {gradients[name].gradient_func for name in names & gradients.keys()}
    return found


def _digest(nodes: Iterable[Any], functions: Mapping[str, Any]) -> int:
    """Hashes nodes without devices and names of functions, which TensorFlow numbers as they are made: they differ between equal processes."""
    digest = hashlib.blake2b(digest_size=7)

    def content(name: str) -> str:
        return f"{_digest(functions[name].node_def, functions)}{sorted(functions[name].ret.items())}"

    for node in nodes:
        plain = type(node)()
        plain.CopyFrom(node)
        plain.device = ""
        for called in called_functions(plain):
            called.name = content(called.name)
        if plain.op in functions:
            plain.op = content(plain.op)
        digest.update(plain.SerializeToString(deterministic=True))
    return int.from_bytes(digest.digest(), "big")


def _is_unordered(node: Any) -> bool:
    """Returns True if the node of a dataset's options lets elements come in any order."""
    options = _options(node)
    return options.WhichOneof("optional_deterministic") is not None and not options.deterministic


def _is_off(node: Any) -> bool:
    """Returns True if the script turned automatic sharding off by its options."""
    import tensorflow as tf

    policy = _options(node).distribute_options.auto_shard_policy
    return bool(policy == tf.data.experimental.AutoShardPolicy.OFF.value)


def _options(node: Any) -> Any:
    from tensorflow.core.framework.dataset_options_pb2 import Options

    return Options.FromString(node.attr["serialized_options"].s)
