"""What can be wrong with a checkpoint or with what is asked of it; every one is a BridgeError with exit code 2."""

from __future__ import annotations

from estimator_bridge.errors import BridgeError, CorruptError

__all__ = [
    "CheckpointError",
    "CorruptError",
    "KerasError",
    "NamingError",
    "NotFoundError",
    "TargetError",
    "UnsupportedError",
]


class CheckpointError(BridgeError):
    """A checkpoint that cannot be read, or a conversion that cannot be carried out. Damaged bytes raise ``CorruptError``."""


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
