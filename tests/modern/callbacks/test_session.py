"""The session of hooks reads variables, and refuses the rest with symbol and alternative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.session import ReadOnlySession
from estimator_bridge.modern.graph.fragments import is_source, upstream
from estimator_bridge.modern.graph.side_effects import Effect, Effects

v1 = tf.compat.v1


@pytest.fixture(scope="module")
def graph() -> Any:
    """One variable, a step that adds to it what a batch says, and what a hook could add."""
    with tf.Graph().as_default() as made:
        batch = v1.placeholder(tf.float32, [], "batch")
        weight = v1.get_variable("weight", initializer=2.0, use_resource=True)
        other = v1.get_variable("other", initializer=0.0, use_resource=True)
        noise = tf.random.normal([], name="noise")
        tf.multiply(weight, 3.0, name="tripled")
        tf.add(weight, batch, name="sum")
        tf.cond(weight > 0.0, lambda: weight.assign(0.0), weight.read_value, name="maybe")
        tf.cond(weight > 0.0, lambda: weight + 1.0, weight.read_value, name="next")
        other.assign(1.0, name="write_other")
        tf.random.uniform([], name="drawn")
        tf.raw_ops.Print(input=weight, data=[], name="printed")
        queue = v1.FIFOQueue(1, [tf.float32], name="queue")
        queue.enqueue(1.0, name="enqueue")
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        tf.identity(table.lookup(tf.constant("a")), name="found")
        tf.group(table.insert(tf.constant("a"), tf.constant(1, tf.int64)), name="insert")
        with tf.control_dependencies([weight.assign_add(batch + noise)]):
            tf.identity(batch, name="step")
    return made


@pytest.fixture
def session(graph: Any) -> ReadOnlySession:
    """A session whose step has the operations of ``step``."""
    steps = frozenset(upstream([graph.get_operation_by_name("step")], is_source))
    return ReadOnlySession(graph, {"weight": tf.Variable(5.0)}, steps)


def test_what_variables_say_is_read(session: ReadOnlySession) -> None:
    values = session.run(
        {"tripled": "tripled:0", "both": ("weight:0", ["next/Identity:0"]), "none": session.graph.as_graph_element("tripled")}
    )
    assert values == {"tripled": 15.0, "both": (5.0, [6.0]), "none": None}
    assert isinstance(values["tripled"], np.float32)


REFUSALS: dict[str, tuple[Callable[[ReadOnlySession], Any], str]] = {
    "assignment": (lambda session: session.run("write_other"), "runs 'write_other.*may write.*AssignVariableOp"),
    "assignment in a branch": (lambda session: session.run("maybe/Identity:0"), "may write.*'maybe', If"),
    "queue": (lambda session: session.run("enqueue"), "runs 'enqueue', which may write.*QueueEnqueue"),
    "table": (lambda session: session.run("insert"), "runs 'insert', which may write.*LookupTableInsert"),
    "step": (lambda session: session.run("step"), "may write"),
    "batch": (lambda session: session.run("sum:0"), "computed with a batch .'batch'"),
    "the batch itself": (lambda session: session.run("batch:0"), "computed with a batch .'batch'"),
    "random number of a step": (lambda session: session.run("noise:0"), "computed with a batch .'noise/RandomStandardNormal'"),
    "another variable": (lambda session: session.run("other:0"), "reads the variable 'other', which the modern path keeps"),
    "feed_dict": (lambda session: session.run("sum:0", {"batch:0": 1.0}), "feeds batch:0 by a feed_dict"),
    "options": (lambda session: session.run("tripled:0", options=v1.RunOptions(trace_level=3)), "asks for RunOptions"),
    "metadata": (lambda session: session.run("tripled:0", run_metadata=v1.RunMetadata()), "asks for RunOptions or RunMetadata"),
    "partial run": (lambda session: session.partial_run_setup([]), "uses session.partial_run_setup"),
    "partial run without its setup": (lambda session: session.partial_run("handle", []), "uses session.partial_run,"),
    "something else": (lambda session: session.make_callable("weight:0"), "uses session.make_callable"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_the_rest_is_refused(what: str, session: ReadOnlySession) -> None:
    do, message = REFUSALS[what]
    with session.caller("The hook X"), pytest.raises(NotSupportedError, match=f"The hook X.*{message}") as caught:
        do(session)
    assert "or use --path legacy" in str(caught.value)


def test_within_a_step_its_own_operations_may_be_asked_for(session: ReadOnlySession) -> None:
    element = session.graph.as_graph_element
    assert [session.needs_step(element(name)) for name in ("step", "step:0", "sum:0", "noise:0", "drawn/RandomUniform:0")] == [
        True
    ] * 5
    assert [session.needs_step(element(name)) for name in ("tripled", "tripled:0", "found:0", "next/Identity:0")] == [False] * 4
    with pytest.raises(NotSupportedError, match="may write"):
        session.needs_step(element("write_other"))
    with pytest.raises(NotSupportedError, match="'printed', which is not part of a step"):
        session.needs_step(element("printed"))


def test_effects_of_operations(graph: Any) -> None:
    effects = Effects(graph)
    names = {"tripled": Effect.NONE, "printed": Effect.OUTWARD, "maybe": Effect.CHANGE, "next": Effect.NONE}
    assert {name: effects.of(graph.get_operation_by_name(name)) for name in names} == names
