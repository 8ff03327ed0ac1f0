"""Real clusters with many failures: they go on from their checkpoints. More: benchmarks/cluster_faults.py."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import pytest

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.ports import free_ports
from tests.launcher.conftest import DEADLINE, wait_until
from tests.launcher.launchers import Launcher

pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("warm_python", "in_tasks")]
ENDLESS = ["--steps=100000"]


def test_each_killed_task_comes_back_and_sigterm_saves(tmp_path: Path) -> None:
    with contextlib.closing(Launcher(tmp_path, ["--chief", "1", "--worker", "1", "--ps", "1"], ENDLESS)) as cluster:
        wait_until(lambda: cluster.saved() >= 20 and bool(cluster.steps("worker 0")))
        for task, witness in (("ps 0", "chief 0"), ("worker 0", "worker 0"), ("chief 0", "chief 0")):
            before, made = cluster.pids(task), len(cluster.steps(witness))
            os.kill(before[-1], signal.SIGKILL)
            wait_until(lambda: len(cluster.pids(task)) > len(before))  # noqa: B023
            wait_until(lambda: len(cluster.steps(witness)) > made + 3)  # noqa: B023
        assert min(cluster.steps("chief 0")[made:]) >= 20, "from the checkpoint, not from the start"

        cluster.process.send_signal(signal.SIGTERM)
        out = cluster.finish(DEADLINE)

        assert cluster.process.returncode == 143
        assert {task["task"]: task["restarts"] for task in json.loads(out)["tasks"]} == {"chief 0": 1, "worker 0": 1, "ps 0": 1}
        assert cluster.saved() >= cluster.steps("chief 0")[-1], "the chief saved where it was"


def test_workers_in_step_on_two_machines(tmp_path: Path) -> None:
    """Each task has a launcher of its own. A worker is killed, then stopped; a machine is preempted; all is started again."""
    hosts = ",".join(f"{host}:{port}" for host, port in zip(("127.0.0.1", "localhost"), free_ports(2), strict=True))
    options = ["--hosts", hosts, "--worker", "1", "--rendezvous", str(tmp_path / "rendezvous"), "--task"]
    rendezvous = Rendezvous(tmp_path / "rendezvous")

    with contextlib.ExitStack() as stack:

        def start(jobs: list[str], *flags: str) -> list[Launcher]:
            asked = ["--strategy=mirrored", *flags]
            made = [Launcher(tmp_path, [*options, f"{job}:0"], asked) for job in jobs]
            for one in made:
                stack.callback(one.close)
            return made

        launchers = chief, worker = start(["chief", "worker"], *ENDLESS)
        wait_until(lambda: chief.saved() >= 20 and bool(worker.steps("worker 0")))
        assert len({rendezvous.version(TaskId(job, 0)) for job in ("chief", "worker")} - {None}) == 1
        made = len(worker.steps("worker 0"))
        os.kill(worker.pids("worker 0")[-1], signal.SIGKILL)
        wait_until(lambda: len(worker.steps("worker 0")) > made + 3)
        assert worker.steps("worker 0")[made] >= 20, "from the checkpoint, not from the start"
        assert len(chief.pids("chief 0")) == len(worker.pids("worker 0")) == 2, "the task that waits in step is restarted, too"

        os.kill(worker.pids("worker 0")[-1], signal.SIGSTOP)
        time.sleep(1)
        made = len(chief.steps("chief 0"))
        os.kill(worker.pids("worker 0")[-1], signal.SIGCONT)
        wait_until(lambda: len(chief.steps("chief 0")) > made + 3)

        worker.process.send_signal(signal.SIGTERM)
        for one in launchers:
            one.finish(DEADLINE)
        assert [one.process.returncode for one in launchers] == [143, 143]
        ready = [one.said(r"launch +\| (.*) at (?:127\.0\.0\.1|localhost):\d+: ready") for one in launchers]
        assert ready == [["chief 0", "worker 0"] * 2] * 2
        ends = [one.said(r"\w+ 0 +\| trained (\d+) steps") for one in launchers]
        assert ends[0] == ends[1]
        assert len(ends[0]) == 1, "all end after the same step"
        last = chief.saved()
        assert last == rendezvous.last_step(), "which is saved"
        assert last >= worker.steps("worker 0")[-1]

        launchers = chief, worker, evaluator = start(["chief", "worker", "evaluator"], f"--steps={last + 5}")
        results = [json.loads(one.finish(DEADLINE)) for one in launchers]
        assert [result["exit_code"] for result in results] == [0, 0, 0], results
        assert [result["tasks"][0]["global_step"] for result in results] == [last + 5, last + 5, None]
        assert chief.saved() == last + 5
        assert evaluator.said("evaluator 0 +[|] (ended)") == ["ended"]
