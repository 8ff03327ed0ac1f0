"""Estimator.train: steps, refusals, what is written to event files and told to listeners, as the legacy path does it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.training.step_loop import Ran, StepLoop
from estimator_bridge.modern.training.train import Pace
from tests.modern.jobs import PATHS, engine, estimator, linear, minimizing, regression_input, saved, spec, train, v1

model_fn = minimizing(lambda: v1.train.MomentumOptimizer(0.05, 0.9))
Events = list[tuple[int, str, float | None]]


def with_summaries(features: Any, labels: Any, mode: str) -> Any:
    loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
    v1.summary.scalar("twice", 2.0 * loss)
    v1.summary.histogram("inputs", features["x"])
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.05).minimize(loss, v1.train.get_global_step()))


def events(folder: Path) -> Events:
    """(step, tag, value) of all scalars and histograms; speeds without their value."""
    found = []
    for file in sorted(folder.glob("events.out.tfevents.*")):
        for record in v1.train.summary_iterator(str(file)):
            for value in record.summary.value:
                known = value.HasField("simple_value") and not value.tag.endswith("/sec")
                found.append((record.step, value.tag, value.simple_value if known else None))
    return sorted(found, key=lambda event: event[:2])


class Listener(tf.compat.v1.train.CheckpointSaverListener):
    """Writes down what it is told."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.told: list[tuple[str, int]] = []
        self.read: list[list[np.ndarray]] = []
        self._stop_at = stop_at

    def begin(self) -> None:
        self.told.append(("begin", -1))

    def before_save(self, session: Any, global_step_value: int) -> None:
        self.told.append(("before", global_step_value))
        read, weights = session.run([v1.train.get_global_step(), v1.trainable_variables()])
        assert read == global_step_value
        self.read.append(weights)

    def after_save(self, session: Any, global_step_value: int) -> Any:
        self.told.append(("after", global_step_value))
        return global_step_value == self._stop_at

    def end(self, session: Any, global_step_value: int) -> None:
        self.told.append(("end", global_step_value))


def test_steps_are_relative_and_max_steps_absolute(tmp_path: Path) -> None:
    train("modern", model_fn, tmp_path, steps=3)
    assert saved(tmp_path)["global_step"] == 3
    train("modern", model_fn, tmp_path, steps=3)
    assert saved(tmp_path)["global_step"] == 6
    train("modern", model_fn, tmp_path, steps=None, max_steps=8)
    assert saved(tmp_path)["global_step"] == 8


@pytest.mark.parametrize("path", ["legacy", "modern"])
def test_a_number_of_steps_may_be_a_fraction(path: str, tmp_path: Path) -> None:
    train(path, model_fn, tmp_path, steps=2.5)
    assert saved(tmp_path)["global_step"] == 3, "the first step that is not below 2.5"
    train(path, model_fn, tmp_path, steps=None, max_steps=4e0)
    assert saved(tmp_path)["global_step"] == 4
    train(path, model_fn, tmp_path, steps=None, max_steps=3.5)
    assert saved(tmp_path)["global_step"] == 4


def test_nothing_is_called_when_max_steps_is_reached(tmp_path: Path) -> None:
    train("modern", model_fn, tmp_path, steps=3)

    def never() -> Any:
        raise AssertionError("input_fn was called")

    engine("modern").train(estimator(model_fn, tmp_path), never, max_steps=3)


@pytest.mark.parametrize("arguments", [{"steps": 0}, {"steps": -1}, {"max_steps": 0}, {"steps": 1, "max_steps": 1}])
@pytest.mark.parametrize("path", PATHS)
def test_impossible_steps_raise_as_estimator_does(path: str, arguments: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="steps"):
        engine(path).train(estimator(model_fn, tmp_path), regression_input, **arguments)


def with_summary_of_a_loop(features: Any, labels: Any, mode: str) -> Any:
    """A summary whose loop takes its rows from a variable, as they were before the step, and a factor from the batch."""
    rows = v1.get_variable("rows", [4, 3], initializer=v1.constant_initializer(0.5))
    loss = v1.losses.mean_squared_error(labels, features["x"][:, :3] @ rows[:3, :1])
    scaled = tf.map_fn(lambda row: row * tf.reduce_mean(features["x"]), rows)
    v1.summary.scalar("scaled", tf.reduce_sum(scaled))
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
    return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.mark.parametrize("model", [with_summaries, with_summary_of_a_loop, minimizing(lambda: v1.train.AdamOptimizer(0.05))])
def test_event_files_have_the_same_tags_steps_and_values(model: Any, tmp_path: Path) -> None:
    written = []
    for path in PATHS:
        config = {"save_summary_steps": 3, "log_step_count_steps": 4, "save_checkpoints_steps": 7}
        train(path, model, tmp_path / path, steps=10, config=config)
        train(path, model, tmp_path / path, steps=5, config=config)
        v1.summary.FileWriterCache.clear()
        written.append(events(tmp_path / path))
    assert [event[:2] for event in written[1]] == [event[:2] for event in written[0]]
    assert (1, "loss") in [event[:2] for event in written[1]]
    assert (5, "global_step/sec") in [event[:2] for event in written[1]]
    for modern, legacy in zip(written[1], written[0], strict=True):
        assert modern[2] == (None if legacy[2] is None else pytest.approx(legacy[2], rel=1e-5)), modern[:2]


