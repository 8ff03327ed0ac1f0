"""Batches of a planned training get a static number of rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.planning import with_rows


@pytest.fixture(params=["TensorFlow 1's shapes", "TensorFlow 2's shapes"])
def _shapes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Under ``run``, scripts that want TensorFlow 1 have its shapes, whose items are never None."""
    if request.param.startswith("TensorFlow 2"):
        yield
        return
    tf.compat.v1.disable_v2_tensorshape()
    yield
    tf.compat.v1.enable_v2_tensorshape()


def batches(size: int, drop: bool) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(({"x": tf.ones([64, 4])}, tf.ones([64]))).batch(size, drop_remainder=drop)


@pytest.mark.usefixtures("_shapes")
@pytest.mark.parametrize("drop", [False, True])
def test_rows_are_static(drop: bool) -> None:
    features, labels = with_rows(batches, 16)(16, drop).element_spec
    assert features["x"].shape.as_list() == [16, 4]
    assert labels.shape.as_list() == [16]


@pytest.mark.usefixtures("_shapes")
def test_another_number_of_rows_is_refused() -> None:
    with pytest.raises(BridgeError, match="Give --rows 8, or the script another batch size"):
        with_rows(batches, 16)(8, drop=True)
