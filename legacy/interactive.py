"""TensorFlow 1's names and behaviour in a session that no command of ours runs: a notebook's kernel, or a Python shell."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import TYPE_CHECKING

from estimator_bridge.legacy.distribution.strategies import mend_strategies
from estimator_bridge.legacy.input_results import mend_input_results
from estimator_bridge.legacy.tf1_surface.behavior import tf1_behavior
from estimator_bridge.legacy.tf1_surface.tf1_imports import TF1Module, tf1_imports
from estimator_bridge.legacy.tf1_surface.tutorial_modules import example_modules

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

until_the_end = contextlib.ExitStack()
# It is never freed: the generators in it would end while Python takes its modules apart, and fail.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(until_the_end))


@functools.cache  # keeps no failure
def show_tf1() -> TF1Module:
    """Gives every later ``import tensorflow`` of this process TensorFlow 1's names, and switches to its behaviour, as ``run`` does for a script.

    It lasts until the process ends. ``tf.estimator`` must be restored before.

    Returns:
        TensorFlow 1's namespace.
    """
    from estimator_bridge.legacy.removed_names.patches import answer_removed_names

    tf1_behavior()
    contexts: tuple[AbstractContextManager[object], ...] = (
        mend_strategies(),
        mend_input_results(),
        answer_removed_names(),
        example_modules(),
    )
    for context in contexts:
        until_the_end.enter_context(context)
    return until_the_end.enter_context(tf1_imports({}))
