"""Brings the functions and classes that make a model function's network from a script's own modules into the script."""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from estimator_bridge.compat.source.names import Names
from estimator_bridge.compat.source.surface import canonical

Definition = ast.FunctionDef | ast.ClassDef
_MAKERS = re.compile(
    r"(tensorflow|tensorflow\.python)\.(layers\.|get_variable|variable_scope|Variable$|feature_column\.(input_layer|linear_model)|contrib\."
    r"|train\.SessionRunHook|nn\.(rnn_cell\.|dynamic_rnn|bidirectional_dynamic_rnn)|metrics\.|losses\.|train\.\w+Optimizer|keras\.(layers|models|applications|Model|Sequential)"
    r"|estimator\.ModeKeys|(add_to|get)_collection|(trainable|global)_variables)|keras\.(layers|models|applications|Model|Sequential)"
)
"""Names of what makes or asks for variables, metrics or optimizers, or depends on the mode."""
_SPEC = "EstimatorSpec"
_WITHOUT_LAYERS = frozenset(
    ("absl", "tensorflow", "numpy", "scipy", "pandas", "sklearn", "six", "keras", "tf_keras", "matplotlib", "cv2", "PIL", "yaml",
     "attr", "boto3", "click", "easydict", "editdistance", "faiss", "future", "gensim", "google", "h5py", "imageio", "imgaug", "jieba",
     "joblib", "librosa", "lxml", "mlflow", "mpl_toolkits", "msgpack", "networkx", "nibabel", "nltk", "psutil", "pycocotools",
     "pydicom", "pyhocon", "pynvml", "pyspark", "pytz", "rdkit", "regex", "requests", "seaborn", "sentencepiece", "shapely", "simplejson",
     "skimage", "soundfile", "spacy", "statsmodels", "tabulate", "termcolor", "tokenizers", "toml", "toposort", "torch", "tqdm", "ujson",
     "xgboost", "zmq")
)  # fmt: skip
"""Packages whose functions make no variables, or whose names have fixers."""
_MOST = 20  # names that lead to others


@dataclasses.dataclass(frozen=True)
class Merged:
    """A script with what it needs of its modules.

    Attributes:
        text: Source of the script.
        lines: Line of the old script for each line of the new one.
        moved: Files and names of the functions and classes that the script contains now.
    """

    text: str
    lines: tuple[int, ...]
    moved: frozenset[tuple[Path, str]]


