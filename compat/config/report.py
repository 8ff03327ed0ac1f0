"""Report of a conversion: a row for every field that was set, and an exit code."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Sequence
from typing import Any

from estimator_bridge.compat.rules import Fidelity
from estimator_bridge.errors import BridgeError


@dataclasses.dataclass(frozen=True)
class Row:
    """One field, or one finding about several.

    Attributes:
        name: Name of the field, e.g. ``session_config.gpu_options.allow_growth``.
        value: Value of the field.
        fidelity: Fidelity of the conversion.
        target: Counterpart of the field.
        note: Reason, and what differs.
        default: True for a default that was not set explicitly.
    """

    name: str
    value: Any
    fidelity: Fidelity
    target: str = ""
    note: str = ""
    default: bool = False


@dataclasses.dataclass(frozen=True)
class Report:
    """Rows of one conversion.

    Example:
        >>> Report((Row("device_fn", "f", Fidelity.MANUAL),)).exit_code()
        1
    """

    rows: tuple[Row, ...]

    def exit_code(self, allow: Sequence[str] = ()) -> int:
        """Returns the exit code: 0 if each field was carried over, or its loss is allowed; else 1.

        Args:
            allow: Names of rows, or patterns of names, whose loss is accepted.

        Raises:
            BridgeError: A name matches no row.
        """
        for pattern in allow:
            if not any(matches(row, pattern) for row in self.rows):
                raise BridgeError(
                    f"--allow {pattern} matches no field of this conversion.",
                    expected=", ".join(row.name for row in self.needs_human()) or "no --allow: every field was carried over",
                    received=pattern,
                )
        return int(any(not any(matches(row, pattern) for pattern in allow) for row in self.needs_human()))

    def needs_human(self) -> list[Row]:
        """Returns the rows that have no counterpart, or that only a human can carry over."""
        return [row for row in self.rows if not row.fidelity.automatic]


def matches(row: Row, pattern: str) -> bool:
    """Returns True if a pattern matches a row's name, in full or from one of its dots on."""
    parts = row.name.split(".")
    names = [".".join(parts[start:]) for start in range(len(parts))]
    return pattern in names or any(fnmatch.fnmatchcase(name, pattern) for name in names)  # hooks[0] is a name, and a pattern
