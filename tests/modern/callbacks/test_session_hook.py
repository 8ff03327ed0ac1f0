"""Session hooks of a script see on the modern path what they see on the legacy path: calls, order, values, steps, stops."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from tests.modern.jobs import PATHS, assert_close, engine, estimator, linear, regression_input, saved, spec, train, v1

Seen = list[Any]


def model(dropout: float = 0.2, hooks: Callable[..., Any] = lambda: ()) -> Callable[..., Any]:
    """A model_fn with a random part, a schedule, slots, a moving average and a tensor that hooks find by its name."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        hidden = v1.layers.dropout(features["x"], dropout, seed=1, training=True) if dropout else features["x"]
        error = tf.subtract(linear(hidden), labels, name="error")
        loss = tf.reduce_mean(tf.square(error))
        step = v1.train.get_global_step()
        rate = v1.train.exponential_decay(0.05, step, 3, 0.9)
        with tf.control_dependencies([v1.train.AdamOptimizer(rate).minimize(loss, step)]):
            train_op = v1.train.ExponentialMovingAverage(0.9).apply(v1.trainable_variables())
        return spec(mode, loss, train_op, training_hooks=hooks())

    return model_fn


class Recorder(tf.compat.v1.train.SessionRunHook):
    """Writes down every call, and what it can read at that moment."""

    def __init__(self, name: str, seen: Seen, stop_at: int | None = None) -> None:
        self._name, self._seen, self._stop_at = name, seen, stop_at

    def begin(self) -> None:
        self._step = v1.train.get_global_step()
        self._doubled = 2 * self._step
        self._seen.append([self._name, "begin", v1.get_default_graph() is self._step.graph])

    def after_create_session(self, session: Any, coord: Any) -> None:
        values = session.run({"kernel": v1.trainable_variables(), "steps": (self._step, self._doubled)})
        self._seen.append([self._name, "created", values, coord.should_stop()])

    def before_run(self, run_context: Any) -> Any:
        train_op, loss = run_context.original_args.fetches
        error = run_context.session.graph.get_tensor_by_name("error:0")
        self._seen.append([self._name, "before", run_context.session.run(self._doubled), run_context.stop_requested])
        return v1.train.SessionRunArgs([self._step, train_op, {"loss": loss, "both": [error, v1.trainable_variables()]}])

    def after_run(self, run_context: Any, run_values: Any) -> None:
        now = self._doubled.eval(session=run_context.session) // 2
        everything = run_context.session.run({v.op.name: v for v in v1.global_variables()})
        self._seen.append([self._name, "after", run_values.results, now, run_context.stop_requested, everything])
        if now == self._stop_at:
            run_context.request_stop()

    def end(self, session: Any) -> None:
        self._seen.append([self._name, "end", session.run([self._step, v1.trainable_variables()])])


