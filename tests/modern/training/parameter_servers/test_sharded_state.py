"""On real parameter servers variables start, are saved and are restored where they live; the legacy path is the oracle."""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.modern.graph import model_graph
from tests.modern.jobs import PATHS, assert_close, engine, estimator, minimizing, regression_input, saved, v1

from estimator_bridge.modern.training.parameter_servers.shared_transplant import SharedTransplant  # isort: skip -- needs Keras 2
from tests.running import estimator_bridge_command, python_output

JOB = Path(__file__).parents[4] / "benchmarks" / "jobs" / "large_variables.py"
ROWS = 20
pytestmark = pytest.mark.timeout(900)


def launched(
    path: str, model_dir: Path, steps: int, servers: int = 2, slices: int = 4, rows: int = ROWS, workers: int = 1
) -> str:
    """Trains on parameter servers and returns what the tasks printed."""
    words: list[Any] = ["launch", "--worker", workers, "--ps", servers, "--path", path, JOB]
    words += ["--model_dir", model_dir, "--rows", rows, "--slices", slices, "--steps", steps]
    ended = estimator_bridge_command(*words, cwd=model_dir.parent)
    assert ended.code == 0, ended.err[-4000:]
    return ended.out + ended.err


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The model_dir of six steps on two parameter servers, by path.

    On the legacy path the chief is alone: a worker may train while TensorFlow 1 writes the checkpoint of step 0.
    """
    made = {path: tmp_path_factory.mktemp(path) / "model" for path in PATHS}
    printed = {path: launched(path, folder, 6, workers=int(path == "modern")) for path, folder in made.items()}
    assert "The chief's memory must hold" not in printed["modern"]
    return made


def test_two_parameter_servers_hold_what_the_chief_never_does(folders: dict[str, Path]) -> None:
    first, oracle = (tf.train.load_checkpoint(str(folders[path] / "model.ckpt-0")) for path in ("modern", "legacy"))
    assert first.get_variable_to_shape_map() == oracle.get_variable_to_shape_map()
    for name in oracle.get_variable_to_shape_map():
        np.testing.assert_array_equal(first.get_tensor(name), oracle.get_tensor(name), name)
    assert files_of(folders["modern"], 0) == [
        f"model.ckpt-0{end}" for end in (".data-00000-of-00002", ".data-00001-of-00002", ".index", ".meta")
    ]


def files_of(folder: Path, step: int) -> list[str]:
    return sorted(file.name for file in folder.glob(f"model.ckpt-{step}.*"))


@pytest.mark.usefixtures("warm_python")
def test_an_export_has_several_data_files_and_answers_as_that_of_the_legacy_path(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    job = runpy.run_path(str(JOB))
    made = estimator(job["model_fn"], folders["modern"], {"rows": ROWS, "slices": 4})
    ids = np.arange(40).reshape(5, 8) % ROWS
    answers = {}
    for path in PATHS:
        folder = os.fsdecode(engine(path).export_saved_model(made, str(tmp_path / path), job["serving_input"]))
        printed = python_output(sys.executable, Path(__file__).with_name("loaded_answers.py"), folder, json.dumps(ids.tolist()))
        answers[path], files = json.loads(printed)
    assert len([name for name in files if ".data-" in name]) > 1
    assert answers["modern"] == answers["legacy"]


def test_another_number_of_parameter_servers_and_slices_goes_on(folders: dict[str, Path]) -> None:
    """The checkpoint that is written at the restart has the values of the last one."""
    folder = folders["modern"]
    for servers, slices, steps in ((3, 3, 12), (1, 5, 18)):
        before, values = tf.train.latest_checkpoint(str(folder)), saved(folder)
        step = int(values["global_step"])
        assert "The chief's memory must hold" not in launched("modern", folder, steps, servers, slices)
        assert len([name for name in files_of(folder, step) if name.endswith(f"-of-{servers:05d}")]) == servers
        restored = tf.train.load_checkpoint(before)
        assert_close({name: restored.get_tensor(name) for name in restored.get_variable_to_shape_map()}, values, 0)
        assert int(saved(folder)["global_step"]) >= steps
    assert not list(folder.glob("*temp*")), "no part of a checkpoint is left"


@pytest.mark.slow
def test_an_export_holds_a_slice_at_a_time(tmp_path: Path) -> None:
    """At most the largest and a fifth, of a table in four slices; the export of the legacy path takes a little more than the table."""
    rows = 4_000_000
    launched("modern", tmp_path / "model", 2, rows=rows)
    words = ["--path", "modern", JOB, "--model_dir", tmp_path / "model", "--rows", rows, "--export", tmp_path / "export"]
    ended = estimator_bridge_command("run", *words, cwd=tmp_path)
    assert ended.code == 0, ended.err[-4000:]
    (peak,) = (tmp_path / "export").glob("*/peak")
    assert float(peak.read_text()) * 2**20 <= 1.2 * rows / 4 * 64 * 4


def test_other_trainers_pause_before_a_value_is_saved(tmp_path: Path) -> None:
    """A step that ends while the chief waits for it is saved whole; before and after a training nobody has to pause."""
    made = estimator(minimizing(lambda: v1.train.GradientDescentOptimizer(0.1)), tmp_path)
    transplant = SharedTransplant(model_graph.build(made, regression_input, model_graph.TRAIN, None))
    paused: list[int] = []

    def end_step() -> None:
        paused.append(transplant.global_step.assign_add(5).numpy())

    for interrupt, step in ((None, 0), (end_step, 5)):
        transplant.interrupt = interrupt
        transplant.save(transplant.saved(), str(tmp_path / f"model-{step}"))
        assert tf.train.load_variable(str(tmp_path / f"model-{step}"), "global_step") == step
    assert paused == [5]
    transplant.pause()
    assert paused == [5, 10]
