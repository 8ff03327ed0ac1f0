"""What a conversion did: a row for every field that was set, and an exit code."""

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
        name: where the value was, such as ``session_config.gpu_options.allow_growth``.
        value: what was set there.
        fidelity: how faithfully it was carried over.
        target: what takes its place.
        note: the reason, and what differs.
        default: the value is what applies where nothing is said.
    """

    name: str
    value: Any
    fidelity: Fidelity
    target: str = ""
    note: str = ""
    default: bool = False


@dataclasses.dataclass(frozen=True)
class Report:
    """Every row of one conversion.

    Example:
        >>> Report((Row("device_fn", "f", Fidelity.MANUAL),)).exit_code()
        1
    """

    rows: tuple[Row, ...]

    def exit_code(self, allow: Sequence[str] = ()) -> int:
        """0 where everything was carried over or allowed not to be, else 1.

        Args:
            allow: names of rows, or patterns of names, whose loss is accepted.

        Returns:
            The exit code.

        Raises:
            BridgeError: for a name that is none of the rows'.
        """
        for pattern in allow:
            if not any(matches(row, pattern) for row in self.rows):
                raise BridgeError(
                    f"--allow {pattern} names nothing that was set.",
                    expected=", ".join(row.name for row in self.needs_human()) or "nothing: every field was carried over",
                    received=pattern,
                )
        return int(any(not any(matches(row, pattern) for pattern in allow) for row in self.needs_human()))

    def needs_human(self) -> list[Row]:
        """The rows that nothing takes the place of, or only a human can carry over."""
        return [row for row in self.rows if not row.fidelity.automatic]


def matches(row: Row, pattern: str) -> bool:
    """True where a pattern names a row: in full, or from one of its dots on."""
    parts = row.name.split(".")
    names = [".".join(parts[start:]) for start in range(len(parts))]
    return pattern in names or any(fnmatch.fnmatchcase(name, pattern) for name in names)  # hooks[0] is a name, and a pattern
