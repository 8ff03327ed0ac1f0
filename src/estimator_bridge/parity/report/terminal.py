"""The report on the terminal: the verdict, then small tables that fit 80 columns."""

from collections.abc import Iterable, Sequence

import rich.box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from estimator_bridge.parity.report import spelling, summary
from estimator_bridge.parity.result import ParityResult, Verdict

STYLES: dict[Verdict, str] = {"equal": "bold green", "different": "bold red", "not comparable": "bold yellow"}
STYLES |= {"equivalent": "bold green", "not equivalent": "bold red", "not decided": "bold yellow"}
MOST_VARIABLES, MOST_METRICS, MOST_FINDINGS, MOST_NOTES = 10, 20, 10, 20
NAME_LENGTH, MESSAGE_LENGTH = 120, 600
INDENT = 2
NUMBERS = {
    "step",
    "legacy",
    "modern",
    "old",
    "new",
    "abs_diff",
    "rel_diff",
    "max abs_diff",
    "noise",
    "difference",
    "margin",
    "reference",
    "to reference",
}  # columns
OUTSIDE = Text("outside", style="red")
_IDENTICAL = "identical to the last bit"
_ROUNDING, _ONE_ROW = "by rounding between anchors", "by one row"


def print_report(result: ParityResult, console: Console) -> None:
    """Prints a comparison as compact tables.

    Args:
        result: Result of a comparison.
        console: Console to print to; colours are used only if it has them.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> import sys
        >>> from rich.console import Console
        >>> print_report(ParityResult((), "replay", "equal", Thresholds()), Console(file=sys.stdout, width=80))
        EQUAL. Nothing was trained in this comparison; in all else the modern path does
        what the legacy path does.
        No step, metric or variable was compared.
    """
    writer = _Writer(console, result)
    writer.verdict(result)
    writer.findings(result)
    writer.equivalence(result)
    writer.losses(result)
    writer.metrics(result)
    writer.predictions(result)
    writer.variables(result)
    if result.notes or result.seconds:
        console.print()
    writer.notes(result)
    if result.seconds:
        writer.line("Time", ", ".join(f"{side} {spelling.seconds(value)}" for side, value in result.seconds.items()))


