"""The slot table of every TF1 optimizer that has a counterpart in Keras."""

from __future__ import annotations

import dataclasses

from estimator_bridge.compat.checkpoint.slots.table import BETAS, DUPLICATES, OptimizerTable, SlotRow, every, newer


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
    sparse=newer("rows without a gradient decay too"),
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
    sparse=every("the mean square of rows without a gradient decays"),
    sparse_but_momentum=True,
)
OPTIMIZER_TABLES = (
    OptimizerTable(
        "Adadelta",
        "Adadelta",
        (
            SlotRow("Adadelta", "accum_grad", "accumulated_grads"),
            SlotRow("Adadelta_1", "accum_var", "accumulated_delta_vars"),
        ),
        epsilon=1e-8,
        sparse=newer("rows without a gradient are updated"),
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
        sparse=every("LazyAdam does not touch rows without a gradient, Keras' Adam goes on moving them"),
        note="",
    ),
    OptimizerTable(
        "AdaMax",  # of tf.contrib; its second slot is the largest gradient, which has no beta power
        "Adamax",
        (SlotRow("AdaMax", "m", "m"), SlotRow("AdaMax_1", "v", "u")),
        betas={"beta1_power": "beta_1"},
        epsilon=1e-8,
        sparse=newer("tf.contrib's does not touch rows without a gradient, Keras' moves them"),
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
        sparse=newer("velocities of rows without a gradient decay (differences up to 1.05)"),
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
