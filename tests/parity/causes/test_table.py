"""Each rule names its fault first, on evidence that NumPy computed in float64; equal trainings have no cause."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from estimator_bridge.parity.causes.cause import Cause, CauseName
from estimator_bridge.parity.causes.measures import Stage, gradient_fits, known_elements, noise, parting
from estimator_bridge.parity.causes.structure.initial_values import initial_spreads, initial_values, read_values, set_values
from estimator_bridge.parity.causes.table import find_causes, first_cause
from estimator_bridge.parity.evidence import (
    BatchEvidence,
    DropoutSite,
    Evidence,
    ForwardValue,
    GraphFacts,
    MetricEvidence,
    OptimizerEvidence,
    SideEvidence,
    StepEvidence,
)
from tests.parity.causes.synthetic import KERNEL, ROWS, STEPS, Training, evidence

PLAIN = Training()
MOMENTUM = Training(momentum=0.9, name="MomentumOptimizer")
ADAM = Training(epsilon=1e-8, hyperparameters=(("epsilon", 1e-8), ("beta_1", 0.9), ("beta_2", 0.999)), name="AdamOptimizer")
FTRL = Training(name="FtrlOptimizer")
DECAY = tuple(0.1 * 0.9**step for step in range(STEPS + 1))


def changed(training: Training, **fields: Any) -> Training:
    return dataclasses.replace(training, **fields)


def cause_of(*args: Any, **fields: Any) -> Cause:
    found = first_cause(evidence(*args, **fields))
    assert found is not None
    return found


@pytest.mark.parametrize("training", [PLAIN, MOMENTUM, ADAM, Training(l2=0.1, clip=0.5)])
def test_equal_trainings_have_no_cause(training: Training) -> None:
    assert find_causes(evidence(training, training)) == []


def test_penalties_that_nobody_added_are_named() -> None:
    """The old script only collects them, and the new one adds them to its loss."""
    found = cause_of(PLAIN, changed(PLAIN, l2=0.1), here={"collected_only": 2})
    assert found.name is CauseName.REGULARIZER
    assert "The old script collects 2 regularization losses and never adds them to its loss." in found.change


def test_numbers_that_an_optimizer_of_the_scripts_own_keeps_elsewhere_are_no_cause() -> None:
    """Losses part for another reason; Keras' own optimizers have 0 where they have no epsilon."""
    own = changed(ADAM, hyperparameters=(), name="KernelOptimizer")
    assert find_causes(evidence(ADAM, own)) == []
    assert cause_of(ADAM, changed(own, rates=(0.2,) * STEPS)).name is not CauseName.EPSILON


