"""Who takes part in legacy.py and modern.py, and what both are told."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from turns import Contestant

JOBS = Path(__file__).parent / "jobs"
sys.path.append(str(JOBS))
from batches import STEPS  # noqa: E402 -- jobs are for other Pythons, too, and no package

SCRIPT = str(JOBS / "estimator_training.py")
RUNNER = (sys.executable, "-m", "estimator_bridge", "run")
BY_HAND = (sys.executable, str(JOBS / "keras_training.py"))
LEGACY, MODERN, LOOP = "legacy path", "modern path", "loop"


def arguments_of(description: str | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tf1", required=True, help="python of an environment with TensorFlow 1.15.5")
    parser.add_argument("--native", required=True, help="python of an environment with TensorFlow 2.15.1")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--models", nargs="+", choices=STEPS, default=list(STEPS))
    return parser.parse_args()


def estimators(tf1: str, native: str) -> dict[str, Contestant]:
    """The three that are Estimators."""
    commands = {"1.15.5": (tf1,), "2.15.1": (native,), LEGACY: RUNNER}
    return {name: Contestant((*command, SCRIPT)) for name, command in commands.items()}


def others() -> dict[str, Contestant]:
    """The modern path, and what one writes by hand."""
    ways = {"fit": "fit", "fit, 100": "fit-100", LOOP: "loop"}
    return {
        MODERN: Contestant((*RUNNER, "--path", "modern", SCRIPT)),
        **{name: Contestant(BY_HAND, way) for name, way in ways.items()},
    }
