"""Finds the optimizer behind a ``train_op``, with the clipping of its gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import Change, Outcome, UnconvertibleError
from estimator_bridge.compat.source.fixers.model import optimizers
from estimator_bridge.compat.source.fixers.model.flow import (
    Statement,
    assigned,
    assigned_target,
    assigned_value,
    needed_for,
    reads_and_writes,
    unwrapped,
)
from estimator_bridge.compat.source.fixers.script import (
    Arguments,
    Script,
    arguments,
    code,
    nodes,
    parsed,
    simple_name,
    with_values,
)

STEPS = tuple(
    f"tensorflow.{module}.{function}"
    for module in ("train", "contrib.framework")
    for function in ("get_global_step", "get_or_create_global_step")
)
OPTIMIZE_LOSS = "tensorflow.contrib.layers.optimize_loss"
"""It also runs the operations of UPDATE_OPS."""
NORMS = (
    "tensorflow.layers.batch_normalization",
    "tensorflow.layers.BatchNormalization",
    "tensorflow.contrib.layers.batch_norm",
)
"""Functions and layers that leave the updates of their moving averages in UPDATE_OPS."""
UPDATE_OPS = "tensorflow.GraphKeys.UPDATE_OPS"
"""Collection of the updates of moving averages."""
_OPTIMIZE_LOSS = ("loss", "global_step", "learning_rate", "optimizer", "gradient_noise_scale", "gradient_multipliers", "clip_gradients",
                  "learning_rate_decay_fn", "update_ops", "variables", "name", "summaries")  # fmt: skip
_NAMES = ("Adagrad", "Adam", "Ftrl", "Momentum", "RMSProp", "SGD")
"""Names that ``optimize_loss`` knows."""
_CLIPS = {
    "tensorflow.clip_by_norm": "clipnorm",
    "tensorflow.clip_by_average_norm": "",
    "tensorflow.clip_by_value": "clipvalue",
    "tensorflow.clip_by_global_norm": "global_clipnorm",
}
"""Functions that clip, and the arguments of a Keras optimizer that do the same."""
_SAME_GRADIENTS = ("name", "colocate_gradients_with_ops", "gate_gradients")
"""Arguments of ``tf.gradients`` that change no value."""
_MOST = 5
_OTHERWISE = (
    "its updates are not made by minimize, or by apply_gradients of gradients that are clipped at most; write train_step"
)
_BY_FUNCTION = "it depends on the step by a function of the script; write a LearningRateSchedule"
_ASSERTS = ("tensorflow.assert", "tensorflow.debugging.assert")
_CHANGE_NOTHING = (
    *_ASSERTS,
    "tensorflow.print",
    "tensorflow.Print",
    "tensorflow.summary.",
)
REBOUND = "the updates read it, and it gets another value behind them; give that one another name"
_Expression = cst.BaseExpression
_Node = TypeVar("_Node", bound=cst.CSTNode)


@dataclasses.dataclass(frozen=True)
class Updates:
    """The updates that a ``train_op`` makes.

    Attributes:
        prepared: Statements that the optimizer needs.
        optimizer: Expression that makes the Keras optimizer.
        notes: Differences from the old script.
    """

    prepared: tuple[Statement, ...]
    optimizer: str
    notes: tuple[Change, ...] = ()


def find_updates(
    script: Script, statements: Sequence[Statement], spec: Arguments, check: Callable[[Statement], None], batch: set[str]
) -> Updates:
    """Finds the optimizer behind the ``train_op`` of an EstimatorSpec.

    Args:
        script: Script around the model function.
        statements: Statements of the model function in training.
        spec: Arguments of the EstimatorSpec.
        check: Function that raises for a statement that a model cannot contain.
        batch: Names of features and labels.

    Raises:
        UnconvertibleError: It does more than a Keras optimizer does.
    """
    finder = _Finder(script, statements, spec, check, batch)
    return dataclasses.replace(finder.found(), notes=tuple(finder.notes))


class _Finder:
    def __init__(
        self,
        script: Script,
        statements: Sequence[Statement],
        spec: Arguments,
        check: Callable[[Statement], None],
        batch: set[str],
    ) -> None:
        self._script = script
        self._statements = statements
        self._flat = unwrapped(statements)
        self._spec = spec
        self._check = check
        self._batch = batch
        self._steps: set[str] = set()
        self._clips: dict[str, _Expression] = {}
        self.notes: list[Change] = []

    def found(self) -> Updates:
        self._check_waits()
        asked = self._spec.get("train_op")
        value = asked
        for _ in range(_MOST):  # names that other names were given
            if isinstance(value, cst.Name):
                value = assigned(value.value, self._flat) or self._of_both_branches(value)
        value = self._without_count(value)
        if isinstance(value, cst.Call) and self._script.called(value) == OPTIMIZE_LOSS:
            return self._of_optimize_loss(value)
        method = value.func.attr.value if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) else ""
        if method not in ("minimize", "apply_gradients") or not isinstance(value, cst.Call):
            raise UnconvertibleError(asked or self._flat[-1], "train_op", _OTHERWISE)
        assert isinstance(value.func, cst.Attribute)
        maker = value.func.value
        first = "loss" if method == "minimize" else "grads_and_vars"
        given = arguments(value, (first, "global_step"))
        if given is None or not given.keys() <= {first, "global_step", "name"} or first not in given:
            raise UnconvertibleError(
                value, method, "it minimizes something else than the loss, or some variables alone; write train_step"
            )
        if method == "minimize":
            self._check_loss(value, given["loss"])
        else:
            self._take_pairs(given["grads_and_vars"], len(self._flat), maker)
        made = assigned(maker.value, self._flat) if isinstance(maker, cst.Name) else maker
        if isinstance(made, cst.Call) and optimizers.is_optimizer(self._script.called(made)):
            return self._made(made)
        chosen = self._choice(maker)
        if made is None and chosen is not None:
            return self._chosen(chosen, maker)
        raise UnconvertibleError(value, "the optimizer", "it is not made by one call of tf.train; write it so")

    def _check_waits(self) -> None:
        """Raises if a block waits for more than the updates of moving averages, and for what changes nothing."""
        written = [name for one in self._flat for name in reads_and_writes(one)[1]]
        known = {name for one in self._flat if self._runs_updates(assigned_value(one)) for name in reads_and_writes(one)[1]}
        known = {name for name in known if written.count(name) == 1}
        blocks = [one for each in self._statements for one in nodes(each, cst.With) if isinstance(one, cst.With)]
        for item in (item.item for one in blocks for item in one.items):
            waits = isinstance(item, cst.Call) and code(item.func).rpartition(".")[2] == "control_dependencies"
            if (
                not waits
                or not isinstance(item, cst.Call)
                or not item.args
                or waits_for_checks(self._script, item, self._statements)
            ):
                continue
            asked = item.args[0].value
            parts = [one.value for one in asked.elements] if isinstance(asked, cst.List | cst.Tuple) else [asked]
            for part in parts:
                value = assigned(part.value, self._flat) if isinstance(part, cst.Name) else part
                is_harmless = self._script.called(value).startswith(_CHANGE_NOTHING)
                if not is_harmless and not self._runs_updates(part) and simple_name(part) not in known:
                    raise UnconvertibleError(item, "tf.control_dependencies", _OTHERWISE)

    def _of_both_branches(self, name: cst.Name) -> _Expression | None:
        """Returns what both branches of a test give a name, if they differ at most in running UPDATE_OPS where there is batch norm."""
        found = [one for one in self._flat if name.value in reads_and_writes(one)[1]]
        choice = found[0] if len(found) == 1 else None
        if not isinstance(choice, cst.If) or not isinstance(choice.orelse, cst.Else):
            return None
        branches = choice.body, choice.orelse.body
        values = [assigned(name.value, unwrapped(_statements(one))) for one in branches]
        runs = [any(self._script.name(node) == UPDATE_OPS for node in nodes(one, cst.Attribute)) for one in branches]
        given = [code(value) for value in values if value is not None]
        if len(given) < len(branches) or len(set(given)) > 1 or runs == [False, True]:
            return None
        if not all(self._only_runs_updates(one, name.value) for one in branches):
            return None
        norms = any(self._script.called(call) in NORMS for call in nodes(self._script.module, cst.Call))
        if norms and runs[0] != runs[1] and not self._has_norms_below(choice.test):
            message = f"batch norm's averages are updated also where {code(choice.test)} is not true"
            self.notes.append(Change(self._script.line(choice), name.value, Outcome.APPROXIMATE, message))
        return values[0]

    def _only_runs_updates(self, body: cst.BaseSuite, name: str) -> bool:
        """Returns True if statements give a value to one name, below UPDATE_OPS at most, and do nothing else."""
        collected = {
            simple_name(assigned_target(one)) for one in _statements(body) if self._runs_updates(assigned_value(one))
        } - {""}
        blocks = [item.item for one in nodes(body, cst.With) if isinstance(one, cst.With) for item in one.items]
        waits = all(
            isinstance(one, cst.Call)
            and self._script.called(one) == "tensorflow.control_dependencies"
            and (self._runs_updates(one.args[0].value) or simple_name(one.args[0].value) in collected)
            for one in blocks
        )
        return waits and all(
            simple_name(assigned_target(one)) in {name, *collected} - {""} for one in unwrapped(_statements(body))
        )

    def _runs_updates(self, value: _Expression | None) -> bool:
        given = [self._script.name(one.value) for one in value.args] if isinstance(value, cst.Call) else []
        if isinstance(value, cst.BinaryOperation):
            return self._runs_updates(value.left) and self._runs_updates(value.right)
        of_keras = updates_of_keras(value) or code(value).endswith(".get_updates_for(None)") if value is not None else False
        return of_keras or (self._script.called(value) == "tensorflow.get_collection" and given[:1] == [UPDATE_OPS])

    def _has_norms_below(self, test: _Expression) -> bool:
        """Returns True if the script has batch norm, and only where a test holds."""
        module = self._script.module
        below = [one for one in nodes(module, cst.If) if isinstance(one, cst.If) and code(one.test) == code(test)]
        inside = {call for one in below for call in nodes(one.body, cst.Call)}
        norms = [call for call in nodes(module, cst.Call) if self._script.called(call) in NORMS]
        return bool(norms) and inside.issuperset(norms)

    def _made(self, made: cst.Call) -> Updates:
        prepared, scheduled = self._prepared(made, *self._clips.values())
        text = self._text(made, scheduled)
        if self._steps & reads_and_writes(parsed(text))[0] or self._asks_step(parsed(text)):
            raise UnconvertibleError(made, "the optimizer", _BY_FUNCTION)
        return Updates(tuple(prepared), text)

    def _asks_step(self, node: cst.CSTNode) -> bool:
        """Returns True if a part of the optimizer, or a function of the script that it calls, asks for the step."""
        asking = {
            one.name.value
            for one in nodes(self._script.module, cst.FunctionDef)
            if isinstance(one, cst.FunctionDef) and any(self._script.called(call) in STEPS for call in nodes(one, cst.Call))
        }
        return "global_step(" in code(node) or bool(asking & reads_and_writes(node)[0])

    def _choice(self, maker: _Expression) -> cst.If | None:
        """Returns the last statement that gives an optimizer its value, if that is a choice between calls of tf.train."""
        found = [one for one in self._flat if simple_name(maker) in reads_and_writes(one)[1]]
        assigns = [one for one in nodes(found[-1], cst.Assign) if isinstance(one, cst.Assign)] if found else []
        values = [one.value for one in assigns if simple_name(one.targets[0].target) == simple_name(maker)]
        calls = all(optimizers.is_optimizer(self._script.called(value)) for value in values)
        return found[0] if len(found) == 1 and values and calls and isinstance(found[0], cst.If) else None

    def _chosen(self, choice: cst.If, maker: _Expression) -> Updates:
        """Returns the updates of an optimizer that a test chooses."""
        needed, scheduled = self._prepared(choice, *self._clips.values())
        calls = [one for one in nodes(choice, cst.Call) if isinstance(one, cst.Call)]
        made: dict[cst.CSTNode, str] = {
            one: text for one in calls for text in [optimizers.schedule(self._script, one)] if text is not None
        }
        scheduled = scheduled or bool(made)
        made |= {one: self._text(one, scheduled) for one in calls if optimizers.is_optimizer(self._script.called(one))}
        new = _replaced(choice, made)
        return Updates((*needed, new), code(maker))

    def _text(self, made: cst.Call, scheduled: bool) -> str:
        text = optimizers.optimizer(self._script, made)
        if scheduled or "schedules." in text:
            text = optimizers.optimizer(self._script, made, scheduled=True)
        return self._clipped(text)

    def _clipped(self, text: str) -> str:
        clips = "".join(f", {name}={code(value)}" for name, value in self._clips.items())
        return f"{text[:-1]}{clips})"

    def _prepared(self, *values: cst.CSTNode) -> tuple[list[Statement], bool]:
        """Returns the statements that expressions need, with schedules of Keras, and True if there is a schedule."""
        needed = needed_for({name for value in values for name in reads_and_writes(value)[0]}, self._flat)
        kept = [one for one in needed if one not in values and self._script.called(assigned_value(one)) not in STEPS]
        new = [self._with_schedule(one) for one in kept]
        self._steps = {name for one in needed if one not in kept and one not in values for name in reads_and_writes(one)[1]}
        for one in new:
            if self._steps & reads_and_writes(one)[0] or self._asks_step(one):
                raise UnconvertibleError(one, "the optimizer", _BY_FUNCTION)
        return new, any(one is not old for one, old in zip(new, kept, strict=True))

    def _with_schedule(self, statement: Statement) -> Statement:
        """Returns a statement in which schedules of TensorFlow 1 are those of Keras, also in the branches of a test."""
        values = [one.value for one in nodes(statement, cst.Assign) if isinstance(one, cst.Assign)]
        schedules: dict[cst.CSTNode, str] = {
            value: text for value in values for text in [optimizers.schedule(self._script, value)] if text is not None
        }
        new = _replaced(statement, schedules) if schedules else statement
        if not schedules or isinstance(statement, cst.BaseCompoundStatement):
            self._check(new)
            if self._batch & reads_and_writes(new)[0]:
                raise UnconvertibleError(statement, "the optimizer", "it depends on the batch; write train_step")
        return new

    def _of_optimize_loss(self, call: cst.Call) -> Updates:
        """Returns the updates of contrib's function, which takes a name, a class or an object for an optimizer."""
        given = arguments(call, _OPTIMIZE_LOSS) or {}
        given = {name: value for name, value in given.items() if code(value) != "None"}
        kept = {
            "loss",
            "global_step",
            "learning_rate",
            "optimizer",
            "clip_gradients",
            "learning_rate_decay_fn",
            "name",
            "summaries",
        }
        clip, decay = given.get("clip_gradients"), given.get("learning_rate_decay_fn")
        is_function = isinstance(clip, cst.Lambda) or self._script.called(clip)
        decay = self._as_lambda(decay)
        other_decay = decay is not None and not isinstance(decay, cst.Lambda)
        if not {"loss", "optimizer"} <= given.keys() <= kept or is_function or other_decay:
            raise UnconvertibleError(call, "tf.contrib.layers.optimize_loss", _OTHERWISE)
        self._check_loss(call, given["loss"])
        if clip is not None:
            self._clips["global_clipnorm"] = clip
        asked = given["optimizer"]
        made = assigned(asked.value, self._flat) if isinstance(asked, cst.Name) else asked
        if isinstance(made, cst.Call) and optimizers.is_optimizer(self._script.called(made)):
            return self._made(made)
        rate = given.get("learning_rate", cst.Name("None"))
        name = str(asked.evaluated_value) if isinstance(asked, cst.SimpleString) else ""
        if optimizers.is_optimizer(self._script.name(asked)):
            name = self._script.name(asked).rpartition(".")[2].removesuffix("Optimizer")
        prepared, scheduled = self._prepared(rate, *([decay] if decay is not None else []), *self._clips.values())
        schedule = self._decayed(decay, rate) if isinstance(decay, cst.Lambda) else optimizers.schedule(self._script, rate)
        rates = schedule or code(rate), scheduled or schedule is not None
        text = optimizers.by_name(name, *rates)
        if text:
            return Updates(tuple(prepared), self._clipped(text))
        if isinstance(asked, cst.Attribute | cst.Subscript) and not self._script.name(asked):  # of hyperparameters
            chosen = [f'"{one}": lambda: {self._clipped(optimizers.by_name(one, *rates))}' for one in _NAMES]
            message = f"{code(asked)} is taken for one of the names {', '.join(_NAMES)}"
            self.notes.append(Change(self._script.line(call), "tf.contrib.layers.optimize_loss", Outcome.APPROXIMATE, message))
            return Updates(tuple(prepared), f"{{{', '.join(chosen)}}}[{code(asked)}]()")
        message = "its optimizer is no name that it knows and no class or object of tf.train; write it so"
        raise UnconvertibleError(call, "tf.contrib.layers.optimize_loss", message)

    def _as_lambda(self, decay: _Expression | None) -> _Expression | None:
        """Returns a function of the script that only returns a value, or what ``functools.partial`` makes, as a lambda; others as they are."""
        made = assigned(decay.value, self._flat) if isinstance(decay, cst.Name) else decay
        if isinstance(made, cst.Call) and self._script.called(made) == "functools.partial":
            names = [cst.Name("learning_rate"), cst.Name("global_step")]
            call = made.with_changes(func=made.args[0].value, args=[*map(cst.Arg, names), *made.args[1:]])
            return cst.Lambda(cst.Parameters([*map(cst.Param, names)]), call)
        functions = [one for one in nodes(self._script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef)]
        found = [one for one in functions if simple_name(one.name) == simple_name(decay)]
        only = found[0].body.body[0] if len(found) == 1 and len(found[0].body.body) == 1 else None
        returned = only.body[0] if isinstance(only, cst.SimpleStatementLine) else None
        value = returned.value if isinstance(returned, cst.Return) else None
        return cst.Lambda(found[0].params, value) if value is not None else decay

    def _decayed(self, decay: cst.Lambda, rate: _Expression) -> str:
        """Returns the schedule that a function of a learning rate and the step makes."""
        schedule = optimizers.schedule(self._script, decay.body)
        names = [one.name.value for one in decay.params.params]
        if schedule is None or len(names) != 2:
            raise UnconvertibleError(
                decay, "learning_rate_decay_fn", "it is not one call of tf.train; write a LearningRateSchedule"
            )
        return code(with_values(parsed(schedule), {names[0]: rate}))

    def _check_loss(self, call: cst.CSTNode, loss: _Expression) -> None:
        if code(loss) != code(self._spec["loss"]):
            raise UnconvertibleError(
                call, "minimize", "it minimizes something else than the loss, or some variables alone; write train_step"
            )
        place = next((place for place, one in enumerate(self._flat) if call in {*nodes(one, cst.Call)}), len(self._flat))
        later = reads_and_writes(loss)[0] & {name for one in self._flat[place + 1 :] for name in reads_and_writes(one)[1]}
        if later:
            raise UnconvertibleError(call, min(later), REBOUND)

    def _take_pairs(self, value: _Expression, end: int, maker: _Expression) -> None:
        """Finds the clipping in pairs of gradients and variables.

        Args:
            value: The pairs.
            end: Number of statements before the expression.
            maker: The optimizer that applies them.
        """
        if isinstance(value, cst.Name):
            place, target, bound = self._binding(value, end)
            if isinstance(target, cst.Name):
                return self._take_pairs(bound, place, maker)
        if (
            isinstance(value, cst.Call)
            and isinstance(value.func, cst.Attribute)
            and value.func.attr.value == "compute_gradients"
        ):
            given = arguments(value, ("loss", "var_list"))
            variables = (given or {}).get("var_list")
            if given is not None and given.keys() <= {"loss", "var_list"} and code(value.func.value) == code(maker):
                self._check_loss(value, given["loss"])
                if variables is None or self._all_variables(variables, end):
                    return None
        if isinstance(value, cst.Call) and simple_name(value.func) == "zip" and len(value.args) == 2:
            gradients, variables = (one.value for one in value.args)
            if self._all_variables(variables, end):
                return self._take_gradients(gradients, end, maker)
        pair = value.elt if isinstance(value, cst.ListComp | cst.GeneratorExp) else None
        if isinstance(value, cst.ListComp | cst.GeneratorExp) and isinstance(pair, cst.Tuple) and len(pair.elements) == 2:
            names = [simple_name(one) for one in nodes(value.for_in.target, cst.Name)]
            if len(names) == 2 and simple_name(pair.elements[1].value) == names[1] and self._skips_none(value.for_in, names[0]):
                self._take_clip(pair.elements[0].value, names[0])
                return self._take_pairs(value.for_in.iter, end, maker)
        raise UnconvertibleError(value, "apply_gradients", _OTHERWISE)

    def _take_gradients(self, value: _Expression, end: int, maker: _Expression) -> None:
        """Finds the clipping in gradients without their variables."""
        if isinstance(value, cst.Name):
            place, target, bound = self._binding(value, end)
            first = target.elements[0].value if isinstance(target, cst.Tuple | cst.List) else None
            if isinstance(target, cst.Name):
                return self._take_gradients(bound, place, maker)
            if simple_name(first) == value.value and isinstance(bound, cst.Call):
                if simple_name(bound.func) == "zip" and len(bound.args) == 1 and bound.args[0].star == "*":
                    return self._take_pairs(bound.args[0].value, place, maker)
                if self._script.called(bound) == "tensorflow.clip_by_global_norm":
                    return self._take_gradients(self._of_all(bound), place, maker)
        if isinstance(value, cst.Call) and self._script.called(value) == "tensorflow.gradients":
            given = arguments(value, ("ys", "xs")) or {}
            if {"ys", "xs"} <= given.keys() <= {"ys", "xs", *_SAME_GRADIENTS} and self._all_variables(given["xs"], end):
                return self._check_loss(value, given["ys"])
        if isinstance(value, cst.ListComp) and isinstance(value.for_in.target, cst.Name):
            name = value.for_in.target.value
            if not value.for_in.ifs and value.for_in.inner_for_in is None:
                self._take_clip(value.elt, name)
                return self._take_gradients(value.for_in.iter, end, maker)
        raise UnconvertibleError(value, "apply_gradients", _OTHERWISE)

    def _of_all(self, call: cst.Call) -> _Expression:
        """Returns the gradients that are clipped by the norm of all."""
        given = arguments(call, ("t_list", "clip_norm"))
        if given is None or given.keys() != {"t_list", "clip_norm"} or self._clips:
            raise UnconvertibleError(call, "tf.clip_by_global_norm", _OTHERWISE)
        self._clips["global_clipnorm"] = given["clip_norm"]
        return given["t_list"]

    def _take_clip(self, value: _Expression, gradient: str) -> None:
        """Finds the clipping of one gradient, which may be None."""
        if isinstance(value, cst.IfExp):
            value = value.orelse if simple_name(value.body) in ("None", gradient) else value.body
        if simple_name(value) == gradient:
            return
        parameters = (
            ("t", "clip_value_min", "clip_value_max") if self._script.called(value).endswith("value") else ("t", "clip_norm")
        )
        name = _CLIPS.get(self._script.called(value), "")
        given = arguments(value, parameters) if isinstance(value, cst.Call) else None
        limits = [given[one] for one in parameters[1:] if one in given] if given is not None else []
        symmetric = len(limits) == 1 or (len(limits) == 2 and _negative(limits[0]) == code(limits[1]))
        if (
            not name
            or given is None
            or given.keys() != {*parameters}
            or simple_name(given["t"]) != gradient
            or not symmetric
            or self._clips
        ):
            raise UnconvertibleError(value, "apply_gradients", _OTHERWISE)
        self._clips[name] = limits[-1]

    def _skips_none(self, loop: cst.CompFor, gradient: str) -> bool:
        """Returns True for a loop over all pairs, or over those with a gradient."""
        tests = [code(one.test) for one in loop.ifs]
        return loop.inner_for_in is None and tests in ([], [f"{gradient} is not None"])

    def _all_variables(self, value: _Expression, end: int) -> bool:
        """Returns True for all trainable variables, and for those that came with the gradients."""
        if isinstance(value, cst.Name):
            place, target, bound = self._binding(value, end)
            if isinstance(target, cst.Name):
                return self._all_variables(bound, place)
            return isinstance(bound, cst.Call) and simple_name(bound.func) == "zip" and bound.args[0].star == "*"
        return self._script.called(value) == "tensorflow.trainable_variables" and isinstance(value, cst.Call) and not value.args

    def _binding(self, name: cst.Name, end: int) -> tuple[int, cst.BaseExpression, _Expression]:
        """Returns the place of the last statement that gives a name a value, its target, and the value."""
        for place in range(end - 1, -1, -1):
            value, statement = assigned_value(self._flat[place]), self._flat[place]
            if value is not None and name.value in reads_and_writes(statement)[1]:
                assert isinstance(statement, cst.SimpleStatementLine)
                (only,) = statement.body
                assert isinstance(only, cst.Assign)
                return place, only.targets[0].target, value
        raise UnconvertibleError(name, "apply_gradients", _OTHERWISE)

    def _without_count(self, value: _Expression | None) -> _Expression | None:
        """Returns what a train_op is, without the count of steps and UPDATE_OPS that some scripts group with it."""
        if self._script.called(value) != "tensorflow.group" or not isinstance(value, cst.Call):
            return value
        place = next((place for place, one in enumerate(self._flat) if assigned_value(one) is value), len(self._flat))
        before = self._flat[:place]
        parts = [assigned(one.value.value, before) if isinstance(one.value, cst.Name) else one.value for one in value.args]
        rest = [one for one in parts if not self._counts(one) and not self._runs_updates(one)]
        return rest[0] if len(rest) == 1 else value

    def _counts(self, call: _Expression | None) -> bool:
        """Returns True for a call that adds 1 to the global step."""
        adds = isinstance(call, cst.Call) and self._script.called(call) == "tensorflow.assign_add"
        given = arguments(call, ("ref", "value")) if isinstance(call, cst.Call) and adds else None
        step = (given or {}).get("ref")
        step = assigned(step.value, self._flat) if isinstance(step, cst.Name) else step
        return self._script.called(step) in STEPS and given is not None and code(given["value"]) == "1"


