"""Reads V1 checkpoints, which are one file without an index, and writes them as V2, a tensor at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.compat.checkpoint.errors import CorruptError, naming_file
from estimator_bridge.compat.checkpoint.format import dtypes, ordered_code, saved_slices, table, tensor_proto
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Extents, Header
from estimator_bridge.compat.checkpoint.format.saved_slices import SavedTensor
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.reading.consistency import inside, slice_shape
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.tensors import Tensor
from estimator_bridge.compat.checkpoint.writing.draft import Draft, Stored
from estimator_bridge.compat.checkpoint.writing.publish import Options, publish


def as_v2(path: Path, prefix: Path) -> Path:
    """Writes a V1 checkpoint as V2.

    Args:
        path: V1 file, or the prefix of sharded ones (``PREFIX-00000-of-00002``).
        prefix: Prefix of the V2 checkpoint.

    Returns:
        ``prefix``.

    Raises:
        CorruptError: The V1 checkpoint is damaged.
        UnsupportedError: It holds a tensor that V2 cannot hold.
    """
    publish(draft_of(path), prefix, Options(update_state=False))
    return prefix


def draft_of(path: Path) -> Draft:
    """Makes a draft of a V1 checkpoint; values are read when they are written.

    Args:
        path: V1 file or prefix, see ``as_v2``.

    Returns:
        A draft in which every tensor is new.

    Raises:
        CorruptError: The checkpoint is damaged.
    """
    draft = Draft(Index(path, Header(1)))
    pieces: dict[str, dict[Extents, Stored]] = {}
    wholes: dict[str, SavedTensor] = {}
    for file in files(path):
        with naming_file(file):
            lookup = table.Lookup(file)
            for saved in saved_slices.decode_meta(lookup.get(b"")):
                name = saved.name.decode("utf-8", "surrogateescape")
                wholes[name] = saved
                pieces.setdefault(name, {}).update(_slices(lookup, saved))
    for name, saved in wholes.items():
        slices = pieces[name]
        if len(slices) == 1 and math.prod(saved.shape) == math.prod(next(iter(slices.values())).shape):
            draft.put(name, next(iter(slices.values())))
        else:
            draft.put(name, Entry(saved.dtype, saved.shape, slices=tuple(sorted(slices))), slices)
    return draft


def files(path: Path) -> list[Path]:
    """Returns the files of a V1 checkpoint, which may be sharded."""
    return [path] if path.is_file() else sorted(path.parent.glob(f"{path.name}-?????-of-?????"))


def _slices(lookup: table.Lookup, saved: SavedTensor) -> Iterator[tuple[Extents, Tensor]]:
    for extents in saved.slices:
        if not inside(saved.shape, extents):
            raise CorruptError(f"The checkpoint contradicts itself at {saved.name!r}.", received=f"a slice {extents}")
        shape = slice_shape(saved.shape, extents)
        key = ordered_code.encode(saved.name, extents)
        if saved.dtype == dtypes.STRING:
            yield extents, tensors.of_strings(tensor_proto.strings(saved_slices.decode_data(lookup.get(key))), shape)
        else:
            size = dtypes.num_bytes(saved.dtype, shape)

            def read(key: bytes = key) -> Iterator[bytes]:
                yield tensor_proto.numbers(saved_slices.decode_data(lookup.get(key)), saved.dtype)

            yield extents, Tensor(saved.dtype, shape, size, read)
