"""Converts a script that trains by an Estimator into one that trains by Keras."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import re
import types
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set

import libcst as cst

from estimator_bridge.compat.source.fixers.estimators import (
    CONVERTED,
    ELSEWHERE,
    ESTIMATORS,
    FIELDS,
    KEPT_FIELDS,
    UNCHANGED,
    EstimatorCalls,
    needed_functions,
)
from estimator_bridge.compat.source.fixers.graph_functions import SLIM, UPDATES, in_graphs
from estimator_bridge.compat.source.fixers.hooks import HOOK, as_callback, plain_hooks
from estimator_bridge.compat.source.fixers.imports import comments_around, with_imports
from estimator_bridge.compat.source.fixers.inputs import (
    BATCH,
    Iteration,
    batch_function,
    dataset_behind,
    find_iteration,
    makes_iterator,
)
from estimator_bridge.compat.source.fixers.keras_objects import with_old_defaults
from estimator_bridge.compat.source.fixers.marks import PREFIX, Change, Marking, Outcome, UnconvertibleError
from estimator_bridge.compat.source.fixers.model.classes import (
    GRAPH,
    KEPT_METRICS,
    LOADER,
    SHIM,
    class_name,
    lost_comments,
    write_class,
)
from estimator_bridge.compat.source.fixers.model.flow import MODES, Statement, chooses, mode_name, reads_and_writes
from estimator_bridge.compat.source.fixers.model.function.analysis import take_apart
from estimator_bridge.compat.source.fixers.model.function.definitions import Definitions
from estimator_bridge.compat.source.fixers.model.function.parts import ModelFunction, Way
from estimator_bridge.compat.source.fixers.model.function.whole_function import (
    BASE,
    BASES,
    GRAPH_LOADER,
    LOADS,
    NEEDS_SLIM,
    OUTPUT,
    OWN_SPEC,
    WITH_HOOKS,
    WholeFunction,
    class_around,
    hooks_that_run,
    keep_whole,
    own_spec,
)
from estimator_bridge.compat.source.fixers.model.layers import (
    FUSED_NORMS,
    LAYER_OF_NETWORK,
    NAME_SCOPE,
    OF_NETWORK,
    OWN_FUNCTIONS,
    frozen,
    in_network,
    is_contrib,
    is_layer_of_keras,
    of_core,
    of_network,
)
from estimator_bridge.compat.source.fixers.model.optimizers import KERNELS
from estimator_bridge.compat.source.fixers.normal.arg_scopes import ARG_SCOPES
from estimator_bridge.compat.source.fixers.normal.inner_imports import with_imports_above
from estimator_bridge.compat.source.fixers.normal.normal_form import OF_SUPPORT, in_normal_form
from estimator_bridge.compat.source.fixers.normal.tpu import TOWERS, choices_for_tpu, host_calls, without_tpu
from estimator_bridge.compat.source.fixers.script import (
    LOGGERS,
    SPEC,
    TPU,
    Script,
    arguments,
    code,
    forget_nodes,
    makes,
    nodes,
    parsed,
    simple_name,
)
from estimator_bridge.compat.source.fixers.surface import is_respelled, numpy_spelled, spelled
from estimator_bridge.compat.source.objects import Unfolded, unfolded
from estimator_bridge.compat.source.removed_names.numpy import REMOVED
from estimator_bridge.compat.source.removed_names.python import with_abstract_classes

_OUTSIDE = "it makes variables outside of a model; make a layer or a variable in __init__ of a tf_keras.Model"
_WITH_MODEL = "it is converted with the model function that calls it, which stays; the mark of that says why"
_OF_SPECS = ("tensorflow.estimator.export.", *(f"tensorflow.contrib.{name}" for name in UPDATES))
"""What an EstimatorSpec is given, and what is converted with it."""
_NO_PLACEHOLDERS = "there are no placeholders; take an argument of a function"
_QUEUES = (
    *(f"train.{name}" for name in (
        "batch", "batch_join", "maybe_batch", "maybe_batch_join", "shuffle_batch", "shuffle_batch_join", "maybe_shuffle_batch", "maybe_shuffle_batch_join", "input_producer", "range_input_producer", "slice_input_producer",
        "string_input_producer", "limit_epochs", "start_queue_runners", "queue_runner", "QueueRunner", "add_queue_runner",
    )),
    *(f"{kind}Reader" for kind in ("TextLine", "TFRecord", "WholeFile", "FixedLengthRecord", "Identity")),
    *(f"{kind}Queue" for kind in ("FIFO", "PaddingFIFO", "Priority", "RandomShuffle")),
)  # fmt: skip
_STAYS: dict[str, str] = {
    **dict.fromkeys(ARG_SCOPES, "the layers in it do not have its arguments any more; write them in each call"),
    "tensorflow.contrib.": "tf.contrib is not converted; use a core function, or a maintained package",
    TPU: "there is no fixer for TPUs; take it away, or see tf.distribute.TPUStrategy",
    "tensorflow.estimator.": "there is no fixer for it; see the how-to guide on finishing by hand",
    "tensorflow.train.SessionRunHook": "there are no sessions; write a callback of tf_keras",
    "tensorflow.keras.estimator.": "there is no fixer for it; see the how-to guide on finishing by hand",
    "tensorflow.layers.": _OUTSIDE,
    "tensorflow.get_variable": _OUTSIDE,
    **dict.fromkeys(
        ("tensorflow.Session", "tensorflow.InteractiveSession"), "there are no sessions; call the function on values"
    ),
    "tensorflow.train.MonitoredTrainingSession": "there are no sessions; train by fit",
    "tensorflow.train.Server": "Keras starts no servers; make the model under a tf.distribute strategy, whose tasks TF_CONFIG names",
    "tensorflow.train.replica_device_setter": "a strategy places the variables; make the model under tf.distribute.ParameterServerStrategy",
    "tensorflow.placeholder": _NO_PLACEHOLDERS,
    "tensorflow.placeholder_with_default": _NO_PLACEHOLDERS,
    "tensorflow.get_default_graph": "there is no graph to ask; use the model's own variables",
    **{f"tensorflow.{name}": "there are no queues outside of a graph; read by tf.data" for name in _QUEUES},
}
_PATHS = ("sys.path.append", "sys.path.insert", "sys.path.extend")
_NOT_COPIED = rf"\b({GRAPH}|{'|'.join(BASES)}|load_initial_values|clipnorm|clipvalue|global_clipnorm|clip_gradients_by_norm)\b|{re.escape(SHIM)}"
"""What only a class has that cannot train as a copy under a strategy. Keras clips the sum of gradients, Estimators clip those of each device."""
_CORE = re.compile(r"^(\s*from\s+|\s*import\s+(?=\w+ as ))tensorflow_core\b", re.MULTILINE)
"""Imports of the package in which TensorFlow 1.15 kept its files."""
_SWITCHES = ("tensorflow.disable_v2_behavior", "tensorflow.disable_eager_execution", "tensorflow.enable_eager_execution")
_POLICY = 'tf_keras.mixed_precision.set_global_policy("_infer")  # layers take the type of their inputs, as in TensorFlow 1'
_GONE = cst.Expr(cst.Ellipsis())  # stands for a statement that is taken away
_HEADER = 'os.environ["TF_USE_LEGACY_KERAS"] = "1"  # tf.compat.v1.layers need Keras 2'


def _is_in(name: str, place: str) -> bool:
    """Returns True if a dotted name is a place, or is in it."""
    return name == place or name.startswith(place if place.endswith(".") else f"{place}.")


@dataclasses.dataclass(frozen=True)
class Conversion:
    """A converted script.

    Attributes:
        text: The new script.
        changes: Outcome for each construct, in the order of the old script's lines.
        models: Class for each model function that was converted, by the function's name; empty for a function that returns one.
        makers: Functions that return an Estimator, which is a model now.
    """

    text: str
    changes: tuple[Change, ...]
    models: Mapping[str, str] = dataclasses.field(default_factory=dict)
    makers: frozenset[str] = frozenset()

    @property
    def complete(self) -> bool:
        """True if no line needs a human."""
        return not self.marks

    @property
    def marks(self) -> int:
        """Number of lines that need a human."""
        return sum(change.outcome is Outcome.HUMAN for change in self.changes)

    def in_lines(self, lines: Sequence[int]) -> Conversion:
        """Returns the conversion with other numbers of lines.

        Args:
            lines: Line of the file for each line of the text that was converted.
        """
        last = len(lines)
        changes = (dataclasses.replace(one, line=lines[min(one.line, last) - 1]) for one in self.changes)
        return dataclasses.replace(self, changes=tuple(sorted(changes)))


class _Body(enum.Enum):
    """Form that the bodies of the model functions take, if it is possible; each allows those before it, too."""

    LAYERS = enum.auto()
    SHIM = enum.auto()
    WHOLE = enum.auto()


def convert(
    text: str,
    elsewhere: Mapping[str, str] = types.MappingProxyType({}),
    shim: bool = False,
    makers: Collection[str] = (),
    may_make_layers: Callable[..., bool] | None = None,
    imported: Collection[str] = (),
    has_scopes: bool = False,
) -> Conversion:
    """Converts a script; nothing of it is executed.

    Args:
        text: Source of the script or of a module that it imports, in Python 3.
        elsewhere: Class for each model function of other modules that were converted, e.g. ``Model`` for ``package.models.model_fn``;
            empty for a function that returns one.
        shim: A network whose layers ``__init__`` cannot make is kept below TensorFlow's own ``track_tf1_style_variables``, or its model
            function stays whole. Of the forms that a script can take, the one with the fewest marks is chosen.
        makers: Functions of other modules that return an Estimator, by their dotted names.
        may_make_layers: Function that returns True for a dotted name of another module that may make layers; None if no module is known.
        imported: Functions of the script that other modules import, which stay in it.
        has_scopes: A module of the program has scopes that give layers their arguments, also to those of other modules.

    Returns:
        The new script; the text itself if it uses nothing of TensorFlow. What no fixer knows stays as it is, below a comment that says why and what to do.

    Raises:
        libcst.ParserSyntaxError: The text is not Python 3.
    """
    if _HEADER in text:
        return Conversion(text, tuple(_marked(text)))
    text = with_abstract_classes(_CORE.sub(r"\1tensorflow", text))
    words = set(re.findall(r"\w+", text))
    if not words & {"tensorflow", "tf"} and not words & {name.rpartition(".")[2] for name in (*makers, *elsewhere)}:
        return Conversion(_parsable(text), ())
    above, lines = with_imports_above(text)
    convert_with = functools.partial(
        _of_one_body,
        above,
        elsewhere,
        makers=makers,
        may_make_layers=may_make_layers,
        imported=imported,
        has_scopes=has_scopes or "arg_scope" in text,
        may_keep=shim,
    )
    found = convert_with(_Body.LAYERS)
    for body in (_Body.SHIM, _Body.WHOLE) if shim else ():
        if not found.complete and (body is not _Body.WHOLE or found.models):
            kept = convert_with(body)
            is_better = (len(kept.models), -kept.marks) > (len(found.models), -found.marks)
            found = kept if is_better or not found.models else found
    return found.in_lines(lines) if above != text else found


def _of_one_body(
    text: str,
    elsewhere: Mapping[str, str],
    body: _Body,
    makers: Collection[str],
    may_make_layers: Callable[..., bool] | None,
    imported: Collection[str],
    has_scopes: bool,
    may_keep: bool,
) -> Conversion:
    """Returns the conversion with one form of a model's body, with objects of the script as functions where that is possible."""
    plain = unfolded(text, imported) if "class " in text and "EstimatorSpec" in text else None
    if plain is not None and plain.text != text:
        found = _converted(plain.text, elsewhere, body, makers, may_make_layers, imported, has_scopes, may_keep, plain)
        other = (
            found
            if found.complete
            else _converted(text, elsewhere, body, makers, may_make_layers, imported, has_scopes, may_keep)
        )
        is_better = not found.models or (bool(other.models) and other.marks < found.marks)
        message = "left out: nothing calls this method of an object whose methods are in the class of the model now"
        gone = (Change(line, name, Outcome.APPROXIMATE, message) for line, name in plain.left_out)
        whole = found.in_lines(plain.lines)
        if is_better:
            return _with_reason(other, found, text) if not found.models else other
        return dataclasses.replace(whole, changes=tuple(sorted({*whole.changes, *gone})))
    return _converted(text, elsewhere, body, makers, may_make_layers, imported, has_scopes, may_keep)


