"""Own loops of the new script over a dataset: for batch in dataset, with a gradient tape of the script."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.rewrite.session import Session, lockstep
from estimator_bridge.runtime.patching import wrap
from estimator_bridge.runtime.user_code import is_users


def intercept(session: Session, keras: Any) -> None:
    """Replaces what loops of the script get from a dataset, for the life of the process.

    Args:
        session: Session of the new side.
        keras: tf_keras.
    """
    models: list[Any] = []
    optimizers: list[Any] = []
    for kind, made in (
        (keras.Model, models),
        (keras.optimizers.Optimizer, optimizers),
        (keras.optimizers.legacy.Optimizer, optimizers),
    ):
        wrap(kind, __init__=_remember(made))

    def iterate(original: Callable[..., Any], dataset: Any) -> Any:
        caller = sys._getframe(2)
        if not is_users(caller.f_code.co_filename):
            return original(dataset)
        if not tf.executing_eagerly():
            raise BridgeError(
                "A loop over a dataset inside a tf.function cannot be compared.",
                received=f"{caller.f_code.co_filename}:{caller.f_lineno}",
                fix="Write the loop outside, and a tf.function for one step.",
            )
        return _Loop(session, dataset, _alive(models), _alive(optimizers))

    wrap(tf.data.Dataset, __iter__=iterate)


def _remember(made: list[Any]) -> Callable[..., None]:
    def init(original: Callable[..., None], thing: Any, *args: Any, **kwargs: Any) -> None:
        original(thing, *args, **kwargs)
        if not any(other() is thing for other in made):
            made.append(ref(thing))

    return init


def _alive(made: list[Any]) -> Callable[[], list[Any]]:
    return lambda: [thing for other in made if (thing := other()) is not None]


class _Loop:
    """An iterator over recorded batches; each is a training step if the script asks a tape for gradients before the next one."""

    def __init__(
        self, session: Session, dataset: Any, models: Callable[[], list[Any]], optimizers: Callable[[], list[Any]]
    ) -> None:
        self._session, self._models, self._optimizers = session, models, optimizers
        self._open: Any = None
        self._fed: Any = None
        made = lockstep(session, dataset, dataset.element_spec, self._take, "train-0")
        self._batches = iter(made)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._close()
        batch = next(self._batches)
        self._open = self._fed
        self._start(batch)
        self._session.begin_step()
        return batch

    get_next = __next__

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._close()

    def _take(self) -> Any:
        self._fed = self._session.next_training()
        return self._fed

    def _close(self) -> None:
        """Ends the step before; a batch on which the script did not train is given to the next loop."""
        if self._open is not None and not self._session.has_trained():
            self._session.push_back(self._open)
        self._session.end_step()
        self._open = None

    def _start(self, batch: Any) -> None:
        inner = {id(part) for model in self._models() for part in model.submodules}
        roots = [model for model in self._models() if id(model) not in inner]
        self._session.start(roots, self._optimizers(), batch[0] if isinstance(batch, tuple) else batch)
