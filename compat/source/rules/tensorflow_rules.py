"""Judges names of TensorFlow: available, restored, or gone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Protocol

from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.rules.successors import successor
from estimator_bridge.compat.source.scopes import Place
from estimator_bridge.compat.source.surface import Surface, as_written, canonical
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

_ROOTS = frozenset({"tensorflow", "tensorflow_estimator"})
_CONTRIB = "tensorflow.contrib"
_RESTORED = ("tensorflow.estimator", "tensorflow.python.estimator", "tensorflow.compat.v2.estimator")
_HANDLED = "not there, and the file handles that itself"
_MNIST = "tensorflow.examples.tutorials.mnist"


class Contrib(Protocol):
    """The part of ``tf.contrib`` that the runner has."""

    def offers(self, symbol: str) -> bool:
        """Returns True if the runner has a symbol such as ``tf.contrib.layers.l2_regularizer``."""

    def imports(self, symbol: str) -> bool:
        """Returns True if a symbol is a module that can be imported, even if it refuses everything that is read from it."""

    def replacement(self, symbol: str) -> str:
        """Returns a sentence that names the replacement of a symbol that the runner lacks."""


def judge_tensorflow(source: Source, surface: Surface, contrib: Contrib) -> Iterator[SourceFinding]:
    """Yields a finding for each name of TensorFlow in the file, also for those that run.

    Args:
        source: Parsed file.
        surface: Names of the installed TensorFlow.
        contrib: Names of ``tf.contrib`` that the runner offers.
    """
    for name, node, place in _references(source):
        symbol = canonical(name)
        yield SourceFinding.at(node, as_written(symbol), *_judge(symbol, place, surface, contrib))
    for dotted, statement, _ in source.names.imports:
        if dotted.partition(".")[0] == "keras" and not surface.version.startswith("2.15."):
            message = "keras is Keras 3 now; run uses tf_keras, Keras 2, instead"
            yield SourceFinding.at(statement, dotted, Kind.TENSORFLOW, Verdict.MENDED, message)
    for module, statement, _ in source.names.stars:
        if _is_tensorflow(module):
            message = "The names of such an import cannot be checked; import each name that you use."
            yield SourceFinding.at(statement, f"from {module} import *", Kind.TENSORFLOW, Verdict.HUMAN, message)


def _references(source: Source) -> Iterator[tuple[str, ast.expr | ast.stmt, Place]]:
    names = source.names
    for dotted, statement, place in names.imports:
        if _is_tensorflow(dotted):
            yield dotted, statement, place
    for chain, place in names.nodes(ast.Attribute):
        found = names.resolve(chain, place.scope)
        if found is not None and _is_tensorflow(found):
            yield found, chain, place


def _is_tensorflow(name: str) -> bool:
    return name.partition(".")[0] in _ROOTS


def _judge(symbol: str, place: Place, surface: Surface, contrib: Contrib) -> tuple[Kind, Verdict, str]:
    if symbol.startswith(_CONTRIB):
        return Kind.CONTRIB, *_judge_contrib(as_written(symbol), place, contrib)
    if symbol.startswith("tensorflow.examples"):
        if (symbol + ".").startswith(f"{_MNIST}.input_data.") or symbol == _MNIST:
            return Kind.TENSORFLOW, Verdict.MENDED, "run restores it for local MNIST files"
        advice = "TensorFlow no longer contains its examples; copy the file into your project."
        return Kind.TENSORFLOW, Verdict.HUMAN, advice
    if surface.has(symbol):
        if symbol.startswith(_RESTORED) and not surface.version.startswith("2.15."):
            return Kind.TENSORFLOW, Verdict.MENDED, "run restores it"
        return Kind.TENSORFLOW, Verdict.RUNS, ""
    if place.guarded:
        return Kind.TENSORFLOW, Verdict.RUNS, _HANDLED
    return Kind.TENSORFLOW, Verdict.HUMAN, _missing(symbol, surface)


def _judge_contrib(symbol: str, place: Place, contrib: Contrib) -> tuple[Verdict, str]:
    if contrib.offers(symbol):
        return Verdict.MENDED, "run restores it"
    if place.guarded:
        return Verdict.RUNS, _HANDLED
    if contrib.imports(symbol):
        return Verdict.MENDED, f"can be imported, but every use of it is refused. {contrib.replacement(symbol)}"
    return Verdict.HUMAN, f"Removed with tf.contrib. {contrib.replacement(symbol)}"


def _missing(symbol: str, surface: Surface) -> str:
    gone = surface.nearest(symbol)
    two = gone.replace("tensorflow.", "tensorflow.compat.v2.", 1)
    if surface.has(two):
        return f"A name of TensorFlow 2: write {as_written(two)}, or run with --v2-behavior."
    return f"{as_written(gone)} is not in TensorFlow {surface.version}. {successor(symbol)}".rstrip()
