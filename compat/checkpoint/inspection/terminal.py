"""A checkpoint, a difference of two, or a conversion as tables on the terminal."""

from collections.abc import Iterable, Iterator, Sequence

import rich.box
import rich.filesize
from rich.console import Console
from rich.table import Table
from rich.text import Text

from estimator_bridge.compat.checkpoint.inspection.difference import Difference
from estimator_bridge.compat.checkpoint.inspection.summary import Summary, Variable
from estimator_bridge.compat.checkpoint.request import ConversionReport, Converted

MOST_ROWS = 50
MOST_SCOPES = 30
MOST_CONVERTED = 40
_NUMBERS = {"bytes", "max abs_diff", "slots", "variables"}  # columns that stand on the right


def print_summary(summary: Summary, console: Console, every: bool = False) -> None:
    """Prints a summary; a large checkpoint is shown by scopes instead of variables.

    Args:
        summary: Summary of the checkpoint.
        console: Console to print to.
        every: True to print each variable, however many there are.

    Example:
        >>> import sys
        >>> from rich.console import Console
        >>> from estimator_bridge.compat.checkpoint.inspection.summary import Summary
        >>> print_summary(Summary("model.ckpt-7", "name-based", 7, "global_step", (), ()), Console(file=sys.stdout))
        model.ckpt-7: name-based, step 7
        0 variables, 0 B in 0 data files
    """
    step = "no step" if summary.step is None else f"step {summary.step:,}"
    if summary.step_name not in {None, "global_step"}:
        step += f" (from {summary.step_name})"
    console.print(Text(f"{summary.prefix}: {summary.kind}, {step}"), soft_wrap=True)
    names = [variable for variable in summary.variables if variable.alias_of is None]
    aliases = len(summary.variables) - len(names)
    also = f" and {aliases:,} more names for them" if aliases else ""
    files = _count(len(summary.shards), "data file")
    console.print(f"{_count(len(names), 'variable')}{also}, {size(summary.num_bytes)} in {files}", highlight=False)
    _print_optimizers(summary, console)
    if every or len(names) <= MOST_ROWS:
        _print_variables(names, console)
    else:
        _print_scopes(names, console)


def print_differences(found: Sequence[Difference], tolerance: float, console: Console) -> None:
    """Prints the rows that differ, the largest differences first.

    Args:
        found: Row for each name.
        tolerance: Largest absolute difference that counts as equal.
        console: Console to print to.
    """
    outside = [row for row in found if not row.within(tolerance)]
    outside.sort(key=lambda row: -(row.max_abs_diff if row.max_abs_diff is not None else float("inf")))
    console.print(f"{len(found) - len(outside):,} of {_count(len(found), 'variable')} equal", highlight=False)
    rows = [(row.name, "-" if row.max_abs_diff is None else f"{row.max_abs_diff:.3g}", row.note) for row in outside]
    _print_table(("variable", "max abs_diff", ""), rows[:MOST_ROWS], console)
    _print_more(len(rows) - MOST_ROWS, console, "variable")


def print_report(report: ConversionReport, console: Console, dry_run: bool = False) -> None:
    """Prints the report of a conversion; variables without a counterpart come first.

    Args:
        report: Report of the conversion.
        console: Console to print to.
        dry_run: True if nothing should be written.

    Example:
        >>> import sys
        >>> done = ConversionReport("old/m", "new/m", "name-based", written=True, renamed=2, sharing=("link",))
        >>> print_report(done, Console(file=sys.stdout, width=80))
        Wrote new/m: name-based, 2 renamed, 1 data file (link)
    """
    console.print(Text(_headline(report, dry_run)), soft_wrap=True)
    lists: dict[str, Sequence[str]] = {
        "Ambiguous": [f"{target}: {' or '.join(sources)}" for target, sources in report.ambiguous.items()],
        "In the source only": report.unmatched_sources,
        "In the target only": report.unmatched_targets,
        "Note": report.warnings,
    }
    for label, items in lists.items():
        for item in items[:MOST_CONVERTED]:
            console.print(Text.assemble((f"{label}: ", "bold yellow"), item), soft_wrap=True)
        _print_more(len(items) - MOST_CONVERTED, console)
    tables: dict[tuple[str, ...], Sequence[tuple[str, ...]]] = {
        ("source", "target", "by"): [(pair.source, pair.target, pair.how) for pair in report.matches],
        ("cell in the source", "in the target", ""): [(cell.source, cell.target, cell.note) for cell in report.layouts],
        ("slot in the source", "in the target", ""): list(_slot_rows(report.slots)),
    }
    for columns, rows in tables.items():
        _print_table(columns, rows[:MOST_CONVERTED], console)
        _print_more(len(rows) - MOST_CONVERTED, console, after=": --format json")


