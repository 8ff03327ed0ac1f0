"""Errors for requests that cannot be carried out: one clear message, never a traceback."""


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


class BridgeError(Exception):
    """A request that cannot be carried out; the command line prints it and exits with ``exit_code``.

    Args:
        what: One sentence that says what happened.
        expected: Value that would have been accepted.
        received: Value that was given instead.
        fix: Advice on what to do next.

    Attributes:
        received: Value that was given.

    Example:
        >>> print(BridgeError("Unknown path.", expected="legacy or modern", received="keras", fix="Use --path modern."))
        Unknown path.
          expected: legacy or modern
          received: keras
          to do:    Use --path modern.
    """

    exit_code = 2
    asked_by: str | None = None  # line of the user's code that led here, if there is one

    def __init__(self, what: str, *, expected: object = None, received: object = None, fix: str | None = None) -> None:
        rows = (("expected:", expected), ("received:", received), ("to do:", fix))
        lines = [what, *(f"  {label:<9} {value}" for label, value in rows if value is not None)]
        super().__init__("\n".join(lines))
        self.what = what
        self.received = received

    def __str__(self) -> str:
        text = str(self.args[0])
        known = self.asked_by is None or self.asked_by in text
        return text if known else f"{text}\n  asked by: {self.asked_by}"


class CorruptError(BridgeError):
    """Bytes that do not follow their format: truncated, altered, or malicious."""


class NotSupportedError(BridgeError):
    """A feature that this path does not execute: refused by name, never ignored."""
