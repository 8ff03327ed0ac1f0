"""What a conversion can write."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from estimator_bridge.compat.checkpoint.errors import TargetError

TargetKind = Literal["bilingual", "name-based", "object-based", "keras-weights", "keras", "saved-model"]
KINDS: tuple[TargetKind, ...] = get_args(TargetKind)
KERAS_FORMATS = {"keras-weights": ".weights.h5", "keras": ".keras", "saved-model": ""}  # and how their names must end


def check_target(target: Path, to: TargetKind) -> None:
    """Checks a target's name: Keras tells its formats by it.

    Raises:
        TargetError: when it ends otherwise.

    Example:
        >>> check_target(Path("model.keras"), "keras")
        >>> check_target(Path("model.h5"), "keras-weights")
        Traceback (most recent call last):
        estimator_bridge.compat.checkpoint.errors.TargetError: A target of this kind has another name.
          expected: a file whose name ends in .weights.h5
          received: model.h5
    """
    ending = KERAS_FORMATS.get(to, "")
    if not target.name.endswith(ending):
        raise TargetError(
            "A target of this kind has another name.",
            expected=f"a file whose name ends in {ending}",
            received=str(target),
        )
