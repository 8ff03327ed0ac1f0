"""The number of updates of an optimizer: ``global_step`` and beta powers in TF1, ``iterations`` in Keras.

TF1's Adam keeps beta ** (t + 1) after t updates, in float32, which is 0 after some thousand updates. So t is taken from
``global_step``; the betas are computed from the powers until these are 0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from estimator_bridge.compat.checkpoint.optimizers.source_slots import STEP, beta_powers
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.slots import OptimizerTable
from estimator_bridge.compat.checkpoint.slots.table import BETAS, ITERATIONS
from estimator_bridge.compat.checkpoint.writing.draft import Draft

DEFAULTS = {"beta_1": 0.9, "beta_2": 0.999}  # Keras' and TF1's
_SMALLEST = 1e-30  # float32 values below may have lost digits
_SAME = 1e-5  # powers are products of rounded numbers


def beta_of(power: float, step: int) -> float | None:
    """Computes the beta of a power; None if the power is too small for that.

    Args:
        power: Value of beta ** (step + 1), in float32.
        step: Number of updates.

    Example:
        >>> beta_of(0.81, 1), beta_of(0.0, 100_000)
        (0.9, None)
    """
    return power ** (1 / (step + 1)) if _SMALLEST < power < 1 else None


def known_betas(checkpoint: Draft) -> dict[str, float]:
    """Computes the betas from the powers of a name-based checkpoint.

    Args:
        checkpoint: Name-based checkpoint.

    Returns:
        ``beta_1`` and ``beta_2`` -> value, without a beta that is not known or that differs between optimizers.
    """
    step = read_step(checkpoint) or 0
    found: dict[str, set[float | None]] = {}
    for name, kind in beta_powers(checkpoint.entries.keys()).items():
        power = _read_float(checkpoint, name)
        found.setdefault(BETAS[kind], set()).add(beta_of(power, step) if power is not None else None)
    return {name: beta for name, betas in found.items() if len(betas) == 1 and (beta := betas.pop()) is not None}


def differing_betas(checkpoint: Draft, model: Mapping[str, float]) -> Iterator[str]:
    """Warns of beta powers that contradict the Keras optimizer's betas.

    Args:
        checkpoint: Name-based checkpoint.
        model: Known hyperparameters of the Keras optimizer.

    Yields:
        A warning for each such power; none without ``global_step``.
    """
    step = read_step(checkpoint)
    if step is None:
        return
    for name, kind in beta_powers(checkpoint.entries.keys()).items():
        power, beta = _read_float(checkpoint, name), BETAS[kind]
        found = beta_of(power, step) if power is not None else None
        wanted = model.get(beta, DEFAULTS[beta])
        if found is not None and abs(found - wanted) > _SAME:
            has = "has" if beta in model else "has by default"
            yield (
                f"{name} is that of {beta} = {found:.6g} after {step:,} updates, and the model's optimizer {has} {wanted:g}: "
                f"give it {beta} = {found:.6g}, unless this optimizer has made another number of updates than {STEP} says."
            )


def step_of_powers(checkpoint: Draft) -> int | None:
    """Computes the number of updates from the beta powers, for a checkpoint without ``global_step``.

    Returns:
        The number; None if the default betas do not explain every power, or if beta1_power is too small: after some thousand updates,
        beta2_power is not precise enough.

    Example:
        >>> import tempfile
        >>> from estimator_bridge.compat.checkpoint.reading.index import read_index
        >>> from estimator_bridge.compat.checkpoint.writing.small_checkpoints import write_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     step_of_powers(Draft(read_index(write_tensors(f"{folder}/m", {"beta1_power": 0.9**21, "beta2_power": 0.999**21}))))
        20
    """
    found: dict[str, list[float]] = {kind: [] for kind in BETAS}
    for name, kind in beta_powers(checkpoint.entries.keys()).items():
        power = _read_float(checkpoint, name)
        if power is not None and _SMALLEST < power < 1:
            found[kind].append(math.log(power) / math.log(DEFAULTS[BETAS[kind]]) - 1)
    if not found["beta1_power"]:
        return None
    step = round(found["beta1_power"][0])
    alike = all(abs(updates - step) < 0.1 + step * 1e-4 for kind in found for updates in found[kind])
    return step if alike else None


def add_iterations(draft: Draft, key: str, tables: Iterable[OptimizerTable]) -> list[str] | None:
    """Gives a Keras optimizer its number of updates.

    Args:
        draft: Draft of a name-based checkpoint; changed.
        key: Key of ``iterations``.
        tables: Slot tables of the TF1 optimizers whose slots it takes over.

    Returns:
        Warnings if the number is no plain copy of ``global_step``; None if it is not known.
    """
    step = read_step(draft)
    uncorrected = [table.name for table in tables if table.uncorrected]
    if uncorrected and not beta_powers(draft.entries.keys()):
        draft.put(key, tensors.int64(ITERATIONS + (step or 0)))
        warning = (
            f"iterations is {ITERATIONS:,} + {STEP}: {uncorrected[0]} is assumed not to correct the moments' bias, and after so many "
            f"updates Keras does not either. A learning-rate schedule has to subtract {ITERATIONS:,}. If your optimizer corrects the "
            f"bias, set iterations to {STEP}."
        )
        return [warning]
    if step is not None and draft.entries[STEP].dtype == tensors.int64(0).dtype:
        draft.alias(STEP, key)
    elif step is not None:
        draft.put(key, tensors.int64(step))  # Keras counts in int64, an old graph's own counter may differ
    else:
        step = step_of_powers(draft)
        if step is None:
            return None
        draft.put(key, tensors.int64(step))
        return [f"There is no {STEP}; iterations is {step:,}, computed from the beta powers under TF1's default betas."]
    return []


def updates(iterations: int, tables: Iterable[OptimizerTable], powers: Iterable[str]) -> tuple[int, list[str]]:
    """Computes TF1's ``global_step`` from Keras' ``iterations``.

    Args:
        iterations: Number of updates of the Keras optimizer.
        tables: Slot tables of the TF1 optimizers.
        powers: Beta powers that the old graph keeps.

    Returns:
        The step, and warnings if the old optimizer does not go on as Keras' would have.
    """
    uncorrected = [table.name for table in tables if table.uncorrected]
    if not uncorrected or list(powers):
        return iterations, []
    if iterations >= ITERATIONS:
        return iterations - ITERATIONS, []
    warning = (
        f"Keras corrected the bias of the moments, which {uncorrected[0]} does not: after {iterations:,} updates its steps differ, "
        "until beta ** iterations is 0."
    )
    return iterations, [warning]


def read_step(checkpoint: Draft) -> int | None:
    """Returns the value of ``global_step``; None if there is no such integer."""
    data = checkpoint.scalar(STEP, "int32", "int64")
    order: Literal["big", "little"] = "big" if checkpoint.source.header.big_endian else "little"
    return None if data is None else int.from_bytes(data, order, signed=True)


def _read_float(checkpoint: Draft, name: str) -> float | None:
    """Returns the value of a float32 scalar; None for anything else."""
    data = checkpoint.scalar(name, "float32")
    return None if data is None else float(struct.unpack("<f", data)[0])
