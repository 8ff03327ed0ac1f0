"""What compare says of a script that it cannot compare; nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.legacy.running import estimator_bridge_command, write

pytestmark = [pytest.mark.timeout(200), pytest.mark.usefixtures("warm_python")]

SCRIPTS = {
    "raises": (
        "import tensorflow as tf\ntf.placeholder(tf.float32)\nraise ValueError('no data')",
        "ValueError: no data",
        "code 1",
    ),
    "exits": ("import sys\nsys.exit(3)", "exit code 3", "--path legacy"),
    "refused": ("import tensorflow as tf\ntf.contrib.bayesflow.monte_carlo", "tf.contrib.bayesflow.monte_carlo", "train.py:2"),
    "plain": ("import tensorflow as tf\nprint(tf.placeholder(tf.float32))", "called no Estimator", "Estimator"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_cannot_be_compared(name: str, tmp_path: Path) -> None:
    source, *messages = SCRIPTS[name]
    write(tmp_path / "train.py", source)
    temporary = tmp_path / "tmp"
    temporary.mkdir()

    ended = estimator_bridge_command("compare", "train.py", cwd=tmp_path, TMPDIR=str(temporary))

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("estimator-bridge: ")
    for message in messages:
        assert message in ended.err
    assert "estimator_bridge/" not in ended.err, "no frames of ours"
    left = [path for path in tmp_path.rglob("*") if path.name not in ("train.py", "tmp") and "__pycache__" not in path.parts]
    assert not [path for path in left if "estimator-bridge" in path.name or "report" in path.name], left
