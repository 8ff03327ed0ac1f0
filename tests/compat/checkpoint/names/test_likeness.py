"""Names that probably belong together are offered before the order of creation."""

from __future__ import annotations

import pytest

from estimator_bridge.compat.checkpoint.names.likeness import likely_order

CROSS = [f"cross_layer/cross_{part}{number}" for number in range(3) for part in ("weight", "bias")]
KERAS = [f"cross{number}/{part}" for number in ("", "_1", "_2") for part in ("kernel", "bias")]
WIDE = [f"linear/linear_model/{column}/weights" for column in ("age_X_education_X_job", "education_X_job", "job")]


@pytest.mark.parametrize(
    ("sources", "targets", "expected"),
    [
        (CROSS, KERAS, KERAS),
        (CROSS, [*KERAS[::2], *KERAS[1::2]], KERAS),
        (WIDE, ["wide_job/embeddings", "wide_education_x_job/embeddings", "wide_age_x_education_x_job/embeddings"], None),
        (["dense/kernel", "dense_1/kernel"], ["fc/kernel", "dense_out/kernel"], ["fc/kernel", "dense_out/kernel"]),
        (["m/dense", "m/dense_1"], ["dense_1", "dense_2"], ["dense_1", "dense_2"]),
        (["a/user/w", "b/item/w"], ["item_tower/kernel", "user_tower/kernel"], None),
        (["encoder/w", "decoder/w"], ["x", "y"], ["x", "y"]),
        ([], [], []),
    ],
    ids=[
        "numbers",
        "grouped by kind",
        "crossed columns",
        "one word by chance",
        "other numbers",
        "towers",
        "no likeness",
        "none",
    ],
)
def test_words_decide_before_the_order(sources: list[str], targets: list[str], expected: list[str] | None) -> None:
    here, there = likely_order(sources, targets)
    assert here == sorted(here), "the old script's order stays"
    assert [targets[place] for place in there] == (targets[::-1] if expected is None else expected)


def test_names_without_a_counterpart_come_last() -> None:
    assert likely_order(["a/user", "b/item", "c/age"], ["new_item"]) == ([1, 0, 2], [0])
    assert likely_order(["b/item"], ["new_user", "new_item"]) == ([0], [1, 0])
