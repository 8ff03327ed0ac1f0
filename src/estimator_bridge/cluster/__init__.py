"""Clusters of ``estimator-bridge run`` processes: laid out, started, asked how they are, watched and ended, without TensorFlow."""
