"""The pages' handwritten lists agree with the code."""

from __future__ import annotations

import itertools
import re
import runpy
import shlex
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from estimator_bridge.cli.main import build_parser, main
from estimator_bridge.compat.config.contradictions import ContradictionError
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity import result
from estimator_bridge.script.run import Script
from tests.packaging.conftest import ROOT

COMPARING = (ROOT / "docs" / "how-to" / "compare.md").read_text(encoding="utf-8")


def first_columns(text: str, heading: str) -> list[str]:
    """Returns the first cells of the table under a heading."""
    section = text.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]
    return re.findall(r"^\| ([^|]+?) \|", section, flags=re.MULTILINE)[1:]


def test_every_level_is_explained_in_its_order() -> None:
    levels = typing.get_type_hints(result.ParityFinding)["level"]
    assert first_columns(COMPARING, "What is compared") == list(typing.get_args(levels))


def test_every_verdict_is_listed_with_its_exit_code() -> None:
    pages = COMPARING + (ROOT / "docs" / "how-to" / "other-comparisons.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z ]+) \| (\d) \|", pages, flags=re.MULTILINE)
    assert {verdict: int(code) for verdict, code in rows} == dict(result.EXIT_CODES)


def test_the_default_thresholds_are_the_ones_named() -> None:
    named = re.search(r"`rel_diff` up to (\S+), `abs_diff` up to (\S+), and (\S+)\s+for variables", COMPARING)
    assert named is not None
    assert result.Thresholds(*map(float, named.groups())) == result.Thresholds()


def test_the_pages_of_messages_list_every_message_of_the_source() -> None:
    generate = runpy.run_path(str(ROOT / "docs" / "reference" / "generate_messages.py"))
    written = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference" / "messages").iterdir()}
    assert written == generate["pages"](), "run python docs/reference/generate_messages.py"
    assert generate["DATA"].read_text(encoding="utf-8") == generate["data"](), "run python docs/reference/generate_messages.py"


@pytest.mark.parametrize(
    "refused",
    [
        Script("missing.py").check,  # in a method
        lambda: ContradictionError(("one", "another"), "no reason", "Drop one."),  # in an error's own class
        lambda: main(["inspect", "missing"]),
    ],
)
def test_the_command_in_a_message_explains_it(refused: Callable[[], object], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        made = refused()
    except BridgeError as error:
        made = error
    printed = re.search(r"^  help:     (.+)$", capsys.readouterr().err, flags=re.MULTILINE)
    command = (made.address if isinstance(made, BridgeError) else printed[1] if printed else "").split()
    assert command[:2] == ["estimator-bridge", "explain"]
    assert main(command[1:]) == 0
    assert capsys.readouterr().out.startswith(f"{command[2]}\n")


def test_a_message_that_repeats_another_keeps_its_address_and_users_messages_have_none() -> None:
    assert BridgeError("A side failed.", address="explain x").address == "explain x"
    assert BridgeError("Made here.").address == ""


def test_the_page_of_messages_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "tarin.py"]) == 2
    page = (ROOT / "docs" / "reference" / "messages" / "index.md").read_text(encoding="utf-8")
    assert f"$ estimator-bridge run tarin.py\n{capsys.readouterr().err}```" in page


def shown_commands() -> Iterator[tuple[Path, list[str]]]:
    """Yields the words of each command of ours in the shell blocks of the pages, without what the shell does with its output."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for block in re.findall(r"^ *```(?:sh|bash)\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
                lexer.whitespace_split, lexer.commenters = True, "#"
                words = list(itertools.takewhile(lambda word: word not in {"|", ">", "&&", "||", "&", ";"}, lexer))
                if words[:1] == ["estimator-bridge"] and "--help" not in words:
                    yield page, words[1:]


def test_each_command_of_a_page_is_one() -> None:
    """What comes after a script are its own arguments, so an option of ours there would do nothing."""
    parser = build_parser()
    verbs = next(action.choices for action in parser._actions if isinstance(action.choices, dict))
    commands = list(shown_commands())
    for page, words in commands:
        given = parser.parse_args(["--version"] if words == ["version"] else words)
        ours = set(verbs[words[0]]._option_string_actions)
        of_script = {word.partition("=")[0] for word in getattr(given, "args", None) or ()}
        assert not of_script & ours, f"{page.name}: {shlex.join(words)}"
    assert len(commands) > 100
