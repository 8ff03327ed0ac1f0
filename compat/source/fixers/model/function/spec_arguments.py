"""The arguments of an EstimatorSpec, without those that a model of Keras can do without."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model.flow import (
    Branch,
    Statement,
    assigned,
    assigned_target,
    assigned_value,
    reads_and_writes,
)
from estimator_bridge.compat.source.fixers.script import LOGGERS, Arguments, Script, arguments, code, nodes, simple_name

PARAMETERS = ("mode", "predictions", "loss", "train_op", "eval_metric_ops", "export_outputs", "training_chief_hooks",
              "training_hooks", "scaffold", "evaluation_hooks", "prediction_hooks")  # fmt: skip
OF_TPU = "scaffold_fn"
"""Argument of a spec for TPUs in place of a Scaffold: a function that makes it, or None."""
HOOKS = frozenset(("training_chief_hooks", "training_hooks", "evaluation_hooks", "prediction_hooks"))
"""Arguments of a spec whose hooks a model of graphs can run."""
RUN = tuple(
    f"tensorflow.{module}.{hook}"
    for module in ("train", "estimator")
    for hook in ("LoggingTensorHook", "SummarySaverHook", "NanTensorHook", "FeedFnHook", "FinalOpsHook")
)
"""Hooks of TensorFlow that such a model can run."""
_KNOWN = frozenset((*PARAMETERS[:6], "host_call", "labels"))
"""Arguments of a spec that do not stop the conversion; it has no labels, but a well-known example gives it some in predictions."""
_SCAFFOLD, _SAVER = "tensorflow.train.Scaffold", "tensorflow.train.Saver"
_OF_FILES = frozenset({"max_to_keep", "keep_checkpoint_every_n_hours", "sharded", "save_relative_paths"})
"""Arguments of a Saver that say nothing of variables."""
_WITHOUT_NEED = ("tensorflow.local_variables_initializer", "tensorflow.tables_initializer", "tensorflow.initialize_all_tables")
"""What initializes metrics and tables, which Keras and TensorFlow 2 do where they make them."""


def spec_arguments(
    script: Script,
    one: Branch,
    approximate: list[tuple[cst.CSTNode, str]],
    parameters: frozenset[str] = frozenset(),
    hooks: frozenset[str] | None = None,
) -> Arguments:
    """Returns the arguments of a mode's EstimatorSpec.

    Args:
        script: Script around the model function.
        one: Branch of the mode.
        approximate: Parts of a spec that are left out, and why; more are added.
        parameters: Parameters of the function, which may be hooks.
        hooks: Classes of hooks that a model of graphs runs, and its Scaffold may give variables values; None for another model.

    Raises:
        UnconvertibleError: A hook or a Scaffold does more than show values.
    """
    given = arguments(one.spec, PARAMETERS)
    if given is not None:
        given = {
            name: value
            for name, value in given.items()
            if "hooks" not in name or not _are(lambda hook: script.called(hook) in LOGGERS, value, one, parameters)
        }
        given = {name: value for name, value in given.items() if code(value) != "None" and not _is_none(value, one)}
        given = {
            name: value
            for name, value in given.items()
            if name != "scaffold" or not _leaves_out(script, value, one, approximate)
        }
    unknown = sorted(given.keys() - _KNOWN) if given is not None else ["*"]
    if given is not None and hooks is not None:
        unknown = [name for name in unknown if not _is_run(script, name, given[name], one, parameters, hooks)]
    if given is None or unknown:
        raise UnconvertibleError(
            one.spec, f"EstimatorSpec({unknown[0]}=...)", "there is no fixer for it; write it as a callback of fit"
        )
    return given


def _leaves_out(script: Script, scaffold: cst.BaseExpression, one: Branch, approximate: list[tuple[cst.CSTNode, str]]) -> bool:
    """Returns True for a Scaffold that gives variables no values; a note says what is left out."""
    made = _made(scaffold, one)
    given = arguments(made, ()) if isinstance(made, cst.Call) and script.called(made) == _SCAFFOLD else None
    if given is None or not all(_gives_no_values(script, name, value, one) for name, value in given.items()):
        return False
    message = (
        "left out: tables need no initializer, fit writes summaries, and the run's settings say which checkpoints are kept"
    )
    approximate += [(made, message)] if given and (made, message) not in approximate else []
    return True


def _made(value: cst.BaseExpression, one: Branch) -> cst.BaseExpression:
    """Returns what a name was last given; other expressions as they are."""
    return (assigned(value.value, one.statements) if isinstance(value, cst.Name) else None) or value


def _gives_no_values(script: Script, name: str, value: cst.BaseExpression, one: Branch) -> bool:
    """Returns True for an argument of a Scaffold that only writes summaries, keeps files, or initializes tables and metrics."""
    made = _made(value, one)
    if name == "saver" and isinstance(made, cst.Call) and script.called(made) == _SAVER:
        return (arguments(made, ()) or {"": made}).keys() <= _OF_FILES if made.args else True
    if name == "local_init_op" and isinstance(made, cst.Call):
        inner = [argument.value for argument in made.args] if script.called(made) == "tensorflow.group" else [made]
        flat = [each.value for part in inner if isinstance(part, cst.List | cst.Tuple) for each in part.elements]
        calls = [*flat, *(part for part in inner if not isinstance(part, cst.List | cst.Tuple))]
        return all(script.called(_made(part, one)) in _WITHOUT_NEED for part in calls)
    return name == "summary_op"


def _is_run(
    script: Script, name: str, value: cst.BaseExpression, one: Branch, parameters: frozenset[str], hooks: frozenset[str]
) -> bool:
    """Returns True for hooks that a model of graphs runs, and for a Scaffold that does no more than give variables values."""
    if name in HOOKS:

        def runs(hook: cst.BaseExpression) -> bool:
            return isinstance(hook, cst.Call) and (script.called(hook) in RUN or simple_name(hook.func) in hooks)

        return _are(runs, value, one, parameters)
    if name == OF_TPU:
        return isinstance(value, cst.Name)
    made = _made(value, one)
    given = arguments(made, ()) if isinstance(made, cst.Call) and script.called(made) == _SCAFFOLD else None
    loads = given is not None and "init_fn" in given
    return loads and all(key == "init_fn" or _gives_no_values(script, key, each, one) for key, each in (given or {}).items())


def _are(
    is_meant: Callable[[cst.BaseExpression], bool], hooks: cst.BaseExpression, one: Branch, names: frozenset[str] = frozenset()
) -> bool:
    """Returns True for hooks that are all meant: one, a list, or a name that is given such lists, in blocks too."""
    if isinstance(hooks, cst.Name):
        given = [] if hooks.value in names else _given_anywhere(hooks.value, one)
        within = names | {hooks.value}
        return bool(given) and all(code(each) == "None" or _are(is_meant, each, one, within) for each in given)
    if isinstance(hooks, cst.IfExp):
        return all(code(each) == "None" or _are(is_meant, each, one, names) for each in (hooks.body, hooks.orelse))
    if isinstance(hooks, cst.List | cst.Tuple):
        return all(_are(is_meant, element.value, one, names) for element in hooks.elements)
    return is_meant(hooks)


def _given_anywhere(name: str, one: Branch) -> list[cst.BaseExpression]:
    """Returns what the statements of a mode assign to a name, or append to it, in blocks too; nothing if it changes in other ways."""
    found = list[cst.BaseExpression]()
    known = set[cst.CSTNode]()
    for node in (part for each in one.statements for part in nodes(each, cst.Assign, cst.AnnAssign, cst.Call)):
        if isinstance(node, cst.Assign) and any(simple_name(target.target) == name for target in node.targets):
            found.append(node.value)
            known.update(target.target for target in node.targets)
        elif isinstance(node, cst.Assign) and (pair := _of_tuple(name, node)) is not None:
            known.add(node.targets[0].target)
            found.append(pair)
        elif isinstance(node, cst.AnnAssign) and simple_name(node.target) == name and node.value is not None:
            found.append(node.value)
            known.add(node.target)
        elif isinstance(node, cst.Call) and code(node.func).startswith(f"{name}."):
            if code(node.func) != f"{name}.append" or len(node.args) != 1:
                return []
            found.append(node.args[0].value)
    return found if known and not any(_writes(each, name, known) for each in one.statements) else []


def _of_tuple(name: str, node: cst.Assign) -> cst.BaseExpression | None:
    """Returns what ``a, name = x, y`` gives a name; None for all else."""
    target, value = node.targets[0].target, node.value
    if len(node.targets) > 1 or not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple):
        return None
    names = [simple_name(one.value) for one in target.elements]
    is_plain = len(names) == len(value.elements) and names.count(name) == 1 and all(names)
    return value.elements[names.index(name)].value if is_plain else None


def _writes(statement: cst.CSTNode, name: str, known: set[cst.CSTNode]) -> bool:
    """Returns True for a statement with a target that is a name, or contains it, besides those that are known."""
    kinds = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr, cst.AsName, cst.CompFor)
    targets = {getattr(node, "target", None) or getattr(node, "name", None) for node in nodes(statement, *kinds)} - known
    return any(simple_name(node) == name for target in targets if target is not None for node in nodes(target, cst.Name))


def _is_none(value: cst.BaseExpression, one: Branch) -> bool:
    """Returns True for a name that is only given the value None."""
    writers = [each for each in one.statements if simple_name(value) in reads_and_writes(each)[1]]
    values = [_given(simple_name(value), each) for each in writers]
    return bool(values) and all(each is not None and code(each) == "None" for each in values)


def _given(name: str, statement: Statement) -> cst.BaseExpression | None:
    """Returns the value that an assignment gives a name, which may be one of several; None if that is not plain."""
    target, value = assigned_target(statement), assigned_value(statement)
    if not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple) or len(target.elements) != len(value.elements):
        return value
    pairs = zip(target.elements, value.elements, strict=True)
    return next((given.value for one, given in pairs if simple_name(one.value) == name), None)
