"""A model function that stays whole: each step of the model is a graph that it makes, as each step of an Estimator is."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.graph_functions import DERIVED, OWN, UPDATES, in_graphs
from estimator_bridge.compat.source.fixers.marks import Change, Outcome, UnconvertibleError
from estimator_bridge.compat.source.fixers.model.flow import Branch, Statement, mode_name, reads_and_writes
from estimator_bridge.compat.source.fixers.model.function.definitions import Definitions
from estimator_bridge.compat.source.fixers.model.function.spec_arguments import HOOKS, OF_TPU, PARAMETERS, spec_arguments
from estimator_bridge.compat.source.fixers.model.layers import is_contrib, is_keras
from estimator_bridge.compat.source.fixers.model.updates import STEPS
from estimator_bridge.compat.source.fixers.script import LOGGERS, SPEC, Script, arguments, code, nodes, parsed, simple_name
from estimator_bridge.compat.source.fixers.surface import is_respelled

BASE, WITH_SESSION, WITH_HOOKS, OWN_SPEC = "ModelOfGraph", "ModelWithSession", "ModelWithHooks", "EstimatorSpec"
"""Classes of the new script: of a model whose steps are graphs, of one that takes values of other checkpoints, of one with hooks, and of what its
function returns."""
BASES = (BASE, WITH_SESSION, WITH_HOOKS)
NEEDS_SLIM = "the new script needs the package tf_slim, which is not part of TensorFlow: pip install tf-slim"
LOADS, GRAPH_LOADER = "tensorflow.train.init_from_checkpoint", "init_graph_from_checkpoint"
"""Function that gives variables the values of a checkpoint, and that of the new script."""
_HOOK = "tensorflow.train.SessionRunHook"
OUTPUT = "tensorflow.estimator.export.PredictOutput"
_KNOWN = (SPEC, OUTPUT, *LOGGERS)
_UPDATES = frozenset(f"tensorflow.contrib.{name}" for name in UPDATES)
_MODES, _OF_ESTIMATORS = "tensorflow.estimator.ModeKeys", ("tensorflow.estimator", "tensorflow.contrib", "tensorflow.tpu")
_REFUSED = {
    "tensorflow.Session": "there are no sessions in a model; use tensors as values",
    "tensorflow.keras.backend.set_learning_phase": "it would hold for all modes; give layers the argument training",
    "tensorflow.keras.backend.learning_phase": "it is the same in all modes; ask for the mode",
    "tensorflow_hub.Module": "TensorFlow 2 loads no such modules; use hub.KerasLayer of a SavedModel",
    "tensorflow.InteractiveSession": "there are no sessions in a model; use tensors as values",
    "tensorflow.get_default_session": "there are no sessions in a model; use tensors as values",
    "tensorflow.profiler.profile": "it asks variables for a graph that they do not have; take it away, or profile the script",
    "tensorflow.global_variables_initializer": "Keras gives variables their first values; take it away",
}
_OF_KERAS = re.compile(
    r"tensorflow\.keras\.((layers|regularizers|initializers|activations|constraints|losses|backend|utils)(\.|$)|(models\.)?(Model|Sequential)$|Input$)"
)
"""What graphs can have of Keras: each makes its own layers, whose variables have the same names in all graphs."""
_COUNTING = (*STEPS, *_UPDATES)
_OF_ESTIMATOR = {"train", "evaluate", "predict", "export_savedmodel", "export_saved_model"}
"""Methods that a hook cannot call: it would do so in the graph of a step."""
_NO_UPDATES = ("gradient_noise_scale", "gradient_multipliers")
"""Arguments of contrib's ``optimize_loss`` that the new script's function does not take."""
_OF_UPDATES = ("loss", "global_step", "learning_rate", "optimizer", *_NO_UPDATES, "clip_gradients", "learning_rate_decay_fn",
               "update_ops", "variables", "name", "summaries", "colocate_gradients_with_ops", "increment_global_step")  # fmt: skip
_OF_TRAIN_OP = ("total_loss", "optimizer", "global_step", "update_ops", "variables_to_train")
"""Parameters of contrib's two functions ``create_train_op`` that have the same place."""
_OF_CALLER = ("features", "labels", "mode", "params", "config")
_CLASS = f'''
class NAME({BASE}):
    """The model of ``FUNCTION``, whose steps are the graphs that it makes."""
'''
_INIT = """
    def __init__(ARGUMENTS):
        super().__init__(params, model_dir, config)
"""


