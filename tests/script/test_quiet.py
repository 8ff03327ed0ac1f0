"""What reaches stderr while TensorFlow is imported."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import estimator_bridge

EARLY = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
INFO = "I0000 00:00:1795357540.065254   16530 port.cc:153] oneDNN custom operations are on."
FATAL = "F0000 00:00:1795357540.065254   16530 cpu_feature_guard.cc:20] This CPU has no AVX."


def stderr_of(program: str, **environment: str) -> str:
    """What a program leaves on stderr; ``start_up`` is at hand in it."""
    inherited = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    source = "import os\nfrom estimator_bridge.script.quiet import quiet_start_up\n" + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", source],
        env=inherited | {"PYTHONPATH": str(Path(estimator_bridge.__file__).parents[1])} | environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stderr


def test_early_messages_are_dropped_and_all_others_kept() -> None:
    program = f"""
        with quiet_start_up():
            os.write(2, b"{EARLY}\\n{INFO}\\nmy own line\\n")
        os.write(2, b"{INFO}\\n")
        """
    assert stderr_of(program) == f"my own line\n{INFO}\n"


def test_the_last_words_of_an_import_that_aborts_are_printed() -> None:
    program = f"""
        with quiet_start_up():
            os.write(2, b"{INFO}\\n{FATAL}\\n")
            os.abort()
        """
    assert stderr_of(program) == f"{FATAL}\n"


def test_an_exception_ends_the_filter() -> None:
    program = """
        try:
            with quiet_start_up():
                raise ImportError
        except ImportError:
            os.write(2, b"I0000 after\\n")
        try:
            os.wait()
        except ChildProcessError:
            os.write(2, b"no child left\\n")
        """
    assert stderr_of(program) == "I0000 after\nno child left\n"


def test_a_process_that_an_import_leaves_behind_is_not_waited_for() -> None:
    program = """
        import signal, subprocess, sys
        with quiet_start_up():
            left = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        assert left.poll() is None
        left.kill()
        os.write(2, b"after")
        """
    assert stderr_of(program) == "after"


def test_a_level_that_the_user_set_is_left_alone() -> None:
    program = f"""
        with quiet_start_up():
            os.write(2, b"{INFO}\\n")
        os.write(2, os.environ["TF_CPP_MIN_LOG_LEVEL"].encode())
        """
    assert stderr_of(program, TF_CPP_MIN_LOG_LEVEL="0") == f"{INFO}\n0"


@pytest.mark.parametrize(
    ("gpu", "tf_config", "level"), [(False, None, "3"), (False, "{}", "2"), (True, None, "1"), (True, "{}", "1")]
)
def test_errors_stay_where_they_may_matter(gpu: bool, tf_config: str | None, level: str, tmp_path: Path) -> None:
    program = f"""
        from estimator_bridge.script import quiet
        quiet._GPU_DRIVERS = ({str(tmp_path if gpu else tmp_path / "none")!r},)
        with quiet_start_up():
            os.write(2, os.environ["TF_CPP_MIN_LOG_LEVEL"].encode() + b"\\n")
        """
    assert stderr_of(program, **({} if tf_config is None else {"TF_CONFIG": tf_config})) == f"{level}\n"
