"""Estimators and their calls: they become models of Keras, and calls of small functions that the new script contains."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

import libcst as cst

from estimator_bridge.compat.source.fixers.hooks import plain_hooks
from estimator_bridge.compat.source.fixers.inputs import takes_settings
from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model import metrics, optimizers
from estimator_bridge.compat.source.fixers.model.classes import GRAPH, LOADER
from estimator_bridge.compat.source.fixers.model.flow import returned_value
from estimator_bridge.compat.source.fixers.model.function.spec_arguments import RUN
from estimator_bridge.compat.source.fixers.model.function.whole_function import BASE, BASES, WITH_HOOKS
from estimator_bridge.compat.source.fixers.script import LOGGERS, TPU, Arguments, Script, arguments, code, nodes, simple_name

_SUPPORT = tuple(Path(__file__).with_name(f"{name}.py.txt") for name in ("support", "decoders", "graph_hooks"))
ESTIMATORS = ("tensorflow.estimator.Estimator", f"{TPU}TPUEstimator")
_PARAMETERS = ("model_fn", "model_dir", "config", "params")
_OF_LEARN = "tensorflow.contrib.learn.RunConfig"
_RUN_CONFIGS = ("tensorflow.estimator.RunConfig", f"{TPU}RunConfig", _OF_LEARN)
_OF_KERAS = "tensorflow.keras.estimator.model_to_estimator"
_INPUTS = "tensorflow.estimator.inputs."
_METHODS: dict[str, tuple[str, ...]] = {
    "train": ("input_fn", "hooks", "steps", "max_steps", "saving_listeners"),
    "evaluate": ("input_fn", "steps", "hooks", "checkpoint_path", "name"),
    "predict": ("input_fn", "predict_keys", "hooks", "checkpoint_path", "yield_single_examples"),
    "export_savedmodel": (
        "export_dir_base",
        "serving_input_receiver_fn",
        "assets_extra",
        "as_text",
        "checkpoint_path",
        "strip_default_attrs",
    ),
    "export_saved_model": ("export_dir_base", "serving_input_receiver_fn", "assets_extra", "as_text", "checkpoint_path"),
    "get_variable_names": (),
    "get_variable_value": ("name",),
}
"""Methods of an Estimator with their parameters, in their order."""
_KEPT = {"train": {"input_fn", "steps", "max_steps", "callbacks"}, "evaluate": {"input_fn", "steps", "name", "checkpoint_path"}, "predict": {"input_fn", "predict_keys", "checkpoint_path", "yield_single_examples"},
         "export_savedmodel": {"export_dir_base", "serving_input_receiver_fn", "strip_default_attrs"}, "export_saved_model": {"export_dir_base", "serving_input_receiver_fn"}, "get_variable_names": set(), "get_variable_value": {"name"}}  # fmt: skip
_EXPORTER = ("name", "serving_input_receiver_fn", "assets_extra", "as_text", "exports_to_keep")
_SPECS: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "tensorflow.estimator.TrainSpec": (("input_fn", "max_steps", "hooks"), {"input_fn", "max_steps", "callbacks"}),
    "tensorflow.estimator.EvalSpec": (
        ("input_fn", "steps", "name", "hooks", "exporters", "start_delay_secs", "throttle_secs"),
        {"input_fn", "steps", "name", "exporters", "start_delay_secs", "throttle_secs"},
    ),
    "tensorflow.estimator.BestExporter": (
        (*_EXPORTER[:2], "event_file_pattern", "compare_fn", *_EXPORTER[2:]),
        {"name", "serving_input_receiver_fn", "event_file_pattern", "compare_fn", "exports_to_keep"},
    ),
    "tensorflow.estimator.FinalExporter": (_EXPORTER[:4], {"name", "serving_input_receiver_fn"}),
    "tensorflow.estimator.LatestExporter": (_EXPORTER, {"name", "serving_input_receiver_fn", "exports_to_keep"}),
}
_MNIST = ("train_dir", "one_hot", "reshape", "validation_size")
_READERS = {
    "tensorflow.examples.tutorials.mnist.input_data.read_data_sets": ("train_dir", "fake_data", "one_hot", "dtype", "reshape", "validation_size", "seed", "source_url"),
    "tensorflow.contrib.learn.datasets.mnist.read_data_sets": ("train_dir", "fake_data", "one_hot", "dtype", "reshape", "validation_size", "seed", "source_url"),
    "tensorflow.contrib.learn.datasets.mnist.load_mnist": ("train_dir",),
    "tensorflow.contrib.learn.datasets.load_dataset": ("name", "size", "test_with_fake_data"),
}  # fmt: skip
"""Readers of MNIST, with their parameters."""
_SERVING = {
    "tensorflow.estimator.export.ServingInputReceiver": ("serving_input", ("features", "receiver_tensors")),
    "tensorflow.estimator.export.build_parsing_serving_input_receiver_fn": (
        "parsing_serving_input",
        ("feature_spec", "default_batch_size"),
    ),
    "tensorflow.estimator.export.build_raw_serving_input_receiver_fn": ("raw_serving_input", ("features",)),
}
"""Functions that make what a server sends, with the function of the new script and its parameters."""
_ADD_METRICS = ("estimator", "metric_fn")
_WITH_METRICS = ("tensorflow.contrib.estimator.add_metrics", "tensorflow.estimator.add_metrics")
_SAME = {
    "tensorflow.train.latest_checkpoint": "latest_checkpoint",
    "tensorflow.contrib.distribute.MirroredStrategy": "mirrored_strategy",
    "tensorflow.contrib.estimator.clip_gradients_by_norm": "clip_gradients_by_norm",
    "tensorflow.contrib.learn.datasets.base.load_csv_with_header": "load_csv_with_header",
    "tensorflow.contrib.training.HParams": "HParams",
    "tensorflow.contrib.training.python.training.hparam.HParams": "HParams",
}
"""Functions and classes that the new script contains, with the same arguments."""
_HEADS: dict[str, tuple[str, ...]] = {
    "Classifier": ("n_classes", "weight_column", "label_vocabulary"), "Regressor": ("label_dimension", "weight_column"),
}  # fmt: skip
_NETWORKS: dict[str, tuple[str, ...]] = {
    "DNN": ("hidden_units", "feature_columns", "model_dir", "HEAD", "optimizer", "activation_fn", "dropout", "input_layer_partitioner", "config", "warm_start_from", "loss_reduction", "batch_norm"),
    "Linear": ("feature_columns", "model_dir", "HEAD", "optimizer", "config", "partitioner", "warm_start_from", "loss_reduction", "sparse_combiner"),
    "DNNLinearCombined": ("model_dir", "linear_feature_columns", "linear_optimizer", "dnn_feature_columns", "dnn_optimizer", "dnn_hidden_units", "dnn_activation_fn", "dnn_dropout", "HEAD", "input_layer_partitioner", "config", "warm_start_from", "loss_reduction", "batch_norm", "linear_sparse_combiner"),
}  # fmt: skip
CANNED = {
    f"tensorflow.estimator.{network}{head}": tuple(name for one in parameters for name in (_HEADS[head] if one == "HEAD" else (one,)))
    for network, parameters in _NETWORKS.items() for head in _HEADS
}  # fmt: skip
"""Canned Estimators with their parameters, in their order. LinearRegressor and its like take no label_vocabulary."""
WITHOUT_FIXER = {"weight_column", "input_layer_partitioner", "partitioner", "warm_start_from", "batch_norm"}
"""Parameters of canned Estimators that the printed classes do not have."""
_DEFAULTS = {
    "DNN": {"optimizer": ("Adagrad", "0.05")},
    "Linear": {"optimizer": ("Ftrl", "0.2")},
    "DNNLinearCombined": {"dnn_optimizer": ("Adagrad", "0.001"), "linear_optimizer": ("Ftrl", "")},
}
"""Optimizers of each network by default, with the learning rate that one has which is given by name; empty if it depends on the columns."""
_SESSION = {
    "allow_soft_placement", "log_device_placement", "intra_op_parallelism_threads", "inter_op_parallelism_threads", "gpu_options.allow_growth",
    "gpu_options.per_process_gpu_memory_fraction", "gpu_options.visible_device_list", "device_count",
}  # fmt: skip
"""Fields of ConfigProto that have a fixer."""
_RUN_CONFIG = (
    "model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs", "session_config",
    "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps",
)  # fmt: skip
FIELDS = frozenset(
    (*_RUN_CONFIG, "cluster_spec", "is_chief", "master", "evaluation_master", "num_ps_replicas", "num_worker_replicas", "service",
     "task_id", "task_type", "global_id_in_cluster", "train_distribute", "eval_distribute", "device_fn", "protocol")
)  # fmt: skip
"""Fields that scripts read of a RunConfig."""
KEPT_FIELDS = {"model_dir", "save_checkpoints_steps", "session_config", "keep_checkpoint_max", "train_distribute"}
"""Fields of RunConfig that the new script reads; the other ones change no value that is trained, but for the seed."""
_LEFT_OUT = {
    "tf_random_seed": "call tf.random.set_seed; other numbers are drawn",
    "name": "evaluations have no folder of their own",
    "eval_distribute": "it evaluates on one device, where a step takes one batch instead of one for each device",
    "start_delay_secs": "it evaluates once, after the training",
    "throttle_secs": "it evaluates once, after the training",
    **dict.fromkeys(("exports_to_keep", "compare_fn", "event_file_pattern"), "it exports once, after the training"),
    "gpu_options.per_process_gpu_memory_fraction": "TensorFlow 2 takes bytes: tf.config.set_logical_device_configuration",
    "strip_default_attrs": "TensorFlow 2 writes them as it needs them",
}
_FOR_TPU = {
    f"{TPU}TPUEstimator": ("use_tpu", "eval_on_tpu", "export_to_tpu"),
    f"{TPU}RunConfig": ("tpu_config", "evaluation_master", "master", "cluster"),
}
"""Parameters that say something of TPUs alone."""
_NOTHING = (f"{TPU}TPUConfig", f"{TPU}TPUClusterResolver")
"""Settings of TPUs."""
_BATCH_SIZES = {"train_batch_size": "train", "eval_batch_size": "eval", "predict_batch_size": "infer"}
"""Parameters of a TPUEstimator, and the modes in which input functions find them in their params."""
ELSEWHERE = "of another module"
"""In place of a function's name: models come from another module, which may keep updates and load initial values."""
VALUES = "values_of"
"""Function of the new script that gives a model the values of a checkpoint for a while."""
UNCHANGED = "unchanged"
"""Function of the new script that gives a model the values back that evaluations change, where the network may change any."""
STOP = "tensorflow.train.StopAtStepHook"
_STRATEGIES = ("train_distribute", "eval_distribute", "experimental_distribute")
_NO_STRATEGY = "the new model trains without it; if it is not None, make the model below the scope of its strategy"
WITH_STRATEGY = "with_strategy"
"""Function of the new script that makes a model which the devices of a strategy train."""
_STRATEGY_MADE = re.compile(r"\.distribute\..*Strategy$")
_SUM = re.compile(
    r"""['"]weighted_sum['"]|\.SUM\b|losses\.\w+\([^)]*['"]sum['"]|\breduction['"]?\s*[=:]\s*(['"]sum|(?!None\b)[A-Za-z_]\w*\s*[,)\n])"""
)
"""Text of a loss that may be a sum, which Estimators do not divide by the devices."""
_MIRRORED = re.compile(r"\.distribute\.(Mirrored|OneDevice)Strategy$")
_NO_TPU = "the new script uses no TPU; see tf.distribute.TPUStrategy"
_NO_FIXER = "there is no fixer for this argument; see the how-to guide on finishing by hand"
_STOPPING = """    before = done

    def save(batch, logs):
        nonlocal before
        step = int(model.optimizer.iterations)
        model.stop_training |= steps is not None and min(before + 1, step) - done >= steps  # TensorFlow 1 asks so, if a step counts several
        before = step
"""
"""Lines of the function that trains, where a step may count several or none."""
_ON_DEVICES = """    if hasattr(model, "train_on_devices"):
        return model.train_on_devices(train, input_fn, steps, max_steps, callbacks)
    check_alone()
"""
_HOOKED = """    import contextlib

    sees = hasattr(getattr(model, "graphs", None), "new_run")
    with model.graphs.new_run("infer", hooks, data) if sees else contextlib.nullcontext():
"""
_STOPPED = """        if sees and model.stop_training:
            break
"""
"""Lines of the function that predicts, where hooks see each batch and may end it."""
_EMPTY = ("None", "False", "[]", "()")
_OWN_EMPTY = {"yield_single_examples": ("True",)}
"""Parameters with other values that say nothing."""


