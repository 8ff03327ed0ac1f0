"""From TensorFlow 1.15.5's checkpoint and batches, both paths follow its losses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.parity.result import Thresholds

TESTS = Path(__file__).parent.parent


def run(path: str, example: str, model_dir: Path) -> dict[str, Any]:
    golden = TESTS / "golden" / example
    command = ["run", "--path", path, str(TESTS / "data" / "golden_job.py"), example, str(golden), str(model_dir)]
    done = subprocess.run([sys.executable, "-m", "estimator_bridge", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("path", ["legacy", "modern"])
@pytest.mark.parametrize("example", ["digits", "wide_deep"])
def test_fifty_steps_follow_tensorflow_1_15_5(path: str, example: str, tmp_path: Path) -> None:
    outcome = run(path, example, tmp_path / "model")
    golden = json.loads((TESTS / "golden" / example / "losses.json").read_text())
    metrics = json.loads((TESTS / "golden" / example / "metrics.json").read_text())

    assert len(outcome["losses"]) == len(golden) == 50
    equal = Thresholds()
    outside = [step for step, pair in enumerate(zip(golden, outcome["losses"], strict=True), 1) if not equal.accept(*pair)]
    assert outside == []
    assert max(outcome["differences"].values()) <= 1e-5, outcome["differences"]
    for moment in ("initial", "final"):
        assert outcome[moment].keys() == metrics[moment].keys()
        for name, value in metrics[moment].items():
            assert outcome[moment][name] == pytest.approx(value, rel=1e-5, abs=2e-6), (moment, name)