@pytest.mark.parametrize(
    ("old", "new", "name", "words"),
    [
        (PLAIN, changed(PLAIN, scale=ROWS), CauseName.LOSS_SCALE, f"x{ROWS}: the batch size ({ROWS})"),
        (PLAIN, changed(PLAIN, scale=1 / ROWS), CauseName.LOSS_SCALE, f"x{1 / ROWS}: 1 / the batch size"),
        (PLAIN, changed(PLAIN, scale=0.5), CauseName.LOSS_SCALE, "x0.5: 1 / 2"),
        (changed(PLAIN, l2=0.1), changed(PLAIN, l2=0.1, scale=ROWS), CauseName.LOSS_SCALE, "the batch size"),
        (changed(PLAIN, l2=0.1), PLAIN, CauseName.REGULARIZER, "new - old = -0.1 x the variable (L2)"),
        (changed(PLAIN, l2=0.1), changed(PLAIN, l2=0.2), CauseName.REGULARIZER, "new - old = 0.1 x the variable (L2)"),
        (PLAIN, changed(PLAIN, l2=1e-4), CauseName.REGULARIZER, "new - old = 0.0001 x the variable (L2)"),
        (PLAIN, changed(PLAIN, l1=0.01), CauseName.REGULARIZER, "new - old = 0.01 x the variable's sign (L1)"),
        (PLAIN, changed(PLAIN, offset=0.1), CauseName.REPORTED_LOSS, "all gradients are equal"),
        (PLAIN, changed(PLAIN, shift=0.1), CauseName.FORWARD_PASS, "Gradients of 2 variables differ, first kernel, bias"),
        (PLAIN, changed(PLAIN, multiplier=3.0), CauseName.GRADIENT_SCALE, "x3"),
        (changed(PLAIN, clip=0.5), PLAIN, CauseName.CLIPPING, "-> 0.5, largest value"),
        (PLAIN, changed(PLAIN, clip=0.5), CauseName.CLIPPING, "not changed; new norm"),
        (PLAIN, changed(PLAIN, frozen="bias"), CauseName.FROZEN_VARIABLES, "trains bias"),
        (changed(PLAIN, frozen="bias"), PLAIN, CauseName.TRAINED_VARIABLES, "trains bias"),
        (PLAIN, changed(PLAIN, rates=(0.2,) * STEPS), CauseName.LEARNING_RATE, "old 0.1, new 0.2 (x2)"),
        (ADAM, changed(ADAM, rates=(0.2,) * STEPS), CauseName.LEARNING_RATE, "old 0.1, new 0.2 (x2)"),
        (changed(PLAIN, rates=DECAY[:-1]), changed(PLAIN, rates=DECAY[1:]), CauseName.SCHEDULE, "a step early"),
        (changed(PLAIN, rates=DECAY[1:]), changed(PLAIN, rates=DECAY[:-1]), CauseName.SCHEDULE, "a step late"),
        (changed(PLAIN, rates=DECAY[:-1]), PLAIN, CauseName.SCHEDULE, "old 0.09, 0.081, 0.0729; new 0.1, 0.1, 0.1"),
        (MOMENTUM, changed(MOMENTUM, momentum=0.8), CauseName.MOMENTUM, "old 0.9, new 0.8"),
        (MOMENTUM, changed(MOMENTUM, momentum=0.0, name="SGD"), CauseName.MOMENTUM, "old 0.9, new 0"),
        (MOMENTUM, changed(MOMENTUM, dampening=0.1), CauseName.MOMENTUM_SCALING, "x0.1 of the old ones, which is 1 - momentum"),
        (ADAM, changed(ADAM, epsilon=0.1, hyperparameters=(("epsilon", 0.1),)), CauseName.EPSILON, "old 1e-08, new 0.1"),
        (PLAIN, changed(PLAIN, decay=0.01), CauseName.HYPERPARAMETER, "new - old = -0.01 x the variable"),
        (FTRL, changed(FTRL, decay=0.01), CauseName.HYPERPARAMETER, "Ftrl computes a variable from its slots"),
        (PLAIN, changed(PLAIN, average=0.01), CauseName.BATCH_NORM_MOMENTUM, "E.g. 0.9 in the old script, 0.99 in the new one"),
        (PLAIN, changed(PLAIN, average=0.0), CauseName.BATCH_NORM_UPDATES, "changes mean; the new one's does not"),
        (changed(PLAIN, average=0.0), PLAIN, CauseName.BATCH_NORM_UPDATES, "changes mean; the old one's does not"),
        (ADAM, changed(ADAM, epsilon=0.1, name="Adagrad"), CauseName.OPTIMIZER, "AdamOptimizer, the new one Adagrad"),
    ],
)
def test_a_fault_of_the_training_is_named_first(old: Training, new: Training, name: CauseName, words: str) -> None:
    found = cause_of(old, new)

    assert found.name is name, found
    assert words in found.seen
    assert found.change


@pytest.mark.parametrize("key", ["nesterov", "beta_1", "rho", "l2_regularization_strength", "centered"])
def test_hyperparameters_name_both_numbers_where_updates_differ(key: str) -> None:
    old, new = (changed(PLAIN, hyperparameters=((key, value),)) for value in (0.5, 0.25))

    assert first_cause(evidence(old, new)) is None, "a number without an effect is no cause"
    assert "old 0.5, new 0.25" in cause_of(old, changed(new, epsilon=0.1)).seen


def test_an_epsilon_of_keras_that_has_no_counterpart_is_no_cause() -> None:
    found = cause_of(PLAIN, changed(PLAIN, dampening=0.5, hyperparameters=(("epsilon", 1e-7),)))

    assert found.name is CauseName.UPDATE


def test_an_epsilon_of_keras_is_the_cause_beside_small_accumulators() -> None:
    """Updates of an Adagrad that starts near 0 become smaller by it, and not all by the same share."""
    old = changed(PLAIN, epsilon=0.0, dampening=1e-8, name="AdagradOptimizer")  # the slots are about 1e-8
    found = cause_of(old, changed(old, epsilon=1e-7, name="Adagrad", hyperparameters=(("epsilon", 1e-7),)))

    assert found.name is CauseName.EPSILON
    assert "old 0, new 1e-07" in found.seen


@pytest.mark.parametrize(
    ("old", "new", "is_noise"),
    [
        ([1e-6, -2e-6, 1e-6], [2e-6, 1e-6, -1e-6], True),
        ([3e-5, -6e-5, 2e-5], [4e-5, 3e-5, -5e-5], True),  # coarser, and unrelated
        ([3e-5, -6e-5, 2e-5], [6e-5, -9e-5, 4e-5], False),  # a factor that somebody may have forgotten
        ([3e-4, -6e-4, 2e-4], [4e-4, 3e-4, -5e-4], False),  # too large for rounding
        ([3e-5, -6e-5, 2e-5], [3e-5, -6e-5, 2e-5], False),
    ],
)
def test_small_gradients_are_rounding_if_they_have_nothing_to_do_with_each_other(
    old: list[float], new: list[float], is_noise: bool
) -> None:
    """A bias before batch norm, whose true gradient is 0, beside a kernel whose gradient is 1."""
    sides = ({"kernel": np.ones(4), "bias": np.array(bias)} for bias in (old, new))
    assert noise(*sides) == ({"bias"} if is_noise else set())


