"""One form for what scripts write in several ways, so that each fixer needs to know one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import libcst as cst

from estimator_bridge.compat.source.fixers.graph_functions import UPDATES
from estimator_bridge.compat.source.fixers.inputs import makes_iterator
from estimator_bridge.compat.source.fixers.keras_objects import as_keras, layers_of_keras
from estimator_bridge.compat.source.fixers.model.layers import EQUAL, FUNCTIONS
from estimator_bridge.compat.source.fixers.normal.arg_scopes import ArgScopes
from estimator_bridge.compat.source.fixers.normal.contrib_blocks import as_block
from estimator_bridge.compat.source.fixers.normal.copies import names_of_originals
from estimator_bridge.compat.source.fixers.normal.initializers import initializer
from estimator_bridge.compat.source.fixers.normal.normalizers import normalized
from estimator_bridge.compat.source.fixers.normal.updated_dicts import updates
from estimator_bridge.compat.source.fixers.script import Script, arguments, code, is_of_contrib, nodes, parsed, simple_name

_OTHER_FORM = ("tensorflow.keras.", "tensorflow.python.", "tensorflow.estimator.", "tensorflow.compat", "tensorflow.examples.")
"""Modules whose imported names have fixers of their own."""
_MODES = "tensorflow.estimator.ModeKeys"
_CREATE_TRAIN_OP = [f"tensorflow.contrib.{name}" for name, own in UPDATES.items() if own == "create_train_op"]
_HASHED = ("hasher_spec", "key_dtype", "name")
_NOT_TAKEN = {"hasher_spec", "key_dtype", "metrics_collections", "updates_collections"}
"""Arguments that the support code's functions do not have."""
_LIKELIHOOD = ("inputs", "tag_indices", "sequence_lengths", "transition_params")
_TABLES = {
    "index_table_from_file": (
        "numbers_of_lines",
        ("vocabulary_file", "num_oov_buckets", "vocab_size", "default_value", *_HASHED),
    ),
    "index_table_from_tensor": ("numbers_of_words", ("mapping", "num_oov_buckets", "default_value", *_HASHED)),
    "index_to_string_table_from_file": ("lines_of_numbers", ("vocabulary_file", "vocab_size", "default_value", "name")),
    "index_to_string_table_from_tensor": ("words_of_numbers", ("mapping", "default_value", "name")),
}
_LARS = ("learning_rate", "momentum", "weight_decay", "eeta", "epsilon", "name", "skip_list", "use_nesterov")
_STACK = (
    "cells_fw", "cells_bw", "inputs", "initial_states_fw", "initial_states_bw", "dtype", "sequence_length", "parallel_iterations",
    "time_major", "scope",
)  # fmt: skip
_F1 = ("labels", "predictions", "weights", "num_thresholds", "metrics_collections", "updates_collections", "name")
OF_CONTRIB: dict[str, tuple[str, tuple[str, ...]]] = {
    "contrib.crf.crf_decode": ("best_tags", ("potentials", "transition_params", "sequence_length")),
    "contrib.crf.crf_log_likelihood": ("log_likelihood_of_tags", _LIKELIHOOD),
    "contrib.crf.viterbi_decode": ("best_tags_of_one", ("score", "transition_params")),
    **{
        f"{owner}.{name}": row
        for owner in ("contrib.lookup", "contrib.lookup.lookup_ops", "python.ops.lookup_ops")
        for name, row in _TABLES.items()
    },
    "contrib.metrics.f1_score": ("best_f1_score", _F1),
    "contrib.rnn.stack_bidirectional_dynamic_rnn": ("outputs_of_stack", _STACK),
    "contrib.opt.LARSOptimizer": ("MomentumByNorms", _LARS),
    "contrib.opt.LazyAdamOptimizer": (
        "AdamOfGatheredRows",
        ("learning_rate", "beta1", "beta2", "epsilon", "use_locking", "name"),
    ),
}
"""Functions of contrib, those of the support code that compute the same, and their parameters."""
_INITIALIZERS, _PASSED_ON = "tensorflow.contrib.layers.python.layers.initializers", "initializers_of_contrib"
OF_SUPPORT = frozenset((_PASSED_ON, *(function for function, _ in OF_CONTRIB.values())))
"""Functions and classes of the support code that stand for those of contrib."""
_FULL_BATCHES = {
    "tensorflow.contrib.data.batch_and_drop_remainder": "batch",
    "tensorflow.contrib.data.padded_batch_and_drop_remainder": "padded_batch",
}
"""Functions of contrib whose result is applied to a dataset, and its method that does the same."""
_AROUND_INPUT = {"tensorflow.device", "tensorflow.name_scope", "tensorflow.variable_scope"}
"""Blocks that change nothing of what a dataset gives."""
_TOTAL, _ADD_LOSS = "tensorflow.losses.get_total_loss", "tensorflow.losses.add_loss"
_LOSSES = tuple(
    f"tensorflow.losses.{name}"
    for name in (
        "absolute_difference", "cosine_distance", "hinge_loss", "huber_loss", "log_loss", "mean_pairwise_squared_error", "mean_squared_error",
        "sigmoid_cross_entropy", "softmax_cross_entropy", "sparse_softmax_cross_entropy", "add_loss", "compute_weighted_loss",
    )
)  # fmt: skip
"""Functions that add a loss to those of which ``get_total_loss`` is the sum."""


