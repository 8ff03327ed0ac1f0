"""The slot tables are complete: every slot that any optimizer of TensorFlow 1 makes is in one, or is said to have no counterpart."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.compat.checkpoint.slots import NO_COUNTERPART, TABLES
from estimator_bridge.compat.checkpoint.source_slots import beta_powers, source_slots

v1 = tf.compat.v1
ABSTRACT = {"Optimizer", "SyncReplicasOptimizer"}  # the second one wraps another
OPTIMIZERS = sorted(
    name
    for name, value in vars(v1.train).items()
    if inspect.isclass(value) and issubclass(value, v1.train.Optimizer) and name not in ABSTRACT
)


def make(name: str, **given: Any) -> Any:
    """An optimizer with whatever it insists on."""
    step = {"global_step": v1.train.get_or_create_global_step()} if name == "AdagradDAOptimizer" else {}
    return getattr(v1.train, name)(0.1, **step, **given)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        *((name, {}) for name in OPTIMIZERS),
        ("RMSPropOptimizer", {"centered": True}),
        ("MomentumOptimizer", {"use_nesterov": True}),
    ],
)
def test_every_slot_has_a_row(name: str, given: dict[str, Any], sparse: bool) -> None:
    if name == "MomentumOptimizer":
        given = {"momentum": 0.9, **given}
    with tf.Graph().as_default():
        variable = v1.get_variable("scope/w", [5, 2])
        loss = tf.reduce_sum(tf.gather(variable, [1, 3]) if sparse else variable**2)
        make(name, **given).minimize(loss)
        names = {variable.op.name for variable in v1.global_variables()}
    made = names - {"scope/w", "global_step"} - beta_powers(names).keys()
    found = source_slots(names)
    assert {slot.name for slot in found} == made
    for slot in found:
        assert slot.variable == "scope/w"
        assert (slot.row is not None) == (slot.optimizer in TABLES), slot
        assert slot.row is not None or slot.optimizer in NO_COUNTERPART, slot
    table = TABLES[found[0].optimizer] if found and found[0].optimizer in TABLES else None
    if table:
        assert {row.suffix for row in table.rows} == {slot.name.rpartition("/")[2] for slot in found}


def legacy_slots(table_name: str, **given: Any) -> set[str]:
    import tf_keras

    optimizer = getattr(tf_keras.optimizers.legacy, TABLES[table_name].keras_class)(**given)
    optimizer._create_all_weights([tf.Variable([1.0])])
    return set(optimizer.get_slot_names())


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Momentum", {"momentum": 0.9}),
        ("Adagrad", {}),
        ("Adam", {}),
        ("RMSProp", {"momentum": 0.5}),
        ("centered RMSProp", {"momentum": 0.5, "centered": True}),
        ("Ftrl", {}),
        ("Adadelta", {}),
    ],
)
def test_every_slot_of_keras_has_a_row(name: str, given: dict[str, Any]) -> None:
    assert legacy_slots(name, **given) == {row.legacy for row in TABLES[name].rows}
