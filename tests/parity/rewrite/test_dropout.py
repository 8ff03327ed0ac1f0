"""Sites of dropout on both sides, whose graphs leave other sizes open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from estimator_bridge.parity.rewrite.dropout import Site

PROGRAM = Path(__file__).with_name("counted_loops.py")
OPEN, HALF = Site((None, None), 0.3), Site((None, 16), 0.3)


@pytest.mark.parametrize(
    ("own", "others", "shape"),
    [
        (Site((11, 11), 0.3), [OPEN], (None, None)),
        (Site((11, 16), 0.3), [OPEN, HALF], (None, 16)),
        (Site((None, None), 0.3), [Site((11, 11), 0.3)], (11, 11)),
        (OPEN, [HALF, OPEN], (None, None)),
        (Site((11, 11), 0.5), [OPEN], (11, 11)),
        (Site((11,), 0.3), [OPEN], (11,)),
        (Site(None, 0.3), [OPEN], None),
        (Site((11, 12), 0.3), [HALF, Site((11, 11), 0.3)], (11, 12)),
    ],
)
def test_a_site_is_that_of_the_other_side_that_leaves_fewest_sizes_open(
    own: Site, others: list[Site], shape: tuple[int | None, ...] | None
) -> None:
    assert own.like(others) == Site(shape, own.rate)


def test_turns_of_a_loop_whose_shapes_change_are_counted() -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