def in_normal_form(script: Script, shim: bool = False, imported: Collection[str] = ()) -> str:
    r"""Returns the source in another form that computes the same, each statement in its lines.

    Names that are imported from below TensorFlow, or from its files, are written from ``tf`` on, layers that are called where they are made are calls of
    functions, initial values of contrib are those of the core, its ``create_train_op``
    is ``minimize``, dimensions are numbers, without ``.value``, ``v.op.name`` is made from
    ``v.name``, and annotations name no class of Estimators.

    Args:
        script: Script.
        shim: True to keep objects of ``tf.layers`` that functions make: below ``track_tf1_style_variables`` each call makes them.
        imported: Names that other modules import.

    Example:
        >>> in_normal_form(Script("import tensorflow as tf; net = tf.layers.Dense(9, name='a')(net)"))
        "import tensorflow as tf; net = tf.layers.dense(net, 9, name='a')"
        >>> in_normal_form(Script("import tensorflow as tf; from tensorflow.contrib import rnn as r; r.GRUCell(3)"))
        'import tensorflow as tf; from tensorflow.contrib import rnn as r; tf.contrib.rnn.GRUCell(3)'
        >>> in_normal_form(Script("import tensorflow as tf; from tensorflow.python.ops import math_ops; math_ops.cast(x, t)"))
        'import tensorflow as tf; from tensorflow.python.ops import math_ops; tf.cast(x, t)'
        >>> in_normal_form(Script("import tensorflow as tf; sizes = [d.value for d in x.get_shape()[1:]] + [x.shape[0].value]"))
        'import tensorflow as tf; sizes = [d for d in x.get_shape()[1:]] + [x.shape[0]]'
        >>> in_normal_form(Script("import tensorflow as tf\ndef net(x, mode: tf.estimator.ModeKeys) -> tf.Tensor: return x"))
        'import tensorflow as tf\ndef net(x, mode: str) -> tf.Tensor: return x'
    """
    return script.module.visit(_NormalForm(script, shim, imported)).code