@dataclasses.dataclass(frozen=True)
class WholeFunction:
    """A model function that stays whole.

    Attributes:
        node: The function.
        more: Parameters that only the script knows, which it binds before an Estimator calls the function.
        reached: Names of the functions and classes of the script that it reads.
        own: The function, and those.
        slim: True if it calls functions of contrib that the package tf_slim alone has.
        base: Class of the new script from which the model's is derived.
        notes: Lines of the report about what the class does not have.
    """

    node: cst.FunctionDef
    more: tuple[cst.Param, ...]
    reached: frozenset[str]
    own: frozenset[cst.CSTNode]
    slim: bool
    base: str
    notes: tuple[Change, ...]


def keep_whole(script: Script, function: cst.FunctionDef, owner: cst.ClassDef | None = None) -> WholeFunction:
    """Looks if a model function can stay as it is.

    Args:
        script: Script around the function.
        function: The function.
        owner: Class around it, if it is a method or stands in one.

    Raises:
        UnconvertibleError: It uses what TensorFlow 2 has not, or an object that Keras calls otherwise.
    """
    is_method = owner is not None and function in owner.body.body
    given = function.params.params[is_method:]
    names = [one.name.value for one in given]
    has_more = function.params.kwonly_params or function.decorators
    if "mode" not in names or has_more or not isinstance(function.params.star_arg, cst.MaybeSentinel):
        raise UnconvertibleError(function, "the model function", "its arguments must be features, labels, mode and params")
    found = Definitions(script, function)
    of_object = _methods(script, owner, function) if owner is not None else []
    reached = found.reached([function, *of_object])[1]
    bound = {name for one in script.module.body for name in reads_and_writes(one)[1]}
    if script.methods or {*BASES, OWN_SPEC, *OWN} & bound:
        raise UnconvertibleError(function, "the model function", "it calls methods of objects that make layers; call functions")
    own = [function.body, *of_object, *(found.own[name] for name in sorted(reached)), *found.values([function, *of_object])]
    for one in own:
        _check_bases(script, one)
    slim = [*itertools.chain(*(_check(script, one) for one in _without_idle_methods(own)))]
    _check_keras(script, own, of_object)
    if not any(script.name(node) in _COUNTING for one in own for node in nodes(one, cst.Attribute, cst.Name)):
        message = "nothing counts the steps, by which checkpoints are known; give minimize tf.train.get_global_step()"
        raise UnconvertibleError(function, "the model function", message)
    approximate = [*_summaries(script, own), *((one, NEEDS_SLIM) for one in slim[:1])]
    base = _base(script, function, own, approximate)
    notes = (Change(script.line(node), code(node), Outcome.APPROXIMATE, message) for node, message in approximate)
    of_caller = _OF_CALLER if "features" in names else (names[0], *_OF_CALLER)
    more = tuple(one for one in given if one.name.value not in of_caller)
    if is_method and any(one.default is None for one in more):
        raise UnconvertibleError(function, "the model function", "an Estimator does not give it all of its arguments")
    return WholeFunction(function, more, reached, frozenset((function, *own[1:])), bool(slim), base, tuple(notes))


def _base(
    script: Script, function: cst.FunctionDef, own: Sequence[cst.CSTNode], approximate: list[tuple[cst.CSTNode, str]]
) -> str:
    """Returns the class of the new script from which that of a model function is derived, by what its EstimatorSpecs are given."""
    functions = [function, *(each for one in own for each in nodes(one, cst.FunctionDef) if isinstance(each, cst.FunctionDef))]
    around = {spec: one for one in functions for spec in nodes(one.body, cst.Call)}  # the innermost function
    hooks, given = hooks_that_run(script), set[str]()
    for spec, inner in around.items():
        if isinstance(spec, cst.Call) and script.called(spec) == SPEC:
            parameters = (*inner.params.params, *inner.params.kwonly_params)
            names = frozenset(one.name.value for one in parameters)
            given |= spec_arguments(script, Branch(_statements(inner), spec), approximate, names, hooks).keys()
    named = {script.name(node): node for one in own for node in nodes(one, cst.Attribute)}
    if given & HOOKS:
        return WITH_HOOKS
    if "tensorflow.placeholder" in named:
        message = "nothing feeds it; take the value from the features"
        raise UnconvertibleError(named["tensorflow.placeholder"], "tf.placeholder", message)
    return WITH_SESSION if given & {"scaffold", OF_TPU} or LOADS in named else BASE