def _with_reason(kept: Conversion, other: Conversion, text: str) -> Conversion:
    """Returns a conversion in which the mark of a class says why its methods are not part of a model function, either.

    Args:
        kept: Conversion of the script as it is.
        other: Conversion of the script whose objects are functions.
        text: Source of the script.
    """
    classes = set(re.findall(r"^class (\w+)", text, re.MULTILINE))
    known = {(one.name, one.message) for one in kept.changes}
    reasons = [one for one in other.changes if one.outcome is Outcome.HUMAN and (one.name, one.message) not in known]
    stays = next((one for one in kept.changes if one.outcome is Outcome.HUMAN and one.name in classes), None)
    if stays is None or not reasons or kept.models:
        return kept
    reason = f"{reasons[0].name}: {reasons[0].message}"
    message = f"{stays.message}; with its methods as functions, what stops the model function is {reason}"
    said = dataclasses.replace(stays, message=message)
    changes = tuple(said if one is stays else one for one in kept.changes)
    return dataclasses.replace(kept, text=kept.text.replace(stays.comment, said.comment), changes=changes)


def _parsable(text: str) -> str:
    cst.parse_module(text)
    return text


def _left_out_for_tpu(script: Script, for_others: str) -> Iterator[Change]:
    """Yields what the source without TPUs and towers does not have."""
    message = "left out: the new script trains on one device, unless its model is made below the scope of tf.distribute.MirroredStrategy"
    for node in nodes(script.module, cst.Call):
        if script.called(node) in TOWERS:
            yield Change(script.line(node), script.called(node).replace("tensorflow", "tf", 1), Outcome.APPROXIMATE, message)
    text = script.module.code
    lines, others = text.split("\n"), for_others.split("\n")
    message = "left out: the branch for TPUs; what else it has, the new script does not"
    for one in choices_for_tpu(text):
        if others[one - 1] != lines[one - 1]:
            yield Change(one, lines[one - 1].strip(), Outcome.APPROXIMATE, message)
    message = "left out: only the host of a TPU calls it; fit writes losses and metrics"
    for function in host_calls(text):
        yield Change(function.lineno, function.name, Outcome.APPROXIMATE, message)


