"""Judges uses of what ``run`` refuses: compiled operations, TPUs, packages that are not installed, and limits of the modern path."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.removed_names.python import MODULES
from estimator_bridge.compat.source.rules.idioms import MODULES as PYTHON2_MODULES
from estimator_bridge.compat.source.surface import as_written, canonical, prefixes
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

_OWN_WAYS = frozenset({"tensorflow", "tensorflow_estimator", "keras", "tf_keras"})  # judged by their names
_LIBRARY_LOADERS = frozenset({"tensorflow.load_op_library", "tensorflow.load_library"})
_CONTRIB_OPERATIONS = frozenset(
    {"bigtable", "boosted_trees", "ffmpeg", "ignite", "kafka", "kinesis", "tensor_forest", "tensorrt"}
)
"""Packages of tf.contrib that are compiled operations."""

# Names that only the modern path refuses, each with all names below it -> reason.
_NOT_MODERN = {
    "tensorflow.contrib.learn": "tf.contrib.learn has its own Estimator, which trains in a session",
    "tensorflow.estimator.ProfilerHook": "ProfilerHook profiles a session, which the modern path does not have",
    "tensorflow.train.ProfilerHook": "ProfilerHook profiles a session, which the modern path does not have",
    "tensorflow.train.SaverDef.V1": "a Saver that writes the format of before 2016 is refused",
}
_CALLS = frozenset(
    {
        "train",
        "evaluate",
        "predict",
        "train_and_evaluate",
        "export_saved_model",
        "export_savedmodel",
        "fit",
        "continuous_train_and_eval",
    }
)
_ESTIMATORS = ("tensorflow.estimator", "tensorflow.python.estimator", "tensorflow.keras.estimator")
_CONTRIB_ESTIMATORS = frozenset(
    {"estimator", "tpu", "gan", "timeseries", "kernel_methods", "factorization", "distribute", "tensor_forest"}
)


def judge_refusals(source: Source) -> Iterator[SourceFinding]:
    """Yields a finding for each use of compiled libraries and of TPUs.

    Args:
        source: Parsed file.
    """
    names = source.names
    for call, place in names.nodes(ast.Call):
        symbol = canonical(names.resolve(call.func, place.scope) or "")
        if symbol in _LIBRARY_LOADERS and not place.guarded:
            message = "A library compiled for TensorFlow 1 cannot be loaded by a later TensorFlow."
            yield SourceFinding.at(call, as_written(symbol), Kind.TENSORFLOW, Verdict.HUMAN, message)
        for keyword in call.keywords:
            is_true = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            if keyword.arg == "use_tpu" and is_true and not _is_asked_first(source, call):
                yield SourceFinding.at(keyword.value, "use_tpu=True", Kind.TENSORFLOW, Verdict.HUMAN, "It needs a TPU.")
    for symbol, node in _symbols(source):
        package = symbol.removeprefix("tensorflow.contrib.").partition(".")[0]
        if symbol.startswith("tensorflow.contrib.") and package in _CONTRIB_OPERATIONS and isinstance(node, ast.expr):
            message = "It is made of operations compiled for TensorFlow 1, which no later TensorFlow has."
            yield SourceFinding.at(node, as_written(symbol), Kind.CONTRIB, Verdict.HUMAN, message)


def judge_for_modern(source: Source) -> Iterator[SourceFinding]:
    """Yields a finding for each name that only the modern path refuses.

    Args:
        source: Parsed file.
    """
    for symbol, node in _symbols(source):
        reason = next((_NOT_MODERN[prefix] for prefix in prefixes(symbol) if prefix in _NOT_MODERN), None)
        if reason is not None and isinstance(node, ast.expr):
            message = f"Not on the modern path: {reason}. Use --path legacy."
            yield SourceFinding.at(node, as_written(symbol), Kind.TENSORFLOW, Verdict.HUMAN, message)


def calls_an_estimator(sources: Sequence[Source]) -> bool:
    """Returns True if a script may call an Estimator, without which the modern path does nothing.

    Args:
        sources: Script and its own modules.
    """
    attributes = {chain.attr for source in sources for chain, _ in source.names.nodes(ast.Attribute)}
    imported = {dotted.rpartition(".")[2] for source in sources for dotted, _, _ in source.names.imports}
    if not _CALLS & (attributes | imported):
        return False
    return any(_is_estimator(symbol) for source in sources for symbol, _ in _symbols(source))


def judge_packages(source: Source, folders: Sequence[Path]) -> Iterator[SourceFinding]:
    """Yields a finding for each import of a package that is not there; imports nothing.

    Args:
        source: Parsed file.
        folders: Folders in which the script finds its own modules.
    """
    for dotted, statement, place in source.names.imports + source.names.stars:
        top = dotted.partition(".")[0]
        is_known = not top or place.guarded or top in _OWN_WAYS or top in MODULES or top in PYTHON2_MODULES
        if not is_known and top not in sys.stdlib_module_names and not _is_there(top, folders):
            message = f"The package {top} is not installed for this Python."
            yield SourceFinding.at(statement, f"import {top}", Kind.PACKAGE, Verdict.HUMAN, message)


def _is_asked_first(source: Source, call: ast.Call) -> bool:
    """Returns True if a condition that names a TPU is around a call."""
    return any(
        node.lineno < call.lineno <= (node.end_lineno or 0) and "tpu" in ast.unparse(node.test).lower()
        for node, _ in source.names.nodes(ast.If)
    )


def _is_there(top: str, folders: Sequence[Path]) -> bool:
    if any((folder / top).is_dir() or (folder / f"{top}.py").is_file() for folder in folders):
        return True
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return False


def _is_estimator(symbol: str) -> bool:
    package = symbol.removeprefix("tensorflow.contrib.").partition(".")[0]
    is_contrib = symbol.startswith("tensorflow.contrib.") and package in _CONTRIB_ESTIMATORS
    return is_contrib or symbol.startswith(_ESTIMATORS) or symbol.endswith("model_to_estimator")


def _symbols(source: Source) -> Iterator[tuple[str, ast.AST]]:
    for dotted, statement, _ in source.names.imports:
        yield canonical(dotted), statement
    for kind in (ast.Attribute, ast.Name):
        for node, place in source.names.nodes(kind):
            symbol = canonical(source.names.resolve(node, place.scope) or "")
            if symbol.startswith("tensorflow"):
                yield symbol, node
