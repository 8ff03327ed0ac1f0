"""Placement on a mesh: the same training bit by bit, variables and operations where the plan says, and estimates that are true."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.fragments import Fragment
from estimator_bridge.modern.graph.model_graph import ModelGraph, operation
from estimator_bridge.modern.graph.stages import Plan, plan
from estimator_bridge.modern.parallel.assignment import assign
from estimator_bridge.modern.parallel.estimates import Crossing, estimate
from estimator_bridge.modern.parallel.mesh import Mesh
from estimator_bridge.modern.parallel.placement import Placer, placed_operations
from estimator_bridge.modern.parallel.plans.plan import PlacementPlan, PlaceRule
from estimator_bridge.modern.parallel.script_devices import _log_dropped, logging_dropped
from estimator_bridge.modern.planning import EndOfPlanning, PlanningEngine
from estimator_bridge.runtime.estimator_calls import methods
from tests.modern.jobs import WORDS, ModelFn, estimator, regression_input, spec, v1, with_plan
from tests.modern.parallel.placed_models import CASES, dense, mlp, recommender, scoped, summed
from tests.modern.step.test_transplant_surface import SUMMED
from tests.running import python_output

CPUS = Mesh(("/device:CPU:0", "/device:CPU:1"))
GPUS = Mesh(("/device:GPU:0", "/device:GPU:1"))
DIVIDED = tuple(name for name, case in CASES.items() if case.plan.devices == 4)


@functools.cache
def trained_by(*names: str) -> dict[str, Any]:
    """Returns the results of trainings, which need a process of their own for their devices."""
    found: dict[str, Any] = json.loads(python_output(sys.executable, Path(__file__).with_name("placed_trainings.py"), *names))
    return found


def check_equal(result: dict[str, Any]) -> None:
    """Asserts that the plan changed no bit of a training, but by rounding where sums have another order, and that its bytes are true."""
    one, placed = result["losses"]
    assert placed == (pytest.approx(one, rel=1e-6) if result["rounds"] else one)
    assert not any(result["different"].values()), result["different"]
    measured: Counter[str] = Counter()
    for device, size in result["where"].values():
        measured[device] += size
    for row in result["estimated"]["devices"]:
        total = row["variable_bytes"] + row["slot_bytes"]
        assert total == pytest.approx(measured[row["device"].removeprefix("/device:")], rel=0.01)


LONG = [pytest.param(name, marks=pytest.mark.slow) for name in ("recommender", "pipeline")]


@pytest.mark.parametrize("name", ["mlp", *LONG])
def test_a_placed_training_is_bit_identical(name: str) -> None:
    """Losses and checkpoints, also after going on with and without the plan from either's checkpoint."""
    check_equal(trained_by(name)[name])


@pytest.mark.parametrize("name", ["mlp", LONG[0]])
def test_no_device_has_more_than_60_percent_of_the_bytes(name: str) -> None:
    """Variables and slots as they are in the training."""
    held: Counter[str] = Counter()
    for device, size in trained_by(name)[name]["where"].values():
        held[device] += size
    assert sorted(held) == ["CPU:0", "CPU:1"]
    assert max(held.values()) <= 0.6 * held.total()


@pytest.mark.slow
def test_the_stages_of_a_pipeline_are_divided_over_devices_of_their_own() -> None:
    """Two of four devices each: layers of the first stage lie on the first two."""
    results = trained_by(*DIVIDED)
    for result in results.values():
        check_equal(result)
    where = {name: device for name, (device, _) in results["divided stages"]["where"].items() if name.endswith("/kernel")}
    layers = {device: [name[:7] for name in where if where[name] == device] for device in sorted(where.values())}
    assert list(layers) == ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]
    assert max(layers["CPU:0"] + layers["CPU:1"]) < min(layers["CPU:2"] + layers["CPU:3"])


def test_slots_live_beside_their_variables() -> None:
    """In the training, not only in the plan."""
    where = trained_by("mlp")["mlp"]["where"]
    slots = [name for name in where if name.endswith("/Momentum")]
    assert len(slots) == 18
    assert all(where[name][0] == where[name.removesuffix("/Momentum")][0] for name in slots)


