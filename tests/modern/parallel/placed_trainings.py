"""Trains the models of ``placed_models`` on one device and on a mesh of two, and prints what differs and where variables live."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.parallel.plan import ONE_DEVICE, PlacementPlan
from tests.modern.jobs import engine, saved
from tests.modern.parallel.placed_models import CASES, Case


class _Seen(Callback):
    """Keeps the losses of a training, and the devices and bytes of its variables."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.where: dict[str, tuple[str, int]] = {}

    def begin(self, transplant: Any, step: int) -> None:
        self.where = {name: (one.device[-5:], one.numpy().nbytes) for name, one in transplant.variables.items()}

    def after(self, progress: Progress) -> bool:
        self.losses.extend(map(float, progress.losses))
        return False


def train(case: Case, folder: Path, placement: PlacementPlan, steps: int) -> _Seen:
    """Trains and returns what was seen."""
    seen = _Seen()
    options = {"placement": placement, "callbacks": lambda: [seen], **case.options}
    engine("modern", **options).train(case.make(folder), case.input_fn, steps=steps)
    return seen


def compare(case: Case, folder: Path) -> dict[str, Any]:
    """Trains without and with the plan, and goes on from both checkpoints."""
    one, placed = (train(case, folder / name, plan, 5) for name, plan in (("one", ONE_DEVICE), ("placed", case.plan)))
    different = {"trained": _different(folder / "one", folder / "placed")}
    if case.resumed:
        shutil.copytree(folder / "one", folder / "plan last")
        for name, plan in (("one", ONE_DEVICE), ("placed", ONE_DEVICE), ("plan last", case.plan)):
            train(case, folder / name, plan, 3)
        different |= {name: _different(folder / "one", folder / name) for name in ("plan last", "placed")}
    return {"losses": [one.losses, placed.losses], "where": placed.where, "different": different}


def _different(folder: Path, other: Path) -> list[str]:
    """Returns the names of the values that differ in two checkpoints, in their numbers or in being there."""
    one, two = saved(folder), saved(other)
    shared = one.keys() & two.keys()
    return sorted((one.keys() ^ two.keys()) | {name for name in shared if not np.array_equal(one[name], two[name])})


def main() -> None:
    """Prints the results of the named cases as JSON."""
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    with tempfile.TemporaryDirectory() as folder:
        results = {name: compare(CASES[name], Path(folder) / name) for name in sys.argv[1:] or CASES}
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
