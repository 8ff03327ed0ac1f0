"""Silent faults of a training, each planted in a real cluster: with the audit it ends and gives the reason."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from estimator_bridge.launcher.audit.audit import AuditRequest
from estimator_bridge.launcher.launch import LaunchResult, launch, local_layouts
from estimator_bridge.launcher.outcome import Timeouts
from estimator_bridge.launcher.processes.task import State

pytestmark = [pytest.mark.usefixtures("warm_python", "in_tasks")]

JOB = Path(__file__).with_name("faulty_training.py")
SERVERS = {"chief": 1, "worker": 1, "ps": 1}
MIRRORED = {"chief": 1, "worker": 1}
LONG = 20_000  # steps, of which the audit needs a hundred


def run(
    folder: Path, counts: dict[str, int], fault: str, steps: int, audit: AuditRequest | None, path: str = "legacy"
) -> tuple[LaunchResult, str]:
    arguments = [
        "-m",
        "estimator_bridge",
        "run",
        "--path",
        path,
        str(JOB),
        str(folder / f"model-{steps}"),
        fault,
        str(steps),
    ]
    stream = io.StringIO()
    limits = Timeouts(ready=240, stall=500, restarts=0)
    launched = launch(
        local_layouts(counts), arguments, folder / "logs", limits, stream, "estimator_bridge.script.preloaded", audit
    )
    return launched, stream.getvalue()


FAULTS = {
    "equal batches": (MIRRORED, "train on the same data, so one of them is useless."),
    "late": (SERVERS, "chief 0 makes the steps of others: synchronous training is not synchronous."),
    "not counted": (SERVERS, "steps of the workers are lost: the global step does not count them."),
    "nothing applied": (SERVERS, "Updates of worker 0 are lost: its steps leave the variables unchanged."),
    "own values": (MIRRORED, "have diverged at global step 1."),
}


@pytest.mark.once
@pytest.mark.parametrize("fault", FAULTS)
def test_without_the_audit_the_fault_goes_unnoticed(tmp_path: Path, fault: str) -> None:
    """Runs on one TensorFlow only: it shows that the faults are silent, and does not use the audit."""
    steps = 400 if fault == "late" else 50  # a chief that ends before the others come waits for them
    unnoticed, _ = run(tmp_path, FAULTS[fault][0], fault, steps, None)

    assert unnoticed.outcome.problem is None
    assert unnoticed.outcome.code == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_silent_fault_is_found(tmp_path: Path, fault: str) -> None:
    counts, said = FAULTS[fault]

    audited, output = run(tmp_path, counts, fault, LONG, AuditRequest(every=20))

    assert audited.outcome.code == 1, output
    assert audited.tasks[-1].state is State.STOPPED, "it was still training"
    assert str(audited.outcome.problem).splitlines()[0].endswith(said)


@pytest.mark.once
@pytest.mark.parametrize(("fault", "said"), [("equal batches", "one of them is useless."), ("own values", "global step 1.")])
def test_faults_on_the_modern_path(tmp_path: Path, fault: str, said: str) -> None:
    """Runs on one TensorFlow only: a sound training checks the records on each, and the rules need no TensorFlow."""
    audited, output = run(tmp_path, MIRRORED, fault, LONG, AuditRequest(), "modern")

    assert audited.outcome.code == 1, output
    assert str(audited.outcome.problem).splitlines()[0].endswith(said)


@pytest.mark.parametrize(
    ("fault", "counts", "path"),
    [("moving averages", MIRRORED, "legacy"), ("", SERVERS, "legacy"), ("moving averages", MIRRORED, "modern")],
)
def test_a_sound_training(tmp_path: Path, fault: str, counts: dict[str, int], path: str) -> None:
    """Moving averages of batch normalization differ between replicas until they are saved."""
    ended, output = run(tmp_path, counts, fault, 100, AuditRequest(every=10), path)

    assert ended.outcome.code == 0, output
    assert re.search(r"audit: no fault found; audited steps: \d+ of worker 0, \d+ of chief 0", output)