def _slot_rows(slots: Sequence[Converted]) -> Iterator[tuple[str, str, str]]:
    """Yields a row for each slot; slots that are left out for one reason share a row."""
    left_out: dict[str, list[str]] = {}
    for slot in slots:
        if slot.target:
            yield slot.source or "-", slot.target, slot.note
        else:
            left_out.setdefault(slot.note, []).append(slot.source or "-")
    for note, names in left_out.items():
        yield names[0] + (f" and {len(names) - 1:,} more" if len(names) > 1 else ""), "left out", note


def size(num_bytes: int) -> str:
    """Formats a number of bytes in a suitable unit.

    Example:
        >>> size(0), size(2048), size(5 * 2**30)
        ('0 B', '2.0 KiB', '5.0 GiB')
    """
    unit, name = rich.filesize.pick_unit_and_suffix(num_bytes, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024)
    return f"{num_bytes} B" if unit == 1 else f"{num_bytes / unit:.1f} {name}"


def _headline(report: ConversionReport, dry_run: bool) -> str:
    if not report.complete:
        return f"Nothing was written to {report.target}: some variables have no counterpart. See --map and --allow-unmatched."
    if dry_run:
        return f"Would write {report.target}: {report.to}"
    parts = [report.to]
    if report.renamed:
        parts.append(f"{report.renamed:,} renamed")
    if report.sharing:
        parts.append(f"{_count(len(report.sharing), 'data file')} ({', '.join(sorted(set(report.sharing)))})")
    verb = "Already there, the same to the last byte:" if report.unchanged else "Wrote"
    return f"{verb} {report.target}: {', '.join(parts)}"


def _print_optimizers(summary: Summary, console: Console) -> None:
    rows = [
        (optimizer, slot, f"{len(variables):,}", size(_total(variables)))
        for optimizer, slots in sorted(summary.optimizers().items())
        for slot, variables in sorted(slots.items())
    ]
    _print_table(("optimizer", "slot", "variables", "bytes"), rows, console)


def _print_variables(variables: Iterable[Variable], console: Console) -> None:
    rows = []
    for variable in variables:
        remark = f"{variable.num_slices} slices" if variable.num_slices > 1 else ""
        if variable.slot:
            remark = ", ".join(filter(None, [f"{variable.slot.optimizer} {variable.slot.slot}", remark]))
        shape = "x".join(map(str, variable.shape)) or "scalar"
        rows.append((variable.name, variable.dtype, shape, size(variable.num_bytes), remark))
    _print_table(("variable", "dtype", "shape", "bytes", ""), rows, console)


def _print_scopes(variables: Sequence[Variable], console: Console) -> None:
    scopes: dict[str, list[Variable]] = {}
    for depth in range(1, 6):  # the deepest scopes that still fit
        grouped: dict[str, list[Variable]] = {}
        for variable in variables:
            grouped.setdefault("/".join(variable.name.split("/")[:-1][:depth]), []).append(variable)
        if scopes and len(grouped) > MOST_SCOPES:
            break
        scopes = grouped
    rows = []
    for scope, members in sorted(scopes.items(), key=lambda item: -_total(item[1])):
        slots = sum(variable.slot is not None for variable in members)
        rows.append((f"{scope}/" if scope else "(none)", f"{len(members) - slots:,}", f"{slots:,}", size(_total(members))))
    _print_table(("scope", "variables", "slots", "bytes"), rows[:MOST_SCOPES], console)
    _print_more(len(rows) - MOST_SCOPES, console, "scope")
    console.print(Text("Each variable: --all, or --format json.", style="dim"))


def _total(variables: Iterable[Variable]) -> int:
    return sum(variable.num_bytes for variable in variables)


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    if not rows:
        return
    table = Table(box=rich.box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        number = name in _NUMBERS
        table.add_column(name, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _print_more(left: int, console: Console, noun: str = "", after: str = "") -> None:
    if left > 0:
        more = _count(left, f"more {noun}") if noun else f"{left:,} more"
        console.print(f"... and {more}{after}", highlight=False)


def _count(quantity: int, noun: str) -> str:
    return f"{quantity:,} {noun}{'' if quantity == 1 else 's'}"
