"""Opens both ends of a conversion: the source, and the checkpoint and the model whose names and object graph to write."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.conversion import edits
from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.models.keras_process import KerasProcess
from estimator_bridge.compat.checkpoint.models.model_argument import KerasModel, keras_model
from estimator_bridge.compat.checkpoint.models.object_graph import Flavour, ObjectModel, read_object_model, read_saved_model
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH
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
    """

    handle: int | None
    index: Index
    stateless: str


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
        model: Keras model to write a file of, or None.
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
        self._loads = False
        self.keras = stack.enter_context(KerasProcess())
        self.source = self._open_source(request.source)
        self.old = self._choose_old()
        self.objects: ObjectModel | None = None
        self.model: LoadedModel | None = None
        self.saved_model: Path | None = None
        if request.to in KERAS_FORMATS:
            self._choose_model()
        elif request.to != "name-based":
            self._choose_objects()
        self._check_all_used(bool(keras_model(request.source)))

    def checkpoints(self) -> Iterator[Index]:
        """Yields every checkpoint that is read."""
        yield self.source
        yield from (side for side in (self.old, self.objects and self.objects.index) if side)

    @functools.cached_property
    def _folder(self) -> Path:
        """A temporary folder, made on first use: most conversions write only the target."""
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory()))

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
        return self._read(model.name, self._models[0] if self._models else None).index

    def _choose_old(self) -> Index | None:
        """Returns the checkpoint with TF1's names if such names have to be added or checked."""
        if self.request.to != "name-based" and not all(map(edits.is_object, self.source.entries)):
            return None
        return next((index for index in self._checkpoints if not all(map(edits.is_object, index.entries))), None)

    def _choose_objects(self) -> None:
        graphs = [index for index in self._checkpoints if index is not self.old and OBJECT_GRAPH in index.entries]
        if self._models:
            self.objects = read_object_model(self._load(self._models[-1]).index)
        elif graphs:
            read = read_saved_model if self._saved_models else read_object_model
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
        if self.request.optimizer_family not in {None, family} and not self._loads:
            raise UnsupportedError(
                "--optimizer-family has no effect: there is no model to make an optimizer for.",
                expected="a Keras model",
                received=self.request.optimizer_family,
                fix="Name one with --like: a .keras file, a config in JSON or module:function.",
            )

    def _choose_model(self) -> None:
        """Chooses the model to write; for a SavedModel, the graph's files stay as they are, and no Keras is needed."""
        if not self._models and not self._saved_models:
            raise UnsupportedError(
                "To write this kind of file, Keras needs the model.",
                expected="a .keras file, a SavedModel, a config in JSON or module:function",
                fix="Name it with --like.",
            )
        if self._models or self.request.to != "saved-model":
            models = [*(KerasModel("saved-model", str(path)) for path in self._saved_models), *self._models]
            self.model = self._load(models[-1])
            self.objects = read_object_model(self.model.index)
        else:
            self.saved_model = self._saved_models[0]
            self.objects = read_object_model(self._stack.enter_context(open_checkpoint(self.saved_model)))

    def _load(self, model: KerasModel) -> LoadedModel:
        self._tell(model)
        self._loads = True
        request = self.request
        return self._answered(
            do="load",
            model=model,
            optimizer=find_optimizer(self.source, request.optimizer),
            family=request.optimizer_family,
            learning_rate=request.learning_rate,
            to=request.to,
        )

    def _read(self, path: str, architecture: KerasModel | None) -> LoadedModel:
        if architecture:
            self._tell(architecture)
        return self._answered(do="read", path=path, architecture=architecture)

    def _answered(self, **question: Any) -> LoadedModel:
        answer = self.keras.ask(**question, folder=str(self._folder))
        self.notes += answer["notes"]
        index = self._stack.enter_context(open_checkpoint(answer["prefix"]))
        return LoadedModel(answer["handle"], index, answer["stateless"].get(self.request.to, ""))

    def _tell(self, model: KerasModel) -> None:
        if model.how == "function":
            self.notes.append(f"{model.name} was imported and called; it is your own code.")
