"""``convert``: one call from a checkpoint, a Keras file or a SavedModel to another."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

from estimator_bridge.compat.checkpoint.conversion import edits
from estimator_bridge.compat.checkpoint.conversion.outputs import write
from estimator_bridge.compat.checkpoint.conversion.sides import Sides, open_sides
from estimator_bridge.compat.checkpoint.conversion.to_names import ToNames
from estimator_bridge.compat.checkpoint.conversion.to_objects import ToObjects
from estimator_bridge.compat.checkpoint.conversion.transfer import copy_of
from estimator_bridge.compat.checkpoint.errors import NamingError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.models import named_graph
from estimator_bridge.compat.checkpoint.models.object_graph import ObjectModel, read_graph, read_object_model
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH, SAVE_COUNTER, is_object
from estimator_bridge.compat.checkpoint.optimizers.hyperparameters import check_learning_rate
from estimator_bridge.compat.checkpoint.reading import tensors, values
from estimator_bridge.compat.checkpoint.recurrent.exchange import as_cells, as_layers
from estimator_bridge.compat.checkpoint.request import ConversionReport, ConversionRequest, check_target
from estimator_bridge.compat.checkpoint.writing.draft import Draft

_P = ParamSpec("_P")


def _unpacking(
    request: Callable[_P, ConversionRequest],
) -> Callable[[Callable[[ConversionRequest], ConversionReport]], Callable[_P, ConversionReport]]:
    """Lets a function of a request take the request's attributes as arguments of its own, with their types."""

    def decorate(function: Callable[[ConversionRequest], ConversionReport]) -> Callable[_P, ConversionReport]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> ConversionReport:
            return function(request(*args, **kwargs))

        vars(call)["__signature__"] = inspect.signature(request).replace(return_annotation=ConversionReport)
        return call

    return decorate


@_unpacking(ConversionRequest)
def convert(request: ConversionRequest) -> ConversionReport:
    """Converts a checkpoint. The source is only read; the target appears whole or not at all.

    Args:
        request: Source, target and options; they are given as arguments, e.g. ``convert("old/m", "new/m", to="keras")``. All are
            described at ``ConversionRequest``.

    Returns:
        A report; its ``written`` is False if something is unmatched or ambiguous.

    Raises:
        CheckpointError: The target cannot be written, or the request contradicts itself.
        CorruptError: The source is damaged.

    Example:
        >>> import tempfile
        >>> from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     old = write_tensors(f"{folder}/old/model.ckpt-7", {"scope/w": [1.0, 2.0], "global_step": 7})
        ...     report = convert(old, f"{folder}/new/model.ckpt-7", to="name-based", rename=[("^scope/", "tower/")])
        >>> report.renamed, report.written
        (1, True)
    """
    check_target(Path(request.target), request.to)
    check_learning_rate(request.learning_rate)
    with open_sides(request) as sides:
        for checkpoint in filter(None, (sides.source, sides.old, sides.objects.index if sides.objects else None)):
            values.check_shards(checkpoint)
        report = ConversionReport(
            str(request.source), str(request.target), request.to, warnings=[*sides.notes], allowed=request.allow_unmatched
        )
        draft = _Conversion(sides, report).draft()
        if request.forget_bias and not report.layouts:
            raise NamingError(
                "No LSTM cell is converted.",
                received=f"forget_bias={list(request.forget_bias)}",
                fix="Leave --forget-bias out.",
            )
        if report.complete and not request.dry_run:
            published = write(draft, sides, bool(report.unmatched_targets))
            report.written, report.unchanged, report.sharing = True, published.unchanged, published.sharing
    return report