@pytest.mark.parametrize(("first", "stage"), [(1e-7, Stage.NONE), (0.1, Stage.UPDATE)])
def test_what_is_rounding_in_one_step_is_so_in_all(first: float, stage: Stage) -> None:
    """A bias before batch norm whose gradients happen to look related in the third step, and another one."""
    found = evidence(PLAIN, PLAIN)

    def with_bias(side: Any, factor: float) -> Any:
        steps = list(side.steps)
        for index, size in enumerate((first, first, 3e-4)):
            gradients, after = steps[index].gradients(), steps[index].after()
            largest = np.abs(gradients["kernel"]).max()
            small = {**gradients, "bias": np.array([size * largest])}
            moved = after if index < 2 else {**after, "bias": after["bias"] + factor}
            steps[index] = dataclasses.replace(
                steps[index], gradients=functools.partial(dict, small), after=functools.partial(dict, moved)
            )
        return dataclasses.replace(side, steps=tuple(steps))

    found = dataclasses.replace(found, old=with_bias(found.old, 0.0), new=with_bias(found.new, 1e-3))
    assert parting(found).stage is stage


def test_single_elements_whose_gradients_are_rounding_are_known_as_such() -> None:
    """Of a bias before relu and batch norm: relu cuts the second channel, the third only in one step, and nothing reaches the last."""
    kernel = np.ones(4)
    first = {"kernel": kernel, "bias": np.array([1e-6, 0.3, -2e-6, 0.0])}
    second = {"kernel": kernel, "bias": np.array([-3e-6, 0.2, 0.1, 0.0])}
    steps: Any = [(StepOf(lambda: first), StepOf(lambda: first)), (StepOf(lambda: second), StepOf(lambda: second))]
    assert known_elements("bias", (4,), steps).tolist() == [False, True, True, True]
    assert known_elements("bias", (2,), steps).all()  # of another shape: nothing is known of it
    assert known_elements("other", (4,), []).all()


@dataclasses.dataclass(frozen=True)
class StepOf:
    """A step of which the gradients are known."""

    gradients: Callable[[], dict[str, Any]]


def test_a_gradient_that_is_rounding_is_no_finding() -> None:
    """A bias has another gradient on each side, below 1e-5 of the largest one, and Adam makes full steps of it."""
    found = evidence(ADAM, ADAM)
    steps = []
    for side, gradient in ((found.old, 1e-7), (found.new, -3e-7)):
        first = side.steps[0]
        values = [dict(function()) for function in (first.gradients, first.after, first.applied)]
        values[0]["bias"] = values[2]["bias"] = np.array([gradient])
        values[1]["bias"] = first.before()["bias"] - 0.1 * np.sign(gradient)
        functions: list[Any] = [functools.partial(dict, one) for one in values]
        steps.append(dataclasses.replace(first, gradients=functions[0], after=functions[1], applied=functions[2]))
    sides = [dataclasses.replace(side, steps=(step,)) for side, step in zip((found.old, found.new), steps, strict=True)]

    assert find_causes(dataclasses.replace(found, old=sides[0], new=sides[1])) == []


@pytest.mark.parametrize(
    ("here", "there", "name", "words"),
    [
        ({"dropout": (DropoutSite((4,), 0.3),)}, {}, CauseName.DROPOUT, "old 0.3 of [batch, 4]; new none"),
        ({}, {"dropout": (DropoutSite((4,), 0.3),)}, CauseName.DROPOUT, "old none; new 0.3"),
        ({"dropout": (DropoutSite((4,), 0.3),)}, {"dropout": (DropoutSite((4,), 0.7),)}, CauseName.DROPOUT, "new 0.7"),
        (
            {"dropout": (DropoutSite((4,), 0.3),)},
            {"dropout": (DropoutSite((6,), 0.3),)},
            CauseName.DROPOUT,
            "0.3 of [batch, 6]",
        ),
        ({"dropout": (DropoutSite((4,), 0.3),)}, {"dropout": (DropoutSite((None,), 0.3),)}, CauseName.FORWARD_PASS, ""),
        ({"dropout": ()}, {"dropout": None}, CauseName.FORWARD_PASS, ""),
        ({"graph": GraphFacts()}, {"graph": GraphFacts(("sub",))}, CauseName.BROADCAST, "Labels: old [8], new [8]"),
        (
            {"graph": GraphFacts(epsilons=(1e-3,))},
            {"graph": GraphFacts(epsilons=(1e-5,))},
            CauseName.BATCH_NORM_EPSILON,
            "1e-05",
        ),
        (
            {"graph": GraphFacts(flattened=((4, 7, 6),))},
            {"graph": GraphFacts(flattened=((7, 6, 4),))},
            CauseName.FLATTEN_ORDER,
            "flattens [batch, 4, 7, 6], the new one [batch, 7, 6, 4]",
        ),
    ],
)
def test_facts_of_the_graphs_explain_another_forward_pass(
    here: dict[str, Any], there: dict[str, Any], name: CauseName, words: str
) -> None:
    found = cause_of(PLAIN, changed(PLAIN, shift=0.1), here, there)

    assert found.name is name
    assert words in found.seen
    assert first_cause(evidence(PLAIN, PLAIN, here, there)) is None, "without an effect it is no cause"


