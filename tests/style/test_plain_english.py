"""Docstrings are plain English: no first line, argument or attribute is a fragment."""

from __future__ import annotations

import ast

import pytest

from tests.style.plain_english import fragments, judged_lines
from tests.style.product import PACKAGE, ROOT, modules, syntax

EXEMPT = f"{PACKAGE}.legacy.contrib"


def test_the_products_docstrings_hold_no_fragments() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line.number}: {line.text}"
        for module, path in modules().items()
        if not module.startswith(EXEMPT)
        for line in fragments(syntax(path))
    ]
    assert not found, "\n".join(found)


MODULE = '''"""{first}

Args:
    name: {argument}
        which is a second line.

Returns:
    name: of what is returned, which is not judged.
"""
'''


@pytest.mark.parametrize(
    ("first", "argument", "found"),
    [
        ("Returns the layout.", "Cluster layout.", []),
        ("Whoever waits.", "Whole seconds.", []),
        ("What the launcher does.", "Cluster layout.", [1]),
        ("Returns the layout.", "of the cluster.", [4]),
        ("Whether it has ended.", "where to write.", [1, 4]),
        ("That it was.", "``of`` as a word.", [1]),
    ],
)
def test_a_fragment_is_found_by_its_line(first: str, argument: str, found: list[int]) -> None:
    tree = ast.parse(MODULE.format(first=first, argument=argument))
    assert [line.number for line in judged_lines(tree)] == [1, 4]
    assert [line.number for line in fragments(tree)] == found
