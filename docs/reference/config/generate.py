"""Writes the pages of this folder from the tables of ``estimator_bridge.compat.config``: ``python docs/reference/config/generate.py``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from estimator_bridge.compat.config.checks import CHECKS
from estimator_bridge.compat.config.decisions import ANY, DECISIONS, Decision
from estimator_bridge.compat.config.tables import ALL
from estimator_bridge.compat.rules import ConversionRule, Fidelity, RuleTable

FOLDER = Path(__file__).parent
_GENERATED = "% Written by docs/reference/config/generate.py from the tables; change those.\n"
_COMMAND = """For anyone who asks what becomes of a setting of ConfigProto, RunConfig or TF_CONFIG.

```sh
estimator-bridge convert config session.pbtxt
estimator-bridge convert config --format python env > setup_distribution.py
estimator-bridge convert config --back --format python modern.toml
```

The command converts the configuration of a TensorFlow 1 job to what `tf.config`, `tf.distribute` and `fit` take, and back with
`--back`. SOURCE is a ConfigProto (text or binary), a TF_CONFIG (a file, or `env`) or a RunConfig as JSON. With `--from-script` it is a
script, which is run up to its Estimator's first call.

Every field has a row in one of these tables, and every row has one of four fidelities:

| fidelity | meaning |
|---|---|
| exact | the same behaviour; the way back gives the same value |
| approximate | the same purpose; the row says what differs |
| manual | it matters, and only a human can carry it over; the row says how |
| dropped | nothing replaces it; the row says why nothing has to |

The exit code is 0 if everything is exact or approximate, 1 if something is manual or dropped and no `--allow NAME` accepts it, and 2
for bad input.
"""
_READERS = "For anyone whose job has one of these settings. `estimator-bridge convert config SOURCE` reports the rows that apply to it.\n"


def pages() -> dict[str, str]:
    """Renders every page of this folder.

    Returns:
        Mapping from file name to text.
    """
    made = {f"{table.name}.md": _table_page(table) for table in ALL}
    return made | {"strategies.md": _strategies(), "silent_traps.md": _traps(), "index.md": _index()}


def _index() -> str:
    rows = [
        (f"[](./{table.name}.md)", str(len(table)), *(str(count or "") for count in table.counts().values())) for table in ALL
    ]
    total = [str(sum(table.counts()[fidelity] for table in ALL)) for fidelity in Fidelity]
    rows.append(("total", str(sum(map(len, ALL))), *total))
    names = "\n".join(["strategies", "silent_traps", *(table.name for table in ALL)])
    heading = ("table", "rows", *(fidelity.value for fidelity in Fidelity))
    parts = [_GENERATED, "# Configs, field by field", _COMMAND, *_markdown(heading, rows)]
    parts.append(f"\n:::{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{names}\n:::")
    return "\n".join(parts) + "\n"


def _table_page(table: RuleTable) -> str:
    counts = ", ".join(f"{count} {fidelity.value}" for fidelity, count in table.counts().items() if count)
    rows = [(f"`{rule.name}`", _target(rule), rule.fidelity.value, _text(rule.note), _examples(rule)) for rule in table]
    parts = [_GENERATED, f"# {table.title}", _READERS, f"{len(table)} rows: {counts}.", ""]
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
    about = (
        "For anyone who asks which tf.distribute strategy a job gets from its TF_CONFIG, its RunConfig and a SyncReplicasOptimizer. "
        "The first row that\nmatches counts. `estimator-bridge convert config env` reports it by the name in the last column."
    )
    return "\n".join([_GENERATED, "# Strategy of a job", about, "", *_markdown(heading, rows)]) + "\n"


def _traps() -> str:
    about = (
        "For anyone who wants to know which combinations of settings train wrongly without an error. `estimator-bridge convert config`\n"
        "refuses or corrects each in its report, as `check.NAME`, with the reason and the fix. It also refuses a key of\n"
        "`tf.config.optimizer.set_experimental_options` that TensorFlow does not act on."
    )
    rows = [(f"`{check.name}`", _text(check.combination)) for check in CHECKS]
    return (
        "\n".join(
            [_GENERATED, "# Combinations that silently train wrongly", about, "", *_markdown(("name", "combination"), rows)]
        )
        + "\n"
    )


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
    """Returns the text with names that contain underscores, stars or braces as code, because they would be markup otherwise."""
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
    """Writes the pages, and removes those that no table produces any more."""
    made = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
