"""Prints what an import of the package loads and sets."""

import os
import sys

import estimator_bridge.legacy

print(sorted({"tensorflow", "keras", "tf_keras", "numpy"} & set(sys.modules)), "TF_USE_LEGACY_KERAS" in os.environ)
