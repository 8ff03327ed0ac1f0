"""The slots of TF1 optimizers and their counterparts in Keras."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

BETAS = {"beta1_power": "beta_1", "beta2_power": "beta_2"}
_NEWER = ("tf_keras", "keras3")  # families of Keras optimizers
_ALL = ("legacy", *_NEWER)
DUPLICATES = {"keras3": "the gradients of a row that occurs twice are not added up"}
ITERATIONS = 10_000_000  # beta ** iterations is 0 in float32, so that Keras' bias correction factors are 1
KERAS_EPSILON = 1e-7  # every Keras optimizer's default
NO_COUNTERPART = {name: f"Keras has no {name}" for name in ("AdagradDA", "AddSign", "LARS", "PowerSign", "Shampoo")} | {
    "ProximalAdagrad": "Keras has no proximal Adagrad",
    "RegAdagrad": "Keras has no Adagrad that leaves regularization out of its accumulator",
    "MomentumW": "Keras' SGD with weight_decay decays before the step, MomentumW after it",
    "ExponentialMovingAverage": "it is not an optimizer: give the averages as the model's values, or use_ema",
}


@dataclasses.dataclass(frozen=True)
class SlotRow:
    """A slot of an optimizer.

    Attributes:
        suffix: Suffix of the variable's name in a TF1 checkpoint.
        legacy: Name in ``tf_keras.optimizers.legacy``.
        keras: List that holds it in tf_keras' newer optimizers and in Keras 3.
        scale: Factor from TF1's value to Keras'.
        absent_when: Condition under which Keras has no such slot; zeros are written on the way back.
    """

    suffix: str
    legacy: str
    keras: str
    scale: Literal["none", "minus learning_rate"] = "none"
    absent_when: str = ""


SHADOW = "ExponentialMovingAverage"
# Moving averages: a TF1 graph keeps VARIABLE/ExponentialMovingAverage, a Keras optimizer with use_ema a list. The legacy family has none.
AVERAGE = SlotRow(SHADOW, "", "model_variables_moving_average")


@dataclasses.dataclass(frozen=True)
class OptimizerTable:
    """A TF1 optimizer's slots.

    Attributes:
        name: Name that ``naming`` gives it.
        keras_class: Class of the counterpart.
        rows: Slots.
        betas: Beta power variable -> Keras hyperparameter, if it keeps beta powers.
        uncorrected: True if it uses its moments without bias correction, unless there are beta powers beside them.
        epsilon: TF1's default, if Keras' must be set to it.
        absent: Family of Keras optimizers -> reason why it lacks the class.
        sparse: Family of Keras optimizers -> difference with sparse gradients.
        sparse_but_momentum: True if the family "legacy" does not differ if it has a momentum slot.
        note: Further advice.
    """

    name: str
    keras_class: str
    rows: tuple[SlotRow, ...]
    betas: Mapping[str, str] = dataclasses.field(default_factory=dict)
    uncorrected: bool = False
    epsilon: float | None = None
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)
    sparse: Mapping[str, str] = dataclasses.field(default_factory=DUPLICATES.copy)
    sparse_but_momentum: bool = False
    note: str = ""


def _moments(m: str, v: str) -> tuple[SlotRow, SlotRow]:
    """Returns the slots of Adam and its relatives: the first and the second moment."""
    return SlotRow(m, "m", "momentums"), SlotRow(v, "v", "velocities")


_ADAM = OptimizerTable(
    "Adam",
    "Adam",
    _moments("Adam", "Adam_1"),
    betas=BETAS,
    epsilon=1e-8,
    note="the slots of tf.contrib's LazyAdam and Nadam have the same names: name LazyAdam with --optimizer; "
    "Keras' Nadam follows a schedule that tf.contrib's does not have",
)
_ADAMW = dataclasses.replace(
    _ADAM,
    name="AdamW",
    keras_class="AdamW",
    rows=_moments("AdamW", "AdamW_1"),
    absent={"legacy": "tf_keras.optimizers.legacy has no AdamW"},
    sparse=dict.fromkeys(_NEWER, "rows without a gradient decay too"),
    note="Keras multiplies weight_decay by the learning rate, tf.contrib does not: divide it by the learning rate",
)
_BERT_ADAM = dataclasses.replace(  # AdamWeightDecayOptimizer, which scripts bring along: no bias correction
    _ADAMW,
    name="BERT's Adam",
    rows=_moments("adam_m", "adam_v"),
    betas={},
    uncorrected=True,
    epsilon=1e-6,
    sparse=DUPLICATES,
    note="some LAMBs keep their slots under the same names: name them with --optimizer",
)
_BERT_LAMB = dataclasses.replace(  # Adam's moments, the step scaled to each variable's norm; scripts bring it along
    _BERT_ADAM,
    name="BERT's LAMB",
    keras_class="Lamb",
    rows=_moments("lamb_m", "lamb_v"),
    absent=dict.fromkeys(("legacy", "tf_keras"), "tf_keras has no Lamb, Keras 3 has"),
    note="Keras 3's decays weights beside the scaled step, LAMB inside of it: the same only without weight decay",
)
_RMSPROP = OptimizerTable(  # TF1 always has the momentum slot, Keras only if momentum is not 0
    "RMSProp",
    "RMSprop",
    (SlotRow("RMSProp", "rms", "velocities"), SlotRow("RMSProp_1", "momentum", "momentums", absent_when="momentum is 0")),
    epsilon=1e-10,
    sparse=dict.fromkeys(_ALL, "the mean square of rows without a gradient decays"),
    sparse_but_momentum=True,
)
_OPTIMIZER_TABLES = (
    OptimizerTable(
        "Adadelta",
        "Adadelta",
        (
            SlotRow("Adadelta", "accum_grad", "accumulated_grads"),
            SlotRow("Adadelta_1", "accum_var", "accumulated_delta_vars"),
        ),
        epsilon=1e-8,
        sparse=dict.fromkeys(_NEWER, "rows without a gradient are updated"),
    ),
    OptimizerTable(
        "Adagrad",
        "Adagrad",
        (SlotRow("Adagrad", "accumulator", "accumulators"),),
        epsilon=1e-30,  # TF1 adds no epsilon: Keras' must be too small to matter
    ),
    _ADAM,
    dataclasses.replace(  # tf.contrib's LazyAdam and Nadam name their slots as Adam does, unless they get a name of their own
        _ADAM,
        name="LazyAdam",
        rows=_moments("LazyAdam", "LazyAdam_1"),
        sparse=dict.fromkeys(_ALL, "LazyAdam does not touch rows without a gradient, Keras' Adam goes on moving them"),
        note="",
    ),
    OptimizerTable(
        "AdaMax",  # of tf.contrib; its second slot is the largest gradient, which has no beta power
        "Adamax",
        (SlotRow("AdaMax", "m", "m"), SlotRow("AdaMax_1", "v", "u")),
        betas={"beta1_power": "beta_1"},
        epsilon=1e-8,
        sparse=dict.fromkeys(_NEWER, "tf.contrib's does not touch rows without a gradient, Keras' moves them"),
    ),
    _ADAMW,
    _BERT_ADAM,
    OptimizerTable(
        "Ftrl",  # with L1, L2 and shrinkage
        "Ftrl",
        (SlotRow("Ftrl", "accumulator", "accumulators"), SlotRow("Ftrl_1", "linear", "linears")),
    ),
    dataclasses.replace(_BERT_LAMB, name="LAMB", rows=_moments("LAMB", "LAMB_1"), betas=BETAS),
    _BERT_LAMB,
    OptimizerTable(
        "Momentum",  # Nesterov too. TF1 accumulates gradients, Keras steps: velocity = -learning_rate * accumulator
        "SGD",
        (SlotRow("Momentum", "momentum", "momentums", scale="minus learning_rate"),),
        sparse=dict.fromkeys(_NEWER, "velocities of rows without a gradient decay (differences up to 1.05)"),
        note="after a change of the learning rate, scale the velocities by new / old",
    ),
    _RMSPROP,
    dataclasses.replace(
        _RMSPROP,
        name="centered RMSProp",
        rows=(
            SlotRow("RMSProp", "rms", "velocities"),
            SlotRow("RMSProp_1", "mg", "average_gradients"),
            SlotRow("RMSProp_2", "momentum", "momentums", absent_when="momentum is 0"),
        ),
    ),
)
TABLES: Mapping[str, OptimizerTable] = {table.name: table for table in _OPTIMIZER_TABLES}
# Keras classes whose slots have the same names: an object graph does not tell them apart.
_ALIKE: Mapping[str, str] = {"Adam": "AdamW, Nadam or Lamb", "SGD": "Lion"}


# Names of slots, with and without those that can be absent -> the first table that has them.
_BY_SLOTS = {
    names: table.name
    for table in reversed(_OPTIMIZER_TABLES)
    for rows in (table.rows, [row for row in table.rows if not row.absent_when])
    for names in (frozenset(row.legacy for row in rows), frozenset(row.keras for row in rows))
}


def table_of_slots(slots: Sequence[str]) -> str | None:
    """Returns TF1's name of the optimizer that keeps some slots.

    Args:
        slots: Keras' names in the order in which the optimizer made them: Adam makes momentums first, RMSprop velocities.

    Returns:
        The name of its table; None if the slots do not identify it.

    Example:
        >>> table_of_slots(["momentums", "velocities"]), table_of_slots(["velocities", "momentums"])
        ('Adam', 'RMSProp')
    """
    if set(slots) == {"momentums", "velocities"}:
        return "Adam" if slots[0] == "momentums" else "RMSProp"
    return _BY_SLOTS.get(frozenset(slots))


def another_optimizer(table: OptimizerTable, slots: Sequence[str]) -> str | None:
    """Returns the Keras class that keeps some slots if it is not the counterpart of a TF1 optimizer.

    Without this check, equal names would pair Adam's ``velocities`` with RMSprop's, and Adam's ``momentums`` with SGD's.

    Args:
        table: Slot table of the TF1 optimizer.
        slots: Keras' names of the slots, in the order of ``table_of_slots``.

    Returns:
        The class; None if it is the counterpart, or if the slots do not identify it.

    Example:
        >>> another_optimizer(TABLES["RMSProp"], ["momentums", "velocities"])
        'Adam'
        >>> another_optimizer(TABLES["AdamW"], ["momentums", "velocities"]) is None
        True
    """
    known = table_of_slots(slots)
    if known is None or TABLES[known].keras_class == table.keras_class:
        return None
    named = [([row.legacy for row in one.rows], [row.keras for row in one.rows]) for one in (table, TABLES[known])]
    return None if any(one == other for one, other in zip(*named, strict=True)) else TABLES[known].keras_class


def advice(tables: Iterable[OptimizerTable], known: Mapping[str, float], keras_class: str = "") -> Iterator[str]:
    """Advises on settings of a Keras optimizer that no checkpoint keeps, and without which it does not go on as TF1's did.

    Args:
        tables: Slot tables of the TF1 optimizers whose slots are converted; one that occurs again has no effect.
        known: Known hyperparameters of the Keras optimizer.
        keras_class: Its class, if that is known.

    Yields:
        A sentence for each setting whose default differs, and each note.

    Example:
        >>> list(advice([TABLES["Adadelta"]], {}))
        ["Give Keras' Adadelta epsilon=1e-08, TF1's default, unless yours was another: its own default is 1e-07."]
        >>> list(advice([TABLES["Adadelta"]], {"epsilon": 1e-8}))
        []
        >>> next(advice([TABLES["Momentum"]], {}))[:57]
        "Momentum: the target's slots are those of Keras' SGD, but"
    """
    for table in {table.name: table for table in tables}.values():
        if table.epsilon and known.get("epsilon") != table.epsilon:
            yield (
                f"Give Keras' {table.keras_class} epsilon={table.epsilon:g}, TF1's default, unless yours was another: "
                f"its own default is {KERAS_EPSILON:g}."
            )
        if table.keras_class in _ALIKE and table.keras_class != keras_class:
            yield (
                f"{table.name}: the target's slots are those of Keras' {table.keras_class}, but {_ALIKE[table.keras_class]} would "
                f"have slots of the same names, and no checkpoint identifies the class: only {table.keras_class} continues as TF1 did."
            )
        if table.note:
            yield f"{table.name}: {table.note}."
