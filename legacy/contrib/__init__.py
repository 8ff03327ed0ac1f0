"""Restores the names of ``tf.contrib`` that old pipelines still import, in one module for each of its packages.

A contrib package X is the module X of this folder, and its ``__all__`` is what it offers. Scripts reach it as ``tf.contrib.X``
through ``namespace``, which refuses every other name by symbol, file and line; a module's optional ``IN_FILES`` has what
TensorFlow 1 offered by file path only.
"""

PACKAGES: tuple[str, ...] = (
    "cluster_resolver",
    "crf",
    "data",
    "distribute",
    "distributions",
    "estimator",
    "framework",
    "layers",
    "learn",
    "lookup",
    "losses",
    "metrics",
    "opt",
    "predictor",
    "rnn",
    "seq2seq",
    "signal",
    "slim",
    "summary",
    "tpu",
    "training",
    "util",
)
