"""Refusals of names of ``tf.contrib`` that are not offered, with symbol, file, line and replacement.

A package or source file of TensorFlow 1.15's contrib is a module still, so that a script which imports it for a branch that is not
taken runs. It refuses at its first use, which a module has in one way only: a name is read from it. A name itself (a class, a
function) is refused where it is imported: whatever stood in for it could be subclassed, compared, passed on and stored, and fail late
or never.

The errors are the AttributeError and ImportError that Python itself would raise, and a script that looks before it leaps
(``hasattr(tf.contrib, "eager")``, ``try: from tensorflow.contrib import eager`` with an ``except ImportError``) hears at once that
even the module is not there, and goes its other way.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import itertools
import types
from collections.abc import Iterator

from estimator_bridge.compat.source.removed_names.contrib import replacement
from estimator_bridge.compat.source.removed_names.contrib_modules import is_module
from estimator_bridge.errors import NotSupportedError
from estimator_bridge.runtime.user_code import read_code

_READS = ("LOAD_ATTR", "LOAD_METHOD")


FETCH = " Or fetch the real tf.contrib (222 MB, once; Apache-2.0): estimator-bridge contrib fetch"


class ContribError(NotSupportedError):
    """A symbol of ``tf.contrib`` that is not offered was asked for.

    Args:
        symbol: Name as the script would write it, e.g. ``tf.contrib.layers.l2_regularizer``.
        frame: Frame that asked for it.
    """

    def __init__(self, symbol: str, frame: types.FrameType) -> None:
        package = symbol.split(".")[2]
        gone = f"TensorFlow 2 removed {symbol} with all of tf.contrib, and it is not restored."
        super().__init__(
            gone if is_module(package) else f"There is no tf.contrib.{package}: TensorFlow 1.15 had none.",
            expected="a name of tf.contrib that is restored; estimator-bridge check SCRIPT lists those that are not",
            received=f"{symbol} at {frame.f_code.co_filename}:{frame.f_lineno}",
            fix=f"{replacement(symbol)}{FETCH if is_module(package) else ''}",
        )


class ContribAttributeError(ContribError, AttributeError):
    """Asked for as an attribute."""


class ContribImportError(ContribError, ModuleNotFoundError):
    """Asked for by an import; of TensorFlow 2, which has no contrib, it would be this error."""


def asked_attribute(module: str, name: str, frame: types.FrameType) -> ContribAttributeError:
    """The error for an attribute, with the whole dotted name that the frame is about to read.

    Args:
        module: Name of the module in the script.
        name: Name of the attribute.
        frame: Frame that reads it.
    """
    return ContribAttributeError(".".join([module, *(_reads(frame, name) or [name])]), frame)


def looks_first(frame: types.FrameType, name: str | None = None) -> bool:
    """Whether the script is only asking for a module: it catches the error right there, or it looks for the name by ``hasattr``.

    Args:
        frame: Frame that asks.
        name: Name of the attribute; None for an import.
    """
    if name is None:
        return _is_forgiven(frame, ContribImportError)
    if next(_steps(frame)).opname == "IMPORT_FROM":  # of a statement that has been asked about as an import
        return False
    return not _reads(frame, name) or _is_forgiven(frame, ContribAttributeError)


def _is_forgiven(frame: types.FrameType, error: type[ContribError]) -> bool:
    from estimator_bridge.compat.source.handled_errors import is_handled
    from estimator_bridge.compat.source.reading import read_source

    file = frame.f_code.co_filename
    with contextlib.suppress(OSError, SyntaxError):  # code without a file imports as TensorFlow 1.15 did
        tree: ast.Module = read_source(read_code(file), file).tree
        return is_handled(tree, frame.f_lineno, {kind.__name__ for kind in error.__mro__})
    return False


def _reads(frame: types.FrameType, name: str) -> list[str]:
    """The names that the frame is about to read, each of the one before it; none unless the first is the given one."""
    reads = [step.argval for step in itertools.takewhile(lambda step: step.opname in _READS, _steps(frame))]
    return reads if reads[:1] == [name] else []


def _steps(frame: types.FrameType) -> Iterator[dis.Instruction]:
    return itertools.dropwhile(lambda step: step.offset < frame.f_lasti, dis.get_instructions(frame.f_code))
