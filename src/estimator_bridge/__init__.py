"""Keep TensorFlow 1 Estimator pipelines running, move them to tf.distribute and Keras, and prove the accuracy is the same.

``estimator_bridge.legacy`` runs old pipelines unmodified, ``estimator_bridge.modern`` executes the same job on tf_keras and
tf.distribute, ``estimator_bridge.compat`` converts between the two, ``estimator_bridge.parity`` compares them side by side.
"""

__version__ = "0.2.0"


def load_ipython_extension(shell: object) -> None:
    """Answers ``%load_ext estimator_bridge`` in a notebook: TensorFlow 1's names for its cells, and the magic ``%%compare``."""
    from estimator_bridge.script.magics import register

    register(shell)