CONVERTED = frozenset(
    (*ESTIMATORS, _OF_KERAS, *_RUN_CONFIGS, *_NOTHING, "tensorflow.estimator.train_and_evaluate", "tensorflow.estimator.inputs.numpy_input_fn",
     "tensorflow.estimator.inputs.pandas_input_fn", *_SAME, *_WITH_METRICS, *_SPECS, *_SERVING, *_READERS, *CANNED)
)  # fmt: skip
"""Functions whose calls are converted, or marked with a reason of their own."""


def support() -> dict[str, str]:
    """Returns the source of each function that new scripts may contain, by its name, in the order of the files."""
    text = "\n\n\n".join(one.read_text().strip() for one in _SUPPORT)
    parts = re.split(r"\n\n\n(?=def |class )", text)
    return {re.findall(r"\w+", part)[1]: part for part in parts}


def needed_functions(used: Iterable[str], spelled: Callable[[str], str] = str) -> list[str]:
    """Returns the sources of functions, and of those that they call.

    Args:
        used: Names of functions.
        spelled: Function that returns the name in the new script.
    """
    sources = support()
    loads = {LOADER, ELSEWHERE}.intersection(used)
    pending, found = {*used, *(["set_initial_values"] if loads else [])} - {ELSEWHERE, UNCHANGED}, set()
    while pending:
        name = pending.pop()
        found.add(name)
        header, _, body = sources[name].partition("\n")
        bases = re.findall(r"\w+", header) if header.startswith("class ") else []
        pending |= {other for other in sources if other in bases or re.search(rf"\b{other}[(.]", body)} - found
    if UNCHANGED in used and found & {"evaluate", "predict"}:
        found.add(UNCHANGED)
    renamed = {name: spelled(name) for name in found if spelled(name) != name}
    texts = [_for_model(name, text, used) for name, text in sources.items() if name in found]
    for name, new in renamed.items():
        texts = [re.sub(rf"(?<![\w.]){name}(?=[(),:.])", new, text) for text in texts]
    return texts


