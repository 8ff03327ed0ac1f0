"""How strings that come from the user's script are shown."""

from __future__ import annotations

import unicodedata

_HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def visible(text: str) -> str:
    r"""``text`` with characters that draw nothing, or steer a terminal or the writing direction, spelled as escapes.

    Names come from the user's graph: an escape sequence in one must not recolour the terminal, nor a right-to-left override
    turn a verdict around. Line feeds stay.

    Args:
        text: any string, lone surrogates included.

    Returns:
        A string that can be encoded as UTF-8.

    Example:
        >>> visible("dense/kernel"), visible("a\x1b[31m")
        ('dense/kernel', 'a\\x1b[31m')
    """
    return "".join(_escape(character) for character in text)


def shorten(text: str, length: int) -> str:
    """``text`` with its middle left out where it is longer than ``length``: scope and variable are at the two ends.

    Args:
        text: any string.
        length: the most characters to return; at least 3.

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
