"""LAMB: Adam's moments, the step scaled to each variable's norm. It came with scripts, under several names."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import BETAS, DUPLICATES, OptimizerTable, SlotRow

_ABSENT = dict.fromkeys(("legacy", "tf_keras"), "tf_keras has no Lamb, Keras 3 has")
_NOTE = "Keras 3's decays weights beside the scaled step, LAMB inside of it: the same only without weight decay"

TABLES = (
    OptimizerTable(
        "LAMB",
        "Lamb",
        (SlotRow("LAMB", "m", "momentums"), SlotRow("LAMB_1", "v", "velocities")),
        betas=BETAS,
        uncorrected=True,
        epsilon=(1e-6, 1e-7),
        absent=_ABSENT,
        sparse=DUPLICATES,
        note=_NOTE,
    ),
    OptimizerTable(
        "BERT's LAMB",
        "Lamb",
        (SlotRow("lamb_m", "m", "momentums"), SlotRow("lamb_v", "v", "velocities")),
        uncorrected=True,
        epsilon=(1e-6, 1e-7),
        absent=_ABSENT,
        sparse=DUPLICATES,
        note=_NOTE,
    ),
)
