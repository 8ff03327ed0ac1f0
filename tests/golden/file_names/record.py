"""Records which files of tensorflow.python have names of tf's API: python record.py FOLDER (TensorFlow 1.15.5, Python 3.7).

Writes FOLDER/names.json: file -> name -> path in tf, for each file that ``import tensorflow`` and tf.contrib load, but for Keras' and
generated ones.
"""

import functools
import json
import os
import sys

import tensorflow as tf
import tensorflow.contrib


def path_in_tf(value):
    """The first path by which tf has an object; None if there is none."""
    try:
        paths = vars(value).get("_tf_api_names_v1") or ()
    except TypeError:
        return None
    for path in paths:
        try:
            if functools.reduce(getattr, path.split("."), tf) is value:
                return path
        except AttributeError:  # noqa: PERF203 -- a path may be gone
            pass
    return None


found = {}
for file, module in sorted(sys.modules.items(), key=str):
    if file.startswith(("tensorflow.python.", "tensorflow_core.python.")) and ".keras" not in file and ".gen_" not in file:
        names = {name: path_in_tf(value) for name, value in vars(module).items() if not name.startswith("__")}
        names = {name: path for name, path in names.items() if path}
        if names:
            found[file.replace("tensorflow_core.", "tensorflow.")] = names
with open(os.path.join(sys.argv[1], "names.json"), "w") as stream:
    stream.write(json.dumps(found, sort_keys=True, indent=0) + "\n")
