"""Refuses the Estimators of ``tf.contrib.learn`` where only those of ``tf.estimator`` can run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from estimator_bridge.errors import NotSupportedError

_refusals: list[str] = []


@contextlib.contextmanager
def refused(reason: str) -> Iterator[None]:
    """While active, the constructor of each Estimator of ``tf.contrib.learn`` raises an error.

    Args:
        reason: One sentence that says why.
    """
    _refusals.append(reason)
    try:
        yield
    finally:
        _refusals.pop()


def check(estimator: object) -> None:
    """Raises NotSupportedError inside of ``refused``; ``BaseEstimator`` calls it first.

    Args:
        estimator: Estimator that a script makes.
    """
    if _refusals:
        raise NotSupportedError(
            f"tf.contrib.learn.{type(estimator).__name__} cannot run here: {_refusals[-1]}",
            expected="an Estimator of tf.estimator, which tf.contrib.learn.Experiment accepts, too",
            fix="Use --path legacy, or make it a tf.estimator.Estimator: model_fn returns a tf.estimator.EstimatorSpec there.",
        )
