"""Feature columns as Keras layers that compute the same as input_layer, linear_model and sequence_input_layer."""

from estimator_bridge.modern.canned.columns.inputs import Inputs
from estimator_bridge.modern.canned.columns.layers import dense, linear, sequence
from estimator_bridge.modern.canned.columns.registry import Weight

__all__ = ["Inputs", "Weight", "dense", "linear", "sequence"]
