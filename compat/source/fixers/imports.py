"""Imports of names below TensorFlow: those of Keras come from tf_keras, and those that nothing reads any more go."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Mapping, Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import Change, Outcome
from estimator_bridge.compat.source.fixers.script import Script, code, nodes
from estimator_bridge.compat.source.fixers.surface import kept_names

_KERAS = re.compile(r"^((tensorflow\.)?(compat\.v1\.|python\.)?)keras(?=\.|$)")

_IN_BOTH = re.compile(r"tensorflow\.(python\.(client\.device_lib|ops\.metrics_impl)|compat\.v1\.(?!estimator|contrib))")
"""Names in files of TensorFlow that both versions have, and those of version 1 that TensorFlow 2 keeps."""


def with_imports(
    new: Script, module: cst.Module, script: Script, models: Mapping[str, str], defined: Container[str], changes: list[Change],
    imported: Collection[str] = ()
) -> cst.Module:  # fmt: skip
    """Returns converted code with imports that a process with TensorFlow 2 and tf_keras can execute.

    Args:
        new: Converted code, with TensorFlow 1's names.
        module: Converted code.
        script: The old script.
        models: Class for each model function of other modules, by its dotted name.
        defined: Names that the new script will define itself.
        changes: List to which the outcome is added for imports that stay.
        imported: Names that other modules import.
    """
    reads, stay = _Reads(new), _Reads()
    new.module.visit(reads)
    module.visit(stay)
    lines = {code(one): script.line(one) for one in nodes(script.module, cst.ImportFrom)}
    read = {name for name in reads.names & stay.names if name not in defined}.union(imported)
    return module.visit(_Imports(read, models, lines, changes))


class _Reads(cst.CSTVisitor):
    """Collects the names that stand outside of imports, and are not those of a script's other variables."""

    def __init__(self, script: Script | None = None) -> None:
        self._script = script
        self.names: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        if self._script is None or self._script.may_be_imported(node):
            self.names.add(node.value)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False


