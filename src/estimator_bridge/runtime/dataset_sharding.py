"""Whether the datasets of workers are parts of one whole already, or one and the same that is yet to be divided: the rule of both paths."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from estimator_bridge.errors import NotSupportedError

FIX = "Let input_fn take `input_context` and return dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)."
"""What a script can always do."""


class Definition(NamedTuple):
    """What workers compare of their datasets.

    Attributes:
        digest: 56 bits of the graph, the functions in it included.
        shards, off: it has a ``shard``; its options say that nobody else is to shard.
        generated, python: what it reads comes from Python, into which no graph sees.
    """

    digest: int
    shards: bool
    off: bool
    generated: bool
    python: bool


def definition(datasets: Iterable[Any]) -> Definition:
    """Of the datasets of one input, which are in one graph.

    Args:
        datasets: one or more ``tf.data.Dataset``, made in graph mode.

    Returns:
        What is equal for equal datasets of equal processes, whatever devices they are on and however their functions are named.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default():
        ...     definition([tf.data.Dataset.range(4).shard(2, 0)]).shards
        True
    """
    import tensorflow as tf
    from tensorflow.python.util import deprecation

    variants = [dataset._variant_tensor for dataset in datasets]
    with deprecation.silence():
        graph = tf.compat.v1.graph_util.extract_sub_graph(variants[0].graph.as_graph_def(), [one.op.name for one in variants])
    functions = {one.signature.name: one for one in graph.library.function}
    nodes = _with_called(graph.node, functions)
    kinds = {node.op for node in nodes}
    return Definition(
        _digest(graph.node, functions),
        "ShardDataset" in kinds,
        any(node.op == "OptionsDataset" and _is_off(node) for node in nodes),
        "GeneratorDataset" in kinds,
        any("PyFunc" in kind for kind in kinds),
    )


def are_shares(told: Sequence[Definition], origin: str) -> bool:
    """Whether the workers' datasets are shares already; where they are not, they are one and the same.

    Args:
        told: each worker's.
        origin: whose they are, for the error.

    Raises:
        NotSupportedError: where neither is known.

    Example:
        >>> whole = Definition(7, shards=False, off=False, generated=False, python=False)
        >>> are_shares([whole, whole], "the input_fn")
        False
    """
    different = len({one.digest for one in told})
    if all(one.off for one in told) or (different == len(told) and all(one.shards for one in told)):
        return True
    if any(one.generated for one in told):
        found = "a dataset of a Python generator"
    elif any(one.python for one in told):
        found = "a dataset with Python functions (tf.py_function, tf.numpy_function)"
    elif different == 1:
        return False
    else:
        found = f"{different} different datasets on {len(told)} workers"
    raise NotSupportedError(
        "The input_fn takes no input_context, and whether the datasets of the workers are parts of one whole is not known.",
        expected="the same dataset on every worker, or one that is sharded",
        received=f"{found} from {origin}",
        fix=FIX,
    )


def _with_called(nodes: Iterable[Any], functions: Mapping[str, Any]) -> list[Any]:
    """And the nodes of the functions that they call."""
    found = list(nodes)
    known: set[str] = set()
    for node in found:  # which grows
        for name in {node.op, *(called.name for called in _calls(node))} & functions.keys() - known:
            known.add(name)
            found += functions[name].node_def
    return found


def _calls(node: Any) -> Iterator[Any]:
    for value in node.attr.values():
        yield from (value.func, *value.list.func) if value.HasField("func") else value.list.func


def _digest(nodes: Iterable[Any], functions: Mapping[str, Any]) -> int:
    """Without what differs between equal processes: devices, and the names of functions, which TensorFlow numbers as they are made."""
    digest = hashlib.blake2b(digest_size=7)

    def content(name: str) -> str:
        return f"{_digest(functions[name].node_def, functions)}{sorted(functions[name].ret.items())}"

    for node in nodes:
        plain = type(node)()
        plain.CopyFrom(node)
        plain.device = ""
        for called in _calls(plain):
            called.name = content(called.name)
        if plain.op in functions:
            plain.op = content(plain.op)
        digest.update(plain.SerializeToString(deterministic=True))
    return int.from_bytes(digest.digest(), "big")


def _is_off(node: Any) -> bool:
    """Where the script said by its options that nobody else is to shard."""
    import tensorflow as tf
    from tensorflow.core.framework.dataset_options_pb2 import Options

    options = Options.FromString(node.attr["serialized_options"].s)
    return bool(options.distribute_options.auto_shard_policy == tf.data.experimental.AutoShardPolicy.OFF.value)
