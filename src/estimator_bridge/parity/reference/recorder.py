"""Records a script on its original TensorFlow 1.12 to 1.15: ``PYTHON recorder.py JSON``.

This file runs by another interpreter, from Python 3.6 on, and imports nothing but the standard library, NumPy and that TensorFlow. It
writes the trace that ``recording/trace.py`` describes, in the same format as the legacy side does.
"""

import ast
import atexit
import functools
import glob
import inspect
import json
import linecache
import os
import random
import re
import runpy
import shutil
import signal
import sys
import threading
import traceback
import types
import weakref
import zlib
from collections import Counter, defaultdict
from typing import Any, Callable, Dict, Iterator, List, Optional

import numpy as np
import tensorflow as tf

if not tf.__version__.startswith(("1.12.", "1.13.", "1.14.", "1.15.")):
    sys.exit("The reference is TensorFlow 1.12 to 1.15, and this interpreter has TensorFlow " + tf.__version__)

from tensorflow.python.framework import random_seed
from tensorflow.python.ops import control_flow_ops
from tensorflow.python.util import nest

SEED = 20171101
MAX_PREDICTIONS = 1000
LOOK_EVERY, REST = 50, 50000000  # batches from one look at the disk to the next, and bytes that stay free
MULTIPLIER = 6364136223846793005
STATEFUL_RANDOM = (
    *("FractionalAvgPool", "FractionalMaxPool", "Multinomial", "ParameterizedTruncatedNormal", "RandomCrop", "RandomGamma"),
    *("RandomPoisson", "RandomPoissonV2", "RandomShuffle", "RandomStandardNormal", "RandomUniform", "RandomUniformInt"),
    *("RngReadAndSkip", "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "TruncatedNormal"),
    *("AllCandidateSampler", "FixedUnigramCandidateSampler", "LearnedUnigramCandidateSampler", "LogUniformCandidateSampler"),
    *("ThreadUnsafeUnigramCandidateSampler", "UniformCandidateSampler"),
    *("StatefulRandomBinomial", "StatefulStandardNormal", "StatefulStandardNormalV2", "StatefulTruncatedNormal"),
    *("StatefulUniform", "StatefulUniformFullInt", "StatefulUniformInt"),
)

batches: Dict[Any, Any] = {}  # graph -> tensors of its batch, until the hook of its call has them
specs: Dict[Any, Any] = {}  # graph -> EstimatorSpec of its training, until the hook of its call has it
savers: Dict[Any, List[Any]] = defaultdict(list)  # graph -> hooks that save checkpoints
recording = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "recording")
ordering, step_limit = (runpy.run_path(os.path.join(recording, name)) for name in ("ordering.py", "step_limit.py"))


