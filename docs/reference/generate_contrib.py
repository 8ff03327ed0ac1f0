"""Writes contrib.md and contrib-refused.md from ``legacy/contrib``: ``python docs/reference/generate_contrib.py``. TensorFlow is not needed."""

from __future__ import annotations

import textwrap
from pathlib import Path

from estimator_bridge.compat.source.removed_names.contrib import REPLACEMENTS
from estimator_bridge.legacy.contrib import PACKAGES
from estimator_bridge.legacy.contrib.offered import offered

FOLDER = Path(__file__).parent
_GENERATED = "% Written by docs/reference/generate_contrib.py from legacy/contrib; change that.\n"
_OFFERED = """# tf.contrib: offered names

For anyone whose script uses `tf.contrib`, which TensorFlow 2 removed.

```sh
estimator-bridge run train.py      # tf.contrib.layers.l2_regularizer works
estimator-bridge check train.py    # lists what of tf.contrib is offered and what is gone, without a run
```

Scripts that `estimator-bridge run` executes, on either path, find the packages below. These are what old pipelines use most, under
every name that TensorFlow 1 had for it:

- `tf.contrib.layers.l2_regularizer`,
- `from tensorflow.contrib import layers`,
- `import tensorflow.contrib.slim as slim`,
- by source file: `from tensorflow.contrib.layers.python.layers import regularizers`.

What is offered is checked against TensorFlow 1.15.5: values, gradients, variables' names and shapes, checkpoints' names, errors. All
other names are refused, unless the real `tf.contrib` has been fetched.

## The real tf.contrib

```sh
estimator-bridge contrib fetch     # once; then estimator-bridge run, compare and launch use it
estimator-bridge contrib fetch --from wheels/     # without a network
estimator-bridge contrib status
estimator-bridge contrib remove
```

The command downloads the official wheels of TensorFlow 1.15.5 and 1.14.0 (for `gan` and `rate`) and of tensorflow-estimator 1.15.1 with
pip, 222 MB, and keeps their Python files of `tf.contrib` alone, 9 MB. The wheels' sha256 are pinned, and each file is compared with its
hash when it is loaded. The licence is Apache-2.0; nothing of it is part of this package. The files lie in
`~/.cache/estimator-bridge/contrib`, or in the folder that the environment variable `ESTIMATOR_BRIDGE_CONTRIB` names.
`--fetch-contrib` fetches on the way.

Each file is mended in memory: imports of what TensorFlow has moved, names that NumPy 2 and Python 3 dropped. All 92 packages can be
imported on TensorFlow 2.21. Compiled operations run by TensorFlow 2's own kernels where it has them, or as graphs of other operations,
such as the `GatherTree` of a beam search; the others are refused at their use, with name, file and line. `cluster_resolver`,
`distribute`, `summary` and `tpu` stay those listed below. Imports, 22 of the
compiled operations and 28 whole trainings are compared with TensorFlow 1.15.5; the Estimators of `learn` train on the legacy path alone.

## Names that are not offered

They are refused with the symbol, the file and line, and [what to use instead](contrib-refused.md).

| The script | What happens |
|---|---|
| imports a package or a source file that TensorFlow 1.15.5 had: `import tensorflow.contrib.tensorrt as trt` | The import works, as it did then, so a script runs whose branch that needs it is not taken. The first use is refused: `trt.create_inference_graph`. |
| imports a class, a function or a constant: `from tensorflow.contrib.layers import real_valued_column` | The import is refused. Nothing could honestly stand in for it: it could be subclassed, compared, passed on and stored, and fail late or never. |
| imports a package that TensorFlow 1.15.5 did not have | The import is refused. |
| tests first: an import or `tf.contrib.eager` in a `try` whose `except` catches the error (`ImportError`, `ModuleNotFoundError`, `AttributeError`, `Exception`) | It is refused at once, packages too, so the script takes its other branch. The `try` is looked for around the statement itself, in its function. |
| tests first: `hasattr(tf.contrib, "eager")` | It is False. |
| `from tensorflow.contrib.layers import *` | It brings the names that are offered, and a line on stderr says so. Any other name is Python's own NameError. |

`estimator_bridge.legacy.install()` without the runner leaves `tensorflow` as TensorFlow 2 has it, without a `contrib`. There the
packages are imported as `from estimator_bridge.legacy.contrib import layers`.
"""
_REFUSED = """# tf.contrib: refused names

For anyone whose script ended with an error about a name of `tf.contrib`.

```sh
estimator-bridge check train.py    # lists all such names with their replacement, without a run
```

A name that is not [offered](contrib.md) is refused where it is used, with the symbol, the file and line, and what to use instead. The
errors are the AttributeError and the ModuleNotFoundError that Python would raise. [](contrib.md#names-that-are-not-offered) says when
they are raised.

## What to use instead

A package's row stands for every name of it that is neither offered nor has its own row.
"""


def pages() -> dict[str, str]:
    """Renders both pages.

    Returns:
        Mapping from file name to text.
    """
    packages = [f"### contrib.{name}\n\n{_names(name)}\n" for name in sorted(PACKAGES)]
    rows = [
        f"| `{symbol}`{', other names' if symbol in PACKAGES else ''} | {successor} |"
        for symbol, successor in sorted(REPLACEMENTS.items())
    ]
    table = "\n".join(["| Below tf.contrib | What to use instead |", "|---|---|", *rows])
    return {
        "contrib.md": "\n".join([_GENERATED, _OFFERED, "## Packages\n", *packages]),
        "contrib-refused.md": "\n".join([_GENERATED, _REFUSED, f"{table}\n"]),
    }


def _names(package: str) -> str:
    names = ", ".join(f"`{name}`" for name in sorted(offered(package)))
    return textwrap.fill(f"{names}.", 128, break_long_words=False)


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
