"""A stand-in for ``estimator-bridge compare``: its first argument is the verdict, and the rest becomes the report's command."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from estimator_bridge.parity.report.summary import render_json
from estimator_bridge.parity.report.write import write_report
from estimator_bridge.parity.result import ParityFinding, ParityResult, Thresholds

verdict, *arguments = sys.argv[1:]
if verdict == "hangs":
    time.sleep(60)
if verdict == "wrong option":
    sys.exit("estimator-bridge: no option --stesp")
findings = (
    [] if verdict == "equal" else [ParityFinding("loss", f"The losses differ ({number}).", number) for number in range(1, 6)]
)
command = tuple(arguments[4:])  # after --format json --out DIR
result = ParityResult(command, "replay", verdict, Thresholds(), findings=tuple(findings), reason=os.environ.get("REASON", ""))  # type: ignore[arg-type]
write_report(result, Path(arguments[3]))
cause = json.loads(os.environ.get("CAUSE", "null"))
sys.stdout.write(json.dumps(json.loads(render_json(result)) | {"cause": cause}))
sys.exit(result.exit_code)
