"""Pieces of a TF1 graph, run as functions of handles and tensors, give what a session gives."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.ops import control_flow_util

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import Fragment, is_copied, is_source, upstream
from estimator_bridge.modern.graph.optimizers.capture import Update
from estimator_bridge.modern.graph.stages import plan
from estimator_bridge.modern.graph.variables import VariableStore, assigned
from tests.modern.jobs import v1


def test_a_fragment_reads_and_writes_the_variables_it_is_given() -> None:
    with tf.Graph().as_default():
        variable = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
        factor = v1.placeholder(tf.float32, [], "inputs")  # the name of an argument of the function
        with tf.control_dependencies([v1.assign(variable, variable * factor)]):
            result = tf.reduce_sum(variable.read_value())
        fragment = Fragment.cut(upstream([result.op], is_source), [result])
    store = VariableStore([variable], {"v": np.array([3.0, 4.0], np.float32)})
    call = store.function(fragment)
    assert call([tf.constant(2.0)])[0].numpy() == 14.0
    assert call([tf.constant(10.0)])[0].numpy() == 140.0
    np.testing.assert_array_equal(store[variable], [60.0, 80.0])


def test_nothing_is_written_after_the_last_batch() -> None:
    """A sparse Adam scales its first moment before it adds the gradients, so that needs no batch; nor does the counting of steps."""
    with tf.Graph().as_default():
        moment = v1.get_variable("m", initializer=1.0, use_resource=True)
        gradient = v1.placeholder(tf.float32, [])
        with tf.control_dependencies([v1.assign(moment, moment * 0.5)]):
            added = v1.assign_add(moment, gradient)
        steps = v1.get_variable("steps", initializer=0, use_resource=True)
        with tf.control_dependencies([gradient]):
            counted = v1.assign_add(steps, 1)
        fragment = Fragment.cut(upstream([added.op, counted.op], is_source), [])
    store = VariableStore([moment, steps], {"m": np.float32(1.0), "steps": np.int32(0)})
    call = store.function(fragment)
    slow = lambda x: tf.reduce_sum(tf.matmul(tf.ones([900, 900]), tf.ones([900, 900]))) * x < 1.0  # noqa: E731 -- ends late
    batches = iter(tf.data.Dataset.from_tensor_slices([0.0, 1.0]).filter(slow))

    @tf.function(autograph=False)
    def step() -> Any:
        batch = next(batches)
        with tf.control_dependencies([batch]):
            call([batch + 1.0])
        return batch

    step()
    with pytest.raises(tf.errors.OutOfRangeError):
        step()
    assert (store[moment].numpy(), store[steps].numpy()) == (1.5, 1)


def test_initialisers_stay_behind() -> None:
    with tf.Graph().as_default():
        variable = v1.get_variable("v", initializer=5.0, use_resource=True)
        fragment = Fragment.cut(upstream([v1.assign_add(variable, 1.0).op], is_source), [])
    store = VariableStore([variable], {"v": np.float32(1.0)})
    store.function(fragment)([])
    assert store[variable].numpy() == 2.0


def test_functions_of_functions_come_along() -> None:
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [])
        inner = tf.function(lambda y: tf.cond(y > 0, lambda: y * 2, lambda: y - 1))
        result = tf.function(lambda y: inner(y) + 1)(x)
        fragment = Fragment.cut(upstream([result.op], is_source), [result])
    call = fragment.function([])
    assert [call([], [tf.constant(value)])[0].numpy() for value in (3.0, -3.0)] == [7.0, -3.0]


def test_many_fragments_are_no_function_that_is_traced_too_often(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(polymorphic_function, "FREQUENT_TRACING_WARNING_MAX_WARNING_PER_DETECTOR", 1000)  # else 2 a process
    with tf.Graph().as_default():
        fragment = Fragment.cut(set(), [v1.placeholder(tf.float32, [])])
    for _ in range(12):
        fragment.function([])([], [tf.constant(1.0)])
    assert "retracing" not in caplog.text


def test_tables_and_constants_are_copied_variables_and_placeholders_come_from_outside() -> None:
    with tf.Graph().as_default() as graph:
        v1.get_variable("v", initializer=5.0, use_resource=True)
        v1.placeholder(tf.float32, [], "fed")
        tf.constant(1.0, name="one")
        initializer = tf.lookup.KeyValueTensorInitializer([1], [2])
        tf.lookup.StaticHashTable(initializer, 0, name="table")
    by_type = {op.type: op for op in graph.get_operations()}
    assert is_source(by_type["VarHandleOp"])
    assert is_source(by_type["Placeholder"])
    assert is_copied(by_type["HashTableV2"])
    assert is_copied(by_type["Const"])
    assert not is_copied(by_type["VarHandleOp"])


def test_a_table_without_a_shared_name_is_the_same_in_each_function_of_its_graph() -> None:
    functions = []
    for value in (10, 20):
        with tf.Graph().as_default():
            table = tf.raw_ops.HashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, name="table")
            one = tf.constant([1], tf.int64)
            fill = tf.raw_ops.InitializeTableV2(table_handle=table, keys=one, values=value * one)
            found = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=one, default_value=tf.constant(0, tf.int64))
        Fragment.cut(upstream([fill]), []).function([])([], [])
        functions.append(Fragment.cut(upstream([found.op]), [found]).function([]))
    assert [call([], [])[0].numpy().tolist() for call in functions] == [[10], [20]]


def test_a_variable_without_a_validated_shape_takes_the_shape_that_was_promised() -> None:
    """The metrics of tf.contrib.timeseries begin as scalars, and say of which shape they will be."""
    with tf.Graph().as_default():
        variable = v1.Variable(0.0, shape=tf.TensorShape(None), use_resource=True, name="seen")
        variable.set_shape([2])
        assigned_op = tf.raw_ops.AssignVariableOp(resource=variable.handle, value=tf.constant([1.0, 2.0]))
    store = VariableStore([variable], {"seen": np.float32(0.0)})
    store.function(Fragment.cut({assigned_op}, []))([])
    np.testing.assert_array_equal(store[variable], [1.0, 2.0])


def test_sparse_gradients_go_through_as_tensors_and_come_back() -> None:
    dense = tf.constant([1.0])
    slices = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]), tf.constant([5, 1]))
    without_shape = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]))
    for gradient in (dense, slices, without_shape):
        update = Update(None, {}, ((dense, "a"), (gradient, "b")), None, frozenset(), untouched=True)
        parts = update.gradients()
        pairs = tuple(update.with_gradients(parts))
        assert [variable for _, variable in pairs] == ["a", "b"]
        assert [type(again) for again, _ in pairs] == [type(dense), type(gradient)]
        again = dataclasses.replace(update, pairs=pairs).gradients()
        assert [part.ref() for part in again] == [part.ref() for part in parts]


@pytest.mark.parametrize("how", ["plain", "cond", "while", "function", "reading cond"])
def test_writes_are_found_wherever_they_hide(how: str) -> None:
    with tf.Graph().as_default() as graph:
        count = v1.get_variable("count", initializer=1.0, use_resource=True)
        flag = v1.placeholder(tf.bool, [])

        def add(*_: Any) -> Any:
            return v1.assign_add(count, 1.0).read_value()

        if how == "plain":
            add()
        elif how == "cond":
            tf.cond(flag, add, lambda: tf.constant(0.0))
        elif how == "while":
            tf.while_loop(lambda value: value < 3.0, add, [tf.constant(0.0)])
        elif how == "function":
            tf.function(add)()
        else:
            tf.cond(flag, lambda: count * 2.0, lambda: tf.constant(0.0))
        body = [op for op in graph.get_operations() if not op.name.startswith("count/")]
    assert assigned(body) == (frozenset() if how == "reading cond" else {"count"})


def test_stages_without_updates_are_one() -> None:
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [])
        loss = x * 2.0
        stages = plan(tf.group(loss), loss, [], [[loss + 1.0]])
    assert len(stages.stages) == 1
    assert stages.observations[0].late.inputs == (loss,)
    assert stages.updates == ()


def test_loops_with_cycles_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with tf.Graph().as_default():
        with monkeypatch.context() as building:
            building.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", False)  # as a script of TensorFlow 1 has it
            (loss,) = tf.nest.flatten(tf.while_loop(lambda value: value < 3.0, lambda value: value + 1.0, [tf.constant(0.0)]))
        with pytest.raises(NotSupportedError, match="loop of TensorFlow 1's kind") as refused:
            plan(tf.group(loss), loss, [], [])
    assert refused.value.address == "estimator-bridge explain modern-graph-stages-levels"  # the function that refuses it


@pytest.mark.parametrize("nested", [False, True])
def test_an_update_in_a_cond_whose_result_nothing_uses_runs(*, nested: bool) -> None:
    """A session runs it, too, since a control edge inside of the branch is enough.

    TensorFlow inlines the branches, and so places each operation by itself: on a GPU, a branch as a whole would have strings there.
    """
    with tf.Graph().as_default():
        number = v1.placeholder(tf.int64, [])
        count = v1.get_variable("count", shape=[], initializer=v1.zeros_initializer(), use_resource=True)

        def counted(depth: int = int(nested)) -> Any:
            if depth:
                tf.cond(number < 10, lambda: counted(0), lambda: tf.constant(False))
                return tf.constant(True)
            with tf.control_dependencies([count.assign_add(1.0, read_value=False)]):
                return tf.constant(True)

        result = tf.cond(tf.equal(number % 2, 0), counted, lambda: tf.constant(False))
        fragment = Fragment.cut(upstream([result.op], is_source), [])
    variable = tf.Variable(0.0)
    call = fragment.function([variable.handle])
    for value in range(5):
        call([variable.handle], [tf.constant(value, tf.int64)])
    assert variable.numpy() == 3.0
    (branches,) = (node for node in fragment.graph_def.node if node.op == "If")
    assert branches.attr["_lower_using_switch_merge"].b