@pytest.mark.slow
def test_variables_of_a_worker_live_where_the_plan_says() -> None:
    """A strategy makes them, and its optimizer the slots; the strategy's own device would be the first."""
    found = json.loads(python_output(sys.executable, Path(__file__).with_name("placed_trainings.py"), "strategy"))
    embedded = ["embedding CPU:1", "embedding/Adam CPU:1", "embedding/Adam_1 CPU:1"]
    assert [line for line in found if line.startswith("embedding")] == embedded
    assert "dense/kernel CPU:0" in found
    assert "dense/kernel/Adam CPU:0" in found


@pytest.mark.slow
def test_other_models_are_bit_identical() -> None:
    """Rules, other optimizers, the script's devices, tables of a canned Estimator, and micro-batches."""
    results = trained_by(*(name for name in CASES if name not in ("mlp", "recommender", "pipeline", *DIVIDED)))
    for result in results.values():
        check_equal(result)
    assert {device for device, _ in results["script"]["where"].values()} == {"CPU:0", "CPU:1"}


@pytest.mark.slow
def test_what_scripts_write_is_bit_identical() -> None:
    """Of losses that are sums, TensorFlow's graph optimizer adds the terms in another order in each run."""
    for name, result in trained_by("surface").items():
        if name in SUMMED:
            np.testing.assert_allclose(*result["losses"], rtol=1e-6)
            result["losses"] = [[], []]
        check_equal(result)


def step_of(model_fn: ModelFn, folder: Path, input_fn: Any = regression_input) -> tuple[ModelGraph, Plan]:
    """Returns a training graph and its step."""
    model = model_graph.build(estimator(model_fn, folder), input_fn, model_graph.TRAIN, None)
    return model, plan(operation(model.spec.train_op), model.spec.loss, model.updates, (), model.references)


def devices_of(model_fn: ModelFn, folder: Path, placement: PlacementPlan, mesh: Mesh = CPUS) -> dict[str, str]:
    """Returns the last digit of the device of each variable and operation, or "H" for the host beside GPUs."""
    model, step = step_of(model_fn, folder)
    found = placed_operations(placement, mesh, assign(placement, mesh, model, step), step)
    return {name: "H" if mesh is GPUS and "CPU" in device else device[-1] for name, device in found.items()}


def test_operations_follow_their_weights_and_gradients_their_operations(tmp_path: Path) -> None:
    """Forward, backward, and the clipping of each gradient; TensorFlow keeps the forward operation in ``_original_op``."""
    found = devices_of(mlp, tmp_path, PlacementPlan(2, (PlaceRule("layer_[0-3]/.*", 0), PlaceRule(".*", 1))))
    forward = [found[f"layer_{number}/MatMul"] for number in range(8)]
    by_weight = [found[f"gradients/layer_{number}/MatMul_grad/MatMul_1"] for number in range(8)]
    relu = [found[f"gradients/layer_{number}/Relu_grad/ReluGrad"] for number in range(8)]
    assert forward == by_weight == relu == ["0"] * 4 + ["1"] * 4
    clipped = [found[f"clip_by_global_norm/clip_by_global_norm/_{number}"] for number in (0, 15)]
    assert clipped == ["0", "1"]


def test_the_first_matching_rule_decides_and_the_rest_is_balanced(tmp_path: Path) -> None:
    """Tables of 1,600 bytes and as much of slots for each part; the dense layers fill up the other device."""
    rules = (PlaceRule("table_1/part_0", 0), PlaceRule("table_[01]/.*", 1))
    model, step = step_of(recommender, tmp_path)
    found = assign(PlacementPlan(2, rules), CPUS, model, step)
    assert found.devices["table_1/part_0"] == found.devices["table_1/part_0/Adagrad"] == CPUS.names[0]
    assert found.devices["table_1/part_1"] == found.devices["table_0/part_0/Adagrad"] == CPUS.names[1]
    assert found.devices["deep/kernel"] == CPUS.names[0]
    assert found.reasons["table_1/part_0"] == "table_1/part_0"
    assert found.reasons["deep/kernel"] == "balance"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([PlaceRule("layer", 0)], "'layer' matches no variable.\n"),
        ([PlaceRule("layer_0/kernel/Momentum", 0)], "matches no variable.\n"),
        ([PlaceRule("layer_.*", 0), PlaceRule("layer_1/.*", 1)], "that the patterns before it leave: 'layer_.*' is first"),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused(tmp_path: Path, rules: list[PlaceRule], message: str) -> None:
    """A name that was changed must not leave its variables elsewhere silently."""
    model, step = step_of(mlp, tmp_path)
    with pytest.raises(BridgeError) as refused:
        assign(PlacementPlan(2, tuple(rules)), CPUS, model, step)
    assert message in str(refused.value)
    assert "e.g. layer_" in str(refused.value)


