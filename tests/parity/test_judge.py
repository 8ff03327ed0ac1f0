"""The judge on traces written by hand, one level at a time, so that every finding has one cause."""

from __future__ import annotations

import io
import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.exports.recorded import loaded, recorded_requests
from estimator_bridge.parity.judge import judge
from estimator_bridge.parity.recording.batches import serialize
from estimator_bridge.parity.recording.calls import scalar_metrics, write_predictions
from estimator_bridge.parity.recording.folders.model_dirs import export_dir
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.report.summary import render_json
from estimator_bridge.parity.result import LossPoint, ParityResult, PredictionGroup, Thresholds, VariableDiff


class Pair:
    """Two traces that agree unless a test writes something else."""

    def __init__(self, folder: Path) -> None:
        self.legacy, self.modern = Trace(folder / "legacy"), Trace(folder / "modern")
        for trace in self.sides:
            trace.make()

    @property
    def sides(self) -> tuple[Trace, Trace]:
        return self.legacy, self.modern

    def train(self, losses: list[float], modern: list[float] | None = None, batches: list[int] | None = None) -> None:
        digests = list(range(len(losses)))
        for trace, values, seen in ((self.legacy, losses, digests), (self.modern, modern or losses, batches or digests)):
            trace.write("train", call="train-0", max_steps=len(losses))
            for step, (loss, batch) in enumerate(zip(values, seen, strict=False), 1):
                trace.write("step", call="train-0", step=step, loss=loss, batch=batch)
            trace.write("trained", call="train-0", model_dir="model", checkpoint=None)

    def judge(self, replicas: int = 1, micro: int = 1) -> ParityResult:
        return judge(
            self.legacy,
            self.modern,
            command=("train.py",),
            replaying=True,
            replicas=replicas,
            thresholds=Thresholds(),
            micro=micro,
        )


@pytest.mark.parametrize(
    ("earlier", "value", "other", "is_equal"),
    [
        ([], 10.0, 10.00001, False),
        (["model"], 10.0, 10.00001, True),
        (["another"], 10.0, 10.00001, False),
        (["model"], 10.0, 10.01, False),
        (["model"], 50_000, 50_004, False),
    ],
)
def test_values_that_an_earlier_call_trained_are_judged_as_final_ones(
    pair: Pair, earlier: list[str], value: float, other: float, *, is_equal: bool
) -> None:
    """The centers of k-means, trained a step a call on a GPU, part by 3e-6."""
    for trace, start in zip(pair.sides, (value, other), strict=True):
        for number, model_dir in enumerate([*earlier, "model"]):
            call = f"train-{number}"
            trace.write("train", call=call, max_steps=1)
            save(trace.values(call, "initial"), start if number == len(earlier) else 0.0)
            trace.write("step", call=call, step=number + 1, loss=1.0, batch=0)
            trace.write("trained", call=call, model_dir=model_dir, checkpoint=None)

    assert (pair.judge().verdict == "equal") is is_equal


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def found(result: ParityResult) -> list[tuple[str, int | None]]:
    return [(finding.level, finding.step) for finding in result.findings]


def test_equal_traces_are_equal(pair: Pair) -> None:
    pair.train([3.0, 2.0, 1.0])
    result = pair.judge()
    assert (result.verdict, result.exit_code, found(result)) == ("equal", 0, [])
    assert [(point.step, point.legacy, point.modern) for point in result.losses] == [
        (1, 3.0, 3.0),
        (2, 2.0, 2.0),
        (3, 1.0, 1.0),
    ]


def test_a_verdict_and_its_report_take_less_than_a_kilobyte_a_step(pair: Pair) -> None:
    steps = 10_000
    pair.train([1.0 / step for step in range(1, steps + 1)], batches=[step * 2**40 for step in range(steps)])
    tracemalloc.start()
    try:
        result = pair.judge()
        report = render_json(result)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(json.loads(report)["losses"]) == len(result.losses) == steps
    assert peak < 1000 * steps


def test_the_first_loss_outside_is_named(pair: Pair) -> None:
    pair.train([3.0, 2.0, 1.0], modern=[3.0, 2.0001, 1.5])
    result = pair.judge()
    assert (result.exit_code, found(result)) == (1, [("loss", 2)])
    assert "2 of 3 steps outside" in result.findings[0].message


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_on_one_side_is_different(pair: Pair, value: float) -> None:
    pair.train([3.0, 2.0], modern=[3.0, value])
    assert found(pair.judge()) == [("loss", 2)]


