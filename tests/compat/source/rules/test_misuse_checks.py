"""Code that does something else than it seems to do: for each rule, code that it finds and code that it leaves alone."""

from __future__ import annotations

import pytest

from estimator_bridge.compat.source.verdicts import Kind
from tests.compat.source.reading import findings

KERAS = "import tensorflow as tf\nfrom tensorflow import keras\n"
MODEL = f"{KERAS}class Net(keras.Model):\n    def call(self, x):\n        return x\n"

# A file, and what is reported of it.
CLAIMS = {
    "GPUs": ('import tensorflow as tf\ntf.GPUOptions(visible_device_list="0,1")', ["visible_device_list"]),
    "GPUs, assigned": ('config.gpu_options.visible_device_list = "0, 1, 2"', ["visible_device_list"]),
    "GPUs, by the environment": ('import os\nos.environ["CUDA_VISIBLE_DEVICES"] = "0,1"', ["CUDA_VISIBLE_DEVICES"]),
    "GPUs, unless set": ('import os\nos.environ.setdefault("CUDA_VISIBLE_DEVICES", "0,1")', ["CUDA_VISIBLE_DEVICES"]),
    "GPUs, and operations on the first": (
        'import tensorflow as tf\ntf.GPUOptions(visible_device_list="0,1")\ntf.device("/gpu:0")\ntf.device("/cpu:0")',
        ["visible_device_list"],
    ),
    "GPUs, and operations on each": (
        'import tensorflow as tf\ntf.GPUOptions(visible_device_list="0,1")\nfor i in range(2):\n    tf.device("/gpu:%d" % i)',
        [],
    ),
    "GPUs, and operations on the second": (
        'import tensorflow as tf\ntf.GPUOptions(visible_device_list="0,1")\ntf.device("/device:GPU:1")',
        [],
    ),
    "one GPU": ('config.gpu_options.visible_device_list = "0"', []),
    "GPUs and a strategy": (
        'import tensorflow as tf\ntf.GPUOptions(visible_device_list="0,1")\ntf.distribute.MirroredStrategy()',
        [],
    ),
    "model parallelism": (f"{KERAS}# Model parallelism over two GPUs.\ntf.distribute.MirroredStrategy()", ["MirroredStrategy"]),
    "model parallelism, imported": (
        "from tensorflow.distribute import MirroredStrategy\nmodel_parallel = MirroredStrategy()",
        ["MirroredStrategy"],
    ),
    "data parallelism": (f"{KERAS}# Data parallelism.\ntf.distribute.MirroredStrategy()", []),
    "decomposition": (f"{MODEL}# Domain decomposition.\nleft = Net()\nright = Net()", ["Net"]),
    "decomposition by a function": (
        f"{KERAS}def build():\n    return keras.Sequential([])\n# decomposed in two\na = build()\nb = build()",
        ["build"],
    ),
    "two models": (f"{MODEL}teacher = Net()\nstudent = Net()", []),
    "decomposition of something else": ("# Domain decomposition.\nclass A: pass\na = A()\nb = A()", []),
    "fit": ("for batch in data:\n    model.fit(*batch)", [".fit"]),
    "fit, by an index": ("for i in range(num_batches):\n    model.fit(x[i], y[i])", [".fit"]),
    "fit, in a cross-validation": ("for train, test in folds:\n    model.fit(x[train], y[train])", []),
    "train_on_batch": ("for batch in data:\n    model.train_on_batch(*batch)", []),
    "fit, in a function defined in the loop": ("for batch in data:\n    def later():\n        model.fit(x)", []),
    "h5": (f'{MODEL}model = Net()\nmodel.save("m.h5")', [".save"]),
    "h5 in a folder": (f'{MODEL}import os\nmodel = Net()\nmodel.save(os.path.join(folder, "m.h5"))', [".save"]),
    "h5 by its format": (f'{MODEL}model = Net()\nmodel.save(path, save_format="h5")', [".save"]),
    "h5 by itself": (f'{MODEL}    def keep(self):\n        self.save("m.h5")', [".save"]),
    "h5 of a functional model": (f'{KERAS}model = keras.Sequential([])\nmodel.save("m.h5")', []),
    "h5 with get_config": (f'{MODEL}    def get_config(self):\n        return {{}}\nmodel = Net()\nmodel.save("m.h5")', []),
    "SavedModel": (f'{MODEL}model = Net()\nmodel.save("folder")', []),
    "the old name": (
        f"{KERAS}tf.distribute.experimental.MultiWorkerMirroredStrategy()",
        ["tf.distribute.experimental.MultiWorkerMirroredStrategy"],
    ),
    "the new name": (f"{KERAS}tf.distribute.MultiWorkerMirroredStrategy()", []),
}


@pytest.mark.parametrize(("source", "symbols"), CLAIMS.values(), ids=CLAIMS)
def test_misuse(source: str, symbols: list[str]) -> None:
    found = findings(source, Kind.CLAIM)
    assert [one.symbol for one in found] == symbols
    assert all(1 <= one.line <= source.count("\n") + 1 for one in found)
