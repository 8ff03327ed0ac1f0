"""The calls of tf_keras' models: fit, evaluate, predict, train_on_batch."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.calls import scalar_metrics
from estimator_bridge.parity.rewrite import dropout
from estimator_bridge.parity.rewrite.intercept import on_batch
from estimator_bridge.parity.rewrite.intercept.on_batch import NOT_EVALUATED, NOT_PREDICTED, spec_of, write_predicted
from estimator_bridge.parity.rewrite.session import Session, lockstep, recorded, spec_of_value
from estimator_bridge.runtime.patching import wrap

_DRAWING = threading.Lock()


def intercept(session: Session, keras: Any) -> None:
    """Replaces the calls of models for the life of the process.

    Args:
        session: Session of the new side.
        keras: tf_keras.
    """
    calls = _Calls(session, keras)
    wrap(keras.Model, fit=calls.fit, evaluate=calls.evaluate, predict=calls.predict, train_on_batch=calls.train_on_batch)
    on_batch.intercept(session, keras, functools.partial(optimizers_of, keras=keras))
    wrap(keras.Model, compile=functools.partial(compile_plainly, session))
    wrap(tf, function=functools.partial(function_without_xla, session))
    wrap(keras.layers.Layer, __call__=functools.partial(call_built, session))


def call_built(session: Session, original: Callable[..., Any], layer: Any, *args: Any, **kwargs: Any) -> Any:
    """Builds a model in a graph that never runs, before the script's own call of it."""
    if session.awaits(layer):
        given, named = tf.nest.map_structure(spec_of_value, (args, kwargs))
        with tf.init_scope():
            tf.function(lambda *values, **others: original(layer, *values, **others)).get_concrete_function(*given, **named)
            session.built(layer)
    return original(layer, *args, **kwargs)


