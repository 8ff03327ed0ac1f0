"""Recorded batches in place of those of the new script's dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.rewrite.session import CALL, Session, lockstep
from estimator_bridge.script.run import Script


@pytest.mark.parametrize(("recorded", "rows"), [([4, 4], 4), ([None, None], None), ([4, None], None), ([8, 8], None)])
def test_batches_have_the_static_size_that_both_scripts_have(tmp_path: Path, recorded: list[Any], rows: int | None) -> None:
    """A script may reshape by it; the last batch may be smaller where it is not static."""
    old, new = Trace(tmp_path / "old"), Trace(tmp_path / "new")
    for trace in (old, new):
        trace.make()
    for number, size in enumerate(recorded):
        call = f"train-{number}"
        old.write("train", call=call)
        old.write("structure", call=call, leaves=[["features", "int64", 1, size, [], size]])
    session = Session(new, old, RewritePlan(Script("new.py")))
    own = tf.data.Dataset.range(8).batch(4, drop_remainder=True)
    fed = lockstep(session, own, lambda: lambda: None, CALL)
    assert fed.element_spec.shape.as_list() == [rows]
    assert [batch.numpy().tolist() for batch in fed] == [[0, 1, 2, 3], [4, 5, 6, 7]]
