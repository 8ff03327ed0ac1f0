"""Names of ``tf.contrib`` that a script finds, for ``estimator-bridge check``: every package once it is fetched, else our own."""

from __future__ import annotations

from estimator_bridge.legacy.contrib import offered
from estimator_bridge.legacy.contrib.offered import imports as imports  # noqa: PLC0414 -- a part of the protocol
from estimator_bridge.legacy.contrib.replacements import replacement as replacement  # noqa: PLC0414 -- likewise
from estimator_bridge.legacy.upstream_contrib import OURS, cache


def offers(symbol: str) -> bool:
    """Returns True if a symbol can be had under the runner; of a fetched package, its names are not looked at.

    Args:
        symbol: Dotted name, e.g. ``tf.contrib.layers.l2_regularizer``.
    """
    package = [*symbol.split("."), ""][2]
    if package in OURS or not cache.is_fetched():
        return offered.offers(symbol)
    return not package or any(file.startswith(f"tensorflow/contrib/{package}/") for file in cache.manifest(cache.folder()))
