"""Changes of pandas frames through a column, judged by their source."""

from __future__ import annotations

import importlib.metadata

import pytest

from estimator_bridge.compat.source.reading import read_source
from estimator_bridge.compat.source.rules.old_library_rules import judge_chained_assignments
from estimator_bridge.compat.source.verdicts import Verdict

READ = "import pandas as pd\ndf = pd.read_csv('a.csv')\n"
LOST = [
    f"{READ}df['a'].fillna(df['a'].median(), inplace=True)",
    f"{READ}for name in df: df[name].replace('?', 0, inplace=True)",
    "def clean(frame):\n    frame['a'].clip(0, 1, inplace=True)",
    f"{READ}df['a'][df['a'] > 3] = 0",
    f"{READ}df['a'].loc[0] = 0",
]
KEPT = [
    f"{READ}df.fillna(0, inplace=True)",
    f"{READ}df['a'] = df['a'].fillna(0)",
    f"{READ}df['a'].fillna(0, inplace=False)",
    f"{READ}df.drop('a', axis=1, inplace=True)",
    f"{READ}frames = {{'train': df}}\nframes['train'].fillna(0, inplace=True)",
    f"{READ}df[['a', 'b']].fillna(0, inplace=True)",
    f"{READ}df.loc[0, 'a'] = 0",
    "import numpy as np\nrows = np.zeros([2, 2])\nrows[0][1] = 1",
    "rows = [[0]]\nrows[0][0] = 1",
]


@pytest.mark.parametrize("text", LOST)
def test_a_change_that_pandas_3_loses(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = read_source(text.encode(), "train.py")
    for version, count in (("3.0.1", 1), ("2.3.0", 0)):
        monkeypatch.setattr(importlib.metadata, "version", lambda name, version=version: version)
        assert [one.verdict for one in judge_chained_assignments(source)] == [Verdict.HUMAN] * count


@pytest.mark.parametrize("text", KEPT)
def test_a_change_that_pandas_3_keeps(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "3.0.1")
    assert not list(judge_chained_assignments(read_source(text.encode(), "train.py")))


def test_a_key_that_may_name_several_columns_is_to_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "3.0.1")
    source = read_source(b"def clean(frame, columns):\n    frame[columns].fillna(0, inplace=True)", "train.py")
    assert [one.verdict for one in judge_chained_assignments(source)] == [Verdict.LOOK]
