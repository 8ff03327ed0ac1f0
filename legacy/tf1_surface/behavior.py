"""The mode of TensorFlow that a script sees: graphs without eager execution, and TF1's shapes."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from estimator_bridge.legacy.restored.tensorflow_modules import load_public_modules
from estimator_bridge.runtime.patching import replaced

# On the modern path these must not take effect: after a real one, tf.function returns symbolic tensors for good.
SWITCHES = (
    "disable_control_flow_v2",
    "disable_eager_execution",
    "disable_tensor_equality",
    "disable_v2_behavior",
    "disable_v2_tensorshape",
)


def tf1_behavior() -> None:
    """Switches this process to TF1's behaviour, until it ends."""
    import tensorflow as tf
    from tensorflow.python.util import deprecation

    with deprecation.silence():  # a call of our own, not of the script
        tf.compat.v1.disable_v2_behavior()


@contextlib.contextmanager
def show_tf1_behavior() -> Iterator[Mapping[str, Callable[[], None]]]:
    """While active, this thread builds graphs and sees TF1's Dimensions, and the switches to TF1 behaviour do nothing.

    TF2 behaviour stays available to code that enters eager mode. ``tf2.enabled()`` depends on the shapes in use: by its result Keras chooses
    types, names and initializers, and a graph's seed reaches only TF1's initializers.

    Yields:
        Names of ``tf`` to replace, with their new values.
    """
    import tensorflow as tf
    from tensorflow.python import tf2
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops, tensor_shape

    graphs = contextlib.ExitStack()

    def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
        if not ops._default_graph_stack.is_cleared() or ops.get_default_graph().get_operations():
            raise ValueError("tf.enable_eager_execution must be called at program startup.")  # TensorFlow 1's words
        graphs.close()

    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(tensor_shape, _TENSORSHAPE_V2_OVERRIDE=False))
        stack.enter_context(
            replaced(sys.modules[tf.compat.v1.resource_variables_enabled.__module__], _DEFAULT_USE_RESOURCE=False)
        )
        for name in SWITCHES:
            for module in _homes(name, getattr(tf.compat.v1, name)):
                stack.enter_context(replaced(module, **{name: _do_nothing}))
        for module in (tf2, tf.__internal__.tf2, tf.compat.v2.__internal__.tf2):  # Keras uses the last
            stack.enter_context(replaced(module, enabled=_shapes_are_tf2))
        stack.callback(_reset_default_graph)
        graphs.enter_context(context.graph_mode())
        stack.enter_context(graphs)
        yield dict.fromkeys(SWITCHES, _do_nothing) | {"enable_eager_execution": enable_eager_execution}


def _do_nothing() -> None:
    """Stands in for a switch to TF1 behaviour."""


def _shapes_are_tf2() -> bool:
    from tensorflow.python.framework import tensor_shape

    return tensor_shape._TENSORSHAPE_V2_OVERRIDE is not False


def _reset_default_graph() -> None:
    from tensorflow.python.framework import ops

    if ops._default_graph_stack.is_cleared():  # a script may leave a session or a graph open, as an InteractiveSession does
        ops.reset_default_graph()


def _homes(name: str, function: Any) -> list[Any]:
    """Returns all modules that offer a function of TensorFlow; loads them, because a later import would copy the replacement."""
    modules = [*load_public_modules().values(), sys.modules[function.__module__]]
    return [module for module in modules if vars(module).get(name) is function]
