"""``estimator-bridge convert source``: a script that trains by an Estimator becomes one that trains by Keras."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import difflib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_bridge.cli.consoles import make_console
from estimator_bridge.cli.script_arguments import FILE, add_format
from estimator_bridge.errors import BridgeError

if TYPE_CHECKING:
    from estimator_bridge.compat.source.checking import FileReport
    from estimator_bridge.compat.source.fixers.conversion import Conversion
    from estimator_bridge.compat.source.reading import Source

_LONGEST = 1_000_000  # bytes; more is generated code
_OTHER_ENCODING = re.compile(r"\A((?:#.*\n)?#.*?coding[:=][ \t]*)(?!utf-?8)[-\w.]+")
"""The line by which a script says that it is not in UTF-8, which new ones are."""

_EPILOG = """examples:
  estimator-bridge convert source train.py --out train_keras.py
  estimator-bridge convert source train.py --out keras/
  estimator-bridge convert source notebook.ipynb --out train_keras.py
  estimator-bridge convert source package/ --out keras/
  estimator-bridge convert source --prove --out train_keras.py train.py -- --epochs 2
  estimator-bridge convert source --diff train.py
  estimator-bridge convert source --check train.py
  estimator-bridge convert source --format json train.py > report.json
  estimator-bridge convert source --check --format sarif package/ > report.sarif
  estimator-bridge convert source --format html package/ > report.html

The script is read, never run, but by --prove; compare OLD NEW proves the result. The new one imports neither tf.estimator nor estimator_bridge. What no fixer knows stays as it is,
below a comment that begins with "# estimator-bridge:" and says why and what to do.

The new script goes to stdout, or to --out; the report goes to stderr. If --out is a folder, the modules of its own that the script
imports are converted, too, and written beside it. The cells of a notebook become one script.

exit code: 0 everything was converted, 1 something needs a human, 2 bad input; with --prove, that of compare if all was converted.
"""


def add_parser(kinds: Any) -> None:
    """Adds the parser of this kind."""
    parser = kinds.add_parser(
        "source",
        help="convert a script that trains by an Estimator to Keras",
        description="Converts a script with a model function to a class of tf_keras and calls of fit and evaluate.",
        epilog=_EPILOG,
    )
    result = parser.add_mutually_exclusive_group()
    out = result.add_argument(
        "--out", type=Path, metavar="NEW", help="file or folder for the new script; its files must not exist"
    )
    out.complete = FILE
    result.add_argument(
        "--write", action="store_true", help="replace SCRIPT itself; it must be under version control or a copy"
    )
    result.add_argument("--diff", action="store_true", help="print the changes in place of the new script")
    result.add_argument("--check", action="store_true", help="print nothing but the report")
    parser.add_argument(
        "--prove", action="store_true", help="compare both scripts if nothing needs a human; both run; needs --out"
    )
    parser.add_argument(
        "--body",
        choices=("layers", "shim"),
        default="layers",
        help="layers: the model makes its layers once, or the network stays; shim: a network that cannot have such layers is kept below TensorFlow's track_tf1_style_variables, and a model function that cannot be taken apart is the graph of each step (default: %(default)s)",
    )
    parser.add_argument(
        "--keras", choices=("2", "3"), default="2", help="version of Keras that the new script uses; 3 is refused (default: 2)"
    )
    parser.add_argument("--py2", action="store_true", help="take scripts that only Python 2 parses; they are rewritten first")
    explanation = (
        "text: the new script and a report; json: one object with both; sarif: SARIF 2.1.0 for code scanning; "
        "github: annotations of GitHub Actions; html: a page with the outcome of each line (default: %(default)s)"
    )
    add_format(parser, explanation, "sarif", "github", "html")
    script = parser.add_argument("script", type=Path, metavar="SCRIPT", help="a Python file, a notebook, or a folder of them")
    script.complete = FILE
    parser.add_argument("args", metavar="ARGS", nargs="*", help="behind --, arguments with which --prove runs both scripts")
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Converts SCRIPT, prints or writes the result and the report, and compares both scripts if asked."""
    from estimator_bridge.compat.source.reading import Source

    _check_keras(arguments.keras)
    if arguments.out is None and (arguments.prove or arguments.args):
        raise BridgeError("Only a new file is compared.", expected="--prove with --out NEW", fix="Add --out.")
    folder = arguments.out is not None and arguments.out.suffix != ".py"
    _check_paths(arguments.script, arguments.out / arguments.script.name if folder else arguments.out)
    whole = arguments.script.is_dir()
    if whole and not (folder or arguments.check or arguments.format != "text"):
        raise BridgeError(f"{arguments.script} is a folder.", expected="a folder for the new files", fix="Add --out FOLDER.")
    script, root = (arguments.script, arguments.script) if whole else _located(arguments.script)
    sources, left = _sources(script, root, arguments.py2)
    converted = _converted(sources, folder or whole, arguments.body == "shim", arguments.py2, root)
    if not left and not any(one.text != sources[path].text or one.changes for path, one in converted.items()):
        raise BridgeError(
            f"Nothing to convert: {arguments.script} uses no Estimator.",
            expected="a script that names tf.estimator",
            fix="Name the file that makes the Estimator, or the folder of the package.",
        )
    first = next(iter(converted))
    converted |= left
    sources |= {path: Source(str(path), one.text, ast.Module([], [])) for path, one in left.items()}
    if not (folder or whole):
        converted = {first: _with_modules(converted[first], [path for path in converted if path not in {first, *left}], left)}
    if folder:
        _write_folder(root, arguments.out, converted)
    elif arguments.out is not None or arguments.write:
        _write(first if arguments.write else arguments.out, converted[first].text, replace=arguments.write)
    elif arguments.format == "text" and not arguments.check:
        sys.stdout.write(_diff(first, sources[first].text, converted[first].text) if arguments.diff else converted[first].text)
    if arguments.format == "text":
        _report(sources, converted)
    else:
        _print(arguments, sources, converted)
    if not all(one.complete for one in converted.values()):
        return 1
    return _compare(arguments, arguments.out / script.relative_to(root) if folder else arguments.out) if arguments.prove else 0


