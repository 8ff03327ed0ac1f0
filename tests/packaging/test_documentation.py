"""The pages' handwritten lists agree with the code."""

from __future__ import annotations

import re
import typing

from estimator_bridge.parity import result
from tests.packaging.conftest import ROOT

COMPARING = (ROOT / "docs" / "how-to" / "compare.md").read_text(encoding="utf-8")


def first_columns(text: str, heading: str) -> list[str]:
    """Returns the first cells of the table under a heading."""
    section = text.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]
    return re.findall(r"^\| ([^|]+?) \|", section, flags=re.MULTILINE)[1:]


def test_every_level_is_explained_in_its_order() -> None:
    levels = typing.get_type_hints(result.ParityFinding)["level"]
    assert first_columns(COMPARING, "What is compared") == list(typing.get_args(levels))


def test_every_verdict_is_listed_with_its_exit_code() -> None:
    pages = COMPARING + (ROOT / "docs" / "how-to" / "other-comparisons.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z ]+) \| (\d) \|", pages, flags=re.MULTILINE)
    assert {verdict: int(code) for verdict, code in rows} == dict(result.EXIT_CODES)


def test_the_default_thresholds_are_the_ones_named() -> None:
    named = re.search(r"`rel_diff` up to (\S+), `abs_diff` up to (\S+), and (\S+)\s+for variables", COMPARING)
    assert named is not None
    assert result.Thresholds(*map(float, named.groups())) == result.Thresholds()
