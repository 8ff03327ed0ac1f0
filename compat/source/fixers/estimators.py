"""Estimators and their calls: they become models of Keras, and calls of small functions that the new script contains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model import optimizers
from estimator_bridge.compat.source.fixers.script import LOGGERS, Arguments, Script, arguments, code, simple_name

_SUPPORT = Path(__file__).with_name("support.py.txt")
_ESTIMATOR = ("tensorflow.estimator.Estimator",)
_INPUTS = "tensorflow.estimator.inputs."
_METHODS: dict[str, tuple[str, ...]] = {
    "train": ("input_fn", "hooks", "steps", "max_steps", "saving_listeners"),
    "evaluate": ("input_fn", "steps", "hooks", "checkpoint_path", "name"),
    "predict": ("input_fn", "predict_keys", "hooks", "checkpoint_path", "yield_single_examples"),
}
"""Methods of an Estimator with their parameters, in their order."""
_KEPT = {"train": {"input_fn", "steps", "max_steps"}, "evaluate": {"input_fn", "steps", "name"}, "predict": {"input_fn"}}
_SPECS = {
    "tensorflow.estimator.TrainSpec": (("input_fn", "max_steps", "hooks"), {"input_fn", "max_steps"}),
    "tensorflow.estimator.EvalSpec": (
        ("input_fn", "steps", "name", "hooks", "exporters", "start_delay_secs", "throttle_secs"),
        {"input_fn", "steps", "name", "start_delay_secs", "throttle_secs"},
    ),
}
_DNN = (
    "optimizer",
    "activation_fn",
    "dropout",
    "input_layer_partitioner",
    "config",
    "warm_start_from",
    "loss_reduction",
    "batch_norm",
)
_CANNED = {
    "tensorflow.estimator.DNNClassifier": (
        "hidden_units", "feature_columns", "model_dir", "n_classes", "weight_column", "label_vocabulary", *_DNN
    ),
    "tensorflow.estimator.DNNRegressor": ("hidden_units", "feature_columns", "model_dir", "label_dimension", "weight_column", *_DNN),
}  # fmt: skip
"""Canned Estimators with their parameters, in their order."""
_SESSION = {"allow_soft_placement", "log_device_placement", "intra_op_parallelism_threads", "inter_op_parallelism_threads"}
"""Fields of ConfigProto that have a fixer."""
_RUN_CONFIG = (
    "model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs", "session_config",
    "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps",
)  # fmt: skip
_KEPT_CONFIG = {"model_dir", "save_checkpoints_steps", "session_config", "keep_checkpoint_max"}
"""Fields of RunConfig that the new script reads; the other ones change no value that is trained, but for the seed."""
_LEFT_OUT = {
    "tf_random_seed": "call tf.random.set_seed; other numbers are drawn",
    "name": "evaluations have no folder of their own",
    "start_delay_secs": "it evaluates once, after the training",
    "throttle_secs": "it evaluates once, after the training",
}
_NO_FIXER = "there is no fixer for this argument; see the how-to guide on finishing by hand"
_EMPTY = ("None", "[]", "()")


def support() -> dict[str, str]:
    """Returns the source of each function that new scripts may contain, by its name, in the order of the file."""
    parts = re.split(r"\n\n\n(?=def |class )", _SUPPORT.read_text().strip())
    return {part.partition(" ")[2].partition("(")[0]: part for part in parts}


def needed_functions(used: Iterable[str]) -> list[str]:
    """Returns the sources of functions, and of those that they call."""
    sources = support()
    pending, found = set(used), set()
    while pending:
        name = pending.pop()
        found.add(name)
        pending |= {other for other in sources if re.search(rf"\b{other}\(", sources[name].partition("\n")[2])} - found
    return [text for name, text in sources.items() if name in found]


class EstimatorCalls:
    """Finds the Estimators of a script and converts their calls.

    Args:
        script: The script.
        classes: Name of each converted model function, and of its class.

    Attributes:
        used: Names of the functions that the new script must contain.
        left_out: Calls, their arguments that the new script does not have, and the consequence.
    """

    def __init__(self, script: Script, classes: Mapping[str, str]) -> None:
        self._script = script
        self._classes = classes
        assigned = _assignments(script.module)
        self._models = {name for name, value in assigned if self._is_estimator(value)}
        self._loggers = {name for name, value in assigned if script.called(value) in LOGGERS}
        self._loggers |= {name for name, value in assigned if self.only_logs(value)}
        self.used: set[str] = set()
        self.left_out: list[tuple[cst.Call, str, str]] = []

    def _is_estimator(self, value: cst.CSTNode) -> bool:
        return self._script.called(value) in (*_ESTIMATOR, *_CANNED)

    def only_logs(self, value: cst.CSTNode) -> bool:
        """Returns True for a hook that shows values and changes nothing, and for a list of such hooks."""
        if isinstance(value, cst.List | cst.Tuple):
            return bool(value.elements) and all(self._logs(element.value) for element in value.elements)
        return self._script.called(value) in LOGGERS

    def _logs(self, value: cst.BaseExpression) -> bool:
        return self._script.called(value) in LOGGERS or simple_name(value) in self._loggers

    def converted(self, old: cst.Call, call: cst.Call) -> str | None:
        """Returns the new source of a call; None if the call has nothing to do with Estimators.

        Args:
            old: Call as it is in the script, which says what its names mean.
            call: The same call, whose arguments may be converted already.

        Raises:
            UnconvertibleError: The call cannot be converted.
        """
        name = self._script.called(old)
        if name in _ESTIMATOR:
            return self._model(call)
        if name in _CANNED:
            return self._canned(old, call, name.rpartition(".")[2])
        if name.startswith(_INPUTS):
            return self._input(call, name.removeprefix(_INPUTS))
        if name in (*_SPECS, "tensorflow.ConfigProto", "tensorflow.estimator.RunConfig"):
            return self._settings(name, old, call)
        if name == "tensorflow.estimator.train_and_evaluate":
            self.used.add("train_and_evaluate")
            given = self._given(
                call,
                ("estimator", "train_spec", "eval_spec"),
                {"estimator", "train_spec", "eval_spec"},
                "tf.estimator.train_and_evaluate",
            )
            return f"train_and_evaluate({', '.join(code(given[key]) for key in ('estimator', 'train_spec', 'eval_spec'))})"
        if isinstance(call.func, cst.Attribute) and simple_name(call.func.value) in self._models:
            return self._method(old, call, simple_name(call.func.value), call.func.attr.value)
        return None

    def _settings(self, name: str, old: cst.Call, call: cst.Call) -> str:
        """Returns a dict of the settings that the new script reads, or the call that applies those of a session."""
        if name in _SPECS:
            parameters, kept = _SPECS[name]
            given = self._given(call, parameters, kept, name.replace("tensorflow", "tf", 1))
            if name.endswith("EvalSpec") and "steps" not in (arguments(call, parameters) or {}):
                given["steps"] = cst.Integer("100")  # EvalSpec's default
            self._leave_out(old, given, {"input_fn", "max_steps", "steps"})
            return f"dict({_written(given, {'input_fn', 'max_steps', 'steps'})})"
        if name == "tensorflow.ConfigProto":
            given = self._given(call, (), _SESSION, "tf.ConfigProto") if call.args else {}
            if not given:
                raise UnconvertibleError(
                    call, "tf.ConfigProto", "its fields are set later; estimator-bridge convert config prints what they become"
                )
            self.used.add("configure")
            return f"configure({_written(given, _SESSION)})"
        given = self._given(call, _RUN_CONFIG, set(_RUN_CONFIG), "tf.estimator.RunConfig")
        self._leave_out(old, given, _KEPT_CONFIG)
        return f"dict({_written(given, _KEPT_CONFIG)})"

    def _given(self, call: cst.Call, parameters: tuple[str, ...], kept: set[str], name: str) -> Arguments:
        """Returns the arguments of a call that have a value; raises for those that no fixer knows."""
        given = arguments(call, parameters)
        if given is None:
            raise UnconvertibleError(call, name, "its arguments are not all written out; write them out")
        given = {key: value for key, value in given.items() if code(value) not in _EMPTY}
        hooks = given.get("hooks")
        if hooks is not None and (simple_name(hooks) in self._loggers or self.only_logs(hooks)):
            del given["hooks"]
        unknown = sorted(given.keys() - kept)
        if unknown:
            raise UnconvertibleError(call, f"{name}({unknown[0]}=...)", _NO_FIXER)
        return given

    def _model(self, call: cst.Call) -> str:
        parameters = ("model_fn", "model_dir", "config", "params", "warm_start_from")
        given = self._given(call, parameters, set(parameters[:4]), "tf.estimator.Estimator")
        function = simple_name(given.get("model_fn"))
        if function not in self._classes:
            raise UnconvertibleError(
                call,
                "tf.estimator.Estimator",
                "its model function is not converted; convert that first, then make its class here",
            )
        return f"{self._classes[function]}({_written(given, {'params', 'model_dir', 'config'})})"

    def _canned(self, old: cst.Call, call: cst.Call, name: str) -> str:
        parameters = _CANNED[f"tensorflow.estimator.{name}"]
        kept = {
            "hidden_units",
            "feature_columns",
            "model_dir",
            parameters[3],
            "optimizer",
            "activation_fn",
            "dropout",
            "config",
        }
        given = self._given(call, parameters, kept, f"tf.estimator.{name}")
        written = [_written(given, kept - {"optimizer"})]
        asked = (arguments(old, parameters) or {}).get("optimizer")
        if asked is not None and code(asked) not in ("'Adagrad'", '"Adagrad"'):
            if not isinstance(asked, cst.Call) or not optimizers.is_optimizer(self._script.called(asked)):
                raise UnconvertibleError(
                    call, f"tf.estimator.{name}(optimizer=...)", "it is not one call of tf.train; write it so"
                )
            written.append(f"optimizer={optimizers.optimizer(self._script, asked)}")
        self.used.add(name)
        return f"{name}({', '.join(written)})"

    def _input(self, call: cst.Call, function: str) -> str:
        if function not in ("numpy_input_fn", "pandas_input_fn"):
            raise UnconvertibleError(
                call, f"tf.estimator.inputs.{function}", "there is no fixer for it; make a tf.data.Dataset"
            )
        self.used.add(function)
        return f"{function}({', '.join(_argument(argument) for argument in call.args)})"

    def _method(self, old: cst.Call, call: cst.Call, model: str, method: str) -> str:
        if method not in _METHODS:
            raise UnconvertibleError(
                call, f"{model}.{method}", "a model of Keras has no such method; see the how-to guide on finishing by hand"
            )
        given = self._given(call, _METHODS[method], _KEPT[method], f"Estimator.{method}")
        self.used.add(method)
        self._leave_out(old, given, set(given) - {"name"})
        return f"{method}({model}, {_written(given, set(given) - {'name'})})"

    def _leave_out(self, old: cst.Call, given: Arguments, kept: set[str]) -> None:
        for name in given.keys() - kept:
            message = _LEFT_OUT.get(name, "fit logs by itself, and the model saves at the end and each save_checkpoints_steps")
            self.left_out.append((old, f"{code(old.func)}({name}=...)", message))


def _written(given: Arguments, names: set[str]) -> str:
    return ", ".join(f"{name}={code(value)}" for name, value in given.items() if name in names)


def _argument(argument: cst.Arg) -> str:
    name = f"{argument.keyword.value}=" if argument.keyword is not None else argument.star
    return name + code(argument.value)


def _assignments(module: cst.Module) -> list[tuple[str, cst.BaseExpression]]:
    finder = _Assignments()
    module.visit(finder)
    return finder.found


class _Assignments(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: list[tuple[str, cst.BaseExpression]] = []

    def visit_Assign(self, node: cst.Assign) -> None:
        self.found += [(simple_name(target.target), node.value) for target in node.targets if simple_name(target.target)]