def hooks_that_run(script: Script) -> frozenset[str]:
    """Returns the names of the script's classes of session hooks that can see the steps of a graph."""
    found: set[str] = set()
    for one in (each for each in script.module.body if isinstance(each, cst.ClassDef)):
        if [script.name(base.value) or simple_name(base.value) for base in one.bases][:1] in [
            [name] for name in (_HOOK, *found)
        ]:
            asks = {
                each.func.attr.value
                for each in nodes(one, cst.Call)
                if isinstance(each, cst.Call) and isinstance(each.func, cst.Attribute)
            }
            with contextlib.suppress(UnconvertibleError):
                _ = [*_check(script, one)]
                found |= {one.name.value} if not asks & _OF_ESTIMATOR else set()
    return frozenset(found)


def _methods(script: Script, owner: cst.ClassDef, function: cst.FunctionDef) -> list[cst.CSTNode]:
    """Returns the methods of a class that a model function of its objects calls, and that make the objects.

    Args:
        script: Script around the class.
        owner: The class; those that it is derived from count, too.
        function: A method, or a function in one.
    """
    classes = {one.name.value: one for one in script.module.body if isinstance(one, cst.ClassDef)}
    family = [owner]
    for one in family:
        bases = {simple_name(base.value) for base in one.bases}
        derived = [each for each in classes.values() if one.name.value in map(simple_name, (base.value for base in each.bases))]
        family += [each for each in (*(classes[name] for name in bases & classes.keys()), *derived) if each not in family]
    methods = [one for each in family for one in each.body.body if isinstance(one, cst.FunctionDef) and one is not function]
    methods = [one for one in methods if not any(each is function for each in nodes(one, cst.FunctionDef))]
    found: list[cst.CSTNode] = []
    pending: list[cst.CSTNode] = [function, *(one for one in methods if one.name.value == "__init__")]
    while pending:
        found.append(pending.pop())
        parts = [one for one in nodes(found[-1], cst.Attribute) if isinstance(one, cst.Attribute)]
        named = {one.attr.value for one in parts if code(one.value).startswith(("self", "super("))}
        pending += [one for one in methods if one.name.value in named and one not in found and one not in pending]
    return found[1:]


def _statements(function: cst.FunctionDef) -> tuple[Statement, ...]:
    return tuple(one for one in function.body.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement))


def _summaries(script: Script, own: Sequence[cst.CSTNode]) -> Iterator[tuple[cst.CSTNode, str]]:
    """Yields the summaries of some functions, and what becomes of them."""
    for call in (each for one in own for each in nodes(one, cst.Call) if isinstance(each, cst.Call)):
        if script.called(call).startswith("tensorflow.summary."):
            yield call.func, "no step runs it; fit writes losses and metrics"


