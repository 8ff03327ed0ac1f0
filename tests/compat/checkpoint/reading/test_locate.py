"""What is said where there is no checkpoint, or not the one that is named."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from estimator_bridge.compat.checkpoint.errors import NotFoundError
from estimator_bridge.compat.checkpoint.reading.locate import resolve, v1
from estimator_bridge.compat.checkpoint.writing.opening import open_checkpoint
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    """Returns a folder with checkpoints of three steps and no ``checkpoint`` file."""
    for step in (0, 50, 200):
        write_tensors(tmp_path / f"model.ckpt-{step}", {"global_step": step})
    return tmp_path


def refusal(path: Path) -> str:
    """Returns the message about a path without a checkpoint."""
    with pytest.raises(NotFoundError) as caught:
        resolve(path)
    return str(caught.value)


def _folder(state: Path) -> None:
    state.mkdir()


STATES: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (Path.touch, "its file 'checkpoint' is empty"),
    "other text": (lambda state: state.write_text("garbage"), "its file 'checkpoint' names no checkpoint"),
    "another name": (
        lambda state: state.write_text('model_checkpoint_path: "../x/model.ckpt-7"'),
        "its file 'checkpoint' names ../x/model.ckpt-7, which is not there",
    ),
    "a folder": (_folder, "its 'checkpoint' is not a file"),
    "a pipe": (os.mkfifo, "its 'checkpoint' is not a file"),
    "an endless device": (lambda state: state.symlink_to("/dev/zero"), "its 'checkpoint' is not a file"),
    "a loop of links": (lambda state: state.symlink_to("checkpoint"), "cannot be read (Too many levels of symbolic links)"),
    "nothing": (lambda state: None, "it has no file 'checkpoint'"),
}


@pytest.mark.parametrize("name", STATES)
def test_the_checkpoints_of_a_folder_are_named_where_its_state_file_is_no_help(name: str, model_dir: Path) -> None:
    make, reason = STATES[name]
    make(model_dir / "checkpoint")
    message = refusal(model_dir)
    assert reason in message
    latest = [str(model_dir / f"model.ckpt-{step}") for step in (200, 50, 0)]
    assert f"Name one of these prefixes: {', '.join(latest)}." in message


def test_a_state_file_is_read_with_a_bound(model_dir: Path) -> None:
    with (model_dir / "checkpoint").open("wb") as file:
        file.truncate(8 * 1024**3)  # takes no space on disk
    assert "is larger than 16,777,216 bytes" in refusal(model_dir)


INDEXES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, "is not a file"),
    "a folder": (Path.mkdir, "is not a file"),
    "a loop of links": (lambda index: index.symlink_to(index.name), "Too many levels of symbolic links"),
    "a dangling link": (lambda index: index.symlink_to("gone"), "is a link to a file that is not there"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_that_is_no_file_is_named(name: str, model_dir: Path) -> None:
    make, reason = INDEXES[name]
    index = model_dir / "model.ckpt-200.index"
    index.unlink()
    make(index)
    for path in [model_dir / "model.ckpt-200"] if name == "a folder" else [index, model_dir / "model.ckpt-200"]:
        message = refusal(path)
        assert f"model.ckpt-200.index{': ' if 'levels' in reason else ' '}{reason}" in message
        assert str(model_dir / "model.ckpt-50") in message


def test_another_step_gets_the_names_of_those_that_are_there(model_dir: Path) -> None:
    assert str(model_dir / "model.ckpt-200") in refusal(model_dir / "model.ckpt-201")
    assert "Check the path" in refusal(model_dir / "nowhere" / "model.ckpt-7")


def test_a_file_of_keras_beside_checkpoints_is_told_what_reads_it(model_dir: Path) -> None:
    path = model_dir / "model.keras"
    path.write_bytes(b"PK")
    message = refusal(path)
    assert "convert checkpoint" in message
    assert "model.ckpt-50" not in message


def test_brackets_of_a_name_are_no_pattern(tmp_path: Path) -> None:
    golden = Path(__file__).parents[3] / "golden" / "checkpoints"
    for shard in golden.glob("v1-sharded.ckpt-*"):
        shutil.copy(shard, tmp_path / shard.name.replace("v1-sharded.ckpt", "model[1].ckpt"))
    prefix = tmp_path / "model[1].ckpt"

    assert v1(prefix) == prefix
    with open_checkpoint(prefix) as found, open_checkpoint(golden / "v1-sharded.ckpt") as expected:
        assert found.entries.keys() == expected.entries.keys()


def test_a_name_of_many_brackets_is_refused_at_once(tmp_path: Path) -> None:
    started = time.process_time()
    refusal(tmp_path / ("[" * 12_000))
    assert time.process_time() - started < 2
