"""Code that AutoGraph must call as it is.

AutoGraph rewrites every function that belongs to no library at its first call in a graph, and Keras calls many functions of its own.
AutoGraph of TensorFlow 2.15 knows ``keras`` but not ``tf_keras``. There the first ``fit`` of a process takes seconds in place of a
fraction of one, and each later one twice as long.

AutoGraph rewrites the source in the function's file. If the code was compiled from another source, the rewriting would undo that.
"""

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from estimator_bridge.runtime.user_code import is_users


def leave_tf_keras_alone() -> None:
    """Makes AutoGraph call the functions of tf_keras as they are, as TensorFlow 2.16 and later do.

    Example:
        >>> from tensorflow.python.autograph.core import config
        >>> leave_tf_keras_alone()
        >>> [str(rule) for rule in config.CONVERSION_RULES if "tf_keras" in str(rule)]
        ['DoNotConvert rule for tf_keras']
    """
    from tensorflow.python.autograph.core import config

    rule = config.DoNotConvert("tf_keras")
    if str(rule) not in map(str, config.CONVERSION_RULES):
        config.CONVERSION_RULES += (rule,)


@contextlib.contextmanager
def users_code_as_compiled() -> Iterator[None]:
    """While active, AutoGraph calls the functions of the user's own files as they are.

    Example:
        >>> from tensorflow.python.autograph.core import config
        >>> rules = len(config.CONVERSION_RULES)
        >>> with users_code_as_compiled():
        ...     len(config.CONVERSION_RULES) - rules
        1
    """
    from tensorflow.python.autograph.core import config

    rule = _UsersFiles()
    config.CONVERSION_RULES += (rule,)
    try:
        yield
    finally:  # rules that were added meanwhile stay
        config.CONVERSION_RULES = tuple(each for each in config.CONVERSION_RULES if each is not rule)


class _UsersFiles:
    """Rule of AutoGraph for the user's own files."""

    def get_action(self, module: ModuleType) -> Any:
        from tensorflow.python.autograph.core.config import Action

        return Action.DO_NOT_CONVERT if is_users(getattr(module, "__file__", None) or "") else Action.NONE
