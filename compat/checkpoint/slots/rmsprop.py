"""RMSProp: plain, with momentum, centered. TF1 always has the momentum slot, Keras only where momentum is not 0."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import OptimizerTable, SlotRow, every

_SPARSE = "the mean square of rows without a gradient decays"
_ABSENT = "momentum is 0"

TABLES = (
    OptimizerTable(
        "RMSProp",
        "RMSprop",
        (
            SlotRow("RMSProp", "rms", "velocities"),
            SlotRow("RMSProp_1", "momentum", "momentums", absent_when=_ABSENT),
        ),
        epsilon=(1e-10, 1e-7),
        sparse=every(_SPARSE),
        sparse_but_momentum=True,
    ),
    OptimizerTable(
        "centered RMSProp",
        "RMSprop",
        (
            SlotRow("RMSProp", "rms", "velocities"),
            SlotRow("RMSProp_1", "mg", "average_gradients"),
            SlotRow("RMSProp_2", "momentum", "momentums", absent_when=_ABSENT),
        ),
        epsilon=(1e-10, 1e-7),
        sparse=every(_SPARSE),
        sparse_but_momentum=True,
    ),
)
