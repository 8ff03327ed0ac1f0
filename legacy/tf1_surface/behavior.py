"""What a script finds when it looks at TensorFlow's mode: graphs, not eager execution, and TF1's shapes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from estimator_bridge.legacy.restored.public_modules import load_public_modules
from estimator_bridge.runtime.patching import replaced

# On the modern path these must not take effect: after a real one, tf.function returns symbolic tensors for good.
SWITCHES = (
    "disable_control_flow_v2",
    "disable_eager_execution",
    "disable_resource_variables",
    "disable_tensor_equality",
    "disable_v2_behavior",
    "disable_v2_tensorshape",
)


def tf1_behavior() -> None:
    """Switches this process back to TF1, for good."""
    import tensorflow as tf
    from tensorflow.python.util import deprecation

    with deprecation.silence():  # the script did not ask for it
        tf.compat.v1.disable_v2_behavior()


@contextlib.contextmanager
def show_tf1_behavior() -> Iterator[Mapping[str, Callable[[], None]]]:
    """While active, this thread builds graphs and sees TF1's Dimensions, and the switches to TF1 behaviour do nothing.

    TF2 behaviour stays in the process for whoever enters eager mode. Whether it is on is answered for the shapes at hand: by that Keras
    chooses its initializers, of which a graph's seed reaches TF1's alone, and its types and names.

    Yields:
        Names of ``tf`` to answer otherwise.
    """
    import tensorflow as tf
    from tensorflow.python import tf2
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops, tensor_shape

    graphs = contextlib.ExitStack()

    def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
        if not ops._default_graph_stack.is_cleared() or ops.get_default_graph().get_operations():
            raise ValueError("tf.enable_eager_execution must be called at program startup.")  # as TensorFlow 1 says it
        graphs.close()

    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(tensor_shape, _TENSORSHAPE_V2_OVERRIDE=False))
        for name in SWITCHES:
            for module in _homes(name, getattr(tf.compat.v1, name)):
                stack.enter_context(replaced(module, **{name: _taken_as_said}))
        for module in (tf2, tf.__internal__.tf2, tf.compat.v2.__internal__.tf2):  # the last is Keras'
            stack.enter_context(replaced(module, enabled=_shapes_are_tf2))
        stack.callback(_reset_default_graph)
        graphs.enter_context(context.graph_mode())
        stack.enter_context(graphs)
        yield dict.fromkeys(SWITCHES, _taken_as_said) | {"enable_eager_execution": enable_eager_execution}


def _taken_as_said() -> None:
    """Stands for a switch."""


def _shapes_are_tf2() -> bool:
    from tensorflow.python.framework import tensor_shape

    return tensor_shape._TENSORSHAPE_V2_OVERRIDE is not False


def _reset_default_graph() -> None:
    from tensorflow.python.framework import ops

    if ops._default_graph_stack.is_cleared():  # a script may leave a session or a graph open, as an InteractiveSession does
        ops.reset_default_graph()


def _homes(name: str, function: Any) -> list[Any]:
    """The modules by which TensorFlow and its users name a function; all are loaded, for a late one would copy what stands there."""
    modules = [*load_public_modules().values(), sys.modules[function.__module__]]
    return [module for module in modules if vars(module).get(name) is function]
