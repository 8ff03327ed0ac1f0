"""Writes the pages of this folder from the tables of ``estimator_bridge.compat.config``: ``python docs/config/generate.py``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from estimator_bridge.compat.config.checks import CHECKS
from estimator_bridge.compat.config.decisions import ANY, DECISIONS, Decision
from estimator_bridge.compat.config.tables import ALL
from estimator_bridge.compat.rules import ConversionRule, Fidelity, RuleTable

FOLDER = Path(__file__).parent
_GENERATED = "% Written by docs/config/generate.py from the tables; change those.\n"
_COMMAND = """`estimator-bridge convert config SOURCE` turns the configuration of a TensorFlow 1 job into what `tf.config`,
`tf.distribute` and `fit` take, and `--back` turns it round. SOURCE is a ConfigProto (text or binary), a TF_CONFIG (a file, or
`env`), a RunConfig as JSON, or with `--from-script` a script, which is run up to its Estimator's first call.

Every field has a row in one of these tables, and every row one of four fidelities:

| fidelity | meaning |
|---|---|
| exact | the same behaviour; the way back gives the same value |
| approximate | the same purpose; the row says what differs |
| manual | it matters, and only a human can carry it over; the row says how |
| dropped | nothing takes its place; the row says why nothing has to |

The exit code is 0 where everything is exact or approximate, 1 where something is manual or dropped and no `--allow NAME` accepts
it, and 2 for bad input.
"""


def pages() -> dict[str, str]:
    """Every page of this folder.

    Returns:
        File name -> text.
    """
    made = {f"{table.name}.md": _table_page(table) for table in ALL}
    return made | {"strategies.md": _strategies(), "silent_traps.md": _traps(), "index.md": _index()}


def _index() -> str:
    rows = [
        (f"[](./{table.name}.md)", str(len(table)), *(str(count or "") for count in table.counts().values())) for table in ALL
    ]
    total = [str(sum(table.counts()[fidelity] for table in ALL)) for fidelity in Fidelity]
    rows.append(("together", str(sum(map(len, ALL))), *total))
    names = "\n".join(["strategies", "silent_traps", *(table.name for table in ALL)])
    heading = ("table", "rows", *(fidelity.value for fidelity in Fidelity))
    parts = ["---\norphan: true\n---", _GENERATED, "# Configs, field by field", _COMMAND, *_markdown(heading, rows)]
    parts.append(f"\n:::{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{names}\n:::")
    return "\n".join(parts) + "\n"


def _table_page(table: RuleTable) -> str:
    counts = ", ".join(f"{count} {fidelity.value}" for fidelity, count in table.counts().items() if count)
    rows = [(f"`{rule.name}`", _target(rule), rule.fidelity.value, _text(rule.note), _examples(rule)) for rule in table]
    parts = [_GENERATED, f"# {table.title}", f"{len(table)} rows: {counts}.", ""]
    parts += [_text(table.about), ""] if table.about else []
    return (
        "\n".join([*parts, *_markdown(("field", "becomes", "fidelity", "why, and what differs", "for example"), rows)]) + "\n"
    )


def _strategies() -> str:
    rows = [
        (
            _distribute(row),
            _cluster(row),
            _synchronous(row),
            _strategy(row),
            row.fidelity.value,
            _text(row.note),
            f"`{row.name}`",
        )
        for row in DECISIONS
    ]
    heading = ("`train_distribute`", "cluster", "SyncReplicasOptimizer", "becomes", "fidelity", "why", "in the report")
    about = "Which strategy a TF_CONFIG, a RunConfig and a SyncReplicasOptimizer amount to together. The first row that matches counts."
    return "\n".join([_GENERATED, "# Which strategy a job amounts to", about, "", *_markdown(heading, rows)]) + "\n"


def _traps() -> str:
    about = (
        "Combinations that train wrongly and say nothing. Each is refused or mended in the report, as `check.NAME`, with the reason and "
        "the fix.\nA key of `tf.config.optimizer.set_experimental_options` that TensorFlow does not act on is refused too."
    )
    rows = [(f"`{check.name}`", _text(check.combination)) for check in CHECKS]
    return "\n".join([_GENERATED, "# Silently wrong combinations", about, "", *_markdown(("name", "combination"), rows)]) + "\n"


def _markdown(heading: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(heading)
    yield f"| {' | '.join(names)} |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _target(rule: ConversionRule) -> str:
    if not rule.target:
        return ""
    said = f"`{rule.target}`" if "tf." in rule.target else _text(rule.target)
    return f"{said} ([reference]({rule.reference}))" if rule.reference else said


def _examples(rule: ConversionRule) -> str:
    return ", ".join(f"`{example!r}`".replace("|", "\\|") for example in rule.examples)


def _text(said: str) -> str:
    """Names with underscores, stars or braces would be markup."""
    return " ".join(map(_word, said.split())).replace("|", "\\|")


def _word(word: str) -> str:
    name = word.rstrip(".,;:")
    return f"`{name}`{word[len(name) :]}" if any(mark in name for mark in "_{}*|") else word


def _distribute(row: Decision) -> str:
    return "TPUEstimator" if row.tpu else {None: "none", ANY: "any"}.get(row.distribute, str(row.distribute))


def _cluster(row: Decision) -> str:
    return row.cluster


def _synchronous(row: Decision) -> str:
    words: Mapping[object, str] = {True: "yes", False: "no", ANY: "any"}
    return words[row.synchronous]


def _strategy(row: Decision) -> str:
    if row.strategy is None:
        return "refused" if row.fidelity is Fidelity.MANUAL else "one device"
    return f"`tf.distribute.{row.strategy}`"


def main() -> None:
    """Writes the pages, and removes those that no table makes any more."""
    made = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
