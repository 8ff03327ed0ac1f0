"""Training goes on in its data where it stopped; TensorFlow 2.15's own class passes the same."""

from collections.abc import Callable
from pathlib import Path

Run = Callable[..., str]


def test_an_estimator_goes_on_in_its_data(run_python: Run, tmp_path: Path) -> None:
    run_python("input_checkpoints.py", "going_on", tmp_path)
