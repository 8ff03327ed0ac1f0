"""Hooks that feed, write, save, train and read on see and leave what they saw and left with TensorFlow 1.15.5."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.running import ROOT, estimator_bridge_command

FOLDER = ROOT / "tests/golden/hooks"
RECORDED = json.loads((FOLDER / "recorded.json").read_text(encoding="utf-8"))


SAMPLE = (
    *("assigned", "fed now and then", "initialised iterators", "one after the other", "one after the other in a hook"),
    *("read on", "train ops", "updates", "updates in a hook"),
)


def check(path: str, cases: tuple[str, ...], folder: Path) -> None:
    script, results = FOLDER / "train.py", folder / "results.json"
    ended = estimator_bridge_command(
        "run", "--path", path, script, "--", results, *cases, cwd=folder, PYTHONDONTWRITEBYTECODE="1"
    )
    assert ended.code == 0, ended.err[-4000:]
    seen = json.loads(results.read_text(encoding="utf-8"))
    for case in cases:
        calls = RECORDED[case]
        assert [call[0] for call in seen[case]] == [call[0] for call in calls], case
        for actual, expected in zip(seen[case], calls, strict=True):
            for one, other in zip(actual[1:], expected[1:], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=f"{case}: {expected[0]}")


def test_hooks_see_what_they_saw_with_tensorflow_1(tmp_path: Path) -> None:
    check("modern", SAMPLE, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["legacy", "modern"])
def test_every_hook_sees_what_it_saw_with_tensorflow_1(path: str, tmp_path: Path) -> None:
    check(path, tuple(RECORDED), tmp_path)
