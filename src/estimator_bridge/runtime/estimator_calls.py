"""What a script asks of its Estimators, as a protocol: whoever implements it can execute the script."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.patching import replaced

VERBS = ("train", "evaluate", "predict", "export_saved_model")


class Engine(Protocol):
    """Executes Estimator's public methods; each takes the Estimator first, then what the method takes."""

    def train(self, estimator: Any, input_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """``Estimator.train``."""

    def evaluate(self, estimator: Any, input_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """``Estimator.evaluate``."""

    def predict(self, estimator: Any, input_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Iterator[Any]:
        """``Estimator.predict``."""

    def export_saved_model(self, estimator: Any, export_dir_base: str, *args: Any, **kwargs: Any) -> bytes:
        """``Estimator.export_saved_model``."""


class EstimatorEngine:
    """tensorflow-estimator's own methods, as they were before anything stood in front of them."""

    def __init__(self) -> None:
        cls = _estimator_class()
        self.train = cls.train
        self.evaluate = cls.evaluate
        self.predict = cls.predict
        self.export_saved_model = cls.export_saved_model
        self.export_savedmodel = cls.export_savedmodel


@contextlib.contextmanager
def interposed(engine: Engine) -> Iterator[None]:
    """While active, every Estimator hands its calls to ``engine``.

    ``tf.estimator.train_and_evaluate`` and the exporters stay tensorflow-estimator's own: they call these methods. The old name
    ``export_savedmodel`` is handed over as ``export_saved_model``.

    Args:
        engine: make it before, so that it can keep tensorflow-estimator's own methods. Its ``surroundings``, if it has any, are
            entered, too.
    """

    def handing_over(method: Callable[..., Any], check: Callable[[str], None] = lambda model_dir: None) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            check(self.model_dir)
            return method(self, *args, **kwargs)

        return call

    calls: dict[str, Any] = {verb: handing_over(getattr(engine, verb)) for verb in VERBS}
    calls["train"] = handing_over(engine.train, check_model_dir)
    calls["export_savedmodel"] = handing_over(getattr(engine, "export_savedmodel", _renamed(engine)))
    surroundings = getattr(engine, "surroundings", contextlib.nullcontext)
    with replaced(_estimator_class(), **calls), surroundings():
        yield


def _renamed(engine: Engine) -> Callable[..., Any]:
    """``Estimator.export_savedmodel``; of ``strip_default_attrs`` only True is left, for which any consumer is new enough."""

    def export_savedmodel(
        estimator: Any,
        export_dir_base: str,
        serving_input_receiver_fn: Any,
        assets_extra: Any = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = True,
    ) -> Any:
        return engine.export_saved_model(
            estimator, export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path
        )

    return export_savedmodel


def check_model_dir(model_dir: str) -> None:
    """Makes the folder; TensorFlow would find out only after building the graph.

    Raises:
        BridgeError: where checkpoints could not be written.
    """
    if "://" in model_dir:  # another file system, which TensorFlow knows and we do not
        return
    try:
        Path(model_dir).mkdir(parents=True, exist_ok=True)
        problem = None if os.access(model_dir, os.W_OK) else "no permission to write"
    except FileExistsError:
        problem = "it is a file"
    except OSError as error:
        problem = error.strerror
    if problem:
        raise BridgeError(
            "The model_dir cannot be written.",
            expected="a folder for checkpoints, or a path where one can be made",
            received=f"{model_dir}: {problem}",
            fix="Choose another model_dir.",
        )


def _estimator_class() -> Any:
    from tensorflow_estimator.python.estimator import estimator

    return estimator.Estimator
