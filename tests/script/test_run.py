"""A script under the runner sees and does what it sees and does under ``python SCRIPT``; here both are run and compared."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.script import run as runner
from estimator_bridge.script.run import Script

DATA = Path(__file__).parents[1] / "data"
AS_MAIN = str(Path(__file__).with_name("as_main.py"))


def write(path: Path, source: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path


def heed_interrupts() -> None:
    """A shell starts what it runs in the background with SIGINT ignored, and whatever that starts inherits it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def start(arguments: list[str], folder: Path, **environment: str) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(Path(runner.__file__).parents[2])} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 -- no thread is running here
    )


def end(process: subprocess.Popen[str], stdin: str = "") -> tuple[int, str, str]:
    out, err = process.communicate(stdin, timeout=60)
    return process.returncode, out, err


def both(arguments: list[str], folder: Path, stdin: str = "", **environment: str) -> list[tuple[int, str, str]]:
    """(exit code, stdout, stderr) of Python itself and of the runner."""
    processes = [start([*way, *arguments], folder, **environment) for way in ([], [AS_MAIN])]
    return [end(process, stdin) for process in processes]


PROBE = (DATA / "own_view.py").read_text()
ARGUMENTS = ["--train_steps=3", "-m", "--path", "modern", "--", "", "two words", "-h", "--help", "--version"]


def test_what_a_script_sees_of_itself(tmp_path: Path) -> None:
    write(tmp_path / "project" / "beside.py", "")
    write(tmp_path / "project" / "train.py", PROBE)

    python, ours = both(["project/train.py", *ARGUMENTS], tmp_path, stdin="given\n")

    assert json.loads(python[1])["argv"] == ["project/train.py", *ARGUMENTS]
    assert json.loads(ours[1]) == json.loads(python[1])
    assert ours == python


def test_a_script_reached_by_a_link_finds_the_modules_beside_the_real_one(tmp_path: Path) -> None:
    write(tmp_path / "project" / "beside.py", "")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "job").symlink_to(write(tmp_path / "project" / "train.py", PROBE))

    python, ours = both([str(tmp_path / "links" / "job")], tmp_path)

    assert python[0] == 0
    assert ours == python


def test_a_script_under_safe_path_finds_no_modules_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "beside.py", "")
    write(tmp_path / "train.py", PROBE)

    python, ours = both(["train.py"], tmp_path, PYTHONSAFEPATH="1")

    if sys.version_info >= (3, 11):
        assert "No module named 'beside'" in python[2]
    assert ours == python


def test_what_a_module_sees_of_itself(tmp_path: Path) -> None:
    write(tmp_path / "trainer" / "__init__.py", "import sys\nprint('package sees', sys.argv)")
    write(tmp_path / "trainer" / "beside.py", "")
    probe = PROBE.replace("import beside", "from . import beside")
    write(tmp_path / "trainer" / "task.py", probe)

    python, ours = both(["-m", "trainer.task", *ARGUMENTS], tmp_path)

    said, _, seen = python[1].partition("\n")
    assert said.startswith("package sees ['-m'")
    assert ours[1].partition("\n")[0] == said
    assert json.loads(seen)["package"] == "trainer"
    assert json.loads(seen)["argv"][0] == str(tmp_path / "trainer" / "task.py")
    assert json.loads(ours[1].partition("\n")[2]) == json.loads(seen)


def test_a_package_runs_its_main_module(tmp_path: Path) -> None:
    write(tmp_path / "trainer" / "__init__.py", "")
    write(tmp_path / "trainer" / "__main__.py", "print(__name__, __spec__.name)")

    python, ours = both(["-m", "trainer"], tmp_path)

    assert python[1] == "__main__ trainer.__main__\n"
    assert ours == python


