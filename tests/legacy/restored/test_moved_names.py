"""Modules and names of ``tensorflow.python`` that TensorFlow 1.15.5 has and later versions moved."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest

from estimator_bridge import legacy
from estimator_bridge.legacy.restored import import_aliases, moved_names

legacy.install()

# Import statements that TensorFlow 1.15.5 executes.
IMPORTS = [
    "from tensorflow.python.training.tracking import base, data_structures, graph_view, object_identity, tracking, util",
    "from tensorflow.python.training.tracking.base import CheckpointPosition, Trackable, no_automatic_dependency_tracking",
    "from tensorflow.python.training.tracking.tracking import AutoTrackable, CapturableResource, TrackableResource",
    "from tensorflow.python.training.tracking.util import Checkpoint, CheckpointLoadStatus, TrackableSaver, add_variable",
    "import tensorflow.python.training.tracking.util as trackable_util",
    "from tensorflow.python.training.checkpoint_management import CheckpointManager, latest_checkpoint",
    "from tensorflow.python.training.saving import functional_saver, saveable_object_util",
    "from tensorflow.python.framework.ops import convert_to_tensor_or_indexed_slices, register_tensor_conversion_function",
    "from tensorflow.python.framework.graph_util import convert_variables_to_constants",
    "from tensorflow.python.feature_column.dense_features import DenseFeatures",
    "from tensorflow.python.data.experimental.ops.threading_options import ThreadingOptions",
    "from tensorflow.python.data.ops.dataset_ops import Options",
    "from tensorflow.python.ops.control_flow_ops import case, cond, switch_case, while_loop",
    "from tensorflow.python.ops.losses.loss_reduction import ReductionV2",
    "from tensorflow.python.ops.random_ops import random_crop",
    "from tensorflow.python.ops.variables import RefVariable, VariableV1, is_variable_initialized",
    "from tensorflow.python.eager.context import VirtualDeviceConfiguration",
]


@pytest.mark.parametrize("statement", IMPORTS)
def test_imports_of_tensorflow_1(statement: str) -> None:
    exec(statement, {})


@pytest.mark.parametrize(("old", "new"), sorted(moved_names.moved_names().items()))
def test_each_row_leads_somewhere(old: str, new: str) -> None:
    module, _, name = old.rpartition(".")
    assert hasattr(importlib.import_module(f"tensorflow.python.{module}"), name)
    assert new.partition(":")[2]


def test_a_class_is_the_same_by_both_names() -> None:
    import tensorflow as tf
    from tensorflow.python.trackable import autotrackable

    old: Any = importlib.import_module("tensorflow.python.training.tracking.tracking")
    assert old is autotrackable
    assert issubclass(tf.Module, old.AutoTrackable)
    assert import_aliases.real_name("tensorflow.python.training.tracking.util") == "tensorflow.python.checkpoint.checkpoint"


def test_shapes_by_their_number_of_dimensions() -> None:
    shapes: Any = importlib.import_module("tensorflow.python.framework.tensor_shape")
    assert shapes.scalar().as_list() == []
    assert shapes.vector(3).as_list() == [3]
    assert shapes.matrix(2, None).as_list() == [2, None]
    with pytest.raises(TypeError, match="vector"):
        shapes.vector(1, 2)


def test_a_copy_of_an_estimator_keeps_its_decorator() -> None:
    tf_export: Any = importlib.import_module("tensorflow.python.util.tf_export")

    @tf_export.estimator_export("estimator.Copied")
    class Copied:
        pass

    assert Copied.__name__ == "Copied"
