"""The state of optimizers in a name-based checkpoint: slots by variable, and the number of updates.

TF1 counts updates in ``global_step`` and beta powers, Keras in ``iterations``. TF1's Adam keeps beta ** (t + 1) after t updates, in
float32, which is 0 after some thousand updates. So t is taken from ``global_step``; the betas are computed from the powers until
these are 0.
"""

import dataclasses
import math
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping

from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.names import naming
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.slots import AVERAGE, BETAS, ITERATIONS, TABLES, OptimizerTable, SlotRow
from estimator_bridge.compat.checkpoint.writing.draft import Draft

STEP, INTEGERS = "global_step", ("int32", "int64")
_POWER = re.compile(r"(beta[12]_power)(_\d+)?")
DEFAULTS = {"beta_1": 0.9, "beta_2": 0.999}  # Keras' and TF1's
_SMALLEST = 1e-30  # float32 values below may have lost digits
_SAME = 1e-5  # powers are products of rounded numbers


@dataclasses.dataclass(frozen=True)
class SourceSlot:
    """A slot variable of TF1.

    Attributes:
        name: Name in the checkpoint.
        variable: Name of its variable.
        optimizer: Name of the optimizer that keeps it.
        row: Row of the optimizer's table; None if Keras has no counterpart.
    """

    name: str
    variable: str
    optimizer: str
    row: SlotRow | None

    @property
    def table(self) -> OptimizerTable | None:
        """The optimizer's table."""
        return TABLES.get(self.optimizer)


def source_slots(names: Collection[str], optimizer: str | None = None) -> list[SourceSlot]:
    """Returns every slot variable among some names.

    Args:
        names: Names of a name-based checkpoint.
        optimizer: Name of the optimizer, if several give slots the same names, e.g. LazyAdam and Adam.

    Returns:
        The slots.

    Raises:
        UnsupportedError: The optimizer has no table.

    Example:
        >>> names = {"w", "w/RMSProp", "w/RMSProp_1", "w/RMSProp_2"}
        >>> [(slot.name, slot.optimizer, slot.row.legacy) for slot in source_slots(names)]
        [('w/RMSProp', 'centered RMSProp', 'rms'), ('w/RMSProp_1', 'centered RMSProp', 'mg'),
         ('w/RMSProp_2', 'centered RMSProp', 'momentum')]
    """
    table = None if optimizer is None else table_named(optimizer)
    return [_given_to(slot, table) if table else slot for slot in _slots(names)]


def table_named(optimizer: str) -> OptimizerTable:
    """Returns the table of an optimizer that a user named.

    Raises:
        UnsupportedError: There is none.
    """
    if optimizer not in TABLES:
        raise UnsupportedError("--optimizer names an unknown optimizer.", expected=", ".join(TABLES), received=optimizer)
    return TABLES[optimizer]


def _given_to(slot: SourceSlot, table: OptimizerTable) -> SourceSlot:
    """Returns the slot as one of another optimizer, if both have the same slots."""
    if slot.table is None or {row.legacy for row in slot.table.rows} != {row.legacy for row in table.rows}:
        return slot
    return dataclasses.replace(slot, optimizer=table.name)


def _slots(names: Collection[str]) -> Iterator[SourceSlot]:
    for name in sorted(names):
        slot = None if naming.is_object(name) else naming.slot_of(name, names)
        if slot is None:
            continue
        scope, _, suffix = name.rpartition("/")
        is_centered = f"{scope}/{'RMSProp_2' if slot.suffix else 'mg'}" in names  # it has a slot more than RMSProp
        optimizer = "centered RMSProp" if slot.optimizer == "RMSProp" and is_centered else slot.optimizer
        rows = TABLES[optimizer].rows if optimizer in TABLES else (AVERAGE,)
        if slot.suffix:
            found = [row for row in rows if row.suffix == suffix]
        else:  # Keras made this slot, so it has Keras' value already
            found = [dataclasses.replace(row, scale="none") for row in rows if row.legacy == slot.slot]
        yield SourceSlot(name, slot.variable, optimizer, found[0] if found else None)


def is_loose(name: str, names: Container[str]) -> bool:
    """Returns True if a name that ``source_slots`` does not recognize looks like a slot's name.

    Its variable is missing, or its optimizer is part of a script. It has the shape of a variable, but must not be paired as one. So has the
    learning rate that ``tf.contrib.layers.optimize_loss`` keeps in a scope of any name.

    Example:
        >>> is_loose("w/Adam", {"b"}), is_loose("w/MyOptimizer", {"w"}), is_loose("w/kernel", {"b"})
        (True, True, False)
    """
    variable, _, suffix = name.rpartition("/")
    return suffix in naming.SUFFIXES or variable in names or name.endswith("/learning_rate")


def beta_powers(names: Collection[str]) -> dict[str, str]:
    """Finds variables that keep beta ** (t + 1), in any scope, e.g. ``dnn/head/beta1_power``, and the kind of each.

    Example:
        >>> beta_powers({"dnn/head/beta1_power", "beta2_power_1", "w"})
        {'beta2_power_1': 'beta2_power', 'dnn/head/beta1_power': 'beta1_power'}
    """
    return {name: match[1] for name in sorted(names) if (match := _POWER.fullmatch(name.rpartition("/")[2]))}


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
    step = checkpoint.number(STEP, *INTEGERS) or 0
    found: dict[str, set[float | None]] = {}
    for _, name, power in _powers(checkpoint):
        found.setdefault(name, set()).add(beta_of(power, step))
    return {name: beta for name, betas in found.items() if len(betas) == 1 and (beta := betas.pop()) is not None}


def differing_betas(checkpoint: Draft, model: Mapping[str, float]) -> Iterator[str]:
    """Warns of beta powers that contradict the Keras optimizer's betas.

    Args:
        checkpoint: Name-based checkpoint.
        model: Known hyperparameters of the Keras optimizer.

    Yields:
        A warning for each such power; none without ``global_step``.
    """
    step = checkpoint.number(STEP, *INTEGERS)
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
        >>> from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
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
    step = draft.number(STEP, *INTEGERS)
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
    elif draft.entries[STEP].dtype == tensors.number(0).dtype:
        draft.alias(STEP, key)
        return []
    draft.put(key, tensors.number(step))  # Keras counts in int64, an old graph's own counter may differ
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


def _powers(checkpoint: Draft) -> Iterator[tuple[str, str, float]]:
    """Yields each beta power's name, the hyperparameter that it is a power of, and its value; 0.0 for all but float32 scalars."""
    for name, kind in beta_powers(checkpoint.entries.keys()).items():
        yield name, BETAS[kind], checkpoint.number(name, "float32") or 0.0
