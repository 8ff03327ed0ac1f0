"""Behaviour of 2019's pandas, PyYAML, Pillow and NumPy that later releases dropped, for a script that imports them.

The real TensorFlow 1.15 runs on Python 3.7, for which pandas 1.3, PyYAML 5 and NumPy 1.21 are the last. Installed
libraries see additions only: names that are missing, and arguments that would be refused.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from estimator_bridge.legacy.removed_names.pandas_columns import adapt_columns
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.patching import replaced
from estimator_bridge.runtime.user_code import is_users

_logger = logging.getLogger(__name__)
_STACKS = ("column_stack", "dstack", "hstack", "stack", "vstack")
_IN_PLACE = ("bfill", "clip", "ffill", "fillna", "interpolate", "mask", "replace", "where")
_READ_POSITIONS = ("sep", "delimiter", "header", "names", "index_col", "usecols")
_READ_DROPPED = (
    "error_bad_lines",
    "warn_bad_lines",
    "squeeze",
    "prefix",
    "mangle_dupe_cols",
    "delim_whitespace",
    "infer_datetime_format",
)


class OldLibraries(contextlib.ExitStack):
    """Adapts libraries at the script's first import of them, until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self._adapted: set[str] = set()

    def adapt(self, name: str) -> None:
        """Adapts a library that has just been imported, if it is one of those and was not adapted before.

        Args:
            name: Name in the import statement.
        """
        top = name.partition(".")[0]
        module = sys.modules.get(_MODULES.get(top, ""))
        file = getattr(module, "__file__", None)
        if file and not is_users(file) and top not in self._adapted:  # the script may have a yaml.py of its own
            self._adapted.add(top)
            _ADAPTERS[top](self, module)


def is_adapted(name: str) -> bool:
    """Returns True for the name of a library that is adapted, or of a module of it."""
    return name.partition(".")[0] in _MODULES


def old_arrays() -> contextlib.AbstractContextManager[None]:
    """While active, NumPy makes arrays of what it took before 1.24.

    ``np.array`` and ``np.asarray`` take lists of unequal lists, ``np.stack`` and its like take generators of arrays.
    """
    stacks = {name: _listed(getattr(np, name)) for name in _STACKS}
    return replaced(np, array=_ragged(np.array), asarray=_ragged(np.asarray), **stacks)


def _listed(stack: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stack)
    def of_a_list(*args: Any, **kwargs: Any) -> Any:
        if not args or hasattr(args[0], "__getitem__") or not isinstance(args[0], Iterable):
            return stack(*args, **kwargs)
        frame = sys._getframe(1)
        if is_users(frame.f_code.co_filename):
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            warn_once(f"np.{stack.__name__} of a {type(args[0]).__name__}; write np.{stack.__name__}(list(...))", place)
        return stack(list(args[0]), *args[1:], **kwargs)

    return of_a_list


