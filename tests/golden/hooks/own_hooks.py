"""Session hooks as scripts of TensorFlow 1 write them; each puts what it sees into the list SEEN."""

import numpy as np
import tensorflow as tf

SEEN = []


def flat(value):
    return np.asarray(value, np.float64).ravel().tolist()


def see(name, *values):
    SEEN.append([name, *[flat(value) for value in values]])


class FeedingRate(tf.train.SessionRunHook):
    """Feeds a learning rate, which falls with the global step that it has fetched."""

    def __init__(self, rate):
        self._rate = rate
        self._value = 0.1

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.train.get_global_step(), feed_dict={self._rate: self._value})

    def after_run(self, run_context, run_values):
        self._value = 0.1 / (1 + run_values.results)
        see("rate", run_values.results, self._value)


class FeedingNowAndThen(tf.train.SessionRunHook):
    """Feeds a tensor of the model at every third step."""

    _count = 0

    def before_run(self, run_context):
        self._count += 1
        if self._count % 3 == 0:
            return tf.train.SessionRunArgs(["predicted:0", "model_loss:0"], feed_dict={"kept:0": 0.5})
        return tf.train.SessionRunArgs("model_loss:0")

    def after_run(self, run_context, run_values):
        see("fed", *run_values.results) if isinstance(run_values.results, list) else see("not fed", run_values.results)


class Assigning(tf.train.SessionRunHook):
    """Sets a weight at the beginning, halves it now and then, and stops."""

    def begin(self):
        (self._weight,) = [one for one in tf.trainable_variables() if one.op.name == "weight"]
        self._halve = self._weight.assign(self._weight * 0.5)
        self._step = tf.train.get_global_step()
        self._given = tf.placeholder(tf.float32, [3, 1])
        self._load = tf.assign(self._weight, self._given)

    def after_create_session(self, session, coord):
        see("created", session.run(self._weight))
        session.run(self._load, {self._given: np.ones((3, 1))})
        see("loaded", self._weight.eval(session), isinstance(session, tf.Session))

    def after_run(self, run_context, run_values):
        step = run_context.session.run(self._step)
        if step % 2 == 0:
            run_context.session.run(self._halve)
            see("halved", step, run_context.session.run(self._weight))
        if step == 6:
            run_context.request_stop()

    def end(self, session):
        see("end", session.run(self._step), session.run(self._weight))


class Saving(tf.train.SessionRunHook):
    """Saves by a Saver of its own."""

    def __init__(self, folder):
        self._folder = folder
        self._count = 0

    def begin(self):
        self._saver = tf.train.Saver(max_to_keep=2)

    def after_run(self, run_context, run_values):
        self._count += 1
        if self._count % 2 == 0:
            path = self._saver.save(run_context.session, self._folder + "/own", global_step=self._count)
            see("saved", int(path.rsplit("-")[-1]), tf.train.load_variable(path, "weight"))


class SavingAtSteps(tf.train.CheckpointSaverHook):
    """Saves at steps that it chooses by itself."""

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context, run_values):
        step = run_context.session.run(self._global_step_tensor)  # the step's own may be one behind, as TensorFlow says
        if step % 3 == 0:
            see("chosen", step)
            self._save(run_context.session, step)


class Counting(tf.train.CheckpointSaverListener):
    """Counts checkpoints in a variable."""

    def begin(self):
        self._count = tf.get_variable("saves", [], initializer=tf.zeros_initializer(), trainable=False)
        self._more = tf.assign_add(self._count, 1.0)

    def after_save(self, session, global_step_value):
        see("counted", global_step_value, session.run(self._more))


class ReadingOn(tf.train.SessionRunHook):
    """Takes another batch after each step."""

    def after_run(self, run_context, run_values):
        see("another batch", run_context.session.run("features:0"))


class Looking(tf.train.SessionRunHook):
    """Fetches variables and what was read from them. (What is computed from them, 1.15.5 computes before or after the step.)"""

    def begin(self):
        step = tf.train.get_global_step()
        (weight,) = [one for one in tf.trainable_variables() if one.op.name == "weight"]
        self._fetches = [step, tf.identity(step), step.read_value(), weight, weight.read_value()]

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context, run_values):
        see("looked", *run_values.results)


class RunningTrainOps(tf.train.SessionRunHook):
    """Runs a train_op before each step, as a GAN's hooks do."""

    def __init__(self, train_op, times):
        self._train_op = train_op
        self._times = times

    def before_run(self, run_context):
        for _ in range(self._times):
            run_context.session.run(self._train_op)


class Alternating(tf.train.SessionRunHook):
    """Adds a train_op to every other step."""

    _count = 0

    def __init__(self, train_op):
        self._train_op = train_op

    def before_run(self, run_context):
        self._count += 1
        return tf.train.SessionRunArgs([self._train_op, "critic_loss:0"]) if self._count % 2 else None

    def after_run(self, run_context, run_values):
        see("alternating", -1.0 if run_values.results is None else run_values.results[1])


class InitialisingIterators(tf.train.SessionRunHook):
    """Runs a function that an input_fn has set."""

    initialise = None

    def after_create_session(self, session, coord):
        self.initialise(session)
