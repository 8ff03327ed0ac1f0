"""Each composed operation gives what TensorFlow 1.15.5's compiled one gave: values, gradients and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.legacy.upstream_contrib.operations import OPERATIONS

v1 = tf.compat.v1
GOLDEN = Path(__file__).parents[3] / "golden" / "upstream_contrib" / "operations.json"
RECORDED: dict[str, list[dict[str, Any]]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
REFUSALS = (ValueError, tf.errors.InvalidArgumentError)

# Calls that TensorFlow 1.15.5 refuses, or dies of, and that work here.
ALLOWED = {
    "AdjustHsvInYiq": [11],  # float64, for which it has no kernel
    "DecodeLibsvm": [6, 7],  # a number with the sign +, which TensorFlow 2.15 refuses, too
    "WALSComputePartialLhsAndRhs": [9],  # a block without entries
}


def is_random(name: str, case: dict[str, Any]) -> bool:
    return name == "SkipGramGenerateCandidates" and case["arguments"][1] != case["arguments"][2] and "raised" not in case


CALLS = [
    (name, case, number)
    for name, cases in RECORDED.items()
    for number, case in enumerate(cases)
    if number not in ALLOWED.get(name, ())
]
CASES = [pytest.param(name, case, id=f"{name}-{number}") for name, case, number in CALLS]

# Variables are of graphs; eagerly, seeds count from a kernel's first use in the process.
EAGER = [
    pytest.param(name, case, id=f"{name}-{number}")
    for name, case, number in CALLS
    if '"variable"' not in json.dumps(case) and not is_random(name, case)
]


def array(recorded: Any) -> Any:
    """Returns a recorded value as NumPy has it."""
    if isinstance(recorded, list):
        return [array(item) for item in recorded]
    if not isinstance(recorded, dict):
        return recorded
    if recorded["dtype"] == "bytes":
        values = [text.encode("latin1") for text in recorded["values"]]
        return np.array(values, object).reshape(recorded["shape"])
    return np.array(recorded["values"], recorded["dtype"]).reshape(recorded["shape"])


def assert_same(received: Any, expected: Any, name: str) -> None:
    expected = array(expected)
    received = np.asarray(received, object) if expected.dtype == object else np.asarray(received)
    assert received.shape == expected.shape
    if expected.dtype.kind != "f":
        assert received.dtype.kind == expected.dtype.kind
        assert received.tolist() == canonical(received, expected, name).tolist()
        return
    assert received.dtype == expected.dtype
    limit = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-13}[expected.dtype.name]
    size = np.max(np.abs(expected), initial=0, where=np.isfinite(expected))  # sums of products are rounded relative to these
    np.testing.assert_allclose(received, expected, rtol=limit, atol=limit * size)


def canonical(received: np.ndarray, expected: np.ndarray, name: str) -> np.ndarray:
    """Renames components, whose numbers are arbitrary in TensorFlow 1.15, as ours are named if they are the same areas."""
    if name != "ImageConnectedComponents":
        return expected
    pairs = {(int(old), int(new)) for old, new in zip(expected.ravel(), received.ravel(), strict=True)}
    names = dict(pairs)
    assert len(pairs) == len(names) == len(set(names.values()))
    assert names.get(0, 0) == 0
    return np.array([names[int(old)] for old in expected.ravel()], np.int64).reshape(expected.shape)


def weighted(results: list[Any]) -> Any:
    """Returns the sum that the recorded gradients belong to."""
    flat = [tf.reshape(result, [-1]) for result in results]
    return tf.add_n([tf.reduce_sum(one * tf.sin(tf.cast(tf.range(tf.size(one)), one.dtype))) for one in flat])


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def is_variable(recorded: Any) -> bool:
    return isinstance(recorded, dict) and "variable" in recorded


def argument(recorded: Any, feeds: dict[Any, Any], is_static: bool) -> Any:
    """Returns a placeholder of unknown shape, or a variable, or what is no tensor."""
    if isinstance(recorded, list):
        return [argument(item, feeds, is_static) for item in recorded]
    if is_variable(recorded):
        return v1.Variable(array(recorded["variable"]), use_resource=recorded["resource"])
    value = array(recorded)
    if is_static or not isinstance(value, np.ndarray):
        return tf.constant(value) if isinstance(value, np.ndarray) else value
    placeholder = v1.placeholder(tf.as_dtype("string" if value.dtype == object else value.dtype))
    feeds[placeholder] = value
    return placeholder


def run_graph(name: str, case: dict[str, Any], is_static: bool) -> dict[str, Any]:
    """Runs a case in a graph; returns results, gradients and the variables' values after it."""
    feeds: dict[Any, Any] = {}
    with tf.Graph().as_default(), v1.Session() as session:
        arguments = [argument(recorded, feeds, is_static) for recorded in case["arguments"]]
        variables = [one for one in arguments if isinstance(one, tf.Variable)]
        given = [one.handle if name == "ZeroVarInitializer" else one for one in arguments]
        results = OPERATIONS[name](*given, **options(case))
        initialized = [recorded["initialized"] for recorded in case["arguments"] if is_variable(recorded)]
        session.run([one.initializer for one, is_set in zip(variables, initialized, strict=True) if is_set])
        if variables and name != "ObtainNext":
            session.run(results if isinstance(results, tf.Operation) else results.op, feeds)
            return {"after": session.run(variables)}
        fetches = {"results": listed(results)}
        if "gradients" in case:
            floating = [one for one in arguments if one.dtype.is_floating]
            fetches["gradients"] = [tf.convert_to_tensor(one) for one in tf.gradients(weighted(listed(results)), floating)]
        fetched: dict[str, Any] = session.run(fetches, feeds)
        return dict(fetched, after=session.run(variables))


