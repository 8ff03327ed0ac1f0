"""What a failed side says of its error."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.parity import run, side
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.run import environment
from estimator_bridge.parity.side import message_lines
from estimator_bridge.script.run import Script


def in_a_session() -> Any:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        table = tf.compat.v1.placeholder(tf.float32, [10, 2])
        return session.run(tf.nn.embedding_lookup(table, [3, 10]), {table: [[0.0, 0.0]] * 10})


@tf.function(jit_compile=False)
def in_a_function(rows: Any) -> Any:
    return tf.gather(tf.zeros([10, 2]), rows)


@pytest.mark.parametrize("fail", [in_a_session, lambda: in_a_function(tf.constant([3, 10]))], ids=["session", "function"])
def test_an_operation_that_fails_tells_its_reason_first(fail: Callable[[], Any]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        fail()

    first, *others = message_lines(caught.value)

    assert first.endswith("InvalidArgumentError: indices[1] = 10 is not in [0, 10)")
    assert not [line for line in others if "defined at" in line or "File " in line]


def test_an_error_in_a_function_that_autograph_has_rewritten_tells_the_scripts_line_and_its_reason() -> None:
    @tf.function
    def step(rows: Any) -> Any:
        if tf.reduce_sum(rows) > 0:
            return rows + tf.zeros([3])
        return rows

    with pytest.raises(ValueError, match="in user code") as caught:
        step(tf.ones([2]))

    *own, reason = message_lines(caught.value)
    assert own[0] == f"{__file__}:{step.python_function.__code__.co_firstlineno + 2} in step: if tf.reduce_sum(rows) > 0:"
    assert reason.strip().startswith("ValueError: Dimensions must be equal, but are 2 and 3")


def test_a_report_names_the_seed_and_the_devices_of_a_side(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    trace.write("imported", files=[], devices=side._devices())
    named = environment(trace)
    assert named["devices"].startswith("CPU:0")
    assert named["seed"] == "20171101, where the script sets none"
    assert "devices" not in environment()


@pytest.mark.parametrize(("given", "expected"), [(None, "0"), ("1", "1")])
def test_a_side_multiplies_in_float32_on_gpus(
    given: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With TF32 the paths of an equal training part by more than the thresholds; who wants it can have it."""
    if given is not None:
        monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", given)
    check = "import os, sys; sys.exit(os.environ['NVIDIA_TF32_OVERRIDE'] != sys.argv[1])"
    monkeypatch.setattr(run, "side_command", lambda order: [sys.executable, "-c", check, expected])
    run.run_side(side.Order("modern", str(tmp_path), Script("train.py"), replaying=True, replicas=1), lambda *_: None)


def test_a_side_that_was_started_ahead_waits_until_it_may_run(tmp_path: Path) -> None:
    """It loads TensorFlow meanwhile, Ctrl-C does not end it, and it ends with the comparison."""
    script = tmp_path / "train.py"
    script.write_text("import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n")
    order = side.Order("modern", str(tmp_path), Script(str(script)), replaying=True, replicas=1)
    with run.Ahead() as ahead:
        ahead.following = order
        ahead.start()
        process = ahead._process
        assert process is not None
        loaded = time.monotonic() + 60
        while "libtensorflow" not in Path(f"/proc/{process.pid}/maps").read_text() and time.monotonic() < loaded:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=3)
        assert not (tmp_path / "ran").exists()
        assert ahead.take(order) is process
        assert process.wait(timeout=60) == 0
        assert (tmp_path / "ran").exists()

        ahead.following = order
        ahead.start()
        waiting = ahead._process
    assert waiting is not None
    assert waiting.wait(timeout=10) != 0


@pytest.mark.parametrize(("gpus", "expected"), [([], ["export"]), (["a GPU"], [])])
def test_exports_are_loaded_early_only_where_no_side_needs_the_gpu(
    gpus: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorFlow takes a GPU's memory for the process that uses it first."""
    seen: list[str] = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    monkeypatch.setattr("estimator_bridge.parity.exports.recorded.loaded", lambda folder: seen.append(str(folder)))
    run._load_exports([{"folder": "export"}])
    assert seen == expected


def test_a_rewrite_is_run_alone_by_the_process_that_was_started_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts beside the last side, in which nothing waits for it; the old script's exports are loaded meanwhile, too."""
    begun: list[str] = []
    loaded: list[str] = []
    taken: list[bool] = []

    def started(order: side.Order) -> Waiting:
        begun.append(order.side)
        return Waiting()

    monkeypatch.setattr(run, "_started", started)

    monkeypatch.setattr(run, "_load_exports", lambda exported: loaded.extend(one["call"] for one in exported))

    def run_side(order: side.Order, watch: object, ahead: run.Ahead) -> float:
        if order.side == side.ALONE:
            taken.append(ahead.has_started)
            return 1.0
        trace = order.trace(order.side)
        trace.make()
        trace.write("train", call="train-0", max_steps=1)
        trace.write("step", call="train-0", step=1, loss=1.0, iterations=[])
        ahead.meanwhile()
        if order.side == "legacy":
            trace.write("exported", call="export-0", signatures={}, variables=None, folder="export")
        return 1.0

    monkeypatch.setattr(run, "run_side", run_side)
    for name in ("old.py", "new.py"):
        (tmp_path / name).touch()
    result = run.compare_rewrite(Script(str(tmp_path / "old.py")), RewritePlan(Script(str(tmp_path / "new.py"))))

    assert (result.verdict, begun, taken, loaded) == ("equal", [side.ALONE], [True], ["export-0"])


class Waiting:
    """A process that waits to be allowed to run its script."""

    def kill(self) -> None:
        """Ends it."""

    def wait(self) -> int:
        """Returns its exit code."""
        return 0
