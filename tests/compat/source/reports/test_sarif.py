"""SARIF and annotations, by what their specifications ask for."""

from __future__ import annotations

from typing import Any

from estimator_bridge.compat.source.checking import FileReport
from estimator_bridge.compat.source.reports.sarif import as_sarif, github_annotations
from tests.compat.source.reading import judge
from tests.notebooks import notebook


def reports() -> list[FileReport]:
    """Returns a report on a script and one on a notebook."""
    script = b"import tensorflow as tf\nimport numpy as np\nx = np.float\ntf.train.Nothing\n"
    return [
        judge().content(script, "my code/train.py"),
        judge().content(notebook("import tensorflow as tf", "x = 1\ntf.train.Nothing"), "a.ipynb"),
    ]


def test_sarif_has_what_code_scanning_reads() -> None:
    """These are the properties that SARIF 2.1.0 and GitHub's upload require."""
    log: dict[str, Any] = as_sarif(reports())
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    found = []
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in {"error", "warning", "note"}
        place = result["locations"][0]["physicalLocation"]
        region = place["region"]
        found.append((place["artifactLocation"]["uri"], region["startLine"], region["startColumn"], result["level"]))
        assert result["message"]["text"]
    assert found == [("my%20code/train.py", 3, 5, "note"), ("my%20code/train.py", 4, 1, "error"), ("a.ipynb", 1, 1, "error")]
    assert run["results"][-1]["message"]["text"].startswith("tf.train.Nothing: Line 2 of cell 2: ")


def test_annotations_escape_what_github_reads_as_its_own() -> None:
    lines = list(github_annotations(reports()))
    assert [line.split(" ")[0] for line in lines] == ["::notice", "::error", "::error"]
    assert lines[1].startswith("::error file=my code/train.py,line=4,col=1,title=tf.train.Nothing::")
    escaped = next(github_annotations([judge().content(notebook("%cd data"), "a,b.ipynb")]))
    assert escaped.startswith("::error file=a%2Cb.ipynb,line=1,col=1,title=%25cd::Line 1 of cell 1: ")
    assert all("\n" not in line for line in lines)
