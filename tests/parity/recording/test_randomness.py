"""Equal seeds for equal places, whatever else the graph holds; in a process of its own, since it is patched for good."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import json
import random
import numpy as np
import tensorflow as tf
from estimator_bridge.parity.recording.randomness import equalise, random_functions, random_operations

equalise()
drawn = [random.random(), float(np.random.rand())]

def model(extra, seed=None):
    with tf.Graph().as_default() as graph:
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

with tf.Graph().as_default() as graph:
    x = tf.random.uniform([2])
    looped = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + tf.random.normal([2])), [0, x])[1]
    operations = graph.get_operations()
    found = [random_operations(operations), random_functions(operations, graph.as_graph_def())]

def step(i, drawn):  # a draw in each iteration, one in a branch of it, and one in a loop inside
    branch = tf.cond(i > 1, lambda: tf.random.normal([2]), lambda: tf.zeros([2]))
    inner = tf.while_loop(lambda j, a: j < 2, lambda j, a: (j + 1, 2 * a + tf.random.normal([2])), [0, branch])[1]
    return i + 1, drawn.write(i, inner + tf.random.normal([2]))

def control_flow(switch):
    switch()
    with tf.Graph().as_default() as graph:
        drawn = tf.while_loop(lambda i, _: i < 4, step, [0, tf.TensorArray(tf.float32, 4)])[1].stack()
        loops = {op.get_attr("parallel_iterations") for op in graph.get_operations() if op.type in ("Enter", "While")}
        with tf.compat.v1.Session() as session:
            return [session.run(drawn).tolist() for _ in range(2)], list(loops)

flows = [control_flow(tf.compat.v1.enable_control_flow_v2), control_flow(tf.compat.v1.disable_control_flow_v2)]
print(json.dumps({"flows": flows, "drawn": drawn, "plain": model(False), "extra": model(True), "seeded": model(False, 7), "found": found}))
"""


def outcome(python: str) -> dict[str, object]:
    done = subprocess.run([python, "-c", CODE], capture_output=True, text=True, check=True)
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_seeds_come_from_the_place_in_the_model(_warm_python: str) -> None:  # noqa: PT019 -- beside a Python of its own start
    first, second = outcome(sys.executable), outcome(_warm_python)  # one of its own start: copies would begin alike in any case

    assert first == second, "two processes draw the same, Python and NumPy included"
    assert first["plain"] == first["extra"], "another random operation before does not matter"
    plain = first["plain"]
    assert isinstance(plain, list)
    assert len({str(values) for values in plain}) == 3, "each place draws its own numbers"
    assert first["seeded"] != plain, "the script's own seed counts"
    (functional, loops), (flat, flat_loops) = first["flows"]  # type: ignore[misc]
    assert functional == flat, "the form of loops and branches does not matter"  # type: ignore[has-type]
    assert loops == flat_loops == [1], "iterations draw in order"  # type: ignore[has-type]
    operations, functions = first["found"]  # type: ignore[misc]
    assert [name.startswith("random_uniform") for name in operations] == [True]  # type: ignore[has-type]
    assert len(functions) == 1, "what is drawn inside a loop is known"  # type: ignore[has-type]
