"""Judges uses of what only the modern path refuses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from estimator_bridge.compat.source.reached import ReachedCode
from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.scopes import Place
from estimator_bridge.compat.source.surface import as_written, canonical, prefixes
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

# Names that only the modern path refuses, each with all names below it -> reason.
_REFUSED = {
    "tensorflow.estimator.ProfilerHook": "ProfilerHook profiles a session, which the modern path does not have",
    "tensorflow.train.ProfilerHook": "ProfilerHook profiles a session, which the modern path does not have",
    **dict.fromkeys(
        ("tensorflow.contrib.lookup.MutableHashTable", "tensorflow.contrib.lookup.MutableDenseHashTable"),
        "a table that changes is no variable, so it would not be saved",
    ),
    "tensorflow.train.SaverDef.V1": "a Saver that writes the format of before 2016 is refused",
}
_BATCH_NORMS = re.compile(
    r"\b(batch_norm|batch_normalization|BatchNormalization|BatchNorm|fused_batch_norm|SyncBatchNormalization)$"
)
_LEARN = "tensorflow.contrib.learn."
_LEARN_ESTIMATOR = re.compile(r"(Estimator|Classifier|Regressor|SKCompat|SVM|KMeansClustering)$")
_LEARN_RUNNER = re.compile(r"(learn_runner\.(run|tune)|\.Experiment)$")

# Call -> keyword that only the modern path refuses -> reason.
_RUN_CONFIG = {
    "device_fn": "it places operations itself",
    "master": "it does not send its work to another server",
}
_REFUSED_KEYWORDS = {
    "RunConfig": _RUN_CONFIG,
    "DistributeConfig": {
        "remote_cluster": "it does not send its work to other servers",
    },
    "SessionRunArgs": {"options": "a hook traces a session, which the modern path does not have"},
    "ConfigProto": {"cluster_def": "it does not send its work to other processes"},
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
_SETTINGS = re.compile(
    r"\b(flags|args|arguments|params|hparams|hps|config|cfg|conf|opts?|options|settings)\b[.\[]", re.IGNORECASE
)


def judge_for_modern(source: Source) -> Iterator[SourceFinding]:
    """Yields a finding for each use that only the modern path refuses; of one that a setting may leave out, the verdict is ``LOOK``.

    Args:
        source: Parsed file.
    """
    for symbol, node in symbols(source):
        if isinstance(node, ast.expr) and (reason := _reason(symbol)):
            yield _finding(source, node, as_written(symbol), reason)
    for call, place in source.names.nodes(ast.Call):
        symbol = canonical(source.names.resolve(call.func, place.scope) or "")
        refused = _REFUSED_KEYWORDS.get(symbol.rpartition(".")[2], {}) if symbol.startswith("tensorflow") else {}
        for keyword in call.keywords:
            if keyword.arg in refused and _is_given(source, keyword.value, place):
                yield _finding(source, keyword.value, f"{keyword.arg}=", refused[keyword.arg])


def judge_for_micro_batches(source: Source) -> Iterator[SourceFinding]:
    """Yields a finding for each batch norm, which ``run --micro`` refuses in training.

    Args:
        source: Parsed file.
    """
    for symbol, node in symbols(source):
        if isinstance(node, ast.expr) and _BATCH_NORMS.search(symbol):
            message = (
                "Refused with --micro if it normalizes the rows of a batch in training. Add --micro-statistics to let it see one "
                "micro-batch at a time, or train without --micro."
            )
            yield SourceFinding.at(node, as_written(symbol), Kind.TENSORFLOW, Verdict.LOOK, message)


def calls_an_estimator(sources: Sequence[Source], reached: ReachedCode) -> bool:
    """Returns True if a script may call an Estimator, without which the modern path does nothing.

    Args:
        sources: Script and its own modules.
        reached: Code of them that may run.
    """
    if not any(_is_estimator(symbol) for source in sources for symbol, _ in symbols(source)):
        return False
    return any(reached.may_run(source.path, node.lineno) for source in sources for node in _calling_names(source))


def symbols(source: Source) -> Iterator[tuple[str, ast.AST]]:
    """Yields the names of TensorFlow that a file imports or reads, each with its node.

    Args:
        source: Parsed file.
    """
    for dotted, statement, _ in source.names.imports:
        yield canonical(dotted), statement
    for kind in (ast.Attribute, ast.Name):
        for node, place in source.names.nodes(kind):
            symbol = canonical(source.names.resolve(node, place.scope) or "")
            if symbol.startswith("tensorflow"):
                yield symbol, node


def _calling_names(source: Source) -> Iterator[ast.expr]:
    """Yields the names of methods and functions that train, evaluate or predict."""
    imported = {dotted.rpartition(".")[2] for dotted, _, _ in source.names.imports} & _CALLS
    for attribute, place in source.names.nodes(ast.Attribute):
        symbol = canonical(source.names.resolve(attribute, place.scope) or "")
        if attribute.attr in _CALLS or (symbol.startswith(_LEARN) and _LEARN_RUNNER.search(symbol)):
            yield attribute
    yield from (name for name, _ in source.names.nodes(ast.Name) if name.id in imported)


def _reason(symbol: str) -> str:
    if symbol.startswith(_LEARN) and _LEARN_ESTIMATOR.search(symbol):
        return "tf.contrib.learn has its own Estimators, which train in a session"
    return next((_REFUSED[prefix] for prefix in prefixes(symbol) if prefix in _REFUSED), "")


def _finding(source: Source, node: ast.expr, symbol: str, reason: str) -> SourceFinding:
    message, verdict = f"Not on the modern path: {reason}. Use --path legacy.", Verdict.HUMAN
    if setting := _setting_around(source, node):
        message, verdict = f"{message} (only if {setting})", Verdict.LOOK
    return SourceFinding.at(node, symbol, Kind.TENSORFLOW, verdict, message)


def _setting_around(source: Source, node: ast.expr) -> str:
    """Returns the test of an ``if`` around a node that reads a flag or another setting; empty if there is none.

    Settings that are visibly on by default count as none.
    """
    for one, _ in source.names.nodes(ast.If):
        if one.lineno < node.lineno <= (one.end_lineno or 0):
            test = ast.unparse(one.test)
            if _SETTINGS.search(test) and not any(name in _on_by_default(source) for name in re.findall(r"\w+", test)):
                return test
    return ""


def _on_by_default(source: Source) -> set[str]:
    """Returns the names of the command line's flags whose default is neither empty nor false."""
    names: set[str] = set()
    for call, _ in source.names.nodes(ast.Call):
        texts = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        function = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if texts and (function.startswith("DEFINE_") or function == "add_argument"):
            defaults = [one.value for one in call.keywords if one.arg == "default"]
            defaults += call.args[1:2] if function != "add_argument" else []
            if any(not isinstance(one, ast.Constant) or one.value for one in defaults):
                names.update(text.lstrip("-").replace("-", "_") for text in texts)
    return names


def _is_given(source: Source, value: ast.expr, place: Place) -> bool:
    """Returns True if an argument is visibly more than None and an empty text, which flags are by default."""
    if isinstance(value, ast.Name):
        home = place.scope.find(value.id)
        values = [one.value for one in home.bindings[value.id]] if home else []
        return any(one is not None and not isinstance(one, ast.Name) and _is_given(source, one, place) for one in values)
    if isinstance(value, ast.Constant):
        return bool(value.value)
    if isinstance(value, ast.Call):
        return (source.names.resolve(value.func, place.scope) or "").startswith("tensorflow")
    return isinstance(value, (ast.Lambda, ast.Dict))


def _is_estimator(symbol: str) -> bool:
    package = symbol.removeprefix("tensorflow.contrib.").partition(".")[0]
    is_contrib = symbol.startswith("tensorflow.contrib.") and package in _CONTRIB_ESTIMATORS
    is_runner = symbol.startswith(_LEARN) and bool(_LEARN_RUNNER.search(symbol))
    return is_contrib or is_runner or symbol.startswith(_ESTIMATORS) or symbol.endswith("model_to_estimator")
