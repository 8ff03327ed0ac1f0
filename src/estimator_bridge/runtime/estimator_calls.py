"""The calls that a script makes on its Estimators, and the protocol of the engines that execute them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.patching import replaced


@dataclasses.dataclass(frozen=True)
class TrainCall:
    """The arguments of ``Estimator.train``."""

    input_fn: Callable[..., Any]
    hooks: Any = None
    steps: int | None = None
    max_steps: int | None = None
    saving_listeners: Any = None


@dataclasses.dataclass(frozen=True)
class EvaluateCall:
    """The arguments of ``Estimator.evaluate``."""

    input_fn: Callable[..., Any]
    steps: int | None = None
    hooks: Any = None
    checkpoint_path: str | None = None
    name: str | None = None


@dataclasses.dataclass(frozen=True)
class PredictCall:
    """The arguments of ``Estimator.predict``."""

    input_fn: Callable[..., Any]
    predict_keys: Any = None
    hooks: Any = None
    checkpoint_path: str | None = None
    yield_single_examples: bool = True


@dataclasses.dataclass(frozen=True)
class _AnyExportCall:
    export_dir_base: str
    serving_input_receiver_fn: Any
    assets_extra: Any = None
    as_text: bool = False
    checkpoint_path: str | None = None


@dataclasses.dataclass(frozen=True)
class ExportCall(_AnyExportCall):
    """The arguments of ``Estimator.export_saved_model``."""

    experimental_mode: str = "infer"


@dataclasses.dataclass(frozen=True)
class OldExportCall(_AnyExportCall):
    """The arguments of ``Estimator.export_savedmodel``, the old name of the export."""

    strip_default_attrs: bool = False

    def renamed(self) -> ExportCall:
        """Returns the same export under its new name, which always strips default attributes: any consumer is new enough."""
        return ExportCall(**{field.name: getattr(self, field.name) for field in dataclasses.fields(_AnyExportCall)})


CALLS: dict[str, Callable[..., Any]] = {
    "train": TrainCall,
    "evaluate": EvaluateCall,
    "predict": PredictCall,
    "export_saved_model": ExportCall,
    "export_savedmodel": OldExportCall,
}
"""Name of a method of Estimator and of an engine -> the class of its arguments."""


class Engine(Protocol):
    """Executes the public methods of Estimators.

    Attributes:
        writes: True if a training writes into its model_dir.
    """

    writes: bool = True

    def train(self, estimator: Any, call: TrainCall) -> Any:
        """Executes ``Estimator.train``."""

    def evaluate(self, estimator: Any, call: EvaluateCall) -> dict[str, Any]:
        """Executes ``Estimator.evaluate``."""

    def predict(self, estimator: Any, call: PredictCall) -> Iterator[Any]:
        """Executes ``Estimator.predict``."""

    def export_saved_model(self, estimator: Any, call: ExportCall) -> bytes:
        """Executes ``Estimator.export_saved_model``."""

    def export_savedmodel(self, estimator: Any, call: OldExportCall) -> bytes:
        """Executes ``Estimator.export_savedmodel``."""
        return self.export_saved_model(estimator, call.renamed())

    def surroundings(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context manager that is active while the script runs."""
        return contextlib.nullcontext()


class EstimatorEngine(Engine):
    """The methods of tensorflow-estimator itself, as they were when this engine was made."""

    def __init__(self) -> None:
        self._methods = {arguments: getattr(_estimator_class(), name) for name, arguments in CALLS.items()}

    def train(self, estimator: Any, call: Any) -> Any:
        """Executes any call of an Estimator."""
        return self._methods[type(call)](estimator, **vars(call))

    evaluate = predict = export_saved_model = export_savedmodel = train


@contextlib.contextmanager
def interposed(engine: Engine) -> Iterator[None]:
    """While active, every Estimator passes its calls to ``engine``, inside the engine's ``surroundings``.

    ``tf.estimator.train_and_evaluate`` and the exporters stay tensorflow-estimator's own: they call these methods.

    Args:
        engine: Engine made before, so that it can keep tensorflow-estimator's own methods.
    """
    with replaced(_estimator_class(), **methods(engine)), engine.surroundings():
        yield


def methods(engine: Engine) -> dict[str, Any]:
    """Returns the public methods of an Estimator, which pass their calls to an engine.

    Args:
        engine: Engine that executes the calls.

    Returns:
        Name -> function that takes the Estimator, then the method's own arguments.
    """

    def method(name: str) -> Callable[..., Any]:
        execute, arguments_of = getattr(engine, name), CALLS[name]

        def pass_on(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                call = arguments_of(*args, **kwargs)
            except TypeError as error:  # the script called a method, and reads the name of that
                raise TypeError(str(error).replace(f"{CALLS[name].__name__}.__init__()", f"Estimator.{name}()")) from None
            if name == "train" and engine.writes:
                check_model_dir(self.model_dir)
            return execute(self, call)

        return pass_on

    return {name: method(name) for name in CALLS}


def check_model_dir(model_dir: str) -> None:
    """Makes the folder, since TensorFlow would fail only after it has built the graph.

    Raises:
        BridgeError: No checkpoint can be written there.
    """
    if "://" in model_dir:  # another file system, which only TensorFlow can reach
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
