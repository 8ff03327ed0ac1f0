"""Opens both ends of a conversion: the source, and the checkpoint and the model whose names and object graph to write."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.models.keras_process import KerasModel, KerasProcess, keras_model
from estimator_bridge.compat.checkpoint.models.object_graph import Flavour, ObjectModel, read_object_model, read_saved_model
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH, is_object
from estimator_bridge.compat.checkpoint.optimizers.hyperparameters import find_optimizer
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.request import KERAS_FORMATS, ConversionRequest
from estimator_bridge.compat.checkpoint.writing.opening import open_checkpoint

_FAMILIES: Mapping[Flavour | None, str] = {"legacy": "legacy", "tf_keras": "new"}


@dataclasses.dataclass(frozen=True)
class LoadedModel:
    """A model in the Keras process.

    Attributes:
        handle: Number of the model there; None for values without a model.
        index: Index of a checkpoint that Keras wrote of it.
        stateless: Reason why the target's format leaves its optimizer's state out; "" if it does not.
        optimizer: "class" and "numbers" of the optimizer that it has by itself; None without one.
    """

    handle: int | None
    index: Index
    stateless: str
    optimizer: Mapping[str, Any] | None


@contextlib.contextmanager
def open_sides(request: ConversionRequest) -> Iterator[Sides]:
    """Opens the source and the models and checkpoints beside it; Keras' process and temporary files end with the context.

    Args:
        request: Conversion request.

    Yields:
        All that the conversion reads.

    Raises:
        CheckpointError: A model or checkpoint is missing, or is of no use.
        CorruptError: A checkpoint is damaged.
    """
    with contextlib.ExitStack() as stack:
        yield Sides(request, stack)


class Sides:
    """All that a conversion reads; see ``open_sides``.

    Attributes:
        request: Conversion request.
        source: Index of the source.
        old: Checkpoint with the names to write, or None.
        objects: Object graph to write, or None.
        model: Keras model that has the object graph, and to write a file of; or None.
        saved_model: SavedModel whose graph files to keep, or None.
        keras: Process that has the model.
        notes: Notes for the user.
    """

    def __init__(self, request: ConversionRequest, stack: contextlib.ExitStack) -> None:
        self.request, self._stack = request, stack
        self.notes: list[str] = []
        self._models = [model for like in request.likes if (model := keras_model(like))]
        self._saved_models = [Path(like) for like in request.likes if (Path(like) / "saved_model.pb").is_file()]
        self._checkpoints = [stack.enter_context(open_checkpoint(like)) for like in request.likes if not keras_model(like)]
        self.keras = stack.enter_context(KerasProcess())
        self.source = self._open_source(request.source)
        self.old = self._choose_old()
        self.objects: ObjectModel | None = None
        self.model: LoadedModel | None = None
        self.saved_model: Path | None = None
        if request.to != "name-based":
            self._choose_objects()
        self._check_all_used(bool(keras_model(request.source)))

    def _open_source(self, source: str | Path) -> Index:
        model = keras_model(source)
        if model is None:
            return self._stack.enter_context(open_checkpoint(source))
        if model.how != "file":
            raise UnsupportedError(
                "The source has a model's structure, but no values to convert.",
                expected="a checkpoint, a SavedModel or a Keras file with weights",
                received=str(source),
                fix="Name a file with values as SOURCE, and this model with --like.",
            )
        architecture = self._models[0] if self._models else None
        return self._ask(architecture, do="read", path=model.name, architecture=architecture).index

    def _choose_old(self) -> Index | None:
        """Returns the checkpoint with TF1's names if such names have to be added or checked."""
        if self.request.to != "name-based" and not all(map(is_object, self.source.entries)):
            return None
        return next((index for index in self._checkpoints if not all(map(is_object, index.entries))), None)

    def _choose_objects(self) -> None:
        """Chooses the object graph, and the Keras model with it; a SavedModel whose graph files stay as they are needs no Keras."""
        to, saved_models = self.request.to, self._saved_models
        graphs = [index for index in self._checkpoints if index is not self.old and OBJECT_GRAPH in index.entries]
        if self._models or (saved_models and to in {"keras", "keras-weights"}):
            model = self._models[-1] if self._models else KerasModel("saved-model", str(saved_models[-1]))
            self.model = self._ask(
                model,
                do="load",
                model=model,
                optimizer=find_optimizer(self.source, self.request.optimizer),
                family=self.request.optimizer_family,
                learning_rate=self.request.learning_rate,
                to=to,
            )
            self.objects = read_object_model(self.model.index)
        elif to in KERAS_FORMATS and saved_models:
            self.saved_model = saved_models[0]
            self.objects = read_object_model(self._stack.enter_context(open_checkpoint(self.saved_model)))
        elif to in KERAS_FORMATS:
            raise UnsupportedError(
                "To write this kind of file, Keras needs the model.",
                expected="a .keras file, a SavedModel, a config in JSON or module:function",
                fix="Name it with --like.",
            )
        elif graphs:
            read = read_saved_model if saved_models else read_object_model
            self.objects = read(graphs[0])
        elif self._checkpoints and not self.old:
            raise UnsupportedError(
                "No checkpoint of --like has an object graph, and the target needs one.",
                expected="a Keras model, or a checkpoint that tf.train.Checkpoint or Keras wrote",
                received=", ".join(str(index.prefix) for index in self._checkpoints),
                fix="Leave --like out for the object graph of the modern path's model.",
            )

    def _check_all_used(self, reads_file: bool) -> None:
        """Refuses models and checkpoints that are not used: weights need one model, the target one, the old graph one checkpoint."""
        own = self.objects.index if self.objects else None
        used = {id(self.old), id(own)}
        as_models = self._saved_models if self.request.to in KERAS_FORMATS else []
        checkpoints = [index for index in self._checkpoints if index.prefix.parent.parent not in as_models]
        useless = [str(index.prefix) for index in checkpoints if id(index) not in used]
        useless += [model.name for model in self._models[reads_file + bool(own) :]]
        if useless:
            raise UnsupportedError(
                "A model or checkpoint of --like is not needed for this conversion.",
                expected="at most one model for the target, and one checkpoint of the old graph for its names",
                received=", ".join(useless),
                fix="Leave it out.",
            )
        family = _FAMILIES.get(self.objects.flavour if self.objects else None)
        if self.request.optimizer_family not in {None, family} and not self.model:
            raise UnsupportedError(
                "--optimizer-family has no effect: there is no model to make an optimizer for.",
                expected="a Keras model",
                received=self.request.optimizer_family,
                fix="Name one with --like: a .keras file, a config in JSON or module:function.",
            )

    def _ask(self, own: KerasModel | None, **question: Any) -> LoadedModel:
        """Asks for a model; ``own`` is the user's description of it."""
        if own and own.how == "function":
            self.notes.append(f"{own.name} was imported and called; it is your own code.")
        answer = self.keras.ask(**question, folder=self._stack.enter_context(tempfile.TemporaryDirectory()))
        self.notes += answer["notes"]
        index = self._stack.enter_context(open_checkpoint(answer["prefix"]))
        return LoadedModel(answer["handle"], index, answer["stateless"].get(self.request.to, ""), answer.get("optimizer"))
