"""The launcher reads audit records while tasks write them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.cli.main import main
from estimator_bridge.cluster.audit_records import AuditPlan, AuditRecord, Updates
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.audit.audit import Audit, AuditRequest
from estimator_bridge.launcher.layout import local_layout, make_layout


@pytest.fixture
def rendezvous(tmp_path: Path) -> Rendezvous:
    return Rendezvous(tmp_path)


@pytest.fixture
def audit(rendezvous: Rendezvous) -> Audit:
    return AuditRequest(every=10).begin(local_layout({"chief": 1, "worker": 1, "ps": 1}), rendezvous)


def tell(rendezvous: Rendezvous, job: str, local: int, digest: int, at: float | None = None) -> None:
    auditing = AuditPlan.read(rendezvous)
    assert auditing is not None
    read: dict[str, Any] = {"batches": (local + 100 * (job == "worker"),), "variables": (digest,)} if local else {}
    auditing.write(AuditRecord(TaskId(job, 0), local, 7, Updates.MIRRORED, **read, at=time.time() if at is None else at))


def test_tasks_read_the_plan_of_the_audit(rendezvous: Rendezvous) -> None:
    assert AuditPlan.read(rendezvous) is None
    assert AuditPlan.read(None) is None
    AuditRequest(every=10).begin(local_layout({"chief": 1}), rendezvous)
    assert AuditPlan.read(rendezvous) == AuditPlan(10, rendezvous.folder)


def test_a_fault_is_found_once_its_line_is_complete(rendezvous: Rendezvous, audit: Audit) -> None:
    tell(rendezvous, "chief", 1, 5)
    assert audit.check(is_over=False) is None
    tell(rendezvous, "worker", 1, 6)
    file = rendezvous.folder / "worker-0.audit.jsonl"
    whole = file.read_text()
    file.write_text(whole[:20])
    assert audit.check(is_over=False) is None
    file.write_text(whole)
    assert str(audit.check(is_over=False)).startswith("The variables of chief 0 and worker 0 have diverged at global step 7.")


def test_records_of_an_earlier_run_do_not_count(rendezvous: Rendezvous) -> None:
    """A task records its start before it trains."""
    AuditRequest().begin(local_layout({"chief": 1, "worker": 1}), rendezvous)
    tell(rendezvous, "chief", 1, 5)
    again = AuditRequest().begin(local_layout({"chief": 1, "worker": 1}), rendezvous)
    tell(rendezvous, "worker", 0, 6)
    tell(rendezvous, "worker", 1, 6)
    assert again.check(is_over=False) is None


def begun(rendezvous: Rendezvous, job: str) -> Audit:
    """Begins the audit in the launcher of one task; each machine has a launcher, and all share the folder."""
    members = local_layout({"chief": 1, "worker": 1})
    return AuditRequest().begin(make_layout(members.addresses, [TaskId(job, 0)]), rendezvous)


def test_a_launcher_that_starts_again_leaves_the_records_of_others(rendezvous: Rendezvous) -> None:
    chief = begun(rendezvous, "chief")
    begun(rendezvous, "worker")
    for local in range(3):
        tell(rendezvous, "worker", local, 1234567)
    assert chief.check(is_over=False) is None

    worker = begun(rendezvous, "worker")
    for local in range(9):
        tell(rendezvous, "worker", local, 5)
    tell(rendezvous, "chief", 9, 6)

    assert all("have diverged" in str(audit.check(is_over=False)) for audit in (chief, worker))


def test_a_launcher_that_starts_again_reads_the_records_of_its_own_task(rendezvous: Rendezvous) -> None:
    """It reads minutes of records of all tasks at once, including its own."""
    begun(rendezvous, "chief")
    begun(rendezvous, "worker")
    for local in range(20):
        for job in ("chief", "worker"):
            tell(rendezvous, job, local, 5, at=local * 10.0)

    worker = begun(rendezvous, "worker")

    assert worker.check(is_over=False) is None


def test_a_line_whose_writer_was_lost_is_left_out(rendezvous: Rendezvous, audit: Audit) -> None:
    with (rendezvous.folder / "chief-0.audit.jsonl").open("w") as file:
        file.write('{"job": "chi\n')
    tell(rendezvous, "chief", 1, 5)
    tell(rendezvous, "worker", 1, 6)
    assert "have diverged" in str(audit.check(is_over=False))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"norm": 1.5}, "unknown field norm"),
        ({"uncounted": None}, "no field uncounted"),
        ({"updates": "ring"}, "updates ring"),
    ],
)
def test_a_record_of_another_version_is_named(changes: dict[str, Any], said: str, rendezvous: Rendezvous, audit: Audit) -> None:
    fields = json.loads(AuditRecord(TaskId("worker", 0), 1, 7, Updates.MIRRORED).to_json()) | changes
    line = json.dumps({name: value for name, value in fields.items() if name not in changes or value is not None})
    (rendezvous.folder / "worker-0.audit.jsonl").write_text(line + "\n")

    problem = str(audit.check(is_over=False))

    assert problem.startswith("Another version of estimator-bridge wrote the audit records of worker 0.")
    assert f"received: {said}\n" in problem
    assert "Install one version" in problem


def test_a_launcher_of_one_task_judges_all(rendezvous: Rendezvous) -> None:
    chief, worker = begun(rendezvous, "chief"), begun(rendezvous, "worker")
    tell(rendezvous, "chief", 1, 5)
    tell(rendezvous, "worker", 1, 6)
    assert all("have diverged" in str(audit.check(is_over=False)) for audit in (chief, worker))


def test_a_training_that_is_finished_already(audit: Audit) -> None:
    assert audit.check(is_over=True) is None
    assert audit.describe() == "audit: no task trained a step"


def test_a_training_without_records_is_named(rendezvous: Rendezvous, audit: Audit) -> None:
    rendezvous.report_step(TaskId("chief", 0), 20)
    assert str(audit.check(is_over=True)).startswith("chief 0 trained without writing audit records.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--audit-every", "5"], "--audit-every works only with --audit."),
        (["--audit-allow", "diverged"], "--audit-allow works only with --audit."),
        (["--audit", "--hosts", "127.0.0.1:9", "--task", "chief:0"], "Workers on several machines"),
    ],
)
def test_options_of_the_audit_that_need_others_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["launch", *arguments, __file__]) == 2
    assert capsys.readouterr().err.startswith(f"estimator-bridge: {said}")
