"""Writes conversions/*.md from the tables of ``compat/source/fixers``: ``python docs/reference/generate_conversions.py``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import libcst as cst

from estimator_bridge.compat.source.fixers.estimators import CANNED, WITHOUT_FIXER
from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model.layers import DEFAULTS, LAYERS, translated
from estimator_bridge.compat.source.fixers.model.metrics import ROWS, metric
from estimator_bridge.compat.source.fixers.model.optimizers import OPTIMIZERS, SCHEDULES, optimizer, schedule
from estimator_bridge.compat.source.fixers.normal.contrib_blocks import PARAMETERS
from estimator_bridge.compat.source.fixers.normal.initializers import INITIALIZERS, initializer
from estimator_bridge.compat.source.fixers.normal.normal_form import OF_CONTRIB
from estimator_bridge.compat.source.fixers.same_names import SAME_NAMES
from estimator_bridge.compat.source.fixers.script import Script, nodes
from estimator_bridge.compat.source.fixers.surface import SAME_CALLS, SAME_VALUES

_Table = tuple[Sequence[str], Sequence[Sequence[str]]]
FOLDER = Path(__file__).parent / "conversions"
_GENERATED = "% Written by docs/reference/generate_conversions.py from the tables of compat/source/fixers; change those.\n"
_COMMAND = """
```sh
estimator-bridge convert source train.py --out train_keras.py
```
"""
_PAGES = {
    "layers": (
        "Layers that convert source converts",
        "whose model function calls `tf.layers`, `tf.contrib.layers` or `tf.feature_column.input_layer`",
        (
            "`__init__` of the new model makes each layer once, and `call` calls it. A call with another argument than those listed stays, below a "
            "comment. Arguments get Keras' names, and defaults that Keras does not share are written out."
        ),
    ),
    "optimizers": (
        "Optimizers and schedules that convert source converts",
        "whose model function makes an optimizer of `tf.train`",
        (
            "The new optimizer computes the same updates, with TensorFlow 1's defaults. `KernelOptimizer` is a class that the new script contains: it "
            "calls TensorFlow 1's operation where no optimizer of Keras computes the same."
        ),
    ),
    "metrics": (
        "Metrics that convert source converts",
        "whose `eval_metric_ops` has functions of `tf.metrics`",
        "`__init__` makes the metric, and `compute_metrics` updates it with the values on the right. `weights` becomes `sample_weight`.",
    ),
    "functions": (
        "Functions that convert source spells anew",
        "who looks up what a name of TensorFlow 1 becomes",
        (
            "A call with these arguments gets the name on the right, which computes the same. Names that mean the same object in both versions stay; "
            "all others are spelled below `tf.compat.v1`. Names of `tensorflow.python` become those of the public namespace first."
        ),
    ),
    "canned": (
        "Canned Estimators that convert source converts",
        "whose script uses an Estimator with a model of its own",
        "The new script contains a class of the same name. A call with another argument stays, below a comment.",
    ),
}
"""Title, whom a page is for, and what is true of all rows."""


def pages() -> dict[str, str]:
    """Returns the text of each page by its file name."""
    rows = {
        "layers": _layers(),
        "optimizers": _optimizers(),
        "metrics": _metrics(),
        "functions": _functions(),
        "canned": _canned(),
    }
    return {f"{name}.md": _page(name, tables) for name, tables in rows.items()}


def _page(name: str, tables: Iterable[_Table]) -> str:
    title, reader, text = _PAGES[name]
    lines = [f"{_GENERATED}# {title}", f"For anyone {reader}.", _COMMAND.strip(), text]
    for heads, rows in tables:
        table = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        table += [f"| {' | '.join(cells)} |" for cells in rows]
        lines.append("\n".join(table))
    return "\n\n".join(lines) + "\n"


def _call(function: str, parameters: Iterable[str], same: bool = False) -> tuple[Script, cst.Call]:
    """Returns a script that calls a function of TensorFlow 1, and the call; same: arguments have the names of their parameters."""
    given = ", ".join(f"{name}={name if same else '...'}" for name in parameters)
    script = Script(f"import tensorflow as tf\ntf.{function}({given})\n")
    (found,) = nodes(script.module, cst.Call)
    assert isinstance(found, cst.Call)
    return script, found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _layers() -> list[_Table]:
    rows = []
    for name, (_, parameters) in sorted(LAYERS.items()):
        script, call = _call(name, parameters[:1])
        keras, function, _, _, always = translated(script, call, call)
        written = ", ".join(f"{key}={value}" for key, value in {**DEFAULTS.get(function, {}), **always}.items())
        taken = [one for one in parameters if _takes(name, parameters[0], one)]
        rows.append((f"`tf.{name}`", _listed(taken), f"`{keras}({written})`"))
    return [(("Function", "Arguments", "Layer of Keras, with its defaults"), rows)]


def _takes(name: str, first: str, parameter: str) -> bool:
    script, call = _call(name, dict.fromkeys((first, parameter)))
    try:
        translated(script, call, call)
    except UnconvertibleError:
        return False
    return True


def _optimizers() -> list[_Table]:
    made = [
        (f"`tf.train.{name}`", _listed(row.parameters), f"`{optimizer(*_call(f'train.{name}', ()))}`")
        for name, row in sorted(OPTIMIZERS.items())
    ]
    scheduled = [
        (f"`tf.train.{name}`", _listed(row.parameters), f"`{schedule(*_call(f'train.{name}', ()))}`")
        for name, row in sorted(SCHEDULES.items())
    ]
    return [
        (("Optimizer", "Arguments", "Optimizer of Keras, with its defaults"), made),
        (("Function", "Arguments", "Schedule of Keras"), scheduled),
    ]


def _metrics() -> list[_Table]:
    rows = []
    for name, row in sorted(ROWS.items()):
        script, call = _call(
            f"metrics.{name}", [one for one in row.parameters if one not in ("weights", *row.defaults)], same=True
        )
        found = metric(script, "name", call)
        rows.append((f"`tf.metrics.{name}`", _listed(row.parameters), f"`{found.made}`", f"`{found.update}`"))
    return [(("Function", "Arguments", "Metric of Keras", "Values"), rows)]


def _functions() -> list[_Table]:
    rows = [
        (f"`tf.{old}`", str(positional), _listed(keywords), f"`tf.{new}`")
        for old, (new, positional, keywords) in sorted(SAME_CALLS.items())
    ]
    values = [(f"`tf.{old}`", f"`tf.{new}`") for old, new in sorted({**SAME_VALUES, **SAME_NAMES}.items())]
    contained = [(f"`tf.{old}`", _listed(parameters), f"`{new}`") for old, (new, parameters) in sorted(OF_CONTRIB.items())]
    in_blocks = [(f"`tf.contrib.layers.{name}`", _listed(parameters)) for name, parameters in PARAMETERS.items()]
    drawn = [
        (f"`tf.contrib.layers.{name}`", _listed(parameters), f"`tf.{initializer(*_call(f'contrib.layers.{name}', ()))}`")
        for name, (parameters, _) in sorted(INITIALIZERS.items())
    ]
    return [
        (("Initial value", "Arguments", "New call, with its defaults"), drawn),
        (("Function", "Positional arguments, at most", "Keywords", "New name"), rows),
        (("Value", "New name"), values),
        (("Function of contrib", "Arguments", "Function that the new script contains"), contained),
        (("Function of contrib, written as a table or a loop over layers", "Arguments"), in_blocks),
    ]


def _canned() -> list[_Table]:
    rows = [
        (f"`{name.replace('tensorflow', 'tf', 1)}`", _listed(one for one in parameters if one not in WITHOUT_FIXER))
        for name, parameters in sorted(CANNED.items())
    ]
    return [(("Estimator", "Arguments"), rows)]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, page in pages().items():
        (FOLDER / file).write_text(page, encoding="utf-8")
