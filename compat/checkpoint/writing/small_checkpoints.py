"""Small checkpoints from values in memory, without TensorFlow, for tests and examples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator_bridge.compat.checkpoint.format.bundle import Header
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import Options, publish

_DEFAULT = Options(update_state=False)


def write_tensors(prefix: str | Path, values: Mapping[str, Any], options: Options = _DEFAULT) -> Path:
    """Writes a name-based checkpoint.

    Args:
        prefix: Prefix of the checkpoint.
        values: Name -> int, float, bytes, list, NumPy array or Tensor.
        options: Options for writing.

    Returns:
        The prefix.

    Raises:
        TargetError: It cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_tensors(f"{folder}/model.ckpt-1", {"global_step": 1}).name
        'model.ckpt-1'
    """
    draft = Draft(Index(Path(prefix).with_name(f"{Path(prefix).name}.nothing"), Header(1)))
    for name, value in values.items():
        draft.put(name, tensors.of(value))
    publish(draft, Path(prefix), options)
    return Path(prefix)