def _for_model(name: str, text: str, used: Iterable[str]) -> str:
    """Returns the source of a function for models that need more than others: settings for input functions, initial values, own steps."""
    mode = {"train": "train", "evaluate": "eval", "predict": "infer"}.get(name)
    line = r"( +)(.* = .*model[.](evaluate|predict_on_batch).*)"
    if VALUES in used and mode not in (None, "train"):
        text = text.replace("):\n", ", checkpoint_path=None):\n", 1)
        text = re.sub(line, rf"\1with {VALUES}(model, checkpoint_path):\n\1    \2", text)
    if UNCHANGED in used and mode not in (None, "train"):
        text = re.sub(line, rf"\1with {UNCHANGED}(model, state):\n\1    \2", text)
        text = text.replace("    data = dataset_of", "    state = {}\n    data = dataset_of", 1)
    if WITH_HOOKS in used and mode is not None:
        text = text.replace("):\n", ", hooks=()):\n", 1)
        text = re.sub(r"model\.(fit|evaluate)\(data, ", r'model.\1(data, **({"hooks": hooks} if hooks else {}), ', text)
        head, loop, tail = text.partition("    for batch in data:\n")
        text = f"{head}{_HOOKED}{textwrap.indent(loop + _STOPPED + tail, '    ')}" if loop else head
    if mode is None:
        return text
    if LOADER in used or ELSEWHERE in used:
        text = text.replace("= dataset_of(input_fn)\n", "= dataset_of(input_fn)\n    set_initial_values(model, data)\n")
    if "batches" in used:
        text = text.replace("dataset_of(input_fn)", f'dataset_of(lambda: batches(model, input_fn, "{mode}"))')
    if WITH_STRATEGY in used and mode == "train":
        text = text.replace("    check_alone()\n", _ON_DEVICES, 1).replace(
            "data.take(steps)", 'data.take(steps * getattr(model, "devices", 1))'
        )
        text = text.replace("int(model.optimizer.iterations)", "int(model.optimizer.iterations.numpy())")
    if {GRAPH, ELSEWHERE, BASE}.intersection(used) and mode == "train":  # updates may count other steps than batches
        text = text.replace(
            "        data = data.take(steps)\n",
            "        data = data.filter(lambda *batch: True)  # has no length: the step ends the training\n",
        )
        text = text.replace(
            "    def save(batch, logs):\n        step = int(model.optimizer.iterations)\n",
            _STOPPING,
        )
    return text


