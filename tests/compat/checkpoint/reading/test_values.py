"""Data files that are not what an index expects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from estimator_bridge.compat.checkpoint.errors import CorruptError, NotFoundError
from estimator_bridge.compat.checkpoint.reading.index import read_index
from estimator_bridge.compat.checkpoint.reading.values import check_shards
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors


def test_a_data_file_that_is_no_file_is_named(tmp_path: Path) -> None:
    index = read_index(write_tensors(tmp_path / "m", {"a": 1.5}))
    data = index.shard(0)
    data.unlink()
    os.mkfifo(data)
    with pytest.raises(CorruptError, match=f"{data} is not a file"):
        check_shards(index)
    data.unlink()
    data.symlink_to(data.name)
    with pytest.raises(NotFoundError, match="Too many levels of symbolic links"):
        check_shards(index)
