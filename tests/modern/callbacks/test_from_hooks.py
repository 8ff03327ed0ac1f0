"""TensorFlow's own hooks do on the modern path what they do on the legacy path, and let steps run in bulk where they can."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.runtime.estimator_calls import interposed
from tests.modern.callbacks.test_session_hook import assert_same, model
from tests.modern.jobs import (
    ONE_BY_ONE,
    PATHS,
    engine,
    estimator,
    linear,
    make_engine,
    regression_input,
    saved,
    spec,
    train,
    v1,
)
from tests.modern.training.test_train import events

REFERENCE_AND_RESOURCE = "read:0", "Read/ReadVariableOp:0"
"""What a variable's read is called for reference variables, and for resource variables."""


@pytest.fixture
def log(caplog: Any, monkeypatch: Any) -> Iterator[Any]:
    """Collects TensorFlow's log lines."""
    monkeypatch.setattr(logging.getLogger("tensorflow"), "propagate", True)
    v1.logging.set_verbosity(v1.logging.INFO)
    yield caplog
    v1.logging.set_verbosity(v1.logging.WARN)


def test_early_stopping_asks_at_the_same_steps_and_leaves_the_same_flag(tmp_path: Path, loop_calls: list[int]) -> None:
    outcome = []
    for path in PATHS:
        asked: list[int] = []
        made = estimator(model(), tmp_path / path, **({"session_config": ONE_BY_ONE} if path == "legacy" else {}))

        def stops(asked: list[int] = asked) -> bool:
            asked.append(len(asked))
            return len(asked) == 4

        hook = tf.estimator.experimental.make_early_stopping_hook(made, stops, run_every_secs=None, run_every_steps=5)
        engine(path).train(made, regression_input, hooks=[hook], steps=40)
        values = saved(tmp_path / path)
        outcome.append([len(asked), values["global_step"], values["signal_early_stopping/STOP"]])
    assert_same(outcome[1], outcome[0])
    assert outcome[1] == [4, 16, True]
    assert len(loop_calls) < 10


def test_stop_if_no_decrease_reads_the_events_of_evaluations(tmp_path: Path) -> None:
    steps = []
    for path in PATHS:
        made = estimator(model(), tmp_path / path)
        with v1.Graph().as_default(), v1.summary.FileWriter(made.eval_dir()) as writer:
            for step, loss in enumerate([3.0, 2.0, 2.5, 2.5]):
                summary = v1.Summary(value=[v1.Summary.Value(tag="loss", simple_value=loss)])
                writer.add_summary(summary, step)
        hook = tf.estimator.experimental.stop_if_no_decrease_hook(made, "loss", 2, run_every_secs=None, run_every_steps=4)
        engine(path).train(made, regression_input, hooks=[hook], steps=9)
        steps.append(saved(tmp_path / path)["global_step"])
    assert steps == [1, 1]


@pytest.mark.usefixtures("reference_variables")
def test_tensors_are_logged_alike_also_at_the_end(tmp_path: Path, log: Any) -> None:
    lines = []
    for path, read in zip(PATHS, REFERENCE_AND_RESOURCE, strict=True):
        log.clear()
        inside = v1.train.LoggingTensorHook({"step": f"global_step/{read}", "error": "error:0"}, every_n_iter=4)
        last = v1.train.LoggingTensorHook([f"dense/kernel/{read}"], at_end=True)
        both = v1.train.LoggingTensorHook([f"dense/bias/{read}"], every_n_iter=6, at_end=True, formatter=str)
        train(path, model(0.0), tmp_path / path, hooks=[inside, last, both], steps=9)
        lines.append([line.split(" (")[0] for line in log.messages if "dense/" in line or line.startswith("error = ")])
    assert [line[:30] for line in lines[1]] == [line.replace(*REFERENCE_AND_RESOURCE)[:30] for line in lines[0]]
    for logged in lines:  # a session gives a reference variable as it is after the step
        assert [line.rsplit(" ", 1)[1] for line in logged if line.startswith("error = ")] == ["1", "5", "9"]
    assert len(lines[1]) == 3 + 1 + 3


def test_no_step_is_logged_as_another_where_a_loss_is_not_a_number(tmp_path: Path) -> None:
    """It ends a call of the loop before the step that was to be looked at."""
    steps: list[int] = []

    def noted(values: Any) -> str:
        steps.append(int(values["step"]))
        return ""

    def diverging(features: Any, labels: Any, mode: str) -> Any:
        step = tf.identity(v1.train.get_global_step(), name="step")
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels)) * tf.where(step < 7, 1.0, np.nan)
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.05).minimize(loss, v1.train.get_global_step()))

    hook = v1.train.LoggingTensorHook({"step": "step:0"}, every_n_secs=1e-6, formatter=noted)
    with pytest.raises(v1.train.NanLossDuringTrainingError):
        train("modern", diverging, tmp_path, hooks=[hook], steps=20)
    assert steps
    assert len(set(steps)) == len(steps)


