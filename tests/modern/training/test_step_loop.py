"""Nodes that a step of the compiled loop runs besides the model, and their order. Nothing is timed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.shapes import tf2_shapes
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.modern.training.step_loop import StepLoop
from tests.modern.jobs import estimator, v1

import tf_keras  # isort: skip -- after tests.modern.jobs, which settles on a Keras


MORE = 20
"""Nodes that a loop by hand does without: two limits, the test for NaN, the losses of all steps, the counts."""

IMAGES, CLASSES = np.ones([32, 6, 6, 1], np.float32), np.ones([32], np.int64)


def data() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((IMAGES, CLASSES)).repeat().batch(8, drop_remainder=True)


def dense() -> list[Any]:
    return [tf_keras.layers.Flatten(), tf_keras.layers.Dense(16, "relu"), tf_keras.layers.Dense(3)]


def convolutional() -> list[Any]:
    layers = tf_keras.layers
    convolutions = [layers.Conv2D(4, size, activation="relu") for size in (3, 2)]
    return [*convolutions, layers.MaxPooling2D(2, 2), layers.Flatten(), layers.Dense(3)]


def loss_of(layers: list[Any], images: Any, classes: Any) -> Any:
    for layer in layers:
        images = layer(images)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(classes, images))


def by_hand(make: Callable[[], list[Any]]) -> Callable[[], object]:
    """A loop over tf_keras' layers and its optimizer with the kernels of TensorFlow 1's."""
    layers, optimizer, batches = make(), tf_keras.optimizers.legacy.SGD(0.1), iter(data().prefetch(2))
    model = tf_keras.Sequential([tf_keras.Input(IMAGES.shape[1:], 8), *layers])

    def step(done: Any, _: Any) -> Any:
        images, classes = next(batches)
        with tf.GradientTape() as tape:
            loss = loss_of(layers, images, classes)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True))
        return done + 1, loss

    return tf.function(lambda: tf.while_loop(lambda done, _: done < 3, step, [0, 0.0]), autograph=False)


def compiled(make: Callable[[], list[Any]], folder: Path) -> Callable[[], object]:
    """The same model as a model_fn's."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = loss_of(make(), features, labels)
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
        return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    with tf2_shapes(), model_graph.control_flow_v2():
        graph = model_graph.build(estimator(model_fn, folder), data, model_graph.TRAIN, None)
        transplant = Transplant(graph)
        loop = StepLoop(
            transplant, iter(data().prefetch(2)), Distribution(tf.distribute.get_strategy()), endless=True, audited=False
        )
    return lambda: loop.run(3)


def nodes_of_a_step(run: Callable[[], object]) -> dict[str, Any]:
    """Returns the nodes in the body of the outermost loop by name, after TensorFlow has folded, fused and pruned."""
    context.context().enable_run_metadata()
    try:
        run()
        ran = context.context().export_run_metadata()
    finally:
        context.context().disable_run_metadata()
    graphs = [graph for function in ran.function_graphs for graph in function.partition_graphs]
    bodies = [{node.name: node for node in graph.node if "while/body/" in node.name} for graph in graphs]
    return max(bodies, key=len)


def waited_for(nodes: dict[str, Any], name: str) -> set[str]:
    """Returns the names of all nodes that a node waits for, at any distance."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        producers = {value.removeprefix("^").split(":")[0] for value in nodes[waiting.pop()].input} & nodes.keys()
        waiting += producers - found
        found |= producers
    return found


@pytest.mark.parametrize("make", [dense, convolutional])
def test_a_step_runs_few_nodes_more_than_a_loop_by_hand(make: Callable[[], list[Any]], tmp_path: Path) -> None:
    found = [nodes_of_a_step(run) for run in (compiled(make, tmp_path), by_hand(make))]
    # Some processors compute two gradients by one operation, which our loop keeps apart, as the next test says.
    ours, theirs = (sum(2 if node.op.endswith("FilterWithBias") else 1 for node in nodes.values()) for nodes in found)

    assert theirs > 30, "all of a step is counted"
    assert ours <= theirs + MORE, (ours, theirs)


def test_the_gradient_by_a_filter_waits_for_that_by_no_other(tmp_path: Path) -> None:
    nodes = nodes_of_a_step(compiled(convolutional, tmp_path))
    by_filters = {name for name, node in nodes.items() if node.op.endswith("Conv2DBackpropFilter")}

    assert len(by_filters) == 2, "that by the bias is computed apart, as on the legacy path: fused, it has other bits"
    assert not any(waited_for(nodes, name) & by_filters for name in by_filters)
