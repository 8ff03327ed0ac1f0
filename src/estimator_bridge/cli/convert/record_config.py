"""Runs a script until its RunConfig has been made, in a process of its own, and hands the RunConfig over as JSON."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.estimator_calls import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from estimator_bridge.compat.config.reading.sources import Source

_HOOKS = "tensorflow.python.training.basic_session_run_hooks"
_TRAINING = "tensorflow_estimator.python.estimator.training"
_EXPORTER = "tensorflow_estimator.python.estimator.exporter"


class Recorded(BaseException):
    """Ends the script; no ``except Exception`` of its own holds it up."""


def record(script: str, args: Sequence[str]) -> Source:
    """Runs a script until it calls its Estimator, and reads what its RunConfig says.

    Args:
        script: path of a TensorFlow 1 script.
        args: its command line.

    Returns:
        The RunConfig, TrainSpec and EvalSpec that it made.

    Raises:
        BridgeError: where the script is missing, ends before it calls an Estimator, or fails.
    """
    from estimator_bridge.compat.config.reading.legacy_json import legacy_of
    from estimator_bridge.compat.config.reading.sources import Source
    from estimator_bridge.runtime.json_positions import read_object

    if not Path(script).is_file():
        raise BridgeError("There is no such script.", expected="the path of a Python file", received=script)
    sys.stderr.write(
        f"estimator-bridge: running {script}, up to its Estimator's first call, to see its RunConfig. "
        "Hooks and steps that it gives to Estimator.train itself are not seen.\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run_config.json"
        command = [sys.executable, "-m", "estimator_bridge.cli.convert.record_config", str(out), script, *args]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env=_environment())
        if not out.exists():
            _refuse(script, done)
        document = read_object(out.read_text(encoding="utf-8"), script)
    return Source(script, "run-config", lambda name: script, legacy_of(document))


def main(argv: Sequence[str]) -> int:
    """The process that runs the script: ``OUT SCRIPT ARGS...``."""
    from estimator_bridge.script.run import Script, run_legacy

    out, script, *args = argv
    recorder = _Recorder(Path(out))
    try:
        run_legacy(Script(script, tuple(args)), recorder.start)
    except Recorded:
        return 0
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    return 0


class _Recorder(Engine):
    """An engine whose every verb writes down the Estimator's config and ends the script."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def start(self) -> Engine:
        """Called once tf.estimator is there: from here on hooks and exporters keep their arguments."""
        for module in (_HOOKS, _EXPORTER):
            for name, cls in inspect.getmembers(importlib.import_module(module), inspect.isclass):
                if name.endswith(("Hook", "Exporter")) and not name.startswith("_"):
                    _keep_arguments(cls)
        executor: Any = importlib.import_module(_TRAINING)
        # train_and_evaluate makes one before it looks at anything else, whichever of TensorFlow's names it was called by.
        executor._TrainingExecutor.__init__ = lambda _, *args, **kwargs: self.train_and_evaluate(*args, **kwargs)
        return self

    def train_and_evaluate(self, estimator: Any, train_spec: Any, eval_spec: Any, *args: Any, **kwargs: Any) -> None:
        """``tf.estimator.train_and_evaluate``."""
        self._write(estimator.config, train_spec, eval_spec)

    def train(self, estimator: Any, call: Any) -> Any:
        """``Estimator.train``."""
        return self._write(estimator.config)

    def evaluate(self, estimator: Any, call: Any) -> dict[str, Any]:
        """``Estimator.evaluate``."""
        return self._write(estimator.config)

    def predict(self, estimator: Any, call: Any) -> Iterator[Any]:
        """``Estimator.predict``."""
        return self._write(estimator.config)

    def export_saved_model(self, estimator: Any, call: Any) -> bytes:
        """``Estimator.export_saved_model``."""
        return self._write(estimator.config)

    def _write(self, run_config: Any, train_spec: Any = None, eval_spec: Any = None) -> NoReturn:
        from estimator_bridge.compat.config.objects import from_objects
        from estimator_bridge.compat.config.output.legacy import legacy_data

        tf_config: Mapping[str, Any] = json.loads(os.environ.get("TF_CONFIG") or "{}")
        legacy = from_objects(run_config, train_spec, eval_spec, tf_config or None)
        self.out.write_text(json.dumps(legacy_data(legacy)), encoding="utf-8")
        raise Recorded


def _keep_arguments(cls: Any) -> None:
    from estimator_bridge.compat.config.objects import CONSTRUCTED

    if "__init__" not in vars(cls):
        return
    made, signature = cls.__init__, inspect.signature(cls.__init__)

    @functools.wraps(made)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        if not hasattr(self, CONSTRUCTED):
            given = dict(list(signature.bind(self, *args, **kwargs).arguments.items())[1:])
            setattr(self, CONSTRUCTED, {name: _plain(value) for name, value in given.items() if value is not None})
        made(self, *args, **kwargs)

    cls.__init__ = construct


def _plain(value: Any) -> Any:
    value = value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value
    return value if isinstance(value, bool | int | float | str) else getattr(value, "__qualname__", type(value).__name__)


def _environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
    }


def _refuse(script: str, done: subprocess.CompletedProcess[str]) -> None:
    why = "it failed" if done.returncode else "it ended without calling an Estimator"
    raise BridgeError(
        f"{script} has shown no RunConfig: {why}.",
        expected="train, evaluate, predict, export_saved_model or train_and_evaluate of a tf.estimator.Estimator",
        received=f"exit code {done.returncode}",
        fix="Its own messages are above; give it the arguments that it needs, after its name.",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
