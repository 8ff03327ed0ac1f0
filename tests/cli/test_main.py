"""The command itself: help, version, completion, and messages to mistakes."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_bridge import __version__
from estimator_bridge.cli import main as cli
from estimator_bridge.cli import script_arguments
from estimator_bridge.errors import BridgeError
from tests.notebooks import notebook
from tests.running import ROOT, estimator_bridge_command, write

COMPARABLE = ("run", "compare")


def run_main(*arguments: str) -> tuple[int, str, str]:
    """Runs a command line in this process; returns its exit code, stdout and stderr."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = cli.main(arguments)
        except SystemExit as exit_:
            code = int(exit_.code or 0)
    return code, out.getvalue(), err.getvalue()


def help_of(command: tuple[str, ...]) -> list[str]:
    """Returns the lines of a command's help, none of them broken for a narrow terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        code, out, err = run_main(*command, "--help")
    assert (code, err) == (0, "")
    return out.splitlines()


def all_commands(command: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields a command, then the commands that its help lists below the line COMMAND, ACTION or KIND."""
    yield command
    below = itertools.dropwhile(lambda line: not re.fullmatch("  [A-Z]+", line), help_of(command))
    for line in itertools.takewhile(str.strip, itertools.islice(below, 1, None)):
        name = re.match(r" {4}(\w+)", line)
        if name:
            yield from all_commands((*command, name[1]))


COMMANDS = list(all_commands())
GROUPS = [("cluster",), ("convert",)]
"""Commands that only hold others."""
COMPLETE = [command for command in COMMANDS if command not in GROUPS]
command_ids = " ".join


def test_commands_are_found_in_the_help() -> None:
    assert {(), ("run",), ("cluster", "status"), ("convert", "checkpoint"), ("inspect",), *GROUPS} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMPLETE, ids=command_ids)
def test_help_shows_examples_that_parse(command: tuple[str, ...]) -> None:
    words = [shlex.split(line) for line in help_of(command) if re.match(r"  .*estimator-bridge ", line)]
    examples = [line[line.index("estimator-bridge") + 1 :] for line in words if "estimator-bridge" in line]

    assert len(examples) >= 3
    for example in examples:
        asked = list(itertools.takewhile(lambda word: word != ">", example))
        assert tuple(asked[: len(command)]) == command
        assert callable(cli.build_parser().parse_args(asked).execute)


@pytest.mark.parametrize("command", [command for command in COMPLETE if command], ids=command_ids)
def test_help_says_what_exit_codes_mean(command: tuple[str, ...]) -> None:
    assert any(line.startswith("exit code: ") for line in help_of(command))


@pytest.mark.parametrize("command", COMMANDS, ids=command_ids)
def test_every_option_is_explained(command: tuple[str, ...]) -> None:
    lines = [*help_of(command), ""]
    entries = [index for index, line in enumerate(lines) if re.match("  (?:-|[A-Z_]+(?:  |$))", line)]
    assert any("--help" in lines[index] for index in entries)
    for index in entries:
        beside, below = re.search(r"\S {2,}\S", lines[index]), re.match(r" {4,}\S", lines[index + 1])
        assert beside or below, lines[index]


def test_version() -> None:
    for word in ("--version", "version"):
        assert run_main(word) == (0, f"estimator-bridge {__version__}\n", "")


def test_no_command_prints_help_on_stderr() -> None:
    code, out, err = run_main()
    assert (code, out) == (2, "")
    assert all(command[0] in err for command in COMMANDS if command)
    assert "examples:" in err


