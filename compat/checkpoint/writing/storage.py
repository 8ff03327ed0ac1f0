"""Every change to the disk goes through here, so that a test can let each one of them fail."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import BinaryIO

_FICLONE = 0x40049409  # ioctl number on Linux: the files share their blocks until one of them changes
_COPY_CHUNK = 4 * 1024 * 1024
# More at once takes large pages for the cache, which a virtual machine may have to fetch from its host first.
_WRITE = 64 * 1024
_NO_CLONE = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EBADF, errno.ETXTBSY}


class Disk:
    """The operations that change something; each one raises OSError when it fails."""

    def make_folder(self, path: Path) -> None:
        """Makes a folder and those above it."""
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
        """Lets the system write a range to the disk from now on, while more is read and computed; waits for nothing.

        Otherwise Linux keeps up to a tenth of the memory until ``sync``, which then waits for all of it at once. What of the range
        is on the disk already leaves the page cache.
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
        os.link(source.resolve(), target)  # a link to a symbolic link would break when that one goes

    def clone(self, source: BinaryIO, target: BinaryIO) -> bool:
        """Lets ``target`` share the blocks of ``source``.

        Returns:
            False where the file system cannot.
        """
        try:
            import fcntl

            fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
        except ImportError:
            return False
        except OSError as error:
            if error.errno in _NO_CLONE:
                return False
            raise
        return True

    def copy_some(self, source: BinaryIO, target: BinaryIO) -> int:
        """Copies on from where both files stand, inside the kernel where it can.

        Returns:
            How many bytes; 0 at the end.
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
        """Gives a file another name; what had that name is gone in the same instant."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Removes a file; nothing happens when there is none."""
        path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> None:
        """Removes an empty folder."""
        path.rmdir()

    def remove_tree(self, path: Path) -> None:
        """Removes a folder and all that is in it."""
        shutil.rmtree(path)
