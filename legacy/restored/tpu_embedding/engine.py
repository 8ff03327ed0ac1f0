"""The engine of TPU embeddings, which runs only on a TPU."""

from __future__ import annotations

from typing import Any

from estimator_bridge.legacy.restored.tpu_absence import NeedsTpuError


class TPUEmbedding:
    """Stands in for the engine.

    Raises:
        NeedsTpuError: An object is constructed.

    Example:
        >>> TPUEmbedding({}, {}, 8, "training")
        Traceback (most recent call last):
        estimator_bridge.legacy.restored.tpu_absence.NeedsTpuError: tpu_embedding.TPUEmbedding needs a TPU, ...
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NeedsTpuError(
            "tpu_embedding.TPUEmbedding",
            fix="Set use_tpu=False to keep the tables in ordinary variables, or move to tf.tpu.experimental.embedding.",
        )
