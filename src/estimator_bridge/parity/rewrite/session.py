"""The new side while its script runs: recorded batches in their order, steps, losses, anchors."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.exports.rewritten import exports_of
from estimator_bridge.parity.recording.batches import read_batches
from estimator_bridge.parity.recording.calls import keep_export
from estimator_bridge.parity.recording.randomness import STATEFUL_RANDOM, draws_rows
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite import dropout
from estimator_bridge.parity.rewrite.feeding import Feeder, Leaf, leaves_of, pair
from estimator_bridge.parity.rewrite.forward_pass.eager import EagerPass
from estimator_bridge.parity.rewrite.forward_pass.facts import graph_facts, source
from estimator_bridge.parity.rewrite.forward_pass.values import ForwardPass
from estimator_bridge.parity.rewrite.held_out import HeldOut
from estimator_bridge.parity.rewrite.input_findings import any_shuffles
from estimator_bridge.parity.rewrite.inputs import Inputs, dataset_shuffles, rounded_rows, rows_of
from estimator_bridge.parity.rewrite.plan import FIRST_STEPS, RewritePlan
from estimator_bridge.parity.rewrite.weights import Weights, build_optimizer

FIRST_BATCHES = 50  # of the new script's own input are compared with the recorded ones
CALL = "train-0"  # the new side's training is one
_NUMBERS = (
    *("learning_rate", "epsilon", "momentum", "beta_1", "beta_2", "rho", "initial_accumulator_value", "learning_rate_power"),
    *("l1_regularization_strength", "l2_regularization_strength", "nesterov"),
    *("weight_decay", "clipnorm", "clipvalue", "global_clipnorm", "decay", "centered", "amsgrad"),
)


class Session:
    """The state of the new side.

    Args:
        trace: Trace of the new side.
        old: Trace of the old side.
        plan: Comparison.
    """

    def __init__(self, trace: Trace, old: Trace, plan: RewritePlan) -> None:
        self.trace, self.old, self.plan = trace, old, plan
        self._whole = {event["call"] for event in old.events("evaluation", "predicted") if event.get("is_whole")}
        self._is_limited = any(old.events("limited"))
        self._is_repeated = any(old.events("repeated"))
        self._anchors = {event["index"]: event["prefix"] for event in old.events("anchor")}
        self._structures = {e["call"]: [Leaf(*leaf[:4]) for leaf in e["leaves"]] for e in old.events("structure")}
        self._rows = {e["call"]: {leaf[5] for leaf in e["leaves"]} for e in old.events("structure")}
        self._start = next(old.events("step"), {"step": 1})["step"] - 1
        self._length = sum(1 for _ in old.events("step"))
        self._set = {name for event in old.events("set") for name in event["variables"]}
        self._notes: set[str] = set()
        self._has_shapes = False
        self._own_batches = 0
        self._orders: list[tuple[bool | None, bool]] = []
        self.feeder = Feeder(plan.adapt, self.note)
        self._training = self._all_training()
        self._reading = threading.Lock()
        self._given: list[int] = []
        self._unbuilt: dict[int, BridgeError] = {}  # models without variables, and why they cannot be built with a batch
        self._ahead: dict[int, tuple[str, list[Any]]] = {}
        self._own: dict[int, tuple[Any, Any]] = {}  # the script's own batches and those in their places, by the step
        self._read = 0
        self.index = 0
        self.weights: Weights | None = None
        self.optimizers: list[Any] = []
        self.models: list[Any] = []
        self._losses: list[float] = []
        self._kept: dict[str, dict[str, Any]] = {"gradients": {}, "applied": {}}
        self._asked: dict[str, Any] = {}  # variable -> gradient, a tensor of the step's graph
        self._forward: list[ForwardPass] = []  # of each gradient that a graph asks a tape for, in order
        self.old_sites = dropout.read_sites(old)
        self._sites: list[dropout.Site] = []  # of the graph of a step
        self._uncounted: list[str] = []  # draws inside of its loops
        self._eager: EagerPass | None = None  # of a step that may run eagerly
        self._configurations: dict[int, dict[str, float]] = {}
        self._updated: dict[int, list[str]] = {}  # optimizer -> its variables
        self._applied_rates: dict[int, float] = {}  # optimizer -> learning rate of its last update
        self._rates: list[Any] | None = None
        self._active = False
        self._is_building = False  # what is traced for a model's variables alone is not recorded
        self.inputs = Inputs(is_drawn={event["drawn"] for event in old.events("batch values")} != {False})
        self.predicted = self._exported = 0
        self._export_steps = {steps for steps, _ in exports_of(old)}
        self.open_loop: Callable[[], None] = lambda: None  # ends the step of a loop of the script
        self.trains_on_batch = False
        self.own_rows: int | None = None  # rows of the own batch in whose place a loop of the script has a recorded one
        self.end_on_batch: Callable[[], None] = lambda: (
            None
        )  # ends an evaluation or prediction whose batches the script gives one by one
        self._evaluated: set[str] = set()
        self._validated: dict[str, Any] = {}
        self._going_on: tuple[Any, Any, Any, Any] | None = None  # a model made anew, and its batch, until its first step

    @functools.cached_property
    def step(self) -> Any:
        """Variable with the global step before the training step; made late, for a script may first set threads and devices."""
        with tf.init_scope():
            return tf.Variable(self._start, dtype=tf.int64, trainable=False, name="estimator_bridge_step")

    def leave_step(self) -> None:
        """Sets the step to the number of steps that are done, as evaluations and predictions of the old script see it."""
        self._check_end()
        self.step.assign(self._start + self.index)

    def read_step(self) -> Any:
        """Returns the global step before the training step, as a tensor."""
        return self.step.read_value()

    def note(self, message: str) -> None:
        """Writes a note once."""
        if message not in self._notes:
            self._notes.add(message)
            self.trace.write("note", message=message)

    def _all_training(self) -> Iterator[tuple[str, list[Any]]]:
        for event in self.old.events("train"):
            for values in read_batches(self.old.batches(event["call"])):
                yield event["call"], values

    def training_batch(self, number: int) -> tuple[str, list[Any]] | None:
        """Returns the call and the arrays of a recorded training batch that no step has had yet; None after the last one.

        Args:
            number: Number of the step that has it, from 0. A dataset may be read ahead of the steps, and again after it.
        """
        with self._reading:  # a dataset of the loop before may still read ahead, in a thread of its own
            for past in [kept for kept in self._ahead if kept < self.index]:
                del self._ahead[past]
            while self._read <= number and (batch := next(self._training, None)):
                if self._read >= self.index:
                    self._ahead[self._read] = batch
                self._read += 1
            return self._ahead.get(number)

    def following_batches(self) -> Callable[[], tuple[str, list[Any]] | None]:
        """Returns a function that returns the recorded batch of the next step, then that of the step after it, and so on."""
        numbers = itertools.count(self.index)
        return lambda: self.training_batch(next(numbers))

    def structure(self, call: str) -> Sequence[Leaf]:
        """Returns the description of a call's recorded tensors."""
        return self._structures.get(call, ())

    def has_rows(self, call: str, rows: int | None) -> bool:
        """Returns True if the static shapes of all batches of a recorded call, or of all trainings, are known, and some have a first size.

        It is the number of rows, or another one if a script moved the rows to the end, as for TPUs.
        """
        calls = [event["call"] for event in self.old.events("train")] if call == CALL else [call]
        found = [self._rows.get(one, {None}) for one in calls]
        return rows is not None and all(rows in sizes and None not in sizes for sizes in found)

    def fed(self, own: Any, spec: Any, recorded: tuple[str, list[Any]] | None) -> Any:
        """Returns a recorded batch in the new script's structure; the script's own batch after the last recorded one."""
        if recorded is None:
            return own
        call, values = recorded
        batch = self.feeder.batch(values, self.structure(call), spec, isinstance(spec, tuple), own)
        if own is not None and call.startswith("train"):
            number = next((number for number, kept in self._ahead.items() if kept is recorded), self.index)
            self._own[number] = own, batch
        if not self._has_shapes:
            self._has_shapes = True
            arrays = tf.nest.flatten(batch, expand_composites=True)
            leaves = leaves_of(tf.nest.map_structure(np.asarray, batch), isinstance(batch, tuple))
            shapes = {leaf.path: np.asarray(value).shape for leaf, value in zip(leaves, arrays, strict=False)}
            self.trace.write("shapes", shapes=shapes)
        return batch

    def held_out(self, own: Iterable[Any], spec: Any, call: str, following: Callable[[], Any]) -> Iterator[Any]:
        """Yields the recorded batches of an evaluation or prediction beside the script's own batches.

        Args:
            own: The script's own batches.
            spec: Structure of the script's own batches.
            call: Name of the recorded call.
            following: Function that returns the next recorded batch, and None after the last one.
        """
        return itertools.chain.from_iterable(map(self.begin_held_out(spec, call, following).beside, own))

    def begin_held_out(self, spec: Any, call: str, following: Callable[[], Any]) -> HeldOut:
        """Returns the recorded batches of an evaluation or prediction; see ``held_out``."""
        looks = call in self._whole and not self.plan.adapt
        return HeldOut(lambda own, recorded: self.fed(own, spec, recorded), call, following, self.inputs if looks else None)

    def _write_own(self) -> None:
        """Compares the batch of the script's own input at the last step with the recorded one; none that was only read ahead."""
        own, batch = self._own.pop(self.index - 1, (None, None))
        if own is None:
            return
        self.inputs.add(own, batch)
        if self.plan.adapt or self._own_batches == FIRST_BATCHES:
            return
        self._own_batches += 1
        sides = [[np.asarray(value) for value in tf.nest.flatten(side, expand_composites=True)] for side in (own, batch)]
        found = [rows_of(side) for side in sides]
        self.trace.write("own batch", rows=[rows for rows, _ in found], digests=[sum(digests) for _, digests in found])
        self.inputs.add_training(own, batch)

    def write_order(self, own: Any = None, is_shuffled: bool = False) -> None:
        """Writes if the script shuffles its own training data.

        Args:
            own: Dataset of the script; None for batches that it makes itself.
            is_shuffled: True if the training shuffles the dataset's rows.
        """
        of_dataset = False if own is None else dataset_shuffles(own)
        shuffles = any_shuffles(is_shuffled, of_dataset, None if draws_rows() else False)
        if (shuffles, is_shuffled) not in self._orders:
            self._orders.append((shuffles, is_shuffled))
            self.trace.write("input", shuffles=shuffles, by_fit=is_shuffled)

    def fits(self, spec: Any) -> bool:
        """Returns True if recorded training batches fit the structure of a dataset."""
        try:
            self._check_training(spec)
        except BridgeError:
            return False
        return True

    def refuse_batches(self, spec: Any) -> None:
        """Raises BridgeError if recorded training batches do not fit the structure of a dataset on which the script trains."""
        self._check_training(spec)

    def _check_training(self, spec: Any) -> None:
        batch = self.training_batch(self.index)
        if batch is not None:
            self.fed(None, spec, batch)

    def next_prediction(self) -> str | None:
        """Returns the old script's next prediction; None after the last one, and in the midst of a step at which it made none."""
        steps, found = 0, []
        for event in self.old.events("step", "predicted"):
            steps += event["event"] == "step"
            found += [(event["call"], steps)] if event["event"] == "predicted" else []
        call, at = found[self.predicted] if self.predicted < len(found) else (None, self.index)
        return None if self.in_step and at != self.index else call

    def evaluation(self, spec: Any, own: Iterable[Any] = ()) -> dict[str, Any] | None:
        """Returns the old script's next evaluation at this step, whose batches fit the structure of a dataset; None without one.

        Of several, the first one with a row of the script's own first batch is the next.

        Args:
            spec: Structure of the script's own batches.
            own: These batches; empty if they can be read only once.

        Raises:
            BridgeError: There is one, but its batches do not fit.
        """
        step = self._start + self.index
        found = [event for event in self.old.events("evaluated") if int(event["metrics"].get("global_step", step)) == step]
        left = [event for event in found if event["call"] not in self._evaluated]
        if not left:
            if self._is_repeated and self.is_over:  # an evaluation as this one has ended the old script
                raise SystemExit(0)
            return None
        first = next(iter(own), None) if len(left) > 1 else None
        rows = () if first is None else set(rounded_rows(first[0] if isinstance(first, tuple) else first))
        chosen = next((event for event in left if rows and rows & self._rows_of(event["call"], spec)), left[0])
        self.check(spec, chosen["call"])
        return chosen

    def _rows_of(self, call: str, spec: Any) -> set[int]:
        """Returns the digests of the features of a recorded call's rows in a structure; none if they do not fit."""
        with contextlib.suppress(BridgeError):
            batches = (self.fed(None, spec, (call, values)) for values in read_batches(self.old.batches(call)))
            features = (batch[0] if isinstance(batch, tuple) else batch for batch in batches)
            return {row for batch in features for row in rounded_rows(batch)}
        return set()

    def evaluated(
        self, event: dict[str, Any], metrics: dict[str, float], batches: int | None, is_validation: bool = False
    ) -> None:
        """Writes an evaluation; that of ``fit(validation_data=...)`` only if no call of its own follows at the same step.

        Args:
            event: The old script's evaluation.
            metrics: Metrics of the new script's.
            batches: Number of batches that it read; None if that is not known.
            is_validation: True for an evaluation of fit.
        """
        call = event["call"]
        recorded = sum(1 for _ in read_batches(self.old.batches(call)))
        batches = recorded if batches is None else batches
        written = {"name": event["name"], "metrics": metrics | {"global_step": event["metrics"].get("global_step", 0)}}
        written["batches"] = recorded, batches
        if is_validation:
            self._validated = {"call": call, **written}
            return
        self._validated = {}
        self._evaluated.add(call)
        self.trace.write("evaluated", call=call, **written)
        if batches > recorded:
            self.trace.write("excess", what=call, old=recorded, new=batches)

    def write_validation(self) -> None:
        """Writes the evaluation of ``fit(validation_data=...)`` that no other one has followed."""
        event, self._validated = self._validated, {}
        if event:
            self._evaluated.add(event["call"])
            self.trace.write("evaluated", **event)

    def exported(self, folder: str) -> None:
        """Records a SavedModel of the new script if it may be the counterpart of one that the old script wrote after as many steps."""
        if self.in_step or self.weights is None or self.index not in self._export_steps:
            return
        try:
            keep_export(self.trace, f"export-{self._exported}", folder)
        except OSError as error:  # e.g., it is on another file system than the system's
            self.note(f"The new script's export {folder} could not be read: {error}")
        self._exported += 1

    def check(self, spec: Any, call: str) -> None:
        """Raises BridgeError if a call's batches do not fit; called before TensorFlow reads them in a thread of its own."""
        if not self.structure(call) or self.plan.adapt:
            return
        pair(self.structure(call), leaves_of(spec, isinstance(spec, tuple)), lambda note: None)  # own batches decide it later
        is_later = call == CALL and self.index  # further batches of the training, perhaps none
        for values in itertools.islice(read_batches(self.old.batches(call)), 0 if is_later else 1):
            self.feeder.batch(values, self.structure(call), spec, isinstance(spec, tuple))

    @property
    def has_started(self) -> bool:
        """True if a step has ended whose variables had the old script's values before."""
        return bool(self.index) and self.weights is not None

    def start(
        self, models: Sequence[Any], optimizers: Sequence[Any], features: Any, batch: Any = None, *, trains: bool = False
    ) -> None:
        """Gives models and optimizers the old script's initial values, until the first step has ended.

        A model that is made anew to go on with the training gets the old script's values at this step, and its own are compared with them.

        Args:
            models: Models of the new script.
            optimizers: Their optimizers.
            features: Features of a batch, with which a model is called that has no variables.
            batch: The batch for a model whose own training step makes them; None if it may not be traced.
            trains: True before a training step of the models.
        """
        if self.has_started:
            if trains and not self.is_over and not any(model is known for model in models for known in self.models):
                self._going_on = models, optimizers, features, batch
            return
        given = [id(variable) for thing in [*models, *optimizers] for variable in variables_of(thing)]
        if self.weights is not None and given == self._given:
            return
        weights = self._weights_of(models, optimizers, features, batch)
        self.models, self.optimizers = list(models), list(optimizers)
        if weights is None:
            return
        self.weights = weights
        calls = [event["call"] for event in self.old.events("step")]
        if not calls:
            calls = [event["call"] for event in self.old.events("train")]
        if calls:
            self._give_back(self.old.values(calls[0], "initial"), 0)
        self._given = [id(variable) for thing in [*models, *optimizers] for variable in variables_of(thing)]

    def _weights_of(self, models: Sequence[Any], optimizers: Sequence[Any], features: Any, batch: Any) -> Weights | None:
        """Returns the variables of models and optimizers, which it makes; None if none of the models can be built with a batch."""
        _ = self.step  # made before the graphs of the model, which else would have it among their variables
        for model in models:
            if not getattr(model, "built", True) and id(model) not in self._unbuilt:
                self._build(model, features, batch)
        waiting = [model for model in models if id(model) in self._unbuilt]
        if waiting and len(waiting) == len(models):
            return None
        if len(optimizers) == 1 and not waiting:
            build_optimizer(optimizers[0], [variable for model in models for variable in model.trainable_variables])
        described: dict[str, Any] = next(self.old.events("variables"), {"variables": []})
        return Weights(self.trace.folder / "values", self.plan, models, optimizers, self.note, described)

    def _go_on(self, models: Sequence[Any], optimizers: Sequence[Any], features: Any, batch: Any) -> None:
        """Puts models that go on with the training in the place of those before, if they have the same variables."""
        weights = self._weights_of(models, optimizers, features, batch)
        if weights is None:
            raise BridgeError(
                f"The new script makes another model after step {self.index}, whose variables are not known before its training.",
                expected="a model that a batch builds",
                fix="Train on with the same model, or build the new one in the script before it trains.",
            )
        if self.weights is None or not weights.is_like(self.weights):
            return  # another part of the training, e.g. the other model of a GAN
        self.models, self.optimizers, self.weights = list(models), list(optimizers), weights
        if self.plan.is_free:
            return
        if self.index not in self._anchors:
            raise BridgeError(
                f"The new script makes another model after step {self.index}, at which no values of the old script were kept.",
                expected="values of the old script at each step after which the new one makes a model",
                fix="Give --anchor 1, with an --anchor-limit that all values fit in.",
            )
        like, name = weights.write(f"again-{self.index}"), f"given-{self.index}"
        own = [int(optimizer.iterations.numpy()) for optimizer in optimizers]
        report = weights.give_back(self._anchors[self.index], like, name)
        lost = weights.changed(report, like, name)
        now = [int(optimizer.iterations.numpy()) for optimizer in optimizers]
        if any(map(_reads_count, optimizers)) and own != now:
            lost.append("the number of updates")
        if lost:
            self.trace.write("lost", step=self._start + self.index, variables=lost)

    def _build(self, model: Any, features: Any, batch: Any) -> None:
        """Makes the variables of a model that has none by its own training step, as ``fit`` does, or by a call; if both fail, the script's own call is awaited."""
        # A model of graphs that convert source has printed runs its hooks eagerly, but makes its variables in a graph.
        is_eager = self.plan.runs_eagerly or (getattr(model, "run_eagerly", False) and not hasattr(model, "model_fn"))
        if not is_eager and self._is_built_by_step(model, batch):
            return
        in_graph = tf.function(lambda batch: model(batch, training=False)).get_concrete_function
        try:
            try:
                if is_eager:  # a graph that fails on its way would leave variables without values
                    model(features, training=False)
                else:
                    in_graph(tf.nest.map_structure(spec_of_value, features))
            except Exception:  # noqa: BLE001 -- of the script's own code, which perhaps only runs eagerly
                model(features, training=False)
        except Exception as error:  # noqa: BLE001 -- of the script's own code
            self._unbuilt[id(model)] = BridgeError(
                f"The new script's model {model.name} has no variables before its training, and a call with a batch fails.",
                received=f"{type(error).__name__}: {error}",
                fix="Call or build the model in the script before it trains.",
            )

    def _is_built_by_step(self, model: Any, batch: Any) -> bool:
        """Returns True if a training step of a model's own makes its variables where it is traced with a batch."""
        own = next((one for one in type(model).__mro__ if "train_step" in vars(one)), None)
        if batch is None or own is None or own.__module__.split(".")[0] in ("keras", "tf_keras"):
            return False
        self._is_building = True
        try:
            tf.function(model.train_step).get_concrete_function(tf.nest.map_structure(spec_of_value, batch))
        except Exception:  # noqa: BLE001 -- of the script's own code, which perhaps only runs eagerly
            return False
        finally:
            self._is_building = False
        return bool(model.trainable_variables)

    def awaits(self, model: Any) -> bool:
        """Returns True if the script's first call of a model makes variables that get the old script's values."""
        return id(model) in self._unbuilt

    def built(self, model: Any) -> None:
        """Gives a model that has its variables now the old script's values."""
        del self._unbuilt[id(model)]
        self.start(self.models, self.optimizers, None)

    def check_start(self) -> None:
        """Raises BridgeError if a step has trained with variables that have no values of the old script."""
        if self.weights is None and self._unbuilt:
            raise next(iter(self._unbuilt.values()))

    def _give_back(self, prefix: str, index: int) -> None:
        assert self.weights
        like = self.weights.write(f"at-{index}")
        report = self.weights.give_back(prefix, like, f"anchor-{index}", () if index else self._set)
        if index == 0:
            trained = [self.name_of(variable) for model in self.models for variable in model.trainable_variables]
            self.trace.write(
                "paired",
                matches=[[match.source, match.target, match.how] for match in report.matches],
                slots=[[slot.source, slot.target, slot.note] for slot in report.slots],
                unmatched_old=report.unmatched_sources,
                unmatched_new=report.unmatched_targets,
                trainable=trained,
                warnings=report.warnings,
            )

    def end(self) -> None:
        """Writes the values at the end of the script."""
        if self.weights is not None and not self.plan.is_free:
            self.weights.write(f"end-{self.index}")

    def begin_step(self, batch: Any = None) -> None:
        """Begins a training step.

        Args:
            batch: Its batch, if it is known.
        """
        self.write_validation()
        if self.is_over:
            raise SystemExit(0)
        if self._going_on is not None:  # the script's callbacks may have loaded its values since
            given, self._going_on = self._going_on, None
            self._go_on(*given)
        dropout.begin_step()
        self._losses = []
        self._active = True
        self.step.assign(self._start + self.index)
        if self.plan.looks:
            tensors = [] if batch is None else tf.nest.flatten(batch, expand_composites=True)
            names = [leaf.path for leaf in leaves_of(batch, isinstance(batch, tuple))] if tensors else []
            self._eager = EagerPass(zip(tensors, names, strict=True))

    @property
    def is_over(self) -> bool:
        """True if no training step may follow: --steps, Ctrl-C or a second model ended the recording, or the first step was all."""
        return self.index >= (1 if self.plan.looks else self._length if self._is_limited else math.inf)

    @property
    def skips_training(self) -> bool:
        """True if the script goes on without further training steps, for what follows its training is compared, too."""
        return self.is_over and self.index > 0 and not self.plan.looks

    @property
    def in_step(self) -> bool:
        """True between the begin and the end of a step."""
        return self._active

    def has_trained(self) -> bool:
        """Returns True if the step has asked a tape for gradients."""
        return bool(self._losses)

    def end_step(self) -> None:
        """Ends a training step: writes its loss, and gives the old script's values back if it has an anchor."""
        self._active = False
        if self._eager:
            self._eager.end()
            self._eager = None
        self._check_end()
        losses, self._losses = self._losses, []
        if not losses:
            return
        self.index += 1
        self._write_own()
        self.end_on_batch()
        if len(set(losses)) > 1:
            self.note("A step asks tapes for gradients of several losses; the first of them is compared.")
        used = [optimizer for optimizer in self.optimizers if id(optimizer) in self._updated] or self.optimizers
        counted = [int(optimizer.iterations.numpy()) for optimizer in used]
        self.trace.write("step", call=CALL, step=self._start + self.index, loss=losses[0], iterations=counted)
        if self.index == 1:
            for forward in reversed(self._forward):
                forward.write(self.trace.folder / "values")
        self._write_rates(list(map(self._rate, used)))
        if self.index <= FIRST_STEPS:
            self._write_first(list(map(self._describe, used)))
        if self.weights is not None and self.index in self._anchors and not self.plan.is_free:
            self._give_back(self._anchors[self.index], self.index)

    def _write_rates(self, rates: list[Any]) -> None:
        if rates != self._rates:
            self._rates = rates
            self.trace.write("rates", index=self.index, rates=rates)

    def _write_first(self, described: list[Any]) -> None:
        for what, values in self._kept.items():
            np.savez(self.trace.folder / "values" / f"{what}-{self.index}.npz", **_dense(values))
        self._kept = {"gradients": {}, "applied": {}}
        self.trace.write("optimizers", index=self.index, optimizers=described)
        if self.index == 1 and (eager := dropout.eager_sites()):
            dropout.write_sites(self.trace, [*self._sites, *eager], self._uncounted)

    def _describe(self, optimizer: Any) -> dict[str, Any]:
        found = self._configured(optimizer)
        found |= {name: float(value) for name in _NUMBERS if (value := _number(optimizer, name)) is not None}
        if (rate := self._rate(optimizer)) is not None:
            found["learning_rate"] = rate
        family = "legacy" if "legacy" in type(optimizer).__module__ else "new"
        return {
            "name": type(optimizer).__name__,
            "family": family,
            "hyperparameters": found,
            "iterations": int(optimizer.iterations.numpy()),
            "variables": self._updated.get(id(optimizer), []),
        }

    def _rate(self, optimizer: Any) -> float | None:
        """Returns the learning rate of an optimizer's last update, else that which it has."""
        if id(optimizer) in self._applied_rates:
            return self._applied_rates[id(optimizer)]
        value = _number(optimizer, "learning_rate")
        return self._configured(optimizer).get("learning_rate") if value is None else float(value)

    def _configured(self, optimizer: Any) -> dict[str, float]:
        """Returns the numbers that an optimizer of the script's own has in its configuration alone."""
        if id(optimizer) not in self._configurations:
            try:
                config = optimizer.get_config()
            except Exception:  # noqa: BLE001 -- of the script's own code; then its numbers are not compared, only what it does
                config = {}
            numbers = {name: value for name, value in config.items() if name in _NUMBERS and isinstance(value, (int, float))}
            self._configurations[id(optimizer)] = numbers
        return dict(self._configurations[id(optimizer)])

    def _check_end(self) -> None:
        """Ends the script if it has trained after the last step."""
        if self.is_over and self._losses:
            raise SystemExit(0)

    def record_loss(self, loss: Any) -> None:
        """Keeps the loss whose gradients a tape computed."""
        if self._active or self.is_over:
            self._losses.append(float(np.sum(np.asarray(loss))))

    def record_values(self, what: str, names: Callable[[], Sequence[str]], tensors: Sequence[Any]) -> None:
        """Keeps gradients of one of the first steps; in a graph, it adds an operation that does so.

        Args:
            what: "gradients" that a tape computed, or those "applied" by an optimizer.
            names: Function that returns the names of the variables, which the first step decides.
            tensors: Gradients; tensors or IndexedSlices.
        """

        def keep(*values: Any) -> np.int32:
            if self._active and self.index < FIRST_STEPS:
                self._kept[what].update(zip(names(), (np.array(value) for value in values), strict=True))
            return np.int32(0)

        def write() -> Any:  # returns what it executes, since a wrapped graph leaves out all else
            return tf.numpy_function(keep, [tf.convert_to_tensor(tensor) for tensor in tensors], tf.int32, stateful=True)

        if not tf.executing_eagerly():
            tf.cond(self.step < self._start + FIRST_STEPS, write, lambda: tf.constant(0))
        elif self.index < FIRST_STEPS:
            keep(*(tf.convert_to_tensor(tensor).numpy() for tensor in tensors))

    def name_of(self, variable: Any) -> str:
        """Returns the name under which a variable is recorded."""
        return self.weights.name_of(variable) if self.weights else str(variable.name.partition(":")[0])

    @property
    def _is_traced_in_vain(self) -> bool:
        """True in a function that is traced for its variables alone, but for graphs that the model keeps."""
        return self._is_building and not is_wrapped(tf.compat.v1.get_default_graph())

    def ask(self, variables: Sequence[Any], tensors: Sequence[Any]) -> None:
        """Records gradients that a tape computed."""
        if self._is_traced_in_vain:
            return

        def names() -> list[str]:
            return list(map(self.name_of, variables))

        self._asked.update(zip(names(), map(source, tensors), strict=True))
        self.record_values("gradients", names, tensors)

    def apply(self, optimizer: Any, names: Sequence[str], tensors: Sequence[Any]) -> None:
        """Records gradients that an optimizer applies, and whether they are those of a tape."""
        if self._is_traced_in_vain:
            return
        rate = optimizer._decayed_lr(tf.float32) if hasattr(optimizer, "_decayed_lr") else optimizer.learning_rate

        def keep(value: Any) -> None:
            self._applied_rates[id(optimizer)] = float(value)

        if tf.executing_eagerly():
            keep(tf.convert_to_tensor(rate))
        else:
            tf.numpy_function(keep, [rate], [], stateful=True)
        self._updated[id(optimizer)] = list(dict.fromkeys([*self._updated.get(id(optimizer), []), *names]))
        if not tf.executing_eagerly():
            dense = [pair for pair in zip(names, tensors, strict=True) if tf.is_tensor(pair[1])]
            changed = [name for name, tensor in dense if name in self._asked and self._asked[name] is not source(tensor)]
            self.trace.write("applied", changed=changed, known=bool(dense))
        self.record_values("applied", lambda: names, tensors)

    def look_at_step(self, loss: Any, variables: Sequence[Any]) -> None:
        """Looks at what the forward pass of a step that runs eagerly has computed; only of the first loss whose gradients it asks for."""
        if self._eager and self._active and not self._losses:
            names = {id(variable.handle): self.name_of(variable) for variable in variables}
            self._eager.write(self.trace.folder / "values", loss, names)

    def look_at_graph(self, graph: Any, loss: Any) -> None:
        """Writes the random operations and the dropout of a training step's graph, and looks at what its forward pass computes."""
        if self._is_traced_in_vain:
            return
        if self.plan.looks:
            self._forward.append(ForwardPass(loss, (op for op in graph.get_operations() if "gradient_tape" not in op.name)))
            self._forward[-1].look()
        outer = dropout.outermost(graph)
        in_graph = [op.name for op in outer.get_operations() if op.type in STATEFUL_RANDOM]
        self.trace.write("random", in_step=in_graph, functions=[])
        self.trace.write("graph", **graph_facts(op for op in outer.get_operations() if "gradient_tape" not in op.name))
        self._sites = dropout.needed_sites(graph, loss, self.old_sites, self.weights.old_names if self.weights else {})
        self._uncounted = [name for name, _ in dropout.refused.get(outer, [])]
        dropout.write_sites(self.trace, self._sites, self._uncounted)


