"""Compiles the script's own files, mended in memory where that is necessary."""

from __future__ import annotations

import ast
import contextlib
import linecache
import sys
import types
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

from estimator_bridge.compat.source.notebooks.cells import in_cell, is_notebook, read_cells
from estimator_bridge.legacy.removed_names.method_calls import answer_removed_methods, may_call_removed_methods
from estimator_bridge.legacy.removed_names.old_protobuf import is_old_protobuf, rebuilt
from estimator_bridge.runtime.autograph import users_code_as_compiled
from estimator_bridge.runtime.user_code import cell_file, is_users

_ARITHMETIC = "estimator_bridge.script.python2_arithmetic"


def compile_script(path: str, python2: bool = False) -> list[types.CodeType]:
    """Returns the code of a script: one part, or one for each cell of a notebook.

    Args:
        path: Path of a Python file or a notebook.
        python2: True if it is written for Python 2.

    Raises:
        SyntaxError: It is no Python, or, with ``python2``, neither Python 2 nor Python 3.
        BridgeError: It is a notebook that cannot be read.
    """
    file = str(Path.cwd() / path)
    content = Path(path).read_bytes()
    if not is_notebook(Path(path)):
        return [compile_source(content, file, python2)]
    codes = []
    for cell in read_cells(content, path):
        name = cell_file(file, cell.number)
        linecache.cache[name] = len(cell.text), None, cell.text.splitlines(keepends=True), name  # for tracebacks and AutoGraph
        try:
            codes.append(compile_source(cell.as_file(), name, python2, first_line=0))
        except SyntaxError as error:
            raise in_cell(error) from None
    return codes


def compile_source(
    source: bytes, file: str, python2: bool = False, in_package: bool = False, first_line: int = 1
) -> types.CodeType:
    """Returns the code of a file.

    Args:
        source: Bytes of the file.
        file: Path of the file, for tracebacks.
        python2: True if the file is written for Python 2.
        in_package: True if the file is a module of a package.
        first_line: Number of the source's first line.

    Raises:
        SyntaxError: The file is no Python, or, with ``python2``, neither Python 2 nor Python 3.
    """
    tree: Any = source
    if python2:
        from estimator_bridge.compat.source.python2.arithmetic import with_python2_arithmetic
        from estimator_bridge.compat.source.python2.mending import mend

        mended = mend(source, file if in_package else "")
        tree = with_python2_arithmetic(mended.tree(), _ARITHMETIC, mended.true_division)
    elif first_line != 1:
        tree = ast.parse(source, file)
    elif _needs_mending(source):
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):  # Python reports the error, for the source itself
            tree = ast.parse(source, file)
    if isinstance(tree, ast.Module):
        tree = ast.increment_lineno(tree, first_line - 1)
        tree = rebuilt(tree, file) if is_old_protobuf(source) else answer_removed_methods(tree)
    code: types.CodeType = compile(tree, file, "exec", dont_inherit=True)
    return code


def _needs_mending(source: bytes) -> bool:
    return may_call_removed_methods(source) or is_old_protobuf(source)


@contextlib.contextmanager
def compile_own_modules(python2: bool) -> Iterator[None]:
    """While active, the script's own modules are compiled in the same way as the script.

    Args:
        python2: True if they are written for Python 2.
    """
    finder = _Finder(python2)
    index = next((index for index, one in enumerate(sys.meta_path) if one is PathFinder), len(sys.meta_path))
    sys.meta_path.insert(index, finder)
    try:
        with users_code_as_compiled() if python2 else contextlib.nullcontext():
            yield
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    """Compiles modules that need mending; Python reports errors in the others, and errors in reading."""

    def __init__(self, python2: bool) -> None:
        self.python2 = python2

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or not is_users(spec.loader.path):
            return None
        with contextlib.suppress(OSError, SyntaxError):
            file = spec.loader.path
            source = Path(file).read_bytes()
            if self.python2 or _needs_mending(source):
                spec.loader = _Loader(name, file, compile_source(source, file, self.python2, bool(spec.parent)))
                return spec
        return None


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, code: types.CodeType) -> None:
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname: str) -> types.CodeType:
        return self.code
