"""Calls of a session that do not return, and what is said of them after the given time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.script.waiting import say_what_is_awaited

v1: Any = tf.compat.v1
SECONDS = 0.6


def said_in(caplog: pytest.LogCaptureFixture, session: Any, fetches: Any, after: threading.Event | None = None) -> str:
    """Runs fetches that wait, ends them, and returns what was said."""

    def end() -> None:
        after.set() if after else session.close()

    timer = threading.Timer(3 * SECONDS, end)
    timer.start()
    with say_what_is_awaited(SECONDS), contextlib.suppress(tf.errors.CancelledError, tf.errors.OutOfRangeError):
        session.run(fetches)
    timer.join()
    return caplog.text


def test_a_queue_whose_runner_was_not_started(caplog: pytest.LogCaptureFixture) -> None:
    with tf.Graph().as_default():
        batch = v1.train.batch([tf.constant(1.0)], 2, name="input")
        with v1.Session() as session:
            said = said_in(caplog, session, {"loss": [batch * 2.0]})
    assert "It waits for the queue input/fifo_queue (its queue runner was not started" in said
    assert f"{__file__}:" in said


def test_a_queue_without_a_runner(caplog: pytest.LogCaptureFixture) -> None:
    with tf.Graph().as_default():
        fetch = v1.FIFOQueue(2, [tf.float32], name="own").dequeue()
        with v1.Session() as session:
            assert "the queue own (no queue runner fills it)" in said_in(caplog, session, fetch)


def test_a_generator_that_gives_nothing(caplog: pytest.LogCaptureFixture) -> None:
    go_on = threading.Event()

    def generate() -> Iterator[float]:
        go_on.wait(30)
        yield 1.0

    with tf.Graph().as_default():
        fetch = v1.data.make_one_shot_iterator(v1.data.Dataset.from_generator(generate, tf.float32)).get_next()
        with v1.Session() as session:
            said = said_in(caplog, session, fetch, after=go_on)
    assert "the next batch of a dataset (IteratorGetNext)" in said
    assert "(generate) runs at the moment" in said


def test_calls_that_return_say_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with tf.Graph().as_default(), v1.Session() as session, say_what_is_awaited(0.2):
        for _ in range(300):
            session.run(tf.constant(1.0)) if _ == 0 else threading.Event().wait(0.002)
    assert caplog.text == ""