def options(case: dict[str, Any]) -> dict[str, Any]:
    return {key: tf.as_dtype(value) if key.endswith("type") else value for key, value in case["options"].items()}


@pytest.mark.parametrize(("name", "case"), CASES)
def test_graph(name: str, case: dict[str, Any]) -> None:
    if "raised" in case:
        with pytest.raises(REFUSALS):
            run_graph(name, case, is_static=True)
        return

    received = run_graph(name, case, is_static=False)

    for kind in ("results", "gradients", "after"):
        for one, expected in zip(received.get(kind, []), case.get(kind, []), strict=True):
            assert_same(one, expected, name)


@pytest.mark.parametrize(("name", "case"), EAGER)
def test_eager(name: str, case: dict[str, Any]) -> None:
    arguments = [argument(recorded, {}, is_static=True) for recorded in case["arguments"]]
    if "raised" in case:
        with pytest.raises(REFUSALS):
            OPERATIONS[name](*arguments, **options(case))
        return

    floating = [one for one in arguments if isinstance(one, tf.Tensor) and one.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floating)
        results = listed(OPERATIONS[name](*arguments, **options(case)))
        loss = weighted(results) if "gradients" in case else None
    gradients = [tf.convert_to_tensor(one) for one in tape.gradient(loss, floating)] if "gradients" in case else []

    for one, expected in zip(results, case["results"], strict=True):
        assert_same(one.numpy(), expected, name)
    for one, expected in zip(gradients, case.get("gradients", []), strict=True):
        assert_same(one.numpy(), expected, name)


@pytest.mark.tf221
@pytest.mark.parametrize(("name", "number"), [(name, number) for name, numbers in ALLOWED.items() for number in numbers])
def test_what_only_tensorflow_1_refuses(name: str, number: int) -> None:
    case = RECORDED[name][number]
    assert "raised" in case

    run_graph(name, case, is_static=False)


def test_every_operation_is_recorded() -> None:
    assert OPERATIONS.keys() == RECORDED.keys()
    for cases in RECORDED.values():
        assert any("raised" not in case for case in cases)
