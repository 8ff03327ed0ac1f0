"""Writes contrib.md from ``legacy/contrib``: ``python docs/reference/generate_contrib.py``. TensorFlow is not needed."""

from __future__ import annotations

import textwrap
from pathlib import Path

from estimator_bridge.legacy.contrib import PACKAGES
from estimator_bridge.legacy.contrib.offered import offered
from estimator_bridge.legacy.contrib.replacements import REPLACEMENTS

PAGE = Path(__file__).parent / "contrib.md"
_HEAD = """% Written by docs/reference/generate_contrib.py from legacy/contrib; change that.

# tf.contrib

TensorFlow 2 removed `tf.contrib`. Scripts that `estimator-bridge run` executes, on either path, find below it what old pipelines
use most, under every name that TensorFlow 1 had for it: `tf.contrib.layers.l2_regularizer`, `from tensorflow.contrib import
layers`, `import tensorflow.contrib.slim as slim`, and by source file, `from tensorflow.contrib.layers.python.layers import
regularizers`. What is offered is checked against TensorFlow 1.15.5: values, gradients, variables' names and shapes, checkpoints'
names, errors.

All else is refused where it is used, with the symbol, the file and line, and what to use instead:

- a package or a source file that TensorFlow 1.15.5 had in `tf.contrib` can be imported, as it could then, so that a script runs
  whose branch that needs it is not taken: `import tensorflow.contrib.tensorrt as trt`. It refuses at its first use,
  `trt.create_inference_graph`;
- a class, a function or a constant, `from tensorflow.contrib.layers import real_valued_column`, is refused at the import. Nothing
  could honestly stand in for it: it could be subclassed, compared, passed on and stored, and fail late or never. So is a package
  that TensorFlow 1.15.5 did not have;
- a script that looks before it leaps goes its other way. An import or `tf.contrib.eager` in a `try` whose `except` catches the
  error (`ImportError`, `ModuleNotFoundError`, `AttributeError`, `Exception`) is refused at once, packages too, and
  `hasattr(tf.contrib, "eager")` is False. The `try` is looked for around the statement itself, in its function;
- `from tensorflow.contrib.layers import *` brings the names that are offered, and a line on stderr says so: another name is Python's
  own NameError.

The errors are the AttributeError and the ModuleNotFoundError that Python would raise. [`estimator-bridge check`](../how-to/check-a-script.md) tells
all of it without a run.

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
