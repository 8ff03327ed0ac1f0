"""Trains a TPUEstimator on two CPUs, which stand for a TPU's cores, and on the legacy path."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

from estimator_bridge.modern.distribution import tpu
from estimator_bridge.modern.distribution.strategies import _mirrored_over
from estimator_bridge.runtime.estimator_calls import interposed
from tests.modern.distribution.test_tpu import input_fn, made, seen
from tests.modern.jobs import make_engine

folder, executor = Path(sys.argv[1]), make_engine("modern", replicas=2)
two_cpus = mock.Mock(return_value=_mirrored_over(("CPU:0", "CPU:1")))
with mock.patch.object(tpu, "_strategy", two_cpus), interposed(executor):
    made(folder / "modern", use_tpu=True).train(input_fn, max_steps=6)
assert seen == [{"mode": "train", "batch_size": 4, "use_tpu": False, "own": False}], seen
with interposed(make_engine("legacy")):
    made(folder / "legacy").train(input_fn, max_steps=6)
