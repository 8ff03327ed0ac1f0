"""The Estimator's side of distributed training, checked against TensorFlow 2.15's own where that is installed."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., str]
PROGRAM = Path(__file__).parent / "programs" / "estimator_training.py"


def test_every_kind_of_run_config_gets_its_mode(run_python: Run) -> None:
    run_python("estimator_training.py", "every_kind_of_run_config_gets_its_mode")


def test_every_task_knows_its_place_in_the_cluster(run_python: Run) -> None:
    run_python("estimator_training.py", "every_task_knows_its_place_in_the_cluster")


def test_calls_that_no_cluster_can_carry_out_are_refused(run_python: Run) -> None:
    run_python("estimator_training.py", "calls_that_no_cluster_can_carry_out_are_refused")


def test_a_standalone_client_drives_running_servers(run_python: Run, tmp_path: Path) -> None:
    run_python(
        "estimator_training.py",
        "a_standalone_client_drives_running_servers",
        tmp_path,
        *(f"localhost:{port}" for port in free_ports(2)),
    )


def test_independent_workers_train_one_model_together(run_python: Run, tmp_path: Path) -> None:
    addresses = [f"localhost:{port}" for port in free_ports(2)]
    tasks = [("chief", 0), ("worker", 0)]
    started = []
    for task_type, index in tasks:
        task = {"type": task_type, "index": index}
        tf_config = {"cluster": {"chief": addresses[:1], "worker": addresses[1:]}, "task": task}
        environment = os.environ | {"TF_CONFIG": json.dumps(tf_config), "PYTHONPATH": os.pathsep.join(sys.path)}
        environment.pop("TF_USE_LEGACY_KERAS", None)
        log = (tmp_path / f"{task_type}.log").open("w")
        started.append(
            subprocess.Popen(
                [sys.executable, PROGRAM, "an_independent_worker", str(tmp_path / "model")],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        )
    try:
        codes = [process.wait(timeout=120) for process in started]
    finally:
        for process in started:
            process.kill()
    assert codes == [0, 0], "\n".join((tmp_path / f"{task}.log").read_text()[-3000:] for task, _ in tasks)
    printed = run_python("estimator_training.py", "print_weight_and_step", tmp_path / "model")
    # Each step took one number from either half of the data and averaged over both workers.
    assert [float(word) for word in printed.split()] == [-((1 + 10) / 2 + (100 + 1000) / 2), 2]


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports
