"""Writes contrib.md from ``legacy/contrib``: ``python docs/generate_contrib.py``. TensorFlow is not needed."""

from __future__ import annotations

import textwrap
from pathlib import Path

from estimator_bridge.legacy.contrib import PACKAGES
from estimator_bridge.legacy.contrib.replacements import REPLACEMENTS
from estimator_bridge.legacy.contrib_offer import offered

PAGE = Path(__file__).parent / "contrib.md"
_HEAD = """% Written by docs/generate_contrib.py from legacy/contrib; change that.

# tf.contrib

TensorFlow 2 removed `tf.contrib`. Scripts that `estimator-bridge run` executes, on either path, find below it what old pipelines
use most, under every name that TensorFlow 1 had for it: `tf.contrib.layers.l2_regularizer`, `from tensorflow.contrib import
layers`, `import tensorflow.contrib.slim as slim`, and by source file, `from tensorflow.contrib.layers.python.layers import
regularizers`. What is offered is checked against TensorFlow 1.15.5: values, gradients, variables' names and shapes, checkpoints'
names, errors.

All else is refused where it is asked for, with the symbol, the file and line, and what to use instead. The error is the
AttributeError or ImportError that Python would raise, so that a script which looks before it leaps, with `hasattr` or
`except ImportError`, goes its other way.

`estimator_bridge.legacy.install()` alone, without the runner, leaves `tensorflow` as TensorFlow 2 has it, without a `contrib`; there
the packages are imported as `from estimator_bridge.legacy.contrib import layers`.
"""


def page() -> str:
    """The whole page."""
    offered = [f"### contrib.{name}\n\n{_names(name)}\n" for name in sorted(PACKAGES)]
    refused = [f"| `{symbol}` | {successor} |" for symbol, successor in sorted(REPLACEMENTS.items())]
    table = "\n".join(["| Below tf.contrib | What to use instead |", "|---|---|", *refused])
    return "\n".join([_HEAD, "## Offered\n", *offered, f"## Refused\n\n{_NOTE}\n\n{table}\n"])


_NOTE = "A package's row stands for every name of it that is neither offered nor has a row of its own."


def _names(package: str) -> str:
    names = ", ".join(f"`{name}`" for name in sorted(offered(package)))
    return textwrap.fill(f"{names}.", 128, break_long_words=False)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
