"""A comparison moves an Estimator's folder, and nothing else of its configuration."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from estimator_bridge import legacy

legacy.install()

import tensorflow as tf  # noqa: E402 -- install() gives it Estimator

from estimator_bridge.legacy.contrib.learn.run_config import RunConfig  # noqa: E402
from estimator_bridge.parity.recording.folders.model_dirs import create_asked, export_dir, redirect  # noqa: E402
from estimator_bridge.parity.recording.folders.redirected_files import REPLACED  # noqa: E402

v1 = tf.compat.v1


@pytest.fixture
def redirected() -> Iterator[None]:
    """Restores the functions that redirect() replaces for a whole process."""
    from tensorflow.python.checkpoint import checkpoint_management
    from tensorflow.python.lib.io import file_io
    from tensorflow_estimator.python.estimator import estimator

    places = [
        (estimator, "maybe_overwrite_model_dir_and_session_config"),
        (estimator.Estimator, "_export_all_saved_models"),
        (checkpoint_management, "get_checkpoint_state"),
        (tf.train, "get_checkpoint_state"),
        (v1.train, "get_checkpoint_state"),
        *((file_io._pywrap_file_io, name) for name in REPLACED),
        (shutil, "rmtree"),
        *((cls, "__init__") for cls in (v1.train.CheckpointSaverHook, v1.train.SummarySaverHook, v1.train.StepCounterHook)),
    ]
    with contextlib.ExitStack() as stack:
        for place, name in places:
            stack.enter_context(mock.patch.object(place, name, getattr(place, name)))
        yield


def make(model_dir: Path) -> Any:
    return v1.estimator.Estimator(lambda features, labels, mode: None, config=RunConfig(model_dir=str(model_dir)))


def save(folder: Path, step: int) -> None:
    """A checkpoint by TensorFlow's own Saver."""
    folder.mkdir(exist_ok=True)
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("w", initializer=1.0)
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(folder / "model.ckpt"), step)


@pytest.mark.usefixtures("redirected")
def test_learn_runner_knows_its_configuration_in_another_folder(tmp_path: Path) -> None:
    redirect(tmp_path / "side", tmp_path / "start")
    config = RunConfig(model_dir=str(tmp_path / "asked"))
    made = v1.estimator.Estimator(lambda features, labels, mode: None, config=config)

    assert made.model_dir == str(tmp_path / "side" / "model-0")
    assert made.config.uid() == config.uid()