def _converted(
    text: str,
    elsewhere: Mapping[str, str],
    body: _Body,
    makers: Collection[str],
    may_make_layers: Callable[..., bool] | None,
    imported: Collection[str],
    has_scopes: bool,
    may_keep: bool,
    plain: Unfolded | None = None,
) -> Conversion:
    """Returns the conversion of a script whose objects are functions."""
    make = functools.partial(
        Script,
        may_make_layers=may_make_layers,
        methods=plain.functions if plain is not None else frozenset(),
        attributes=plain.variables if plain is not None else frozenset(),
    )
    script = make(text)
    uses = any(name.startswith("tensorflow.") or name.lstrip(".") in {*makers, *elsewhere} for name in script.imported())
    if not uses and not re.search(r"^\s*(from|import) tensorflow\.", text, re.MULTILINE):
        return Conversion(text, ())
    normal = in_normal_form(script, body is not _Body.LAYERS, imported)
    script = make(normal) if normal != text else script  # names are looked up once if nothing has changed
    changes: list[Change] = []
    if any(name.startswith((TPU, *TOWERS)) for name in script.imported()):
        for_others = without_tpu(script)
        changes += _left_out_for_tpu(script, for_others)
        script = make(for_others)
    message = "modules that are only found there are not converted with the script; convert the folder that holds both"
    changes += (
        Change(script.line(node), code(node), Outcome.APPROXIMATE, message)
        for node in nodes(script.module, cst.Call)
        if script.called(node) in _PATHS
    )
    whole: dict[str, WholeFunction] = {}
    classes, inside, shimmed, norms = _model_classes(script, changes, body, whole)
    hooks = hooks_that_run(script) if whole and classes.keys() <= whole.keys() else frozenset[str]()
    made = {simple_name(one.func) for one in nodes(script.module, cst.Call) if isinstance(one, cst.Call)}
    sees_steps = bool((hooks - plain_hooks(script)) & made) or any(one.base is WITH_HOOKS for one in whole.values())
    base = WITH_HOOKS if sees_steps else max((one.base for one in whole.values()), key=BASES.index, default=BASE)
    models = {name: one.name.value for name, one in classes.items()} | dict.fromkeys(whole.keys() - classes.keys(), base)
    can_be_copied = bool(classes) and not any(re.search(_NOT_COPIED, cst.Module([one]).code) for one in classes.values())
    calls = EstimatorCalls(
        script, {**elsewhere, **models}, makers, can_be_copied, hooks if sees_steps else frozenset(), may_keep
    )
    known = {*classes, *inside, *(name for one in whole.values() for name in one.reached)}
    keeps = bool(whole) or any(SHIM in cst.Module([one]).code for one in classes.values())
    names = [*_model_functions(script)]  # without one, it is a module of what makes the network of another one
    is_kept = body is not _Body.LAYERS and (
        known.issuperset(names) if keeps else not names
    )  # a kept network may look its functions up
    moved = script.module.visit(
        _Calls(
            script,
            calls,
            classes,
            whole,
            _unused(script, inside, classes.keys() - whole.keys()) - {*imported},
            shimmed,
            norms,
            is_kept,
            changes,
            base,
            hooks,
            has_scopes,
        )
    )
    written = moved.code
    calls.used.update(
        name
        for name in (
            KERNELS,
            GRAPH,
            KEPT_METRICS,
            LOADER,
            FUSED_NORMS[0],
            OF_NETWORK,
            LAYER_OF_NETWORK,
            NAME_SCOPE,
            *BASES,
            GRAPH_LOADER,
            OWN_SPEC,
            *OWN_FUNCTIONS.values(),
            *OF_SUPPORT,
        )
        if re.search(rf"\b{name}([(,)]|$)", written, re.MULTILINE)
    )
    if re.search(r"(?<!import )\btf_slim\.", written) and not re.search(r"^(import|from) tf_slim", text, re.MULTILINE):
        calls.used.add(SLIM)
        changes += [] if any(one.slim for one in whole.values()) else [Change(1, "tf_slim", Outcome.APPROXIMATE, NEEDS_SLIM)]
    calls.used.update([BASE] if calls.used.intersection(BASES) else [])
    if calls.used and any(name.lstrip(".") in {*elsewhere, *makers} for name in script.imported()):
        calls.used.add(ELSEWHERE)
    if ELSEWHERE in calls.used or SHIM in written or BASE in calls.used:
        calls.used.add(UNCHANGED)
    changes += (Change(script.line(node), name, Outcome.APPROXIMATE, f"left out: {why}") for node, name, why in calls.left_out)
    renamed = Script(written)
    module = with_imports(renamed, renamed.module.visit(_Names(renamed)), script, elsewhere, calls.used, changes, imported)
    finished = _with_header(module, calls, bool(classes))
    forget_nodes()
    found = {**models, **dict.fromkeys(calls.factories, "")}
    return Conversion(finished.code, tuple(sorted(set(changes))), found, frozenset(calls.makers))


