"""Errors for requests that cannot be carried out: one clear message, never a traceback."""

import re
import sys
import types

DOCUMENTATION = "docs/"
"""Address of the pages: their place in the repository. A release that publishes them has their URL here."""


def documentation(page: str, anchor: str) -> str:
    """Returns the address of a place in the documentation.

    Args:
        page: Path of the page without its suffix.
        anchor: Heading of the page, as its link spells it.

    Example:
        >>> documentation("how-to/compare", "rounding")
        'docs/how-to/compare.md#rounding'
    """
    return f"{DOCUMENTATION}{page}.{'html' if DOCUMENTATION.startswith('https:') else 'md'}#{anchor}"


def anchor_of(module: str, function: str) -> str:
    """Returns the name that the command ``explain`` knows for the messages of a function.

    Example:
        >>> anchor_of("estimator_bridge.parity.run", "_failure")
        'parity-run-failure'
    """
    return re.sub(r"[._]+", "-", f"{module}.{function}").removeprefix("estimator-bridge-").strip("-")


class BridgeError(Exception):
    """A request that cannot be carried out; the command line prints it and exits with ``exit_code``.

    Args:
        what: One sentence that says what happened.
        expected: Value that would have been accepted.
        received: Value that was given instead.
        fix: Advice on what to do next.
        address: Address of the message that this one repeats; by default that of the function that makes this one.

    Attributes:
        what: Sentence that says what happened.
        expected: Value that would have been accepted.
        received: Value that was given.
        fix: Advice on what to do next.
        address: Command that explains the message; empty for a message of the user's own code.

    Example:
        >>> print(BridgeError("Unknown path.", expected="legacy or modern", received="keras", fix="Use --path modern."))
        Unknown path.
          expected: legacy or modern
          received: keras
          to do:    Use --path modern.
    """

    exit_code = 2
    asked_by: str | None = None  # line of the user's code that led here, if there is one

    def __init__(
        self, what: str, *, expected: object = None, received: object = None, fix: str | None = None, address: str = ""
    ) -> None:
        rows = (("expected:", expected), ("received:", received), ("to do:", fix))
        lines = [what, *(f"  {label:<9} {value}" for label, value in rows if value is not None)]
        super().__init__("\n".join(lines))
        self.what = what
        self.expected = expected
        self.received = received
        self.fix = fix
        self.address = address or address_of(sys._getframe(1))

    @property
    def with_help(self) -> str:
        """The message, with the command that explains it."""
        return f"{self}\n  help:     {self.address}" if self.address else str(self)

    def as_dict(self) -> dict[str, str | None]:
        """Returns the parts of the message as JSON takes them, and the line of the user's code that led here.

        Example:
            >>> BridgeError("Unknown path.", received="keras").as_dict()
            {'what': 'Unknown path.', 'expected': None, 'received': 'keras', 'fix': None, 'line': None}
        """
        parts = {name: getattr(self, name) for name in ("what", "expected", "received", "fix")}
        return {name: None if value is None else str(value) for name, value in parts.items()} | {"line": self.asked_by}

    def __str__(self) -> str:
        text = str(self.args[0])
        known = self.asked_by is None or self.asked_by in text
        return text if known else f"{text}\n  asked by: {self.asked_by}"


def address_of(maker: types.FrameType) -> str:
    """Returns the command that explains the messages that a frame's function makes.

    Args:
        maker: Frame of the function.

    Returns:
        The command; empty for a function of the user's own code.
    """
    module = getattr(maker.f_globals.get("__spec__"), "name", "")  # __name__ may be __main__
    anchor = anchor_of(module, maker.f_code.co_name)
    is_ours = module.startswith("estimator_bridge.")
    return f"estimator-bridge explain {anchor}" if is_ours else ""


class CorruptError(BridgeError):
    """Bytes that do not follow their format: truncated, altered, or malicious."""


class NotSupportedError(BridgeError):
    """A feature that this path does not execute: refused by name, never ignored."""
