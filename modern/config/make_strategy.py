"""Strategy that a ModernConfig names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.model import Cluster, ModernConfig
from estimator_bridge.compat.config.output.calls import make
from estimator_bridge.compat.config.output.strategy_calls import RESOLVER, partitioner_call, resolver_call, strategy_call
from estimator_bridge.compat.config.process import is_server, process_config
from estimator_bridge.compat.config.reading.kinds import STRATEGIES
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.tpu import tpu_strategy


def make_strategy(config: ModernConfig) -> Any:
    """Makes the strategy of a configuration.

    Args:
        config: Modern configuration; the runtime's settings must be in force already.

    Returns:
        A ``tf.distribute.Strategy``: the default strategy if none is named and for a task that only serves, an evaluator's own
        for an evaluator.

    Raises:
        BridgeError: The name is no strategy.

    Example:
        >>> type(make_strategy(ModernConfig())).__name__
        '_DefaultDistributionStrategy'
    """
    import tensorflow as tf

    own = process_config(config)
    name = own.strategy.name
    if name is None or is_server(config):
        return tf.distribute.get_strategy()
    if name not in STRATEGIES:
        raise BridgeError("strategy.name does not name a strategy.", expected=", ".join(STRATEGIES), received=name)
    if name == "TPUStrategy":
        return tpu_strategy(own)
    call = strategy_call(own.strategy, bool(own.cluster.jobs))
    needs_resolver = RESOLVER in call.arguments.values()
    return make(call, {"tf": tf, RESOLVER.dotted: resolver(own.cluster) if needs_resolver else None})


def resolver(cluster: Cluster) -> Any:
    """Makes the cluster resolver that tells a strategy its cluster.

    Args:
        cluster: Jobs, and this process's task.

    Returns:
        A ``SimpleClusterResolver``.
    """
    import tensorflow as tf

    return make(resolver_call(cluster), {"tf": tf, "len": len})


def partitioner(arguments: Mapping[str, Any]) -> Any:
    """Makes a variable partitioner.

    Args:
        arguments: Class of the partitioner under ``kind``, and its arguments.

    Returns:
        A partitioner; None without arguments.

    Example:
        >>> partitioner({"kind": "FixedShardsPartitioner", "num_shards": 2})(__import__("tensorflow").TensorShape([4, 3]), None)
        [2, 1]
    """
    import tensorflow as tf

    return make(partitioner_call(arguments), {"tf": tf})