def compile_plainly(session: Session, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
    """Compiles a model so that each step calls Python, which records it: one step an execution, and no XLA."""
    if kwargs.get("steps_per_execution"):
        kwargs["steps_per_execution"] = 1
    return original(model, *args, **_without_xla(session, kwargs))


def function_without_xla(session: Session, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Makes a function of a graph that can call Python."""
    return original(*args, **_without_xla(session, kwargs))


def _without_xla(session: Session, kwargs: dict[str, Any]) -> dict[str, Any]:
    asked = [name for name in ("jit_compile", "experimental_compile") if kwargs.get(name)]
    if asked:
        session.note("The new script compiles with XLA (jit_compile), which rounds otherwise; it was compared without.")
    return {**kwargs, **dict.fromkeys(asked, False)}


class _Calls:
    def __init__(self, session: Session, keras: Any) -> None:
        self._session, self._keras = session, keras
        self._last: Any = None  # result of the last training step of train_on_batch

    def fit(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        session = self._session
        session.open_loop()
        given = inspect.signature(original).bind(model, *args, **kwargs).arguments
        split_off(given)
        own = dataset_of(given.get("x"), given.get("y"), given.get("sample_weight"), given.get("batch_size"))
        batch = session.fed(None, own.element_spec, session.training_batch(session.index))
        features = batch[0] if isinstance(batch, tuple) else batch
        session.start([model], optimizers_of(model, self._keras), features, batch, trains=True)
        session.write_order(own, given.get("shuffle", True) and is_of_arrays(given.get("x")))
        given["x"] = lockstep(session, own, session.following_batches, "train-0")
        for name in ("y", "batch_size", "sample_weight", "self"):
            given.pop(name, None)
        extra = given.pop("kwargs", {})
        self._add(_watcher(session, self._keras), given)
        history = original(model, **given, **extra)
        if session.is_over:
            model.stop_training = False  # else evaluate would end after a batch
        return history

    def _add(self, watcher: Any, given: dict[str, Any]) -> None:
        """Adds a callback to those that a method is given."""
        callbacks = given.get("callbacks")
        if isinstance(callbacks, self._keras.callbacks.CallbackList):  # of fit; it asks its callbacks only when it is made
            given["callbacks"] = type(callbacks)([*callbacks.callbacks, watcher], model=callbacks.model)
        else:
            given["callbacks"] = [*(tf.nest.flatten(callbacks) if callbacks else []), watcher]

    def _first(self, own: Any, batch: Any) -> Any:
        """Returns the features of a recorded batch."""
        element = self._session.fed(None, own.element_spec, batch)
        return element[0] if isinstance(element, tuple) else element

    def evaluate(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        session = self._session
        session.open_loop()
        session.end_on_batch()
        given = inspect.signature(original).bind(model, *args, **kwargs).arguments
        extra = given.pop("kwargs", {})
        is_validation = bool(extra.pop("_use_cached_eval_dataset", False))
        as_dict = given.pop("return_dict", False)
        own = dataset_of(given.get("x"), given.get("y"), given.get("sample_weight"), given.get("batch_size"))
        own = own.take(_steps(given))
        for name in ("y", "batch_size", "sample_weight", model_name(original)):
            given.pop(name, None)
        event = self._evaluation(own, is_validation, is_repeatable=not hasattr(given.get("x"), "__next__"))
        if event is None:
            session.note(NOT_EVALUATED)
            return original(model, **given | {"x": own}, **extra, return_dict=as_dict)
        first = recorded(session, event["call"])()()
        session.start([model], optimizers_of(model, self._keras), self._first(own, first))
        given["x"] = lockstep(session, own, recorded(session, event["call"]), event["call"])
        session.leave_step()
        counter = _counter(self._keras)
        before = dropout.drawn.copy()
        self._add(counter, given)
        results = original(model, **given, **extra, return_dict=True)
        session.trace.write("evaluation", **dropout.drawn_since(before))
        session.evaluated(event, scalar_metrics(results), counter.batches, is_validation)
        if as_dict:
            return results
        values = list(results.values())
        return values[0] if len(values) == 1 else values

    def _evaluation(self, own: Any, is_validation: bool, is_repeatable: bool) -> dict[str, Any] | None:
        """Returns the old script's evaluation to compare with; for validation data of another structure, None."""
        with contextlib.suppress(*[BridgeError] if is_validation else []):
            return self._session.evaluation(own.element_spec, own if is_repeatable else ())
        return None

    def predict(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        session = self._session
        session.open_loop()
        session.end_on_batch()
        given = inspect.signature(original).bind(model, *args, **kwargs).arguments
        past = session.next_prediction()
        if past is None:
            session.note(NOT_PREDICTED)
            return original(model, *args, **kwargs)
        session.predicted += 1
        own = dataset_of(given.get("x"), None, None, given.get("batch_size")).take(_steps(given))
        is_tuple = isinstance(own.element_spec, tuple)  # of features, labels and weights; features may be a tuple, too
        own = own.map(lambda *batch: (batch[0],)) if is_tuple else own.map(lambda features: (features,))
        for name in ("batch_size", model_name(original)):
            given.pop(name, None)
        call = recorded(session, past)
        session.start([model], optimizers_of(model, self._keras), self._first(own, call()()))
        given["x"] = lockstep(session, own, call, past)
        result = original(model, **given)
        write_predicted(session, past, [result])
        return result

    def train_on_batch(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        session = self._session
        session.trains_on_batch = True
        if session.in_step and not session.has_trained():  # the batch of a loop over a dataset
            self._last = original(model, *args, **kwargs)
            return self._last
        session.open_loop()
        if session.skips_training:
            return self._last
        given = inspect.signature(original).bind(model, *args, **kwargs).arguments
        given.pop(model_name(original))
        own = tuple(part for name in ("x", "y", "sample_weight") if (part := given.get(name)) is not None)
        batch = session.fed(own, spec_of(own), session.training_batch(session.index))
        session.start([model], optimizers_of(model, self._keras), batch[0], trains=True)
        session.write_order()
        session.begin_step()
        self._last = original(model, **given | dict(zip(("x", "y", "sample_weight"), batch, strict=False)))
        session.end_step()
        return self._last


def _steps(given: dict[str, Any]) -> int:
    """Returns and removes the number of batches that a method is asked to read; -1 for all. Recorded ones may have another size."""
    steps = given.pop("steps", None)
    return -1 if steps is None else int(steps)


def model_name(original: Callable[..., Any]) -> str:
    """Returns the name of a method's first parameter."""
    return next(iter(inspect.signature(original).parameters))


def optimizers_of(model: Any, keras: Any) -> list[Any]:
    """Returns the optimizers that a model has as attributes."""
    kinds = (keras.optimizers.Optimizer, keras.optimizers.legacy.Optimizer)
    candidates = [getattr(model, "optimizer", None), *vars(model).values()]
    found: list[Any] = []
    for value in candidates:
        if isinstance(value, kinds) and not any(value is other for other in found):
            found.append(value)
    return found


def is_of_arrays(x: Any) -> bool:
    """Returns True if a model is given arrays or tensors, whose rows fit shuffles."""
    return not (isinstance(x, tf.data.Dataset) or hasattr(x, "__next__") or hasattr(x, "on_epoch_end"))


def dataset_of(x: Any, y: Any, weights: Any, batch_size: int | None) -> Any:
    """Returns what a model is given as a dataset.

    Raises:
        BridgeError: It is something else, e.g. a generator.
    """
    if isinstance(x, tf.data.Dataset):
        return x
    if hasattr(x, "__getitem__") and hasattr(x, "__len__") and hasattr(x, "on_epoch_end"):  # a Sequence of Keras
        made = _of_batches(lambda: (x[number] for number in range(len(x))))
        return made.apply(tf.data.experimental.assert_cardinality(len(x)))
    if hasattr(x, "__next__"):
        return _of_batches(lambda: _one_at_a_time(x))
    if not all(hasattr(leaf, "shape") or isinstance(leaf, (list, float, int)) for leaf in tf.nest.flatten(x)):
        raise BridgeError(
            "This input of a model cannot be replaced by recorded batches.",
            expected="a tf.data.Dataset, arrays, tensors, a generator or a Sequence",
            received=type(x).__name__,
            fix="Make a tf.data.Dataset of it.",
        )
    parts = tuple(_rows_of(part) for part in (x, y, weights) if part is not None)
    return tf.data.Dataset.from_tensor_slices(parts).batch(batch_size or 32)


def _rows_of(value: Any) -> Any:
    """Returns arrays, one for each input of a model; a list of numbers, or of lists of them, is one array."""
    if isinstance(value, list) and not all(hasattr(part, "shape") for part in value):
        return np.asarray(value)
    return tuple(map(_rows_of, value)) if isinstance(value, (list, tuple)) else tf.nest.map_structure(np.asarray, value)


def _of_batches(begin: Callable[[], Iterator[Any]]) -> Any:
    """Returns a dataset of what a generator yields; its first batch is drawn to see the structure, and is its first again."""
    drawn = begin()
    first = _arrays(next(drawn))
    again = [first]

    def batches() -> Iterator[Any]:
        following = itertools.chain([again.pop()], drawn) if again else begin()
        yield from map(_arrays, following)

    spec = tf.nest.map_structure(lambda value: tf.TensorSpec([None, *value.shape[1:]], value.dtype), first)
    return tf.data.Dataset.from_generator(batches, output_signature=spec)


def _one_at_a_time(generator: Iterator[Any]) -> Iterator[Any]:
    """Yields what a generator yields: the threads of the call before may still draw from it."""
    end = object()
    while True:
        with _DRAWING:
            batch = next(generator, end)
        if batch is end:
            return
        yield batch


def _arrays(batch: Any) -> Any:
    """Returns a batch with arrays, and tuples in place of lists, which tf.data would make tensors of."""
    if isinstance(batch, (list, tuple)):
        return tuple(_arrays(part) for part in batch)
    return {name: _arrays(part) for name, part in batch.items()} if isinstance(batch, dict) else np.asarray(batch)


def split_off(given: dict[str, Any]) -> None:
    """Replaces ``validation_split`` among the arguments of fit by ``validation_data``, as Keras does: the last rows."""
    share = given.pop("validation_split", None)
    if not share:
        return
    names = [name for name in ("x", "y", "sample_weight") if given.get(name) is not None]
    rows = len(tf.nest.flatten(given["x"])[0])
    end = int(np.floor(rows * (1.0 - share)))
    given["validation_data"] = tuple(tf.nest.map_structure(lambda value: value[end:], given[name]) for name in names)
    given |= {name: tf.nest.map_structure(lambda value: value[:end], given[name]) for name in names}


def _counter(keras: Any) -> Any:
    class Counter(keras.callbacks.Callback):
        """Counts the batches of an evaluation."""

        batches = 0

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            self.batches += 1

    return Counter()


def _watcher(session: Session, keras: Any) -> Any:
    class Watcher(keras.callbacks.Callback):
        """Marks the steps and epochs of fit."""

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            session.begin_step()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.steps = batch + 1
            session.end_step()
            if session.is_over:  # what follows the training is compared, too
                self.model.stop_training = True

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            session.trace.write("epoch", steps=getattr(self, "steps", 0))

    return Watcher()
