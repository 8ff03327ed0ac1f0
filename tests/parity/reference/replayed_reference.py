"""A stand-in for the interpreter of a reference: writes the trace that TensorFlow 1.15.5 left, as the recorder would."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

GOLDEN = Path(__file__).parents[2] / "golden" / "reference"

recorder, order = sys.argv[1:]
assert Path(recorder).name == "recorder.py"
folder = Path(json.loads(order)["folder"])
shutil.copytree(GOLDEN, folder, ignore=shutil.ignore_patterns("events.jsonl"))
# Written once, for the comparison follows the file while it grows.
(folder / "events.jsonl").write_text((GOLDEN / "events.jsonl").read_text().replace("FOLDER", str(folder)))
