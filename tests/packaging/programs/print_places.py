"""Prints the file of each part of the package."""

import importlib
import json

names = ("legacy", "modern", "compat")
print(json.dumps({name: importlib.import_module("estimator_bridge." + name).__file__ for name in names}))
