"""Keeps the plans that ``Session.run`` makes from its fetches at every step.

A monitored session asks for the same fetches at nearly every step: the train_op and the tensors of hooks. Planning them takes a quarter of
a small model's step (benchmarks/legacy.py). Only plans are kept, never values. Runs with feeds are planned each time, and so are fetches
other than nested dicts, lists and tuples of tensors, operations and variables.
"""

from collections.abc import Callable
from typing import Any

_LIMIT = 64  # plans kept for a graph; with more, every run asks for other fetches
_ATTRIBUTE = "_estimator_bridge_fetch_plans"


def keep_plans() -> None:
    """Makes every session of this process keep its plans. A second call does nothing.

    Example:
        >>> keep_plans()
        >>> import tensorflow.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     name = tf.constant("a")
        ...     [session.run({"name": name}) for _ in range(2)]
        [{'name': b'a'}, {'name': b'a'}]
    """
    from tensorflow.python.client import session

    if not isinstance(session._FetchHandler, _Planner):
        session._FetchHandler = _Planner(session._FetchHandler)


class _Planner:
    """Stands in for TensorFlow's class of plans.

    Args:
        plan: Class of plans that TensorFlow has.
    """

    def __init__(self, plan: Callable[..., Any]) -> None:
        from tensorflow.python.framework import ops, tensor
        from tensorflow.python.ops import variables

        self._plan = plan
        self._leaves = (tensor.Tensor, ops.Operation, variables.Variable)

    def __call__(self, graph: Any, fetches: Any, feeds: Any, feed_handles: Any = None) -> Any:
        """Returns the plan for ``fetches``; using it does not change what TensorFlow reads from it."""
        key: list[Any] = [len(graph._unfetchable_ops)]  # planning refuses fetches that are not allowed
        alive: list[Any] = []  # an id is valid only while its object lives
        if feeds or feed_handles or not self._describe(fetches, key, alive):
            return self._plan(graph, fetches, feeds, feed_handles)
        plans = getattr(graph, _ATTRIBUTE, None)
        if plans is None or len(plans) > _LIMIT:
            plans = {}
            setattr(graph, _ATTRIBUTE, plans)
        found = plans.get(tuple(key))
        if found is None:
            found = plans[tuple(key)] = (self._plan(graph, fetches, feeds, feed_handles), alive)
        return found[0]

    def _describe(self, fetches: Any, key: list[Any], alive: list[Any]) -> bool:
        """Appends a unique description of a structure to ``key``; returns False for a structure that it does not know."""
        if isinstance(fetches, self._leaves):
            key.append(id(fetches))
            alive.append(fetches)
            return True
        kind = type(fetches)
        if kind is dict:
            key += (kind, len(fetches), *map(id, fetches))
            alive += fetches
            return all(self._describe(fetch, key, alive) for fetch in fetches.values())
        if kind is list or kind is tuple:
            key += (kind, len(fetches))
            return all(self._describe(fetch, key, alive) for fetch in fetches)
        return False