@pytest.mark.parametrize(
    ("new", "name"),
    [
        (changed(MOMENTUM, momentum=0.0), CauseName.MOMENTUM),
        (changed(MOMENTUM, dampening=1.9), CauseName.NESTEROV),
        (changed(MOMENTUM, rates=(0.2,) * STEPS), CauseName.LEARNING_RATE),
    ],
)
def test_updates_without_an_optimizer_tell_by_their_numbers(new: Training, name: CauseName) -> None:
    found = evidence(MOMENTUM, new)
    steps = tuple(dataclasses.replace(step, optimizers=()) for step in found.new.steps)
    side = dataclasses.replace(found.new, steps=steps, learning_rates=())
    cause = first_cause(dataclasses.replace(found, new=side))

    assert cause is not None
    assert cause.name is name


def test_one_optimizer_for_two_parts() -> None:
    found = evidence(PLAIN, changed(PLAIN, rates=(0.2,) * STEPS))
    two = tuple(OptimizerEvidence(name, "tf1", {"learning_rate": 0.1}, 1, (name,)) for name in ("kernel", "bias"))
    steps = tuple(dataclasses.replace(step, optimizers=two) for step in found.old.steps)
    cause = first_cause(dataclasses.replace(found, old=dataclasses.replace(found.old, steps=steps)))

    assert cause is not None
    assert (cause.name, "2 optimizers" in cause.seen) == (CauseName.OPTIMIZER_PARTS, True)


def test_a_default_rate_beside_a_canned_estimator() -> None:
    old, new = (changed(PLAIN, rates=(rate,) * STEPS, name="AdagradOptimizer") for rate in (0.05, 0.001))
    found = cause_of(old, new, estimator="DNNClassifier")

    assert (found.name, "0.05" in found.change) == (CauseName.CANNED_DEFAULTS, True)


def test_slots_that_start_with_another_constant() -> None:
    starts = [{"kernel": KERNEL, "kernel/Momentum": np.full(KERNEL.shape, value)} for value in (0.1, 0.2)]
    found = cause_of(PLAIN, PLAIN, {"initial": lambda: starts[0]}, {"initial": lambda: starts[1]})

    assert (found.name, "old 0.1 at the start, new 0.2" in found.seen) == (CauseName.ACCUMULATORS, True)


def test_a_schedule_that_begins_with_0_freezes_nothing() -> None:
    rising = tuple(0.1 * step for step in range(STEPS + 1))
    found = cause_of(changed(PLAIN, rates=rising[1:]), changed(PLAIN, rates=rising[:-1]))

    assert found.name is CauseName.SCHEDULE
    assert "a step late" in found.seen


def test_dropout_that_the_old_evaluation_has_is_asked_of_the_new_one() -> None:
    metrics = (MetricEvidence("", "loss", STEPS, 2.0, 1.9),)
    found = cause_of(PLAIN, PLAIN, {"evaluation_dropout": 1}, {"evaluation_dropout": 0}, metrics=metrics)

    assert (found.name, "with training=True" in found.change) == (CauseName.EVALUATION_DROPOUT, True)


def moved(side: SideEvidence, rest: float) -> SideEvidence:
    """Returns a side whose first step looks up two rows of a table of four; the others move by ``rest``."""
    gradient, table = np.array([[1.0, -2.0], [0.0, 0.0], [0.5, 1.0], [0.0, 0.0]]), np.arange(8.0).reshape(4, 2)
    move = np.where(gradient.any(1, keepdims=True), -0.1 * gradient, rest)
    first = side.steps[0]

    def with_table(values: Any, value: Any) -> Any:
        return lambda: {**values(), "table": value}

    first = dataclasses.replace(
        first,
        gradients=with_table(first.gradients, gradient),
        applied=with_table(first.applied, gradient),
        before=with_table(first.before, table),
        after=with_table(first.after, table + move),
    )
    return dataclasses.replace(side, steps=(first, *side.steps[1:]), trainable=("table", *side.trainable))


@pytest.mark.parametrize(
    ("rests", "words"), [((0.0, 0.3), "new script alone"), ((0.3, 0.0), "old script alone"), ((0.3, 0.1), "")]
)
def test_rows_that_no_batch_looks_up_move_on_one_side_alone(rests: tuple[float, float], words: str) -> None:
    plain = evidence(MOMENTUM, MOMENTUM)
    found = first_cause(dataclasses.replace(plain, old=moved(plain.old, rests[0]), new=moved(plain.new, rests[1])))

    assert found is not None
    assert found.variables == ("table",)
    assert ("does not look up" in found.seen) is bool(words)
    assert words in found.seen


