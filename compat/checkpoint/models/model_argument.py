"""The argument ``like``: a checkpoint, or a Keras model as a file, a config, a SavedModel or a function."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from estimator_bridge.compat.checkpoint.errors import NotFoundError

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_KERAS_FILES = (".keras", ".h5", ".hdf5")


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