class _NormalForm(cst.CSTTransformer):
    def __init__(self, script: Script, shim: bool, imported: Collection[str]) -> None:
        super().__init__()
        self._script = script
        self._scopes = ArgScopes(script)
        self._totals: dict[cst.CSTNode, str] = {}
        self._named: dict[cst.CSTNode, str] = {}  # losses that only the collection keeps
        self._updated = dict(updates(script.module))
        self._originals = names_of_originals(script)
        self._sizes = frozenset(_sizes(script.module))
        self._aliases = dict(_aliases(script, imported))
        taken = {simple_name(one) for one in nodes(script.module, cst.Name)}
        drawn = re.findall(r"\.((?:xavier|variance_scaling)_initializer\w*\(.*)", script.module.code)
        self._passes_on = bool(drawn) and all(one.startswith("xavier_initializer()") for one in drawn)
        self._own = {f"tensorflow.{name}": own for name, own in OF_CONTRIB.items() if own[0] not in taken}
        self._of_keras = {*layers_of_keras(script, in_functions=not shim)}
        owners = [one for one in nodes(script.module, cst.ClassDef) if self._of_keras.intersection(nodes(one, cst.Call))]
        self._applied = {one for owner in owners for one in nodes(owner, cst.Call) if _applies(one)}
        imports = [one for one in nodes(script.module, cst.Import) if isinstance(one, cst.Import)]
        bound = [alias.evaluated_alias or alias.evaluated_name for one in imports for alias in one.names]
        self._has_tf = "tf" in bound and all(
            script.name(one) == "tensorflow"
            for one in nodes(script.module, cst.Name)
            if simple_name(one) == "tf" and script.name(one)
        )

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_Global(self, node: cst.Global) -> bool:
        return False

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        returns = self._of_today(original_node.returns, updated_node.returns)
        return updated_node if returns is updated_node.returns else updated_node.with_changes(returns=returns)

    def _of_today(self, old: cst.Annotation | None, new: cst.Annotation | None) -> cst.Annotation | None:
        """Returns an annotation: a mode is a string, and for other classes of Estimators there is none."""
        name = self._script.name(old.annotation) if old is not None else ""
        if new is None or not name.startswith("tensorflow.estimator."):
            return new
        return new.with_changes(annotation=cst.Name("str")) if name == _MODES else None

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if original_node in self._sizes:
            return updated_node.value
        operation = updated_node.value if original_node.attr.value == "name" else None
        if isinstance(operation, cst.Attribute) and operation.attr.value == "op":  # variables have none outside of a graph
            return parsed(f'{code(operation.value)}.name.partition(":")[0]')
        if self._has_tf and (public := _public(self._script, original_node)):
            return parsed(public)
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        given = original_node.value
        is_module = self._passes_on and isinstance(given, cst.Name) and self._script.imported_as(given) == _INITIALIZERS
        return updated_node.with_changes(
            keyword=original_node.keyword, value=cst.Name(_PASSED_ON) if is_module else updated_node.value
        )

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        annotation = self._of_today(original_node.annotation, updated_node.annotation)
        return updated_node.with_changes(name=original_node.name, annotation=annotation)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        totals = [one for one in nodes(node.body, cst.Call) if self._script.called(one) == _TOTAL]
        alone = {one: _alone(one) for one in totals}
        if not totals or None in alone.values():
            return
        losses = [one for one in nodes(node.body, cst.Call) if self._script.called(one) in _LOSSES]
        named = _named_values(node)
        taken = {simple_name(one) for one in nodes(node, cst.Name)}
        functions = [
            one for one in nodes(self._script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef) and one is not node
        ]
        adding = {
            one.name.value for one in functions if any(self._script.called(each) in _LOSSES for each in nodes(one, cst.Call))
        }
        if taken & adding:
            return
        if not losses or any(one not in named for one in losses) or any(_reduces(one) for one in losses):
            return
        if any(named[one] and self._script.called(one) == _ADD_LOSS for one in losses):
            return
        for place, one in enumerate(losses):
            if not named[one]:
                named[one] = f"loss_{place + 1}"
                if named[one] in taken:
                    return
                self._named[one] = named[one]
        texts = [named[one] for one in losses]
        if len(set(texts)) == len(texts):
            penalties = "*tf.losses.get_regularization_losses()"
            self._totals |= {
                one: f"tf.add_n([{', '.join([*texts, *([] if is_alone else [penalties])])}])" for one, is_alone in alone.items()
            }

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement:
        return (as_block(self._script, original_node, updated_node) if self._has_tf else None) or updated_node

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> cst.With | cst.FlattenSentinel[cst.BaseStatement]:
        calls = [self._script.called(one.item) for one in original_node.items if one.asname is None]
        is_of_input = len(calls) == len(original_node.items) and {*calls} <= _AROUND_INPUT and makes_iterator(original_node)
        block = updated_node.body
        if is_of_input and isinstance(block, cst.IndentedBlock) and not block.footer:
            first, *others = block.body
            assert isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement)
            behind = [cst.EmptyLine(comment=block.header.comment)] if block.header.comment else []
            lines = [*updated_node.leading_lines, *behind, *first.leading_lines]
            return cst.FlattenSentinel([first.with_changes(leading_lines=lines), *others])
        return self._scopes.without(original_node, updated_node)

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.BaseSmallStatement:
        name, value = self._named.get(original_node.value), updated_node.value
        if original_node in self._updated:
            name = self._updated[original_node]
            more = cst.ensure_type(cst.ensure_type(value, cst.Call).args[0].value, cst.Dict)
            behind = more.lbrace.whitespace_after
            comma = cst.Comma(
                whitespace_after=cst.SimpleWhitespace(" ") if isinstance(behind, cst.SimpleWhitespace) else behind
            )
            more = more.with_changes(lbrace=cst.LeftCurlyBrace())
            value = more.with_changes(elements=[cst.StarredDictElement(cst.Name(name), comma=comma), *more.elements])
        if isinstance(value, cst.Call) and self._script.called(original_node.value) == _ADD_LOSS:
            value = value.args[0].value
        return cst.Assign([cst.AssignTarget(cst.Name(name))], value) if name is not None else updated_node

    def leave_Assign(
        self, original_node: cst.Assign, updated_node: cst.Assign
    ) -> cst.BaseSmallStatement | cst.FlattenSentinel[cst.BaseSmallStatement]:
        """Returns an import for ``slim = tf.contrib.slim``, and two statements for the likelihood of tags and the transitions, which need no labels."""
        call = updated_node.value
        if original_node in self._aliases:
            return self._aliases[original_node]
        own, parameters = self._own.get(self._script.called(original_node.value), ("", ()))
        (target, *more) = updated_node.targets
        names = target.target.elements if isinstance(target.target, cst.Tuple) else ()
        given = arguments(call, parameters) if parameters == _LIKELIHOOD and isinstance(call, cst.Call) else None
        if given is None or more or len(names) != 2 or not {*parameters[:3]} <= given.keys() <= {*parameters}:
            return updated_node
        assert isinstance(call, cst.Call)
        first = names[0].value
        if not isinstance(first, cst.Name | cst.Attribute | cst.Subscript):
            return updated_node
        asked, inputs = given.pop("transition_params", None), code(given["inputs"])
        variable = code(names[1].value)
        if variable == "_":
            variable = code(asked) if isinstance(asked, cst.Name) else "transitions_of_tags"
        read = {simple_name(one) for value in given.values() for one in (value, *nodes(value, cst.Name))}
        if variable in read or (asked is None and not isinstance(given["inputs"], cst.Name)):
            return updated_node
        shape = f"[{inputs}.shape[2], {inputs}.shape[2]]"
        transitions = code(asked) if asked is not None else f'tf.get_variable("transitions", {shape})'
        called = [one.keyword.value if one.keyword else parameters[place] for place, one in enumerate(call.args)]
        kept = [one for one, name in zip(call.args, called, strict=True) if name != parameters[3]]
        last = cst.Arg(cst.Name(variable), cst.Name(parameters[3]), equal=EQUAL)
        made = cst.Assign([cst.AssignTarget(first)], call.with_changes(func=cst.Name(own), args=[*kept, last]))
        if variable == transitions:
            return made
        return cst.FlattenSentinel([cst.Assign([cst.AssignTarget(cst.Name(variable))], parsed(transitions)), made])

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if original_node in self._originals:
            return updated_node.with_changes(value=self._originals[original_node])
        name = self._script.imported_as(original_node)
        if not self._has_tf or not name.startswith("tensorflow."):
            return updated_node
        if public := _public(self._script, original_node):
            return parsed(public)
        return updated_node if f"{name}.".startswith(_OTHER_FORM) else parsed(name.replace("tensorflow", "tf", 1))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        updated_node = self._scopes.given_to(original_node, updated_node, self)
        of_norms = self._scopes.norms.get(original_node, ())
        with_norm = normalized(self._script, original_node, updated_node, of_norms) if self._has_tf else None
        if with_norm is not None:
            return with_norm
        if original_node in self._of_keras:
            return as_keras(self._script, original_node, updated_node)
        if original_node in self._applied:
            return updated_node.with_changes(func=cst.ensure_type(updated_node.func, cst.Attribute).value)
        if original_node in self._totals:
            return cst.ensure_type(parsed(self._totals[original_node]), cst.Call)
        own, parameters = self._own.get(self._script.called(original_node), ("", ()))
        given = arguments(updated_node, parameters) if own and parameters != _LIKELIHOOD else None
        both = given is not None and "num_oov_buckets" in given and code(given.get("default_value", parsed("-1"))) != "-1"
        if given is not None and given.keys() <= {*parameters} - _NOT_TAKEN and not both:
            return updated_node.with_changes(func=cst.Name(own))
        if self._script.called(original_node) == "tensorflow.get_variable":
            return updated_node.with_changes(
                args=[*map(_of_whole_numbers, range(4), updated_node.args), *updated_node.args[4:]]
            )
        batched = self._batched(original_node, updated_node)
        if batched is not None:
            return batched
        text = initializer(self._script, original_node) or self._minimizing(original_node, updated_node)
        if text is not None:
            new = parsed(f"tf.{text}")
            assert isinstance(new, cst.Call)
            return new
        made = updated_node.func
        function = FUNCTIONS.get(self._script.called(original_node.func).removeprefix("tensorflow.layers."))
        first = updated_node.args[0] if updated_node.args else None
        if (
            function is None
            or first is None
            or first.keyword
            or first.star
            or not isinstance(made, cst.Call)
            or _has_type(made)
        ):
            return updated_node
        assert isinstance(made.func, cst.Attribute)
        every = [first.with_changes(comma=cst.MaybeSentinel.DEFAULT), *made.args, *updated_node.args[1:]]
        return made.with_changes(func=made.func.with_changes(attr=cst.Name(function)), args=every)

    def _batched(self, old: cst.Call, new: cst.Call) -> cst.Call | None:
        """Returns the method of a dataset that does what a function of contrib does that is applied to it; None for other calls."""
        method = _FULL_BATCHES.get(self._script.called(old.args[0].value), "") if len(old.args) == 1 else ""
        if not method or not isinstance(new.func, cst.Attribute) or new.func.attr.value != "apply":
            return None
        dropped = cst.Arg(cst.Name("True"), cst.Name("drop_remainder"), equal=EQUAL)
        given = cst.ensure_type(new.args[0].value, cst.Call)
        return new.with_changes(func=new.func.with_changes(attr=cst.Name(method)), args=[*given.args, dropped])

    def _minimizing(self, old: cst.Call, new: cst.Call) -> str | None:
        """Returns what contrib's ``create_train_op`` does, below ``tf``; None for other calls, and if it clips gradients."""
        given = arguments(new, ("total_loss", "optimizer")) if self._script.called(old) in _CREATE_TRAIN_OP else None
        known = {"total_loss", "optimizer", "summarize_gradients", "check_numerics"}
        if given is None or not {"total_loss", "optimizer"} <= given.keys() <= known:
            return None
        updates = "tf.get_collection(tf.GraphKeys.UPDATE_OPS)"
        minimized = f"minimize({code(given['total_loss'])}, tf.train.get_global_step())"
        return f"group({code(given['optimizer'])}.{minimized}, {updates})"


