"""A stand-in for the interpreter of a reference: the recorder where TensorFlow is a stub, for scripts that do not use it."""

from __future__ import annotations

import runpy
import sys
from unittest.mock import MagicMock

tensorflow = MagicMock(__version__="1.15.5")
for name in ("", ".python", ".python.framework", ".python.ops", ".python.util"):
    sys.modules[f"tensorflow{name}"] = tensorflow
del sys.argv[0]
recorder = runpy.run_path(sys.argv[0])
recorder["main"].__globals__.update(equalise=lambda: None, intercept=lambda trace: None)
recorder["main"](sys.argv[1])
