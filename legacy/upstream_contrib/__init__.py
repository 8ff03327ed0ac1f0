"""The real ``tf.contrib``: TensorFlow 1.15's own Python files, fetched once by the user, mended in memory and run on today's TensorFlow.

Nothing of it is in this package. ``fetch`` takes the Python files out of the official wheels into a cache folder; ``loading`` imports them;
``packages`` says which package a script gets from there and which one from ``legacy.contrib``.
"""

OURS = frozenset({"cluster_resolver", "distribute", "summary", "tpu"})
"""Packages whose real files need internals that TensorFlow 2 no longer has; ``legacy.contrib`` has them."""

SHRUNK = ("data", "estimator")
"""Packages that had more names before 1.15, which are taken from ours."""
