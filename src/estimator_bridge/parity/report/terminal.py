"""The report on the terminal: the verdict, then small tables that fit 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import rich.box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from estimator_bridge.parity.report import text
from estimator_bridge.parity.report.charts import numerals
from estimator_bridge.parity.report.charts.gaps import spell_pair, variable_state
from estimator_bridge.parity.report.summary import final_metrics, headline, representative_steps, summarize, worst_variables
from estimator_bridge.parity.result import ParityFinding, ParityResult, Verdict

STYLES: dict[Verdict, str] = {"equal": "bold green", "different": "bold red", "not comparable": "bold yellow"}
MOST_VARIABLES, MOST_METRICS, MOST_FINDINGS, MOST_NOTES = 10, 20, 10, 20
NAME_LENGTH, MESSAGE_LENGTH = 120, 600
INDENT = 2
NUMBERS = {"step", "legacy", "modern", "abs_diff", "rel_diff", "max abs_diff"}  # columns
OUTSIDE = Text("outside", style="red")


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
        EQUAL. The modern path trains as the legacy path does.
        No step, metric or variable was compared.
    """
    writer = _Writer(console)
    writer.verdict(result)
    writer.findings(result)
    writer.losses(result)
    writer.metrics(result)
    writer.variables(result)
    if result.notes or result.seconds:
        console.print()
    writer.notes(result)
    if result.seconds:
        writer.line("Time", ", ".join(f"{side} {numerals.seconds(value)}" for side, value in result.seconds.items()))


class _Writer:
    def __init__(self, console: Console) -> None:
        self.console = console

    def verdict(self, result: ParityResult) -> None:
        sentence = headline(result)
        self.console.print(Text.assemble((f"{result.verdict.upper()}. ", STYLES[result.verdict]), sentence))
        if not (result.losses or result.metrics or result.variables):
            self.console.print("No step, metric or variable was compared.")

    def findings(self, result: ParityResult) -> None:
        for index, finding in enumerate(result.findings[:MOST_FINDINGS]):
            label = "cause" if index == 0 and result.verdict == "different" else "found" if index == 0 else "then"
            self.console.print(Padding.indent(self.finding(label, finding), INDENT))
        self.more(len(result.findings) - MOST_FINDINGS, "finding")

    def losses(self, result: ParityResult) -> None:
        if not result.losses:
            return
        summary = summarize(result)
        steps = numerals.count(summary.num_steps, "step")
        inside = f"{summary.num_steps - summary.num_steps_outside:,} of {steps} within"
        worst = f"max abs_diff {numerals.difference(summary.max_abs_diff)}, max rel_diff {numerals.difference(summary.max_rel_diff)}"
        self.heading("Loss", f"{inside}; {worst}")
        chosen = representative_steps(result)
        self.table(
            ("step", "legacy", "modern", "abs_diff", "rel_diff", ""),
            ((f"{point.step:,}", *spell_pair(point, result.thresholds)[:4], reason) for point, reason in chosen),
        )

    def metrics(self, result: ParityResult) -> None:
        pairs, limits = final_metrics(result.metrics), result.thresholds
        if not pairs:
            return
        rel, absolute = numerals.threshold(limits.rel), numerals.threshold(limits.abs)
        self.heading("Metrics", f"equal when rel_diff <= {rel} or abs_diff <= {absolute}")
        rows = []
        for pair in pairs[:MOST_METRICS]:
            *values, outside = spell_pair(pair, limits)
            name = f"{pair.evaluation}/{pair.metric}" if pair.evaluation else pair.metric
            rows.append((self.name(name), *values, OUTSIDE if outside else ""))
        self.table(("metric", "legacy", "modern", "abs_diff", "rel_diff", ""), rows)
        self.more(len(pairs) - MOST_METRICS, "metric")

    def variables(self, result: ParityResult) -> None:
        if not result.variables:
            return
        ordered, summary = worst_variables(result), summarize(result)
        total = numerals.count(summary.num_variables, "variable")
        largest = numerals.difference(summary.max_variable_abs_diff)
        limit = numerals.threshold(result.thresholds.variable_abs)
        self.heading("Variables", f"{total}, {summary.num_variables_outside:,} outside {limit}; max abs_diff {largest}")
        rows = []
        for variable in ordered[:MOST_VARIABLES]:
            outside = variable_state(variable, result.thresholds) == "outside"
            remark = OUTSIDE if outside else self.plain(text.shorten(variable.note, 60))
            shape, value = numerals.shape(variable.shape), numerals.difference(variable.max_abs_diff)
            rows.append((self.name(variable.name), shape, value, remark))
        self.table(("variable", "shape", "max abs_diff", ""), rows)
        self.more(len(ordered) - MOST_VARIABLES, "variable")

    def notes(self, result: ParityResult) -> None:
        for note in result.notes[:MOST_NOTES]:
            self.line("Note", text.shorten(note, MESSAGE_LENGTH))
        self.more(len(result.notes) - MOST_NOTES, "note")

    def heading(self, label: str, sentence: str) -> None:
        self.console.print()
        self.line(label, sentence)

    def line(self, label: str, sentence: str) -> None:
        self.console.print(Text.assemble((f"{label}: ", "bold"), self.plain(sentence)))

    def more(self, quantity: int, noun: str) -> None:
        if quantity > 0:
            sentence = f"... and {numerals.count(quantity, f'more {noun}')}"
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
        return self.plain(text.shorten(name, NAME_LENGTH))

    def plain(self, message: str) -> Text:
        """Returns a string from outside as Text that the console can encode; [brackets] in it are not styles."""
        shown = text.visible(message)
        return Text(shown.encode("ascii", "backslashreplace").decode() if self.console.options.ascii_only else shown)

    def finding(self, label: str, finding: ParityFinding) -> Table:
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        where = "" if finding.step is None else f"step {finding.step:,}, "
        message = self.plain(text.shorten(finding.message, MESSAGE_LENGTH))
        grid.add_row(Text(f"{label:<5}", style="dim"), Text.assemble((f"{where}{finding.level}: ", "bold"), message))
        return grid