def _reads_count(optimizer: Any) -> bool:
    """Returns True if the number of updates changes what an optimizer does: it has a schedule or bias corrections."""
    rate = getattr(optimizer, "_learning_rate", None)
    rate = getattr(optimizer, "learning_rate", None) if rate is None else rate
    is_schedule = callable(rate) and not isinstance(rate, tf.Variable)
    hyper = getattr(optimizer, "_hyper", {}).get("learning_rate")
    return is_schedule or (callable(hyper) and not isinstance(hyper, tf.Variable)) or "dam" in type(optimizer).__name__


def is_wrapped(graph: Any) -> bool:
    """Returns True for a graph of ``tf.compat.v1.wrap_function``, which only executes what is asked of it, and is no trace that is made anew."""
    return "wrapped_function" in getattr(graph, "name", "")


def spec_of_value(value: Any) -> Any:
    """Returns the type of a tensor or an array; anything else as it is."""
    value = tf.convert_to_tensor(value) if isinstance(value, np.ndarray) else value
    return tf.type_spec_from_value(value) if tf.is_tensor(value) else value


def variables_of(thing: Any) -> list[Any]:
    """Returns the variables that a model, module or optimizer has so far."""
    try:
        found = thing.variables
    except ValueError:  # a model that has none yet
        return []
    return list(found() if callable(found) else found)


