"""Recorded batches in place of those of the new script's dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.parity.recording.batches import serialize
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.plan import FIRST_STEPS, RewritePlan
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


def batches_of(size: int, rows: int = 8) -> list[Any]:
    return [np.arange(start, min(start + size, rows)) for start in range(0, rows, size)]


@pytest.mark.parametrize(
    ("own", "fed"),
    [
        (batches_of(2), batches_of(2)),
        (batches_of(5), batches_of(2)),
        (batches_of(1), batches_of(2)),
        (batches_of(3, rows=6), batches_of(2)[:3]),
        ([*batches_of(8), np.array([9])], [*batches_of(2), np.array([9])]),
        ([], []),
    ],
)
def test_recorded_batches_of_an_evaluation_have_their_own_size(tmp_path: Path, own: list[Any], fed: list[Any]) -> None:
    """A rewrite may evaluate the same rows in other batches; it gets as many rows as it reads."""
    old, new = Trace(tmp_path / "old"), Trace(tmp_path / "new")
    for trace in (old, new):
        trace.make()
    old.write("structure", call="evaluate-0", leaves=[["features", "int64", 1, None, [], None]])
    session = Session(new, old, RewritePlan(Script("new.py")))
    recorded = iter([("evaluate-0", [batch]) for batch in batches_of(2)])

    given = list(session.held_out(own, tf.TensorSpec([None], tf.int64), "evaluate-0", lambda: next(recorded, None)))

    assert [batch.tolist() for batch in given] == [batch.tolist() for batch in fed]


@pytest.mark.parametrize(
    ("own", "call"), [([5, 6], "evaluate-1"), ([1, 2], "evaluate-0"), ([8, 9], "evaluate-0"), ([], "evaluate-0")]
)
def test_of_several_evaluations_of_a_step_the_one_of_the_same_rows_is_paired(tmp_path: Path, own: list[int], call: str) -> None:
    """E.g. the old script evaluates its training and its test data, and the new one only its test data."""
    old, new = Trace(tmp_path / "old"), Trace(tmp_path / "new")
    for trace in (old, new):
        trace.make()
    for number, rows in enumerate(([1, 2, 3], [4, 5, 6])):
        name = f"evaluate-{number}"
        old.write("structure", call=name, leaves=[["features", "int64", 1, None, [], None]])
        old.write("evaluated", call=name, name="", metrics={"global_step": 0})
        with tf.io.TFRecordWriter(str(old.batches(name))) as writer:
            writer.write(serialize([tf.make_tensor_proto(np.array(rows)).SerializeToString()]))
    session = Session(new, old, RewritePlan(Script("new.py")))

    event = session.evaluation(tf.TensorSpec([None], tf.int64), [np.array(own)] if own else [])

    assert event
    assert event["call"] == call


def test_sparse_and_ragged_batches_stay_what_they_are(tmp_path: Path) -> None:
    old, new = Trace(tmp_path / "old"), Trace(tmp_path / "new")
    for trace in (old, new):
        trace.make()
    sparse = tf.sparse.from_dense([[1, 0], [0, 2]])
    ragged = tf.ragged.constant([[1], [2, 3]])
    own = tf.data.Dataset.from_tensor_slices({"sparse": sparse, "ragged": ragged, "dense": [1, 2]}).batch(2)
    session = Session(new, old, RewritePlan(Script("new.py")))
    (fed,) = lockstep(session, own, lambda: lambda: None, CALL)
    assert isinstance(fed["sparse"], tf.SparseTensor)
    assert isinstance(fed["ragged"], tf.RaggedTensor)
    assert tf.sparse.to_dense(fed["sparse"]).numpy().tolist() == [[1, 0], [0, 2]]
    assert (fed["ragged"].to_list(), fed["dense"].numpy().tolist()) == ([[1], [2, 3]], [1, 2])


@pytest.mark.parametrize(("error", "found"), [(None, {"rho": 0.9}), (NotImplementedError(), {}), (AttributeError("decay"), {})])
def test_numbers_of_an_optimizer_are_read_from_its_configuration_if_it_has_one(
    tmp_path: Path, error: Exception | None, found: dict[str, float]
) -> None:
    """A script's own get_config may fail, since nothing else calls it; the comparison goes on without its numbers."""

    class Own:
        def get_config(self) -> dict[str, Any]:
            if error:
                raise error
            return {"rho": 0.9, "name": "own", "schedule": None}

    new, old = Trace(tmp_path / "new"), Trace(tmp_path / "old")
    for trace in (new, old):
        trace.make()
    assert Session(new, old, RewritePlan(Script("new.py")))._configured(Own()) == found


def test_a_later_step_reads_only_the_counter_and_the_learning_rate_of_an_optimizer(tmp_path: Path) -> None:
    """To read all numbers of a Keras optimizer takes longer than a small model's step."""

    class Own:
        iterations = tf.constant(7)
        learning_rate = 0.5

        @property
        def beta_1(self) -> float:
            raise AssertionError("a number that no later step needs")

        def get_config(self) -> dict[str, Any]:
            return {}

    new, old = Trace(tmp_path / "new"), Trace(tmp_path / "old")
    for trace in (new, old):
        trace.make()
    session = Session(new, old, RewritePlan(Script("new.py")))
    session.optimizers, session.index = [Own()], FIRST_STEPS
    session.begin_step()
    session.record_loss(0.25)
    session.end_step()

    step, rates = new.events("step", "rates")
    assert (step["iterations"], step["loss"], rates["rates"]) == ([7], 0.25, [0.5])


def test_a_script_that_trains_after_the_last_step_ends_before_it_evaluates(tmp_path: Path) -> None:
    """The old script's evaluation there is one of the values of the last step that both have."""
    old, new = Trace(tmp_path / "old"), Trace(tmp_path / "new")
    for trace in (old, new):
        trace.make()
    old.write("limited")
    session = Session(new, old, RewritePlan(Script("new.py")))
    session.leave_step()
    session.record_loss(0.5)
    with pytest.raises(SystemExit):
        session.leave_step()
