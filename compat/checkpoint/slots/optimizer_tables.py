"""The slot table of every TF1 optimizer that has a counterpart in Keras."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import BETAS, DUPLICATES, OptimizerTable, SlotRow, every, newer

_NO_LEGACY_ADAMW = {"legacy": "tf_keras.optimizers.legacy has no AdamW"}
_ONLY_KERAS3_HAS_LAMB = dict.fromkeys(("legacy", "tf_keras"), "tf_keras has no Lamb, Keras 3 has")
_DECAY_OF_LAMB = "Keras 3's decays weights beside the scaled step, LAMB inside of it: the same only without weight decay"
_SPARSE_RMSPROP = every("the mean square of rows without a gradient decays")


def _moments(m: str, v: str) -> tuple[SlotRow, SlotRow]:
    """Returns the slots of Adam and its relatives: the first and the second moment."""
    return SlotRow(m, "m", "momentums"), SlotRow(v, "v", "velocities")


OPTIMIZER_TABLES = (
    OptimizerTable(
        "Adadelta",
        "Adadelta",
        (
            SlotRow("Adadelta", "accum_grad", "accumulated_grads"),
            SlotRow("Adadelta_1", "accum_var", "accumulated_delta_vars"),
        ),
        epsilon=(1e-8, 1e-7),
        sparse=newer("rows without a gradient are updated"),
    ),
    OptimizerTable(
        "Adagrad",
        "Adagrad",
        (SlotRow("Adagrad", "accumulator", "accumulators"),),
        epsilon=(1e-30, 1e-7),  # TF1 adds no epsilon: Keras' must be too small to matter
        sparse=DUPLICATES,
    ),
    OptimizerTable(
        "Adam",
        "Adam",
        _moments("Adam", "Adam_1"),
        betas=BETAS,
        epsilon=(1e-8, 1e-7),
        sparse=DUPLICATES,
        note="the slots of tf.contrib's LazyAdam and Nadam have the same names: name LazyAdam with --optimizer; "
        "Keras' Nadam follows a schedule that tf.contrib's does not have",
    ),
    OptimizerTable(
        "LazyAdam",  # tf.contrib's LazyAdam and Nadam name their slots as Adam does, unless they get a name of their own
        "Adam",
        _moments("LazyAdam", "LazyAdam_1"),
        betas=BETAS,
        epsilon=(1e-8, 1e-7),
        sparse=every("LazyAdam does not touch rows without a gradient, Keras' Adam goes on moving them"),
    ),
    OptimizerTable(
        "AdaMax",  # of tf.contrib; its second slot is the largest gradient, which has no beta power
        "Adamax",
        (SlotRow("AdaMax", "m", "m"), SlotRow("AdaMax_1", "v", "u")),
        betas={"beta1_power": "beta_1"},
        epsilon=(1e-8, 1e-7),
        sparse=newer("tf.contrib's does not touch rows without a gradient, Keras' moves them"),
    ),
    OptimizerTable(
        "AdamW",
        "AdamW",
        _moments("AdamW", "AdamW_1"),
        betas=BETAS,
        epsilon=(1e-8, 1e-7),
        absent=_NO_LEGACY_ADAMW,
        sparse=newer("rows without a gradient decay too"),
        note="Keras multiplies weight_decay by the learning rate, tf.contrib does not: divide it by the learning rate",
    ),
    OptimizerTable(
        "BERT's Adam",  # AdamWeightDecayOptimizer, which scripts bring along: no bias correction
        "AdamW",
        _moments("adam_m", "adam_v"),
        uncorrected=True,
        epsilon=(1e-6, 1e-7),
        absent=_NO_LEGACY_ADAMW,
        sparse=DUPLICATES,
        note="some LAMBs keep their slots under the same names: name them with --optimizer",
    ),
    OptimizerTable(
        "Ftrl",  # with L1, L2 and shrinkage
        "Ftrl",
        (SlotRow("Ftrl", "accumulator", "accumulators"), SlotRow("Ftrl_1", "linear", "linears")),
        sparse=DUPLICATES,
    ),
    OptimizerTable(
        "LAMB",  # Adam's moments, the step scaled to each variable's norm; scripts bring it along under several names
        "Lamb",
        _moments("LAMB", "LAMB_1"),
        betas=BETAS,
        uncorrected=True,
        epsilon=(1e-6, 1e-7),
        absent=_ONLY_KERAS3_HAS_LAMB,
        sparse=DUPLICATES,
        note=_DECAY_OF_LAMB,
    ),
    OptimizerTable(
        "BERT's LAMB",
        "Lamb",
        _moments("lamb_m", "lamb_v"),
        uncorrected=True,
        epsilon=(1e-6, 1e-7),
        absent=_ONLY_KERAS3_HAS_LAMB,
        sparse=DUPLICATES,
        note=_DECAY_OF_LAMB,
    ),
    OptimizerTable(
        "Momentum",  # Nesterov too. TF1 accumulates gradients, Keras steps: velocity = -learning_rate * accumulator
        "SGD",
        (SlotRow("Momentum", "momentum", "momentums", scale="minus learning_rate"),),
        sparse=newer("velocities of rows without a gradient decay (differences up to 1.05)"),
        note="after a change of the learning rate, scale the velocities by new / old",
    ),
    OptimizerTable(
        "RMSProp",  # TF1 always has the momentum slot, Keras only if momentum is not 0
        "RMSprop",
        (SlotRow("RMSProp", "rms", "velocities"), SlotRow("RMSProp_1", "momentum", "momentums", absent_when="momentum is 0")),
        epsilon=(1e-10, 1e-7),
        sparse=_SPARSE_RMSPROP,
        sparse_but_momentum=True,
    ),
    OptimizerTable(
        "centered RMSProp",
        "RMSprop",
        (
            SlotRow("RMSProp", "rms", "velocities"),
            SlotRow("RMSProp_1", "mg", "average_gradients"),
            SlotRow("RMSProp_2", "momentum", "momentums", absent_when="momentum is 0"),
        ),
        epsilon=(1e-10, 1e-7),
        sparse=_SPARSE_RMSPROP,
        sparse_but_momentum=True,
    ),
)
