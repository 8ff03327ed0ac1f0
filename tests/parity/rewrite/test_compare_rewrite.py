"""Whole comparisons of small Estimator scripts with rewrites in tf_keras: right ones are equal, wrong ones are not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.causes.cause import CauseName
from estimator_bridge.parity.result import ParityResult, rel_diff
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.run import compare_rewrite
from estimator_bridge.script.run import Script

DATA = Path(__file__).parents[2] / "data" / "rewrites"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_python")]


def compared(name: str, *new_args: str) -> ParityResult:
    plan = RewritePlan(Script(str(DATA / f"{name}_new.py"), new_args))
    return compare_rewrite(Script(str(DATA / f"{name}_old.py")), plan)


@pytest.mark.parametrize("name", ["mlp", "deepfm", "conv", "lstm", "towers", "inputs"])
def test_a_right_rewrite_is_equal(name: str) -> None:
    result = compared(name)

    assert result.verdict == "equal", result.findings
    assert result.cause is None
    assert result.losses
    assert result.metrics
    if name == "deepfm":
        (free,) = [note for note in result.notes if note.startswith("Without anchors")]
        assert float(free.partition("the largest rel_diff is ")[2].partition(",")[0]) <= 1e-6
    assert not result.not_compared


def test_labels_are_paired_by_their_values_and_a_tie_of_two_classes_is_no_difference() -> None:
    """Their names decide nothing, and alphabetical order is wrong; one row is right where its scores are not rounded to a tie."""
    result = compared("masked")

    assert result.verdict == "equal", result.findings
    assert "labels/target -> labels by the values of the new script's own batch" in result.notes
    assert any("accuracy of evaluation 'eval' at step 16 differs by one row of 128" in note for note in result.notes)


def test_what_the_old_script_draws_anew_each_time_is_not_compared() -> None:
    """No rewrite can have its values. What does not depend on them is compared as ever."""
    plan = RewritePlan(Script(str(DATA / "mlp_new.py")))
    result = compare_rewrite(Script(str(DATA / "mlp_old.py"), ("--noisy",)), plan)

    assert result.verdict == "equal", result.findings
    assert result.not_compared == ("loss", "logits of predict-0")
    assert {pair.metric for pair in result.metrics} == {"accuracy"}
    assert sum("draws it anew each time" in note and "random_normal" in note for note in result.notes) == 3  # two evaluations


@pytest.mark.parametrize(
    ("name", "argument", "cause"),
    [
        ("mlp", "--epsilon=1e-4", CauseName.EPSILON),
        ("mlp", "--dropout=0", CauseName.DROPOUT),
        ("deepfm", "--l2=0.005", CauseName.REGULARIZER),
        ("conv", "--decay=0.99", CauseName.BATCH_NORM_MOMENTUM),
        ("lstm", "--loss=mae", CauseName.FORWARD_PASS),
    ],
)
def test_a_wrong_rewrite_is_different_from_the_first_step_and_its_cause_is_named(
    name: str, argument: str, cause: CauseName
) -> None:
    result = compared(name, argument)

    assert (result.exit_code, result.findings[0].step) == (1, 1)
    assert result.cause is not None
    assert (result.cause.name, result.cause.step) == (cause, 1)


@pytest.mark.parametrize(
    ("export", "finding", "note", "not_compared"),
    [
        ("right", "", "", ()),
        ("two", "", "", ()),
        ("logits", "the answers 'probabilities' of the signature 'serving_default' differ", "", ()),
        ("renamed", "", "answers of the signature 'serving_default' without a counterpart were not compared: new: more", ()),
        ("one signature", "", "export-0: the new script's export has no signature logits.", ()),
        ("none", "", "", ("export-0",)),
    ],
)
def test_exports_answer_alike(export: str, finding: str, note: str, not_compared: tuple[str, ...]) -> None:
    result = compared("served", f"--export={export}")

    assert result.verdict == ("different" if finding else "equal"), result.findings
    assert all(finding in one.message for one in result.findings)
    assert any(note in one for one in result.notes)
    assert note or not any("export-0" in one for one in result.notes)
    assert result.not_compared == not_compared


def test_the_forget_bias_of_the_old_scripts_cells_is_known() -> None:
    """Keras' own bias starts with 1, which only shows if the old one is not taken to do so, too."""
    old, new = Script(str(DATA / "lstm_old.py"), ("0.25",)), RewritePlan(Script(str(DATA / "lstm_new.py")))
    result = compare_rewrite(old, new)

    assert result.cause
    assert result.cause.name is CauseName.INITIAL_VALUES
    assert "starts with 0 and 0.25 in the old script, and with 0 and 1 in the new one" in result.findings[0].message
    assert len(result.findings) == 1, "all else is equal"
    assert not [note for note in result.notes if note.startswith("forget_bias")]


