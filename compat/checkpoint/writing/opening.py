"""Opens a checkpoint of either format; one in the V1 format, a file without an index, is first written as V2 to a temporary folder."""

from __future__ import annotations

import contextlib
import glob
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.compat.checkpoint.errors import CorruptError, naming_file
from estimator_bridge.compat.checkpoint.format import dtypes, ordered_code, saved_slices, table
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Extents, Header
from estimator_bridge.compat.checkpoint.format.saved_slices import SavedTensor
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.reading.index import Index, inside, read_index, slice_shape
from estimator_bridge.compat.checkpoint.reading.locate import v1
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import Options, publish


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
        UnsupportedError: It has the V1 format and holds a tensor that V2 cannot hold.
    """
    if (found := v1(path)) is None:
        yield read_index(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / found.name
        publish(_draft_of(found), prefix, Options(update_state=False))
        yield read_index(prefix)


def _draft_of(path: Path) -> Draft:
    """Makes a draft of a V1 checkpoint, in which every tensor is new; values are read when they are written."""
    draft = Draft(Index(path, Header(1)))
    found: dict[bytes, tuple[SavedTensor, dict[Extents, Tensor]]] = {}
    for file in [path] if path.is_file() else sorted(path.parent.glob(f"{glob.escape(path.name)}-?????-of-?????")):  # sharded
        with naming_file(file):
            lookup = table.Lookup(file)
            for saved in saved_slices.decode_meta(lookup.get(b"")):
                found.setdefault(saved.name, (saved, {}))[1].update(_slices(lookup, saved))
    for saved, slices in found.values():
        name, values = saved.name.decode("utf-8", "surrogateescape"), list(slices.values())
        if len(values) == 1 and math.prod(saved.shape) == math.prod(values[0].shape):
            draft.put(name, values[0])
        else:
            draft.put(name, Entry(saved.dtype, saved.shape, slices=tuple(sorted(slices))), slices)
    return draft


def _slices(lookup: table.Lookup, saved: SavedTensor) -> Iterator[tuple[Extents, Tensor]]:
    for extents in saved.slices:
        if not inside(saved.shape, extents):
            raise CorruptError(f"The checkpoint contradicts itself at {saved.name!r}.", received=f"a slice {extents}")
        shape = slice_shape(saved.shape, extents)
        key = ordered_code.encode(saved.name, extents)
        if saved.dtype == dtypes.STRING:
            yield extents, tensors.of_strings(saved_slices.strings(lookup.get(key)), shape)
        else:
            size = dtypes.num_bytes(saved.dtype, shape)

            def read(key: bytes = key) -> Iterator[bytes]:
                yield saved_slices.numbers(lookup.get(key), saved.dtype)

            yield extents, Tensor(saved.dtype, shape, size, read)
