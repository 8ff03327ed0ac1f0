"""The number of updates of an optimizer: ``global_step`` and beta powers in TF1, ``iterations`` in Keras.

TF1's Adam keeps beta ** (t + 1) after t updates, in float32, which is 0 after some thousand updates. So t is taken from
``global_step``; the betas are computed from the powers until these are 0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping

from estimator_bridge.compat.checkpoint.optimizers.source_slots import STEP, beta_powers
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.slots import BETAS, ITERATIONS, OptimizerTable
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
    for _, beta, power in _powers(checkpoint):
        found.setdefault(beta, set()).add(beta_of(power, step))
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
    for name, beta, power in _powers(checkpoint):
        found, wanted = beta_of(power, step), model.get(beta, DEFAULTS[beta])
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
    found: dict[str, list[float]] = {beta: [] for beta in DEFAULTS}
    for _, beta, power in _powers(checkpoint):
        if _SMALLEST < power < 1:
            found[beta].append(math.log(power) / math.log(DEFAULTS[beta]) - 1)
    if not found["beta_1"]:
        return None
    step = round(found["beta_1"][0])
    alike = all(abs(updates - step) < 0.1 + step * 1e-4 for counts in found.values() for updates in counts)
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
    warnings: list[str] = []
    uncorrected = [table.name for table in tables if table.uncorrected]
    if uncorrected and not beta_powers(draft.entries.keys()):
        warnings.append(
            f"iterations is {ITERATIONS:,} + {STEP}: {uncorrected[0]} is assumed not to correct the moments' bias, and after so many "
            f"updates Keras does not either. A learning-rate schedule has to subtract {ITERATIONS:,}. If your optimizer corrects the "
            f"bias, set iterations to {STEP}."
        )
        step = ITERATIONS + (step or 0)
    elif step is None:
        step = step_of_powers(draft)
        if step is None:
            return None
        warnings.append(f"There is no {STEP}; iterations is {step:,}, computed from the beta powers under TF1's default betas.")
    elif draft.entries[STEP].dtype == tensors.int64(0).dtype:
        draft.alias(STEP, key)
        return []
    draft.put(key, tensors.int64(step))  # Keras counts in int64, an old graph's own counter may differ
    return warnings


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
    return (
        None if data is None else int.from_bytes(data, "big" if checkpoint.source.header.big_endian else "little", signed=True)
    )


def _powers(checkpoint: Draft) -> Iterator[tuple[str, str, float]]:
    """Yields each beta power's name, the hyperparameter that it is a power of, and its value; 0.0 for all but float32 scalars."""
    for name, kind in beta_powers(checkpoint.entries.keys()).items():
        data = checkpoint.scalar(name, "float32")
        yield name, BETAS[kind], 0.0 if data is None else struct.unpack("<f", data)[0]
