"""Progress: a line a minute, and bars on a terminal."""

from __future__ import annotations

import time

import pytest

from estimator_bridge.parity.progress import progress_display


def test_a_line_a_minute_tells_steps_and_time_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with progress_display() as watch:
        watch("legacy", {"event": "train", "max_steps": 1000})
        for step in range(1, 203):  # one second each
            now += 1.0
            watch("legacy", {"event": "step", "step": step, "loss": 0.25})
        watch("legacy", {"event": "judging"})
        now += 60.0
        watch("legacy", {"event": "judging"})
    assert capsys.readouterr().err.splitlines() == [
        "estimator-bridge: legacy: step 60 of 1000, loss 0.25, about 16 min left",
        "estimator-bridge: legacy: step 120 of 1000, loss 0.25, about 15 min left",
        "estimator-bridge: legacy: step 180 of 1000, loss 0.25, about 14 min left",
        "estimator-bridge: both sides have ended; now their values are compared",
    ]


def test_a_training_of_unknown_length_has_no_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with progress_display() as watch:
        watch("modern", {"event": "train", "max_steps": None})
        now = 61.0
        watch("modern", {"event": "step", "step": 7, "loss": float("nan")})
    assert capsys.readouterr().err == "estimator-bridge: modern: step 7, loss nan\n"


def test_a_long_evaluation_is_not_silent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with progress_display() as watch:
        watch("legacy", {"event": "train", "max_steps": 3})
        watch("legacy", {"event": "step", "step": 3, "loss": 0.25})
        for _ in range(125):  # one second each
            now += 1.0
            watch("legacy", {"event": "alive"})
    assert capsys.readouterr().err.splitlines() == [
        "estimator-bridge: legacy: it runs; 1 min since step 3",
        "estimator-bridge: legacy: it runs; 2 min since step 3",
    ]


def test_a_training_that_makes_steps_tells_these(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """``--steps 100`` leaves fewer steps than the script asks for."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with progress_display() as watch:
        watch("legacy", {"event": "train", "max_steps": 1000, "left": 100})
        for tick in range(1, 623):  # a step each second, and a look each tenth of it
            now += 0.1
            watch("legacy", {"event": "alive"})
            if tick % 10 == 3:
                watch("legacy", {"event": "step", "step": tick // 10 + 1, "loss": 0.5})
    assert capsys.readouterr().err == "estimator-bridge: legacy: step 61 of 100, loss 0.5, about 1 min left\n"


def test_a_run_that_only_some_comparisons_need_has_its_bar_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the stream for a terminal
    with progress_display(("legacy",)) as watch:
        watch("shaken", {"event": "train", "max_steps": 2})
        watch("shaken", {"event": "step", "step": 1, "loss": 0.25})
    assert "shaken" in capsys.readouterr().err
