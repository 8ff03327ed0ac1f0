"""On the modern path a script sees TF1's modes while TF2 behaviour stays: nothing that it switches reaches tf.function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from estimator_bridge.legacy.tf1_surface.behavior import SWITCHES, show_tf1_behavior


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Whatever a test leaves, the next one finds TensorFlow 2."""
    import tensorflow as tf

    def is_tf2() -> bool:
        traced = tf.function(lambda x: x + 1)(tf.constant(1))
        return bool(tf.executing_eagerly() and traced.numpy() == 2 and tf.zeros([2, 3]).shape[1] == 3)

    assert is_tf2()
    yield
    assert is_tf2()
    assert tf.compat.v1.get_default_graph().get_operations() == []


def test_it_looks_like_tensorflow_1() -> None:
    import tensorflow as tf

    v1 = tf.compat.v1
    with show_tf1_behavior():
        x = v1.placeholder(tf.float32, [None, 3])
        assert not tf.executing_eagerly()
        assert x.shape[1].value == 3
        assert x.graph is v1.get_default_graph()
        with v1.Session() as session:
            assert session.run(x * 2, {x: [[1, 2, 3]]}).tolist() == [[2, 4, 6]]


def switch_homes() -> list[Any]:
    import importlib

    import tensorflow as tf

    names = ("tensorflow.compat.v1", "tensorflow.python.compat.v2_compat", "tensorflow.python.framework.ops")
    return [tf.compat.v1, *map(importlib.import_module, names)]


def test_no_switch_takes_effect_however_it_is_reached() -> None:
    import tensorflow as tf
    from tensorflow.python.eager import context

    with show_tf1_behavior() as overrides:
        assert set(SWITCHES) <= set(overrides)
        called = [getattr(home, name)() for home in switch_homes() for name in SWITCHES if hasattr(home, name)]
        assert len(called) >= 2 * len(SWITCHES) + 2
        with context.eager_mode():  # as an engine does
            assert tf.function(lambda x: x + 1)(tf.constant(1)).numpy() == 2
            assert tf.Variable(1.0).numpy() == 1.0


def test_the_switches_are_themselves_again_afterwards() -> None:
    import tensorflow as tf

    before = {name: getattr(tf.compat.v1, name) for name in SWITCHES}
    with show_tf1_behavior(), show_tf1_behavior():
        assert tf.compat.v1.disable_v2_behavior is not before["disable_v2_behavior"]
    assert {name: getattr(tf.compat.v1, name) for name in SWITCHES} == before


def test_the_default_graph_can_be_reset() -> None:
    """As half of all TF1 scripts begin."""
    import tensorflow as tf

    with show_tf1_behavior():
        first = tf.compat.v1.placeholder(tf.float32).graph
        tf.compat.v1.reset_default_graph()
        assert tf.compat.v1.placeholder(tf.float32).graph is not first


def test_a_session_may_be_left_open() -> None:
    import tensorflow as tf

    with show_tf1_behavior():
        session = tf.compat.v1.InteractiveSession()
        assert tf.constant(3).eval() == 3
    session.close()


def test_eager_execution_can_be_had_at_the_beginning() -> None:
    import tensorflow as tf

    with show_tf1_behavior() as overrides:
        overrides["enable_eager_execution"]()
        assert tf.executing_eagerly()
        assert tf.constant(3).numpy() == 3
        assert tf.constant([3]).shape[0].value == 1
        overrides["enable_eager_execution"]()


def test_eager_execution_later_is_refused_as_by_tensorflow_1() -> None:
    import tensorflow as tf

    with show_tf1_behavior() as overrides:
        tf.constant(3)
        with pytest.raises(ValueError, match="must be called at program startup"):
            overrides["enable_eager_execution"]()


def test_an_error_of_the_script_restores_everything() -> None:
    with pytest.raises(RuntimeError, match="mine"), show_tf1_behavior():
        raise RuntimeError("mine")
