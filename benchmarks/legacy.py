"""Steps per second of TensorFlow 1 trainings under TensorFlow 1.15, native 2.15 and the legacy path, which take turns in one run.

    python benchmarks/legacy.py --tf1 ENV/bin/python --native ENV/bin/python [--runs 7]

``--tf1`` and ``--native`` are the Pythons of environments with TensorFlow 1.15.5 and 2.15.1; this file's own Python runs the legacy
path. All train jobs/estimator_training.py; the first 301 steps do not count. Ratios are taken within each turn. Reported are the median
of the turns and the interval that holds the true median with 95 % probability.
"""

from __future__ import annotations

import statistics

from contestants import LEGACY, estimators, parser_of
from turns import ratio, take_turns


def main() -> None:
    """Measures and prints."""
    arguments = parser_of(__doc__).parse_args()
    contestants = estimators(arguments.tf1, arguments.native)
    rates = take_turns(contestants, arguments.models, arguments.runs, arguments.gpu)
    print(f"| model | {' | '.join(contestants)} | legacy / 1.15.5 | legacy / 2.15.1 |")
    print("|---" * 6 + "|")
    for model in arguments.models:
        medians = [f"{statistics.median(rates[model, name]):.0f}" for name in contestants]
        ratios = [str(ratio(rates[model, LEGACY], rates[model, name])) for name in ("1.15.5", "2.15.1")]
        print(f"| {' | '.join([model, *medians, *ratios])} |")


if __name__ == "__main__":
    main()
