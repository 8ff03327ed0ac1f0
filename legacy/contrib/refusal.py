"""What ``tf.contrib`` no longer offers: whoever asks for it hears which symbol, which file and line, and what to use instead.

The errors are the AttributeError and ImportError that Python itself would raise, so that a script which looks before it leaps
(``hasattr(tf.contrib, "eager")``, ``except ImportError: import tensorflow_probability``) goes its other way.
"""

from __future__ import annotations

import dis
import itertools
import types

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.contrib.replacements import replacement


class ContribError(NotSupportedError):
    """A symbol of ``tf.contrib`` that is not offered was asked for.

    Args:
        symbol: as the script would write it: ``tf.contrib.layers.l2_regularizer``.
        frame: where it was asked for.
    """

    def __init__(self, symbol: str, frame: types.FrameType) -> None:
        super().__init__(
            f"TensorFlow 2 removed {symbol} with all of tf.contrib, and it is not restored.",
            expected="the names of tf.contrib that docs/contrib.md lists as offered",
            received=f"{symbol} at {frame.f_code.co_filename}:{frame.f_lineno}",
            fix=replacement(symbol),
        )


class ContribAttributeError(ContribError, AttributeError):
    """Asked for as an attribute."""


class ContribImportError(ContribError, ImportError):
    """Asked for by an import."""


def asked_attribute(module: str, name: str, frame: types.FrameType) -> ContribAttributeError:
    """The error for an attribute, with the whole dotted name that the frame is about to read.

    Args:
        module: what the script calls the module.
        name: the attribute.
        frame: who reads it.
    """
    return ContribAttributeError(".".join([module, name, *_attributes_read_next(name, frame)]), frame)


def _attributes_read_next(name: str, frame: types.FrameType) -> list[str]:
    following = itertools.dropwhile(lambda step: step.offset < frame.f_lasti, dis.get_instructions(frame.f_code))
    reads = list(itertools.takewhile(lambda step: step.opname in ("LOAD_ATTR", "LOAD_METHOD"), following))
    return [step.argval for step in reads[1:]] if reads and reads[0].argval == name else []
