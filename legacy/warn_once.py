"""What the runner mended while a script ran, said on stderr: once for each thing and place."""

from __future__ import annotations

import sys

_said: set[str] = set()


def note(what: str, where: str) -> None:
    """Prints a line, unless it was printed before in this process.

    Args:
        what: what was found and what was done about it.
        where: ``file:line`` of the user's code.

    Example:
        >>> note("an input_fn returned a tuple of one; its element is taken as the features", "train.py:12")
    """
    line = f"estimator-bridge: {where}: {what}\n"
    if line not in _said:
        _said.add(line)
        sys.stderr.write(line)
