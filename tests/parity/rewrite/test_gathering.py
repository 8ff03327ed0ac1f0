"""Evidence that is read from traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from estimator_bridge.parity.evidence import DropoutSite
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.gathering import NewNames, _steps, gather


def test_operations_that_only_the_first_tracing_of_a_step_has_do_not_count(tmp_path: Path) -> None:
    """tf.function traces a step twice if the first call makes variables; only the second graph runs."""
    old, new = Trace(tmp_path / "old"), Trace(tmp_path / "new")
    for trace in (old, new):
        trace.make()
    for count in (2, 1):
        new.write("graph", broadcasts=["sub"] * (count - 1), flattened=[], epsilons=[])
        new.write("dropout", sites=[[[9], 0.25]] * count, loops=[])

    found = gather(old, new)

    assert found.new.dropout == (DropoutSite((9,), 0.25),)
    assert found.new.graph is not None
    assert not found.new.graph.broadcasts
    assert found.old.dropout is None


def test_gradients_of_the_old_side_keep_their_names(tmp_path: Path) -> None:
    """A new variable may have the name of an old one that is paired with yet another one."""
    old, new = Trace(tmp_path / "old"), Trace(tmp_path / "new")
    names = NewNames(new)
    names.keys, names.by_key = (
        {"dense/kernel": "first", "dense_1/kernel": "last"},
        {"first": "dense_1/kernel", "last": "dense/kernel"},
    )
    for trace in (old, new):
        trace.make()
        trace.write("step", call="train-0", step=1, loss=1.0)
        np.savez(trace.folder / "values" / "gradients-1.npz", **{"dense|kernel": np.ones(2), "dense_1|kernel": np.zeros(2)})

    here, there = (dict(_steps(side, new, names, [1.0], "at")[0].gradients()) for side in (old, new))

    assert here["dense/kernel"].all()
    assert there["dense_1/kernel"].all()
    assert not there["dense/kernel"].any()


def test_steps_have_the_loss_that_both_sides_minimize(tmp_path: Path) -> None:
    """The old script reports the sum of two losses, and its first optimizer minimizes one: no cause is a loss that nothing minimizes."""
    old, new = Trace(tmp_path / "old"), Trace(tmp_path / "new")
    for trace, loss in ((old, 6.5), (new, 3.0)):
        trace.make()
        trace.write("step", call="train-0", step=1, loss=loss, iterations=[1])
    old.write("minimized", index=1, loss=3.0)

    found = gather(old, new)

    assert [step.loss for step in (*found.old.steps, *found.new.steps)] == [3.0, 3.0]
