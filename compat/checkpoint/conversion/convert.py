"""``convert``: one call from a checkpoint, a Keras file or a SavedModel to another."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from estimator_bridge.compat.checkpoint.conversion import edits
from estimator_bridge.compat.checkpoint.conversion.outputs import write
from estimator_bridge.compat.checkpoint.conversion.sides import Sides, Wanted, opened_sides
from estimator_bridge.compat.checkpoint.conversion.to_names import ToNames
from estimator_bridge.compat.checkpoint.conversion.to_objects import ToObjects, copied
from estimator_bridge.compat.checkpoint.errors import NamingError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.models import named_graph
from estimator_bridge.compat.checkpoint.models.object_graph import read_graph, read_object_model
from estimator_bridge.compat.checkpoint.models.targets import Kind, check_target
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH, SAVE_COUNTER
from estimator_bridge.compat.checkpoint.optimizers.hyperparameters import check_learning_rate
from estimator_bridge.compat.checkpoint.reading import tensors, values
from estimator_bridge.compat.checkpoint.recurrent.exchange import as_cells, as_layers
from estimator_bridge.compat.checkpoint.recurrent.pairing import Wishes
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import Options
from estimator_bridge.compat.checkpoint.writing.report import ConversionReport


def convert(
    source: str | Path,
    target: str | Path,
    *,
    to: Kind = "bilingual",
    like: str | Path | Sequence[str | Path] | None = None,
    rename: Sequence[tuple[str, str]] = (),
    drop: Sequence[str] = (),
    partition: Sequence[tuple[str, int]] = (),
    use_averages: bool = False,
    swap_averages: bool = False,
    given: Mapping[str, str] | None = None,
    accept_order: bool = False,
    forget_bias: Sequence[tuple[str, float]] = (),
    allow_unmatched: bool = False,
    learning_rate: float | None = None,
    optimizer: str | None = None,
    optimizer_family: str | None = None,
    copy: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
) -> ConversionReport:
    """Converts a checkpoint; the source is only read, and the target is there whole or not at all.

    Args:
        source: what ``read_index`` takes, a V1 checkpoint, or a Keras file: .keras, .h5, .weights.h5.
        target: prefix of the new checkpoint; path of the file or folder where ``to`` is one of Keras' formats.
        to: what it is to be; "bilingual" is name-based and object-based at once, over the same data files.
        like: whose object graph or whose names to write, and what a file of weights is the weights of: a checkpoint of either
            kind, or a Keras model as a SavedModel, a .keras file, a config in JSON, or ``module:function``, which is called.
            Without one the object graph is that of the modern path's own model.
        rename: regular expressions and replacements, applied to TF1's names one after the other.
        drop: regular expressions of names to leave out.
        partition: regular expressions of variables and the number of their slices, 1 for whole; their slots follow.
        use_averages: give each variable the value of its ExponentialMovingAverage, as for serving.
        swap_averages: the source is what the ``swapping_saver`` of tf.contrib's MovingAverageOptimizer wrote, which calls averages
            as their variables and these as their averages.
        given: pairs of variables that matching need not find: name in TF1 -> key or name in Keras, whichever is the source.
        accept_order: pair what is left of one shape in order.
        forget_bias: regular expressions of scopes of LSTM cells and their forget_bias, where it is not TF1's default.
        allow_unmatched: write although some variables have no counterpart.
        learning_rate: for Momentum, whose Keras slot contains it; that of the object graph's optimizer by default.
        optimizer: TF1's name of it, where the slots of an object-based checkpoint do not tell.
        optimizer_family: "legacy" or "new", for tf_keras, where the model has no optimizer or one of the other family.
        copy: copy data files instead of linking them.
        overwrite: replace a checkpoint or file that is there.
        dry_run: write nothing.

    Returns:
        What was done; ``written`` is False when something is unmatched or ambiguous.

    Raises:
        CheckpointError: when the source is damaged, the target cannot be written, or the request contradicts itself.

    Example:
        >>> import tempfile
        >>> from estimator_bridge.compat.checkpoint.writing.small_checkpoints import write_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     old = write_tensors(f"{folder}/old/model.ckpt-7", {"scope/w": [1.0, 2.0], "global_step": 7})
        ...     report = convert(old, f"{folder}/new/model.ckpt-7", to="name-based", rename=[("^scope/", "tower/")])
        >>> report.renamed, report.written
        (1, True)
    """
    check_target(Path(target), to)
    check_learning_rate(learning_rate)
    report = ConversionReport(str(source), str(target), to, allowed=allow_unmatched)
    likes = [like] if isinstance(like, (str, Path)) else list(like or ())
    wanted = Wanted(to, optimizer_family, optimizer, learning_rate)
    with opened_sides(source, likes, wanted, report.warnings) as sides:
        for checkpoint in sides.checkpoints():
            values.check_shards(checkpoint)
        draft = Draft(sides.source)
        pairing = _Pairing(sides, report, Wishes(given or {}, accept_order, forget_bias), learning_rate, optimizer)
        if (swap_averages or use_averages) and to != "name-based":
            pairing.check_values_follow(draft)
        edits.drop(draft, drop)
        if swap_averages:
            edits.swap_averages(draft)
        if use_averages:
            edits.use_averages(draft)
        named = not all(map(edits.is_object, draft.entries))
        if not named:
            draft = pairing.with_names(draft, wanted=to in {"name-based", "bilingual"})
        report.renamed = edits.rename(draft, rename)
        edits.partition(draft, partition)
        pairing.check_learning_rate_used(named)
        if to == "name-based":
            pairing.keep_names(draft, named)
        else:
            pairing.add_objects(draft, named)
        if to not in {"name-based", "bilingual"}:
            edits.keep(draft, edits.is_object)
        if forget_bias and not report.layouts:
            raise NamingError("No LSTM cell is converted.", received=f"forget_bias={list(forget_bias)}")
        if report.complete and not dry_run:
            done = write(draft, Path(target), to, sides, Options(copy, overwrite), report)
            report.written, report.unchanged, report.sharing = True, done.unchanged, done.sharing
    return report


@dataclasses.dataclass(frozen=True)
class _Pairing:
    """Gives a draft the names of the other side."""

    sides: Sides
    report: ConversionReport
    wishes: Wishes
    learning_rate: float | None
    optimizer: str | None

    def with_names(self, draft: Draft, wanted: bool) -> Draft:
        """TF1's names; where they are only on the way to another object graph, what they lack is asked of that one."""
        model = read_object_model(self.sides.source)
        nodes = trackable.decode(model.graph)
        wanted = wanted or self.sides.old is not None
        report = self.report if wanted else dataclasses.replace(self.report, unmatched_targets=[])
        if named_graph.is_named(nodes):
            named_graph.add_names(draft, nodes)
        else:
            wishes = self.wishes if wanted else self.wishes._replace(given={})
            with as_cells(draft, model, self.sides.old, report, wishes) as (laid_out, old, given):
                names = ToNames(draft, laid_out, report, old, self.optimizer, self.learning_rate, passing=not wanted)
                names.run(given, wishes.accept_order)
        self.tell_missing(draft, report)
        return self.sides.stored(draft) if self.sides.objects else draft

    def keep_names(self, draft: Draft, named: bool) -> None:
        """TF1's names alone; those that the source had, and nobody has compared yet, have to be what the old graph asks for."""
        edits.keep(draft, lambda name: not edits.is_object(name))
        if named:
            self.tell_missing(draft, self.report)

    def tell_missing(self, draft: Draft, report: ConversionReport) -> None:
        """What the old graph will not find."""
        told = {*report.unmatched_targets, *report.ambiguous}
        for name, old in sorted(self.sides.old.entries.items()) if self.sides.old else ():
            new = draft.entries.get(name)
            same = new is not None and (new.shape, new.dtype) == (old.shape, old.dtype)
            if not same and name not in told and not edits.is_object(name):
                report.unmatched_targets.append(name)

    def check_values_follow(self, draft: Draft) -> None:
        """Averages change what TF1's names mean, and not what the names of an object graph do that is only kept."""
        if self.sides.objects is None and self._has_other_graph(draft):
            raise UnsupportedError(
                "The checkpoint's own object graph would keep the values that it has.",
                received="moving averages, and no model whose object graph to write",
                fix="Name the model with --like, or convert --to name-based.",
            )

    def check_learning_rate_used(self, named: bool) -> None:
        """Slots that keep their names keep their values."""
        if named and self.sides.objects is None and self.learning_rate is not None:
            raise UnsupportedError(
                "No slot is converted that a learning rate could scale.",
                received=f"{self.learning_rate:g}, and no model",
                fix="Name the model with --like, or leave --learning-rate out.",
            )

    def add_objects(self, draft: Draft, named: bool) -> None:
        """The object graph that was asked for; else the one that is there; else that of the modern path's model."""
        model = self.sides.objects
        if model is None and self.wishes.given:
            raise NamingError(
                "There is no model to map to.", received=", ".join(self.wishes.given), fix="Name the model with --like."
            )
        if model is None and self._has_other_graph(draft):
            return
        edits.keep(draft, lambda name: not edits.is_object(name))
        if model is None:
            named_graph.add_objects(draft)
            return
        with as_layers(draft, model, self.report, self.wishes) as (left, given):
            objects = ToObjects(draft, left, self.report, self.learning_rate, self.optimizer, of_keras=not named)
            objects.run(given, self.wishes.accept_order)
        if SAVE_COUNTER not in draft.entries and b"save_counter" in model.graph:
            draft.put(SAVE_COUNTER, tensors.int64(1))
        missing = self.report.unmatched_targets
        if missing and self.sides.saved_model:  # its graph stays as it is, and asks for every variable
            for name in model.index.entries.keys() & missing:
                draft.put(name, copied(model.index, name, model.index.entries[name]))
        elif missing:
            graph = trackable.encode(trackable.without(trackable.decode(model.graph), set(missing)))
            draft.put(OBJECT_GRAPH, tensors.of_strings([graph], ()))
        if model.flavour is None and self.report.slots:
            self.report.warnings.append(f"The model has no optimizer: {len(self.report.slots):,} slots are left out.")
        if self.sides.model and self.sides.model.stateless:
            self.report.leave_slots_out(self.sides.model.stateless)

    def _has_other_graph(self, draft: Draft) -> bool:
        """Whether there is a graph to keep; that of the modern path's model is made anew, names may have changed."""
        return OBJECT_GRAPH in draft.entries and not named_graph.is_named(trackable.decode(read_graph(self.sides.source)))
