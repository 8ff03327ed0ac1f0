"""Pipelines: where a model is cut, what each stage holds, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.callbacks.timeline import TimelineWriter
from estimator_bridge.modern.parallel.cutting import Cut, _crossing, cut
from estimator_bridge.modern.parallel.estimates import estimate
from estimator_bridge.modern.parallel.mesh import Mesh
from estimator_bridge.modern.parallel.micro_batches.pipeline import check_draws
from estimator_bridge.modern.parallel.placement import Placer
from estimator_bridge.modern.parallel.plans.plan import PlacementPlan
from estimator_bridge.modern.parallel.timeline import Span, chrome_trace, drawing, spans_of
from tests.modern.jobs import ModelFn, Y, engine, spec, v1
from tests.modern.parallel.placed_models import WIDTH, dense, mlp, summed
from tests.modern.parallel.test_placement import CPUS, step_of
from tests.running import python_output

IDLE = Path(__file__).parents[3] / "benchmarks" / "jobs" / "idle_layers.py"


def cut_of(model_fn: ModelFn, folder: Path, number: int, at: tuple[str, ...] = ()) -> Cut:
    """Returns the stages of a model."""
    return cut(*step_of(model_fn, folder), number, at)


def layers(*widths: int) -> ModelFn:
    """Returns a model of dense layers without activations."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        net = features["x"]
        for number, width in enumerate(widths):
            net = dense(net, width, f"layer_{number}")
        loss = v1.losses.mean_squared_error(labels, dense(net, 1, "out"))
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    return model_fn


def test_stages_compute_even_shares_and_begin_with_a_layer(tmp_path: Path) -> None:
    """The last seven of eight layers are equal, so the fifth layer begins the second half."""
    found = cut_of(mlp, tmp_path, 2)
    assert found.begins[1] == "layer_4/MatMul"
    assert {name for name, stage in found.variables.items() if stage == 0} == {
        f"layer_{number}/{part}" for number in range(4) for part in ("kernel", "bias")
    }
    # For each row: 3 to 32 units and 7 times 32 to 32 with biases and ReLUs; dropout, out and loss are a few more.
    layer = 2 * WIDTH * WIDTH + 2 * WIDTH
    first_half = 2 * 3 * WIDTH + 2 * WIDTH + 3 * layer
    assert found.shares[0] == pytest.approx(first_half / (first_half + 4 * layer), rel=0.03)


def test_stages_begin_with_a_scope_rather_than_within_one(tmp_path: Path) -> None:
    """Behind the first layer of the second block, shares are more even, 4,544 and 4,352 in place of 4,288 and 4,608, and 4 numbers cross, not 32."""

    def blocks(features: Any, labels: Any, mode: str) -> Any:
        net = features["x"]
        for block, widths in enumerate([(32, 32, 32), (4, 32, 32, 32)]):
            with v1.variable_scope(f"block_{block}"):
                for number, width in enumerate(widths):
                    net = dense(net, width, f"layer_{number}")
        loss = v1.losses.mean_squared_error(labels, tf.reduce_sum(net, 1, keepdims=True))
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    assert cut_of(blocks, tmp_path, 2).begins[1] == "block_1/layer_0/MatMul"


def test_a_large_layer_is_a_stage_alone(tmp_path: Path) -> None:
    """3 to 8, 8 to 400, 400 to 8: the second and the third have 6,400 multiplications and additions each."""
    found = cut_of(layers(8, 400, 8), tmp_path, 2)
    assert found.begins[1] == "layer_2/MatMul"


def test_names_say_where_stages_begin(tmp_path: Path) -> None:
    """A scope stands for its first operation."""
    found = cut_of(mlp, tmp_path, 3, ("layer_1", "layer_7/BiasAdd"))
    assert list(found.begins[1:]) == ["layer_1/MatMul", "layer_7/BiasAdd"]
    assert (found.variables["layer_0/kernel"], found.variables["layer_6/kernel"], found.variables["layer_7/bias"]) == (0, 1, 2)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (("layer_44",), "'layer_44' is no forward operation.\n"),
        (("layer_4", "layer_2"), "'layer_2' begins no later than the name before it"),
        (("layer_4", "layer_4"), "'layer_4' begins no later than the name before it"),
    ],
)
def test_names_that_begin_no_stage_are_refused(tmp_path: Path, at: tuple[str, ...], message: str) -> None:
    """Other names are shown."""
    with pytest.raises(BridgeError) as refused:
        cut_of(mlp, tmp_path, len(at) + 1, at)
    assert message in str(refused.value)
    assert "e.g. layer_" in str(refused.value)


