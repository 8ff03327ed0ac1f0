"""Writes a draft so that the target exists whole or not at all, whenever the process or the machine stops.

All files are made in a staging folder and synced. Then the data files get their names, which no index mentions yet, then the index
gets its name: from that instant the checkpoint exists. If one is replaced, its data files keep their names until then:
the new names have another number of files (``-of-00003`` instead of ``-of-00002``). The ``checkpoint`` file comes last.
"""

import contextlib
import dataclasses
import filecmp
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.errors import CorruptError, TargetError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import crc32c
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Header
from estimator_bridge.compat.checkpoint.reading import locate, tensors
from estimator_bridge.compat.checkpoint.reading.index import Index, encode_index, index_path, read_index, shard_path
from estimator_bridge.compat.checkpoint.reading.tensors import Stored, Tensor
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.staging import Disk, Sharing, Staging
from estimator_bridge.errors import BridgeError


@dataclasses.dataclass(frozen=True)
class Options:
    """Options for writing a target.

    Attributes:
        copy: True to copy the data files instead of linking them.
        overwrite: True to replace an existing checkpoint.
        update_state: True to name the target in its folder's ``checkpoint`` file.
    """

    copy: bool = False
    overwrite: bool = False
    update_state: bool = True


@dataclasses.dataclass(frozen=True)
class Published:
    """A target that was written.

    Attributes:
        sharing: For each data file of the source, "link", "clone" or "copy".
        unchanged: True if the target existed already with the same bytes.
    """

    sharing: tuple[Sharing, ...]
    unchanged: bool = False


def publish(draft: Draft, prefix: Path, options: Options = Options(), disk: Disk | None = None) -> Published:
    """Writes a draft under a prefix.

    Args:
        draft: Draft to write.
        prefix: Prefix of the target.
        options: Options for writing.
        disk: Disk that makes the changes.

    Returns:
        A record of the target.

    Raises:
        TargetError: The target is the source, it exists already, or the disk refuses; nothing has changed then.
    """
    _check_not_source(draft, prefix)
    return _Publication(draft, prefix, options, disk or Disk()).run()


def write_tensors(
    prefix: str | Path, values: Mapping[str, Any], options: Options = Options(update_state=False), disk: Disk | None = None
) -> Path:
    """Writes a small name-based checkpoint from values in memory, e.g. for a test.

    Args:
        prefix: Prefix of the checkpoint.
        values: Name -> int, float, bytes, list, NumPy array or Tensor.
        options: Options for writing.
        disk: Disk that makes the changes.

    Returns:
        The prefix.

    Raises:
        TargetError: It cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_tensors(f"{folder}/model.ckpt-1", {"global_step": 1}).name
        'model.ckpt-1'
    """
    draft = Draft(Index(Path(prefix).with_name(f"{Path(prefix).name}.nothing"), Header(1)))
    for name, value in values.items():
        draft.put(name, tensors.of(value))
    publish(draft, Path(prefix), options, disk)
    return Path(prefix)


