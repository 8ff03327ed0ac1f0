from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.parity.report import text


@settings(max_examples=30, deadline=None)
@given(st.text())
def test_what_is_visible_can_be_encoded_and_steers_nothing(foreign: str) -> None:
    shown = text.visible(foreign)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.encode("utf-8").decode("utf-8") == shown


def test_lone_surrogates_become_escapes() -> None:
    assert text.visible("\udc80") == "\\udc80"


@settings(max_examples=30, deadline=None)
@given(st.text(), st.integers(3, 30))
def test_what_is_shortened_keeps_its_ends(foreign: str, length: int) -> None:
    short = text.shorten(foreign, length)
    assert len(short) <= length
    assert short == foreign or len(foreign) > length
    assert short[: (length - 3) // 2] == foreign[: (length - 3) // 2]
