"""Writes messages/*.md, and the file that ``explain`` reads, from every BridgeError in the source.

Run ``python docs/reference/generate_messages.py``. TensorFlow is not needed.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.errors import anchor_of

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent / "messages"
DATA = ROOT / "src" / "estimator_bridge" / "cli" / "explain" / "messages.json"
"""File of the package with the same messages: anchor -> messages."""

_GENERATED = "% Written by docs/reference/generate_messages.py from the source; change the messages there.\n"
_HEAD = """# Messages: {part}

For anyone whose command ended with a message about {about}.

Search the page for words of the message, or for the heading that its last line names. `…` stands for what differs from case to case.
To know more about {about}, read [](../../{guide}.md).
"""
_INDEX = """# What a message means

For anyone whose command ended with exit code 2 and a message that does not help enough.

```console
$ estimator-bridge run tarin.py
estimator-bridge: There is no such script.
  expected: the path of a Python file, or -m and a module's name
  received: tarin.py
  to do:    Check the path; arguments of the script come after it.
  help:     estimator-bridge explain script-run-check-file
```

The command in the last line prints all that the same function says, and `estimator-bridge explain` with words of a message finds it.
These pages list each message of the source, too:

:::{toctree}
:maxdepth: 1

"""
PARTS = {
    "cli": ("the options of all commands", "reference/commands"),
    "cluster": ("TF_CONFIG and tasks", "how-to/clusters/index"),
    "compat": ("checkpoints, configurations and source", "how-to/convert-checkpoints"),
    "fleet": ("many pipelines", "how-to/migrate-a-fleet"),
    "launcher": ("clusters that launch starts", "how-to/clusters/index"),
    "legacy": ("what of TensorFlow 1 the legacy path brings back", "reference/supported"),
    "modern": ("what the modern path does", "reference/supported"),
    "parity": ("comparisons", "how-to/compare"),
    "runtime": ("files in JSON and TensorFlow's formats", "reference/checkpoint-format"),
    "script": ("scripts and how they run", "tutorials/getting-started"),
}
"""Part of the package -> what its messages are about, and the page to read."""

_ESCAPED = re.compile(r"[\\`*_<>\[\]{}|#$~]")
_RESTORE = "Restore the file from a backup, or write it again: its bytes are not those that were written."


@dataclasses.dataclass(frozen=True)
class Message:
    """A message of the source.

    Attributes:
        what: Sentences of which one says what happened.
        expected: Values of which one would have been accepted.
        fix: Advice, of which one says what to do.
    """

    what: list[str]
    expected: list[str]
    fix: list[str]

    def as_line(self) -> str:
        """Returns the message as a line of a list in Markdown."""
        what, expected, fix = ([_ESCAPED.sub(r"\\\g<0>", text) for text in texts] for texts in dataclasses.astuple(self))
        words = [f"**{'** or **'.join(what)}**", f"Expected: {' or '.join(expected)}." if expected else "", " or ".join(fix)]
        return f"- {' '.join(filter(None, words))}"


def pages() -> dict[str, str]:
    """Renders the pages.

    Returns:
        Mapping from file name to text.
    """
    found: dict[str, dict[str, list[Message]]] = {part: {} for part in PARTS}
    for anchor, messages in sections().items():
        found[anchor.partition("-")[0]][anchor] = messages
    index = "\n".join([_GENERATED, _INDEX + "\n".join(PARTS), ":::\n"])
    return {"index.md": index} | {f"{part}.md": _page(part, rows) for part, rows in found.items()}


def data() -> str:
    """Renders the file that ``explain`` reads."""
    found = {anchor: list(map(dataclasses.asdict, messages)) for anchor, messages in sections().items()}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def sections() -> dict[str, list[Message]]:
    """Finds the messages.

    Returns:
        Sorted mapping from anchor to messages.

    Raises:
        ValueError: A message is made outside of a function, where it has no address, its text is unknown, or it says neither what is
            expected nor what to do.
    """
    trees = dict(_trees())
    errors = _error_classes(trees)
    found: dict[str, list[Message]] = {}
    for module, tree in list(trees.items())[:-1]:
        for function, call in _messages(tree, errors):
            message = _message(call, function, tree)
            messages = found.setdefault(anchor_of(module, function.name), [])
            messages.extend([message] if message not in messages else [])
    return dict(sorted(found.items()))


def _trees() -> Iterator[tuple[str, ast.Module]]:
    """Yields each module of the package with its name."""
    folders = ((ROOT / "src" / "estimator_bridge", PARTS), (ROOT, PARTS))
    for folder, part in ((folder, part) for folder, parts in folders for part in parts if not (folder / part).is_symlink()):
        for path in sorted((folder / part).rglob("*.py")):
            names = path.relative_to(folder).with_suffix("").parts
            module = ".".join(["estimator_bridge", *names]).removesuffix(".__init__")
            yield module, ast.parse(path.read_text(encoding="utf-8"))
    yield "estimator_bridge", ast.parse((ROOT / "src" / "estimator_bridge" / "errors.py").read_text(encoding="utf-8"))


def _error_classes(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Returns the names of BridgeError and of all classes that derive from it, with those of their methods, inherited ones but BridgeError's."""
    classes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found: dict[str, list[str]] = {"BridgeError": []}
    while new := [node for node in classes if node.name not in found and any(_name(base) in found for base in node.bases)]:
        for node in new:
            inherited = [method for base in node.bases for method in found.get(_name(base), [])]
            found[node.name] = inherited + [one.name for one in node.body if isinstance(one, ast.FunctionDef)]
    return found