class Trace:
    """The folder of the recorded side."""

    def __init__(self, folder: str, steps: Optional[int]) -> None:
        self.folder = folder
        self.limit = step_limit["StepLimit"](steps)
        self.seen: Dict[str, int] = Counter()
        for name in ("batches", "values", "predictions"):
            os.makedirs(os.path.join(folder, name))

    def write(self, event: str, **fields: Any) -> None:
        """Appends one event."""
        with open(os.path.join(self.folder, "events.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(dict({"event": event}, **fields)) + "\n")

    def values(self, call: str, moment: str) -> str:
        """Returns the prefix of a checkpoint."""
        return os.path.join(self.folder, "values", call + "." + moment)

    def name(self, verb: str) -> str:
        """Returns the name of the next call."""
        self.seen[verb] += 1
        return "{}-{}".format(verb, self.seen[verb] - 1)


def leaves(structure: Any) -> List[Any]:
    """Returns the tensors of (features, labels); those of sparse tensors are their components."""
    try:
        flat = nest.flatten(structure, expand_composites=True)
    except TypeError:  # before TensorFlow 1.14
        flat = []
        for leaf in nest.flatten(structure):
            flat += [leaf.indices, leaf.values, leaf.dense_shape] if isinstance(leaf, tf.SparseTensor) else [leaf]
    return [leaf for leaf in flat if isinstance(leaf, tf.Tensor)]


def batch_digest(tensors: List[Any]) -> Any:
    """Returns the digest that ``runtime.batch_digest`` computes."""
    digest = tf.constant(len(tensors), tf.int64)
    for tensor in tensors:
        digest = digest * MULTIPLIER + tf.string_to_hash_bucket_fast(tf.serialize_tensor(tensor), 2**62)
    return digest


def check_disk(trace: Trace, size: int) -> None:
    """Ends the script if the disk cannot hold the batches up to the next look."""
    free = shutil.disk_usage(trace.folder).free
    if size * LOOK_EVERY + REST > free:
        told = "What is recorded would fill the disk: {} more batches of {} bytes, {} bytes free in {}. ".format(
            LOOK_EVERY, size, free, trace.folder
        )
        told += "Compare fewer steps with --steps N, or name a folder on a larger disk with --record-dir DIR."
        trace.write("failed", message=told, address="")
        sys.exit(2)


class BatchHook(tf.train.SessionRunHook):
    """Records the batch of each session run."""

    def __init__(self, trace: Trace, call: str) -> None:
        self.trace = trace
        self.call = call
        self.written = 0
        self.writer = tf.python_io.TFRecordWriter(os.path.join(trace.folder, "batches", call + ".tfrecord"))

    def begin(self) -> None:
        """Finds the batch of the graph."""
        self.batch = batches.pop(tf.get_default_graph())
        with tf.name_scope("estimator_bridge"):
            self.digest = batch_digest(self.batch)
            self.serialized = [tf.serialize_tensor(tensor) for tensor in self.batch]

    def before_run(self, run_context: Any) -> Any:
        """Asks for the batch."""
        return tf.train.SessionRunArgs({"batch": self.serialized, "digest": self.digest})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Writes the batch."""
        example = tf.train.Example()
        example.features.feature["tensors"].bytes_list.value.extend(run_values.results["batch"])
        record = example.SerializeToString()
        if self.written % LOOK_EVERY == 0:
            check_disk(self.trace, len(record))
        self.written += 1
        self.writer.write(record)

    def end(self, session: Any) -> None:
        """Closes the file of batches."""
        self.writer.close()


class TrainHook(BatchHook):
    """Records losses, and the values before and after the first step."""

    def begin(self) -> None:
        """Finds the loss."""
        BatchHook.begin(self)
        spec = specs.pop(tf.get_default_graph())
        self.loss = spec.loss
        self.step = tf.train.get_global_step()
        self.steps = 0
        given = {tensor.op for tensor in self.batch}
        in_step = upstream([self.loss.op, getattr(spec.train_op, "op", spec.train_op)], given)
        names = sorted(op.name for op in in_step if op.type in STATEFUL_RANDOM)
        self.trace.write("random", call=self.call, in_step=names, functions=[])
        self.trace.write("ordered", names=ordering["order_assignments"](in_step, given))
        self.saver = tf.train.Saver(max_to_keep=None, name="estimator_bridge/save")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Reads the global step at the start."""
        self.start = int(session.run(self.step))

    def before_run(self, run_context: Any) -> Any:
        """Saves the initial values, and asks for the loss."""
        if self.steps == 0:
            self.save(run_context.session, "initial")
        fetches = {"batch": self.serialized, "digest": self.digest, "loss": self.loss}
        return tf.train.SessionRunArgs(fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Writes the step."""
        BatchHook.after_run(self, run_context, run_values)
        self.steps += 1
        if self.steps == 1:
            self.save(run_context.session, "first")
        found = run_values.results
        step = self.start + self.steps
        self.trace.write("step", call=self.call, step=step, loss=float(found["loss"]), batch=int(found["digest"]))
        if self.trace.limit.take():
            run_context.request_stop()

    def end(self, session: Any) -> None:
        """Closes the file of batches, and saves after a training whose input ended before its first step, as the other sides do."""
        BatchHook.end(self, session)
        for saver in savers.pop(session.graph, []):
            if self.steps == 0:
                saver._save(session, self.start)

    def save(self, session: Any, moment: str) -> None:
        """Saves all variables."""
        self.saver.save(session, self.trace.values(self.call, moment), write_meta_graph=False, write_state=False)


def upstream(roots: List[Any], ends: Any) -> Any:
    """Returns the operations that some operations need, without those that give the batch."""
    found, waiting = set(), list(roots)
    while waiting:
        op = waiting.pop()
        if op not in found and op not in ends:
            found.add(op)
            waiting += [tensor.op for tensor in op.inputs]
            waiting += op.control_inputs
    return found


def wrap(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Makes a function be called in place of a method, with the method first."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(original, *args, **kwargs)

    setattr(owner, name, call)


def equalise() -> None:
    """Draws the numbers that the other sides draw: seeds depend on an operation's place, and loops run one after the other."""
    random.seed(SEED)
    np.random.seed(SEED)
    drawn: Any = weakref.WeakKeyDictionary()

    def get_seed(original: Callable[..., Any], op_seed: Optional[int]) -> Any:
        graph = tf.get_default_graph()
        if op_seed is not None or tf.executing_eagerly():
            return original(op_seed)
        scopes: List[str] = []
        outer = graph
        while outer is not None:
            scopes.insert(0, outer.get_name_scope())
            outer = getattr(outer, "outer_graph", None)
        scope = "/".join(filter(None, scopes))
        context = graph._get_control_flow_context()
        while context is not None and not context.IsCondContext():
            context = context.outer_context
        if context is not None:  # names of the second branch have suffixes in one graph alone
            scope = re.sub(r"_\d+(?=/|$)", "", scope)
        counts = drawn.setdefault(graph, defaultdict(int))
        counts[scope] += 1
        place = zlib.crc32("{}#{}".format(scope, counts[scope]).encode())
        return (SEED if graph.seed is None else graph.seed) % 2**31, place % 2**31

    def one_at_a_time(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return original(*args, **dict(kwargs, parallel_iterations=1))

    wrap(random_seed, "get_seed", get_seed)
    wrap(control_flow_ops.WhileContext, "__init__", one_at_a_time)


def intercept(trace: Trace) -> None:
    """Records the calls of every Estimator, and gives each a model_dir of its own."""
    kind = next(k for k in reversed(tf.estimator.Estimator.__mro__) if hasattr(k, "_train_with_estimator_spec"))
    module = sys.modules[kind.__module__]

    def parse(original: Callable[..., Any], result: Any) -> Any:
        features, labels, hooks = original(result)
        batches[tf.get_default_graph()] = leaves((features, labels))
        return features, labels, hooks

    def train_with(original: Callable[..., Any], estimator: Any, spec: Any, *args: Any) -> Any:
        specs[tf.get_default_graph()] = spec
        return original(estimator, spec, *args)

    def begin(original: Callable[..., Any], saver: Any) -> None:
        original(saver)
        savers[tf.get_default_graph()].append(saver)

    folders: Dict[str, str] = {}

    def overwrite(original: Callable[..., Any], config: Any, model_dir: Any) -> Any:
        made = original(config, model_dir)
        asked = os.path.realpath(made.model_dir)
        if asked not in folders:
            folders[asked] = os.path.join(trace.folder, "model-{}".format(len(folders)))
            copy_latest(made.model_dir, folders[asked])
        return made.replace(model_dir=folders[asked])

    wrap(module.estimator_util, "parse_input_fn_result", parse)
    wrap(kind, "_train_with_estimator_spec", train_with)
    wrap(tf.train.CheckpointSaverHook, "begin", begin)
    wrap(module, "maybe_overwrite_model_dir_and_session_config", overwrite)
    for verb, record in (("train", record_train), ("evaluate", record_evaluate), ("predict", record_predict)):
        wrap(kind, verb, functools.partial(record, trace))


def with_hook(original: Callable[..., Any], args: Any, kwargs: Any, hook: Any) -> Any:
    """Returns the arguments of a call with one more session hook."""
    given = inspect.signature(original).bind(*args, **kwargs)
    given.arguments["hooks"] = [*list(given.arguments.get("hooks") or []), hook]
    return given


def record_train(trace: Trace, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Executes and records ``train``."""
    if trace.limit.is_reached:  # perhaps by Ctrl-C after the last training
        trace.write("limited", steps=trace.limit.taken)
    trace.limit.end_script()
    name = trace.name("train")
    given = with_hook(original, args, kwargs, TrainHook(trace, name))
    estimator = args[0]
    trace.write("train", call=name, max_steps=given.arguments.get("max_steps") or given.arguments.get("steps"))
    result = original(*given.args, **given.kwargs)
    latest = tf.train.latest_checkpoint(estimator.model_dir)
    if latest:
        copy(latest, trace.values(name, "final"))
    trace.write("trained", call=name, model_dir=estimator.model_dir, checkpoint=latest and trace.values(name, "final"))
    if trace.limit.is_reached:
        trace.write("limited", steps=trace.limit.taken)
    return result


def record_evaluate(trace: Trace, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Executes and records ``evaluate``."""
    name = trace.name("evaluate")
    given = with_hook(original, args, kwargs, BatchHook(trace, name))
    metrics = original(*given.args, **given.kwargs)
    numbers = {
        key + "".join("[{}]".format(index) for index in place): float(value)
        for key, array in metrics.items()
        if np.asarray(array).dtype.kind in "biuf"
        for place, value in np.ndenumerate(np.asarray(array))
    }
    trace.write("evaluated", call=name, name=given.arguments.get("name") or "", metrics=numbers)
    asked = given.arguments
    if trace.limit.is_repeated(asked["input_fn"], numbers, args[0], *map(asked.get, ("steps", "checkpoint_path", "name"))):
        trace.write("repeated")
        trace.limit.end_script()
    return metrics


def record_predict(trace: Trace, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Executes and records ``predict``."""
    name = trace.name("predict")
    given = with_hook(original, args, kwargs, BatchHook(trace, name))
    of_batches = not given.arguments.get("yield_single_examples", True)
    return write_predictions(trace, name, original(*given.args, **given.kwargs), of_batches)


def write_predictions(trace: Trace, call: str, examples: Iterator[Any], of_batches: bool) -> Iterator[Any]:
    """Passes predictions on; the first of them are saved when they end, or when the script does."""
    kept: Any = defaultdict(list)
    is_saved: List[bool] = []

    def save() -> None:
        if not is_saved:
            is_saved.append(True)
            arrays = {"key:" + key: stacked(values) for key, values in kept.items()}
            np.savez(os.path.join(trace.folder, "predictions", call + ".npz"), **arrays)
            trace.write("predicted", call=call)

    atexit.register(save)
    try:
        for example in examples:
            for key, value in example.items() if isinstance(example, dict) else [("", example)]:
                array = np.asarray(value)
                rows = list(array) if of_batches and array.ndim else [array]
                kept[key] += rows[: MAX_PREDICTIONS - len(kept[key])]
            yield example
    finally:
        save()


def stacked(values: List[Any]) -> Any:
    """Returns arrays as one; those of different shapes one after the other."""
    ragged = len({value.shape for value in values}) > 1
    array = np.concatenate([value.ravel() for value in values]) if ragged else np.stack(values)
    return array.astype("S") if array.dtype == object else array


def copy(prefix: str, target: str) -> None:
    """Copies the files of a checkpoint."""
    for file in glob.glob(glob.escape(prefix) + ".*"):
        shutil.copy(file, target + file[len(prefix) :])


def copy_latest(source: str, folder: str) -> None:
    """Copies the latest checkpoint of a folder."""
    os.makedirs(folder)
    latest = tf.train.latest_checkpoint(source)
    if latest:
        target = os.path.join(folder, os.path.basename(latest))
        copy(latest, target)
        tf.train.update_checkpoint_state(folder, target)


def end_with_parent() -> None:
    """Ends this process as soon as its parent is gone, which holds the other end of stdin."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)

    def wait() -> None:
        os.read(pipe, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def run_cells(notebook: str, file: str) -> None:
    """Runs the cells of a notebook, which share their names, as a script."""
    main_module = sys.modules["__main__"] = types.ModuleType("__main__")
    main_module.__dict__.update(__file__=os.path.abspath(notebook), display=print)
    with open(file, encoding="utf-8") as cells:
        for name, text in json.load(cells):
            lines = text.splitlines(True)[1:]
            linecache.cache[name] = len(text), None, lines, name  # for tracebacks and AutoGraph
            tree = ast.increment_lineno(ast.parse(text, name), -1)
            exec(compile(tree, name, "exec", dont_inherit=True), main_module.__dict__)  # noqa: S102 -- it runs scripts


def main(text: str) -> None:
    """Runs the script of an order."""
    order = json.loads(text)
    trace = Trace(order["folder"], order["steps"])
    trace.write("versions", tensorflow=tf.__version__, python=sys.version.split()[0])
    end_with_parent()
    equalise()
    intercept(trace)
    signal.signal(signal.SIGINT, lambda *_: trace.limit.reach())
    sys.argv = [order["target"]] + order["args"]
    try:
        if order["is_module"]:
            sys.path[0] = os.getcwd()
            runpy.run_module(order["target"], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(order["target"]))
            if order["cells"]:
                run_cells(order["target"], order["cells"])
            else:
                runpy.run_path(order["target"], run_name="__main__")
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame[0]]
        ours = (__file__, runpy.__file__)
        own = ["{}:{} in {}: {}".format(*frame) for frame in frames if frame[0] not in ours]
        lines = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()[:4]
        trace.write("error", lines=own + lines)
        raise


if __name__ == "__main__":
    main(sys.argv[1])
