"""Reports of conversions on the terminal."""

from __future__ import annotations

import io

from rich.console import Console

from estimator_bridge.compat.checkpoint.inspection.terminal import print_report
from estimator_bridge.compat.checkpoint.request import ConversionReport, Converted


def test_slots_that_are_left_out_for_one_reason_share_a_row() -> None:
    slots = [Converted(f"layer_{number}/kernel/Adam", "", "no counterpart") for number in range(18)]
    slots += [Converted("a/Momentum", "a/velocity"), Converted("b/Ftrl", "", "another reason")]
    out = io.StringIO()
    print_report(ConversionReport("old", "new", "object-based", written=True, slots=slots), Console(file=out, width=200))
    rows = [" ".join(line.split()) for line in out.getvalue().splitlines()[3:]]
    assert rows == [
        "a/Momentum a/velocity",
        "layer_0/kernel/Adam and 17 more left out no counterpart",
        "b/Ftrl left out another reason",
    ]
