"""Of the module ``pipes``, what scripts used."""

from shlex import quote

__all__ = ["quote"]
