"""The value of each operation of a step that runs eagerly, seen as the operations end."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_callbacks

from estimator_bridge.parity.evidence import ForwardValue
from estimator_bridge.parity.rewrite.forward_pass.values import (
    LARGEST,
    OF_SHAPES,
    PASSED_ON,
    RESHAPES,
    SETTINGS,
    SHOWN,
    spelled,
    values_of,
    write_values,
)
from estimator_bridge.runtime.user_code import is_users


class EagerPass:
    """The tensors between batch, variables and loss of a step, from its begin to ``write``.

    Args:
        batch: Tensors of the batch, and their names for the user.
    """

    def __init__(self, batch: Iterable[tuple[Any, str]] = ()) -> None:
        self._found: list[ForwardValue] = []
        self._places: dict[int, int] = {}  # id of a tensor -> its place in what is found
        self._kept: list[Any] = []  # so that no other tensor gets the id
        self._handles: dict[int, int] = {}  # place of a variable -> id of its handle
        for tensor, name in batch:
            self._leave(tensor, ForwardValue(name, "Batch", (), _shape(tensor), is_batch=True, numbers=_numbers(tensor)))
        op_callbacks.add_op_callback(self._add)

    def end(self) -> None:
        """Looks at no further operation."""
        op_callbacks.remove_op_callback(self._add)

    def write(self, folder: Path, loss: Any, variables: Mapping[int, str]) -> None:
        """Writes what the loss depends on into a side's folder of values.

        Args:
            folder: Folder.
            loss: Loss of the step.
            variables: Id of the handle of each variable -> its name.
        """
        if id(loss) not in self._places:  # computed in another thread, as by a replica
            return
        waiting, needed = [self._places[id(loss)]], set()
        while waiting:
            place = waiting.pop()
            if place not in needed:
                needed.add(place)
                waiting += self._found[place].inputs
        order = {place: number for number, place in enumerate(sorted(needed))}
        write_values(
            folder,
            [
                dataclasses.replace(
                    self._found[place],
                    name=variables.get(self._handles.get(place, 0), self._found[place].name),
                    inputs=tuple(order[one] for one in self._found[place].inputs),
                )
                for place in order
            ],
        )

    def _add(
        self, kind: Any, inputs: Sequence[Any], attributes: Sequence[Any], outputs: Sequence[Any], *_: Any, **named: Any
    ) -> None:
        """Adds an operation that has ended; TensorFlow gives its name by position or by keyword."""
        if named.get("graph") is not None:
            return
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        given = dict(zip(attributes[::2], attributes[1::2], strict=True))
        settings = {name: spelled(given[name]) for name in SETTINGS if name in given}
        places = []
        for number, tensor in enumerate(inputs):
            if id(tensor) not in self._places:
                settings |= self._leaf(tensor, f"input {number}")
            places.append(self._places[id(tensor)])
        read = [self._found[place] for place in places]
        if len(places) == 1 and (kind in PASSED_ON or (kind in RESHAPES and read[0].is_variable)):
            self._places[id(outputs[0])] = places[0]
            self._kept.append(outputs)
            return
        is_input = kind == "IteratorGetNext"
        is_data = is_input or (kind not in OF_SHAPES and any(one.is_data for one in read))
        for tensor in outputs:
            value = ForwardValue(
                _line(), kind, tuple(dict.fromkeys(places)), _shape(tensor), is_batch=is_input, is_data=is_data
            )
            self._leave(tensor, dataclasses.replace(value, settings=settings, numbers=_numbers(tensor) if is_data else ()))

    def _leaf(self, tensor: Any, name: str) -> dict[str, str]:
        """Adds a tensor that no operation has made, a variable or a constant; returns what is shown of a constant."""
        is_variable = tensor.dtype == tf.resource
        if is_variable:
            self._handles[len(self._found)] = id(tensor)
        self._leave(
            tensor,
            ForwardValue("", "VarHandleOp" if is_variable else "Const", (), is_variable=is_variable, is_data=is_variable),
        )
        shown = not is_variable and _is_number(tensor) and np.size(tensor) <= SHOWN
        return {name: str(tensor.numpy().tolist())} if shown else {}

    def _leave(self, tensor: Any, value: ForwardValue) -> None:
        self._places[id(tensor)] = len(self._found)
        self._found.append(value)
        self._kept.append(tensor)


def _is_number(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool)


def _numbers(tensor: Any) -> tuple[float, ...]:
    return values_of(tensor.numpy()) if _is_number(tensor) and np.size(tensor) <= LARGEST else ()


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(tensor.shape.as_list()) if tensor.dtype != tf.variant else ()


def _line() -> str:
    """Returns the file and line of the script's own that runs."""
    frame = sys._getframe(1)
    while frame.f_back and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
