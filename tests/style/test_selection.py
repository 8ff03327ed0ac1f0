"""The tables that choose where a test runs name files and tests that exist: a renamed test would run where it should not."""

from __future__ import annotations

import re

from tests import selection


def test_every_row_names_a_file_a_folder_or_a_test() -> None:
    rows = (*selection.FIRST, *selection.ONCE, *selection.SAMPLED, *selection.SLOW)
    assert [row for row in rows if not names_something(row)] == []


def names_something(row: str) -> bool:
    """Returns True if a row names a file or a folder that exists and, if it names a test, one in that file."""
    file, _, test = row.partition("::")
    path = selection.HERE / file
    defined = rf"^def {re.escape(test.partition('[')[0])}\("
    return path.exists() and (not test or bool(re.search(defined, path.read_text(encoding="utf-8"), re.MULTILINE)))
