"""The tutorial shows what its commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.tutorial import PAGE, blocks, lines_without_numbers, refreshed


@pytest.mark.slow
@pytest.mark.once
def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    page = PAGE.read_text()
    assert len(blocks(page)) == 5
    now = blocks(refreshed(page, tmp_path))
    for (command, shown), (_, output) in zip(blocks(page), now, strict=True):
        assert lines_without_numbers(output) == lines_without_numbers(shown), command
