"""A session that keeps its plans gives what one gives that does not."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.python.client import session as session_module

from estimator_bridge.legacy import fetch_plans

Pair = collections.namedtuple("Pair", "first second")
ORIGINAL = getattr(session_module._FetchHandler, "_plan", session_module._FetchHandler)


class Counting:
    """TensorFlow's own class, its uses counted."""

    def __init__(self) -> None:
        self.planned = 0

    def __call__(self, *args: Any) -> Any:
        self.planned += 1
        return ORIGINAL(*args)


@pytest.fixture
def plans() -> Iterator[Counting]:
    counting = Counting()
    with mock.patch.object(session_module, "_FetchHandler", counting):
        fetch_plans.keep_plans()
        yield counting


@pytest.fixture(scope="module")
def graph() -> tf.Graph:
    graph = tf.Graph()
    with graph.as_default():
        for value in range(4):
            tf.constant(float(value), name=f"c{value}")
        tf.no_op("op")
    return graph


def structures(graph: tf.Graph) -> st.SearchStrategy[Any]:
    leaves = st.sampled_from([f"c{i}:0" for i in range(4)] + ["op"]).map(graph.as_graph_element)
    named = st.sampled_from(["c0:0", "op"])  # by name: planned anew each time
    return st.recursive(
        leaves | named,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(collections.OrderedDict),
            st.tuples(inner, inner).map(lambda pair: Pair(*pair)),
        ),
        max_leaves=8,
    )


@given(data=st.data())
@settings(max_examples=60)
def test_every_structure_of_fetches_gives_what_tensorflow_itself_gives(graph: tf.Graph, data: st.DataObject) -> None:
    asked = data.draw(st.lists(structures(graph), min_size=1, max_size=4))
    with tf.Session(graph=graph) as session:
        with mock.patch.object(session_module, "_FetchHandler", ORIGINAL):
            expected = [session.run(fetches) for fetches in asked]
        with mock.patch.object(session_module, "_FetchHandler", Counting()):
            fetch_plans.keep_plans()
            for _ in range(2):
                assert repr([session.run(fetches) for fetches in asked]) == repr(expected)  # types included


def test_the_same_fetches_are_planned_once(graph: tf.Graph, plans: Counting) -> None:
    hook = object()
    with tf.Graph().as_default(), tf.Session() as session:
        constant, op, variable = tf.constant(3.0), tf.no_op(), tf.Variable(1.0, use_resource=True)
        session.run(variable.initializer)
        for _ in range(5):
            assert session.run({"caller": [constant, op], hook: (variable,)}) == {"caller": [3.0, None], hook: (1.0,)}
    assert plans.planned == 2  # the initializer's and this one


def test_a_list_that_changes_between_runs_is_planned_anew(plans: Counting) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        fetches = [tf.constant(1.0)]
        assert session.run(fetches) == [1.0]
        fetches.append(tf.constant(2.0))
        assert session.run(fetches) == [1.0, 2.0]


def test_feeds_are_never_part_of_a_plan(plans: Counting) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        one = tf.placeholder_with_default(1.0, [])
        assert [session.run(one, feed) for feed in (None, {one: 5.0}, None, {one: 6.0})] == [1.0, 5.0, 1.0, 6.0]


def test_what_may_not_be_fetched_any_more_is_still_refused(plans: Counting) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        constant = tf.constant(1.0)
        assert session.run(constant) == 1.0
        graph.prevent_fetching(constant.op)
        with pytest.raises(ValueError, match="not fetchable"):
            session.run(constant)


def test_callables_and_partial_runs_are_tensorflows_own(plans: Counting) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, [])
        doubled = fed * 2.0
        assert session.make_callable([doubled], [fed])(np.float32(4.0)) == [8.0]
        handle = session.partial_run_setup([doubled], [fed])
        assert session.partial_run(handle, doubled, {fed: 1.0}) == 2.0