def _check_paths(*paths: Path | None) -> None:
    from estimator_bridge.compat.source.reading import check_path

    for path in filter(None, paths):
        check_path(path)


def _check_keras(version: str) -> None:
    if version == "3":
        raise BridgeError(
            "A script cannot be converted for Keras 3: it has no optimizer that updates as TensorFlow 1's do, and compare could not prove the result.",
            expected="Keras 2, the package tf_keras, which parameter servers and MultiWorkerMirroredStrategy need, too",
            fix="Leave out --keras. To go on to Keras 3 by hand, compare the final metrics over several seeds: compare --seeds.",
        )


def _compare(arguments: argparse.Namespace, new: Path) -> int:
    """Returns the exit code of a comparison of both scripts, in a process of its own."""
    python2 = ["--py2"] if arguments.py2 else []
    command = [sys.executable, "-m", "estimator_bridge", "compare", *python2, str(arguments.script), str(new), *arguments.args]
    sys.stdout.flush()
    return subprocess.run(command, stdout=sys.stderr if arguments.format == "json" else None, check=False).returncode


def _located(script: Path) -> tuple[Path, Path]:
    """Returns a script and the folder of its modules, as paths from here where that is possible."""
    from estimator_bridge.compat.source.reading import module_root

    absolute, here = script.resolve(), Path.cwd()
    root = module_root(absolute)
    if script.is_absolute() or not root.is_relative_to(here):
        return absolute, root
    return absolute.relative_to(here), root.relative_to(here)


def _sources(script: Path, root: Path, python2: bool) -> tuple[dict[Path, Source], dict[Path, Conversion]]:
    """Returns a script and the modules below a root that it imports, or the files below a folder; last those that are left to a human."""
    from estimator_bridge.compat.source.checking import find_files
    from estimator_bridge.compat.source.reading import own_sources

    if script.is_dir():
        paths = find_files([str(script)])
    else:
        modules = (Path(source.path) for source in own_sources(script, root))
        paths = [script, *(path for path in modules if path.is_relative_to(root))]
    sources: dict[Path, Source] = {}
    errors: dict[Path, BridgeError] = {}
    for path in dict.fromkeys(paths):
        try:
            sources[path] = _read(path, python2)
        except BridgeError as error:  # noqa: PERF203 -- one of many files
            errors[path] = error
    if errors and (script in errors or not sources):
        raise next(iter(errors.values()))
    return sources, {path: _left(path, error) for path, error in errors.items()}


