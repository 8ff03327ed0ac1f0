"""Half of these tests compare with the legacy path, which has to come before the first use of tf.keras by the other half."""

from estimator_bridge.legacy import install

install()