def assert_same(modern: Any, legacy: Any) -> None:
    """The same structure; numbers of the same type and close."""
    tf.nest.assert_same_structure(modern, legacy)
    for one, other in zip(tf.nest.flatten(modern), tf.nest.flatten(legacy), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        if isinstance(other, (str, bool, type(None))):
            assert one == other
        else:
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("reference_variables")
def test_hooks_see_what_they_see_on_the_legacy_path(tmp_path: Path) -> None:
    records = []
    for path in PATHS:
        seen: Seen = []
        own = [Recorder("of train()", seen), Recorder("second", seen, stop_at=5)]
        made = model(hooks=lambda seen=seen: [Recorder("of the spec", seen)])
        values = train(path, made, tmp_path / path, hooks=own, steps=9)
        assert values["global_step"] == 5
        records.append(seen)
    assert [record[:2] for record in records[1]] == [record[:2] for record in records[0]]
    assert_same(records[1], records[0])
    assert len(records[1]) == 3 * (1 + 1 + 2 * 5 + 1)
    assert records[1][8][1:3] == ["before", 0]


class Reading(tf.compat.v1.train.SessionRunHook):
    """Asks at some steps for a tensor, which it may keep as an attribute, and writes down its mean."""

    def __init__(self, seen: Seen, asks: Callable[[int], bool], keeps: bool = False) -> None:
        self._seen, self._asks, self._keeps, self._count = seen, asks, keeps, 0

    def begin(self) -> None:
        self._tensors = {"kept": [v1.get_default_graph().get_tensor_by_name("error:0")]} if self._keeps else {}

    def before_run(self, run_context: Any) -> Any:
        self._count += 1
        return v1.train.SessionRunArgs("error:0") if self._asks(self._count) else None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._seen.append(None if run_values.results is None else run_values.results.mean())


@pytest.mark.parametrize(("dropout", "keeps"), [(0.0, False), (0.2, True)])
def test_a_hook_may_ask_at_some_steps_only(dropout: float, keeps: bool, tmp_path: Path) -> None:
    records: list[Seen] = [[], []]
    for path, seen in zip(PATHS, records, strict=True):
        train(path, model(dropout), tmp_path / path, hooks=[Reading(seen, lambda step: step % 3 == 0, keeps)], steps=6)
    assert [value is None for value in records[1]] == [True, True, False] * 2
    assert_same(records[1], records[0])


def test_random_numbers_go_on_when_a_hook_asks_for_a_tensor_at_last(tmp_path: Path) -> None:
    records: list[Seen] = [[], []]
    for path, seen in zip(PATHS, records, strict=True):
        train(path, model(), tmp_path / path, hooks=[Reading(seen, lambda step: step == 3)], steps=6)
    assert_same(records[1], records[0])


def test_summaries_are_computed_where_they_are_saved_whatever_a_hook_asks_for(tmp_path: Path) -> None:
    """Steps run one by one for the first hook, and the second one keeps a tensor that it wants now and then."""
    calls: dict[str, list[str]] = {"summary": [], "kept": []}

    def noted(name: str, value: Any) -> Any:
        def note(given: Any) -> Any:
            calls[name].append(name)
            return given

        return v1.py_func(note, [value], tf.float32, name=name)

    class Keeping(tf.compat.v1.train.SessionRunHook):
        count = 0

        def begin(self) -> None:
            self.kept = v1.get_default_graph().get_tensor_by_name("kept:0")

        def before_run(self, run_context: Any) -> Any:
            self.count += 1
            return v1.train.SessionRunArgs(self.kept) if self.count % 4 == 0 else None

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        v1.summary.scalar("noted", noted("summary", tf.reduce_sum(v1.trainable_variables()[0])))
        noted("kept", loss)
        return spec(mode, loss, v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step()))

    counts = []
    for path in PATHS:
        hooks = [Reading([], lambda step: False), Keeping()]
        train(path, model_fn, tmp_path / path, hooks=hooks, steps=9, config={"save_summary_steps": 5})
        counts.append({name: len(made) for name, made in calls.items()})
        for made in calls.values():
            made.clear()
    assert counts[1] == counts[0] == {"summary": 2, "kept": 2}


class Threaded(tf.compat.v1.train.SessionRunHook):
    """Has a thread that lives until the coordinator stops."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.thread = threading.Thread(target=coord.wait_for_stop, args=(60,))
        coord.register_thread(self.thread)
        self.thread.start()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        raise RuntimeError("of the hook")


def test_threads_of_hooks_end_with_a_run_that_fails(tmp_path: Path) -> None:
    for path in PATHS:
        hook, other = Threaded(), Threaded()
        with pytest.raises(RuntimeError, match="of the hook"):
            train(path, model(), tmp_path / path, hooks=[hook], steps=2)
        with pytest.raises(RuntimeError, match="of the hook"):
            engine(path).evaluate(estimator(model(), tmp_path / path), regression_input, steps=2, hooks=[other])
        assert not hook.thread.is_alive()
        assert not other.thread.is_alive()


class Writing(tf.compat.v1.train.SessionRunHook):
    """Halves a weight at one moment."""

    def __init__(self, at: int | None) -> None:
        self._at = at

    def begin(self) -> None:
        kernel = v1.trainable_variables()[0]
        self._halve = v1.assign(kernel, kernel / 2.0)
        self._step = v1.train.get_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._at is None:
            session.run(self._halve)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_context.session.run(self._step) == self._at:
            run_context.session.run(self._halve)


@pytest.mark.parametrize("at", [None, 4])
def test_a_hook_writes_at_its_moment(at: int | None, tmp_path: Path) -> None:
    """Both paths draw the same numbers for the dropout, though some steps run by another function."""
    config = {"save_checkpoints_steps": 3}
    values = [train(path, model(), tmp_path / path, hooks=[Writing(at)], steps=6, config=config) for path in PATHS]
    assert_close(values[1], values[0])


class Skipping(tf.compat.v1.train.SessionRunHook):
    """Reads the global step before and after each step, and once sets it to a later one."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def begin(self) -> None:
        self._step = v1.train.get_global_step()
        self._skip = v1.assign(self._step, 10)

    def before_run(self, run_context: Any) -> None:
        self._before = int(run_context.session.run(self._step))

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._seen.append((self._before, int(run_context.session.run(self._step))))
        if len(self._seen) == 3:
            run_context.session.run(self._skip)


