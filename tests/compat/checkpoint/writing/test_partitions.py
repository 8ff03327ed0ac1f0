"""Partitioned variables are merged and cut again without their data being touched."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_bridge.compat.checkpoint import convert, read_index
from estimator_bridge.compat.checkpoint.errors import CorruptError, NamingError, UnsupportedError
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import publish
from tests.compat.checkpoint import tensorflow_side

WHOLE = np.arange(33, dtype=np.float32).reshape(11, 3)


def sliced(prefix: Path, *edges: int, names: tuple[str, ...] = ("emb",)) -> Path:
    """Saved by TensorFlow in slices of rows."""
    rows = [
        (name, f"11 3 {start},{stop - start}:0,3", WHOLE[start:stop] + number)
        for number, name in enumerate(names)
        for start, stop in itertools.pairwise(edges)
    ]
    return tensorflow_side.save_slices(prefix, rows)


def check(prefix: Path, name: str = "emb", plus: int = 0) -> None:
    index = read_index(prefix)
    values.check_shards(index)
    assert all(values.verify(index, entry, stored) for stored, entry in index.stored())
    assert tensorflow_side.same_bytes(tensorflow_side.load(prefix)[name], WHOLE + plus)


@pytest.mark.parametrize("edges", [(0, 4, 8, 11), (0, 1, 2, 11), (0, 5, 11)])
@pytest.mark.parametrize("num_shards", [1, 2, 3, 11])
def test_merged_and_cut_again_in_place(tmp_path: Path, edges: tuple[int, ...], num_shards: int) -> None:
    source = sliced(tmp_path / "source" / "m", *edges)
    report = convert(source, tmp_path / "target" / "m", to="name-based", partition=[("emb", num_shards)])
    target = read_index(report.target)
    assert target.shards()[0].samefile(read_index(source).shard(0))
    assert target.header.num_shards == 1  # no data file was added
    assert len(target.pieces.get("emb", [1])) == num_shards
    check(Path(report.target))


@pytest.mark.parametrize("stop", [4, 8])
def test_a_slot_that_not_every_slice_has_is_refused(tmp_path: Path, stop: int) -> None:
    rows = [("emb", f"11 3 {start},{end - start}:0,3", WHOLE[start:end]) for start, end in ((0, 4), (4, 8), (8, 11))]
    slots = [(f"emb/part_{start // 4}/Ftrl", f"11 3 {start},4:0,3", WHOLE[start : start + 4]) for start in range(0, stop, 4)]
    with pytest.raises(CorruptError, match="emb/part_0/Ftrl"):
        read_index(tensorflow_side.save_slices(tmp_path / "m", rows + slots))


def test_slices_in_several_files_are_put_together(tmp_path: Path) -> None:
    parts = [
        tensorflow_side.save_slices(
            tmp_path / f"part-{number}", [("emb", f"11 3 {start},{stop - start}:0,3", WHOLE[start:stop])]
        )
        for number, (start, stop) in enumerate([(0, 4), (4, 11)])
    ]
    source = tensorflow_side.merge(parts, tmp_path / "m")
    for num_shards in (1, 3):
        report = convert(source, tmp_path / f"target-{num_shards}", to="name-based", partition=[("emb", num_shards)])
        assert report.written
        check(tmp_path / f"target-{num_shards}")


def test_columns_are_put_together(tmp_path: Path) -> None:
    rows: list[tuple[str, str, Any]] = [("emb", f"11 3 0,11:{column},1", WHOLE[:, column : column + 1]) for column in range(3)]
    source = tensorflow_side.save_slices(tmp_path / "m", rows)
    convert(source, tmp_path / "target", to="name-based", partition=[("emb", 2)])
    check(tmp_path / "target")


def test_slots_follow_their_variable(tmp_path: Path) -> None:
    source = sliced(tmp_path / "m", 0, 4, 11, names=("emb", "emb/Adam"))
    convert(source, tmp_path / "target", to="name-based", partition=[("emb", 5)])
    assert {name: len(pieces) for name, pieces in read_index(tmp_path / "target").pieces.items()} == {"emb": 5, "emb/Adam": 5}
    check(tmp_path / "target", "emb/Adam", 1)


def test_a_graph_with_other_partitions_restores_it(tmp_path: Path) -> None:
    source = sliced(tmp_path / "m", 0, 4, 11)
    convert(source, tmp_path / "target", to="name-based", partition=[("emb", 4)])
    import tensorflow as tf

    specs = ["11 3 0,6:-", "11 3 6,5:-"]
    one, other = tensorflow_side.restore(tmp_path / "target", ["emb", "emb"], specs, [tf.float32, tf.float32])
    assert tensorflow_side.same_bytes(np.concatenate([one, other]), WHOLE)


def test_variables_that_cannot_be_cut(tmp_path: Path) -> None:
    source = read_index(tensorflow_side.save(tmp_path / "m", {"s": np.array(["a"], object), "x": np.float32(1), "w": WHOLE}))
    for name, number, error in (("s", 2, UnsupportedError), ("x", 2, UnsupportedError), ("w", 12, NamingError)):
        with pytest.raises(error):
            Draft(source).split(name, number)


def test_a_damaged_piece_is_not_passed_on(tmp_path: Path) -> None:
    rows = [("emb", f"11 3 0,11:{column},1", WHOLE[:, column : column + 1]) for column in range(3)]
    source = read_index(tensorflow_side.save_slices(tmp_path / "m", rows))
    data = bytearray(source.shard(0).read_bytes())
    data[5] ^= 1
    source.shard(0).write_bytes(data)
    draft = Draft(source)
    draft.merge("emb")
    with pytest.raises(Exception, match="have changed"):
        publish(draft, tmp_path / "target")
    assert not list(tmp_path.glob("target*"))
