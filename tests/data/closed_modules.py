"""Imports modules from a folder that may not be entered, and one that is not there, beside the script or above it."""

import sys

import tensorflow as tf

sys.path.insert(0, "..")
import closed.train
import nowhere

tf.estimator.Estimator(closed.train.x, nowhere.x)
