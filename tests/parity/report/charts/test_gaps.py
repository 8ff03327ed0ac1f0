from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from estimator_bridge.parity.report.charts import gaps
from estimator_bridge.parity.result import Thresholds

if TYPE_CHECKING:
    pass


VALUES = [0.0, 1.0, 1.0 + 1e-7, 1.1, 1e-7, -1.0, math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("legacy", VALUES)
@pytest.mark.parametrize("modern", VALUES)
@pytest.mark.parametrize("thresholds", [Thresholds(), Thresholds(rel=0, abs=0), Thresholds(rel=0), Thresholds(abs=0)])
def test_the_share_agrees_with_what_the_thresholds_accept(legacy: float, modern: float, thresholds: Thresholds) -> None:
    assert (gaps.measure(legacy, modern, thresholds).share <= 1) == thresholds.accept(legacy, modern)
