"""Restores the parts of TensorFlow that Estimator needs and TensorFlow 2.16 to 2.21 removed, one module for each part.

Each module has a ``restore()`` that puts its part back into the TensorFlow of this process, unless that TensorFlow has it. The modules import
TensorFlow; this ``__init__`` does not.
"""

__all__ = ["complete_native", "restore"]


def restore() -> None:
    """Puts back everything that tensorflow-estimator 2.15 imports, then the Estimator's own names.

    Example:
        >>> import os
        >>> os.environ["TF_USE_LEGACY_KERAS"] = "1"
        >>> from estimator_bridge.legacy import restored
        >>> restored.restore()
    """
    from estimator_bridge.legacy.restored import (
        cross_shard_optimizer,
        estimator_names,
        estimator_training,
        export_names,
        import_aliases,
        input_checkpoints,
        keras_aliases,
        layer_methods,
        layer_modules,
        moved_names,
        public_names,
        tpu_embedding,
        tpu_embedding_gradient,
        tpu_session_support,
        whole_dimensions,
    )

    # First the aliases: importing tensorflow_estimator uses them. Last the names, which import it.
    for part in (
        keras_aliases,
        layer_methods,
        layer_modules,
        moved_names,
        public_names,
        export_names,
        estimator_training,
        input_checkpoints,
        tpu_embedding,
        tpu_embedding_gradient,
        tpu_session_support,
        cross_shard_optimizer,
        whole_dimensions,
        import_aliases,
        estimator_names,
    ):
        part.restore()


def complete_native(keras: str) -> None:
    """Restores on TensorFlow 2.15, which has its Estimator, the other names of earlier versions, and binds the Keras aliases.

    Args:
        keras: Name of the Keras 2 package, ``keras`` or ``tf_keras``.

    Example:
        >>> import os
        >>> os.environ["TF_USE_LEGACY_KERAS"] = "1"
        >>> from estimator_bridge.legacy import restored
        >>> restored.complete_native("tf_keras")
    """
    from estimator_bridge.legacy.restored import (
        cross_shard_optimizer,
        import_aliases,
        keras_aliases,
        layer_methods,
        layer_modules,
        moved_names,
        public_names,
        whole_dimensions,
    )

    for of_keras in (keras_aliases, layer_methods, layer_modules):
        of_keras.restore(keras)
    for part in (cross_shard_optimizer, moved_names, public_names, whole_dimensions, import_aliases):
        part.restore()
