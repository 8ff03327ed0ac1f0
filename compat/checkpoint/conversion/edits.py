"""Edits of a draft that a user requests: to rename, drop or partition variables, or to give them their averages' values."""

import re
from collections.abc import Callable, Iterable, Sequence

from estimator_bridge.compat.checkpoint.errors import SEE_NAMES, NamingError
from estimator_bridge.compat.checkpoint.names.naming import is_object, slot_of
from estimator_bridge.compat.checkpoint.request import compiled
from estimator_bridge.compat.checkpoint.slots import SHADOW
from estimator_bridge.compat.checkpoint.writing.draft import Draft


def keep(draft: Draft, objects: bool) -> None:
    """Drops every name but those of an object graph, or just these."""
    draft.drop([name for name in draft.entries if is_object(name) != objects])


def rename(draft: Draft, rules: Sequence[tuple[str, str]]) -> int:
    """Applies regular expressions and replacements to TF1's names, one after the other; slots follow their variables.

    Returns:
        The number of names that changed.

    Raises:
        NamingError: Two names become one, or a rule is no regular expression.
    """
    if not rules:
        return 0
    patterns = [(compiled(pattern), replacement) for pattern, replacement in rules]

    def substituted(name: str) -> str:
        for pattern, replacement in patterns:
            name = pattern.sub(replacement, name)
        return name

    def renamed(name: str) -> str:
        if is_object(name):
            return name
        new, slot = substituted(name), slot_of(name, draft.entries)
        if new != name or slot is None:
            return new
        before, variable, after = name.partition(slot.variable)  # ``^dense/kernel$`` does not find dense/kernel/Adam
        return before + substituted(variable) + after

    try:
        return draft.rename(renamed)
    except (re.error, IndexError) as error:
        raise NamingError(
            "A replacement of --rename cannot be used.",
            received=f"{rules}: {error}",
            fix="Refer only to groups of REGEX, e.g. \\1; write a backslash as \\\\.",
        ) from None


def drop(draft: Draft, patterns: Iterable[str]) -> None:
    """Leaves out every name that one of some regular expressions finds.

    Raises:
        NamingError: A pattern finds nothing.
    """
    for pattern in patterns:
        draft.drop(_found(draft.entries, pattern, compiled(pattern).search))


def use_averages(draft: Draft) -> None:
    """Gives each ExponentialMovingAverage its variable's name, and leaves the variable's own value out.

    Raises:
        NamingError: There are none.
    """
    shadows = _shadows(draft)
    draft.drop(shadows.values())
    draft.rename(lambda name: shadows.get(name, name))


def swap_averages(draft: Draft) -> None:
    """Swaps the names of each variable and its ExponentialMovingAverage.

    The ``swapping_saver`` of tf.contrib's MovingAverageOptimizer writes averages under the names of the variables; a checkpoint does
    not show that.

    Raises:
        NamingError: There are none.
    """
    shadows = _shadows(draft)
    places = shadows | {variable: name for name, variable in shadows.items()}
    draft.rename(lambda name: places.get(name, name))


def _shadows(draft: Draft) -> dict[str, str]:
    slots = {name: slot_of(name, draft.entries) for name in draft.entries}
    shadows = {name: slot.variable for name, slot in slots.items() if slot and slot.optimizer == SHADOW}
    if not shadows:
        raise NamingError("The checkpoint has no moving averages.", expected=f"variables named .../{SHADOW}")
    return shadows


def partition(draft: Draft, rules: Sequence[tuple[str, int]]) -> None:
    """Cuts variables and their slots into slices.

    Args:
        draft: Draft to change.
        rules: Regular expressions of whole names, and the number of slices, 1 for a whole variable.

    Raises:
        NamingError: A pattern finds nothing, or a variable has fewer rows than slices.
        UnsupportedError: A variable is a scalar, or has strings.
    """
    for pattern, num_shards in rules:
        names = [name for name in draft.entries if not is_object(name)]
        for variable in _found(names, pattern, compiled(pattern).fullmatch):
            shape = draft.entries[variable].shape
            followers = [n for n, e in draft.entries.items() if n.startswith(f"{variable}/") and e.shape == shape]
            for name in {variable, *followers}:
                draft.split(name, num_shards)


def _found(names: Iterable[str], pattern: str, test: Callable[[str], object]) -> list[str]:
    """Returns the names that pass a test of a pattern; there must be one."""
    found = [name for name in names if test(name)]
    if not found:
        raise NamingError("No variable has such a name.", received=pattern, fix=SEE_NAMES)
    return found