def test_nan_on_both_sides_is_equal(pair: Pair) -> None:
    pair.train([3.0, float("nan")])
    assert pair.judge().verdict == "equal"


def test_a_skipped_batch_is_found_before_the_loss_that_it_changes(pair: Pair) -> None:
    pair.train([3.0, 2.0, 1.0, 0.5], modern=[3.0, 1.0, 0.5], batches=[0, 2, 3])
    result = pair.judge()
    assert found(result)[0] == ("batch", 2)
    assert "legacy trained on at step 3" in result.findings[0].message
    assert ("calls", 4) in found(result), "one side trained a step less"


def test_a_step_that_only_the_modern_side_trained_is_found(pair: Pair) -> None:
    pair.train([3.0, 2.0], modern=[3.0, 2.0, 1.0], batches=[0, 1, 2])
    result = pair.judge()
    assert (result.verdict, found(result)) == ("different", [("calls", 3)])
    assert "legacy trained 2 steps, modern 3" in result.findings[0].message


def test_a_batch_from_nowhere_is_said_to_be_so(pair: Pair) -> None:
    pair.train([3.0, 2.0], batches=[0, 99])
    assert "never saw" in pair.judge().findings[0].message


def test_a_call_that_one_side_did_not_make_is_found(pair: Pair) -> None:
    pair.train([3.0])
    pair.legacy.write("evaluated", call="evaluate-0", name="", metrics={"loss": 1.0, "global_step": 1})
    result = pair.judge()
    assert found(result) == [("metric", 1), ("calls", None)]
    assert "evaluate-0" in result.findings[1].message


@pytest.mark.parametrize("other", [{"loss": 1.0, "global_step": 8}, {"global_step": 7}])
def test_a_metric_without_a_counterpart_is_found(pair: Pair, other: dict[str, float]) -> None:
    pair.legacy.write("evaluated", call="evaluate-0", name="", metrics={"loss": 1.0, "global_step": 7})
    pair.modern.write("evaluated", call="evaluate-0", name="", metrics=other)
    result = pair.judge()
    assert ("metric", 7) in found(result)
    assert result.verdict == "different"


def test_metrics_are_compared_by_name_and_step(pair: Pair) -> None:
    for trace, accuracy in ((pair.legacy, 0.5), (pair.modern, 0.75)):
        trace.write("evaluated", call="evaluate-0", name="", metrics={"accuracy": accuracy, "loss": 1.0, "global_step": 7})
    result = pair.judge()
    assert found(result) == [("metric", 7)]
    assert [(metric.metric, metric.legacy, metric.modern) for metric in result.metrics] == [
        ("accuracy", 0.5, 0.75),
        ("loss", 1.0, 1.0),
    ]


@pytest.mark.parametrize(("modern", "equal"), [((0.9, 0.5), True), ((0.5, 0.5), False), ((0.9, 0.9), False)])
def test_evaluations_of_one_name_and_step_are_paired_by_their_order(
    pair: Pair, modern: tuple[float, float], *, equal: bool
) -> None:
    for trace, values in ((pair.legacy, (0.9, 0.5)), (pair.modern, modern)):  # e.g. on the training set, then on the test set
        for number, accuracy in enumerate(values):
            metrics = {"accuracy": accuracy, "global_step": 7}
            trace.write("evaluated", call=f"evaluate-{number}", name="", metrics=metrics)
    result = pair.judge()
    assert [(metric.legacy, metric.modern) for metric in result.metrics] == list(zip((0.9, 0.5), modern, strict=True))
    assert found(result) == ([] if equal else [("metric", 7)])
    assert [metric.evaluation for metric in result.metrics] == ["", "eval 2"]


@pytest.mark.parametrize(
    ("legacy", "modern", "equal", "difference"),
    [
        ([1.0, 2.0], [1.0, 2.0], True, 0.0),
        ([1.0, 2.0], [1.0, 2.5], False, 0.5),
        ([1.0, 2.0], [1.0], False, None),
        ([1, 2], [1, 2], True, 0.0),
        ([1, 2], [1, 3], False, 1.0),
        ([b"a", b"b"], [b"a", b"b"], True, 0.0),
        ([b"a", b"b"], [b"a", b"c"], False, math.inf),
        ([1.0, 2.0], [b"1.0", b"2.0"], False, math.inf),
    ],
)
def test_predictions_are_compared_by_key(
    pair: Pair, legacy: list[Any], modern: list[Any], *, equal: bool, difference: float | None
) -> None:
    for trace, values in ((pair.legacy, legacy), (pair.modern, modern)):
        np.savez(trace.predictions("predict-0"), **{"key:scores": np.array(values)})
        trace.write("predicted", call="predict-0")
    result = pair.judge()
    assert found(result) == ([] if equal else [("prediction", None)])
    assert result.predictions == (PredictionGroup("predict-0", "scores", equal, difference),)


