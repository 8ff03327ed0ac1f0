"""The tables of ``tf.contrib``: packages, source files and replacements."""

from __future__ import annotations

import importlib.util
import operator
import re
from pathlib import Path

import pytest

from estimator_bridge.compat.source.removed_names.contrib import REPLACEMENTS, replacement, successor
from estimator_bridge.compat.source.removed_names.contrib_modules import is_module
from estimator_bridge.legacy import contrib
from estimator_bridge.legacy.contrib.refusal import ContribAttributeError
from estimator_bridge.legacy.upstream_contrib import cache

FOLDER = Path(contrib.__file__).parent
MACHINERY = {"__init__", "__pycache__", "files", "namespace", "offered", "refusal", "replacements"}
DOCS = Path(__file__).parents[3] / "docs" / "reference"

# The folders of tensorflow/contrib in TensorFlow 1.15.5.
FOLDERS = [
    "all_reduce",
    "autograph",
    "batching",
    "bayesflow",
    "bigtable",
    "boosted_trees",
    "checkpoint",
    "cloud",
    "cluster_resolver",
    "cmake",
    "compiler",
    "constrained_optimization",
    "copy_graph",
    "crf",
    "cudnn_rnn",
    "data",
    "decision_trees",
    "deprecated",
    "distribute",
    "distributions",
    "eager",
    "estimator",
    "factorization",
    "feature_column",
    "ffmpeg",
    "framework",
    "fused_conv",
    "graph_editor",
    "grid_rnn",
    "hadoop",
    "hooks",
    "ignite",
    "image",
    "input_pipeline",
    "integrate",
    "kafka",
    "keras",
    "kernel_methods",
    "kinesis",
    "labeled_tensor",
    "layers",
    "learn",
    "legacy_seq2seq",
    "libsvm",
    "linear_optimizer",
    "lookup",
    "losses",
    "memory_stats",
    "meta_graph_transform",
    "metrics",
    "mixed_precision",
    "model_pruning",
    "nearest_neighbor",
    "nn",
    "opt",
    "optimizer_v2",
    "periodic_resample",
    "predictor",
    "proto",
    "quantization",
    "quantize",
    "receptive_field",
    "recurrent",
    "reduce_slice_ops",
    "remote_fused_graph",
    "resampler",
    "rnn",
    "rpc",
    "saved_model",
    "seq2seq",
    "session_bundle",
    "signal",
    "slim",
    "solvers",
    "sparsemax",
    "specs",
    "staging",
    "stat_summarizer",
    "stateless",
    "summary",
    "tensor_forest",
    "tensorboard",
    "tensorrt",
    "testing",
    "text",
    "tfprof",
    "timeseries",
    "tpu",
    "training",
    "util",
]
EARLIER = {"coder", "gan", "lite", "nccl"}  # in TensorFlow 1's first years


def test_each_module_of_the_folder_is_a_package() -> None:
    assert sorted({path.stem for path in FOLDER.iterdir()} - MACHINERY) == sorted(contrib.PACKAGES)


def test_every_package_of_tensorflow_1_has_a_replacement() -> None:
    assert {symbol.partition(".")[0] for symbol in REPLACEMENTS} == {*FOLDERS, *EARLIER}
    assert set(FOLDERS) <= REPLACEMENTS.keys()
    assert set(contrib.PACKAGES) <= set(FOLDERS)


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("tf.contrib.eager.Network", "tf.keras.Model"),
        ("tf.contrib.eager.python.network.Network", "tf.keras.Model"),
        ("tf.contrib.eager.other", REPLACEMENTS["eager"]),
        ("tf.contrib.eager.python.tfe", REPLACEMENTS["eager"]),
        ("tf.contrib.learn.DNNClassifier.fit", REPLACEMENTS["learn.DNNClassifier"]),
        ("tf.contrib.learn.python.learn.estimators.dnn.DNNClassifier", REPLACEMENTS["learn.DNNClassifier"]),
        ("tf.contrib.learn.python.learn.monitors.ValidationMonitor", REPLACEMENTS["learn.monitors"]),
        ("tf.contrib.compiler.xla.compile", "tf.xla.experimental.compile"),
        ("tf.contrib.nowhere", "no known successor"),
    ],
)
def test_replacement(symbol: str, expected: str) -> None:
    assert successor(symbol) == expected


def test_a_symbol_without_successor() -> None:
    assert replacement("tf.contrib.remote_fused_graph.x") == "Remove it from the script: nothing replaces it."


def names(text: str) -> list[str]:
    return re.findall(r"(?<![\w.])tf(?:\.\w+)+", text)


@pytest.mark.parametrize("symbol", [symbol for symbol, text in REPLACEMENTS.items() if names(text)])
def test_named_replacements_exist(symbol: str, tf1: object) -> None:
    import tensorflow as tf

    for name in names(REPLACEMENTS[symbol]):
        assert resolves(tf1, name) or resolves(tf, name), name


@pytest.fixture(scope="module")
def tf1() -> object:
    from estimator_bridge import legacy

    legacy.install()
    from estimator_bridge.legacy.tf1_surface.tf1_imports import tf1_imports

    with tf1_imports({}) as namespace:
        return namespace


def resolves(module: object, name: str) -> bool:
    for part in name.split(".")[1:]:
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


def test_source_files() -> None:
    assert is_module("learn", "python", "learn", "estimators", "run_config")
    assert is_module("learn", "python")
    assert not is_module("learn", "estimators")
    assert not is_module("nowhere")


@pytest.mark.parametrize("package", FOLDERS)
def test_every_package_of_tensorflow_1_is_a_module(package: str) -> None:
    assert is_module(package)
    assert not any(is_module(earlier) for earlier in EARLIER)


def test_names_that_only_files_offer(tf1: object) -> None:
    assert resolves(tf1, "tf.contrib.tpu.python.tpu.tpu_function.get_tpu_context")
    assert not resolves(tf1, "tf.contrib.tpu.get_tpu_context")
    assert resolves(tf1, "tf.contrib.learn.python.learn.learn_runner.run")
    assert resolves(tf1, "tf.contrib.learn.python.learn.estimators.run_config.Environment")
    assert not resolves(tf1, "tf.contrib.learn.python.learn.nowhere")
    assert not resolves(tf1, "tf.contrib.learn.Environment")


# A name of each kind that a fetched tf.contrib alone has: of a package of ours, by its file, and of another package.
FETCHED = [
    "contrib.rnn.GRUBlockCell",
    "contrib.estimator.multi_label_head",
    "contrib.estimator.python.estimator.replicate_model_fn.TowerOptimizer",
    "contrib.learn.MetricSpec",
    "contrib.image.rotate",
]


@pytest.mark.skipif(cache.is_fetched(), reason="the real tf.contrib has these names")
@pytest.mark.parametrize("symbol", FETCHED)
def test_the_message_names_the_command_that_fetches_a_name(symbol: str, tf1: object) -> None:
    with pytest.raises(ContribAttributeError) as raised:
        operator.attrgetter(symbol)(tf1)

    assert "TensorFlow 2 removed tf.contrib." in str(raised.value)
    assert "Or fetch the real tf.contrib (222 MB, once; Apache-2.0): estimator-bridge contrib fetch" in str(raised.value)


def test_the_pages_are_written_from_the_tables() -> None:
    spec = importlib.util.spec_from_file_location("generate_contrib", DOCS / "generate_contrib.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)

    written = {page.name: page.read_text(encoding="utf-8") for page in DOCS.glob("contrib*.md")}
    assert written == generate.pages(), "run python docs/reference/generate_contrib.py"
