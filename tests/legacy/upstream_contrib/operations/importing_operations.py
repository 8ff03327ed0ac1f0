"""Fails if an import of the operations imports TensorFlow, or the module of one of them."""

import sys

from estimator_bridge.legacy.upstream_contrib.operations import OPERATIONS

assert "tensorflow" not in sys.modules
assert "GatherTree" in OPERATIONS
assert not [name for name in sys.modules if name.startswith("estimator_bridge.legacy.upstream_contrib.operations.")]
