"""``fleet.toml``: the pipelines of a team, with owner, arguments, thresholds and accepted differences."""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import importlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from estimator_bridge.compat.source.reading import check_path
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.result import Level


@dataclasses.dataclass(frozen=True)
class Waiver:
    """A difference that the owner accepts for a time.

    Attributes:
        finding: Level of the findings that are accepted, e.g. ``metric``.
        reason: Reason, for the report.
        until: Last day on which it counts.
    """

    finding: str
    reason: str
    until: datetime.date


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """A pipeline of the fleet.

    Attributes:
        name: Name, which is also that of its folder below the results.
        script: Path of its script, relative to ``folder``.
        arguments: Command line of the script.
        data: Paths of its data, files or folders, relative to ``folder``; a change of their sizes or times is one of the pipeline.
        folder: Folder in which it runs.
        rewrite: Path of its rewrite in Keras, relative to ``folder``; empty for none.
        options: Further options of ``compare``.
        owner: Person or team to ask.
        steps: Number of training steps that are compared; 0 for all.
        timeout: Seconds after which a comparison is ended.
        retries: Number of further tries of a comparison that could not be made.
        abs_diff: Largest absolute difference; None for that of ``compare``.
        rel_diff: Largest relative difference; None for that of ``compare``.
        variable_abs_diff: Largest absolute difference of a variable; None for that of ``compare``.
        waivers: Accepted differences.
        signed_off: Name of who declared it done; empty for nobody.
    """

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    folder: Path = Path()
    rewrite: str = ""
    options: tuple[str, ...] = ()
    owner: str = ""
    steps: int = 0
    timeout: float = 3600.0
    retries: int = 0
    abs_diff: float | None = None
    rel_diff: float | None = None
    variable_abs_diff: float | None = None
    waivers: tuple[Waiver, ...] = ()
    signed_off: str = ""

    @property
    def file(self) -> Path:
        """Path of the script, or of the module that ``-m`` names, relative to ``folder``."""
        return Path(self.script.replace(".", "/") + ".py") if "-m" in self.options else Path(self.script)

    def comparison(self) -> list[str]:
        """Returns the arguments of ``compare``, without those that say where its report goes."""
        chosen = {name: getattr(self, name) for name in ("abs_diff", "rel_diff", "variable_abs_diff")} | {
            "steps": self.steps or None
        }
        options = [f"--{name.replace('_', '-')}={value}" for name, value in chosen.items() if value is not None]
        scripts = [self.script, self.rewrite] if self.rewrite else [self.script]
        return [*options, *self.options, *scripts, *self.arguments]


class _Key(NamedTuple):
    expected: str
    accepts: Callable[[Any], bool]
    read: Callable[[Any], Any] = lambda value: value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")


_TEXT = _Key("text", _is_text)
_TEXTS = _Key("a list of texts", lambda value: isinstance(value, list) and all(map(_is_text, value)), tuple)
_COUNT = _Key("a whole number of 0 or more", lambda value: isinstance(value, int) and _is_number(value))
_NUMBER = _Key("a number of 0 or more", _is_number)
_NAME = _Key(
    "letters, digits, '-', '_' and '.', not first",
    lambda value: isinstance(value, str) and bool(re.fullmatch(r"[\w-][\w.-]{0,99}", value)),
)
_WAIVER_KEYS = {
    "finding": _Key(" or ".join(get_args(Level)), lambda value: value in get_args(Level)),
    "reason": _TEXT,
    "until": _Key("a date, e.g. 2027-01-31, without quotes", lambda value: type(value) is datetime.date),
}
_SHARED_KEYS = {
    "owner": _TEXT,
    "options": _TEXTS,
    "steps": _COUNT,
    "timeout": _NUMBER,
    "retries": _COUNT,
    "abs_diff": _NUMBER,
    "rel_diff": _NUMBER,
    "variable_abs_diff": _NUMBER,
    "folder": _Key("the path of a folder", _is_text, Path),
}
_PIPELINE_KEYS = {
    "name": _NAME,
    "script": _TEXT,
    "arguments": _TEXTS,
    "data": _TEXTS,
    "rewrite": _TEXT,
    "signed_off": _TEXT,
    **_SHARED_KEYS,
    "waivers": _Key(
        "[[pipeline.waivers]] tables", lambda value: isinstance(value, list) and all(isinstance(one, dict) for one in value)
    ),
}
_NEEDED = ("name", "script")


