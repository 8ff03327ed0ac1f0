"""What AutoGraph takes for a library.

Whatever is no library's is rewritten at its first call in a graph, and Keras calls many functions of its own. AutoGraph of TensorFlow 2.15
knows ``keras``, not ``tf_keras``: the first ``fit`` of a process takes seconds there in place of a fraction of one, and each later one twice as
long.
"""

from __future__ import annotations


def leave_tf_keras_alone() -> None:
    """Has AutoGraph call the functions of tf_keras as they are, as it does from TensorFlow 2.16 on.

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
