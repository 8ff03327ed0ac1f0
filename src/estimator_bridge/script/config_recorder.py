"""Runs a script up to its Estimator's first call, and writes its RunConfig, TrainSpec and EvalSpec as JSON."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from estimator_bridge.cluster.tasks import TaskContext
from estimator_bridge.compat.config.live_objects import CONSTRUCTED, from_objects
from estimator_bridge.compat.config.output.legacy import legacy_data
from estimator_bridge.runtime.estimator_calls import Engine
from estimator_bridge.script.run import Script, run_legacy


class Recorded(BaseException):
    """Ends the script; its own ``except Exception`` does not catch this."""


def main(argv: Sequence[str]) -> int:
    """Runs a script and writes its configuration: ``OUT SCRIPT ARGS...``."""
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
    """Engine that writes the Estimator's config at its first call, and ends the script."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def start(self) -> Engine:
        """Starts recording once tf.estimator exists: from now on hooks and exporters keep their arguments."""
        from tensorflow.python.training import basic_session_run_hooks
        from tensorflow_estimator.python.estimator import exporter, training

        for module in (basic_session_run_hooks, exporter):
            for name, cls in inspect.getmembers(module, inspect.isclass):
                if name.endswith(("Hook", "Exporter")) and not name.startswith("_"):
                    _keep_arguments(cls)
        # train_and_evaluate makes an executor before anything else, whichever of TensorFlow's names it was called by.
        training._TrainingExecutor.__init__ = lambda _, *args, **kwargs: self.train_and_evaluate(*args, **kwargs)
        return self

    def train_and_evaluate(self, estimator: Any, train_spec: Any, eval_spec: Any, *args: Any, **kwargs: Any) -> None:
        """``tf.estimator.train_and_evaluate``."""
        self._write(estimator.config, train_spec, eval_spec)

    def train(self, estimator: Any, call: Any) -> NoReturn:
        """Executes any call of an Estimator."""
        self._write(estimator.config)

    evaluate = predict = export_saved_model = train

    def _write(self, run_config: Any, train_spec: Any = None, eval_spec: Any = None) -> NoReturn:
        context = TaskContext.of_this_process()
        legacy = from_objects(run_config, train_spec, eval_spec, (context and context.value) or None)
        self.out.write_text(json.dumps(legacy_data(legacy)), encoding="utf-8")
        raise Recorded


def _keep_arguments(cls: Any) -> None:
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
