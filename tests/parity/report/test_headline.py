from __future__ import annotations

import typing
from typing import TYPE_CHECKING

from estimator_bridge.parity.report.headline import headline
from estimator_bridge.parity.result import ParityFinding

if TYPE_CHECKING:
    from collections.abc import Callable

    from estimator_bridge.parity.result import ParityResult


def test_the_step_of_the_first_finding_is_named(different_run: ParityResult) -> None:
    assert headline(different_run) == "The two sides differ at step 2."


def test_every_level_has_its_words(make: Callable[..., ParityResult]) -> None:
    levels = typing.get_args(typing.get_type_hints(ParityFinding)["level"])
    sentences = [headline(make(verdict="different", findings=(ParityFinding(level, ""),))) for level in levels]
    assert len(set(sentences)) == len(levels)
    assert not [sentence for sentence in sentences if "in: " in sentence]


def test_a_verdict_without_findings_is_still_a_sentence(make: Callable[..., ParityResult]) -> None:
    assert headline(make(verdict="different")) == "The two sides differ."
    assert headline(make()) == "The modern path trains as the legacy path does."
    assert headline(make(verdict="not comparable")) == "The two sides could not be compared."