class EstimatorCalls:
    """Finds the Estimators of a script and converts their calls.

    Args:
        script: The script.
        classes: Class of each converted model function, by the function's name; in other modules by its dotted name. It is empty for a
            function that returns such a class.
        elsewhere: Dotted names of the functions of other modules that return an Estimator.
        can_be_copied: True if a copy of each class can train under a strategy.
        hooks_of_graphs: Names of the script's classes of hooks that its models run.
        may_keep: True if model functions may stay, which may read more of a RunConfig than the new script.

    Attributes:
        factories: Functions of the script that return a model function.
        makers: Functions of the script that return an Estimator.
        hooks: Names of the script's classes of hooks that are callbacks now.
        used: Names of the functions that the new script must contain.
        merged: Assignments to fields that are arguments of a call now.
        updates: New source for the dict of each function that ``add_metrics`` takes.
        left_out: Calls, their arguments that the new script does not have, and the consequence.
        human: The same, where somebody has to do something about it.
    """

    def __init__(
        self,
        script: Script,
        classes: Mapping[str, str],
        elsewhere: Collection[str] = (),
        can_be_copied: bool = False,
        hooks_of_graphs: frozenset[str] = frozenset(),
        may_keep: bool = False,
    ) -> None:
        self._script = script
        self.hooks_of_graphs = hooks_of_graphs
        self._fields = {*KEPT_FIELDS, *_RUN_CONFIG} if may_keep else KEPT_FIELDS
        self._classes = classes
        self._elsewhere = elsewhere
        self._assigned = assigned = _assignments(script.module)
        self._methods = {name.rpartition(".")[2]: written for name, written in classes.items() if written in BASES}
        self._models: set[str] = set()
        self.makers: set[str] = set()
        self._find_models(assigned)
        self._configs: set[str] = set()
        given = [one for node in nodes(script.module, cst.Call) if script.called(node) in ESTIMATORS for one in node.children]
        taken = [one.value for one in given if isinstance(one, cst.Arg) and one.keyword and one.keyword.value == "config"]
        self._configs = {name for name, value in assigned if self.is_config(value)} | {*map(simple_name, taken)} - {""}
        self._optimizers = {name for name, value in assigned if optimizers.is_optimizer(script.called(value))}
        self._loggers = {name for name, value in assigned if script.called(value) in LOGGERS}
        self.hooks = set() if hooks_of_graphs else plain_hooks(script)
        self._callbacks = {
            name for name, value in assigned if isinstance(value, cst.Call) and simple_name(value.func) in self.hooks
        }
        self._loggers |= {name for name, value in assigned if self.only_logs(value)}
        canned = [
            node for node in nodes(script.module, cst.Call) if script.called(node) in CANNED and isinstance(node, cst.Call)
        ]
        passed = {simple_name(argument.value) for node in canned for argument in node.args}
        self._made_before = {
            value
            for name, value in assigned
            if name in passed & self._optimizers and optimizers.is_optimizer(script.called(value))
        }
        self._taken = {
            name
            for node in nodes(script.module, cst.FunctionDef, cst.ClassDef, cst.Param, cst.AssignTarget, cst.For, cst.AsName)
            for name in _bound(node)
        } | {
            simple_name(one.name)
            for one in nodes(script.module, cst.ImportAlias)
            if isinstance(one, cst.ImportAlias) and one.asname is None
        }
        own = {one.name.value for one in nodes(script.module, cst.ClassDef) if isinstance(one, cst.ClassDef)}
        objects = {name for name, value in assigned if isinstance(value, cst.Call) and simple_name(value.func) in own}
        self._objects = objects - {""}
        functions = [one for one in nodes(script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef)]
        returned = [(one.name.value, simple_name(returned_value(one.body.body[-1]))) for one in functions if one.body.body]
        names = {name for name, _ in returned}
        self.factories = {
            name for name, value in returned if (value in classes and value in names) or f"{name}.{value}" in classes
        }
        self._parameters = [(one.name.value, tuple(each.name.value for each in one.params.params)) for one in functions]
        self._arguments = {name for _, names in self._parameters for name in names}
        self._keeps_strategy = can_be_copied and self._has_strategy(names)
        self._set_later = _set_later(script, assigned)
        self.merged: set[cst.Assign] = set()
        self.updates: dict[cst.CSTNode, str] = {}
        self._makers_of: dict[str, Callable[[str, cst.Call, cst.Call], str]] = {
            **dict.fromkeys(ESTIMATORS, self._model),
            **dict.fromkeys(_READERS, self._mnist),
            **dict.fromkeys(CANNED, self._canned),
            **dict.fromkeys(_SAME, self._same),
            **dict.fromkeys(_WITH_METRICS, self._with_metrics),
            **dict.fromkeys((*_SPECS, *_SERVING, "tensorflow.ConfigProto", *_RUN_CONFIGS), self._settings),
            **dict.fromkeys(_NOTHING, self._nothing),
            _OF_KERAS: self._of_keras,
            "tensorflow.estimator.train_and_evaluate": self._train_and_evaluate,
        }
        self._measured: dict[str, list[metrics.Metric] | UnconvertibleError] = {}
        for node in nodes(script.module, cst.Call):
            if script.called(node) in _WITH_METRICS and isinstance(node, cst.Call):
                self._read_metrics((arguments(node, _ADD_METRICS) or {}).get("metric_fn"))
        self.used: set[str] = set()
        self.human: list[tuple[cst.Call, str, str]] = []
        self.left_out: list[tuple[cst.Call, str, str]] = []

    def _has_strategy(self, functions: set[str]) -> bool:
        """Returns True if the script gives Estimators of its own functions a strategy that copies their models to devices."""
        calls = [node for node in nodes(self._script.module, cst.Call) if isinstance(node, cst.Call)]
        made = [(self._script.called(node), node) for node in calls]
        given = [one.keyword.value for name, node in made if name in _RUN_CONFIGS for one in node.args if one.keyword]
        names = {name for name, _ in made}
        models = [
            self._bound_arguments((arguments(node, _PARAMETERS) or {}).get("model_fn"))[0]
            for name, node in made
            if name in ESTIMATORS
        ]
        return (
            "train_distribute" in given
            and names.isdisjoint({*ESTIMATORS[1:], _OF_KERAS, *CANNED})
            and all(_MIRRORED.search(name) for name in names if _STRATEGY_MADE.search(name))
            and bool(models)
            and all(simple_name(one) in functions for one in models)
            and not _SUM.search(self._script.module.code)
        )

    def _use(self, name: str) -> str:
        """Returns the name of a function that the new script must contain."""
        self.used.add(name)
        return self.spelled(name)

    def spelled(self, name: str) -> str:
        """Returns the name in the new script of a function that it contains: another one if the script has that name."""
        return f"keras_{name}" if name in self._taken else name

    def _is_estimator(self, value: cst.CSTNode) -> bool:
        if isinstance(value, cst.IfExp):
            return self._is_estimator(value.body) and self._is_estimator(value.orelse)
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "train":
            return self._is_estimator(value.func.value)  # train returns it
        made = self._script.called(value) in (*ESTIMATORS, _OF_KERAS, *_WITH_METRICS, *CANNED)
        own = (
            code(value.func).removeprefix("self.") in self.makers
            or self._script.name(value.func).lstrip(".") in self._elsewhere
            if isinstance(value, cst.Call)
            else code(value) in self._models
        )
        return made or own

    def _find_models(self, assigned: list[tuple[str, cst.BaseExpression]]) -> None:
        """Finds the names and attributes that are Estimators, and the functions that return them, those of other functions too."""
        functions = [one for one in nodes(self._script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef)]
        calls: dict[str, list[cst.Call]] = {}
        for node in nodes(self._script.module, cst.Call):
            assert isinstance(node, cst.Call)
            calls.setdefault(simple_name(node.func), []).append(node)
        known = -1
        while known < len(self._models) + len(self.makers):
            known = len(self._models) + len(self.makers)
            self._models.update(name for name, value in assigned if self._is_estimator(value))
            for one in functions:
                returned = [node.value for node in nodes(one.body, cst.Return) if isinstance(node, cst.Return) and node.value]
                if any(self._is_estimator(value) for value in returned):
                    self.makers.add(one.name.value)
                names = [parameter.name.value for parameter in one.params.params]
                for call in calls.get(one.name.value, ()):
                    given = arguments(call, names) or {}
                    self._models.update(name for name, value in given.items() if self._is_estimator(value))

    def is_config(self, value: cst.BaseExpression) -> bool:
        """Returns True for a RunConfig: a name of one, or an expression that makes one."""
        made = value.func if isinstance(value, cst.Call) else None
        if isinstance(made, cst.Attribute) and made.attr.value == "replace":
            return self.is_config(made.value)
        return simple_name(value) in self._configs or self._script.called(value) in _RUN_CONFIGS

    def only_logs(self, value: cst.CSTNode) -> bool:
        """Returns True for a hook that shows values and changes nothing, and for a list of such hooks."""
        if isinstance(value, cst.List | cst.Tuple):
            return bool(value.elements) and all(self._logs(element.value) for element in value.elements)
        return self._script.called(value) in LOGGERS

    def _is_plain_hook(self, value: cst.BaseExpression) -> bool:
        return simple_name(value.func if isinstance(value, cst.Call) else value) in self.hooks | self._callbacks

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
        if name in self._makers_of:
            return self._makers_of[name](name, old, call)
        if old in self._made_before:
            return optimizers.optimizer(self._script, old)
        if name.startswith(_INPUTS):
            return self._input(call, name.removeprefix(_INPUTS))
        if not isinstance(old.func, cst.Attribute) or not isinstance(call.func, cst.Attribute):
            return None
        if old.func.attr.value == "replace" and self.is_config(old.func.value):
            given = self._given(call, (), set(_RUN_CONFIG), "RunConfig.replace")
            self._leave_out(old, given, KEPT_FIELDS)
            return f"dict({code(call.func.value)}, {_written(given, self._fields)})".replace("dict(dict(), ", "dict(")
        if self._has_methods(old, old.func):
            return self._method(old, call, code(call.func.value), call.func.attr.value)
        return None

    def _same(self, name: str, old: cst.Call, call: cst.Call) -> str:
        return f"{self._use(_SAME[name])}({', '.join(_argument(argument) for argument in call.args)})"

    def _nothing(self, name: str, old: cst.Call, call: cst.Call) -> str:
        self.left_out.append((old, code(old.func), _NO_TPU))
        return "None"

    def _of_keras(self, name: str, old: cst.Call, call: cst.Call) -> str:
        parameters = ("keras_model", "keras_model_path", "custom_objects", "model_dir", "config")
        given = self._given(call, parameters, {"keras_model", "model_dir", "config"}, "model_to_estimator")
        return f"{self._use('model_to_estimator')}({_written(given, set(parameters))})"

    def _train_and_evaluate(self, name: str, old: cst.Call, call: cst.Call) -> str:
        parameters = ("estimator", "train_spec", "eval_spec")
        given = self._given(call, parameters, {*parameters}, "tf.estimator.train_and_evaluate")
        return f"{self._use('train_and_evaluate')}({', '.join(code(given[key]) for key in parameters)})"

    def _has_methods(self, call: cst.Call, function: cst.Attribute) -> bool:
        """Returns True for a call of an Estimator's method; one with an input function is no other object's."""
        given = {argument.keyword.value for argument in call.args if argument.keyword is not None}
        return self._is_estimator(function.value) or (
            function.attr.value in ("train", "evaluate", "predict") and "input_fn" in given
        )

    def _settings(self, name: str, old: cst.Call, call: cst.Call) -> str:
        """Returns a dict of the settings that the new script reads, or the call that applies those of a session."""
        if name in _SPECS:
            parameters, kept = _SPECS[name]
            given = self._given(call, parameters, kept, name.replace("tensorflow", "tf", 1))
            self._read_input((arguments(old, parameters) or {}).get("input_fn"))
            if name.endswith("EvalSpec") and "steps" not in (arguments(call, parameters) or {}):
                given["steps"] = cst.Integer("100")  # EvalSpec's default
            if name.endswith("BestExporter"):
                given.setdefault("name", cst.SimpleString('"best_exporter"'))
                self.left_out.append(
                    (old, "tf.estimator.BestExporter", "earlier exports: it evaluates and exports once, after the training")
                )
            written = kept - _LEFT_OUT.keys() | ({"name"} if name.endswith("Exporter") else given.keys() & {"hooks"})
            self._leave_out(old, given, written)
            return f"dict({_written(given, written)})"
        if name in _SERVING:
            function, parameters = _SERVING[name]
            given = self._given(call, parameters, set(parameters), name.replace("tensorflow", "tf", 1))
            return f"{self._use(function)}({_written(given, set(parameters))})"
        if name == "tensorflow.ConfigProto":
            given = self._session(old, call)
            self._leave_out(old, given, _SESSION - {"gpu_options.per_process_gpu_memory_fraction"})
            fields = {field.rpartition(".")[2]: value for field, value in given.items()}
            return f"{self._use('configure')}({_written(fields, fields.keys() - {'per_process_gpu_memory_fraction'})})"
        for_tpu = _FOR_TPU.get(name, ())
        by_place = for_tpu or (() if name == _OF_LEARN else _RUN_CONFIG)  # contrib.learn's has another order
        stay = _STRATEGIES[2 * self._keeps_strategy :]
        strategies = [one for one in call.args if one.keyword is not None and one.keyword.value in stay]
        self.human += [
            (old, f"tf.estimator.RunConfig({one.keyword.value}=...)", _NO_STRATEGY) for one in strategies if one.keyword
        ]
        call = call.with_changes(args=[one for one in call.args if one not in strategies])
        given = self._given(call, by_place, {*_RUN_CONFIG, *_STRATEGIES, *for_tpu}, "tf.estimator.RunConfig")
        self._leave_out(old, given, KEPT_FIELDS)
        return f"dict({_written(given, self._fields)})"

    def _session(self, old: cst.Call, call: cst.Call) -> Arguments:
        """Returns the fields of a ConfigProto, among them those that are set later."""
        given = self._given(call, (), {*_SESSION, "gpu_options"}, "tf.ConfigProto")
        options = given.pop("gpu_options", None)
        if options is not None:
            fields = (
                arguments(options, ())
                if self._script.called(options) == "tensorflow.GPUOptions" and isinstance(options, cst.Call)
                else None
            )
            given |= {f"gpu_options.{field}": value for field, value in (fields or {"?": options}).items()}
        given |= {field: node.value for field, node in self._set_later.get(old, {}).items()}
        unknown = sorted(given.keys() - _SESSION)
        if unknown or not _without_gpus(given.get("device_count")):
            message = "there is no fixer for this field; estimator-bridge convert config prints what it becomes"
            raise UnconvertibleError(call, f"tf.ConfigProto({unknown[0] if unknown else 'device_count'}=...)", message)
        self.merged.update(self._set_later.get(old, {}).values())
        return given

    def _given(self, call: cst.Call, parameters: tuple[str, ...], kept: set[str], name: str) -> Arguments:
        """Returns the arguments of a call that have a value; raises for those that no fixer knows."""
        given = arguments(call, parameters)
        if given is None:
            raise UnconvertibleError(call, name, "its arguments are not all written out; write them out")
        given = {key: value for key, value in given.items() if code(value) not in _OWN_EMPTY.get(key, _EMPTY)}
        if "hooks" in given and {"steps", "max_steps"} <= kept:
            given = self._with_steps(given)
        hooks = given.get("hooks")
        if hooks is not None and (simple_name(hooks) in self._loggers or self.only_logs(hooks)):
            del given["hooks"]
        elif "callbacks" in kept and isinstance(hooks, cst.List):
            rest = [one.value for one in hooks.elements if not self._logs(one.value)]
            if all(self._is_plain_hook(one) for one in rest):
                del given["hooks"]
                given["callbacks"] = cst.List([cst.Element(one) for one in rest])
        if "hooks" in given and "input_fn" in kept and self._are_run(given["hooks"]):
            kept = kept | {"hooks"}
        unknown = sorted(given.keys() - kept)
        if unknown:
            raise UnconvertibleError(call, f"{name}({unknown[0]}=...)", _NO_FIXER)
        return given

    def _are_run(self, hooks: cst.BaseExpression) -> bool:
        """Returns True for hooks that the script's models of graphs run."""
        if isinstance(hooks, cst.List | cst.Tuple):
            return all(self._are_run(one.value) for one in hooks.elements)
        if isinstance(hooks, cst.Name):
            given = [value for name, value in self._assigned if name == hooks.value]
            changing = [code(one.func) for one in nodes(self._script.module, cst.Call) if isinstance(one, cst.Call)]
            if any(one in (f"{hooks.value}.append", f"{hooks.value}.extend", f"{hooks.value}.insert") for one in changing):
                return False
            return bool(given) and all(not isinstance(one, cst.Name) and self._are_run(one) for one in given)
        return isinstance(hooks, cst.Call) and (
            simple_name(hooks.func) in self.hooks_of_graphs or self._script.called(hooks) in RUN
        )

    def _with_steps(self, given: Arguments) -> Arguments:
        """Returns the arguments of a training with the number of steps that a StopAtStepHook among its hooks has."""
        hooks = given["hooks"]
        if not isinstance(hooks, cst.List) or given.keys() & {"steps", "max_steps"}:
            return given
        rest, steps = list[cst.BaseElement](), dict[str, cst.BaseExpression]()
        for one in hooks.elements:
            made = one.value
            stops = (
                arguments(made, ("num_steps", "last_step"))
                if self._script.called(made) == STOP and isinstance(made, cst.Call)
                else None
            )
            if stops is None:
                rest.append(one)
            else:
                steps |= {
                    {"num_steps": "steps", "last_step": "max_steps"}.get(name, name): value for name, value in stops.items()
                }
        if len(steps) != 1 or not steps.keys() <= {"steps", "max_steps"}:
            return given
        others = {"hooks": cst.List(rest)} if rest else {}
        return {key: value for key, value in given.items() if key != "hooks"} | others | steps

    def _model(self, name: str, old: cst.Call, call: cst.Call) -> str:
        for_tpu = _FOR_TPU.get(name, ())
        parameters = (*_PARAMETERS, *(for_tpu or ("warm_start_from",)))
        given = self._given(call, parameters, {*_PARAMETERS, *for_tpu, *_BATCH_SIZES}, "tf.estimator.Estimator")
        self._leave_out(old, given, {*_PARAMETERS, *_BATCH_SIZES})
        written, bound = self._class_of(old, given)
        arguments_of_class = [bound, _written(given, {"params", "model_dir", "config"})]
        if self._keeps_strategy:
            written, arguments_of_class = self._use(WITH_STRATEGY), [written, *arguments_of_class]
        text = f"{written}({', '.join(filter(None, arguments_of_class))})"
        sizes = [f"{mode}={code(given[parameter])}" for parameter, mode in _BATCH_SIZES.items() if parameter in given]
        if not sizes:
            return text
        self._use("batches")
        return f"{self._use('with_batch_sizes')}({text}, {', '.join(sizes)})"

    def _class_of(self, old: cst.Call, given: Arguments) -> tuple[str, str]:
        """Returns the class of the model function that a call gives to an Estimator, and the arguments that are bound to it."""
        function = (arguments(old, (*_PARAMETERS, "")) or {}).get("model_fn")
        function, bound = self._bound_arguments(function)
        name = "" if function is None else self._script.name(function).lstrip(".") or self._behind_star(simple_name(function))
        made = [value for target, value in self._assigned if target == simple_name(function)] if name else [function]
        if made and all(isinstance(one, cst.Call) and (self._is_factory(one.func) or self._is_bound(one)) for one in made):
            return code(given["model_fn"]), ""
        if function is not None and not self._classes.get(name) and self._gives_class(function):
            return code(given["model_fn"]), ""
        if function is not None and not self._classes.get(name) and self._is_method(function):
            base = max(self._methods.values(), key=BASES.index)
            return self._use(WITH_HOOKS if self.hooks_of_graphs else base), f"model_fn={code(given['model_fn'])}"
        if not self._classes.get(name) or function is None:
            message = "its model function is not converted; convert that first, then make its class here"
            raise UnconvertibleError(old, "tf.estimator.Estimator", message)
        written, short = self._classes[name], name.rpartition(".")[2]
        if isinstance(function, cst.Attribute):
            written = code(function.with_changes(attr=cst.Name(written)))
        elif simple_name(function) not in ("", short):  # it is imported under a name of its own
            written = code(function)
        return written, bound

    def _is_method(self, value: cst.BaseExpression) -> bool:
        """Returns True for a method that stays a model function, and for a name of such methods."""
        if isinstance(value, cst.Attribute):
            made = [
                each for target, each in self._assigned if target == simple_name(value.value) and isinstance(each, cst.Call)
            ]
            return value.attr.value in self._methods and all(self._may_keep(each, value.attr.value) for each in made)
        given = [each for target, each in self._assigned if target == simple_name(value)]
        return bool(given) and all(isinstance(each, cst.Attribute) and self._is_method(each) for each in given)

    def _may_keep(self, made: cst.Call, method: str) -> bool:
        """Returns False for an object whose class is not converted, or whose method does not stay a model function."""
        name, own = self._script.name(made.func), simple_name(made.func)
        if name:
            return not self._script.may_make_layers(name, only_unknown=True)
        owners = [one for one in self._script.module.body if isinstance(one, cst.ClassDef) and one.name.value == own]
        has_own = any(
            isinstance(one, cst.FunctionDef) and one.name.value == method for each in owners for one in each.body.body
        )
        return not has_own or f"{own}.{method}" in self._classes

    def class_named(self, value: cst.BaseExpression) -> str:
        """Returns the class of a model function where its name stands as a value; empty for all else, and for names of arguments."""
        if not isinstance(value, cst.Name | cst.Attribute) or simple_name(value) in self._arguments:
            return ""
        imported = self._script.name(value).lstrip(".")
        own = {one.name.value for one in self._script.module.body if isinstance(one, cst.FunctionDef)}
        own -= {target for target, _ in self._assigned}  # a variable may have the name, too
        written = self._classes.get(imported or (simple_name(value) if simple_name(value) in own else ""), "")
        return code(value.with_changes(attr=cst.Name(written))) if written and isinstance(value, cst.Attribute) else written

    def _gives_class(self, value: cst.BaseExpression) -> bool:
        """Returns True for a value that is a class of a model function, whichever of several it is."""
        if self.class_named(value):
            return True
        if isinstance(value, cst.IfExp):
            return self._gives_class(value.body) and self._gives_class(value.orelse)
        name = value.value if isinstance(value, cst.Subscript) else value
        given = [each for target, each in self._assigned if target == simple_name(name)] if simple_name(name) else []
        if isinstance(value, cst.Subscript):
            every = [one for each in given for one in (each.elements if isinstance(each, cst.Dict) else (each,))]
            return bool(every) and all(isinstance(one, cst.DictElement) and self._gives_class(one.value) for one in every)
        return (
            bool(given)
            and not any(simple_name(each) == simple_name(name) for each in given)
            and all(map(self._gives_class, given))
        )

    def _is_bound(self, call: cst.Call) -> bool:
        """Returns True for ``functools.partial`` of a model function of this script, whose class takes its place."""
        return self._script.called(call) == "functools.partial" and bool(self._classes.get(simple_name(call.args[0].value)))

    def _behind_star(self, name: str) -> str:
        """Returns the dotted name of a model function that ``from module import *`` gives the script; other names as they are."""
        lines = [one for one in nodes(self._script.module, cst.ImportFrom) if isinstance(one, cst.ImportFrom)]
        modules = [code(one.module) for one in lines if isinstance(one.names, cst.ImportStar) and one.module is not None]
        found = [f"{module}.{name}" for module in modules if self._classes.get(f"{module}.{name}")]
        return found[-1] if found and not self._classes.get(name) and name not in self._taken else name

    def _bound_arguments(self, function: cst.BaseExpression | None) -> tuple[cst.BaseExpression | None, str]:
        """Returns a model function, and the arguments that ``functools.partial`` or a lambda gives it beside those of an Estimator."""
        call = function.body if isinstance(function, cst.Lambda) else function
        if not isinstance(call, cst.Call):
            return function, ""
        if isinstance(function, cst.Lambda):
            names = [one.name.value for one in function.params.params]
            parameters = [one for name, one in self._parameters if name == simple_name(call.func)]
            given = arguments(call, parameters[0] if len(parameters) == 1 else ())
            own = {name: value for name, value in (given or {}).items() if name not in names}
            passed = all(code(value) == name for name, value in (given or {}).items() if name in names)
            is_plain = given is not None and passed and not any(_names(value) & {*names} for value in own.values())
            return (call.func, _written(own, {*own})) if is_plain else (function, "")
        if self._script.called(call) != "functools.partial" or any(one.star for one in call.args):
            return function, ""
        return call.args[0].value, ", ".join(map(_argument, call.args[1:]))

    def _is_factory(self, function: cst.BaseExpression) -> bool:
        """Returns True for a function, of this or of another module, that returns what was a model function."""
        imported = self._script.name(function).lstrip(".")
        owner = simple_name(function.value) if isinstance(function, cst.Attribute) else ""
        of_object = owner == "self" or owner in self._objects
        name = cst.ensure_type(function, cst.Attribute).attr.value if of_object else simple_name(function)
        return name in self.factories or self._classes.get(imported) == ""

    def _read_metrics(self, asked: cst.BaseExpression | None) -> None:
        """Reads a function of metrics: one of the script, or one that such a function returns."""
        name = simple_name(asked.func if isinstance(asked, cst.Call) else asked)
        found = [
            one
            for one in nodes(self._script.module, cst.FunctionDef)
            if isinstance(one, cst.FunctionDef) and one.name.value == name
        ]
        if found and isinstance(asked, cst.Call):
            last = code(found[0].body.body[-1]).strip()
            found = [
                one for one in found[0].body.body if isinstance(one, cst.FunctionDef) and last == f"return {one.name.value}"
            ]
        try:
            if asked is not None and len(found) == 1:
                measured, of_dict = metrics.added(self._script, found[0])
                values = {one.name: one.update.replace("sample_weight=", "") for one in of_dict}
                self.updates[measured] = "{" + ", ".join(f'"{key}": ({value},)' for key, value in values.items()) + "}"
                self._measured[code(asked)] = of_dict
        except UnconvertibleError as reason:
            self._measured[code(asked or cst.Name(name))] = reason

    def _with_metrics(self, name: str, old: cst.Call, call: cst.Call) -> str:
        given = self._given(call, _ADD_METRICS, {*_ADD_METRICS}, "add_metrics")
        found = self._measured.get(code(given["metric_fn"]))
        if found is None:
            raise UnconvertibleError(call, "add_metrics", "its function is none of this file; add Keras metrics to the model")
        if isinstance(found, UnconvertibleError):
            raise found
        made = ", ".join(f'"{one.name}": {one.made}' for one in found)
        return f"{self._use('add_metrics')}({code(given['estimator'])}, {code(given['metric_fn'])}, {{{made}}})"

    def _mnist(self, name: str, old: cst.Call, call: cst.Call) -> str:
        given = self._given(call, _READERS[name], {*_MNIST, "seed", "source_url", "name"}, name.replace("tensorflow", "tf", 1))
        if code(given.pop("name", cst.SimpleString('"mnist"'))).strip("'\"") != "mnist":
            raise UnconvertibleError(call, "tf.contrib.learn.datasets.load_dataset", "only mnist is converted; read the files")
        return f"{self._use('read_data_sets')}({_written(given, set(_MNIST))})"

    def _canned(self, name: str, old: cst.Call, call: cst.Call) -> str:
        name = name.rpartition(".")[2]
        parameters = CANNED[f"tensorflow.estimator.{name}"]
        given = self._given(call, parameters, set(parameters) - WITHOUT_FIXER, f"tf.estimator.{name}")
        if "loss_reduction" in given:
            given["loss_reduction"] = self._reduction(call, given["loss_reduction"])
        defaults = _DEFAULTS[re.sub("Classifier$|Regressor$", "", name)]
        written = [_written(given, given.keys() - defaults.keys())]
        asked = arguments(old, parameters) or {}
        for parameter, (default, rate) in defaults.items():
            named = code(asked[parameter]).strip("'\"") if parameter in given else default
            text = default if named == default else self._optimizer(asked[parameter], rate)
            if text == "":
                what = f"tf.estimator.{name}({parameter}=...)"
                raise UnconvertibleError(call, what, "it is not one call of tf.train, or a name of one; write it so")
            if text != default:
                written.append(f"{parameter}={text}")
        return f"{self._use(name)}({', '.join(written)})"

    def _reduction(self, call: cst.Call, asked: cst.BaseExpression) -> cst.SimpleString:
        """Returns the name of a reduction; those to a mean are one where no rows are weighted."""
        names = {"SUM": "sum", **dict.fromkeys(("MEAN", "SUM_OVER_BATCH_SIZE", "SUM_OVER_NONZERO_WEIGHTS"), "mean")}
        name = names.get(code(asked).rpartition("Reduction.")[2])
        if name is None:
            raise UnconvertibleError(
                call, f"{code(call.func)}(loss_reduction=...)", "it is no sum and no mean; write train_step"
            )
        return cst.SimpleString(f'"{name}"')

    def _optimizer(self, asked: cst.BaseExpression, rate: str) -> str:
        """Returns the optimizer of a canned Estimator; empty if there is none of Keras for it."""
        if isinstance(asked, cst.SimpleString):
            return optimizers.by_name(str(asked.evaluated_value), rate)
        if isinstance(asked, cst.Call) and optimizers.is_optimizer(self._script.called(asked)):
            return optimizers.optimizer(self._script, asked)
        return code(asked) if simple_name(asked) in self._optimizers else ""

    def _input(self, call: cst.Call, function: str) -> str:
        if function not in ("numpy_input_fn", "pandas_input_fn"):
            raise UnconvertibleError(
                call, f"tf.estimator.inputs.{function}", "there is no fixer for it; make a tf.data.Dataset"
            )
        return f"{self._use(function)}({', '.join(_argument(argument) for argument in call.args)})"

    def _method(self, old: cst.Call, call: cst.Call, model: str, method: str) -> str:
        if method not in _METHODS:
            raise UnconvertibleError(
                call, f"{model}.{method}", "a model of Keras has no such method; see the how-to guide on finishing by hand"
            )
        given = self._given(call, _METHODS[method], _KEPT[method], f"Estimator.{method}")
        self._read_input((arguments(old, _METHODS[method]) or {}).get("input_fn"))
        function = "export_saved_model" if method == "export_savedmodel" else method
        written = set(given) - ({"strip_default_attrs"} if method == "get_variable_value" else {"name", "strip_default_attrs"})
        if method.startswith("get_variable_"):
            message = "what the optimizer keeps, and the values of a model that was neither trained nor called before"
            self.left_out.append((old, f"Estimator.{method}", message))
        if "checkpoint_path" in given:
            self._use(VALUES)
        self._leave_out(old, given, written)
        return f"{self._use(function)}({', '.join(filter(None, (model, _written(given, written))))})"

    def _read_input(self, function: cst.BaseExpression | None) -> None:
        """Notes if an input function takes the mode, the params or the config."""
        if function is not None and takes_settings(self._script, function, self._assigned):
            self._use("batches")

    def _leave_out(self, old: cst.Call, given: Arguments, kept: set[str]) -> None:
        for name in given.keys() - kept:
            message = (
                _NO_TPU
                if any(name in one for one in _FOR_TPU.values())
                else _LEFT_OUT.get(name, "fit logs by itself, and the model saves at the end and each save_checkpoints_steps")
            )
            self.left_out.append((old, f"{code(old.func)}({name}=...)", message))


