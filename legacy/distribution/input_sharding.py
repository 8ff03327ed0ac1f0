"""Workers of MultiWorkerMirroredStrategy get different batches, also where the input_fn does not ask which of them it serves.

Estimator calls the input_fn on every worker and shares out nothing. An ``input_fn(input_context)`` can do that, and is left alone. Any other
gives each worker the same batches, unless it looks at TF_CONFIG by itself, so the workers compare the datasets that they were given:

- the same: worker *i* of *n* gets every *n*-th batch, from the *i*-th on, as replica *i* of a MirroredStrategy would;
- different, each with a ``shard`` of its own, or with options that say that nobody else is to shard: left alone;
- different in another way, or made by Python functions, into which no graph sees: refused, since nobody can tell whether they are parts of one whole.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy import input_results
from estimator_bridge.legacy.distribution.worker_exchange import allgather_text
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.dataset_sharding import FIX, Definition, are_shares, definition
from estimator_bridge.runtime.patching import replaced


@contextlib.contextmanager
def shard_input() -> Iterator[None]:
    """While active, workers that reduce their gradients together train on batches of their own.

    Raises:
        NotSupportedError: when an Estimator trains, for an input that cannot be shared out.
    """
    from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended
    from tensorflow.python.util import function_utils
    from tensorflow_estimator.python.estimator import estimator

    cls = estimator.Estimator
    original = cls._call_input_fn

    @functools.wraps(original)
    def call(self: Any, input_fn: Callable[..., Any], mode: str, input_context: Any = None) -> Any:
        result = original(self, input_fn, mode, input_context)
        together = mode == "train" and input_context is not None and input_context.num_input_pipelines > 1
        if not together or "input_context" in function_utils.fn_args(input_fn):
            return result
        if not isinstance(self._train_distribution.extended, CollectiveAllReduceExtended):
            return result
        return _own_share(result, self.config, input_context, input_results.find_definition(input_fn))

    with replaced(cls, _call_input_fn=call):
        yield


def _own_share(dataset: Any, config: Any, context: Any, where: str) -> Any:
    import tensorflow as tf

    number, own = context.num_input_pipelines, context.input_pipeline_id
    if not isinstance(dataset, tf.compat.v2.data.Dataset):
        raise NotSupportedError(
            "The input_fn takes no input_context, so every worker would train on the same batches.",
            expected="a tf.data.Dataset, which can be shared out among the workers",
            received=f"{type(dataset).__name__} from the input_fn at {where}",
            fix=FIX,
        )
    told = [Definition(*json.loads(text)) for text in allgather_text(config, own, number, json.dumps(definition([dataset])))]
    if are_shares(told, f"the input_fn at {where}"):
        warn_once("the input_fn takes no input_context, but shards by itself: its batches are left as they are", where)
        return dataset
    warn_once(
        f"the input_fn takes no input_context: worker {own} of {number} gets one of each {number} batches, and too few at the end are left out",
        where,
    )
    return _every(dataset, number, own)


def _every(dataset: Any, number: int, own: int) -> Any:
    """One of each ``number`` batches; too few at the end are left out, since a worker without a batch would keep the others waiting."""
    rounds = dataset.window(number, drop_remainder=True)
    return rounds.flat_map(lambda *parts: type(dataset).zip(parts if len(parts) > 1 else parts[0]).skip(own).take(1))