class _Replacing(cst.CSTTransformer):
    def __init__(self, texts: Mapping[cst.CSTNode, str]) -> None:
        super().__init__()
        self._texts = texts

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        return cst.parse_expression(self._texts[original_node]) if original_node in self._texts else updated_node


def _replaced(node: _Node, texts: Mapping[cst.CSTNode, str]) -> _Node:
    """Returns a node with other expressions in the place of some."""
    changed = node.visit(_Replacing(texts))
    assert isinstance(changed, type(node))
    return changed


def _negative(value: _Expression) -> str:
    """Returns the source of a value that another one is the negative of; empty if it has no sign."""
    return code(value.expression) if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus) else ""


def _statements(body: cst.BaseSuite) -> list[Statement]:
    return [one for one in body.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]


def updates_of_keras(node: cst.CSTNode | None) -> bool:
    """Returns True for ``model.get_updates_for(tensor)``: the updates of moving averages that depend on a tensor."""
    method = node.func.attr.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else ""
    return method == "get_updates_for" and isinstance(node, cst.Call) and [code(one.value) for one in node.args] != ["None"]


def only_updates(value: cst.CSTNode | None) -> bool:
    """Returns True for updates of Keras, or a sum or list of them."""
    if isinstance(value, cst.BinaryOperation):
        return only_updates(value.left) and only_updates(value.right)
    if isinstance(value, cst.List | cst.Tuple):
        return all(only_updates(one.value) for one in value.elements)
    return isinstance(value, cst.Call) and code(value.func).endswith(".get_updates_for")


def waits_for_checks(script: Script, call: cst.Call, statements: Sequence[Statement]) -> bool:
    """Returns True for an order of operations behind nothing but assertions, which Keras keeps, too.

    Args:
        script: Script around the call.
        call: Call of ``tf.control_dependencies``, or any other.
        statements: Statements that give its names their values, in blocks too.
    """
    waits = script.called(call) == "tensorflow.control_dependencies" and len(call.args) == 1
    behind = call.args[0].value if waits else None
    lines = [one for each in statements for one in nodes(each, cst.Assign) if isinstance(one, cst.Assign)]
    values: list[_Expression] = []
    for element in behind.elements if isinstance(behind, cst.List | cst.Tuple) else ():
        name = simple_name(element.value)
        given = [one.value for one in lines if name and name in {simple_name(each.target) for each in one.targets}]
        values += given or [element.value]
    return bool(values) and all(script.called(one).startswith(_ASSERTS) for one in values)