def test_a_normalization_layer_in_inference_mode_is_no_frozen_variable() -> None:
    """Keras' trainable=False freezes scale and offset, and keeps the moving averages: they are of one layer."""
    found = evidence(PLAIN, changed(PLAIN, average=0.0, frozen="bias", shift=0.1))
    names = {"bias": "norm/beta", "mean": "norm/moving_mean"}

    def renamed(values: Any) -> Any:
        return lambda: {names.get(name, name): value for name, value in values().items()}

    def side(one: Any) -> Any:
        fields = ("gradients", "applied", "before", "after")
        steps = [dataclasses.replace(step, **{key: renamed(getattr(step, key)) for key in fields}) for step in one.steps]
        return dataclasses.replace(
            one, steps=tuple(steps), trainable=("kernel", "norm/beta"), moving_averages=("norm/moving_mean",)
        )

    cause = first_cause(dataclasses.replace(found, old=side(found.old), new=side(found.new)))

    assert cause is not None
    assert (cause.name, cause.variables) == (CauseName.BATCH_NORM_UPDATES, ("norm/moving_mean",))


def test_updates_counted_one_too_many_explain_a_later_difference() -> None:
    losses = {"losses": (1.0, 0.9, 0.8, 0.7, 0.6)}, {"losses": (1.0, 0.9, 0.8, 0.7, 0.5)}
    adam = changed(ADAM, name="Adam")
    found = cause_of(adam, adam, losses[0], losses[1] | {"iterations": (1, 2, 3, 5, 6)})

    assert (found.name, found.step) == (CauseName.ITERATIONS, 4)
    assert cause_of(PLAIN, PLAIN, losses[0], losses[1] | {"iterations": (1, 2, 3, 5, 6)}).name is CauseName.LATER


def test_trainings_of_unequal_length() -> None:
    found = cause_of(PLAIN, PLAIN, {"losses": (1.0, 0.9)}, {"losses": (1.0,), "steps_per_epoch": (1,)})

    assert (found.name, found.step, "2 steps, the new one 1" in found.seen) == (CauseName.STEPS, 2, True)


@pytest.mark.parametrize(
    ("own", "recorded", "name"),
    [
        (((8, 1), (8, 2)), ((4, 5), (4, 6)), CauseName.BATCH_SIZE),
        (((8, 2), (8, 1)), ((8, 1), (8, 2)), CauseName.BATCH_ORDER),
        (((8, 3), (8, 4)), ((8, 2), (8, 5)), CauseName.BATCH_ORDER),
    ],
)
def test_own_batches(own: Any, recorded: Any, name: CauseName) -> None:
    batches = tuple(BatchEvidence((a[0], b[0]), (a[1], b[1])) for a, b in zip(own, recorded, strict=True))

    assert cause_of(PLAIN, PLAIN, batches=batches).name is name
    unknown = first_cause(evidence(PLAIN, PLAIN, {"shuffles": None}, batches=batches))
    assert (unknown is None) is (name is CauseName.BATCH_ORDER)


@pytest.mark.parametrize("shared", [0, 3])
def test_a_part_of_the_old_rows_in_a_fixed_order_is_another_order(shared: int) -> None:
    """As every second row alone: no batch is one of the old script's."""
    batches = (BatchEvidence((8, 8), (1, 9)), BatchEvidence((8, 8), (2, 7)))
    found = first_cause(evidence(PLAIN, PLAIN, batches=batches, shared_rows=shared))

    assert (found and found.name) == (CauseName.BATCH_ORDER if shared else None)


@pytest.mark.parametrize(("ratio", "name"), [(0.25, CauseName.LOSS_SCALE), (0.3, CauseName.LATER)])
def test_a_loss_that_is_divided_by_a_constant_shows_at_a_smaller_batch(ratio: float, name: CauseName) -> None:
    batches = tuple(BatchEvidence((rows, rows), (1, 1)) for rows in (16, 16, 16, 4))
    found = cause_of(PLAIN, PLAIN, {"losses": (4.0, 3.0, 2.0, 1.0)}, {"losses": (4.0, 3.0, 2.0, ratio)}, batches=batches)

    assert (found.name, found.step) == (name, 4)
    assert ("has 4 rows, those before 16" in found.seen) is (name is CauseName.LOSS_SCALE)


def test_an_evaluation_loss_that_is_divided_by_a_constant_is_named() -> None:
    old = {"evaluation_losses": ((1.0, 3.0),), "evaluation_rows": ((8, 2),)}
    metrics = (MetricEvidence("", "loss", STEPS, 2.0, 0.875),)

    assert "a constant batch size" in cause_of(PLAIN, PLAIN, old, metrics=metrics).change
    assert "test_step" in cause_of(PLAIN, PLAIN, old, metrics=(dataclasses.replace(metrics[0], new=0.9),)).change


