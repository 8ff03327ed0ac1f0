"""Runs a script with arguments, and prints its list ``evaluations`` and the step of its model as JSON."""

import json
import runpy
import sys

script = sys.argv.pop(1)
seen = runpy.run_path(script, run_name="__main__")
last, older, row, end = seen["evaluations"]
row = {name: value.tolist() for name, value in row.items()}
steps = int(seen["estimator"].optimizer.iterations)
sys.stdout.write(json.dumps([last, older, row, end, steps], default=float) + "\n")
