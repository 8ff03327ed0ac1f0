"""Own loops of the new script over a dataset: for batch in dataset, with a gradient tape of the script."""

from __future__ import annotations

import contextlib
import dis
import gc
import itertools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.rewrite.held_out import count_rows
from estimator_bridge.parity.rewrite.intercept.own_evaluations import OwnEvaluation, own_evaluation
from estimator_bridge.parity.rewrite.session import Session, variables_of
from estimator_bridge.runtime.patching import wrap
from estimator_bridge.runtime.user_code import is_users


def intercept(session: Session, keras: Any) -> None:
    """Replaces what loops of the script get from a dataset, for the life of the process.

    Args:
        session: Session of the new side.
        keras: tf_keras.
    """
    things = _Things(keras)
    for kind, made in (
        (keras.layers.Layer, things.modules),
        (tf.Module, things.modules),
        (keras.optimizers.Optimizer, things.made_optimizers),
        (keras.optimizers.legacy.Optimizer, things.made_optimizers),
    ):
        wrap(kind, __init__=remember(made))

    def loop_over(dataset: Any, batches: Iterator[Any], place: tuple[str, int]) -> _Loop:
        session.write_order(dataset)
        return _Loop(session, batches, dataset.element_spec, things, place)

    def iterate(original: Callable[..., Any], dataset: Any) -> Any:
        caller = sys._getframe(2)
        if not is_users(caller.f_code.co_filename):
            return original(dataset)
        place = caller.f_code.co_filename, caller.f_lineno
        _check_eager(session, place)
        return loop_over(dataset, original(dataset), place)

    def as_numpy(original: Callable[..., Any], dataset: Any) -> Any:
        caller = sys._getframe(2)
        if not is_users(caller.f_code.co_filename):
            return original(dataset)
        place = caller.f_code.co_filename, caller.f_lineno
        loop = loop_over(dataset, iter(dataset), place)
        return (tf.nest.map_structure(lambda value: value.numpy(), batch) for batch in loop)

    def distribute(original: Callable[..., Any], strategy: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        return dataset if strategy.num_replicas_in_sync == 1 else original(strategy, dataset, *args, **kwargs)

    wrap(tf.data.Dataset, __iter__=iterate, as_numpy_iterator=as_numpy)
    wrap(tf.distribute.Strategy, experimental_distribute_dataset=distribute)


def _is_asked_by_for(frame: types.FrameType) -> bool:
    """Returns True if a ``for`` statement asks for the next batch, which StopIteration ends; next() would raise it in the script."""
    while not is_users(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["FOR_ITER"]


def _check_eager(session: Session, place: tuple[str, int]) -> None:
    """Raises BridgeError where a graph would take batches, whose steps nothing sees; the comparison then runs the script without graphs."""
    if not tf.executing_eagerly():
        session.trace.write("perhaps in a graph", place=place)  # AutoGraph raises an error of its own in place of this one
        raise BridgeError(
            "A function of a graph takes its batches from a dataset or an iterator.",
            received=f"a loop over batches of {place[0]}:{place[1]} inside a tf.function",
            fix="Write the loop outside, and a tf.function for one step.",
        )


def remember(made: list[Any]) -> Callable[..., None]:
    """Returns a function for ``wrap`` of a class's ``__init__``, which adds a weak reference to each object that it makes to a list."""

    def init(original: Callable[..., None], thing: Any, *args: Any, **kwargs: Any) -> None:
        original(thing, *args, **kwargs)
        if not any(other() is thing for other in made):
            made.append(ref(thing))

    return init


class _Things:
    """Keeps what the script has made, and the places of its loops.

    Args:
        keras: tf_keras.
    """

    def __init__(self, keras: Any) -> None:
        self._model = keras.Model
        self._metric = keras.metrics.Metric
        self._not_models = self._metric, keras.optimizers.Optimizer
        self.modules: list[Any] = []
        self.made_optimizers: list[Any] = []
        self.idle: set[tuple[str, int]] = set()  # loops that do not train
        self.busy: set[tuple[str, int]] = set()
        self.ends: dict[int, list[bytes]] = {}  # metric -> its values at the end of the last evaluation that has updated it

    def optimizers(self) -> list[Any]:
        """Returns the optimizers that exist."""
        return _alive(self.made_optimizers)

    def metrics(self) -> list[Any]:
        """Returns the metrics that exist."""
        return [module for module in _alive(self.modules) if isinstance(module, self._metric)]

    def roots(self) -> list[Any]:
        """Returns the models, layers and modules that are in no other one, and trained variables that are in none."""
        modules = [module for module in _alive(self.modules) if not isinstance(module, self._not_models)]
        inner = {id(part) for module in modules for part in module.submodules}
        roots = [module for module in modules if id(module) not in inner]
        roots = [root for root in roots if isinstance(root, self._model) or variables_of(root)]
        known = {id(variable) for thing in [*roots, *self.optimizers()] for variable in variables_of(thing)}
        loose = [thing for thing in gc.get_objects() if issubclass(type(thing), tf.Variable) and id(thing) not in known]
        loose = [variable for variable in loose if variable.trainable and variable.dtype.is_floating]
        return [*roots, _Loose(loose)] if loose else roots


class _Loose(tf.Module):
    """Variables that the script keeps in no module."""

    def __init__(self, loose: list[Any]) -> None:
        super().__init__()
        self.loose = sorted(loose, key=lambda variable: variable._unique_id)


def _alive(made: list[Any]) -> list[Any]:
    return [thing for other in made if (thing := other()) is not None]


class _Loop:
    """An iterator over a dataset of the script, with recorded batches as long as each is a training step.

    A batch is a step if the script asks a tape for gradients before the next one. After steps of a loop at another place, a loop
    gets the batches of the old script's evaluation at this step, if it has one. Any other loop that turns out not to train gets its
    own batches: all, if an earlier one at the same place had no step, else those after the first.
    """

    def __init__(self, session: Session, batches: Iterator[Any], spec: Any, things: _Things, place: tuple[str, int]) -> None:
        self._session, self._batches, self._spec, self._things, self._place = session, batches, spec, things, place
        self._is_fed = place not in things.idle and session.fits(spec)
        self._is_open = False
        self._evaluation: OwnEvaluation | None = None
        self._is_new = True
        self._may_predict = session.is_over and place not in things.busy and session.next_prediction() is not None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        _check_eager(self._session, self._place)
        self._session.open_loop()
        if self._session.skips_training and self._place in self._things.busy:
            return self._behind_training()
        batch = next(self._batches, None)
        if batch is not None and self._is_new and self._things.busy - {self._place} and self._place not in self._things.busy:
            self._evaluation = own_evaluation(self._session, self._spec, batch, self._things.metrics(), self._things.ends)
            if self._evaluation:
                self._batches = self._evaluation.batches(itertools.chain([batch], self._batches))
                batch = next(self._batches, None)
        if batch is None:
            self._end_evaluation(is_read_whole=True)
            raise StopIteration
        self._is_new = False
        if self._evaluation:
            fed = batch
        else:
            is_fed = self._is_fed and not self._session.is_over  # more batches may be recorded than are trained
            recorded = self._session.training_batch(self._session.index) if is_fed else None
            fed = self._session.fed(batch, self._spec, recorded)
        self._session.own_rows = None if fed is batch else count_rows(batch)
        if fed is not batch or self._evaluation:
            batch = tf.nest.map_structure(tf.convert_to_tensor, fed, expand_composites=True)
        if not self._session.has_started:
            self._session.start(
                self._things.roots(), self._things.optimizers(), batch[0] if isinstance(batch, tuple) else batch
            )
        follows = self._evaluation or self._may_predict  # the training, and is compared, too
        if not (self._session.is_over and follows):
            self._session.begin_step(batch)
        self._is_open, self._session.open_loop = True, self._close
        return batch

    get_next = __next__

    def _behind_training(self) -> Any:
        """Returns a batch for a train_on_batch that has no effect any more; ends a ``for`` loop, and a script with another one."""
        if _is_asked_by_for(sys._getframe(2)):
            raise StopIteration
        if not self._session.trains_on_batch:
            raise SystemExit(0)
        return next(self._batches)

    def __del__(self) -> None:
        with contextlib.suppress(Exception, SystemExit):
            self._close()
            self._end_evaluation(is_read_whole=False)

    def _check_evaluation(self) -> None:
        evaluation, self._evaluation = self._evaluation, None
        if evaluation and self._session.training_batch(self._session.index):
            raise BridgeError(
                "Two loops of the new script train, and the old one evaluates between them: which of its batches they get is not known.",
                expected="one loop that trains",
                received=f"a second one at {self._place[0]}:{self._place[1]}",
                fix="Put the loop into a function, and call that twice.",
            )

    def _end_evaluation(self, is_read_whole: bool) -> None:
        evaluation, self._evaluation = self._evaluation, None
        if evaluation:
            evaluation.end(is_read_whole)

    def _close(self) -> None:
        """Ends the step before."""
        if not self._is_open:
            return
        self._is_open, self._session.open_loop, self._session.own_rows = False, lambda: None, None
        if self._session.has_trained():
            self._check_evaluation()
            if not self._is_fed:
                self._session.refuse_batches(self._spec)
            self._things.busy.add(self._place)
        elif self._place not in self._things.busy:
            self._is_fed = False
            self._things.idle.add(self._place)
        self._session.end_step()