def _messages(tree: ast.Module, errors: dict[str, list[str]]) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
    """Yields each call that makes a message, with the function in which it stands.

    An error class with an ``__init__`` of its own makes its message there. ``modern.graph.fragments.refused`` makes its caller's message.
    """

    def walk(node: ast.AST, function: ast.FunctionDef | None, kind: str) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
        if isinstance(node, ast.Call):
            inside = kind in errors and ast.unparse(node.func) == "super().__init__"
            if any(keyword.arg == "address" for keyword in node.keywords):
                return  # it repeats a message
            is_error = _name(node.func) in errors and "__init__" not in errors[_name(node.func)]
            if inside or is_error or _is_of_operation(node):
                if function is None:
                    raise ValueError(f"no function: {ast.unparse(node)}")
                yield function, node
        if isinstance(node, ast.FunctionDef):
            function = node
        elif isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            function = None  # their frames have no name
        for child in ast.iter_child_nodes(node):
            yield from walk(child, function, node.name if isinstance(node, ast.ClassDef) else kind)

    return walk(tree, None, "")


def _message(call: ast.Call, function: ast.FunctionDef, tree: ast.Module) -> Message:
    """Returns the message that a call makes."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if call.args:
        given["what"] = call.args[_is_of_operation(call)]
    what, expected, fix = (
        list(dict.fromkeys(_texts(given[name], function, tree))) if name in given else []
        for name in ("what", "expected", "fix")
    )
    if not fix and _name(call.func) == "CorruptError":
        fix = [_RESTORE]
    if what in ([], ["…"]):
        raise ValueError(f"no text that says what happened: {ast.unparse(call)}")
    if not (expected or fix) and None not in given:
        raise ValueError(f"neither a value that is expected nor what to do: {ast.unparse(call)}")
    return Message(what, expected, fix)


def _is_of_operation(call: ast.Call) -> bool:
    """Returns True for a call of ``modern.graph.fragments.refused``, whose text comes after an operation."""
    return _name(call.func) == "refused" and len(call.args) > 1


def _texts(node: ast.expr, function: ast.FunctionDef, tree: ast.Module) -> list[str]:
    """Returns the texts that an expression can be, as Markdown, with … for what is computed."""
    if isinstance(node, ast.Constant):
        return [_spelled(node)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(map(_spelled, node.values))]
    if isinstance(node, ast.IfExp):
        return _texts(node.body, function, tree) + _texts(node.orelse, function, tree)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = (_texts(side, function, tree) for side in (node.left, node.right))
        return [first + second for first in left for second in right]
    if isinstance(node, ast.Dict):
        return [text for value in node.values for text in _texts(value, function, tree)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        return [text for part in (node.func.value, *node.args[1:]) for text in _texts(part, function, tree)]
    if isinstance(node, ast.Name):
        return _assigned(node, function, tree) or ["…"]
    return ["…"]


def _assigned(use: ast.Name, function: ast.FunctionDef, tree: ast.Module) -> list[str]:
    """Returns the texts that a name gets by assignments in its function, as an argument in calls of the function, or else in the module.

    Assignments between the last message of the function and the use count alone, if there are any.
    """
    ends = [node.end_lineno or 0 for node in ast.walk(function) if isinstance(node, ast.Raise)]
    last = max((end for end in ends if end < use.lineno), default=0)
    return (
        _assigned_in(function, use.id, function, tree, range(last, use.lineno + 1))
        or _assigned_in(function, use.id, function, tree)
        or _passed(use.id, function, tree)
        or _assigned_in(tree, use.id, function, tree)
    )


def _assigned_in(
    scope: ast.AST, name: str, function: ast.FunctionDef, tree: ast.Module, lines: range = range(10**9)
) -> list[str]:
    pairs = [pair for node in ast.walk(scope) if getattr(node, "lineno", 0) in lines for pair in _assignments(node)]
    values = [value for target, value in pairs if _name(target) == name and not _refers(value, name)]
    return [text for value in values for text in _texts(value, function, tree)]


def _passed(name: str, function: ast.FunctionDef, tree: ast.Module) -> list[str]:
    found = []
    names = [argument.arg for argument in function.args.args]
    for node in ast.walk(tree) if name in names else ():
        if isinstance(node, ast.Call) and _name(node.func) == function.name:
            values = dict(zip(names[names[:1] == ["self"] :], node.args, strict=False))
            values |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
            value = values.get(name)
            if isinstance(value, ast.Name):
                found += _assigned_in(tree, value.id, function, tree)
            elif value is not None:
                found += _texts(value, function, tree)
    return found


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields each target of an assignment with its value, those of tuples one by one."""
    for target in node.targets if isinstance(node, ast.Assign) else ():
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _refers(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


def _spelled(node: ast.expr) -> str:
    return re.sub(r"\s+", " ", str(node.value)) if isinstance(node, ast.Constant) else "…"


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _page(part: str, rows: dict[str, list[Message]]) -> str:
    about, guide = PARTS[part]
    lists = [f"## {anchor}\n\n" + "\n".join(map(Message.as_line, messages)) + "\n" for anchor, messages in rows.items()]
    return "\n".join([_GENERATED, _HEAD.format(part=part, about=about, guide=guide), *lists])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    DATA.write_text(data(), encoding="utf-8")
