"""``FusedConv2DBiasActivation``, whose kernels in TensorFlow 1.15 are for GPUs, against its formula."""

from __future__ import annotations

import numpy as np
import pytest

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.upstream_contrib.operations import OPERATIONS

RANDOM = np.random.default_rng(3)
IMAGES, FILTERS, BIAS, SIDE = (
    RANDOM.normal(size=shape).astype(np.float32) for shape in ((2, 5, 6, 3), (2, 3, 3, 4), (4,), (2, 2, 2, 4))
)


def formula(is_active: bool) -> np.ndarray:
    """Computes stride 2 without padding, one output pixel after the other."""
    result = np.zeros((2, 2, 2, 4))
    for row in range(2):
        for column in range(2):
            part = IMAGES[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 3]
            result[:, row, column] = np.tensordot(part, FILTERS, 3)
    result = 0.5 * result + 2 * SIDE + BIAS
    return np.maximum(result, 0) if is_active else result


@pytest.mark.parametrize("mode", ["Relu", "None"])
@pytest.mark.parametrize(("data", "filters"), [("NHWC", "HWIO"), ("NCHW", "OIHW"), ("NCHW", "HWIO")])
def test_formula(data: str, filters: str, mode: str) -> None:
    is_first = data == "NCHW"
    images, side = (np.moveaxis(one, 3, 1) if is_first else one for one in (IMAGES, SIDE))
    kernel = np.transpose(FILTERS, (3, 2, 0, 1)) if filters == "OIHW" else FILTERS
    strides = [1, 1, 2, 2] if is_first else [1, 2, 2, 1]

    received = OPERATIONS["FusedConv2DBiasActivation"](
        images, kernel, BIAS, side, 0.5, 2.0, strides, "VALID", data, filters, mode
    ).numpy()

    received = np.moveaxis(received, 1, 3) if is_first else received
    np.testing.assert_allclose(received, formula(mode == "Relu"), rtol=1e-5, atol=1e-6)


def test_side_input_may_be_empty() -> None:
    received = OPERATIONS["FusedConv2DBiasActivation"](IMAGES, FILTERS, BIAS, [], 0.5, 0.0, [1, 2, 2, 1], "VALID")

    expected = np.maximum(formula(is_active=False) - 2 * SIDE, 0)
    np.testing.assert_allclose(received, expected, rtol=1e-5, atol=1e-6)


def test_integers_are_refused() -> None:
    with pytest.raises(NotSupportedError, match="floating-point"):
        OPERATIONS["FusedConv2DBiasActivation"](IMAGES, FILTERS, BIAS, [], 1, 0, [1, 1, 1, 1], "SAME", "NCHW_VECT_C")
