"""Which tests run where: everywhere, on the newest TensorFlow alone, or in ``.ci/full`` alone.

README's test command must take less than nine minutes on two cores. What it leaves out is marked ``slow``; ``.ci/full``, which must
take less than 80, runs those on the newest TensorFlow, and each tenth of them on the oldest one. Of a test's cases, if
there are more than two, it runs each third one, and after the next commit those beside them.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent

ONCE = (  # files and folders that do not depend on TensorFlow's version
    # The launcher, with stand-ins for its tasks: no TensorFlow. Real tasks are in test_faults, test_launch and schedulers.
    "launcher/audit/test_audit.py",
    "launcher/audit/test_rules.py",
    "launcher/monitors",
    "launcher/processes",
    *(f"launcher/test_{subject}.py" for subject in ("display", "machines", "server_status", "supervisor")),
    "launcher/schedulers",
    # Command lines and source text that is not run.
    *(f"cli/test_{verb}.py" for verb in ("check", "closed_streams", "explain", "inspect", "main", "quiet")),
    "cli/convert",
    "compat/source",
    # Files on disk, whose formats no TensorFlow changes, and configs, which are read without TensorFlow.
    "compat/checkpoint/names",
    "compat/checkpoint/test_slot_tables.py",
    "compat/checkpoint/writing",
    "compat/checkpoint/test_hostile.py",
    "compat/checkpoint/test_memory.py",
    "compat/config/test_documentation.py",
    "compat/config/test_hostile_input.py",
    "compat/config/test_nothing_silent.py",
    # Python scripts without TensorFlow, under the runner.
    "script/test_run.py",
    *(f"compat/config/test_{subject}.py" for subject in ("checks", "decisions", "round_trips", "tf_config")),
    # Plans, and what they say of bytes and times.
    *(f"modern/parallel/test_{subject}.py" for subject in ("balance", "plan", "plan_of_config")),
    "fleet",
    # Verdicts of comparisons and their reports.
    "parity/report",
    "parity/rewrite/test_judging.py",
    *(f"parity/test_{subject}.py" for subject in ("pytest_plugin", "seeds", "values")),
    "parity/test_equivalence.py",
    "parity/test_judge.py",
    # Whole examples: test_golden.py compares fewer steps with TensorFlow 1.15.5 on every TensorFlow.
    "integration/test_examples.py",
    # Wheels, sdists, installations and pages.
    "packaging",
    # Tests of source text.
    "style",
)

SAMPLED = (  # files whose parametrized tests are so many, and so long, that only each tenth case runs outside of .ci/full
    "cli/test_run.py",
    "compat/checkpoint/conversion/test_training.py",
    "compat/keras_files/test_keras_files.py",
    "integration/test_golden.py",
    "launcher/audit/test_faults.py",
    "launcher/processes/test_guard.py",
    "legacy/test_input_results.py",
    "legacy/upstream_contrib/operations/test_recorded.py",
    "modern/canned",
    "modern/config/test_clusters.py",
    "modern/distribution",
    "modern/evaluation/test_evaluate.py",
    "modern/graph",
    "modern/keras",
    "modern/step",
    "modern/test_canned_estimators.py",
    "modern/test_engine.py",
    "modern/test_exports.py",
    "modern/test_kmeans.py",
    "modern/training/test_train.py",
    "packaging/test_shadowing.py",
)

SLOW = tuple(row for row in (HERE / "slow.txt").read_text(encoding="utf-8").splitlines() if not row.startswith("#"))

FIRST = (  # the longest files start first, so that no process waits for the other at the end
    "parity/rewrite/test_forms.py",
    "parity/rewrite/test_compare_rewrite.py",
    "compat/source/fixers/test_proof.py",
    "modern/parallel",
    "parity/test_compare.py",
    "integration",
    "parity/test_planted_faults.py",
    "legacy/restored/test_estimators.py",
    "modern/graph/test_graph_files.py",
    "modern/distribution",
    "packaging",
    "modern/canned/test_replicas.py",
    "legacy/distribution",
    "launcher",
)


THIRD = os.environ.get("THIRD_OF_CASES")
"""0, 1 or 2: cases of tests at the other places, modulo 3, are marked ``left_out``; None to mark none."""


def mark(items: Sequence[pytest.Item]) -> None:
    """Marks tests ``once``, ``slow`` and ``left_out`` by the tables above; a file can also mark single tests itself."""
    slow = frozenset(SLOW)
    long = 0
    oldest = importlib.metadata.version("tensorflow").startswith("2.15.")
    cases: Counter[str] = Counter()
    all_cases = Counter(item.nodeid.partition("[")[0] for item in items)
    for item in items:
        if _listed(item, ONCE):
            item.add_marker("once")
        test, _, case = item.nodeid.partition("[")
        skipped = bool(case) and _listed(item, SAMPLED) and cases[test] % 10 != int(oldest)  # each TensorFlow has its tenth
        if THIRD and all_cases[test] > 2 and cases[test] % 3 != int(THIRD):
            item.add_marker("left_out")
        cases[test] += 1
        if skipped or _listed(item, slow):
            item.add_marker("slow")
        names = {mark.name for mark in item.iter_markers()}
        if oldest and "slow" in names and names.isdisjoint({"once", "tf221"}):
            long += 1
            if long % 10:
                item.add_marker("once")


def order(items: list[pytest.Item]) -> None:
    """Puts the longest files first, for ``--dist loadfile`` without its order by the number of tests."""
    items.sort(key=lambda item: next((place for place, row in enumerate(FIRST) if _listed(item, (row,))), len(FIRST)))


def _listed(item: pytest.Item, table: Collection[str]) -> bool:
    """Returns True if a table has a test, or a folder, a file or a function that it is in."""
    name = item.nodeid.removeprefix("tests/")
    return any(name[: end.start()] in table for end in re.finditer(r"/|::|\[|$", name))
