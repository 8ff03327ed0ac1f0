"""Step times and memory of a plan on more machines: the formula, computed by hand, and the command that prints it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from estimator_bridge.modern.parallel.estimates import Crossing, PlacedVariable, PlanEstimate, StageEstimate
from estimator_bridge.modern.parallel.extrapolation import Measured, extrapolate
from tests.running import ROOT, estimator_bridge_command, python_output

GRADIENTS = [Crossing("a", "a", 2, 1000, 0, 0)]


def variable(device: str, size: int, slots: int) -> PlacedVariable:
    return PlacedVariable("v", device, "balance", "()", size, slots)


def test_workers_add_up_gradients_in_a_ring() -> None:
    """Four workers send 2 * 3 / 4 * 1000 bytes at 1000 bytes per second: 1.5 s beside 0.5 s of computation."""
    held = [Crossing("a", "a", 3, 40, 6, 0)]
    found = PlanEstimate(["a"], 1, [variable("a", 1000, 2000)], [], held, GRADIENTS, ["a"])
    one, four = extrapolate(found, Measured(0.5, 1000.0, 10), [1, 4])
    assert (one.seconds, one.times_as_fast, one.devices) == (0.5, 1.0, 1)
    assert (four.compute_seconds, four.device_seconds, four.worker_seconds) == (0.5, 0.0, 1.5)
    assert (four.times_as_fast, four.devices) == (4 * 0.5 / 2.0, 4)
    assert one.bytes == four.bytes == 1000 + 1000 + 2000 + 40 + 6 * 10
    (cut,) = extrapolate(found, Measured(0.5, 1000.0, 10), [4], sharded_state=True)
    assert cut.bytes == 1000 + 1000 + 500 + 40 + 6 * 10


def test_stages_of_a_pipeline_overlap() -> None:
    """Two stages of 60 % and 40 % and four micro-batches: 5/4 of 60 % of a step, and one micro-batch's transfers.

    The first stage holds activations of two micro-batches, and gradients of one besides their sum.
    """
    stages = [StageEstimate(["a"], "x", 0.6, 2), StageEstimate(["b"], "y", 0.4, 1)]
    sent = [Crossing("a", "b", 1, 100, 10, 0), Crossing("b", "a", 1, 0, 20, 0)]
    held = [Crossing("a", "a", 1, 0, 50, 0), Crossing("b", "b", 1, 0, 30, 0)]
    variables = [variable("a", 100, 0), variable("b", 100, 0)]
    found = PlanEstimate(["a", "b"], 4, variables, sent, held, GRADIENTS, ["a", "b"], stages)
    (two,) = extrapolate(found, Measured(2.0, 1000.0, 40), [2])
    assert two.compute_seconds == pytest.approx(2.0 * 0.6 * 5 / 4)
    assert two.device_seconds == pytest.approx((100 + 10 * 10 + 20 * 10) / 1000)
    assert two.worker_seconds == pytest.approx(1.0)
    assert two.devices == 4
    assert two.bytes == 100 + 2 * 1000 + 50 * 10 * 2


def test_devices_of_a_model_take_turns() -> None:
    """Every micro-batch sends its tensors."""
    sent = [Crossing("a", "b", 1, 100, 10, 0)]
    found = PlanEstimate(["a", "b"], 2, [variable("a", 8, 0)], sent, [], GRADIENTS, ["a", "b"])
    (one,) = extrapolate(found, Measured(2.0, 1000.0, 40), [1])
    assert one.compute_seconds == 2.0
    assert one.device_seconds == pytest.approx(2 * (100 + 10 * 20) / 1000)


def test_plan_prints_what_it_extrapolates(tmp_path: Path) -> None:
    """The gradients of a dense model are as large as its variables; all three measurements are needed."""
    command = ["plan", "--format", "json", ROOT / "examples/parallel/train.py"]
    measured = ["--step-seconds", 0.5, "--rows", 64, "--bandwidth", 0.001, "--workers", "1,2"]
    ended = estimator_bridge_command(command[0], *measured, *command[1:], cwd=tmp_path)
    assert ended.code == 0, ended.err[-2000:]
    printed = json.loads(ended.out)
    dense = sum(one["variable_bytes"] for one in printed["variables"] if one["slot_bytes"] and "embeddings" not in one["name"])
    assert printed["gradients"]["step_bytes"] >= dense
    one, two = printed["extrapolated"]
    assert one["seconds"] == 0.5
    sent = printed["gradients"]["step_bytes"] + 64 * printed["gradients"]["row_bytes"]
    assert two["worker_seconds"] == pytest.approx(sent / 1e6)
    ended = estimator_bridge_command("plan", "--step-seconds", 0.5, *command[3:], cwd=tmp_path)
    assert ended.code == 2
    assert "no --bandwidth and no --rows" in ended.err


def test_plan_prints_the_shares_of_unequal_workers(tmp_path: Path) -> None:
    """Six batches of 1 / 6 s beside two of 1 / 2 s; equal shares would wait two seconds for the slower one."""
    ended = estimator_bridge_command("plan", "--micro", 8, "--speeds", "6,2", ROOT / "examples/parallel/train.py", cwd=tmp_path)
    assert ended.code == 0, ended.err[-2000:]
    assert "shares = [6, 2] ends a step earliest: the batches take 1 s, equal shares 2 s (extrapolated)." in ended.out
    printed = estimator_bridge_command(
        "plan", "--format", "json", "--micro", 8, "--speeds", "6,2", ROOT / "examples/parallel/train.py", cwd=tmp_path
    )
    assert json.loads(printed.out)["shares"] == [6, 2]


@pytest.fixture
def counted_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets TensorFlow count the bytes of tensors on CPUs."""
    monkeypatch.setenv("TF_CPU_ALLOCATOR_USE_BFC", "true")


def measured_memory(*ways: str) -> dict[str, list[float]]:
    """Returns the bytes of steps, expected and measured, by the names of model and way; each is within 25 % of what was expected."""
    found: dict[str, list[float]] = json.loads(
        python_output(sys.executable, Path(__file__).with_name("measured_memory.py"), *ways)
    )
    for name, (expected, measured) in found.items():
        assert expected == pytest.approx(measured, rel=0.25), name
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("counted_bytes")
def test_a_step_takes_the_bytes_that_the_plan_expects() -> None:
    """Micro-batches never take more, in the first step neither, whose check has gradients of its own; of activations, a quarter and 15 %."""
    found = measured_memory("whole", "micro")
    for model in ("dense", "looked up", "attending"):
        assert found[f"{model}, micro"][1] <= 1.02 * found[f"{model}, whole"][1]
    assert found["attending, micro"][1] <= (1 / 4 + 0.15) * found["attending, whole"][1]


@pytest.mark.slow
@pytest.mark.usefixtures("counted_bytes")
def test_the_devices_of_a_mesh_take_the_bytes_that_the_plan_expects() -> None:
    """All together, since TensorFlow counts virtual devices so; a process has two or four of them."""
    assert len(measured_memory("model", "pipeline") | measured_memory("model of 4", "pipeline of 4")) == 12
