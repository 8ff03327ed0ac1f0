"""The calls of tf_keras' models for one batch that does not train: test_on_batch and predict_on_batch."""

from __future__ import annotations

import contextlib
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.calls import MAX_PREDICTIONS, scalar_metrics, stacked
from estimator_bridge.parity.rewrite import dropout
from estimator_bridge.parity.rewrite.held_out import HeldOut
from estimator_bridge.parity.rewrite.session import Session, recorded
from estimator_bridge.runtime.patching import wrap

NOT_EVALUATED = "Evaluations of the new script that have no counterpart at the same step are not compared."
NOT_PREDICTED = "The new script predicts more often than the old one; those predictions are not compared."
BEHIND = "Rows that the new script evaluates or predicts batch by batch behind the old script's last row are not compared."
_PARTS = ("x", "y", "sample_weight")


class OnBatch:
    """Calls that follow each other, which together are one evaluation or prediction of the old script.

    Beside each batch of the script's own, as many recorded rows run. The script gets what it would get without a comparison.

    Args:
        session: Session of the new side.
        optimizers_of: Function that returns the optimizers of a model.
    """

    def __init__(self, session: Session, optimizers_of: Callable[[Any], list[Any]]) -> None:
        self._session, self._optimizers_of = session, optimizers_of
        self._held_out: HeldOut | None = None
        self._event: dict[str, Any] | None = None  # the old script's evaluation; None in a prediction
        self._results: list[Any] = []
        self._metrics: list[Any] = []  # values of the metrics' variables after the recorded batches
        self._drawn = Counter[str]()

    def test(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        """Executes ``test_on_batch``."""
        given = inspect.signature(original).bind(model, *args, **kwargs).arguments
        names = [name for name in _PARTS if given.get(name) is not None]
        own = tuple(given[name] for name in names)
        for batch in self._beside(self._evaluation(model, own), own):
            with self._own_metrics(model), self._counted_masks():
                named = dict(zip(names, batch, strict=True))
                self._results.append(original(model, **named, reset_metrics=False, return_dict=True))
        return original(model, *args, **kwargs)

    def predict(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        """Executes ``predict_on_batch``."""
        own = (inspect.signature(original).bind(model, *args, **kwargs).arguments["x"],)
        for batch in self._beside(self._prediction(model, own), own):
            self._results.append(original(model, batch[0]))
        return original(model, *args, **kwargs)

    def end(self) -> None:
        """Writes the evaluation or prediction that the calls so far make."""
        held_out, results, event = self._held_out, self._results, self._event
        self._held_out, self._results, self._event, self._metrics = None, [], None, []
        masks, self._drawn = self._drawn, Counter[str]()
        if held_out and results and event:
            self._session.trace.write("evaluation", dropout=masks["dropout"], surely=masks["surely"])
            self._session.evaluated(event, scalar_metrics(results[-1]), len(results))
        elif held_out and results:
            write_predicted(self._session, held_out.call, results)

    def _beside(self, held_out: HeldOut | None, own: Any) -> Iterator[Any]:
        """Yields the recorded batches to run beside an own one; own rows behind the last recorded one are not compared."""
        for batch in held_out.beside(own, self._session.own_rows) if held_out else ():
            if batch is own:
                self._session.note(BEHIND)
            else:
                yield tf.nest.map_structure(_as_own, own, batch, check_types=False)

    def _evaluation(self, model: Any, own: Any) -> HeldOut | None:
        """Returns the recorded batches of the evaluation that a batch belongs to; None without one at this step."""
        if self._held_out and self._event and not self._held_out.is_over:
            return self._held_out
        self.end()
        session, spec = self._session, spec_of(own)
        try:
            event = session.evaluation(spec, [own])
        except BridgeError as error:
            session.note(f"A test_on_batch of the new script does not get the batches of the old evaluation: {error.what}")
            return None
        if event is None:
            session.note(NOT_EVALUATED)
            return None
        self._event = event
        return self._begin(model, own, event["call"])

    def _prediction(self, model: Any, own: Any) -> HeldOut | None:
        """Returns the recorded batches of the prediction that a batch belongs to; None without one."""
        if self._held_out and not self._event and not self._held_out.is_over:
            return self._held_out
        self.end()
        session = self._session
        call = session.next_prediction()
        if call is None:
            session.note(NOT_PREDICTED)
            return None
        session.predicted += 1
        return self._begin(model, own, call)

    def _begin(self, model: Any, own: Any, call: str) -> HeldOut:
        session, spec = self._session, spec_of(own)
        session.check(spec, call)
        following = recorded(session, call)
        session.start([model], self._optimizers_of(model), session.fed(None, spec, following()())[0])
        session.leave_step()
        self._held_out = session.begin_held_out(spec, call, following())
        return self._held_out

    @contextlib.contextmanager
    def _own_metrics(self, model: Any) -> Iterator[None]:
        """Lets the metrics of a model count recorded batches alone, and gives the script its own values back."""
        theirs = _metrics_of(model)
        model.reset_metrics()
        _assign(self._metrics)
        try:
            yield
        finally:
            self._metrics = _metrics_of(model)
            model.reset_metrics()
            _assign(theirs)

    @contextlib.contextmanager
    def _counted_masks(self) -> Iterator[None]:
        before = dropout.drawn.copy()
        yield
        self._drawn.update(dropout.drawn_since(before))


def intercept(session: Session, keras: Any, optimizers_of: Callable[[Any], list[Any]]) -> None:
    """Replaces the calls of models for the life of the process.

    Args:
        session: Session of the new side.
        keras: tf_keras.
        optimizers_of: Function that returns the optimizers of a model.
    """
    calls = OnBatch(session, optimizers_of)
    session.end_on_batch = calls.end
    wrap(keras.Model, test_on_batch=calls.test, predict_on_batch=calls.predict)


def _as_own(own: Any, value: Any) -> Any:
    """Returns a recorded value as a tensor where the script gives one: of arrays, Keras casts floats to its default type."""
    return tf.convert_to_tensor(value) if isinstance(own, tf.Tensor) and isinstance(value, np.ndarray) else value


def spec_of(batch: Any) -> Any:
    """Returns the structure of a batch of arrays or tensors, for any number of rows."""
    return tf.nest.map_structure(lambda value: tf.TensorSpec([None, *np.shape(value)[1:]], np.asarray(value).dtype), batch)


def write_predicted(session: Session, call: str, results: Sequence[Any]) -> None:
    """Writes the first predictions of a call.

    Args:
        session: Session of the new side.
        call: The old script's prediction.
        results: Outputs of the new model, batch by batch or at once.
    """
    outputs = [result if isinstance(result, dict) else _numbered(result) for result in results]
    rows = {
        key: [np.asarray(row) for one in outputs for row in _rows(one[key])][:MAX_PREDICTIONS] for key in outputs[0]
    }  # perhaps ragged
    np.savez(session.trace.predictions(call), **{f"key:{key}": stacked(values) for key, values in rows.items()})
    session.trace.write("predicted", call=call)


def _rows(output: Any) -> Any:
    """Returns the rows of an output; a number is one."""
    return [output] if isinstance(output, (bool, int, float)) or getattr(output, "shape", None) == () else output


def _numbered(result: Any) -> dict[Any, Any]:
    return dict(enumerate(result)) if isinstance(result, (list, tuple)) else {"": result}


def _metrics_of(model: Any) -> list[tuple[Any, Any]]:
    return [(variable, variable.numpy()) for metric in model.metrics for variable in metric.variables]


def _assign(values: Sequence[tuple[Any, Any]]) -> None:
    for variable, value in values:
        variable.assign(value)
