"""Digests of batches, computed in the input pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.compat.audit_reports import Auditing
from estimator_bridge.compat.digest import batch_digest


def with_digests(dataset: Any, auditing: Auditing | None, batches: int) -> Any:
    """Appends to each batch its digest, once for each row, so that it is split with the batch.

    Args:
        dataset: of batches, as tuples of tensors.
        auditing: says at which steps there is one, else 0; None for all.
        batches: that a step takes.

    Returns:
        A dataset.
    """
    if auditing is None:
        return dataset.map(lambda *batch: (*batch, _column(batch, batch_digest(batch))))

    def appended(number: Any, batch: Sequence[Any]) -> tuple[Any, ...]:
        due = auditing.due(number // batches + 1)
        digest = tf.cond(due, lambda: batch_digest(batch), lambda: tf.constant(0, tf.int64))
        return (*batch, _column(batch, digest))

    return dataset.enumerate().map(appended)


def _column(batch: Sequence[Any], digest: Any) -> Any:
    rows = tf.shape(batch[0])[:1] if batch[0].shape.rank else tf.constant([1])
    return tf.fill(rows, digest)