def _has_type(layer: cst.Call) -> bool:
    """Returns True for a layer that is given a type, which no function takes."""
    return any(one.keyword is not None and one.keyword.value == "dtype" for one in layer.args)


def _aliases(script: Script, imported: Collection[str]) -> Iterator[tuple[cst.CSTNode, cst.ImportFrom]]:
    """Yields each ``slim = tf.contrib.slim`` of a script, which no other module imports from it, with the import that does the same."""
    lines = [one for one in script.module.body if isinstance(one, cst.SimpleStatementLine)]
    for only in (each for one in lines for each in one.body if isinstance(each, cst.Assign) and len(each.targets) == 1):
        package, _, module = script.name(only.value).rpartition(".")
        name = simple_name(only.targets[0].target)
        if name in script.modules and name not in imported and is_of_contrib(f"{package}.{module}"):
            alias = cst.ImportAlias(cst.Name(module), None if name == module else cst.AsName(cst.Name(name)))
            yield only, cst.ImportFrom(cst.ensure_type(parsed(package), cst.Attribute), [alias])


def _public(script: Script, node: cst.BaseExpression) -> str:
    """Returns the public name below ``tf`` of what an import from a file of TensorFlow or contrib gives; empty for all else."""
    root = node
    while isinstance(root, cst.Attribute):
        root = root.value
    imported = script.imported_as(root) if isinstance(root, cst.Name) else ""
    name = script.name(node) if re.match(r"tensorflow\.(contrib\.\w+\.)?python\.", imported) else ""
    return name.replace("tensorflow", "tf", 1) if name and ".python." not in name else ""


