"""The batch script for Slurm, executed by a stand-in of srun: its tasks find each other by TensorFlow's Slurm resolver, and train."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from estimator_bridge.cli.main import main
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.ports import is_free
from estimator_bridge.runtime.slurm_task import tf_config

JOB = Path(__file__).parents[2] / "data" / "trained_and_evaluated.py"
STAND_IN = Path(__file__).with_name("srun_stand_in.py")


def _job_id() -> int:
    """Returns the number of a job whose ports, three in a row, are free."""
    numbers = random.SystemRandom().sample(range(200), 200)
    return next(number for number in numbers if all(is_free(20000 + 60 * number + task) for task in range(3)))


@pytest.mark.usefixtures("warm_python", "in_tasks")
def test_its_tasks_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(JOB, tmp_path / "train.py")
    options = ["--worker", "1", "--ps", "1", "--rendezvous", str(tmp_path / "rendezvous"), "--trusted-network"]
    assert main(["launch", "--engine", "slurm", *options, "train.py", str(tmp_path / "model")]) == 0
    script = tmp_path / "job.sh"
    script.write_text(capsys.readouterr().out)
    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(f'#!/bin/bash\nexec {sys.base_prefix}/bin/python3 {STAND_IN} "$@"\n')
    srun.chmod(0o755)
    [tasks] = [line.partition("=")[2] for line in script.read_text().splitlines() if line.startswith("#SBATCH --ntasks=")]
    environment = {
        **os.environ,
        "PATH": f"{srun.parent}:{os.environ['PATH']}",
        "SLURM_NTASKS": tasks,
        "SLURM_JOB_ID": str(_job_id()),
    }

    done = subprocess.run(
        ["bash", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=550, check=False
    )

    outputs = [(tmp_path / f"task-{rank}.out").read_text() for rank in range(3)]
    assert done.returncode == 0, (done.stderr, *(output[-2000:] for output in outputs))
    for job, output in zip(("chief", "ps", "worker"), outputs, strict=True):
        assert f"task {job} 0 of 2 and 1" in output
    assert max(int(file.stem.partition("-")[2]) for file in (tmp_path / "model").glob("model.ckpt-*.index")) >= 30


STEP = {
    "SLURM_PROCID": "2",
    "SLURM_STEP_NODELIST": "node[1-2]",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    "SLURM_JOB_ID": "10007",
    "SLURMD_NODENAME": "node2",
}
JOBS = {"chief": 1, "worker": 2, "evaluator": 1}


def test_the_plan_of_its_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    """It is passed on as given, and checked before anything is printed."""
    command = ["launch", "--engine", "slurm", "--worker", "1", "--trusted-network", "--path", "modern"]
    assert main([*command, "train.py"]) == 0
    assert "--micro" not in capsys.readouterr().out
    assert main([*command, "--micro", "2", "train.py"]) == 0
    assert "--micro 2" in capsys.readouterr().out
    assert main([*command, "--mesh", "models=2", "train.py"]) == 2
    assert capsys.readouterr().out == ""


def test_the_place_of_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver gives ranks to jobs in alphabetical order; an evaluator runs no server."""
    for name, value in STEP.items():
        monkeypatch.setenv(name, value)
    assert json.loads(tf_config(JOBS, STEP)) == {
        "cluster": {"chief": ["node1:20420"], "worker": ["node2:20420", "node2:20421"]},
        "task": {"type": "worker", "index": 0},
    }


@pytest.mark.parametrize(
    ("jobs", "changed", "said"),
    [
        ({"chief": 1, "worker": 4}, {}, "cannot find this job's tasks"),
        (JOBS, {"SLURMD_NODENAME": "node1"}, "does not run on the machine"),
    ],
)
def test_tasks_on_unexpected_nodes_are_refused(
    jobs: dict[str, int], changed: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (STEP | changed).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BridgeError, match=said):
        tf_config(jobs, STEP | changed)
