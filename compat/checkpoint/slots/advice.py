"""Advice on settings of a Keras optimizer that no checkpoint keeps, and without which it does not go on as TF1's did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from estimator_bridge.compat.checkpoint.slots.table import OptimizerTable

# Keras classes whose slots have the same names: an object graph does not tell them apart.
ALIKE: Mapping[str, str] = {"Adam": "AdamW, Nadam or Lamb", "SGD": "Lion"}


def advice(tables: Iterable[OptimizerTable], known: Mapping[str, float]) -> Iterator[str]:
    """Yields advice, once for each optimizer.

    Args:
        tables: Slot tables of the TF1 optimizers whose slots are converted.
        known: Known hyperparameters of the Keras optimizer.

    Yields:
        A sentence for each setting whose default differs, and each note.

    Example:
        >>> from estimator_bridge.compat.checkpoint.slots import TABLES
        >>> list(advice([TABLES["Adadelta"]], {}))
        ["Give Keras' Adadelta epsilon=1e-08, TF1's default, unless yours was another: its own default is 1e-07."]
        >>> list(advice([TABLES["Adadelta"]], {"epsilon": 1e-8}))
        []
        >>> next(advice([TABLES["Momentum"]], {}))[:57]
        "Momentum: the target's slots are those of Keras' SGD, but"
    """
    for table in {table.name: table for table in tables}.values():
        if table.epsilon and known.get("epsilon") != table.epsilon[0]:
            wanted, default = table.epsilon
            yield (
                f"Give Keras' {table.keras_class} epsilon={wanted:g}, TF1's default, unless yours was another: "
                f"its own default is {default:g}."
            )
        if table.keras_class in ALIKE:
            yield (
                f"{table.name}: the target's slots are those of Keras' {table.keras_class}, but {ALIKE[table.keras_class]} would "
                f"have slots of the same names, and no checkpoint identifies the class: only {table.keras_class} continues as TF1 did."
            )
        if table.note:
            yield f"{table.name}: {table.note}."