def test_in_memory_evaluation_writes_the_same_events(tmp_path: Path) -> None:
    def evaluated(features: Any, labels: Any, mode: str) -> Any:
        error = linear(features["x"]) - labels
        loss = tf.reduce_mean(tf.square(error))
        train_op = v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step()) if mode == "train" else None
        return spec(mode, loss, train_op, eval_metric_ops={"error": v1.metrics.mean(error)})

    written = []
    for path in PATHS:
        made = estimator(evaluated, tmp_path / path)
        hook = tf.estimator.experimental.InMemoryEvaluatorHook(made, lambda: regression_input(epochs=1), every_n_iter=3)
        engine(path).train(made, regression_input, hooks=[hook], steps=5)
        v1.summary.FileWriterCache.clear()
        written.append(events(tmp_path / path / "eval"))
    assert {event[:2] for event in written[1]} == {(step, tag) for step in (0, 3, 5) for tag in ("error", "loss")}
    assert [event[:2] for event in written[1]] == [event[:2] for event in written[0]]
    for modern, legacy in zip(written[1], written[0], strict=True):
        assert modern[2] == (None if legacy[2] is None else pytest.approx(legacy[2], rel=1e-5))


def test_other_tensors_are_watched_for_nan(tmp_path: Path) -> None:
    def diverging(features: Any, labels: Any, mode: str) -> Any:
        step = v1.train.get_global_step()
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        watched = tf.where(step >= 3, np.float32("nan"), loss)
        train_op = v1.train.GradientDescentOptimizer(0.05).minimize(loss, step)
        return spec(mode, loss, train_op, training_hooks=[v1.train.NanTensorHook(watched, fail_on_nan_loss=False)])

    assert [train(path, diverging, tmp_path / path)["global_step"] for path in PATHS] == [4, 4]


def test_waiting_for_a_step_that_nobody_makes_is_refused(tmp_path: Path) -> None:
    train("modern", model(), tmp_path, hooks=[v1.train.GlobalStepWaiterHook(0)], steps=2)
    with pytest.raises(NotSupportedError, match="GlobalStepWaiterHook waits for step 9"):
        train("modern", model(), tmp_path, hooks=[v1.train.GlobalStepWaiterHook(9)], steps=1)


def test_several_summaries_and_a_writer_of_the_script_let_steps_run_in_bulk(tmp_path: Path, loop_calls: list[int]) -> None:
    """Hooks may serve in several trainings, each of which begins with a summary."""

    def summarising(features: Any, labels: Any, mode: str, config: Any) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        both = [v1.summary.scalar(name, loss) for name in ("one", "other")]
        saver = v1.train.SummarySaverHook(save_steps=10, output_dir=f"{config.model_dir}/own", summary_op=both)
        train_op = v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step())
        return spec(mode, loss, train_op, training_hooks=[saver])

    with v1.Graph().as_default():
        counter = v1.train.StepCounterHook(10, summary_writer=v1.summary.FileWriterCache.get(str(tmp_path / "counted")))
    made = estimator(summarising, tmp_path)
    for _ in range(2):
        engine("modern").train(made, regression_input, hooks=[counter], steps=15)
    v1.summary.FileWriterCache.clear()
    assert [event[:2] for event in events(tmp_path / "own")] == [
        (step, tag) for step in (1, 11, 16, 26) for tag in ("one", "other")
    ]
    assert [event[:2] for event in events(tmp_path / "counted")] == [(step, "global_step/sec") for step in (11, 26)]
    assert len(loop_calls) < 20


def test_what_is_no_hook_is_refused_as_estimator_does(tmp_path: Path) -> None:
    for path in PATHS:
        with pytest.raises(TypeError, match="SessionRunHook"):
            train(path, model(), tmp_path / path, hooks=[object()])


def test_spellings_of_tf_estimator_are_the_same_classes() -> None:
    for name in ("CheckpointSaverHook", "FinalOpsHook", "GlobalStepWaiterHook", "LoggingTensorHook", "NanTensorHook"):
        assert getattr(tf.estimator, name) is getattr(v1.train, name)