def test_dropout_in_a_loop_of_the_old_script_that_no_loss_depends_on_hides_no_cause() -> None:
    plan = RewritePlan(Script(str(DATA / "lstm_new.py"), ("--loss=mae",)))
    result = compare_rewrite(Script(str(DATA / "lstm_old.py"), ("1.0", "0.5")), plan)

    assert result.verdict == "different", result.findings
    assert result.cause
    assert result.cause.name is CauseName.FORWARD_PASS


def test_a_canned_estimator_is_equal_and_the_verdict_names_what_was_not_compared() -> None:
    result = compared("wide")

    assert (result.verdict, result.cause) == ("equal", None), result.findings
    assert {"auc", "precision"} <= set(result.not_compared)
    assert "accuracy" not in result.not_compared


LAYERS = {"dense": "first", "dense_1": "second", "dense_2": "embeddings"}
PAIRS = tuple((f"{old}/{kind}", f"{new}/{kind}") for old, new in LAYERS.items() for kind in ("kernel", "bias"))


def triplets(**chosen: Any) -> ParityResult:
    new = RewritePlan(Script(str(DATA / "triplet_new.py")), **({"anchor": 1} | chosen))
    return compare_rewrite(Script(str(DATA / "triplet_old.py")), new)


@pytest.mark.parametrize("chosen", [{"given": PAIRS}, {"accept_order": True}], ids=["map", "order"])
def test_hardest_triplets_with_given_pairs_and_adapted_batches_are_equal_at_each_step(
    chosen: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(DATA)
    result = triplets(adapt="halves:halves", **chosen)

    assert result.verdict == "equal", result.findings
    assert len(result.losses) == 10
    assert max(rel_diff(point.legacy, point.modern) for point in result.losses) <= 1e-6
    assert [note for note in result.notes if "halves:halves" in note]


def test_anchors_stay_within_their_limit() -> None:
    """Values and slots take 2.6 kB a step and copy, of which there are three; the first three steps have an anchor each."""
    result = triplets(adapt="halves:halves", accept_order=True, anchor_limit=30_000.0)

    assert result.verdict == "equal", result.findings
    assert result.anchors == (1, 2, 3)
    assert [note for note in result.notes if note.startswith("After step 3 there are no anchors: --anchor-limit is reached.")]
    assert [
        note
        for note in result.notes
        if "given to the new side at 3 steps: each, from the first one on (0.023" in note and " MB on disk" in note
    ]
    assert [note for note in result.notes if note.startswith("Without anchors, 0 of 10 losses are outside")]


def test_anchors_of_the_first_steps_that_pass_the_limit_are_refused() -> None:
    with pytest.raises(BridgeError, match="larger than --anchor-limit") as refused:
        triplets(adapt="halves:halves", accept_order=True, anchor_limit=20_000.0)

    assert re.search(r"3 x 7\.[78]\d* kB \(3 copies", str(refused.value))
    assert re.search(r"--anchor-limit 23\d\d\d or more", str(refused.value))


def test_kernels_of_one_shape_are_not_paired_by_their_order() -> None:
    with pytest.raises(BridgeError, match="Variables of equal shape cannot be paired by their names") as refused:
        triplets(adapt="halves:halves")

    assert "dense/kernel = first/kernel" in str(refused.value)


SUM = ("from_logits=True)", "from_logits=True, reduction='sum')")
SQUEEZED = ("ARGS.loss)", "lambda labels, outputs: tf.square(outputs - labels[:, 0]))")
FILTERED = (".shuffle(192).batch(16)", ".shuffle(192).batch(16).filter(lambda x, y: True)")
ACCUMULATOR = ("initial_accumulator_value=0.1", "initial_accumulator_value=0.2")
FORGET = ("keras.layers.LSTM(7)", "keras.layers.LSTM(7, unit_forget_bias=False)")
EVALUATED = ("    model.evaluate(held_out, verbose=0)", "    model.evaluate(train, verbose=0)")
FITTED = "    model.fit(train, verbose=0)\n    model.evaluate(held_out, verbose=0)"
VALIDATED = (FITTED, "    model.fit(train, validation_data=train, verbose=0)")
UNSEEN = ("keras.layers.LSTM(7)(words)", "(lambda state: 2 * state - tf.stop_gradient(state))(keras.layers.LSTM(7)(words))")
BIAS = ('keras.layers.Dense(12, "tanh")', 'keras.layers.Dense(12, "tanh", bias_initializer="ones")')
LINEAR = ('keras.layers.Dense(12, "tanh")', "keras.layers.Dense(12)")
LOGITS = ("SparseCategoricalCrossentropy(from_logits=True)", "SparseCategoricalCrossentropy()")
TRANSPOSED = (
    "keras.layers.Flatten(),",
    "keras.layers.Permute((3, 2, 1)), keras.layers.Reshape((6, 6, 4)), keras.layers.Flatten(),",
)
CELL = ("keras.layers.LSTM(7)", 'keras.layers.LSTM(7, activation="relu")')
REVERSED = ("random.rand(96, 8, 8, 1)", "random.rand(96, 8, 8, 1)[::-1]")


@pytest.mark.parametrize(
    ("name", "line", "cause"),
    [
        ("mlp", SUM, CauseName.LOSS_SCALE),
        ("mlp", FILTERED, CauseName.ITERATIONS),
        ("lstm", SQUEEZED, CauseName.BROADCAST),
        ("deepfm", ACCUMULATOR, CauseName.ACCUMULATORS),
        ("lstm", FORGET, CauseName.INITIAL_VALUES),
        ("mlp", BIAS, CauseName.INITIAL_VALUES),
        ("lstm", UNSEEN, CauseName.GRADIENTS),
        ("mlp", LINEAR, CauseName.ACTIVATION),
        ("mlp", LOGITS, CauseName.LOGITS),
        ("conv", TRANSPOSED, CauseName.ELEMENT_ORDER),
        ("lstm", CELL, CauseName.RECURRENT),
        ("mlp", EVALUATED, CauseName.EVALUATION_DATA),
        ("mlp", VALIDATED, CauseName.EVALUATION_DATA),
        ("conv", REVERSED, CauseName.BATCH_ORDER),
        ("wide", ("Adagrad(0.001", "Adagrad(0.05"), CauseName.CANNED_DEFAULTS),
    ],
)
def test_a_planted_line_is_the_first_cause(tmp_path: Path, name: str, line: tuple[str, str], cause: CauseName) -> None:
    text = (DATA / f"{name}_new.py").read_text()
    assert text.count(line[0]) == 1
    new = tmp_path / "new.py"
    new.write_text(text.replace(*line))
    result = compare_rewrite(Script(str(DATA / f"{name}_old.py")), RewritePlan(Script(str(new))))

    assert result.exit_code == 1
    assert result.cause is not None
    assert (result.cause.name, bool(result.cause.change)) == (cause, True)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (("", ""), None),
        (("(find(words))", "((find(words) + 5) % 6)"), CauseName.FORWARD_PASS),
        (
            ("np.vstack([np.zeros([1, 6], np.float32), vectors])", "np.vstack([vectors, vectors[:1] * 0])"),
            CauseName.FORWARD_PASS,
        ),
        (("np.zeros([1, 6]", "np.ones([1, 6]"), CauseName.INITIAL_VALUES),
    ],
    ids=["right", "ids of the other order", "rows of the other order", "another row"],
)
def test_a_table_that_is_not_trained_may_have_its_rows_in_another_order(
    line: tuple[str, str], cause: CauseName | None, tmp_path: Path
) -> None:
    text, new = (DATA / "words_new.py").read_text(), tmp_path / "new.py"
    assert line[0] in text
    new.write_text(text.replace(*line) if cause else text)
    result = compare_rewrite(Script(str(DATA / "words_old.py")), RewritePlan(Script(str(new))))

    assert result.verdict == ("different" if cause else "equal"), result.findings
    assert (result.cause and result.cause.name) == cause
    is_kept = [note for note in result.notes if "are the rows of vectors in another order" in note]
    assert len(is_kept) == (cause is None or "find" in line[0])


