"""Errors of checkpoints and their conversion; each is a BridgeError with exit code 2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.errors import BridgeError, CorruptError

__all__ = [
    "CheckpointError",
    "CorruptError",
    "KerasError",
    "NamingError",
    "NotFoundError",
    "TargetError",
    "UnsupportedError",
    "naming_file",
]


class CheckpointError(BridgeError):
    """A checkpoint that cannot be read, or a conversion that cannot be carried out.

    Damaged bytes raise ``CorruptError``, which is a BridgeError and no CheckpointError.
    """


class NotFoundError(CheckpointError):
    """There is no checkpoint where one was named, or one of its files is missing."""


class UnsupportedError(CheckpointError):
    """A well-formed checkpoint with something in it that is not read here."""


class NamingError(CheckpointError):
    """Names that clash, or that are not in the checkpoint."""


class TargetError(CheckpointError):
    """The target cannot be written: it is there already, is the source itself, or the disk says no."""


class KerasError(CheckpointError):
    """Keras, or a function of the user's that makes a model, refused: its own words are what was received."""


@contextlib.contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Adds a file's name to the message of a CorruptError that lacks it.

    Args:
        path: File whose bytes are read.

    Raises:
        CorruptError: The bytes are damaged.

    Example:
        >>> with naming_file(Path("m.index")):
        ...     raise CorruptError("A number does not end.")
        Traceback (most recent call last):
        estimator_bridge.errors.CorruptError: m.index is damaged: A number does not end.
          to do:    Restore the file from a backup.
    """
    try:
        yield
    except CorruptError as error:
        text = str(error)
        if str(path) in text:
            raise
        fix = None if "to do:" in text else "Restore the file from a backup."
        raise CorruptError(f"{path} is damaged: {text}", fix=fix) from None
