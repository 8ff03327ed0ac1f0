"""Variables are paired by name, shape and order, and never guessed."""

from __future__ import annotations

import pytest

from estimator_bridge.compat.checkpoint.errors import NamingError
from estimator_bridge.compat.checkpoint.matching import Matching, Named, match


def named(**shapes: tuple[int, ...]) -> list[Named]:
    return [Named(name.replace("__", "/"), name.replace("__", "/"), shape, 1) for name, shape in shapes.items()]


def pairs(result: Matching) -> dict[str, tuple[str, str]]:
    return {pair.source: (pair.target, pair.how) for pair in result.matches}


def test_equal_names_first() -> None:
    result = match(named(dense__kernel=(4, 4), dense_1__kernel=(4, 4)), named(dense_1__kernel=(4, 4), dense__kernel=(4, 4)))
    assert pairs(result) == {"dense/kernel": ("dense/kernel", "name"), "dense_1/kernel": ("dense_1/kernel", "name")}


def test_endings_of_names_across_scopes() -> None:
    result = match(
        named(m__h__kernel=(4, 4), m__o__kernel=(4, 4)), named(sequential__o__kernel=(4, 4), sequential__h__kernel=(4, 4))
    )
    assert pairs(result) == {
        "m/h/kernel": ("sequential/h/kernel", "end of name"),
        "m/o/kernel": ("sequential/o/kernel", "end of name"),
    }


def test_a_shape_that_occurs_once() -> None:
    result = match(named(w=(3, 5), b=(5,)), named(layer__kernel=(3, 5), layer__bias=(5,)))
    assert {how for _, how in pairs(result).values()} == {"shape"}


def test_equal_shapes_without_a_name_are_refused() -> None:
    result = match(named(a=(4, 4), b=(4, 4)), named(x=(4, 4), y=(4, 4)))
    assert result.matches == ()
    assert result.ambiguous == {"x": ("a", "b"), "y": ("a", "b")}


def test_order_of_creation_only_when_accepted() -> None:
    sources = named(fc_10__w=(4, 4), fc__w=(4, 4), fc_2__w=(4, 4))
    targets = named(first=(4, 4), second=(4, 4), third=(4, 4))
    assert pairs(match(sources, targets, accept_order=True)) == {
        "fc/w": ("first", "order"),
        "fc_2/w": ("second", "order"),
        "fc_10/w": ("third", "order"),
    }


def test_what_is_left_is_listed() -> None:
    result = match(named(a=(1,), b=(2,)), named(c=(2,), d=(3,)))
    assert (result.unmatched_sources, result.unmatched_targets) == (("a",), ("d",))


def test_pairs_by_hand() -> None:
    result = match(named(a=(4, 4), b=(4, 4)), named(x=(4, 4), y=(4, 4)), {"a": "y"})
    assert pairs(result) == {"a": ("y", "map"), "b": ("x", "shape")}
    with pytest.raises(NamingError, match="not there"):
        match(named(a=(1,)), named(x=(1,)), {"z": "x"})
    with pytest.raises(NamingError, match="different shapes"):
        match(named(a=(1,)), named(x=(2,)), {"a": "x"})