def test_a_hook_that_sets_the_global_step_reads_the_new_one(tmp_path: Path) -> None:
    """The session keeps the step that the loop returned only until something changes it."""
    seen: dict[str, Seen] = {path: [] for path in PATHS}
    for path in PATHS:
        train(path, model(0.0), tmp_path / path, hooks=[Skipping(seen[path])], steps=None, max_steps=13)
    assert [one[0] for one in seen["modern"]] == [0, 1, 2, 10, 11, 12]
    assert seen["modern"] == seen["legacy"]


def test_several_replicas_refuse_a_write_and_do_not_do_it(tmp_path: Path) -> None:
    config = {"train_distribute": tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])}
    with pytest.raises(NotSupportedError, match=r"Writing runs .*may write .'AssignVariableOp") as caught:
        train("modern", model(0.0), tmp_path, hooks=[Writing(None)], steps=6, config=config)
    assert "tf.group" in str(caught.value)
    assert saved(tmp_path)["global_step"] == 0


def test_a_hook_that_does_nothing_at_steps_lets_them_run_in_bulk(tmp_path: Path, loop_calls: list[int]) -> None:
    final = v1.train.FinalOpsHook({"step": "global_step:0", "kernel": "dense/kernel:0"})
    values = train("modern", model(), tmp_path, hooks=[final], steps=30)
    assert len(loop_calls) < 5
    assert final.final_ops_values["step"] == 30
    np.testing.assert_array_equal(final.final_ops_values["kernel"], values["dense/kernel"])


class Tracing(tf.compat.v1.train.SessionRunHook):
    def after_run(self, context: Any, values: Any) -> None:
        context.session.run("global_step:0", options=v1.RunOptions(trace_level=3), run_metadata=v1.RunMetadata())


def test_a_trace_of_a_session_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match="Tracing asks for RunOptions or RunMetadata"):
        train("modern", model(), tmp_path, hooks=[Tracing()], steps=2)


@pytest.mark.parametrize("name", ["FinalOpsHook", "FeedFnHook"])
def test_several_replicas_refuse_what_needs_one(name: str, tmp_path: Path) -> None:
    hooks = {"FinalOpsHook": v1.train.FinalOpsHook("error:0"), "FeedFnHook": v1.train.FeedFnHook(lambda: {"error:0": 0.0})}
    config = {"train_distribute": tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])}
    with pytest.raises(NotSupportedError, match=rf"{name} (evaluates 'error:0', which is computed with a batch|feeds error:0)"):
        train("modern", model(0.0), tmp_path, hooks=[hooks[name]], steps=3, config=config)
    assert saved(tmp_path)["global_step"] == 0


def test_two_hooks_must_not_feed_the_same_tensor(tmp_path: Path) -> None:
    for path in PATHS:
        hooks = [v1.train.FeedFnHook(lambda: {"error:0": np.zeros([8, 1])}) for _ in range(2)]
        with pytest.raises(RuntimeError, match="Same tensor is fed"):
            train(path, model(), tmp_path / path, hooks=hooks, steps=3)


def test_what_a_session_refuses_is_refused_here(tmp_path: Path) -> None:
    wrong: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
        "shape": (
            lambda session: session.run("error:0", {"error:0": np.zeros([3, 3])}),
            ValueError,
            "Cannot feed value of shape",
        ),
        "name": (lambda session: session.run("nothing:0"), ValueError, "nothing:0"),
        "placeholder": (
            lambda session: session.run("given:0"),
            tf.errors.InvalidArgumentError,
            "must feed a value for placeholder",
        ),
    }

    class Trying(tf.compat.v1.train.SessionRunHook):
        def begin(self) -> None:
            v1.placeholder(tf.float32, [], name="given")

        def after_create_session(self, session: Any, coord: Any) -> None:
            for do, error, message in wrong.values():
                with pytest.raises(error, match=message):
                    do(session)

    for path in PATHS:
        train(path, model(), tmp_path / path, hooks=[Trying()], steps=1)
