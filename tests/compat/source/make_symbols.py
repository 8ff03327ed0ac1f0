"""Writes compat/source/symbols.txt.gz: the names that scripts find under the runner.

``python make_symbols.py list OUT.json`` in an environment of each TensorFlow, then ``python make_symbols.py merge OUT.json...``.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gzip
import importlib
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KERAS = "tensorflow.python.keras"
TABLE = Path(__file__).parents[3] / "compat" / "source" / "symbols.txt.gz"
API = (
    "tensorflow._api",
    "tensorflow.compat",
    "tensorflow.keras",
    "tf_keras.api",
    "keras.api",
    "tensorflow_estimator.python.estimator.api",
)

Symbols = dict[str, list[str]]


def public_names() -> Symbols:
    """Module below ``tensorflow``: its names, as a TensorFlow 1 script sees them; ``tensorflow.compat.v2`` too."""
    from estimator_bridge.legacy.installation import install
    from estimator_bridge.legacy.tf1_surface.tf1_imports import tf1_imports

    install()
    with tf1_imports({}) as tf1:
        one = dict(_walk(tf1, "tensorflow", frozenset({id(tf1), id(tf1.compat)})))
        one["tensorflow.compat"] = [*sorted(name for name in dir(tf1.compat) if not name.startswith("_"))]
        two = dict(_walk(tf1.compat.v2, "tensorflow.compat.v2", frozenset({id(tf1.compat.v2.compat)})))
    return one | two


def _walk(module: Any, path: str, seen: frozenset[int]) -> Iterator[tuple[str, list[str]]]:
    names = [
        name for name in sorted(set(dir(module))) if not name.startswith("_") and (path, name) != ("tensorflow", "contrib")
    ]
    yield path, names
    for name in names:
        value = getattr(module, name)
        if isinstance(value, types.ModuleType) and id(value) not in seen and value.__name__.startswith(API):
            yield from _walk(value, f"{path}.{name}", seen | {id(value)})


def file_names(keep: int = 1) -> Symbols:
    """Module below ``tensorflow.python``: what its file binds; of protocol buffers only the modules.

    Args:
        keep: reads the names of every so many modules only.
    """
    import tensorflow
    import tensorflow_estimator

    from estimator_bridge.compat.source.surface import canonical
    from estimator_bridge.legacy.restored.import_aliases import _ALIASES

    root = Path(tensorflow.__file__).parent
    estimator = Path(tensorflow_estimator.__file__).parent
    files = {_dotted(path, root, "tensorflow"): path for path in sorted(root.glob("python/**/*.py"))}
    files |= {_dotted(path, estimator, "tensorflow"): path for path in sorted(estimator.glob("python/estimator/**/*.py"))}
    found = {name: sorted(_bound(path, files)) if not index % keep else [] for index, (name, path) in enumerate(files.items())}
    for name, module in list(sys.modules.items()):  # what the runner restored
        if name.startswith("tensorflow.python.") and "pywrap" not in name and (found.get(name) or name not in found):
            found[name] = sorted({*found.get(name, ()), *(one for one in dir(module) if not one.startswith("__"))})
    found |= _keras_names(found)
    for alias, real in _ALIASES.items():
        if not alias.startswith("tensorflow.python."):
            continue
        below = {name: found[name] for name in found if f"{name}.".startswith(f"{canonical(real)}.")}
        found = {alias + name.removeprefix(canonical(real)): names for name, names in below.items()} | found
    return found | {_dotted(path, root, "tensorflow"): [] for path in sorted(root.glob("core/**/*_pb2.py"))}


def _keras_names(found: Symbols) -> Symbols:
    """Module below ``tensorflow.python.keras``: what the runner gives by that name."""
    import tensorflow.compat.v1 as tf

    from estimator_bridge.legacy.tf1_surface.python_keras import LAYERS, MOVED, keras_file

    root = Path(importlib.import_module(tf.keras.__name__.partition(".")[0]).__file__ or "").parent / "src"
    paths = {path.relative_to(root).with_suffix("").as_posix().replace("/", ".") for path in root.rglob("*.py")}
    paths = {path.removesuffix(".__init__") for path in paths if not any(word in path for word in ("test", "benchmark"))}
    paths |= {name.removeprefix(f"{KERAS}.") for name in found if name.startswith(f"{KERAS}.")}
    files = {
        path: keras_file(tf.keras, *path.split(".")) for path in paths | MOVED.keys() | {f"layers.{name}" for name in LAYERS}
    }
    del files["__init__"]
    files[""] = keras_file(tf.keras)
    return {
        f"{KERAS}.{path}".rstrip("."): [one for one in dir(file) if one[:2] != "__"] for path, file in files.items() if file
    }


def _dotted(path: Path, root: Path, top: str) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join([top, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def _bound(path: Path, files: dict[str, Path], depth: int = 0) -> set[str]:
    """Returns the names that a module's top level binds, conditional branches included."""
    names: set[str] = set()
    with contextlib.suppress(SyntaxError):
        for node in _top_level(ast.parse(path.read_bytes()).body):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names} - {"*"}
                module = getattr(node, "module", None)
                if node.names[0].name == "*" and module in files and depth < 6:
                    names |= {name for name in _bound(files[module], files, depth + 1) if not name.startswith("_")}
            else:
                names |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return {name for name in names if not name.startswith("__")}


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            for part in ("body", "orelse", "finalbody"):
                yield from _top_level(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                yield from _top_level(handler.body)


def installed(keep: int = 1) -> dict[str, Any]:
    """The installed TensorFlow's version and names."""
    import tensorflow

    public = public_names()
    return {"version": tensorflow.__version__, "symbols": file_names(keep) | public}


def merge(several: list[dict[str, Any]]) -> str:
    """One line a module: its names; the numbers after a colon count the versions, of those in the first line, that have it."""
    ordered = sorted(several, key=lambda one: [int(part) for part in one["version"].split(".")])
    lines = [" ".join(one["version"] for one in ordered)]
    for module in sorted({name for one in ordered for name in one["symbols"]}):
        tables = [one["symbols"].get(module) for one in ordered]
        names = sorted({name for table in tables if table for name in table})
        marked = [_marked(name, [table is not None and name in table for table in tables]) for name in names]
        lines.append(" ".join([_marked(module, [table is not None for table in tables]), *marked]))
    return "\n".join(lines) + "\n"


def _marked(name: str, present: list[bool]) -> str:
    return name if all(present) else name + ":" + "".join(str(index) for index, there in enumerate(present) if there)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("list", "merge"))
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "list":
        arguments.files[0].write_text(json.dumps(installed()))
    else:
        text = merge([json.loads(path.read_text()) for path in arguments.files])
        TABLE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