def _marked(text: str) -> Iterator[Change]:
    """Yields what the marks in a script that was converted before say."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(PREFIX):
            name, _, message = line.lstrip().removeprefix(PREFIX).partition(" stays: ")
            yield Change(number, name, Outcome.HUMAN, message)


def _unused(script: Script, inside: set[str], classes: Set[str]) -> set[str]:
    """Returns the functions whose bodies are in classes now, and that nothing else calls."""
    functions = _functions(script)
    rest = script.module.visit(_Without({functions[name] for name in (inside | classes) & functions.keys()}))
    return inside - {name for one in rest.body for name in reads_and_writes(one)[0]}


class _Without(cst.CSTTransformer):
    """Takes functions away, those inside of others, too."""

    def __init__(self, gone: Set[cst.FunctionDef]) -> None:
        super().__init__()
        self._gone = gone

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return node not in self._gone

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef | cst.RemovalSentinel:
        return cst.RemoveFromParent() if original_node in self._gone else updated_node


def _model_classes(
    script: Script, changes: list[Change], body: _Body, whole: dict[str, WholeFunction]
) -> tuple[dict[str, cst.ClassDef], set[str], dict[str, bool], set[cst.CSTNode]]:
    """Returns the class of each model function that can be converted, functions that classes contain, those that stay, and frozen norms.

    A function that stays is True in the dict if the network calls it, and False if the updates or metrics do. Model functions that stay whole are
    added to ``whole``.
    """
    functions = _functions(script)
    found: dict[str, cst.ClassDef] = {}
    inside: set[str] = set()
    shimmed: dict[str, bool] = {}
    norms: set[cst.CSTNode] = set()
    every: list[ModelFunction] = []
    aliases = [one for one in nodes(script.module, cst.ImportAlias) if isinstance(one, cst.ImportAlias)]
    taken = {name for one in script.module.body for name in reads_and_writes(one)[1]}
    taken |= {one.evaluated_alias or one.evaluated_name for one in aliases}
    asked = {simple_name((arguments(one, ("model_fn",)) or _first(one)).get("model_fn")) for one in _estimators(script)}
    for name in filter(functions.__contains__, _model_functions(script)):
        if name not in asked and (name in inside or any(name in one.reached for one in whole.values())):
            continue  # another one contains its body, or calls it
        made = _parts_and_class_or_whole(script, functions[name], body)
        if not isinstance(made, tuple):
            kept = made
            if isinstance(kept, UnconvertibleError):
                changes.append(Change(script.line(kept.node), kept.name, Outcome.HUMAN, kept.message))
                continue
            whole[name] = kept
            found[name] = class_around(kept, functions[name], _free(class_name(functions[name].name.value), taken))
            taken.add(found[name].name.value)
            message = f"the class {found[name].name.value}, whose steps are graphs that the function makes"
            changes += [Change(script.line(functions[name]), name, Outcome.CONVERTED, message), *kept.notes]
            continue
        parts, written = made
        if functions[name] in script.module.body:
            written = written.with_changes(name=cst.Name(_free(written.name.value, taken)))
            taken.add(written.name.value)
        found[name] = _with_comments([*(functions[one] for one in parts.inlined), functions[name]], written)
        inside.update(parts.inlined)
        shimmed |= dict.fromkeys(parts.shimmed or (), True) | dict.fromkeys(parts.updating, False)
        norms |= parts.frozen
        every.append(parts)
        line = script.line(functions[name])
        changes.append(Change(line, name, Outcome.CONVERTED, f"the class {written.name.value}"))
        changes += parts.notes
    for owner, method in _model_methods(script) if body is not _Body.LAYERS else ():
        with contextlib.suppress(UnconvertibleError):  # else the class gets a mark
            name = f"{owner.name.value}.{method.name.value}"
            whole[name] = keep_whole(script, method, owner)
            changes += [Change(script.line(method), name, Outcome.CONVERTED, f"what {BASE} calls"), *whole[name].notes]
    own = {one.name.value: one for one in script.module.body if isinstance(one, cst.FunctionDef | cst.ClassDef)}
    for parts in every:
        calls = (one for name in parts.shimmed or () if name in own for one in nodes(own[name], cst.Call))
        for call in norms.intersection(calls) - parts.frozen:
            message = "one model function updates its averages, and another one does not; write two functions"
            changes.append(Change(script.line(call), "batch normalization", Outcome.HUMAN, message))
    return found, inside, shimmed, norms


def _free(name: str, taken: Set[str]) -> str:
    """Returns a name for a class that the script has not."""
    while name in taken:
        name = f"Keras{name}"
    return name


def _functions(script: Script) -> dict[str, cst.FunctionDef]:
    """Returns the functions of a script by name; those inside of others with their names if several have one name, and no methods."""
    classes = [one for one in nodes(script.module, cst.ClassDef) if isinstance(one, cst.ClassDef)]
    methods = {part for one in classes for part in one.body.body if isinstance(part, cst.FunctionDef)}
    every = [one for one in nodes(script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef)]
    counts = Counter(one.name.value for one in every)
    inner = {one: {*nodes(one, cst.FunctionDef)} - {one} for one in every}
    found: dict[str, cst.FunctionDef] = {}
    for one in every:
        around = [other.name.value for other in every if one in inner[other]]
        is_plain = counts[one.name.value] == 1 or one in script.module.body
        if one not in methods:
            found[one.name.value if is_plain else _name_inside([*around, one.name.value])] = one
    return found


def _name_inside(names: Sequence[str]) -> str:
    """Returns the name of a function inside of others whose own name is not the only one."""
    return ".".join(names)


def _parts_and_class_or_whole(
    script: Script, function: cst.FunctionDef, body: _Body
) -> tuple[ModelFunction, cst.ClassDef] | WholeFunction | UnconvertibleError:
    """Returns the parts of a model function and its class, or the function if it can stay whole; else why neither is possible."""
    if body is _Body.WHOLE:
        with contextlib.suppress(UnconvertibleError):
            return keep_whole(script, function, _class_around(script, function))
    try:
        return _parts_and_class(script, function, body is not _Body.LAYERS)
    except UnconvertibleError as reason:
        return reason if body is _Body.LAYERS else _whole(script, function, reason)


def _parts_and_class(script: Script, function: cst.FunctionDef, shim: bool) -> tuple[ModelFunction, cst.ClassDef]:
    """Returns the parts of a model function, and its class: with layers that ``__init__`` makes and an optimizer of Keras, if possible."""
    plain = [Way(body, updates) for body in ([False, True] if shim else [False]) for updates in (False, True)]
    anew = [dataclasses.replace(one, predicts_anew=True) for one in plain if one.shim]
    choosing = [dataclasses.replace(one, keeps_choices=True) for one in plain if any(map(chooses, nodes(function, cst.If)))]
    for way in (*plain, *(dataclasses.replace(one, reads_labels=True) for one in plain), *anew, *choosing):
        with contextlib.suppress(UnconvertibleError):
            return _one_way(script, function, way)
    return _one_way(script, function, plain[-1])


def _one_way(script: Script, function: cst.FunctionDef, way: Way) -> tuple[ModelFunction, cst.ClassDef]:
    parts = take_apart(script, function, way)
    return parts, write_class(script, parts)


def _whole(script: Script, function: cst.FunctionDef, reason: UnconvertibleError) -> WholeFunction | UnconvertibleError:
    """Returns a model function that can stay whole; else why it cannot, or why it cannot be taken apart if its objects are functions here."""
    try:
        return keep_whole(script, function, _class_around(script, function))
    except UnconvertibleError as other:
        return reason if script.methods else other


def _class_around(script: Script, function: cst.FunctionDef) -> cst.ClassDef | None:
    """Returns the class in one of whose methods a function stands."""
    classes = [one for one in script.module.body if isinstance(one, cst.ClassDef)]
    return next((one for one in classes if any(each is function for each in nodes(one, cst.FunctionDef))), None)


def _model_methods(script: Script) -> Iterator[tuple[cst.ClassDef, cst.FunctionDef]]:
    """Yields the methods of the script's classes that return an EstimatorSpec for a mode, without those that another one calls."""
    for owner in (one for one in script.module.body if isinstance(one, cst.ClassDef) and makes(script, one, SPEC)):
        methods = [one for one in owner.body.body if isinstance(one, cst.FunctionDef)]
        called = {one: {code(each.func).removeprefix("self.") for each in _calls(one)} for one in methods}
        with_spec = {one.name.value for one in methods if makes(script, one, SPEC)}
        for _ in methods:
            with_spec |= {one.name.value for one in methods if called[one] & with_spec}
        for one in methods:
            names = [each.name.value for each in one.params.params]
            is_called = any(one.name.value in called[other] for other in methods if other.name.value in with_spec)
            if one.name.value in with_spec and names[:1] == ["self"] and "mode" in names[2:] and not is_called:
                yield owner, one


