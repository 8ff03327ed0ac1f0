"""Hooks that feed, write, save, train and read on see and leave what they saw and left with TensorFlow 1.15.5."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.running import ROOT, estimator_bridge_command

FOLDER = ROOT / "tests/golden/hooks"
RECORDED = json.loads((FOLDER / "recorded.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [pytest.param("legacy", marks=pytest.mark.slow), "modern"])
def test_hooks_see_what_they_saw_with_tensorflow_1(path: str, tmp_path: Path) -> None:
    script, results = FOLDER / "train.py", tmp_path / "results.json"
    ended = estimator_bridge_command("run", "--path", path, script, "--", results, cwd=tmp_path, PYTHONDONTWRITEBYTECODE="1")
    assert ended.code == 0, ended.err[-4000:]
    seen = json.loads(results.read_text(encoding="utf-8"))
    for case, calls in RECORDED.items():
        assert [call[0] for call in seen[case]] == [call[0] for call in calls], case
        for actual, expected in zip(seen[case], calls, strict=True):
            for one, other in zip(actual[1:], expected[1:], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=f"{case}: {expected[0]}")