def test_the_scripts_devices_count_where_the_plan_says_so(tmp_path: Path) -> None:
    """``/gpu:1`` is the second device of any mesh, and ``/cpu:0`` the host."""
    found = devices_of(scoped, tmp_path, PlacementPlan(2, (), True))
    assert (found["second/kernel"], found["second/MatMul"], found["second/Relu"], found["first/kernel"]) == ("1", "1", "1", "0")
    on_gpus = devices_of(scoped, tmp_path, PlacementPlan(2, (), True), GPUS)
    assert (on_gpus["second/kernel"], on_gpus["first/kernel"], on_gpus["first/MatMul"]) == ("1", "H", "H")
    elsewhere = devices_of(scoped, tmp_path, PlacementPlan(2, (PlaceRule(".*", 0),), False))
    assert (elsewhere["second/kernel"], elsewhere["second/MatMul"]) == ("0", "0")


@pytest.mark.parametrize(("keeps", "dropped"), [(False, ["/gpu:1", "/gpu", "<lambda>"]), (True, ["/gpu"])])
def test_each_device_of_the_script_that_is_dropped_is_logged_once(
    caplog: pytest.LogCaptureFixture, keeps: bool, dropped: list[str]
) -> None:
    """With the line of the script, which TensorFlow keeps in ``_device_assignments``; None, "" and a library's devices do not count."""
    _log_dropped.cache_clear()
    for _ in range(2):
        with tf.Graph().as_default(), logging_dropped(keeps):
            for device in ("/gpu:1", "/gpu:1", "/gpu", lambda _: "/gpu:1", None, ""):
                with v1.device(device):
                    tf.constant(1.0)
    logged = [record.getMessage() for record in caplog.records]
    assert [re.sub(r".*py:\d+: tf.device\('(.*)'\) is dropped;.*", r"\1", line) for line in logged] == dropped
    assert all(line.startswith(__file__) for line in logged)


def test_a_script_device_outside_of_the_mesh_is_refused(tmp_path: Path) -> None:
    """With the script's line."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        with tf.device("/gpu:5"):
            weight = v1.get_variable("weight", [3, 1])
        loss = v1.losses.mean_squared_error(labels, features["x"] @ weight)
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    model, step = step_of(model_fn, tmp_path)
    with pytest.raises(NotSupportedError, match="does not have") as refused:
        assign(PlacementPlan(2, (), True), CPUS, model, step)
    assert "model=6" in str(refused.value)
    assert str(refused.value.asked_by).startswith(__file__)


def test_counters_and_powers_stay_where_tensorflow_puts_them(tmp_path: Path) -> None:
    """GPUs have no kernels for some of them."""
    model, step = step_of(summed, tmp_path)
    placed = assign(PlacementPlan(2), GPUS, model, step).devices
    assert not {"global_step", "beta1_power", "beta2_power"} & placed.keys()
    assert placed["embedding/Adam"] == placed["embedding/Adam_1"] == placed["embedding"]


def test_tables_are_on_the_host(tmp_path: Path) -> None:
    """GPUs have no kernels for them, nor for strings."""

    def worded(features: Any, labels: Any, mode: str) -> Any:
        table = v1.lookup.StaticHashTable(v1.lookup.KeyValueTensorInitializer(["0", "1"], tf.constant([0, 1], tf.int64)), 2)
        rows = table.lookup(tf.as_string(features["words"] % 3))
        net = tf.reduce_mean(tf.gather(v1.get_variable("embedding", [3, 4]), rows), 1)
        loss = v1.losses.mean_squared_error(labels, dense(net, 1, "out"))
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    model, _ = step_of(worded, tmp_path)
    found = devices_of(worded, tmp_path / "again", PlacementPlan(2), GPUS)
    kinds = {op.type: found[op.name] for op in model.graph.get_operations() if op.name in found}
    assert (kinds["LookupTableFindV2"], kinds["AsString"]) == ("H", "H")
    assert kinds["MatMul"] in {"0", "1"}


def test_a_fragment_keeps_its_devices_and_no_colocation() -> None:
    """TensorFlow refuses a colocation that contradicts a device."""
    with tf.Graph().as_default():
        one = tf.add(v1.placeholder(tf.float32), 1.0, name="one")
        with v1.colocate_with(one):
            two = tf.multiply(one, 2.0, name="two")
        fragment = Fragment.cut({one.op, two.op}, [two])
    nodes = {node.name: node for node in fragment.placed({"two": "/device:CPU:1"}).graph_def.node}
    assert (nodes["two"].device, nodes["one"].device) == ("/device:CPU:1", "")
    assert "_class" not in nodes["two"].attr
    assert all(not node.device for node in fragment.graph_def.node)


def test_an_estimate_counts_by_shapes(tmp_path: Path) -> None:
    """3 x 8 and 8 x 1 weights with biases and momentum; the hidden layer crosses forward and its gradient back, and labels cross."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = v1.losses.mean_squared_error(labels, dense(dense(features["x"], 8, "a"), 1, "b"))
        return spec(mode, loss, v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, v1.train.get_global_step()))

    model, step = step_of(model_fn, tmp_path)
    placement = PlacementPlan(2, (PlaceRule("a/.*", 0), PlaceRule("b/.*", 1)))
    found = estimate(model, step, CPUS, Placer(placement, CPUS).placed(model, step), 1)
    assert found.held() == {CPUS.names[0]: (4 * 32 + 8, 4 * 32), CPUS.names[1]: (4 * 9, 4 * 9)}  # 8: global_step
    first, second = CPUS.names
    forth, back = Crossing(first, second, 2, 0, 4 * (8 + 1), 0, 0, 4 * 8), Crossing(second, first, 1, 0, 4 * 8, 0, 0, 4 * 8)
    assert list(found.crossings) == [forth, back]
    kept = {row.source: row.row_bytes for row in found.activations}
    # The hidden layer for its weights; the result and its squared difference, which weights are multiplied with. Features are no activations.
    assert kept == {first: 4 * 8, second: 4 * 2}


