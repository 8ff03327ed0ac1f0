"""Clusters of real processes: one that has to do what one process does, and one that loses each kind of task while it trains."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.compat.checkpoint.reading.index import read_index
from estimator_bridge.launcher.ports import free_ports

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "tests" / "data" / "parameter_servers.py"
DEADLINE = 300.0
ENOUGH = 20  # batches of a trainer; their number depends on the load of the machine
READ_AHEAD = 20  # batches
pytestmark = pytest.mark.timeout(1500)


class Cluster:
    """Tasks of one script on this machine, each to be killed and started again.

    Args:
        python: starts with TensorFlow imported.
        folder: for model_dir, notes and logs.
        sizes: job -> number of tasks.
        arguments: MAX_STEPS and options.
    """

    def __init__(self, python: str, folder: Path, sizes: Mapping[str, int], max_steps: int, *options: str) -> None:
        self.folder = folder
        self.model_dir = folder / "model"
        self._python = python
        self._max_steps = max_steps
        self._options = options
        self._notes = folder / "notes"
        self._notes.mkdir(parents=True, exist_ok=True)
        free = iter(free_ports(sum(sizes.values())))
        self._jobs = {job: [f"127.0.0.1:{next(free)}" for _ in range(size)] for job, size in sizes.items()}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        for job, size in sizes.items():
            for index in range(size):
                self.start(f"{job}-{index}")

    def start(self, task: str, *options: str) -> None:
        job, _, index = task.partition("-")
        tf_config = {"cluster": self._jobs, "task": {"type": job, "index": int(index)}} if self._jobs else {}
        environment = {**os.environ, "TF_CONFIG": json.dumps(tf_config), "PYTHONPATH": str(ROOT / "src")}
        arguments: list[Any] = [SCRIPT, self.model_dir, str(self._max_steps), self._notes, *self._options, *options]
        with (self.folder / f"{task}.log").open("ab") as log:
            self._running[task] = subprocess.Popen(
                [self._python, "-m", "estimator_bridge", "run", "--path", "modern", *arguments],
                env=environment | {"TF_CPP_MIN_LOG_LEVEL": "3"},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill(self, task: str, number: int = signal.SIGKILL) -> None:
        assert self._running[task].poll() is None, self.log(task)[-3000:]
        os.kill(int(self.notes(task, "pid")[-1]), number)
        if number == signal.SIGKILL:
            self.wait(task)

    def wait(self, task: str, seconds: float = DEADLINE) -> int:
        """Its exit code."""
        return self._running.pop(task).wait(seconds)

    def notes(self, task: str, name: str) -> list[str]:
        file = self._notes / f"{task}-{name}"
        return file.read_text().splitlines() if file.exists() else []

    def log(self, task: str) -> str:
        return (self.folder / f"{task}.log").read_text()

    @property
    def saved_step(self) -> int:
        latest = tf.train.latest_checkpoint(str(self.model_dir))
        return int(latest.rpartition("-")[2]) if latest else -1

    def reach(self, step: int) -> int:
        _until(lambda: self.saved_step >= step)
        return self.saved_step

    def end(self) -> None:
        for task in self._running:
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(int(self.notes(task, "pid")[-1]), signal.SIGKILL)
        for task in list(self._running):
            self.wait(task)


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def _on_the_legacy_path(python: str, folder: Path, *max_steps: int) -> None:
    """Trains in one process, to one step after the other."""
    arguments: list[Any] = [SCRIPT, folder / "model", ",".join(map(str, max_steps)), folder, "alone"]
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [python, "-m", "estimator_bridge", "run", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def _values(model_dir: Path) -> dict[str, Any]:
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(model_dir)))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.fixture(scope="module")
def alike(_warm_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Legacy path to step 20, parameter servers on to 80, legacy path on to 100; and the legacy path throughout."""
    servers, one = (tmp_path_factory.mktemp(name) for name in ("servers", "one"))
    _on_the_legacy_path(_warm_python, one, 20)
    shutil.copytree(one / "model", servers / "model")
    _on_the_legacy_path(_warm_python, one, 80, 100)
    cluster = Cluster(_warm_python, servers, {"chief": 1, "worker": 1, "ps": 2}, 80, "chief-only")
    try:
        assert cluster.wait("chief-0") == 0, cluster.log("chief-0")[-3000:]
        assert cluster.wait("worker-0") == 0, cluster.log("worker-0")[-3000:]
    finally:
        cluster.end()
    _on_the_legacy_path(_warm_python, servers, 100)
    return {"servers": servers, "one": one}


@pytest.mark.parametrize("step", [80, 100])
def test_one_trainer_on_parameter_servers_trains_as_one_process_does_on_the_legacy_path(
    alike: dict[str, Path], step: int
) -> None:
    """Adam with a decaying rate, a partitioned embedding, a table: bit for bit, whichever path goes on from the other's checkpoint."""
    readers = [tf.train.load_checkpoint(str(folder / "model" / f"model.ckpt-{step}")) for folder in alike.values()]
    servers, one = ({name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()} for reader in readers)
    assert sorted(servers) == sorted(one)
    assert servers["net/embedding"].shape == (6, 5)
    for name, value in one.items():
        np.testing.assert_array_equal(servers[name], value, err_msg=name)


def test_a_partitioned_variable_is_saved_in_slices_under_its_whole_name(alike: dict[str, Path]) -> None:
    """Savers of TensorFlow 1 read the slices into the parts."""
    indices = [read_index(folder / "model" / "model.ckpt-80.index") for folder in alike.values()]
    servers, one = ({name: sorted(pieces) for name, pieces in index.pieces.items()} for index in indices)
    assert servers == one
    assert len(servers["net/embedding"]) == 2


