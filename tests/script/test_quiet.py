"""What reaches stderr while TensorFlow is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import estimator_bridge

EARLY = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
INFO = "I0000 00:00:1795357540.065254   16530 port.cc:153] oneDNN custom operations are on."
FATAL = "F0000 00:00:1795357540.065254   16530 cpu_feature_guard.cc:20] This CPU has no AVX."


def stderr_of(function: str, *arguments: object, **environment: str) -> str:
    """Returns what a function of start_ups.py leaves on stderr."""
    inherited = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("start_ups.py"), function, *map(str, arguments)],
        env=inherited | {"PYTHONPATH": str(Path(estimator_bridge.__file__).parents[1])} | environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stderr


def test_early_messages_are_dropped_and_all_others_kept() -> None:
    assert stderr_of("messages", f"{EARLY}\n{INFO}\nmy own line\n", f"{INFO}\n") == f"my own line\n{INFO}\n"


def test_the_last_words_of_an_import_that_aborts_are_printed() -> None:
    assert stderr_of("aborting", f"{INFO}\n{FATAL}\n") == f"{FATAL}\n"


def test_an_exception_ends_the_filter() -> None:
    assert stderr_of("raising") == "I0000 after\nno child left\n"


def test_a_process_that_an_import_leaves_behind_is_not_waited_for() -> None:
    assert stderr_of("leaving_a_process") == "after"


def test_a_level_that_the_user_set_is_left_alone() -> None:
    assert stderr_of("level_after", f"{INFO}\n", TF_CPP_MIN_LOG_LEVEL="0") == f"{INFO}\n0"


@pytest.mark.parametrize(
    ("gpu", "tf_config", "level"), [(False, None, "3"), (False, "{}", "2"), (True, None, "1"), (True, "{}", "1")]
)
def test_errors_stay_where_they_may_matter(gpu: bool, tf_config: str | None, level: str, tmp_path: Path) -> None:
    driver = tmp_path if gpu else tmp_path / "none"
    environment = {} if tf_config is None else {"TF_CONFIG": tf_config}
    assert stderr_of("level_with", driver, **environment) == f"{level}\n"