def with_a_growing_variable(features: Any, labels: Any, mode: str) -> Any:
    """A variable without a checked shape, which gets an entry at each step."""
    seen = v1.Variable(np.zeros([0], np.float32), trainable=False, validate_shape=False, name="seen", use_resource=True)
    grown = v1.assign(seen, tf.concat([seen, [tf.cast(tf.size(seen), tf.float32) + 1.0]], 0), validate_shape=False)
    loss = v1.losses.mean_squared_error(labels, v1.get_variable("bias", [1]) + tf.zeros_like(labels))
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
    return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(train_op, grown))


def test_a_variable_may_change_its_shape_as_a_reference_variable_may(tmp_path: Path) -> None:
    assert train("modern", with_a_growing_variable, tmp_path, steps=3)["seen"].tolist() == [1.0, 2.0, 3.0]


def test_listeners_are_told_the_same(tmp_path: Path) -> None:
    listeners = [Listener(), Listener()]
    for path, listener in zip(PATHS, listeners, strict=True):
        config = {"save_checkpoints_steps": 4}
        train(path, model_fn, tmp_path / path, steps=10, saving_listeners=[listener], config=config)
    legacy, modern = listeners
    assert modern.told == legacy.told
    for one, other in zip(modern.read, legacy.read, strict=True):
        for value, expected in zip(one, other, strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_a_listener_may_stop_the_training(tmp_path: Path) -> None:
    config = {"save_checkpoints_steps": 4}
    steps = [
        train(path, model_fn, tmp_path / path, saving_listeners=[Listener(stop_at=8)], config=config)["global_step"]
        for path in PATHS
    ]
    assert steps == [8, 8]


def test_listeners_without_a_saver_are_refused_as_estimator_does(tmp_path: Path) -> None:
    config = {"save_checkpoints_secs": None, "save_checkpoints_steps": None}
    for path in PATHS:
        with pytest.raises(ValueError, match="CheckpointSaverHook"):
            engine(path).train(
                estimator(model_fn, tmp_path, **config), regression_input, steps=1, saving_listeners=[Listener()]
            )


class Steps(v1.train.SessionRunHook):
    """Counts the steps that it sees."""

    def __init__(self) -> None:
        self.count = 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.count += 1


@pytest.mark.parametrize(("every", "watched", "kept"), [(5, False, 5), (4, False, 8), (4, True, 8)])
def test_a_loss_that_is_not_a_number_ends_the_training_where_tensorflow_1_ends_it(
    every: int, watched: bool, kept: int, tmp_path: Path
) -> None:
    """Its hook comes after that which saves and those of train(), and before those of the EstimatorSpec."""
    counts = []

    def diverging(features: Any, labels: Any, mode: str) -> Any:
        bad = tf.where(v1.train.get_global_step() >= 7, np.float32("nan"), np.float32(1.0))
        loss = bad * tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        train_op = v1.train.GradientDescentOptimizer(0.05).minimize(loss, v1.train.get_global_step())
        return spec(mode, loss, train_op, training_hooks=hooks[1:])

    for path in PATHS:
        hooks = [Steps(), Steps()] if watched else []
        with pytest.raises(v1.train.NanLossDuringTrainingError):
            train(path, diverging, tmp_path / path, hooks=hooks[:1], steps=20, config={"save_checkpoints_steps": every})
        values = saved(tmp_path / path)
        assert values["global_step"] == kept
        assert np.isfinite(values["dense/kernel"]).all() == (kept == 5)
        counts.append([hook.count for hook in hooks])
    assert counts[1] == counts[0] == ([8, 7] if watched else [])


def test_the_losses_logged_are_those_of_the_legacy_path(tmp_path: Path, caplog: Any, monkeypatch: Any) -> None:
    lines = []
    monkeypatch.setattr(logging.getLogger("tensorflow"), "propagate", True)
    v1.logging.set_verbosity(v1.logging.INFO)
    try:
        for path in PATHS:
            caplog.clear()
            train(path, model_fn, tmp_path / path, steps=10, config={"log_step_count_steps": 3})
            lines.append([line.split(" (")[0] for line in caplog.messages if line.startswith("loss = ")])
    finally:
        v1.logging.set_verbosity(v1.logging.WARN)
    assert lines[1] == lines[0]
    assert [line.rsplit(" ", 1)[1] for line in lines[1]] == ["0", "3", "6", "9"]


@pytest.mark.parametrize(("seconds_per_step", "expected"), [(1e-5, 100), (0.1, 20), (7.0, 1)])
def test_slow_steps_are_taken_few_at_a_time(seconds_per_step: float, expected: int, monkeypatch: Any) -> None:
    clock = [0.0]

    class Loop(StepLoop):
        def __init__(self) -> None:
            self.asked = 0

        def run(self, steps: int, until: int = 0, report_from: int = 0) -> Ran:
            self.asked = steps
            clock[0] += seconds_per_step * steps
            return Ran(np.zeros(steps), np.zeros(steps), steps, None, ended=False, agreed=steps)

    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    pace, loop = Pace(), Loop()
    for _ in range(2):
        pace.run(loop, 0, 0)
    assert loop.asked == pytest.approx(expected, abs=1)


def test_a_hook_that_traces_a_session_is_refused_by_name(tmp_path: Path) -> None:
    with tf.Graph().as_default():  # where a script is
        hook = v1.train.ProfilerHook(save_steps=5, output_dir=str(tmp_path))
    with pytest.raises(NotSupportedError, match="ProfilerHook"):
        train("modern", model_fn, tmp_path, hooks=[hook])
    assert not list(tmp_path.glob("model.ckpt*"))
