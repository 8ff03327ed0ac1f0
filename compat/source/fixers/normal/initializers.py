"""Initial values of ``tf.contrib.layers`` as those of the core."""

from __future__ import annotations

import libcst as cst

from estimator_bridge.compat.source.fixers.script import Script, arguments, code

_CONTRIB = "tensorflow.contrib.layers."
_XAVIER = (("uniform", "seed", "dtype"), {"factor": "1.0", "mode": "'FAN_AVG'", "uniform": "True"})
INITIALIZERS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "variance_scaling_initializer": (
        ("factor", "mode", "uniform", "seed", "dtype"),
        {"factor": "2.0", "mode": "'FAN_IN'", "uniform": "False"},
    ),
    "xavier_initializer": _XAVIER,
    "xavier_initializer_conv2d": _XAVIER,
}
"""Functions of contrib with their parameters and defaults."""
_MODES = {"'FAN_IN'": "fan_in", "'FAN_OUT'": "fan_out", "'FAN_AVG'": "fan_avg"}
_TRUNCATED = "1.3 * 0.87962566103423978**2"
"""Contrib takes 1.3 for what a truncated normal distribution loses of its variance, the core the exact number."""


def initializer(script: Script, call: cst.CSTNode | None) -> str | None:
    """Returns the call below ``tf`` that draws from the same distribution; None if there is none, or for another expression.

    Args:
        script: Script around the call.
        call: Call, e.g. of ``tf.contrib.layers.xavier_initializer``.

    Example:
        >>> script = Script("import tensorflow as tf; tf.contrib.layers.variance_scaling_initializer(1.0, 'FAN_IN', True)")
        >>> initializer(script, script.module.body[0].body[1].value)
        "variance_scaling_initializer(scale=1.0, mode='fan_in', distribution='uniform')"
    """
    row = INITIALIZERS.get(script.called(call).removeprefix(_CONTRIB)) if script.called(call).startswith(_CONTRIB) else None
    given = arguments(call, row[0]) if row is not None and isinstance(call, cst.Call) else None
    if row is None or given is None or not given.keys() <= {*row[0]}:
        return None
    texts = {**row[1], **{name: code(value) for name, value in given.items()}}
    mode = _MODES.get(texts.pop("mode").replace('"', "'"))
    uniform = texts.pop("uniform")
    if mode is None or uniform not in ("True", "False"):
        return None
    factor = texts.pop("factor")
    more = [f"{name}={text}" for name, text in texts.items()]
    if mode == "fan_avg" and uniform == "True" and factor == "1.0":
        return f"glorot_uniform_initializer({', '.join(more)})"
    if uniform == "True":
        scale, distribution = factor, "uniform"
    else:
        scale, distribution = _TRUNCATED if factor == "1.0" else f"{_TRUNCATED} * ({factor})", "truncated_normal"
    first = [f"scale={scale}", f"mode='{mode}'", f"distribution='{distribution}'"]
    return f"variance_scaling_initializer({', '.join([*first, *more])})"
