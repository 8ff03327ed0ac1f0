"""A conversion request: the source, the target and all options."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from estimator_bridge.compat.checkpoint.errors import TargetError

TargetKind = Literal["bilingual", "name-based", "object-based", "keras-weights", "keras", "saved-model"]
KERAS_FORMATS = {"keras-weights": ".weights.h5", "keras": ".keras", "saved-model": ""}  # -> end of the target's name


@dataclasses.dataclass(frozen=True)
class ConversionRequest:
    """A request to convert a checkpoint.

    Attributes:
        source: Anything that ``read_index`` takes, a V1 checkpoint, or a Keras file: .keras, .h5, .weights.h5.
        target: Prefix of the new checkpoint, or the path of the file or folder if ``to`` is a Keras format.
        to: TargetKind of the target. "bilingual" is name-based and object-based at once, over the same data files.
        like: Models and checkpoints whose object graph or names to write, and to which a weights file belongs: a checkpoint of
            either kind, or a Keras model as a SavedModel, a .keras file, a config in JSON, or ``module:function``, which is
            called. Without one, the object graph is that of the modern path's own model.
        rename: Regular expressions and replacements, applied to TF1's names one after the other.
        drop: Regular expressions of names to leave out.
        partition: Regular expressions of variables and the number of slices, 1 for a whole variable; slots follow.
        use_averages: True to give each variable the value of its ExponentialMovingAverage, as for serving.
        swap_averages: True if the ``swapping_saver`` of tf.contrib's MovingAverageOptimizer wrote the source: it stores averages
            under the names of the variables, and variables under the names of the averages.
        given: Pairs that the user decided: name in TF1 -> key or name in Keras, in either direction of the conversion.
        accept_order: True to pair remaining variables of one shape in order.
        forget_bias: Regular expressions of LSTM cells' scopes and their forget_bias, if it differs from TF1's default.
        allow_unmatched: True to write even if some variables have no counterpart.
        learning_rate: Learning rate for Momentum, whose Keras slot contains it; default: that of the object graph's optimizer.
        optimizer: TF1's name of the optimizer, if the slots of an object-based checkpoint do not identify it.
        optimizer_family: "legacy" or "new", for tf_keras, if the model has no optimizer or one of the other family.
        copy: True to copy data files instead of linking them.
        overwrite: True to replace an existing checkpoint or file.
        dry_run: True to write nothing.
    """

    source: str | Path
    target: str | Path
    _: dataclasses.KW_ONLY
    to: TargetKind = "bilingual"
    like: str | Path | Sequence[str | Path] | None = None
    rename: Sequence[tuple[str, str]] = ()
    drop: Sequence[str] = ()
    partition: Sequence[tuple[str, int]] = ()
    use_averages: bool = False
    swap_averages: bool = False
    given: Mapping[str, str] | None = None
    accept_order: bool = False
    forget_bias: Sequence[tuple[str, float]] = ()
    allow_unmatched: bool = False
    learning_rate: float | None = None
    optimizer: str | None = None
    optimizer_family: str | None = None
    copy: bool = False
    overwrite: bool = False
    dry_run: bool = False

    @property
    def likes(self) -> Sequence[str | Path]:
        """The models and checkpoints of ``like`` as a sequence."""
        return [self.like] if isinstance(self.like, (str, Path)) else self.like or ()

    @property
    def writes_names(self) -> bool:
        """Returns True if the target has TF1's names."""
        return self.to in {"name-based", "bilingual"}


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