@dataclasses.dataclass
class Beset:
    """Results of a training that lost tasks.

    Attributes:
        cluster: Its tasks.
        lost_worker_at: Saved step when a worker was killed.
        went_on_to: Saved step when the worker was started again.
        code_without_server: Exit code of the chief whose parameter server was killed.
        seconds_without_server: Time until that chief ended.
        batches_of_hook: Batches that the next chief read, whose hook records its steps.
        codes: Exit codes at the end.
    """

    cluster: Cluster
    lost_worker_at: int
    went_on_to: int
    code_without_server: int
    seconds_without_server: float
    batches_of_hook: int
    codes: dict[str, int]


@pytest.fixture(scope="module")
def beset(_warm_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beset]:
    """Inputs with Python functions, to step 500: a worker is killed and comes back, then the parameter server is killed and comes back with the chief."""
    cluster = Cluster(_warm_python, tmp_path_factory.mktemp("beset"), {"chief": 1, "worker": 2, "ps": 1}, 500, "slow")
    try:
        at = cluster.reach(100)
        cluster.kill("worker-0")
        went_on_to = cluster.reach(at + 100)
        batches = len(cluster.notes("worker-0", "batches"))
        cluster.start("worker-0")
        _until(lambda: len(cluster.notes("worker-0", "batches")) > batches + ENOUGH)
        _until(lambda: all(len(cluster.notes(task, "batches")) > ENOUGH for task in ("chief-0", "worker-1")))
        killed = time.monotonic()
        cluster.kill("ps-0")
        code, seconds = cluster.wait("chief-0"), time.monotonic() - killed
        batches = len(cluster.notes("chief-0", "batches"))
        cluster.start("ps-0")
        cluster.start("chief-0", "hook")
        codes = {task: cluster.wait(task) for task in ("chief-0", "worker-0", "worker-1")}
        batches = len(cluster.notes("chief-0", "batches")) - batches
        cluster.start("evaluator-0")
        codes["evaluator-0"] = cluster.wait("evaluator-0")
        yield Beset(cluster, at, went_on_to, code, seconds, batches, codes)
    finally:
        cluster.end()


@pytest.mark.tf221
def test_each_task_runs_its_own_input_fn_with_its_own_identity(beset: Beset) -> None:
    """The RunConfig numbers the chief first, then the workers."""
    seen = {task: set(beset.cluster.notes(task, "input")) for task in ("chief-0", "worker-0", "worker-1", "ps-0")}
    assert seen == {"chief-0": {"0 of 3"}, "worker-0": {"1 of 3"}, "worker-1": {"2 of 3"}, "ps-0": set()}
    batches = {task: len(beset.cluster.notes(task, "batches")) for task in ("chief-0", "worker-0", "worker-1")}
    assert all(number > ENOUGH for number in batches.values()), batches


@pytest.mark.tf221
def test_the_others_go_on_without_a_worker_and_take_it_back(beset: Beset) -> None:
    assert beset.went_on_to >= beset.lost_worker_at + 100
    assert len(beset.cluster.notes("worker-0", "pid")) == 2


@pytest.mark.tf221
def test_a_lost_parameter_server_ends_the_chief_in_seconds_with_the_reason(beset: Beset) -> None:
    assert beset.code_without_server == 2
    assert beset.seconds_without_server < 60
    log = beset.cluster.log("chief-0")
    assert "Parameter server 0 no longer answers, and its variables are lost." in log
    assert "Training goes on from the last checkpoint" in log
    assert "Traceback" not in log


@pytest.mark.tf221
def test_the_chief_goes_on_from_the_last_checkpoint_and_every_task_ends(beset: Beset) -> None:
    assert beset.codes == {"chief-0": 0, "worker-0": 0, "worker-1": 0, "evaluator-0": 0}
    first = int(beset.cluster.notes("chief-0", "steps")[0].split()[0])
    assert first > beset.went_on_to
    assert first % 100 == 1, "every hundredth step is saved, and a hook sees the global step after the update"


@pytest.mark.tf221
def test_the_steps_of_all_trainers_add_up(beset: Beset) -> None:
    """No increment is lost, and no step is made beyond max_steps, though each trainer takes as many as it can."""
    assert _values(beset.cluster.model_dir)["global_step"] == 500
    kept = tf.train.get_checkpoint_state(str(beset.cluster.model_dir)).all_model_checkpoint_paths
    assert [int(path.rpartition("-")[2]) for path in kept][-3:] == [300, 400, 500]


@pytest.mark.tf221
def test_a_hook_of_the_script_sees_each_step_of_the_chief(beset: Beset) -> None:
    """And not those of the workers, as on TensorFlow 1; the loss is of the chief's batch."""
    seen = [line.split() for line in beset.cluster.notes("chief-0", "steps")]
    steps, losses = [int(step) for step, _ in seen], [float(loss) for _, loss in seen]
    assert steps == sorted(set(steps))
    assert max(steps) <= 500
    assert np.mean(np.diff(steps)) > 1
    assert beset.batches_of_hook - READ_AHEAD <= len(steps) <= beset.batches_of_hook
    assert np.mean(losses[-20:]) < 0.1


@pytest.mark.tf221
def test_the_evaluator_evaluates_the_last_checkpoint(beset: Beset) -> None:
    (events,) = (beset.cluster.model_dir / "eval").glob("events*")
    steps = {event.step for event in tf.compat.v1.train.summary_iterator(str(events)) if event.summary.value}
    assert 500 in steps
