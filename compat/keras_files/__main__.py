"""Answers questions, one line of JSON each, until standard input ends; output of user code goes to standard error."""

from __future__ import annotations

import json
import os
import sys

from estimator_bridge.compat.keras_files.answering import Answerer


def main() -> None:
    """Reads standard input to its end."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    answerer = Answerer()
    for line in sys.stdin:
        answers.write(json.dumps(answerer.answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