@dataclasses.dataclass(frozen=True)
class _Conversion:
    """Makes the draft of the target, with the names of either side, and fills in the report."""

    sides: Sides
    report: ConversionReport

    def draft(self) -> Draft:
        """Returns the draft of the target."""
        request, draft = self.sides.request, Draft(self.sides.source)
        if (request.swap_averages or request.use_averages) and request.to != "name-based":
            self._check_graph_is_rewritten(draft)
        edits.drop(draft, request.drop)
        if request.swap_averages:
            edits.swap_averages(draft)
        if request.use_averages:
            edits.use_averages(draft)
        has_names = not all(map(is_object, draft.entries))
        if not has_names:
            self._add_names(draft)
        self.report.renamed = edits.rename(draft, request.rename)
        edits.partition(draft, request.partition)
        self._check_learning_rate_is_used(has_names)
        if request.to != "name-based":
            self._add_objects(draft, has_names)
        elif has_names:
            self._report_missing(draft, self.report)
        if request.to != "bilingual":
            edits.keep(draft, objects=not request.writes_names)
        return draft

    def _add_names(self, draft: Draft) -> None:
        """Adds TF1's names to an object-based draft.

        If the target has no such names and there is no checkpoint of the old graph, the names only lead to another object graph:
        names that are missing are then reported for that graph only.
        """
        model = read_object_model(self.sides.source)
        final = self.sides.request.writes_names or self.sides.old is not None
        report = self.report if final else dataclasses.replace(self.report, unmatched_targets=[])
        if named_graph.is_named(model.nodes):
            named_graph.add_names(draft, model.nodes)
        else:
            request = self.sides.request if final else dataclasses.replace(self.sides.request, given=None)
            with as_cells(draft, model, self.sides.old, report, request) as (laid_out, old, given):
                ToNames(draft, laid_out, report, request, old, final).run(given)
        self._report_missing(draft, report)

    def _report_missing(self, draft: Draft, report: ConversionReport) -> None:
        """Reports each name of the old graph that the draft lacks or has with another shape or dtype."""
        reported = {*report.unmatched_targets, *report.ambiguous}
        for name, old in sorted(self.sides.old.entries.items()) if self.sides.old else ():
            new = draft.entries.get(name)
            same = new is not None and (new.shape, new.dtype) == (old.shape, old.dtype)
            if not same and name not in reported and not is_object(name):
                report.unmatched_targets.append(name)

    def _check_graph_is_rewritten(self, draft: Draft) -> None:
        """Refuses averages if the source's object graph is kept: it would go on with the values of the variables."""
        if self.sides.objects is None and self._has_foreign_graph(draft):
            raise UnsupportedError(
                "The checkpoint's own object graph would keep the values that it has.",
                received="moving averages, and no model whose object graph to write",
                fix="Name the model with --like, or convert --to name-based.",
            )

    def _check_learning_rate_is_used(self, has_names: bool) -> None:
        """Refuses a learning rate if all slots keep their names and so their values."""
        if has_names and self.sides.objects is None and self.sides.request.learning_rate is not None:
            raise UnsupportedError(
                "--learning-rate has no effect: no converted slot contains the learning rate.",
                received=f"{self.sides.request.learning_rate:g}, and no model",
                fix="Name the model with --like, or leave --learning-rate out.",
            )

    def _add_objects(self, draft: Draft, has_names: bool) -> None:
        """Adds the requested object graph, or that of the modern path's model if the source has no graph of its own."""
        model = self.sides.objects
        if model is None and self.sides.request.given:
            raise NamingError(
                "There is no model to map to.", received=", ".join(self.sides.request.given), fix="Name the model with --like."
            )
        if model is None and self._has_foreign_graph(draft):
            return
        edits.keep(draft, objects=False)
        if model is None:
            named_graph.add_objects(draft)
        else:
            self._add_model(draft, model, has_names)

    def _add_model(self, draft: Draft, model: ObjectModel, has_names: bool) -> None:
        report, request = self.report, self.sides.request
        own = self.sides.model.optimizer if self.sides.model else None
        with as_layers(draft, model, report, request) as (left, given):
            ToObjects(draft, left, report, request, of_keras=not has_names, own=own).run(given)
        if SAVE_COUNTER not in draft.entries and b"save_counter" in model.graph:
            draft.put(SAVE_COUNTER, tensors.number(1))
        missing = report.unmatched_targets
        if missing and self.sides.saved_model:  # the graph stays as it is, and needs every variable
            for name in model.index.entries.keys() & missing:
                draft.put(name, copy_of(model.index, name))
        elif missing:
            graph = trackable.encode(trackable.without(model.nodes, set(missing)))
            draft.put(OBJECT_GRAPH, tensors.of_strings([graph], ()))
        if model.flavour is None and report.slots:
            report.warnings.append(f"The model has no optimizer: {len(report.slots):,} slots are left out.")
        if self.sides.model and self.sides.model.stateless:
            report.leave_slots_out(self.sides.model.stateless)

    def _has_foreign_graph(self, draft: Draft) -> bool:
        """Returns True if the draft has an object graph other than that of the modern path's model, which is always made anew."""
        return OBJECT_GRAPH in draft.entries and not named_graph.is_named(read_graph(self.sides.source)[1])
