"""Moving averages: a TF1 graph keeps ``VARIABLE/ExponentialMovingAverage``, a Keras optimizer keeps them with ``use_ema``."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import SlotRow

SHADOW = "ExponentialMovingAverage"
AVERAGE = SlotRow(SHADOW, "", "model_variables_moving_average")  # the legacy family has none
DECAY = (
    "Moving averages become the optimizer's: give it use_ema=True and ema_momentum = TF1's decay. Keras has no num_updates, "
    "with which TF1's decay starts small."
)
