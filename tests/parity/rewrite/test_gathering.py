"""Evidence that is read from traces."""

from __future__ import annotations

from pathlib import Path

from estimator_bridge.parity.evidence import DropoutSite
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.gathering import gather


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
