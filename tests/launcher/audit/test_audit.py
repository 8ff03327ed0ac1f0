"""The launcher reads what tasks report while they write it."""

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
def meeting(tmp_path: Path) -> Rendezvous:
    return Rendezvous(tmp_path)


@pytest.fixture
def audit(meeting: Rendezvous) -> Audit:
    return AuditRequest(every=10).begin(local_layout({"chief": 1, "worker": 1, "ps": 1}), meeting)


def tell(meeting: Rendezvous, job: str, local: int, digest: int, at: float | None = None) -> None:
    auditing = AuditPlan.read(meeting)
    assert auditing is not None
    read: dict[str, Any] = {"batches": (local + 100 * (job == "worker"),), "variables": (digest,)} if local else {}
    auditing.write(AuditRecord(TaskId(job, 0), local, 7, Updates.MIRRORED, **read, at=time.time() if at is None else at))


def test_tasks_know_what_is_asked_of_them(meeting: Rendezvous) -> None:
    assert AuditPlan.read(meeting) is None
    assert AuditPlan.read(None) is None
    AuditRequest(every=10).begin(local_layout({"chief": 1}), meeting)
    assert AuditPlan.read(meeting) == AuditPlan(10, meeting.folder)


def test_a_fault_is_found_once_its_line_is_complete(meeting: Rendezvous, audit: Audit) -> None:
    tell(meeting, "chief", 1, 5)
    assert audit.check(is_over=False) is None
    tell(meeting, "worker", 1, 6)
    file = meeting.folder / "worker-0.audit.jsonl"
    whole = file.read_text()
    file.write_text(whole[:20])
    assert audit.check(is_over=False) is None
    file.write_text(whole)
    assert str(audit.check(is_over=False)).startswith("The variables of chief 0 and worker 0 have diverged at global step 7.")


def test_what_an_earlier_run_left_does_not_count(meeting: Rendezvous) -> None:
    """A task tells of its start before it trains."""
    AuditRequest().begin(local_layout({"chief": 1, "worker": 1}), meeting)
    tell(meeting, "chief", 1, 5)
    again = AuditRequest().begin(local_layout({"chief": 1, "worker": 1}), meeting)
    tell(meeting, "worker", 0, 6)
    tell(meeting, "worker", 1, 6)
    assert again.check(is_over=False) is None


def begun(meeting: Rendezvous, job: str) -> Audit:
    """By the launcher of one task: each machine has its own, and all share the folder."""
    members = local_layout({"chief": 1, "worker": 1})
    return AuditRequest().begin(make_layout(members.addresses, [TaskId(job, 0)]), meeting)


def test_a_launcher_that_starts_again_takes_nothing_from_the_others(meeting: Rendezvous) -> None:
    chief = begun(meeting, "chief")
    begun(meeting, "worker")
    for local in range(3):
        tell(meeting, "worker", local, 1234567)
    assert chief.check(is_over=False) is None

    worker = begun(meeting, "worker")
    for local in range(9):
        tell(meeting, "worker", local, 5)
    tell(meeting, "chief", 9, 6)

    assert all("have diverged" in str(audit.check(is_over=False)) for audit in (chief, worker))


def test_a_launcher_that_starts_again_knows_what_its_task_did(meeting: Rendezvous) -> None:
    """It reads everybody's reports of minutes at once; its own task took part in them."""
    begun(meeting, "chief")
    begun(meeting, "worker")
    for local in range(20):
        for job in ("chief", "worker"):
            tell(meeting, job, local, 5, at=local * 10.0)

    worker = begun(meeting, "worker")

    assert worker.check(is_over=False) is None


def test_a_line_whose_writer_was_lost_is_left_out(meeting: Rendezvous, audit: Audit) -> None:
    with (meeting.folder / "chief-0.audit.jsonl").open("w") as file:
        file.write('{"job": "chi\n')
    tell(meeting, "chief", 1, 5)
    tell(meeting, "worker", 1, 6)
    assert "have diverged" in str(audit.check(is_over=False))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"norm": 1.5}, "unknown field norm"),
        ({"uncounted": None}, "no field uncounted"),
        ({"updates": "ring"}, "updates ring"),
    ],
)
def test_a_report_of_another_version_is_named(changes: dict[str, Any], said: str, meeting: Rendezvous, audit: Audit) -> None:
    fields = json.loads(AuditRecord(TaskId("worker", 0), 1, 7, Updates.MIRRORED).to_json()) | changes
    line = json.dumps({name: value for name, value in fields.items() if name not in changes or value is not None})
    (meeting.folder / "worker-0.audit.jsonl").write_text(line + "\n")

    problem = str(audit.check(is_over=False))

    assert problem.startswith("Another version of estimator-bridge wrote the audit records of worker 0.")
    assert f"received: {said}\n" in problem
    assert "Install one version" in problem


def test_a_launcher_of_one_task_judges_all(meeting: Rendezvous) -> None:
    chief, worker = begun(meeting, "chief"), begun(meeting, "worker")
    tell(meeting, "chief", 1, 5)
    tell(meeting, "worker", 1, 6)
    assert all("have diverged" in str(audit.check(is_over=False)) for audit in (chief, worker))


def test_a_training_that_is_finished_already(audit: Audit) -> None:
    assert audit.check(is_over=True) is None
    assert audit.describe() == "audit: no task trained a step"


def test_steps_that_nobody_audited(meeting: Rendezvous, audit: Audit) -> None:
    meeting.report_step(TaskId("chief", 0), 20)
    assert str(audit.check(is_over=True)).startswith("chief 0 trained without writing audit records.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--audit-every", "5"], "--audit-every needs --audit."),
        (["--audit-allow", "diverged"], "--audit-allow needs --audit."),
        (["--audit", "--hosts", "127.0.0.1:9", "--task", "chief:0"], "Workers on several machines"),
    ],
)
def test_what_does_not_go_together(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", *arguments, __file__]) == 2
    assert capsys.readouterr().err.startswith(f"estimator-bridge: {said}")
