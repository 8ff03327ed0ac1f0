"""``tf.contrib`` is gone: whoever asks for it hears which symbol, which file and which line.

The errors are the AttributeError and ImportError that Python itself would raise, so that a script which looks before it leaps
(``hasattr(tf, "contrib")``, ``except ImportError: import tf_slim``) goes its other way.
"""

from __future__ import annotations

import dis
import itertools
import types

from estimator_bridge.errors import NotSupportedError


class ContribError(NotSupportedError):
    """A symbol of ``tf.contrib`` was asked for.

    Args:
        symbol: as the script would write it: ``tf.contrib.layers.l2_regularizer``.
        frame: where it was asked for.
    """

    def __init__(self, symbol: str, frame: types.FrameType) -> None:
        super().__init__(
            "TensorFlow 2 removed tf.contrib."
            if symbol == "tf.contrib"
            else f"TensorFlow 2 removed {symbol} with all of tf.contrib.",
            expected="names of TensorFlow 1 outside tf.contrib",
            received=f"{symbol} at {frame.f_code.co_filename}:{frame.f_lineno}",
            fix="Replace it: tf_slim has contrib.layers and contrib.slim, tf.distribute has contrib.distribute.",
        )


class ContribAttributeError(ContribError, AttributeError):
    """``tf.contrib``, as an attribute."""


class ContribImportError(ContribError, ImportError):
    """``tf.contrib``, imported."""


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
