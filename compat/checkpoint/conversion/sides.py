"""Both ends of a conversion opened: the source, the checkpoint whose names to write, the model whose object graph to write."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from estimator_bridge.compat.checkpoint.conversion import edits
from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.models.keras_process import KerasProcess
from estimator_bridge.compat.checkpoint.models.model_argument import KerasModel, is_saved_model, keras_model
from estimator_bridge.compat.checkpoint.models.object_graph import Flavour, ObjectModel, read_object_model, read_saved_model
from estimator_bridge.compat.checkpoint.models.targets import KERAS_FORMATS, Kind
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH
from estimator_bridge.compat.checkpoint.optimizers import optimizer_hint
from estimator_bridge.compat.checkpoint.reading.index import Index, read_index
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.opening import opened
from estimator_bridge.compat.checkpoint.writing.publish import Options, publish

_FAMILIES: Mapping[Flavour | None, str] = {"legacy": "legacy", "tf_keras": "new"}


class Wanted(NamedTuple):
    """What is asked of the models that Keras loads.

    Attributes:
        to: what the target is to be.
        family: "legacy" or "new" of tf_keras' optimizers; None for what the model has.
        optimizer: TF1's name of the optimizer, where slots do not tell.
        learning_rate: of an optimizer that is made.
    """

    to: Kind
    family: str | None = None
    optimizer: str | None = None
    learning_rate: float | None = None


@dataclasses.dataclass(frozen=True)
class LoadedModel:
    """A model that the Keras process holds.

    Attributes:
        handle: its number there; None of values without a model.
        index: of a checkpoint that Keras wrote of it.
        stateless: why the target's format leaves its optimizer's state out; "" where it does not.
    """

    handle: int | None
    index: Index
    stateless: str


@contextlib.contextmanager
def opened_sides(source: str | Path, likes: Sequence[str | Path], wanted: Wanted, notes: list[str]) -> Iterator[Sides]:
    """Opens both ends; Keras' process and temporary files end with the context.

    Args:
        source: what to convert.
        likes: what the user named beside it.
        wanted: of models.
        notes: what to tell the user is appended.

    Yields:
        What was opened.

    Raises:
        CheckpointError: for what is not there, damaged, or not enough.
    """
    with contextlib.ExitStack() as stack:
        yield Sides(source, likes, wanted, notes, stack)


class Sides:
    """What a conversion reads, see ``opened_sides``.

    Attributes:
        source: index of the source.
        old: the checkpoint whose names to write, or None.
        objects: the object graph to write, or None.
        model: the Keras model to write a file of, or None.
        saved_model: the SavedModel whose graph files to keep, or None.
        keras: the process that has the model.
    """

    def __init__(
        self,
        source: str | Path,
        likes: Sequence[str | Path],
        wanted: Wanted,
        notes: list[str],
        stack: contextlib.ExitStack,
    ) -> None:
        self._wanted, self._notes, self._stack = wanted, notes, stack
        self._models = [model for like in likes if (model := keras_model(like))]
        self._saved_models = [Path(like) for like in likes if is_saved_model(like)]
        self._checkpoints = [stack.enter_context(opened(like)) for like in likes if not keras_model(like)]
        self._loads = False
        self.keras = stack.enter_context(KerasProcess())
        self.source = self._open_source(source)
        self.old = self._choose_old()
        self.objects: ObjectModel | None = None
        self.model: LoadedModel | None = None
        self.saved_model: Path | None = None
        if wanted.to in KERAS_FORMATS:
            self._choose_model()
        elif wanted.to != "name-based":
            self._choose_objects()
        self._check_all_used(bool(keras_model(source)))

    def checkpoints(self) -> Iterator[Index]:
        """Every checkpoint that is read."""
        yield self.source
        yield from (side for side in (self.old, self.objects and self.objects.index) if side)

    @functools.cached_property
    def _folder(self) -> Path:
        """Made where it is needed: most conversions write nothing but the target."""
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory()))

    def stored(self, draft: Draft) -> Draft:
        """A draft of what a draft says: what was computed has bytes then, and can be computed with."""
        prefix = publish(draft, self._folder / "between", Options(update_state=False)).prefix
        return Draft(read_index(prefix))

    def _open_source(self, source: str | Path) -> Index:
        model = keras_model(source)
        if model is None:
            return self._stack.enter_context(opened(source))
        if model.how != "file":
            raise UnsupportedError(
                "The source holds no values.",
                expected="a checkpoint, a SavedModel or a file of Keras",
                received=str(source),
            )
        return self._read(model.name, self._models[0] if self._models else None).index

    def _choose_old(self) -> Index | None:
        """A checkpoint with TF1's names, where such names have to be found, or have to be there."""
        if self._wanted.to != "name-based" and not all(map(edits.is_object, self.source.entries)):
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
                "What --like names has no object graph, and the target needs one.",
                expected="a Keras model, or a checkpoint that tf.train.Checkpoint or Keras wrote",
                received=", ".join(str(index.prefix) for index in self._checkpoints),
                fix="Leave --like out for the object graph of the modern path's model.",
            )

    def _check_all_used(self, reads_file: bool) -> None:
        """Nothing that a user gave is passed over: a file of weights takes one model, the target one, the old graph a checkpoint."""
        own = self.objects.index if self.objects else None
        used = {id(self.old), id(own)}
        as_models = self._saved_models if self._wanted.to in KERAS_FORMATS else []
        checkpoints = [index for index in self._checkpoints if index.prefix.parent.parent not in as_models]
        useless = [str(index.prefix) for index in checkpoints if id(index) not in used]
        useless += [model.name for model in self._models[reads_file + bool(own) :]]
        if useless:
            raise UnsupportedError(
                "What --like names is of no use here.",
                expected="one model for the target, one checkpoint of the old graph for its names",
                received=", ".join(useless),
            )
        family = _FAMILIES.get(self.objects.flavour if self.objects else None)
        if self._wanted.family not in {None, family} and not self._loads:
            raise UnsupportedError(
                "Nothing is there to make an optimizer of that family of.",
                expected="a Keras model",
                received=self._wanted.family,
                fix="Name one with --like: a .keras file, a config in JSON or module:function.",
            )

    def _choose_model(self) -> None:
        """Of a SavedModel the graph's files stay as they are, and no Keras is needed."""
        if not self._models and not self._saved_models:
            raise UnsupportedError(
                "A Keras model's own file is written by Keras, which needs the model.",
                expected="a .keras file, a SavedModel, a config in JSON or module:function",
                fix="Name it with --like.",
            )
        if self._models or self._wanted.to != "saved-model":
            models = [*(KerasModel("saved-model", str(path)) for path in self._saved_models), *self._models]
            self.model = self._load(models[-1])
            self.objects = read_object_model(self.model.index)
        else:
            self.saved_model = self._saved_models[0]
            self.objects = read_object_model(self._stack.enter_context(opened(self.saved_model)))

    def _load(self, model: KerasModel) -> LoadedModel:
        self._tell(model)
        self._loads = True
        wanted = self._wanted
        hint = optimizer_hint.of(self.source, wanted.optimizer)
        return self._answered(
            do="load", model=model, optimizer=hint, family=wanted.family, learning_rate=wanted.learning_rate, to=wanted.to
        )

    def _read(self, path: str, architecture: KerasModel | None) -> LoadedModel:
        if architecture:
            self._tell(architecture)
        return self._answered(do="read", path=path, architecture=architecture)

    def _answered(self, **question: Any) -> LoadedModel:
        answer = self.keras.ask(**question, folder=str(self._folder))
        self._notes += answer["notes"]
        index = self._stack.enter_context(opened(answer["prefix"]))
        return LoadedModel(answer["handle"], index, answer["stateless"].get(self._wanted.to, ""))

    def _tell(self, model: KerasModel) -> None:
        if model.how == "function":
            self._notes.append(f"{model.name} was called: that is the user's own code.")
