"""Code that runs without an error and does something else than it seems to do: one function a rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.scopes import Place
from estimator_bridge.compat.source.surface import canonical
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

_DISTRIBUTING = (
    "MirroredStrategy MultiWorkerMirroredStrategy CollectiveAllReduceStrategy ParameterServerStrategy TPUStrategy replicate_model_fn "
    "in_graph_replication TPUEstimator"
)
_SEVERAL_GPUS = re.compile(r"\s*\d+\s*(,\s*\d+\s*)+")
_LATER_GPU = re.compile(r"gpu:0*[1-9]", re.IGNORECASE)
_MODEL_PARALLEL = re.compile(r"model[ _-]?parallel", re.IGNORECASE)
_DECOMPOSED = re.compile(r"decompos|model[ _-]?parallel|pipeline[ _-]?parallel|shard(ed)?[ _-]?model", re.IGNORECASE)
_BATCHES = re.compile(r"batch", re.IGNORECASE)
_OLD_STRATEGIES = re.compile(r"tensorflow\.distribute\.experimental\.(MultiWorkerMirrored|CollectiveAllReduce)Strategy")


def judge_misuse(source: Source) -> Iterator[SourceFinding]:
    """Yields a finding for each misuse.

    Args:
        source: Parsed file.
    """
    for rule in _RULES:
        for node, symbol, message in rule(source):
            yield SourceFinding.at(node, symbol, Kind.CLAIM, Verdict.HUMAN, message)


Misuse = tuple[ast.AST, str, str]


def several_gpus_without_strategy(source: Source) -> Iterator[Misuse]:
    """Yields ``visible_device_list="0,1"`` without a strategy: the process sees two GPUs and trains on the first."""
    visible = list(_visible_lists(source))
    if not visible or _distributes(source) or _places_on_gpus(source):
        return
    message = (
        "Several GPUs become visible, and only the first trains: without a tf.distribute strategy every operation goes there."
    )
    for node, symbol in visible:
        yield node, symbol, message


def _visible_lists(source: Source) -> Iterator[tuple[ast.AST, str]]:
    for node, _ in source.names.nodes(ast.Call):
        for keyword in node.keywords:
            if keyword.arg == "visible_device_list" and _is_several(keyword.value):
                yield keyword.value, "visible_device_list"
        is_default = isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault" and len(node.args) == 2
        if is_default and _constant(node.args[0]) == "CUDA_VISIBLE_DEVICES" and _is_several(node.args[1]):
            yield node, "CUDA_VISIBLE_DEVICES"
    for statement, _ in source.names.nodes(ast.Assign):
        if _is_several(statement.value):
            for target in statement.targets:
                if isinstance(target, ast.Attribute) and target.attr == "visible_device_list":
                    yield statement, "visible_device_list"
                elif isinstance(target, ast.Subscript) and _constant(target.slice) == "CUDA_VISIBLE_DEVICES":
                    yield statement, "CUDA_VISIBLE_DEVICES"


def mirrored_called_model_parallel(source: Source) -> Iterator[Misuse]:
    """Yields MirroredStrategy called model parallelism: it copies the whole model to each device, which is data parallelism."""
    said = _line_with(source, _MODEL_PARALLEL)
    if not said:
        return
    for node, place in source.names.nodes(ast.Call):
        name = source.names.resolve(node.func, place.scope) or ""
        if name.endswith("MirroredStrategy"):
            message = f"Called model parallelism ({source.cells.line(said)}), but each replica holds the whole model: this is data parallelism."
            yield node, name.rpartition(".")[2], message


def instances_called_decomposition(source: Source) -> Iterator[Misuse]:
    """Yields second instances of a model called parts of one: they have twice its weights, and parts would be layers."""
    said = _line_with(source, _DECOMPOSED)
    makers = {node.name for node, _ in source.names.nodes(ast.ClassDef) if _is_model(source, node)}
    makers |= {node.name for node, _ in source.names.nodes(ast.FunctionDef) if _makes_model(source, node)}
    if not said or not makers:
        return
    first: dict[tuple[str, int], ast.Call] = {}
    for node, place in source.names.nodes(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in makers:
            other = first.setdefault((node.func.id, id(place.scope)), node)
            if other is not node:
                message = (
                    f"A second instance beside that of {source.cells.line(other.lineno)} is a whole model with its own weights, not a part of one "
                    f"as {source.cells.line(said)} says."
                )
                yield node, node.func.id, message


def fit_in_a_loop_over_batches(source: Source) -> Iterator[Misuse]:
    """Yields ``fit`` in a loop over batches: each call starts an epoch, with callbacks and validation."""
    message = (
        "Each call of fit starts a training, with its epoch count and callbacks. Give it the data set, or use train_on_batch."
    )
    for node, place in source.names.nodes(ast.Call):
        is_fit = isinstance(node.func, ast.Attribute) and node.func.attr == "fit" and bool(node.args or node.keywords)
        if is_fit and any(_is_over_batches(loop) for loop in place.loops):
            yield node, ".fit", message


def h5_of_a_subclassed_model(source: Source) -> Iterator[Misuse]:
    """Yields ``model.save("m.h5")`` of a model that cannot be rebuilt from its configuration."""
    classes = {
        node.name
        for node, _ in source.names.nodes(ast.ClassDef)
        if _is_model(source, node)
        and not any(isinstance(one, ast.FunctionDef) and one.name == "get_config" for one in node.body)
    }
    models = {
        target.id
        for node, _ in source.names.nodes(ast.Assign)
        if isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.func, ast.Name) and node.value.func.id in classes
    }
    message = "A subclassed model is code: HDF5 cannot hold it, and save raises NotImplementedError. Use save_weights, or a SavedModel."
    for node, place in source.names.nodes(ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "save" and isinstance(node.func.value, ast.Name):
            owner = node.func.value.id
            inside = owner == "self" and _class_around(place) in classes
            if (owner in models or inside) and _is_hdf5(node):
                yield node, ".save", message


def old_strategy_names(source: Source) -> Iterator[Misuse]:
    """Yields names that TensorFlow 2.4 deprecated, and that mean something else in TensorFlow 1's namespace."""
    message = "The old name, deprecated since TensorFlow 2.4 and without later fixes. Write tf.distribute.MultiWorkerMirroredStrategy."
    for chain, place in source.names.nodes(ast.Attribute):
        name = canonical(source.names.resolve(chain, place.scope) or "").replace("tensorflow.compat.v2.", "tensorflow.")
        if _OLD_STRATEGIES.fullmatch(name):
            yield chain, name.replace("tensorflow.", "tf.", 1), message


