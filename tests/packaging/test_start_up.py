"""``--help`` loads no heavy package, so that it takes less than a third of a second."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.packaging.conftest import ROOT

HEAVY = (
    "tensorflow",
    "tensorflow_estimator",
    "tf_keras",
    "keras",
    "numpy",
    "rich",
    "libcst",
    "jinja2",
    "grpc",
    "pytest",
    "psutil",
    "fissix",
    "tf_slim",
    "google.protobuf",
)
ASK = """
import contextlib, io, json, sys
from estimator_bridge.cli.main import main
with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
    main({arguments!r})
print(json.dumps([said.getvalue(), sorted(sys.modules)]))
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["run", "--help"],
        ["compare", "--help"],
        ["check", "--help"],
        ["launch", "--help"],
        ["cluster", "--help"],
        ["explain"],
        ["explain", "script-run-check-file"],
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    command = [sys.executable, "-c", ASK.format(arguments=arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    said, modules = json.loads(answer.stdout)
    assert said
    assert not set(HEAVY) & set(modules)
