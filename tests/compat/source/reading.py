"""Judges snippets."""

from __future__ import annotations

import textwrap

from estimator_bridge.compat.source.checking import Judge
from estimator_bridge.compat.source.surface import installed_version, load_surface
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding


class _Contrib:
    """Offers tf.contrib.layers, and of tf.contrib.eager an empty module."""

    def offers(self, symbol: str) -> bool:
        return symbol.startswith("tf.contrib.layers")

    def imports(self, symbol: str) -> bool:
        return symbol == "tf.contrib.eager"

    def replacement(self, symbol: str) -> str:
        return f"Use something else than {symbol}."


def judge(python2: bool = False) -> Judge:
    """Returns a judge for the installed TensorFlow."""
    return Judge(load_surface(installed_version()), _Contrib(), python2)


def findings(source: str, *kinds: Kind, python2: bool = False) -> list[SourceFinding]:
    """Returns the findings in a snippet.

    Args:
        source: Snippet, indented or not; line 1 is the first that is not empty.
        kinds: Kinds of findings to return; all without any.
        python2: True to judge for ``run --py2``.
    """
    report = judge(python2).content(textwrap.dedent(source).lstrip("\n").encode(), "snippet.py")
    return [one for one in report.findings if not kinds or one.kind in kinds]


def verdicts(source: str, *kinds: Kind) -> list[tuple[int, str, str]]:
    """Returns line, symbol and verdict of each finding."""
    return [(one.line, one.symbol, one.verdict.value) for one in findings(source, *kinds)]