class _File:
    """A parsed module.

    Args:
        path: Path of the module.
        text: Source in Python 3.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.short_name = re.sub(r"\W", "_", path.stem if path.stem != "__init__" else path.parent.name)
        self.tree = ast.parse(text)
        self.names = Names(self.tree)
        self.definitions = {one.name: one for one in self.tree.body if isinstance(one, Definition)}

    @functools.cached_property
    def chains(self) -> list[tuple[ast.Name | ast.Attribute, str]]:
        """The names and dotted names that the module reads, with what each means."""
        found: list[tuple[ast.Name | ast.Attribute, str]] = []
        kinds: tuple[type[ast.Attribute | ast.Name], ...] = (ast.Attribute, ast.Name)
        for kind in kinds:
            for node, place in self.names.nodes(kind):
                if isinstance(node.ctx, ast.Load) and _root(node) is not None:
                    meaning = self.names.resolve(node, place.scope)
                    home = place.scope.find(_root(node) or "")
                    own = home is self.names.module and meaning is None
                    found.append((node, f"{ast.unparse(node)}" if own else meaning or ""))
        return found

    @functools.cached_property
    def local(self) -> frozenset[str]:
        """The names that functions and classes of the module bind."""
        return frozenset(
            name for scope in self.names.scopes.values() if scope is not self.names.module for name in scope.bindings
        )

    def within(self, node: ast.AST) -> Iterator[tuple[ast.Name | ast.Attribute, str]]:
        """Yields the names inside of a definition."""
        first, last = _span(node)
        return (one for one in self.chains if first <= one[0].lineno <= last)


class Modules:
    """The modules of a script.

    Args:
        texts: Source of each file.
        root: Folder below which Python finds the modules.
    """

    def __init__(self, texts: Mapping[Path, str], root: Path) -> None:
        self._texts = texts
        self.root = root
        self._files: dict[Path, _File | None] = {}
        self._makers: dict[tuple[Path, str], bool] = {}
        self._definitions: dict[tuple[Path, str], tuple[_File, str] | None] = {}

    @functools.cached_property
    def has_scopes(self) -> bool:
        """True if a file has scopes of contrib that give layers their arguments."""
        return any("arg_scope" in text for text in self._texts.values())

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in their order."""
        return tuple(self._texts)

    def file(self, path: Path) -> _File | None:
        """Returns a parsed module; None for one that is not Python 3."""
        if path not in self._files:
            try:
                self._files[path] = _File(path, self._texts[path])
            except (SyntaxError, ValueError, RecursionError):
                self._files[path] = None
        return self._files[path]

    def definition(self, file: _File, meaning: str) -> tuple[_File, str] | None:
        """Returns what ``_definition`` finds, which is asked often."""
        key = file.path, meaning
        if key not in self._definitions:
            self._definitions[key] = self._definition(file, meaning)
        return self._definitions[key]

    def _definition(self, file: _File, meaning: str) -> tuple[_File, str] | None:
        """Returns the module and the name of the function or class that a dotted name means; None for all else.

        Args:
            file: Module that reads the name.
            meaning: Dotted name, e.g. ``models.resnet.build``; of the module's own definitions the name alone.
        """
        for _ in range(_MOST):
            first = meaning.partition(".")[0]
            if first in file.definitions:
                return file, first
            star = meaning.removeprefix("builtins.")
            stars = [module for module, _, _ in file.names.stars] if meaning.startswith("builtins.") else []
            behind = [self.found(file, f"{module}{'' if module.endswith('.') else '.'}{star}") for module in stars]
            found = next((one for one in behind if one is not None and one[1] in one[0].definitions), None)
            found = found or self.found(file, meaning)
            if found is None or not found[1]:
                return None
            other, name = found
            if name in other.definitions:
                return other, name
            inner = next(iter(other.names.module.bindings.get(name, ())), None)
            if inner is None or not inner.origin or (other is file and inner.origin == meaning):
                return None
            file, meaning = other, inner.origin
        return None

    def of_star(self, file: _File, name: str) -> str:
        """Returns the dotted name of what ``from module import *`` gives a file; empty if none does."""
        for module, *_ in file.names.stars:
            dotted = f"{module}{'' if module.endswith('.') else '.'}{name}"
            found = self.found(file, dotted)
            bound = found[0].names.module.bindings.get(found[1]) if found is not None else None
            if bound or (found is not None and found[1] in found[0].definitions):
                return (bound and bound[-1].origin) or dotted  # what the module imports itself has its own place
        return ""

    def found(self, file: _File, dotted: str) -> tuple[_File, str] | None:
        """Returns the module of a dotted name, and the name in it; the name is empty if it means the module itself."""
        placed = self._placed(file, dotted)
        return placed[1:] if placed is not None else None

    def _placed(self, file: _File, dotted: str) -> tuple[Path, _File, str] | None:
        """Returns what ``found`` does, behind the folder from which the name leads there."""
        level = len(dotted) - len(dotted.lstrip("."))
        folders = [file.path.parents[level - 1]] if level else [self.root, *_above(file.path, self.root)]
        parts = [part for part in dotted[level:].split(".") if part]
        if not level and parts[:1] == ["tensorflow"]:
            return None  # also for packages whose module for TensorFlow has that name
        for folder in folders:
            for length in range(len(parts), -1 if level else 0, -1):
                base = folder.joinpath(*parts[:length])
                if 0 < length == len(parts) and self._is_given_by_package(base):
                    continue
                for path in (*([base.with_suffix(".py")] if length else []), base / "__init__.py"):
                    other = self.file(path) if path in self._texts else None
                    if other is not None:
                        return folder, other, parts[length] if length < len(parts) else ""
        return None

    def _is_given_by_package(self, module: Path) -> bool:
        """Returns True if a package binds the name of its module to something else, as ``from .block import block`` does."""
        init = module.parent / "__init__.py"
        package = self.file(init) if init in self._texts else None
        bindings = list(package.names.module.bindings.get(module.name, ())) if package is not None else []
        own = f".{module.name}", ".".join(module.relative_to(self.root).parts)
        return bool(bindings) and bindings[-1].origin not in own

    def makes_layers(self, file: _File, name: str) -> bool:
        """Returns True if a definition makes layers, metrics or optimizers, by itself or by others, or depends on the mode."""
        key = file.path, name
        if key not in self._makers:
            reached = {key: (file, name)}
            pending = [key]
            makes = False
            while pending and not makes:
                one, own = reached[pending.pop()]
                for _, meaning in one.within(one.definitions[own]):
                    makes = makes or _MAKERS.match(canonical(meaning)) is not None
                    other = self.definition(one, meaning)
                    if other is not None and (other[0].path, other[1]) not in reached:
                        reached[other[0].path, other[1]] = other
                        pending.append((other[0].path, other[1]))
            self._makers[key] = makes
        return self._makers[key]

    def may_make_layers(self, path: Path, dotted: str, only_unknown: bool = False) -> bool:
        """Returns True for an imported function or class that makes layers, or of whose module nothing is known.

        Args:
            path: File of the script.
            dotted: Name as the script imports it.
            only_unknown: True to return False if the module is known, and converted with the script.
        """
        script = self.file(path)
        top = dotted.partition(".")[0]
        if script is None or top in sys.stdlib_module_names or top in _WITHOUT_LAYERS:
            return False
        found = self.found(script, dotted)
        definition = self.definition(script, dotted)
        makes = definition is not None and not only_unknown and self.makes_layers(*definition)
        return found is None or makes

    @functools.cached_property
    def imported(self) -> Mapping[Path, frozenset[str]]:
        """Names of each module that other modules import, and functions and classes that they name without a call: ``nets.block``."""
        found: dict[Path, set[str]] = {path: set() for path in self.paths}
        for file in filter(None, map(self.file, self.paths)):
            called = {one.func for one in ast.walk(file.tree) if isinstance(one, ast.Call)}
            chains = [(one in called, meaning) for one, meaning in file.chains if isinstance(one, ast.Attribute) and meaning]
            named = [
                meaning
                for is_called, meaning in chains
                if not is_called or self._is_of_a_name(file, meaning) or self._is_class(file, meaning)
            ]
            for origin in (*(origin for origin, *_ in file.names.imports), *named):
                for target in (self.definition(file, origin), self.found(file, origin)):
                    if target is not None and target[0] is not file and target[1]:
                        found[target[0].path].add(target[1])
        return {path: frozenset(names) for path, names in found.items()}

    def _is_class(self, file: _File, dotted: str) -> bool:
        found = self.definition(file, dotted)
        return found is not None and isinstance(found[0].definitions[found[1]], ast.ClassDef)

    def _is_of_a_name(self, file: _File, dotted: str) -> bool:
        """Returns True for an attribute of a name in another module: ``nets.slim.conv2d``."""
        found = self.found(file, dotted)
        return found is not None and found[1] not in ("", dotted.rpartition(".")[2])

    def dotted(self, path: Path, script: Path, relative: bool) -> str:
        """Returns the name by which a script imports a module.

        Args:
            path: File of the module.
            script: File of the script.
            relative: The script imports it by a name that begins with a dot.
        """
        if not relative:
            near, root = script.parent, self._import_root(script)
            is_beside = path.is_relative_to(near) and not self._names_own_package(
                script, root
            )  # Python finds what lies beside the script
            parts = _parts(path, near if is_beside else root if path.is_relative_to(root) else self.root)
            odd = [place for place, part in enumerate(parts, start=1) if not part.isidentifier()]
            return ".".join(parts[max(odd, default=0) :])
        parts, package = _parts(path, self.root), script.parent.relative_to(self.root).parts
        shared = 0
        while shared < min(len(package), len(parts)) and package[shared] == parts[shared]:
            shared += 1
        return "." * (len(package) - shared + 1) + ".".join(parts[shared:])

    def _import_root(self, script: Path) -> Path:
        """Returns the folder from which a script imports its modules, if that is not the one of all files: ``sdk/src`` of ``sdk/src/nets/fm.py``."""
        file = self.file(script)
        names = (*file.names.imports, *file.names.stars) if file is not None else ()
        origins = [origin for origin, *_ in names if not origin.startswith(".")]
        placed = [self._placed(file, origin) for origin in origins] if file is not None else []
        folders = {one[0] for one in placed if one is not None and one[0] != script.parent}
        return self.root if self.root in folders else max(folders, key=lambda one: len(one.parts), default=self.root)

    def _names_own_package(self, script: Path, root: Path) -> bool:
        """Returns True if a script imports modules beside it by names from the root, as one that is started by ``python -m``."""
        file, package = self.file(script), script.parent.relative_to(root).parts
        names = file.names if file is not None else None
        dotted = (name.split(".") for name, *_ in (*names.imports, *names.stars)) if names is not None else ()
        return any(tuple(parts[: len(package)]) == package for parts in dotted)


