"""Only one kind of control edge is dropped from a graph: the useless gates of a convolution's gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.modern.graph.fragments import holds_up
from tests.modern.jobs import v1


def gradients(forward: Callable[..., Any], *shapes: list[int], gated: bool = True) -> Any:
    inputs = [tf.ones(shape) for shape in shapes]
    return v1.gradients(forward(*inputs), inputs, gate_gradients=gated)


def by_image_and_filters(gated: bool) -> Any:
    return gradients(lambda *inputs: tf.nn.conv2d(*inputs, 1, "VALID"), [1, 4, 4, 2], [3, 3, 2, 1], gated=gated)


def counted() -> Any:
    return v1.assign_add(v1.get_variable("count", initializer=0, use_resource=True), 1)


def with_a_bias() -> None:
    gradients(tf.nn.bias_add, [1, 4, 4, 2], [2])


def of_a_product() -> None:
    gradients(tf.matmul, [1, 2], [2, 3])


def tied_to_a_count() -> None:
    tf.tuple([*by_image_and_filters(gated=False), counted()])


def after_a_count() -> None:
    by_image, _ = by_image_and_filters(gated=False)
    with tf.control_dependencies([counted()]):
        tf.identity(by_image)


def gated_after_a_count() -> None:
    with tf.control_dependencies([counted()]):
        by_image_and_filters(gated=True)


def test_the_gate_of_a_convolution_is_not_kept_for_what_comes_before_it() -> None:
    with tf.Graph().as_default() as graph:
        by_image, by_filters = by_image_and_filters(gated=True)

    assert by_filters.op.control_inputs == by_image.op.control_inputs != []
    assert [op for op in graph.get_operations() if holds_up(op)] == [by_image.op]


@pytest.mark.parametrize("build", [with_a_bias, of_a_product, tied_to_a_count, after_a_count, gated_after_a_count])
def test_any_other_order_is_kept(build: Callable[[], None]) -> None:
    with tf.Graph().as_default() as graph:
        build()

    ordered = [op for op in graph.get_operations() if op.type == "Identity" and op.control_inputs]
    assert ordered
    assert not any(map(holds_up, ordered))
