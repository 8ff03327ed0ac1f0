"""``tensorflow.python.tpu.tpu_embedding_gradient``: gradients for the embedding tables of a TPU.

What was removed: the module, with TensorFlow 2.16 (March 2024).

Needed by: importing TPUEstimator. Its functions run only on a TPU, so each call is refused.
"""

import sys

from estimator_bridge.legacy.restored.tensorflow_modules import place
from estimator_bridge.legacy.restored.tpu_absence import refuse_call

create_dummy_table_variables = refuse_call("tpu_embedding_gradient.create_dummy_table_variables")
get_gradients_through_compute_gradients = refuse_call("tpu_embedding_gradient.get_gradients_through_compute_gradients")
get_gradients_through_dummy_table_variables = refuse_call("tpu_embedding_gradient.get_gradients_through_dummy_table_variables")
hook_dummy_table_variables_to_activations = refuse_call("tpu_embedding_gradient.hook_dummy_table_variables_to_activations")


def restore() -> None:
    """Puts the module back, unless this TensorFlow has it.

    Example:
        >>> restore()
        >>> from tensorflow.python.tpu import tpu_embedding_gradient
    """
    place("tensorflow.python.tpu.tpu_embedding_gradient", sys.modules[__name__])
