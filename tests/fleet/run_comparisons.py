"""Runs the comparisons of a fleet with stand-ins: run_comparisons.py FLEET OUT; prints a line for each that ends."""

import os
import sys
from pathlib import Path

from estimator_bridge.fleet.comparisons import Comparisons
from estimator_bridge.fleet.plan import read_fleet
from estimator_bridge.fleet.results import key_of, read_results

pipelines = read_fleet(Path(sys.argv[1]))
known = read_results(Path(sys.argv[2]), pipelines)
waiting = [one for one in pipelines if one.name not in known or known[one.name].key != key_of(one)]
stand_in = str(Path(__file__).with_name("stand_in_compare.py"))
Comparisons(Path(sys.argv[2]), (stand_in,)).run(waiting, 2, lambda one, result: os.write(1, f"{one.name}\n".encode()))
