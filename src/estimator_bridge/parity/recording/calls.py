"""The recording of an Estimator's calls, as both sides do it."""

import abc
import atexit
import contextlib
import dataclasses
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.folders.model_dirs import create_asked
from estimator_bridge.parity.recording.step_limit import StepLimit
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.runtime.estimator_calls import Engine, EvaluateCall, ExportCall, PredictCall, TrainCall

MAX_PREDICTIONS = 1000  # of one call are compared


class TracedEngine(Engine):
    """Lets an engine execute the calls, and writes each to a trace.

    Calls have names such as ``train-0``, ``train-1``, ``evaluate-0``: equal on both sides as long as they make the same calls.

    Args:
        engine: Engine that executes the calls.
        trace: Trace of the side.
        limit: Number of training steps after which the script ends.
        moved: Function of a path that returns the path in the side's folders.
    """

    def __init__(self, engine: Engine, trace: Trace, limit: StepLimit, moved: Callable[[str], str] = str) -> None:
        self._engine = engine
        self._trace = trace
        self._limit = limit
        self._moved = moved
        self._seen: Counter[str] = Counter()

    @abc.abstractmethod
    def prepare(self, estimator: Any, call: Any, name: str) -> Any:
        """Returns a call as this side executes it, immediately before it does."""

    def surroundings(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context manager that is active while the script runs."""
        return self._engine.surroundings()

    def train(self, estimator: Any, call: TrainCall) -> Any:
        """Executes ``Estimator.train``."""
        import tensorflow as tf

        _refuse_evaluator(estimator.config)
        if self._limit.is_reached:  # perhaps by Ctrl-C after the last training
            self._trace.write("limited", steps=self._limit.taken)
        self._limit.end_script()
        name = self._name("train")
        self._trace.write(
            "train",
            call=name,
            max_steps=call.max_steps or call.steps,
            left=self._limit.left,
            estimator=type(estimator).__name__,
        )
        create_asked(estimator.model_dir)
        self._engine.train(estimator, self.prepare(estimator, call, name))
        latest = tf.train.latest_checkpoint(estimator.model_dir) if estimator.config.is_chief else None
        self._trace.write("trained", call=name, model_dir=estimator.model_dir, checkpoint=latest and self._keep(latest, name))
        if self._limit.is_reached:
            self._trace.write("limited", steps=self._limit.taken)
        return estimator

    def _keep(self, checkpoint: str, call: str) -> str:
        """Links the files of a checkpoint under a name that no later training and no script deletes; returns its prefix."""
        kept = self._trace.values(call, "final")
        for file in Path(checkpoint).parent.glob(f"{Path(checkpoint).name}.*"):
            _link(str(file), kept + file.name.removeprefix(Path(checkpoint).name))
        return kept

    def evaluate(self, estimator: Any, call: EvaluateCall) -> dict[str, Any]:
        """Executes ``Estimator.evaluate`` and records its metrics."""
        name = self._name("evaluate")
        if estimator.config.task_type == "evaluator" and call.checkpoint_path:
            # Which checkpoints an evaluator is fast enough to see differs from run to run.
            name = f"evaluate-{Path(call.checkpoint_path).name}"
        metrics = self._engine.evaluate(estimator, self.prepare(estimator, self._in_own_folder(call), name))
        numbers = scalar_metrics(metrics)
        self._trace.write("evaluated", call=name, name=call.name or "", metrics=numbers)
        if self._limit.is_repeated(call.input_fn, numbers, estimator, call.steps, call.checkpoint_path, call.name):
            self._trace.write("repeated")
            self._limit.end_script()
        return metrics

    def predict(self, estimator: Any, call: PredictCall) -> Iterator[Any]:
        """Executes ``Estimator.predict`` and records the first predictions."""
        name = self._name("predict")
        examples = self._engine.predict(estimator, self.prepare(estimator, self._in_own_folder(call), name))
        return write_predictions(self._trace, name, examples, not call.yield_single_examples)

    def export_saved_model(self, estimator: Any, call: ExportCall) -> bytes:
        """Executes ``Estimator.export_saved_model`` and records the SavedModel."""
        exported = self._engine.export_saved_model(estimator, self._in_own_folder(call))
        if estimator.config.is_chief:
            keep_export(self._trace, self._name("export"), os.fsdecode(exported))
        return exported

    def _in_own_folder(self, call: Any) -> Any:
        return dataclasses.replace(call, checkpoint_path=call.checkpoint_path and self._moved(call.checkpoint_path))

    def _name(self, verb: str) -> str:
        self._seen[verb] += 1
        return f"{verb}-{self._seen[verb] - 1}"


_PARTS = {"saved_model.pb", "saved_model.pbtxt", "variables", "assets", "assets.extra", "fingerprint.pb"}


def keep_export(trace: Trace, name: str, exported: str) -> None:
    """Records a SavedModel, and keeps its files whatever the script does to them.

    Args:
        trace: Trace of the side.
        name: Name of the export.
        exported: Folder of the SavedModel.
    """
    folder = trace.folder / "exported" / name
    others = {child.name for child in Path(exported).iterdir()} - _PARTS  # the folder may hold what is not the model's
    shutil.copytree(exported, folder, copy_function=_link, ignore=lambda path, names: others if path == exported else ())
    saved = folder / "variables" / "variables"
    variables = str(saved) if saved.with_suffix(".index").exists() else None
    trace.write("exported", call=name, signatures=signatures(folder), variables=variables, folder=str(folder))


def _link(file: str, target: str) -> None:
    """Gives a file a second name, or copies it, for not every file system has links."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copy(file, target)


def _refuse_evaluator(config: Any) -> None:
    if config.task_type == "evaluator":
        raise BridgeError(
            "The script trains in the evaluator's task, too.",
            expected="tf.estimator.train_and_evaluate, which only evaluates there",
            received="Estimator.train",
            fix="Add --evaluator 0, or call train_and_evaluate.",
        )


def signatures(export: Path) -> dict[str, Any]:
    """Returns the inputs and outputs of each signature of a SavedModel, with their types and shapes.

    Args:
        export: Folder of the SavedModel.
    """
    from tensorflow.python.saved_model.loader_impl import parse_saved_model

    model = parse_saved_model(str(export))
    return {
        f"{'/'.join(graph.meta_info_def.tags)} {name}": {
            part: {key: [tensor.dtype, str(tensor.tensor_shape)] for key, tensor in tensors.items()}
            for part, tensors in (("inputs", signature.inputs), ("outputs", signature.outputs))
        }
        for graph in model.meta_graphs
        for name, signature in graph.signature_def.items()
    }


def scalar_metrics(metrics: dict[str, Any]) -> dict[str, float]:
    """Returns the metrics as numbers, those of an array one by one; text, and summaries in bytes, are left out.

    Args:
        metrics: Metrics of an evaluation.

    Example:
        >>> scalar_metrics({"auc": 0.5, "by class": np.array([0.25, 1.0])})
        {'auc': 0.5, 'by class[0]': 0.25, 'by class[1]': 1.0}
    """
    arrays = ((name, np.asarray(value)) for name, value in metrics.items())
    return {
        name + "".join(f"[{index}]" for index in place): float(value)
        for name, array in arrays
        if array.dtype.kind in "biuf"
        for place, value in np.ndenumerate(array)
    }


def write_predictions(trace: Trace, call: str, examples: Iterator[Any], of_batches: bool = False) -> Iterator[Any]:
    """Passes predictions on; the first of them are saved when they end, when the script wants no more, or when it ends itself.

    Args:
        trace: Trace of the side.
        call: Name of the call.
        examples: The examples or batches that the call yields.
        of_batches: True if it yields batches.
    """
    kept: dict[str, list[Any]] = defaultdict(list)
    count, is_whole = 0, False
    with contextlib.ExitStack() as end:
        end.callback(lambda: _save_predictions(trace, call, kept, count=count, is_whole=is_whole))
        end.callback(atexit.unregister, end.close)
        atexit.register(end.close)  # Python may never close a generator that the script leaves open
        for example in examples:
            most = 0
            for key, value in example.items() if isinstance(example, dict) else [("", example)]:
                array = np.asarray(value)
                rows = list(array) if of_batches and array.ndim else [array]
                kept[key] += rows[: MAX_PREDICTIONS - len(kept[key])]
                most = max(most, len(rows))
            count += most
            yield example
        is_whole = True


def _save_predictions(trace: Trace, call: str, kept: dict[str, list[Any]], **facts: Any) -> None:
    np.savez(trace.predictions(call), **{f"key:{key}": stacked(values) for key, values in kept.items()})
    trace.write("predicted", call=call, **facts)


def stacked(values: list[Any]) -> Any:
    """Returns the rows of an output as one array; their elements in one row if their shapes differ."""
    ragged = len({value.shape for value in values}) > 1
    stacked = np.concatenate([value.ravel() for value in values]) if ragged else np.stack(values)
    return stacked.astype("S") if stacked.dtype == object else stacked