def _names(node: cst.CSTNode) -> set[str]:
    return {one.value for one in nodes(node, cst.Name) if isinstance(one, cst.Name)}


def _written(given: Arguments, names: set[str]) -> str:
    return ", ".join(f"{name}={code(value)}" for name, value in given.items() if name in names)


def _without_gpus(devices: cst.BaseExpression | None) -> bool:
    """Returns True for numbers of devices that only hide GPUs; the number of CPUs changes nothing that is computed."""
    entries = [one for one in devices.elements if isinstance(one, cst.DictElement)] if isinstance(devices, cst.Dict) else []
    counts = {code(one.key).strip("'\""): code(one.value) for one in entries}
    return devices is None or (bool(counts) and counts.keys() <= {"CPU", "GPU"} and counts.get("GPU", "0") == "0")


def _argument(argument: cst.Arg) -> str:
    name = f"{argument.keyword.value}=" if argument.keyword is not None else argument.star
    return name + code(argument.value)


def _set_later(
    script: Script, assigned: list[tuple[str, cst.BaseExpression]]
) -> dict[cst.BaseExpression, dict[str, cst.Assign]]:
    """Returns the assignments to fields of a ConfigProto for each call that makes one."""
    configs = {name: value for name, value in assigned if script.called(value) == "tensorflow.ConfigProto"}
    of_others = {
        (one.name.value, node)
        for function in nodes(script.module, cst.FunctionDef)
        for one in nodes(cst.ensure_type(function, cst.FunctionDef).params, cst.Param)
        if isinstance(one, cst.Param)
        for node in nodes(function, cst.Assign)
    }
    found: dict[cst.BaseExpression, dict[str, cst.Assign]] = {}
    for node in nodes(script.module, cst.Assign):
        assert isinstance(node, cst.Assign)
        name, _, field = code(node.targets[0].target).partition(".")
        if field and name in configs and len(node.targets) == 1 and (name, node) not in of_others:
            found.setdefault(configs[name], {})[field] = node
    return found


def _bound(node: cst.CSTNode) -> Iterator[str]:
    """Yields the names that a definition, a parameter, an assignment or a loop binds."""
    for part in (getattr(node, "name", None), getattr(node, "target", None)):
        every = nodes(part, cst.Name) if isinstance(part, cst.Tuple | cst.List) else [part]
        yield from filter(None, map(simple_name, every))


def _assignments(module: cst.Module) -> list[tuple[str, cst.BaseExpression]]:
    finder = _Assignments()
    module.visit(finder)
    return finder.found


class _Assignments(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: list[tuple[str, cst.BaseExpression]] = []

    def visit_Assign(self, node: cst.Assign) -> None:
        self.found += [
            (code(target.target), node.value) for target in node.targets if isinstance(target.target, cst.Name | cst.Attribute)
        ]
