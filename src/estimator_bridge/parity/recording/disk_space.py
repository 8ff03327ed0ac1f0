"""The disk space that batches or anchors need: estimated at the first one, and looked at again while they are written."""

from __future__ import annotations

import shutil
from pathlib import Path

from rich.filesize import decimal

from estimator_bridge.errors import BridgeError

_EVERY = 50  # batches from one look to the next; that much space must be free at each
_REST = 50_000_000  # bytes that stay free for checkpoints and logs


class DiskSpace:
    """Refuses to record what the disk cannot hold.

    Args:
        folder: Folder of the recorded batches.
        batches: Number of batches that the call will record at most; None if it is not known.
    """

    def __init__(self, folder: Path, batches: int | None) -> None:
        self._folder = folder
        self._batches = batches
        self._count = 0

    def check(self, size: int) -> None:
        """Looks at the disk before the first batch is written, and before every 50th.

        Args:
            size: Bytes of this batch.

        Raises:
            BridgeError: The batches up to the next look, or all of them where their number is known, would fill the disk.
        """
        if self._count % _EVERY == 0:
            left = _EVERY if self._batches is None else self._batches - self._count
            free = shutil.disk_usage(self._folder).free
            if size * left + _REST > free:
                raise BridgeError(
                    "What is recorded would fill the disk.",
                    expected=f"{decimal(size * left + _REST)} for {left} more records, of {decimal(size)} each",
                    received=f"{decimal(free)} free in {self._folder}",
                    fix="Compare fewer steps with --steps N, or name a folder on a larger disk with --record-dir DIR.",
                )
        self._count += 1