def _parts(path: Path, folder: Path) -> list[str]:
    """Returns the parts of the name by which a module is imported from a folder."""
    return [part for part in path.with_suffix("").relative_to(folder).parts if part != "__init__"]


def merge(path: Path, modules: Modules) -> Merged | None:
    """Returns a script with the functions and classes of its modules that its model functions need; None if they need none.

    Args:
        path: File of the script.
        modules: The script and its modules.
    """
    script = modules.file(path)
    if script is None:
        return None
    wanted = _wanted(script, modules)
    return _Merging(script, modules, wanted).merged() if wanted else None


def merge_all(modules: Modules) -> dict[Path, Merged]:
    """Returns the scripts that contain more of their modules now, and the modules without what nothing else needs."""
    merged = {path: one for path in modules.paths for one in [merge(path, modules)] if one is not None}
    moved = {each for one in merged.values() for each in one.moved}
    for path in modules.paths:
        file = modules.file(path)
        if file is None:
            continue
        for meaning in (*(one for _, one in file.chains), *(origin for origin, *_ in file.names.imports)):
            found = modules.definition(file, meaning) if meaning else None
            if (
                found is not None
                and found[0] is not file
                and not (path in merged and (found[0].path, found[1]) in merged[path].moved)
            ):
                moved.discard((found[0].path, found[1]))
    for path in {path for path, _ in moved} - merged.keys():
        rest = without(path, [name for other, name in moved if other == path], modules)
        if rest is not None:
            merged[path] = rest
    return merged


