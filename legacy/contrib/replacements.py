"""What to use instead of the symbols of ``tf.contrib`` that are not restored."""

from __future__ import annotations

# A symbol or a prefix of symbols, below tf.contrib; the longest that fits decides.
REPLACEMENTS: dict[str, str] = {
    "": "See the packages that docs/contrib.md names.",
}


def replacement(symbol: str) -> str:
    """What to use instead of a symbol.

    Args:
        symbol: ``tf.contrib.layers.l2_regularizer``.

    Returns:
        A sentence.

    Example:
        >>> replacement("tf.contrib.eager.Network")
        'See the packages that docs/contrib.md names.'
    """
    parts = symbol.split(".")[2:]
    prefixes = (".".join(parts[:length]) for length in range(len(parts), -1, -1))
    return next(REPLACEMENTS[prefix] for prefix in prefixes if prefix in REPLACEMENTS)
