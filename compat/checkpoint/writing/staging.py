"""A staging folder beside the target; only finished files leave it, by rename.

All changes to the disk are in one class, so that a test can let each of them fail.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from estimator_bridge.compat.checkpoint.errors import TargetError

Sharing = Literal["link", "clone", "copy"]
_BEGIN_SYNC = 8 * 1024 * 1024
# Bytes of a copy that stay in memory; more would push other files out of the cache, and to allocate memory is slow.
_KEPT = 64 * 1024 * 1024
_UNLINKABLE = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES}
_FICLONE = 0x40049409  # ioctl number on Linux: the files share their blocks until one of them changes
_COPY_CHUNK = 4 * 1024 * 1024
# Larger writes take large pages for the cache, which a virtual machine may have to fetch from its host first.
_WRITE = 64 * 1024
_NO_CLONE = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EBADF, errno.ETXTBSY}

_REASONS = {
    errno.ENOSPC: "The disk is full.",
    errno.EDQUOT: "The disk quota is used up.",
    errno.EROFS: "The target is on a read-only file system.",
    errno.EACCES: "The target's folder cannot be written.",
    errno.EPERM: "The target's folder cannot be written.",
    errno.ENOTDIR: "The target's folder is a file.",
    errno.ENAMETOOLONG: "The target's name is too long.",
}


class Disk:
    """The operations that change something; each raises OSError if it fails."""

    def make_folder(self, path: Path) -> None:
        """Makes a folder and its parents."""
        path.mkdir(parents=True, exist_ok=True)

    def create(self, path: Path) -> BinaryIO:
        """Opens a new file for writing."""
        return path.open("xb", buffering=0)

    def write(self, file: BinaryIO, data: bytes) -> None:
        """Writes all of ``data``."""
        view = memoryview(data)
        while view:
            view = view[os.write(file.fileno(), view[:_WRITE]) :]

    def begin_sync(self, file: BinaryIO, start: int, end: int) -> None:
        """Lets the system start to write a range to the disk, and does not wait.

        Otherwise Linux keeps up to a tenth of the memory until ``sync``, which then waits for all of it at once. Parts of the range
        that are on the disk already leave the page cache.
        """
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), start, end - start, os.POSIX_FADV_DONTNEED)

    def sync(self, file: BinaryIO) -> None:
        """Returns once a file's contents are on the disk."""
        os.fsync(file.fileno())

    def sync_folder(self, path: Path) -> None:
        """Returns once a folder's names are on the disk."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def link(self, source: Path, target: Path) -> None:
        """Gives a file a second name."""
        os.link(source.resolve(), target)  # a link to a symbolic link would break with it

    def clone(self, source: BinaryIO, target: BinaryIO) -> bool:
        """Lets ``target`` share the blocks of ``source``.

        Returns:
            False if the file system cannot.
        """
        try:
            fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
        except OSError as error:
            if error.errno in _NO_CLONE:
                return False
            raise
        return True

    def copy_some(self, source: BinaryIO, target: BinaryIO) -> int:
        """Copies some bytes from the current positions of both files, inside the kernel if it can.

        Returns:
            The number of bytes; 0 at the end.
        """
        try:
            return os.copy_file_range(source.fileno(), target.fileno(), _COPY_CHUNK)
        except (AttributeError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in _NO_CLONE:
                raise
        data = os.read(source.fileno(), 1024 * 1024)
        self.write(target, data)
        return len(data)

    def rename(self, source: Path, target: Path) -> None:
        """Gives a file another name; a file with that name is replaced in the same instant."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Removes a file if it exists, or a folder with its contents."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> None:
        """Removes an empty folder."""
        path.rmdir()


class ScratchDisk(Disk):
    """A disk of files that need not outlive a power failure: nothing waits until they are on it."""

    def begin_sync(self, file: BinaryIO, start: int, end: int) -> None:
        """Leaves it to the system when a range is written to the disk."""

    def sync(self, file: BinaryIO) -> None:
        """Leaves it to the system when a file is written to the disk."""

    def sync_folder(self, path: Path) -> None:
        """Leaves it to the system when a folder's names are written to the disk."""


class Staging:
    """The folder ``.NAME.partial`` beside the target; files of an earlier, killed run are removed from it.

    Args:
        prefix: Prefix of the target.
        disk: Disk that makes the changes.
    """

    def __init__(self, prefix: Path, disk: Disk) -> None:
        self.folder = prefix.with_name(f".{prefix.name}.partial")
        self._prefix, self._disk = prefix, disk

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Makes the folder, and removes it at the end in any case; new folders around it stay unless the context fails.

        Raises:
            TargetError: The disk refuses something in the context, or another process is writing the same target.
        """
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(new_folders(self.folder.parent, self._disk))
                self._disk.make_folder(self.folder)
                stack.enter_context(_locked(self.folder))
                for path in list(self.folder.iterdir()):
                    self._disk.remove(path)
                stack.callback(self._disk.remove, self.folder)
                yield
        except OSError as error:
            raise TargetError(
                _REASONS.get(error.errno or 0, "The checkpoint could not be written."),
                received=f"{error.strerror or error}: {error.filename or self._prefix}",
                fix="Solve that and run the same command again.",
            ) from error

    def write(self, name: str, chunks: Iterable[bytes]) -> Path:
        """Writes a file and waits until it is on the disk.

        Returns:
            The path in the folder.
        """
        path = self.folder / name
        with self._disk.create(path) as file:
            written = started = 0
            for data in chunks:
                self._disk.write(file, data)
                written += len(data)
                if written - started >= _BEGIN_SYNC:
                    self._disk.begin_sync(file, started, written)
                    started = written
            self._disk.sync(file)
        return path

    def share(self, source: Path, name: str, copy: bool) -> tuple[Path, Sharing]:
        """Adds a data file: as a hard link, else by sharing its blocks, else as a copy.

        Args:
            source: Path of the file; not changed.
            name: Name in the folder.
            copy: True for no hard link, so that the two files can be changed independently.

        Returns:
            The path in the folder, and "link", "clone" or "copy".
        """
        path = self.folder / name
        if not copy:
            try:
                self._disk.link(source, path)
                return path, "link"
            except OSError as error:
                if error.errno not in _UNLINKABLE:
                    raise
        return path, self._copy(source, path)

    def _copy(self, source: Path, path: Path) -> Sharing:
        with source.open("rb", buffering=0) as reader, self._disk.create(path) as writer:
            cloned = self._disk.clone(reader, writer)
            if not cloned:
                expected = os.fstat(reader.fileno()).st_size
                copied = 0
                while count := self._disk.copy_some(reader, writer):
                    self._disk.begin_sync(writer, max(0, copied - _KEPT), copied + count)
                    copied += count
                if copied != expected:
                    raise TargetError(
                        "A data file changed its size while it was copied.",
                        received=str(source),
                        fix="Convert again when no process writes to the source.",
                    )
            self._disk.sync(writer)
        return "clone" if cloned else "copy"


@contextlib.contextmanager
def new_folders(folder: Path, disk: Disk) -> Iterator[None]:
    """Makes a folder and its parents, and removes those that it made if the context fails.

    Args:
        folder: Path of the innermost folder.
        disk: Disk that makes the changes.
    """
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        disk.make_folder(folder)
        yield
    except BaseException:
        for path in missing:
            with contextlib.suppress(OSError):  # it could not be made, or another process uses it
                disk.remove_folder(path)
        raise


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds a lock that ends with the process."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TargetError(
                "Another process is writing this checkpoint.", received=str(folder), fix="Wait until that process has ended."
            ) from None
        yield
    finally:
        os.close(descriptor)