def without(path: Path, names: Iterable[str], modules: Modules) -> Merged | None:
    """Returns a module without functions and classes that a script contains now; None if it still needs all of them itself.

    Args:
        path: File of the module.
        names: Names of the functions and classes.
        modules: The module and others.
    """
    file = modules.file(path)
    if file is None:
        return None
    gone = set(names)
    while True:  # one that another one needs which stays, stays, too
        spans = [_span(file.definitions[name]) for name in gone]
        rest = {meaning.partition(".")[0] for node, meaning in file.chains if not any(a <= node.lineno <= b for a, b in spans)}
        needed = gone & rest
        if not needed:
            break
        gone -= needed
    if not gone:
        return None
    lines = file.text.split("\n")
    kept = [
        (text, number)
        for number, text in enumerate(lines, 1)
        if not any(a <= number <= b for a, b in map(_span, (file.definitions[name] for name in gone)))
    ]
    return Merged(
        "\n".join(text for text, _ in kept), tuple(number for _, number in kept), frozenset((path, name) for name in gone)
    )


def _wanted(script: _File, modules: Modules) -> list[tuple[_File, str]]:
    """Returns the definitions of other modules that model functions of a script need, each behind those that it needs."""
    starts = [name for name, one in script.definitions.items() if _SPEC in ast.unparse(one) or _takes_mode(one)]
    found: dict[tuple[Path, str], tuple[_File, str]] = {}
    seen: set[tuple[Path, str]] = set()

    def visit(file: _File, name: str) -> None:
        if (file.path, name) in seen:
            return
        seen.add((file.path, name))
        for _, meaning in file.within(file.definitions[name]):
            other = modules.definition(file, meaning)
            if other is not None and modules.makes_layers(*other) and _can_move(other[0].definitions[other[1]]):
                visit(*other)
        if file is not script:
            found[file.path, name] = file, name

    for name in starts:
        visit(script, name)
    return list(found.values())


def _can_move(node: ast.AST) -> bool:
    """Returns False for a definition that binds names of its module, or imports by the module's place."""
    inside = list(ast.walk(node))
    relative = any(isinstance(one, ast.ImportFrom) and one.level for one in inside)
    return not relative and not any(isinstance(one, ast.Global) for one in inside)


