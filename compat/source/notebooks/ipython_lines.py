"""Lines of a notebook's cell that only IPython can run, e.g. ``%matplotlib inline`` and ``!pip install``.

Lines that change nothing that a script needs are left out. All others are refused by name: without them the notebook would do something else.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

_LEFT_OUT = (
    "autoreload colors conda config load_ext lsmagic magic mamba matplotlib pdef pdoc pfile pinfo pinfo2 pip pprint precision psource pwd "
    "quickref reload_ext tensorboard unload_ext uv watermark who who_ls whos xmode"
)
"""Magics that install, show or measure something, or only change how IPython itself behaves."""
_STATEMENT = "time"
"""Magic whose argument is Python to be run."""
_PYLAB = "pylab"
_PYLAB_NAMES = "from matplotlib import mlab, pylab, pyplot, pyplot as plt; import matplotlib, numpy, numpy as np"
_NO_STAR = "--no-import-all"
_CELL_RUNS = frozenset({"capture", "time"})
"""Magics of a whole cell whose other lines are Python to be run."""
_CELL_SHOWN = "HTML SVG html javascript js latex markdown svg"
"""Magics of a whole cell that is only shown."""
_COMMANDS = "apt apt-get cat conda date df du echo free head hostname ls lscpu mamba nproc nvcc nvidia-smi pip pip3 pwd tail tree uname uv wc which"
"""Commands of a shell that print or install something."""
_PIP_OF_PYTHON = re.compile(r"python[\d.]*\s+(-m\s+pip\b|--?version\b|-V\b)")
_SHELL_EFFECTS = re.compile(r"[>|;&`]|\$\(")
_ADVICE = {
    "%cd": "Write os.chdir(...).",
    "%env": "Write os.environ[...] = ....",
    "%set_env": "Write os.environ[...] = ....",
    "%run": "Import the file as a module, and call its function.",
    "%timeit": "Take it out: it runs its statement many times.",
    "%%timeit": "Take it out: it runs its cell many times.",
    "%%writefile": "Write the file once, beside the notebook, and take the cell out.",
    "%tensorflow_version": "Take it out; for TensorFlow 2 use --v2-behavior.",
}
_OTHER_ADVICE = "Do it before the run, e.g. in a shell, and take it out."

_ASSIGNED = re.compile(r"[^=#'\"!%()]+=\s*([!%].*)")
_HELP = re.compile(r"\?{1,2}[ \w.%*]+|[\w.%*]+\?{1,2}")
_TOKEN = re.compile(r"#|\"\"\"|'''|\"(?:[^\"\\]|\\.)*(?:\"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$)|[(\[{]|[)\]}]")


class IPythonLine(NamedTuple):
    """A line, or a whole cell, that only IPython can run.

    Attributes:
        line: Line in the cell, from 1.
        symbol: Name of the magic or of the shell's command, e.g. ``%cd`` or ``!wget``.
        advice: Advice on its replacement; empty if a script does without the line.
    """

    line: int
    symbol: str
    advice: str


def without_ipython_lines(text: str) -> tuple[str, list[IPythonLine]]:
    r"""Replaces the lines of a cell that only IPython can run; line numbers stay.

    Args:
        text: Text of a cell.

    Returns:
        Python, and the lines that were replaced.

    Example:
        >>> python, lines = without_ipython_lines("%matplotlib inline\nx = 1\n!rm -r data")
        >>> python, [line.symbol for line in lines if line.advice]
        ('pass\nx = 1\npass', ['!rm'])
    """
    lines = _without_common_indent(text.split("\n"))
    found: list[IPythonLine] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if not line.startswith("%%"):
            break
        symbol, is_run, advice = _judge_cell(line)
        found.append(IPythonLine(number, symbol, advice))
        if not is_run:
            return "\n" * (len(lines) - 1), found
        lines[number - 1] = ""
    if not _is_python("\n".join(lines)):  # what parses as Python has no such lines: "%" may go on with an expression
        found += _replace(lines)
    return "\n".join(lines), found


def _without_common_indent(lines: list[str]) -> list[str]:
    """Takes the first line's indentation from all lines, as IPython does."""
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    return [line.removeprefix(indent) for line in lines] if indent else lines


