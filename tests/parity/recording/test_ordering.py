"""A step's races are found and taken away: TensorFlow itself says what the values are then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge import legacy

legacy.install()

from estimator_bridge.modern.graph.fragments import upstream  # noqa: E402 -- needs Keras 2, which install() has settled on
from estimator_bridge.parity.recording import legacy_side  # noqa: E402
from estimator_bridge.parity.recording.ordering import order_assignments  # noqa: E402
from estimator_bridge.parity.recording.step_limit import StepLimit  # noqa: E402
from estimator_bridge.parity.recording.trace import Trace  # noqa: E402

v1 = tf.compat.v1


def late(value: Any) -> Any:
    """The value, but not before a product of large matrices is there: without an order, whatever else is ready runs before."""
    large = tf.ones([700, 700])
    for _ in range(4):
        large = tf.matmul(large, large) * 0.0 + 1.0
    with tf.control_dependencies([large]):
        return tf.identity(value)


def counting(use_resource: bool) -> tuple[Any, Any, Any]:
    """A step as published BERT code has it: a rate of the count, and the count's next value, in no order."""
    step = v1.get_variable("steps", initializer=0, use_resource=use_resource)
    with tf.control_dependencies([late(1.0)]):
        rate = (step.read_value() if use_resource else tf.identity(step)) * 2
    return rate, step.assign(step + 1, read_value=False), step


@pytest.mark.parametrize("use_resource", [True, False])
def test_what_is_read_before_an_assignment_is_the_old_value(use_resource: bool) -> None:
    with tf.Graph().as_default() as graph:
        rate, count, _ = counting(use_resource)
        assert order_assignments(graph.get_operations()) == ["steps"]
        assert order_assignments(graph.get_operations()) == [], "once is enough"
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            seen = [session.run([rate, count])[0] for _ in range(5)]

    assert seen == [0, 2, 4, 6, 8]


def test_a_read_on_a_later_line_that_waits_for_nothing_is_the_old_value() -> None:
    with tf.Graph().as_default() as graph:
        count = v1.get_variable("count", initializer=0, use_resource=True)
        update = count.assign_add(1, read_value=False)
        read = count.read_value()
        assert order_assignments(graph.get_operations()) == ["count"]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            seen = [session.run([update, read])[1] for _ in range(5)]

    assert seen == [0, 1, 2, 3, 4]


def test_a_reference_variable_that_several_lines_update_is_updated_by_one_after_the_other() -> None:
    """As batch norm of tf.layers does that is called several times; TensorFlow 1.15.5 gives another mean in each run."""
    with tf.Graph().as_default() as graph:
        mean = v1.get_variable("mean", initializer=0.0, use_resource=False)
        updates = [v1.assign_sub(mean, late((mean - value) * 0.5)) for value in (4.0, 8.0)]
        updates[0] = late(updates[0])
        assert order_assignments(graph.get_operations()) == ["mean"]
        assert order_assignments(graph.get_operations()) == [], "once is enough"
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(updates)
            assert session.run(mean) == 0.5 * (0.5 * 4.0) + 0.5 * 8.0


def test_an_order_of_the_scripts_own_is_none_of_our_business() -> None:
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", initializer=1.0, use_resource=True)
        loss = tf.square(weight)
        update = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_or_create_global_step())
        with tf.control_dependencies([loss]):
            decay = weight.assign_sub(0.1, read_value=False)
        twice = v1.get_variable("twice", initializer=1.0, use_resource=False)
        with tf.control_dependencies([twice * twice]):
            assignment = twice.assign(2.0).op
        step = upstream([update, decay, assignment])
        before = {op: op.control_inputs for op in step}

        assert order_assignments(step) == []
        assert {op: op.control_inputs for op in step} == before


@pytest.mark.parametrize("use_resource", [True, False])
def test_an_update_waits_for_the_loop_that_its_gradient_comes_from(use_resource: bool, request: pytest.FixtureRequest) -> None:
    """A loop hands its values back to operations of earlier lines."""
    if v1.control_flow_v2_enabled():
        v1.disable_control_flow_v2()
        request.addfinalizer(v1.enable_control_flow_v2)
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", [2, 2], use_resource=use_resource)
        _, last = v1.while_loop(lambda turn, _: turn < 3, lambda turn, x: (turn + 1, tf.tanh(x @ weight)), [0, tf.ones([1, 2])])
        step = upstream([v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(last)))])
        assert any(op.type == "NextIteration" for op in step)
        assert order_assignments(step) == []


def test_branches_stay_as_they_are() -> None:
    """An operation of a branch that is not taken never runs: whatever waited for it would not run either."""
    with tf.Graph().as_default() as graph:
        taken = v1.placeholder_with_default(False, [])
        weight = v1.get_variable("weight", initializer=1.0, use_resource=False)
        read = v1.cond(taken, lambda: weight + 1.0, lambda: tf.constant(0.0))
        assignment = weight.assign(2.0)
        order_assignments(graph.get_operations())
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run([read, assignment]) == [0.0, 2.0]


def test_the_legacy_side_says_what_it_ordered(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    trace.make()
    with tf.Graph().as_default() as graph:
        step = v1.train.create_global_step()
        loss = late(tf.cast(step, tf.float32))
        train_op = tf.group(step.assign_add(1), loss)  # in no collection, as a hand-written optimizer leaves it
        legacy_side._batches[graph] = [[]]
        legacy_side._specs[graph] = v1.estimator.EstimatorSpec("train", loss=loss, train_op=train_op)
        legacy_side._configs[graph] = v1.estimator.RunConfig()
        legacy_side.TrainHook(trace, "train-1", False, None, StepLimit(None)).begin()

    (note,) = [event["message"] for event in trace.events("note")]
    assert "assigns global_step without a control dependency" in note


def test_nothing_is_counted_where_the_input_has_ended() -> None:
    with tf.Graph().as_default():
        batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(2).map(late)).get_next()
        step = v1.get_variable("steps", initializer=0, use_resource=True)
        train_op = tf.group(batch, step.assign_add(1))
        inside = upstream([train_op], lambda op: op is batch.op)
        assert order_assignments(inside, [batch.op]) == ["steps"]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(train_op)
            session.run(train_op)
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(train_op)
            assert session.run(step) == 2
