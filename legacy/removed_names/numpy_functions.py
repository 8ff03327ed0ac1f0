"""Functions and values of NumPy 1 that NumPy 2 does not have, as NumPy 1.26 and 1.16 document them."""

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

NINF = -np.inf
NZERO = -0.0
PZERO = 0.0

sctypes: dict[str, list[type]] = {
    "int": [np.int8, np.int16, np.int32, np.int64],
    "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
    "float": [np.float16, np.float32, np.float64, np.longdouble],
    "complex": [np.complex64, np.complex128, np.clongdouble],
    "others": [bool, object, bytes, str, np.void],
}
typeNA: dict[Any, Any] = dict(np.sctypeDict)  # noqa: N816 -- NumPy's name


class _ByType(dict[Any, Any]):
    """A dictionary by scalar type that takes any spelling of the type as a key."""

    def __missing__(self, key: Any) -> Any:
        return self[np.dtype(key).type]


_SCALARS = [np.dtype(code).type for code in np.typecodes["All"]]
nbytes = _ByType({scalar: np.dtype(scalar).itemsize for scalar in _SCALARS})


def _caster(scalar: type) -> Callable[[Any], Any]:
    return lambda value: np.asarray(value).astype(scalar)


cast = _ByType({scalar: _caster(scalar) for scalar in _SCALARS})


def asfarray(a: Any, dtype: Any = np.float64) -> Any:
    """Returns an array of type ``dtype``, or of float64 if ``dtype`` is no floating type."""
    return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def asscalar(a: Any) -> Any:
    """Returns an array of size one as a Python number."""
    return np.asarray(a).item()


def deprecate(*args: Any, **kwargs: Any) -> Any:
    """Returns a decorator that makes a function warn that it is deprecated."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def deprecated(*arguments: Any, **options: Any) -> Any:
            warnings.warn(f"`{function.__name__}` is deprecated!", DeprecationWarning, stacklevel=2)
            return function(*arguments, **options)

        return deprecated

    return decorate(args[0]) if args else decorate


def disp(mesg: Any, device: Any = None, linefeed: bool = True) -> None:
    """Writes a message, to stdout by default."""
    device = device or sys.stdout
    device.write(f"{mesg}\n" if linefeed else f"{mesg}")
    device.flush()


def find_common_type(array_types: Sequence[Any], scalar_types: Sequence[Any]) -> Any:
    """Returns the common type of arrays and scalars: scalars count only if their kind is higher than every array's."""
    arrays = [np.dtype(one) for one in array_types]
    scalars = [np.dtype(one) for one in scalar_types]
    array, scalar = (_highest(several) for several in (arrays, scalars))
    if array is None or scalar is None:
        return scalar if array is None else array
    order = "buifcmM"
    if array.kind not in order or scalar.kind not in order:
        return None
    return np.result_type(scalar, array) if order.index(scalar.kind) > order.index(array.kind) else array


def _highest(types: Sequence[Any]) -> Any:
    """Returns the smallest type that all types cast to; None if there is none."""
    if len(types) < 2:
        return types[0] if types else None
    if any(one.kind not in "buifcmMOSUV" for one in types) or len({one.kind in "mM" for one in types}) > 1:
        return None
    return np.result_type(*types)


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None) -> Any:
    """Returns a mask of the elements of the flattened ``ar1`` that are in ``ar2``."""
    return np.isin(np.asarray(ar1).ravel(), ar2, assume_unique=assume_unique, invert=invert, kind=kind)


def issctype(rep: Any) -> bool:
    """Returns True for scalar types and dtypes."""
    if not isinstance(rep, (type, np.dtype)):
        return False
    return obj2sctype(rep) not in (None, np.object_)


def issubsctype(arg1: Any, arg2: Any) -> bool:
    """Returns True if the first scalar type is a subclass of the second."""
    return issubclass(obj2sctype(arg1), obj2sctype(arg2))


def maximum_sctype(t: Any) -> Any:
    """Returns the scalar type of the same kind with the highest precision."""
    scalar = obj2sctype(t)
    if scalar is None:
        return t
    kinds = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
    kind = kinds.get(np.dtype(scalar).kind)
    return sctypes[kind][-1] if kind else scalar


def msort(a: Any) -> Any:
    """Returns a copy sorted along the first axis."""
    return np.sort(a, axis=0)


def obj2sctype(rep: Any, default: Any = None) -> Any:
    """Returns the scalar type of a type, dtype, array or name; ``default`` if there is none."""
    if isinstance(rep, type) and issubclass(rep, np.generic):
        return rep
    if isinstance(rep, np.ndarray):
        return rep.dtype.type
    try:
        return np.dtype(rep).type
    except (TypeError, ValueError, AttributeError):
        return default


def recfromcsv(fname: Any, **kwargs: Any) -> Any:
    """Reads comma-separated values with ``genfromtxt`` as a record array, names in lower case."""
    options = {"names": True, "case_sensitive": "lower", "delimiter": ",", "dtype": None} | kwargs
    return recfromtxt(fname, **options)


def recfromtxt(fname: Any, **kwargs: Any) -> Any:
    """Reads a text with ``genfromtxt`` as a record array; ``usemask=True`` gives a masked one."""
    records = np.genfromtxt(fname, **({"dtype": None} | kwargs))
    return records.view(np.ma.mrecords.MaskedRecords if kwargs.get("usemask") else np.recarray)


def sctype2char(sctype: Any) -> str:
    """Returns the one-letter code of a scalar type."""
    scalar = obj2sctype(sctype)
    if scalar is None:
        raise ValueError("unrecognized type")
    return str(np.dtype(scalar).char)


def source(object: Any, output: Any = None) -> None:  # noqa: A002 -- NumPy's name
    """Prints an object's source."""
    try:
        text = f"In file: {inspect.getsourcefile(object)}\n\n{inspect.getsource(object)}\n"
    except (OSError, TypeError):
        text = "Not available for this object.\n"
    (output or sys.stdout).write(text)
