"""The modern path from the command line and in nested calls: scripts that disable TF2 behavior, shapes, modes, counts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.cluster.rendezvous import VARIABLE, Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.distribution.launched.launched_task import join_launcher
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.runtime.estimator_calls import TrainCall, interposed
from tests.modern.jobs import PATHS, engine, estimator, minimizing, regression_input, saved, v1

Run = Callable[..., str]
SCRIPT = Path(__file__).parents[1] / "data" / "disabled_tf2_behavior.py"


def test_an_unmodified_script_that_disables_tf2_runs_on_it(run_python: Run, tmp_path: Path) -> None:
    kernels, lines = [], []
    for path in ("legacy", "modern"):
        folder = tmp_path / path
        output = run_python("-m", "estimator_bridge", "run", "--path", path, SCRIPT, folder)
        assert "STEP 20 False" in output
        lines.append([line for line in output.splitlines() if line.startswith("OUTSIDE")])
        kernels.append(tf.train.load_variable(str(folder), "kernel").tolist())
    assert kernels[1] == kernels[0]
    assert lines[1] == lines[0] != []


def test_the_callers_modes_are_unchanged(tmp_path: Path) -> None:
    made = estimator(minimizing(lambda: v1.train.AdamOptimizer(0.05)), tmp_path)
    with tf.Graph().as_default() as graph:
        engine("modern").train(made, regression_input, steps=1)
        assert tf.compat.v1.get_default_graph() is graph
        assert not graph.get_operations()
    assert tf.executing_eagerly()


def test_calls_are_counted(tmp_path: Path) -> None:
    executor = ModernEngine()
    executor.train(estimator(minimizing(lambda: v1.train.AdamOptimizer(0.05)), tmp_path), TrainCall(regression_input, steps=1))
    assert executor.calls == 1


@pytest.mark.parametrize("path", PATHS)
def test_a_task_that_evaluates_or_exports_while_it_trains_reports_it(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    meeting, said = Rendezvous(tmp_path), []
    made = estimator(minimizing(lambda: v1.train.AdamOptimizer(0.05)), tmp_path / "model")

    def note(result: Any = None) -> Any:
        said.append(meeting.is_paused(TaskId("worker", 0)))
        return result

    def receiver() -> Any:
        note()
        raise ValueError("enough")

    class Evaluates(v1.train.SessionRunHook):
        def after_run(self, run_context: Any, run_values: Any) -> None:
            note()
            made.evaluate(lambda: note(regression_input()), steps=1)
            note()
            with pytest.raises(ValueError, match="enough"):
                made.export_saved_model(str(tmp_path / "export"), receiver)
            note()

    with join_launcher(), interposed(ModernEngine()) if path == "modern" else contextlib.nullcontext():
        made.train(regression_input, steps=1, hooks=[Evaluates()])
        assert said == [False, True, False, True, False]
        made.evaluate(lambda: note(regression_input()), steps=1)
    assert not said[-1], "the others may yet train: one of them may hang"


def test_an_audited_run_digests_each_batch(tmp_path: Path) -> None:
    from estimator_bridge.modern.callbacks.base import Callback, Progress

    class Recorder(Callback):
        def __init__(self) -> None:
            self.digests: list[int] = []

        def after(self, progress: Progress) -> bool:
            self.digests += progress.digests.tolist()
            return False

    seen: list[list[int]] = []
    for _ in range(2):
        recorder = Recorder()
        executor = ModernEngine(callbacks=lambda recorder=recorder: [recorder], audited=True)  # type: ignore[misc]
        made = estimator(minimizing(lambda: v1.train.AdamOptimizer(0.05)), tmp_path / str(len(seen)))
        executor.train(made, TrainCall(regression_input, steps=12))
        seen.append(recorder.digests)
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 6, "48 rows in batches of 8, twice"
    assert seen[0][:6] == seen[0][6:]
    assert saved(tmp_path / "0")["global_step"] == 12


def test_hooks_and_listeners_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    wrong: Any = object()
    with pytest.raises((TypeError, NotSupportedError), match="object"):
        engine("modern").train(
            estimator(minimizing(lambda: v1.train.AdamOptimizer(0.05)), tmp_path), regression_input, steps=1, hooks=[wrong]
        )
