"""Changes of a frame's column, which pandas 1 and 2 wrote to the frame, and pandas 3 does to a copy."""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from estimator_bridge.runtime.patching import replaced, wrapped
from estimator_bridge.runtime.user_code import is_users

_IN_PLACE = ("bfill", "clip", "ffill", "fillna", "interpolate", "mask", "replace", "where")
"""Methods of a column that change it if they are called with ``inplace=True``, and keep its length."""
_INDEXERS = ("loc", "iloc", "at", "iat")
_FRAME = "_estimator_bridge_frame"


def adapt_columns(stack: contextlib.ExitStack, pandas: Any) -> None:
    """Lets a script change a frame by its column, as in ``frame["a"].fillna(0, inplace=True)`` and ``frame["a"].loc[0] = 1``.

    Columns that other packages take from a frame are theirs, and stay copies.

    Args:
        stack: Stack whose end takes it back.
        pandas: Module of pandas, 3 or later.
    """
    series = pandas.Series
    stack.enter_context(wrapped(pandas.DataFrame, __getitem__=_column))
    stack.enter_context(wrapped(series, __setitem__=_then_written, update=_then_written))
    stack.enter_context(replaced(series, **{name: _in_place(getattr(series, name)) for name in _IN_PLACE}))
    indexers = {type(getattr(series([0]), name)) for name in _INDEXERS}
    for setter in {
        vars(base)["__setitem__"]: base for cls in indexers for base in cls.__mro__ if "__setitem__" in vars(base)
    }.values():
        stack.enter_context(wrapped(setter, __setitem__=_item_then_written))


def _column(original: Callable[..., Any], frame: Any, key: Any) -> Any:
    """Returns what a key gives; a script's column knows its frame."""
    column = original(frame, key)
    caller = sys._getframe(2)
    if caller.f_code.co_name == "__getattr__" and caller.f_back is not None:  # pandas looks up frame.a by its name
        caller = caller.f_back
    if getattr(column, "ndim", 0) == 1 and is_users(caller.f_code.co_filename):
        object.__setattr__(column, _FRAME, (weakref.ref(frame), key))
    return column


@contextlib.contextmanager
def _written(column: Any) -> Iterator[None]:
    """Writes a column that changes to the frame that it was taken from, if that is still there.

    Raises:
        ValueError: The frame has another column in its place by now, which pandas 1 may have changed or not.
    """
    frame, key = vars(column).get(_FRAME, (lambda: None, None))
    owner = frame()
    if owner is not None and isinstance(column.dtype, np.dtype) and not np.shares_memory(owner[key], column):
        raise ValueError(
            f"The column {key!r} changes, and its frame has another one in its place by now: use frame.loc[rows, {key!r}]."
        )
    yield
    if owner is not None and len(owner) == len(column):
        owner[key] = column


def _then_written(original: Callable[..., Any], column: Any, *args: Any, **kwargs: Any) -> Any:
    with _written(column):
        return original(column, *args, **kwargs)


def _item_then_written(original: Callable[..., Any], indexer: Any, *args: Any) -> None:
    if _FRAME in vars(indexer.obj):
        held = indexer.obj  # by one name more, so that pandas does not see an assignment without effect
        with _written(held):
            original(indexer, *args)
    else:
        original(indexer, *args)


def _in_place(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def in_place(column: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("inplace") or _FRAME not in vars(column):
            return method(column, *args, **kwargs)
        with _written(column):
            column._update_inplace(method(column, *args, **kwargs | {"inplace": False}))
        return None

    return in_place