def _of_whole_numbers(place: int, argument: cst.Arg) -> cst.Arg:
    """Returns the shape of a variable with quotients as whole numbers, as TensorFlow 1 takes them: ``[n / 2, 3]``."""
    is_shape = place == 1 if argument.keyword is None else argument.keyword.value == "shape"
    if not is_shape or not isinstance(argument.value, cst.List | cst.Tuple):
        return argument
    quotients: dict[cst.BaseExpression, cst.BaseExpression] = {
        one: parsed(f"int({code(one)})")
        for one in (each.value for each in argument.value.elements)
        if isinstance(one, cst.BinaryOperation) and isinstance(one.operator, cst.Divide)
    }
    elements = [one.with_changes(value=quotients.get(one.value, one.value)) for one in argument.value.elements]
    return argument.with_changes(value=argument.value.with_changes(elements=elements))


def _applies(call: cst.CSTNode) -> bool:
    """Returns True for ``layer.apply(x)``, which layers of Keras do not have."""
    return isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "apply"


def _sizes(module: cst.Module) -> Iterator[cst.CSTNode]:
    """Yields the ``.value`` of one dimension of a shape, ``x.shape[1].value``, or in a loop over them: a number, of which TensorFlow 1 made an object."""
    for function in (module, *nodes(module, cst.FunctionDef)):
        assigned: dict[str, list[cst.BaseExpression]] = {}
        for one in nodes(function, cst.Assign):
            if isinstance(one, cst.Assign):
                assigned.setdefault(simple_name(one.targets[0].target), []).append(one.value)
        shapes = {name for name, values in assigned.items() if name and all(_is_shape(value, ()) for value in values)}
        for one in nodes(function, cst.Attribute):
            size = one.value if isinstance(one, cst.Attribute) and one.attr.value == "value" else None
            if isinstance(size, cst.Subscript) and _is_shape(size.value, shapes):
                yield one
        for loop in nodes(function, cst.ListComp, cst.GeneratorExp, cst.For):
            every = loop if isinstance(loop, cst.For) else loop.for_in  # type: ignore[attr-defined]  # of both comprehensions
            inside = loop.body if isinstance(loop, cst.For) else loop
            if _is_shape(every.iter, shapes):
                name = simple_name(every.target)
                yield from (
                    one
                    for one in nodes(inside, cst.Attribute)
                    if isinstance(one, cst.Attribute) and one.attr.value == "value" and name and simple_name(one.value) == name
                )


