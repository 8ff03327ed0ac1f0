"""No process of a task survives the launcher, however that ends; processes are found by pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.launcher.conftest import DEADLINE, alive, guards, pids, wait_until

Start = Callable[[dict[str, str], int, float], "subprocess.Popen[bytes]"]
# No task ends by itself while a test waits.
PLANS = {"chief 0": "child,stay", "worker 0": "stubborn,stay", "ps 0": "stay"}
GRACE = 500.0  # seconds, more than a test waits
PROCESSES = 4  # with the chief's child, which left its parent, its session and SIGTERM behind


def test_ctrl_c_ends_everything_in_seconds(launcher: Start, tmp_path: Path) -> None:
    process = launcher(PLANS | {"worker 0": "stay"}, PROCESSES, GRACE)

    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=DEADLINE) == 130
    assert alive(pids(tmp_path)) == []


def test_a_task_that_ignores_sigterm_is_killed_after_the_grace_period(launcher: Start, tmp_path: Path) -> None:
    process = launcher(PLANS, PROCESSES, 1)
    started = time.monotonic()

    process.send_signal(signal.SIGTERM)

    assert process.wait(timeout=DEADLINE) == 143
    assert time.monotonic() - started >= 1
    assert alive(pids(tmp_path)) == []


def test_trainers_save_before_the_parameter_servers_end(launcher: Start, tmp_path: Path) -> None:
    plans = {"chief 0": "save,there,stay", "worker 0": "there,stay", "ps 0": "there,stay"}
    process = launcher(plans, 3, GRACE)
    wait_until(lambda: len(list(tmp_path.glob("*.there"))) == 3)
    for job in ("chief", "worker"):
        (tmp_path / f"{job}-0.there").unlink()

    process.send_signal(signal.SIGTERM)

    assert process.wait(timeout=DEADLINE) == 143
    assert (tmp_path / "logs" / "chief-0.log").read_text().splitlines()[-1] == "saved, with 1 parameter servers"
    assert alive(pids(tmp_path)) == []


def test_a_second_signal_ends_all_tasks_at_once(launcher: Start, tmp_path: Path) -> None:
    process = launcher(PLANS, PROCESSES, GRACE)

    process.send_signal(signal.SIGINT)
    wait_until(lambda: len(alive(pids(tmp_path))) < PROCESSES)  # tasks that obey have ended
    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=DEADLINE) == 130
    assert alive(pids(tmp_path)) == []


def test_a_launcher_that_is_killed_takes_everything_with_it(launcher: Start, tmp_path: Path) -> None:
    process = launcher(PLANS, PROCESSES, GRACE)
    others = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    assert len(alive(pids(tmp_path))) == PROCESSES

    process.kill()

    wait_until(lambda: alive([*pids(tmp_path), *others]) == [])


@pytest.mark.skipif(sys.platform != "linux", reason="a process can ask for its parent's death to be its own on Linux alone")
def test_a_guard_that_is_killed_takes_its_task_with_it(launcher: Start, tmp_path: Path) -> None:
    process = launcher({"chief 0": "stay", "worker 0": "stay", "ps 0": "stay"}, 3, GRACE)

    os.kill(guards(tmp_path)[0], signal.SIGKILL)

    assert process.wait(timeout=DEADLINE) == 128 + signal.SIGKILL
    assert alive(pids(tmp_path)) == []


def test_the_command_line_of_a_task_contains_no_tf_config(launcher: Start, tmp_path: Path) -> None:
    process = launcher(PLANS, PROCESSES, GRACE)

    children = psutil.Process(process.pid).children(recursive=True)
    lines = [" ".join(child.cmdline()) for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]

    assert len(lines) >= 6
    assert not [line for line in lines if "127.0.0.1" in line or "TF_CONFIG" in line or 'cluster"' in line]
