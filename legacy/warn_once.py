"""Warnings about what the runner changed for a script, each logged once."""

import logging

_logger = logging.getLogger(__name__)
_warned: set[tuple[str, str]] = set()


def warn_once(message: str, where: str) -> None:
    """Logs a warning, unless it was logged before in this process.

    Args:
        message: Text that says what was found and what was done about it.
        where: ``file:line`` of the user's code, or a name that the user knows.

    Example:
        >>> warn_once("the input_fn returns a tuple of one element, which is taken as the features", "train.py:12")
    """
    if (message, where) not in _warned:
        _warned.add((message, where))
        _logger.warning("%s: %s", where, message)