class _Imports(cst.CSTTransformer):
    def __init__(self, read: set[str], models: Mapping[str, str], lines: dict[str, int], changes: list[Change]) -> None:
        super().__init__()
        self._read = read
        self._models = models
        self._lines = lines
        self._changes = changes

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        body, behind = self._changed(updated_node.body)
        return updated_node.with_changes(body=body, footer=[*behind, *updated_node.footer])

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        body, behind = self._changed(updated_node.body)
        return updated_node.with_changes(body=body, footer=[*behind, *updated_node.footer])

    def _changed(self, body: Sequence[cst.BaseStatement]) -> tuple[list[cst.BaseStatement], list[cst.EmptyLine]]:
        """Returns the statements of a block, and the comments behind the last one."""
        kept: list[cst.BaseStatement] = []
        above: list[cst.EmptyLine] = []  # of imports that went
        for statement in body:
            lines = self._lines_of(statement) if isinstance(statement, cst.SimpleStatementLine) else [statement]
            if lines:
                first = lines[0]
                assert isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement)
                kept += [first.with_changes(leading_lines=[*above, *first.leading_lines]), *lines[1:]]
                above = []
            else:
                above += comments_around(statement)
        return kept or [cst.SimpleStatementLine([cst.Pass()])], above

    def _lines_of(self, line: cst.SimpleStatementLine) -> Sequence[cst.SimpleStatementLine]:
        """Returns what stands for a line; nothing if it goes."""
        only = line.body[0]
        if isinstance(only, cst.Import):
            modules = self._modules(only)
            return [line.with_changes(body=[only.with_changes(names=modules), *line.body[1:]])] if modules else []
        if not isinstance(only, cst.ImportFrom) or isinstance(only.names, cst.ImportStar):
            return [line]
        module = code(only.module) if only.module is not None else ""
        models = [self._models.get(f"{module}.{code(alias.name)}".lstrip("."), "") for alias in only.names]
        if any(models):
            names = [
                one.with_changes(name=cst.Name(model)) if model else one for one, model in zip(only.names, models, strict=True)
            ]
            return [line.with_changes(body=[only.with_changes(names=names), *line.body[1:]])]
        if only.relative:
            return [line]
        if _KERAS.match(module):
            keras = only.with_changes(module=cst.parse_expression(_KERAS.sub("tf_keras", module)))
            return [line.with_changes(body=[keras, *line.body[1:]])]
        return [line] if module.partition(".")[0] != "tensorflow" else self._of_tensorflow(line, only, module)

    def _of_tensorflow(
        self, line: cst.SimpleStatementLine, only: cst.ImportFrom, module: str
    ) -> Sequence[cst.SimpleStatementLine]:
        assert not isinstance(only.names, cst.ImportStar)
        read = [alias for alias in only.names if _bound(alias) in self._read]
        keras = [alias for alias in read if _KERAS.match(f"{module}.{code(alias.name)}")]
        rest = [alias.with_changes(comma=cst.MaybeSentinel.DEFAULT) for alias in read if alias not in keras]
        new = [_line(f"import tf_keras as {_bound(alias)}") for alias in keras]
        if rest:
            fewer = only.with_changes(names=rest) if len(rest) < len(only.names) else only
            names = [f"{module}.{code(alias.name)}" for alias in rest]
            known = all(one.removeprefix("tensorflow.") in kept_names() or _IN_BOTH.match(one) for one in names)
            kept = line.with_changes(body=[fewer, *line.body[1:]], leading_lines=[])
            new.append(kept if known else self._marked(kept, only, module))
        if not new:
            return []
        return [new[0].with_changes(leading_lines=[*line.leading_lines, *new[0].leading_lines]), *new[1:]]

    def _marked(self, new: cst.SimpleStatementLine, old: cst.ImportFrom, module: str) -> cst.SimpleStatementLine:
        message = "TensorFlow 2 may have no such module; write the name below tf"
        change = Change(self._lines.get(code(old), 1), f"from {module} import", Outcome.HUMAN, message)
        self._changes.append(change)
        return new.with_changes(leading_lines=[cst.EmptyLine(comment=cst.Comment(change.comment))])

    def _modules(self, node: cst.Import) -> list[cst.ImportAlias]:
        """Returns the imported modules: those of Keras from tf_keras, and none below TensorFlow that nothing reads any more."""
        names: list[cst.ImportAlias] = []
        for alias in node.names:
            name = code(alias.name)
            if _KERAS.match(name) and (alias.asname is not None or name == "keras"):
                keras = _line(f"import {_KERAS.sub('tf_keras', name)} as {_bound(alias)}").body[0]
                assert isinstance(keras, cst.Import)
                names += keras.names
            elif (
                _bound(alias) in self._read
                or name == "tensorflow.compat.v1"
                or not (
                    (name.startswith("tensorflow.") and alias.asname is not None) or name.startswith("tensorflow_estimator")
                )
            ):
                names.append(alias.with_changes(comma=cst.MaybeSentinel.DEFAULT))
        return names


def comments_around(statement: cst.CSTNode) -> list[cst.EmptyLine]:
    """Returns the lines above a statement of one line, and the comment behind it as a line of its own."""
    assert isinstance(statement, cst.SimpleStatementLine)
    behind = statement.trailing_whitespace.comment
    return [*statement.leading_lines, *([cst.EmptyLine(comment=behind)] if behind else [])]


def _line(text: str) -> cst.SimpleStatementLine:
    statement = cst.parse_statement(text)
    assert isinstance(statement, cst.SimpleStatementLine)
    return statement


def _bound(alias: cst.ImportAlias) -> str:
    """Returns the name that an import binds."""
    return code(alias.asname.name) if alias.asname is not None else code(alias.name).partition(".")[0]
