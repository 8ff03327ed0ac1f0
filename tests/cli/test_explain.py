"""``estimator-bridge explain`` as a user calls it."""

from __future__ import annotations

import json

import pytest

from estimator_bridge.cli.main import main

NO_SCRIPT = "script-run-check-file"


def explain(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["explain", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_an_anchor_gives_what_happened_what_was_expected_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = explain(capsys, "cli-explain-command-find")

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "cli-explain-command-find",
        "",
        "No message has this anchor or these words.",
        "  expected: an anchor from the last line of a message, or words of a message",
        "  to do:    Try ….",
        "  or:       Run estimator-bridge explain, which lists all anchors.",
    ]


def test_without_an_anchor_each_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = explain(capsys)
    everything = json.loads(explain(capsys, "--format", "json")[1])

    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(everything)
    assert "There is no such script." in next(line for line in out.splitlines() if line.startswith(NO_SCRIPT))


@pytest.mark.parametrize(
    ("printed", "anchor"),
    [
        ("there is no  such SCRIPT", NO_SCRIPT),  # case and spaces do not count
        ("arguments of the script come after it", NO_SCRIPT),  # in the advice
        (
            "estimator-bridge: Cannot make the folder /x/y: Permission denied.",
            "cli-convert-source-write-folder",
        ),  # values of a case
        ("--replicas is for one process, and --worker for several.", "cli-compare-check-together"),  # options of others
        ("estimator-bridge: --engine ray and --hosts exclude each other.", "cli-launch-schedulers-check-engine"),
    ],
)
def test_words_of_a_message_find_it(printed: str, anchor: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = explain(capsys, "--format", "json", *printed.split(" "))

    assert code == 0
    assert anchor in json.loads(out)


def test_each_message_has_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    everything = json.loads(explain(capsys, "--format", "json")[1])

    assert not [anchor for anchor, messages in everything.items() for message in messages if message["what"] in ([], ["…"])]


def test_json_has_the_messages_of_the_anchor(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = explain(capsys, NO_SCRIPT, "--format", "json")

    (message,) = json.loads(out)[NO_SCRIPT]
    assert code == 0
    assert message["expected"] == ["the path of a Python file, or -m and a module's name"]


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        ("script-run-chekc-file", f"Try {NO_SCRIPT}"),
        ("script-run", f"Try {NO_SCRIPT} or "),
        ("zzz", "Run estimator-bridge explain, which lists all anchors."),
        ("q" * 100_000, "Run estimator-bridge explain, which lists all anchors."),
    ],
)
def test_an_unknown_anchor_is_one_message_with_near_names(asked: str, advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = explain(capsys, asked)

    assert (code, out) == (2, "")
    assert f"  to do:    {advice}" in err
