"""Gives the module its TensorFlow."""

import tensorflow as tf