_RULES: tuple[Callable[[Source], Iterator[Misuse]], ...] = (
    several_gpus_without_strategy,
    mirrored_called_model_parallel,
    instances_called_decomposition,
    fit_in_a_loop_over_batches,
    h5_of_a_subclassed_model,
    old_strategy_names,
)


def _distributes(source: Source) -> bool:
    """Returns True if the file names a strategy, or another way to train on several devices."""
    imported = {dotted.rpartition(".")[2] for dotted, _, _ in source.names.imports}
    return not {*imported, *(chain.attr for chain, _ in source.names.nodes(ast.Attribute))}.isdisjoint(_DISTRIBUTING.split())


def _places_on_gpus(source: Source) -> bool:
    """Returns True if the file places operations on a GPU other than the first, or on a device that a variable names."""
    return any(
        not isinstance(node.args[0], ast.Constant) or _LATER_GPU.search(str(node.args[0].value))
        for node, place in source.names.nodes(ast.Call)
        if node.args and (source.names.resolve(node.func, place.scope) or "").endswith(".device")
    )


def _constant(node: ast.AST | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _is_several(node: ast.AST) -> bool:
    value = _constant(node)
    return isinstance(value, str) and bool(_SEVERAL_GPUS.fullmatch(value))


def _line_with(source: Source, words: re.Pattern[str]) -> int:
    """Returns the first line that contains the words, comments and strings included; 0 if no line does."""
    found = words.search(source.text)
    return source.text.count("\n", 0, found.start()) + 1 if found else 0


def _is_model(source: Source, node: ast.ClassDef) -> bool:
    scope = source.names.scopes[node].parent or source.names.module
    bases = [source.names.resolve(base, scope) or "" for base in node.bases]
    return any(base.endswith(("keras.Model", "keras.models.Model", "keras.engine.training.Model")) for base in bases)


def _makes_model(source: Source, node: ast.FunctionDef) -> bool:
    """Returns True if a function makes a Keras model and returns something."""
    scope = source.names.scopes[node]
    kinds = (source.names.resolve(one.func, scope) or "" for one in ast.walk(node) if isinstance(one, ast.Call))
    returns = any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(node))
    return returns and any(
        kind.endswith(("keras.Sequential", "keras.Model", "keras.models.Sequential", "keras.models.Model")) for kind in kinds
    )


def _is_over_batches(loop: ast.AST) -> bool:
    head = [loop.target, loop.iter] if isinstance(loop, (ast.For, ast.AsyncFor)) else [getattr(loop, "test", loop)]
    names = [getattr(node, "id", None) or getattr(node, "attr", None) for part in head for node in ast.walk(part)]
    return any(isinstance(name, str) and _BATCHES.search(name) for name in names)


def _class_around(place: Place) -> str:
    scope = place.scope
    while scope.parent is not None and not isinstance(scope.node, ast.ClassDef):
        scope = scope.parent
    return scope.node.name if isinstance(scope.node, ast.ClassDef) else ""


def _is_hdf5(node: ast.Call) -> bool:
    keywords = {keyword.arg: _constant(keyword.value) for keyword in node.keywords}
    path = next((_tail(argument) for argument in node.args[:1]), keywords.get("filepath"))
    return keywords.get("save_format") == "h5" or (isinstance(path, str) and path.endswith((".h5", ".hdf5", ".keras.h5")))


def _tail(node: ast.expr) -> object:
    """Returns the last constant of a path, also of ``os.path.join(folder, "model.h5")`` and ``folder + "/model.h5"``."""
    constants = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return constants[-1] if constants else None
