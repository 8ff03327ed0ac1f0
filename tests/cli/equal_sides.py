"""The command line, with comparisons that always end equal."""

from __future__ import annotations

import sys

from estimator_bridge.cli.main import main
from estimator_bridge.parity import run
from estimator_bridge.parity.result import ParityResult, Thresholds

run.compare = lambda *script, **options: ParityResult((), "replay", "equal", Thresholds())
sys.exit(main())
