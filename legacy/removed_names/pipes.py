"""The function of the module ``pipes`` that scripts used."""

from shlex import quote

__all__ = ["quote"]
