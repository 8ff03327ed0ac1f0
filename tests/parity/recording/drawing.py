"""Draws random numbers in models, loops and branches, and prints them: for a process of its own, since it is patched for good."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.parity.recording.randomness import equalise, random_functions, random_operations


def main() -> None:
    equalise()
    drawn = [random.random(), float(np.random.rand())]
    found = known_operations()
    flows = [control_flow(tf.compat.v1.enable_control_flow_v2), control_flow(tf.compat.v1.disable_control_flow_v2)]
    models = {"plain": model(extra=False), "extra": model(extra=True), "seeded": model(extra=False, seed=7)}
    sys.stdout.write(json.dumps({"flows": flows, "drawn": drawn, "found": found, **models}) + "\n")


def model(*, extra: bool, seed: int | None = None) -> list[Any]:
    """Values drawn at three places of a model."""
    with tf.Graph().as_default():
        if seed is not None:
            tf.compat.v1.set_random_seed(seed)
        if extra:
            tf.compat.v1.random_uniform([3], name="of_the_input")
        with tf.name_scope("layer"):
            first, second = tf.random.normal([2]), tf.random.normal([2])
        with tf.name_scope("other"):
            third = tf.random.normal([2])
        with tf.compat.v1.Session() as session:
            return [values.tolist() for values in session.run([first, second, third])]


def known_operations() -> list[Any]:
    """Operations that draw, and functions that do."""
    with tf.Graph().as_default() as graph:
        x = tf.random.uniform([2])
        tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + tf.random.normal([2])), [0, x])
        return [random_operations(graph.get_operations()), random_functions(graph.get_operations(), graph.as_graph_def())]


def control_flow(switch: Callable[[], None]) -> tuple[list[Any], list[Any]]:
    """Values drawn in loops and branches of one form, twice, and how many iterations run at once."""
    switch()
    with tf.Graph().as_default() as graph:
        drawn = tf.while_loop(lambda i, _: i < 4, step, [0, tf.TensorArray(tf.float32, 4)])[1].stack()
        loops = {op.get_attr("parallel_iterations") for op in graph.get_operations() if op.type in ("Enter", "While")}
        with tf.compat.v1.Session() as session:
            return [session.run(drawn).tolist() for _ in range(2)], list(loops)


def step(i: Any, drawn: Any) -> tuple[Any, Any]:
    """A draw in each iteration, in both branches of a condition in it, in one of another, and in a loop inside."""
    branch = tf.cond(i > 1, lambda: tf.random.normal([2]), lambda: 3 * tf.random.normal([2]) + tf.random.uniform([2]))
    branch += tf.cond(
        i > 2, lambda: tf.cond(i > 3, lambda: tf.random.normal([2]), lambda: tf.random.normal([2])), lambda: branch
    )
    inner = tf.while_loop(lambda j, a: j < 2, lambda j, a: (j + 1, 2 * a + tf.random.normal([2])), [0, branch])[1]
    return i + 1, drawn.write(i, inner + tf.random.normal([2]))


if __name__ == "__main__":
    main()