def _model_functions(script: Script) -> Iterator[str]:
    """Yields the names of functions that Estimators take, and of those that make an EstimatorSpec from features and a mode."""
    found: dict[str, None] = {}
    for node in _estimators(script):
        found[simple_name((arguments(node, ("model_fn",)) or _first(node)).get("model_fn"))] = None
    functions = _functions(script)
    with_spec = {name for name, one in functions.items() if makes(script, one, SPEC)}
    classes = {one.name.value for one in script.module.body if isinstance(one, cst.ClassDef) and makes(script, one, SPEC)}
    makers = with_spec | classes
    calling = {name for name, one in functions.items() if makers & {simple_name(each.func) for each in _calls(one)}}
    for name in sorted(calling | with_spec, key=lambda name: name not in calling):  # one may contain the body of another
        names = [parameter.name.value for parameter in functions[name].params.params]
        if names and ("features" in names or names[0].startswith("feature")) and "mode" in names:
            found[name] = None
    yield from found


def _calls(node: cst.CSTNode) -> list[cst.Call]:
    return [one for one in nodes(node, cst.Call) if isinstance(one, cst.Call)]


def _estimators(script: Script) -> Iterator[cst.Call]:
    """Yields the calls that make an Estimator of a model function."""
    yield from (one for one in nodes(script.module, cst.Call) if isinstance(one, cst.Call) and script.called(one) in ESTIMATORS)


