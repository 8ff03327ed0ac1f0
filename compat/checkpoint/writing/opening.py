"""Opens a checkpoint of either format; one in the V1 format is first written as V2 to a temporary folder."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.compat.checkpoint.reading.index import Index, read_index
from estimator_bridge.compat.checkpoint.reading.locate import v1


@contextlib.contextmanager
def open_checkpoint(path: str | Path) -> Iterator[Index]:
    """Opens a checkpoint, whose data files exist as long as the context lasts.

    Args:
        path: Path for ``read_index``, or a V1 checkpoint's file.

    Yields:
        The index.

    Raises:
        NotFoundError: There is no checkpoint.
        CorruptError: The checkpoint is damaged.
    """
    if (found := v1(path)) is None:
        yield read_index(path)
        return
    from estimator_bridge.compat.checkpoint.writing.v1_format import as_v2

    with tempfile.TemporaryDirectory() as folder:
        yield read_index(as_v2(found, Path(folder) / found.name))
