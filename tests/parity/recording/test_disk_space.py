"""Batches that a disk cannot hold are refused before they fill it."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.disk_space import DiskSpace

Usage = namedtuple("Usage", "total used free")


def test_batches_that_the_disk_can_hold_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(10**9, 0, 10**9))
    space = DiskSpace(tmp_path, 9)
    for _ in range(9):
        space.check(10**8)


def test_a_known_number_of_batches_is_refused_at_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(10**9, 0, 10**9))
    with pytest.raises(BridgeError, match="would fill the disk") as refused:
        DiskSpace(tmp_path, 10).check(10**8)
    assert "1.1 GB for 10 more records, of 100.0 MB each" in str(refused.value)
    assert "--record-dir" in str(refused.value)


def test_a_disk_that_fills_up_is_noticed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = iter([10**10, 10**9])
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(10**10, 0, next(free)))
    space = DiskSpace(tmp_path, None)
    for _ in range(50):
        space.check(10**8)
    with pytest.raises(BridgeError, match="would fill the disk"):
        space.check(10**8)