def test_an_output_that_only_the_modern_side_predicts_is_a_difference(pair: Pair) -> None:
    for trace, names in ((pair.legacy, ["scores"]), (pair.modern, ["scores", "classes"])):
        np.savez(trace.predictions("predict-0"), **{f"key:{name}": np.zeros(2) for name in names})
        trace.write("predicted", call="predict-0")
    assert [finding.message for finding in pair.judge().findings] == ["predict-0: the predictions 'classes' differ."]


def test_predictions_that_are_not_kept_are_counted_and_named(pair: Pair) -> None:
    for trace, count in ((pair.legacy, 1500), (pair.modern, 1499)):
        examples = ({"scores": np.float32(1)} for _ in range(count))
        assert len(list(write_predictions(trace, "predict-0", examples))) == count
    result = pair.judge()
    assert [finding.message for finding in result.findings] == ["predict-0: 1,500 predictions on one side, 1,499 on the other."]
    assert "predict-0: the first 1,000 of 1,500 predictions are compared." in result.notes


@pytest.mark.parametrize(("modern", "equal"), [((0.25, 0.5), True), ((0.25, 0.75), False), ((0.25,), False)])
def test_each_element_of_a_metric_is_compared(pair: Pair, modern: tuple[float, ...], *, equal: bool) -> None:
    for trace, values in ((pair.legacy, (0.25, 0.5)), (pair.modern, modern)):
        metrics = scalar_metrics({"recall": np.array(values, np.float32), "global_step": np.int64(3), "summary": b"text"})
        trace.write("evaluated", call="evaluate-0", name="", metrics=metrics)
    assert found(pair.judge()) == ([] if equal else [("metric", 3)])


def test_a_checkpoint_that_only_one_side_leaves_is_a_difference(pair: Pair) -> None:
    for trace, checkpoint in ((pair.legacy, "values/train-0.final"), (pair.modern, None)):
        trace.write("train", call="train-0", max_steps=1)
        trace.write("trained", call="train-0", model_dir="model", checkpoint=checkpoint)
    assert [finding.message for finding in pair.judge().findings] == ["train-0: only one side left a checkpoint."]


def test_an_export_is_loaded_again_only_when_it_was_written_again(pair: Pair) -> None:
    """A resumed comparison writes it to the same folder, in the same process of pytest, too."""
    export(pair.legacy, 1.0)
    folder = pair.legacy.folder / "exported" / "export-0"
    first = loaded(folder)
    assert loaded(folder) is first
    export(pair.legacy, 2.0)
    assert loaded(folder) is not first


def save(prefix: str, weight: float) -> None:
    import tensorflow as tf

    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=["w"], shape_and_slices=[""], tensors=[tf.constant([weight])])


def export(trace: Trace, weight: float, output: str = "scores", constant: float = 1.0) -> None:
    import tensorflow as tf

    save(trace.values("export-0", "final"), weight)
    model = tf.Module()
    model.w = tf.Variable([weight])
    shape = tf.TensorSpec([None], tf.float32, "x")
    answer = tf.function(lambda x: {output: model.w * x + constant}, input_signature=[shape])
    folder = trace.folder / "exported" / "export-0"
    tf.saved_model.save(model, str(folder), {"serving_default": answer})
    given = [1, "dim { size: -1 }"]
    signatures = {"serve serving_default": {"inputs": {"x": given}, "outputs": {output: given}}}
    trace.write(
        "exported", call="export-0", signatures=signatures, variables=trace.values("export-0", "final"), folder=str(folder)
    )


def record_of(*arrays: Any) -> bytes:
    import tensorflow as tf

    return serialize([tf.make_tensor_proto(array).SerializeToString() for array in arrays])


def record_features(trace: Trace, name: str = "x") -> None:
    import tensorflow as tf

    trace.write("features", call="train-0", names=[name])
    with tf.io.TFRecordWriter(str(trace.batches("train-0"))) as writer:
        writer.write(record_of(np.array([1.0, 2.0], np.float32), np.array([0, 1])))


