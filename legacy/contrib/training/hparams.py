"""Hyperparameters with types, set from a command line's ``name=value,name=[value,value]``."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from estimator_bridge.errors import NotSupportedError

_ASSIGNMENT = re.compile(
    r"(?P<name>[a-zA-Z][\w.]*)(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*(?:(?P<value>[^,\[]*)|\[(?P<values>[^\]]*)\])(?:$|,\s*)"
)


class HParams:
    """Hyperparameters as attributes.

    Args:
        hparam_def: not supported, see ``to_proto``.
        model_structure: kept for ``get_model_structure``.
        kwargs: name and value of each; the value's type (the type of its first element, if it is a list) stays.

    Raises:
        ValueError: a name is taken, or a list is empty.
        NotSupportedError: a protocol buffer is given.

    Example:
        >>> hparams = HParams(rate=0.1, units=[4, 2], activation="relu")
        >>> hparams.parse("rate=1,units=[8]").values()
        {'rate': 1.0, 'units': [8], 'activation': 'relu'}
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def:
            _refuse_protocol_buffers()
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds one.

        Raises:
            ValueError: the name is taken, or the list is empty.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        is_list = isinstance(value, list | tuple)
        if is_list and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._hparam_types[name] = (type(value[0] if is_list else value), is_list)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes one.

        Raises:
            KeyError: there is no such hyperparameter.
            ValueError: it has another type.
        """
        wanted, is_list = self._hparam_types[name]
        if isinstance(value, list) and not is_list:
            raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
        if is_list and not isinstance(value, list):
            raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
        setattr(self, name, [_cast(name, wanted, item) for item in value] if is_list else _cast(name, wanted, value))

    def del_hparam(self, name: str) -> None:
        """Removes one, if it is there."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Changes several, from ``name=value`` pairs with commas between them.

        Raises:
            ValueError: something in it cannot be understood, or there is no such hyperparameter.
        """
        return self.override_from_dict(parse_values(values, {name: kind for name, (kind, _) in self._hparam_types.items()}))

    def parse_json(self, values_json: str) -> HParams:
        """Changes several, from a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Changes several; raises as ``set_hparam``."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map: Mapping[str, Any]) -> HParams:
        """The older name of ``override_from_dict``."""
        return self.override_from_dict(values_map)

    def set_model_structure(self, model_structure: Any) -> None:
        """Keeps it."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """What was kept."""
        return self._model_structure

    def values(self) -> dict[str, Any]:
        """Name and value of each."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def to_json(self, indent: int | None = None, separators: tuple[str, str] | None = None, sort_keys: bool = False) -> str:
        """All of them as a JSON object, written as ``json.dumps`` writes."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def get(self, key: str, default: Any = None) -> Any:
        """One of them, or the default if there is none of that name.

        Raises:
            ValueError: there is one, of another type than the default.
        """
        if key not in self._hparam_types:
            return default
        if default is not None:
            self._check_default(key, default)
        return getattr(self, key)

    def _check_default(self, key: str, default: Any) -> None:
        wanted, is_list = self._hparam_types[key]
        kind = f"list<{wanted}>" if is_list else str(wanted)
        message = f"Hparam '{key}' of type '{kind}' is incompatible with default={default}"
        if is_list != isinstance(default, list):
            raise ValueError(message)
        try:
            for value in default if is_list else [default]:
                _cast(key, wanted, value)
        except ValueError as error:
            raise ValueError(f"{message}. {error}") from error

    def to_proto(self, export_scope: str | None = None) -> NoReturn:
        """Not supported.

        Raises:
            NotSupportedError: always.
        """
        del export_scope
        _refuse_protocol_buffers()

    from_proto = staticmethod(lambda hparam_def, import_scope=None: HParams(hparam_def))

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())})"


def parse_values(values: str, type_map: Mapping[str, type], ignore_unknown: bool = False) -> dict[str, Any]:
    """What a string of ``name=value`` pairs says.

    Args:
        values: pairs with commas between them; a value may be a list, ``[1,2]``, and a name may have an index, ``name[3]=1``.
        type_map: type of each name.
        ignore_unknown: leave names without a type out.

    Returns:
        For each name a value, a list, or for a name with indices a dictionary of index and value.

    Raises:
        ValueError: something in it cannot be understood, stands there twice, or has no type.

    Example:
        >>> parse_values("a=1,b=[x,y],c[2]=true", {"a": float, "b": str, "c": bool})
        {'a': 1.0, 'b': ['x', 'y'], 'c': {2: True}}
    """
    results: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position = match.end()
        if match["name"] in type_map:
            _assign(results, match, type_map[match["name"]], values)
        elif not ignore_unknown:
            raise ValueError(f"Unknown hyperparameter type for {match['name']}")
    return results


def _assign(results: dict[str, Any], match: re.Match[str], kind: type, values: str) -> None:
    name, index, listed = match["name"], match["index"], match["values"]
    if listed is not None and index is not None:
        raise ValueError("Assignment of a list to a list index.")
    try:
        convert = _bool if kind is bool else kind
        value = convert(match["value"]) if listed is None else [convert(item) for item in re.split("[ ,]", listed) if item]
    except ValueError:
        received = match["value"] if listed is None else listed
        message = f"Could not parse hparam '{name}' of type '{kind.__name__}' with value '{received}' in {values}"
        raise ValueError(message) from None
    elements: Any = results if index is None else results.setdefault(name, {})
    key = name if index is None else int(index)
    if not isinstance(elements, dict) or key in elements:
        target = f"{name}[{index}]" if index is not None and isinstance(elements, dict) else name
        raise ValueError(f"Multiple assignments to variable '{target}' in {values}")
    elements[key] = value


def _bool(text: str) -> bool:
    return text in ("true", "True") or (text not in ("false", "False") and bool(int(text)))


# What a value has to be, if the hyperparameter is of this kind.
_KINDS: tuple[tuple[type | tuple[type, ...], type | tuple[type, ...]], ...] = (
    ((str, bytes), (str, bytes)),
    (numbers.Integral, numbers.Integral),
    (numbers.Number, numbers.Number),
)


def _cast(name: str, wanted: type, value: Any) -> Any:
    if type(value) is wanted or wanted is type(None):
        return value
    is_kin = all(isinstance(value, kind) for of, kind in _KINDS if issubclass(wanted, of))
    if not is_kin or issubclass(wanted, bool) != isinstance(value, bool):
        raise ValueError(f"Could not cast hparam '{name}' of type '{wanted}' from value {value!r}")
    convert: Callable[[Any], Any] = wanted
    return convert(value)


def _refuse_protocol_buffers() -> NoReturn:
    raise NotSupportedError(
        "Hyperparameters are not kept as protocol buffers any more.",
        expected="HParams made of names and values",
        fix="Use to_json() and parse_json().",
    )
