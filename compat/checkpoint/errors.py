"""Errors of checkpoints and their conversion; each is a BridgeError with exit code 2."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge import errors

CorruptError = errors.CorruptError  # of all damaged bytes, also of those that are no checkpoint's
SEE_NAMES = "List the names with: estimator-bridge inspect CHECKPOINT --all"


class CheckpointError(errors.BridgeError):
    """A checkpoint that cannot be read, or a conversion that cannot be carried out.

    Damaged bytes raise ``CorruptError``, which is a BridgeError and no CheckpointError.
    """


class NotFoundError(CheckpointError):
    """A checkpoint, or one of its files, that does not exist."""


class UnsupportedError(CheckpointError):
    """A well-formed checkpoint or a request that is not supported."""


class NamingError(CheckpointError):
    """Names that clash, or that the checkpoint does not have."""


class TargetError(CheckpointError):
    """A target that cannot be written: it exists, it is the source, or the disk refuses."""


class KerasError(CheckpointError):
    """A refusal by Keras or by the user's own model function, in its own words."""


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
        raise CorruptError(f"{path} is damaged: {text}", fix=fix, address=error.address) from None