@pytest.mark.parametrize(("others", "is_cause"), [((8, 8, 5), True), ((6, 4, 8), False)])
def test_batches_of_many_sizes_have_no_size(others: tuple[int, ...], is_cause: bool) -> None:
    rows = ((16, 8), *((size, size) for size in others))
    batches = tuple(BatchEvidence(pair, (index, index)) for index, pair in enumerate(rows))
    found = first_cause(evidence(PLAIN, PLAIN, {"shuffles": True}, batches=batches))

    assert (found is not None and found.name is CauseName.BATCH_SIZE) is is_cause


@pytest.mark.parametrize(
    ("old", "new", "is_cause"),
    [(False, True, True), (True, True, False), (True, False, False), (None, True, False), (False, None, False)],
)
def test_only_rows_that_the_new_script_alone_shuffles_are_a_cause(old: Any, new: Any, is_cause: bool) -> None:
    batches = (BatchEvidence((8, 8), (1, 1)), BatchEvidence((8, 8), (3, 4)))
    found = first_cause(evidence(PLAIN, PLAIN, {"shuffles": old}, {"shuffles": new}, batches=batches))

    assert (found is not None and found.name is CauseName.BATCH_ORDER and found.step == 2) is is_cause
    assert first_cause(evidence(PLAIN, PLAIN, {"shuffles": old}, {"shuffles": new}, batches=batches[:1])) is None
    by_fit = {"shuffles": new, "fit_shuffles": True}  # of rows in whose order batches are looked at
    assert (first_cause(evidence(PLAIN, PLAIN, {"shuffles": old}, by_fit, batches=batches[:1])) is not None) is is_cause


def test_values_in_another_unit_are_named_before_what_follows_from_them() -> None:
    found = cause_of(PLAIN, changed(PLAIN, shift=0.1), other_values=("features is 2 x the old script's",))

    assert (found.name, found.seen) == (
        CauseName.BATCH_VALUES,
        "The new script's own input gives other values: features is 2 x the old script's.",
    )


def test_variables_of_one_side() -> None:
    shapes = {"kernel": (5,), "model/kernel": (6,)}
    full = evidence(PLAIN, PLAIN, unmatched_old=("kernel",), unmatched_new=("model/kernel",), shapes=shapes)
    steps = [dataclasses.replace(step, gradients=lambda: {"model/kernel": np.ones([6])}) for step in full.new.steps]
    full = dataclasses.replace(full, new=dataclasses.replace(full.new, trainable=("model/kernel",), steps=tuple(steps)))
    causes = [
        first_cause(full),
        first_cause(dataclasses.replace(full, unmatched_new=())),
        first_cause(dataclasses.replace(full, unmatched_old=())),
    ]

    assert [cause.name for cause in causes if cause] == [
        CauseName.SHAPES,
        CauseName.MISSING_VARIABLES,
        CauseName.EXTRA_VARIABLES,
    ]
    assert causes[0] is not None
    assert "kernel [5] of the old script and model/kernel [6] of the new one" in causes[0].seen


def test_variables_on_which_no_loss_depends_are_no_cause() -> None:
    names = ("kernel", "bias", "other")
    full = evidence(
        PLAIN, PLAIN, {"trainable": names}, {"trainable": names}, unmatched_old=("other",), unmatched_new=("other",)
    )
    assert first_cause(full) is None
    first = full.old.steps[0]
    in_parts = dataclasses.replace(first, gradients=lambda: {"kernel": np.ones(2), "other/part_0": np.ones(2)})
    updated = dataclasses.replace(first, optimizers=(dataclasses.replace(first.optimizers[0], variables=("other",)),))
    changed = dataclasses.replace(first, before=lambda: {"other": np.zeros(2)}, after=lambda: {"other": np.ones(2)})
    for step in (in_parts, updated, changed):
        assert not dataclasses.replace(full.old, steps=(step,)).unread(names)


@pytest.mark.parametrize(
    ("metrics", "there", "name"),
    [
        (("loss",), {}, CauseName.EVALUATION_LOSS),
        (("auc",), {}, CauseName.METRIC_DEFINITION),
        (("loss", "auc"), {}, CauseName.EVALUATION_MODE),
        (("loss", "auc"), {"evaluation_dropout": 1}, CauseName.EVALUATION_DROPOUT),
        ((), {}, CauseName.PREDICTIONS),
    ],
)
def test_evaluations(metrics: tuple[str, ...], there: dict[str, Any], name: CauseName) -> None:
    different = tuple(MetricEvidence("", metric, 5, 0.5, 0.6) for metric in metrics)
    found = cause_of(PLAIN, PLAIN, {"evaluation_dropout": 0}, there, metrics=different, predictions=("logits",))

    assert found.name is name
    assert not metrics or "old 0.5, new 0.6" in found.seen


