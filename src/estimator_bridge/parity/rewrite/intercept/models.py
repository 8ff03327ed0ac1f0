"""The calls of tf_keras' models: fit, evaluate, predict, train_on_batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.calls import MAX_PREDICTIONS, scalar_metrics
from estimator_bridge.parity.rewrite import dropout
from estimator_bridge.parity.rewrite.session import Session, lockstep, recorded
from estimator_bridge.runtime.patching import wrap


def intercept(session: Session, keras: Any) -> None:
    """Replaces the calls of models for the life of the process.

    Args:
        session: Session of the new side.
        keras: tf_keras.
    """
    calls = _Calls(session, keras)
    wrap(keras.Model, fit=calls.fit, evaluate=calls.evaluate, predict=calls.predict, train_on_batch=calls.train_on_batch)
    wrap(keras.Model, compile=_one_step_per_execution)


def _one_step_per_execution(original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
    if kwargs.get("steps_per_execution"):
        kwargs["steps_per_execution"] = 1
    return original(model, *args, **kwargs)


class _Calls:
    def __init__(self, session: Session, keras: Any) -> None:
        self._session, self._keras = session, keras

    def fit(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        session = self._session
        given = inspect.signature(original).bind(model, *args, **kwargs).arguments
        if given.get("validation_split"):
            raise BridgeError("fit with validation_split cannot be compared.", fix="Give fit validation_data.")
        own = dataset_of(given.get("x"), given.get("y"), given.get("sample_weight"), given.get("batch_size"))
        first = self._first(own)
        session.start([model], optimizers_of(model, self._keras), first)
        given["x"] = lockstep(session, own, own.element_spec, session.next_training, "train-0")
        for name in ("y", "batch_size", "sample_weight", "self"):
            given.pop(name, None)
        watcher = _watcher(session, self._keras)
        callbacks = given.pop("callbacks", None)
        if isinstance(callbacks, self._keras.callbacks.CallbackList):
            callbacks.append(watcher)
        else:
            callbacks = [*(tf.nest.flatten(callbacks) if callbacks else []), watcher]
        extra = given.pop("kwargs", {})
        return original(model, **given, **extra, callbacks=callbacks)

    def _first(self, own: Any) -> Any:
        """Returns the features of a recorded batch."""
        session = self._session
        batch = session.next_training()
        element = session.fed(None, own.element_spec, batch, "train-0")
        if batch is not None:
            session.push_back(batch)
        return element[0] if isinstance(element, tuple) else element

    def evaluate(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        session = self._session
        given = inspect.signature(original).bind(model, *args, **kwargs).arguments
        extra = given.pop("kwargs", {})
        extra.pop("_use_cached_eval_dataset", None)
        as_dict = given.pop("return_dict", False)
        own = dataset_of(given.get("x"), given.get("y"), given.get("sample_weight"), given.get("batch_size"))
        number = session.counts["evaluate"]
        session.counts["evaluate"] += 1
        past = list(session.old.events("evaluated"))
        for name in ("y", "batch_size", "sample_weight", model_name(original)):
            given.pop(name, None)
        if number >= len(past):
            session.note("The new script evaluates more often than the old one; those evaluations are not compared.")
            given["x"] = own
            return original(model, **given, **extra, return_dict=as_dict)
        event = past[number]
        given["x"] = lockstep(session, own, own.element_spec, recorded(session, event["call"]), event["call"])
        masks = dropout.drawn["masks"]
        results = original(model, **given, **extra, return_dict=True)
        session.trace.write("evaluation", dropout=dropout.drawn["masks"] - masks)
        metrics = scalar_metrics(results) | {"global_step": event["metrics"].get("global_step", 0)}
        session.trace.write("evaluated", call=event["call"], name=event["name"], metrics=metrics)
        if as_dict:
            return results
        values = list(results.values())
        return values[0] if len(values) == 1 else values

    def predict(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        session = self._session
        given = inspect.signature(original).bind(model, *args, **kwargs).arguments
        own = dataset_of(given.get("x"), None, None, given.get("batch_size"))
        number = session.counts["predict"]
        session.counts["predict"] += 1
        past = [event["call"] for event in session.old.events("predicted")]
        if number >= len(past):
            session.note("The new script predicts more often than the old one; those predictions are not compared.")
            return original(model, *args, **kwargs)
        for name in ("batch_size", model_name(original)):
            given.pop(name, None)
        given["x"] = lockstep(session, own, own.element_spec, recorded(session, past[number]), past[number])
        result = original(model, **given)
        arrays = result if isinstance(result, dict) else {"": result}
        first = {f"key:{key}": np.asarray(value)[:MAX_PREDICTIONS] for key, value in arrays.items()}
        np.savez(session.trace.predictions(past[number]), **first)
        session.trace.write("predicted", call=past[number])
        return result

    def train_on_batch(self, original: Callable[..., Any], model: Any, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        session = self._session
        own = (x,) if y is None else (x, y)
        spec = tf.nest.map_structure(lambda value: tf.TensorSpec([None, *np.shape(value)[1:]], np.asarray(value).dtype), own)
        batch = session.fed(own, spec, session.next_training(), "train_on_batch")
        session.start([model], optimizers_of(model, self._keras), batch[0])
        session.begin_step()
        result = original(model, *batch, *args, **kwargs)
        session.end_step()
        return result


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


def dataset_of(x: Any, y: Any, weights: Any, batch_size: int | None) -> Any:
    """Returns what a model is given as a dataset.

    Raises:
        BridgeError: It is something else, e.g. a generator.
    """
    if isinstance(x, tf.data.Dataset):
        return x
    if inspect.isgenerator(x) or not all(
        hasattr(leaf, "shape") or isinstance(leaf, (list, float, int)) for leaf in tf.nest.flatten(x)
    ):
        raise BridgeError(
            "This input of a model cannot be replaced by recorded batches.",
            expected="a tf.data.Dataset, arrays or tensors",
            received=type(x).__name__,
            fix="Make a tf.data.Dataset of it.",
        )
    parts = tuple(part for part in (x, y, weights) if part is not None)
    parts = tf.nest.map_structure(np.asarray, parts) if not isinstance(x, list) else tuple(np.asarray(part) for part in parts)
    return tf.data.Dataset.from_tensor_slices(parts).batch(batch_size or 32)


def _watcher(session: Session, keras: Any) -> Any:
    class Watcher(keras.callbacks.Callback):
        """Marks the steps and epochs of fit."""

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            session.begin_step()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.steps = batch + 1
            session.end_step()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            session.trace.write("epoch", steps=getattr(self, "steps", 0))

    return Watcher()
