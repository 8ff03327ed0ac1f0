"""The first value that only one side computes, from graphs that TensorFlow runs on the same batch and variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.parity.causes.cause import Cause, CauseName
from estimator_bridge.parity.causes.loss import first_value
from estimator_bridge.parity.causes.table import first_cause
from estimator_bridge.parity.evidence import ForwardValue
from estimator_bridge.parity.rewrite.forward_pass.eager import EagerPass
from estimator_bridge.parity.rewrite.forward_pass.values import ForwardPass
from estimator_bridge.parity.rewrite.gathering import read_forward
from tests.parity.causes.synthetic import Training, evidence

v1 = tf.compat.v1
RANDOM = np.random.RandomState(1)
ROWS = 6
VALUES = {
    "x": RANDOM.randn(ROWS, 4, 3).astype(np.float32),
    "labels": np.array([0, 1, 1, 0, 1, 0], np.float32),
    "kernel": RANDOM.randn(12, 4).astype(np.float32),
    "out": RANDOM.randn(8, 1).astype(np.float32),
}
Model = Callable[[Any, Any, Any, Any], Any]


def hidden(x: Any, kernel: Any) -> Any:
    return tf.matmul(tf.reshape(x, [-1, 12]), kernel)


def joined(first: Any, second: Any, out: Any) -> Any:
    return tf.matmul(tf.concat([first, second], 1), out)[:, 0]


def loss_of(logits: Any, labels: Any) -> Any:
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))


def plain(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    net = tf.nn.relu(hidden(x, kernel))
    return loss_of(joined(net, x[:, 0, :1] * net, out), labels)


def computed_otherwise(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    """The same, with other operations: no value of the loss has a counterpart."""
    net = tf.maximum(tf.einsum("bi,io->bo", tf.reshape(x, [-1, 12]), kernel), 0.0)
    logits = tf.reduce_sum(net * out[:4, 0], 1) + tf.reduce_sum(x[:, 0, :1] * net * out[4:, 0], 1)
    return tf.reduce_mean(tf.math.softplus(logits) - logits * labels)


def weighted(weights_of: Callable[[Any, Any], Any]) -> Model:
    """Returns a model whose loss weighs the rows."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        net = tf.nn.relu(hidden(x, kernel))
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, joined(net, x[:, 0, :1] * net, out))
        return tf.reduce_mean(losses * weights_of(x, labels))

    return model


