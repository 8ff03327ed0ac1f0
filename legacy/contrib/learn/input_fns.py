"""Input functions for serving, as contrib.learn's Estimators took them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf
from tensorflow.python.util.deprecation import deprecated


class InputFnOps(NamedTuple):
    """What such an input function returns; ``tf.estimator.export.ServingInputReceiver`` is what became of it.

    Attributes:
        features: a tensor, or tensors by name.
        labels: likewise, or None.
        default_inputs: the placeholders by name.
    """

    features: Any
    labels: Any
    default_inputs: Any


@deprecated(None, "Please use tf.estimator.export.build_parsing_serving_input_receiver_fn.")
def build_parsing_serving_input_fn(feature_spec: Mapping[str, Any], default_batch_size: int | None = None) -> Callable[[], Any]:
    """An input function that parses ``tf.Example`` protos, of shape [default_batch_size]."""

    def input_fn() -> InputFnOps:
        examples = tf.placeholder(tf.string, [default_batch_size], "input_example_tensor")
        return InputFnOps(tf.parse_example(examples, feature_spec), None, {"examples": examples})

    return input_fn


@deprecated(None, "Please use tf.estimator.export.build_raw_serving_input_receiver_fn.")
def build_default_serving_input_fn(features: Mapping[str, Any], default_batch_size: int | None = None) -> Callable[[], Any]:
    """An input function of placeholders like the given tensors, with another first dimension."""

    def input_fn() -> InputFnOps:
        placeholders = {
            name: tf.placeholder(tensor.dtype, [default_batch_size, *tensor.shape.as_list()[1:]], tensor.op.name)
            for name, tensor in features.items()
        }
        return InputFnOps(placeholders, None, placeholders)

    return input_fn