def test_a_micro_batch_keeps_its_part_of_the_activations(tmp_path: Path) -> None:
    """Static shapes say so; behind a reshape to [-1, ...] only the number of rows gives them."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        words = v1.get_variable("words", [20, 6])
        net = tf.reshape(tf.nn.embedding_lookup(words, features["words"]), [-1, 6])
        for number in range(3):
            net = dense(net, 6, f"layer_{number}", tf.tanh)
        logits = tf.reduce_mean(tf.reshape(net, [-1, WORDS.shape[1], 6]), [1, 2])[:, None]
        loss = v1.losses.mean_squared_error(labels, logits)
        return spec(mode, loss, v1.train.AdamOptimizer(0.1).minimize(loss, v1.train.get_global_step()))

    def planned(micro: int, rows: int | None) -> Any:
        engine_of_plan = PlanningEngine(**with_plan({"micro": micro}), rows=rows)
        with pytest.raises(EndOfPlanning) as end:
            methods(engine_of_plan)["train"](estimator(model_fn, tmp_path), regression_input, steps=1)
        return end.value.found

    one, parts = planned(1, 8), planned(4, 8)
    (whole,) = one.kept(8).values()
    assert whole >= 3 * 8 * WORDS.shape[1] * 6 * 4  # the outputs of three layers for each word
    assert list(parts.kept(8).values()) == [pytest.approx(whole / 4, rel=0.01)]
    assert (one.whole, parts.whole) == (None, whole)
    assert parts.as_dict(8)["devices"][0]["activation_bytes"] == round(parts.kept(8)["/device:CPU:0"])
    with pytest.raises(BridgeError, match="another number of rows"):
        methods(PlanningEngine(**with_plan({}), rows=4))["train"](
            estimator(model_fn, tmp_path), lambda: regression_input().take(2).unbatch().batch(8, drop_remainder=True), steps=1
        )


@pytest.mark.parametrize("options", [{"replicas": 2}, {"jit_compile": True}, {"mixed_precision": True}])
def test_what_cannot_be_combined_with_a_mesh_is_refused(options: dict[str, Any]) -> None:
    """Before any device is made."""
    with pytest.raises(NotSupportedError, match="cannot be combined"):
        ModernEngine(**with_plan({"placement": PlacementPlan(2), **options}))