def _left(path: Path, error: BridgeError) -> Conversion:
    """Returns a script that cannot be converted as it is, below a mark; no text for a notebook, which stays where it is."""
    from estimator_bridge.compat.source.fixers.conversion import Conversion
    from estimator_bridge.compat.source.fixers.marks import Change, Outcome
    from estimator_bridge.compat.source.python2.mending import decoded

    change = Change(1, path.name, Outcome.HUMAN, f"{error.what} {error.fix or ''}".strip())
    try:
        text = _OTHER_ENCODING.sub(r"\1utf-8", decoded(path.read_bytes()), count=1) if path.suffix == ".py" else ""
    except OSError:
        text = ""
    if not text:
        return Conversion("", (change,))
    has_mark = text.startswith(change.comment.removesuffix(change.message))
    return Conversion(text if has_mark else f"{change.comment}\n{text}", (change,))


def _converted(sources: Mapping[Path, Source], together: bool, shim: bool, python2: bool, root: Path) -> dict[Path, Conversion]:
    """Returns the conversions of a script and of its modules.

    Args:
        sources: Files; the script comes first.
        together: The new script takes the models of the new modules; else only modules that use TensorFlow are returned.
        shim: Value of ``shim`` in ``convert``.
        python2: True if the files were written for Python 2.
        root: Folder below which Python finds the modules.
    """
    from estimator_bridge.compat.source.programs import convert_program

    script = next(iter(sources))
    made = convert_program({path: one.text for path, one in sources.items()}, root, shim, together)
    found = {path: made[path] for path in sources}
    found = {path: _with_losses(sources[path], one, python2) for path, one in found.items()}
    return {
        path: one for path, one in found.items() if path == script or together or one.text != sources[path].text or one.changes
    }


def _with_losses(source: Source, conversion: Conversion, python2: bool) -> Conversion:
    """Returns a conversion with a line for what reading the file has changed: lines of IPython, and Python 2's division."""
    from estimator_bridge.compat.source.fixers.marks import Change, Outcome
    from estimator_bridge.compat.source.python2.mending import mend

    lost = [
        Change(
            one.line,
            one.symbol,
            Outcome.HUMAN if one.advice else Outcome.APPROXIMATE,
            f"left out: only a notebook runs it. {one.advice}".removesuffix(". "),
        )
        for one in source.ipython_lines
    ]
    if python2 and not mend(source.text.encode()).true_division:
        message = "Python 2 divides whole numbers down; write // where that is meant"
        divisions = (node for node in ast.walk(ast.parse(source.text)) if isinstance(node, ast.BinOp))
        lost += [Change(one.lineno, "/", Outcome.APPROXIMATE, message) for one in divisions if isinstance(one.op, ast.Div)]
    return dataclasses.replace(conversion, changes=tuple(sorted({*conversion.changes, *lost}))) if lost else conversion


def _with_modules(conversion: Conversion, modules: Iterable[Path], left: Mapping[Path, Conversion]) -> Conversion:
    """Returns a script's conversion with a line for each module that would have to be converted with it, or cannot be."""
    from estimator_bridge.compat.source.fixers.marks import Change, Outcome

    message = "the script imports it, and it uses TensorFlow 1; convert both: --out FOLDER"
    more = (Change(1, str(path), Outcome.HUMAN, message) for path in modules)
    stay = (change for one in left.values() for change in one.changes)
    return dataclasses.replace(conversion, changes=(*conversion.changes, *more, *stay))


def _write_folder(root: Path, folder: Path, conversions: Mapping[Path, Conversion]) -> None:
    """Writes the new script and its modules, each in its place below the folder; nothing if one of them exists."""
    written = {path: one.text for path, one in conversions.items() if one.text or path.suffix == ".py"}
    files = {folder / path.relative_to(root).with_suffix(".py"): text for path, text in written.items()}
    if len(files) < len(written):
        raise BridgeError(
            "Two files would become one: a script and a notebook have the same name.",
            expected="another name for each file without its suffix",
            fix="Rename the notebook, or convert the files one by one.",
        )
    for file in filter(Path.exists, files):
        raise BridgeError(f"{file} exists.", expected="a new file", fix="Name another folder.")
    for file, text in files.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BridgeError(
                f"Cannot make the folder {file.parent}: {error.strerror}.",
                expected="a new folder, or one that can be written",
                fix="Name another folder with --out; a single script needs a name that ends with .py.",
            ) from None
        _write(file, text, replace=False)


