"""The advice of check on a name of tf.contrib that is not restored."""

from __future__ import annotations

import pytest

from estimator_bridge.legacy.upstream_contrib import cache, offered

FETCH = "estimator-bridge contrib fetch"


@pytest.mark.parametrize(
    ("symbol", "helps"),
    [
        ("tf.contrib.opt.LARSOptimizer", True),
        ("tf.contrib.rnn.GRUBlockCell", True),
        ("tf.contrib.image.rotate", True),
        ("tf.contrib.bayesflow.monte_carlo", True),
        ("tf.contrib.tpu.TPUInfeedSpec", False),
        ("tf.contrib.no_such_package.name", False),
    ],
)
def test_it_names_the_command_that_fetches_the_official_files(
    symbol: str, helps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "is_fetched", lambda: False)
    assert (FETCH in offered.replacement(symbol)) is helps
    monkeypatch.setattr(cache, "is_fetched", lambda: True)
    assert FETCH not in offered.replacement(symbol)
