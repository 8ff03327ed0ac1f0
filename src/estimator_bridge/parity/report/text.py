"""The display of strings that come from the user's script."""

from __future__ import annotations

import unicodedata

_HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def visible(text: str) -> str:
    r"""Spells characters as escapes that draw nothing, or that control a terminal or the writing direction.

    Names come from the user's graph: an escape sequence in one must not recolour the terminal, and a right-to-left override
    must not reverse a verdict. Line feeds stay.

    Args:
        text: Any string, also with lone surrogates.

    Returns:
        A string that can be encoded as UTF-8.

    Example:
        >>> visible("dense/kernel"), visible("a\x1b[31m")
        ('dense/kernel', 'a\\x1b[31m')
    """
    return "".join(_escape(character) for character in text)


def shorten(text: str, length: int) -> str:
    """Leaves out the middle of a string that is longer than ``length``: scope and variable are at the two ends.

    Args:
        text: Any string.
        length: Largest number of characters to return; at least 3.

    Returns:
        At most ``length`` characters.

    Example:
        >>> shorten("input_layer/occupation_embedding/weights", 24)
        'input_layer...ng/weights'
    """
    if len(text) <= length:
        return text
    head = (length - 3 + 1) // 2
    tail = length - 3 - head
    return f"{text[:head]}...{text[len(text) - tail :]}"


def _escape(character: str) -> str:
    if character == "\n" or unicodedata.category(character) not in _HIDDEN_CATEGORIES:
        return character
    return character.encode("unicode_escape").decode("ascii")