ENDINGS = {
    "nothing": "print('done')",
    "exit 0": "import sys; sys.exit(0)",
    "exit 3": "import sys; sys.exit(3)",
    "exit None": "import sys; sys.exit()",
    "exit True": "import sys; sys.exit(True)",
    "exit 259": "import sys; sys.exit(259)",
    "exit -1": "raise SystemExit(-1)",
    "exit with text": "import sys; sys.exit('no data in ./data')",
    "exit with a float": "import sys; sys.exit(2.5)",
    "exit with a list": "import sys; sys.exit([1])",
    "an exception": (DATA / "endings" / "an_exception.py").read_text(),
    "a chain of exceptions": (DATA / "endings" / "chain_of_exceptions.py").read_text(),
    "an exception in a module beside it": (DATA / "endings" / "exception_beside.py").read_text(),
    "a failing import": (DATA / "endings" / "failing_import.py").read_text(),
    "an exception while a module is imported": "import broken",
    "importlib": (DATA / "endings" / "importlib_import.py").read_text(),
    "a syntax error": "x = 1\nprint 'hello'\n",
    "an indentation error": "if True:\nx = 1\n",
    "a syntax error in a module": "import unparsable\n",
    "an encoding": "# coding: latin-1\nprint('x')\n",
    "a future import": (DATA / "endings" / "future_import.py").read_text(),
    "a hook of its own": (DATA / "endings" / "own_hook.py").read_text(),
    "an exit of os": "import os; os._exit(4)",
    "a class of its own": "class Stop(BaseException): pass\nraise Stop('now')\n",
    "atexit": "import atexit; atexit.register(print, 'at exit'); raise ValueError",
    "a thread": (DATA / "endings" / "thread.py").read_text(),
    "a pool of threads": (DATA / "endings" / "pool.py").read_text(),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_how_a_script_ends(ending: str, tmp_path: Path) -> None:
    write(tmp_path / "helper.py", "def fail():\n    assert False, 'helped'\n")
    write(tmp_path / "broken.py", "import helper\nhelper.fail()\n")
    write(tmp_path / "unparsable.py", "def f(:\n")
    write(tmp_path / "train.py", ENDINGS[ending])

    python, ours = both(["train.py"], tmp_path)

    assert ours == python


@pytest.mark.parametrize("way", ["abort", "terminate"])
def test_a_thread_that_aborts_after_the_end_is_outlived(way: str, tmp_path: Path) -> None:
    python, ours = both([str(DATA / "endings" / "late_abort.py"), way], tmp_path)
    assert (python[0], ours) == (-signal.SIGABRT, (0, "written\n", ""))


def test_a_modules_traceback_is_pythons_without_the_starters(tmp_path: Path) -> None:
    write(tmp_path / "trainer" / "__init__.py", "")
    write(tmp_path / "trainer" / "task.py", "def f():\n    1 / 0\n\nf()\n")

    python, ours = both(["-m", "trainer.task"], tmp_path)

    starters = re.compile(r'  File "(<frozen runpy>|.*/runpy\.py)", .*\n(    .*\n)*')
    assert ours == (1, "", starters.sub("", python[2]))
    assert "runpy" not in ours[2]


def test_an_exception_in_a_package_on_the_way_to_the_module(tmp_path: Path) -> None:
    write(tmp_path / "trainer" / "__init__.py", "import nowhere\n")
    write(tmp_path / "trainer" / "task.py", "")

    code, _, err = end(start([AS_MAIN, "-m", "trainer.task"], tmp_path))

    assert code == 1
    assert err.splitlines() == [
        "Traceback (most recent call last):",
        f'  File "{tmp_path / "trainer" / "__init__.py"}", line 1, in <module>',
        "    import nowhere",
        "ModuleNotFoundError: No module named 'nowhere'",
    ]


def test_an_interrupt_shows_where_the_script_was(tmp_path: Path) -> None:
    shutil.copy(DATA / "ready_and_asleep.py", tmp_path / "train.py")
    shown = []
    for way in ([], [AS_MAIN]):
        process = start([*way, "train.py"], tmp_path)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0)  # until it sleeps, too: it printed before
        process.send_signal(signal.SIGINT)
        code, _, err = end(process)
        assert code in (-signal.SIGINT, 130)  # a shell says 130 for both
        shown.append(err)
    assert shown[0] == shown[1]


def test_stdin_can_be_read_line_by_line_while_the_script_runs(tmp_path: Path) -> None:
    write(tmp_path / "train.py", "print(input('name? '))\nprint(input())\n")
    python, ours = both(["train.py"], tmp_path, stdin="a\nb\n")
    assert python[1] == "name? a\nb\n"
    assert ours == python


def test_arguments_and_path_of_the_caller_come_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "train.py", "import sys; sys.path.append('x'); sys.argv.append('y'); print(sys.argv)")
    before = list(sys.argv), list(sys.path), sys.modules["__main__"]

    runner.run_as_main(Script(str(path), ("a",)))

    assert capsys.readouterr().out == f"{[str(path), 'a', 'y']}\n"
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before


@pytest.mark.parametrize(
    ("script", "what", "fix"),
    [
        (Script("nowhere.py"), "There is no such script.", "arguments of the script come after it"),
        (Script("."), "The script is a folder.", "Name the file in it"),
        (Script("train.py/x"), "There is no such script.", "Check the path"),
        (Script("train.py", is_module=True), "There is no such module.", "-m train for the module, or leave -m out"),
        (Script(".task", is_module=True), "There is no such module.", "from the top package on"),
        (Script("", is_module=True), "There is no such module.", "from the top package on"),
    ],
)
def test_what_is_no_script_is_told_before_anything_is_imported(
    script: Script, what: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "train.py", "")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(BridgeError) as raised:
        script.check()

    assert raised.value.what == what
    assert fix in str(raised.value)
    assert f"received: {script.target}" in str(raised.value)


def test_a_script_without_permission_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "train.py", "")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read everything

    with pytest.raises(BridgeError, match="cannot be read: no permission"):
        Script(str(path)).check()


@pytest.mark.parametrize("name", ["nowhere", "nowhere.task", "trainer.nowhere", "trainer.task.deeper", "trainer"])
def test_a_module_that_is_not_there(name: str, tmp_path: Path) -> None:
    write(tmp_path / "trainer" / "__init__.py", "")
    write(tmp_path / "trainer" / "task.py", "")

    code, out, err = end(start([AS_MAIN, "-m", name], tmp_path))

    assert code == 1  # of an uncaught BridgeError; the command line prints it and ends with 2
    assert out == ""
    assert "BridgeError: There is no such module." in err
    assert f"received: {name}" in err


def test_a_process_substitution_is_a_script(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = start([AS_MAIN, str(fifo)], tmp_path)
    fifo.write_text("print('from a pipe')")
    assert end(process) == (0, "from a pipe\n", "")


def test_no_time_is_lost(tmp_path: Path) -> None:
    script = write(tmp_path / "script.py", "import sys\nprint({'tensorflow', 'numpy', 'keras'} & set(sys.modules))\n")
    assert end(start([AS_MAIN, str(script)], tmp_path))[:2] == (0, "set()\n")
