"""Steps per second of the modern path, of the Estimators that it replaces and of Keras by hand, which take turns in one run.

    python benchmarks/modern.py --tf1 ENV/bin/python --native ENV/bin/python [--runs 7] [--variants jit mixed]
    python benchmarks/modern.py --gpu --variants jit

``--tf1`` and ``--native`` are the Pythons of environments with TensorFlow 1.15.5 and 2.15.1, which take part if they are given. This
file's own Python runs the rest. GPUs are hidden, unless ``--gpu`` is given; mixed precision is for CPUs.
Estimators and the modern path train jobs/estimator_training.py, with the logging, summaries and checkpoints that a RunConfig has by
default. ``fit``, ``fit, 100`` (steps per execution) and ``loop`` (of 100 steps in a tf.function) are jobs/keras_training.py, which
logs and saves nothing. The first 301 steps do not count.

Prints two Markdown tables: the median of the steps per second of each, and the goals, for which ratios are taken within each turn.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from contestants import LOOP, MODERN, VARIANTS, estimators, others, parser_of
from turns import Rates, Ratio, ratio, take_turns


def main() -> None:
    """Measures and prints."""
    parser = parser_of(__doc__, pythons=False)
    parser.add_argument(
        "--variants", nargs="+", choices=VARIANTS, default=[], help="variants of the modern path to measure, too"
    )
    arguments = parser.parse_args()
    old = estimators(arguments.tf1, arguments.native)
    contestants = old | others(arguments.variants)
    rates = take_turns(contestants, arguments.models, arguments.runs, arguments.gpu)
    print(f"| model | {' | '.join(contestants)} |")
    print("|---" * (1 + len(contestants)) + "|")
    for model in arguments.models:
        print(f"| {model} | {' | '.join(f'{statistics.median(rates[model, name]):.0f}' for name in contestants)} |")
    print("\n| goal | at least | measured | |\n|---|---|---|---|")
    for name, limit, measured in goals(rates, arguments.models, list(old)):
        print(f"| {name} | {limit:g} | {measured} | {'met' if measured.median >= limit else 'missed'} |")


def goals(rates: Rates, models: Sequence[str], old: Sequence[str]) -> Iterator[tuple[str, float, Ratio]]:
    """Yields name, limit and figure of each goal."""
    for model in models:
        modern = rates[model, MODERN]
        fastest = [max(turn) for turn in zip(*(rates[model, name] for name in old), strict=True)]
        yield f"{model}: times the fastest Estimator", 2.0, ratio(modern, fastest)
        yield f"{model}: part of the loop by hand", 0.95, ratio(modern, rates[model, LOOP])


if __name__ == "__main__":
    main()