def test_the_first_value_of_a_step_that_runs_eagerly_is_named_by_its_line(tmp_path: Path) -> None:
    text = (DATA / "forms_new.py").read_text()
    assert text.count("self.hidden(x * scale)") == 1
    new = tmp_path / "new.py"
    new.write_text(text.replace("self.hidden(x * scale)", "tf.nn.relu(self.hidden(x * scale))"))
    line = next(number for number, one in enumerate(new.read_text().splitlines(), 1) if "tf.nn.relu" in one)
    result = compare_rewrite(Script(str(DATA / "mlp_old.py")), RewritePlan(Script(str(new), ("--form=eager",))))

    assert result.cause is not None
    assert (result.cause.name, f"new Relu (new.py:{line})" in result.cause.seen) == (CauseName.ACTIVATION, True)


def test_a_rewrite_that_trains_on_recorded_batches_alone_is_not_equal(tmp_path: Path) -> None:
    right, new = (DATA / "mlp_new.py").read_text(), tmp_path / "new.py"
    new.write_text(right.replace("> 0).astype(np.int32)", "> 0).astype(np.int32) + 1"))
    assert new.read_text() != right

    with pytest.raises(BridgeError, match="outside the valid range") as raised:
        compare_rewrite(Script(str(DATA / "mlp_old.py")), RewritePlan(Script(str(new))), steps=3)

    assert "fails without a comparison" in raised.value.what