class _Publication:
    """One run of ``publish``: data files that the source shares, then one for new tensors, then the index."""

    def __init__(self, draft: Draft, prefix: Path, options: Options, disk: Disk) -> None:
        self._draft, self._prefix, self._options, self._disk = draft, prefix, options, disk
        self._old_shards = _shards_in_use(prefix)
        self._staging = Staging(prefix, disk)
        shared = sorted({stored.shard_id for stored in draft.stored() if isinstance(stored, Entry)})
        self._numbers = {old: new for new, old in enumerate(shared)}
        self._new = list({id(tensor): tensor for tensor in draft.stored() if isinstance(tensor, Tensor)}.values())
        self._places: dict[int, Entry] = {}  # of new tensors, once they are written
        self._num_shards = max(1, len(shared) + bool(self._new))
        self._num_shards += options.overwrite and self._num_shards == self._old_shards
        if self._new and draft.source.header.big_endian:
            raise UnsupportedError(
                "Tensors cannot be added to a checkpoint of a big-endian machine.",
                fix="Restore the checkpoint with TensorFlow on a little-endian machine, and save it again.",
            )

    def run(self) -> Published:
        self._check_free()
        with self._staging.opened():
            shards, sharing = self._stage_shards()
            index = self._index()
            moves = list(zip(shards, index.shards(), strict=True))
            moves.append((self._staging.write("index", encode_index(index)), index_path(self._prefix)))
            state = self._stage_state()  # before anything is moved, for the disk may be full
            unchanged = self._same(moves)
            if not unchanged:
                self._move(moves)
            if state is not None:
                self._disk.rename(state, self._prefix.parent / locate.STATE_FILE)
                self._disk.sync_folder(self._prefix.parent)
        return Published(sharing, unchanged)

    def _check_free(self) -> None:
        """Refuses to replace another checkpoint; the same one may be left of a run that was killed near its end."""
        if self._old_shards is None or self._options.overwrite:
            return
        with contextlib.suppress(BridgeError):  # a damaged checkpoint is another one
            if read_index(self._prefix).entries.keys() == self._draft.entries.keys():
                return
        raise target_exists(self._prefix)

    def _same(self, moves: list[tuple[Path, Path]]) -> bool:
        if self._old_shards is None:
            return False
        with contextlib.suppress(FileNotFoundError):
            if all(new.samefile(old) or filecmp.cmp(new, old, shallow=False) for new, old in moves):
                return True
        if not self._options.overwrite:
            raise target_exists(self._prefix)
        return False

    def _stage_shards(self) -> tuple[list[Path], tuple[Sharing, ...]]:
        shared = [
            self._staging.share(self._draft.source.shard(old), f"data-{new}", self._options.copy)
            for old, new in self._numbers.items()
        ]
        paths = [path for path, _ in shared]
        while len(paths) < self._num_shards:
            # A further, empty file only makes the number of files another.
            new = self._new_bytes() if len(paths) == len(shared) else ()
            paths.append(self._staging.write(f"data-{len(paths)}", new))
        return paths, tuple(sharing for _, sharing in shared)

    def _new_bytes(self) -> Iterator[bytes]:
        """Yields the data file of new tensors, whose places are known at its end."""
        offset = 0
        for tensor in self._new:
            start, crc = offset, 0
            for data in tensor.chunks():
                crc = crc32c.value(data, crc)
                offset += len(data)
                yield data
            if offset - start != tensor.size:
                raise CorruptError("A tensor has another size than was announced.", received=f"{offset - start} bytes")
            masked = crc32c.mask(crc) if tensor.crc32c is None else tensor.crc32c
            self._places[id(tensor)] = Entry(tensor.dtype, tensor.shape, len(self._numbers), start, tensor.size, masked)

    def _index(self) -> Index:
        draft = self._draft
        entries = {name: self._placed(stored) for name, stored in draft.entries.items()}
        pieces = {
            name: {extents: self._placed(stored) for extents, stored in slices.items()} for name, slices in draft.pieces.items()
        }
        return Index(self._prefix, draft.source.header._replace(num_shards=self._num_shards), entries, pieces)

    def _placed(self, stored: Stored) -> Entry:
        if isinstance(stored, Tensor):
            return self._places[id(stored)]
        if stored.slices or self._numbers[stored.shard_id] == stored.shard_id:
            return stored
        return stored._replace(shard_id=self._numbers[stored.shard_id])

    def _move(self, moves: list[tuple[Path, Path]]) -> None:
        """Gives the files their names, the index at last."""
        *data_files, (index, index_target) = moves
        moved: list[Path] = []
        try:
            for path, target in data_files:
                self._disk.rename(path, target)
                moved.append(target)
            self._disk.sync_folder(self._prefix.parent)
            self._disk.rename(index, index_target)
        except BaseException:
            for target in moved:  # no index names them
                with contextlib.suppress(OSError):
                    self._disk.remove(target)
            raise
        self._disk.sync_folder(self._prefix.parent)
        old = self._old_shards or 0
        if old != self._num_shards:
            for number in range(old):
                self._disk.remove(shard_path(self._prefix, number, old))

    def _stage_state(self) -> Path | None:
        """Writes the new state file; returns None if the present one says the same, or belongs to the source's own folder."""
        folder = self._prefix.parent
        if not self._options.update_state or folder.resolve() == self._draft.source.prefix.parent.resolve():
            return None  # it keeps its latest checkpoint
        contents = locate.state_file(folder, self._prefix.name)
        with contextlib.suppress(OSError, ValueError):
            if locate.read_state(folder).encode() == contents:
                return None
        return self._staging.write("state", [contents])


def _check_not_source(draft: Draft, prefix: Path) -> None:
    source = draft.source.prefix
    with contextlib.suppress(OSError):
        if prefix.resolve() == source.resolve() or index_path(prefix).samefile(index_path(source)):
            raise TargetError("Source and target are the same checkpoint.", received=str(prefix), fix="Name another target.")


def _shards_in_use(prefix: Path) -> int | None:
    """Returns the number of data files of the checkpoint at ``prefix``; None if there is none, 0 if its index is damaged."""
    if not os.path.lexists(index_path(prefix)):
        return None
    try:
        return read_index(prefix).header.num_shards
    except BridgeError:
        return 0


def target_exists(prefix: Path) -> TargetError:
    """Makes the error for a target that exists already."""
    return TargetError(
        "The target already exists and is something else.",
        received=str(prefix),
        fix="Name another target, or replace it with --overwrite.",
    )
