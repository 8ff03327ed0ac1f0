"""The folders of the new script's checkpoints."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimator_bridge.runtime.patching import wrap


def keep_apart(folder: Path) -> None:
    """Makes checkpoints of the script stay below a folder, so that no run goes on from those of another one."""
    import tensorflow as tf

    def init(original: Callable[..., None], manager: Any, checkpoint: Any, directory: str, *args: Any, **kwargs: Any) -> None:
        name = hashlib.sha256(os.path.realpath(directory).encode()).hexdigest()
        original(manager, checkpoint, str(folder / "checkpoints" / name), *args, **kwargs)

    wrap(tf.train.CheckpointManager, __init__=init)