def test_a_stage_without_variables_is_refused(tmp_path: Path) -> None:
    """Its device would train nothing."""
    with pytest.raises(
        NotSupportedError, match=r"Stage 1 of the pipeline, which begins at 'mean_squared_error/(?s:.)*2 stages, 1 of which"
    ):
        cut_of(layers(8), tmp_path, 2, ("mean_squared_error",))


def test_more_stages_than_layers_are_refused(tmp_path: Path) -> None:
    """A dense layer has two operations with variables."""
    with pytest.raises(
        NotSupportedError, match=r"too few operations with variables(?s:.)*expected: 5(?s:.)*received: 4(?s:.)*Take pipeline=4"
    ):
        cut_of(layers(8), tmp_path, 5)


def test_uneven_stages_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The message has the share of the largest."""
    cut_of(mlp, tmp_path, 2, ("layer_7",))
    assert "The stages of the pipeline are uneven: one has 8" in caplog.text
    caplog.clear()
    cut_of(mlp, tmp_path, 2)
    assert "uneven" not in caplog.text


def test_an_estimate_tells_the_bubble_and_what_each_stage_holds(tmp_path: Path) -> None:
    """Each of 3 stages waits for 2 of 8 + 2 turns."""
    mesh = Mesh(tuple(f"/device:CPU:{number}" for number in range(3)))
    model, step = step_of(layers(8, 8, 8, 8, 8), tmp_path)
    placer = Placer(PlacementPlan(stages=3), mesh)
    found = estimate(model, step, mesh, placer.placed(model, step), 8)
    assert found.bubble == pytest.approx(0.2)
    assert [stage.micro_batches for stage in found.stages] == [3, 2, 1]
    assert [stage.devices for stage in found.stages] == [(name,) for name in mesh.names]
    assert {(row.source, row.target) for row in found.crossings} == {  # the labels go to the last stage
        (mesh.names[a], mesh.names[b]) for a, b in ((0, 1), (1, 0), (1, 2), (2, 1), (0, 2))
    }


def test_the_bytes_that_cross_a_cut_are_those_of_its_tensors(tmp_path: Path) -> None:
    """For 8 rows: a hidden layer forward, its gradient back, and the labels, which pass over the middle stage."""
    mesh = Mesh(tuple(f"/device:CPU:{number}" for number in range(3)))
    model, step = step_of(layers(40, 20), tmp_path)
    placed = Placer(PlacementPlan(stages=3, at=("layer_1", "out")), mesh).placed(model, step)
    found = estimate(model, step, mesh, placed, 1)
    tensors = {"wide": np.zeros([8, 40], np.float32), "narrow": np.zeros([8, 20], np.float32), "labels": Y[:8]}
    crossing = {(0, 1): "wide", (1, 0): "wide", (1, 2): "narrow", (2, 1): "narrow", (0, 2): "labels"}
    numbers = {name: number for number, name in enumerate(mesh.names)}
    counted = {(numbers[row.source], numbers[row.target]): row.bytes_of(8) for row in found.crossings}
    assert counted == {ends: tensors[name].nbytes for ends, name in crossing.items()}


def test_the_bytes_of_every_cut_are_those_of_the_tensors_that_are_read_behind_it() -> None:
    """A tensor that several operations read crosses once, and one without readers never."""
    with tf.Graph().as_default():
        first = tf.add(v1.placeholder(tf.float32, [None, 3]), 1.0)
        second = tf.matmul(first, tf.ones([3, 5]))
        third = tf.concat([first, second], 1)
        last = tf.cast(tf.reduce_sum(third, 1), tf.float64) + tf.cast(tf.reduce_sum(first, 1), tf.float64)
        varying = [one.op for one in (first, second, third)] + [last.op.inputs[place].op for place in (0, 1)] + [last.op]
    expected = [
        sum(
            int(np.prod(tensor.shape[1:].as_list())) * tensor.dtype.size
            for op in varying[:place]
            for tensor in op.outputs
            if any(user in varying[place:] for user in tensor.consumers())
        )
        for place in range(len(varying) + 1)
    ]
    assert _crossing(varying) == expected
    assert any(expected)


def test_seeded_random_numbers_in_a_branch_are_refused() -> None:
    """Each micro-batch would draw the same ones, for each call of a function starts its branches anew."""
    with tf.Graph().as_default() as graph:
        tf.cond(v1.placeholder(tf.bool, []), lambda: tf.random.normal([2], seed=3), lambda: tf.zeros([2]))
    with pytest.raises(NotSupportedError, match="the same random numbers for each micro-batch"):
        check_draws(graph.get_operations())


def test_slots_follow_their_variables(tmp_path: Path) -> None:
    """As without a pipeline."""
    assignment, *_ = Placer(PlacementPlan(stages=2), CPUS).placed(*step_of(summed, tmp_path))
    assert assignment.devices["embedding/Adam"] == assignment.devices["embedding"] == CPUS.names[1]
    assert assignment.devices["dense/kernel/Adam_1"] == assignment.devices["dense/kernel"] == CPUS.names[0]


@pytest.mark.slow
def test_stages_overlap_and_hold_few_micro_batches(tmp_path: Path) -> None:
    """The first stage goes on with other micro-batches while the last ones wait, but holds no more of them than there are stages."""
    stages = 4
    events = tmp_path / "events"
    timeline = tmp_path / "timeline.json"
    plan = ["--path", "modern", "--mesh", f"pipeline={stages}", "--micro", "8", "--timeline", timeline]
    script = [str(IDLE), f"--stages={stages}", "--steps=2", "--unit=0.0005", f"--events={events}"]
    python_output(sys.executable, "-m", "estimator_bridge", "run", *plan, *script)
    found = [line.split() for line in sorted(events.read_text().splitlines())]
    for stage in range(stages):
        own = [way for _, way, place in found if int(place) == stage]
        assert own.count("forward") == own.count("backward") >= 16
        held = [own[: number + 1].count("forward") - own[:number].count("backward") for number in range(len(own))]
        assert max(held) == stages - stage
    traced = [event for event in json.loads(timeline.read_text())["traceEvents"] if event["ph"] == "X"]
    assert len(traced) == 8 * (2 * stages - 1)
    spans = {(event["tid"], event["name"]): (event["ts"], event["ts"] + event["dur"]) for event in traced}
    assert spans[0, "forward 1"][0] < spans[0, "backward 0"][0]  # before the first micro-batch is through
    for micro in range(8):
        assert spans[0, f"forward {micro}"][1] <= spans[1, f"forward {micro}"][0] + 1e3
        assert spans[stages - 1, f"forward and backward {micro}"][1] <= spans[0, f"backward {micro}"][0] + 1e3


def test_a_timeline_is_drawn() -> None:
    """Two stages and two micro-batches, whose times are counted by hand."""
    times = np.array([[[1, 2], [2, 4], [4, 6], [0, 0]], [[2, 3], [4, 6], [6, 8], [0, 0]]], float)
    spans = spans_of(times, 2)
    assert Span(0, 1, "backward", 6, 8) in spans
    assert [span.stage for span in spans] == [0, 1, 0, 0, 1, 0]
    picture = ElementTree.fromstring(drawing(spans))
    titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert "forward and backward of micro-batch 1: 2000.00 ms" in titles
    assert chrome_trace(spans)["traceEvents"][0]["dur"] == 1e6


@pytest.mark.parametrize("name", ["picture.png", "missing/picture.svg"])
def test_a_timeline_that_cannot_be_written_is_refused_before_the_training(tmp_path: Path, name: str) -> None:
    """The training may take days."""
    with pytest.raises(BridgeError, match="writes a Chrome trace or a picture"):
        TimelineWriter(tmp_path / name, 2)


def test_a_timeline_that_cannot_be_written_does_not_end_a_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is over, and saved; an empty picture would be no answer either."""
    for times, message in ((np.ones([2, 4, 2]), "could not be written"), (np.zeros([2, 4, 2]), "No step overlapped")):
        folder = tmp_path / message.replace(" ", "-")
        folder.mkdir()
        writer = TimelineWriter(folder / "picture.svg", 2)
        transplant: Any = SimpleNamespace(times=[SimpleNamespace(numpy=lambda times=times: times)])
        writer.begin(transplant, 0)
        folder.rmdir()
        writer.end(2)
        assert message in caplog.text


def test_a_timeline_is_written_as_a_picture(tmp_path: Path) -> None:
    times = np.array([[[1, 2], [2, 4], [4, 6], [0, 0]], [[2, 3], [4, 6], [6, 8], [0, 0]]], float)
    writer = TimelineWriter(tmp_path / "picture.svg", 2)
    transplant: Any = SimpleNamespace(times=[SimpleNamespace(numpy=lambda: times)])
    writer.begin(transplant, 0)
    writer.end(2)
    picture = ElementTree.parse(tmp_path / "picture.svg")
    assert len([*picture.iter("{http://www.w3.org/2000/svg}title")]) >= 6


def test_a_timeline_without_a_pipeline_is_refused(tmp_path: Path) -> None:
    """It would be empty."""
    with pytest.raises(BridgeError, match="shows the micro-batches of a pipeline"):
        engine("modern", micro=2, timeline=tmp_path / "picture.svg")
