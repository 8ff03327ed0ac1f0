"""Every kind of input that a TensorFlow 1 script hands to its Estimator, on both paths, and what is mended about it."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.input_results import mend_result
from tests.running import estimator_bridge_command

SCRIPT = Path(__file__).parents[1] / "data" / "inputs.py"


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(SCRIPT.read_text().splitlines(), 1) if line.startswith(text))


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("path", ["legacy", "modern"])
def test_every_input_reaches_the_model_whole(tmp_path: Path, path: str) -> None:
    ended = estimator_bridge_command("run", "--path", path, SCRIPT, cwd=tmp_path)
    assert ended.code == 0, ended.err[-4000:]
    assert ended.last_line == dict.fromkeys(ended.last_line, pytest.approx(3.5))
    assert len(ended.last_line) == 10
    notes = [line for line in ended.err.splitlines() if line.startswith("estimator-bridge: ")]
    assert [note.removeprefix(f"estimator-bridge: {SCRIPT}:") for note in notes] == [
        f"{line_of('OUTSIDE')}: a dataset built outside the input_fn is copied into the Estimator's graph",
        f"{line_of('BATCHES')}: a dataset built outside the input_fn is copied into the Estimator's graph",
        f"{line_of('def one_tuple')}: the input_fn returns a tuple of one element, which is taken as the features",
        f"{line_of('def dataset_of')}: the input_fn's dataset has tuples of one element, which is taken as the features",
    ]


@pytest.mark.parametrize("op_type", ["Placeholder", "VarHandleOp", "VariableV2", "HashTableV2"])
def test_a_dataset_outside_that_reads_its_graphs_state_is_refused_with_its_line(op_type: str) -> None:
    with tf.Graph().as_default():
        state = {
            "Placeholder": lambda: tf.placeholder(tf.float32, [2]),
            "VarHandleOp": lambda: tf.get_variable("v", [2], use_resource=True),
            "VariableV2": lambda: tf.get_variable("v", [2], use_resource=False),
            "HashTableV2": _looked_up,
        }[op_type]()
        dataset = tf.data.Dataset.from_tensors(state)
    with tf.Graph().as_default(), pytest.raises(NotSupportedError, match=f"reads the {op_type} ") as refusal:
        mend_result(dataset, lambda: dataset)
    assert f"{__file__}:" in str(refusal.value)
    assert "Build it inside the input_fn" in str(refusal.value)


def _looked_up() -> tf.Tensor:
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1.0]), 0.0).lookup(tf.constant(["a"]))