def _ragged(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def array(*args: Any, **kwargs: Any) -> Any:
        try:
            return make(*args, **kwargs)
        except ValueError as error:
            frame = sys._getframe(1)
            if "inhomogeneous" not in str(error) or len(args) != 1 or kwargs or not is_users(frame.f_code.co_filename):
                raise
        warn_once("an array of lists of different lengths; write dtype=object", f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return make(args[0], dtype=object)

    return array


def _adapt_pandas(stack: OldLibraries, pandas: Any) -> None:
    if int(pandas.__version__.partition(".")[0]) < 2:
        return
    _logger.info("pandas 1 is imitated where pandas %s refuses or changes what scripts do", pandas.__version__)
    if hasattr(pandas.errors, "ChainedAssignmentError"):
        adapt_columns(stack, pandas)  # what is still an assignment without effect is better an error
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error", pandas.errors.ChainedAssignmentError)
        several = {name: _without_reference_count(getattr(pandas.DataFrame, name)) for name in _IN_PLACE}
        stack.enter_context(replaced(pandas.DataFrame, **several))
        stack.enter_context(pandas.option_context("future.infer_string", False))
    frame, series = pandas.DataFrame, pandas.Series
    for owner, names in (
        (frame, {"append": functools.partialmethod(_append, pandas), "iteritems": frame.items}),
        (series, {"append": functools.partialmethod(_append, pandas), "iteritems": series.items}),
    ):
        for name, value in names.items():
            if not hasattr(owner, name):
                setattr(owner, name, value)
                stack.callback(delattr, owner, name)
    stack.enter_context(replaced(frame, drop=_with_axis(frame.drop), values=_writable(frame.values)))
    readers = {name: _reading(getattr(pandas, name)) for name in ("read_csv", "read_table")}
    stack.enter_context(replaced(pandas, get_dummies=_with_numbers(pandas.get_dummies), **readers))


def _without_reference_count(method: Callable[..., Any]) -> Callable[..., Any]:
    """Lets ``frame[["a", "b"]].fillna(0, inplace=True)`` change a copy without a warning: it changed a copy in pandas 1, too."""

    @functools.wraps(method)
    def called(frame: Any, *args: Any, **kwargs: Any) -> Any:
        return method(frame, *args, **kwargs)

    return called


def _append(
    own: Any, pandas: Any, other: Any, ignore_index: bool = False, verify_integrity: bool = False, sort: bool = False
) -> Any:
    """Returns a frame or series with others behind it; a dictionary or series behind a frame is a row."""
    others = [
        pandas.Series(one) if isinstance(one, dict) else one for one in (other if isinstance(other, (list, tuple)) else [other])
    ]
    if isinstance(own, pandas.DataFrame):
        others = [one.to_frame().T.infer_objects() if isinstance(one, pandas.Series) else one for one in others]
        return pandas.concat([own, *others], ignore_index=ignore_index, verify_integrity=verify_integrity, sort=sort)
    return pandas.concat([own, *others], ignore_index=ignore_index, verify_integrity=verify_integrity)


def _with_axis(drop: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(drop)
    def with_axis(frame: Any, labels: Any = None, *args: Any, **kwargs: Any) -> Any:
        return drop(frame, labels, **dict(zip(("axis", "index", "columns", "level", "inplace"), args, strict=False)), **kwargs)

    return with_axis


def _writable(values: Any) -> property:
    """Lets scripts write to ``frame.values``, e.g. shuffle its rows, if no other frame shares them: then all see what pandas 1 showed."""

    def writable(frame: Any) -> Any:
        array = values.fget(frame)
        if isinstance(array, np.ndarray) and not array.flags.writeable and is_users(sys._getframe(1).f_code.co_filename):
            blocks = frame._mgr.blocks
            if len(blocks) == 1 and not blocks[0].refs.has_reference():
                array.flags.writeable = True
        return array

    return property(writable, doc=values.__doc__)


def _with_numbers(get_dummies: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(get_dummies)
    def with_numbers(*args: Any, **kwargs: Any) -> Any:
        return get_dummies(*args, **({"dtype": np.uint8} | kwargs))

    return with_numbers


def _reading(read: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(read)
    def with_old_arguments(path: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs = {**dict(zip(_READ_POSITIONS, args, strict=False)), **kwargs}
        old = {name: kwargs.pop(name) for name in _READ_DROPPED if name in kwargs}
        if old.get("error_bad_lines") is False:
            kwargs["on_bad_lines"] = "warn" if old.get("warn_bad_lines", True) else "skip"
        if old.get("delim_whitespace"):
            kwargs["sep"] = r"\s+"
        found = read(path, **kwargs)
        return found.squeeze("columns") if old.get("squeeze") else found

    return with_old_arguments


def _adapt_yaml(stack: OldLibraries, yaml: Any) -> None:
    def loading(load: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(load)
        def with_loader(stream: Any, Loader: Any = None) -> Any:  # noqa: N803 -- PyYAML's name
            return load(stream, Loader or yaml.FullLoader)

        return with_loader

    stack.enter_context(replaced(yaml, load=loading(yaml.load), load_all=loading(yaml.load_all)))


def _adapt_pillow(stack: OldLibraries, image: Any) -> None:
    if not hasattr(image, "ANTIALIAS"):
        image.ANTIALIAS = image.LANCZOS
        stack.callback(delattr, image, "ANTIALIAS")


_ADAPTERS = {"PIL": _adapt_pillow, "pandas": _adapt_pandas, "yaml": _adapt_yaml}
_MODULES = {"PIL": "PIL.Image", "pandas": "pandas", "yaml": "yaml"}