def _read(path: Path, python2: bool) -> Source:
    """Returns a file whose text is Python 3: the cells of a notebook as one script, Python 2 rewritten if asked."""
    import libcst

    from estimator_bridge.compat.source.python2.mending import mend
    from estimator_bridge.compat.source.reading import read_source

    try:
        content = path.read_bytes()
    except OSError as error:
        raise BridgeError(f"Cannot read {path}: {error.strerror}.", expected="a Python file") from None
    if len(content) > _LONGEST:
        raise BridgeError(
            f"{path} is too long.",
            expected=f"at most {_LONGEST:,} bytes",
            received=f"{len(content):,} bytes",
            fix="Name the script itself.",
        )
    try:
        source = read_source(content, str(path))
        is_notebook = bool(source.cells.starts)
        text = mend(content).text if python2 and (source.error is not None or not is_notebook) else source.text
        text = _OTHER_ENCODING.sub(r"\1utf-8", text, count=1)
        libcst.parse_module(text)
        return dataclasses.replace(source, text=text)
    except (SyntaxError, libcst.ParserSyntaxError, UnicodeDecodeError, RecursionError, ValueError) as error:
        file = error.filename or path if isinstance(error, SyntaxError) else path  # a cell of a notebook
        line = getattr(error, "raw_line", None) or getattr(error, "lineno", None)
        raise BridgeError(
            f"{file}{f', line {line}' if line else ''} is not Python 3.",
            expected="source in Python 3",
            fix="If it is Python 2, add --py2.",
        ) from None


def _write(path: Path, text: str, replace: bool) -> None:
    if path.exists() and not replace:
        raise BridgeError(f"{path} exists.", expected="a new file", fix="Name another file.")
    beside = path.with_name(f"{path.name}.new")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)  # whole or not at all
    except OSError as error:
        raise BridgeError(f"Cannot write {path}: {error.strerror}.", fix="Name another file.") from None


def _diff(path: Path, old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), str(path), f"{path} (Keras)")
    return "".join(lines)


def _print(arguments: argparse.Namespace, sources: Mapping[Path, Source], conversions: Mapping[Path, Conversion]) -> None:
    """Prints the outcomes for programs."""
    from estimator_bridge.compat.source.reports import sarif

    if arguments.format == "json":
        data = [_data(path, one) for path, one in conversions.items()]
        values: Any = data[0] if len(data) == 1 else {"scripts": data}
        sys.stdout.write(json.dumps(values, indent=1) + "\n")
        return
    if arguments.format == "html":
        from estimator_bridge.compat.source.reports.conversion import render_conversions

        sys.stdout.write(render_conversions((sources[path], one) for path, one in conversions.items()) + "\n")
        return
    reports = [_findings(sources[path], one) for path, one in conversions.items()]
    if arguments.format == "github":
        sys.stdout.writelines(f"{line}\n" for line in sarif.github_annotations(reports))
    else:
        sys.stdout.write(json.dumps(sarif.as_sarif(reports, "convert source"), indent=1) + "\n")


def _findings(source: Source, conversion: Conversion) -> FileReport:
    """Returns the outcomes of a conversion as findings of ``check``."""
    from estimator_bridge.compat.source.checking import FileReport
    from estimator_bridge.compat.source.fixers.marks import Outcome
    from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

    verdicts = {Outcome.CONVERTED: Verdict.RUNS, Outcome.APPROXIMATE: Verdict.LOOK, Outcome.HUMAN: Verdict.HUMAN}
    findings = (
        SourceFinding(one.line, 1, one.name, Kind.TENSORFLOW, verdicts[one.outcome], one.message) for one in conversion.changes
    )
    return FileReport(source.path, source.text.count("\n"), tuple(findings), cells=source.cells)


def _data(path: Path, conversion: Conversion) -> dict[str, Any]:
    changes = [
        {"line": one.line, "name": one.name, "outcome": one.outcome.value, "message": one.message} for one in conversion.changes
    ]
    return {"script": str(path), "complete": conversion.complete, "changes": changes, "source": conversion.text}


def _report(sources: Mapping[Path, Source], conversions: Mapping[Path, Conversion]) -> None:
    from estimator_bridge.compat.source.fixers.marks import Outcome

    console = make_console(stderr=True)
    count = dict.fromkeys(Outcome, 0)
    for path, change in ((path, change) for path, conversion in conversions.items() for change in conversion.changes):
        count[change.outcome] += 1
        if change.outcome is not Outcome.CONVERTED:
            line = f"{sources[path].place(change.line)}: {change.outcome.value}: {change.name}: {change.message}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    numbers = ", ".join(f"{number} {outcome.value}" for outcome, number in count.items())
    script = next(iter(conversions))
    console.print(
        f"{numbers}. Prove it: estimator-bridge compare {script} NEW.py", markup=False, highlight=False, soft_wrap=True
    )
