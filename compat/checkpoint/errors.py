"""What can be wrong with a checkpoint or with what is asked of it; every one is a BridgeError with exit code 2."""

from __future__ import annotations

from estimator_bridge.errors import BridgeError


class CheckpointError(BridgeError):
    """A checkpoint that cannot be read, or a conversion that cannot be carried out.

    Args:
        what: one sentence: what happened.
        expected: what would have been accepted.
        received: what was found instead.
        fix: what to do next.

    Attributes:
        received: as given.
    """

    def __init__(self, what: str, *, expected: object = None, received: object = None, fix: str | None = None) -> None:
        super().__init__(what, expected=expected, received=received, fix=fix)
        self.received = received


class NotFoundError(CheckpointError):
    """There is no checkpoint where one was named, or one of its files is missing."""


class CorruptError(CheckpointError):
    """The bytes are not what the format says: truncated, altered, or made to harm."""


class UnsupportedError(CheckpointError):
    """A well-formed checkpoint with something in it that is not read here."""


class NamingError(CheckpointError):
    """Names that clash, or that are not in the checkpoint."""


class TargetError(CheckpointError):
    """The target cannot be written: it is there already, is the source itself, or the disk says no."""


class KerasError(CheckpointError):
    """Keras, or a function of the user's that makes a model, refused: its own words are what was received."""