def test_an_experiment_evaluates_new_checkpoints_while_it_trains(tmp_path: Path) -> None:
    from estimator_bridge.legacy.contrib.learn import Experiment

    def evaluated(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        return spec(mode, loss, v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step()))

    written = []
    for path in PATHS:
        made = estimator(evaluated, tmp_path / path, save_checkpoints_steps=2)
        with interposed(make_engine(path)):
            batches = regression_input, lambda: regression_input(epochs=1)
            Experiment(made, *batches, train_steps=3, min_eval_frequency=1, check_interval_secs=None).train_and_evaluate()
        v1.summary.FileWriterCache.clear()
        written.append(events(tmp_path / path / "eval"))
    assert [event[:2] for event in written[1]] == [event[:2] for event in written[0]]
    assert {event[0] for event in written[1]} == {0, 2, 3}
    for modern, legacy in zip(written[1], written[0], strict=True):
        assert modern[2] == (None if legacy[2] is None else pytest.approx(legacy[2], rel=1e-5))


def test_a_hook_may_key_its_fetches_by_a_variable(tmp_path: Path) -> None:
    """The hooks of the real ``tf.contrib.learn`` ask for the global step so."""

    class Sevens(v1.train.SessionRunHook):
        def begin(self) -> None:
            self.variable, self.seven = v1.train.get_global_step(), tf.constant(7)
            self.seen: list[int] = []

        def before_run(self, run_context: Any) -> Any:
            return v1.train.SessionRunArgs({self.variable: self.seven})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.seen += run_values.results.values()

    for path in PATHS:
        hook = Sevens()
        train(path, model(), tmp_path / path, hooks=[hook], steps=3)
        assert hook.seen == [7, 7, 7]


def test_a_script_s_own_kinds_of_tensorflow_s_hooks_run_as_they_are(tmp_path: Path) -> None:
    class Stop(tf.compat.v1.train.StopAtStepHook):
        pass

    class Save(tf.compat.v1.train.CheckpointSaverHook):
        def after_create_session(self, session: Any, coord: Any) -> None:
            """Not at the start."""

    def summarising(features: Any, labels: Any, mode: str, config: Any) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        one, other = (
            v1.summary.scalar("one", loss),
            v1.summary.scalar("weights", tf.reduce_sum(v1.trainable_variables()[0])),
        )
        hook = v1.train.SummarySaverHook(save_steps=2, output_dir=config.model_dir + "/own", summary_op=[one, other])
        train_op = v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step())
        return spec(mode, loss, train_op, training_hooks=[hook])

    written = []
    for path in PATHS:
        folder = tmp_path / path
        hooks = [Stop(num_steps=5), Save(str(folder), save_steps=3)]
        train(path, summarising, folder, hooks=hooks, steps=None)
        v1.summary.FileWriterCache.clear()
        written.append((events(folder / "own"), sorted(file.name for file in folder.glob("model.ckpt-*.index"))))
    assert written[1][1] == written[0][1]
    assert written[1][1][-1] == "model.ckpt-5.index"
    assert [event[:2] for event in written[1][0]] == [event[:2] for event in written[0][0]]
    for modern, legacy in zip(written[1][0], written[0][0], strict=True):
        assert modern[2] == pytest.approx(legacy[2], rel=1e-5)


def test_a_hook_s_own_saver_decides_on_variables_and_on_the_number_of_checkpoints(tmp_path: Path) -> None:
    def saving(features: Any, labels: Any, mode: str, config: Any) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        step = v1.train.get_global_step()
        train_op = v1.train.AdamOptimizer(0.05).minimize(loss, step)
        kernel, _ = v1.trainable_variables()
        savers = {
            "given": {"saver": v1.train.Saver([kernel], max_to_keep=2)},
            "scaffold": {"scaffold": v1.train.Scaffold(saver=v1.train.Saver({"weights": kernel, "step": step}, max_to_keep=3))},
            "own": {},
        }
        hooks = [
            v1.train.CheckpointSaverHook(f"{config.model_dir}/{name}", save_steps=1, **how) for name, how in savers.items()
        ]
        return spec(mode, loss, train_op, training_hooks=hooks)

    found: dict[str, Any] = {}
    for path in PATHS:
        engine(path).train(estimator(saving, tmp_path / path, keep_checkpoint_max=4), regression_input, steps=5)
        folders = [tmp_path / path / name for name in ("given", "scaffold", "own")]
        kept = [sorted(file.name for file in folder.glob("*.index")) for folder in folders]
        found[path] = [kept, [saved(folder) for folder in folders]]
    assert_same(found["modern"], found["legacy"])
    kept, values = found["modern"]
    assert kept[0] == ["model.ckpt-4.index", "model.ckpt-5.index"]
    assert [len(names) for names in kept] == [2, 3, 4]
    assert [sorted(names) for names in values[:2]] == [["dense/kernel"], ["step", "weights"]]
    assert "dense/bias/Adam" in values[2]