def starting_with(old: Any, new: Any) -> Evidence:
    """Returns evidence of two sides whose variable has these initial values."""
    return Evidence(SideEvidence(initial=lambda: {"variable": old}), SideEvidence(initial=lambda: {"variable": new}))


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        (np.zeros(8), np.full(8, 0.1), True),
        (np.repeat([0.0, 1.0, 0.0], [3, 3, 6]), np.zeros(12), True),  # a forget gate
        (np.zeros(8), np.zeros(8), False),
        (np.array([[0.3]]), np.array([[-0.2]]), False),  # one element may be random on both sides
        (np.array([0.0]), np.array([1.0]), True),  # but no random one is 0 or 1
        (np.array([0.0]), np.array([0.3]), False),
        (np.tile([1.0, -1.0, -1.0, 1.0], 4), np.tile([-1.0, 1.0, 1.0, -1.0], 4), False),  # and so may signs
        (np.linspace(-1, 1, 16), np.linspace(-2, 2, 16), False),
    ],
)
def test_only_constants_are_judged_as_initial_values(old: Any, new: Any, differs: bool) -> None:
    assert bool(list(initial_values(starting_with(old, new)))) is differs


@pytest.mark.parametrize(("given", "shift", "differs"), [(True, 0.1, True), (True, 0.0, False), (False, 0.1, False)])
def test_values_that_the_old_script_does_not_draw_have_to_be_those_of_the_new_one(
    given: bool, shift: float, differs: bool
) -> None:
    """A table of vectors that the old script reads from a file."""
    vectors = np.random.RandomState(0).randn(20, 4)
    found = starting_with(vectors, vectors + shift)
    old = dataclasses.replace(found.old, given=frozenset(["variable"] if given else []))
    causes = list(read_values(dataclasses.replace(found, old=old)))

    assert [("variable" in cause.variables, "does not draw" in cause.seen) for cause in causes] == [(True, True)] * differs


@pytest.mark.parametrize(("set_later", "own", "differs"), [(True, True, True), (True, False, False), (False, True, False)])
def test_values_that_the_old_script_sets_before_its_first_step_have_to_be_set(
    set_later: bool, own: bool, differs: bool
) -> None:
    """The new script's own initial values are others; a callback of its own may set them before its first step, too."""
    before, other = np.random.RandomState(0).randn(2, 20, 4)
    found = starting_with(before, other)
    old, new = (
        (StepEvidence(1, 0.5, dict, dict, functools.partial(dict, variable=value + 0.01)),)
        for value in (before, other if own else before + 0.05)
    )
    old_side = dataclasses.replace(found.old, set=frozenset(["variable"] if set_later else []), steps=old)
    causes = set_values(dataclasses.replace(found, old=old_side, new=dataclasses.replace(found.new, steps=new)))

    assert [cause.variables for cause in causes] == [("variable",)] * differs


@pytest.mark.parametrize(
    ("shape", "gap", "differs"), [((3, 3, 1, 4), 4e-6, False), ((3, 3, 1, 4), 2e-5, True), ((9, 4), 4e-6, True)]
)
def test_gradients_of_convolutions_are_known_as_well_as_those_of_their_biases(
    shape: tuple[int, ...], gap: float, differs: bool
) -> None:
    """They are sums over places that cancel out."""
    kernel = np.random.RandomState(0).randn(*shape) * 1e-3
    sides = [
        StepEvidence(1, 0.5, functools.partial(dict, {"conv/kernel": one, "conv/bias": np.full(4, 0.2)}), dict, dict)
        for one in (kernel, kernel + gap)
    ]
    found = {fit.name: fit.differs for fit in gradient_fits(*sides)}
    assert found == {"conv/kernel": differs, "conv/bias": False}


def test_a_model_that_goes_on_with_other_values_is_named_with_the_step_that_follows() -> None:
    (cause,) = find_causes(evidence(PLAIN, PLAIN, lost=((12, ("kernel/Adam", "kernel/Adam_1")),)))
    assert (cause.name, cause.step, "kernel/Adam, kernel/Adam_1 have other values" in cause.seen) == (
        CauseName.LOST_VALUES,
        13,
        True,
    )


def test_a_table_with_other_values_precedes_the_forward_pass_that_follows_from_it() -> None:
    """A row more in front, e.g.: the new script looks up other rows of the values that it is given."""
    table = np.random.RandomState(0).randn(20, 4)
    here, there = (
        {"initial": lambda: {"table": table}, "given": frozenset(["table"])},
        {"initial": lambda: {"table": table + 1}},
    )

    assert cause_of(PLAIN, changed(PLAIN, shift=0.5)).name is CauseName.FORWARD_PASS
    assert cause_of(PLAIN, changed(PLAIN, shift=0.5), here, there).name is CauseName.INITIAL_VALUES


@pytest.mark.parametrize(("size", "factor", "noted"), [(400, 2.0, True), (400, 1.0, False), (4, 2.0, False)])
def test_random_initial_values_of_another_spread_are_a_note(size: int, factor: float, noted: bool) -> None:
    """Drawn twice, so they differ in any case."""
    draws = [np.random.RandomState(seed).normal(size=size) * scale for seed, scale in ((0, 1.0), (1, factor))]
    assert bool(list(initial_spreads(starting_with(*draws)))) is noted


