"""Installs the legacy path, with which half of these tests compare, before the others first use tf.keras."""

from estimator_bridge.legacy import install

install()
