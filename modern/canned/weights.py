"""Copies the values of variables from an Estimator's checkpoint."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_bridge.compat.checkpoint.reading.locate import refuse_v1
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.canned.columns import Weight


class Saved(NamedTuple):
    """A variable of the model and its possible names in a checkpoint; the first name that exists counts."""

    variable: Any
    names: tuple[str, ...]


def under(scope: str, weights: Iterable[Weight]) -> list[Saved]:
    """Returns the variables of a layer's columns with their names; shared variables stand beside the layer's scope or at the root."""
    parent = scope.rpartition("/")[0]
    return [
        Saved(variable, (f"{parent}/{name}", name) if shared else (f"{scope}/{name}",)) for variable, name, shared in weights
    ]


def find_checkpoint(estimator: Any, checkpoint_path: str | None) -> str:
    """Returns the given checkpoint, or the latest one in the Estimator's model_dir.

    Raises:
        BridgeError: if there is none, or if it is in V1's format.
    """
    found: str | None = checkpoint_path or tf.train.latest_checkpoint(estimator.model_dir)
    refuse_v1(found or estimator.model_dir)
    if not found or not tf.io.gfile.exists(f"{found}.index"):
        raise BridgeError(
            "There is no checkpoint to read the weights from.",
            expected="a checkpoint in the Estimator's model_dir, or checkpoint_path=...",
            received=checkpoint_path or estimator.model_dir,
            fix="Train the Estimator first, or build it with the model_dir it was trained in.",
        )
    return found


class Checkpoint:
    """The values in a checkpoint.

    Args:
        prefix: Prefix of the checkpoint's files.

    Attributes:
        shapes: Name -> shape of each value.
        misfit: First line of the error for a variable without a matching value.
        fix: Advice in that error.
    """

    misfit = "The checkpoint does not fit the Estimator"
    fix = "Build the Estimator with the arguments it was trained with."

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._reader = tf.train.load_checkpoint(prefix)
        self.shapes: Mapping[str, list[int]] = self._reader.get_variable_to_shape_map()

    def value(self, name: str) -> Any:
        """Returns the value of a variable as an array."""
        return self._reader.get_tensor(name)

    def assign(self, variable: Any, name: str) -> None:
        """Assigns the value with this name to a variable.

        Raises:
            BridgeError: if the name is missing or the shape differs.
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
    """Assigns every variable its value from a checkpoint.

    Args:
        weights: Variables and their names in the checkpoint; a partitioned variable has the name of the whole.
        checkpoint: Checkpoint prefix.

    Returns:
        ``variable.ref()`` -> the name that was found.

    Raises:
        BridgeError: if a name is missing or a shape differs, because the Estimator was built with other arguments.
    """
    saved = Checkpoint(checkpoint)
    known: dict[Any, list[str]] = {}
    for variable, names in weights:  # a variable that two parts share has its name in one of them
        known.setdefault(variable.ref(), []).extend(names)
    chosen = {of: next((name for name in names if name in saved.shapes), names[0]) for of, names in known.items()}
    for reference, name in chosen.items():
        saved.assign(reference.deref(), name)
    return chosen
