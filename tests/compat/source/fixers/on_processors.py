"""Runs a script in a process that has several CPU devices: ``python on_processors.py NUMBER SCRIPT [ARGS...]``."""

import runpy
import sys

import tensorflow as tf

devices = [tf.config.LogicalDeviceConfiguration()] * int(sys.argv[1])
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
