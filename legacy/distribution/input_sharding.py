"""Decides which batches each worker of a MultiWorkerMirroredStrategy trains on; no other module of the legacy path does.

Estimator calls the input_fn on every worker and shards nothing. An ``input_fn(input_context)`` can shard by itself and is left unchanged. Any
other input_fn gives each worker the same batches, unless it reads TF_CONFIG. So the workers compare their datasets:

- equal datasets: worker *i* of *n* gets every *n*-th batch, from the *i*-th on, as replica *i* of a MirroredStrategy would;
- different datasets, each with a ``shard``, or with options that switch sharding off: they are left unchanged;
- other different datasets, and datasets made by Python functions, which no graph shows: they are refused, since they may not be parts of one whole.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy import input_results
from estimator_bridge.legacy.distribution.worker_exchange import allgather_text
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.dataset_sharding import FIX, Definition, are_shares, definition
from estimator_bridge.runtime.patching import wrapped


def shard_input() -> contextlib.AbstractContextManager[None]:
    """While active, workers that reduce their gradients together train on different batches.

    Raises:
        NotSupportedError: An Estimator trains on an input that cannot be sharded.
    """
    from tensorflow_estimator.python.estimator import estimator

    return wrapped(estimator.Estimator, _call_input_fn=_shard_input)


def _shard_input(call: Any, estimator: Any, input_fn: Callable[..., Any], mode: str, input_context: Any = None) -> Any:
    from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended
    from tensorflow.python.util import function_utils

    result = call(estimator, input_fn, mode, input_context)
    together = mode == "train" and input_context is not None and input_context.num_input_pipelines > 1
    if not together or "input_context" in function_utils.fn_args(input_fn):
        return result
    if not isinstance(estimator._train_distribution.extended, CollectiveAllReduceExtended):
        return result
    return _own_share(result, estimator.config, input_context, input_results.find_definition(input_fn))


def _own_share(dataset: Any, config: Any, context: Any, where: str) -> Any:
    """Returns the part of a dataset that this worker trains on."""
    import tensorflow as tf

    number, own = context.num_input_pipelines, context.input_pipeline_id
    if not isinstance(dataset, tf.compat.v2.data.Dataset):
        raise NotSupportedError(
            "The input_fn takes no input_context, so every worker would train on the same batches.",
            expected="a tf.data.Dataset, which can be sharded among the workers",
            received=f"{type(dataset).__name__} from the input_fn at {where}",
            fix=FIX,
        )
    definitions = [
        Definition(*json.loads(text)) for text in allgather_text(config, own, number, json.dumps(definition([dataset])))
    ]
    if are_shares(definitions, f"the input_fn at {where}"):
        warn_once("the input_fn takes no input_context, but shards by itself: its batches are left unchanged", where)
        return dataset
    warn_once(
        f"the input_fn takes no input_context: worker {own} of {number} gets one of every {number} batches; an incomplete group at the end is dropped",
        where,
    )
    return _every(dataset, number, own)


def _every(dataset: Any, number: int, own: int) -> Any:
    """Returns one of each ``number`` batches. An incomplete group at the end is dropped: a worker without a batch would block the others."""
    rounds = dataset.window(number, drop_remainder=True)
    return rounds.flat_map(lambda *parts: type(dataset).zip(parts if len(parts) > 1 else parts[0]).skip(own).take(1))
