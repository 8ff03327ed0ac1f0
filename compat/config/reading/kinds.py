"""Classes that a ModernConfig names, with their arguments, and the check of plain values against annotations."""

import contextlib
import dataclasses
import math
import re
import types
import typing
from collections.abc import Mapping
from typing import Any

from estimator_bridge.errors import BridgeError

STRATEGIES = ("MirroredStrategy", "MultiWorkerMirroredStrategy", "ParameterServerStrategy", "CentralStorageStrategy",
              "OneDeviceStrategy", "TPUStrategy")  # fmt: skip
CROSS_DEVICE_OPS = ("ReductionToOneDevice", "NcclAllReduce", "HierarchicalCopyAllReduce")
PACKING = CROSS_DEVICE_OPS[1:]
COMMUNICATION = ("AUTO", "RING", "NCCL")
TIMES = ("every_steps", "every_secs")


def conform(value: Any, annotation: Any, name: str) -> Any:
    """Returns a value as its field holds it.

    Args:
        value: Value from JSON, TOML or Python.
        annotation: Type of the field.
        name: Name of the field for errors.

    Returns:
        The value; a list becomes a tuple and an integer a float if the field requires it.

    Raises:
        BridgeError: The value has the wrong type.

    Example:
        >>> conform([[100, 200]], tuple[tuple[float, ...], ...], "limits")
        ((100.0, 200.0),)
    """
    try:
        return _conform(value, annotation)
    except (TypeError, OverflowError):
        raise BridgeError(
            f"{name} has a value of the wrong type.", expected=_type_text(annotation), received=repr(value)
        ) from None


def _conform(value: Any, annotation: Any) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {typing.Union, types.UnionType}:
        for choice in arguments:
            with contextlib.suppress(TypeError, OverflowError):
                return _conform(value, choice)
        raise TypeError
    if origin is typing.Literal:
        return _check(value, value in arguments)
    if origin is tuple:
        _check(value, isinstance(value, list | tuple))
        return tuple(_conform(one, arguments[0]) for one in value)
    if origin is Mapping:
        _check(value, isinstance(value, Mapping))
        return {_conform(key, arguments[0]): _conform(one, arguments[1]) for key, one in value.items()}
    return _scalar(value, annotation)


def _scalar(value: Any, annotation: Any) -> Any:
    if annotation is Any:
        return value
    if annotation is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(_check(value, math.isfinite(value)))  # Python code and JSON cannot write others
    return _check(value, isinstance(value, annotation) and isinstance(value, bool) == (annotation is bool))


def _check(value: Any, fits: bool) -> Any:
    if not fits:
        raise TypeError
    return value


def _type_text(annotation: Any) -> str:
    if isinstance(annotation, type):
        return annotation.__name__
    return re.sub(r"typing\.|collections\.abc\.| \| None", "", str(annotation))


@dataclasses.dataclass(frozen=True)
class ClassArguments:
    """Arguments of a class.

    Attributes:
        arguments: Name -> type.
        needs: Names of required arguments.
        needs_one: Names of arguments of which at least one is required.
    """

    arguments: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    needs_one: tuple[str, ...] = ()

    def check(self, given: Mapping[str, Any], name: str) -> None:
        """Refuses arguments that are unknown, missing or of the wrong type.

        Raises:
            BridgeError: An argument is wrong; the error names the first.

        Example:
            >>> ClassArguments({"last_step": int}, ("last_step",)).check({"last_step": 5}, "callbacks: StopAtStep")
        """
        for key, value in given.items():
            if key not in self.arguments:
                raise BridgeError(f"{name} takes no argument {key}.", expected=", ".join(self.arguments), received=key)
            conform(value, self.arguments[key], f"{name}: {key}")
        missing = [key for key in self.needs if key not in given]
        found = [key for key in self.needs_one if given.get(key) is not None and given[key] is not False]
        if missing or (self.needs_one and not found):
            wanted = ", ".join(missing) or " or ".join(self.needs_one)
            raise BridgeError(f"{name} lacks an argument.", expected=wanted, received=", ".join(given) or "none")


_TIMED: Mapping[str, Any] = {"every_steps": int, "every_secs": float}
_LOGGED: Mapping[str, Any] = {**_TIMED, "log_dir": str}
_STOPPED: Mapping[str, Any] = {"monitor": str, "mode": str, "min_steps": int, "eval_dir": str}
_EXPORT = ClassArguments({"name": str, "exports_to_keep": int}, ("name",))

PARTS: Mapping[str, Mapping[str, ClassArguments]] = {
    "callbacks": {
        "StopAtStep": ClassArguments({"num_steps": int, "last_step": int}, needs_one=("num_steps", "last_step")),
        "SaveCheckpoint": ClassArguments({"directory": str, **_TIMED}, ("directory",), TIMES),
        "LogValues": ClassArguments({**_TIMED, "at_end": bool}, needs_one=(*TIMES, "at_end")),
        "StepsPerSecond": ClassArguments(_LOGGED, needs_one=TIMES),
        "StopOnNan": ClassArguments({"fail": bool}),
        "WriteSummaries": ClassArguments(_LOGGED, needs_one=TIMES),
        "Profile": ClassArguments(_LOGGED, needs_one=TIMES),
        "EvaluateEvery": ClassArguments({"every_steps": int, "steps": int, "name": str}, ("every_steps",)),
        "StopWithoutImprovement": ClassArguments({**_STOPPED, "max_steps": int}, ("monitor", "mode", "max_steps")),
        "StopAtThreshold": ClassArguments({**_STOPPED, "threshold": float}, ("monitor", "mode", "threshold")),
    },
    "exporters": {"ExportAtEnd": ClassArguments({"name": str}, ("name",)), "ExportLatest": _EXPORT, "ExportBest": _EXPORT},
}
"""List of a ModernConfig -> its classes."""

PARTITIONERS: Mapping[str, ClassArguments] = {
    "FixedShardsPartitioner": ClassArguments({"num_shards": int}, ("num_shards",)),
    "MinSizePartitioner": ClassArguments({"min_shard_bytes": int, "max_shards": int, "bytes_per_string": int}),
    "MaxSizePartitioner": ClassArguments(
        {"max_shard_bytes": int, "max_shards": int, "bytes_per_string": int}, ("max_shard_bytes",)
    ),
}
