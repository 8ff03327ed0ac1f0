"""The parts of a model function, and the ways in which a class may be made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import Change
from estimator_bridge.compat.source.fixers.model import metrics
from estimator_bridge.compat.source.fixers.model.flow import (
    Mode,
    ModeTests,
    Statement,
    assigned_value,
    reads_and_writes,
    rebound,
    unwrapped,
)

_TRAINING = cst.Name("training")


@dataclasses.dataclass(frozen=True)
class ModelFunction:
    """The parts of a model function.

    Attributes:
        node: The function.
        features: Name of the argument for the features.
        labels: Name of the argument for the labels; empty if there is none.
        params: Name of the argument for hyperparameters; empty if there is none.
        more: Arguments that only the script knows, which it binds before an Estimator calls the function.
        tests: Conditions on the mode.
        network: Statements that need neither labels nor trained variables.
        reached: Imported names in the network and in functions of the script that it calls.
        reads_labels: True if the network has the labels, too, which predictions have not.
        scopes: Scopes of variables around statements of the network, the outermost first.
        loss: Statements of the loss that need them.
        loss_value: The loss.
        evaluation: Statements of the loss of evaluations, and that loss, if it is another one; else None.
        measured: Statements that metrics need beside the network's.
        metrics: Metrics of an evaluation.
        kept_metrics: The dict of those that Keras has not, which stay as they are; else None.
        received: Statements that make the network's features of those of a prediction.
        predicted: Statements that predictions need beside the network's.
        predictions: The predictions.
        predicts_anew: True if ``predicted`` has the whole network of a prediction, whose layers have the names of training's.
        prepared: Statements that the optimizer needs.
        optimizer: Expression that makes the Keras optimizer; empty if the updates stay as they are.
        updates: Statements of the updates that stay as they are.
        initial: Statements that give variables the values of another checkpoint.
        notes: Lines of the report about statements that the class does not have, or has otherwise.
        inlined: Functions of the script whose bodies the parts contain.
        signatures: Signature -> key of the prediction with which it answers, empty for all; None if ``export_outputs`` says nothing.
        makes_keras: Function that returns True for a call that makes a layer or a model of Keras.
        untold: Calls of Keras that do not say if they train; TensorFlow 1 then does what they do in an evaluation.
        frozen: Calls of batch norm whose moving averages the script never updates.
        shimmed: Functions and classes of the script that make layers each time they are called; None if ``__init__`` makes all layers.
        updating: Those that the updates and metrics need that stay as they are.
    """

    node: cst.FunctionDef
    features: str
    labels: str
    params: str
    more: tuple[cst.Param, ...]
    tests: ModeTests
    network: tuple[Statement, ...]
    reached: frozenset[str]
    reads_labels: bool
    scopes: tuple[cst.With, ...]
    loss: tuple[Statement, ...]
    loss_value: cst.BaseExpression
    evaluation: tuple[tuple[Statement, ...], cst.BaseExpression] | None
    measured: tuple[Statement, ...]
    metrics: tuple[metrics.Metric, ...]
    kept_metrics: cst.BaseExpression | None
    received: tuple[Statement, ...]
    predicted: tuple[Statement, ...]
    predictions: cst.BaseExpression | None
    predicts_anew: bool
    prepared: tuple[Statement, ...]
    optimizer: str
    updates: tuple[Statement, ...]
    initial: tuple[Statement, ...]
    notes: tuple[Change, ...]
    inlined: tuple[str, ...]
    signatures: Mapping[str, str] | None
    makes_keras: Callable[[cst.Call], bool]
    untold: frozenset[cst.CSTNode]
    frozen: frozenset[cst.CSTNode]
    shimmed: frozenset[str] | None
    updating: frozenset[str]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names that the network gives to the loss, the metrics and the predictions, in the order in which they are bound."""
        wanted: set[str] = set()
        of_evaluation = (*self.evaluation[0], cst.Expr(self.evaluation[1])) if self.evaluation else ()
        of_predictions = () if self.predicts_anew else (*self.predicted, cst.Expr(self.predictions or cst.Name("None")))
        for statements in (self.loss, of_evaluation, self.measured, of_predictions, self.updates):
            for statement in statements:
                wanted |= reads_and_writes(statement)[0]
        for value in (self.loss_value, self.kept_metrics):
            wanted |= reads_and_writes(value)[0] if value is not None else set()
        for one in self.metrics:
            wanted |= reads_and_writes(cst.parse_expression(f"f({one.update})"))[0] if one.update else set()
        bound = (name for statement in self.network for name in sorted(reads_and_writes(statement)[1]))
        wanted -= {"training"} if self.tests.value(_TRAINING, Mode.TRAIN) is not None else set()  # each method knows it
        return tuple(name for name in dict.fromkeys(bound) if name in wanted)

    @property
    def has_training(self) -> bool:
        """True if ``training`` is a variable of the script that is not the mode."""
        given = [assigned_value(one) for one in unwrapped(self.network) if "training" in rebound(one)]
        is_other = any(value is None or self.tests.value(value, Mode.TRAIN) is None for value in given)
        return is_other or ("training" in self.tests.bound and self.tests.value(_TRAINING, Mode.TRAIN) is None)


@dataclasses.dataclass(frozen=True)
class Way:
    """A way of making a class, which says what of the model function may stay as it is.

    Attributes:
        shim: Layers are made each time the network is called, below TensorFlow's own ``track_tf1_style_variables``.
        keeps_updates: The statements that update the variables stay, if Keras has no such optimizer.
        reads_labels: The network has the labels, and what predictions need: labels are None in a prediction.
        predicts_anew: A prediction has a network of its own, whose layers have the names of training's; only with ``shim``.
        keeps_choices: A test of training that chooses between two values stays, so that the network of all modes has its statements.
    """

    shim: bool = False
    keeps_updates: bool = False
    reads_labels: bool = False
    predicts_anew: bool = False
    keeps_choices: bool = False
