"""Mends results of input_fns that Estimator refuses though their meaning is plain; each mend is logged.

* A dataset built outside the input_fn belongs to another graph than the Estimator's. Its nodes are copied, also where the input_fn only
  makes the iterator.
* ``return features,`` and a dataset of 1-tuples mean features without labels, as in Estimator.predict of TensorFlow 1's early releases.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.patching import wrapped
from estimator_bridge.runtime.user_code import is_users

# State that a session fills first: in the Estimator's graph it would stay empty.
_STATE = (
    "Placeholder",
    "PlaceholderV2",
    "PlaceholderWithDefault",
    "Variable",
    "VariableV2",
    "VarHandleOp",
    "HashTableV2",
    "MutableHashTableV2",
)


@contextlib.contextmanager
def mend_input_results() -> Iterator[None]:
    """While active, Estimators get the results of their input_fns from ``mend_result``, and iterators stand in the current graph."""
    from tensorflow.python.data.ops import dataset_ops
    from tensorflow_estimator.python.estimator import estimator

    def call_input_fn(call: Any, self: Any, input_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return mend_result(call(self, input_fn, *args, **kwargs), input_fn)

    def make_iterator(make: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        return make(_in_current_graph(dataset), *args, **kwargs)

    makers = {"_make_one_shot_iterator": make_iterator, "_make_initializable_iterator": make_iterator}
    with wrapped(estimator.Estimator, _call_input_fn=call_input_fn), wrapped(dataset_ops.DatasetV1, **makers):
        yield


def mend_result(result: Any, input_fn: Callable[..., Any]) -> Any:
    """Returns the result as Estimator takes it.

    Args:
        result: Dataset, (features, labels), features, or a tuple or list of one element.
        input_fn: Function that gave the result, for the log.

    Returns:
        A dataset in the current graph, or the content of ``result``.

    Raises:
        NotSupportedError: A dataset of another graph reads a variable, table or placeholder there.
    """
    import tensorflow as tf

    if isinstance(result, (list, tuple)) and len(result) == 1:
        warn_once("the input_fn returns a tuple of one element, which is taken as the features", find_definition(input_fn))
        return result[0]
    if not isinstance(result, tf.compat.v2.data.Dataset):
        return result
    result = _in_current_graph(result)
    if isinstance(result.element_spec, tuple) and len(result.element_spec) == 1:
        warn_once("the input_fn's dataset has tuples of one element, which is taken as the features", find_definition(input_fn))
        result = result.map(lambda features: features)
    return result


def _in_current_graph(dataset: Any) -> Any:
    from tensorflow.python.framework import ops

    variant = dataset._variant_tensor
    is_here = isinstance(variant, ops.EagerTensor) or variant.graph is ops.get_default_graph()
    return dataset if is_here else _copy_to_default_graph(dataset)


def _copy_to_default_graph(dataset: Any) -> Any:
    import tensorflow as tf
    from tensorflow.python.data.ops import dataset_ops
    from tensorflow.python.util import deprecation

    variant = dataset._variant_tensor
    created = _find_creation(variant.op)
    with deprecation.silence():  # a call of our own, not of the script
        needed = tf.compat.v1.graph_util.extract_sub_graph(variant.graph.as_graph_def(), [variant.op.name])
    for node in needed.node:
        if node.op in _STATE:
            raise NotSupportedError(
                f"The dataset was built outside the input_fn and reads the {node.op} {node.name!r} of the graph there.",
                expected="a dataset that a new graph can hold: built inside the input_fn, or from constants, files and Python values",
                received=f"a dataset built at {created}",
                fix="Build it inside the input_fn, which runs in the graph that the Estimator trains in.",
            )
    (copy,) = tf.import_graph_def(needed, return_elements=[variant.name], name="input")
    warn_once("a dataset built outside the input_fn is copied into the Estimator's graph", created)
    return dataset_ops.DatasetV1Adapter(tf.data.experimental.from_variant(copy, dataset.element_spec))


def find_definition(function: Callable[..., Any]) -> str:
    """Returns the place of a function's definition as ``file:line``."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


def _find_creation(op: Any) -> str:
    """Returns the user's line that added an operation to its graph."""
    users = [frame for frame in op.traceback if is_users(frame.filename)]
    last = (users or list(op.traceback))[-1]
    return f"{last.filename}:{last.lineno}"
