"""Several replicas that share a batch train and report as one replica does: they weigh the batch's examples together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.modern.canned.replicas import CLAIMS
from tests.running import python_output


@pytest.fixture(scope="module")
def failures(_warm_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Claim -> traceback, or "" if the claim holds; one process with two logical CPUs checks all of them."""
    script = Path(__file__).with_name("replicas.py")
    lines = python_output(_warm_python, script, tmp_path_factory.mktemp("replicas")).splitlines()
    return dict(json.loads(lines[-1]))


@pytest.mark.parametrize("claim", [claim.__name__ for claim in CLAIMS])
def test_replicas_that_share_a_batch(claim: str, failures: dict[str, str]) -> None:
    assert failures[claim] == "", failures[claim]