def test_inputs_of_another_size_are_named_by_the_first_operation_that_gives_them() -> None:
    shapes = {"dense/kernel": (3072, 4), "model/dense/kernel": (256, 4)}
    full = evidence(PLAIN, PLAIN, unmatched_old=("dense/kernel",), unmatched_new=("model/dense/kernel",), shapes=shapes)
    sides = [
        dataclasses.replace(side, trainable=(name,), steps=(dataclasses.replace(side.steps[0], gradients=dict),))
        for side, name in ((full.old, "dense/kernel"), (full.new, "model/dense/kernel"))
    ]
    found = first_cause(dataclasses.replace(full, old=sides[0], new=sides[1]))
    assert found is not None
    assert "12 times as large in the old script" in found.change

    looked = [
        dataclasses.replace(side, forward=(ForwardValue("conv/Conv2D", "Conv2D", (), (None, size, size, 8)),))
        for side, size in zip(sides, (10, 12), strict=True)
    ]
    found = first_cause(dataclasses.replace(full, old=looked[0], new=looked[1]))
    assert found is not None
    assert "old Conv2D (conv/Conv2D) gives [batch, 10, 10, 8], new Conv2D (conv/Conv2D) gives [batch, 12, 12, 8]" in found.seen


def test_labels_that_only_the_old_script_broadcasts() -> None:
    graphs = {"graph": GraphFacts(broadcasts=("sub",))}, {"graph": GraphFacts()}
    found = cause_of(PLAIN, changed(PLAIN, shift=0.5), *graphs)
    both = {"graph": GraphFacts(broadcasts=("sub", "of a weight"))}, graphs[0]
    assert cause_of(PLAIN, changed(PLAIN, shift=0.5), *both).name is not CauseName.BROADCAST

    assert (found.name, "sub of the old script combines" in found.seen) == (CauseName.BROADCAST, True)


def test_gradients_that_differ_by_rounding_alone_hide_no_other_cause() -> None:
    """As of a bias before batch norm and pooling, which are sums of many terms."""
    found = cause_of(MOMENTUM, changed(MOMENTUM, momentum=0.8, multiplier=1.0003))

    assert found.name is CauseName.MOMENTUM


def test_an_evaluation_of_other_rows_is_a_cause_although_nothing_differs() -> None:
    found = cause_of(PLAIN, PLAIN, evaluation_rows=("none of the 48 rows is one of the old script's 48",))

    assert (found.name, found.seen) == (CauseName.EVALUATION_DATA, "None of the 48 rows is one of the old script's 48.")


def test_numbers_of_optimizers_are_named_before_clipping_that_no_step_shows() -> None:
    later = (
        {"losses": (1.0, 0.9, 0.8, 0.7, 0.6), "changes_gradients": True},
        {"losses": (1.0, 0.9, 0.8, 0.7, 0.5), "changes_gradients": False},
    )
    with_amsgrad = changed(ADAM, hyperparameters=(*ADAM.hyperparameters, ("amsgrad", 1.0)), name="Adam")

    assert cause_of(changed(ADAM, name="Adam"), with_amsgrad, *later).name is CauseName.HYPERPARAMETER
    assert cause_of(changed(ADAM, name="Adam"), changed(ADAM, name="Adam"), *later).name is CauseName.CLIPPING


@pytest.mark.parametrize(
    ("gradients", "are_moved"),
    [
        (([0.5, 0.0, 0.25, 0.0, 0.0], [0.0, 0.5, 0.25, 0.0, 0.0]), True),  # of another hash
        (([0.5, 0.25, 0.25, 0.0, 0.0], [0.25, 0.5, 0.25, 0.0, 0.0]), True),  # of another boundary
        (([0.5, -0.25, -0.25, 0.0, 0.0], [0.25, 0.0, -0.25, 0.0, 0.0]), False),  # of a softmax's bias
        (([0.5, 0.25, 0.25, 0.0, 0.0], [0.75, 0.5, 0.25, 0.0, 0.0]), False),
    ],
)
def test_gradients_in_other_rows_are_named_as_other_look_ups(
    gradients: tuple[list[float], list[float]], *, are_moved: bool
) -> None:
    """A table that starts with zeros: the loss does not show yet that other rows are looked up."""
    found = evidence(PLAIN, PLAIN)
    steps = []
    for side, gradient in zip((found.old, found.new), gradients, strict=True):
        first = side.steps[0]
        values = dict(first.gradients()) | {"kernel": np.array(gradient)}
        after = dict(first.after()) | {"kernel": first.before()["kernel"] - 0.1 * np.array(gradient)}
        functions: list[Any] = [functools.partial(dict, one) for one in (values, after)]
        steps.append(dataclasses.replace(first, gradients=functions[0], applied=functions[0], after=functions[1]))
    sides = [dataclasses.replace(side, steps=(step,)) for side, step in zip((found.old, found.new), steps, strict=True)]

    cause = first_cause(dataclasses.replace(found, old=sides[0], new=sides[1]))

    assert cause is not None
    assert cause.name is CauseName.GRADIENTS
    assert ("in other rows" in cause.seen) is are_moved