def _number(optimizer: Any, name: str) -> float | None:
    value: Any = getattr(optimizer, name, None)
    value = getattr(optimizer, f"_{name}", None) if value is None else value
    if name == "learning_rate" and callable(getattr(optimizer, "_learning_rate", None)) and not isinstance(value, tf.Variable):
        value = optimizer._learning_rate
    if isinstance(value, tf.Variable):
        return float(value.numpy())
    if callable(value):  # a schedule: the rate of the step that has just ended
        return float(value(max(int(optimizer.iterations.numpy()) - 1, 0)))
    return float(value) if isinstance(value, (int, float)) or (tf.is_tensor(value) and not value.shape.rank) else None


def _dense(gradients: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("/", "|"): value for name, value in gradients.items()}


def lockstep(session: Session, own: Any, begin: Callable[[], Callable[[], Any]], what: str) -> Any:
    """Returns a dataset as long as the script's own, with recorded batches; those of an evaluation or prediction may have another size.

    Args:
        session: Session.
        own: The script's dataset.
        begin: Function that is called when the dataset is read from its begin; it returns one that returns the next recorded batch.
        what: Name of the recorded call, or of the first one if there are several.
    """
    spec = own.element_spec

    def loose(leaf: Any) -> Any:
        if isinstance(leaf, tf.SparseTensorSpec):
            return tf.SparseTensorSpec([None, *leaf.shape[1:]] if leaf.shape.rank else leaf.shape, leaf.dtype)
        if not isinstance(leaf, tf.TensorSpec):  # e.g. of ragged tensors, whose rows vary anyway
            return leaf
        rows = leaf.shape[0] if leaf.shape.rank and session.has_rows(what, leaf.shape[0]) else None
        return tf.TensorSpec([rows, *leaf.shape[1:]] if leaf.shape.rank else leaf.shape, leaf.dtype)

    def batches() -> Iterator[Any]:
        following = begin()
        if what != CALL:
            yield from session.held_out(own, spec, what, following)
        else:
            for batch in own:
                yield session.fed(batch, spec, following())
        session.inputs.read_whole(what)

    session.check(spec, what)
    made = tf.data.Dataset.from_generator(batches, output_signature=tf.nest.map_structure(loose, spec))
    size = own.cardinality()
    is_known = int(size) == tf.data.INFINITE_CARDINALITY or (what == CALL and int(size) != tf.data.UNKNOWN_CARDINALITY)
    return made.apply(tf.data.experimental.assert_cardinality(size)) if is_known else made


def recorded(session: Session, call: str) -> Callable[[], Callable[[], Any]]:
    """Returns a function for ``lockstep`` that begins with the first batch of a recorded call."""

    def begin() -> Callable[[], Any]:
        values = read_batches(session.old.batches(call))
        return functools.partial(next, ((call, batch) for batch in values), None)

    return begin