def _first(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """Returns the model function of a call whose other arguments are not of interest."""
    named = {argument.keyword.value: argument.value for argument in call.args if argument.keyword is not None}
    return {"model_fn": call.args[0].value, **named} if call.args and call.args[0].keyword is None else named


def _with_comments(old: Sequence[cst.FunctionDef], new: cst.ClassDef) -> cst.ClassDef:
    """Returns a class above which the comments of its functions stand that were at statements it does not contain."""
    lost = lost_comments(old, new)
    lines = [line for line in old[-1].leading_lines if line.comment is None]
    return new.with_changes(leading_lines=[*lines, *(cst.EmptyLine(comment=cst.Comment(comment)) for comment in lost)])


class _Calls(Marking):
    """Replaces model functions, input functions and the calls of Estimators."""

    def __init__(
        self,
        script: Script,
        calls: EstimatorCalls,
        classes: dict[str, cst.ClassDef],
        whole: dict[str, WholeFunction],
        unused: set[str],
        shimmed: dict[str, bool],
        norms: set[cst.CSTNode],
        is_kept: bool,
        changes: list[Change],
        base: str,
        hooks: frozenset[str],
        has_scopes: bool,
    ) -> None:
        super().__init__()
        self._is_kept = is_kept
        self._script = script
        self._calls = calls
        self._classes = classes
        self._whole = whole
        self._base = base
        self._is_module = is_kept and not whole and not classes
        self._has_scopes = has_scopes
        own_hooks = [one for one in script.module.body if isinstance(one, cst.ClassDef) and one.name.value in hooks]
        self._of_graphs = {*own_hooks, *(each for one in whole.values() for each in one.own)}
        self._with_slim = any(one.slim for one in whole.values())
        self._unused = unused
        self._shimmed = shimmed
        self._norms = norms
        self._changes = changes
        self._human = {change.line: change for change in changes if change.outcome is Outcome.HUMAN}
        self._called: dict[cst.CSTNode, cst.Call] = {}
        self._functions: list[str] = []
        self._around: list[cst.CSTNode] = []  # functions and classes around the node
        self._within: list[cst.Call] = []  # layers of Keras around the node
        lambdas = [one for each in _estimators(script) for one in nodes(each, cst.Lambda)]
        self._binding = {one for each in lambdas for one in nodes(each, cst.Call)}
        self._names: dict[cst.CSTNode, str] = {node: name for name, node in _functions(script).items()}
        self._with_specs = {
            one.name.value
            for one in script.module.body
            if isinstance(one, cst.FunctionDef | cst.ClassDef) and makes(script, one, SPEC)
        } - {owner.name.value for owner, method in _model_methods(script) if method in self._of_graphs}
        receiver = "tensorflow.estimator.export.ServingInputReceiver"
        self._serving = {
            one.name.value for one in script.module.body if isinstance(one, cst.FunctionDef) and makes(script, one, receiver)
        }
        raw = "tensorflow.estimator.export.build_raw_serving_input_receiver_fn"
        self._serving_raw = {
            one.name.value for one in script.module.body if isinstance(one, cst.FunctionDef) and makes(script, one, raw)
        }
        assigned = [one for one in nodes(script.module, cst.Assign) if isinstance(one, cst.Assign)]
        self._classes_of_modes = {one.value for one in assigned if script.name(one.value) == _IN_MODEL_FUNCTIONS[1]}
        self._explained = set(_model_functions(script)) - classes.keys()  # functions that stay, and say why
        staying = [one for one in script.module.body if isinstance(one, cst.FunctionDef) and one.name.value in self._explained]
        self._of_staying = {name for one in staying for name in Definitions(script, one).reached([one])[1]}

    @property
    def _in_shim(self) -> bool:
        """True inside of a function whose layers are made below ``track_tf1_style_variables``."""
        return self._in_graph or (bool(self._functions) and (self._is_kept or self._functions[0] in self._shimmed))

    @property
    def _in_graph(self) -> bool:
        """True inside of a model function that stays whole, and of what it calls."""
        return any(one in self._of_graphs for one in self._around)

    def _of_graph(self, node: cst.CSTNode) -> str:
        """Returns the new name of a function of contrib inside of a model function that stays whole; empty for what the core has, too."""
        name = in_graphs(self._script.name(node)) if self._in_graph or self._is_module else ""
        return name if self._with_slim or self._is_module or not name.startswith("tf_slim.") else ""

    def _class_of(self, name: str) -> cst.ClassDef | None:
        """Returns the class of the function that a name means where the traversal is."""
        inside = _name_inside([*self._functions, name])
        return self._classes.get(inside if inside in self._names.values() else name)

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Begins a node; marks a block that kept a model function from being converted."""
        visits = super().on_visit(node)
        if node in self._of_graphs and isinstance(node, cst.BaseExpression):
            self._around.append(node)
        if isinstance(node, cst.With | cst.For | cst.While | cst.If | cst.Try):
            self._mark_reason(node)
        return visits

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        """Ends a node."""
        left = super().on_leave(original_node, updated_node)
        if self._around and self._around[-1] is original_node:
            self._around.pop()
        return left

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        has_class = self._names.get(node, "") in self._classes.keys() - self._whole.keys()
        self._functions.append(node.name.value)
        self._around.append(node)
        last = self._script.line(node) + code(node).strip().count("\n")
        if any(self._script.line(node) <= line <= last for line in self._human):
            self._explained.add(node.name.value)
        return not has_class and node.name.value not in self._unused

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._functions.append(node.name.value)
        self._around.append(node)

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self._functions.pop()
        self._around.pop()
        name = original_node.name.value
        if name not in self._calls.hooks:
            return updated_node
        self._changes.append(Change(self._script.line(original_node), name, Outcome.CONVERTED, "a callback"))
        return as_callback(updated_node)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(value=self._as_class(original_node.value, updated_node.value))

    def leave_DictElement(self, original_node: cst.DictElement, updated_node: cst.DictElement) -> cst.DictElement:
        return updated_node.with_changes(value=self._as_class(original_node.value, updated_node.value))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        return updated_node.with_changes(value=self._as_class(original_node.value, updated_node.value))

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.IfExp:
        branches = (self._as_class(getattr(original_node, one), getattr(updated_node, one)) for one in ("body", "orelse"))
        return updated_node.with_changes(**dict(zip(("body", "orelse"), branches, strict=True)))

    def _as_class(self, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """Returns a class in the place of the name of its model function; other values as they are."""
        written = self._calls.class_named(old)
        return parsed(written) if written else new

    def visit_Call(self, node: cst.Call) -> None:
        self._called[node.func] = node
        self._within += [node] if is_layer_of_keras(self._script.called(node)) else []

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.BaseStatement | cst.RemovalSentinel:
        self._functions.pop()
        self._around.pop()
        name = self._names.get(original_node, "")
        written = self._classes.get(name)
        if name in self._whole:
            around = class_around(self._whole[name], updated_node, self._classes[name].name.value, self._base)
            lost = [cst.EmptyLine(comment=cst.Comment(one)) for one in lost_comments([updated_node], around)]
            return around.with_changes(leading_lines=[*around.leading_lines, *lost])
        if written is not None:
            return written
        if original_node.name.value in self._unused:
            message = "its body is in the class that used it"
            self._changes.append(Change(self._script.line(original_node), original_node.name.value, Outcome.CONVERTED, message))
            return cst.RemoveFromParent()
        self._mark_reason(original_node)
        found = find_iteration(self._script, original_node) if makes_iterator(original_node) else None
        if found is None:
            if makes_iterator(original_node):
                self._stays(
                    original_node,
                    original_node.name.value,
                    "it makes an iterator; return the dataset, and move what follows into map",
                )
            return updated_node
        self._changes.append(
            Change(self._script.line(original_node), original_node.name.value, Outcome.CONVERTED, "returns the dataset")
        )
        return updated_node.with_changes(body=self._with_dataset(original_node.body, found))

    def _with_dataset(self, body: cst.BaseSuite, found: Iteration) -> cst.BaseSuite:
        """Returns a body that returns a dataset; what followed ``get_next`` is in a function for ``map``."""
        last = self.changed[found.returned]
        assert isinstance(last, cst.SimpleStatementLine)
        returned = last.body[-1]
        assert isinstance(returned, cst.Return)
        text, more = code(found.dataset), []
        if found.is_changed and returned.value is not None:
            later = [self.changed[one] for one in found.later]
            more = [batch_function(found, [one for one in later if isinstance(one, cst.BaseStatement)], returned.value)]
            text += f".map({BATCH})"
        lines = [line for one in body.body for used in found.used if one is used for line in used.leading_lines]
        ended = last.with_changes(body=[*last.body[:-1], cst.Return(parsed(text))], leading_lines=[*lines, *last.leading_lines])
        inside = lost_comments(
            [one for one in body.body if one is found.returned or one in found.used], cst.Module([*more, ended])
        )
        kept = [*ended.leading_lines, *(cst.EmptyLine(comment=cst.Comment(one)) for one in inside)]
        ended = ended.with_changes(leading_lines=kept)
        new: list[cst.CSTNode] = []
        for one in body.body:
            if one is found.returned:
                new += [*more, ended]
            elif one not in found.used and one not in found.later:
                new.append(self.changed[one])
        return body.with_changes(
            body=[one for one in new if not (isinstance(one, cst.SimpleStatementLine) and one.body[0] is _GONE)]
        )

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if original_node in self._within:
            self._within.pop()
        if self._is_sent(original_node):
            return parsed(_spec(updated_node))
        if self._script.called(original_node) == "functools.partial" and original_node.args:
            written = self._class_of(simple_name(original_node.args[0].value))
            first, *others = updated_node.args
            if written is not None:
                return updated_node.with_changes(args=[first.with_changes(value=written.name), *others])
        function = simple_name(original_node.func)
        written = self._class_of(function) if function and original_node not in self._binding else None
        if written is not None:
            message = f"it is the class {written.name.value} now; make a model of it, and call that"
            self._stays(original_node, function, message)
        try:
            if self._script.origin(original_node) in self._norms:
                updated_node = frozen(original_node, updated_node)
            text = self._converted(original_node, updated_node)
        except UnconvertibleError as reason:
            self._stays(original_node, reason.name, reason.message)
            return updated_node
        if text is None:
            return updated_node
        self._changes.append(Change(self._script.line(original_node), code(original_node.func), Outcome.CONVERTED))
        new = parsed(text)
        for comment in lost_comments([updated_node], new):
            self.keep(comment)
        return new

    def _converted(self, old: cst.Call, new: cst.Call) -> str | None:
        """Returns what a call is in the new script; None if it stays."""
        name = self._script.called(old)
        if self._in_graph and name in (SPEC, OUTPUT):
            return code(own_spec(self._script, old, new, self._base) if name == SPEC else new.args[0].value)
        if self._in_graph and name == LOADS:
            return code(new.with_changes(func=cst.Name(GRAPH_LOADER)))
        if self._of_graph(old.func):
            return self._of_module(old, new) if self._is_module else None
        function = self._functions[0] if self._functions else ""
        if self._in_shim and self._shimmed.get(function, False) and self._functions[-1] != "__init__":
            if is_layer_of_keras(name) and not self._within:
                return in_network(self._script, old, new)
            if text := of_network(self._script, old, new):
                return text
        if self._in_graph and isinstance(old.func, cst.Attribute) and old.func.attr.value == "initialized_value":
            return f"{code(cst.ensure_type(new.func, cst.Attribute).value)}.read_value()"  # the variable has a value by then
        if self._in_shim and is_contrib(name):
            return of_core(self._script, old, new)
        text = self._calls.converted(old, new)
        for call, argument, message in self._calls.human:
            self._stays(call, argument, message)
        self._calls.human.clear()
        return text

    def _of_module(self, old: cst.Call, new: cst.Call) -> str | None:
        """Returns the call of the core for one of contrib in a module of layers, unless scopes may give it arguments; None if there is none."""
        if is_contrib(self._script.called(old)) and not self._has_scopes:
            with contextlib.suppress(UnconvertibleError):
                return of_core(self._script, old, new)
        return None

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        written = self._class_of(simple_name(original_node.value))
        return updated_node.with_changes(value=written.name) if written is not None else updated_node

    def leave_Lambda(self, original_node: cst.Lambda, updated_node: cst.Lambda) -> cst.Lambda:
        dataset = dataset_behind(self._script, original_node.body)
        if dataset is None:
            return updated_node
        self._changes.append(Change(self._script.line(original_node), "lambda", Outcome.CONVERTED, "returns the dataset"))
        return updated_node.with_changes(body=dataset)

    def leave_Dict(self, original_node: cst.Dict, updated_node: cst.Dict) -> cst.BaseExpression:
        return parsed(self._calls.updates[original_node]) if original_node in self._calls.updates else updated_node

    def _is_sent(self, call: cst.Call) -> bool:
        """Returns True for a placeholder whose shape and type say what a server sends as features."""
        inside = bool(self._functions) and self._functions[0] in self._serving_raw
        given = arguments(call, _PLACEHOLDER) if self._script.called(call) == _OF_SERVING[0] else None
        return inside and given is not None and "dtype" in given

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = self._script.name(node)
        function = self._functions[0] if self._functions else ""
        if (
            node in self._classes_of_modes
            or self._of_graph(node)
            or (self._in_graph and name.startswith((*_IN_MODEL_FUNCTIONS, _OF_LEARN, *LOGGERS, OUTPUT)))
        ):
            return False
        if name.startswith(_IN_MODEL_FUNCTIONS) or mode_name(name):
            if mode_name(name) and function not in self._with_specs:
                return False
            if function not in self._explained:
                self._explained.add(function)
                self._stays(node, function or name, "no Estimator of this file uses it as a model function; convert it by hand")
        elif not self._in_graph and self._calls.is_config(node.value) and node.attr.value in FIELDS - KEPT_FIELDS:
            self._stays(node, code(node), "the RunConfig is a dict now, without this field; write the value itself")
        elif numpy_spelled(name) == "":
            self._stays(
                node, name, REMOVED[name.removeprefix("numpy.")].note or "NumPy has no such name any more; write what it means"
            )
        elif (
            name.startswith(_PIPELINE)
            or (name in _OF_SERVING and function in self._serving)
            or (name == HOOK and function in self._calls.hooks)
            or (node in self._called and self._is_sent(self._called[node]))
            or name == "tensorflow.GPUOptions"
            or is_respelled(name, self._called.get(node))
        ):
            return False
        elif name not in CONVERTED or node not in self._called:
            found = next((message for stays, message in _STAYS.items() if _is_in(name, stays)), None)
            is_of_models = found is _OUTSIDE or is_contrib(name) or name.startswith(_OF_SPECS)
            explained = is_of_models and (function in self._with_specs or self._in_shim)  # a model function that stays says why
            explained |= self._in_graph and name in ("tensorflow.get_default_graph", HOOK, *_OF_SERVING)
            if found is not None and not explained and name not in ("tensorflow.estimator", "tensorflow.estimator.inputs"):
                behind = _WITH_MODEL if function in self._of_staying else _OUTSIDE
                self._stays(node, name.replace("tensorflow", "tf", 1), behind if is_of_models else found)
        return not name

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        name = self._script.name(original_node)
        if own := self._of_graph(original_node):
            self._calls.used.update(() if own.startswith("tf_slim.") else (own.removesuffix(".__init__"),))
            return parsed(own)
        if original_node in self._classes_of_modes:
            return parsed('type("ModeKeys", (), {"TRAIN": "train", "EVAL": "eval", "PREDICT": "infer"})')
        if not self._in_graph and self._calls.is_config(original_node.value) and original_node.attr.value in KEPT_FIELDS:
            return parsed(f'{code(updated_node.value)}.get("{original_node.attr.value}")')
        if name.startswith(_PIPELINE):
            self._changes.append(
                Change(
                    self._script.line(original_node),
                    code(original_node),
                    Outcome.APPROXIMATE,
                    "left out: the new script uses no TPU",
                )
            )
            return cst.Name("None")
        function = self._functions[0] if self._functions else ""
        mode = mode_name(name)
        if self._in_graph and name in LOGGERS:
            return parsed(name.replace("tensorflow.estimator", "tf.train").replace("tensorflow", "tf"))
        if not mode or (function in self._with_specs and not self._in_graph):
            return updated_node
        self._changes.append(Change(self._script.line(original_node), code(original_node), Outcome.CONVERTED))
        return cst.SimpleString(f'"{MODES[mode]}"')

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        only = original_node.body[0]
        if isinstance(only, cst.Assign) and self._base != WITH_HOOKS and self._calls.only_logs(only.value):
            self._left_out(original_node, "fit shows the loss and the metrics")
            return updated_node.with_changes(body=[_GONE])
        if only in self._calls.merged:
            self._changes.append(
                Change(self._script.line(original_node), code(only), Outcome.CONVERTED, "an argument of configure")
            )
            return updated_node.with_changes(body=[_GONE])
        if isinstance(only, cst.Expr) and self._script.called(only.value) in _SWITCHES:
            self._changes.append(Change(self._script.line(original_node), code(only), Outcome.CONVERTED, "not needed"))
            return updated_node.with_changes(body=[_GONE])
        self._mark_reason(original_node)
        return updated_node

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        statements, lines = _without_gone(updated_node.body)
        statements = statements or [cst.SimpleStatementLine([cst.Pass()])]
        return updated_node.with_changes(body=statements, footer=[*lines, *updated_node.footer])

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        statements, lines = _without_gone(updated_node.body)
        return updated_node.with_changes(body=statements, footer=[*lines, *updated_node.footer])

    def _mark_reason(self, statement: Statement) -> None:
        """Marks a statement of a model function that kept it from being converted."""
        reason = self._human.get(self._script.line(statement))
        if reason is not None:
            self.mark(reason.comment)

    def _left_out(self, statement: cst.SimpleStatementLine, message: str) -> None:
        what = code(statement.with_changes(leading_lines=[])).strip()
        self._changes.append(Change(self._script.line(statement), what, Outcome.APPROXIMATE, f"left out: {message}"))

    def _stays(self, node: cst.CSTNode, name: str, message: str) -> None:
        change = Change(self._script.line(node), name, Outcome.HUMAN, message)
        self._changes.append(change)
        self.mark(change.comment)


_OF_SERVING = ("tensorflow.placeholder", "tensorflow.placeholder_with_default")
"""Functions that a serving input function may call: ``export_saved_model`` calls it in a graph."""
_PLACEHOLDER = ("dtype", "shape", "name")
_PIPELINE = f"{TPU}InputPipelineConfig."
_IN_MODEL_FUNCTIONS = ("tensorflow.estimator.EstimatorSpec", "tensorflow.estimator.ModeKeys")
_OF_LEARN = "tensorflow.contrib.learn.ModeKeys."


def _spec(call: cst.Call) -> str:
    """Returns the TensorSpec of a placeholder."""
    given = {name: code(value) for name, value in (arguments(call, _PLACEHOLDER) or {}).items()}
    values = [given.get("shape", "None"), given["dtype"], *([given["name"]] if "name" in given else [])]
    return f"tf.TensorSpec({', '.join(values)})"


def _without_gone(body: Sequence[cst.BaseStatement]) -> tuple[list[cst.BaseStatement], list[cst.EmptyLine]]:
    """Returns the statements that are left, with the comments of those that went, and the comments behind the last one."""
    kept: list[cst.BaseStatement] = []
    above: list[cst.EmptyLine] = []
    for statement in body:
        assert isinstance(statement, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        if isinstance(statement, cst.SimpleStatementLine) and statement.body[0] is _GONE:
            above += comments_around(statement)
        else:
            kept.append(statement.with_changes(leading_lines=[*above, *statement.leading_lines]) if above else statement)
            above = []
    return kept, above


_REGULARIZERS = {"tensorflow.contrib.layers.l1_regularizer": "", "tensorflow.contrib.layers.l2_regularizer": "0.5 * "}
"""Functions of contrib and the factor for Keras, whose L2 takes the whole sum of squares."""


class _Names(cst.CSTTransformer):
    """Spells the names of TensorFlow as TensorFlow 2 has them."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script
        self._calls: dict[cst.CSTNode, cst.Call] = {}

    def visit_Call(self, node: cst.Call) -> None:
        self._calls[node.func] = node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self._script.called(original_node)
        if name == "tensorflow.test.is_built_with_cuda":  # TensorFlow 1 had another package for CPUs
            return parsed('bool(tf.config.list_physical_devices("GPU"))')
        if name in _REGULARIZERS and is_respelled(name, original_node):
            (scale,) = updated_node.args
            value = parsed(f"{_REGULARIZERS[name]}({code(scale.value)})") if _REGULARIZERS[name] else scale.value
            return updated_node.with_changes(args=[cst.Arg(value)])
        return with_old_defaults(name, updated_node)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return not self._script.name(node).startswith("tensorflow.")

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        numpy = numpy_spelled(self._script.name(original_node))
        if numpy:
            return parsed(numpy.replace("numpy", code(original_node.value), 1) if "." in numpy else numpy)
        text = spelled(self._script, original_node, self._calls.get(original_node))
        return updated_node if text is None else parsed(f"tf.{text}")

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def leave_ImportAlias(self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias) -> cst.ImportAlias:
        return updated_node


def _with_header(module: cst.Module, calls: EstimatorCalls, with_model: bool) -> cst.Module:
    """Returns a module that imports what it uses, and contains the functions that it calls."""
    statements = [one for one in module.body if code(one) != "import os\n"]  # the header has it
    first = next((place for place, one in enumerate(statements) if not _is_prologue(one)), len(statements))
    tensorflow = next((place for place, one in enumerate(statements) if _imports(one, "tensorflow")), None)
    if tensorflow is None:
        tensorflow = first
        statements.insert(first, cst.parse_statement("import tensorflow as tf"))
    last = next((place for place, one in enumerate(statements) if place > tensorflow and not _is_import(one)), len(statements))
    for place, one in enumerate(statements):
        if _imports(one, "tensorflow"):
            statements[place] = _as_tf(one)
    functions = [cst.parse_module(f"{text}\n").body[0] for text in needed_functions(calls.used, calls.spelled)]
    spaced = [_spaced(one) for one in functions]
    keras = with_model or bool(spaced)
    new = [
        *statements[:first],
        *(cst.parse_statement(line) for line in ("import os", _HEADER)),
        *statements[first : tensorflow + 1],
        *([cst.parse_statement("import tf_keras")] if keras else []),
        *statements[tensorflow + 1 : last],
        *([cst.parse_statement(_POLICY)] if keras else []),
        *spaced,
        *([_spaced(cst.parse_statement(f"tf_slim = {SLIM}()"))] if SLIM in calls.used else []),
        *(_spaced(one) if spaced and place == 0 else one for place, one in enumerate(statements[last:])),
    ]
    return module.with_changes(body=new)


def _spaced(statement: cst.CSTNode) -> cst.BaseStatement:
    """Returns a statement with two blank lines above it and its comments."""
    assert isinstance(statement, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    above = [line for line in statement.leading_lines if line.comment]
    return statement.with_changes(leading_lines=[cst.EmptyLine(indent=False), cst.EmptyLine(indent=False), *above])


def _is_prologue(statement: cst.CSTNode) -> bool:
    """Returns True for a docstring and for imports from ``__future__``."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    only = statement.body[0]
    if isinstance(only, cst.ImportFrom):
        return isinstance(only.module, cst.Name) and only.module.value == "__future__"
    return isinstance(only, cst.Expr) and isinstance(only.value, cst.SimpleString | cst.ConcatenatedString)


def _is_import(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Import | cst.ImportFrom)


def _imports(statement: cst.CSTNode, module: str) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or not isinstance(statement.body[0], cst.Import):
        return False
    return any(code(alias.name) in (module, f"{module}.compat.v1") for alias in statement.body[0].names)


def _as_tf(statement: cst.CSTNode) -> cst.SimpleStatementLine:
    """Returns an import of TensorFlow under the name ``tf``."""
    assert isinstance(statement, cst.SimpleStatementLine)
    (only, *rest) = statement.body
    assert isinstance(only, cst.Import)
    tf = cst.ImportAlias(name=cst.Name("tensorflow"), asname=cst.AsName(name=cst.Name("tf")))
    names = [tf if code(alias.name) in ("tensorflow", "tensorflow.compat.v1") else alias for alias in only.names]
    names = [alias.with_changes(comma=cst.MaybeSentinel.DEFAULT) for alias in names]
    return statement.with_changes(body=[only.with_changes(names=names), *rest])
