"""Reads the RunConfig that a script makes: the script runs in a separate process until it calls its Estimator."""

from __future__ import annotations

import dataclasses
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from estimator_bridge.cli.convert.script_partitioners import find_partitioner
from estimator_bridge.compat.config.reading.legacy_json import legacy_of
from estimator_bridge.compat.config.reading.sources import Source
from estimator_bridge.compat.source.reading import check_path
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.json_positions import read_object
from estimator_bridge.script.source_warnings import script_sources

_logger = logging.getLogger(__name__)


def record(script: str, args: Sequence[str]) -> Source:
    """Runs a script until it calls its Estimator, and reads what its RunConfig says.

    Args:
        script: Path of a TensorFlow 1 script.
        args: Arguments of the script.

    Returns:
        The RunConfig, TrainSpec and EvalSpec of the script, and the partitioner that its text makes.

    Raises:
        BridgeError: The script is missing, ends before it calls an Estimator, or fails.
    """
    check_path(Path(script))
    if not Path(script).is_file():
        expected = "the path of a Python file"
        raise BridgeError("There is no such script.", expected=expected, received=script, fix="Check the path.")
    _logger.warning(
        "running %s up to the first call of its Estimator, to read its RunConfig. Hooks and steps that the script gives to "
        "Estimator.train itself are not read.",
        script,
    )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run_config.json"
        command = [sys.executable, "-m", "estimator_bridge.script.config_recorder", str(out), script, *args]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env=_environment())
        if not out.exists():
            _refuse(script, done)
        document = read_object(out.read_text(encoding="utf-8"), script)
    legacy = dataclasses.replace(legacy_of(document), partitioner=find_partitioner(script_sources(script, is_module=False)))
    return Source(script, "run-config", lambda name: script, legacy)


def _environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _refuse(script: str, done: subprocess.CompletedProcess[str]) -> None:
    why = "it failed" if done.returncode else "it ended without calling an Estimator"
    raise BridgeError(
        f"No RunConfig of {script} was found: {why}.",
        expected="train, evaluate, predict, export_saved_model or train_and_evaluate of a tf.estimator.Estimator",
        received=f"exit code {done.returncode}",
        fix="Read the script's messages above; arguments that it needs come after its name.",
    )