def test_as_a_module(tmp_path: Path) -> None:
    ended = estimator_bridge_command("--version", cwd=tmp_path)
    assert ended == (0, f"estimator-bridge {__version__}\n", "")
    assert estimator_bridge_command("run", "nowhere.py", cwd=tmp_path).code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["rnu", "train.py"], "; did you mean run?\n"),
        (["convert", "confg", "env"], "; did you mean config?\n"),
        (["verson"], "invalid choice: 'verson'"),
        (["run", "--path", "moden", "train.py"], "; did you mean modern?\n"),
        (["--print-completion", "ksh"], "invalid choice: 'ksh'"),
        (["run"], "run: error: the following arguments are required: SCRIPT\n"),
        (["compare"], "compare: error: the following arguments are required: SCRIPT\n"),
        (["run", "-m"], "required: SCRIPT\n"),
        (["run", "--path", "keras", "train.py"], "argument --path: invalid choice: 'keras'"),
        (["run", "--pat", "modern", "train.py"], "run: error: unrecognized arguments: --pat; did you mean --path?\n"),
        (["launch", "--wroker=1", "train.py"], "launch: error: unrecognized arguments: --wroker=1; did you mean --worker?\n"),
        (["launch", "--wroker", "1", "train.py"], "usage: estimator-bridge launch "),
        (["cluster", "status", "--tmeout", "1"], "status: error: unrecognized arguments: --tmeout; did you mean --timeout?\n"),
        (["check", "--nothing-near", "train.py"], "check: error: unrecognized arguments: --nothing-near\n"),
        (["run", "--replicas", "0", "train.py"], "--replicas: expected a whole number of 1 or more, received '0'\n"),
        (["run", "--replicas", "-1", "train.py"], "--replicas: expected a whole number of 1 or more, received '-1'\n"),
        (["run", "--replicas", "two", "train.py"], "--replicas: expected a whole number of 1 or more, received 'two'\n"),
        (["compare", "--replicas", "1.5", "train.py"], "--replicas: expected a whole number of 1 or more, received '1.5'\n"),
        (["compare", "--rel-diff", "-1", "train.py"], "--rel-diff: expected a number of 0 or more, received '-1'\n"),
        (["compare", "--abs-diff", "nan", "train.py"], "--abs-diff: expected a number of 0 or more, received 'nan'\n"),
        (["compare", "--variable-abs-diff", "x", "train.py"], "--variable-abs-diff: expected a number of 0 or more"),
        (["compare", "--format", "xml", "train.py"], "argument --format: invalid choice: 'xml'"),
    ],
)
def test_a_mistake_in_the_command_line(arguments: list[str], message: str) -> None:
    code, out, err = run_main(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("verb", [*COMPARABLE, "launch"])
@pytest.mark.parametrize(
    ("script", "message"),
    [
        (["nowhere.py"], "There is no such script.\n"),
        (["nowhere.py", "--steps=3"], "There is no such script.\n"),
        (["."], "The script is a folder.\n"),
        (["-m", "train.py"], "There is no such module.\n"),
    ],
)
def test_a_script_that_is_not_there(
    verb: str, script: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    code, out, err = run_main(verb, *script)

    assert (code, out) == (2, "")
    assert err.startswith(f"estimator-bridge: {message}")
    assert "to do:" in err
    assert not list(tmp_path.iterdir())


@pytest.fixture(params=["closed/train.py", f"{'a' * 300}.py"], ids=["closed folder", "long name"])
def refused_path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A path that the system does not look up; a stand-in refuses to enter the folder, since root may enter every one."""
    stat = Path.stat

    def refuse(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if "closed" in path.parts[:-1]:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "stat", refuse)
    write(tmp_path / "old.py", "x = 1\n")
    path: str = request.param
    return path


@pytest.mark.parametrize(
    "command",
    [
        *("check", "run", "launch", "plan", "compare", "compare old.py", "fleet init"),
        *("convert source", "convert source old.py --out", "convert config --from-script"),
    ],
)
def test_a_path_that_the_system_refuses_to_look_up(command: str, refused_path: str, tmp_path: Path) -> None:
    code, out, err = run_main(*command.split(), refused_path)

    assert (code, out) == (2, "")
    assert err.startswith("estimator-bridge: A path cannot be looked up.\n")
    assert f"received: {refused_path}: " in err
    assert [path.name for path in tmp_path.iterdir()] == ["old.py"]


@pytest.mark.parametrize("refused_path", ["closed/train.py"], indirect=True)
@pytest.mark.parametrize("command", ["check", "convert source --check"])
@pytest.mark.parametrize("script", ["old.py", "jobs/old.py"])
def test_a_module_of_the_script_in_a_closed_folder_is_skipped(
    script: str, command: str, refused_path: str, tmp_path: Path
) -> None:
    """It is below the script's folder, or beside it, where a change of ``sys.path`` lets modules be looked for."""
    write(tmp_path / refused_path, "x = 1\n")
    write(tmp_path / script, (ROOT / "tests" / "data" / "closed_modules.py").read_text())

    code, _, err = run_main(*command.split(), script)

    assert code in {0, 1}
    assert "Traceback" not in err


@pytest.mark.parametrize("action", ["check", "compare", "report"])
@pytest.mark.parametrize("key", ["script", "rewrite", "data", "folder"])
def test_a_path_of_a_fleet_that_the_system_refuses_to_look_up(action: str, key: str, refused_path: str, tmp_path: Path) -> None:
    values = {"name": '"ads"', "script": '"old.py"', key: f'["{refused_path}"]' if key == "data" else f'"{refused_path}"'}
    write(tmp_path / "fleet.toml", "[[pipeline]]\n" + "".join(f"{name} = {value}\n" for name, value in values.items()))

    code, out, err = run_main("fleet", action)

    assert (code, out) == (2, "")
    assert err.startswith("estimator-bridge: A path cannot be looked up.\n")
    assert f"received: {refused_path}" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fleet.toml", "old.py"]


@pytest.mark.parametrize("verb", ["run", "compare", "launch"])
@pytest.mark.parametrize("name", ["train.ipynb", "TRAIN.IPYNB"])
def test_a_notebook_with_lines_for_ipython_alone_is_refused(
    verb: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(notebook("import os", "%matplotlib inline\n%cd data"))

    code, out, err = run_main(verb, name)

    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "estimator-bridge: The notebook has lines that only IPython can run.",
        "  expected: Python, or lines that a script can do without, e.g. %matplotlib inline and !pip install",
        f"  received: {name}: %cd (cell 2, line 2)",
        "  to do:    Write os.chdir(...).",
        "  help:     estimator-bridge explain compat-source-notebooks-cells-refuse-ipython-lines",
    ]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("verb", ["run", "compare", "launch"])
def test_a_broken_notebook_is_refused(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.ipynb").write_text('{"cells": [}')

    code, out, err = run_main(verb, "train.ipynb")

    assert (code, out) == (2, "")
    assert err.startswith("estimator-bridge: train.ipynb, line 1, column 12: this is not JSON.\n")


def test_v2_behavior_belongs_to_the_legacy_path(tmp_path: Path) -> None:
    code, out, err = run_main("run", "--path", "modern", "--v2-behavior", str(tmp_path / "train.py"))
    assert (code, out) == (2, "")
    assert err.startswith("estimator-bridge: --v2-behavior works only on the legacy path.\n")


def test_replicas_belong_to_the_modern_path(tmp_path: Path) -> None:
    code, out, err = run_main("run", "--replicas", "2", str(tmp_path / "train.py"))
    assert (code, out) == (2, "")
    assert err.startswith("estimator-bridge: --replicas works only on the modern path.\n")
    assert "Add --path modern" in err


@pytest.mark.parametrize("place", ["file", "file/report", "file/a/b"])
def test_a_folder_that_cannot_be_written_is_refused_before_the_comparison(place: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit('the script was run')")
    (tmp_path / "file").write_text("kept")

    code, out, err = run_main("compare", "--out", str(tmp_path / place), str(tmp_path / "train.py"))

    assert (code, out) == (2, "")
    assert err.startswith("estimator-bridge: The report cannot be written.\n")
    assert str(tmp_path / place) in err
    assert "the script was run" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "train.py"]


def test_a_refusal_is_one_message_and_an_interrupt_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(error: BaseException) -> tuple[int, str, str]:
        def execute(arguments: argparse.Namespace) -> int:
            raise error

        monkeypatch.setattr("estimator_bridge.cli.run.script_of", execute)
        return run_main("run", "train.py")

    assert raising(BridgeError("No.", fix="Do.")) == (2, "", "estimator-bridge: No.\n  to do:    Do.\n")
    assert raising(KeyboardInterrupt()) == (130, "", "estimator-bridge: interrupted\n")
    with pytest.raises(ZeroDivisionError):  # ours: a traceback is what a bug report needs
        raising(ZeroDivisionError())


OPTIONS = ["--help", "--version", "--path", "modern", "--replicas", "x", "-m", "-h", "--", "", "a b", "--out=x", "-", "--a=--b"]


@pytest.mark.parametrize("verb", COMPARABLE)
@pytest.mark.parametrize("prefix", [[], ["-m"], ["--replicas", "2"], ["--replicas=2", "-m"]])
def test_everything_after_the_script_is_the_scripts(verb: str, prefix: list[str]) -> None:
    arguments = cli.build_parser().parse_args([verb, *prefix, "train", *OPTIONS])

    script = script_arguments.script_of(arguments)
    assert (script.target, list(script.args), script.is_module) == ("train", OPTIONS, "-m" in prefix)
    assert arguments.replicas == (2 if len(prefix) and "replicas" in prefix[0] else 1)


def test_completion_knows_verbs_options_and_files(tmp_path: Path) -> None:
    import shtab

    assert script_arguments.FILE.items() <= shtab.FILE.items()
    assert script_arguments.DIRECTORY.items() <= shtab.DIRECTORY.items()
    for shell in ("bash", "zsh", "tcsh", "fish"):
        code, out, err = run_main("--print-completion", shell)
        assert (code, err) == (0, "")
        assert all(word in out for word in (*itertools.chain(*COMMANDS), "path", "free-run"))
        if shutil.which(shell):
            (tmp_path / shell).write_text(out)
            subprocess.run([shell, "-n", str(tmp_path / shell)], check=True, timeout=30)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (["r"], ["run"]),
        (["run", "--pa"], ["--path"]),
        (["run", "--path", "mo"], ["modern"]),
        (["run", "tra"], ["train.py"]),
        (["compare", "--out", "fol"], ["folder"]),
    ],
)
def test_completion_in_bash(words: list[str], completions: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "folder").mkdir()
    line = " ".join(["estimator-bridge", *words])
    script = f"""{run_main("--print-completion", "bash")[1]}
COMP_WORDS=({line}); COMP_CWORD={len(words)}; COMP_LINE='{line}'; COMP_POINT={len(line)}
_shtab_estimator_bridge 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == completions


def test_the_script_for_fish_has_each_command_option_and_choice() -> None:
    lines = [shlex.split(line) for line in run_main("--print-completion", "fish")[1].splitlines()]
    assert {tuple(line[:3]) for line in lines} == {("complete", "-c", "estimator-bridge")}
    seen = "__fish_seen_subcommand_from"
    (steps,) = [line for line in lines if "steps" in line and line[4] == f"{seen} compare"]
    assert steps[5:8] == ["-l", "steps", "-r"]
    (path,) = [line for line in lines if "path" in line and line[4] == f"{seen} run"]
    assert path[5:10] == ["-l", "path", "-x", "-a", "legacy modern"]
    (config,) = [line[4] for line in lines if "config" in line]
    assert config.startswith(f"{seen} convert; and not {seen} ")


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("insp", ["inspect"]),
        ("convert co", ["config"]),
        ("compare --st", ["--stall-timeout", "--steps"]),
        ("run --path mo", ["modern"]),
        ("convert config --format p", ["plan", "python"]),
    ],
)
def test_completion_in_fish(words: str, completions: list[str], tmp_path: Path) -> None:
    write(tmp_path / "completion.fish", run_main("--print-completion", "fish")[1])
    asked = f'source completion.fish; complete -C "estimator-bridge {words}"'
    done = subprocess.run(["fish", "-c", asked], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == completions


def test_building_the_parser_loads_nothing_heavy() -> None:
    heavy = ["tensorflow", "tensorflow_estimator", "tf_keras", "keras", "numpy", "rich", "jinja2", "libcst", "shtab", "psutil"]
    script = "import sys; from estimator_bridge.cli.main import build_parser; build_parser(); print(*sys.modules)"
    source = str(Path(cli.__file__).parents[2])
    loaded = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": source}, capture_output=True, text=True, timeout=60, check=True
    )
    assert not set(heavy) & set(loaded.stdout.split())