def without_relu(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    net = hidden(x, kernel)
    return loss_of(joined(net, x[:, 0, :1] * net, out), labels)


def in_other_order(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    net = tf.nn.relu(hidden(x, kernel))
    return loss_of(joined(x[:, 0, :1] * net, net, out), labels)


def transposed(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    return plain(tf.transpose(x, [0, 2, 1]), labels, kernel, out)


def another_slice(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    net = tf.nn.relu(hidden(x, kernel))
    return loss_of(joined(net, x[:, 0, 1:2] * net, out), labels)


def probabilities(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    net = tf.nn.relu(hidden(x, kernel))
    return loss_of(tf.sigmoid(joined(net, x[:, 0, :1] * net, out)), labels)


def another_factor(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    net = tf.nn.relu(hidden(x, kernel))
    return loss_of(joined(net, x[:, 0, :1] * net, out), labels * 0.9)


def halved(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    """A half that the new script forgets, and dropout of a half, whose factor makes up for it."""
    net = 2.0 * (0.5 * tf.nn.relu(hidden(x, kernel)))
    return loss_of(joined(net, tf.tanh(net), out), labels)


def not_halved(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    net = 2.0 * tf.nn.relu(hidden(x, kernel))
    return loss_of(joined(net, tf.tanh(net), out), labels)


def reversed_before_flattening(backwards: bool) -> Model:
    """Returns a model that flattens its input in either direction, behind a product."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        turned = tf.reverse(x, [1]) if backwards else x
        return plain(tf.reshape(tf.concat([turned * 3.0], 2), [-1, 4, 3]), labels, kernel, out)

    return model


def smoothed(by: float) -> Model:
    """Returns a model whose labels are smoothed."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        classes = tf.one_hot(tf.cast(labels, tf.int32), 4)
        return v1.losses.softmax_cross_entropy(classes, hidden(x, kernel), label_smoothing=by)

    return model


def smoothed_of_two(by: float) -> Model:
    """Returns a model whose labels of two classes are smoothed."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        logits = tf.reduce_mean(hidden(x, kernel), axis=-1)
        smooth = tf.cast(labels > 0.5, tf.float32) * (1.0 - by) + by / 2 if by else tf.cast(labels > 0.5, tf.float32)
        return tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=smooth, logits=logits))

    return model


def other_feature(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    """The labels are not read."""
    net = tf.nn.relu(hidden(x, kernel))
    return loss_of(joined(net, x[:, 0, :1] * net, out), tf.ones_like(x[:, 0, 0]))


def of_both(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    """The loss of a product of two probabilities beside that of one of them."""
    one, two = (tf.matmul(hidden(x, kernel), part)[:, 0] for part in (out[:4], out[4:]))
    return loss_of(one, labels) + v1.losses.log_loss(labels, tf.sigmoid(one) * tf.sigmoid(two))


def of_one(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    """The product is forgotten."""
    one, two = (tf.matmul(hidden(x, kernel), part)[:, 0] for part in (out[:4], out[4:]))
    return loss_of(one, labels) + v1.losses.log_loss(labels, tf.sigmoid(two))


def from_logits(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    """The product is forgotten, and the loss of a probability is computed from its logits, as Keras does."""
    one, two = (tf.matmul(hidden(x, kernel), part)[:, 0] for part in (out[:4], out[4:]))
    return loss_of(one, labels) + loss_of(two, labels)


def with_weighted_positives(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
    net = tf.nn.relu(hidden(x, kernel))
    logits = joined(net, x[:, 0, :1] * net, out)
    return tf.reduce_mean(tf.nn.weighted_cross_entropy_with_logits(labels, logits, 2.0))


def distances(activation: Callable[[Any], Any], turned: bool) -> Model:
    """Returns a model with the products of all pairs of rows, the second of which is turned before or by the product."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        net = activation(hidden(x, kernel))
        products = tf.matmul(net, tf.transpose(net)) if turned else tf.matmul(net, net, transpose_b=True)
        return loss_of(tf.reduce_sum(products, 1) * out[0, 0], labels)

    return model


def attention(scale: float) -> Model:
    """Returns a model with scores that are divided, or not, before a softmax."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        net = hidden(x, kernel)
        scores = tf.nn.softmax(net / scale if scale != 1.0 else net)
        return loss_of(joined(scores, net * scores, out), labels)

    return model


def masked_attention(scale: float = 2.0, padding: float | None = -1e9, *, tiled: bool = True) -> Model:
    """Returns a model with scores of which some are padding, None for none; the mask is computed in one of two ways."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        scores = hidden(x, kernel) / scale
        is_left = tf.range(4)[None] < 2 + tf.cast(x[:, 0, :1] > 0.0, tf.int32)
        if not tiled:
            is_left = tf.logical_not(
                tf.equal(tf.cast(tf.range(4.0)[None] > 1 + tf.cast(x[:, 0, :1] > 0.0, tf.float32), tf.float32), 1.0)
            )
        scores = scores if padding is None else tf.where(is_left, scores, padding * tf.ones_like(scores))
        return loss_of(joined(tf.nn.softmax(scores), hidden(x, kernel), out), labels)

    return model


def with_penalty(shared: bool, activation: Callable[[Any], Any] = tf.nn.relu) -> Model:
    """Returns a model with an L2 loss, one factor for all of it or one for each part."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        net = activation(hidden(x, kernel))
        parts = [tf.nn.l2_loss(kernel), tf.nn.l2_loss(out)]
        penalty = 0.1 * (parts[0] + parts[1]) if shared else 0.1 * parts[0] + 0.1 * parts[1]
        return loss_of(joined(net, x[:, 0, :1] * net, out), labels) + penalty

    return model


def loop(activation: Callable[[Any], Any], number: float) -> Model:
    """Returns a model with a recurrent loop."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        def step(index: Any, state: Any) -> Any:
            return index + 1, activation(tf.matmul(tf.concat([state, x[:, index]], 1), kernel[:7]) + number)

        _, state = tf.while_loop(lambda index, _: index < 4, step, [0, tf.zeros([ROWS, 4])])
        return loss_of(joined(state, state, out), labels)

    return model


def forward(model: Model, folder: Path, *, in_functions: bool = False) -> tuple[ForwardValue, ...]:
    """Runs a model in a graph, and returns what its forward pass computed."""
    folder.mkdir()
    v1.enable_control_flow_v2() if in_functions else v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph, v1.Session() as session:
            batch = {name: v1.placeholder(tf.float32, [None, *VALUES[name].shape[1:]], name) for name in ("x", "labels")}
            variables = [
                v1.get_variable(name, initializer=VALUES[name], use_resource=in_functions) for name in ("kernel", "out")
            ]
            looked = ForwardPass(model(batch["x"], batch["labels"], *variables), graph.get_operations())
            session.run(v1.global_variables_initializer())
            values = looked.look()
            session.run(values, {tensor: VALUES[name] for name, tensor in batch.items()})
            looked.write(folder)
    finally:
        v1.enable_control_flow_v2()
    return read_forward(folder)


def cause_of(old: Model, new: Model, folder: Path, shift: float = 0.1) -> Cause:
    here, there = (forward(model, folder / side, in_functions=side == "new") for side, model in (("old", old), ("new", new)))
    found = first_cause(evidence(Training(), Training(shift=shift), {"forward": here}, {"forward": there}))
    assert found is not None
    return found


def eagerly(model: Model, folder: Path) -> tuple[ForwardValue, ...]:
    """Returns what the forward pass of a model computes that runs eagerly."""
    folder.mkdir()
    batch = [tf.constant(VALUES[name]) for name in ("x", "labels")]
    variables = [tf.Variable(VALUES[name]) for name in ("kernel", "out")]
    looked = EagerPass(zip(batch, ("x", "labels"), strict=True))
    try:
        loss = model(*batch, *variables)
    finally:
        looked.end()
    names = {id(variable.handle): name for variable, name in zip(variables, ("kernel", "out"), strict=True)}
    looked.write(folder, loss, names)
    return read_forward(folder)


@pytest.mark.parametrize(
    ("new", "name", "words"),
    [
        (without_relu, CauseName.ACTIVATION, "Apply Relu to test_first_value.py:"),
        (
            in_other_order,
            CauseName.ELEMENT_ORDER,
            "old concat [batch, 8] by ConcatV2 of Relu, mul (1); new test_first_value.py:",
        ),
        (probabilities, CauseName.LOGITS, "outputs before Sigmoid (from_logits=True)"),
        (other_feature, CauseName.FORWARD_PASS, "computes its loss from labels of the batch, the new one does not"),
    ],
)
def test_an_eager_step_is_compared_with_a_graph(tmp_path: Path, new: Model, name: CauseName, words: str) -> None:
    sides = {"forward": forward(plain, tmp_path / "old")}, {"forward": eagerly(new, tmp_path / "new")}
    found = first_cause(evidence(Training(), Training(shift=0.1), *sides))

    assert found is not None
    assert (found.name, words in found.seen + found.change) == (name, True), found


def test_equal_values_of_an_eager_step_and_a_graph_are_equal(tmp_path: Path) -> None:
    sides = {"forward": forward(plain, tmp_path / "old")}, {"forward": eagerly(plain, tmp_path / "new")}
    found = first_cause(evidence(Training(), Training(shift=0.1), *sides))

    assert found is not None
    assert "The first values that differ" not in found.seen


def test_labels_of_another_shape_are_seen_in_what_an_eager_step_computes(tmp_path: Path) -> None:
    def broadcast(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        return tf.reduce_mean(tf.square(tf.matmul(hidden(x, kernel), out[:4]) - labels))

    sides = {"forward": forward(plain, tmp_path / "old")}, {"forward": eagerly(broadcast, tmp_path / "new")}
    found = first_cause(evidence(Training(), Training(shift=0.1), *sides))

    assert found is not None
    assert (found.name, "of the new script combines" in found.seen) == (CauseName.BROADCAST, True), found


def test_labels_of_another_shape_are_seen_by_the_number_of_elements_where_their_rank_is_not_known(tmp_path: Path) -> None:
    """``tf.squeeze`` of rows whose number is not known may leave any rank."""

    def of_labels(shape: Callable[[Any], Any]) -> Model:
        return lambda x, labels, kernel, out: loss_of(tf.matmul(hidden(x, kernel), out[:4]), shape(labels[:, None]))

    found = cause_of(of_labels(lambda labels: labels), of_labels(tf.squeeze), tmp_path)

    assert (found.name, "of the new script combines" in found.seen) == (CauseName.BROADCAST, True), found


@pytest.mark.parametrize(
    ("weights_of", "words"),
    [(lambda x, labels: labels * 2.0 + 0.5, "computed from labels"), (lambda x, labels: x[:, 0, 0], "computed from x")],
)
@pytest.mark.parametrize("forgotten", [True, False])
def test_weights_of_rows_are_named(
    tmp_path: Path, weights_of: Callable[[Any, Any], Any], words: str, *, forgotten: bool
) -> None:
    """Forgotten by the rewrite, and added by it."""
    models = (weighted(weights_of), plain) if forgotten else (plain, weighted(weights_of))
    found = cause_of(models[0], models[1], tmp_path)

    assert found.name is CauseName.LOSS_WEIGHTS
    assert found.seen.startswith(f"The {'old' if forgotten else 'new'} script multiplies the losses of the rows by")
    assert words in found.seen
    assert "sample_weight" in found.change


@pytest.mark.parametrize(
    ("new", "name", "words"),
    [
        (without_relu, CauseName.ACTIVATION, "Apply Relu to MatMul"),
        (in_other_order, CauseName.ELEMENT_ORDER, "ConcatV2 of Relu, mul (1); new concat"),
        (transposed, CauseName.ELEMENT_ORDER, "Transpose of x ([0, 2, 1])"),
        (another_slice, CauseName.FORWARD_PASS, "constants: old [0, 0, 0], [0, 1, 1], [1, 1, 1], new [0, 0, 1]"),
        (probabilities, CauseName.LOGITS, "outputs before Sigmoid (from_logits=True)"),
        (another_factor, CauseName.FORWARD_PASS, "of labels"),
        (with_weighted_positives, CauseName.FORWARD_PASS, "new Mul (logistic_loss/mul_1)"),
    ],
)
def test_the_first_operation_that_differs_is_named(tmp_path: Path, new: Model, name: CauseName, words: str) -> None:
    found = cause_of(plain, new, tmp_path)

    assert found.name is name
    assert words in found.seen + found.change


@pytest.mark.parametrize(
    ("new", "words"),
    [(loop(tf.nn.relu, 1.0), "Relu: old 0, new 1, Tanh: old 1, new 0"), (loop(tf.tanh, 0.5), "constant 0.5: old 0, new 1")],
)
def test_loops_of_both_kinds_of_graphs_are_compared_by_what_they_do(tmp_path: Path, new: Model, words: str) -> None:
    found = cause_of(loop(tf.tanh, 1.0), new, tmp_path)

    assert found.name is CauseName.RECURRENT
    assert words in found.seen


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (masked_attention(1.0), "goes into SelectV2 (SelectV2) where the old script has RealDiv"),
        (masked_attention(4.0, tiled=False), "constants: old 2.0, new 4.0"),
        (masked_attention(padding=None), "goes into Softmax (Softmax) where the old script has Select"),
    ],
)
def test_what_masks_of_attention_hide_is_found(tmp_path: Path, new: Model, words: str) -> None:
    found = cause_of(masked_attention(), new, tmp_path)

    assert words in found.seen + found.change


def test_masks_may_be_computed_otherwise(tmp_path: Path) -> None:
    here, there = (forward(masked_attention(tiled=tiled), tmp_path / str(tiled)) for tiled in (True, False))

    assert first_value._first(here, there) == []


def lengths(given: bool, activation: Callable[[Any], Any] = tf.tanh) -> Model:
    """Returns a loop over sequences, of which the labels tell the lengths."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        is_left = tf.range(4)[None] < 2 + tf.cast(labels, tf.int32)[:, None]

        def step(index: Any, state: Any) -> Any:
            new = activation(tf.matmul(tf.concat([state, x[:, index]], 1), kernel[:7]))
            return index + 1, tf.where(is_left[:, index, None], new, state) if given else new

        _, state = tf.while_loop(lambda index, _: index < 4, step, [0, tf.zeros([ROWS, 4])])
        return loss_of(joined(state, state, out), tf.ones(ROWS))

    return model


def test_lengths_that_a_loop_is_not_given_are_named(tmp_path: Path) -> None:
    found = cause_of(lengths(True), lengths(False), tmp_path)

    assert found.name is CauseName.RECURRENT
    assert "Only the old one is computed from labels of the batch." in found.seen
    assert found.change.startswith("Give the new script's layer labels, e.g., as the mask")


def test_a_factor_that_another_one_makes_up_for_is_found_before_it(tmp_path: Path) -> None:
    found = cause_of(halved, not_halved, tmp_path)

    assert "old Mul (mul) [batch, 4] of Relu; new Mul (mul) [batch, 4] of Relu" in found.seen
    assert "constants: old 0.5, new 2.0" in found.change


def test_single_numbers_that_are_computed_otherwise_hide_no_other_value(tmp_path: Path) -> None:
    found = cause_of(with_penalty(False), with_penalty(True, tf.tanh), tmp_path)

    assert (found.name, "old Relu" in found.seen) == (CauseName.ACTIVATION, True)


def masked(other: float) -> Model:
    """Returns a model with values that are no numbers in a branch that it leaves out."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        net = hidden(x, kernel)
        logs = tf.where(net > 0, tf.math.log(net), tf.fill(tf.shape(net), other))
        return loss_of(joined(net, logs, out), labels)

    return model


def test_an_activation_is_named_where_another_input_of_the_old_value_is_turned(tmp_path: Path) -> None:
    found = cause_of(distances(tf.identity, turned=True), distances(tf.nn.relu, turned=False), tmp_path)

    assert (found.name, "Apply no Relu to MatMul" in found.change) == (CauseName.ACTIVATION, True), found


def test_what_lies_before_an_activation_is_no_missing_activation(tmp_path: Path) -> None:
    found = cause_of(attention(2.0), attention(1.0), tmp_path)

    assert (found.name, "MatMul goes into Softmax (Softmax) where the old script has RealDiv" in found.change) == (
        CauseName.FORWARD_PASS,
        True,
    ), found


def test_what_is_no_number_on_both_sides_is_no_difference(tmp_path: Path) -> None:
    assert "old SelectV2" in cause_of(masked(0.0), masked(1.0), tmp_path).seen


def scoped(operation: Callable[[Any], Any]) -> Model:
    """Returns a model with an operation below a scope that is called as a part of the batch is."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        with tf.name_scope("features"):
            net = operation(hidden(x, kernel))
        return loss_of(joined(net, tf.tanh(net), out), labels)

    return model


def test_a_scope_is_no_tensor_of_the_batch(tmp_path: Path) -> None:
    found = cause_of(scoped(tf.square), scoped(tf.abs), tmp_path)

    assert "features/Square" in found.seen
    assert "of the batch" not in found.seen


def test_elements_are_followed_to_where_they_were_moved(tmp_path: Path) -> None:
    found = cause_of(reversed_before_flattening(True), reversed_before_flattening(False), tmp_path)

    assert (found.name, "ReverseV2 [batch, 4, 3] by ReverseV2 of x ([1])" in found.seen) == (CauseName.ELEMENT_ORDER, True)


@pytest.mark.parametrize("model", [smoothed, smoothed_of_two])
@pytest.mark.parametrize(("old", "new"), [(0.0, 0.2), (0.2, 0.0), (0.1, 0.2)])
def test_smoothed_labels_are_named_by_their_share(
    tmp_path: Path, model: Callable[[float], Model], old: float, new: float
) -> None:
    found = cause_of(model(old), model(new), tmp_path)

    assert (found.name, f"by {old:g} in the old script, by {new:g}" in found.seen) == (CauseName.LABEL_SMOOTHING, True)


def test_equally_smoothed_labels_are_no_cause(tmp_path: Path) -> None:
    assert cause_of(smoothed(0.1), smoothed(0.1), tmp_path).name is CauseName.FORWARD_PASS


def test_a_tensor_of_the_batch_that_the_new_script_does_not_read_is_named(tmp_path: Path) -> None:
    found = cause_of(plain, other_feature, tmp_path)

    assert "computes its loss from labels of the batch, the new one does not" in found.seen


def test_a_tensor_of_the_batch_that_only_the_new_script_reads_is_named_with_where_it_goes(tmp_path: Path) -> None:
    def with_factor(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        net = tf.multiply(tf.nn.relu(hidden(x, kernel)), tf.reshape(labels * 3.0, [-1, 1]), name="meets")
        logits = joined(net, x[:, 0, :1] * net, out)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(tf.ones_like(logits), logits))

    found = cause_of(other_feature, with_factor, tmp_path)

    assert "The new script computes Mul (meets) from a tensor of its batch that the old one does not use." in found.seen


def test_a_factor_that_is_forgotten_is_named_where_it_meets_what_is_equal(tmp_path: Path) -> None:
    found = cause_of(of_both, of_one, tmp_path)

    assert "old Mul (mul) [batch] of Sigmoid, Sigmoid_1; new Sub (log_loss/sub_1) [batch] of Sigmoid." in found.seen


def test_a_product_that_is_forgotten_is_named_though_keras_leaves_out_the_activation_before(tmp_path: Path) -> None:
    found = cause_of(of_both, from_logits, tmp_path)

    assert (
        found.change == "Give the new script's loss Mul (mul) of Sigmoid, Sigmoid_1, as in the old script, not strided_slice_3."
    )


def test_a_model_that_is_written_in_other_operations_differs_nowhere(tmp_path: Path) -> None:
    """The losses of the evidence differ for a reason that the graphs do not show, so the next rule says what it knows."""
    assert "The forward pass differs." in cause_of(plain, computed_otherwise, tmp_path).seen


def test_the_fault_is_found_before_operations_that_only_look_different(tmp_path: Path) -> None:
    def both(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        return computed_otherwise(tf.transpose(x, [0, 2, 1]), labels, kernel, out)

    assert cause_of(plain, both, tmp_path).name is CauseName.ELEMENT_ORDER


def test_without_the_values_of_both_sides_the_forward_pass_is_all_that_is_named(tmp_path: Path) -> None:
    one = evidence(Training(), Training(shift=0.1), {"forward": forward(plain, tmp_path / "old")})
    found = first_cause(one)

    assert found is not None
    assert found == first_cause(dataclasses.replace(one, old=dataclasses.replace(one.old, forward=())))


def test_a_loop_without_a_cell_is_named_with_what_masks_its_steps(tmp_path: Path) -> None:
    """The sum over all paths of a CRF is no recurrent cell: forget_bias is no advice for it."""

    def summed(is_masked: bool) -> Model:
        def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
            def step(time: Any, total: Any) -> Any:
                new = total + x[:, time, 0] * kernel[0, 0]
                return time + 1, tf.where(labels > 0.5, new, total) if is_masked else new

            _, total = tf.while_loop(lambda time, total: time < 4, step, [0, tf.zeros_like(x[:, 0, 0])])
            return tf.reduce_mean(tf.square(total))

        return model

    found = cause_of(summed(is_masked=True), summed(is_masked=False), tmp_path)

    assert found.name is CauseName.FORWARD_PASS
    assert "tf.where: old 1, new 0" in found.seen
    assert "Only the old one is computed from labels" in found.seen
    assert "forget_bias" not in found.change


def pooled(padding: Any, dense: bool) -> Model:
    """Returns a network that pools the relu of a product; its labels are counted or dense."""

    def model(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        net = tf.reshape(tf.nn.relu(hidden(x, kernel)), [-1, 2, 2, 1])
        net = tf.nn.max_pool2d(net if padding is None else tf.pad(net, padding), 2, 1, "SAME" if padding is None else "VALID")
        logits = tf.reshape(net, [-1, 4]) @ tf.reshape(out, [4, 2])
        counted = tf.cast(labels, tf.int32)
        if dense:
            return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(counted, 2), logits))
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(counted, logits))

    return model


def test_other_padding_is_found_behind_labels_that_are_only_written_otherwise(tmp_path: Path) -> None:
    """TensorFlow's SAME pads behind the rows, these zeros stand before them."""
    found = cause_of(pooled(None, True), pooled([[0, 0], [1, 0], [1, 0], [0, 0]], False), tmp_path)

    assert "old MaxPool (" in found.seen
    assert "padding: old SAME, new VALID" in found.change


def test_weights_that_the_other_side_applies_in_another_form_are_no_cause(tmp_path: Path) -> None:
    """A mask of the rows, and rows that are selected; what differs is a penalty."""

    def masked(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        logits = joined(tf.nn.relu(hidden(x, kernel)), hidden(x, kernel), out)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.ones_like(logits), logits)
        return tf.reduce_sum(losses * labels) / 3.0 + 0.1 * tf.nn.l2_loss(kernel)

    def selected(x: Any, labels: Any, kernel: Any, out: Any) -> Any:
        logits = joined(tf.nn.relu(hidden(x, kernel)), hidden(x, kernel), out)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.ones_like(logits), logits)
        return tf.reduce_mean(tf.boolean_mask(losses, labels > 0.5))

    assert cause_of(masked, selected, tmp_path).name is not CauseName.LOSS_WEIGHTS


def test_two_kinds_of_weights_are_not_called_none(tmp_path: Path) -> None:
    found = cause_of(weighted(lambda x, labels: labels * 5.0 + 1.0), weighted(lambda x, labels: labels * 3.0 + 1.0), tmp_path)

    assert found.name is not CauseName.LOSS_WEIGHTS
