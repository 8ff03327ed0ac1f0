"""A target is there whole or not at all, whatever fails, and the same command succeeds afterwards."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.compat.checkpoint.errors import CheckpointError, TargetError
from estimator_bridge.compat.checkpoint.format.dtypes import dtype
from estimator_bridge.compat.checkpoint.reading import locate, tensors, values
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import Options, Published, publish, write_tensors
from estimator_bridge.compat.checkpoint.writing.staging import Disk
from tests.compat.checkpoint.writing.faulty_disk import Faults

OLD = {"w": 1.0, "other": 2.0, "global_step": 5}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tensors(tmp_path / "source" / "model.ckpt-7", {"w": [1.5, 2.5], "b": 3.0, "global_step": 7})


def convert(source: Path, target: Path, disk: Disk | None = None, options: Options = Options()) -> Published:  # noqa: B008
    draft = Draft(read_index(source))
    draft.rename(lambda name: name if name == "global_step" else f"scope/{name}")
    draft.alias("scope/w", "model/w")
    draft.put("added", tensors.of(1.25))
    return publish(draft, target, options, disk)


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def contents(prefix: Path) -> dict[str, bytes] | None:
    """Every tensor of a checkpoint, its checksums compared; None when there is none."""
    try:
        index = read_index(prefix)
    except CheckpointError:
        return None
    values.check_shards(index)
    return {name: b"".join(values.chunks(index, entry, name)) for name, entry in index.stored()}


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("replacing", [False, True])
@pytest.mark.parametrize("lasting", [False, True])
def test_a_fault_anywhere_leaves_the_old_state_or_the_new_one(
    source: Path, tmp_path: Path, copy: bool, replacing: bool, lasting: bool
) -> None:
    options = Options(copy=copy, overwrite=replacing)
    rehearsal = Faults()
    prefix = tmp_path / "rehearsal" / "model.ckpt-7"
    if replacing:
        write_tensors(prefix, OLD)
    convert(source, prefix, rehearsal.disk, options)
    new = contents(prefix)
    before = digest(source.parent)
    seen = set()
    for fail_at, operation in enumerate(rehearsal.operations):
        target = tmp_path / f"fault-{fail_at}" / "model.ckpt-7"
        if replacing:
            write_tensors(target, OLD)
        old = contents(target)
        faults = Faults(fail_at, lasting=lasting)
        with pytest.raises(TargetError) as raised:
            convert(source, target, faults.disk, options)
        assert raised.value.exit_code == 2
        assert contents(target) in (old, new), operation
        seen.add("new" if contents(target) == new else "old")
        convert(source, target, None, options)
        assert contents(target) == new
        assert sorted(path.name for path in target.parent.iterdir() if path.name.startswith(".")) == []
        assert locate.latest(target.parent) == target
    assert seen == {"old", "new"}
    assert set(rehearsal.operations) >= {"create", "write", "sync", "sync_folder", "rename"}
    assert digest(source.parent) == before


def test_a_full_disk_leaves_nothing_of_the_target(source: Path, tmp_path: Path) -> None:
    """What takes space, the state file included, is written before any file has its name."""
    rehearsal = Faults()
    convert(source, tmp_path / "rehearsal" / "model.ckpt-7", rehearsal.disk)
    taking = [number for number, name in enumerate(rehearsal.operations) if name in ("create", "write", "sync")]
    assert len(taking) >= 9  # of new tensors, the index and the state
    for fail_at in taking:
        folder = tmp_path / f"full-{fail_at}"
        with pytest.raises(TargetError, match="The disk is full"):
            convert(source, folder / "model.ckpt-7", Faults(fail_at, errno.ENOSPC).disk)
        assert not folder.exists(), rehearsal.operations[fail_at]


def test_replacing_leaves_no_old_data_file(source: Path, tmp_path: Path) -> None:
    target = write_tensors(tmp_path / "target" / "model.ckpt-7", OLD)
    for _ in range(3):
        convert(source, target, options=Options(overwrite=True))
        index = read_index(target)
        found = {path for path in target.parent.iterdir() if ".data-" in path.name}
        assert found == set(index.shards())


def test_data_files_last_on_the_disk_before_the_index_names_them(source: Path, tmp_path: Path) -> None:
    class LoggedDisk(Disk):
        def rename(self, source: Path, target: Path) -> None:
            steps.append(target.name)
            super().rename(source, target)

        def sync_folder(self, path: Path) -> None:
            if path == tmp_path / "target":
                steps.append("synced")
            super().sync_folder(path)

    steps: list[str] = []
    write_tensors(tmp_path / "target" / "m", OLD)
    convert(source, tmp_path / "target" / "m", LoggedDisk(), Options(overwrite=True))
    data = ["m.data-00000-of-00002", "m.data-00001-of-00002"]
    assert steps[steps.index(data[0]) :] == [*data, "synced", "m.index", "synced", "checkpoint", "synced"]


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (errno.ENOSPC, "The disk is full."),
        (errno.EROFS, "The target is on a read-only file system."),
        (errno.EACCES, "The target's folder cannot be written."),
    ],
)
def test_a_refusal_of_the_disk_is_reported(source: Path, tmp_path: Path, number: int, what: str) -> None:
    rehearsal = Faults()
    convert(source, tmp_path / "rehearsal" / "m", rehearsal.disk)
    with pytest.raises(TargetError) as raised:
        convert(source, tmp_path / "target" / "m", Faults(rehearsal.operations.index("write"), number).disk)
    assert raised.value.what == what
    assert not (tmp_path / "target").exists()


def test_a_real_full_disk(source: Path, tmp_path: Path) -> None:
    class FullDisk(Disk):
        def create(self, path: Path) -> object:  # type: ignore[override]
            return Path("/dev/full").open("wb", buffering=0)

    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(TargetError, match="The disk is full"):
        convert(source, tmp_path / "target" / "m", FullDisk())


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_folder(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "target"
    folder.mkdir()
    folder.chmod(0o500)
    with pytest.raises(TargetError, match="cannot be written"):
        convert(source, folder / "m")


def test_a_folder_that_cannot_be_made_leaves_no_new_parents(source: Path, tmp_path: Path) -> None:
    class FullDisk(Disk):
        def make_folder(self, path: Path) -> None:
            super().make_folder(path.parent)
            raise OSError(errno.ENOSPC, "injected")

    with pytest.raises(TargetError, match="full"):
        convert(source, tmp_path / "new" / "deep" / "m", FullDisk())
    assert not (tmp_path / "new").exists()


def test_a_number_of_numpy_keeps_its_dtype(tmp_path: Path) -> None:
    entries = read_index(write_tensors(tmp_path / "m", {"wide": np.float64(0.1), "plain": 0.1})).entries
    assert [dtype(entries[name].dtype).name for name in ("wide", "plain")] == ["float64", "float32"]


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM])
def test_copies_where_links_are_impossible(source: Path, tmp_path: Path, number: int) -> None:
    rehearsal = Faults()
    convert(source, tmp_path / "rehearsal" / "m", rehearsal.disk)
    done = convert(source, tmp_path / "target" / "m", Faults(rehearsal.operations.index("link"), number).disk)
    assert done.sharing != ("link",)
    assert contents(tmp_path / "target" / "m") == contents(tmp_path / "rehearsal" / "m")


def test_links_by_default_and_copies_when_asked(source: Path, tmp_path: Path) -> None:
    shard = read_index(source).shard(0)
    assert convert(source, tmp_path / "linked" / "m").sharing == ("link",)
    assert shard.stat().st_nlink == 2
    assert convert(source, tmp_path / "copied" / "m", options=Options(copy=True)).sharing != ("link",)
    assert shard.stat().st_nlink == 2


@pytest.mark.timeout(60)  # a pipe without a writer is read without end
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_what_is_no_state_file_is_not_read(source: Path, tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "target").mkdir()
    make(tmp_path / "target" / "checkpoint")
    with contextlib.suppress(TargetError):  # a folder in its place
        convert(source, tmp_path / "target" / "m")


def test_same_source_and_target(source: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(source.parent)
    before = digest(source.parent)
    for target in (source, tmp_path / "alias" / source.name, source.parent / ".." / "source" / source.name):
        with pytest.raises(TargetError, match="same checkpoint"):
            convert(source, target, options=Options(overwrite=True))
    assert digest(source.parent) == before


def test_another_checkpoint_is_not_replaced_unless_asked(source: Path, tmp_path: Path) -> None:
    target = write_tensors(tmp_path / "target" / "m", OLD)
    before = digest(target.parent)
    with pytest.raises(TargetError, match="--overwrite"):
        convert(source, target)
    assert digest(target.parent) == before


def test_the_same_conversion_twice_changes_nothing(source: Path, tmp_path: Path) -> None:
    first = convert(source, tmp_path / "target" / "m")
    before = digest(tmp_path / "target")
    second = convert(source, tmp_path / "target" / "m")
    assert (first.unchanged, second.unchanged) == (False, True)
    assert digest(tmp_path / "target") == before


def test_a_target_that_was_damaged_is_not_the_same(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "m"
    convert(source, target, options=Options(copy=True))
    shard = read_index(target).shard(0)
    good = shard.read_bytes()
    shard.write_bytes(bytes([good[0] ^ 1]) + good[1:])
    with pytest.raises(TargetError, match="something else"):
        convert(source, target, options=Options(copy=True))
    assert not convert(source, target, options=Options(copy=True, overwrite=True)).unchanged
    assert read_index(target).shard(0).read_bytes() == good


def test_the_source_s_own_folder_keeps_naming_the_source(source: Path) -> None:
    (source.parent / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-7"\n')
    before = digest(source.parent)
    convert(source, source.parent / "converted.ckpt-7")
    assert before.items() <= digest(source.parent).items()


def test_two_writers_of_one_target(source: Path, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    folder = tmp_path / "target" / ".m.partial"
    folder.mkdir(parents=True)
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(TargetError, match="Another process"):
        convert(source, tmp_path / "target" / "m")
    os.close(descriptor)
    convert(source, tmp_path / "target" / "m")
    assert contents(tmp_path / "target" / "m")
