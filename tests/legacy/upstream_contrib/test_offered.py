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


def test_names_before_the_fetched_version_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """``tf.contrib.data`` had the classes of data sets before TensorFlow 1.4."""
    monkeypatch.setattr(cache, "is_fetched", lambda: True)
    monkeypatch.setattr(cache, "manifest", lambda place: {})
    assert offered.offers("tf.contrib.data.Dataset.from_tensor_slices")
    assert not offered.offers("tf.contrib.data.NoDataset.from_tensor_slices")