def _is_shape(node: cst.BaseExpression, shapes: Collection[str]) -> bool:
    """Returns True for ``x.shape``, ``x.get_shape()``, a name of one, and for a part of one."""
    if isinstance(node, cst.Subscript) and isinstance(node.slice[0].slice, cst.Slice):
        return _is_shape(node.value, shapes)
    owner = node.func if isinstance(node, cst.Call) and not node.args else node
    asked = "get_shape" if isinstance(node, cst.Call) else "shape"
    return simple_name(node) in shapes or (isinstance(owner, cst.Attribute) and owner.attr.value == asked)


def _named_values(function: cst.FunctionDef) -> dict[cst.CSTNode, str]:
    """Returns the values of a function's own statements with the names that they get; the name is empty if nothing takes a value."""
    named: dict[cst.CSTNode, str] = {}
    for line in function.body.body:
        only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if isinstance(only, cst.Assign) and len(only.targets) == 1 and isinstance(only.targets[0].target, cst.Name):
            named[only.value] = only.targets[0].target.value
        elif isinstance(only, cst.Expr):
            named[only.value] = ""
    return named


def _alone(call: cst.CSTNode) -> bool | None:
    """Returns True for a total of losses without penalties, False for one with them, None for one of other losses."""
    given = arguments(call, ("add_regularization_losses", "name")) if isinstance(call, cst.Call) else None
    asked = code((given or {}).get("add_regularization_losses", cst.Name("True")))
    return (
        asked == "False"
        if given is not None and given.keys() <= {"add_regularization_losses", "name"} and asked in ("True", "False")
        else None
    )


def _reduces(call: cst.CSTNode) -> bool:
    """Returns True for a loss that goes to another collection, or is no sum of weighted losses."""
    assert isinstance(call, cst.Call)
    given = {one.keyword.value for one in call.args if one.keyword is not None}
    most = 1 if code(call.func).endswith("add_loss") else 4
    return bool(given & {"loss_collection", "reduction"}) or len(call.args) > most
