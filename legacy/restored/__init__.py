"""Restores the parts of TensorFlow that Estimator needs and TensorFlow 2.16 to 2.21 removed, one module for each part.

Each module has a ``restore()`` that puts its part back into the TensorFlow of this process, unless that TensorFlow has it. The modules import
TensorFlow; this ``__init__`` does not.
"""

import importlib
from collections.abc import Iterable

_KERAS = ("keras_aliases", "keras_layers")
_NAMES = ("cross_shard_optimizer", "moved_names", "whole_dimensions")
_ESTIMATOR = ("export_names", "estimator_training", "input_checkpoints")
_TPU = ("tpu_embedding", "tpu_embedding_gradient", "tpu_session_support")


def restore() -> None:
    """Puts back everything that tensorflow-estimator 2.15 imports, then the Estimator's own names.

    Example:
        >>> import os
        >>> os.environ["TF_USE_LEGACY_KERAS"] = "1"
        >>> from estimator_bridge.legacy import restored
        >>> restored.restore()
    """
    # First the aliases: importing tensorflow_estimator uses them. Last the names, which import it.
    _restore(_KERAS, "tf_keras")
    _restore((*_NAMES, *_ESTIMATOR, *_TPU, "import_aliases", "estimator_names"))


def complete_native(keras: str) -> None:
    """Restores on TensorFlow 2.15, which has its Estimator, the other names of earlier versions, and binds the Keras aliases.

    Args:
        keras: Name of the Keras 2 package, ``keras`` or ``tf_keras``.

    Example:
        >>> import os
        >>> os.environ["TF_USE_LEGACY_KERAS"] = "1"
        >>> from estimator_bridge.legacy import restored
        >>> restored.complete_native("tf_keras")
    """
    _restore(_KERAS, keras)
    _restore((*_NAMES, "import_aliases"))


def _restore(parts: Iterable[str], *arguments: str) -> None:
    for part in parts:
        importlib.import_module(f"{__name__}.{part}").restore(*arguments)
