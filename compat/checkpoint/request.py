"""A conversion request, i.e. the source, the target and all options, and the report of the conversion."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from estimator_bridge.compat.checkpoint.errors import NamingError, TargetError
from estimator_bridge.compat.checkpoint.names.matching import Match
from estimator_bridge.compat.checkpoint.writing.staging import Sharing

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
        created: Names in TF1 in order of creation, if that is known; else numbers in names tell the order.
        forget_bias: Regular expressions of LSTM cells' scopes and their forget_bias, if it differs from TF1's default.
        known_forget_bias: Scope of an LSTM cell -> its forget_bias, as the old script has made it; ``forget_bias`` decides first.
        allow_unmatched: True to write even if some variables have no counterpart.
        learning_rate: Learning rate for Momentum, whose Keras slot contains it; default: that of the object graph's optimizer.
        optimizer: TF1's name of the optimizer, if the slots of an object-based checkpoint do not identify it.
        optimizer_family: "legacy" or "new", for tf_keras, if the model has no optimizer or one of the other family.
        copy: True to copy data files instead of linking them.
        overwrite: True to replace an existing checkpoint or file.
        dry_run: True to write nothing.
        is_scratch: True for a checkpoint that only this process and those after it read: nothing waits until it is on the disk, and the
            ``checkpoint`` file of its folder stays as it is.
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
    created: Sequence[str] = ()
    forget_bias: Sequence[tuple[str, float]] = ()
    known_forget_bias: Mapping[str, float] | None = None
    allow_unmatched: bool = False
    learning_rate: float | None = None
    optimizer: str | None = None
    optimizer_family: str | None = None
    copy: bool = False
    overwrite: bool = False
    dry_run: bool = False
    is_scratch: bool = False

    @property
    def likes(self) -> Sequence[str | Path]:
        """The models and checkpoints of ``like`` as a sequence."""
        return [self.like] if isinstance(self.like, (str, Path)) else self.like or ()

    @property
    def writes_names(self) -> bool:
        """Returns True if the target has TF1's names."""
        return self.to in {"name-based", "bilingual"}


def compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a regular expression of a request.

    Raises:
        NamingError: It is none.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise NamingError(
            "This is not a regular expression of Python.",
            received=f"{pattern}: {error}",
            fix=r"Write \( for a bracket that is meant as such.",
        ) from None


def kind_of_name(target: Path) -> TargetKind:
    """Returns the kind of target that a name ends like.

    Example:
        >>> kind_of_name(Path("model.keras")), kind_of_name(Path("m.weights.h5")), kind_of_name(Path("model.ckpt-7"))
        ('keras', 'keras-weights', 'bilingual')
    """
    kinds: dict[str, TargetKind] = {".weights.h5": "keras-weights", ".keras": "keras"}
    return next((kind for ending, kind in kinds.items() if target.name.endswith(ending)), "bilingual")


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
    if not ending and target.name.endswith((".keras", ".h5", ".hdf5")):
        raise TargetError(
            f"The target's name is that of a file of Keras, and its kind is {to}.",
            expected="the prefix of a checkpoint, e.g. model.ckpt-7",
            received=str(target),
            fix="Choose another name, or another kind: keras for .keras, keras-weights for .weights.h5.",
        )


@dataclasses.dataclass(frozen=True)
class Converted:
    """A slot variable that was converted or left out, or a recurrent cell whose weights got another layout.

    Attributes:
        source: Name, or the cell's scope, in the source; "" if zeros were written.
        target: Name, or the cell's scope, in the target; "" if it was left out.
        note: Change of its values, or the reason why it was left out.
    """

    source: str
    target: str
    note: str = ""


@dataclasses.dataclass
class ConversionReport:
    """The report of a conversion.

    Attributes:
        source: Prefix of the source.
        target: Prefix of the target.
        to: Kind of the target.
        written: True if the target was written: nothing was unmatched, and it was no dry run.
        unchanged: True if the target existed already with the same bytes.
        renamed: Number of renamed variables.
        matches: Pairs of variables.
        slots: Slots of optimizers.
        layouts: Recurrent cells; their variables have names like "CELL as LAYOUT/..." in ``matches`` and ``slots``.
        warnings: Warnings for the user.
        ambiguous: Target variable -> sources that fit equally well.
        unmatched_sources: Variables of the source for which the target has no place.
        unmatched_targets: Variables of the target for which the source has no value.
        sharing: For each data file, "link", "clone" or "copy".
        allowed: True if the user allowed unmatched variables.
    """

    source: str
    target: str
    to: str
    written: bool = False
    unchanged: bool = False
    renamed: int = 0
    matches: tuple[Match, ...] = ()
    slots: list[Converted] = dataclasses.field(default_factory=list)
    layouts: list[Converted] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    ambiguous: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    unmatched_sources: list[str] = dataclasses.field(default_factory=list)
    unmatched_targets: list[str] = dataclasses.field(default_factory=list)
    sharing: tuple[Sharing, ...] = ()
    allowed: bool = False

    @property
    def complete(self) -> bool:
        """True if nothing is ambiguous, and nothing is unmatched or the user allowed it."""
        unmatched = self.unmatched_sources or self.unmatched_targets
        return not self.ambiguous and (self.allowed or not unmatched)

    @property
    def exit_code(self) -> int:
        """The exit code: 0 if complete, 1 if something needs a decision."""
        return 0 if self.complete else 1

    def leave_slots_out(self, reason: str) -> None:
        """Reports every slot as left out, since the target's format has no place for it."""
        self.slots = [
            dataclasses.replace(slot, target="", note=slot.note if not slot.target else reason) for slot in self.slots
        ]
        self.warnings.append(f"The optimizer's state is left out: {reason}.")

    def to_json(self) -> dict[str, Any]:
        """Returns the report as plain data."""
        return dataclasses.asdict(self) | {"complete": self.complete}