def _judge_cell(line: str) -> tuple[str, bool, str]:
    """Returns a cell magic's name, True if the rest of its cell is run, and the advice for one that is refused."""
    words = line[2:].split()
    name = words[0] if words else ""
    symbol = f"%%{name}"
    if name in _CELL_RUNS or name in _CELL_SHOWN.split():
        return symbol, name in _CELL_RUNS, ""
    return symbol, False, _ADVICE.get(symbol, _OTHER_ADVICE)


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _replace(lines: list[str]) -> Iterator[IPythonLine]:
    """Replaces IPython's lines where they stand at the start of a statement, and yields them."""
    state = _State()
    number = 0
    while number < len(lines):
        line = lines[number]
        indent = line[: len(line) - len(line.lstrip())]
        statement = line.strip()
        assigned = _ASSIGNED.match(statement)
        command = assigned.group(1) if assigned else statement
        last = number
        if not state.is_inside and (command.startswith(("%", "!")) or _is_help(statement)):
            while lines[last].endswith("\\") and last + 1 < len(lines):
                last += 1
            symbol, kept, advice = _judge_line(" ".join([command, *lines[number + 1 : last + 1]]), bool(assigned))
            yield IPythonLine(number + 1, symbol, advice)
            lines[number : last + 1] = [indent + (kept or "pass"), *[""] * (last - number)]
            line = lines[number]
        state.read(line)
        number = last + 1


def _is_help(statement: str) -> bool:
    return "?" in statement and _HELP.fullmatch(statement.rstrip("; ")) is not None


def _judge_line(command: str, is_assigned: bool) -> tuple[str, str, str]:
    """Returns a line's name, the Python that it leaves, and the advice for one that is refused."""
    if _is_help(command):
        return "?", "", ""
    words = command.lstrip("!%").split()
    name = words[0] if words else ""
    symbol = f"{command[0]}{name.rstrip(';')}"
    if not is_assigned and command[0] == "%":
        if name == _STATEMENT:
            return symbol, command[1:].strip()[len(name) :].strip(), ""
        if name == _PYLAB:
            return symbol, _PYLAB_NAMES if _NO_STAR in words else f"from pylab import *; {_PYLAB_NAMES}", ""
        if name in _LEFT_OUT.split() or (name == "tensorflow_version" and words[1:] == ["1.x"]):
            return symbol, "", ""
    if not is_assigned and command[0] == "!" and not _SHELL_EFFECTS.search(command):
        is_harmless = name in _COMMANDS.split() or _PIP_OF_PYTHON.match(command.lstrip("! "))
        if is_harmless or not name:
            return symbol, "", ""
    return symbol, "", _ADVICE.get(symbol, _OTHER_ADVICE)


class _State:
    """Position in a statement, which goes on inside brackets and long strings, and after a backslash."""

    def __init__(self) -> None:
        self._depth = 0
        self._quotes = ""
        self._continues = False

    @property
    def is_inside(self) -> bool:
        return bool(self._depth or self._quotes or self._continues)

    def read(self, line: str) -> None:
        at = 0
        while True:
            if self._quotes:
                end = _end_of_string(line, self._quotes, at)
                if end < 0:
                    break
                self._quotes, at = "", end
            match = _TOKEN.search(line, at)
            if match is None or match.group() == "#":
                break
            at = match.end()
            if match.group() in {'"""', "'''"}:
                self._quotes = match.group()
            elif match.group() in "([{":
                self._depth += 1
            elif match.group() in ")]}":
                self._depth = max(self._depth - 1, 0)
        self._continues = not self._quotes and line.endswith("\\") and not (match and match.group() == "#")


def _end_of_string(line: str, quotes: str, start: int) -> int:
    """Returns the index behind the quotes that end a long string, or -1."""
    match = re.compile(rf"(?:[^\\]|\\.)*?{quotes}").match(line, start)
    return match.end() if match else -1