@pytest.mark.parametrize(
    ("weight", "output", "message"),
    [
        (1.0, "scores", []),
        (1.5, "scores", ["export-0: 1 of 1 final variables differ, w most (max abs_diff 0.5)."]),
        (1.0, "classes", ["export-0: the signatures serve serving_default differ."]),
        (None, "", ["Only one side made these calls: export-0."]),
    ],
)
def test_exports_have_equal_signatures_and_variables(pair: Pair, weight: float | None, output: str, message: list[str]) -> None:
    pair.train([1.0])
    export(pair.legacy, 1.0)
    if weight is not None:
        export(pair.modern, weight, output)
    assert [finding.message for finding in pair.judge().findings] == message


@pytest.mark.parametrize(("modern", "equal"), [(b"c", True), (b"d", False)])
def test_predicted_strings_may_have_other_lengths_in_each_example(pair: Pair, modern: bytes, *, equal: bool) -> None:
    for trace, last in ((pair.legacy, b"c"), (pair.modern, modern)):
        examples = [{"tags": np.array(tags, dtype=object)} for tags in ([b"a", b"b"], [last])]
        assert len(list(write_predictions(trace, "predict-0", iter(examples)))) == 2
    assert found(pair.judge()) == ([] if equal else [("prediction", None)])


def test_random_numbers_that_cannot_be_equal_make_a_difference_not_comparable(pair: Pair) -> None:
    pair.train([3.0, 2.0], modern=[3.0, 2.5])
    pair.legacy.write("random", call="train-0", in_step=["dropout/random_uniform"], functions=["while_body"])
    result = pair.judge()
    assert (result.verdict, result.exit_code) == ("not comparable", 2)
    assert any("while_body" in note for note in result.notes)


def test_batches_of_hooks_make_a_difference_not_comparable(pair: Pair) -> None:
    pair.train([3.0, 2.0], modern=[3.0, 2.5])
    assert pair.judge().verdict == "different"
    pair.modern.write("unrecorded")
    result = pair.judge()
    assert (result.verdict, found(result)) == ("not comparable", [("loss", 2)])
    assert any("--free-run" in note for note in result.notes)


def test_dropout_counts_against_the_comparison_only_with_several_parts_of_a_batch(pair: Pair) -> None:
    pair.train([3.0, 2.0], modern=[3.0, 2.5])
    pair.legacy.write("random", call="train-0", in_step=["dropout/random_uniform"], functions=[])
    assert pair.judge().verdict == "different"
    assert pair.judge(replicas=2).verdict == "not comparable"
    assert pair.judge(micro=4).verdict == "not comparable"


def test_nothing_to_compare_is_an_error_of_the_user(pair: Pair) -> None:
    with pytest.raises(BridgeError, match="called no Estimator"):
        pair.judge()


def test_a_line_that_is_being_written_is_left_for_later(pair: Pair) -> None:
    pair.train([3.0])
    with (pair.legacy.folder / "events.jsonl").open("a") as file:
        file.write('{"event": "step", "call": "train-0", "st')
    assert len(list(pair.legacy.events("step"))) == 1
    assert pair.judge().verdict == "equal"


