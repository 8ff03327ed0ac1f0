"""A SavedModel and Keras' files appear whole or not at all, whichever change to the disk fails."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from estimator_bridge.compat.checkpoint import CheckpointError, convert, read_index
from estimator_bridge.compat.checkpoint.conversion.outputs import write
from estimator_bridge.compat.checkpoint.conversion.sides import open_sides
from estimator_bridge.compat.checkpoint.inspection.difference import differences
from estimator_bridge.compat.checkpoint.models import keras_process
from estimator_bridge.compat.checkpoint.names.naming import ATTRIBUTE
from estimator_bridge.compat.checkpoint.request import ConversionRequest
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from estimator_bridge.compat.checkpoint.writing.staging import Disk
from tests.cli.convert.test_checkpoint import OLD, write_keras_side
from tests.compat.checkpoint.writing.faulty_disk import Faults


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write_tensors(tmp_path / "old" / "model.ckpt-1000", OLD)


@pytest.fixture
def saved_model(tmp_path: Path) -> Path:
    return make_saved_model(tmp_path / "saved_model")


def make_saved_model(folder: Path) -> Path:
    """Makes a folder like a SavedModel's: files of the graph, and variables."""
    write_keras_side(folder / "variables" / "variables")
    (folder / "assets").mkdir()
    for name in ("saved_model.pb", "fingerprint.pb", "assets/words.txt"):
        (folder / name).write_text(name)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_saved_model_keeps_its_graph_and_gets_other_variables(old: Path, saved_model: Path, tmp_path: Path) -> None:
    before = contents(tmp_path)
    assert convert(old, tmp_path / "new" / "exported", to="saved-model", like=saved_model).written
    names = {"saved_model.pb", "assets/words.txt"}
    made = contents(tmp_path / "new" / "exported")
    assert {name: made[name].decode() for name in names} == {name: name for name in names}
    assert {name for name in made if re.match("variables/variables[.]", name)} == made.keys() - names
    assert read_index(tmp_path / "new" / "exported").entries.keys() == read_index(saved_model).entries.keys()
    assert {name: data for name, data in contents(tmp_path).items() if not name.startswith("new")} == before


def test_a_saved_model_keeps_its_own_values_if_there_are_no_others(old: Path, saved_model: Path, tmp_path: Path) -> None:
    """Its graph asks for every variable: one without a value would be empty when it is served."""
    target = tmp_path / "exported"
    report = convert(old, target, to="saved-model", like=saved_model, drop=["bias"], allow_unmatched=True)
    assert f"model/bias{ATTRIBUTE}" in report.unmatched_targets
    assert read_index(target).entries.keys() == read_index(saved_model).entries.keys()
    kept = {row.name: row for row in differences(read_index(target), read_index(saved_model))}
    assert kept[f"model/bias{ATTRIBUTE}"].within(0.0)
    assert not kept[f"model/kernel{ATTRIBUTE}"].within(0.0)


def write_saved_model(old: Path, saved_model: Path, target: Path, disk: Disk) -> None:
    with open_sides(ConversionRequest(old, target, to="saved-model", like=saved_model)) as sides:
        write(Draft(sides.source), sides, disk=disk)


@pytest.mark.parametrize("lasting", [False, True])
def test_a_fault_at_every_change(old: Path, saved_model: Path, tmp_path: Path, lasting: bool) -> None:
    rehearsal = Faults()
    write_saved_model(old, saved_model, tmp_path / "whole", rehearsal.disk)
    whole = contents(tmp_path / "whole")
    assert {"make_folder", "create", "copy_some", "sync", "link", "rename", "sync_folder"} <= set(rehearsal.operations)
    for number in range(len(rehearsal.operations)):
        target = tmp_path / f"new-{number}" / "exported"
        try:
            write_saved_model(old, saved_model, target, Faults(number, lasting=lasting).disk)
        except CheckpointError:
            assert not target.exists() or contents(target) == whole  # what failed may have come after the rename
        if not target.exists():
            write_saved_model(old, saved_model, target, Disk())
        assert contents(target) == whole


def test_a_keras_process_that_dies(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras_process, "_MODULE", "no_such_module")
    with pytest.raises(CheckpointError, match="process that runs Keras ended"):
        convert(old, tmp_path / "new" / "m", like="users_module:make")
    assert not (tmp_path / "new").exists()


def test_a_map_needs_a_model(old: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no model to map to"):
        convert(old, tmp_path / "m", given={"scope/dense/bias": "dense/bias"})


def test_a_scratch_checkpoint_waits_for_no_disk(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison makes hundreds of them, and to wait for the disk takes longer than the rest."""
    convert(old, tmp_path / "kept" / "m", to="name-based")
    monkeypatch.setattr(os, "fsync", lambda *_: pytest.fail("it waits"))
    convert(old, tmp_path / "scratch" / "m", to="name-based", is_scratch=True)
    kept = contents(tmp_path / "kept")
    assert kept.pop("checkpoint")
    assert contents(tmp_path / "scratch") == kept
