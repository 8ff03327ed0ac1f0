"""``tf.data.experimental.CheckpointInputPipelineHook``, by which a training resumes its input where it stopped.

What was removed: the class, with TensorFlow 2.16 (March 2024).

Needed by: ``estimator.train(input_fn, hooks=[CheckpointInputPipelineHook(estimator)])`` in a loop with ``evaluate``. Without it each
call starts at the first example.
"""

from typing import Any

import tensorflow as tf
from tensorflow.python.data.experimental.ops import iterator_ops
from tensorflow.python.data.ops.iterator_ops import GLOBAL_ITERATORS, _IteratorSaveable

from estimator_bridge.legacy.restored.tensorflow_modules import load_public_modules

train = tf.compat.v1.train
_NAME = "CheckpointInputPipelineHook"


def restore() -> None:
    """Binds the name in ``tf.data.experimental`` of each API, unless it is there.

    Example:
        >>> restore()
        >>> import tensorflow as tf
        >>> tf.data.experimental.CheckpointInputPipelineHook.__name__
        'CheckpointInputPipelineHook'
    """
    for module in [iterator_ops, *(api.data.experimental for api in load_public_modules().values())]:
        if not hasattr(module, _NAME):
            setattr(module, _NAME, CheckpointInputPipelineHook)


class CheckpointInputPipelineHook(tf.compat.v1.train.SessionRunHook):
    """Saves the state of a graph's iterators when the Estimator saves its model, and restores it before the first step.

    The files are ``input.ckpt-STEP`` in the model_dir, or ``input_TASK_INDEX.ckpt-STEP`` with several workers, and ``checkpoint_input`` names the
    last ones. The model's own checkpoints do not change.

    Args:
        estimator: Estimator that gives the model_dir and the frequency of checkpoints.
        external_state_policy: Reaction to input that depends on state that cannot be saved, e.g. a random generator's: ``fail`` (the default),
            ``warn`` or ``ignore``.

    Raises:
        ValueError: The policy is none of these, or the Estimator saves no checkpoints.

    Example:
        >>> import tempfile
        >>> import tensorflow.compat.v1 as tf
        >>> from estimator_bridge import legacy
        >>> legacy.install()
        >>> def model_fn(features, labels, mode):
        ...     seen = tf.get_variable("seen", [], tf.int64)
        ...     step = tf.group(seen.assign(features), tf.train.get_global_step().assign_add(1))
        ...     return tf.estimator.EstimatorSpec(mode, loss=tf.constant(0.0), train_op=step)
        >>> with tempfile.TemporaryDirectory() as model_dir:
        ...     estimator = tf.estimator.Estimator(model_fn, model_dir)
        ...     for _ in range(2):
        ...         hook = CheckpointInputPipelineHook(estimator)
        ...         _ = estimator.train(lambda: tf.data.Dataset.range(10), hooks=[hook], steps=3)
        ...     int(estimator.get_variable_value("seen"))
        5
    """

    def __init__(self, estimator: Any, external_state_policy: str | None = None) -> None:
        config = estimator.config
        task = f"_{config.task_type}_{config.task_id}" if config.num_worker_replicas > 1 else ""
        self._folder, self._name, self._index = estimator.model_dir, f"input{task}", f"checkpoint_input{task}"
        self._policy = iterator_ops._convert_external_state_policy_to_enum(external_state_policy or "fail")
        self._timer = train.SecondOrStepTimer(config.save_checkpoints_secs, config.save_checkpoints_steps)

    def begin(self) -> None:
        """Builds the saver over the iterators that the graph has."""
        iterators = tf.compat.v1.get_collection(GLOBAL_ITERATORS)
        states = [_IteratorSaveable(one, one.name, external_state_policy=self._policy) for one in iterators]
        self._saver = train.Saver(states, sharded=True)
        self._global_step = train.get_global_step()
        if self._global_step is None:
            raise RuntimeError(f"{_NAME} needs a global step: tf.train.get_or_create_global_step() in model_fn.")
        self._timer.reset()
        tf.io.gfile.makedirs(self._folder)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Remembers to restore the iterators before the first step: another hook initializes them now."""
        self._is_new_session = True

    def before_run(self, run_context: Any) -> Any:
        """Restores the last state before the first step of a session, or saves the first."""
        if self._is_new_session:
            self._is_new_session = False
            last = train.latest_checkpoint(self._folder, self._index)
            if last:
                self._saver.restore(run_context.session, last)
            else:
                self._save(run_context.session)
        return train.SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Saves if a checkpoint is due."""
        if self._timer.should_trigger_for_step(run_values.results + 1):
            step = run_context.session.run(self._global_step)
            if self._timer.should_trigger_for_step(step):
                self._save(run_context.session)

    def end(self, session: Any) -> None:
        """Saves the last state."""
        if self._timer.last_triggered_step() != session.run(self._global_step):
            self._save(session)

    def _save(self, session: Any) -> None:
        step = session.run(self._global_step)
        self._timer.update_last_triggered_step(step)
        self._saver.save(session, f"{self._folder}/{self._name}.ckpt", step, self._index)
