"""Names that NumPy and Python dropped are answered where the script or one of its own modules asks; nobody else sees a change.

A name is answered by the module's ``__getattr__``, which Python calls only for what the module does not have, and which looks at
who asks: ``hasattr(np, "float_")`` in an installed library stays False. A module that is gone is given to the import statement
alone and never stands in ``sys.modules``. Asking from C code cannot be told from the Python code that called it.
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

from estimator_bridge.compat.source.removed_names import Removed
from estimator_bridge.compat.source.removed_names.numpy import REMOVED
from estimator_bridge.compat.source.removed_names.python import ATTRIBUTES, MODULES
from estimator_bridge.legacy.removed_names.replacements import find_module_name, find_replacement
from estimator_bridge.legacy.removed_names.scalars import print_scalars_as_numbers
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.patching import replaced
from estimator_bridge.runtime.user_code import is_users


@contextlib.contextmanager
def answer_removed_names() -> Iterator[None]:
    """While active, the user's code finds the names that NumPy and Python dropped; the first use of each is noted."""
    said: set[str] = set()
    with print_scalars_as_numbers(), contextlib.ExitStack() as stack:
        for module, names in _by_module().items():
            stack.enter_context(_answering(importlib.import_module(module), names, said))
        for patch in _imports(said):
            stack.enter_context(patch)
        yield


def _by_module() -> dict[str, dict[str, Removed]]:
    """What can be answered, by the module that is asked."""
    rows = {f"numpy.{name}": removed for name, removed in REMOVED.items()} | dict(ATTRIBUTES)
    rows |= {name: removed for name, removed in MODULES.items() if "." in name}
    found: dict[str, dict[str, Removed]] = {}
    for dotted, removed in rows.items():
        module, _, name = dotted.rpartition(".")
        if removed.target:
            found.setdefault(module, {})[name] = removed
    return found


@contextlib.contextmanager
def _answering(module: types.ModuleType, names: Mapping[str, Removed], said: set[str]) -> Iterator[None]:
    own = vars(module).get("__getattr__")

    def answer(name: str) -> Any:
        frame = sys._getframe(1)
        if name in names and _is_users(frame.f_globals):
            return _answered(f"{module.__name__}.{name}", names[name], frame, said)
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


def _answered(dotted: str, removed: Removed, frame: types.FrameType, said: set[str]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a target that is on its way out too
        found = find_replacement(removed.target)
    if dotted not in said:
        said.add(dotted)
        what = getattr(found, "__name__", None) or repr(found)
        warn_once(f"{dotted} is gone; answered with {what}", f"{frame.f_code.co_filename}:{frame.f_lineno}")
    return found


def _imports(said: set[str]) -> list[Any]:
    original, import_module = builtins.__import__, importlib.import_module

    def import_(
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 -- the names of __import__
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        try:
            return original(name, globals, locals, fromlist, level)
        except ModuleNotFoundError as error:
            stand_in = None if level else _stand_in(name, error, _asker(sys._getframe(1)), said)
            if stand_in is None:
                raise
        if not fromlist:  # what the statement binds: the top package, or the module that stands for it
            top = name.partition(".")[0]
            return original(top) if top not in MODULES else import_module(find_module_name(MODULES[top].target))
        return original(stand_in, None, None, fromlist, 0)

    def import_module_(name: str, package: str | None = None) -> Any:
        try:
            return import_module(name, package)
        except ModuleNotFoundError as error:
            stand_in = _stand_in(name, error, _asker(sys._getframe(1)), said)
            if stand_in is None:
                raise
        return import_module(stand_in)

    return [replaced(builtins, __import__=import_), replaced(importlib, import_module=import_module_)]


def _asker(frame: types.FrameType | None) -> types.FrameType | None:
    """The frame of an import statement: ``tf1_imports`` may stand between it and us."""
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("estimator_bridge."):
        frame = frame.f_back
    return frame


def _stand_in(name: str, error: ModuleNotFoundError, frame: types.FrameType | None, said: set[str]) -> str | None:
    """The module to import instead of one that is gone, where the user asks."""
    gone = next((one for one in MODULES if f"{name}.".startswith(f"{one}.") and MODULES[one].target), None)
    if gone is None or not f"{name}.".startswith(f"{error.name}.") or frame is None or not _is_users(frame.f_globals):
        return None
    target = find_module_name(MODULES[gone].target) + name[len(gone) :]
    try:
        importlib.util.find_spec(target)
    except ModuleNotFoundError:
        return None
    importlib.import_module(target)
    if gone not in said:
        said.add(gone)
        warn_once(f"the module {gone} is gone; {target} stands for it", f"{frame.f_code.co_filename}:{frame.f_lineno}")
    return target


def _is_users(importer: Mapping[str, Any]) -> bool:
    return is_users(importer.get("__file__") or "")
