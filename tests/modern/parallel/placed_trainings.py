"""Trains models on one device and on a mesh of two, and prints what differs, what lives where, and what the plan had estimated.

Arguments are names of models in ``placed_models``, or "surface" for all models of ``tests/modern/surface``. With "strategy" it prints
where variables live that a strategy with one replica makes.
"""

from __future__ import annotations

import functools
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.parallel.mesh import Mesh
from estimator_bridge.modern.parallel.placement import Placer
from estimator_bridge.modern.parallel.plans.plan import ONE_DEVICE, PlacementPlan, PlaceRule
from estimator_bridge.modern.planning import EndOfPlanning, PlanningEngine
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.parity.recording import randomness
from estimator_bridge.runtime.estimator_calls import methods
from tests.modern.jobs import ModelFn, engine, estimator, saved, with_plan
from tests.modern.parallel.placed_models import CASES, Case


class _Seen(Callback):
    """Keeps the losses of a training, and the devices and bytes of its variables."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.where: dict[str, tuple[str, int]] = {}

    def begin(self, transplant: Any, step: int) -> None:
        self.where = {name: (one.device[-5:], _size(one)) for name, one in transplant.variables.items()}

    def after(self, progress: Progress) -> bool:
        self.losses.extend(map(float, progress.losses))
        return False


def _size(variable: Any) -> int:
    """Returns the bytes of a variable's value; strings do not count."""
    value = np.asarray(variable.numpy())
    return value.nbytes if value.dtype.kind in "biufc" else 0


class _Reader(tf.compat.v1.train.SessionRunHook):
    """Reads a tensor with every step, so that each step runs as a call of a session."""

    def before_run(self, run_context: Any) -> Any:
        product = next(op for op in run_context.session.graph.get_operations() if op.type == "MatMul").outputs[0]
        return tf.compat.v1.train.SessionRunArgs(product)


def train(case: Case, folder: Path, placement: PlacementPlan, steps: int) -> _Seen:
    """Trains and returns what was seen."""
    seen = _Seen()
    tf.keras.utils.set_random_seed(7)  # of Keras' initialisers
    options = {"placement": placement, "callbacks": lambda: [seen], **case.options}
    hooks = [_Reader()] if case.hooked else None
    engine("modern", **options).train(case.make(folder), case.input_fn, steps=steps, hooks=hooks)
    return seen


def compare(case: Case, folder: Path) -> dict[str, Any]:
    """Trains without and with the plan, and goes on from both checkpoints."""
    one, placed = (train(case, folder / name, plan, 5) for name, plan in (("one", ONE_DEVICE), ("placed", case.plan)))
    different = {"trained": _different(folder / "one", folder / "placed", case.rounds)}
    if case.resumed:
        shutil.copytree(folder / "one", folder / "plan last")
        for name, plan in (("one", ONE_DEVICE), ("placed", ONE_DEVICE), ("plan last", case.plan)):
            train(case, folder / name, plan, 3)
        different |= {name: _different(folder / "one", folder / name, case.rounds) for name in ("plan last", "placed")}
    estimated = estimate(case, folder / "planned")
    losses = [one.losses, placed.losses]
    return {"losses": losses, "rounds": case.rounds, "where": placed.where, "different": different, "estimated": estimated}


def estimate(case: Case, folder: Path) -> Any:
    """Returns what ``estimator-bridge plan`` prints as JSON."""
    engine_of_plan = PlanningEngine(**with_plan({"placement": case.plan, **case.options}))
    try:
        methods(engine_of_plan)["train"](case.make(folder), case.input_fn, steps=1)
    except EndOfPlanning as end:
        assert not folder.exists(), "something was written"
        return end.found.as_dict()
    raise AssertionError("the plan was not estimated")


def _different(folder: Path, other: Path, rounds: bool) -> list[str]:
    """Returns the names of the values that differ in two checkpoints, in their numbers or in being there; rounding counts unless ``rounds``."""
    one, two = saved(folder), saved(other)
    shared = one.keys() & two.keys()
    return sorted((one.keys() ^ two.keys()) | {name for name in shared if not _are_alike(one[name], two[name], rounds)})


def _are_alike(one: Any, two: Any, rounds: bool) -> bool:
    if not (rounds and np.issubdtype(one.dtype, np.floating)):
        return np.array_equal(one, two)
    return np.allclose(one, two, 0, 1e-6 * np.abs(one).max())


def of_a_strategy() -> list[str]:
    """Returns the device of each variable of a model on two devices, slots included, as a worker has it."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with tempfile.TemporaryDirectory() as folder:
        model = model_graph.build(CASES["adam"].make(Path(folder)), CASES["adam"].input_fn, model_graph.TRAIN, None)
        place = Placer(PlacementPlan(2, (PlaceRule("embedding", 1),)), Mesh(("/device:CPU:0", "/device:CPU:1")))
        with strategy.scope():
            made = Transplant(model, place=place).variables
    return sorted(f"{name} {one.values[0].device[-5:]}" for name, one in made.items() if hasattr(one, "values"))


def surface_models() -> dict[str, ModelFn]:
    """Returns the models that cover what scripts write."""
    from tests.modern.surface import building, flow, optimizing

    return building.MODELS | flow.MODELS | optimizing.MODELS


def main() -> None:
    """Prints the results of the named cases as JSON."""
    devices = max((CASES[name].plan.devices for name in sys.argv[1:] if name in CASES), default=2)
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * devices
    )
    if sys.argv[1:] == ["strategy"]:
        sys.stdout.write(json.dumps(of_a_strategy()))
        return
    cases = CASES
    if sys.argv[1:] == ["surface"]:
        randomness.equalise()
        cases = {name: Case(functools.partial(estimator, model)) for name, model in surface_models().items()}
    with tempfile.TemporaryDirectory() as folder:
        chosen = [name for name in cases if name in sys.argv[1:]] or list(cases)
        results = {name: compare(cases[name], Path(folder) / str(number)) for number, name in enumerate(chosen)}
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
