"""Equal seeds for equal places, whatever else the graph holds; in a process of its own, since it is patched for good."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from estimator_bridge.parity import reference
from estimator_bridge.parity.recording.randomness import STATEFUL_RANDOM

RECORDER = Path(reference.__path__[0]) / "recorder.py"
PROGRAM = Path(__file__).with_name("drawing.py")


def outcome(python: str) -> dict[str, object]:
    done = subprocess.run([python, PROGRAM], capture_output=True, text=True, check=True)
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_seeds_come_from_the_place_in_the_model(_warm_python: str) -> None:  # noqa: PT019 -- beside a Python of its own start
    first, second = outcome(sys.executable), outcome(_warm_python)  # one of its own start: copies would begin alike in any case

    assert first == second, "two processes draw the same, Python and NumPy included"
    assert first["plain"] == first["extra"], "another random operation before does not matter"
    plain = first["plain"]
    assert isinstance(plain, list)
    assert len({str(values) for values in plain}) == 3, "each place draws its own numbers"
    assert first["seeded"] != plain, "the script's own seed counts"
    (functional, loops), (flat, flat_loops) = first["flows"]  # type: ignore[misc]
    assert functional == flat, "the form of loops and branches does not matter"  # type: ignore[has-type]
    assert loops == flat_loops == [1], "iterations draw in order"  # type: ignore[has-type]
    operations, functions = first["found"]  # type: ignore[misc]
    assert [name.startswith("random_uniform") for name in operations] == [True]  # type: ignore[has-type]
    assert len(functions) == 1, "what is drawn inside a loop is known"  # type: ignore[has-type]


def test_every_operation_that_tensorflow_seeds_is_known() -> None:
    found = {name: op_def_registry.get(name) for name in dir(tf.raw_ops)}
    seeded = {
        name
        for name, definition in found.items()
        if definition and {"seed", "seed2"} <= {attribute.name for attribute in definition.attr} and "CudnnRNN" not in name
    }
    of_inputs = {"RandomShuffleQueue", "RandomShuffleQueueV2", "SnapshotDataset"}
    by_generators = {name for name in found if name.startswith(("Stateful", "RngRead")) and name != "StatefulPartitionedCall"}

    assert (seeded - of_inputs - {"ComputeAccidentalHits"}) | by_generators == STATEFUL_RANDOM


def test_the_recorder_of_tensorflow_1_knows_the_same_operations() -> None:
    tree = ast.parse(RECORDER.read_text(encoding="utf-8"))
    (table,) = (
        node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "STATEFUL_RANDOM"
    )

    assert {node.value for node in ast.walk(table) if isinstance(node, ast.Constant)} == STATEFUL_RANDOM


def test_generators_of_a_scripts_own_draw_the_same_and_an_order_of_rows_is_seen() -> None:
    done = subprocess.run([sys.executable, PROGRAM.with_name("shuffling.py")], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)

    assert all(value == plain for value, *_, plain in found.values())
    orders, drawn, anew, now = ({name for name, seen in found.items() if seen[place]} for place in (1, 2, 3, 4))
    assert drawn == {name for name in found if "own" not in name}
    assert orders == {name for name in found if "values" not in name and "own" not in name}
    assert anew == orders | {"values of Python's own generator"} | {name for name in found if "without a seed" in name}
    assert now == {name for name in found if "own" not in name or "of Python" in name or "seed" in name}