def _takes_mode(node: ast.AST) -> bool:
    """Returns True for a function of features and a mode, which may return what another one returns."""
    names = [one.arg for one in node.args.args] if isinstance(node, ast.FunctionDef) else []
    return {"features", "mode"} <= set(names)


class _Merging:
    def __init__(self, script: _File, modules: Modules, wanted: list[tuple[_File, str]]) -> None:
        self._script = script
        self._modules = modules
        self._wanted = wanted
        self._relative = any(isinstance(one, ast.ImportFrom) and one.level for one in script.tree.body)
        self._bound = {
            name: {binding.origin for binding in bindings} for name, bindings in script.names.module.bindings.items()
        }
        self._imports: dict[str, str] = {}  # statement by the name that it binds
        self._new: dict[tuple[Path, str], str] = {}
        moved = {(file.path, name) for file, name in wanted}
        self._local = {name for file in (script, *(file for file, _ in wanted)) for name in file.local}
        for file, name in wanted:
            means_it = any(modules.definition(script, origin) == (file, name) for origin in self._bound.get(name, ()))
            is_free = (name not in self._bound or means_it) and name not in self._local
            self._new[file.path, name] = name if is_free and name not in self._new.values() else f"{file.short_name}_{name}"
        self._moved = moved

    def merged(self) -> Merged:
        script = self._script
        spelled = self._edited(script, script.chains, 1, len(script.text.split("\n")))
        lines = [(text, number) for number, text in enumerate(spelled, 1)]
        place = self._behind_imports()
        pieces: list[tuple[str, int]] = []
        for file, name in self._wanted:
            first, last = _span(file.definitions[name])
            text = self._edited(file, file.within(file.definitions[name]), first, last)
            new = self._new[file.path, name]
            header = file.definitions[name].lineno - first
            text[header] = re.sub(rf"\b{name}\b", new, text[header], count=1)
            pieces += [("", place), ("", place), *((line, place) for line in text)]
        added = [(one, place) for one in dict.fromkeys(self._imports.values())]
        lines[place:place] = [*added, *pieces, *([("", place)] * 2 if pieces else [])]
        lines = [(text, number) for text, number in self._without_imports(lines)]
        return Merged("\n".join(text for text, _ in lines), tuple(number for _, number in lines), frozenset(self._moved))

    def _behind_imports(self) -> int:
        """Returns the number of lines up to the last import at the top of the script."""
        ends = [one.end_lineno or 0 for one in self._script.tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
        firsts = [_span(one)[0] for one in self._script.tree.body if isinstance(one, Definition)]
        return max([end for end in ends if not firsts or end < min(firsts)], default=0)

    def _without_imports(self, lines: list[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        """Yields the lines; imports of what the script contains now are without it."""
        changed: dict[int, str | None] = {}
        top = set(self._script.tree.body)
        for one in ast.walk(self._script.tree):
            if not isinstance(one, ast.ImportFrom):
                continue
            dotted = "." * one.level + (one.module or "")
            whole = [f"{dotted}{'' if dotted.endswith('.') else '.'}{alias.name}" for alias in one.names]
            found = [self._modules.definition(self._script, name) for name in whole]
            kept = [
                alias
                for alias, file in zip(one.names, found, strict=True)
                if file is None or (file[0].path, file[1]) not in self._moved
            ]
            if len(kept) < len(one.names):
                comments = re.findall(
                    r"#.*", "\n".join(text for text, number in lines if one.lineno <= number <= (one.end_lineno or 0))
                )
                text = ast.unparse(ast.ImportFrom(one.module, kept, one.level)) if kept else None
                if one not in top:  # its block may have nothing else
                    text = " " * one.col_offset + (text or "pass")
                changed[one.lineno] = "\n".join([*([text] if text else []), *comments]) if text or comments else None
                changed.update(dict.fromkeys(range(one.lineno + 1, (one.end_lineno or 0) + 1)))
        seen = set[int]()
        for text, number in lines:
            original = number not in seen
            seen.add(number)
            if number not in changed or not original:
                yield text, number
                continue
            new = changed[number]
            if new is not None:
                yield from ((line, number) for line in new.split("\n"))

    def _edited(self, file: _File, chains: Iterable[tuple[ast.Name | ast.Attribute, str]], first: int, last: int) -> list[str]:
        """Returns the lines of a part of a file, in which names mean in the script what they meant in the file."""
        edits: dict[tuple[int, int], tuple[int, str]] = {}
        for node, meaning in chains:  # of a dotted name the whole comes first
            place = node.lineno, node.col_offset
            new = self._spelled(file, node, meaning) if place not in edits else None
            if new is not None:
                edits[place] = new
        lines = [line.encode() for line in file.text.split("\n")[first - 1 : last]]
        for (number, start), (end, text) in sorted(edits.items(), reverse=True):
            line = lines[number - first]
            lines[number - first] = line[:start] + text.encode() + line[end:]
        return [line.decode() for line in lines]

    def _spelled(self, file: _File, node: ast.Name | ast.Attribute, meaning: str) -> tuple[int, str] | None:
        """Returns the end of a name that has to be written otherwise, and its new spelling."""
        target = self._modules.definition(file, meaning) if meaning else None
        root = _root(node) or ""
        if target is not None and (target[0].path, target[1]) in self._moved:
            new = self._new[target[0].path, target[1]]
            part: ast.expr = node
            while isinstance(part, ast.Attribute) and part.attr != target[1] and _part_of(part, target[1]):
                part = part.value
            same = ast.unparse(part) == new
            is_one_line = part.end_lineno == node.lineno
            return (part.end_col_offset or 0, new) if not same and is_one_line else None
        if file is self._script:
            return None
        new = self._imported(file, root, meaning)
        if new == root:
            return None
        return node.col_offset + len(root.encode()), new

    def _imported(self, file: _File, root: str, meaning: str) -> str:
        """Returns the name in the script for a name of a module's own."""
        bindings = file.names.module.bindings.get(root)
        of_star = self._modules.of_star(file, root) if not bindings and meaning.startswith("builtins.") else ""
        if not meaning or not (bindings or of_star):
            return root
        origin = bindings[-1].origin if bindings else of_star
        new = root
        others = self._bound.get(root, set())
        found = self._modules.found(file, origin) if origin else (file, root)
        if any(
            other and (other == origin or found == self._modules.found(self._script, other) is not None) for other in others
        ):
            return root  # the script means the same by it
        if others or root in self._script.local:
            new = f"{file.short_name}_{root}"
        if new not in self._imports:
            self._imports[new] = self._statement(file, root, origin, bindings[-1].value if bindings else None, new)
        return new

    def _statement(self, file: _File, root: str, origin: str, value: ast.expr | None, new: str) -> str:
        """Returns the statement that gives the script a name of a module."""
        if value is not None and (file.names.resolve(value, file.names.module) or "").startswith("tensorflow"):
            return f"{new} = {ast.unparse(value)}"  # a name for a module of TensorFlow
        found = self._modules.found(file, origin) if origin else (file, root)
        if found is not None:
            other, name = found
            dotted = self._modules.dotted(other.path, self._script.path, self._relative)
            if name:
                return f"from {dotted} import {name}{f' as {new}' if name != new else ''}"
            package, last = _package_and_name(dotted)
            if new == dotted or not package:
                return f"import {dotted}{f' as {new}' if new != dotted else ''}"
            return f"from {package} import {last}{f' as {new}' if last != new else ''}"
        package, last = _package_and_name(origin)
        if not package:
            return f"import {origin}{f' as {new}' if new != origin else ''}"
        if canonical(origin) == "tensorflow":
            return f"import {origin} as {new}"
        return f"from {package} import {last}{f' as {new}' if last != new else ''}"


def _package_and_name(dotted: str) -> tuple[str, str]:
    """Returns the two parts of a dotted name; the package of ``.a`` is a dot."""
    package, _, last = dotted.rpartition(".")
    return (package, last) if package.strip(".") else (dotted[: len(dotted) - len(last)], last)


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _part_of(node: ast.expr, name: str) -> bool:
    """Returns True if a chain of attributes has a name in it."""
    while isinstance(node, ast.Attribute):
        if node.attr == name:
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id == name


def _above(path: Path, root: Path) -> list[Path]:
    """Returns the folder of a file, and those above it up to the root."""
    return [one for one in path.parents if one.is_relative_to(root)]


def _span(node: ast.AST) -> tuple[int, int]:
    """Returns the first and the last line of a definition, with its decorators."""
    assert isinstance(node, Definition)
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return first, node.end_lineno or node.lineno