class _Writer:
    def __init__(self, console: Console, result: ParityResult) -> None:
        self.console = console
        self.noise = summary.spell_noise(result)
        self.reference = summary.spell_reference(result)
        self.reference_column = ("reference",) if result.reference else ()
        self.to_reference_column = ("to reference",) if result.reference else ()
        self.noise_column = ("noise",) if result.noise else ()

    def verdict(self, result: ParityResult) -> None:
        sentence = summary.headline(result)
        self.console.print(Text.assemble((f"{result.verdict.upper()}. ", STYLES[result.verdict]), sentence))
        if not (result.losses or result.metrics or result.variables or result.equivalence):
            self.console.print("No step, metric or variable was compared.")

    def findings(self, result: ParityResult) -> None:
        if result.cause:
            self.row("cause", result.cause.step, result.cause.name.value, result.cause.seen)
            self.row("", None, "to change", result.cause.change)
        for index, finding in enumerate(result.findings[:MOST_FINDINGS]):
            is_cause = result.verdict == "different" and not result.cause
            label = "then" if index else "cause" if is_cause else "found"
            self.row(label, finding.step, finding.level, finding.message)
        self.more(len(result.findings) - MOST_FINDINGS, "finding")

    def equivalence(self, result: ParityResult) -> None:
        if not result.equivalence:
            return
        self.heading("Final metrics", "means over the seeds; equivalent when the interval lies within the margin")
        rows: list[tuple[RenderableType, ...]] = []
        for test in result.equivalence[:MOST_METRICS]:
            name, *values = summary.spell_equivalence(test)
            rows.append((self.name(name), *values))
        self.table(("metric", *result.sides, "difference", "90 % interval", "margin", ""), rows)
        self.more(len(result.equivalence) - MOST_METRICS, "metric")

    def losses(self, result: ParityResult) -> None:
        if not result.losses:
            return
        totals = summary.summarize(result)
        steps = spelling.count(totals.num_steps, "step")
        inside = f"{totals.num_steps - totals.num_steps_outside:,} of {steps} within"
        if summary.by_rounding(result, totals.num_steps_outside):
            inside += f", {totals.num_steps_outside:,} outside {_ROUNDING}"
        worst = (
            f"max abs_diff {spelling.difference(totals.max_abs_diff)}, max rel_diff {spelling.difference(totals.max_rel_diff)}"
        )
        self.heading("Loss", f"{inside}; {_IDENTICAL if summary.is_identical(result, 'loss') else worst}")
        chosen = summary.representative_steps(result)
        self.table(
            ("step", *self.reference_column, *result.sides, "abs_diff", "rel_diff", *self.noise_column, ""),
            (
                (
                    f"{point.step:,}",
                    *self.reference(point),
                    *summary.spell_pair(point, result.thresholds)[:4],
                    *self.noise(point),
                    reason,
                )
                for point, reason in chosen
            ),
        )

    def metrics(self, result: ParityResult) -> None:
        pairs, limits = summary.final_metrics(result.metrics), result.thresholds
        if not pairs:
            return
        rel, absolute = spelling.threshold(limits.rel), spelling.threshold(limits.abs)
        rule = f"equal when rel_diff <= {rel} or abs_diff <= {absolute}"
        identical = f"{spelling.count(len(result.metrics), 'value')}, {_IDENTICAL}"
        self.heading("Metrics", identical if summary.is_identical(result, "metric") else rule)
        rows: list[tuple[RenderableType, ...]] = []
        for pair in pairs[:MOST_METRICS]:
            *values, outside = summary.spell_pair(pair, limits)
            name = f"{pair.evaluation}/{pair.metric}" if pair.evaluation else pair.metric
            remark = _ONE_ROW if summary.by_rounding(result, outside) else OUTSIDE if outside else ""
            rows.append((self.name(name), *self.reference(pair), *values, *self.noise(pair), remark))
        self.table(("metric", *self.reference_column, *result.sides, "abs_diff", "rel_diff", *self.noise_column, ""), rows)
        self.more(len(pairs) - MOST_METRICS, "metric")

    def predictions(self, result: ParityResult) -> None:
        if not result.predictions:
            return
        ordered = summary.worst_predictions(result)
        num_outside = sum(not group.is_equal for group in ordered)
        differences = [group.max_abs_diff for group in ordered if group.max_abs_diff is not None]
        largest = f"max abs_diff {spelling.difference(max(differences, default=None))}"
        said = _IDENTICAL if summary.is_identical(result, "prediction") else largest
        self.heading("Predictions", f"{spelling.count(len(ordered), 'output')}, {num_outside:,} outside; {said}")
        rows: list[tuple[RenderableType, ...]] = []
        for group in ordered[:MOST_METRICS]:
            name, value = f"{group.call}/{group.name or 'prediction'}", spelling.difference(group.max_abs_diff)
            remark = "" if group.is_equal else OUTSIDE
            rows.append((self.name(name), value, *self.reference(group), *self.noise(group), remark))
        self.table(("output", "max abs_diff", *self.to_reference_column, *self.noise_column, ""), rows)
        self.more(len(ordered) - MOST_METRICS, "output")

    def variables(self, result: ParityResult) -> None:
        if not result.variables:
            return
        ordered, totals = summary.worst_variables(result), summary.summarize(result)
        total = spelling.count(totals.num_variables, "variable")
        largest = f"max abs_diff {spelling.difference(totals.max_variable_abs_diff)}"
        limit = spelling.threshold(result.thresholds.variable_abs)
        said = _IDENTICAL if summary.is_identical(result, "variable") else largest
        why = f" {_ROUNDING}" if summary.by_rounding(result, totals.num_variables_outside) else ""
        self.heading("Variables", f"{total}, {totals.num_variables_outside:,} outside {limit}{why}; {said}")
        rows: list[tuple[RenderableType, ...]] = []
        for variable in ordered[:MOST_VARIABLES]:
            outside = summary.variable_state(variable, result.thresholds) == "outside"
            remark = OUTSIDE if outside else self.plain(spelling.shorten(variable.note, 60))
            shape, value = spelling.shape(variable.shape), spelling.difference(variable.max_abs_diff)
            rows.append((self.name(variable.name), shape, value, *self.reference(variable), *self.noise(variable), remark))
        self.table(
            ("variable", "shape", "max abs_diff", *self.to_reference_column, *self.noise_column, ""),
            rows,
        )
        self.more(len(ordered) - MOST_VARIABLES, "variable")

    def notes(self, result: ParityResult) -> None:
        for note in result.notes[:MOST_NOTES]:
            self.line("Note", spelling.shorten(note, MESSAGE_LENGTH))
        self.more(len(result.notes) - MOST_NOTES, "note")

    def heading(self, label: str, sentence: str) -> None:
        self.console.print()
        self.line(label, sentence)

    def line(self, label: str, sentence: str) -> None:
        self.console.print(Text.assemble((f"{label}: ", "bold"), self.plain(sentence)))

    def more(self, quantity: int, noun: str) -> None:
        if quantity > 0:
            sentence = f"... and {spelling.count(quantity, f'more {noun}')}"
            self.console.print(Padding.indent(Text(sentence, style="dim"), INDENT))

    def table(self, columns: Sequence[str], rows: Iterable[Iterable[RenderableType]]) -> None:
        table = Table(box=rich.box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for column in columns:
            if column in NUMBERS:  # a number that is cut off must look so
                table.add_column(column, justify="right", overflow="ellipsis", no_wrap=True)
            else:
                table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*row)
        self.console.print(Padding(table, (0, 0, 0, INDENT)))

    def name(self, name: str) -> Text:
        return self.plain(spelling.shorten(name, NAME_LENGTH))

    def plain(self, message: str) -> Text:
        """Returns a string from outside as Text that the console can encode; [brackets] in it are not styles."""
        shown = spelling.visible(message)
        return Text(shown.encode("ascii", "backslashreplace").decode() if self.console.options.ascii_only else shown)

    def row(self, label: str, step: int | None, kind: str, sentence: str) -> None:
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        where = "" if step is None else f"step {step:,}, "
        message = self.plain(spelling.shorten(sentence, MESSAGE_LENGTH))
        grid.add_row(Text(f"{label:<5}", style="dim"), Text.assemble((f"{where}{kind}: ", "bold"), message))
        self.console.print(Padding.indent(grid, INDENT))
