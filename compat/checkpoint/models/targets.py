"""The kinds of targets that a conversion can write."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from estimator_bridge.compat.checkpoint.errors import TargetError

TargetKind = Literal["bilingual", "name-based", "object-based", "keras-weights", "keras", "saved-model"]
KINDS: tuple[TargetKind, ...] = get_args(TargetKind)
KERAS_FORMATS = {"keras-weights": ".weights.h5", "keras": ".keras", "saved-model": ""}  # -> end of the target's name


def check_target(target: Path, to: TargetKind) -> None:
    """Checks a target's name, from which Keras takes the format.

    Raises:
        TargetError: The name has another ending.

    Example:
        >>> check_target(Path("model.keras"), "keras")
        >>> check_target(Path("model.h5"), "keras-weights")
        Traceback (most recent call last):
        estimator_bridge.compat.checkpoint.errors.TargetError: The target's name does not fit its kind.
          expected: a file whose name ends in .weights.h5
          received: model.h5
    """
    ending = KERAS_FORMATS.get(to, "")
    if not target.name.endswith(ending):
        raise TargetError(
            "The target's name does not fit its kind.",
            expected=f"a file whose name ends in {ending}",
            received=str(target),
        )
