"""Models that only Keras can load, and Keras in a process of its own, since nothing else here imports TensorFlow.

The process does not use the caller's GPU and gives its memory back at the end. User code runs outside of the caller, and the process
can load another Keras than the caller. It starts at the first question, answers each with one line of JSON, and ends with the pipe.
``estimator_bridge.compat.keras_files`` is its other end.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from estimator_bridge.compat.checkpoint.errors import CheckpointError, KerasError, NotFoundError

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_KERAS_FILES = (".keras", ".h5", ".hdf5")
_MODULE = "estimator_bridge.compat.keras_files"
_SECONDS_TO_END = 30
_ALWAYS = {"CUDA_VISIBLE_DEVICES": "-1", "KERAS_BACKEND": "tensorflow"}


class KerasModel(NamedTuple):
    """A model that Keras has to load.

    Attributes:
        how: "file", "config", "function" or "saved-model".
        name: Path, or ``module:function``.
    """

    how: str
    name: str


def keras_model(like: str | Path) -> KerasModel | None:
    """Returns the model that ``like`` names, or None for a checkpoint.

    Args:
        like: Argument of the user.

    Raises:
        NotFoundError: The model's file does not exist.

    Example:
        >>> keras_model("trainer.model:make"), keras_model("model_dir/model.ckpt-7")
        (KerasModel(how='function', name='trainer.model:make'), None)
    """
    path = Path(like)
    if path.suffix in _KERAS_FILES or path.suffix == ".json":
        if not path.is_file():
            raise NotFoundError("There is no such model.", received=str(like), fix="Check the path.")
        return KerasModel("config" if path.suffix == ".json" else "file", str(path))
    if _FUNCTION.fullmatch(str(like)) and not path.exists():
        return KerasModel("function", str(like))
    return None


class KerasProcess:
    """The Keras process; use it in a ``with`` statement."""

    @functools.cached_property
    def _process(self) -> subprocess.Popen[str]:
        environment = {"TF_CPP_MIN_LOG_LEVEL": "3"} | os.environ | _ALWAYS
        environment["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        return subprocess.Popen(
            [sys.executable, "-m", _MODULE], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> KerasProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if "_process" not in vars(self):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):  # a thread of user code goes on
            if kind is None:
                self._process.communicate(timeout=_SECONDS_TO_END)
        self._process.kill()
        self._process.communicate()

    def ask(self, **question: Any) -> dict[str, Any]:
        """Asks a question.

        Args:
            question: Field ``do`` and its arguments, see ``keras_files.answering``.

        Returns:
            The answer.

        Raises:
            KerasError: Keras or the user's own code cannot do it.
        """
        line, process = "", self._process
        with contextlib.suppress(BrokenPipeError):
            if process.stdin and process.stdout:
                process.stdin.write(json.dumps(question) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
        if not line:
            raise CheckpointError(
                "The process that runs Keras ended.",
                received=f"exit code {process.wait()}",
                fix="Read its messages above; exit code -9 usually means that memory ran out.",
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise KerasError(**answer["error"], address=answer["address"])
        return answer