def test_a_line_that_is_completed_while_it_is_read_is_left_for_later(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.train([3.0])
    path = pair.legacy.folder / "events.jsonl"
    begun, rest = b'{"event": "no', b'te", "text": "x"}\n'
    reads = [path.read_bytes() + begun, b"", rest, b""]  # the writer goes on after the reader has met the end of the file

    class GrowingFile(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def seekable(self) -> bool:
            return True

        def seek(self, offset: int, whence: int = 0) -> int:
            assert offset == 0
            return 0

        def readinto(self, buffer: Any) -> int:
            read = reads.pop(0)
            buffer[: len(read)] = read
            return len(read)

    before = [event["event"] for event in pair.legacy.events()]
    monkeypatch.setattr(Path, "open", lambda path, mode: io.BufferedReader(GrowingFile()))
    seen: list[dict[str, Any]] = []
    pair.legacy.follow(0, seen.append)
    assert [event["event"] for event in seen] == before


def test_following_a_trace_gives_each_event_once(pair: Pair) -> None:
    seen: list[dict[str, Any]] = []
    position = pair.legacy.follow(0, seen.append)
    pair.train([3.0, 2.0])
    position = pair.legacy.follow(position, seen.append)
    assert pair.legacy.follow(position, seen.append) == position
    assert [event["event"] for event in seen] == ["train", "step", "step", "trained"]


@pytest.mark.parametrize("name", ["x", ""])
def test_exports_that_differ_in_a_constant_of_their_graphs_are_different(pair: Pair, name: str) -> None:
    pair.train([1.0])
    record_features(pair.legacy, name)
    export(pair.legacy, 1.0)
    export(pair.modern, 1.0, constant=1.5)

    (finding,) = pair.judge().findings
    assert finding.level == "export"
    assert "answers 'scores' of the signature 'serving_default' differ (max abs_diff 0.5, 2 of 2 rows)" in finding.message


@pytest.mark.parametrize(("name", "reason"), [("y", "no value for the input 'x'"), (None, "No recorded batch has features")])
def test_answers_that_cannot_be_compared_are_named(pair: Pair, name: str | None, reason: str) -> None:
    pair.train([1.0])
    if name:
        record_features(pair.legacy, name)
    for trace in pair.sides:
        export(trace, 1.0)

    result = pair.judge()
    assert result.verdict == "equal"
    (note,) = [note for note in result.notes if note.startswith("export-0")]
    assert "not compared" in note
    assert reason in note


def test_requests_have_the_values_of_sparse_features(pair: Pair) -> None:
    import tensorflow as tf

    pair.legacy.write("features", call="train-0", names=["age", "words#0", "words#1", "words#2", "odd#0", "odd#1"])
    indices = np.array([[0, 0], [0, 1], [2, 0]])
    arrays = [
        np.array([7.0, 8.0, 9.0]),
        indices,
        np.array([b"a", b"b", b"c"]),
        np.array([3, 2]),
        np.zeros([9, 2]),
        np.zeros([9, 2]),
    ]
    with tf.io.TFRecordWriter(str(pair.legacy.batches("train-0"))) as writer:
        writer.write(record_of(*arrays))

    rows = [{name: np.ravel(value).tolist() for name, value in row.items()} for row in recorded_requests(pair.legacy)]
    assert rows == [{"age": [7.0], "words": [b"a", b"b"]}, {"age": [8.0], "words": []}, {"age": [9.0], "words": [b"c"]}]


def test_an_export_leaves_the_scripts_folder_alone(tmp_path: Path) -> None:
    inside = str(tmp_path / "side" / "model-0" / "export")
    assert export_dir(tmp_path / "side", inside) == inside
    assert export_dir(tmp_path / "side", str(tmp_path / "serving")) == str(tmp_path / "side" / "exports" / "serving")


@pytest.mark.parametrize(
    ("losses", "weight", "level"),
    [
        ([(2.0, 2.0)] * 6, 0.0, "bit-identical"),
        ([(2.0, 2.0)] * 6, 1e-7, "1e-06 on the first 5 losses"),
        ([(2.0, 2.0)] * 5 + [(2.0, 2.1)], 0.0, "1e-06 on the first 5 losses"),
        ([(2.0, 2.00001)], 0.0, "within the thresholds"),
        ([], 1e-7, "within the thresholds"),  # no loss says anything
    ],
)
def test_the_level_of_a_plan_is_the_highest_that_holds(losses: list[tuple[float, float]], weight: float, level: str) -> None:
    points = tuple(LossPoint(step, *pair) for step, pair in enumerate(losses, 1))
    variables = (VariableDiff("w", (2,), weight),)
    assert ParityResult((), "replay", "equal", Thresholds(), points, variables=variables).level == level


@pytest.mark.parametrize(("difference", "named"), [(1e-7, True), (1e-5, False), (None, False)])
def test_the_first_update_belongs_to_the_level(difference: float | None, named: bool) -> None:
    points = (LossPoint(1, 2.0, 2.0000001),)
    level = ParityResult((), "replay", "equal", Thresholds(), points, first_update=difference).level
    assert level == "1e-06 on the first 5 losses" + " and the first update" * named


@pytest.mark.parametrize(
    ("is_equal", "largest", "is_bitwise"), [(True, 0.0, True), (True, 1e-9, False), (True, None, True), (False, None, False)]
)
def test_predictions_belong_to_the_level_too(is_equal: bool, largest: float | None, is_bitwise: bool) -> None:
    answers = (PredictionGroup("predict-0", "logits", is_equal, largest),)
    result = ParityResult((), "replay", "equal", Thresholds(), (LossPoint(1, 2.0, 2.0),), predictions=answers)
    assert (result.level == "bit-identical") is is_bitwise
