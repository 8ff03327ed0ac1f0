"""All changes to the disk in one class, so that a test can let each of them fail."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from pathlib import Path
from typing import BinaryIO

_FICLONE = 0x40049409  # ioctl number on Linux: the files share their blocks until one of them changes
_COPY_CHUNK = 4 * 1024 * 1024
# Larger writes take large pages for the cache, which a virtual machine may have to fetch from its host first.
_WRITE = 64 * 1024
_NO_CLONE = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EBADF, errno.ETXTBSY}


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
