"""Takes the values of variables over from an Estimator's checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_bridge.compat.checkpoint.reading.locate import refuse_v1
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.canned.columns import Weight


class Saved(NamedTuple):
    """A variable of the model and the names it may have in a checkpoint, of which the first that is there is meant."""

    variable: Any
    names: tuple[str, ...]


def under(scope: str, weights: Iterable[Weight]) -> list[Saved]:
    """The variables of columns whose layer has the given scope; shared ones stand beside it, or at the root."""
    parent = scope.rpartition("/")[0]
    return [
        Saved(variable, (f"{parent}/{name}", name) if shared else (f"{scope}/{name}",)) for variable, name, shared in weights
    ]


def find_checkpoint(estimator: Any, checkpoint_path: str | None) -> str:
    """The checkpoint given, or the latest of the Estimator's model_dir.

    Raises:
        BridgeError: where there is none, or one in V1's format.
    """
    found: str | None = checkpoint_path or tf.train.latest_checkpoint(estimator.model_dir)
    refuse_v1(found or estimator.model_dir)
    if not found or not tf.io.gfile.exists(f"{found}.index"):
        raise BridgeError(
            "There is no checkpoint to take the weights from.",
            expected="a checkpoint in the Estimator's model_dir, or checkpoint_path=...",
            received=checkpoint_path or estimator.model_dir,
            fix="Train the Estimator first, or give it the model_dir that it was trained in.",
        )
    return found


class Checkpoint:
    """The values in a checkpoint, to be taken over.

    Args:
        prefix: of its files.

    Attributes:
        shapes: name -> shape.
        misfit, fix: what it means where a variable finds no value there, and what to do then.
    """

    misfit = "The checkpoint does not fit the Estimator"
    fix = "Make the Estimator with the arguments that it was trained with."

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._reader = tf.train.load_checkpoint(prefix)
        self.shapes: Mapping[str, list[int]] = self._reader.get_variable_to_shape_map()

    def value(self, name: str) -> Any:
        """Of a variable: an array of its shape."""
        return self._reader.get_tensor(name)

    def assign(self, variable: Any, name: str) -> None:
        """Gives a variable the value of that name.

        Raises:
            BridgeError: where the name is missing or the shape differs.
        """
        expected, received = variable.shape.as_list(), self.shapes.get(name)
        if expected != received:
            raise BridgeError(
                f"{self.misfit}: {name!r}.",
                expected=f"a variable of shape {expected}",
                received=f"shape {received}" if received is not None else f"no such variable in {self._prefix}",
                fix=self.fix,
            )
        variable.assign(self.value(name))


def take_over(weights: Iterable[Saved], checkpoint: str) -> dict[Any, str]:
    """Assigns every variable its value.

    Args:
        weights: variables and their names in the checkpoint, partitioned ones by the name of the whole.
        checkpoint: its prefix.

    Returns:
        ``variable.ref()`` -> its name there.

    Raises:
        BridgeError: where a name is missing or a shape differs: the Estimator was made with other arguments.
    """
    saved = Checkpoint(checkpoint)
    known: dict[Any, list[str]] = {}
    for variable, names in weights:  # what two parts of a model share has a name in one of them
        known.setdefault(variable.ref(), []).extend(names)
    chosen = {of: next((name for name in names if name in saved.shapes), names[0]) for of, names in known.items()}
    for reference, name in chosen.items():
        saved.assign(reference.deref(), name)
    return chosen