@pytest.mark.usefixtures("redirected")
def test_both_sides_start_from_what_there_was_before_the_first_one(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    save(asked, 3)
    redirect(tmp_path / "legacy", tmp_path / "start")
    make(asked)
    save(asked, 9)  # as a script does that keeps a literal path
    redirect(tmp_path / "modern", tmp_path / "start")

    latest = make(asked).latest_checkpoint()

    assert latest == str(tmp_path / "modern" / "model-0" / "model.ckpt-3")
    assert Path(f"{latest}.index").exists()


@pytest.mark.usefixtures("redirected")
def test_hooks_with_the_scripts_model_dir_write_where_its_estimator_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    redirect(tmp_path / "side", tmp_path / "start")
    own = Path(make(tmp_path / "asked").model_dir)
    save(own, 7)

    assert v1.train.CheckpointSaverHook("asked", save_steps=5)._save_path == str(own / "model.ckpt")
    assert v1.train.StepCounterHook(output_dir="./asked")._output_dir == str(own)
    assert v1.train.SummarySaverHook(1, output_dir="asked/train", summary_op="s")._output_dir == str(own / "train")
    assert v1.train.SummarySaverHook(1, output_dir="elsewhere", summary_op="s")._output_dir == "elsewhere"
    for space in (tf, v1):
        assert space.train.latest_checkpoint("asked") == str(own / "model.ckpt-7")
        assert space.train.get_checkpoint_state(checkpoint_dir=str(tmp_path / "asked")).model_checkpoint_path == str(
            own / "model.ckpt-7"
        )
    assert not (tmp_path / "asked").exists()


@pytest.mark.usefixtures("redirected")
def test_files_that_a_script_looks_for_in_its_model_dir_are_those_of_its_estimator(tmp_path: Path) -> None:
    asked, data = tmp_path / "asked", tmp_path / "data.txt"
    data.write_text("outside")
    moved = redirect(tmp_path / "side", tmp_path / "start")
    own = Path(make(asked).model_dir)
    save(own, 7)

    assert v1.gfile.Exists(str(asked / "model.ckpt-7.index"))
    assert sorted(tf.io.gfile.listdir(str(asked))) == sorted(path.name for path in own.iterdir())
    assert v1.gfile.Glob(str(asked / "model.ckpt-*.index")) == [str(own / "model.ckpt-7.index")]
    (own / "results.txt").write_text("accuracy = 1")
    assert tf.io.gfile.GFile(str(asked / "results.txt")).read() == "accuracy = 1"
    assert tf.io.gfile.GFile(str(data)).read() == "outside"
    assert moved(str(asked / "model.ckpt-7")) == str(own / "model.ckpt-7")
    assert export_dir(own, bytes(tmp_path / "exports")) == str(own / "exports" / "exports"), "contrib.learn gives bytes"
    with tf.io.gfile.GFile(str(tmp_path / "asked.txt"), "w") as written:
        written.write("as it is")
    assert tf.io.gfile.GFile(str(tmp_path / "asked.txt")).read() == "as it is"


@pytest.mark.usefixtures("redirected")
@pytest.mark.parametrize(
    "delete", [shutil.rmtree, v1.gfile.DeleteRecursively, tf.io.gfile.rmtree], ids=lambda one: one.__name__
)
def test_a_script_that_deletes_its_model_dir_deletes_the_sides_and_not_its_own(
    delete: Callable[[str], None], tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    save(asked, 3)
    redirect(tmp_path / "side", tmp_path / "start")
    own = Path(make(asked).model_dir)
    assert list(own.glob("*.index"))

    (shutil.rmtree if delete.__module__ == "shutil" else delete)(str(asked))

    assert not own.exists()
    assert list(asked.glob("*.index"))


@pytest.mark.usefixtures("redirected")
def test_what_tf_gfile_changes_in_a_model_dir_leaves_the_users_files_as_they_are(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    save(asked, 3)
    for name in ("best.txt", "log.txt", "old.txt"):
        (asked / name).write_text("the user's")
    before = {path.name: path.read_bytes() for path in asked.iterdir()}
    redirect(tmp_path / "side", tmp_path / "start")
    own = Path(make(asked).model_dir)

    v1.gfile.Remove(str(asked / "best.txt"))
    with v1.gfile.GFile(str(asked / "log.txt"), "a") as file:
        file.write(" and the script's")
    v1.gfile.Rename(str(asked / "old.txt"), str(asked / "new.txt"))
    v1.gfile.MakeDirs(str(asked / "best"))
    v1.gfile.Copy(str(asked / "model.ckpt-3.index"), str(asked / "best" / "model.index"))
    tf.io.gfile.rename(str(asked / "model.ckpt-3.index"), str(asked / "moved.index"))

    found = {name: v1.gfile.Exists(str(asked / name)) for name in ("best.txt", "old.txt", "new.txt", "model.ckpt-3.index")}
    assert found == {"best.txt": False, "old.txt": False, "new.txt": True, "model.ckpt-3.index": False}
    assert v1.gfile.GFile(str(asked / "log.txt")).read() == "the user's and the script's"
    assert v1.gfile.GFile(str(asked / "new.txt")).read() == "the user's"
    assert (own / "best" / "model.index").read_bytes() == (own / "moved.index").read_bytes() == before["model.ckpt-3.index"]
    assert {path.name: path.read_bytes() for path in asked.iterdir() if path.is_file()} == before


@pytest.mark.usefixtures("redirected")
def test_a_missing_model_dir_is_there_once_it_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_exit: list[Callable[[], None]] = []
    monkeypatch.setattr("atexit.register", lambda function, *args: at_exit.append(lambda: function(*args)))
    redirect(tmp_path / "side", tmp_path / "start")
    for name in ("empty", "written"):
        estimator = make(tmp_path / "runs" / name)
        assert not (tmp_path / "runs" / name).exists(), "scripts train if it is missing"
        assert not tf.io.gfile.exists(str(tmp_path / "runs" / name))
        create_asked(estimator.model_dir)
    (tmp_path / "runs" / "written" / "results.json").write_text("{}")

    for function in at_exit:
        function()

    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["written"], "an empty one is removed again"