def _check(script: Script, one: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yields the names that the package tf_slim alone has, and raises for one that a graph of TensorFlow 2 cannot have."""
    attributes = [each for each in nodes(one, cst.Attribute) if isinstance(each, cst.Attribute)]
    inner = {each.value for each in attributes}
    calls = [each for each in nodes(one, cst.Call) if isinstance(each, cst.Call)]
    respelled = {each.func for each in calls if is_respelled(script.called(each), each)}
    _check_calls(script, calls)
    called = {each.func for each in calls}
    for node in (each for each in nodes(one, cst.Attribute, cst.Name) if each not in inner):
        name = script.name(node)
        spelled = name.replace("tensorflow", "tf", 1)
        if name == _MODES or (name == SPEC and node not in called):
            raise UnconvertibleError(node, spelled, "it is only known where it is called, or asked for a mode; write it so")
        if isinstance(node, cst.Attribute) and node.attr.value == "_replace":
            raise UnconvertibleError(node, code(node), "it may change an EstimatorSpec; make that with all arguments at once")
        if name in _REFUSED:
            raise UnconvertibleError(node, spelled, _REFUSED[name])
        known = name in _KNOWN or bool(mode_name(name)) or is_contrib(name) or node in respelled
        if not known and in_graphs(name):
            yield from [node] if in_graphs(name).startswith("tf_slim.") else []
        elif name.startswith(_OF_ESTIMATORS) and not known:
            raise UnconvertibleError(
                node, spelled, f"{'.'.join(spelled.split('.')[:2])} is not converted; use a core layer or function"
            )
        if name.startswith(("keras.", "tensorflow.keras.", "tensorflow.python.keras.")) and not _OF_KERAS.match(name):
            raise UnconvertibleError(node, spelled, "a graph would make it anew; make it in __init__ of the model")
        if name and script.may_make_layers(name, only_unknown=True):
            message = "it is of another module and may make layers, which are not converted; convert both together, or write it into the script"
            raise UnconvertibleError(node, spelled, message)


def _without_idle_methods(own: Sequence[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """Yields the nodes of a graph; of a class, its parts but for methods that no other part names, e.g. one that restores variables.

    A base class of another module may call any method.
    """
    named = {simple_name(each) for one in own for each in nodes(one, cst.Name)}
    known = {"object", *(one.name.value for one in own if isinstance(one, cst.ClassDef))}
    pending: list[cst.CSTNode] = []
    methods: list[cst.FunctionDef] = []
    for one in own:
        parts = (*one.bases, *one.decorators, *one.body.body) if isinstance(one, cst.ClassDef) else (one,)
        asks = isinstance(one, cst.ClassDef) and (
            "getattr" in named or any(code(base.value) not in known for base in one.bases)
        )
        for part in parts:
            may_be_idle = (
                part is not one and isinstance(part, cst.FunctionDef) and not asks and not part.name.value.startswith("__")
            )
            (methods if may_be_idle else pending).append(part)
    while pending:
        yield (one := pending.pop())
        names = {simple_name(each) for each in nodes(one, cst.Name)}
        pending += [each for each in methods if each.name.value in names]
        methods = [each for each in methods if each.name.value not in names]


def _check_bases(script: Script, one: cst.CSTNode) -> None:
    """Raises for a class that is derived from one for which the new script has its own."""
    for base in (each.value for owner in nodes(one, cst.ClassDef) if isinstance(owner, cst.ClassDef) for each in owner.bases):
        if in_graphs(script.name(base)) in OWN - DERIVED:
            message = "a class that is derived from it may read what only contrib's has; write it out"
            raise UnconvertibleError(base, script.name(base).replace("tensorflow", "tf", 1), message)


def _check_keras(script: Script, own: Sequence[cst.CSTNode], of_object: Sequence[cst.CSTNode]) -> None:
    """Raises for layers of Keras that a graph would not make, and for their updates, which Keras does not tell.

    Args:
        script: Script around the model function.
        own: Functions, classes and values of which the graph is made.
        of_object: Methods of the object whose method is the model function.
    """
    for one in of_object:
        made = next((each for each in nodes(one, cst.Call) if is_keras(script.called(each))), None)
        if made is not None and isinstance(one, cst.FunctionDef) and one.name.value == "__init__":
            raise UnconvertibleError(made, code(made), "it is made before the graph; make it in the model function")
    parts = [each for one in own for each in nodes(one, cst.Attribute) if isinstance(each, cst.Attribute)]
    asking = next((each for each in parts if each.attr.value in ("updates", "get_updates_for")), None)
    if asking is not None and any(is_keras(script.name(each)) for each in parts):
        raise UnconvertibleError(asking, code(asking), "layers of Keras do not tell their updates; use tf.layers")


def _check_calls(script: Script, calls: Sequence[cst.Call]) -> None:
    """Raises for arguments that a graph of TensorFlow 2, or what stands for a function of contrib, does not take."""
    for call in calls:
        if "partitioner" in {one.keyword.value for one in call.args if one.keyword} or code(call.func).endswith(
            "set_partitioner"
        ):
            message = "TensorFlow 2 does not train variables in parts; take the partitioner away"
            raise UnconvertibleError(call, f"{code(call.func)}(partitioner=...)", message)
        own = UPDATES.get(script.called(call).removeprefix("tensorflow.contrib."), "")
        given = arguments(call, _OF_UPDATES if own == "optimize_loss" else _OF_TRAIN_OP) if own else {}
        unknown = (
            ["*"] if given is None else [name for name in _NO_UPDATES if code(given.get(name, cst.Name("None"))) != "None"]
        )
        if unknown:
            message = "there is no row for this argument; write the updates out"
            raise UnconvertibleError(call, f"{code(call.func)}({unknown[0]}=...)", message)


def own_spec(script: Script, old: cst.Call, new: cst.Call, base: str) -> cst.Call:
    """Returns the call of the new script's EstimatorSpec.

    Args:
        script: Script around the call.
        old: Call as it is in the script.
        new: The same call with converted arguments.
        base: Class of the model; one without hooks is given neither those that show values, nor a Scaffold.
    """
    names = arguments(old, PARAMETERS) or {}
    known = {BASE: PARAMETERS[:6], WITH_SESSION: (*PARAMETERS[:6], "scaffold", OF_TPU), WITH_HOOKS: (*PARAMETERS, OF_TPU)}[base]
    kept = [_called_now(one) if name == OF_TPU else one for one, name in zip(new.args, names, strict=True) if name in known]
    kept[-1:] = [one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in kept[-1:]]
    return new.with_changes(func=cst.Name(OWN_SPEC), args=kept)


def _called_now(argument: cst.Arg) -> cst.Arg:
    """Returns the Scaffold that a function for TPUs makes, None without one."""
    made = parsed(f"{code(argument.value)} and {code(argument.value)}()")
    return argument.with_changes(keyword=cst.Name("scaffold"), value=made)


def class_around(whole: WholeFunction, function: cst.FunctionDef, name: str, base: str = BASE) -> cst.ClassDef:
    """Returns the class of a model function that stays whole.

    Args:
        whole: The function as it was.
        function: The function with converted names.
        name: Name of the class.
        base: Name of the class from which it is derived.
    """
    text = _CLASS.replace(BASE, base)
    parameters = [one for one in function.params.params if one.name.value not in {each.name.value for each in whole.more}]
    decorators: list[cst.Decorator] = []
    body = function.body
    if whole.more:
        ordered = sorted(whole.more, key=lambda one: one.default is not None)
        bound = [f"{one.name.value}={code(one.default)}" if one.default is not None else one.name.value for one in ordered]
        given = ", ".join(["self", *bound, "params=None", "model_dir=None", "config=None"])
        lines = [f"        self.of_script_{one.name.value} = {one.name.value}\n" for one in whole.more]
        text += _INIT.replace("ARGUMENTS", given) + "".join(lines)
        parameters = [cst.Param(cst.Name("self")), *parameters]
        first = [cst.parse_statement(f"{one.name.value} = self.of_script_{one.name.value}") for one in whole.more]
        body = body.with_changes(body=[*first, *body.body])
    else:
        decorators = [cst.Decorator(cst.Name("staticmethod"))]
    text = text.replace("NAME", name).replace("FUNCTION", whole.node.name.value)
    parameters = [one.with_changes(annotation=None) for one in parameters]
    written = cst.ensure_type(cst.parse_statement(text.strip("\n") + "\n"), cst.ClassDef)
    parameters[-1] = parameters[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    method = function.with_changes(
        name=cst.Name("model_fn"), params=function.params.with_changes(params=parameters), decorators=decorators, body=body,
        returns=None, leading_lines=[cst.EmptyLine(indent=False)],
    )  # fmt: skip
    block = cst.ensure_type(written.body, cst.IndentedBlock)
    return written.with_changes(body=block.with_changes(body=[*block.body, method]), leading_lines=function.leading_lines)
