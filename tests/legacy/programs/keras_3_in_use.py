"""Prints what install() says after each use of Keras 3, in copies of one process that has imported TensorFlow."""

import os
import sys

import tensorflow as tf

for use in sys.argv[1:]:
    if not os.fork():
        exec(use)
        from estimator_bridge import errors, legacy

        for _ in range(2):
            try:
                legacy.install()
            except errors.BridgeError as error:
                print(error)
        assert not hasattr(tf, "estimator") and "TF_USE_LEGACY_KERAS" not in os.environ
        print("end of use", flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
