"""Clusters of real processes whose workers train in step, against MirroredStrategy of both paths; and what becomes of lost ones."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.cluster.rendezvous import VARIABLE, Flag, Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.ports import free_ports

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "tests" / "data" / "in_step.py"
STEPS = 170  # the input ends between two calls of the loop, and between two checkpoints
DEADLINE = 300.0
pytestmark = pytest.mark.timeout(1500)


class Job:
    """Processes of one script: a cluster or a single process.

    Args:
        python: Interpreter that starts with TensorFlow imported.
        folder: Folder of notes and logs.
        model_dir: Folder of the script's checkpoints.
        sizes: Job -> number of tasks; empty for one process.
        options: Options of the script.
        path: Path that runs the script, legacy or modern.
    """

    def __init__(
        self, python: str, folder: Path, model_dir: Path, sizes: dict[str, int], *options: str, path: str = "modern"
    ) -> None:
        self.folder = folder
        self.model_dir = model_dir
        for one in ("meeting", "notes"):
            (folder / one).mkdir(parents=True, exist_ok=True)
        self.meeting = Rendezvous(folder / "meeting")
        self.meeting.set_flag(Flag.LOOPBACK)
        self.meeting.set_flag(Flag.READY)
        serving = {job: size for job, size in sizes.items() if job != "evaluator"}
        ports = iter(free_ports(sum(serving.values())))
        cluster = {job: [f"127.0.0.1:{next(ports)}" for _ in range(size)] for job, size in serving.items()}
        tasks = [(job, index) for job, size in sizes.items() for index in range(size)]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for job, index in tasks or [("only", 0)]:
            tf_config = {"cluster": cluster, "task": {"type": job, "index": index}} if tasks else {}
            environment = {VARIABLE: str(self.meeting.folder)} if tasks else {}
            with (folder / f"{job}-{index}.log").open("ab") as log:
                self.processes[f"{job}-{index}"] = subprocess.Popen(
                    [
                        python,
                        "-m",
                        "estimator_bridge",
                        "run",
                        "--path",
                        path,
                        SCRIPT,
                        self.model_dir,
                        folder / "notes",
                        *options,
                    ],
                    env={
                        **os.environ,
                        "TF_CONFIG": json.dumps(tf_config),
                        "PYTHONPATH": str(ROOT / "src"),
                        "TF_CPP_MIN_LOG_LEVEL": "3",
                        **environment,
                    },
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )

    def wait(self, seconds: float = DEADLINE) -> dict[str, int]:
        """Exit codes of those that train; then the evaluator is told that training has ended."""
        end = time.monotonic() + seconds
        trainers = {task: process for task, process in self.processes.items() if not task.startswith("evaluator")}
        codes = {task: process.wait(max(end - time.monotonic(), 1)) for task, process in trainers.items()}
        self.meeting.set_flag(Flag.TRAINED)
        return codes | {task: process.wait(max(end - time.monotonic(), 1)) for task, process in self.processes.items()}

    def log(self, task: str) -> str:
        return (self.folder / f"{task}.log").read_text(errors="replace")

    def notes(self, task: str) -> list[str]:
        file = self.folder / "notes" / task
        return file.read_text().splitlines() if file.exists() else []

    def kill(self, task: str, number: int) -> None:
        (*_, pid) = [int(line.split()[1]) for line in self.notes(task) if line.startswith("pid")]
        os.kill(pid, number)

    def until_step(self, task: str, step: int) -> None:
        """Waits until a task's hook has seen so many steps."""
        end = time.monotonic() + DEADLINE
        while f"worker step {step}" not in self.notes(task):
            assert time.monotonic() < end, self.log(task)[-3000:]
            assert self.processes[task].poll() is None, self.log(task)[-3000:]
            time.sleep(0.1)

    def close(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()


@pytest.fixture(scope="module")
def python(_warm_python: str) -> str:
    return _warm_python


@pytest.fixture(scope="module")
def jobs(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Job]]:
    """Four trainings of the same job, side by side."""
    folder = tmp_path_factory.mktemp("in_step")
    odd = ("--batches", str(2 * STEPS + 1))  # the chief has one more batch than the worker
    most = ("--max-steps", str(STEPS))
    mirrored = ("--strategy", "mirrored", *most)
    with contextlib.ExitStack() as stack:

        def job(name: str, sizes: dict[str, int], *options: str, path: str = "modern") -> Job:
            made = Job(python, folder / name, folder / name / "model", sizes, *options, path=path)
            stack.callback(made.close)
            return made

        made = {
            "auto": job("auto", {"chief": 1, "worker": 1, "evaluator": 1}, *odd),
            "ring": job("ring", {"worker": 2}, "--communication", "RING", *most),
            "mirrored": job("mirrored", {}, *mirrored),
            "legacy": job("legacy", {}, *mirrored, path="legacy"),
        }
        for name, one in made.items():
            codes = one.wait()
            assert not any(codes.values()), (name, codes, {task: one.log(task)[-3000:] for task in codes})
        yield made


