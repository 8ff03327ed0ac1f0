"""Values that end with their graph."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.runtime.graph_values import GraphValues


def test_a_graph_whose_value_refers_to_it_ends() -> None:
    """A recording of a thousand evaluations would keep a thousand graphs."""
    losses: GraphValues[Any] = GraphValues()
    with tf.Graph().as_default() as graph:
        losses[graph] = tf.constant(1.0)
    kept = weakref.ref(graph)
    assert losses[graph].graph is graph

    del graph
    gc.collect()
    assert kept() is None


def test_values_of_two_kinds_in_two_graphs() -> None:
    names: GraphValues[list[str]] = GraphValues()
    counts: GraphValues[int] = GraphValues()
    one, other = tf.Graph(), tf.Graph()
    names.setdefault(one, []).append("loss")
    names.setdefault(one, []).append("step")
    counts[other] = 2

    assert names[one] == ["loss", "step"]
    assert (names.get(other, []), counts.get(one, 0), counts[other]) == ([], 0, 2)
    with pytest.raises(AttributeError):
        names[other]
