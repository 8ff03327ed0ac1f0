"""Runs an unmodified TensorFlow 1 script as ``__main__``, as ``python SCRIPT`` or ``python -m MODULE`` would."""

from __future__ import annotations

import contextlib
import dataclasses
import runpy
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.compat.engine import Engine, EstimatorEngine, interposed
from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.aliases import tf1_imports
from estimator_bridge.legacy.installation import install

# On the modern path these must not take effect: after a real one, tf.function returns symbolic tensors for good.
V2_SWITCHES = (
    "disable_control_flow_v2",
    "disable_eager_execution",
    "disable_resource_variables",
    "disable_tensor_equality",
    "disable_v2_behavior",
    "disable_v2_tensorshape",
)


@dataclasses.dataclass(frozen=True)
class Script:
    """What to run.

    Attributes:
        target: path of a file, or dotted name of a module.
        args: its command line.
        is_module: ``target`` is a module.
    """

    target: str
    args: tuple[str, ...] = ()
    is_module: bool = False

    def check(self) -> None:
        """Raises BridgeError unless the target is there."""
        if not self.is_module and not Path(self.target).is_file():
            raise BridgeError(
                "There is no such script.",
                expected="the path of a Python file, or -m and the name of a module",
                received=self.target,
                fix="Check the path; arguments of the script come after it.",
            )

    def __str__(self) -> str:
        return f"-m {self.target}" if self.is_module else self.target


def run_legacy(script: Script, make_engine: Callable[[], Engine] = EstimatorEngine) -> None:
    """Runs a script on the legacy path: TF1 behaviour, tensorflow-estimator's own Estimator.

    Args:
        script: what to run; whatever it raises comes through, SystemExit included.
        make_engine: makes what gets the Estimators' calls, once tf.estimator is there.
    """
    script.check()
    install()
    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    with interposed(make_engine()), tf1_imports({}):
        _run_as_main(script)


def run_modern(script: Script, make_engine: Callable[[], Engine]) -> None:
    """Runs a script for an engine that needs TF2 behaviour.

    The script's own graph operations go to a graph of its own, TF1's Dimension objects included; its switches back to TF1 behaviour
    are taken as said.

    Args:
        script: what to run; whatever it raises comes through, SystemExit included.
        make_engine: makes what gets the Estimators' calls, once tf.estimator is there.
    """
    script.check()
    install()
    import tensorflow as tf
    from tensorflow.python.framework import tensor_shape

    engine = make_engine()
    overrides = {name: lambda: None for name in V2_SWITCHES}
    before = tensor_shape._TENSORSHAPE_V2_OVERRIDE
    tensor_shape._TENSORSHAPE_V2_OVERRIDE = False
    try:
        with interposed(engine), tf1_imports(overrides), tf.Graph().as_default():
            _run_as_main(script)
    finally:
        tensor_shape._TENSORSHAPE_V2_OVERRIDE = before


def _run_as_main(script: Script) -> None:
    with _process_of(script):
        if script.is_module:
            runpy.run_module(script.target, run_name="__main__", alter_sys=True)
        else:
            _run_file(script.target)


@contextlib.contextmanager
def _process_of(script: Script) -> Iterator[None]:
    """sys.argv and sys.path[0] as Python sets them."""
    argv, path = sys.argv, list(sys.path)
    first = Path.cwd() if script.is_module else Path(script.target).resolve().parent
    sys.argv = [script.target, *script.args]
    sys.path.insert(0, str(first))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _run_file(path: str) -> None:
    code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    main.__dict__.update(_main_globals(path))
    before = sys.modules["__main__"]
    sys.modules["__main__"] = main
    try:
        exec(code, main.__dict__)  # noqa: S102 -- running the script is what we are asked for
    finally:
        sys.modules["__main__"] = before


def _main_globals(path: str) -> Mapping[str, Any]:
    return {"__file__": path, "__builtins__": __builtins__, "__cached__": None}