def _saved(job: Job) -> dict[str, np.ndarray]:
    latest = tf.train.latest_checkpoint(str(job.model_dir))
    assert latest
    reader = tf.train.load_checkpoint(latest)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.parametrize("other", ["ring", "mirrored"])
def test_workers_and_devices_of_one_process_train_the_same_bit_for_bit(jobs: dict[str, Job], other: str) -> None:
    """Moving averages included; how the workers communicate makes no difference."""
    ours, theirs = _saved(jobs["auto"]), _saved(jobs[other])
    assert sorted(ours) == sorted(theirs)
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)


def test_workers_train_what_the_legacy_path_trains_on_two_devices(jobs: dict[str, Job]) -> None:
    ours, theirs = _saved(jobs["auto"]), _saved(jobs["legacy"])
    assert sorted(ours) == sorted(theirs)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=0, atol=1e-6, err_msg=name)


def test_all_end_with_the_input_that_ends_first(jobs: dict[str, Job]) -> None:
    """The chief's last batch has no partner, as MirroredStrategy leaves out an incomplete round."""
    assert int(_saved(jobs["auto"])["global_step"]) == STEPS
    meeting = jobs["auto"].meeting
    assert [meeting.step(TaskId("chief", 0)), meeting.step(TaskId("worker", 0))] == [STEPS, STEPS]


def test_what_each_worker_reads_is_said(jobs: dict[str, Job]) -> None:
    for number, task in enumerate(("chief-0", "worker-0")):
        log = jobs["auto"].log(task)
        assert (
            f"MultiWorkerMirroredStrategy over 2 devices on 2 workers, of which this is number {number}; each takes whole batches"
            in log
        )
        assert "per-replica batch size 4, global batch size 8" in log
        assert f"keeps one of every 2 batches; this worker starts at batch {number}." in log


@pytest.mark.parametrize("name", ["auto", "ring"])
def test_the_chief_alone_writes(jobs: dict[str, Job], name: str) -> None:
    """Without a chief in the cluster it is the first worker."""
    files = sorted(path.name for path in jobs[name].model_dir.glob("events*"))
    assert len(files) == 1
    chief, other = ("chief-0", "worker-0") if name == "auto" else ("worker-0", "worker-1")
    assert "Saving checkpoints for 50 into" in jobs[name].log(chief)
    assert "Saving checkpoints" not in jobs[name].log(other)


def test_an_evaluator_evaluates_and_exports_the_last_checkpoint_and_ends(jobs: dict[str, Job]) -> None:
    log = jobs["auto"].log("evaluator-0")
    assert f"Saving dict for global step {STEPS}: " in log
    assert "loss = " in log
    assert "rmse = " in log
    (*_, exported) = sorted((jobs["auto"].model_dir / "export" / "latest").iterdir())
    assert tf.saved_model.contains_saved_model(exported)


def test_preempted_killed_and_started_again_in_other_numbers(python: str, tmp_path: Path) -> None:
    """One training in three clusters: 3 workers of which one is told to end, 2 of which one is killed, and 1 that finishes."""
    model_dir = tmp_path / "model"
    options = ("--sharded", "--slow", "0.02")

    def saved_step() -> int:
        latest = tf.train.latest_checkpoint(str(model_dir))
        assert latest
        return int(tf.train.load_variable(latest, "global_step"))

    with contextlib.closing(Job(python, tmp_path / "3", model_dir, {"chief": 1, "worker": 2}, *options)) as three:
        three.until_step("worker-1", 3)
        three.kill("worker-1", signal.SIGTERM)
        assert set(three.wait().values()) == {128 + signal.SIGTERM}
    preempted = saved_step()
    ends = {task: [line for line in three.notes(task) if " end " in line] for task in three.processes}
    assert ends["worker-0"] == ends["worker-1"] == [f"worker end {preempted}"]
    assert sorted(ends["chief-0"]) == [f"chief end {preempted}", f"worker end {preempted}"]
    assert "input_context 1 of 3" in three.notes("worker-0")

    with contextlib.closing(Job(python, tmp_path / "2", model_dir, {"chief": 1, "worker": 1}, *options)) as two:
        two.until_step("worker-0", 2)
        two.kill("worker-0", signal.SIGKILL)
        assert two.processes["chief-0"].wait(DEADLINE) == 2
    assert "another worker failed, was killed, or no longer answers" in two.log("chief-0")
    assert f"Restoring parameters from {model_dir}/model.ckpt-{preempted}" in two.log("worker-0")

    last = saved_step() + 4
    with contextlib.closing(Job(python, tmp_path / "1", model_dir, {"chief": 1}, *options, f"--max-steps={last}")) as one:
        assert set(one.wait().values()) == {0}, one.log("chief-0")[-3000:]
    assert f"Restoring parameters from {model_dir}/model.ckpt-{last - 4}" in one.log("chief-0")
    assert saved_step() == last
