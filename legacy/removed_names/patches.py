"""Gives the script and its own modules the names that NumPy and Python dropped; installed libraries see no change.

A module's ``__getattr__`` finds the names. Python calls it only for names that the module does not have, and it looks at the calling code:
``hasattr(np, "float_")`` in an installed library stays False. The replacement of a removed module goes only to the import statement, never into
``sys.modules``. A look-up from C code counts as one of the Python code that called it.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.util
import sys
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from estimator_bridge.compat.source.reading import read_source
from estimator_bridge.compat.source.removed_names import Removed
from estimator_bridge.compat.source.removed_names.numpy import REMOVED
from estimator_bridge.compat.source.removed_names.python import ATTRIBUTES, MODULES
from estimator_bridge.legacy.removed_names.old_libraries import OldLibraries, is_adapted, old_arrays
from estimator_bridge.legacy.removed_names.replacements import find_module_name, find_replacement
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.patching import replaced
from estimator_bridge.runtime.user_code import is_users, read_code

# Types of the arguments of __import__.
Names = Mapping[str, Any] | None
FromList = Sequence[str] | None


@contextlib.contextmanager
def answer_removed_names() -> Iterator[None]:
    """While active, the user's code finds the names that NumPy and Python dropped; the first use of each is logged."""
    logged: set[str] = set()
    with _print_scalars_as_numbers(), old_arrays(), OldLibraries() as libraries, contextlib.ExitStack() as stack:
        for module, names in _by_module().items():
            stack.enter_context(_replacing_names(importlib.import_module(module), names, logged))
        for patch in _imports(logged, libraries):
            stack.enter_context(patch)
        yield


def _print_scalars_as_numbers() -> contextlib.AbstractContextManager[object]:
    """While active, in the thread that entered it, ``repr(np.float32(0.5))`` is ``0.5`` and not ``np.float32(0.5)``.

    Scripts read a printed evaluation such as ``{'loss': 0.5}`` back in.
    """
    if int(np.__version__.partition(".")[0]) < 2:
        return contextlib.nullcontext()
    return np.printoptions(legacy="1.25")


def _by_module() -> dict[str, dict[str, Removed]]:
    """Returns the removed names that have a replacement, by module."""
    rows = {f"numpy.{name}": removed for name, removed in REMOVED.items()} | dict(ATTRIBUTES)
    rows |= {name: removed for name, removed in MODULES.items() if "." in name}
    found: dict[str, dict[str, Removed]] = {}
    for dotted, removed in rows.items():
        module, _, name = dotted.rpartition(".")
        if removed.target:
            found.setdefault(module, {})[name] = removed
    return found


@contextlib.contextmanager
def _replacing_names(module: types.ModuleType, names: Mapping[str, Removed], logged: set[str]) -> Iterator[None]:
    own = vars(module).get("__getattr__")

    def answer(name: str) -> Any:
        frame = sys._getframe(1)
        if name in names and _is_users(frame.f_globals):
            return _find_and_log(f"{module.__name__}.{name}", names[name], frame, logged)
        if own is not None:
            return own(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    vars(module)["__getattr__"] = answer
    try:
        yield
    finally:
        if own is None:
            del vars(module)["__getattr__"]
        else:
            vars(module)["__getattr__"] = own


def _find_and_log(dotted: str, removed: Removed, frame: types.FrameType, logged: set[str]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a target that is deprecated, too
        found = find_replacement(removed.target)
    _log(dotted, getattr(found, "__name__", None) or repr(found), frame, logged)
    return found


def _log(gone: str, used: str, frame: types.FrameType, logged: set[str]) -> None:
    if gone not in logged:
        logged.add(gone)
        warn_once(f"{gone} no longer exists; {used} is used instead", f"{frame.f_code.co_filename}:{frame.f_lineno}")


def _imports(logged: set[str], libraries: OldLibraries) -> list[Any]:
    original, import_module = builtins.__import__, importlib.import_module

    def import_(name: str, globals: Names = None, locals: Names = None, fromlist: FromList = (), level: int = 0) -> Any:  # noqa: A002
        try:
            found = original(name, globals, locals, fromlist, level)
            _adapt(name, globals, libraries)
            return found
        except ModuleNotFoundError as error:
            stand_in = None if level else _stand_in(name, error, logged)
            empty = None if level or fromlist or stand_in else _empty_module(name, logged)
            if empty is not None:
                return empty
            if stand_in is None:
                raise
        if not fromlist:  # the statement binds the top package, or the module in its place
            top = name.partition(".")[0]
            return original(top) if top not in MODULES else import_module(find_module_name(MODULES[top].target))
        return original(stand_in, None, None, fromlist, 0)

    def import_module_(name: str, package: str | None = None) -> Any:
        try:
            module = import_module(name, package)
            _adapt(name, None, libraries)
            return module
        except ModuleNotFoundError as error:
            stand_in = _stand_in(name, error, logged)
            if stand_in is None:
                raise
        return import_module(stand_in)

    return [replaced(builtins, __import__=import_), replaced(importlib, import_module=import_module_)]


def _adapt(name: str, importer: Names, libraries: OldLibraries) -> None:
    if is_adapted(name):
        frame = _find_importer()
        asking = importer or (frame.f_globals if frame else {})
        is_contrib = str(asking.get("__name__")).startswith("tensorflow.")  # whose fetched files lie in a folder of the user's
        if _is_users(asking) and not is_contrib:
            libraries.adapt(name)


def _find_importer() -> types.FrameType | None:
    """Returns the frame of an import statement, which is not ours: ``tf1_imports`` may have passed it on."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("estimator_bridge."):
        frame = frame.f_back
    return frame


def _stand_in(name: str, error: ModuleNotFoundError, logged: set[str]) -> str | None:
    """Returns the module to import instead of a removed one; None unless the user's code imports it."""
    frame = _find_importer()
    gone = next((one for one in MODULES if f"{name}.".startswith(f"{one}.") and MODULES[one].target), None)
    if gone is None or not f"{name}.".startswith(f"{error.name}.") or frame is None or not _is_users(frame.f_globals):
        return None
    target = find_module_name(MODULES[gone].target) + name[len(gone) :]
    try:
        importlib.util.find_spec(target)
    except ModuleNotFoundError:
        return None
    importlib.import_module(target)
    _log(f"the module {gone}", target, frame, logged)
    return target


def _empty_module(name: str, logged: set[str]) -> types.ModuleType | None:
    """Returns a module whose every name is refused, since many scripts import more than they use.

    Returns:
        The module in place of a removed one without a successor; None unless the user's code imports it and needs it to be there.
    """
    frame = _find_importer()
    if (
        name not in MODULES
        or MODULES[name].target
        or frame is None
        or not _is_users(frame.f_globals)
        or _is_guarded(name, frame)
    ):
        return None
    _log(f"the module {name}", "an empty one", frame, logged)
    module = types.ModuleType(name)

    def refuse(attribute: str) -> Any:
        raise AttributeError(
            f"{name}.{attribute}: Python no longer has the module {name}. {MODULES[name].note}", name=attribute
        )

    vars(module)["__getattr__"] = refuse
    return module


def _is_guarded(name: str, importer: types.FrameType) -> bool:
    """Returns True if the file says itself what to do where there is no such module."""
    try:
        source = read_source(read_code(importer.f_code.co_filename), importer.f_code.co_filename)
    except (OSError, SyntaxError):
        return True
    return any(place.guarded for imported, _, place in source.names.imports if imported == name)


def _is_users(importer: Mapping[str, Any]) -> bool:
    return is_users(importer.get("__file__") or "")
