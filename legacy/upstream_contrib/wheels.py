"""The official wheels that hold ``tf.contrib``, and which of their files are kept."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass


@dataclass(frozen=True)
class Wheel:
    """A wheel on the Python Package Index.

    Attributes:
        requirement: Name and version, as pip takes them.
        file: File name.
        sha256: Hash of the whole file.
        megabytes: Size of the file.
        platform: Platform tag of the file; its Python files are the same on every platform.
        kept: Prefixes and patterns of the files that are kept, mapped to the module path that they start.
    """

    requirement: str
    file: str
    sha256: str
    megabytes: int
    platform: str
    kept: tuple[tuple[str, str], ...]

    def module_path(self, name: str) -> str | None:
        """Returns the path of a kept file below the cache, e.g. ``tensorflow/contrib/crf/__init__.py``; None for other files.

        Args:
            name: Path of a file in the wheel.
        """
        if not name.endswith((".py", ".csv")):  # load_iris, load_boston and the like read their tables beside themselves
            return None
        for prefix, start in self.kept:
            if fnmatch.fnmatch(name, f"{prefix}*"):
                return start + name[len(prefix) :]
        return None


_1_14 = "tensorflow-1.14.0.data/purelib/tensorflow"
_CORE = (  # modules of TensorFlow 1.15 outside of contrib that contrib imports and later TensorFlows lack
    "tensorflow/core/framework/remote_fused_graph_execute_info_pb2",
    "tensorflow/core/kernels/",
    "tensorflow/python/distribute/all_reduce",
    "tensorflow/python/eager/execution_callbacks",
    "tensorflow/python/ops/distributions/transformed_distribution",
    "tensorflow/python/profiler/profile_context",
    "tensorflow/python/tpu/async_checkpoint",
)

WHEELS = (
    Wheel(
        "tensorflow==1.15.5",
        "tensorflow-1.15.5-cp37-cp37m-manylinux2010_x86_64.whl",
        "29831dda98d668067de75403b2fca0d06a2f026ef6f217fa2ca873c20b4ee4d3",
        111,
        "manylinux2010_x86_64",
        (
            ("tensorflow_core/contrib/", "tensorflow/contrib/"),
            *((module.replace("tensorflow/", "tensorflow_core/", 1), module) for module in _CORE),
        ),
    ),
    Wheel(  # the last one with tf.contrib.gan and tf.contrib.rate
        "tensorflow==1.14.0",
        "tensorflow-1.14.0-cp37-cp37m-manylinux1_x86_64.whl",
        "d982a6fef251ec1358129213385ec027f87ee72246dffe1136ca6109def209f7",
        110,
        "manylinux1_x86_64",
        tuple((f"{_1_14}/contrib/{package}/", f"tensorflow/contrib/{package}/") for package in ("gan", "rate")),
    ),
    Wheel(
        "tensorflow-estimator==1.15.1",
        "tensorflow_estimator-1.15.1-py2.py3-none-any.whl",
        "8853bfb7c3c96fbdc80b3d66c37a10af6ccbcd235dc87474764270c02a0f86b9",
        1,
        "any",
        tuple(
            (module, module)
            for module in ("tensorflow_estimator/contrib/", "tensorflow_estimator/python/estimator/canned/boosted_trees")
        ),
    ),
)

LICENCE = "Apache-2.0"
MEGABYTES = sum(wheel.megabytes for wheel in WHEELS)
MANIFEST_SHA256 = "f1c2ab9cec47fd77d943eca971468bed1c4927bcea8c8223a1c1a10afebc23f4"
"""Hash of the manifest that the three wheels give: the paths of the kept files and their hashes."""
