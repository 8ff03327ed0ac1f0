"""The pages are the tables: change a row, run ``python docs/reference/config/generate.py``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.compat.config.checks import CHECKS
from estimator_bridge.compat.config.decisions import DECISIONS
from estimator_bridge.compat.config.tables import ALL

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "reference" / "config"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("generate_config_pages", FOLDER / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: dict[str, str] = module.pages()
    return made


def test_the_pages_are_in_step(pages: dict[str, str]) -> None:
    assert {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.md")} == pages


def test_every_row_is_on_its_page_and_counted(pages: dict[str, str]) -> None:
    for table in ALL:
        page = pages[f"{table.name}.md"]
        assert f"{len(table)} rows" in page
        assert all(f"| `{rule.name}` |" in page for rule in table)
    assert all(f"`{row.name}`" in pages["strategies.md"] for row in DECISIONS)
    assert all(f"`{check.name}`" in pages["silent_traps.md"] for check in CHECKS)
