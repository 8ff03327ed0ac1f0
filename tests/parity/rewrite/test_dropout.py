"""Sites of dropout on both sides, whose graphs leave other sizes open."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.modern.graph.fragments import upstream
from estimator_bridge.parity.causes.cause import CauseName
from estimator_bridge.parity.rewrite.dropout import Site, occurrences, stacking_axes, with_places
from estimator_bridge.parity.rewrite.judging import unlike_turns
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.run import compare_rewrite
from estimator_bridge.script.run import Script

DATA = Path(__file__).parents[2] / "data" / "rewrites"
PROGRAMS = ("counted_loops.py", "stacked_turns.py")
OPEN, HALF, TURN = Site((None, None), 0.3), Site((None, 16), 0.3), Site((16,), 0.3, loops=1)


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


@pytest.mark.parametrize(
    ("own", "axis"),
    [
        (Site((8, 16), 0.3), 1),
        (Site((None, 16), 0.3), 1),
        (Site((16, 8), 0.3), 2),
        (Site((8, 16), 0.5), None),
        (Site((8, 12), 0.3), None),
        (Site((16,), 0.3), None),
        (Site((8, 16), 0.3, loops=1), None),
    ],
)
def test_a_mask_stacks_those_of_the_turns_of_one_loop_more(own: Site, axis: int | None) -> None:
    assert own.like([TURN], range(1, 1 + len(own.shape or ()))) == (
        own if axis is None else Site((16,), 0.3, loops=1, axis=axis)
    )


def test_a_site_that_fits_as_it_is_stacks_nothing() -> None:
    assert Site((8, 16), 0.3).like([TURN, HALF], (1, 2)) == HALF


@pytest.mark.parametrize(
    ("shape", "rows", "axes"),
    [
        ((None, 8, 16), 4, [1, 2]),
        ((4, 8, 16), 4, [1, 2]),
        ((None, None, 16), 4, [1, 2]),
        ((8, None, 16), 4, [0]),
        ((8, 4, 16), 4, [0]),
        ((4, 4, 16), 4, []),
        ((8,), 4, []),
    ],
)
def test_time_is_the_first_axis_if_the_second_has_the_rows(shape: tuple[int | None, ...], rows: int, axes: list[int]) -> None:
    assert [*stacking_axes(shape, rows)] == axes


@pytest.mark.parametrize("program", PROGRAMS)
def test_turns_of_a_loop_draw_what_the_other_side_draws(program: str) -> None:
    """In a loop whose shapes change; and at once, in layers of Keras, whose other masks are not counted, and in an eager loop."""
    path = Path(__file__).with_name(program)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]


ONCE, IN_LOOP, SINGLE = ((8, 16), 0.3, 0), ((16,), 0.3, 1), ((16,), 0.3, 0)


@pytest.mark.parametrize(
    ("old", "new", "is_unlike"),
    [
        ({ONCE: 1}, {IN_LOOP: 1}, True),
        ({ONCE: 1, SINGLE: 1}, {IN_LOOP: 1, SINGLE: 1}, True),
        ({((None, 16), 0.3, 0): 1}, {IN_LOOP: 1}, True),
        ({SINGLE: 8}, {IN_LOOP: 1}, True),
        ({SINGLE: 8}, {ONCE: 1}, True),
        ({SINGLE: 1}, {ONCE: 1}, False),
        ({SINGLE: 1}, {IN_LOOP: 1}, False),
        ({ONCE: 1}, {((16,), 0.5, 1): 1}, False),
        ({ONCE: 1}, {((12,), 0.3, 1): 1}, False),
        ({ONCE: 1}, {IN_LOOP: 1, ((4,), 0.3, 0): 1}, False),
        ({IN_LOOP: 1}, {}, False),
        ({ONCE: 1}, {ONCE: 1}, False),
    ],
)
def test_masks_that_one_side_draws_for_each_turn_are_no_difference(
    old: dict[Any, int], new: dict[Any, int], is_unlike: bool
) -> None:
    """Others are: masks of other rates, of other sizes, of one tensor where the other side has none."""
    assert (unlike_turns(Counter(old), Counter(new)) is not None) is is_unlike
    assert (unlike_turns(Counter(new), Counter(old)) is not None) is is_unlike


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        (("cell",), "equal"),
        (("layer",), "equal"),
        (("layer", "--rate=0.5"), "different"),
        (("unrolled",), "not comparable"),
    ],
)
def test_a_rewrite_draws_the_masks_of_the_turns_of_the_old_loop(arguments: tuple[str, ...], verdict: str) -> None:
    plan = RewritePlan(Script(str(DATA / "turns_new.py"), arguments))

    result = compare_rewrite(Script(str(DATA / "turns_old.py")), plan)

    assert result.verdict == verdict, (result.findings, result.notes)
    assert (result.cause.name if result.cause else None) == (CauseName.DROPOUT if verdict == "different" else None)
    assert any(
        "for each turn of a loop. Old: 1 of [batch, 3] in a loop; new: 5 of [batch, 3]." in note for note in result.notes
    ) is (verdict == "not comparable")


def test_masks_of_one_shape_are_paired_by_the_variables_before_and_behind_them() -> None:
    """Two of the batch itself, one behind the first of the layers that read these, and one of both layers' sum."""
    found = []
    for order in ("first", "second"), ("second", "first"):
        with tf.Graph().as_default() as graph:
            batch = tf.compat.v1.placeholder(tf.float32, [None, 4])
            variables = {name: tf.compat.v1.get_variable(name, [4, 4]) for name in ("first", "second", "last")}

            def mask(draws: list[Any], x: Any) -> Any:
                draws.append(tf.random.uniform(tf.shape(x)))
                return x * tf.cast(draws[-1] >= 0.5, tf.float32)

            draws: list[Any] = []
            of = {name: mask(draws, batch) @ variables[name] for name in order}
            names = [f"before {name}" for name in order]
            loss = tf.reduce_sum(mask(draws, mask(draws, of["first"]) + of["second"]) @ variables["last"])
            sites = [
                Site((4,), 0.5, draw=draw.op, number=name) for draw, name in zip(draws, [*names, "both", "one"], strict=True)
            ]
            read = {variable.op: name for name, variable in variables.items()}
            found.append(with_places(sites, graph, upstream([loss.op]), read))

    numbers = dict(occurrences(found[1], found[0]))
    assert numbers == {"before first": 0, "before second": 1, "both": 2, "one": 3}
    assert dict(occurrences(found[0])) == numbers
    assert dict(occurrences(found[1])) == {"before second": 0, "before first": 1, "both": 2, "one": 3}, (
        "without places, by order"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
def test_branches_that_keras_executes_in_another_order_get_their_own_masks() -> None:
    result = compare_rewrite(Script(str(DATA / "branches_old.py")), RewritePlan(Script(str(DATA / "branches_new.py"))))

    assert result.verdict == "equal", result.findings
