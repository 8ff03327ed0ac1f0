"""Old pipelines keep running: the real Estimator on a TensorFlow that no longer ships it.

``install()`` brings ``tf.estimator`` back. Importing this package is quick and loads no TensorFlow.
"""

from estimator_bridge.legacy.installation import install

__all__ = ["install"]
