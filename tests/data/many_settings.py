"""Gives an Estimator settings of every kind, and trains it: what reads the settings ends the script at that call."""

import sys
import tensorflow as tf
session = tf.ConfigProto(intra_op_parallelism_threads=2)
session.gpu_options.allow_growth = True
mirrored = tf.distribute.MirroredStrategy(["CPU:0"], cross_device_ops=tf.distribute.ReductionToOneDevice())
config = tf.estimator.RunConfig(model_dir=sys.argv[1], session_config=session, save_checkpoints_steps=7, keep_checkpoint_max=None,
                                save_summary_steps=None, train_distribute=mirrored)
estimator = tf.estimator.Estimator(lambda features: None, config=config)
train = tf.estimator.TrainSpec(None or (lambda: None), max_steps=70, hooks=[tf.train.StopAtStepHook(last_step=60)],
                               saving_listeners=[tf.train.CheckpointSaverListener()])
evaluate = tf.estimator.EvalSpec(lambda: None, steps=None, hooks=[tf.train.LoggingTensorHook(["x"], 5)], exporters=tf.estimator.LatestExporter("x", lambda: None))
print("the script talks")
tf.estimator.train_and_evaluate(estimator, train, evaluate)
raise SystemExit("trained")
