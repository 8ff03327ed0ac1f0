"""Prints, as JSON, the names of tensorflow.python that are not tf's, of those that were in TensorFlow 1.15.5: FILE with names.json."""

import functools
import importlib
import json
import sys
from pathlib import Path

import tensorflow as tf

recorded = json.loads(Path(sys.argv[1]).read_text())
others, checked = [], 0
for file, names in recorded.items():
    try:
        module = importlib.import_module(file)
    except ImportError:
        continue
    for name, path in names.items():
        try:
            expected = functools.reduce(getattr, path.split("."), tf)
        except AttributeError:
            continue
        received = getattr(module, name, expected)
        checked += 1
        if received is not expected and (
            isinstance(expected, type) or getattr(received, "__name__", None) != expected.__name__
        ):
            others.append(file + ":" + name)
sys.stdout.write(json.dumps({"others": others, "checked": checked}) + "\n")
