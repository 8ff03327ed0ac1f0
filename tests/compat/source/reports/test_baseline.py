"""What is new since an earlier check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from estimator_bridge.compat.source.reports.baseline import read_baseline, without_known
from estimator_bridge.compat.source.reports.text import as_data
from estimator_bridge.errors import BridgeError
from tests.compat.source.reading import judge

BEFORE = b"import tensorflow as tf\ntf.gone\n"
AFTER = b"import tensorflow as tf\n\n\ntf.gone\ntf.gone\ntf.also_gone\n"


def test_findings_that_moved_are_known_and_others_are_new(tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    baseline.write_text(json.dumps(as_data([judge().content(BEFORE, "a.py")], "2.21.0")))
    known = read_baseline(baseline)
    assert [one.symbol for one in without_known([judge().content(BEFORE, "a.py")], known)[0].findings] == ["tensorflow"]
    reports = without_known([judge().content(AFTER, "a.py"), judge().content(BEFORE, "b.py")], known)
    assert [[(one.line, one.symbol) for one in report.findings] for report in reports] == [
        [(1, "tensorflow"), (5, "tf.gone"), (6, "tf.also_gone")],
        [(1, "tensorflow"), (2, "tf.gone")],
    ]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"files": [{}]}', '{"files": [3]}', '{"files": [{"path": "a", "findings": [{}]}]}', "\ud800"]
)
def test_another_file_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(content, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(BridgeError, match="baseline"):
        read_baseline(path)
    with pytest.raises(BridgeError, match="cannot be read"):
        read_baseline(tmp_path)
