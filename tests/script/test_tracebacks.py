"""Which frames a user sees, and with which code a process ends."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.runtime.log_output import log_to_stderr
from estimator_bridge.script import tracebacks
from estimator_bridge.script.tracebacks import run_as_python_does
from tests.running import write

OURS = Path(tracebacks.__file__).resolve().parents[1]
ENGINE = str(OURS / "runtime" / "estimator_calls.py")
TRAINING = str(OURS / "modern" / "training" / "train.py")
IMPORTS = [str(OURS / "legacy" / "tf1_surface" / "tf1_imports.py"), str(OURS / "legacy" / "removed_names" / "patches.py")]


def function(file: str, source: str, **names: Any) -> Callable[..., Any]:
    """A function that a file seems to hold."""
    namespace: dict[str, Any] = dict(names)
    exec(compile(source, file, "exec"), namespace)
    made = namespace["f"]
    assert isinstance(made, types.FunctionType)
    return made


CALL = "def f(*args):\n    return g(*args)\n"


def frames(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The files of a traceback, without the caller's lambda."""
    lines = capsys.readouterr().err.splitlines()
    return [line.split('"')[1] for line in lines if line.startswith('  File "') and "<lambda>" not in line]


@pytest.mark.parametrize(
    ("raised", "code"),
    [(SystemExit(), 0), (SystemExit(0), 0), (SystemExit(5), 5), (SystemExit(True), 1), (KeyboardInterrupt(), 130)],
)
def test_exit_codes(raised: BaseException, code: int) -> None:
    assert run_as_python_does(function("x", "def f():\n    raise error\n", error=raised)) == code


def test_nothing_raised_is_code_0() -> None:
    assert run_as_python_does(lambda: None) == 0


def test_text_given_to_exit_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_as_python_does(lambda: sys.exit("no data")) == 1
    assert capsys.readouterr() == ("", "no data\n")


def test_our_frames_between_the_users_are_folded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = write(tmp_path / "train.py", "")
    model_fn = function(str(script), "def f():\n    raise ValueError('mine')\n")
    chain = function(str(script), CALL, g=function(ENGINE, CALL, g=function(TRAINING, CALL, g=model_fn)))

    assert run_as_python_does(chain) == 1
    assert frames(capsys) == [str(script)] * 2


def test_our_frames_below_the_users_last_are_shown_but_for_those_that_pass_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the mistake may be ours, a bug report needs them."""
    script = write(tmp_path / "train.py", "")
    ours = function(ENGINE, CALL, g=function(TRAINING, CALL, g=function("/lib/site-packages/tf.py", "def f():\n    1 / 0\n")))

    assert run_as_python_does(function(str(script), CALL, g=ours)) == 1
    assert frames(capsys) == [str(script), TRAINING, "/lib/site-packages/tf.py"]


def test_our_frames_are_folded_from_an_error_of_the_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The graph is the script's: who executes it is no part of its error."""
    script = write(tmp_path / "train.py", "")
    kind = type("InvalidArgumentError", (Exception,), {"__module__": "tensorflow.python.framework.errors_impl"})
    session = function("/lib/site-packages/session.py", "def f():\n    raise error\n", error=kind("not a number"))
    ours = function(ENGINE, CALL, g=function(TRAINING, CALL, g=session))

    assert run_as_python_does(function(str(script), CALL, g=ours)) == 1
    assert frames(capsys) == [str(script), "/lib/site-packages/session.py"]


def test_the_scripts_own_error_comes_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = write(tmp_path / "train.py", "import tensorflow as tf\ntf.no_such_name\n")
    import tensorflow as tf

    with log_to_stderr():
        run_as_python_does(function(str(script), "def f():\n    tf.no_such_name\n", tf=tf))
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("AttributeError: ")
    assert any(line.startswith("estimator-bridge: ") for line in lines[:-1])


@pytest.mark.parametrize("hook", IMPORTS)
def test_the_import_hooks_are_folded_from_a_failing_import(
    hook: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Path(hook).is_file()
    script = write(tmp_path / "train.py", "")
    importing = function(hook, "def f():\n    raise ImportError('no module')\n")

    assert run_as_python_does(function(str(script), CALL, g=importing)) == 1
    assert frames(capsys) == [str(script)]


def test_causes_contexts_and_groups_are_folded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = str(write(tmp_path / "train.py", ""))
    fail = function(ENGINE, CALL, g=function(script, "def f():\n    raise KeyError('k')\n"))
    group = "ExceptionGroup('several', [error])" if sys.version_info >= (3, 11) else "RuntimeError('several')"
    source = f"def f():\n    try:\n        g()\n    except KeyError as error:\n        raise {group} from error\n"
    outer = "def f():\n    try:\n        g()\n    except Exception:\n        raise OSError('last')\n"

    assert run_as_python_does(function(script, outer, g=function(ENGINE, CALL, g=function(script, source, g=fail)))) == 1
    assert ENGINE not in capsys.readouterr().err


def test_exceptions_that_refer_to_each_other_come_to_an_end(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one

    assert run_as_python_does(function("x", "def f():\n    raise error\n", error=one)) == 1
    assert "one" in capsys.readouterr().err


def test_the_scripts_own_excepthook_gets_the_folded_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = str(write(tmp_path / "train.py", ""))
    got: list[Any] = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: got.append(error))
    error = ValueError("x")

    assert run_as_python_does(function(script, "def f():\n    raise error\n", error=error)) == 1
    assert got == [(ValueError, error, error.__traceback__)]


def refusal(file: Path, error: BridgeError) -> str:
    fail = function(ENGINE, "def f():\n    raise error\n", error=error)
    with pytest.raises(BridgeError) as raised:
        run_as_python_does(function(str(file), f"\n\n\n{CALL}", g=fail))
    assert raised.value is error
    return str(raised.value)


def test_a_refusal_names_the_line_that_asked(tmp_path: Path) -> None:
    script = write(tmp_path / "src" / "train.py", "")
    message = refusal(script, NotSupportedError("TPUs are not there.", fix="Do without."))
    assert message.splitlines() == ["TPUs are not there.", "  to do:    Do without.", f"  asked by: {script}:5"]


def test_a_refusal_that_names_the_line_itself_does_so_once(tmp_path: Path) -> None:
    script = write(tmp_path / "train.py", "")
    message = refusal(script, BridgeError("No.", received=f"this at {script}:5"))
    assert "asked by" not in message


@pytest.mark.parametrize("place", ["lib/site-packages/library.py", "lib/dist-packages/library.py"])
def test_installed_code_is_not_the_users(place: str, tmp_path: Path) -> None:
    assert "asked by" not in refusal(write(tmp_path / place, ""), BridgeError("No."))


def test_what_does_not_stand_in_a_file_is_not_named() -> None:
    assert "asked by" not in refusal(Path("<string>"), BridgeError("No."))