def read_fleet(path: Path) -> list[Pipeline]:
    """Reads a ``fleet.toml``.

    Args:
        path: File to read; folders in it are relative to its own.

    Returns:
        The pipelines, in order; keys of ``[defaults]`` count for each pipeline that lacks them.

    Raises:
        BridgeError: The file cannot be read, is no fleet, names a pipeline twice, or has a path that cannot be looked up.
    """
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BridgeError(
            "The fleet cannot be read.",
            expected="a file as estimator-bridge fleet init prints",
            received=f"{path}: {error.strerror}",
            fix="estimator-bridge fleet init . > fleet.toml",
        ) from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError and UnicodeDecodeError are the first
        raise BridgeError(f"{path}: this is not TOML.", received=error, fix="Correct that line.") from None
    return _pipelines(tables, path)


def _pipelines(tables: Mapping[str, Any], path: Path) -> list[Pipeline]:
    for name in tables:
        _known({"defaults": None, "pipeline": None}, name, str(path))
    defaults, rows = tables.get("defaults", {}), tables.get("pipeline", [])
    if not isinstance(defaults, dict) or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BridgeError(f"{path}: its tables have another form.", expected="[defaults] and [[pipeline]]")
    if not rows:
        raise BridgeError(f"{path}: there is no pipeline.", expected="[[pipeline]] with name and script")
    shared = _values(_SHARED_KEYS, defaults, f"{path}: [defaults]")
    found: dict[str, Pipeline] = {}
    for number, row in enumerate(rows, 1):
        where = f"{path}: [[pipeline]] {number}"
        values = shared | _values(_PIPELINE_KEYS, row, where, _NEEDED)
        waivers = [
            Waiver(**_values(_WAIVER_KEYS, one, f"{where}: waivers", tuple(_WAIVER_KEYS))) for one in values.pop("waivers", ())
        ]
        folder = path.parent / values.pop("folder", "")
        one = Pipeline(**values, folder=folder, waivers=tuple(waivers))
        if one.name.lower() in found:  # folders may be the same there
            raise BridgeError(f"{where}: this name is there twice.", expected="another name", received=one.name)
        for named in (one.file, *map(Path, (one.rewrite, *one.data))):
            check_path(folder / named)
        found[one.name.lower()] = one
    return list(found.values())


def _values(keys: Mapping[str, _Key], table: Mapping[str, Any], where: str, needed: Sequence[str] = ()) -> dict[str, Any]:
    for name in needed:
        if name not in table:
            raise BridgeError(
                f"{where}: {name} is missing.", expected=", ".join(needed), received=", ".join(table) or "nothing"
            )
    values = {}
    for name, value in table.items():
        key = _known(keys, name, where)
        if not key.accepts(value):
            raise BridgeError(
                f"{where}: {name} has a value that it cannot have.", expected=key.expected, received=repr(value)[:200]
            )
        values[name] = key.read(value)
    return values


def _known(keys: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in keys:
        near = difflib.get_close_matches(name, keys, n=1)
        raise BridgeError(
            f"{where}: there is no key {name[:200]!r} here.",
            expected=", ".join(keys),
            fix=f"Did you mean {near[0]!r}?" if near else "Leave it out.",
        )
    return keys[name]


def as_toml(scripts: Sequence[Path], root: Path) -> str:
    """Returns a ``fleet.toml`` with a pipeline for each script.

    Args:
        scripts: Scripts below ``root``.
        root: Folder of the file.

    Example:
        >>> print(as_toml([Path("ads/train.py")], Path(".")))
        [defaults]
        steps = 200
        timeout = 3600
        retries = 1
        <BLANKLINE>
        [[pipeline]]
        name = "ads-train"
        script = "train.py"
        folder = "ads"
        <BLANKLINE>
    """
    import tomli_w

    rows: list[dict[str, Any]] = []
    for script in scripts:
        inside = script.relative_to(root) if script.is_relative_to(root) else script
        name = re.sub(r"[^\w-]+", "-", "-".join(inside.with_suffix("").parts)).strip("-")[:100] or "script"
        package = [part for part in _packages(script, root) if script.suffix == ".py"]
        folder = Path(*inside.parent.parts[: len(inside.parent.parts) - len(package)]).as_posix()
        module = {"script": ".".join([*package, script.stem]), "folder": folder, "options": ["-m"]}
        rows.append({"name": name, **(module if package else {"script": inside.name, "folder": folder})})
    taken: set[str] = set()
    for row in rows:
        base, number = row["name"], 1
        while row["name"].lower() in taken:
            number += 1
            row["name"] = f"{base[:90]}-{number}"
        taken.add(row["name"].lower())
    defaults = tomli_w.dumps({"defaults": {"steps": 200, "timeout": 3600, "retries": 1}})
    return "\n".join([defaults, *("[[pipeline]]\n" + tomli_w.dumps(row) for row in rows)])


def _packages(script: Path, root: Path) -> list[str]:
    """Returns the names of the packages below ``root`` that a script stands in, outermost first."""
    folder = script.parent
    names: list[str] = []
    while folder != root and folder.name.isidentifier() and (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return names
