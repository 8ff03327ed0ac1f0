"""Contestants of legacy.py and modern.py, and the command line of both."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from turns import Contestant

JOBS = Path(__file__).parent / "jobs"
sys.path.append(str(JOBS))
from batches import STEPS  # noqa: E402 -- jobs are for other Pythons, too, and no package

SCRIPT = str(JOBS / "estimator_training.py")
RUNNER = (sys.executable, "-m", "estimator_bridge", "run")
BY_HAND = (sys.executable, str(JOBS / "keras_training.py"))
LEGACY, MODERN, LOOP = "legacy path", "modern path", "loop"
VARIANTS = {"jit": "--jit-compile", "mixed": "--mixed-precision"}


def parser_of(description: str | None, pythons: bool = True) -> argparse.ArgumentParser:
    """Returns the parser of the command line; with ``pythons``, the Pythons of both native Estimators are required."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tf1", required=pythons, help="python of an environment with TensorFlow 1.15.5")
    parser.add_argument("--native", required=pythons, help="python of an environment with TensorFlow 2.15.1")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--models", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--gpu", action="store_true", help="do not hide GPUs from the contestants")
    return parser


def estimators(tf1: str | None, native: str | None) -> dict[str, Contestant]:
    """Returns the contestants that are Estimators and have a Python."""
    commands = {"1.15.5": (tf1,), "2.15.1": (native,), LEGACY: RUNNER}
    return {name: Contestant((*command, SCRIPT)) for name, command in commands.items() if command != (None,)}


def others(variants: Sequence[str] = ()) -> dict[str, Contestant]:
    """Returns the modern path, the requested ``VARIANTS`` of it, and the trainings written by hand."""
    ways = {"fit": "fit", "fit, 100": "fit-100", LOOP: "loop"}
    flags = {MODERN: (), **{f"{MODERN}, {variant}": (VARIANTS[variant],) for variant in variants}}
    return {
        **{name: Contestant((*RUNNER, "--path", "modern", *added, SCRIPT)) for name, added in flags.items()},
        **{name: Contestant(BY_HAND, way) for name, way in ways.items()},
    }
