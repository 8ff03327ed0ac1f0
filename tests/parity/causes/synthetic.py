"""Evidence of two trainings of a linear regression, computed by hand in float64 with NumPy."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from estimator_bridge.parity.evidence import Evidence, OptimizerEvidence, SideEvidence, StepEvidence

ROWS, INPUTS = 8, 5
STEPS = 5
RANDOM = np.random.RandomState(4)
X = RANDOM.randn(STEPS, ROWS, INPUTS)
Y = RANDOM.randn(STEPS, ROWS)
KERNEL, BIAS = RANDOM.randn(INPUTS), np.array([0.3])


@dataclasses.dataclass(frozen=True)
class Training:
    """Minimizes ``scale * mean((x . kernel + bias - y) ** 2) + l2 / 2 * sum(kernel ** 2) + l1 * sum(|kernel|)``.

    Attributes:
        scale, l2, l1: Numbers of the loss.
        offset: Constant that is added to the loss alone.
        shift: Number that is added to each prediction: another forward pass.
        multiplier: Factor of all gradients.
        rates: Learning rate of each step.
        momentum: Momentum; 0 for none.
        dampening: Factor of a gradient in the velocity.
        clip: Largest norm of all gradients; None to leave them.
        frozen: Variable that gets no gradient.
        decay: Share of the kernel that each step takes off, outside of the gradients.
        average: Share of a batch in the moving average.
        epsilon: Epsilon of a step ``rate * gradient / (|gradient| + epsilon)``, the first one of Adam; None for plain steps.
        hyperparameters: Further hyperparameters that the optimizer says it has.
        name: Name of the optimizer.
    """

    scale: float = 1.0
    l2: float = 0.0
    l1: float = 0.0
    offset: float = 0.0
    shift: float = 0.0
    multiplier: float = 1.0
    rates: tuple[float, ...] = (0.1,) * STEPS
    momentum: float = 0.0
    dampening: float = 1.0
    clip: float | None = None
    frozen: str = ""
    decay: float = 0.0
    average: float = 0.1
    epsilon: float | None = None
    hyperparameters: tuple[tuple[str, float], ...] = ()
    name: str = "SGD"

    def step(self, index: int, values: dict[str, Any]) -> tuple[float, dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Returns the loss, the gradients, those after clipping, and the values after step ``index``, from 0."""
        x, y, kernel = X[index], Y[index], values["kernel"]
        error = x @ kernel + values["bias"] + self.shift - y
        loss = self.scale * np.mean(error**2) + self.l2 / 2 * np.sum(kernel**2) + self.l1 * np.sum(np.abs(kernel)) + self.offset
        gradients = {
            "kernel": self.scale * 2 / ROWS * x.T @ error + self.l2 * kernel + self.l1 * np.sign(kernel),
            "bias": self.scale * 2 / ROWS * np.sum(error, keepdims=True),
        }
        gradients = {name: self.multiplier * value for name, value in gradients.items() if name != self.frozen}
        norm = np.sqrt(sum(np.sum(value**2) for value in gradients.values()))
        factor = 1.0 if self.clip is None else min(1.0, self.clip / norm)
        applied = {name: factor * value for name, value in gradients.items()}
        after = dict(values)
        for name, gradient in applied.items():
            velocity = self.momentum * values[f"{name}/Momentum"] + self.dampening * gradient
            step = velocity if self.epsilon is None else velocity / (np.abs(velocity) + self.epsilon)
            after[f"{name}/Momentum"] = velocity
            after[name] = values[name] - self.rates[index] * step
        after["kernel"] = after["kernel"] - self.decay * kernel
        after["mean"] = values["mean"] + self.average * (np.mean(x) - values["mean"])
        return float(loss), gradients, applied, after


def evidence(
    old: Training, new: Training, here: dict[str, Any] | None = None, there: dict[str, Any] | None = None, **fields: Any
) -> Evidence:
    """Returns the evidence of two trainings; the new one begins each step from the old one's values.

    Args:
        old, new: Trainings.
        here, there: Further fields of the old and of the new ``SideEvidence``.
        fields: Further fields of ``Evidence``.
    """
    values: dict[str, Any] = {"kernel": KERNEL, "bias": BIAS, "mean": np.array([0.7, 0.2])}
    values |= {f"{name}/Momentum": np.zeros_like(values[name]) for name in ("kernel", "bias")}
    steps: tuple[list[StepEvidence], list[StepEvidence]] = ([], [])
    losses: tuple[list[float], list[float]] = ([], [])
    for index in range(STEPS):
        results = [side.step(index, values) for side in (old, new)]
        for side, (loss, gradients, applied, after), kept, curve in zip((old, new), results, steps, losses, strict=True):
            curve.append(loss)
            numbers = dict(side.hyperparameters) | {"learning_rate": side.rates[index]}
            numbers |= {"momentum": side.momentum} if side.momentum else {}
            optimizer = OptimizerEvidence(side.name, "tf1", numbers, index + 1, ("kernel", "bias"))
            kept.append(
                StepEvidence(
                    index + 1,
                    loss,
                    functools.partial(dict, gradients),
                    functools.partial(dict, values),
                    functools.partial(dict, after),
                    (optimizer,),
                    functools.partial(dict, applied),
                )
            )
        values = results[0][3]
    sides = []
    for side, kept, curve, more in zip((old, new), steps, losses, (here, there), strict=True):
        fields_of_side: dict[str, Any] = {
            "steps": tuple(kept[:3]),
            "losses": tuple(curve),
            "trainable": ("kernel", "bias"),
            "moving_averages": ("mean",),
            "batch_shapes": {"features": (ROWS, INPUTS), "labels": (ROWS,)},
            "learning_rates": tuple((rate,) for rate in side.rates),
            "shuffles": False,
        }
        sides.append(SideEvidence(**(fields_of_side | (more or {}))))
    slots = frozenset({"kernel/Momentum", "bias/Momentum"})
    known: dict[str, Any] = {"slots": slots}
    return Evidence(sides[0], sides[1], **(known | fields))
