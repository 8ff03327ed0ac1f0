"""The tables that choose where a test runs name files and tests that exist: a renamed test would run where it should not."""

from __future__ import annotations

import re

import pytest

from tests import selection


@pytest.mark.parametrize("row", [*selection.FIRST, *selection.ONCE, *selection.SAMPLED, *selection.SLOW])
def test_every_row_names_a_file_a_folder_or_a_test(row: str) -> None:
    file, _, test = row.partition("::")
    path = selection.HERE / file
    assert path.exists()
    if test:
        name = re.escape(test.partition("[")[0])
        assert re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE)
